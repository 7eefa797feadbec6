//! Several recordings in one file: a log behind a log, and a clock that restarts within a log. Rules
//! D41 and D42 of docs/formats/ulog.md.

use std::ops::Range;

use rovelog_core::scan::{NeedMore, Window};
use rovelog_core::text::count;
use rovelog_core::time::Seconds;
use rovelog_core::{Detail, Diagnostics, Timestamp, UtcOffset, Value};

use crate::clock::LogClock;
use crate::diagnostics as rules;
use crate::wire::{FLAG_BITS_AT, FileHeader, HEADER_LEN, MAGIC};

/// A clock falls by more than this when it restarts, in microseconds.
const JUMP: u64 = 1_000_000;

/// Number of later rows that must be earlier too: single rows may have old times.
const CONFIRM: u32 = 16;

/// Number of rows behind lost bytes that show no restart: storage may have mixed in an older log.
const QUIET: u32 = 64;

/// A recording in a file of several: it has a clock of its own.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Session {
    /// Its bytes in the file.
    pub range: Range<u64>,
    /// True if it is a whole log with a header, false if the clock restarted.
    pub has_header: bool,
    /// Number of its records.
    pub records: u64,
    /// The time of its first record, or of its header for the first session, by its own clock.
    pub first: Option<Timestamp>,
    /// The latest time of its records, by its own clock.
    pub last: Option<Timestamp>,
    /// Unix time minus its own clock.
    pub utc: Option<UtcOffset>,
}

/// Where a session starts, for a scan that knows all of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Boundary {
    /// Offset of its header or its first row.
    pub(crate) at: u64,
    pub(crate) has_header: bool,
    /// Its log time at the start, in microseconds.
    pub(crate) start: u64,
    /// Microseconds to add to its times for the clock of the first session.
    pub(crate) shift: u64,
}

impl Boundary {
    /// Returns the offset of its first message.
    pub(crate) fn first(&self) -> u64 {
        self.at + if self.has_header { FLAG_BITS_AT } else { 0 }
    }

    /// Sets the clock to the start of the session.
    pub(crate) fn enter(&self, clock: &mut LogClock) {
        clock.restart(self.start, self.shift);
    }
}

/// Returns the header of another log at `at`, if one is there.
pub(crate) fn header_at(window: Window<'_>, at: u64) -> Result<Option<FileHeader>, NeedMore> {
    const TYPE: usize = 2;
    if window.byte(at + TYPE as u64)? != Some(MAGIC[TYPE]) {
        return Ok(None);
    }
    Ok(window.view::<FileHeader>(at)?.copied().filter(|header| header.magic == MAGIC))
}

/// What is counted of a session.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    pub(crate) at: u64,
    /// The header, if it has one of its own.
    pub(crate) header: Option<FileHeader>,
    pub(crate) records: u64,
    /// Microseconds of its own clock.
    pub(crate) first: Option<u64>,
    pub(crate) last: Option<u64>,
}

impl Tally {
    fn new(at: u64, header: Option<FileHeader>) -> Self {
        Self { at, header, records: 0, first: None, last: None }
    }

    fn row(&mut self, micros: Option<u64>) {
        self.records += 1;
        if let Some(micros) = micros.filter(|micros| *micros > 0) {
            self.first.get_or_insert(micros);
            self.last = self.last.max(Some(micros));
        }
    }
}

/// A fall of time that may be a restart.
#[derive(Clone, Debug)]
struct Pending {
    tally: Tally,
    /// The log time before it, microseconds.
    clock: u64,
    /// Number of rows with earlier times.
    earlier: u32,
}

/// Finds the sessions of a log while it is scanned.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watch {
    /// Whether it must see each row: not in an ordinary log.
    pub(crate) is_active: bool,
    /// The sessions, if there are several.
    pub(crate) sessions: Vec<Tally>,
    pending: Option<Pending>,
    /// Number of rows that show no restart.
    quiet: u32,
}

impl Watch {
    /// Takes a row, `is_first` if it is the first of its topic, which may be a value published long
    /// before.
    #[cold]
    pub(crate) fn row(&mut self, micros: Option<u64>, is_first: bool) {
        self.quiet = self.quiet.saturating_sub(1);
        if let Some(pending) = &mut self.pending {
            pending.tally.row(micros);
            if let Some(micros) = micros.filter(|micros| *micros > 0 && !is_first) {
                if micros.saturating_add(JUMP) >= pending.clock {
                    self.reject();
                } else {
                    pending.earlier += 1;
                    if pending.earlier >= CONFIRM {
                        self.sessions.extend(self.pending.take().map(|pending| pending.tally));
                    }
                }
            }
        } else if let Some(session) = self.sessions.last_mut() {
            session.row(micros);
        }
        self.set_active();
    }

    /// Takes a row at `at` that is earlier than the row of its topic before it. `clock` is the log
    /// time before it, and `records` the number of rows before it.
    #[cold]
    pub(crate) fn fall(&mut self, at: u64, micros: u64, clock: u64, records: u64) {
        let clock = self.sessions.last().and_then(|session| session.last).unwrap_or(clock);
        if micros == 0 || self.quiet > 0 || self.pending.is_some() || micros.saturating_add(JUMP) >= clock {
            return;
        }
        if let Some(session) = self.sessions.last_mut() {
            // It counted this row.
            session.records -= 1;
        } else {
            self.begin_first(clock, records);
        }
        let mut tally = Tally::new(at, None);
        tally.row(Some(micros));
        self.pending = Some(Pending { tally, clock, earlier: 1 });
        self.set_active();
    }

    /// Takes the header of another log; `clock` and `records` as in [`fall`](Self::fall).
    pub(crate) fn join(&mut self, at: u64, header: FileHeader, clock: u64, records: u64) {
        self.reject();
        if self.sessions.is_empty() {
            self.begin_first(clock, records);
        }
        self.sessions.push(Tally::new(at, Some(header)));
        self.set_active();
    }

    /// Takes lost bytes.
    pub(crate) fn lose(&mut self) {
        self.reject();
        self.quiet = QUIET;
        self.set_active();
    }

    fn begin_first(&mut self, clock: u64, records: u64) {
        self.sessions.push(Tally { records, last: Some(clock), ..Tally::new(0, None) });
    }

    /// Counts the rows behind a fall as rows of the session before it.
    fn reject(&mut self) {
        let Some(Pending { tally, .. }) = self.pending.take() else { return };
        match &mut self.sessions[..] {
            [_] => self.sessions.clear(),
            [.., session] => {
                session.records += tally.records;
                session.last = session.last.max(tally.last);
            }
            [] => {}
        }
    }

    /// Ends the log: too few rows behind a fall show nothing.
    pub(crate) fn finish(&mut self) {
        self.reject();
        self.is_active = false;
    }

    fn set_active(&mut self) {
        self.is_active = self.quiet > 0 || !self.sessions.is_empty();
    }

    /// Notes where the sessions start.
    pub(crate) fn note(&self, notes: &mut Diagnostics) {
        for session in self.sessions.iter().skip(1) {
            let (at, records) = (session.at, count(session.records, "record"));
            if session.header.is_some() {
                notes.push(&rules::SECOND_HEADER, at..at + FLAG_BITS_AT, || {
                    format!("a second ULog header at byte {at}: {records} of another log{}", span(session))
                });
            } else {
                notes.push(&rules::CLOCK_RESTARTS, at..at + HEADER_LEN, || {
                    format!("the clock restarts at byte {at}: {records}{}", span(session))
                });
            }
        }
    }

    /// Returns the line of `info` about several sessions.
    pub(crate) fn detail(&self) -> Option<Detail> {
        let [_, others @ ..] = &self.sessions[..] else { return None };
        let line = |session: &Tally| {
            let what = if session.header.is_some() { "a second log" } else { "the clock restarts" };
            let records = count(session.records, "record");
            format!("{what} at byte {}, {records}{}", session.at, span(session))
        };
        let text: Vec<_> = others.iter().map(line).collect();
        let micros = |time: Option<u64>| time.map_or(Value::Null, |time| Value::UInt(time, 64));
        let value = |session: &Tally| {
            Value::record([
                ("offset", Value::UInt(session.at, 64)),
                ("has_header", Value::Bool(session.header.is_some())),
                ("records", Value::count(session.records)),
                ("first_us", micros(session.first)),
                ("last_us", micros(session.last)),
            ])
        };
        (!others.is_empty()).then(|| {
            let values = Value::List(self.sessions.iter().map(value).collect());
            Detail::new("sessions", text.join("; "), values)
        })
    }
}

/// Returns the times of a session in words.
fn span(session: &Tally) -> String {
    let seconds = |micros: u64| Seconds(i64::try_from(micros).unwrap_or(i64::MAX).saturating_mul(1000));
    match (session.first, session.last) {
        (Some(first), Some(last)) => format!(" from {} s to {} s", seconds(first), seconds(last)),
        _ => String::new(),
    }
}

/// Returns the shifts by which all sessions have the clock of the first one, in microseconds; `None`
/// if that is not possible. A clock that restarts within a log is not moved: its place is only known
/// when the log was read.
pub(crate) fn shifts(sessions: &[Tally], offsets: &[Option<UtcOffset>]) -> Option<Vec<u64>> {
    if !sessions.iter().skip(1).all(|session| session.header.is_some()) {
        return None;
    }
    let first = offsets.first()?.as_ref()?.nanos;
    let shift =
        |offset: &Option<UtcOffset>| u64::try_from(offset.as_ref()?.nanos.checked_sub(first)? / 1000).ok();
    offsets.iter().map(shift).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch(rows: impl IntoIterator<Item = u64>) -> Watch {
        let (mut watch, mut now, mut last) = (Watch::default(), 0, 0);
        for (row, micros) in (0..).zip(rows) {
            if watch.is_active {
                watch.row(Some(micros), row == 0);
            }
            if micros < last {
                watch.fall(100 + row, micros, now, row);
            }
            (now, last) = (now.max(micros), micros);
        }
        watch.finish();
        watch
    }

    #[test]
    fn a_clock_that_falls_and_stays_has_restarted() {
        let second = || (0..20).map(|i| 2_000_000 + i * 10_000);
        let first = || (0..50).map(|i| 100_000_000 + i * 10_000);
        let found = watch(first().chain(second()));
        let [before, restart] = &found.sessions[..] else { panic!("{found:?}") };
        assert_eq!((before.records, before.last), (50, Some(100_490_000)));
        assert_eq!((restart.at, restart.records), (150, 20));
        assert_eq!((restart.first, restart.last), (Some(2_000_000), Some(2_190_000)));
        // Times that return are old values, and so are few of them.
        assert!(watch(first().chain(second().take(10)).chain(first())).sessions.is_empty());
        assert!(watch(first().chain(second().take(15))).sessions.is_empty());
        assert!(watch(first().chain(std::iter::repeat_n(0, 50))).sessions.is_empty());
        // A clock that restarts twice.
        assert_eq!(watch(first().chain(second()).chain((0..20).map(|i| i + 1))).sessions.len(), 3);
    }
}
