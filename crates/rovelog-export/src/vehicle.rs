//! Positions, attitude and velocity of PX4 vehicles, and their axes. Exports to MCAP and ROS use
//! this module.

use std::collections::BTreeMap;
use std::f64::consts::FRAC_1_SQRT_2;

use rovelog::core::internal::layout::{Layout, Place, Row, scalar_value};
use rovelog::ulog_format::UlogReader;
use rovelog::ulog_format::px4::{self, NoPosition, POSITION_TOPICS, Position, PositionFields};
use rovelog::{LogReader as _, Select, Topic, TopicId};

use crate::ExportError;
use crate::track::px4::MIN_FIX;

/// Position and orientation of an object.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pose {
    /// Position in meters.
    pub(crate) position: [f64; 3],
    /// Orientation as a quaternion in the order w, x, y, z.
    pub(crate) orientation: [f64; 4],
}

/// A topic with positions.
pub(crate) struct PositionSource {
    fields: PositionFields,
    /// Fields that contain the horizontal and vertical standard deviation of a position.
    accuracy: [Option<Place>; 2],
    /// Number of the topic, counted from 0.
    pub(crate) number: usize,
}

impl PositionSource {
    /// Returns the position in a row, if the row has a 3D fix or is an estimate.
    pub(crate) fn position(&self, row: &Row<'_>) -> Result<Position, NoPosition> {
        self.fields.position(row, MIN_FIX)
    }

    /// Returns the horizontal and vertical standard deviation of the position in meters.
    pub(crate) fn accuracy(&self, row: &Row<'_>) -> Option<(f64, f64)> {
        let [horizontal, vertical] = self.accuracy;
        number(row, horizontal).zip(number(row, vertical))
    }
}

/// Returns the topics from which positions are written. Of the topic types with positions, the best
/// type with at least one fix is used. The result contains all of its instances.
pub(crate) fn position_sources(
    reader: &UlogReader,
) -> Result<BTreeMap<TopicId, PositionSource>, ExportError> {
    for name in POSITION_TOPICS {
        let mut found = BTreeMap::new();
        for topic in px4::instances(reader, name) {
            if let Some(layout) = layout_with_fix(reader, topic)?
                && let Some(fields) = PositionFields::of(layout)
            {
                let accuracy = ["eph", "epv"].map(|name| layout.place(name));
                found.insert(topic.id, PositionSource { fields, accuracy, number: found.len() });
            }
        }
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Ok(BTreeMap::new())
}

/// Returns the layout of a topic with positions. Returns `None` if the topic has no fix.
fn layout_with_fix<'a>(reader: &'a UlogReader, topic: &Topic) -> Result<Option<&'a Layout>, ExportError> {
    for record in reader.records(&Select::topic(topic.name.clone())) {
        let record = record?;
        let Ok(row) = reader.row(&record) else { continue };
        let Some(fields) = PositionFields::of(row.layout()) else { return Ok(None) };
        if fields.position(&row, MIN_FIX).is_ok() {
            return Ok(reader.definitions().layout(topic).ok());
        }
    }
    Ok(None)
}

/// Fields of the topic `vehicle_local_position`.
struct LocalPosition {
    xyz: [Option<Place>; 3],
    velocity: [Option<Place>; 3],
    /// Validity of x and y, of z, and of the velocity in x and y, and in z.
    valid: [Option<Place>; 4],
}

impl LocalPosition {
    fn of(layout: &Layout) -> Self {
        Self {
            xyz: ["x", "y", "z"].map(|name| layout.place(name)),
            velocity: ["vx", "vy", "vz"].map(|name| layout.place(name)),
            valid: ["xy_valid", "z_valid", "v_xy_valid", "v_z_valid"].map(|name| layout.place(name)),
        }
    }
}

/// Kind of a record that has updated the [`Motion`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moved {
    /// The orientation is that of the record.
    Attitude,
    /// All three coordinates are those of the record.
    Position,
}

/// The last known motion of the vehicle, in the axes of PX4: north, east and down for the world,
/// and forward, right and down for the vehicle.
pub(crate) struct Motion {
    /// Topic of the attitude, and the fields w, x, y and z of its quaternion.
    attitude: Option<(TopicId, [Place; 4])>,
    /// Topic of the local position, with its fields.
    local_position: Option<(TopicId, LocalPosition)>,
    /// Coordinates in meters. A coordinate is `None` until it is valid.
    pub(crate) position: [Option<f64>; 3],
    /// Velocity in m/s, if it is valid in the last record with a position.
    pub(crate) velocity: Option<[f64; 3]>,
    /// Time of the last attitude in nanoseconds, and the quaternion that rotates from the vehicle
    /// to the world.
    pub(crate) orientation: Option<(i64, [f64; 4])>,
}

impl Motion {
    pub(crate) fn new(reader: &UlogReader) -> Self {
        let first = |name: &str| {
            let topic = *px4::instances(reader, name).first()?;
            Some((topic.id, reader.definitions().layout(topic).ok()?))
        };
        let attitude = first("vehicle_attitude");
        Self {
            attitude: attitude
                .and_then(|(topic, layout)| Some((topic, places(layout, ["q[0]", "q[1]", "q[2]", "q[3]"])?))),
            local_position: first("vehicle_local_position")
                .map(|(topic, layout)| (topic, LocalPosition::of(layout))),
            position: [None; 3],
            velocity: None,
            orientation: None,
        }
    }

    /// Returns whether the records of a topic update the motion.
    pub(crate) fn uses(&self, topic: TopicId) -> bool {
        self.attitude.is_some_and(|(id, _)| id == topic)
            || self.local_position.as_ref().is_some_and(|(id, _)| *id == topic)
    }

    /// Updates the motion from a row of a topic, with its time in nanoseconds.
    pub(crate) fn update(&mut self, topic: TopicId, row: &Row<'_>, nanos: i64) -> Option<Moved> {
        if let Some((_, fields)) = self.attitude.filter(|(id, _)| *id == topic) {
            self.orientation = Some((nanos, numbers(row, fields)?));
            return Some(Moved::Attitude);
        }
        let (_, fields) = self.local_position.as_ref().filter(|(id, _)| *id == topic)?;
        let [xy, z, v_xy, v_z] =
            fields.valid.map(|place| place.and_then(|place| row.read::<bool>(place)) != Some(false));
        let [north, east, down] = fields.xyz.map(|place| number(row, place));
        let horizontal = north.zip(east).filter(|_| xy);
        let down = down.filter(|_| z);
        if let Some((north, east)) = horizontal {
            (self.position[0], self.position[1]) = (Some(north), Some(east));
        }
        self.position[2] = down.or(self.position[2]);
        let speed = fields.velocity.map(|place| number(row, place));
        self.velocity = match speed {
            [Some(north), Some(east), Some(down)] if v_xy && v_z => Some([north, east, down]),
            _ => None,
        };
        (horizontal.is_some() && down.is_some()).then_some(Moved::Position)
    }
}

/// Returns the places of several fields, if a layout has all of them.
fn places<const N: usize>(layout: &Layout, names: [&str; N]) -> Option<[Place; N]> {
    let found = names.map(|name| layout.place(name));
    found.iter().all(Option::is_some).then(|| found.map(|place| place.expect("all are there")))
}

/// Returns the values of several fields, if all of them are finite numbers.
fn numbers<const N: usize>(row: &Row<'_>, places: [Place; N]) -> Option<[f64; N]> {
    let found = places.map(|place| number(row, Some(place)));
    found.iter().all(Option::is_some).then(|| found.map(Option::unwrap_or_default))
}

/// Returns the value of a field if it is a finite number.
pub(crate) fn number(row: &Row<'_>, place: Option<Place>) -> Option<f64> {
    let place = place.filter(|place| place.elements().is_none())?;
    let value = scalar_value(place.scalar()?, row.bytes().get(place.offset()..)?);
    value.as_f64().filter(|number| number.is_finite())
}

/// Returns the severity of a console line: 0 for debug, 1 for info, 2 for a warning, 3 for an error
/// and 4 for a fatal error. `level` is the severity from 0 to 7, as in syslog.
pub(crate) const fn severity(level: u8) -> u8 {
    match level {
        0 => 4,
        1..=3 => 3,
        4 | 5 => 2,
        6 => 1,
        _ => 0,
    }
}

/// Converts a pose from the axes of PX4 to the axes of viewers.
///
/// PX4 uses north, east and down for the world, and forward, right and down for the vehicle.
/// Viewers use east, north and up for the world, and forward, left and up for the vehicle. The
/// orientation is therefore rotated on both sides: on the left by the rotation between the world
/// axes, and on the right by half a turn about the forward axis.
pub(crate) fn east_north_up(ned: &Pose) -> Pose {
    let [north, east, down] = ned.position;
    // The rotation from north, east, down to east, north, up is half a turn about the axis between
    // north and east.
    let turned = product([0.0, FRAC_1_SQRT_2, FRAC_1_SQRT_2, 0.0], ned.orientation);
    Pose { position: [east, north, -down + 0.0], orientation: product(turned, [0.0, 1.0, 0.0, 0.0]) }
}

/// Rotates a vector from the axes of the world to those of the vehicle. `orientation` is the
/// quaternion that rotates from the vehicle to the world.
pub(crate) fn to_body([w, x, y, z]: [f64; 4], [a, b, c]: [f64; 3]) -> [f64; 3] {
    let [_, a, b, c] = product(product([w, -x, -y, -z], [0.0, a, b, c]), [w, x, y, z]);
    [a, b, c]
}

/// Returns the product of two quaternions. Each quaternion has the order w, x, y, z.
#[expect(clippy::many_single_char_names, reason = "the letters of the textbook")]
fn product([a, b, c, d]: [f64; 4], [e, f, g, h]: [f64; 4]) -> [f64; 4] {
    [
        a * e - b * f - c * g - d * h,
        a * f + b * e + c * h - d * g,
        a * g - b * h + c * e + d * f,
        a * h + b * g - c * f + d * e,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: [f64; 4], b: [f64; 4]) -> bool {
        let dot: f64 = a.iter().zip(b).map(|(a, b)| a * b).sum();
        (dot.abs() - 1.0).abs() < 1e-12
    }

    /// In the axes of viewers, a vehicle without a rotation points east. A level vehicle that
    /// points north is therefore rotated by a quarter turn to the left.
    #[test]
    fn poses_are_turned_to_the_axes_of_viewers() {
        let ned = Pose { position: [1.0, 2.0, -3.0], orientation: [1.0, 0.0, 0.0, 0.0] };
        let enu = east_north_up(&ned);
        assert_eq!(enu.position.map(f64::to_bits), [2.0_f64, 1.0, 3.0].map(f64::to_bits));
        assert!(near(enu.orientation, [FRAC_1_SQRT_2, 0.0, 0.0, FRAC_1_SQRT_2]), "{:?}", enu.orientation);
        // A vehicle that points east is not rotated.
        let east = Pose { orientation: [FRAC_1_SQRT_2, 0.0, 0.0, FRAC_1_SQRT_2], ..ned };
        assert!(near(east_north_up(&east).orientation, [1.0, 0.0, 0.0, 0.0]));
        // Pitching up changes the sign of the rotation, because the lateral axis now points to the
        // left.
        let (sin, cos) = (0.1f64.sin(), 0.1f64.cos());
        let up = Pose { orientation: product(east.orientation, [cos, 0.0, sin, 0.0]), ..ned };
        assert!(near(east_north_up(&up).orientation, [cos, 0.0, -sin, 0.0]));
    }
    /// A vehicle that points east and moves east moves forward.
    #[test]
    fn velocities_are_turned_to_the_vehicle() {
        let east = [FRAC_1_SQRT_2, 0.0, 0.0, FRAC_1_SQRT_2];
        let [forward, right, down] = to_body(east, [0.0, 2.0, 0.5]);
        assert!((forward - 2.0).abs() < 1e-12 && right.abs() < 1e-12 && (down - 0.5).abs() < 1e-12);
    }
}
