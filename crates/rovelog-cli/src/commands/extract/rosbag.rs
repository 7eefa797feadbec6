//! Extracts the images, point clouds, maps and streams of a ROS bag.

use std::fmt::Write as _;
use std::io::Write as _;

use rovelog::core::backend::Backend as _;
use rovelog::rosbag12::BagReader;
use rovelog::{LogReader as _, Record, Select, Topic, Value};
use rovelog_export::cloud::ros::{self, CloudReader};
use rovelog_export::picture::{self, Bayer};
use rovelog_export::{grid, stream, topic_names};

use super::index::{FileFacts, Names, Row};
use super::streams::Streams;
use super::{Extraction, What};
use crate::failure::Failure;
use crate::window::Window;

/// A message from which files are extracted.
pub(super) struct Message<'a> {
    topic: &'a Topic,
    value: Value,
    /// Columns of `index.csv` that are the same for all files of the message.
    row: Row,
}

impl Extraction<'_> {
    /// Extracts everything that the user wants from the messages of a bag. Each topic has its own
    /// folder.
    pub(super) fn bag(&mut self, bag: &BagReader, window: &Window) -> Result<(), Failure> {
        let velodyne = self.args.velodyne.options()?;
        let topics: Vec<&Topic> = bag.topics().iter().collect();
        // Names are made from all topics, so that `--only` does not change the name of a folder.
        for (topic, name) in topics.iter().zip(topic_names(&topics)) {
            let Some(what) = What::of_ros_type(&topic.type_name) else { continue };
            let has_streams = stream::is_stream(&topic.type_name) && self.args.wants(What::Streams);
            if topic.count == 0 || !(self.args.wants(what) || has_streams) {
                continue;
            }
            let mut streams = Streams::new(&name);
            let clouds = (what == What::Clouds).then(|| CloudReader::new(bag, topic, &velodyne)).transpose();
            let mut clouds = match clouds {
                Ok(clouds) => clouds,
                Err(error) => {
                    self.no_points(error.into());
                    continue;
                }
            };
            let mut names = Names::new(self.args.name, format!("{}/{name}", what.plural()));
            let select = Select::topic(&topic.name).between(window.start, window.end);
            for record in bag.intact_records(&select) {
                let record = record.map_err(Failure::from)?;
                self.context.progress.at(record.offset);
                let value = record.value().map_err(|_| "the message cannot be decoded".to_owned());
                let row = self.ros_row(&record, value.as_ref().unwrap_or(&Value::Null));
                let Some(value) = self.valid(what, &row, value) else { continue };
                let message = Message { topic, value, row };
                match (stream::payload(&topic.type_name, &message.value), &mut clouds) {
                    (Some(payload), _) if has_streams => streams.append(self, payload, &message.row)?,
                    (payload, _) if payload.is_some() || !self.args.wants(what) => {}
                    (_, Some(clouds)) => self.bag_cloud(clouds, &message, &mut names)?,
                    _ if what == What::Streams => {
                        let format = message.value.get("format").and_then(Value::as_str).unwrap_or_default();
                        let unknown = format!("its format {format:?} is unknown");
                        self.valid(what, &message.row, Err::<(), _>(unknown));
                    }
                    _ if what == What::Maps => self.bag_map(&message, &mut names)?,
                    _ => self.bag_image(&message, &mut names)?,
                }
            }
            streams.finish(self)?;
        }
        Ok(())
    }

    /// Returns the columns of `index.csv` that all files of a message share.
    fn ros_row(&self, record: &Record<'_>, value: &Value) -> Row {
        // `foxglove_msgs/CompressedVideo` has the fields of a header itself.
        let header = value.get("header").unwrap_or(value);
        let stamp = header.get("stamp").or_else(|| header.get("timestamp"));
        Row {
            t_ns: record.time.map_or(0, |time| time.nanos),
            time: self.times.machine(record.time),
            stamp_ns: stamp.and_then(ros::nanos),
            topic: record.topic.name.clone(),
            frame_id: header.get("frame_id").and_then(Value::as_str).map(str::to_owned),
            offset: record.offset,
            ..Row::default()
        }
    }

    /// Extracts an image.
    fn bag_image(&mut self, message: &Message<'_>, names: &mut Names) -> Result<(), Failure> {
        let Message { topic, value, row } = message;
        let bayer = if self.args.raw { Bayer::Mosaic } else { Bayer::Color };
        let picture = picture::of_message(&topic.type_name, value, bayer);
        let Some(picture) = self.valid(What::Images, row, picture) else { return Ok(()) };
        let file = format!("{}.{}", names.next(row), picture.format.extension());
        self.file(&file, |out| Ok(out.write_all(&picture.bytes)?))?;
        let (width, height) = picture.size.unzip();
        let encoding = picture.encoding.into();
        self.list(row, FileFacts { file, encoding, width, height, ..FileFacts::default() });
        self.count(What::Images, 1);
        Ok(())
    }

    /// Extracts a point cloud.
    fn bag_cloud(
        &mut self,
        clouds: &mut CloudReader,
        message: &Message<'_>,
        names: &mut Names,
    ) -> Result<(), Failure> {
        let Message { topic, value, row } = message;
        let Some(cloud) = self.valid(What::Clouds, row, clouds.read(value)) else { return Ok(()) };
        let mut comment = format!("{} by rovelog {}", topic.name, env!("CARGO_PKG_VERSION"));
        // The times of a Livox sensor's points are counted from this time, which is nowhere else.
        if let Some(Value::UInt(timebase, _)) = value.get("timebase") {
            let _ = write!(comment, ", timebase {timebase} ns");
        }
        self.cloud(&cloud, &comment, row, names)
    }

    /// Extracts a map as an image and its description.
    fn bag_map(&mut self, message: &Message<'_>, names: &mut Names) -> Result<(), Failure> {
        let Message { value, row, .. } = message;
        let Some(map) = self.valid(What::Maps, row, grid::of_message(value)) else { return Ok(()) };
        let base = names.next(row);
        let (image, description) = (format!("{base}.pgm"), format!("{base}.yaml"));
        let name = image.rsplit('/').next().unwrap_or_default();
        self.file(&image, |out| Ok(out.write_all(&map.image)?))?;
        self.file(&description, |out| Ok(out.write_all(map.description(name).as_bytes())?))?;
        for (file, encoding) in [(image, map.mode), (description, "yaml")] {
            let (width, height) = (Some(map.width), Some(map.height));
            self.list(
                row,
                FileFacts { file, encoding: encoding.into(), width, height, ..FileFacts::default() },
            );
        }
        self.count(What::Maps, 1);
        Ok(())
    }
}
