//! Positions of the vehicle, from logs of all releases of PX4.
//!
//! The sources are PX4 `msg/SensorGps.msg` with its earlier versions, and
//! `msg/VehicleGlobalPosition.msg`. Names, types and units of the fields differ between the
//! releases. For example, a latitude of 47.5° is the integer 475000000 in `lat`, or the number 47.5
//! in `latitude_deg`.

use rovelog_core::Scalar;
use rovelog_core::internal::layout::Layout;

use crate::row::{Place, Row};

/// Topics that contain the vehicle's position, in order of preference. The first topics contain the
/// position of the receiver that PX4 has selected, then follow the topics of the individual
/// receivers, and the position estimate.
pub const POSITION_TOPICS: [&str; 5] =
    ["vehicle_gps_position", "vehicle_gnss", "sensor_gps", "sensor_gnss", "vehicle_global_position"];

/// Minimum value of `fix_type` for which there is a position. The value 2 is a 2D fix.
pub(super) const MIN_FIX: u8 = 2;

/// Maximum plausible difference in meters between the height above sea level and the height above
/// the ellipsoid. In the geoid model EGM96, the difference is at most 107 m.
const MAX_GEOID: f64 = 120.0;

/// A position of the vehicle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Position {
    /// Latitude in degrees (WGS 84). North is positive.
    pub latitude: f64,
    /// Longitude in degrees (WGS 84). East is positive.
    pub longitude: f64,
    /// Altitude in meters above mean sea level.
    pub altitude_msl: Option<f64>,
    /// Altitude in meters above the WGS 84 ellipsoid.
    pub altitude_ellipsoid: Option<f64>,
    /// Type of the GPS fix: 2 for 2D, 3 for 3D, 4 with code corrections, 5 for RTK float, 6 for RTK
    /// fixed, 8 for extrapolated. `None` if the position is an estimate of PX4.
    pub fix: Option<u8>,
    /// Number of satellites from which the position was computed.
    pub satellites: Option<u8>,
    /// Horizontal dilution of precision. `None` if the log contains NaN or 0, which means that it
    /// is unknown.
    pub hdop: Option<f32>,
    /// Standard deviation of the horizontal position in meters.
    pub eph: Option<f32>,
    /// Speed over ground in meters per second.
    pub speed: Option<f32>,
    /// Course over ground in degrees, clockwise from north. The value is at least 0 and less than
    /// 360.
    pub course: Option<f32>,
}

/// Reason why a row has no position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoPosition {
    /// The receiver has no fix, or the type of the fix is less than the requested type.
    NoFix,
    /// The coordinates are not finite, out of range, or both exactly 0.
    Implausible,
}

/// A numeric field of a row, and the scale of its stored values.
#[derive(Clone, Copy, Debug)]
struct Quantity {
    place: Place,
    /// Number by which a stored value must be divided to get the value in the final unit.
    scale: f64,
}

impl Quantity {
    /// Returns the first numeric field among `names`. If it is an integer field, its values are
    /// divided by `scale`. Floating-point fields store the value in the final unit.
    fn find(layout: &Layout, prefix: &str, names: &[&str], scale: f64) -> Option<Self> {
        names.iter().find_map(|name| {
            let place = layout.place(&format!("{prefix}{name}"))?;
            if place.is_scalar(Scalar::Float64) || place.is_scalar(Scalar::Float32) {
                Some(Self { place, scale: 1.0 })
            } else if place.is_scalar(Scalar::Int32) {
                Some(Self { place, scale })
            } else {
                None
            }
        })
    }

    fn read(&self, row: &Row<'_>) -> Option<f64> {
        let stored = row
            .read::<f64>(self.place)
            .or_else(|| row.read::<f32>(self.place).map(f64::from))
            .or_else(|| row.read::<i32>(self.place).map(f64::from))?;
        // A division gives the nearest floating-point number to the exact result. A multiplication
        // by 1e-7 would add a rounding error, because 1e-7 is not a binary fraction.
        let value = stored / self.scale;
        value.is_finite().then_some(value)
    }
}

/// The fields of a latitude and a longitude.
#[derive(Clone, Copy, Debug)]
struct CoordinateFields {
    latitude: Quantity,
    longitude: Quantity,
    /// False if the receiver has no coordinates.
    valid: Option<Place>,
}

impl CoordinateFields {
    /// Returns the latitude and the longitude in a row in degrees.
    fn read(&self, row: &Row<'_>) -> Result<(f64, f64), NoPosition> {
        if self.valid.and_then(|place| row.read::<bool>(place)) == Some(false) {
            return Err(NoPosition::NoFix);
        }
        let latitude = self.latitude.read(row).filter(|degrees| degrees.abs() <= 90.0);
        let longitude = self.longitude.read(row).filter(|degrees| degrees.abs() <= 180.0);
        let coordinates = latitude.zip(longitude).filter(|(lat, lon)| lat.abs() + lon.abs() > 0.0);
        coordinates.ok_or(NoPosition::Implausible)
    }
}

/// The fields of a topic that contain a position. The caller looks them up once for all rows of the
/// topic.
#[derive(Clone, Copy, Debug)]
pub struct PositionFields {
    coordinates: CoordinateFields,
    altitude_msl: Option<Quantity>,
    altitude_ellipsoid: Option<Quantity>,
    fix: Option<Place>,
    satellites: Option<Place>,
    hdop: Option<Place>,
    eph: Option<Place>,
    speed: Option<Place>,
    course: Option<Place>,
}

impl PositionFields {
    /// Returns the position fields in a layout, or `None` if the layout has no position.
    pub fn of(layout: &Layout) -> Option<Self> {
        // The fields of most topics have no prefix. `vehicle_gnss` contains the whole message of
        // the receiver as a nested type in the field `receiver`.
        ["", "receiver."].iter().find_map(|prefix| Self::under(layout, prefix))
    }

    /// Returns the position fields whose names start with `prefix`.
    fn under(layout: &Layout, prefix: &str) -> Option<Self> {
        let quantity = |names: &[&str], scale| Quantity::find(layout, prefix, names, scale);
        let field = |names: &[&str], scalar| {
            let place = |name: &&str| layout.place(&format!("{prefix}{name}"));
            names.iter().find_map(place).filter(|place| place.is_scalar(scalar))
        };
        let coordinates = CoordinateFields {
            // Before v1.15, `lat` was an integer in units of 1e-7 degrees. Since v1.15,
            // `latitude_deg` is a double. Development versions of 2026 name it `latitude`.
            latitude: quantity(&["latitude_deg", "latitude", "lat"], 1e7)?,
            longitude: quantity(&["longitude_deg", "longitude", "lon"], 1e7)?,
            valid: field(&["lat_lon_valid"], Scalar::Bool),
        };
        Some(Self {
            coordinates,
            // The field `alt` is an integer in millimeters. The fields with newer names are in
            // meters.
            altitude_msl: quantity(&["altitude_msl_m", "altitude_msl", "alt"], 1e3),
            altitude_ellipsoid: quantity(
                &["altitude_ellipsoid_m", "altitude_ellipsoid", "alt_ellipsoid"],
                1e3,
            ),
            fix: field(&["fix_type"], Scalar::UInt8),
            satellites: field(&["satellites_used"], Scalar::UInt8),
            hdop: field(&["hdop"], Scalar::Float32),
            eph: field(&["eph"], Scalar::Float32),
            speed: field(&["vel_m_s", "ground_speed"], Scalar::Float32),
            course: field(&["cog_rad", "course"], Scalar::Float32),
        })
    }

    /// Returns the position in a row of the topic.
    ///
    /// The fix type of the row must be at least `min_fix`. If `min_fix` is below 2, the value 2 is
    /// used instead, because there is no position without a 2D fix.
    ///
    /// # Errors
    /// Returns an error if the fix type is too low or the coordinates are implausible. For example,
    /// PX4 logs the coordinates 0, 0 with an altitude of -17 m before the first fix.
    pub fn position(&self, row: &Row<'_>, min_fix: u8) -> Result<Position, NoPosition> {
        let fix = self.fix.and_then(|place| row.read::<u8>(place));
        if fix.is_some_and(|fix| fix < min_fix.max(MIN_FIX)) {
            return Err(NoPosition::NoFix);
        }
        let (latitude, longitude) = self.coordinates.read(row)?;
        let float = |place: Option<Place>| {
            place.and_then(|place| row.read::<f32>(place)).filter(|value| value.is_finite())
        };
        let altitude_msl = self.altitude_msl.and_then(|altitude| altitude.read(row));
        let altitude_ellipsoid = self
            .altitude_ellipsoid
            .and_then(|altitude| altitude.read(row))
            // If the receiver does not provide the altitude above the ellipsoid, this field is 0.
            // Such a value differs too much from the altitude above sea level and is ignored.
            .filter(|above| altitude_msl.is_none_or(|msl| (above - msl).abs() <= MAX_GEOID));
        Ok(Position {
            latitude,
            longitude,
            altitude_msl,
            altitude_ellipsoid,
            fix,
            satellites: self.satellites.and_then(|place| row.read::<u8>(place)),
            hdop: float(self.hdop).filter(|hdop| *hdop > 0.0),
            eph: float(self.eph),
            speed: float(self.speed),
            course: float(self.course).map(degrees),
        })
    }
}

/// Converts an angle in radians to degrees that are at least 0 and less than 360.
fn degrees(radians: f32) -> f32 {
    let turned = radians.to_degrees().rem_euclid(360.0);
    // For a tiny negative angle, `rem_euclid` returns 360 because of rounding.
    if turned >= 360.0 { 0.0 } else { turned }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_course_is_measured_clockwise_from_north() {
        for (radians, want) in [
            (0.0, 0.0),
            (std::f32::consts::FRAC_PI_2, 90.0),
            (-std::f32::consts::FRAC_PI_2, 270.0),
            (-1e-9, 0.0),
        ] {
            assert!((degrees(radians) - want).abs() < 1e-3, "{radians}");
        }
    }
}
