//! Reads console lines, that is, messages of type `roslib/Log` or of the newer type
//! `rosgraph_msgs/Log`.

use rovelog_core::{LogReader, Select, Text, Timestamp, Value};

use crate::message::nanos;
use crate::reader::BagReader;

/// Message types that contain console lines.
const TYPES: [&str; 2] = ["roslib/Log", "rosgraph_msgs/Log"];

/// Returns the console lines of a bag in file order.
pub(crate) fn texts(log: &BagReader) -> impl Iterator<Item = Text> + Send + '_ {
    let is_log: Vec<bool> = log.topics().iter().map(|topic| TYPES.contains(&&*topic.type_name)).collect();
    let names = log.topics().iter().filter(|topic| is_log[topic.id.index()]).map(|topic| topic.name.clone());
    let select = Select::topics(names.collect::<Vec<_>>());
    log.in_file_order(&select).filter(move |record| is_log[record.topic.id.index()]).filter_map(|record| {
        let value = record.value().ok()?;
        line(&value, record.time, record.offset)
    })
}

fn number(value: &Value) -> Option<i64> {
    match *value {
        Value::Int(n, _) => Some(n),
        Value::UInt(n, _) => i64::try_from(n).ok(),
        _ => None,
    }
}

/// Converts a message into a console line. The time of the line is the time in the message header.
/// If the header has no time, the time of recording is used.
fn line(value: &Value, recorded: Option<Timestamp>, offset: u64) -> Option<Text> {
    let level = syslog(number(value.get("level")?)?);
    let stamp = value.get("header").and_then(|header| header.get("stamp"));
    let part =
        |name| stamp.and_then(|stamp| stamp.get(name)).and_then(number).and_then(|n| u32::try_from(n).ok());
    // A time of 0 in a ROS message header means that the time was not set.
    let own = part("sec").zip(part("nsec")).map(|(sec, nsec)| nanos(sec, nsec)).filter(|nanos| *nanos > 0);
    let time = recorded.map(|time| own.map_or(time, |nanos| Timestamp::new(nanos, time.clock)));
    let text = |name| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let line = Text::new(time, offset, level, text("msg"));
    let source = text("name");
    Some(if source.is_empty() { line } else { line.with_source(source) })
}

/// Converts a ROS level (DEBUG=1, INFO=2, WARN=4, ERROR=8, FATAL=16) to a syslog level.
fn syslog(level: i64) -> u8 {
    match level {
        16.. => 2,
        8..16 => 3,
        4..8 => 4,
        2..4 => 6,
        _ => 7,
    }
}
