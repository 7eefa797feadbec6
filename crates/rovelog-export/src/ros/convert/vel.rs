//! ROS messages of VEL logs.

use std::collections::HashMap;

use rovelog::vel_format::gps::Fix as VelFix;
use rovelog::vel_format::images::Encoding;
use rovelog::vel_format::pose::AccelerationUnit;
use rovelog::vel_format::velodyne::PacketClock;
use rovelog::vel_format::wire::{GpsData, ImageData, LaserRange, RobotPose, VelodyneRawData};
use rovelog::vel_format::{Kind, Payload as VelPayload, VelReader};
use rovelog::{LogReader as _, Record, Scalar, Select, TopicId};
use zerocopy::IntoBytes as _;

use super::payload::{Fix, NO_FIX, Payload, imu};
use super::{Message, RosClock, RosTime, Source};
use crate::Loss;
use crate::cloud::{FIELDS, POINT, VelodyneOptions};
use crate::ros::names::{Names, topic_word};
use crate::track::vel::place;
use crate::vel_sensors::{Cloud, Clouds, kind, layout_of, orientation, source};

/// Coordinate frame of the Velodyne scanner.
const VELODYNE: &str = "velodyne";

/// Source of the ROS messages of a VEL log.
pub(super) struct Vel<'a> {
    reader: &'a VelReader,
    clock: RosClock,
    /// For each laser scanner and camera, the name of its coordinate frame, such as `laser_front`.
    /// The names of its topics start with it.
    sensors: HashMap<TopicId, String>,
    clouds: Clouds<'a>,
    /// The next point cloud, if its time has not been reached yet.
    pending: Option<Cloud>,
    /// Times of the packets within a message. `None` if the scanner is unknown.
    packets: Option<PacketClock>,
}

impl<'a> Vel<'a> {
    pub(super) fn new(
        reader: &'a VelReader,
        select: &Select,
        how: &VelodyneOptions,
        clock: RosClock,
        losses: &mut Vec<Loss>,
    ) -> Self {
        let mut names = Names::new(std::iter::empty(), |_| false);
        let sensor = |topic: &rovelog::Topic| {
            let base = match kind(topic)? {
                Kind::Laser => "laser",
                Kind::Image => "camera",
                _ => return None,
            };
            Some((topic.id, names.next(&format!("{base}{}", source(topic)), topic_word).into_owned()))
        };
        let clouds = Clouds::new(reader, select, how).unwrap_or_else(|(topic, why)| {
            losses.push(Loss::new(&topic.name, "", format!("written without point clouds: {why}")));
            Clouds::none(select)
        });
        let model = how.model.map(|model| reader.sensor_named(model));
        let sensor_of_packets = model.as_ref().or(reader.meaning().velodyne.as_ref());
        let packets = sensor_of_packets.map(|sensor| reader.packet_clock(sensor));
        let sensors = reader.topics().iter().filter_map(sensor).collect();
        Self { reader, clock, sensors, clouds, pending: None, packets }
    }

    /// Returns the message for a laser scan. Returns `None` if the angles are unknown.
    fn scan(frame: &str, scan: &LaserRange<'_>, time: RosTime) -> Option<Payload> {
        let (limits, points) = (scan.scanner()?.limits(), scan.points()?);
        let points: Vec<_> = points.collect();
        let (first, last) = (points.first()?.angle, points.last()?.angle);
        let steps = u32::try_from(points.len() - 1).ok()?;
        let increment = (last - first) / f64::from(steps.max(1));
        let ranges = points.iter().map(|point| point.range.unwrap_or(f64::NAN));
        // The time between two ranges and between two scans is unknown.
        let payload = Payload::stamped(time, frame).f32s([first, last, increment, 0.0, 0.0]).f32s(limits);
        Some(payload.len(points.len()).f32s(ranges).len(0))
    }

    /// Returns the message for a GPS fix. Its altitude is above the ellipsoid, as ROS requires.
    fn fix(&self, data: &GpsData, time: RosTime) -> Payload {
        let fix = VelFix { nanos: 0, offset: 0, data: *data };
        let altitude = f64::from(data.height.get()) + f64::from(data.geoid_height.get());
        let altitude = if altitude.is_finite() { altitude } else { f64::NAN };
        let fix = match place(&fix, self.reader.meaning().gps.unit) {
            // The quality 2 is DGPS, 4 and 5 are RTK.
            Some((latitude, longitude)) => Fix {
                status: if matches!(data.quality.get(), 2 | 4 | 5) { 2 } else { 0 },
                position: [latitude, longitude, altitude],
                accuracy: None,
            },
            None => NO_FIX,
        };
        fix.payload(time, "gps")
    }

    /// Returns the message for the orientation and acceleration of the vehicle.
    fn imu(&self, pose: &RobotPose, time: RosTime) -> Payload {
        let unit = self.reader.meaning().pose.unit;
        let acceleration = pose.acceleration.map(|value| f64::from(unit.meters(value.get())));
        // In ROS, the acceleration includes gravity. So all zeros mean that it was not measured.
        let is_measured = unit != AccelerationUnit::GravityRemoved
            && acceleration.iter().all(|value| value.is_finite())
            && acceleration.iter().any(|value| *value != 0.0);
        let orientation = orientation(self.reader, pose);
        imu((time, "base_link"), orientation, None, is_measured.then_some(acceleration))
    }

    /// Returns the message for Velodyne packets, each with its own time.
    fn packets(&self, data: &VelodyneRawData<'_>, nanos: i64, time: RosTime) -> Payload {
        let mut payload = Payload::stamped(time, VELODYNE).len(data.packets.len());
        for (i, packet) in data.packets.iter().enumerate() {
            let at = self.packets.as_ref().map_or(nanos, |clock| clock.at(nanos, data.packets.0, i));
            payload = payload.time(self.clock.time(at).unwrap_or(time)).put(packet.as_bytes());
        }
        payload
    }
}

/// Returns the message for a camera image, with the end of its topic and its type. Returns `None`
/// if the layout of the pixels is unknown.
fn image(frame: &str, image: &ImageData<'_>, time: RosTime) -> Option<(&'static str, &'static str, Payload)> {
    let start = Payload::stamped(time, frame);
    let encoding = match image.encoding() {
        Encoding::File(format) => {
            let payload = start.text(format.name()).bytes(&image.data);
            return Some(("image/compressed", "sensor_msgs/CompressedImage", payload));
        }
        Encoding::Unknown => return None,
        // ROS names this order of the bytes after the FourCC code YUY2.
        Encoding::Yuyv => "yuv422_yuy2",
        encoding => encoding.name(),
    };
    let [width, height, step] = layout_of(image, image.encoding());
    let payload = start.u32(height).u32(width).text(encoding).put([0]).u32(step).bytes(&image.data);
    Some(("image", "sensor_msgs/Image", payload))
}

/// Returns the payload of a `sensor_msgs/PointCloud2`.
fn point_cloud(data: &[u8], time: RosTime) -> Payload {
    // The cloud has one row of points.
    let mut payload = Payload::stamped(time, VELODYNE).u32(1).len(data.len() / POINT).len(FIELDS.len());
    let mut offset = 0;
    for (name, ty) in FIELDS {
        // ROS drivers name the time of a point `time`. The types 4 and 7 are UINT16 and FLOAT32.
        let name = if name == "t" { "time" } else { name };
        payload = payload.text(name).len(offset).put([if ty == Scalar::UInt16 { 4 } else { 7 }]).u32(1);
        offset += ty.size();
    }
    payload.put([0]).len(POINT).len(data.len()).bytes(data).put([1])
}

impl Source for Vel<'_> {
    fn next_message(&mut self, until: Option<i64>) -> Option<Message> {
        loop {
            let cloud = self.pending.take().or_else(|| self.clouds.next())?;
            if until.is_some_and(|until| cloud.nanos > until) {
                self.pending = Some(cloud);
                return None;
            }
            // A cloud without a valid time is counted by its packets, which have the same time.
            if let Some(time) = self.clock.time(cloud.start) {
                let payload = point_cloud(&cloud.data, time).0;
                let (topic, type_name) = ("/velodyne_points".to_owned(), "sensor_msgs/PointCloud2");
                return Some(Message { nanos: cloud.nanos, topic, type_name, payload });
            }
        }
    }

    fn on_record(&mut self, record: &Record<'_>, nanos: i64, out: &mut Vec<Message>) -> bool {
        let (Some(kind), Some(time)) = (kind(record.topic), self.clock.time(nanos)) else { return true };
        let frame = self.sensors.get(&record.topic.id).map_or("", String::as_str);
        let (topic, type_name, payload, is_raw) = match VelPayload::view(kind, &record.payload) {
            Some(VelPayload::Laser(scan)) => match Self::scan(frame, &scan, time) {
                Some(payload) => (format!("/{frame}/scan"), "sensor_msgs/LaserScan", payload, false),
                None => return true,
            },
            Some(VelPayload::Image(data)) => match image(frame, &data, time) {
                Some((end, type_name, payload)) => (format!("/{frame}/{end}"), type_name, payload, false),
                None => return true,
            },
            Some(VelPayload::Gps(data)) => {
                ("/gps/fix".to_owned(), "sensor_msgs/NavSatFix", self.fix(data, time), true)
            }
            Some(VelPayload::Pose(pose)) => {
                ("/imu/data".to_owned(), "sensor_msgs/Imu", self.imu(pose, time), true)
            }
            Some(VelPayload::Velodyne(data)) => {
                let payload = self.packets(&data, nanos, time);
                ("/velodyne_packets".to_owned(), "velodyne_msgs/VelodyneScan", payload, false)
            }
            _ => return true,
        };
        out.push(Message { nanos, topic, type_name, payload: payload.0 });
        is_raw
    }
}
