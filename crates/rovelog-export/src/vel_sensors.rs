//! Sensor data of VEL logs, in the form that exports to MCAP and ROS need.

use rovelog::vel_format::images::Encoding;
use rovelog::vel_format::velodyne::Revolutions;
use rovelog::vel_format::wire::{ImageData, RobotPose};
use rovelog::vel_format::{Kind, VelReader};
use rovelog::{LogReader as _, Select, Topic};

use crate::cloud::{self, POINT, VelodyneOptions};
use crate::pose::length;

/// Returns the type of a topic's messages, or `None` if the log format does not define it.
pub(crate) fn kind(topic: &Topic) -> Option<Kind> {
    Kind::ALL.into_iter().find(|kind| kind.name() == topic.type_name)
}

/// Returns the source of a topic, such as `/front` for the topic `LaserRange2DDataM/front`. Returns
/// an empty text if the topic has no source.
pub(crate) fn source(topic: &Topic) -> &str {
    topic.name.strip_prefix(&*topic.type_name).unwrap_or_default()
}

/// Returns the orientation of a pose as a quaternion in the order w, x, y, z. Returns `None` if it
/// is not a rotation, that is, if its length is not about 1. Viewers reject all coordinate frames
/// if the quaternion of one frame is not a rotation.
pub(crate) fn orientation(reader: &VelReader, pose: &RobotPose) -> Option<[f64; 4]> {
    let orientation = reader.meaning().pose.quaternion(pose).map(f64::from);
    ((length(orientation) - 1.0).abs() <= 0.05).then_some(orientation)
}

/// Returns the width and height of a raw image in pixels, and the size of a row in bytes.
pub(crate) fn layout_of(image: &ImageData<'_>, encoding: Encoding) -> [u32; 3] {
    let [width, height] = [image.width, image.height].map(|n| u32::try_from(n.get()).unwrap_or(0));
    let pixel = match encoding {
        Encoding::Yuyv => 2,
        Encoding::Rgb => 3,
        _ => 1,
    };
    [width, height, width * pixel]
}

/// The point cloud of one revolution of the Velodyne scanner.
pub(crate) struct Cloud {
    /// Time at which the cloud is written. It never decreases, even if the log is not sorted.
    pub(crate) nanos: i64,
    /// Time of the first point in nanoseconds of the log's clock.
    pub(crate) start: i64,
    /// Points with the fields [`cloud::FIELDS`].
    pub(crate) data: Vec<u8>,
}

/// The point clouds in a log, in time order.
pub(crate) struct Clouds<'a> {
    revolutions: Option<Revolutions<'a>>,
    select: Select,
    /// Offset in the log that the revolutions have reached.
    pub(crate) offset: Option<u64>,
    /// Time of the previous revolution, in nanoseconds of the log's clock.
    last: i64,
}

impl<'a> Clouds<'a> {
    /// Finds the point clouds that are selected. If the packets cannot be converted to points, the
    /// error is the reason. It also contains the topic of the packets.
    pub(crate) fn new(
        reader: &'a VelReader,
        select: &Select,
        how: &VelodyneOptions,
    ) -> Result<Self, (&'a Topic, String)> {
        let packets = reader.topics().iter().find(|topic| kind(topic) == Some(Kind::Velodyne));
        let packets = packets.filter(|topic| select.keeps_topic(topic) && reader.has_packets());
        let sensor = how.model.map(|model| reader.sensor_named(model));
        let revolutions = packets.map(|topic| {
            let found = reader.revolutions(sensor.as_ref(), how.calibration.as_ref(), how.points, 0);
            found.map_err(|error| (topic, error.to_string()))
        });
        let revolutions = revolutions.transpose()?;
        Ok(Self { revolutions, ..Self::none(select) })
    }

    /// Returns no point clouds.
    pub(crate) fn none(select: &Select) -> Self {
        Self { revolutions: None, select: select.clone(), offset: None, last: i64::MIN }
    }
}

impl Iterator for Clouds<'_> {
    type Item = Cloud;

    /// Returns the next point cloud in the selected time range.
    fn next(&mut self) -> Option<Cloud> {
        let revolutions = self.revolutions.as_mut()?;
        while let Some(revolution) = revolutions.next() {
            self.offset = Some(revolution.offset);
            if !self.select.keeps_time(revolution.nanos) {
                continue;
            }
            let mut data = Vec::with_capacity(revolution.points.len() * POINT);
            for point in revolution.points {
                data.extend_from_slice(&cloud::bytes(point));
            }
            // If the log is not sorted, a revolution may be earlier than the previous revolution.
            // Messages must still be written in time order.
            self.last = revolution.nanos.max(self.last);
            return Some(Cloud { nanos: self.last, start: revolution.nanos, data });
        }
        self.revolutions = None;
        None
    }
}
