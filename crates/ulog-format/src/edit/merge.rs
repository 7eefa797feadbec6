//! Several logs as one, in time order.
//!
//! Rules M1 to M8 in docs/formats/ulog.md, "Slicing and merging".

use std::collections::{HashMap, HashSet};
use std::io::Write;

use rovelog_core::layout::TextDecoding;
use rovelog_core::scan::Window;
use rovelog_core::wire::U64Le;
use rovelog_core::{Align, Detail, Diagnostics, LogReader, Merged, Value};
use zerocopy::FromBytes as _;

use super::described::{Known, described, name};
use super::topics::{Topics, plan_topics};
use super::trust::{Trust, hides_messages};
use crate::clock::LogClock;
use crate::definitions::{Definitions, RowShape};
use crate::error::UlogError;
use crate::index::{Cursor, Met};
use crate::layout::{Layout, TimeWidth};
use crate::reader::UlogReader;
use crate::scan::MetRow;
use crate::schema::FormatText;
use crate::wire::{
    self, FileHeader, FlagBits, FlagBitsMessage, Info, LoggedString, MAGIC, Message, TaggedString,
};
use crate::writer::UlogWriter;

/// Offsets of logs with one clock differ by less: fixes are late by parts of a second.
const SAME_CLOCK_NANOS: u64 = 1_000_000_000;

/// The information by which a reader places a log on UTC, where nothing was moved.
const BOOT_TIME: &[u8] = b"boot_time_utc_us";

/// Why something of a log is left out.
const OTHER_VALUE: &str = "another log has another value";

/// Writes one log that holds the rows, texts, dropouts and changes of parameters of all `logs`.
///
/// Each log stays in the order of its file; between logs, the one whose log time is less comes
/// first. Topics of the same name, instance and format become one where the logs have one clock and
/// one vehicle, or the times of the topic do not overlap; else the later log's topic becomes the
/// next free instance. Formats, information and parameters are written once, those of the log that
/// starts first before all others; parameters that a later log started with become changes where it
/// starts. In which order the logs are named makes no difference. With [`Align::Utc`] the fields
/// `timestamp` and `timestamp_sample` and the times of texts move, no other field.
///
/// # Errors
/// Returns an error if the clocks cannot be brought together, a format is defined in two ways, a
/// topic finds no free instance, timestamps of fewer than 64 bits would be read differently, or the
/// output refuses.
pub(crate) fn merge(logs: &[&UlogReader], align: Align, out: impl Write) -> Result<Merged, UlogError> {
    if let Some(number) = logs.iter().position(|log| !log.boundaries().is_empty()) {
        return Err(UlogError::SeveralSessions { number: number + 1 });
    }
    let shifts = shifts(logs, align)?;
    let start = |number: &usize| (start(logs[*number], shifts[*number]), *number);
    let mut order: Vec<usize> = (0..logs.len()).collect();
    order.sort_by_key(start);
    let logs: Vec<_> = order.iter().map(|number| logs[*number]).collect();
    let shifts: Vec<_> = order.iter().map(|number| shifts[*number]).collect();
    let topics = plan_topics(&logs, &shifts, align)?;
    let mut merge = Merge::begin(&logs, &shifts, order, topics, out)?;
    merge.definitions()?;
    merge.subscriptions()?;
    merge.data()?;
    merge.finish()
}

/// Microseconds to add to the times of each log.
fn shifts(logs: &[&UlogReader], align: Align) -> Result<Vec<u64>, UlogError> {
    let offsets = logs.iter().enumerate().map(|(number, log)| {
        let unix = log.scanner().clock.clock == rovelog_core::Clock::Unix;
        let utc = log.info().utc.as_ref().map(|utc| utc.nanos).or(unix.then_some(0));
        utc.ok_or(UlogError::ClockUnknown { number: number + 1 })
    });
    let apart = |nanos| UlogError::ClocksDiffer { seconds: nanos / 1_000_000_000 };
    let shifts = align.shifts(offsets, SAME_CLOCK_NANOS - 1, apart)?;
    Ok(shifts.into_iter().map(|nanos| nanos / 1000).collect())
}

/// Returns when a log starts, as its information shows it: microseconds of the merged clock.
fn start(log: &UlogReader, shift: u64) -> u64 {
    let shown = log.info().start.and_then(|start| u64::try_from(start.nanos / 1000).ok());
    shown.unwrap_or(log.header().timestamp.get()).saturating_add(shift)
}

/// A log on its way into the merged one.
struct Source<'a> {
    log: &'a UlogReader,
    cursor: Cursor<'a>,
    shift: u64,
    /// The next message, and the merged log's time at its place.
    next: Option<(Met<'a>, u64)>,
    /// How the rows of each topic are changed.
    rows: Vec<RowEdit>,
    /// Parameters that this log starts with, in the order of its file.
    initial: Vec<Info<'a>>,
    /// Whether its data section has started, and whether the parameters above are active.
    in_data: bool,
    started: bool,
}

/// What a row of a topic becomes.
#[derive(Clone, Copy)]
struct RowEdit {
    msg_id: u16,
    shape: RowShape,
    /// Offsets of the 64-bit times in it that move.
    times: [Option<usize>; 2],
}

impl Source<'_> {
    fn step(&mut self) {
        let met = self.cursor.next();
        self.next = met.map(|met| (met, self.cursor.clock.now.saturating_add(self.shift)));
    }
}

struct Merge<'a, W: Write> {
    /// The log that starts first is the first.
    sources: Vec<Source<'a>>,
    /// For each source, which of the logs that were named it is.
    order: Vec<usize>,
    topics: Topics,
    out: UlogWriter<W>,
    trust: Trust,
    /// Follow the merged log as a reader will.
    clock: LogClock,
    definitions: Definitions,
    /// The value of each parameter at the place.
    in_force: HashMap<&'a [u8], Info<'a>>,
    row: Vec<u8>,
    records: u64,
    left_out: Vec<String>,
}

impl<'a, W: Write> Merge<'a, W> {
    fn begin(
        logs: &[&'a UlogReader],
        shifts: &[u64],
        order: Vec<usize>,
        topics: Topics,
        out: W,
    ) -> Result<Self, UlogError> {
        let start = |(log, shift): (&&UlogReader, &u64)| log.header().timestamp.get().saturating_add(*shift);
        let start = logs.iter().zip(shifts).map(start).min().unwrap_or(0);
        let version = logs.iter().map(|log| log.header().version).max().unwrap_or(1);
        let header = FileHeader { magic: MAGIC, version, timestamp: U64Le::new(start) };
        let mut out = UlogWriter::copying(out, &header)?;
        if let Some(flags) = flag_bits(logs) {
            out.write_message(&Message::FlagBits(FlagBitsMessage { flags, more: &[] }))?;
        }
        let mut sources = Vec::new();
        for ((log, shift), ids) in logs.iter().zip(shifts).zip(&topics.of_log) {
            let log: &'a UlogReader = log;
            let rows = (0..).zip(ids).map(|(series, topic)| row_edit(log, series, *topic, *shift));
            let mut source = Source {
                log,
                cursor: log.cursor(),
                shift: *shift,
                next: None,
                rows: rows.collect(),
                initial: Vec::new(),
                in_data: false,
                started: false,
            };
            source.step();
            sources.push(source);
        }
        let clock = LogClock::new(start);
        let limits = logs.first().map(|log| log.definitions().limits().clone()).unwrap_or_default();
        let definitions = Definitions::new(&limits, TextDecoding::default());
        let (in_force, row, left_out) = (HashMap::new(), Vec::new(), Vec::new());
        let trust = Trust::default();
        Ok(Self {
            sources,
            order,
            topics,
            out,
            trust,
            clock,
            definitions,
            in_force,
            row,
            records: 0,
            left_out,
        })
    }

    /// Returns each format once. Where logs differ, the one counts whose topics use it.
    fn formats(&mut self) -> Result<(), UlogError> {
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
            self.leave_out("format, used by no topic,", name.as_bytes(), number, OTHER_VALUE);
        }
        order
            .iter()
            .try_for_each(|name| self.write(&Message::Format(wire::Format { format: chosen[name].0 })))
    }

    /// Formats, information, parameters and defaults, each once.
    fn definitions(&mut self) -> Result<(), UlogError> {
        self.formats()?;
        let mut known = Known::default();
        for number in 0..self.sources.len() {
            let said = described(self.sources[number].log);
            for messages in &said {
                match messages[..] {
                    [Message::Parameter(part)] if number == 0 => {
                        self.in_force.insert(name(part), part);
                        self.write(&messages[0])?;
                    }
                    [Message::Parameter(part)] => self.sources[number].initial.push(part),
                    // Rule U2 would place the other logs by it.
                    [Message::Info(part)] if self.sources[number].shift != 0 && name(part) == BOOT_TIME => {
                        self.leave_out(
                            "information",
                            part.key,
                            number,
                            "its times are on the clock of another log",
                        );
                    }
                    _ => {
                        let new = known.compare(messages);
                        new.messages.iter().try_for_each(|message| self.write(message))?;
                        if let Some((what, key)) = new.contradicts {
                            self.leave_out(what, key, number, OTHER_VALUE);
                        }
                    }
                }
            }
            known.extend(&said);
        }
        Ok(())
    }

    fn write(&mut self, message: &Message<'_>) -> Result<(), UlogError> {
        self.trust.take(message);
        if matches!(message, Message::Format(_) | Message::Subscription(_)) {
            let at = self.out.position();
            self.definitions.apply(at, at, message, &mut Diagnostics::default());
        }
        self.out.write_message(message)
    }

    fn leave_out(&mut self, what: &str, key: &[u8], number: usize, why: &str) {
        let (key, log) = (String::from_utf8_lossy(key), self.order[number] + 1);
        self.left_out.push(format!("{what} {key} of log {log}: {why}"));
    }

    fn subscriptions(&mut self) -> Result<(), UlogError> {
        let merged = std::mem::take(&mut self.topics.merged);
        for (msg_id, topic) in (0..=u16::MAX).zip(&merged) {
            if !topic.defined {
                // It has no rows, and without any format a reader would not even take it for a subscription.
                self.left_out.push(format!("subscription {}: its format is not defined", topic.type_name));
                continue;
            }
            let message_name = topic.type_name.as_bytes();
            let subscription = wire::Subscription { multi_id: topic.multi_id, msg_id, message_name };
            self.write(&Message::Subscription(subscription))?;
        }
        self.topics.merged = merged;
        Ok(())
    }

    /// Returns what is behind the definitions, from whichever log is first at the place.
    fn data(&mut self) -> Result<(), UlogError> {
        loop {
            let waiting = self.sources.iter().enumerate();
            let next =
                waiting.filter_map(|(at, source)| source.next.as_ref().map(|(_, now)| (*now, at))).min();
            let Some((_, number)) = next else { return Ok(()) };
            let source = &mut self.sources[number];
            let Some((met, _)) = source.next.take() else { return Ok(()) };
            source.step();
            self.take(number, &met)?;
        }
    }

    fn take(&mut self, number: usize, met: &Met<'a>) -> Result<(), UlogError> {
        if let Some(row) = met.row {
            self.enter(number)?;
            return self.row(number, &row, met.row_bytes());
        }
        let Some(message) = met.message() else { return Ok(()) };
        match message {
            // Written already; and what nothing can decode, or what its id meant, is not for another log.
            Message::FlagBits(_)
            | Message::Format(_)
            | Message::Info(_)
            | Message::MultiInfo(_)
            | Message::DefaultParameter(_) => Ok(()),
            Message::Subscription(_) | Message::Unsubscription(_) | Message::Data(_) => {
                self.sources[number].in_data = true;
                Ok(())
            }
            Message::Parameter(part) => {
                // Those before the data are known.
                if !self.sources[number].in_data {
                    return Ok(());
                }
                self.enter(number)?;
                self.in_force.insert(name(part), part);
                self.write(&message)
            }
            Message::LoggedString(text) => {
                self.enter(number)?;
                let timestamp = moved(text.timestamp, self.sources[number].shift);
                self.write(&Message::LoggedString(LoggedString { timestamp, ..text }))
            }
            Message::TaggedString(text) => {
                self.enter(number)?;
                let timestamp = moved(text.timestamp, self.sources[number].shift);
                self.write(&Message::TaggedString(TaggedString { timestamp, ..text }))
            }
            Message::Dropout(dropout) => {
                self.enter(number)?;
                self.clock.dropout(dropout.duration);
                self.write(&message)
            }
            Message::Sync(_) => {
                self.sources[number].in_data = true;
                self.write(&message)
            }
            Message::Unknown { .. } => self.unknown(number, met, &message),
        }
    }

    /// Keeps an unknown message, unless the definitions, which are all before it now, would make a
    /// reader find messages inside of it: their ids are those of its own log.
    fn unknown(&mut self, number: usize, met: &Met<'a>, message: &Message<'_>) -> Result<(), UlogError> {
        let window = Window::whole(self.sources[number].log.bytes());
        if hides_messages(&self.definitions, window, met.at..met.end()) {
            let log = self.order[number] + 1;
            self.left_out
                .push(format!("unknown message at byte {} of log {log}: messages are inside", met.at));
            return Ok(());
        }
        self.write(message)
    }

    /// Starts the data of a log: what it started with is active from here.
    fn enter(&mut self, number: usize) -> Result<(), UlogError> {
        self.sources[number].in_data = true;
        if std::mem::replace(&mut self.sources[number].started, true) {
            return Ok(());
        }
        for part in std::mem::take(&mut self.sources[number].initial) {
            if self.in_force.insert(name(part), part) != Some(part) {
                self.write(&Message::Parameter(part))?;
            }
        }
        Ok(())
    }

    fn row(&mut self, number: usize, met: &MetRow, row: &[u8]) -> Result<(), UlogError> {
        let source = &self.sources[number];
        let edit = source.rows[met.series as usize];
        self.records += 1;
        self.row.clear();
        self.row.extend_from_slice(row);
        for at in edit.times.into_iter().flatten() {
            if let Some(Ok((time, _))) = self.row.get_mut(at..).map(U64Le::mut_from_prefix) {
                *time = U64Le::new(moved(time.get(), source.shift));
            }
        }
        let got = self.clock.row(edit.shape, &self.row);
        if edit.shape.is_narrow() && got != met.time {
            let topic = source.log.topics()[met.series as usize].name.clone();
            return Err(UlogError::TimesWouldMove { topic });
        }
        let row = std::mem::take(&mut self.row);
        self.write(&Message::Data(wire::Data { msg_id: edit.msg_id, row: &row }))?;
        self.row = row;
        Ok(())
    }

    fn finish(mut self) -> Result<Merged, UlogError> {
        if self.trust.needs_sync() {
            self.out.sync()?;
        }
        let bytes = self.out.position();
        self.out.finish()?;
        let renamed = self.topics.renamed.into_iter().map(|(log, from, to)| {
            Value::record([
                ("log", Value::UInt(self.order[log] as u64 + 1, 32)),
                ("topic", Value::Text(from)),
                ("became", Value::Text(to)),
            ])
        });
        Ok(Merged {
            records: self.records,
            topics: self.topics.merged.iter().filter(|topic| topic.defined).count(),
            bytes,
            left_out: self.left_out,
            details: vec![Detail::hidden("renamed_topics", Value::List(renamed.collect()))],
        })
    }
}

/// The names of a format and of those inside it. The recursion follows the layout, whose depth is
/// limited.
fn collect<'a>(layout: &'a rovelog_core::layout::Layout, names: &mut HashSet<&'a str>) {
    if names.insert(&layout.schema().name) {
        for slot in layout.slots() {
            if let rovelog_core::layout::Element::Struct(inner) = &slot.element {
                collect(inner, names);
            }
        }
    }
}

/// A time of 0 is none, and stays so.
fn moved(time: u64, shift: u64) -> u64 {
    if time == 0 { 0 } else { time.saturating_add(shift) }
}

/// Returns the flags of all logs, with no data appended; `None` where no log has any.
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

fn row_edit(log: &UlogReader, series: u32, topic: usize, shift: u64) -> RowEdit {
    // A topic that cannot be decoded has no rows.
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
    /// Returns where `timestamp_sample` is: PX4's time of measurement, on the same clock as
    /// `timestamp`.
    fn sample_time(&self) -> Option<usize> {
        let place = self.record.place("timestamp_sample")?;
        place.is_scalar(rovelog_core::Scalar::UInt64).then_some(place.offset())
    }
}
