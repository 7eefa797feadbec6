//! Draws the track as a small map, with the start and end of the path, and a scale. The map has no
//! background, because the page must not load map tiles from the network.

use std::fmt::Write as _;

use rovelog::core::internal::text::count;
use rovelog::{AnyLog, ErrorKind};

use crate::page::Page;
use crate::track::{self, TrackOptions, TrackPoint};
use crate::xml::escape;

/// Maximum width and height of the map in pixels.
const MAX_SIZE: (f64, f64) = (720.0, 520.0);
/// Minimum width and height of the map in pixels. The scale needs this width.
const MIN_SIZE: (f64, f64) = (240.0, 120.0);
/// Height in pixels of the scale at the bottom of the map.
const SCALE_HEIGHT: f64 = 24.0;
/// Margin in pixels around the track.
const MARGIN: f64 = 24.0;

/// Meters per degree of latitude.
const DEGREE: f64 = 111_195.0;

/// Writes the section with the map. If the log has no positions, nothing is written.
pub(super) fn section(log: &AnyLog, page: &mut Page) {
    let (track, tally) = match track::of(log, &TrackOptions::default()) {
        Ok(found) => found,
        // Logs of this format never have positions.
        Err(error) if error.kind == ErrorKind::InvalidArgument => return,
        Err(error) => {
            page.section("track", "Track", "Track");
            let why = error.to_string();
            let _ = writeln!(page, "<p class=\"bad\">The track cannot be read: {}.</p>", escape(&why));
            return;
        }
    };
    let undecodable = (tally.undecodable > 0).then(|| {
        let records = count(tally.undecodable, "record");
        format!("<p class=\"bad\">{records} with a position cannot be decoded.</p>\n")
    });
    let Some(line) = track.lines.first() else {
        if let Some(text) = undecodable {
            page.section("track", "Track", "Track");
            let _ = page.write_str(&text);
        }
        return;
    };
    let points = || line.segments.iter().flat_map(|segment| &segment.points);
    let (Some(first), Some(last)) = (points().next(), points().last()) else { return };
    let middle =
        f64::midpoint(fold(points(), f64::min, |p| p.latitude), fold(points(), f64::max, |p| p.latitude));
    // A degree of longitude becomes shorter towards the poles. The map is small, so the length of a
    // degree in the middle of the map is used everywhere.
    let shrink = middle.to_radians().cos().max(0.01);
    let east = |point: &TrackPoint| point.longitude * shrink * DEGREE;
    let north = |point: &TrackPoint| point.latitude * DEGREE;
    let (west, right) = (fold(points(), f64::min, east), fold(points(), f64::max, east));
    let (south, top) = (fold(points(), f64::min, north), fold(points(), f64::max, north));
    // The map is as wide and as high as the track, within limits.
    let metres = (right - west).max(top - south).max(1.0);
    let scale = ((MAX_SIZE.0 - 2.0 * MARGIN) / (right - west).max(metres / 100.0))
        .min((MAX_SIZE.1 - 2.0 * MARGIN - SCALE_HEIGHT) / (top - south).max(metres / 100.0));
    let width = ((right - west) * scale + 2.0 * MARGIN).max(MIN_SIZE.0).round();
    let height = ((top - south) * scale + 2.0 * MARGIN + SCALE_HEIGHT).max(MIN_SIZE.1).round();
    let place = |point: &TrackPoint| {
        let x = width / 2.0 + (east(point) - f64::midpoint(west, right)) * scale;
        let y = (height - SCALE_HEIGHT) / 2.0 - (north(point) - f64::midpoint(south, top)) * scale;
        (x, y)
    };
    page.section("track", "Track", &format!("Track ({})", escape(&line.source)));
    let _ = page.write_str(undecodable.as_deref().unwrap_or_default());
    let _ = writeln!(
        page,
        "<svg class=\"picture\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         role=\"img\" aria-label=\"track\">\n<rect width=\"{width}\" height=\"{height}\" fill=\"var(--soft)\"/>"
    );
    for segment in &line.segments {
        let _ =
            write!(page, "<polyline fill=\"none\" stroke=\"var(--accent)\" stroke-width=\"1.5\" points=\"");
        let mut before = (f64::NAN, f64::NAN);
        for point in &segment.points {
            let (x, y) = place(point);
            // A point within half a pixel of the previous point would only make the page larger.
            if (x - before.0).abs() < 0.5 && (y - before.1).abs() < 0.5 {
                continue;
            }
            before = (x, y);
            let _ = write!(page, "{x:.1},{y:.1} ");
        }
        page.push_str("\"/>\n");
    }
    for (point, color, name) in [(first, "#009e73", "start"), (last, "#d55e00", "end")] {
        let (x, y) = place(point);
        let _ = writeln!(
            page,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"{color}\"><title>{name}: {:.7}, {:.7}</title></circle>",
            point.latitude, point.longitude
        );
    }
    let bar = round_length((width - 2.0 * MARGIN) / scale / 4.0);
    let _ = writeln!(
        page,
        "<path d=\"M{MARGIN},{y} h{:.1}\" stroke=\"var(--text)\" stroke-width=\"2\"/>\
         <text fill=\"var(--text)\" x=\"{MARGIN}\" y=\"{}\" font-size=\"12\">{bar} m, north is up</text>\n</svg>",
        bar * scale,
        height - 14.0,
        y = height - 8.0,
    );
}

/// Combines one value of all points with the function `pick`. For example, the value is the
/// latitude, and `pick` is the minimum.
fn fold<'a>(
    points: impl Iterator<Item = &'a TrackPoint>,
    pick: fn(f64, f64) -> f64,
    of: impl Fn(&TrackPoint) -> f64,
) -> f64 {
    points.map(of).reduce(pick).unwrap_or(0.0)
}

/// Returns the largest length of the form 1, 2 or 5 times a power of ten that is at most `length`.
fn round_length(length: f64) -> f64 {
    let power = 10f64.powf(length.max(1e-3).log10().floor());
    [5.0, 2.0, 1.0].map(|factor| factor * power).into_iter().find(|round| *round <= length).unwrap_or(power)
}
