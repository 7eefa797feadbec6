//! Converts geographic positions to meters east, north and up of the first position.

use rovelog::AnyLog;

use super::Trajectory;
use crate::ExportError;
use crate::pose::Pose;
use crate::track::{self, TrackOptions, TrackPoint};

/// Semi-major axis of the WGS 84 ellipsoid in meters.
const SEMI_MAJOR_AXIS: f64 = 6_378_137.0;
/// Flattening of the WGS 84 ellipsoid.
const FLATTENING: f64 = 1.0 / 298.257_223_563;

/// Reads the positions of the best topic with geographic positions. The poses have no orientation.
pub(super) fn read(log: &AnyLog, options: &TrackOptions) -> Result<Trajectory, ExportError> {
    // Points that are close in time are left out of maps only.
    let (track, tally) = track::of(log, &TrackOptions { all: true, ..options.clone() })?;
    let Some(line) = track.lines.first() else { return Ok(Trajectory { tally, ..Trajectory::default() }) };
    let mut trajectory = Trajectory { tally, ..Trajectory::new(&line.source) };
    let points: Vec<&TrackPoint> = line.segments.iter().flat_map(|segment| &segment.points).collect();
    // Heights above the ellipsoid and above sea level differ by up to 107 m, so only heights of the
    // same kind are used.
    let known = |height: fn(&TrackPoint) -> Option<f64>| points.iter().filter_map(|p| height(p)).count();
    let [ellipsoid, sea_level]: [fn(&TrackPoint) -> Option<f64>; 2] =
        [|point| point.altitude_ellipsoid, |point| point.altitude_msl];
    let height = if known(sea_level) > known(ellipsoid) { sea_level } else { ellipsoid };
    let flat = known(height) == 0;
    let mut frame = None;
    for point in points {
        let Some(height) = height(point).or(flat.then_some(0.0)) else {
            trajectory.tally.implausible += 1;
            continue;
        };
        let coordinates = [point.latitude, point.longitude, height];
        let position = frame.get_or_insert_with(|| LocalFrame::at(coordinates)).east_north_up(coordinates);
        trajectory.push(point.time.nanos, Pose { position, orientation: [f64::NAN; 4] });
    }
    if let Some(LocalFrame { origin: [latitude, longitude, height], .. }) = frame {
        trajectory.notes.push(format!(
            "positions are meters east, north and up of {latitude:.7}, {longitude:.7}, {height:.3} m"
        ));
    }
    if flat {
        trajectory.notes.push("the positions have no height, so z is 0".to_owned());
    }
    Ok(trajectory)
}

/// Axes that point east, north and up at a place on the earth.
struct LocalFrame {
    /// Latitude and longitude in degrees, and height above the ellipsoid in meters.
    origin: [f64; 3],
    /// The origin in earth-centered coordinates.
    center: [f64; 3],
}

impl LocalFrame {
    fn at(origin: [f64; 3]) -> Self {
        Self { origin, center: earth_centered(origin) }
    }

    /// Converts a latitude, longitude and height to meters east, north and up of the origin.
    fn east_north_up(&self, place: [f64; 3]) -> [f64; 3] {
        let there = earth_centered(place);
        let [x, y, z] = std::array::from_fn(|axis| there[axis] - self.center[axis]);
        let (sin_lat, cos_lat) = self.origin[0].to_radians().sin_cos();
        let (sin_lon, cos_lon) = self.origin[1].to_radians().sin_cos();
        let outward = cos_lon * x + sin_lon * y;
        [cos_lon * y - sin_lon * x, cos_lat * z - sin_lat * outward, cos_lat * outward + sin_lat * z]
    }
}

/// Converts a latitude, longitude and height above the ellipsoid to earth-centered coordinates. The
/// axes point to latitude 0, longitude 0, to longitude 90°, and to the north pole.
fn earth_centered([latitude, longitude, height]: [f64; 3]) -> [f64; 3] {
    let (sin_lat, cos_lat) = latitude.to_radians().sin_cos();
    let (sin_lon, cos_lon) = longitude.to_radians().sin_cos();
    let squared_eccentricity = FLATTENING * (2.0 - FLATTENING);
    let radius = SEMI_MAJOR_AXIS / (1.0 - squared_eccentricity * sin_lat * sin_lat).sqrt();
    let from_axis = (radius + height) * cos_lat;
    let along_axis = (radius * (1.0 - squared_eccentricity) + height) * sin_lat;
    [from_axis * cos_lon, from_axis * sin_lon, along_axis]
}
