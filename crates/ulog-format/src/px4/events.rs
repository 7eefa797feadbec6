//! PX4 events, which are messages of the autopilot to its users.
//!
//! The rows of the topic `event` contain only the id and the arguments of an event. The texts are
//! in the definitions, which logs contain since PX4 1.13 as multi information messages with the
//! name `metadata_events`. Without definitions, only the id and the arguments are shown.
//!
//! The sources are PX4 `msg/versioned/Event.msg` and the MAVLink events interface (libevents).

use std::fmt::Write as _;

use rovelog_core::Timestamp;
use rovelog_core::record::LEVELS;

use super::words::EventText;
use super::{TimedRow, instances, integer, timed_rows};
use crate::UlogReader;

/// An event that PX4 has logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Time of the event on the log's clock.
    pub time: Timestamp,
    /// Offset in the file of the row with the event.
    pub offset: u64,
    /// Id of the event. The upper 8 bits are the number of the component that sent the event. The
    /// lower 24 bits are the number of the event within this component.
    pub id: u32,
    /// Sequence number of the event. If a number is missing in the log, an event was not logged.
    pub sequence: u16,
    /// Severity in the log of the vehicle, which is the upper half of `log_levels`. It ranges from
    /// 0 (emergency) to 7 (debug) as in syslog, and can also be 8 (protocol) or 9 (disabled).
    pub level: u8,
    /// Severity for ground stations, which is the lower half of `log_levels`. The numbers are the
    /// same as in [`level`](Self::level).
    pub external_level: u8,
    /// The encoded arguments of the event, without gaps and in little-endian order.
    pub arguments: Vec<u8>,
    /// Name, group and message of the event. `None` if the log does not contain a definition of the
    /// event.
    pub text: Option<EventText>,
}

impl Event {
    /// Returns the name of the internal level. This is a name from syslog, `protocol` or
    /// `disabled`.
    pub fn level_name(&self) -> &'static str {
        match self.level {
            8 => "protocol",
            9 => "disabled",
            level => LEVELS.get(usize::from(level)).copied().unwrap_or("unknown"),
        }
    }

    /// Returns `true` if the event is a message for users. Events with the level `protocol` or
    /// `disabled`, and events that are part of a report, are not messages for users.
    pub fn is_message(&self) -> bool {
        self.level < 8 && self.text.as_ref().is_none_or(|text| text.group == "default")
    }

    /// Returns the message of the event. If the log does not define the event, returns its id and
    /// its arguments without the zeros at the end.
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

/// The events of a log.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Events {
    /// The events in time order.
    pub list: Vec<Event>,
    /// True if the log contains readable definitions of events.
    pub defined: bool,
    /// Reason why the event definitions in the log could not be read, or `None` if there was no
    /// problem.
    pub problem: Option<String>,
}

/// Returns all events of a log, from all instances of the topic `event`.
pub fn events(reader: &UlogReader) -> Events {
    let mut events = Events::default();
    events.list.extend(timed_rows(reader, &instances(reader, "event")).filter_map(|row| event(&row)));
    if !events.list.is_empty() {
        define(reader, &mut events);
    }
    events
}

/// Returns the event in a row, or `None` if the row lacks a required field.
fn event(TimedRow { time, offset, row }: &TimedRow<'_>) -> Option<Event> {
    let levels = u8::try_from(integer(row, "log_levels")?).ok()?;
    let arguments = row.layout().place("arguments").and_then(|place| row.read_array::<u8>(place));
    Some(Event {
        time: *time,
        offset: *offset,
        id: u32::try_from(integer(row, "id")?).ok()?,
        sequence: integer(row, "event_sequence").and_then(|n| u16::try_from(n).ok()).unwrap_or(0),
        level: levels >> 4,
        external_level: levels & 0xf,
        arguments: arguments.map(Iterator::collect).unwrap_or_default(),
        text: None,
    })
}

/// Adds the texts from the definitions in the log to the events.
#[cfg(feature = "events")]
fn define(reader: &UlogReader, events: &mut Events) {
    match super::metadata::EventDefinitions::of(reader) {
        Ok(Some(definitions)) => {
            // Parsing the markup of a message takes longer than inserting the arguments, so the
            // definition of each event id is parsed only once.
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
