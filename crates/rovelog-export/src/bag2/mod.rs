//! Writes ROS bags V2.0, the only version that ROS has read since 2010.
//!
//! Bags of any version are converted to V2.0, and their payloads are copied byte for byte. VEL and
//! ULog logs are converted to ROS messages. The messages are written in time order. The output does
//! not have to be seekable, so it may be a pipe.

use std::io::Write;

use rovelog::core::backend::Backend as _;
pub use rovelog::rosbag12::v2::Compression;
use rovelog::rosbag12::v2::wire::ConnectionHeader;
use rovelog::rosbag12::v2::{self, Writer};
use rovelog::rosbag12::{BagReader, Publisher};
use rovelog::{AnyLog, LogReader as _, Select};

use crate::cloud::VelodyneOptions;
use crate::ros::convert::{self, RosTime, Sink};
use crate::ros::{ByPublisher, ExportedTopic, ExportedType};
use crate::{ExportError, Exported, Loss};

/// Options for writing a bag.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Bag2Options {
    /// For bags: true to use the current names of message types that were renamed without other changes.
    pub modernize: bool,
    /// Compression of the chunks.
    pub compression: Compression,
    /// For VEL logs: properties of the Velodyne scanner that the log does not contain.
    pub velodyne: VelodyneOptions,
}

/// Numbers of messages of one topic that cannot be written, by reason.
#[derive(Clone, Copy, Default)]
struct Tally {
    /// Number of messages that do not fit the definition of their type.
    misfits: u64,
    /// Number of messages with a time that a bag cannot represent.
    out_of_range: u64,
    /// Number of messages that exceed the maximum size of a record.
    too_large: u64,
}

/// Writes the selected records of a bag, a VEL log or a ULog as a V2.0 bag.
///
/// # Errors
/// Returns an error if writing to the output fails, the log cannot be read or has another format,
/// or no selected topic of a bag has a definition.
pub fn write(
    log: &AnyLog,
    select: &Select,
    options: &Bag2Options,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(u64),
) -> Result<Exported, ExportError> {
    match log {
        AnyLog::Rosbag(bag) => write_bag(bag, select, options, out, progress),
        _ => convert_log(log, select, options, out, progress),
    }
}

/// Writes the records of a VEL log or a ULog as ROS messages.
fn convert_log(
    log: &AnyLog,
    select: &Select,
    options: &Bag2Options,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(u64),
) -> Result<Exported, ExportError> {
    let (size, mut half) = (log.info().size, 0);
    let (done, _) = v2::write(out, options.compression, |writer| {
        let mut half_progress = |at| progress(u64::midpoint(half, at));
        let done = convert::write(log, select, &options.velodyne, writer, &mut half_progress);
        half = size;
        done
    })?;
    Ok(done)
}

/// Writes converted messages to a bag. The number of a topic is the id of its connection.
impl Sink for Writer<'_> {
    fn is_ros2(&self) -> bool {
        false
    }

    fn topic(&mut self, name: &str, ty: &ExportedType<'_>) -> Result<usize, ExportError> {
        let (sum, text) = (ty.types.sum_v2().0, ty.types.full_text());
        let header = ConnectionHeader {
            callerid: None,
            latching: None,
            md5sum: Some(sum.as_bytes()),
            message_definition: Some(&text),
            topic: Some(name.as_bytes()),
            ty: Some(ty.type_name().as_bytes()),
        };
        Ok(self.connect(name.as_bytes(), &header.to_data())? as usize)
    }

    fn message(&mut self, topic: usize, time: RosTime, payload: &[u8]) -> Result<bool, ExportError> {
        let id = u32::try_from(topic).unwrap_or(u32::MAX);
        Ok(Writer::message(self, id, (time.sec, time.nsec), payload)?)
    }
}

fn write_bag(
    bag: &BagReader,
    select: &Select,
    options: &Bag2Options,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(u64),
) -> Result<Exported, ExportError> {
    let selected =
        bag.topics().iter().map(|topic| (select.keeps_topic(topic) && topic.count > 0).then_some(topic));
    let exported_topics: Vec<_> =
        selected.map(|topic| topic.map(|topic| ExportedTopic::new(bag, topic, options.modernize))).collect();
    let mut found = exported_topics.iter().flatten();
    if found.clone().count() > 0 && found.all(Result::is_err) {
        let why = "no selected topic has a definition, but a V2.0 bag requires one";
        return Err(ExportError::Format(why.to_owned()));
    }
    // The bag header contains the offset of the index, which follows the messages. For a bag that
    // is too large to be built in memory, the writer calls this closure twice: first to compute the
    // offset, then to write the messages. Each call reports half of the progress.
    let (size, mut half) = (bag.info().size, 0);
    let ((messages, tallies), _) = v2::write(out, options.compression, |writer| {
        let written = write_messages(bag, select, &exported_topics, writer, &mut |at| {
            progress(u64::midpoint(half, at));
        });
        half = size;
        written
    })?;
    Ok(Exported { messages, losses: losses(bag, &exported_topics, &tallies), notes: Vec::new() })
}

/// The export status of each topic of the bag. An entry is `None` if the topic is not selected. It
/// is an error if the message type is unknown, because all messages of the topic are then lost.
type ExportedTopics<'a> = [Option<Result<ExportedTopic<'a>, Loss>>];

/// Writes the selected messages. Returns the number of messages written. For each topic, it also
/// returns the numbers of messages that could not be written.
fn write_messages<'a>(
    bag: &BagReader,
    select: &Select,
    exported_topics: &'a ExportedTopics<'a>,
    writer: &mut Writer<'_>,
    progress: &mut dyn FnMut(u64),
) -> Result<(u64, Vec<Tally>), ExportError> {
    let mut connections = ByPublisher::new(bag);
    let mut tallies = vec![Tally::default(); exported_topics.len()];
    let mut messages = 0;
    for record in bag.intact_records(select) {
        let record = record?;
        progress(record.offset);
        let topic = record.topic.id.index();
        let Some(Ok(exported)) = &exported_topics[topic] else { continue };
        let tally = &mut tallies[topic];
        let nanos = record.time.map_or(0, |time| time.nanos);
        let (sec, nsec) = (nanos.div_euclid(1_000_000_000), nanos.rem_euclid(1_000_000_000));
        let (Ok(sec), Ok(nsec)) = (u32::try_from(sec), u32::try_from(nsec)) else {
            tally.out_of_range += 1;
            continue;
        };
        if !exported.accepts(&record.payload) {
            tally.misfits += 1;
            continue;
        }
        let id = *connections.of(bag, &record, |publisher| connect(writer, exported, publisher))?;
        if writer.message(id, (sec, nsec), &record.payload)? {
            messages += 1;
        } else {
            tally.too_large += 1;
        }
    }
    Ok((messages, tallies))
}

/// Adds a connection to the output. The connection header repeats the fields that the publisher
/// sent when it connected.
fn connect(
    writer: &mut Writer<'_>,
    exported: &ExportedTopic<'_>,
    publisher: &Publisher,
) -> Result<u32, ExportError> {
    let text = exported.text();
    let header = ConnectionHeader {
        callerid: publisher.callerid.as_ref().map(String::as_bytes),
        latching: publisher.latching.then_some(b"1"),
        md5sum: Some(exported.sum.as_bytes()),
        message_definition: Some(text.as_bytes()),
        topic: Some(exported.topic.as_bytes()),
        ty: Some(exported.ty.type_name().as_bytes()),
    };
    Ok(writer.connect(exported.topic.as_bytes(), &header.to_data())?)
}

/// Returns the losses of all topics, that is, the messages that could not be written.
fn losses(bag: &BagReader, exported_topics: &ExportedTopics<'_>, tallies: &[Tally]) -> Vec<Loss> {
    let mut losses = Vec::new();
    for ((topic, exported), tally) in bag.topics().iter().zip(exported_topics).zip(tallies) {
        match exported {
            Some(Ok(exported)) => {
                losses.extend(exported.losses.iter().cloned());
                losses.extend(exported.contradiction().map(|why| Loss::new(&topic.name, "", why)));
            }
            Some(Err(loss)) => losses.push(loss.clone()),
            None => {}
        }
        for (count, why) in [
            (tally.misfits, "cannot be read with the only known definition"),
            (tally.out_of_range, "left out, because a bag cannot store the time"),
            (tally.too_large, "left out as too large for a bag"),
        ] {
            losses.extend(Loss::counted(&topic.name, count, "record", why));
        }
    }
    losses
}
