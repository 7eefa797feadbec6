//! Moves places to another part of the Earth without changing their relative positions.
//!
//! The mapping is a rigid motion of space: the plane that touches the WGS 84 ellipsoid at one place
//! is moved to another place, so that east stays east and north stays north there. Distances along
//! the ground are exact at this place. The ellipsoid is curved differently at the new place, so
//! distances change by 1 part per million at 90 km, and the direction of north by 0.1° at 10 km.

use std::hash::{BuildHasher as _, RandomState};

/// Equatorial radius of WGS 84 in meters.
const RADIUS: f64 = 6_378_137.0;

/// Square of the eccentricity of WGS 84.
const ECCENTRICITY_2: f64 = 6.694_379_990_141_33e-3;

/// Largest change of latitude of a random place, in degrees. The radii of the ellipsoid then change
/// by less than 0.2 %, so programs that compute on a sphere, such as PX4, find nearly the same
/// distances.
const MAX_LATITUDE_CHANGE: f64 = 10.0;

/// Smallest change of longitude of a random place, in degrees.
const MIN_LONGITUDE_CHANGE: f64 = 20.0;

/// A place on the ellipsoid in degrees.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// Degrees north of the equator.
    pub latitude: f64,
    /// Degrees east of Greenwich.
    pub longitude: f64,
}

impl Place {
    /// Returns a place, or `None` if the numbers are not a latitude and a longitude.
    pub fn new(latitude: f64, longitude: f64) -> Option<Self> {
        (latitude.abs() <= 90.0 && longitude.abs() <= 180.0).then_some(Self { latitude, longitude })
    }

    /// Returns the directions east, north and up in space.
    fn axes(self) -> [[f64; 3]; 3] {
        let (sin_lat, cos_lat) = self.latitude.to_radians().sin_cos();
        let (sin_lon, cos_lon) = self.longitude.to_radians().sin_cos();
        [
            [-sin_lon, cos_lon, 0.0],
            [-sin_lat * cos_lon, -sin_lat * sin_lon, cos_lat],
            [cos_lat * cos_lon, cos_lat * sin_lon, sin_lat],
        ]
    }

    /// Returns the point in space, in meters from the center of the Earth.
    fn point(self) -> [f64; 3] {
        let [_, _, [x, y, z]] = self.axes();
        let radius = RADIUS / (1.0 - ECCENTRICITY_2 * z * z).sqrt();
        [radius * x, radius * y, radius * (1.0 - ECCENTRICITY_2) * z]
    }

    /// Returns the place above or below which a point in space is.
    fn below([x, y, z]: [f64; 3]) -> Self {
        let across = x.hypot(y);
        let mut latitude = z.atan2(across * (1.0 - ECCENTRICITY_2));
        // Each step reduces the error at least by the factor 0.007.
        for _ in 0..6 {
            let sin = latitude.sin();
            let radius = RADIUS / (1.0 - ECCENTRICITY_2 * sin * sin).sqrt();
            latitude = (z + ECCENTRICITY_2 * radius * sin).atan2(across);
        }
        Self { latitude: latitude.to_degrees(), longitude: y.atan2(x).to_degrees() }
    }

    /// Returns the distance in kilometers, measured straight through the Earth.
    pub fn distance_km(self, other: Self) -> f64 {
        let (a, b) = (self.point(), other.point());
        (0..3).map(|i| (a[i] - b[i]).powi(2)).sum::<f64>().sqrt() / 1000.0
    }

    /// Returns a random place far from this place. The random numbers come from the operating system,
    /// through the keys of the standard library's hash maps.
    #[must_use]
    pub fn random_other(self) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "53 bits are enough")]
        let random = || RandomState::new().hash_one(0) as f64 / u64::MAX as f64;
        let latitude = self.latitude + (2.0 * random() - 1.0) * MAX_LATITUDE_CHANGE;
        let longitude =
            self.longitude + MIN_LONGITUDE_CHANGE + random() * 2.0 * (180.0 - MIN_LONGITUDE_CHANGE);
        Self {
            latitude: latitude.clamp(-75.0, 75.0),
            longitude: (longitude + 180.0).rem_euclid(360.0) - 180.0,
        }
    }
}

/// A mapping of places, see the documentation of this module. It is the content of a secret file.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Move {
    /// The place that is moved without any distortion around it.
    pub from: Place,
    /// The new place of `from`.
    pub to: Place,
}

impl Move {
    /// Returns the new position of a place.
    #[must_use]
    pub fn apply(&self, place: Place) -> Place {
        let (point, from, to) = (place.point(), self.from.point(), self.to.point());
        let (old, new) = (self.from.axes(), self.to.axes());
        let local = old.map(|axis| (0..3).map(|i| axis[i] * (point[i] - from[i])).sum::<f64>());
        Place::below([0, 1, 2].map(|i| to[i] + (0..3).map(|k| new[k][i] * local[k]).sum::<f64>()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(latitude: f64, longitude: f64) -> Place {
        Place::new(latitude, longitude).expect("a place")
    }

    #[test]
    fn distances_and_directions_stay() {
        let from = at(47.4, 8.5);
        for to in [at(-33.9, 151.2), at(0.0, 180.0), at(56.0, -3.0), from] {
            let positions = Move { from, to };
            assert!(positions.apply(from).distance_km(to) < 1e-9);
            let places = [at(47.4, 8.6), at(47.5, 8.5), at(47.39, 8.49), from];
            for (a, b) in places.iter().zip(&places[1..]) {
                let (before, after) =
                    (a.distance_km(*b), positions.apply(*a).distance_km(positions.apply(*b)));
                assert!((before - after).abs() < 1e-7 * before, "{to:?}: {before} km, {after} km");
            }
            let (east, north) = (positions.apply(places[0]), positions.apply(places[1]));
            assert!(
                (east.latitude - to.latitude).abs() < 2e-3
                    && ((north.longitude - to.longitude) % 360.0).abs() < 1e-9
            );
            assert!(north.latitude > to.latitude);
        }
    }

    #[test]
    fn a_random_place_is_far_away() {
        for latitude in [-89.0, -47.0, 0.0, 60.0] {
            let place = at(latitude, 170.0);
            let other = place.random_other();
            assert!(Place::new(other.latitude, other.longitude).is_some());
            assert!(place.distance_km(other) > 500.0, "{other:?}");
            assert_ne!(other, place.random_other());
        }
    }
}
