//! Positions, attitude and velocity of PX4 vehicles, for exports to MCAP and ROS.

use std::collections::BTreeMap;

use rovelog::core::internal::layout::{Layout, Place, Row, scalar_value};
use rovelog::ulog_format::UlogReader;
use rovelog::ulog_format::px4::{self, NoPosition, POSITION_TOPICS, Position, PositionFields};
use rovelog::{Clock, LogReader as _, Select, Timestamp, Topic, TopicId, Value};

use crate::ExportError;
use crate::track::px4::MIN_FIX;

/// A value of a parameter, and the time in nanoseconds from which it holds.
pub(crate) struct ParameterValue {
    pub(crate) nanos: i64,
    pub(crate) name: String,
    pub(crate) value: Value,
}

/// Returns the values of all parameters from the time `from` on. A parameter that was set before
/// `from` is returned with the time `from`.
pub(crate) fn parameters(reader: &UlogReader, from: Option<i64>) -> Vec<ParameterValue> {
    let parameters = reader.parameters();
    let start = reader.info().start.unwrap_or(Timestamp::new(0, Clock::Boot));
    let first = start.nanos.max(from.unwrap_or(i64::MIN));
    let is_later = first > start.nanos;
    let initial =
        if is_later { parameters.at(Timestamp { nanos: first - 1, ..start }) } else { parameters.initial };
    let initial = initial.into_iter().map(|(name, value)| ParameterValue { nanos: first, name, value });
    let changed = parameters.changed.into_iter().map(|change| ParameterValue {
        nanos: change.time.map_or(start.nanos, |time| time.nanos),
        name: change.name,
        value: change.value,
    });
    initial.chain(changed.filter(|change| !is_later || change.nanos >= first)).collect()
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
        let attitude = first("vehicle_attitude").and_then(|(topic, layout)| {
            let [w, x, y, z] = ["q[0]", "q[1]", "q[2]", "q[3]"].map(|name| layout.place(name));
            Some((topic, [w?, x?, y?, z?]))
        });
        Self {
            attitude,
            local_position: first("vehicle_local_position")
                .map(|(topic, layout)| (topic, LocalPosition::of(layout))),
            position: [None; 3],
            velocity: None,
            orientation: None,
        }
    }

    /// Returns whether the records of a topic update the motion.
    #[cfg(feature = "mcap")]
    pub(crate) fn uses(&self, topic: TopicId) -> bool {
        self.attitude.is_some_and(|(id, _)| id == topic)
            || self.local_position.as_ref().is_some_and(|(id, _)| *id == topic)
    }

    /// Updates the motion from a row of a topic, with its time in nanoseconds.
    pub(crate) fn update(&mut self, topic: TopicId, row: &Row<'_>, nanos: i64) -> Option<Moved> {
        if let Some((_, fields)) = self.attitude.filter(|(id, _)| *id == topic) {
            let [w, x, y, z] = fields.map(|place| number(row, Some(place)));
            self.orientation = Some((nanos, [w?, x?, y?, z?]));
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
