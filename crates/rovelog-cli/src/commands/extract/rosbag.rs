//! Extracts the images, point clouds, maps and streams of a ROS bag.

use std::fmt::Write as _;
use std::io::{BufWriter, Write as _};

use rovelog::core::backend::Backend as _;
use rovelog::rosbag12::BagReader;
use rovelog::{LogReader as _, Record, Select, Topic, Value};
use rovelog_export::cloud::ros::{self, CloudReader};
use rovelog_export::pcap::PcapWriter;
use rovelog_export::picture::{self, Bayer};
use rovelog_export::{grid, stream, topic_names};

use super::index::{FileFacts, Names, Row};
use super::streams::Streams;
use super::{Extraction, What};
use crate::failure::{Failure, Status};
use crate::window::Window;

/// A message from which files are extracted.
pub(super) struct Message<'a> {
    topic: &'a Topic,
    value: Value,
    /// Columns of `index.csv` that all files of the message share.
    row: Row,
}

impl Extraction<'_> {
    /// Extracts everything that the user wants from the messages of a bag. Each topic has its own
    /// folder.
    pub(super) fn bag(&mut self, bag: &BagReader, window: &Window) -> Result<(), Failure> {
        let topics: Vec<&Topic> = bag.topics().iter().collect();
        // Names are made from all topics, so that `--only` does not change the name of a folder.
        for (topic, name) in topics.iter().zip(topic_names(&topics)) {
            let Some(what) = What::of_ros_type(&topic.type_name) else { continue };
            let has_streams = stream::is_stream(&topic.type_name) && self.args.wants(What::Streams);
            if !self.args.wants(what) && !has_streams {
                continue;
            }
            let mut streams = Streams::new(&name);
            let mut clouds = None;
            if what == What::Clouds {
                clouds = self.cloud_reader(bag, topic)?;
                if clouds.is_none() {
                    continue;
                }
            }
            let mut names = Names::new(self.args.name, format!("{}/{name}", what.plural()));
            let select = Select::topic(&topic.name).between(window.start, window.end);
            for record in bag.intact_records(&select) {
                let record = record.map_err(Failure::from)?;
                self.context.progress.at(record.offset);
                let done = match record.value() {
                    Ok(value) => {
                        let row = self.ros_row(&record, &value);
                        let message = Message { topic, value, row };
                        match (stream::payload(&topic.type_name, &message.value), &mut clouds) {
                            (Some(payload), _) if has_streams => {
                                streams.append(self, payload, &message.row)?;
                                Ok(())
                            }
                            (payload, _) if payload.is_some() || !self.args.wants(what) => continue,
                            (_, Some(clouds)) => self.bag_cloud(clouds, &message, &mut names)?,
                            _ if what == What::Streams => Err("its format is unknown".to_owned()),
                            _ if what == What::Maps => self.bag_map(&message, &mut names)?,
                            _ => self.bag_image(&message, &mut names)?,
                        }
                    }
                    Err(_) => Err("the message cannot be decoded".to_owned()),
                };
                if let Err(why) = done {
                    self.left_out(what, &record, &why);
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

    /// Lists a file in `index.csv`.
    fn list(&mut self, message: &Message<'_>, file: FileFacts) {
        self.rows.push(Row { file, ..message.row.clone() });
    }

    /// Extracts an image. If the message has no valid image, the inner error is the reason.
    fn bag_image(&mut self, message: &Message<'_>, names: &mut Names) -> Result<Result<(), String>, Failure> {
        let Message { topic, value, row } = message;
        let bayer = if self.args.raw { Bayer::Mosaic } else { Bayer::Color };
        let picture = match picture::of_message(&topic.type_name, value, bayer) {
            Ok(picture) => picture,
            Err(why) => return Ok(Err(why)),
        };
        let file = format!("{}.{}", names.next(row), picture.format.extension());
        self.file(&file, |out| Ok(out.write_all(&picture.bytes)?))?;
        let (width, height) = picture.size.unzip();
        self.list(
            message,
            FileFacts { file, encoding: picture.encoding.into(), width, height, ..FileFacts::default() },
        );
        self.count(What::Images, 1);
        Ok(Ok(()))
    }

    /// Creates the reader for the point clouds of a topic. If the points cannot be computed, returns
    /// an error if the user requested nothing but point clouds, and otherwise `None` with a warning.
    fn cloud_reader(&mut self, bag: &BagReader, topic: &Topic) -> Result<Option<CloudReader>, Failure> {
        match CloudReader::new(bag, topic, &self.args.velodyne.options()?) {
            Ok(reader) => Ok(Some(reader)),
            Err(error) => self.no_points(error.into()).map(|()| None),
        }
    }

    /// Extracts a point cloud. If the message has no valid cloud, the inner error is the reason.
    fn bag_cloud(
        &mut self,
        clouds: &mut CloudReader,
        message: &Message<'_>,
        names: &mut Names,
    ) -> Result<Result<(), String>, Failure> {
        let Message { topic, value, row } = message;
        let cloud = match clouds.read(value) {
            Ok(cloud) => cloud,
            Err(why) => return Ok(Err(why)),
        };
        let mut comment = format!("{} by rovelog {}", topic.name, env!("CARGO_PKG_VERSION"));
        // The times of a Livox sensor's points are counted from this time, which is nowhere else.
        if let Some(Value::UInt(timebase, _)) = value.get("timebase") {
            let _ = write!(comment, ", timebase {timebase} ns");
        }
        self.cloud(&cloud, &comment, row, names)
    }

    /// Extracts a map as an image and its description. If the message has no valid map, the inner
    /// error is the reason.
    fn bag_map(&mut self, message: &Message<'_>, names: &mut Names) -> Result<Result<(), String>, Failure> {
        let map = match grid::of_message(&message.value) {
            Ok(map) => map,
            Err(why) => return Ok(Err(why)),
        };
        let base = names.next(&message.row);
        let image = format!("{base}.pgm");
        self.file(&image, |out| Ok(out.write_all(&map.image)?))?;
        let name = image.rsplit('/').next().unwrap_or_default();
        self.file(&format!("{base}.yaml"), |out| Ok(out.write_all(map.description(name).as_bytes())?))?;
        let (width, height) = (Some(map.width), Some(map.height));
        let facts = FileFacts { encoding: map.mode.into(), width, height, ..FileFacts::default() };
        self.list(message, FileFacts { file: image, ..facts.clone() });
        self.list(message, FileFacts { file: format!("{base}.yaml"), encoding: "yaml".into(), ..facts });
        self.count(What::Maps, 1);
        Ok(Ok(()))
    }

    /// Writes the packets of each Velodyne to a PCAP file, in the form in which they were sent over
    /// the network.
    pub(super) fn bag_packets(&mut self, bag: &BagReader, window: &Window) -> Result<(), Failure> {
        let topics: Vec<&Topic> = bag.topics().iter().collect();
        for (topic, name) in topics.iter().zip(topic_names(&topics)) {
            if topic.type_name != ros::VELODYNE_SCAN {
                continue;
            }
            let select = Select::topic(&topic.name).between(window.start, window.end);
            let (mut first, mut written, mut refused) = (None, 0, Vec::new());
            let file = format!("packets/{name}.pcap");
            self.file(&file, |out| {
                let mut capture = PcapWriter::new(BufWriter::new(out))?;
                for record in bag.intact_records(&select) {
                    let record = record.map_err(Failure::from)?;
                    self.context.progress.at(record.offset);
                    let packets = record.value().map_err(|error| error.to_string());
                    match packets.and_then(|value| Ok((ros::packets(&value)?, value))) {
                        Ok((packets, value)) => {
                            for packet in packets {
                                capture.packet(packet.nanos, &packet.data)?;
                                written += 1;
                            }
                            first.get_or_insert_with(|| self.ros_row(&record, &value));
                        }
                        Err(why) => refused.push((record, why)),
                    }
                }
                Ok(capture.finish().map(drop)?)
            })?;
            self.count(What::Packets, written);
            for (record, why) in refused {
                self.left_out(What::Packets, &record, &why);
            }
            if let Some(row) = first {
                let file = FileFacts { file, encoding: "pcap".into(), ..FileFacts::default() };
                self.rows.push(Row { file, ..row });
            }
        }
        Ok(())
    }

    /// Warns that a message could not be extracted.
    fn left_out(&mut self, what: What, record: &Record<'_>, why: &str) {
        let text = format!(
            "the {} of {} at byte {} cannot be extracted: {why}",
            what.noun(),
            record.topic.name,
            record.offset
        );
        self.context.notices.warn("messages that cannot be extracted", &text);
        self.status = Status::Lost;
    }
}
