//! Plots in a terminal: each character holds two by four dots.

use std::fmt::Write as _;

use super::axis::{label, ticks, with_air};
use super::{Panel, Plot};

/// Width of the axis labels in columns.
const MARGIN: usize = 10;

/// Returns a plot as text of `width` columns, each panel `height` lines high.
pub fn braille(plot: &Plot, width: usize, height: usize) -> String {
    let (width, height) = (width.max(MARGIN + 10) - MARGIN, height.max(3));
    let mut text = String::new();
    for panel in &plot.panels {
        draw(panel, plot.span, (width, height), &mut text);
    }
    let (times, digits) = ticks(plot.span, (width / 12).max(1));
    let mut line = vec![' '; width + MARGIN];
    for time in times {
        let label = label(time, digits);
        let start = (MARGIN + column(time, plot.span, width * 2) / 2).saturating_sub(label.len() / 2);
        let free = start + label.len() <= line.len()
            && line[start.saturating_sub(1)..start + label.len()].iter().all(|c| *c == ' ');
        if free {
            line.splice(start..start + label.len(), label.chars());
        }
    }
    let line: String = line.into_iter().collect();
    text.push_str(line.trim_end());
    text.push('\n');
    let indent = (MARGIN + width / 2).saturating_sub(plot.time_label.chars().count() / 2);
    text.push_str(&" ".repeat(indent));
    text.push_str(&plot.time_label);
    text.push('\n');
    text
}

/// Returns which of `dots` a value falls in.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped before")]
fn column(value: f64, (from, to): (f64, f64), dots: usize) -> usize {
    let span = to - from;
    let part = if span > 0.0 { (value - from) / span } else { 0.5 };
    ((part.clamp(0.0, 1.0) * (dots - 1) as f64).round() as usize).min(dots - 1)
}

fn draw(panel: &Panel, span: (f64, f64), (width, height): (usize, usize), text: &mut String) {
    let ranges = panel.series.iter().filter_map(super::Series::range);
    let range = ranges.reduce(|(low, high), (l, h)| (low.min(l), high.max(h)));
    let values = with_air(range);
    let mut dots = vec![0u8; width * height];
    let mut set = |x: usize, y: usize| {
        // Braille numbers its dots down the left side, down the right side, then the lowest two.
        let bit = [[0, 1, 2, 6], [3, 4, 5, 7]][x % 2][y % 4];
        dots[y / 4 * width + x / 2] |= 1 << bit;
    };
    let place = |(time, value): &(f64, f64)| {
        let y = height * 4 - 1 - column(*value, values, height * 4);
        (column(*time, span, width * 2), y)
    };
    for series in &panel.series {
        for part in series.points.split(|(_, value)| !value.is_finite()) {
            let points: Vec<_> = part.iter().map(place).collect();
            if let [point] = points[..] {
                set(point.0, point.1);
            }
            for pair in points.windows(2) {
                connect(pair[0], pair[1], &mut set);
            }
        }
    }
    let names: Vec<_> = panel.series.iter().map(|series| series.name.as_str()).collect();
    let unit = panel.unit().map(|unit| format!(" [{unit}]")).unwrap_or_default();
    let title = if panel.title.is_empty() { names.join(", ") } else { panel.title.clone() };
    let _ = writeln!(text, "{:MARGIN$}{title}{unit}", "");
    let (levels, digits) = ticks(values, (height / 3).max(2));
    for row in 0..height {
        let label =
            levels.iter().find(|level| (height * 4 - 1 - column(**level, values, height * 4)) / 4 == row);
        let label = label.map(|level| super::axis::label(*level, digits)).unwrap_or_default();
        let _ = write!(text, "{label:>width$} ", width = MARGIN - 2);
        text.push(if label.is_empty() { '│' } else { '┤' });
        let line: String = dots[row * width..(row + 1) * width]
            .iter()
            .map(|bits| char::from_u32(0x2800 + u32::from(*bits)).unwrap_or(' '))
            .collect();
        text.push_str(line.trim_end_matches('\u{2800}'));
        text.push('\n');
    }
    let _ = writeln!(text, "{:>width$}└{}", "", "─".repeat(width), width = MARGIN - 1);
}

/// Draws a straight line of dots.
fn connect(from: (usize, usize), to: (usize, usize), set: &mut impl FnMut(usize, usize)) {
    let steps = from.0.abs_diff(to.0).max(from.1.abs_diff(to.1)).max(1);
    let between = |a: usize, b: usize, i: usize| (a * (steps - i) + b * i + steps / 2) / steps;
    for i in 0..=steps {
        set(between(from.0, to.0, i), between(from.1, to.1, i));
    }
}

#[cfg(test)]
mod tests {
    use super::super::Series;
    use super::*;

    #[test]
    fn a_rising_line_rises() {
        let points = (0..100).map(|i| (f64::from(i), f64::from(i))).collect();
        let panel = Panel::new("", vec![Series::new("ramp", points)]);
        let plot = Plot::new("", vec![panel], (0.0, 99.0), "s");
        let text = braille(&plot, 40, 4);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0].trim(), "ramp");
        let start = |line: &str| line.chars().position(|c| ('\u{2801}'..='\u{28ff}').contains(&c)).unwrap();
        assert!(start(lines[1]) > start(lines[4]), "{text}");
        assert!(lines[6].contains('0') && lines[7].ends_with('s'), "{text}");
    }
}
