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
    let points: Vec<_> = line.segments.iter().flat_map(|segment| &segment.points).collect();
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return };
    let map = Map::around(&points);
    page.section("track", "Track", &format!("Track ({})", escape(&line.source)));
    let _ = page.write_str(undecodable.as_deref().unwrap_or_default());
    let Map { width, height, .. } = map;
    let _ = writeln!(
        page,
        "<svg class=\"picture\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         role=\"img\" aria-label=\"track\">\n<rect width=\"{width}\" height=\"{height}\" fill=\"var(--soft)\"/>"
    );
    for segment in &line.segments {
        map.polyline(&segment.points, page);
    }
    for (point, color, name) in [(first, "#009e73", "start"), (last, "#d55e00", "end")] {
        let (x, y) = map.place(point);
        let _ = writeln!(
            page,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"{color}\"><title>{name}: {:.7}, {:.7}</title></circle>",
            point.latitude, point.longitude
        );
    }
    map.bar(page);
}

/// Size of the map, and the mapping of positions to pixels.
#[derive(Clone, Copy)]
struct Map {
    /// Width in pixels.
    width: f64,
    /// Height in pixels.
    height: f64,
    /// Pixels per meter.
    scale: f64,
    /// Length in meters of a degree of longitude.
    degree_east: f64,
    /// Distances in meters of the center from longitude 0 and from the equator.
    center: (f64, f64),
    /// True if the track crosses the antimeridian. Longitudes west of Greenwich then count from 180
    /// to 360 degrees.
    crosses: bool,
}

impl Map {
    /// Returns a map that is as wide and as high as the track, within limits.
    fn around(points: &[&TrackPoint]) -> Self {
        let (south, north) = range(points, |point| point.latitude);
        // A degree of longitude becomes shorter towards the poles. The map is small, so the length
        // of a degree in the middle of the map is used everywhere.
        let degree_east = f64::midpoint(south, north).to_radians().cos().max(0.01) * DEGREE;
        let (south, north) = (south * DEGREE, north * DEGREE);
        let (west, east) = range(points, |point| point.longitude);
        let crosses = east - west > 180.0;
        let (west, east) = range(points, |point| longitude(point, crosses) * degree_east);
        // The shorter side has at least a hundredth of the longer side.
        let least = (east - west).max(north - south).max(1.0) / 100.0;
        let scale = ((MAX_SIZE.0 - 2.0 * MARGIN) / (east - west).max(least))
            .min((MAX_SIZE.1 - 2.0 * MARGIN - SCALE_HEIGHT) / (north - south).max(least));
        let width = ((east - west) * scale + 2.0 * MARGIN).max(MIN_SIZE.0).round();
        let height = ((north - south) * scale + 2.0 * MARGIN + SCALE_HEIGHT).max(MIN_SIZE.1).round();
        let center = (f64::midpoint(west, east), f64::midpoint(south, north));
        Self { width, height, scale, degree_east, center, crosses }
    }

    /// Returns the place of a position in pixels from the upper left corner.
    fn place(&self, point: &TrackPoint) -> (f64, f64) {
        let east = longitude(point, self.crosses) * self.degree_east - self.center.0;
        let x = self.width / 2.0 + east * self.scale;
        let middle = (self.height - SCALE_HEIGHT) / 2.0;
        (x, middle - (point.latitude * DEGREE - self.center.1) * self.scale)
    }

    /// Writes a path through the points.
    fn polyline(&self, points: &[TrackPoint], page: &mut Page) {
        page.push_str("<polyline fill=\"none\" stroke=\"var(--accent)\" stroke-width=\"1.5\" points=\"");
        let mut before = (f64::NAN, f64::NAN);
        for point in points {
            let (x, y) = self.place(point);
            // A point within half a pixel of the previous point would only make the page larger.
            if (x - before.0).abs() < 0.5 && (y - before.1).abs() < 0.5 {
                continue;
            }
            before = (x, y);
            let _ = write!(page, "{x:.1},{y:.1} ");
        }
        page.push_str("\"/>\n");
    }

    /// Writes the bar that shows the scale of the map, and ends the picture.
    fn bar(&self, page: &mut Page) {
        let bar = round_length((self.width - 2.0 * MARGIN) / self.scale / 4.0);
        let _ = writeln!(
            page,
            "<path d=\"M{MARGIN},{y} h{:.1}\" stroke=\"var(--text)\" stroke-width=\"2\"/>\
             <text fill=\"var(--text)\" x=\"{MARGIN}\" y=\"{}\" font-size=\"12\">{bar} m, north is up</text>\n</svg>",
            bar * self.scale,
            self.height - 14.0,
            y = self.height - 8.0,
        );
    }
}

/// Returns the longitude in degrees. If `crosses` is true, it is at least 0.
fn longitude(point: &TrackPoint, crosses: bool) -> f64 {
    if crosses { point.longitude.rem_euclid(360.0) } else { point.longitude }
}

/// Returns the lowest and the highest value of all points.
fn range(points: &[&TrackPoint], of: impl Fn(&TrackPoint) -> f64) -> (f64, f64) {
    let values = points.iter().map(|point| of(point));
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)))
}

/// Returns the largest length of the form 1, 2 or 5 times a power of ten that is at most `length`.
fn round_length(length: f64) -> f64 {
    let power = 10f64.powf(length.max(1e-3).log10().floor());
    [5.0, 2.0, 1.0].map(|factor| factor * power).into_iter().find(|round| *round <= length).unwrap_or(power)
}

#[cfg(test)]
mod tests {
    use rovelog::{Clock, Timestamp};

    use super::*;

    #[test]
    fn a_track_across_the_antimeridian_has_its_size() {
        let point = |longitude| TrackPoint::new(Timestamp::new(0, Clock::Boot), 0.0, longitude);
        let (first, last) = (point(179.999), point(-179.999));
        let map = Map::around(&[&first, &last]);
        let meters = (map.place(&last).0 - map.place(&first).0) / map.scale;
        assert!((meters - 0.002 * DEGREE).abs() < 1e-3, "{meters}");
    }
}
