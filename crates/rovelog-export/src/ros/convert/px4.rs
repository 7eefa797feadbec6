//! ROS messages of PX4 logs.
//!
//! PX4 uses the axes north, east, down for the world and forward, right, down for the vehicle. ROS
//! uses east, north, up and forward, left, up (REP 103). The comments of the functions name the
//! PX4 message definitions in which the units are documented.

use std::collections::{BTreeMap, HashMap};

use rovelog::core::internal::layout::{Layout, Place, Row};
use rovelog::ulog_format::UlogReader;
use rovelog::ulog_format::px4::{NoPosition, instances};
use rovelog::{LogReader as _, Record, TopicId, Value};

use super::payload::{Fix, NO_FIX, Payload, imu};
use super::{Message, RosClock, RosTime, Source};
use crate::ExportError;
use crate::vehicle::{
    Motion, Moved, Pose, PositionSource, east_north_up, number, numbers, places, position_sources, severity,
    to_body,
};

/// Coordinate frames of the vehicle and of the world, according to REP 105. The estimated position
/// does not drift, but it may jump, so the world is `map` and not `odom`.
const FRAMES: (&str, &str) = ("base_link", "map");

/// Maximum age in nanoseconds of an attitude that is combined with other data.
const MAX_AGE: u64 = 100_000_000;

/// Source of the ROS messages of a PX4 log.
pub(super) struct Px4<'a> {
    reader: &'a UlogReader,
    clock: RosClock,
    is_ros2: bool,
    positions: BTreeMap<TopicId, PositionSource>,
    motion: Motion,
    /// Topics of the inertial sensors: three fields of the angular velocity in rad/s, and three of
    /// the acceleration in m/s².
    inertial: HashMap<TopicId, [[Place; 3]; 2]>,
    /// Angular velocity of the last record of the inertial sensors, in the axes of PX4.
    angular_velocity: [f64; 3],
    batteries: HashMap<TopicId, Battery>,
}

/// Fields of the topic `battery_status`, as documented in `msg/BatteryStatus.msg` of PX4.
struct Battery {
    /// Number of the battery, counted from 0.
    number: usize,
    voltage: Option<Place>,
    current: Option<Place>,
    temperature: Option<Place>,
    capacity: Option<Place>,
    remaining: Option<Place>,
    connected: Option<Place>,
    serial_number: Option<Place>,
    cell_count: Option<Place>,
    cells: Vec<Place>,
}

impl<'a> Px4<'a> {
    pub(super) fn new(reader: &'a UlogReader, clock: RosClock, is_ros2: bool) -> Result<Self, ExportError> {
        let layouts = |name| {
            let found = instances(reader, name).into_iter();
            found.filter_map(|topic| Some((topic.id, reader.definitions().layout(topic).ok()?)))
        };
        let first_inertial = layouts("sensor_combined").take(1);
        let batteries = layouts("battery_status").enumerate();
        Ok(Self {
            reader,
            clock,
            is_ros2,
            positions: position_sources(reader)?,
            motion: Motion::new(reader),
            inertial: first_inertial.filter_map(|(id, layout)| Some((id, inertial(layout)?))).collect(),
            angular_velocity: [f64::NAN; 3],
            batteries: batteries.map(|(number, (id, layout))| (id, Battery::of(layout, number))).collect(),
        })
    }

    /// Returns the message for the inertial sensors, as documented in `msg/SensorCombined.msg`. The
    /// orientation is that of the last attitude.
    fn imu(&mut self, row: &Row<'_>, places: [[Place; 3]; 2], nanos: i64, time: RosTime) -> Option<Payload> {
        let [angular_velocity, acceleration] = places.map(|places| numbers(row, places));
        self.angular_velocity = angular_velocity.unwrap_or([f64::NAN; 3]);
        let orientation = self.orientation(nanos).map(|orientation| {
            east_north_up(&Pose { position: [0.0; 3], orientation }).orientation
        });
        let flu = |vector: Option<[f64; 3]>| vector.map(forward_left_up);
        (angular_velocity.is_some() || acceleration.is_some())
            .then(|| imu((time, FRAMES.0), orientation, flu(angular_velocity), flu(acceleration)))
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
        let [Some(north), Some(east), Some(down)] = self.motion.position else { return None };
        let pose = east_north_up(&Pose { position: [north, east, down], orientation });
        let velocity = self.motion.velocity.map_or([f64::NAN; 3], |velocity| to_body(orientation, velocity));
        let covariance = [0.0; 36];
        let payload = Payload::stamped(time, FRAMES.1).text(FRAMES.0).f64s(pose.position);
        let payload = payload.quaternion(pose.orientation).f64s(covariance);
        let payload = payload.f64s(forward_left_up(velocity)).f64s(forward_left_up(self.angular_velocity));
        Some(payload.f64s(covariance))
    }

    /// Returns the message for a row of a position topic.
    fn fix(source: &PositionSource, row: &Row<'_>, time: RosTime) -> Payload {
        let fix = match source.position(row) {
            Ok(position) => Fix {
                // Values of 4 to 6 in `fix_type` mean that the receiver uses RTCM corrections, which
                // come from stations on the ground.
                status: if matches!(position.fix, Some(4..=6)) { 2 } else { 0 },
                position: [
                    position.latitude,
                    position.longitude,
                    position.altitude_ellipsoid.unwrap_or(f64::NAN),
                ],
                accuracy: source.accuracy(row),
            },
            Err(NoPosition::NoFix | NoPosition::Implausible) => NO_FIX,
        };
        fix.payload(time, "gps")
    }
}

/// Returns the fields of the angular velocity and the acceleration in a layout.
fn inertial(layout: &Layout) -> Option<[[Place; 3]; 2]> {
    let angular_velocity = places(layout, ["gyro_rad[0]", "gyro_rad[1]", "gyro_rad[2]"])
        .or_else(|| places(layout, ["gyro_rad_s[0]", "gyro_rad_s[1]", "gyro_rad_s[2]"]))?;
    let names = ["accelerometer_m_s2[0]", "accelerometer_m_s2[1]", "accelerometer_m_s2[2]"];
    Some([angular_velocity, places(layout, names)?])
}

/// Converts a vector from the axes forward, right, down to the axes forward, left, up.
fn forward_left_up([forward, right, down]: [f64; 3]) -> [f64; 3] {
    [forward, -right, -down]
}

impl Battery {
    fn of(layout: &Layout, number: usize) -> Self {
        let first = |names: [&str; 2]| names.iter().find_map(|name| layout.place(name));
        let cells = (0..).map_while(|cell| layout.place(&format!("voltage_cell_v[{cell}]")));
        Self {
            number,
            voltage: first(["voltage_v", "voltage_filtered_v"]),
            current: first(["current_a", "current_filtered_a"]),
            temperature: layout.place("temperature"),
            capacity: layout.place("capacity"),
            remaining: layout.place("remaining"),
            connected: layout.place("connected"),
            serial_number: layout.place("serial_number"),
            cell_count: layout.place("cell_count"),
            cells: cells.collect(),
        }
    }

    /// Returns the payload of a `sensor_msgs/BatteryState`. PX4 uses negative values for unknown
    /// quantities, and ROS uses NaN.
    fn payload(&self, row: &Row<'_>, time: RosTime) -> Payload {
        let known = |place| number(row, place).filter(|value| *value >= 0.0).unwrap_or(f64::NAN);
        let current = known(self.current);
        let is_connected = self.connected.and_then(|place| row.read::<bool>(place));
        // PX4 states the capacity in mAh, and 0 if it is unknown.
        let capacity = Some(known(self.capacity) / 1000.0).filter(|capacity| *capacity > 0.0);
        let count = number(row, self.cell_count).unwrap_or_default();
        let cells = self.cells.iter().zip(0_u32..).filter(|(_, cell)| f64::from(*cell) < count);
        let cells: Vec<_> = cells.map(|(place, _)| known(Some(*place))).collect();
        let serial_number = number(row, self.serial_number).filter(|number| *number > 0.0);
        Payload::stamped(time, FRAMES.0)
            .f32s([known(self.voltage), number(row, self.temperature).unwrap_or(f64::NAN)])
            // In ROS, the current of a battery that is discharged is negative.
            .f32s([-current, f64::NAN, capacity.unwrap_or(f64::NAN), f64::NAN, known(self.remaining)])
            // The status 2 is POWER_SUPPLY_STATUS_DISCHARGING. Health and technology are unknown.
            .u8(if current > 0.0 { 2 } else { 0 })
            .u8(0)
            .u8(0)
            .u8(u8::from(is_connected != Some(false)))
            .len(cells.len())
            .f32s(cells)
            .len(0)
            .text("")
            .text(&serial_number.map_or_else(String::new, |number| number.to_string()))
    }
}

/// Returns the name of a topic. The first sensor of a kind has no number.
fn numbered(name: &str, number: usize, end: &str) -> String {
    if number == 0 { format!("/{name}{end}") } else { format!("/{name}_{number}{end}") }
}

impl Source for Px4<'_> {
    fn package(&self) -> (&'static str, &'static str) {
        ("ulog_msgs", "/px4/")
    }

    fn messages(&self) -> Vec<Message> {
        let mut found = Vec::new();
        for text in self.reader.texts().into_iter().flatten() {
            let nanos = text.time.map_or(0, |time| time.nanos);
            let Some(time) = self.clock.time(nanos) else { continue };
            let severity = severity(text.level);
            let name = text.source.as_deref().unwrap_or("px4");
            let (type_name, start) = if self.is_ros2 {
                ("rcl_interfaces/Log", Payload::default().time(time).u8(10 * (severity + 1)))
            } else {
                ("rosgraph_msgs/Log", Payload::stamped(time, "").u8(1 << severity))
            };
            // The file, the function and the line are unknown.
            let message = start.text(name).text(&text.text).text("").text("").u32(0);
            // In ROS 1, the names of topics follow.
            let message = if self.is_ros2 { message } else { message.len(0) };
            found.push(Message { nanos, topic: "/rosout".into(), type_name, payload: message.0 });
        }
        let parameters = self.reader.parameters();
        let start = self.reader.info().start.map_or(0, |time| time.nanos);
        let changed = parameters.changed.iter();
        let changed =
            changed.map(|change| (change.time.map_or(start, |time| time.nanos), &change.name, &change.value));
        let initial = parameters.initial.iter().map(|(name, value)| (start, name, value));
        found.extend(initial.chain(changed).map(|(nanos, name, value): (i64, &String, &Value)| {
            let payload = Payload::default().text(name).text(&value.to_json()).0;
            Message { nanos, topic: "/px4_parameters".into(), type_name: "diagnostic_msgs/KeyValue", payload }
        }));
        found
    }

    fn on_record(&mut self, record: &Record<'_>, nanos: i64, out: &mut Vec<Message>) -> bool {
        let topic = record.topic.id;
        let (Ok(row), Some(time)) = (self.reader.row(record), self.clock.time(nanos)) else { return true };
        let mut add = |topic: String, type_name, payload: Payload| {
            out.push(Message { nanos, topic: topic.into(), type_name, payload: payload.0 });
        };
        if let Some(source) = self.positions.get(&topic) {
            add(numbered("gps", source.number, "/fix"), "sensor_msgs/NavSatFix", Self::fix(source, &row, time));
        }
        if let Some(battery) = self.batteries.get(&topic) {
            let payload = battery.payload(&row, time);
            add(numbered("battery", battery.number, ""), "sensor_msgs/BatteryState", payload);
        }
        if let Some(places) = self.inertial.get(&topic).copied()
            && let Some(payload) = self.imu(&row, places, nanos, time)
        {
            add("/imu/data".to_owned(), "sensor_msgs/Imu", payload);
        }
        if self.motion.update(topic, &row, nanos) == Some(Moved::Position)
            && let Some(payload) = self.odometry(nanos, time)
        {
            add("/odom".to_owned(), "nav_msgs/Odometry", payload);
        }
        true
    }
}
