//! Cutting logs by time and by topic, without touching the bytes of what is kept.
//!
//! ```
//! use rovelog_core::{LogReader, ReadOptions, Select};
//! # use rovelog_core::Value;
//! # use ulog_format::{FormatBuilder, UlogWriter};
//! use ulog_format::UlogReader;
//!
//! # let mut log = UlogWriter::new(Vec::new(), 1_000_000)?;
//! # log.define(&FormatBuilder::new("attitude").field::<u64>("timestamp"))?;
//! # let attitude = log.subscribe("attitude", 0)?;
//! # for i in 0..10_u64 { log.write_row_bytes(attitude, &(1_000_000 + i * 100_000).to_le_bytes())?; }
//! # let bytes = log.finish()?;
//! let log = UlogReader::new(bytes.into(), &ReadOptions::default())?;
//! let select = Select::topic("attitude").between(Some(1_200_000_000), Some(1_500_000_000));
//! let mut cut = Vec::new();
//! let report = log.slice(&select, &mut cut)?;
//! assert_eq!(report.records, 3);
//! # assert_eq!(UlogReader::new(cut.into(), &ReadOptions::default())?.info().records, 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::ops::Range;

use rovelog_core::splice::Splice;
use rovelog_core::text::count;
use rovelog_core::time::Seconds;
use rovelog_core::wire::U64Le;
use rovelog_core::{Detail, LogReader, Select, Sliced, Timestamp, Value};
use zerocopy::IntoBytes;

use super::trust::Trust;
use crate::clock::{LogClock, RowMicros};
use crate::definitions::RowShape;
use crate::error::UlogError;
use crate::index::Met;
use crate::parameters::Section;
use crate::reader::UlogReader;
use crate::schema::FormatText;
use crate::sessions::{Boundary, Session};
use crate::wire::{
    self, DefaultParameter, FlagBitsMessage, HEADER_LEN, LoggedString, Message, SYNC_MAGIC, TaggedString,
    kind,
};
use crate::writer::encoded;

/// What a slice holds, as it is counted.
#[derive(Default)]
struct Report {
    records: u64,
    topics: usize,
    bytes: u64,
    texts: u64,
    dropouts: u64,
    parameter_changes: u64,
    /// Parameters whose value at the start of the slice was set during the log.
    parameters_in_force: usize,
    /// Records of each session.
    sessions: Vec<u64>,
}

impl Report {
    fn sliced(&self, log: &UlogReader) -> Sliced {
        let detail = |key, count| Detail::hidden(key, Value::UInt(count, 64));
        Sliced {
            records: self.records,
            others: self.texts + self.dropouts + self.parameter_changes,
            topics: self.topics,
            bytes: self.bytes,
            details: vec![
                detail("messages", self.texts),
                detail("dropouts", self.dropouts),
                detail("parameter_changes", self.parameter_changes),
                Detail::hidden("parameters_in_force", Value::UInt(self.parameters_in_force as u64, 32)),
            ]
            .into_iter()
            .chain(left_out(log, &self.sessions))
            .collect(),
        }
    }
}

/// Returns the sessions of which a slice has no records, although they have some.
fn left_out(log: &UlogReader, kept: &[u64]) -> Option<Detail> {
    let sessions = log.sessions();
    let missing = sessions.iter().zip(kept).filter(|(session, kept)| **kept == 0 && session.records > 0);
    let missing: Vec<_> = missing.map(|(session, _)| session).collect();
    let text = |session: &&Session| {
        let records = count(session.records, "record");
        let seconds = |time: Timestamp| format!("{} s", Seconds(time.nanos));
        let span = match (session.first, session.last) {
            (Some(first), Some(last)) => {
                format!(" ({} to {} of its own clock)", seconds(first), seconds(last))
            }
            _ => String::new(),
        };
        format!("all {records} of the recording that starts at byte {}{span}", session.range.start)
    };
    let value = |session: &&Session| {
        Value::record([
            ("offset", Value::count(session.range.start)),
            ("records", Value::count(session.records)),
        ])
    };
    let texts: Vec<_> = missing.iter().map(text).collect();
    let values = Value::List(missing.iter().map(value).collect());
    let line = format!(
        "left out {}; separate the recordings first: rovelog split FILE --at-restart -o DIR",
        texts.join(", and ")
    );
    (!missing.is_empty()).then(|| Detail::new("sessions_left_out", line, values))
}

/// Writes the part of `log` that `select` names, as a log of its own.
///
/// Kept are, byte for byte and in file order: all formats and information messages; the
/// subscriptions of the topics; their rows within the window, with those before it that
/// `select.last_before` asks for; and of the window the texts, dropouts, synchronization messages,
/// changes of parameters and unknown messages. Rows and texts are placed by their own time,
/// everything else by the log time at its place. The values that changes before the window gave to
/// parameters become their initial ones; where such a parameter started with its default, which a
/// log then leaves out, the default is written too. A format that is defined only behind the first
/// subscription that needs it comes before it: between the two, nothing may be left that tells a
/// reader that the subscription is valid. A log that is cut at its start starts at that
/// time; appended data becomes ordinary data. Damaged bytes, and rows that nothing can decode, are
/// left out. All of a log in which nothing is damaged is the log itself, byte for byte, with its
/// appended data and what was cut before that. Fields are not cut: `select.fields` means nothing
/// here. To slice a slice in the same way changes nothing.
///
/// # Errors
/// Returns an error if the output refuses, and where timestamps of fewer than 64 bits would be read
/// differently without the rows that are left out.
pub(crate) fn slice(log: &UlogReader, select: &Select, mut out: impl Write) -> Result<Sliced, UlogError> {
    let all = select.topics.is_none() && select.start.is_none() && select.end.is_none();
    if all
        && log.scanner().is_intact
        && log.diagnostics().ledger().losses == log.cut_before_appended().len() as u64
    {
        let report = parts(log, select, std::io::sink())?;
        out.write_all(log.bytes())?;
        out.flush()?;
        return Ok(Sliced { bytes: log.bytes().len() as u64, ..report });
    }
    parts(log, select, out)
}

fn parts(log: &UlogReader, select: &Select, out: impl Write) -> Result<Sliced, UlogError> {
    let kept: Vec<_> = log.topics().iter().map(|topic| select.keeps_topic(topic)).collect();
    let mut slice = Slice::new(log, select, kept, out);
    slice.begin()?;
    let mut ids = Ids::default();
    let mut cursor = log.cursor();
    let mut boundaries = log.boundaries().iter().peekable();
    while let Some(met) = cursor.next() {
        while let Some(boundary) = boundaries.next_if(|boundary| boundary.at <= met.at) {
            slice.begin_session(boundary)?;
        }
        if met.msg_type == kind::FLAG_BITS {
            // Only the first ones mean something, and they are written.
            continue;
        }
        let place = nanos(cursor.clock.now);
        if slice.keeps(&met, place, &mut ids)? {
            if let Some(message) = met.message() {
                slice.trust.take(&message);
            }
            slice.take(met.at..cursor.at)?;
        }
    }
    slice.finish()
}

/// Nanoseconds of a log time.
fn nanos(micros: u64) -> i64 {
    i64::try_from(micros).unwrap_or(i64::MAX).saturating_mul(1000)
}

fn format_name<'a>(format: &wire::Format<'a>) -> Option<&'a str> {
    FormatText::parse(format.format).map(|format| format.name)
}

/// Which topic an id means at the place.
#[derive(Default)]
struct Ids {
    series: HashMap<u16, usize>,
    /// The next subscription that makes a topic.
    next: usize,
}

impl Ids {
    fn subscribe(&mut self, log: &UlogReader, at: u64, msg_id: u16) -> Option<usize> {
        let next = log.definitions().subscriptions().get(self.next);
        if next.is_some_and(|subscription| subscription.offset == at) {
            self.series.insert(msg_id, self.next);
            self.next += 1;
        }
        self.series.get(&msg_id).copied()
    }
}

struct Slice<'a, W> {
    log: &'a UlogReader,
    select: &'a Select,
    /// Which topics are kept.
    kept: Vec<bool>,
    /// The last row of each topic before the window, where they are asked for.
    last_before: HashMap<u64, u32>,
    /// Parameters set before the window: name, and the message that set it last.
    set: HashMap<&'a str, Range<u64>>,
    /// Defaults that went without saying, because they were the initial values.
    defaults: Vec<DefaultParameter<'a>>,
    /// Where those are that are written.
    written: HashSet<u64>,
    in_data: bool,
    /// Names of the formats that are defined so far.
    defined: HashSet<&'a str>,
    /// Where those are that are written before their place, once there is such a format.
    early: Option<HashSet<u64>>,
    /// Follows the slice as a reader will, where a kept topic has narrow timestamps.
    clock: Option<LogClock>,
    /// What is written, some of it already.
    bytes: Splice<'a>,
    out: W,
    trust: Trust,
    report: Report,
}

impl<'a, W: Write> Slice<'a, W> {
    fn new(log: &'a UlogReader, select: &'a Select, kept: Vec<bool>, out: W) -> Self {
        let topics = kept.iter().filter(|kept| **kept).count();
        let report = Report { topics, sessions: vec![0], ..Default::default() };
        let mut slice = Self {
            log,
            select,
            kept,
            last_before: HashMap::new(),
            set: HashMap::new(),
            defaults: Vec::new(),
            written: HashSet::new(),
            in_data: false,
            defined: HashSet::new(),
            early: None,
            clock: None,
            bytes: Splice::new([&**log.bytes()]),
            out,
            trust: Trust::default(),
            report,
        };
        if let Some(start) = select.start {
            slice.look_before(start);
        }
        slice
    }

    /// Finds what is active when the window opens.
    fn look_before(&mut self, start: i64) {
        let (mut last, mut initial, mut defaults) = (HashMap::new(), HashMap::new(), HashMap::new());
        for (at, message, section) in self.log.described() {
            let (part, time) = match (message, section) {
                (Message::Parameter(part), Section::Data(time)) => (part, time),
                (Message::Parameter(part), Section::Definitions) => {
                    initial.extend(part.parse_key().map(|key| (key.name, part)));
                    continue;
                }
                (Message::DefaultParameter(DefaultParameter { default_types, info }), _) => {
                    if let Some(key) = info.parse_key() {
                        *defaults.entry(key.name).or_insert(0) |= default_types;
                    }
                    continue;
                }
                _ => continue,
            };
            if time.is_none_or(|time| time.nanos < start)
                && let Some(key) = part.parse_key()
            {
                let end = at + HEADER_LEN + 1 + (part.key.len() + part.value.len()) as u64;
                self.set.insert(key.name, at..end);
            }
        }
        // A log with defaults holds those that differ from the value; now they differ.
        let mut changed: Vec<_> = self.set.iter().filter(|_| !defaults.is_empty()).collect();
        changed.sort_unstable_by_key(|(_, range)| range.start);
        for (name, _) in changed {
            let unsaid = 3 & !defaults.get(name).copied().unwrap_or(0);
            if let Some(info) = initial.get(name).filter(|_| unsaid != 0) {
                self.defaults.push(DefaultParameter { default_types: unsaid, info: *info });
            }
        }
        if self.select.last_before {
            let topics = self.log.topics().iter();
            let last_before: Vec<_> = topics.map(|topic| self.select.keeps_last_before(topic)).collect();
            for met in self.log.cursor() {
                if let Some(row) = met.row.filter(|row| last_before[row.series as usize])
                    && row.time.in_order(row.now) < start
                {
                    last.insert(row.series, met.at);
                }
            }
        }
        self.last_before = last.into_iter().map(|(series, at)| (at, series)).collect();
        self.report.parameters_in_force = self.set.len();
    }

    /// Header and flag bits.
    fn begin(&mut self) -> Result<(), UlogError> {
        let mut header = *self.log.header();
        if let Some(start) = self.select.start.and_then(|start| u64::try_from(start / 1000).ok()) {
            header.timestamp = U64Le::new(header.timestamp.get().max(start));
        }
        self.bytes.make(header.as_bytes());
        let series = (0..).zip(&self.kept).filter(|(_, kept)| **kept).map(|(series, _)| series);
        let shapes = series.map(|series| self.log.index().shape(series));
        let narrow = shapes.into_iter().any(RowShape::is_narrow);
        self.clock = narrow.then(|| LogClock::new(header.timestamp.get()));
        let first = self.log.cursor().next();
        if let Some(first) = first.filter(|first| first.at == self.log.first())
            && let Some(Message::FlagBits(FlagBitsMessage { flags, more })) = first.message()
        {
            self.bytes.make(&encoded(&Message::FlagBits(FlagBitsMessage { flags: flags.merged(), more }))?);
        }
        Ok(())
    }

    /// Starts a session. The header of another log is kept, because the clock changes there.
    fn begin_session(&mut self, boundary: &Boundary) -> Result<(), UlogError> {
        self.report.sessions.push(0);
        if !boundary.has_header {
            return Ok(());
        }
        self.begin_data()?;
        self.in_data = false;
        self.defined.clear();
        self.early = None;
        self.take(boundary.at..boundary.first())
    }

    /// Returns whether a message is part of the slice; `place` is the log time there.
    fn keeps(&mut self, met: &Met<'a>, place: i64, ids: &mut Ids) -> Result<bool, UlogError> {
        if let Some(row) = met.row {
            self.begin_data()?;
            if !self.kept[row.series as usize] {
                return Ok(false);
            }
            let last_before = self.last_before.contains_key(&met.at);
            if !last_before && !self.select.keeps_time(row.time.in_order(row.now)) {
                return Ok(false);
            }
            self.follow(row.series, met, row.time)?;
            self.report.records += 1;
            if let Some(session) = self.report.sessions.last_mut() {
                *session += 1;
            }
            return Ok(true);
        }
        let Some(message) = met.message() else { return Ok(false) };
        let inside = self.select.keeps_time(place);
        Ok(match message {
            Message::Format(format) => {
                self.defined.extend(format_name(&format));
                !self.early.as_ref().is_some_and(|early| early.contains(&met.at))
            }
            Message::Info(_) | Message::MultiInfo(_) | Message::DefaultParameter(_) => true,
            Message::Parameter(part) => {
                if self.in_data {
                    self.report.parameter_changes += u64::from(inside);
                    return Ok(inside);
                }
                // Its value may be another one when the window opens.
                let name = part.parse_key().map(|key| key.name);
                let set = name.and_then(|name| self.set.get(name));
                let Some(range) = set.cloned() else { return Ok(true) };
                // Two initial values of one name are rare, and do no harm.
                self.written.insert(range.start);
                self.take(range)?;
                false
            }
            Message::Subscription(subscription) => {
                self.begin_data()?;
                let series = ids.subscribe(self.log, met.at, subscription.msg_id);
                let kept = series.is_some_and(|series| self.kept[series]);
                let defined = subscription.name().is_some_and(|name| self.defined.contains(name));
                if kept && !defined && self.early.is_none() {
                    self.define_early()?;
                }
                kept
            }
            Message::Unsubscription(wire::Unsubscription { msg_id }) => {
                self.begin_data()?;
                // Of an id that nothing subscribed it says nothing about any topic.
                ids.series.get(&msg_id).is_none_or(|series| self.kept[*series])
            }
            Message::LoggedString(LoggedString { timestamp, .. })
            | Message::TaggedString(TaggedString { timestamp, .. }) => {
                self.begin_data()?;
                let micros = timestamp.saturating_add(self.log.shift_at(met.at));
                let inside = self.select.keeps_time(nanos(micros));
                self.report.texts += u64::from(inside);
                inside
            }
            Message::Dropout(wire::Dropout { duration: millis }) => {
                self.begin_data()?;
                self.report.dropouts += u64::from(inside);
                if let Some(clock) = self.clock.as_mut().filter(|_| inside) {
                    clock.dropout(millis);
                }
                inside
            }
            Message::Sync(_) => {
                self.begin_data()?;
                inside
            }
            // Without a usable subscription.
            Message::Data(_) => {
                self.begin_data()?;
                false
            }
            Message::Unknown { .. } => !self.in_data || inside,
            Message::FlagBits(_) => false,
        })
    }

    /// Starts the data section: the active parameters that had no initial value come before it.
    fn begin_data(&mut self) -> Result<(), UlogError> {
        if std::mem::replace(&mut self.in_data, true) {
            return Ok(());
        }
        let mut ranges: Vec<_> = self.set.values().cloned().collect();
        ranges.sort_unstable_by_key(|range| range.start);
        for range in ranges {
            if self.written.insert(range.start) {
                self.take(range)?;
            }
        }
        for default in std::mem::take(&mut self.defaults) {
            // One byte more than the parameter, whose message was at most as long as one can be.
            let Ok(bytes) = encoded(&Message::DefaultParameter(default)) else { continue };
            self.bytes.make(&bytes);
        }
        Ok(())
    }

    /// Writes the first definition of every format that is not defined so far.
    fn define_early(&mut self) -> Result<(), UlogError> {
        let mut early = HashSet::new();
        let mut cursor = self.log.cursor();
        while let Some(met) = cursor.next() {
            let Some(message @ Message::Format(format)) = met.message() else { continue };
            if format_name(&format).is_some_and(|name| self.defined.insert(name)) {
                early.insert(met.at);
                self.trust.take(&message);
                self.take(met.at..cursor.at)?;
            }
        }
        self.early = Some(early);
        Ok(())
    }

    /// Reads a row as a reader of the slice will, where its time depends on what is before it.
    fn follow(&mut self, series: u32, met: &Met<'_>, time: RowMicros) -> Result<(), UlogError> {
        let Some(clock) = &mut self.clock else { return Ok(()) };
        let shape = self.log.index().shape(series);
        if clock.row(shape, met.row_bytes()) == time {
            return Ok(());
        }
        Err(UlogError::TimesWouldMove { topic: self.log.topics()[series as usize].name.clone() })
    }

    /// Adds a range of the log.
    #[inline]
    fn take(&mut self, range: Range<u64>) -> Result<(), UlogError> {
        self.bytes.copy(0, range);
        Ok(self.bytes.write_on(&mut self.out)?)
    }

    fn finish(mut self) -> Result<Sliced, UlogError> {
        self.begin_data()?;
        if self.trust.needs_sync() {
            self.bytes.make(&encoded(&Message::Sync(wire::Sync { sync_magic: SYNC_MAGIC }))?);
        }
        self.bytes.write(&mut self.out)?;
        self.out.flush()?;
        self.report.bytes = self.bytes.len();
        Ok(self.report.sliced(self.log))
    }
}
