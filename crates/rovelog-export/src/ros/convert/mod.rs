//! Converts VEL and ULog logs to ROS messages.
//!
//! The messages have standard types, such as `sensor_msgs/Imu`, in the units and axes that ROS
//! requires (REP 103, REP 105 and REP 145). The records of the log are also written as messages of
//! types that are generated from their schemas, unless a standard message contains the same data.
//! docs/reference/export.md lists all conversions.
//!
//! All messages are created in the encoding of ROS 1. The output for ROS 2 converts them like the
//! messages of bags.

mod payload;
mod px4;
mod types;
mod vel;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use rovelog::core::internal::layout::FieldKeys;
use rovelog::core::internal::text::count;
use rovelog::{AnyLog, Record, Select, Topic};

pub(crate) use self::payload::RosTime;
use self::types::{GeneratedTypes, RecordWriter};
use super::ExportedType;
use super::names::{Names, topic_word};
use crate::mcap::VelodyneOptions;
use crate::{ExportError, Exported, Loss, TimeBase};

/// A file to which ROS messages are written.
pub(crate) trait Sink {
    /// Returns true if the file is for ROS 2, which has other types for some messages.
    fn is_ros2(&self) -> bool;
    /// Adds a topic and returns its number.
    fn topic(&mut self, name: &str, ty: &ExportedType<'_>) -> Result<usize, ExportError>;
    /// Writes a ROS 1 message. Returns false if the message cannot be written because it is too
    /// large.
    fn message(&mut self, topic: usize, time: RosTime, payload: &[u8]) -> Result<bool, ExportError>;
}

/// A message of a standard type.
struct Message {
    /// Time at which the message is written, in nanoseconds of the log's clock.
    nanos: i64,
    topic: Cow<'static, str>,
    /// Full name of the type, such as `sensor_msgs/Imu`.
    type_name: &'static str,
    /// Encoded ROS 1 message.
    payload: Vec<u8>,
}

/// Clock of the ROS messages.
#[derive(Clone)]
struct RosClock {
    base: TimeBase,
    /// Maximum number of seconds in a time.
    max_sec: u32,
}

impl RosClock {
    /// Converts a time of the log's clock. Returns `None` if ROS cannot represent the time.
    fn time(&self, nanos: i64) -> Option<RosTime> {
        RosTime::new(self.base.place(nanos)?, self.max_sec)
    }
}

/// The messages of standard types that a log format adds to the records.
trait Source {
    /// Returns the package of the generated types, and the start of the names of their topics.
    fn package(&self) -> (&'static str, &'static str);
    /// Returns the messages that do not come from records, such as console lines, in any order.
    fn messages(&self) -> Vec<Message> {
        Vec::new()
    }
    /// Returns the next message that combines several records, if its time is not after `until`.
    fn next_message(&mut self, _until: Option<i64>) -> Option<Message> {
        None
    }
    /// Adds the messages for a record to `out`. Returns true if the record must also be written
    /// with its generated type.
    fn on_record(&mut self, record: &Record<'_>, nanos: i64, out: &mut Vec<Message>) -> bool;
    /// Returns losses: data of the log that is in no message.
    fn losses(&self) -> Vec<Loss> {
        Vec::new()
    }
}

/// Writes the selected records of a VEL or ULog log as ROS messages, in time order.
pub(crate) fn write(
    log: &AnyLog,
    select: &Select,
    velodyne: &VelodyneOptions,
    sink: &mut dyn Sink,
    progress: &mut dyn FnMut(u64),
) -> Result<Exported<()>, ExportError> {
    // The seconds of a time are unsigned in ROS 1 and signed in ROS 2.
    let max_sec = if sink.is_ros2() { i32::MAX.cast_unsigned() } else { u32::MAX };
    let clock = RosClock { base: TimeBase::of(&**log), max_sec };
    let mut source: Box<dyn Source + '_> = match log {
        AnyLog::Ulog(reader) => Box::new(px4::Px4::new(reader, clock.clone(), sink.is_ros2())?),
        AnyLog::Vel(reader) => Box::new(vel::Vel::new(reader, select, velodyne, clock.clone())),
        _ => {
            let format = log.format().name;
            return Err(ExportError::Format(format!("{format} logs cannot be converted to ROS messages")));
        }
    };
    let mut output = Output::new(log.topics(), source.package(), clock, sink);
    let mut waiting = source.messages();
    waiting.retain(|message| select.keeps_time(message.nanos));
    waiting.sort_by_key(|message| message.nanos);
    let mut waiting = waiting.into_iter().peekable();
    let (mut now, mut created) = (0, Vec::new());
    for record in log.intact_records(select) {
        let record = record?;
        progress(record.offset);
        // A record without a time gets the time of the previous record.
        now = record.time.map_or(now, |time| time.nanos);
        while let Some(message) = waiting.next_if(|message| message.nanos <= now) {
            output.standard(&message)?;
        }
        while let Some(message) = source.next_message(Some(now)) {
            output.standard(&message)?;
        }
        let is_raw = source.on_record(&record, now, &mut created);
        for message in created.drain(..) {
            output.standard(&message)?;
        }
        if is_raw {
            output.record(&record, now)?;
        }
    }
    for message in waiting.chain(std::iter::from_fn(|| source.next_message(None))) {
        output.standard(&message)?;
    }
    let mut losses = source.losses();
    losses.extend(output.losses.into_iter().map(|((topic, why), lost)| {
        Loss::new(&topic, "", format!("{} {why}", count(lost, "message")))
    }));
    Ok(Exported { out: (), messages: output.messages, losses, notes: Vec::new() })
}

/// The topics and messages of the output.
struct Output<'s> {
    sink: &'s mut dyn Sink,
    clock: RosClock,
    types: GeneratedTypes,
    /// Number of each topic of a standard type in the output.
    standard: HashMap<Cow<'static, str>, usize>,
    /// For each topic of the log, its name in the output, and its number after the first record.
    /// The number is `None` if its type cannot be written.
    raw: Vec<(String, Option<Option<usize>>)>,
    writer: RecordWriter,
    /// Number of messages that are lost, by topic and reason.
    losses: BTreeMap<(String, &'static str), u64>,
    /// Number of messages written.
    messages: u64,
}

impl<'s> Output<'s> {
    fn new(
        topics: &[Topic],
        (package, start): (&'static str, &str),
        clock: RosClock,
        sink: &'s mut dyn Sink,
    ) -> Self {
        let mut names = Names::new(std::iter::empty(), |_| false);
        let raw = |topic: &Topic| (format!("{start}{}", names.next(&topic.name, topic_word)), None);
        Self {
            sink,
            clock,
            types: GeneratedTypes::new(package),
            standard: HashMap::new(),
            raw: topics.iter().map(raw).collect(),
            writer: RecordWriter::default(),
            losses: BTreeMap::new(),
            messages: 0,
        }
    }

    fn lose(&mut self, topic: &str, why: &'static str) {
        *self.losses.entry((topic.to_owned(), why)).or_default() += 1;
    }

    /// Writes a message of a standard type.
    fn standard(&mut self, message: &Message) -> Result<(), ExportError> {
        let Message { nanos, topic, type_name, payload } = message;
        let number = match self.standard.get(topic) {
            Some(number) => *number,
            None => {
                let Some(types) = self.types.resolve(type_name) else { return Ok(()) };
                let number = self.sink.topic(topic, &ExportedType::new(&types))?;
                self.standard.insert(topic.clone(), number);
                number
            }
        };
        self.put(number, topic, *nanos, payload)
    }

    /// Writes a record as a message of its generated type.
    fn record(&mut self, record: &Record<'_>, nanos: i64) -> Result<(), ExportError> {
        let topic = record.topic;
        let index = topic.id.index();
        let mut writer = std::mem::take(&mut self.writer);
        writer.payload.clear();
        writer.has_null = false;
        let visited = record.fields().and_then(|fields| fields.visit(&FieldKeys, &mut writer));
        if visited.is_err() || writer.has_null {
            self.lose(&topic.name, "cannot be decoded");
        } else if let Some(number) = self.raw_topic(topic)? {
            let name = self.raw[index].0.clone();
            self.put(number, &name, nanos, &writer.payload)?;
        } else {
            self.lose(&topic.name, "have a type that ROS cannot express");
        }
        self.writer = writer;
        Ok(())
    }

    /// Returns the number of the topic for the records of a topic. Returns `None` if ROS cannot
    /// express its type.
    fn raw_topic(&mut self, topic: &Topic) -> Result<Option<usize>, ExportError> {
        let (name, number) = &mut self.raw[topic.id.index()];
        if let Some(number) = number {
            return Ok(*number);
        }
        let ty = topic.schema.as_ref().and_then(|schema| self.types.add(schema, 0));
        let types = ty.and_then(|name| self.types.resolve(&name));
        let found = types.map(|types| self.sink.topic(name, &ExportedType::new(&types))).transpose()?;
        *number = Some(found);
        Ok(found)
    }

    fn put(&mut self, number: usize, topic: &str, nanos: i64, payload: &[u8]) -> Result<(), ExportError> {
        let Some(time) = self.clock.time(nanos) else {
            self.lose(topic, "left out, because ROS cannot represent the time");
            return Ok(());
        };
        if self.sink.message(number, time, payload)? {
            self.messages += 1;
        } else {
            self.lose(topic, "left out as too large");
        }
        Ok(())
    }
}
