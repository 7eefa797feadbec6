//! Additional messages for VEL logs: point clouds from the Velodyne scanner, laser scans, images,
//! positions and the orientation of the vehicle.
//!
//! The records of packets, ranges and images are omitted by default. The additional messages
//! contain the same data in a form that viewers can draw.

use std::collections::{BTreeMap, VecDeque};

use rovelog::core::internal::text::count as count_of;
use rovelog::vel_format::gps::{Fix, quality_name};
use rovelog::vel_format::images::Encoding;
use rovelog::vel_format::wire::{ImageData, LaserRange, RobotPose};
use rovelog::vel_format::{Kind, Payload, VelReader};
use rovelog::{FieldType, LogReader as _, Record, Select, Topic, TopicId};

use super::extras::{Extra, Extras, RecordForm};
use super::foxglove::{self, WellKnown};
use super::options::McapOptions;
use crate::cloud::FIELDS;
use crate::pose::{IDENTITY_POSE, Pose};
use crate::track::vel::{course, place};
use crate::vel_sensors::{Cloud, Clouds, kind, layout_of, orientation, source};
use crate::{ExportError, Loss, TimeBase};

/// Coordinate frame of the vehicle.
const VEHICLE: &str = "base_link";
/// Coordinate frame of the world, in which the vehicle moves.
const WORLD: &str = "map";
/// Coordinate frame of the Velodyne scanner.
const VELODYNE: &str = "velodyne";

/// Additional messages of a VEL log.
pub(super) struct Vel<'a> {
    reader: &'a VelReader,
    /// Clock of the log times in the MCAP file.
    base: TimeBase,
    /// True if packets, ranges, images and records of unknown types are written without changes.
    raw: bool,
    /// The laser scanners and cameras, by topic.
    sensors: BTreeMap<TopicId, Sensor>,
    /// Point clouds of the Velodyne scanner that will be written.
    clouds: Clouds<'a>,
    /// Additional messages whose time has not been reached yet.
    pending: VecDeque<Extra>,
    /// For each topic whose records are omitted, the number of records that are in no message, and
    /// the reason.
    hidden: BTreeMap<TopicId, (u64, String)>,
}

/// A laser scanner or camera.
struct Sensor {
    /// Names of the two channels of the sensor. For example, a scanner has `/laser/scan/front` and
    /// `/laser/points/front`, and a camera has `/camera/image/1` and `/camera/image_raw/1`.
    channels: [String; 2],
    /// Name of the sensor's coordinate frame.
    frame: String,
}

impl<'a> Vel<'a> {
    pub(super) fn new(reader: &'a VelReader, select: &Select, options: &McapOptions) -> Self {
        let mut vel = Self {
            reader,
            base: TimeBase::of(reader),
            // If no messages for viewers are added, the records are the only copy of the data, so
            // they must be written.
            raw: options.raw || !options.typed,
            sensors: sensors(reader),
            clouds: Clouds::none(select),
            pending: VecDeque::new(),
            hidden: BTreeMap::new(),
        };
        if options.typed {
            match Clouds::new(reader, select, &options.velodyne) {
                Ok(clouds) => vel.clouds = clouds,
                Err((topic, why)) => {
                    vel.hidden.insert(topic.id, (0, why));
                }
            }
        }
        vel
    }

    /// Adds the next point cloud to the pending messages, together with the pose of the Velodyne
    /// scanner.
    fn next_cloud(&mut self) {
        let Some(Cloud { nanos, start, data }) = self.clouds.next() else { return };
        let at = self.base.place(start).unwrap_or(start);
        let cloud = foxglove::point_cloud(at, VELODYNE, &FIELDS, &data);
        self.pending.extend([
            transform(nanos, at, VEHICLE, VELODYNE, &IDENTITY_POSE),
            Extra::drawn(nanos, "/velodyne/points", WellKnown::PointCloud, cloud),
        ]);
    }

    /// Counts a record whose data is in no message. If the records of the topic are written,
    /// nothing is lost and the record is not counted.
    fn count_hidden(&mut self, topic: &Topic, why: &str) {
        if !self.raw {
            self.hidden.entry(topic.id).or_insert_with(|| (0, why.to_owned())).0 += 1;
        }
    }

    /// Adds the messages for a laser scan.
    fn scan(&mut self, topic: &Topic, scan: &LaserRange<'_>, at: i64, out: &mut Vec<Extra>) {
        let (Some(points), Some(sensor)) = (scan.points(), self.sensors.get(&topic.id)) else {
            let name = scan.sensor_type.text();
            self.count_hidden(topic, &format!("the angles of the sensor {name:?} are unknown"));
            return;
        };
        let points: Vec<_> = points.collect();
        let angle = |point: Option<&rovelog::vel_format::laser::ScanPoint>| point.map_or(0.0, |p| p.angle);
        let ranges: Vec<_> = points.iter().map(|point| point.range.unwrap_or(f64::NAN)).collect();
        let (start, end) = (angle(points.first()), angle(points.last()));
        let scan = foxglove::laser_scan(at, &sensor.frame, start, end, &ranges);
        // Some viewers can only draw point clouds. The scan is therefore written as a laser scan
        // and as a point cloud.
        let mut data = Vec::new();
        for [x, y] in points.iter().filter_map(rovelog::vel_format::laser::ScanPoint::xy) {
            #[expect(clippy::cast_possible_truncation, reason = "ranges are whole millimeters below 100 m")]
            data.extend([x as f32, y as f32, 0.0].into_iter().flat_map(f32::to_le_bytes));
        }
        let cloud = foxglove::point_cloud(at, &sensor.frame, &FIELDS[..3], &data);
        let [scans, clouds] = sensor.channels.clone();
        out.extend([
            transform(0, at, VEHICLE, &sensor.frame, &IDENTITY_POSE),
            Extra::drawn(0, scans, WellKnown::LaserScan, scan),
            Extra::drawn(0, clouds, WellKnown::PointCloud, cloud),
        ]);
    }

    /// Adds the message for a camera image.
    fn image(&mut self, topic: &Topic, image: &ImageData<'_>, at: i64, out: &mut Vec<Extra>) {
        let encoding = image.encoding();
        let (Some(sensor), true) = (self.sensors.get(&topic.id), encoding != Encoding::Unknown) else {
            self.count_hidden(topic, "the image layout is unknown");
            return;
        };
        let [compressed, raw] = sensor.channels.clone();
        out.push(if let Encoding::File(format) = encoding {
            let bytes = foxglove::compressed_image(at, &sensor.frame, &image.data, format.name());
            Extra::drawn(0, compressed, WellKnown::CompressedImage, bytes)
        } else {
            let layout = layout_of(image, encoding);
            let bytes = foxglove::raw_image(at, &sensor.frame, layout, encoding.name(), &image.data);
            Extra::drawn(0, raw, WellKnown::RawImage, bytes)
        });
    }

    /// Returns the message for a GPS fix, or `None` if the position is not valid.
    fn fix(&self, fix: &Fix, at: i64) -> Option<Extra> {
        let (latitude, longitude) = place(fix, self.reader.meaning().gps.unit)?;
        let data = &fix.data;
        let finite = |value: f32| Some(f64::from(value)).filter(|value| value.is_finite());
        let mut metadata = vec![
            ("quality", quality_name(data.quality.get()).to_owned()),
            ("satellites", data.satellites.get().to_string()),
        ];
        for (name, value) in [("hdop", data.hdop), ("vdop", data.vdop), ("pdop", data.pdop)] {
            metadata.extend(finite(value.get()).map(|_| (name, value.get().to_string())));
        }
        let fix = foxglove::Fix {
            latitude,
            longitude,
            altitude: finite(data.height.get()).unwrap_or(0.0),
            // The dilution of precision is not an accuracy in meters, so it is written as metadata
            // instead.
            accuracy: None,
            frame: "gps",
            heading: course(fix).map(|course| f64::from(course).to_radians()),
            metadata: &metadata,
        };
        Some(Extra::drawn(0, "/gps", WellKnown::LocationFix, foxglove::location_fix(at, &fix)))
    }

    /// Adds the messages for the orientation of the vehicle.
    fn pose(&self, pose: &RobotPose, at: i64, out: &mut Vec<Extra>) {
        if let Some(orientation) = orientation(self.reader, pose) {
            let turned = Pose { orientation, ..IDENTITY_POSE };
            let in_frame = foxglove::pose_in_frame(at, WORLD, &turned);
            out.push(transform(0, at, WORLD, VEHICLE, &turned));
            out.push(Extra::drawn(0, "/imu", WellKnown::PoseInFrame, in_frame));
        }
    }
}

/// Returns the message for the pose of a coordinate frame. `at` is the time on the clock of the
/// MCAP file.
fn transform(nanos: i64, at: i64, parent: &str, child: &str, pose: &Pose) -> Extra {
    let bytes = foxglove::frame_transform(at, parent, child, pose);
    Extra::drawn(nanos, "/tf", WellKnown::FrameTransform, bytes)
}

/// Returns whether the messages of a topic have an unknown type. Such messages are only available
/// as bytes.
fn is_unknown(topic: &Topic) -> bool {
    let bytes =
        |schema: &rovelog::Schema| matches!(&schema.fields[..], [field] if field.ty == FieldType::Bytes);
    topic.type_name == topic.name
        && (topic.name.starts_with("0x") || topic.name.contains('@'))
        && topic.schema.as_deref().is_none_or(bytes)
}

/// Returns the laser scanners and cameras of a log. The names of their channels and coordinate
/// frames end with the source in the topic name, so that a sensor has the same names in all logs.
fn sensors(reader: &VelReader) -> BTreeMap<TopicId, Sensor> {
    let sensor = |topic: &Topic| {
        let (channels, frame) = match kind(topic)? {
            Kind::Laser => (["/laser/scan", "/laser/points"], "laser"),
            Kind::Image => (["/camera/image", "/camera/image_raw"], "camera"),
            _ => return None,
        };
        let source = source(topic);
        let channels = channels.map(|base| format!("{base}{source}"));
        Some((topic.id, Sensor { channels, frame: format!("{frame}{source}") }))
    };
    reader.topics().iter().filter_map(sensor).collect()
}

impl Extras for Vel<'_> {
    fn profile(&self) -> &'static str {
        "vel"
    }

    fn record_form(&self, topic: &Topic) -> RecordForm {
        match kind(topic) {
            Some(Kind::Velodyne | Kind::Laser | Kind::Image) if !self.raw => RecordForm::Omitted,
            None if is_unknown(topic) && self.raw => RecordForm::Bytes,
            None if is_unknown(topic) => RecordForm::Omitted,
            _ => RecordForm::Typed,
        }
    }

    fn channel_name(&self, topic: &Topic) -> String {
        match kind(topic) {
            Some(Kind::Obd) => "/obd".to_owned(),
            None if is_unknown(topic) => format!("/vel/{}", topic.name),
            _ => topic.name.clone(),
        }
    }

    fn messages(&self, _from: Option<i64>) -> Vec<Extra> {
        Vec::new()
    }

    fn next_message(&mut self, until: Option<i64>) -> Result<Option<Extra>, ExportError> {
        if self.pending.is_empty() {
            self.next_cloud();
        }
        let due = self.pending.front().is_some_and(|extra| until.is_none_or(|until| extra.nanos <= until));
        Ok(if due { self.pending.pop_front() } else { None })
    }

    fn offset(&self) -> Option<u64> {
        self.clouds.offset
    }

    fn on_record(&mut self, record: &Record<'_>, at: i64, out: &mut Vec<Extra>) {
        let topic = record.topic;
        let Some(kind) = kind(topic) else {
            if is_unknown(topic) {
                self.count_hidden(topic, "the message type is unknown");
            }
            return;
        };
        match Payload::view(kind, &record.payload) {
            Some(Payload::Laser(scan)) => self.scan(topic, &scan, at, out),
            Some(Payload::Image(image)) => self.image(topic, &image, at, out),
            Some(Payload::Pose(pose)) => self.pose(pose, at, out),
            Some(Payload::Gps(data)) => {
                let nanos = record.time.map_or(0, |time| time.nanos);
                out.extend(self.fix(&Fix { nanos, offset: record.offset, data: *data }, at));
            }
            Some(Payload::Velodyne(_)) => {
                if !self.raw
                    && let Some(hidden) = self.hidden.get_mut(&topic.id)
                {
                    hidden.0 += 1;
                }
            }
            _ => {}
        }
    }

    fn losses(&self) -> Vec<Loss> {
        let topics = self.reader.topics();
        let some = self.hidden.iter().filter(|(_, (count, _))| *count > 0);
        some.map(|(id, (count, why))| {
            Loss::new(
                &topics[id.index()].name,
                "",
                format!("{} left out: {why}; --raw keeps the bytes", count_of(*count, "record")),
            )
        })
        .collect()
    }

    /// Returns the conventions that were assumed for the numbers of the log, such as the unit of
    /// angles.
    fn info(&self) -> BTreeMap<String, String> {
        self.reader.choices().into_iter().map(|choice| (choice.what.to_owned(), choice.choice)).collect()
    }
}
