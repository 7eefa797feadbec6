//! Writes the records of ROS bags, either unchanged or converted to ROS 2. Also writes the ROS 2
//! messages of other logs.

use std::collections::BTreeMap;

use ::mcap::records::MessageHeader;
use rovelog::rosbag12::{BagReader, Publisher};
use rovelog::{LogReader as _, Record, Topic};

use super::file::{File, sequence};
use super::options::RosForm;
use crate::ros::cdr::CompiledType;
use crate::ros::convert::{RosTime, Sink};
use crate::ros::{ByPublisher, ExportedTopic, ExportedType, ros2, written_name};
use crate::{ExportError, Loss};

/// Note for the user about bags that are converted to ROS 2.
const NO_SEQ: &str = "the field Header.seq is left out, because ROS 2 headers do not have it";

/// State while the records of a ROS bag are exported.
pub(super) struct Ros<'a> {
    bag: &'a BagReader,
    form: RosForm,
    /// The encoding of the records of each topic. `None` before the first record of the topic.
    topics: Vec<Option<TopicOutput<'a>>>,
    /// Channel of each topic and publisher. Old bags may have several publishers for a topic.
    channels: ByPublisher<u16>,
    /// Buffer for messages that are converted to ROS 2.
    buffer: Vec<u8>,
}

/// The encoding of the records of a topic.
enum TopicOutput<'a> {
    /// The records become messages with a schema.
    Typed(Messages<'a>),
    /// The records become bytes without a schema.
    Bytes(Bytes),
    /// The records are not written. The loss states the reason.
    Skipped(Loss),
}

/// A topic whose type is unknown, so that its records become bytes without a schema.
struct Bytes {
    /// Name of the topic's channel.
    name: String,
    /// Metadata of the topic's channel.
    metadata: BTreeMap<String, String>,
    losses: Vec<Loss>,
    /// Number of messages written for the topic.
    count: u64,
}

/// A topic whose type is known, so that its records become messages with a schema.
struct Messages<'a> {
    exported: ExportedTopic<'a>,
    /// Number of the topic's schema.
    schema: u16,
    /// Compiled conversion to ROS 2. `None` if messages are not converted.
    code: Option<CompiledType>,
    tally: Tally,
}

/// Numbers of messages and values of a topic that are lost or incomplete, by reason.
#[derive(Default)]
struct Tally {
    /// Number of messages that end inside a field.
    truncated: u64,
    /// Number of messages that do not fit the definition of their type.
    misfits: u64,
    /// Number of messages with bytes after their last field.
    surplus: u64,
    /// Number of times and durations that ROS 2 cannot represent.
    times: u64,
}

impl Tally {
    fn losses(&self, topic: &Topic) -> impl Iterator<Item = Loss> {
        let counts = [
            (self.truncated, "record", "cannot be decoded"),
            (self.misfits, "record", "cannot be read with the only known definition"),
            (self.surplus, "record", "with bytes after the last field, which ROS 2 does not allow"),
            (self.times, "time", "with more seconds than fit into the 31 bits of ROS 2"),
        ];
        counts.into_iter().filter_map(|(count, noun, why)| Loss::counted(&topic.name, count, noun, why))
    }
}

impl<'a> Ros<'a> {
    pub(super) fn new(bag: &'a BagReader, form: RosForm) -> Self {
        let topics = bag.topics().iter().map(|_| None).collect();
        Self { bag, form, topics, channels: ByPublisher::new(bag), buffer: Vec::new() }
    }

    /// Writes a record with the given log time and publish time.
    pub(super) fn record(
        &mut self,
        file: &mut File<'_, 'a>,
        record: &Record<'a>,
        (log_time, publish_time): (u64, u64),
    ) -> Result<(), ExportError> {
        let Self { bag, form, topics, channels, buffer } = self;
        let slot = &mut topics[record.topic.id.index()];
        if slot.is_none() {
            *slot = Some(TopicOutput::start(bag, *form, record.topic, file)?);
        }
        let Messages { exported, schema, code, tally } = match slot {
            Some(TopicOutput::Typed(messages)) => messages,
            Some(TopicOutput::Bytes(bytes)) => {
                bytes.count += 1;
                let channel_id = *channels.of(bag, record, |publisher| {
                    let metadata = [bytes.metadata.clone(), of_publisher(publisher)].into_iter().flatten();
                    file.writer.add_channel(0, &bytes.name, "ros1", &metadata.collect())
                })?;
                let header = MessageHeader { channel_id, sequence: sequence(record), log_time, publish_time };
                return file.write(&header, &record.payload);
            }
            Some(TopicOutput::Skipped(_)) | None => return Ok(()),
        };
        if !exported.accepts(&record.payload) {
            tally.misfits += 1;
            return Ok(());
        }
        let converted = if let Some(code) = code {
            let Ok(losses) = code.convert(&record.payload, buffer) else {
                tally.truncated += 1;
                return Ok(());
            };
            tally.surplus += u64::from(losses.surplus);
            tally.times += losses.times;
            Some(&buffer[..])
        } else {
            None
        };
        let encoding = if converted.is_some() { "cdr" } else { "ros1" };
        let channel_id = *channels.of(bag, record, |publisher| {
            file.writer.add_channel(*schema, &exported.topic, encoding, &metadata(exported, publisher))
        })?;
        let header = MessageHeader { channel_id, sequence: sequence(record), log_time, publish_time };
        file.write(&header, converted.unwrap_or(&record.payload))
    }

    /// Returns the losses, and notes about intended differences from the bag.
    pub(super) fn outcome(self) -> (Vec<Loss>, Vec<String>) {
        let (mut losses, mut notes) = (Vec::new(), Vec::new());
        for (topic, output) in self.bag.topics().iter().zip(self.topics) {
            match output {
                Some(TopicOutput::Typed(messages)) => {
                    if self.form == RosForm::Ros2 && messages.exported.ty.has_header() && notes.is_empty() {
                        notes.push(NO_SEQ.to_owned());
                    }
                    losses.extend(messages.exported.losses);
                    losses.extend(messages.tally.losses(topic));
                }
                Some(TopicOutput::Bytes(bytes)) => {
                    notes.push(bytes.note(topic));
                    losses.extend(bytes.losses);
                }
                Some(TopicOutput::Skipped(loss)) => losses.push(loss),
                None => {}
            }
        }
        (losses, notes)
    }
}

impl<'a> TopicOutput<'a> {
    fn start(
        bag: &'a BagReader,
        form: RosForm,
        topic: &Topic,
        file: &mut File<'_, 'a>,
    ) -> Result<Self, ExportError> {
        let exported = match ExportedTopic::new(bag, topic, form != RosForm::Recorded) {
            Ok(exported) => exported,
            // Without a definition, a message cannot be converted to ROS 2.
            Err(loss) if form == RosForm::Ros2 => return Ok(Self::Skipped(loss)),
            Err(_) => return Ok(Self::Bytes(Bytes::new(bag, topic))),
        };
        let (schema, code) = if form == RosForm::Ros2 {
            (ros2_schema(file, &exported.ty)?, Some(CompiledType::new(&exported.ty)))
        } else {
            (file.writer.add_schema(exported.ty.type_name(), "ros1msg", exported.text().as_bytes())?, None)
        };
        Ok(Self::Typed(Messages { exported, schema, code, tally: Tally::default() }))
    }
}

impl Bytes {
    fn new(bag: &BagReader, topic: &Topic) -> Self {
        let (name, losses) = written_name(bag, topic);
        let md5 = String::from_utf8_lossy(&bag.connections()[topic.id.index()].md5).into_owned();
        let known = [("topic", name.clone()), ("type", topic.type_name.clone()), ("md5sum", md5)];
        let metadata = known.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        Self { name, metadata, losses, count: 0 }
    }

    /// Returns the note that the messages have no schema.
    fn note(&self, topic: &Topic) -> String {
        let Self { count, .. } = self;
        let what = match topic.type_name.as_str() {
            "*" => "the bag does not name its message type".to_owned(),
            name => format!("the bag has no definition of {name}"),
        };
        let messages = if *count == 1 { "message is" } else { "messages are" };
        format!("{}: {what}, so {count} {messages} written as bytes without a schema", topic.name)
    }
}

/// Returns the number of the ROS 2 schema for a type.
fn ros2_schema(file: &mut File<'_, '_>, ty: &ExportedType<'_>) -> Result<u16, ExportError> {
    let (name, text) = (ros2::type_name(ty.type_name()), ros2::definition(ty));
    file.writer.add_schema(&name, "ros2msg", text.as_bytes())
}

/// A topic with converted messages.
struct Ros2Topic {
    channel: u16,
    /// Compiled conversion of its messages to ROS 2.
    code: CompiledType,
    /// Sequence number of the next message.
    sequence: u32,
}

/// Writes the messages that are made from VEL and ULog logs, after conversion to ROS 2.
pub(super) struct Ros2Sink<'f, 'p, 'a> {
    file: &'f mut File<'p, 'a>,
    topics: Vec<Ros2Topic>,
    /// Buffer for converted messages.
    buffer: Vec<u8>,
}

impl<'f, 'p, 'a> Ros2Sink<'f, 'p, 'a> {
    pub(super) fn new(file: &'f mut File<'p, 'a>) -> Self {
        Self { file, topics: Vec::new(), buffer: Vec::new() }
    }
}

impl Sink for Ros2Sink<'_, '_, '_> {
    fn is_ros2(&self) -> bool {
        true
    }

    fn topic(&mut self, name: &str, ty: &ExportedType<'_>) -> Result<usize, ExportError> {
        let schema = ros2_schema(self.file, ty)?;
        let channel = self.file.writer.add_channel(schema, name, "cdr", &BTreeMap::new())?;
        self.topics.push(Ros2Topic { channel, code: CompiledType::new(ty), sequence: 0 });
        Ok(self.topics.len() - 1)
    }

    fn message(&mut self, topic: usize, time: RosTime, payload: &[u8]) -> Result<bool, ExportError> {
        let Ros2Topic { channel, code, sequence } = &mut self.topics[topic];
        let converted = code.convert(payload, &mut self.buffer);
        debug_assert!(converted.is_ok_and(|losses| !losses.surplus), "the payload does not fit its type");
        let time = u64::from(time.sec) * 1_000_000_000 + u64::from(time.nsec);
        let header =
            MessageHeader { channel_id: *channel, sequence: *sequence, log_time: time, publish_time: time };
        *sequence = sequence.wrapping_add(1);
        self.file.write(&header, &self.buffer)?;
        Ok(converted.is_ok())
    }
}

/// Returns the metadata for the channel of a topic and publisher.
fn metadata(exported: &ExportedTopic<'_>, publisher: &Publisher) -> BTreeMap<String, String> {
    let known = [("topic", exported.topic.clone()), ("md5sum", exported.md5().into_owned())];
    let known = known.into_iter().map(|(key, value)| (key.to_owned(), value));
    known.chain(of_publisher(publisher)).collect()
}

/// Returns the metadata about a publisher.
fn of_publisher(publisher: &Publisher) -> BTreeMap<String, String> {
    let known =
        [("callerid", publisher.callerid.clone()), ("latching", publisher.latching.then(|| "1".to_owned()))];
    known.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}
