//! Merging of several logs into one, in time order.
//!
//! Implements rules M1 to M8 of docs/formats/ulog.md, section "Slicing and merging".
//!
//! # Example
//!
//! Two logs with the same clock have a topic `t/0`. Log 1 has rows at 10 s and 30 s, log 2 at 20 s
//! and 40 s. They have the same `sys_uuid`, so both topics become one topic `t/0` with the rows at
//! 10, 20, 30 and 40 s.
//!
//! If the logs come from two vehicles, rows of both would be mixed in one topic, so the topic of
//! log 2 becomes `t/1`. If in addition log 2 has no row before 31 s, the times do not overlap, and
//! both topics become `t/0`.

use std::collections::{HashMap, HashSet};
use std::io::Write;

use rovelog_core::internal::layout::TextDecoding;
use rovelog_core::internal::scan::Window;
use rovelog_core::internal::wire::U64Le;
use rovelog_core::{Align, Detail, Diagnostics, LogReader, Merged, Value};
use zerocopy::FromBytes as _;

use super::descriptions::{EarlierValues, descriptions, name};
use super::guard::{UnknownGuard, hides_messages};
use super::topics::{Topics, plan_topics};
use crate::clock::LogClock;
use crate::definitions::{Definitions, RowShape};
use crate::error::UlogError;
use crate::index::{Cursor, MessageRef};
use crate::layout::{Layout, TimeWidth};
use crate::reader::UlogReader;
use crate::scan::RowInfo;
use crate::schema::FormatText;
use crate::wire::{
    self, FileHeader, FlagBits, FlagBitsMessage, Info, LoggedString, MAGIC, Message, TaggedString,
};
use crate::writer::UlogWriter;

/// Maximum difference in nanoseconds between the UTC offsets of two logs with the same clock. GPS
/// fixes are late by fractions of a second, so the offsets differ slightly.
const SAME_CLOCK_NANOS: u64 = 1_000_000_000;

/// Name of the information message from which a reader computes UTC (rule U2 of
/// docs/formats/ulog.md).
const BOOT_TIME: &[u8] = b"boot_time_utc_us";

/// Reason that is reported if the value of a log is not merged.
const OTHER_VALUE: &str = "another log has a different value";

/// Merges the rows, console messages, dropouts and parameter changes of `logs` into one log.
///
/// - The messages of each log stay in file order. Between logs, the message with the earlier log
///   time comes first. The order of `logs` does not matter.
/// - Topics with the same name, instance and format become one topic if the logs have the same
///   clock and vehicle, or if the times of the topics do not overlap. Otherwise, the topic of the
///   later log becomes the next free instance.
/// - Formats, information and initial parameters are written once. The log that starts first takes
///   precedence. Initial parameters of the other logs become changes at the start of these logs.
/// - With [`Align::Utc`], times are moved to a common clock. This changes the fields `timestamp`
///   and `timestamp_sample` and the times of console messages, but no other field.
///
/// # Errors
/// Returns an error in the following cases:
///
/// - The clocks cannot be aligned.
/// - A format that is used by topics of several logs is defined differently.
/// - There is no free instance for a topic.
/// - Timestamps of fewer than 64 bits would be completed to other times in the merged log.
/// - The output cannot be written.
pub(crate) fn merge(logs: &[&UlogReader], align: Align, out: impl Write) -> Result<Merged, UlogError> {
    if let Some(number) = logs.iter().position(|log| !log.boundaries().is_empty()) {
        return Err(UlogError::SeveralSessions { number: number + 1 });
    }
    let shifts = shifts(logs, align)?;
    let start = |number: &usize| (start(logs[*number], shifts[*number]), *number);
    // The result must not depend on the order in which the caller lists the logs.
    let mut order: Vec<usize> = (0..logs.len()).collect();
    order.sort_by_key(start);
    let logs: Vec<_> = order.iter().map(|number| logs[*number]).collect();
    let shifts: Vec<_> = order.iter().map(|number| shifts[*number]).collect();
    let topics = plan_topics(&logs, &shifts, align)?;
    let mut merge = Merge::begin(&logs, &shifts, &order, topics, out)?;
    merge.definitions()?;
    merge.subscriptions()?;
    merge.data()?;
    merge.finish()
}

/// Returns the number of microseconds to add to the times of each log, so that all logs have the
/// same clock.
fn shifts(logs: &[&UlogReader], align: Align) -> Result<Vec<u64>, UlogError> {
    let offsets = logs.iter().enumerate().map(|(number, log)| {
        // If the clock of a log is Unix time, its UTC offset is 0 (rule U1 of
        // docs/formats/ulog.md).
        let unix = log.scanner().clock.clock == rovelog_core::Clock::Unix;
        let utc = log.info().utc.as_ref().map(|utc| utc.nanos).or(unix.then_some(0));
        utc.ok_or(UlogError::ClockUnknown { number: number + 1 })
    });
    let apart = |nanos| UlogError::ClocksDiffer { seconds: nanos / 1_000_000_000 };
    let shifts = align.shifts(offsets, SAME_CLOCK_NANOS - 1, apart)?;
    Ok(shifts.into_iter().map(|nanos| nanos / 1000).collect())
}

/// Returns the start time of a log in microseconds of the merged log's clock. If `LogInfo` contains
/// a start time, it takes precedence over the start time in the header.
fn start(log: &UlogReader, shift: u64) -> u64 {
    let shown = log.info().start.and_then(|start| u64::try_from(start.nanos / 1000).ok());
    shown.unwrap_or(log.header().timestamp.get()).saturating_add(shift)
}

/// A log that is being merged.
struct Source<'a> {
    log: &'a UlogReader,
    /// Position of the log in the list that the caller passed, counted from 1.
    position: usize,
    cursor: Cursor<'a>,
    /// Number of microseconds to add to the times of the log.
    shift: u64,
    /// The next message of the log, with its log time on the clock of the merged log.
    next: Option<(MessageRef<'a>, u64)>,
    /// Changes to be made to the rows of each topic of the log.
    rows: Vec<RowEdit>,
    /// Initial parameters of the log in file order. The list is empty after the parameters were
    /// written.
    initial: Vec<Info<'a>>,
    /// True if the data section of the log has started.
    in_data: bool,
}

/// Changes to be made to the rows of a topic during a merge.
#[derive(Clone, Copy)]
struct RowEdit {
    /// Id of the topic in the merged log.
    msg_id: u16,
    shape: RowShape,
    /// Offsets within a row of the 64-bit times that are moved to the clock of the merged log.
    times: [Option<usize>; 2],
}

impl Source<'_> {
    /// Reads the next message of the log.
    fn step(&mut self) {
        let msg = self.cursor.next();
        self.next = msg.map(|msg| (msg, self.cursor.clock.now.saturating_add(self.shift)));
    }
}

/// Writer of the merged log, with the state for checking that a reader would accept the log.
struct Output<W: Write> {
    writer: UlogWriter<W>,
    guard: UnknownGuard,
    /// Definitions of the merged log.
    definitions: Definitions,
}

impl<W: Write> Output<W> {
    /// Writes a message to the merged log.
    fn write(&mut self, message: &Message<'_>) -> Result<(), UlogError> {
        self.guard.observe(message);
        if matches!(message, Message::Format(_) | Message::Subscription(_)) {
            let at = self.writer.position();
            self.definitions.apply(at, at, message, &mut Diagnostics::default());
        }
        self.writer.write_message(message)
    }

    /// Completes the merged log, and returns its size in bytes.
    fn finish(mut self) -> Result<u64, UlogError> {
        if self.guard.needs_sync() {
            self.writer.sync()?;
        }
        let bytes = self.writer.position();
        self.writer.finish()?;
        Ok(bytes)
    }
}

/// State of merging several logs.
struct Merge<'a, W: Write> {
    /// The logs to merge, sorted by start time.
    sources: Vec<Source<'a>>,
    topics: Topics,
    out: Output<W>,
    /// The clock that a reader of the merged log would have. It is used to check timestamps of
    /// fewer than 64 bits.
    clock: LogClock,
    /// Current value of each parameter in the merged log.
    current_parameters: HashMap<&'a [u8], Info<'a>>,
    /// Buffer for the row that is being changed.
    row: Vec<u8>,
    /// Number of records written to the merged log.
    records: u64,
    /// Descriptions of the items that are not merged, for the report.
    left_out: Vec<String>,
}

impl<'a, W: Write> Merge<'a, W> {
    /// Writes the header and the flag bits of the merged log, and reads the first message of each
    /// log.
    fn begin(
        logs: &[&'a UlogReader],
        shifts: &[u64],
        order: &[usize],
        topics: Topics,
        out: W,
    ) -> Result<Self, UlogError> {
        let start = |(log, shift): (&&UlogReader, &u64)| log.header().timestamp.get().saturating_add(*shift);
        let start = logs.iter().zip(shifts).map(start).min().unwrap_or(0);
        let version = logs.iter().map(|log| log.header().version).max().unwrap_or(1);
        let header = FileHeader { magic: MAGIC, version, timestamp: U64Le::new(start) };
        let mut writer = UlogWriter::copying(out, &header)?;
        if let Some(flags) = flag_bits(logs) {
            writer.write_message(&Message::FlagBits(FlagBitsMessage { flags, more: &[] }))?;
        }
        let mut sources = Vec::new();
        for (((log, shift), ids), number) in logs.iter().zip(shifts).zip(&topics.of_log).zip(order) {
            let log: &'a UlogReader = log;
            let rows = (0..).zip(ids).map(|(series, topic)| row_edit(log, series, *topic, *shift));
            let mut source = Source {
                log,
                position: number + 1,
                cursor: log.cursor(),
                shift: *shift,
                next: None,
                rows: rows.collect(),
                initial: Vec::new(),
                in_data: false,
            };
            source.step();
            sources.push(source);
        }
        let limits = logs.first().map(|log| log.definitions().limits().clone()).unwrap_or_default();
        let definitions = Definitions::new(&limits, TextDecoding::default());
        Ok(Self {
            sources,
            topics,
            out: Output { writer, guard: UnknownGuard::default(), definitions },
            clock: LogClock::new(start),
            current_parameters: HashMap::new(),
            row: Vec::new(),
            records: 0,
            left_out: Vec::new(),
        })
    }

    /// Writes each format once. If the logs define a format differently, the definition that topics
    /// use is written (rule M4 of docs/formats/ulog.md).
    fn formats(&mut self) -> Result<(), UlogError> {
        // `chosen` maps the name of each format to its definition, and to `true` if topics use the
        // definition.
        let (mut chosen, mut order) = (HashMap::<&str, (&[u8], bool)>::new(), Vec::new());
        let mut unused = Vec::new();
        for (number, source) in self.sources.iter().enumerate() {
            let mut in_topics = HashSet::new();
            let layouts = source.log.definitions().subscriptions().iter();
            let layouts = layouts.filter_map(|topic| topic.layout.as_deref().ok());
            layouts.for_each(|layout| collect(&layout.record, &mut in_topics));
            for (_, message) in source.log.messages() {
                let Message::Format(wire::Format { format: text }) = message else { continue };
                let Some(name) = FormatText::parse(text).map(|format| format.name) else { continue };
                let uses = in_topics.contains(name);
                match chosen.get_mut(name) {
                    None => {
                        chosen.insert(name, (text, uses));
                        order.push(name);
                    }
                    Some((before, needed)) if *before == text => *needed |= uses,
                    Some((_, true)) if uses => {
                        return Err(UlogError::FormatsDiffer { name: name.to_owned() });
                    }
                    Some(before) => {
                        if uses {
                            *before = (text, true);
                        }
                        unused.push((name, number));
                    }
                }
            }
        }
        for (name, number) in unused {
            self.leave_out("unused format", name.as_bytes(), number, OTHER_VALUE);
        }
        order
            .iter()
            .try_for_each(|name| self.out.write(&Message::Format(wire::Format { format: chosen[name].0 })))
    }

    /// Writes the formats, information, parameters and defaults of all logs. Each of them is
    /// written once.
    fn definitions(&mut self) -> Result<(), UlogError> {
        self.formats()?;
        let mut known = EarlierValues::default();
        for number in 0..self.sources.len() {
            let groups = descriptions(self.sources[number].log);
            for messages in &groups {
                match messages[..] {
                    [Message::Parameter(part)] if number == 0 => {
                        self.current_parameters.insert(name(part), part);
                        self.out.write(&messages[0])?;
                    }
                    [Message::Parameter(part)] => self.sources[number].initial.push(part),
                    // The times of this log were moved to another clock, so the log's
                    // `boot_time_utc_us` does not apply to them. A reader would compute wrong UTC
                    // from it (rule U2 of docs/formats/ulog.md).
                    [Message::Info(part)] if self.sources[number].shift != 0 && name(part) == BOOT_TIME => {
                        let why = "its times are on the clock of another log";
                        self.leave_out("information", part.key, number, why);
                    }
                    _ => {
                        let new = known.compare(messages);
                        new.messages.iter().try_for_each(|message| self.out.write(message))?;
                        if let Some((what, key)) = new.contradicts {
                            self.leave_out(what, key, number, OTHER_VALUE);
                        }
                    }
                }
            }
            known.extend(&groups);
        }
        Ok(())
    }

    /// Records that an item of the log with the index `number` is not merged.
    fn leave_out(&mut self, what: &str, key: &[u8], number: usize, why: &str) {
        let (key, log) = (String::from_utf8_lossy(key), self.sources[number].position);
        self.left_out.push(format!("{what} {key} of log {log}, because {why}"));
    }

    /// Writes the subscriptions of the merged topics.
    fn subscriptions(&mut self) -> Result<(), UlogError> {
        for (msg_id, topic) in (0..=u16::MAX).zip(&self.topics.merged) {
            if !topic.defined {
                // The topic has no rows. A reader cannot verify a subscription without a format,
                // and might report it as damage.
                let name = &topic.type_name;
                self.left_out.push(format!("the subscription of {name}, because its format is not defined"));
                continue;
            }
            let message_name = topic.type_name.as_bytes();
            let subscription = wire::Subscription { multi_id: topic.multi_id, msg_id, message_name };
            self.out.write(&Message::Subscription(subscription))?;
        }
        Ok(())
    }

    /// Writes the messages of the data sections. Each iteration writes the message with the
    /// earliest log time.
    fn data(&mut self) -> Result<(), UlogError> {
        loop {
            let waiting = self.sources.iter().enumerate();
            let next =
                waiting.filter_map(|(at, source)| source.next.as_ref().map(|(_, now)| (*now, at))).min();
            let Some((_, number)) = next else { return Ok(()) };
            let source = &mut self.sources[number];
            let Some((msg, _)) = source.next.take() else { return Ok(()) };
            source.step();
            self.merge_message(number, &msg)?;
        }
    }

    /// Writes a message of the log with the index `number`, unless it was written with the
    /// definitions.
    fn merge_message(&mut self, number: usize, msg: &MessageRef<'a>) -> Result<(), UlogError> {
        if let Some(row) = msg.row {
            self.start_data(number)?;
            return self.row(number, &row, msg.row_bytes());
        }
        let Some(message) = msg.message() else { return Ok(()) };
        self.sources[number].in_data |= message.is_data();
        match message {
            // Messages of the first six types were written with the definitions. An unsubscription
            // is not copied, because it would end a topic that other logs share. The remaining data
            // messages cannot be decoded.
            Message::FlagBits(_)
            | Message::Format(_)
            | Message::Info(_)
            | Message::MultiInfo(_)
            | Message::DefaultParameter(_)
            | Message::Subscription(_)
            | Message::Unsubscription(_)
            | Message::Data(_) => Ok(()),
            Message::Parameter(part) => {
                // Initial values of parameters were written with the definitions.
                if !self.sources[number].in_data {
                    return Ok(());
                }
                self.start_data(number)?;
                self.current_parameters.insert(name(part), part);
                self.out.write(&message)
            }
            Message::LoggedString(text) => {
                self.start_data(number)?;
                let timestamp = moved(text.timestamp, self.sources[number].shift);
                self.out.write(&Message::LoggedString(LoggedString { timestamp, ..text }))
            }
            Message::TaggedString(text) => {
                self.start_data(number)?;
                let timestamp = moved(text.timestamp, self.sources[number].shift);
                self.out.write(&Message::TaggedString(TaggedString { timestamp, ..text }))
            }
            Message::Dropout(dropout) => {
                self.start_data(number)?;
                self.clock.dropout(dropout.duration);
                self.out.write(&message)
            }
            Message::Sync(_) => self.out.write(&message),
            Message::Unknown { .. } => self.unknown(number, msg, &message),
        }
    }

    /// Writes an unknown message, unless a reader would find valid messages inside it (rule M8 of
    /// docs/formats/ulog.md).
    ///
    /// In the merged log, all definitions precede the unknown message. With these definitions,
    /// bytes inside the message may look like rows.
    fn unknown(
        &mut self,
        number: usize,
        msg: &MessageRef<'a>,
        message: &Message<'_>,
    ) -> Result<(), UlogError> {
        let window = Window::whole(self.sources[number].log.bytes());
        if hides_messages(&self.out.definitions, window, msg.at..msg.end()) {
            let log = self.sources[number].position;
            self.left_out.push(format!(
                "the unknown message at byte {} of log {log}, because it contains other messages",
                msg.at
            ));
            return Ok(());
        }
        self.out.write(message)
    }

    /// Starts the data of the log with the index `number`, and writes its initial parameters as
    /// changes (rule M6 of docs/formats/ulog.md).
    fn start_data(&mut self, number: usize) -> Result<(), UlogError> {
        self.sources[number].in_data = true;
        for part in std::mem::take(&mut self.sources[number].initial) {
            if self.current_parameters.insert(name(part), part) != Some(part) {
                self.out.write(&Message::Parameter(part))?;
            }
        }
        Ok(())
    }

    /// Writes a row with the topic's id in the merged log and with moved times.
    fn row(&mut self, number: usize, info: &RowInfo, row: &[u8]) -> Result<(), UlogError> {
        let source = &self.sources[number];
        let edit = source.rows[info.series as usize];
        self.records += 1;
        self.row.clear();
        self.row.extend_from_slice(row);
        for at in edit.times.into_iter().flatten() {
            if let Some(Ok((time, _))) = self.row.get_mut(at..).map(U64Le::mut_from_prefix) {
                *time = U64Le::new(moved(time.get(), source.shift));
            }
        }
        let got = self.clock.row(edit.shape, &self.row);
        if edit.shape.is_narrow() && got != info.time {
            let topic = source.log.topics()[info.series as usize].name.clone();
            return Err(UlogError::TimesWouldMove { topic });
        }
        self.out.write(&Message::Data(wire::Data { msg_id: edit.msg_id, row: &self.row }))
    }

    fn finish(self) -> Result<Merged, UlogError> {
        let bytes = self.out.finish()?;
        let renamed = self.topics.renamed.into_iter().map(|(log, from, to)| {
            Value::record([
                ("log", Value::UInt(self.sources[log].position as u64, 32)),
                ("topic", Value::Text(from)),
                ("became", Value::Text(to)),
            ])
        });
        let details = vec![Detail::hidden("renamed_topics", Value::List(renamed.collect()))];
        let topics = self.topics.merged.iter().filter(|topic| topic.defined).count();
        Ok(Merged { records: self.records, topics, bytes, left_out: self.left_out, details })
    }
}

/// Adds the names of a format and of all types nested in the format to `names`. The recursion is
/// limited, because the nesting depth of a layout is limited.
fn collect<'a>(layout: &'a rovelog_core::internal::layout::Layout, names: &mut HashSet<&'a str>) {
    if names.insert(&layout.schema().name) {
        for slot in layout.slots() {
            if let rovelog_core::internal::layout::Element::Struct(inner) = &slot.element {
                collect(inner, names);
            }
        }
    }
}

/// Adds `shift` to a time. A value of 0 means that the time is unknown, so it is not changed.
fn moved(time: u64, shift: u64) -> u64 {
    if time == 0 { 0 } else { time.saturating_add(shift) }
}

/// Returns the combined flags of all logs, without offsets of appended data. Returns `None` if no
/// log has flag bits.
fn flag_bits(logs: &[&UlogReader]) -> Option<FlagBits> {
    let or = |mut a: FlagBits, b: &FlagBits| {
        a.compat_flags.iter_mut().zip(b.compat_flags).for_each(|(a, b)| *a |= b);
        a.incompat_flags.iter_mut().zip(b.incompat_flags).for_each(|(a, b)| *a |= b);
        a
    };
    let mut flags = logs.iter().filter_map(|log| log.flag_bits());
    let first = *flags.next()?;
    Some(flags.fold(first, or).merged())
}

/// Returns the changes to be made to the rows of a topic. `topic` is the index of the topic in the
/// merged log.
fn row_edit(log: &UlogReader, series: u32, topic: usize, shift: u64) -> RowEdit {
    // A topic that cannot be decoded has no rows, so `layout` is not needed for it.
    let mut shape = log.index().shape(series);
    shape.series = u32::try_from(topic).expect("a log has fewer topics");
    let layout = log.definitions().subscriptions()[series as usize].layout.as_deref().ok();
    let sample = layout.and_then(Layout::sample_time);
    let time = layout.and_then(|layout| layout.timestamp);
    let time = time.filter(|time| time.width == TimeWidth::U64Micros).map(|time| time.offset);
    let times = if shift == 0 { [None; 2] } else { [time, sample] };
    RowEdit { msg_id: u16::try_from(topic).expect("planned to fit"), shape, times }
}

impl Layout {
    /// Returns the offset of the field `timestamp_sample` within a row. PX4 stores the time of a
    /// measurement in this field, on the same clock as `timestamp`.
    fn sample_time(&self) -> Option<usize> {
        let place = self.record.place("timestamp_sample")?;
        place.is_scalar(rovelog_core::Scalar::UInt64).then_some(place.offset())
    }
}
