//! Model of a plot: panels of lines over a common time axis, and the size and colors of the
//! picture.

use std::borrow::Cow;

use super::axis::{Tick, plain, prefixed, times};
use super::series::{Series, Side};

/// Maximum number of lines in a panel. If there were more lines, they would be hard to tell apart.
const MAX_LINES: usize = 12;

/// A part of a plot: lines with a common value axis, or states drawn as lanes.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Panel {
    /// Title above the panel.
    pub title: String,
    /// Lines or lanes, in drawing order.
    pub series: Vec<Series>,
    /// A spectrogram, which is drawn below the lines.
    pub(crate) heat: Option<Heat>,
}

/// Power spectral density over time and frequency.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Heat {
    /// Time range of all columns in seconds.
    pub(crate) span: (f64, f64),
    /// Highest frequency in hertz.
    pub(crate) highest: f64,
    /// Densities in decibels of each column, from the lowest frequency to the highest. A column
    /// without samples is empty.
    pub(crate) columns: Vec<Vec<f64>>,
}

/// Range of a spectrogram in decibels below its maximum that is drawn in different colors.
const HEAT_DECIBELS: f64 = 60.0;

impl Heat {
    /// Returns the lowest and the highest density that is drawn, in decibels.
    pub(crate) fn range(&self) -> (f64, f64) {
        let highest = self.columns.iter().flatten().copied().fold(f64::NEG_INFINITY, f64::max);
        (highest - HEAT_DECIBELS, highest)
    }

    /// Calls `each` for cells that are drawn in the same color and next to each other in time. Its
    /// arguments are the level of the color, from 0 to `levels` - 1, and the time and frequency
    /// ranges of the cells.
    pub(crate) fn cells(&self, levels: u8, mut each: impl FnMut(u8, (f64, f64), (f64, f64))) {
        let (low, high) = self.range();
        let rows = self.columns.iter().map(Vec::len).max().unwrap_or(0);
        let level = |column: usize, row: usize| {
            let part = (self.columns.get(column)?.get(row)? - low) / (high - low);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
            Some((part.clamp(0.0, 0.999) * f64::from(levels)) as u8)
        };
        let (start, end) = self.span;
        let time = |column: usize| start + (end - start) * column as f64 / self.columns.len() as f64;
        let hertz = |row: usize| self.highest * row as f64 / rows as f64;
        for row in 0..rows {
            let mut column = 0;
            while column < self.columns.len() {
                let Some(here) = level(column, row) else {
                    column += 1;
                    continue;
                };
                let same = (column..self.columns.len()).take_while(|next| level(*next, row) == Some(here));
                let next = column + same.count();
                each(here, (time(column), time(next)), (hertz(row), hertz(row + 1)));
                column = next;
            }
        }
    }
}

impl Panel {
    /// Creates a panel.
    pub fn new(title: impl Into<String>, series: Vec<Series>) -> Self {
        Self { title: title.into(), series, heat: None }
    }

    /// Creates a panel of a spectrogram.
    pub(crate) fn heat(title: String, heat: Heat) -> Self {
        Self { title, series: Vec::new(), heat: Some(heat) }
    }

    /// Distributes lines to panels. There is one panel for each unit, in the order in which the
    /// units first occur. On/off signals and named states get separate panels, and panels with many
    /// lines are split.
    pub fn by_unit(title: &str, series: Vec<Series>) -> Vec<Self> {
        let mut groups: Vec<Self> = Vec::new();
        for mut line in series {
            if let Some(short) = without_topic(title, &line.name) {
                line.name = short;
            }
            let alike = |panel: &&mut Self| {
                panel.series[0].unit == line.unit && panel.series[0].is_lane() == line.is_lane()
            };
            match groups.iter_mut().find(alike) {
                Some(panel) => panel.series.push(line),
                None => groups.push(Self::new(title, vec![line])),
            }
        }
        groups.into_iter().flat_map(Self::split).collect()
    }

    /// Combines lines of several signals or logs in one panel. If the lines have two units, the
    /// lines with the second unit have a value axis at the right. Lines with further units, on/off
    /// signals and named states get separate panels.
    ///
    /// For example, two angles in rad and a speed in m/s share a panel. The axis of the angles is
    /// at the left, and the axis of the speed is at the right.
    pub fn overlay(title: &str, series: Vec<Series>) -> Vec<Self> {
        let (mut lines, mut others): (Vec<_>, Vec<_>) = series.into_iter().partition(|line| !line.is_lane());
        let first = lines.first().and_then(|line| line.unit.clone());
        let second = lines.iter().find(|line| line.unit != first).map(|line| line.unit.clone());
        let has_axis = |line: &Series| line.unit == first || Some(&line.unit) == second.as_ref();
        others.extend(lines.extract_if(.., |line| !has_axis(line)));
        for line in &mut lines {
            line.side = if line.unit == first { Side::Left } else { Side::Right };
        }
        let panel = (!lines.is_empty()).then(|| Self::new(title, lines));
        panel.into_iter().chain(Self::by_unit(title, others)).collect()
    }

    /// Returns a panel with only the lines whose value axis is on this side.
    pub(crate) fn on(&self, side: Side) -> Cow<'_, Self> {
        if self.series.iter().all(|line| line.side == side) {
            return Cow::Borrowed(self);
        }
        let lines = self.series.iter().filter(|line| line.side == side);
        Cow::Owned(Self::new(self.title.clone(), lines.cloned().collect()))
    }

    /// Splits a panel with too many lines into panels of at most [`MAX_LINES`] lines.
    fn split(self) -> Vec<Self> {
        if self.is_lanes() || self.series.len() <= MAX_LINES {
            return vec![self];
        }
        let parts = self.series.len().div_ceil(MAX_LINES);
        let each = self.series.len().div_ceil(parts);
        let chunks = self.series.chunks(each).enumerate();
        chunks
            .map(|(i, lines)| Self::new(format!("{} ({} of {parts})", self.title, i + 1), lines.to_vec()))
            .collect()
    }

    /// Returns the unit of the lines if all lines have the same unit.
    pub(crate) fn unit(&self) -> Option<&str> {
        if self.heat.is_some() {
            return Some("Hz");
        }
        let unit = self.series.first()?.unit.as_deref()?;
        self.series.iter().all(|series| series.unit.as_deref() == Some(unit)).then_some(unit)
    }

    /// Returns whether the panel shows on/off signals or states. These are drawn as lanes and have
    /// no value axis.
    pub(crate) fn is_lanes(&self) -> bool {
        !self.series.is_empty() && self.series.iter().all(Series::is_lane)
    }

    /// Returns the divisor for the labels of the value axis on a side, and the unit with the prefix
    /// for this divisor.
    pub(crate) fn prefixed(&self, side: Side) -> (f64, Option<String>) {
        if self.is_lanes() {
            return (1.0, None);
        }
        let lines = self.on(side);
        let (low, high) = lines.range().unwrap_or((0.0, 1.0));
        prefixed(lines.unit(), low.abs().max(high.abs()))
    }

    /// Returns the units of the value axes with their prefixes, such as `V` or `V, right: mA`.
    /// Returns `None` if no axis has a unit.
    pub(crate) fn units(&self) -> Option<String> {
        let right = self.prefixed(Side::Right).1.filter(|_| self.has_right_axis());
        match (self.prefixed(Side::Left).1, right) {
            (left, None) => left,
            (None, Some(right)) => Some(format!("right: {right}")),
            (Some(left), Some(right)) => Some(format!("{left}, right: {right}")),
        }
    }

    /// Returns whether any line of the panel has a finite value.
    pub fn has_values(&self) -> bool {
        self.heat.is_some() || self.series.iter().any(|line| line.range().is_some())
    }

    /// Returns whether the panel has a value axis at the right.
    pub(crate) fn has_right_axis(&self) -> bool {
        self.series.iter().any(|line| line.side == Side::Right)
    }

    /// Returns the minimum and maximum value of all lines in the panel.
    pub(crate) fn range(&self) -> Option<(f64, f64)> {
        if let Some(heat) = &self.heat {
            return Some((0.0, heat.highest));
        }
        let ranges = self.series.iter().filter_map(Series::range);
        ranges.reduce(|(low, high), (l, h)| (low.min(l), high.max(h)))
    }

    /// Returns whether the panel needs a legend. A panel needs no legend if it shows states, or if
    /// it has only one line whose name is also the title.
    pub(crate) fn has_legend(&self) -> bool {
        !self.is_lanes()
            && (self.series.len() > 1 || self.series.first().is_some_and(|s| s.name != self.title))
    }
}

/// Removes the start of a line's name if the title of the panel has the same start. For example, in
/// the panel `a.q`, the line `a.q[0]` becomes `q[0]`. Returns `None` if the name stays unchanged.
fn without_topic(title: &str, name: &str) -> Option<String> {
    let of_title =
        |prefix: &str| title.strip_prefix(prefix).is_some_and(|r| r.is_empty() || r.starts_with('.'));
    let mut dots = name.match_indices('.').filter(|(at, _)| title != name && of_title(&name[..*at]));
    dots.next_back().map(|(at, _)| name[at + 1..].to_owned())
}

/// A named time range, such as a flight mode.
#[derive(Clone, Debug, PartialEq)]
pub struct Band {
    /// Start and end of the time range in seconds.
    pub span: (f64, f64),
    /// Name of the flight mode or other state.
    pub name: String,
}

/// A plot: panels below each other with a common time axis.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Plot {
    /// Title above all panels.
    pub title: String,
    /// Panels from top to bottom.
    pub panels: Vec<Panel>,
    /// The time range that is shown, in seconds.
    pub span: (f64, f64),
    /// Unix time of second 0 in nanoseconds. If it is `None`, the time axis shows seconds instead
    /// of UTC.
    pub utc: Option<i64>,
    /// Label of a time axis that shows seconds, such as `seconds from the start of the log`.
    pub time_label: String,
    /// True if the horizontal axis shows frequencies instead of times.
    pub(crate) hertz: bool,
    /// Flight modes in time order, drawn as a background of all panels.
    pub bands: Vec<Band>,
}

impl Plot {
    /// Creates a plot that shows the time range `span` in seconds.
    pub fn new(
        title: impl Into<String>,
        panels: Vec<Panel>,
        span: (f64, f64),
        time: impl Into<String>,
    ) -> Self {
        Self { title: title.into(), panels, span, time_label: time.into(), ..Self::default() }
    }

    /// Returns whether the horizontal axis shows frequencies instead of times.
    pub const fn shows_frequencies(&self) -> bool {
        self.hertz
    }

    /// Returns at most about `wanted` ticks of the horizontal axis.
    pub(super) fn ticks(&self, wanted: usize) -> Vec<Tick> {
        if self.hertz { plain(self.span, wanted) } else { times(self.span, self.utc, wanted) }
    }

    /// Returns the names of the bands without duplicates, in order of first appearance.
    pub(crate) fn band_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for band in &self.bands {
            if !names.contains(&&*band.name) {
                names.push(&band.name);
            }
        }
        names
    }

    /// Returns the bands, each with the number of its name in [`band_names`](Self::band_names).
    pub(crate) fn numbered_bands(&self) -> Vec<(usize, &Band)> {
        let names = self.band_names();
        let number = |band: &Band| names.iter().position(|name| *name == band.name).unwrap_or(0);
        self.bands.iter().map(|band| (number(band), band)).collect()
    }
}

/// Color scheme of a picture or an HTML page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Theme {
    /// Dark lines on a white background.
    #[default]
    Light,
    /// Bright lines on a black background.
    Dark,
}

/// Size and colors of a picture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Picture {
    /// Width in units of 1/96 inch, which are pixels at 96 dpi.
    pub width: u32,
    /// Height in units of 1/96 inch. If it is `None`, the height depends on the number of panels.
    pub height: Option<u32>,
    /// Resolution of a PNG picture in pixels per inch.
    pub dpi: u32,
    /// Color scheme of the picture.
    pub theme: Theme,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn legends_do_not_repeat_the_topic_and_panels_are_not_crowded() {
        let short = |title, name| without_topic(title, name);
        assert_eq!(short("a.q", "a.q[0]").as_deref(), Some("q[0]"));
        assert_eq!(short("/imu", "/imu.v.x").as_deref(), Some("v.x"));
        assert_eq!((short("a.x", "a.x"), short("ab", "a.x")), (None, None));
        let lines = (0..30).map(|i| Series::new(format!("t.f[{i}]"), vec![(0.0, 1.0)])).collect();
        let panels = Panel::by_unit("t", lines);
        assert_eq!(panels.iter().map(|panel| panel.series.len()).collect::<Vec<_>>(), [10, 10, 10]);
        assert_eq!((&*panels[1].title, &*panels[1].series[0].name), ("t (2 of 3)", "f[10]"));
    }

    #[test]
    fn an_overlay_has_at_most_two_axes() {
        let line = |name: &str, unit: Option<&str>, high: f64| {
            let unit = unit.map(str::to_owned);
            Series { unit, ..Series::new(name, vec![(0.0, 0.0), (1.0, high)]) }
        };
        let lines = [("a", "V", 12.0), ("b", "A", 0.02), ("c", "V", 5.0), ("d", "m", 3.0)];
        let lines = lines.map(|(name, unit, high)| line(name, Some(unit), high));
        let panels = Panel::overlay("both", lines.to_vec());
        let names = |panel: &Panel| panel.series.iter().map(|line| line.name.clone()).collect::<String>();
        assert_eq!(panels.iter().map(names).collect::<Vec<_>>(), ["abc", "d"]);
        assert_eq!(panels[0].units().as_deref(), Some("V, right: mA"));
        assert_eq!(
            (panels[0].on(Side::Left).range(), panels[1].units().as_deref()),
            (Some((0.0, 12.0)), Some("m"))
        );
        let alike = Panel::overlay("alike", vec![line("a", None, 1.0), line("b", None, 2.0)]);
        assert!(alike.len() == 1 && !alike[0].has_right_axis() && alike[0].units().is_none());
    }
}
