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

use std::collections::{BTreeMap, HashMap};

use rovelog::core::internal::layout::FieldKeys;
use rovelog::{AnyLog, Record, Select, Topic};

pub(crate) use self::payload::RosTime;
use self::types::{GeneratedTypes, RecordWriter};
use super::ExportedType;
use super::names::{Names, topic_word};
use crate::cloud::VelodyneOptions;
use crate::provenance::name_and_instance;
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
    topic: String,
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

/// The messages of standard types that are made from the records of a log.
trait Source {
    /// Adds the messages for a record to `out`. Returns true if the record must also be written
    /// with its generated type.
    fn on_record(&mut self, record: &Record<'_>, nanos: i64, out: &mut Vec<Message>) -> bool;
    /// Returns the next message that combines several records, if its time is not after `until`.
    fn next_message(&mut self, _until: Option<i64>) -> Option<Message> {
        None
    }
}

/// Writes the selected records of a VEL or ULog log as ROS messages, in time order.
pub(crate) fn write(
    log: &AnyLog,
    select: &Select,
    velodyne: &VelodyneOptions,
    sink: &mut dyn Sink,
    progress: &mut dyn FnMut(u64),
) -> Result<Exported, ExportError> {
    let is_ros2 = sink.is_ros2();
    // The seconds of a time are unsigned in ROS 1 and signed in ROS 2.
    let max_sec = if is_ros2 { i32::MAX.cast_unsigned() } else { u32::MAX };
    let clock = RosClock { base: TimeBase::of(&**log), max_sec };
    let (mut losses, mut waiting) = (Vec::new(), Vec::new());
    let (mut source, names): (Box<dyn Source + '_>, _) = match log {
        AnyLog::Ulog(reader) => {
            waiting = px4::messages(reader, select.start, &clock, is_ros2);
            (Box::new(px4::Px4::new(reader, clock.clone())?), ("ulog_msgs", "px4"))
        }
        AnyLog::Vel(reader) => {
            let vel = vel::Vel::new(reader, select, velodyne, clock.clone(), &mut losses);
            (Box::new(vel), ("vel_msgs", "vel"))
        }
        _ => {
            let format = log.format().name;
            return Err(ExportError::Format(format!("{format} logs cannot be converted to ROS messages")));
        }
    };
    let mut output = Output::new(log.topics(), names, clock, sink);
    waiting.retain(|message| select.keeps_time(message.nanos));
    waiting.sort_by_key(|message| message.nanos);
    let mut waiting = waiting.into_iter().peekable();
    let (mut now, mut created) = (0, Vec::new());
    for record in log.intact_records(select) {
        let record = record?;
        progress(record.offset);
        // A record without a time gets the time of the previous record.
        now = record.time.map_or(now, |time| time.nanos);
        created.extend(std::iter::from_fn(|| waiting.next_if(|message| message.nanos <= now)));
        created.extend(std::iter::from_fn(|| source.next_message(Some(now))));
        let is_raw = source.on_record(&record, now, &mut created);
        for message in created.drain(..) {
            output.message(&message)?;
        }
        if is_raw {
            output.record(&record, now)?;
        }
    }
    for message in waiting.chain(std::iter::from_fn(|| source.next_message(None))) {
        output.message(&message)?;
    }
    for ((topic, why), lost) in output.losses {
        losses.extend(Loss::counted(&topic, lost, "message", why));
    }
    Ok(Exported { messages: output.messages, losses, notes: Vec::new() })
}

/// The topics and messages of the output.
struct Output<'s> {
    sink: &'s mut dyn Sink,
    clock: RosClock,
    types: GeneratedTypes,
    /// For each topic of the log, the name of the topic to which its records are written. Empty for
    /// topics without records, so that they do not take names.
    names: Vec<String>,
    /// Number of each topic in the output. `None` if ROS cannot express its type.
    numbers: HashMap<String, Option<usize>>,
    /// Number of messages that are lost, by topic and reason.
    losses: BTreeMap<(String, &'static str), u64>,
    /// Number of messages written.
    messages: u64,
}

impl<'s> Output<'s> {
    /// Starts the output. `package` is the package of generated types, and `group` is the first word
    /// in the names of their topics.
    fn new(
        topics: &[Topic],
        (package, group): (&'static str, &str),
        clock: RosClock,
        sink: &'s mut dyn Sink,
    ) -> Self {
        let mut instances: HashMap<&str, usize> = HashMap::new();
        for topic in topics.iter().filter(|topic| topic.count > 0) {
            *instances.entry(name_and_instance(&topic.name).0).or_default() += 1;
        }
        let mut names = Names::new(std::iter::empty(), |_| false);
        let name = |topic: &Topic| {
            if topic.count == 0 {
                return String::new();
            }
            // The only instance of a topic has no number, as in the output of pyulog.
            let name = match name_and_instance(&topic.name) {
                (name, Some("0")) if instances.get(name) == Some(&1) => name,
                _ => &topic.name,
            };
            format!("/{group}/{}", names.next(name, topic_word))
        };
        Self {
            sink,
            clock,
            types: GeneratedTypes::new(package),
            names: topics.iter().map(name).collect(),
            numbers: HashMap::new(),
            losses: BTreeMap::new(),
            messages: 0,
        }
    }

    /// Writes a message of a standard type.
    fn message(&mut self, message: &Message) -> Result<(), ExportError> {
        let type_name = |_: &mut GeneratedTypes| Some(message.type_name.to_owned());
        self.put(&message.topic, message.nanos, &message.payload, type_name)
    }

    /// Writes a record as a message of its generated type.
    fn record(&mut self, record: &Record<'_>, nanos: i64) -> Result<(), ExportError> {
        let topic = record.topic;
        let mut writer = RecordWriter::default();
        let visited = record.fields().and_then(|fields| fields.visit(&FieldKeys, &mut writer));
        if visited.is_err() || writer.has_null {
            self.lose(&topic.name, "cannot be decoded");
            return Ok(());
        }
        let name = self.names[topic.id.index()].clone();
        let schema = topic.schema.as_deref();
        self.put(&name, nanos, &writer.payload, |types| types.add(schema?, 0))
    }

    fn lose(&mut self, topic: &str, why: &'static str) {
        *self.losses.entry((topic.to_owned(), why)).or_default() += 1;
    }

    /// Writes a message. `type_name` is called for the first message of a topic, and returns the
    /// full name of its type, or `None` if ROS cannot express the type.
    fn put(
        &mut self,
        topic: &str,
        nanos: i64,
        payload: &[u8],
        type_name: impl FnOnce(&mut GeneratedTypes) -> Option<String>,
    ) -> Result<(), ExportError> {
        let number = if let Some(number) = self.numbers.get(topic) {
            *number
        } else {
            let types = type_name(&mut self.types).and_then(|name| self.types.resolve(&name));
            let number = types.map(|types| self.sink.topic(topic, &ExportedType::new(&types))).transpose()?;
            self.numbers.insert(topic.to_owned(), number);
            number
        };
        match (number, self.clock.time(nanos)) {
            (None, _) => self.lose(topic, "have a type that ROS cannot express"),
            (_, None) => self.lose(topic, "left out, because ROS cannot represent the time"),
            (Some(number), Some(time)) => {
                if self.sink.message(number, time, payload)? {
                    self.messages += 1;
                } else {
                    self.lose(topic, "left out as too large");
                }
            }
        }
        Ok(())
    }
}
