//! What happened in a flight, in one list: events, flight modes, arming and failsafes.

use std::borrow::Cow;

use super::modes::{arming_changes, failsafe_changes};
use super::{Change, Event, Mode, mode_changes};
use crate::UlogReader;

/// What happened at a time of the timeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The autopilot sent an event.
    Event(Event),
    /// A flight mode started.
    Mode(Mode),
    /// The vehicle was armed (`true`) or disarmed.
    Arming(bool),
    /// A failsafe started (`true`) or ended.
    Failsafe(bool),
}

impl Entry {
    /// Returns the event, if the entry is one.
    pub fn event(&self) -> Option<&Event> {
        if let Self::Event(event) = self { Some(event) } else { None }
    }

    /// Returns `event`, `mode`, `arming` or `failsafe`.
    pub const fn kind_name(&self) -> &'static str {
        match self {
            Self::Event(_) => "event",
            Self::Mode(_) => "mode",
            Self::Arming(_) => "arming",
            Self::Failsafe(_) => "failsafe",
        }
    }

    /// Returns the level: that of the event; 4 (warning) for the start of a failsafe, 6 (info) for
    /// other changes.
    pub const fn level(&self) -> u8 {
        match self {
            Self::Event(event) => event.level,
            Self::Failsafe(true) => 4,
            Self::Mode(_) | Self::Arming(_) | Self::Failsafe(false) => 6,
        }
    }

    /// Returns the message of the event, the name and number of the mode, or the state in a word.
    pub fn text(&self) -> Cow<'static, str> {
        match self {
            Self::Event(event) => event.message().into(),
            Self::Mode(mode) => mode.to_string().into(),
            Self::Arming(true) => "armed".into(),
            Self::Arming(false) => "disarmed".into(),
            Self::Failsafe(true) => "failsafe".into(),
            Self::Failsafe(false) => "failsafe over".into(),
        }
    }
}

/// Returns what happened in a flight, in the order of time, then of offsets: [`status_changes`] and
/// those of the [`events`](super::events) that are wanted, for example
/// [those for people](Event::is_message).
pub fn timeline(reader: &UlogReader, events: impl IntoIterator<Item = Event>) -> Vec<Change<Entry>> {
    let mut entries = status_changes(reader);
    entries.extend(events.into_iter().map(|event| Change {
        time: event.time,
        offset: event.offset,
        value: Entry::Event(event),
    }));
    entries.sort_by_key(|entry| (entry.time.nanos, entry.offset));
    entries
}

/// Returns the changes of flight mode, arming and failsafe in time order.
///
/// The first mode is the one in which the log starts. A log that starts disarmed or without a
/// failsafe has no entry for that: it is the usual state.
pub fn status_changes(reader: &UlogReader) -> Vec<Change<Entry>> {
    let from_on = |changes: Vec<Change<bool>>| changes.into_iter().skip_while(|change| !change.value);
    let modes = mode_changes(reader).into_iter().map(|change| change.map(Entry::Mode));
    let arming = from_on(arming_changes(reader)).map(|change| change.map(Entry::Arming));
    let failsafes = from_on(failsafe_changes(reader)).map(|change| change.map(Entry::Failsafe));
    let mut entries: Vec<_> = modes.chain(arming).chain(failsafes).collect();
    entries.sort_by_key(|entry| (entry.time.nanos, entry.offset));
    entries
}
