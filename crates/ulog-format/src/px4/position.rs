//! Where the vehicle was: the position in a row, whatever edition of PX4 wrote it.
//!
//! Sources: PX4 `msg/SensorGps.msg` and its editions, `msg/VehicleGlobalPosition.msg`. The
//! scaling is decided by the field's name and type.

use rovelog_core::Scalar;
use rovelog_core::layout::Layout;

use crate::row::{Place, Row};

/// The topics that hold the vehicle's position, the best first: the receiver that PX4 chose, the
/// receivers themselves, the estimate.
pub const POSITION_TOPICS: [&str; 5] =
    ["vehicle_gps_position", "vehicle_gnss", "sensor_gps", "sensor_gnss", "vehicle_global_position"];

/// The smallest `fix_type` that is a position at all: a fix in two dimensions.
pub(super) const MIN_FIX: u8 = 2;

/// Mean sea level is within 107 m of the ellipsoid (EGM96); what is further apart is no pair of
/// heights.
const MAX_GEOID: f64 = 120.0;

/// A position.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Position {
    /// Latitude in degrees, north positive (WGS 84).
    pub latitude: f64,
    /// Longitude in degrees, east positive (WGS 84).
    pub longitude: f64,
    /// Metres above mean sea level.
    pub altitude_msl: Option<f64>,
    /// Metres above the WGS 84 ellipsoid.
    pub altitude_ellipsoid: Option<f64>,
    /// `fix_type`: 2 two dimensions, 3 three, 4 with code corrections, 5 RTK float, 6 RTK fixed,
    /// 8 extrapolated. `None` for the estimator's position.
    pub fix: Option<u8>,
    /// Satellites used.
    pub satellites: Option<u8>,
    /// Horizontal dilution of precision; `None` where the receiver gives none (NaN or 0).
    pub hdop: Option<f32>,
    /// Horizontal accuracy in metres, standard deviation.
    pub eph: Option<f32>,
    /// Speed over ground in metres per second.
    pub speed: Option<f32>,
    /// Course over ground in degrees from north, clockwise, from 0 to below 360.
    pub course: Option<f32>,
}

/// Why a row holds no position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoPosition {
    /// The receiver has no fix, or a lesser one than was asked for.
    NoFix,
    /// Coordinates that are none: not finite, out of range, or both exactly 0.
    Implausible,
}

/// A field with its scale.
#[derive(Clone, Copy, Debug)]
struct Quantity {
    place: Place,
    /// Stored units per unit.
    scale: f64,
}

impl Quantity {
    /// Returns the first of `names` that is a number. Whole numbers count `scale` to the unit;
    /// floats are in units.
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
        // A division, not a product with 1e-7: it is correctly rounded.
        let value = stored / self.scale;
        value.is_finite().then_some(value)
    }
}

/// The fields of a topic that hold a position; looked up once for all its rows.
#[derive(Clone, Copy, Debug)]
pub struct PositionFields {
    latitude: Quantity,
    longitude: Quantity,
    altitude_msl: Option<Quantity>,
    altitude_ellipsoid: Option<Quantity>,
    fix: Option<Place>,
    valid: Option<Place>,
    satellites: Option<Place>,
    hdop: Option<Place>,
    eph: Option<Place>,
    speed: Option<Place>,
    course: Option<Place>,
}

impl PositionFields {
    /// Returns the fields of a topic with this layout; `None` where it holds no position.
    pub fn of(layout: &Layout) -> Option<Self> {
        // `vehicle_gnss` holds the receiver's message as a whole.
        ["", "receiver."].iter().find_map(|prefix| Self::under(layout, prefix))
    }

    fn under(layout: &Layout, prefix: &str) -> Option<Self> {
        let quantity = |names: &[&str], scale| Quantity::find(layout, prefix, names, scale);
        let field = |names: &[&str], scalar| {
            let place = |name: &&str| layout.place(&format!("{prefix}{name}"));
            names.iter().find_map(place).filter(|place| place.is_scalar(scalar))
        };
        Some(Self {
            // int32 `lat` in 1e-7 degrees to v1.14, double `latitude_deg` from v1.15, `latitude` in 2026.
            latitude: quantity(&["latitude_deg", "latitude", "lat"], 1e7)?,
            longitude: quantity(&["longitude_deg", "longitude", "lon"], 1e7)?,
            // int32 in millimetres, or floats in metres.
            altitude_msl: quantity(&["altitude_msl_m", "altitude_msl", "alt"], 1e3),
            altitude_ellipsoid: quantity(
                &["altitude_ellipsoid_m", "altitude_ellipsoid", "alt_ellipsoid"],
                1e3,
            ),
            fix: field(&["fix_type"], Scalar::UInt8),
            valid: field(&["lat_lon_valid"], Scalar::Bool),
            satellites: field(&["satellites_used"], Scalar::UInt8),
            hdop: field(&["hdop"], Scalar::Float32),
            eph: field(&["eph"], Scalar::Float32),
            speed: field(&["vel_m_s", "ground_speed"], Scalar::Float32),
            course: field(&["cog_rad", "course"], Scalar::Float32),
        })
    }

    /// Returns the position in a row of the topic, where its `fix_type` is at least `min_fix`;
    /// below 2 (2D) there is none to give.
    ///
    /// # Errors
    /// Returns an error if there is no fix, or the coordinates are none. Before the first fix PX4
    /// logs 0, 0 at -17 m.
    pub fn position(&self, row: &Row<'_>, min_fix: u8) -> Result<Position, NoPosition> {
        let fix = self.fix.and_then(|place| row.read::<u8>(place));
        if fix.is_some_and(|fix| fix < min_fix.max(MIN_FIX)) {
            return Err(NoPosition::NoFix);
        }
        if self.valid.and_then(|place| row.read::<bool>(place)) == Some(false) {
            return Err(NoPosition::NoFix);
        }
        let latitude = self.latitude.read(row).filter(|degrees| degrees.abs() <= 90.0);
        let longitude = self.longitude.read(row).filter(|degrees| degrees.abs() <= 180.0);
        let (Some(latitude), Some(longitude)) = (latitude, longitude) else {
            return Err(NoPosition::Implausible);
        };
        if latitude.abs() + longitude.abs() <= 0.0 {
            return Err(NoPosition::Implausible);
        }
        let float = |place: Option<Place>| {
            place.and_then(|place| row.read::<f32>(place)).filter(|value| value.is_finite())
        };
        let altitude_msl = self.altitude_msl.and_then(|altitude| altitude.read(row));
        let altitude_ellipsoid = self
            .altitude_ellipsoid
            .and_then(|altitude| altitude.read(row))
            // A receiver that does not know it leaves 0.
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

/// Radians of any turn as degrees from 0 to below 360.
fn degrees(radians: f32) -> f32 {
    let turned = radians.to_degrees().rem_euclid(360.0);
    // A tiny negative angle is rounded up to the full turn.
    if turned >= 360.0 { 0.0 } else { turned }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_course_is_told_from_north_clockwise() {
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
