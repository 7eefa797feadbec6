//! A list of events and of changes of the flight mode, the arming state and the failsafe state.

use std::borrow::Cow;

use super::{Change, Event, Mode};
use crate::UlogReader;

/// An entry of the timeline, which is an event or a change of state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The autopilot sent an event.
    Event(Event),
    /// The flight mode changed to this mode.
    Mode(Mode),
    /// The vehicle was armed (`true`) or disarmed (`false`).
    Arming(bool),
    /// A failsafe started (`true`) or ended (`false`).
    Failsafe(bool),
}

impl Entry {
    /// Returns the event, or `None` if the entry is a change of state.
    pub fn event(&self) -> Option<&Event> {
        if let Self::Event(event) = self { Some(event) } else { None }
    }

    /// Returns the kind of the entry: `event`, `mode`, `arming` or `failsafe`.
    pub const fn kind_name(&self) -> &'static str {
        match self {
            Self::Event(_) => "event",
            Self::Mode(_) => "mode",
            Self::Arming(_) => "arming",
            Self::Failsafe(_) => "failsafe",
        }
    }

    /// Returns the severity of the entry. An event has its own level. The start of a failsafe has
    /// level 4 (warning), and all other changes have level 6 (info).
    pub const fn level(&self) -> u8 {
        match self {
            Self::Event(event) => event.level,
            Self::Failsafe(true) => 4,
            Self::Mode(_) | Self::Arming(_) | Self::Failsafe(false) => 6,
        }
    }

    /// Returns the text of the entry. It is the message of the event, the name and number of the
    /// flight mode, or the name of the state.
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

/// Returns the [`status_changes`] of a log together with `events`, sorted by time and offset.
///
/// The caller can filter `events`, for example with [`Event::is_message`] for the events that are
/// messages to users.
pub fn timeline(reader: &UlogReader, events: impl IntoIterator<Item = Event>) -> Vec<Change<Entry>> {
    let mut entries = status_changes(reader);
    let entry = |event: Event| Change { time: event.time, offset: event.offset, value: Entry::Event(event) };
    entries.extend(events.into_iter().map(entry));
    entries.sort_by_key(|entry| (entry.time.nanos, entry.offset));
    entries
}

/// Returns the changes of the flight mode, the arming state and the failsafe state in time order.
///
/// The first entry for the flight mode is the mode at the start of the log. If the log starts
/// disarmed or without a failsafe, there is no entry for this, because these are the usual states.
pub fn status_changes(reader: &UlogReader) -> Vec<Change<Entry>> {
    let changes = reader.state_changes();
    let modes = changes.modes.iter().map(|change| change.map(Entry::Mode));
    let arming = from_on(&changes.arming).map(|change| change.map(Entry::Arming));
    let failsafes = from_on(&changes.failsafes).map(|change| change.map(Entry::Failsafe));
    let mut entries: Vec<_> = modes.chain(arming).chain(failsafes).collect();
    entries.sort_by_key(|entry| (entry.time.nanos, entry.offset));
    entries
}

/// Returns the changes of a state without the first ones that have the value `false`.
fn from_on(changes: &[Change<bool>]) -> impl Iterator<Item = Change<bool>> {
    changes.iter().copied().skip_while(|change| !change.value)
}
