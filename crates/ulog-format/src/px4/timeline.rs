//! What happened in a flight, in one list: events, flight modes, arming and failsafes.

use std::borrow::Cow;

use rovelog_core::Timestamp;

use super::{Change, Event, Events, Mode, arming_changes, events, failsafe_changes, mode_changes};
use crate::UlogReader;

/// An entry of the timeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Time on the log's clock.
    pub time: Timestamp,
    /// Offset of the row that says so, from the start of the file.
    pub offset: u64,
    /// What happened.
    pub kind: EntryKind,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryKind {
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
    fn of<T>(change: Change<T>, kind: impl FnOnce(T) -> EntryKind) -> Self {
        Self { time: change.time, offset: change.offset, kind: kind(change.value) }
    }

    /// Returns the event, if the entry is one.
    pub fn event(&self) -> Option<&Event> {
        if let EntryKind::Event(event) = &self.kind { Some(event) } else { None }
    }

    /// Returns `event`, `mode`, `arming` or `failsafe`.
    pub const fn kind_name(&self) -> &'static str {
        match self.kind {
            EntryKind::Event(_) => "event",
            EntryKind::Mode(_) => "mode",
            EntryKind::Arming(_) => "arming",
            EntryKind::Failsafe(_) => "failsafe",
        }
    }

    /// Returns the level: that of the event; 4 (warning) for the start of a failsafe, 6 (info) for
    /// other changes.
    pub const fn level(&self) -> u8 {
        match &self.kind {
            EntryKind::Event(event) => event.level,
            EntryKind::Failsafe(true) => 4,
            EntryKind::Mode(_) | EntryKind::Arming(_) | EntryKind::Failsafe(false) => 6,
        }
    }

    /// Returns the message of the event, the name and number of the mode, or the state in a word.
    pub fn text(&self) -> Cow<'static, str> {
        match &self.kind {
            EntryKind::Event(event) => event.message().into(),
            EntryKind::Mode(mode) => mode.to_string().into(),
            EntryKind::Arming(true) => "armed".into(),
            EntryKind::Arming(false) => "disarmed".into(),
            EntryKind::Failsafe(true) => "failsafe".into(),
            EntryKind::Failsafe(false) => "failsafe over".into(),
        }
    }
}

/// The timeline of a log.
#[derive(Debug)]
#[non_exhaustive]
pub struct Timeline {
    /// Entries in the order of time, then of their offsets.
    pub entries: Vec<Entry>,
    /// Why the definitions of events that the log carries could not be read.
    pub problem: Option<String>,
}

/// Returns what happened in a flight: [`events`] and [`status_changes`] in one list.
///
/// `all` includes events that are not for people ([`Event::is_message`]).
pub fn timeline(reader: &UlogReader, all: bool) -> Timeline {
    let Events { list, problem, .. } = events(reader);
    let events = list.into_iter().filter(|event| all || event.is_message());
    let mut entries: Vec<Entry> = events
        .map(|event| Entry { time: event.time, offset: event.offset, kind: EntryKind::Event(event) })
        .collect();
    entries.extend(status_changes(reader));
    entries.sort_by_key(|entry| (entry.time.nanos, entry.offset));
    Timeline { entries, problem }
}

/// Returns the changes of flight mode, arming and failsafe in time order.
///
/// The first mode is the one in which the log starts. A log that starts disarmed or without a
/// failsafe has no entry for that: it is the usual state.
pub fn status_changes(reader: &UlogReader) -> Vec<Entry> {
    let from_on = |changes: Vec<Change<bool>>| changes.into_iter().skip_while(|change| !change.value);
    let modes = mode_changes(reader).into_iter().map(|change| Entry::of(change, EntryKind::Mode));
    let arming = from_on(arming_changes(reader)).map(|change| Entry::of(change, EntryKind::Arming));
    let failsafes = from_on(failsafe_changes(reader)).map(|change| Entry::of(change, EntryKind::Failsafe));
    let mut entries: Vec<Entry> = modes.chain(arming).chain(failsafes).collect();
    entries.sort_by_key(|entry| (entry.time.nanos, entry.offset));
    entries
}
