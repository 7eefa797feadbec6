//! Renders plots for terminals. Each character is a Braille pattern of 2 by 4 dots. A line of dots
//! therefore has twice the horizontal and four times the vertical resolution of the characters.

use std::fmt::Write as _;

use super::axis::Scale;
use super::model::{Band, Heat, Panel, Plot};
use super::series::{Series, Side};
use super::state::{State, StateSpan, states};

/// Width of the axis labels in characters.
const MARGIN: usize = 10;

/// Characters of a spectrogram, from the lowest density to the highest.
const SHADES: [char; 5] = [' ', '░', '▒', '▓', '█'];

/// Function that returns a text in the color of a series. The first argument is the index of the
/// series.
type Color<'a> = &'a dyn Fn(usize, &str) -> String;

/// Renders a plot as text that is `width` characters wide. Panels have `height` rows. If `color` is
/// `None`, each line of the plot gets a separate panel, because the lines could not be told apart.
pub fn terminal(plot: &Plot, width: usize, height: usize, color: Option<Color<'_>>) -> String {
    let screen = Screen { plot, width: width.max(MARGIN + 10) - MARGIN, height: height.max(3), color };
    let mut text = String::new();
    if !plot.bands.is_empty() {
        let bands = plot.numbered_bands().into_iter();
        let mode = |(number, band): (usize, &Band)| {
            let (start, end) = band.span;
            StateSpan { start, end, state: State::Named(number, band.name.clone()) }
        };
        let modes: Vec<_> = bands.map(mode).collect();
        let _ = writeln!(text, "{:MARGIN$}{}", "", screen.lane(&modes, 0));
    }
    for panel in &plot.panels {
        if panel.is_lanes() {
            screen.lanes(panel, &mut text);
        } else if color.is_none() && panel.series.len() > 1 {
            for series in &panel.series {
                let title = format!("{}: {}", panel.title, series.name);
                screen.lines(&Panel::new(title, vec![series.clone()]), false, &mut text);
            }
        } else {
            // A terminal has no room for a second value axis.
            for side in [Side::Left, Side::Right] {
                let lines = panel.on(side);
                if !lines.series.is_empty() || (lines.heat.is_some() && side == Side::Left) {
                    screen.lines(&lines, lines.has_legend(), &mut text);
                }
            }
        }
    }
    screen.times(&mut text);
    text
}

/// Settings for rendering a plot as text.
struct Screen<'a> {
    plot: &'a Plot,
    /// Width of the plot area in characters.
    width: usize,
    /// Height of a panel in rows.
    height: usize,
    color: Option<Color<'a>>,
}

/// The plot area of a panel, as a grid of Braille characters.
struct Dots {
    /// Width of the plot area in characters.
    width: usize,
    /// Braille dots of each character, stored row by row.
    bits: Vec<u8>,
    /// For each character, the index of the series that determines its color. A character has only
    /// one color, so the series that is drawn last determines it.
    lines: Vec<usize>,
}

impl Dots {
    /// Sets the dot in column `x` and row `y`. Columns and rows are counted in dots.
    fn set(&mut self, (x, y): (usize, usize), line: usize) {
        // In a Braille character of Unicode, bits 0 to 2 are the upper three dots of the left
        // column, bits 3 to 5 are those of the right column, and bits 6 and 7 are the two dots of
        // the lowest row.
        let bit = [[0, 1, 2, 6], [3, 4, 5, 7]][x % 2][y % 4];
        let at = y / 4 * self.width + x / 2;
        self.bits[at] |= 1 << bit;
        self.lines[at] = line;
    }

    /// Draws a straight line of dots.
    fn connect(&mut self, from: (usize, usize), to: (usize, usize), line: usize) {
        let steps = from.0.abs_diff(to.0).max(from.1.abs_diff(to.1)).max(1);
        let between = |a: usize, b: usize, i: usize| (a * (steps - i) + b * i + steps / 2) / steps;
        for i in 0..=steps {
            self.set((between(from.0, to.0, i), between(from.1, to.1, i)), line);
        }
    }
}

/// Returns the index of the dot for the position `part` on an axis, from 0 to 1. `dots` is the
/// number of dots on the axis.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped before")]
fn dot(part: f64, dots: usize) -> usize {
    ((part.clamp(0.0, 1.0) * (dots - 1) as f64).round() as usize).min(dots - 1)
}

impl Screen<'_> {
    /// Returns a text in the color of the series with the index `line`, if colors are enabled.
    fn paint(&self, line: usize, text: &str) -> String {
        self.color.map_or_else(|| text.to_owned(), |color| color(line, text))
    }

    /// Returns the position of a time on the time axis, from 0 to 1.
    fn part(&self, time: f64) -> f64 {
        let (from, to) = self.plot.span;
        if to > from { (time - from) / (to - from) } else { 0.5 }
    }

    /// Renders a panel of lines.
    fn lines(&self, panel: &Panel, legend: bool, text: &mut String) {
        let scale = Scale::new(panel.range(), panel.unit(), (self.height / 3).max(2));
        let unit = scale.unit.as_deref().map(|unit| format!(" [{unit}]")).unwrap_or_default();
        let _ = writeln!(text, "{:MARGIN$}{}{unit}", "", panel.title);
        if legend {
            self.legend(panel, text);
        }
        let rows = self.height;
        let size = self.width * rows;
        if let Some(heat) = &panel.heat {
            return self.heat(heat, &scale, text);
        }
        let mut dots = Dots { width: self.width, bits: vec![0; size], lines: vec![0; size] };
        let row = |value: f64| rows * 4 - 1 - dot(scale.place(value), rows * 4);
        for (line, series) in panel.series.iter().enumerate() {
            self.draw(series, line, &row, &mut dots);
        }
        for at in 0..rows {
            let tick = scale.ticks.iter().find(|tick| row(tick.at) / 4 == at);
            let label = tick.map_or("", |tick| &tick.label);
            let edge = if label.is_empty() { '│' } else { '┤' };
            let _ = write!(text, "{label:>wide$} {edge}", wide = MARGIN - 2);
            self.row(&dots, at, text);
        }
        let _ = writeln!(text, "{:>wide$}└{}", "", "─".repeat(self.width), wide = MARGIN - 1);
    }

    /// Renders a spectrogram. Denser characters stand for higher densities.
    fn heat(&self, heat: &Heat, scale: &Scale, text: &mut String) {
        let mut cells = vec![vec![0; self.width]; self.height];
        let row = |hertz: f64| dot(1.0 - scale.place(hertz), self.height);
        #[expect(clippy::cast_possible_truncation, reason = "a few characters")]
        heat.cells(SHADES.len() as u8, |level, times, hertz| {
            let columns = dot(self.part(times.0), self.width)..=dot(self.part(times.1), self.width);
            for row in &mut cells[row(hertz.1)..=row(hertz.0)] {
                row[columns.clone()].iter_mut().for_each(|cell| *cell = level.max(*cell));
            }
        });
        for (at, cells) in cells.iter().enumerate() {
            let tick = scale.ticks.iter().find(|tick| row(tick.at) == at);
            let label = tick.map_or("", |tick| &tick.label);
            let line: String = cells.iter().map(|level| SHADES[usize::from(*level)]).collect();
            let _ = writeln!(text, "{label:>wide$} │{}", line.trim_end(), wide = MARGIN - 2);
        }
    }

    /// Draws a series. `row` converts a value to a row of dots.
    fn draw(&self, series: &Series, line: usize, row: &dyn Fn(f64) -> usize, dots: &mut Dots) {
        let mut before: Option<(usize, usize)> = None;
        for (time, value) in &series.points {
            if !value.is_finite() {
                before = None;
                continue;
            }
            let here = (dot(self.part(*time), self.width * 2), row(*value));
            match before {
                None => dots.set(here, line),
                Some(before) if series.is_step() => {
                    let corner = (here.0, before.1);
                    dots.connect(before, corner, line);
                    dots.connect(corner, here, line);
                }
                Some(before) => dots.connect(before, here, line),
            }
            before = Some(here);
        }
    }

    /// Writes a row of characters. Adjacent characters of the same series are colored together,
    /// because each change of color needs an escape sequence.
    fn row(&self, dots: &Dots, row: usize, text: &mut String) {
        let from = row * dots.width;
        let bits = &dots.bits[from..from + dots.width];
        // Trailing spaces are omitted, because they would cause line breaks in a narrow terminal.
        let end = bits.iter().rposition(|bits| *bits != 0).map_or(0, |last| last + 1);
        let mut at = 0;
        while at < end {
            let line = dots.lines[from + at];
            let alike = |i: &usize| bits[*i] == 0 || dots.lines[from + *i] == line;
            let to = (at..end).find(|i| !alike(i)).unwrap_or(end);
            let run =
                bits[at..to].iter().map(|bits| char::from_u32(0x2800 + u32::from(*bits)).unwrap_or(' '));
            let run: String = run.collect();
            text.push_str(&self.paint(line, &run));
            at = to;
        }
        text.push('\n');
    }

    fn legend(&self, panel: &Panel, text: &mut String) {
        let mut used = 0;
        text.push_str(&" ".repeat(MARGIN));
        for (line, series) in panel.series.iter().enumerate() {
            let entry = format!("── {}", series.name);
            let wide = entry.chars().count() + 2;
            if used > 0 && used + wide > self.width {
                text.push('\n');
                text.push_str(&" ".repeat(MARGIN));
                used = 0;
            }
            text.push_str(&self.paint(line, &entry));
            text.push_str("  ");
            used += wide;
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }

    fn lanes(&self, panel: &Panel, text: &mut String) {
        let _ = writeln!(text, "{:MARGIN$}{}", "", panel.title);
        for (line, series) in panel.series.iter().enumerate() {
            if series.name != panel.title {
                let _ = writeln!(text, "{:MARGIN$}{}", "", series.name);
            }
            let _ = writeln!(text, "{:MARGIN$}{}", "", self.lane(&states(series), line));
        }
    }

    /// Renders states as a line of text. An on/off signal is drawn as a block while it is on. For
    /// named states, the start of each state is marked and labeled with its name.
    fn lane(&self, spans: &[StateSpan], line: usize) -> String {
        let mut cells = vec![(' ', line); self.width];
        for StateSpan { start, end, state } in spans {
            let from = dot(self.part(*start), self.width);
            let to = dot(self.part(*end), self.width);
            let cells = &mut cells[from..=to.max(from)];
            match state {
                State::Off => cells.fill(('▁', line)),
                State::On => cells.fill(('█', line)),
                State::Named(number, name) => {
                    let text = std::iter::once('▏').chain(name.chars()).chain(std::iter::repeat(' '));
                    cells.iter_mut().zip(text).for_each(|(cell, c)| *cell = (c, *number));
                }
            }
        }
        let mut text = String::new();
        for run in cells.chunk_by(|a, b| a.1 == b.1) {
            text.push_str(&self.paint(run[0].1, &run.iter().map(|(c, _)| *c).collect::<String>()));
        }
        text.truncate(text.trim_end().len());
        text
    }

    /// Writes the labels of the time axis. A label that would overlap another label is omitted.
    fn times(&self, text: &mut String) {
        let ticks = self.plot.ticks((self.width / 14).max(2));
        let mut lines = [vec![' '; self.width + MARGIN], vec![' '; self.width + MARGIN]];
        let mut write = |line: usize, at: f64, label: &str| {
            let line: &mut Vec<char> = &mut lines[line];
            let length = label.chars().count();
            let middle = MARGIN + dot(self.part(at), self.width);
            let start = middle.saturating_sub(length / 2).min(line.len().saturating_sub(length));
            if length <= line.len() && line[start.saturating_sub(1)..start + length].iter().all(|c| *c == ' ')
            {
                line.splice(start..start + length, label.chars());
            }
        };
        for tick in &ticks {
            write(0, tick.at, &tick.label);
            if let Some(date) = &tick.date {
                write(1, tick.at, &format!("{date} UTC"));
            }
        }
        for line in lines {
            let line: String = line.into_iter().collect();
            if !line.trim().is_empty() {
                text.push_str(line.trim_end());
                text.push('\n');
            }
        }
        if self.plot.utc.is_none() {
            let label = &self.plot.time_label;
            let indent = (MARGIN + self.width / 2).saturating_sub(label.chars().count() / 2);
            let _ = writeln!(text, "{}{label}", " ".repeat(indent));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Look;
    use super::*;

    fn ramp() -> Series {
        Series::new("ramp", (0..100).map(|i| (f64::from(i), f64::from(i))).collect())
    }

    #[test]
    fn a_rising_line_rises() {
        let plot = Plot::new("", vec![Panel::new("ramp", vec![ramp()])], (0.0, 99.0), "s");
        let text = terminal(&plot, 40, 4, None);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0].trim(), "ramp");
        let start = |line: &str| line.chars().position(|c| ('\u{2801}'..='\u{28ff}').contains(&c)).unwrap();
        assert!(start(lines[1]) > start(lines[4]), "{text}");
        assert!(lines[6].contains('0') && lines[7].ends_with('s'), "{text}");
    }

    #[test]
    fn series_without_colors_have_separate_panels_and_states_are_blocks() {
        let mut state = Series::new("on", vec![(0.0, 0.0), (50.0, 1.0), (99.0, 1.0)]);
        state.look = Look::Lane;
        let panels = vec![Panel::new("both", vec![ramp(), ramp()]), Panel::new("lane", vec![state])];
        let plot = Plot::new("", panels, (0.0, 99.0), "s");
        let text = terminal(&plot, 40, 4, None);
        assert_eq!(text.matches("both: ramp").count(), 2, "{text}");
        assert!(text.contains("▁▁█"), "{text}");
        let color = |line: usize, text: &str| format!("<{line}{text}>");
        let text = terminal(&plot, 40, 4, Some(&color));
        assert!(text.contains("<0── ramp>  <1── ramp>"), "{text}");
    }
}
