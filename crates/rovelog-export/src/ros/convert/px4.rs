//! ROS messages of PX4 logs.
//!
//! PX4 uses the axes north, east, down for the world and forward, right, down for the vehicle. ROS
//! uses east, north, up and forward, left, up (REP 103). The comments of the functions name the
//! PX4 message definitions in which the units are documented.

use std::collections::{BTreeMap, HashMap};

use rovelog::core::internal::layout::Row;
use rovelog::ulog_format::UlogReader;
use rovelog::ulog_format::px4::instances;
use rovelog::{LogReader as _, Record, TopicId};

use super::payload::{Fix, NO_FIX, Payload, imu};
use super::{Message, RosClock, RosTime, Source};
use crate::ExportError;
use crate::pose::{Pose, east_north_up, rotate};
use crate::vehicle::{self, Motion, Moved, PositionSource, number, position_sources, severity};

/// Coordinate frames of the vehicle and of the world, according to REP 105. The estimated position
/// does not drift, but it may jump, so the world is `map` and not `odom`.
const FRAMES: (&str, &str) = ("base_link", "map");

/// Maximum age in nanoseconds of an attitude that is combined with other data.
const MAX_AGE: u64 = 100_000_000;

/// Source of the ROS messages of a PX4 log.
pub(super) struct Px4<'a> {
    reader: &'a UlogReader,
    clock: RosClock,
    positions: BTreeMap<TopicId, PositionSource>,
    motion: Motion,
    /// Topic of the inertial sensors.
    inertial: Option<TopicId>,
    /// Angular velocity of the last record of the inertial sensors, in the axes of PX4.
    angular_velocity: Option<[f64; 3]>,
    /// Topics of the batteries, with the name of the topic in the output.
    batteries: HashMap<TopicId, String>,
}

impl<'a> Px4<'a> {
    pub(super) fn new(reader: &'a UlogReader, clock: RosClock) -> Result<Self, ExportError> {
        let batteries = instances(reader, "battery_status").into_iter().enumerate();
        Ok(Self {
            reader,
            clock,
            positions: position_sources(reader)?,
            motion: Motion::new(reader),
            inertial: instances(reader, "sensor_combined").first().map(|topic| topic.id),
            angular_velocity: None,
            batteries: batteries.map(|(number, topic)| (topic.id, numbered("battery", number, ""))).collect(),
        })
    }

    /// Returns the message for the inertial sensors, as documented in `msg/SensorCombined.msg`. The
    /// orientation is that of the last attitude.
    fn imu(&mut self, row: &Row<'_>, nanos: i64, time: RosTime) -> Option<Payload> {
        self.angular_velocity = vector(row, "gyro_rad").or_else(|| vector(row, "gyro_rad_s"));
        let acceleration = vector(row, "accelerometer_m_s2").map(forward_left_up);
        let orientation = self.orientation(nanos);
        let orientation = orientation.map(|q| east_north_up(&Pose { position: [0.0; 3], orientation: q }));
        (self.angular_velocity.is_some() || acceleration.is_some()).then(|| {
            let angular_velocity = self.angular_velocity.map(forward_left_up);
            imu((time, FRAMES.0), orientation.map(|pose| pose.orientation), angular_velocity, acceleration)
        })
    }

    /// Returns the last attitude, unless it is too old.
    fn orientation(&self, nanos: i64) -> Option<[f64; 4]> {
        let (at, orientation) = self.motion.orientation?;
        (nanos.abs_diff(at) <= MAX_AGE).then_some(orientation)
    }

    /// Returns the message for the pose and velocity, as documented in `msg/VehicleAttitude.msg` and
    /// `msg/VehicleLocalPosition.msg`. ROS defines the velocity in the axes of the vehicle.
    fn odometry(&self, nanos: i64, time: RosTime) -> Option<Payload> {
        let orientation = self.orientation(nanos)?;
        let position = self.motion.position.map(Option::unwrap_or_default);
        let pose = east_north_up(&Pose { position, orientation });
        let [w, x, y, z] = orientation;
        let velocity = self.motion.velocity.map(|velocity| rotate([w, -x, -y, -z], velocity));
        let twist = [velocity, self.angular_velocity].map(|part| forward_left_up(part.unwrap_or(UNKNOWN)));
        let covariance = [0.0; 36];
        let payload = Payload::stamped(time, FRAMES.1).text(FRAMES.0).f64s(pose.position);
        let payload = payload.quaternion(pose.orientation).f64s(covariance);
        Some(payload.f64s(twist.concat()).f64s(covariance))
    }
}

/// Returns the payload of a `sensor_msgs/NavSatFix` for a row of a position topic.
fn fix(source: &PositionSource, row: &Row<'_>, time: RosTime) -> Payload {
    let fix = source.position(row).map_or(NO_FIX, |position| Fix {
        // Values of 4 to 6 in `fix_type` mean that the receiver uses RTCM corrections, which come
        // from stations on the ground.
        status: if matches!(position.fix, Some(4..=6)) { 2 } else { 0 },
        position: [position.latitude, position.longitude, position.altitude_ellipsoid.unwrap_or(f64::NAN)],
        accuracy: source.accuracy(row),
    });
    fix.payload(time, "gps")
}

/// Returns the payload of a `sensor_msgs/BatteryState` for a row of `battery_status`, as documented
/// in `msg/BatteryStatus.msg`. PX4 uses negative values for unknown quantities, and ROS uses NaN.
fn battery(row: &Row<'_>, time: RosTime) -> Payload {
    let read = |name: &str| number(row, row.layout().place(name));
    let known = |name: &str| read(name).filter(|value| *value >= 0.0);
    let or_nan = |value: Option<f64>| value.unwrap_or(f64::NAN);
    let current = known("current_a").or_else(|| known("current_filtered_a"));
    // PX4 states the capacity in mAh, and 0 if it is unknown.
    let capacity = known("capacity").filter(|capacity| *capacity > 0.0).map(|capacity| capacity / 1000.0);
    let count = known("cell_count").unwrap_or_default();
    let cells = (0_u32..).take_while(|cell| f64::from(*cell) < count);
    let cells: Vec<_> = cells.map_while(|cell| read(&format!("voltage_cell_v[{cell}]"))).collect();
    let serial_number = known("serial_number").filter(|number| *number > 0.0);
    Payload::stamped(time, FRAMES.0)
        .f32s([
            or_nan(known("voltage_v").or_else(|| known("voltage_filtered_v"))),
            or_nan(read("temperature")),
        ])
        // In ROS, the current of a battery that is discharged is negative. The charge and the design
        // capacity are unknown.
        .f32s([0.0 - or_nan(current), f64::NAN, or_nan(capacity), f64::NAN, or_nan(known("remaining"))])
        // The status 2 is POWER_SUPPLY_STATUS_DISCHARGING. Health and technology are unknown.
        .put([if current > Some(0.0) { 2 } else { 0 }, 0, 0])
        .put([u8::from(read("connected") != Some(0.0))])
        .len(cells.len())
        .f32s(cells)
        .len(0)
        .text("")
        .text(&serial_number.map_or_else(String::new, |number| number.to_string()))
}

/// A vector that is unknown.
const UNKNOWN: [f64; 3] = [f64::NAN; 3];

/// Returns the values of an array with three elements.
fn vector(row: &Row<'_>, name: &str) -> Option<[f64; 3]> {
    let [x, y, z] = [0, 1, 2].map(|i| number(row, row.layout().place(&format!("{name}[{i}]"))));
    Some([x?, y?, z?])
}

/// Converts a vector from the axes forward, right, down to the axes forward, left, up.
fn forward_left_up([forward, right, down]: [f64; 3]) -> [f64; 3] {
    [forward, -right, -down]
}

/// Returns the name of a topic. The first sensor of a kind has no number.
fn numbered(name: &str, number: usize, end: &str) -> String {
    if number == 0 { format!("/{name}{end}") } else { format!("/{name}_{number}{end}") }
}

/// Returns the messages for console lines, and for parameters from the time `from` on.
pub(super) fn messages(
    reader: &UlogReader,
    from: Option<i64>,
    clock: &RosClock,
    is_ros2: bool,
) -> Vec<Message> {
    let mut found = Vec::new();
    for text in reader.texts().into_iter().flatten() {
        let nanos = text.time.map_or(0, |time| time.nanos);
        // If ROS cannot represent the time, the message is counted as lost when it is written.
        let time = clock.time(nanos).unwrap_or(RosTime { sec: 0, nsec: 0 });
        let severity = severity(text.level);
        let (type_name, start, end): (_, _, &[u8]) = if is_ros2 {
            ("rcl_interfaces/Log", Payload::default().time(time).put([10 * (severity + 1)]), &[])
        } else {
            // The message ends with the names of topics, of which there are none.
            ("rosgraph_msgs/Log", Payload::stamped(time, "").put([1 << severity]), &[0; 4])
        };
        // The file, the function and the line are unknown.
        let name = text.source.as_deref().unwrap_or("px4");
        let payload = start.text(name).text(&text.text).text("").text("").len(0).put(end).0;
        found.push(Message { nanos, topic: "/rosout".to_owned(), type_name, payload });
    }
    found.extend(vehicle::parameters(reader, from).into_iter().map(|set| Message {
        nanos: set.nanos,
        topic: "/px4_parameters".to_owned(),
        type_name: "diagnostic_msgs/KeyValue",
        payload: Payload::default().text(&set.name).text(&set.value.to_json()).0,
    }));
    found
}

impl Source for Px4<'_> {
    fn on_record(&mut self, record: &Record<'_>, nanos: i64, out: &mut Vec<Message>) -> bool {
        let topic = record.topic.id;
        let (Ok(row), Some(time)) = (self.reader.row(record), self.clock.time(nanos)) else { return true };
        let mut add = |topic: &str, type_name, payload: Option<Payload>| {
            let topic = topic.to_owned();
            out.extend(payload.map(|payload| Message { nanos, topic, type_name, payload: payload.0 }));
        };
        if let Some(source) = self.positions.get(&topic) {
            let name = numbered("gps", source.number, "/fix");
            add(&name, "sensor_msgs/NavSatFix", Some(fix(source, &row, time)));
        }
        if let Some(name) = self.batteries.get(&topic) {
            add(name, "sensor_msgs/BatteryState", Some(battery(&row, time)));
        }
        if self.inertial == Some(topic) {
            add("/imu/data", "sensor_msgs/Imu", self.imu(&row, nanos, time));
        }
        if self.motion.update(topic, &row, nanos) == Some(Moved::Position) {
            add("/odom", "nav_msgs/Odometry", self.odometry(nanos, time));
        }
        true
    }
}
