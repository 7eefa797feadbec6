//! The layout of a plot, for any surface that can draw lines and write text.

use super::axis::{label, ticks, with_air};
use super::model::{Panel, Plot, Size};

/// Red, green, blue.
pub(crate) type Colour = [u8; 3];

/// Colours that people with any colour vision distinguish (Okabe and Ito).
pub(crate) const LINES: [Colour; 7] = [
    [0, 114, 178],
    [213, 94, 0],
    [0, 158, 115],
    [204, 121, 167],
    [230, 159, 0],
    [86, 180, 233],
    [90, 90, 90],
];

const TEXT: Colour = [40, 40, 40];
const GRID: Colour = [225, 225, 225];
const FRAME: Colour = [120, 120, 120];

/// Alignment of a text at its point.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A rectangle by its edges.
#[derive(Clone, Copy)]
pub(super) struct Area {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) right: f64,
    pub(super) bottom: f64,
}

/// A surface that a plot is drawn on.
pub(super) trait Surface {
    /// Draws a line of one pixel, clipped to `area`.
    fn line(&mut self, points: &[(f64, f64)], colour: Colour, area: Area);
    /// Draws text with its base line at `y`.
    fn text(&mut self, at: (f64, f64), text: &str, anchor: Anchor, colour: Colour);
}

pub(super) fn paint(plot: &Plot, size: Size, surface: &mut impl Surface) {
    let (width, height) = (f64::from(size.width), f64::from(size.height));
    let (left, right) = (76.0, width - 16.0);
    let top = if plot.title.is_empty() { 6.0 } else { 24.0 };
    surface.text((left, 16.0), &plot.title, Anchor::Start, TEXT);
    let bottom = height - 34.0;
    let each = (bottom - top) / plot.panels.len().max(1) as f64;
    for (i, panel) in plot.panels.iter().enumerate() {
        let from = top + each * i as f64;
        let area = Area { left, top: from + 20.0, right, bottom: (from + each - 8.0).max(from + 22.0) };
        self::panel(panel, plot.span, area, surface);
    }
    let (times, digits) = ticks(plot.span, many(width, 110.0));
    for time in times {
        let x = place(time, plot.span, (left, right));
        surface.text((x, bottom + 10.0), &label(time, digits), Anchor::Middle, TEXT);
    }
    surface.text((f64::midpoint(left, right), height - 6.0), &plot.time_label, Anchor::Middle, TEXT);
}

fn panel(panel: &Panel, span: (f64, f64), area: Area, surface: &mut impl Surface) {
    let ranges = panel.series.iter().filter_map(super::Series::range);
    let range = ranges.reduce(|(low, high), (l, h)| (low.min(l), high.max(h)));
    let values = with_air(range);
    let x = |time: f64| place(time, span, (area.left, area.right));
    let y = |value: f64| place(value, values, (area.bottom, area.top));
    for time in ticks(span, many(area.right - area.left, 110.0)).0 {
        surface.line(&[(x(time), area.top), (x(time), area.bottom)], GRID, area);
    }
    let (levels, digits) = ticks(values, many(area.bottom - area.top, 36.0));
    for level in levels {
        surface.line(&[(area.left, y(level)), (area.right, y(level))], GRID, area);
        surface.text((area.left - 6.0, y(level) + 4.0), &label(level, digits), Anchor::End, TEXT);
    }
    for (series, colour) in panel.series.iter().zip(LINES.iter().cycle()) {
        for part in series.points.split(|(_, value)| !value.is_finite()) {
            let points: Vec<_> = part.iter().map(|(time, value)| (x(*time), y(*value))).collect();
            match points.as_slice() {
                [] => {}
                // A single point is a dot.
                [(x, y)] => surface.line(&[(x - 1.0, *y), (x + 1.0, *y)], *colour, area),
                points => surface.line(points, *colour, area),
            }
        }
    }
    let frame = [
        (area.left, area.top),
        (area.right, area.top),
        (area.right, area.bottom),
        (area.left, area.bottom),
        (area.left, area.top),
    ];
    surface.line(&frame, FRAME, area);
    let mut title = panel.title.clone();
    if let Some(unit) = panel.unit() {
        title = format!("{title} [{unit}]");
    }
    surface.text((area.left, area.top - 6.0), &title, Anchor::Start, TEXT);
    if panel.series.len() > 1 {
        // The legend is at the right, its last entry first.
        let mut end = area.right;
        for (i, series) in panel.series.iter().enumerate().rev() {
            let width = series.name.chars().count() as f64 * 6.5 + 14.0;
            if end - width < area.left + title.chars().count() as f64 * 7.0 {
                break;
            }
            surface.text((end, area.top - 6.0), &series.name, Anchor::End, LINES[i % LINES.len()]);
            end -= width;
        }
    }
}

/// Returns how many labels fit at this distance in pixels.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
fn many(pixels: f64, apart: f64) -> usize {
    (pixels / apart).clamp(2.0, 100.0) as usize
}

/// Maps `value` from `from..to` to a position between two pixels.
fn place(value: f64, (from, to): (f64, f64), (low, high): (f64, f64)) -> f64 {
    let span = to - from;
    if span > 0.0 { low + (value - from) / span * (high - low) } else { f64::midpoint(low, high) }
}
