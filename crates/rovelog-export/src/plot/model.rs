//! Model of a plot: panels of lines over a common time axis, and the size and colors of the
//! picture.

use super::axis::prefixed;
use super::series::Series;

/// Maximum number of lines in a panel. More lines cannot be told apart.
const MOST_LINES: usize = 12;

/// Lines with common axes, or states drawn as lanes.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Panel {
    /// Title above the panel.
    pub title: String,
    /// Lines or lanes, in drawing order.
    pub series: Vec<Series>,
}

impl Panel {
    /// Creates a panel.
    pub fn new(title: impl Into<String>, series: Vec<Series>) -> Self {
        Self { title: title.into(), series }
    }

    /// Distributes series to panels by unit, in the order in which units first occur. On/off
    /// signals and named states get panels of their own. Large panels are split.
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

    /// Splits a panel into panels of at most [`MOST_LINES`] lines.
    fn split(self) -> Vec<Self> {
        if self.is_lanes() || self.series.len() <= MOST_LINES {
            return vec![self];
        }
        let parts = self.series.len().div_ceil(MOST_LINES);
        let each = self.series.len().div_ceil(parts);
        let chunks = self.series.chunks(each).enumerate();
        chunks
            .map(|(i, lines)| Self::new(format!("{} ({} of {parts})", self.title, i + 1), lines.to_vec()))
            .collect()
    }

    /// Returns the common unit of all lines, if they have one.
    pub(crate) fn unit(&self) -> Option<&str> {
        let unit = self.series.first()?.unit.as_deref()?;
        self.series.iter().all(|series| series.unit.as_deref() == Some(unit)).then_some(unit)
    }

    /// Returns whether the panel shows states as lanes, which have no value axis.
    pub(crate) fn is_lanes(&self) -> bool {
        !self.series.is_empty() && self.series.iter().all(Series::is_lane)
    }

    /// Returns the divisor of the axis labels, and the unit with the matching prefix.
    pub(crate) fn prefixed(&self) -> (f64, Option<String>) {
        if self.is_lanes() {
            return (1.0, None);
        }
        let (low, high) = self.range().unwrap_or((0.0, 1.0));
        prefixed(self.unit(), low.abs().max(high.abs()))
    }

    /// Returns the minimum and maximum of all lines.
    pub(crate) fn range(&self) -> Option<(f64, f64)> {
        let ranges = self.series.iter().filter_map(Series::range);
        ranges.reduce(|(low, high), (l, h)| (low.min(l), high.max(h)))
    }

    /// Returns whether the panel needs a legend, that is, whether the title alone does not identify
    /// its line.
    pub(crate) fn has_legend(&self) -> bool {
        !self.is_lanes()
            && (self.series.len() > 1 || self.series.first().is_some_and(|s| s.name != self.title))
    }
}

/// Removes the topic from the name of a line if the title already starts with it. Returns `None` if
/// the title is the full name, or does not name the topic.
fn without_topic(title: &str, name: &str) -> Option<String> {
    let of_title =
        |prefix: &str| title.strip_prefix(prefix).is_some_and(|r| r.is_empty() || r.starts_with('.'));
    let mut dots = name.match_indices('.').filter(|(at, _)| title != name && of_title(&name[..*at]));
    dots.next_back().map(|(at, _)| name[at + 1..].to_owned())
}

/// A named time range, such as a flight mode.
#[derive(Clone, Debug, PartialEq)]
pub struct Band {
    /// Start and end in seconds.
    pub span: (f64, f64),
    /// Name, such as that of the flight mode.
    pub name: String,
}

/// Panels stacked above each other, with a common time axis.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Plot {
    /// Title above all panels.
    pub title: String,
    /// Panels from top to bottom.
    pub panels: Vec<Panel>,
    /// Shown time range in seconds.
    pub span: (f64, f64),
    /// Unix time of second 0 in nanoseconds, if the axis shows UTC. `None` if it shows seconds.
    pub utc: Option<i64>,
    /// Meaning of second 0, for an axis in seconds: `since the start of the log`.
    pub time_label: String,
    /// True if the horizontal axis shows frequencies instead of times.
    pub(crate) hertz: bool,
    /// Flight modes in time order, drawn as a background of all panels.
    pub bands: Vec<Band>,
}

impl Plot {
    /// Creates a plot of a time range in seconds.
    pub fn new(
        title: impl Into<String>,
        panels: Vec<Panel>,
        span: (f64, f64),
        time: impl Into<String>,
    ) -> Self {
        Self {
            title: title.into(),
            panels,
            span,
            time_label: time.into(),
            utc: None,
            hertz: false,
            bands: Vec::new(),
        }
    }

    /// Returns the distinct names of the bands, in order of first appearance.
    pub(crate) fn band_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for band in &self.bands {
            if !names.contains(&&*band.name) {
                names.push(&band.name);
            }
        }
        names
    }
}

/// Color scheme of a picture or page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Theme {
    /// Dark lines on white.
    #[default]
    Light,
    /// Bright lines on black.
    Dark,
}

/// Size and colors of a picture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Picture {
    /// Width in units of 1/96 inch, which are pixels at 96 dpi.
    pub width: u32,
    /// Height in the same unit. `None` fits the height to the panels.
    pub height: Option<u32>,
    /// Resolution of a PNG in pixels per inch.
    pub dpi: u32,
    /// Color scheme.
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
}
