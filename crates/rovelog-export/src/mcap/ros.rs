//! Records of ROS bags: with their own bytes, or as ROS 2 messages.

use std::collections::BTreeMap;

use ::mcap::records::MessageHeader;
use rovelog::core::text;
use rovelog::rosbag12::{BagReader, Publisher};
use rovelog::{LogReader as _, Record, Topic};

use super::file::{File, sequence};
use super::options::RosForm;
use crate::ros::cdr::Code;
use crate::ros::{ByPublisher, Line, ros2, written_name};
use crate::{ExportError, Loss};

/// Note on all bags that are written for ROS 2.
const NO_SEQ: &str = "Header.seq dropped (ROS 2 headers have none)";

pub(super) struct Ros<'a> {
    bag: &'a BagReader,
    form: RosForm,
    /// State by topic, created at its first record.
    topics: Vec<Option<How<'a>>>,
    channels: ByPublisher<u16>,
    buffer: Vec<u8>,
}

/// Output form of a topic's records.
enum How<'a> {
    Typed(Messages<'a>),
    Bytes(Bytes),
    /// Cannot be written.
    Not(Loss),
}

/// Records of a topic whose type is defined nowhere: bytes without a schema.
struct Bytes {
    /// Name of the channel.
    name: String,
    metadata: BTreeMap<String, String>,
    losses: Vec<Loss>,
    count: u64,
}

/// Conversion of a topic's records to messages.
struct Messages<'a> {
    line: Line<'a>,
    schema: u16,
    /// Conversion to ROS 2.
    code: Option<Code>,
    tally: Tally,
}

#[derive(Default)]
struct Tally {
    cut: u64,
    misfits: u64,
    surplus: u64,
    times: u64,
}

impl<'a> Ros<'a> {
    pub(super) fn new(bag: &'a BagReader, form: RosForm) -> Self {
        let topics = bag.topics().iter().map(|_| None).collect();
        Self { bag, form, topics, channels: ByPublisher::new(bag), buffer: Vec::new() }
    }

    /// Writes a record with `times`, its log time and publish time.
    pub(super) fn record(
        &mut self,
        file: &mut File<'_, 'a>,
        record: &Record<'a>,
        (log_time, publish_time): (u64, u64),
    ) -> Result<(), ExportError> {
        let Self { bag, form, topics, channels, buffer } = self;
        let slot = &mut topics[record.topic.id.index()];
        if slot.is_none() {
            *slot = Some(How::start(bag, *form, record.topic, file)?);
        }
        let Messages { line, schema, code, tally } = match slot {
            Some(How::Typed(messages)) => messages,
            Some(How::Bytes(bytes)) => {
                bytes.count += 1;
                let channel_id = *channels.of(bag, record, |publisher| {
                    let metadata = [bytes.metadata.clone(), of_publisher(publisher)].into_iter().flatten();
                    file.writer.add_channel(0, &bytes.name, "ros1", &metadata.collect())
                })?;
                let header = MessageHeader { channel_id, sequence: sequence(record), log_time, publish_time };
                return file.write_payload(header, record.payload.clone());
            }
            Some(How::Not(_)) | None => return Ok(()),
        };
        if !line.carries(&record.payload) {
            tally.misfits += 1;
            return Ok(());
        }
        let converted = if let Some(code) = code {
            let Ok(left) = code.convert(&record.payload, buffer) else {
                tally.cut += 1;
                return Ok(());
            };
            tally.surplus += u64::from(left.surplus);
            tally.times += left.times;
            Some(&buffer[..])
        } else {
            None
        };
        let encoding = if converted.is_some() { "cdr" } else { "ros1" };
        let channel_id = *channels.of(bag, record, |publisher| {
            file.writer.add_channel(*schema, &line.topic, encoding, &metadata(line, publisher))
        })?;
        let header = MessageHeader { channel_id, sequence: sequence(record), log_time, publish_time };
        match converted {
            Some(data) => file.write(header, data),
            None => file.write_payload(header, record.payload.clone()),
        }
    }

    /// Returns the losses and the intended differences.
    pub(super) fn outcome(self) -> (Vec<Loss>, Vec<String>) {
        let (mut losses, mut notes) = (Vec::new(), Vec::new());
        for (topic, messages) in self.bag.topics().iter().zip(self.topics) {
            let messages = match messages {
                Some(How::Typed(messages)) => messages,
                Some(How::Bytes(bytes)) => {
                    losses.extend(bytes.losses);
                    let what = match topic.type_name.as_str() {
                        "*" => "the bag does not name its type".to_owned(),
                        name => format!("no definition of {name} in the bag"),
                    };
                    let messages = if bytes.count == 1 { "message is" } else { "messages are" };
                    notes.push(format!(
                        "{}: {what}: {} {messages} written as bytes, without a schema",
                        topic.name, bytes.count
                    ));
                    continue;
                }
                Some(How::Not(loss)) => {
                    losses.push(loss);
                    continue;
                }
                None => continue,
            };
            if self.form == RosForm::Ros2 && messages.line.has_header() && notes.is_empty() {
                notes.push(NO_SEQ.to_owned());
            }
            losses.extend(messages.line.losses);
            let tally = messages.tally;
            for (count, noun, why) in [
                (tally.cut, "record", "cannot be decoded"),
                (tally.misfits, "record", "cannot be read by the only definition"),
                (tally.surplus, "record", "with bytes after the last field, which ROS 2 does not allow"),
                (tally.times, "time", "with more seconds than the 31 bits of ROS 2"),
            ] {
                if count > 0 {
                    losses.push(Loss::new(&topic.name, "", format!("{} {why}", text::count(count, noun))));
                }
            }
        }
        (losses, notes)
    }
}

impl<'a> How<'a> {
    fn start(
        bag: &'a BagReader,
        form: RosForm,
        topic: &Topic,
        file: &mut File<'_, 'a>,
    ) -> Result<Self, ExportError> {
        let line = match Line::new(bag, topic, form != RosForm::Recorded) {
            Ok(line) => line,
            // Without a definition there is no ROS 2 form.
            Err(loss) if form == RosForm::Ros2 => return Ok(Self::Not(loss)),
            Err(_) => return Ok(Self::Bytes(Bytes::new(bag, topic))),
        };
        let (schema, code) = if form == RosForm::Ros2 {
            let (name, text) = (ros2::type_name(&line.type_name), ros2::definition(&line));
            (file.writer.add_schema(&name, "ros2msg", text.as_bytes())?, Some(Code::new(&line)))
        } else {
            (file.writer.add_schema(&line.type_name, "ros1msg", line.text().as_bytes())?, None)
        };
        Ok(Self::Typed(Messages { line, schema, code, tally: Tally::default() }))
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
}

/// Returns the metadata of a connection.
fn metadata(line: &Line<'_>, publisher: &Publisher) -> BTreeMap<String, String> {
    let known = [("topic", line.topic.clone()), ("md5sum", line.md5().into_owned())];
    let known = known.into_iter().map(|(key, value)| (key.to_owned(), value));
    known.chain(of_publisher(publisher)).collect()
}

/// Returns the metadata of a publisher.
fn of_publisher(publisher: &Publisher) -> BTreeMap<String, String> {
    let known =
        [("callerid", publisher.callerid.clone()), ("latching", publisher.latching.then(|| "1".to_owned()))];
    known.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}
