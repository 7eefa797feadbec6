//! Slices of logs by time and topic. The bytes of the selected messages are not changed.
//!
//! # Example
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

use std::collections::{HashMap, HashSet, VecDeque};
use std::io::Write;
use std::ops::Range;

use rovelog_core::internal::splice::Splice;
use rovelog_core::internal::text::count;
use rovelog_core::internal::wire::U64Le;
use rovelog_core::time::Seconds;
use rovelog_core::{Detail, LogReader, Select, Sliced, Timestamp, Value};
use zerocopy::IntoBytes;

use super::guard::UnknownGuard;
use crate::clock::{LogClock, RowMicros, nanos_of};
use crate::definitions::RowShape;
use crate::error::UlogError;
use crate::index::MessageRef;
use crate::parameters::{Description, Section};
use crate::reader::UlogReader;
use crate::scan::RowInfo;
use crate::schema::FormatText;
use crate::sessions::{Boundary, Session};
use crate::wire::{
    self, DefaultParameter, FlagBitsMessage, HEADER_LEN, Info, LoggedString, Message, TaggedString, kind,
};
use crate::writer::encoded;

/// Numbers of items in a slice, for the report.
#[derive(Default)]
struct Report {
    records: u64,
    topics: usize,
    /// Size of the slice in bytes.
    bytes: u64,
    texts: u64,
    dropouts: u64,
    parameter_changes: u64,
    /// Number of parameters that were changed in the log before the start of the slice.
    parameters_in_force: usize,
    /// Number of selected records in each session of the log.
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

/// Returns a line for the report about the sessions without any record in the slice. `kept`
/// contains the number of selected records of each session.
fn left_out(log: &UlogReader, kept: &[u64]) -> Option<Detail> {
    let sessions = log.sessions();
    let missing = sessions.iter().zip(kept).filter(|(session, kept)| **kept == 0 && session.records > 0);
    let missing: Vec<_> = missing.map(|(session, _)| session).collect();
    let text = |session: &&Session| {
        let records = count(session.records, "record");
        let seconds = |time: Timestamp| format!("{} s", Seconds(time.nanos));
        let span = match (session.first, session.last) {
            (Some(first), Some(last)) => {
                format!(" ({} to {} on its own clock)", seconds(first), seconds(last))
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
        "the slice leaves out {}; to keep them, separate the recordings first: rovelog split FILE \
         --at-restart -o DIR",
        texts.join(", and ")
    );
    (!missing.is_empty()).then(|| Detail::new("sessions_left_out", line, values))
}

/// Writes the part of `log` selected by `select` as a separate log.
///
/// The following messages are copied without changes and in file order:
///
/// - all formats and information messages
/// - the subscriptions of the selected topics, and their rows in the time range
/// - with `select.last_before`, also the last row of each topic before the time range
/// - the console messages, dropouts, synchronization messages, parameter changes and unknown
///   messages in the time range
///
/// Rows and console messages are selected by their own time, all other messages by the log time.
/// Damaged bytes and rows that cannot be decoded are not copied. `select.fields` is ignored.
///
/// The slice changes these definitions so that they describe the log at the start of the time range:
///
/// - The start time in the header becomes the start of the range.
/// - Parameter changes before the range become initial values. If the parameter had its default
///   value before the change, the default is written too, because a log contains only defaults that
///   differ from the value.
/// - If a format is defined after a subscription that uses it, the format is moved before this
///   subscription (rule M9 of docs/formats/ulog.md). Without the messages between the two, a reader
///   could not verify the subscription.
/// - Appended data becomes ordinary data.
///
/// If the whole log is selected and it is not damaged, the slice is an identical copy. Slicing a
/// slice again with the same selection does not change it.
///
/// # Errors
/// Returns an error if the output cannot be written. Also returns an error if timestamps of fewer
/// than 64 bits would be completed to other times, because rows before them are not in the slice.
pub(crate) fn slice(log: &UlogReader, select: &Select, mut out: impl Write) -> Result<Sliced, UlogError> {
    // An identical copy may contain messages that are cut by appended data, because the offsets in
    // the flag bits explain these losses. Other losses are not copied.
    let all = select.topics.is_none() && select.start.is_none() && select.end.is_none();
    if all
        && log.scanner().start.damage.is_none()
        && log.diagnostics().ledger().losses == log.cut_before_appended().len() as u64
    {
        let report = parts(log, select, std::io::sink())?;
        out.write_all(log.bytes())?;
        out.flush()?;
        return Ok(Sliced { bytes: log.bytes().len() as u64, ..report });
    }
    parts(log, select, out)
}

/// Writes a slice that differs from the original log.
fn parts(log: &UlogReader, select: &Select, out: impl Write) -> Result<Sliced, UlogError> {
    let mut slice = Slice::new(log, select, out);
    slice.begin()?;
    let mut ids = Ids::default();
    let mut cursor = log.cursor();
    let mut boundaries = log.boundaries().iter().peekable();
    while let Some(msg) = cursor.next() {
        while let Some(boundary) = boundaries.next_if(|boundary| boundary.at <= msg.at) {
            slice.begin_session(boundary)?;
        }
        if msg.msg_type == kind::FLAG_BITS {
            // The flag bits were already written with the header.
            continue;
        }
        let place = nanos_of(cursor.clock.now);
        if slice.keeps(&msg, place, &mut ids)? {
            slice.output.copy_message(&msg)?;
        }
    }
    slice.finish()
}

/// Returns the byte range of the log whose header is at the offset `start`.
fn log_from(file: &UlogReader, start: u64) -> Range<u64> {
    let mut headers = file.boundaries().iter().filter(|boundary| boundary.has_header);
    let next = headers.find(|boundary| boundary.at > start);
    start..next.map_or(file.bytes().len() as u64, |boundary| boundary.at)
}

fn format_name<'a>(format: &wire::Format<'a>) -> Option<&'a str> {
    FormatText::parse(format.format).map(|format| format.name)
}

/// Topics to which the message ids belong at the current offset.
#[derive(Default)]
struct Ids {
    /// Number of the topic, by message id.
    series: HashMap<u16, usize>,
    /// Number of the next topic. A repeated subscription does not create a topic.
    next: usize,
}

impl Ids {
    /// Processes a subscription at the offset `at`, and returns the number of the subscribed topic.
    fn subscribe(&mut self, log: &UlogReader, at: u64, msg_id: u16) -> Option<usize> {
        let next = log.definitions().subscriptions().get(self.next);
        if next.is_some_and(|subscription| subscription.offset == at) {
            self.series.insert(msg_id, self.next);
            self.next += 1;
        }
        self.series.get(&msg_id).copied()
    }
}

/// Selection of the rows in a slice.
struct RowSelection<'a> {
    select: &'a Select,
    /// For each topic number, true if the topic is selected.
    topics: Vec<bool>,
    /// Offsets of the last rows before the time range that are copied because of `last_before`.
    last_before: HashSet<u64>,
}

impl<'a> RowSelection<'a> {
    fn new(log: &UlogReader, select: &'a Select) -> Self {
        let topics = log.topics().iter().map(|topic| select.keeps_topic(topic)).collect();
        let mut last = HashMap::new();
        if let Some(start) = select.start.filter(|_| select.last_before) {
            let wanted: Vec<_> = log.topics().iter().map(|topic| select.keeps_last_before(topic)).collect();
            for msg in log.cursor() {
                if let Some(row) = msg.row.filter(|row| wanted[row.series as usize])
                    && row.time.in_order(row.now) < start
                {
                    last.insert(row.series, msg.at);
                }
            }
        }
        Self { select, topics, last_before: last.into_values().collect() }
    }

    /// Returns `true` if the row at the offset `at` is selected.
    fn keeps(&self, at: u64, row: &RowInfo) -> bool {
        let is_selected = |row: &RowInfo| self.select.keeps_time(row.time.in_order(row.now));
        self.topics[row.series as usize] && (self.last_before.contains(&at) || is_selected(row))
    }
}

/// Parameters at the start of the time range.
#[derive(Default)]
struct ParametersInForce<'a> {
    /// Byte range in the log of the last change of each parameter before the time range, by
    /// parameter name.
    changes: HashMap<&'a str, Range<u64>>,
    /// Offsets of the changes that were written to the slice as initial values.
    written: HashSet<u64>,
    /// Parameter defaults to add to the slice, because the parameter was changed from its default
    /// before the time range.
    defaults: Vec<DefaultParameter<'a>>,
}

impl<'a> ParametersInForce<'a> {
    /// Finds the parameter changes before the time `start` in each of the logs that a file consists
    /// of.
    fn of_all(start: i64, log: &'a UlogReader) -> VecDeque<Self> {
        let mut all = VecDeque::from([Self::at(start, log.descriptions())]);
        let mut headers = log.boundaries().iter().filter(|boundary| boundary.has_header).peekable();
        if headers.peek().is_none() {
            return all;
        }
        // The descriptions of later logs are not stored.
        let mut later: Vec<Vec<Description<'_>>> = Vec::new();
        let (mut cursor, mut in_data) = (log.cursor(), false);
        while let Some(msg) = cursor.next() {
            while headers.next_if(|boundary| boundary.at <= msg.at).is_some() {
                later.push(Vec::new());
                in_data = false;
            }
            let (Some(list), Some(message)) = (later.last_mut(), msg.message()) else { continue };
            in_data |= message.is_data();
            if matches!(message, Message::Parameter(_) | Message::DefaultParameter(_)) {
                let time = log.timestamp(cursor.clock.now);
                let section = if in_data { Section::Data(time) } else { Section::Definitions };
                list.push(Description { at: msg.at, message, section });
            }
        }
        all.extend(later.into_iter().map(|list| Self::at(start, list.into_iter())));
        all
    }

    /// Finds the parameter changes before the time `start`.
    fn at(start: i64, descriptions: impl Iterator<Item = Description<'a>>) -> Self {
        let (mut initial, mut defaults) = (HashMap::new(), HashMap::new());
        let mut parameters = Self::default();
        for Description { at, message, section } in descriptions {
            match (message, section) {
                (Message::Parameter(part), Section::Definitions) => {
                    initial.extend(part.parse_key().map(|key| (key.name, part)));
                }
                (Message::Parameter(part), Section::Data(time))
                    if time.is_none_or(|time| time.nanos < start) =>
                {
                    let end = at + HEADER_LEN + 1 + (part.key.len() + part.value.len()) as u64;
                    parameters.changes.extend(part.parse_key().map(|key| (key.name, at..end)));
                }
                (Message::DefaultParameter(DefaultParameter { default_types, info }), _) => {
                    if let Some(key) = info.parse_key() {
                        *defaults.entry(key.name).or_insert(0) |= default_types;
                    }
                }
                _ => {}
            }
        }
        // A log with defaults omits the defaults that equal the initial value. The initial values
        // in the slice differ from these defaults, so the defaults must be added.
        let mut changed: Vec<_> = parameters.changes.iter().filter(|_| !defaults.is_empty()).collect();
        changed.sort_unstable_by_key(|(_, range)| range.start);
        for (name, _) in changed {
            let unsaid = 3 & !defaults.get(name).copied().unwrap_or(0);
            if let Some(info) = initial.get(name).filter(|_| unsaid != 0) {
                parameters.defaults.push(DefaultParameter { default_types: unsaid, info: *info });
            }
        }
        parameters
    }

    /// Returns the byte range of the change that replaces an initial value. Returns `None` if the
    /// parameter was not changed before the time range.
    fn replace(&mut self, part: &Info<'_>) -> Option<Range<u64>> {
        let range = self.changes.get(part.parse_key()?.name)?;
        // If the log contains two initial values of this parameter, the change is written twice,
        // which does no harm.
        self.written.insert(range.start);
        Some(range.clone())
    }

    /// Returns the byte ranges of the changes that were not written as initial values.
    fn rest(&mut self) -> Vec<Range<u64>> {
        let ranges = self.changes.values().filter(|range| self.written.insert(range.start));
        let mut ranges: Vec<_> = ranges.cloned().collect();
        ranges.sort_unstable_by_key(|range| range.start);
        ranges
    }
}

/// Writer of a slice.
struct Output<'a, W> {
    /// Part of the slice that has not been written to `out` yet. It consists of byte ranges of the
    /// log and of new bytes.
    bytes: Splice<'a>,
    out: W,
    guard: UnknownGuard,
}

impl<W: Write> Output<'_, W> {
    /// Copies a message of the log to the slice.
    #[inline]
    fn copy_message(&mut self, msg: &MessageRef<'_>) -> Result<(), UlogError> {
        if let Some(message) = msg.message() {
            self.guard.observe(&message);
        }
        self.copy(msg.at..msg.end())
    }

    /// Copies a byte range of the log to the slice.
    #[inline]
    fn copy(&mut self, range: Range<u64>) -> Result<(), UlogError> {
        self.bytes.copy(0, range);
        Ok(self.bytes.write_if_large(&mut self.out)?)
    }

    /// Completes the slice, and returns its size in bytes.
    fn finish(mut self) -> Result<u64, UlogError> {
        self.guard.finish(&mut self.bytes)?;
        self.bytes.write(&mut self.out)?;
        self.out.flush()?;
        Ok(self.bytes.len())
    }
}

/// State of slicing a log.
struct Slice<'a, W> {
    log: &'a UlogReader,
    rows: RowSelection<'a>,
    /// Parameter changes before the start of the slice, for the current log and each later log in
    /// the file.
    parameters: VecDeque<ParametersInForce<'a>>,
    /// Byte range of the current log in the file.
    current_log: Range<u64>,
    /// Names of the formats that the slice defines for the current log.
    defined: HashSet<&'a str>,
    /// Offsets of the format messages that were moved before a subscription. `None` if no format
    /// was moved.
    moved_formats: Option<HashSet<u64>>,
    /// True if the data section of the slice has started.
    in_data: bool,
    /// The clock that a reader of the slice would have. It is `None` if no selected topic has
    /// timestamps of fewer than 64 bits.
    clock: Option<LogClock>,
    output: Output<'a, W>,
    report: Report,
}

impl<'a, W: Write> Slice<'a, W> {
    fn new(log: &'a UlogReader, select: &'a Select, out: W) -> Self {
        let rows = RowSelection::new(log, select);
        let parameters = select.start.map(|start| ParametersInForce::of_all(start, log)).unwrap_or_default();
        let report = Report {
            topics: rows.topics.iter().filter(|kept| **kept).count(),
            parameters_in_force: parameters.iter().map(|parameters| parameters.changes.len()).sum(),
            sessions: vec![0],
            ..Report::default()
        };
        let bytes = Splice::new([&**log.bytes()]);
        let output = Output { bytes, out, guard: UnknownGuard::default() };
        Self {
            log,
            rows,
            parameters,
            current_log: log_from(log, 0),
            defined: HashSet::new(),
            moved_formats: None,
            in_data: false,
            clock: None,
            output,
            report,
        }
    }

    /// Writes the header and the flag bits of the slice.
    fn begin(&mut self) -> Result<(), UlogError> {
        let mut header = *self.log.header();
        if let Some(start) = self.rows.select.start.and_then(|start| u64::try_from(start / 1000).ok()) {
            header.timestamp = U64Le::new(header.timestamp.get().max(start));
        }
        self.output.bytes.append(header.as_bytes());
        let series = (0..).zip(&self.rows.topics).filter(|(_, kept)| **kept).map(|(series, _)| series);
        let shapes = series.map(|series| self.log.index().shape(series));
        let narrow = shapes.into_iter().any(RowShape::is_narrow);
        self.clock = narrow.then(|| LogClock::new(header.timestamp.get()));
        let first = self.log.cursor().next();
        if let Some(first) = first.filter(|first| first.at == self.log.first())
            && let Some(Message::FlagBits(FlagBitsMessage { flags, more })) = first.message()
        {
            let flags = FlagBitsMessage { flags: flags.merged(), more };
            self.output.bytes.append(&encoded(&Message::FlagBits(flags))?);
        }
        Ok(())
    }

    /// Starts a session of the log. If the session starts with the header of another log, the
    /// header is copied, because the clock changes there (rule M10 of docs/formats/ulog.md).
    fn begin_session(&mut self, boundary: &Boundary) -> Result<(), UlogError> {
        self.report.sessions.push(0);
        if !boundary.has_header {
            return Ok(());
        }
        self.begin_data()?;
        self.parameters.pop_front();
        self.in_data = false;
        self.current_log = log_from(self.log, boundary.at);
        self.defined.clear();
        self.moved_formats = None;
        self.output.copy(boundary.at..boundary.first())
    }

    /// Returns `true` if a message is part of the slice. `place` is the log time of the message in
    /// nanoseconds.
    fn keeps(&mut self, msg: &MessageRef<'a>, place: i64, ids: &mut Ids) -> Result<bool, UlogError> {
        if let Some(row) = msg.row {
            self.begin_data()?;
            if !self.rows.keeps(msg.at, &row) {
                return Ok(false);
            }
            self.check_time(row.series, msg, row.time)?;
            self.report.records += 1;
            if let Some(session) = self.report.sessions.last_mut() {
                *session += 1;
            }
            return Ok(true);
        }
        let Some(message) = msg.message() else { return Ok(false) };
        let inside = self.rows.select.keeps_time(place);
        if message.is_data() {
            self.begin_data()?;
        }
        Ok(match message {
            Message::Format(format) => {
                self.defined.extend(format_name(&format));
                !self.moved_formats.as_ref().is_some_and(|early| early.contains(&msg.at))
            }
            Message::Info(_) | Message::MultiInfo(_) | Message::DefaultParameter(_) => true,
            Message::Parameter(part) => {
                if self.in_data {
                    self.report.parameter_changes += u64::from(inside);
                    return Ok(inside);
                }
                // If the parameter was changed before the time range, the last change is written
                // instead of the initial value.
                let parameters = self.parameters.front_mut();
                let Some(range) = parameters.and_then(|parameters| parameters.replace(&part)) else {
                    return Ok(true);
                };
                self.output.copy(range)?;
                false
            }
            Message::Subscription(subscription) => {
                let series = ids.subscribe(self.log, msg.at, subscription.msg_id);
                let kept = series.is_some_and(|series| self.rows.topics[series]);
                let defined = subscription.name().is_some_and(|name| self.defined.contains(name));
                if kept && !defined && self.moved_formats.is_none() {
                    self.define_early()?;
                }
                kept
            }
            Message::Unsubscription(wire::Unsubscription { msg_id }) => {
                // If the id was never subscribed, this unsubscription does not belong to any topic,
                // so it is kept.
                ids.series.get(&msg_id).is_none_or(|series| self.rows.topics[*series])
            }
            Message::LoggedString(LoggedString { timestamp, .. })
            | Message::TaggedString(TaggedString { timestamp, .. }) => {
                let micros = timestamp.saturating_add(self.log.shift_at(msg.at));
                let inside = self.rows.select.keeps_time(nanos_of(micros));
                self.report.texts += u64::from(inside);
                inside
            }
            Message::Dropout(wire::Dropout { duration: millis }) => {
                self.report.dropouts += u64::from(inside);
                if let Some(clock) = self.clock.as_mut().filter(|_| inside) {
                    clock.dropout(millis);
                }
                inside
            }
            Message::Sync(_) => inside,
            Message::Unknown { .. } => !self.in_data || inside,
            // A row here cannot be decoded, because it has no usable subscription.
            Message::FlagBits(_) | Message::Data(_) => false,
        })
    }

    /// Starts the data section of the slice, if it has not started. Parameters that were changed
    /// before the time range, but have no initial value in the log, are written before it.
    fn begin_data(&mut self) -> Result<(), UlogError> {
        if std::mem::replace(&mut self.in_data, true) {
            return Ok(());
        }
        let Some(parameters) = self.parameters.front_mut() else { return Ok(()) };
        for range in parameters.rest() {
            self.output.copy(range)?;
        }
        for default in std::mem::take(&mut parameters.defaults) {
            // A default takes one byte more than the parameter itself. If the parameter has the
            // maximum size, its default does not fit into a message, so it is omitted.
            let Ok(bytes) = encoded(&Message::DefaultParameter(default)) else { continue };
            self.output.bytes.append(&bytes);
        }
        Ok(())
    }

    /// Writes the first definition of every format that the slice does not define yet.
    fn define_early(&mut self) -> Result<(), UlogError> {
        let mut early = HashSet::new();
        for msg in self.log.cursor().filter(|msg| self.current_log.contains(&msg.at)) {
            let Some(Message::Format(format)) = msg.message() else { continue };
            if format_name(&format).is_some_and(|name| self.defined.insert(name)) {
                early.insert(msg.at);
                self.output.copy_message(&msg)?;
            }
        }
        self.moved_formats = Some(early);
        Ok(())
    }

    /// Checks that a reader of the slice computes the same time for a row as a reader of the log.
    ///
    /// # Errors
    /// Returns an error if the two times differ.
    fn check_time(&mut self, series: u32, msg: &MessageRef<'_>, time: RowMicros) -> Result<(), UlogError> {
        let Some(clock) = &mut self.clock else { return Ok(()) };
        let shape = self.log.index().shape(series);
        if clock.row(shape, msg.row_bytes()) == time {
            return Ok(());
        }
        Err(UlogError::TimesWouldMove { topic: self.log.topics()[series as usize].name.clone() })
    }

    fn finish(mut self) -> Result<Sliced, UlogError> {
        self.begin_data()?;
        self.report.bytes = self.output.finish()?;
        Ok(self.report.sliced(self.log))
    }
}
