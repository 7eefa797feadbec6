//! Detection of several recordings in one file.
//!
//! A file can consist of concatenated logs, and the clock can restart within a log. Rules D41 and
//! D42 of docs/formats/ulog.md.
//!
//! # Example
//!
//! A log has rows up to 100 s. The next row has the time 2 s, which is more than [`JUMP`] earlier,
//! so the clock may have restarted. The following 15 rows have times from 2.01 s to 2.15 s. After
//! these [`CONFIRM_ROWS`] rows, the restart is accepted, and a session starts at the row with 2 s.
//! If one of the rows had the time 100.1 s, the row with 2 s would have been a stale value instead.

use std::ops::Range;
use std::sync::Arc;

use rovelog_core::internal::scan::{NeedMore, Window};
use rovelog_core::internal::text::count;
use rovelog_core::time::Seconds;
use rovelog_core::{Detail, Diagnostics, Timestamp, UtcOffset, Value};

use crate::clock::LogClock;
use crate::diagnostics as rules;
use crate::wire::{FLAG_BITS_AT, FileHeader, HEADER_LEN, MAGIC};

/// Minimum decrease of the time in microseconds when the clock restarts. Smaller decreases occur
/// because topics are logged with different delays.
const JUMP: u64 = 1_000_000;

/// Number of consecutive rows with earlier times that show a restart of the clock. A smaller number
/// of such rows may be stale values.
const CONFIRM_ROWS: u32 = 16;

/// Number of rows after lost bytes at which no restart of the clock is detected. Old contents of
/// the storage may follow damage, so these rows may belong to an older log.
const IGNORED_ROWS: u32 = 64;

/// One of several recordings in a file. Each recording has its own clock.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Session {
    /// Byte range of the recording in the file.
    pub range: Range<u64>,
    /// True if the recording starts with a header, false if it starts with a restart of the clock.
    pub has_header: bool,
    /// Number of records in the recording.
    pub records: u64,
    /// Time of the recording's first record on the recording's own clock. For the first recording
    /// in the file, this is the start time in the header.
    pub first: Option<Timestamp>,
    /// Latest time of the recording's records on the recording's own clock.
    pub last: Option<Timestamp>,
    /// Unix time minus the time on the recording's own clock, or `None` if it is unknown.
    pub utc: Option<UtcOffset>,
}

/// Start of a recording that an earlier scan of the file has found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Boundary {
    /// Offset of the recording's header. If the recording has no header, this is the offset of its
    /// first row.
    pub(crate) at: u64,
    pub(crate) has_header: bool,
    /// Log time at the start of the recording, in microseconds of its own clock.
    pub(crate) start: u64,
    /// Microseconds to add to the times of the recording to convert them to the clock of the first
    /// recording.
    pub(crate) shift: u64,
}

impl Boundary {
    /// Returns the offset of the first message in the recording.
    pub(crate) fn first(&self) -> u64 {
        self.at + if self.has_header { FLAG_BITS_AT } else { 0 }
    }

    /// Sets the clock to the start of this recording.
    pub(crate) fn enter(&self, clock: &mut LogClock) {
        clock.restart(self.start, self.shift);
    }
}

/// Starts of the recordings in a file, and the position of a scan among them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Boundaries {
    /// Starts of all recordings except the first, as found by an earlier scan. Empty during the
    /// first scan.
    pub(crate) list: Arc<[Boundary]>,
    /// Number of entries in `list` that the scan has passed.
    pub(crate) entered: usize,
}

impl Boundaries {
    /// Returns the offset of the next start, or `u64::MAX` if there is none.
    #[inline]
    pub(crate) fn next_at(&self) -> u64 {
        self.list.get(self.entered).map_or(u64::MAX, |next| next.at)
    }

    /// Sets the clock for the recordings that start at or before the offset `at`. Returns the
    /// offset of the next start, or `u64::MAX` if there is none.
    #[inline]
    pub(crate) fn enter(&mut self, at: u64, clock: &mut LogClock) -> u64 {
        while let Some(next) = self.list.get(self.entered) {
            if next.at > at {
                return next.at;
            }
            next.enter(clock);
            self.entered += 1;
        }
        u64::MAX
    }
}

/// Returns the header of another log at the offset `at`, or `None` if the bytes there do not start
/// with the magic number.
pub(crate) fn header_at(window: Window<'_>, at: u64) -> Result<Option<FileHeader>, NeedMore> {
    // The third byte of the magic number is where a message has its type. This byte is checked
    // first, because it differs from the types of most messages.
    const TYPE: usize = 2;
    if window.byte(at + TYPE as u64)? != Some(MAGIC[TYPE]) {
        return Ok(None);
    }
    Ok(window.view::<FileHeader>(at)?.copied().filter(|header| header.magic == MAGIC))
}

/// Statistics of a recording in the file.
#[derive(Clone, Debug)]
pub(crate) struct SessionStats {
    /// Offset of the start of the recording.
    pub(crate) at: u64,
    /// Header at the start of the recording. `None` if the recording has no header or is the first
    /// in the file.
    pub(crate) header: Option<FileHeader>,
    /// Number of records in the recording.
    pub(crate) records: u64,
    /// Time of the recording's first record, in microseconds of the recording's own clock.
    pub(crate) first: Option<u64>,
    /// Latest time of the recording's records, in microseconds of the recording's own clock.
    pub(crate) last: Option<u64>,
}

impl SessionStats {
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

/// A decrease of the time that may be a restart of the clock. Later rows confirm or reject it.
#[derive(Clone, Debug)]
struct Pending {
    /// Statistics of the rows since the time decreased.
    stats: SessionStats,
    /// Log time before the time decreased, in microseconds.
    clock: u64,
    /// Number of rows with earlier times since the time decreased.
    earlier: u32,
}

/// Detects the recordings in a file while the file is scanned.
#[derive(Clone, Debug, Default)]
pub(crate) struct SessionDetector {
    /// True if [`row`](Self::row) must be called for each row. In a log with one recording and
    /// without damage, this is false, so that the detection costs no time.
    pub(crate) is_active: bool,
    /// The recordings found so far. The list is empty if there is only one recording.
    pub(crate) sessions: Vec<SessionStats>,
    pending: Option<Pending>,
    /// Number of remaining rows at which no restart of the clock is detected, because they follow
    /// lost bytes.
    ignored_rows: u32,
}

impl SessionDetector {
    /// Processes a row with the time `micros`. `is_first` is true if the row is the first of its
    /// topic. Such a row may contain a value that was published long before, so it does not show a
    /// restart of the clock.
    #[cold]
    pub(crate) fn row(&mut self, micros: Option<u64>, is_first: bool) {
        self.ignored_rows = self.ignored_rows.saturating_sub(1);
        if let Some(pending) = &mut self.pending {
            pending.stats.row(micros);
            if let Some(micros) = micros.filter(|micros| *micros > 0 && !is_first) {
                if micros.saturating_add(JUMP) >= pending.clock {
                    self.reject();
                } else {
                    pending.earlier += 1;
                    if pending.earlier >= CONFIRM_ROWS {
                        self.sessions.extend(self.pending.take().map(|pending| pending.stats));
                    }
                }
            }
        } else if let Some(session) = self.sessions.last_mut() {
            session.row(micros);
        }
        self.set_active();
    }

    /// Processes a row at the offset `at` that is earlier than the previous row of its topic.
    /// `clock` is the log time, and `records` is the number of rows before this row.
    #[cold]
    pub(crate) fn time_decreased(&mut self, at: u64, micros: u64, clock: u64, records: u64) {
        let clock = self.sessions.last().and_then(|session| session.last).unwrap_or(clock);
        if micros == 0
            || self.ignored_rows > 0
            || self.pending.is_some()
            || micros.saturating_add(JUMP) >= clock
        {
            return;
        }
        if let Some(session) = self.sessions.last_mut() {
            // `row` has already counted this row as part of the previous recording.
            session.records -= 1;
        } else {
            self.begin_first(clock, records);
        }
        let mut stats = SessionStats::new(at, None);
        stats.row(Some(micros));
        self.pending = Some(Pending { stats, clock, earlier: 1 });
        self.set_active();
    }

    /// Starts a recording with the header of another log at the offset `at`. `clock` is the log
    /// time, and `records` is the number of rows before the header.
    pub(crate) fn start_log(&mut self, at: u64, header: FileHeader, clock: u64, records: u64) {
        self.reject();
        if self.sessions.is_empty() {
            self.begin_first(clock, records);
        }
        self.sessions.push(SessionStats::new(at, Some(header)));
        self.set_active();
    }

    /// Must be called when bytes are lost. For the next [`IGNORED_ROWS`] rows, no restart of the
    /// clock is detected.
    pub(crate) fn data_lost(&mut self) {
        self.reject();
        self.ignored_rows = IGNORED_ROWS;
        self.set_active();
    }

    /// Adds the first recording to the list when a second recording is found.
    fn begin_first(&mut self, clock: u64, records: u64) {
        self.sessions.push(SessionStats { records, last: Some(clock), ..SessionStats::new(0, None) });
    }

    /// Rejects a possible restart of the clock. The rows since the decrease of the time belong to
    /// the previous recording.
    fn reject(&mut self) {
        let Some(Pending { stats, .. }) = self.pending.take() else { return };
        match &mut self.sessions[..] {
            [_] => self.sessions.clear(),
            [.., session] => {
                session.records += stats.records;
                session.last = session.last.max(stats.last);
            }
            [] => {}
        }
    }

    /// Ends the detection. If too few rows follow a decrease of the time, the clock has not
    /// restarted.
    pub(crate) fn finish(&mut self) {
        self.reject();
        self.is_active = false;
    }

    fn set_active(&mut self) {
        self.is_active = self.ignored_rows > 0 || !self.sessions.is_empty();
    }

    /// Reports the starts of the recordings in the file, except the first.
    pub(crate) fn note(&self, notes: &mut Diagnostics) {
        for session in self.sessions.iter().skip(1) {
            let (at, records) = (session.at, count(session.records, "record"));
            if session.header.is_some() {
                notes.push(&rules::SECOND_HEADER, at..at + FLAG_BITS_AT, || {
                    format!(
                        "another log with its own header and clock starts at byte {at}; it has {records}{}",
                        span(session)
                    )
                });
            } else {
                notes.push(&rules::CLOCK_RESTARTS, at..at + HEADER_LEN, || {
                    let span = span(session);
                    format!("the clock restarts at byte {at}; the part after it has {records}{span}")
                });
            }
        }
    }

    /// Returns the line of `rovelog info` about recordings, or `None` if the file has only one
    /// recording.
    pub(crate) fn detail(&self) -> Option<Detail> {
        let [_, others @ ..] = &self.sessions[..] else { return None };
        let line = |session: &SessionStats| {
            let what = if session.header.is_some() { "another log starts" } else { "the clock restarts" };
            let records = count(session.records, "record");
            format!("{what} at byte {}, {records}{}", session.at, span(session))
        };
        let text: Vec<_> = others.iter().map(line).collect();
        let micros = |time: Option<u64>| time.map_or(Value::Null, |time| Value::UInt(time, 64));
        let value = |session: &SessionStats| {
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

/// Formats the time range of a recording.
fn span(session: &SessionStats) -> String {
    let seconds = |micros: u64| Seconds(crate::clock::nanos_of(micros));
    match (session.first, session.last) {
        (Some(first), Some(last)) => format!(" from {} s to {} s", seconds(first), seconds(last)),
        _ => String::new(),
    }
}

/// Returns the number of microseconds to add to the times of each recording, so that all recordings
/// use the clock of the first recording.
///
/// Returns `None` if a UTC offset is unknown or less than the UTC offset of the first recording.
/// Also returns `None` if the clock restarts within a log, because a pipe returns rows before it
/// detects the restart.
pub(crate) fn shifts(sessions: &[SessionStats], offsets: &[Option<UtcOffset>]) -> Option<Vec<u64>> {
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

    fn detector(rows: impl IntoIterator<Item = u64>) -> SessionDetector {
        let (mut detector, mut now, mut last) = (SessionDetector::default(), 0, 0);
        for (row, micros) in (0..).zip(rows) {
            if detector.is_active {
                detector.row(Some(micros), row == 0);
            }
            if micros < last {
                detector.time_decreased(100 + row, micros, now, row);
            }
            (now, last) = (now.max(micros), micros);
        }
        detector.finish();
        detector
    }

    #[test]
    fn a_clock_that_falls_and_stays_has_restarted() {
        let second = || (0..20).map(|i| 2_000_000 + i * 10_000);
        let first = || (0..50).map(|i| 100_000_000 + i * 10_000);
        let found = detector(first().chain(second()));
        let [before, restart] = &found.sessions[..] else { panic!("{found:?}") };
        assert_eq!((before.records, before.last), (50, Some(100_490_000)));
        assert_eq!((restart.at, restart.records), (150, 20));
        assert_eq!((restart.first, restart.last), (Some(2_000_000), Some(2_190_000)));
        // If the times return to the old range, or if only a few rows follow, the clock has not
        // restarted.
        assert!(detector(first().chain(second().take(10)).chain(first())).sessions.is_empty());
        assert!(detector(first().chain(second().take(15))).sessions.is_empty());
        assert!(detector(first().chain(std::iter::repeat_n(0, 50))).sessions.is_empty());
        // The clock restarts twice, so there are three recordings.
        assert_eq!(detector(first().chain(second()).chain((0..20).map(|i| i + 1))).sessions.len(), 3);
    }
}
