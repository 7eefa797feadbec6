//! PX4 events: what the autopilot told its users, put into words by the definitions that the log
//! carries.
//!
//! Sources: PX4 `msg/versioned/Event.msg`; the events interface of MAVLink (libevents). A log holds
//! the topic `event` and, from v1.13, the definitions as information messages `metadata_events`.
//! Without definitions an event is its id and its arguments.

use std::fmt::Write as _;

use rovelog_core::Timestamp;
use rovelog_core::record::LEVELS;

use super::words::EventText;
use super::{instances, integer, timed_rows};
use crate::UlogReader;
use crate::row::Row;

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When it was sent, on the log's clock.
    pub time: Timestamp,
    /// The offset of its row, from the start of the file.
    pub offset: u64,
    /// Its id: the component in the upper 8 bits, the event within it in the lower 24.
    pub id: u32,
    /// Its number in the sequence of all events; missing numbers are events that were not logged.
    pub sequence: u16,
    /// Its level for the log: 0 emergency to 7 debug as in syslog, 8 protocol, 9 disabled. The
    /// upper half of `log_levels`.
    pub level: u8,
    /// Its level for others on the link. The lower half of `log_levels`.
    pub external_level: u8,
    /// Its arguments as they are in the row, behind each other, little endian.
    pub arguments: Vec<u8>,
    /// Its words; `None` where the log's definitions do not have it.
    pub text: Option<EventText>,
}

impl Event {
    /// Returns the level's name: those of syslog, `protocol` and `disabled`.
    pub fn level_name(&self) -> &'static str {
        match self.level {
            8 => "protocol",
            9 => "disabled",
            level => LEVELS.get(usize::from(level)).copied().unwrap_or("unknown"),
        }
    }

    /// Returns whether it is a message for people: not internal by its level, and not part of a
    /// report.
    pub fn is_message(&self) -> bool {
        self.level < 8 && self.text.as_ref().is_none_or(|text| text.group == "default")
    }

    /// Returns the message; without definitions the id and the arguments that are not just zeros at
    /// the end.
    pub fn message(&self) -> String {
        if let Some(text) = &self.text {
            return text.message.clone();
        }
        let mut message = format!("event {}:{}", self.id >> 24, self.id & 0x00ff_ffff);
        let used = self.arguments.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        for (i, byte) in self.arguments[..used].iter().enumerate() {
            let _ = write!(message, "{}{byte:02x}", if i == 0 { ", arguments " } else { " " });
        }
        message
    }
}

/// The events of a log, and what there was to put them into words.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Events {
    /// In the order of time.
    pub list: Vec<Event>,
    /// Whether the log carries definitions that could be read.
    pub defined: bool,
    /// Why the definitions that the log carries could not be read.
    pub problem: Option<String>,
}

/// Returns all events of a log, of all instances of the topic.
pub fn events(reader: &UlogReader) -> Events {
    let mut events = Events::default();
    for (time, record, row) in timed_rows(reader, &instances(reader, "event")) {
        events.list.extend(event(time, record.offset, &row));
    }
    if !events.list.is_empty() {
        define(reader, &mut events);
    }
    events
}

fn event(time: Timestamp, offset: u64, row: &Row<'_>) -> Option<Event> {
    let levels = u8::try_from(integer(row, "log_levels")?).ok()?;
    let arguments = row.layout().place("arguments").and_then(|place| row.read_array::<u8>(place));
    Some(Event {
        time,
        offset,
        id: u32::try_from(integer(row, "id")?).ok()?,
        sequence: integer(row, "event_sequence").and_then(|n| u16::try_from(n).ok()).unwrap_or(0),
        level: levels >> 4,
        external_level: levels & 0xf,
        arguments: arguments.map(Iterator::collect).unwrap_or_default(),
        text: None,
    })
}

#[cfg(feature = "events")]
fn define(reader: &UlogReader, events: &mut Events) {
    match super::metadata::EventDefinitions::of(reader) {
        Ok(Some(definitions)) => {
            // Reading a message's mark-up costs more than filling it in.
            let mut known = std::collections::HashMap::new();
            for event in &mut events.list {
                let definition = known.entry(event.id).or_insert_with(|| definitions.get(event.id));
                event.text = definition.as_ref().map(|definition| definition.text(&event.arguments));
            }
            events.defined = true;
        }
        Ok(None) => {}
        Err(error) => events.problem = Some(error.to_string()),
    }
}

#[cfg(not(feature = "events"))]
fn define(_: &UlogReader, events: &mut Events) {
    events.problem = Some("built without the feature `events`".to_owned());
}

#[cfg(test)]
mod tests {
    use rovelog_core::Clock;

    use super::*;

    #[test]
    fn without_definitions_an_event_is_its_id_and_arguments() {
        let mut event = Event {
            time: Timestamp::new(0, Clock::Boot),
            offset: 0,
            id: 0x0100_0203,
            sequence: 7,
            level: 4,
            external_level: 6,
            arguments: vec![1, 0, 255, 0, 0],
            text: None,
        };
        assert_eq!(event.message(), "event 1:515, arguments 01 00 ff");
        assert_eq!(event.level_name(), "warning");
        assert!(event.is_message());
        event.arguments.clear();
        event.level = 8;
        assert_eq!(event.message(), "event 1:515");
        assert!(!event.is_message());
        event.level = 15;
        assert_eq!(event.level_name(), "unknown");
    }
}
