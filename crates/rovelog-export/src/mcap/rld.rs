//! Logs of the RocketLogger: samples with the SI unit in their names, digital inputs, ambient sensors, and what
//! happened while they were recorded.
//!
//! A message costs a viewer the same whatever it holds, so above 1000 samples in a second there is one for each
//! millisecond with the least, the mean and the greatest value; a digital input is there whenever it changes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Range;
use std::sync::Arc;

use rovelog::rld_format::analysis::{Accumulator, Current, StatsOptions};
use rovelog::rld_format::clock::TimeMap;
use rovelog::rld_format::unit::{Scale, Unit};
use rovelog::rld_format::{AMBIENT, Channel, RldReader, diagnostics};
use rovelog::{Diagnostic, Field, FieldType, LogReader as _, Scalar, Schema, Select, Severity, Topic};

use super::foxglove::{self, WellKnown};
use super::proto::{bytes, double, uint, varint};
use super::{Carried, Extra, ExtraSchema, Extras, McapOptions};
use crate::{ExportError, TimeBase};

/// Messages in a second that viewers take.
const RATE: u16 = 1000;

/// What a message is made of; also the order of messages of one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Samples,
    Digital,
    Ambient,
}

/// The next message of a stretch of rows: its time, what it is and of which series, its row, and the end of the
/// stretch.
type Cursor = (i64, Kind, usize, u64, u64);

pub(super) struct Rld<'a> {
    reader: &'a RldReader,
    select: Select,
    typed: bool,
    series: Vec<Series<'a>>,
    digital: Option<Digital<'a>>,
    /// By time: few stretches, each as long as the clock went on.
    cursors: BinaryHeap<Reverse<Cursor>>,
    offset: Option<u64>,
}

impl<'a> Rld<'a> {
    pub(super) fn new(
        reader: &'a RldReader,
        select: &Select,
        options: &McapOptions,
    ) -> Result<Self, ExportError> {
        let rate = reader.header().lead_in.sample_rate.get();
        let rows = match options.batch {
            Some(rows) => u64::from(rows).max(1),
            None if options.full => 1,
            None => u64::from(rate.div_ceil(RATE)).max(1),
        };
        let (mut series, mut digital) = (Vec::new(), None);
        for topic in reader.topics().iter().filter(|topic| topic.count > 0 && select.keeps_topic(topic)) {
            let file = if topic.id.index() == 0 { Some(reader) } else { reader.ambient() };
            let Some(file) = file else { continue };
            if topic.name == AMBIENT {
                series.push(Series::new(file, Kind::Ambient, 1, false)?);
            } else {
                series.push(Series::new(file, Kind::Samples, rows, options.batch.is_some())?);
                digital = Digital::new(file, rows > 1);
            }
        }
        let mut cursors = BinaryHeap::new();
        for (number, series) in series.iter().enumerate() {
            let mut add = |kind, rows: Range<u64>| {
                let time = series.times.time(rows.start).unwrap_or(i64::MIN);
                cursors.push(Reverse((time, kind, number, rows.start, rows.end)));
            };
            for rows in stretches(series, select) {
                add(series.kind, rows.clone());
                if series.kind == Kind::Samples && digital.is_some() {
                    add(Kind::Digital, rows);
                }
            }
        }
        let typed = options.typed;
        Ok(Self { reader, select: select.clone(), typed, series, digital, cursors, offset: None })
    }

    /// When the log begins, on its clock.
    fn start(&self) -> i64 {
        self.reader.info().start.map_or(0, |start| start.nanos)
    }

    /// The row that begins the block in which a byte lies; `None` for those of headers.
    fn row_of(&self, offset: u64) -> Option<u64> {
        let layout = self.reader.layout().ok()?;
        let mut base = 0;
        for (_, bytes, rows) in self.reader.parts() {
            let next = base + bytes.len() as u64;
            if offset < next {
                let block = (offset - base).checked_sub(layout.header)? / layout.block.max(1);
                let row = rows.start + block * layout.block_rows;
                return Some(row.min(rows.end.saturating_sub(1)));
            }
            base = next;
        }
        None
    }

    fn event(&self, row: Option<u64>, level: u8, name: &str, message: &str) -> Extra {
        let time = row.and_then(|row| self.reader.record_times().time(row));
        // What is said of the whole log stands where the window begins.
        let start = self.start().max(self.select.start.unwrap_or(i64::MIN));
        let nanos = time.unwrap_or(start);
        let mut bytes = Vec::new();
        let at = TimeBase::of(self.reader).place(nanos).unwrap_or(nanos);
        foxglove::log(at, (level, name), message, &mut bytes);
        let schema = ExtraSchema::WellKnown(WellKnown::Log);
        Extra { nanos, topic: "/rld/events".into(), schema, bytes }
    }

    fn noticed(&self, diagnostic: &Diagnostic) -> Extra {
        let moved = [&diagnostics::GAP, &diagnostics::CLOCK_BACKWARDS, &diagnostics::CLOCK_STEP];
        let level = match diagnostic.rule.severity {
            Severity::DataLost => 3,
            Severity::Repaired => 4,
            Severity::Note if moved.contains(&diagnostic.rule) => 4,
            Severity::Note => 6,
        };
        let row = self.row_of(diagnostic.range.start);
        self.event(row, level, diagnostic.rule.name, &diagnostic.message)
    }
}

/// How a column of messages comes from sums over rows.
enum Column {
    /// The range bit with this number.
    Valid(usize),
    /// The analog channel with this number.
    Analog(usize, Scale),
    /// The merged current with this number.
    Current(usize, Scale),
}

/// Rows as messages.
struct Series<'a> {
    reader: &'a RldReader,
    kind: Kind,
    times: &'a TimeMap,
    sums: Accumulator<'a>,
    /// Rows of a message.
    rows: u64,
    /// Whether a message of several rows holds all of them.
    batch: bool,
    columns: Vec<Column>,
    schema: Arc<Schema>,
}

impl<'a> Series<'a> {
    fn new(reader: &'a RldReader, kind: Kind, rows: u64, batch: bool) -> Result<Self, ExportError> {
        let options = StatsOptions::default().with_powers(Vec::<String>::new());
        let sums = reader.accumulator(&options).map_err(rovelog::Error::from)?;
        let (mut columns, mut fields) = (Vec::new(), Vec::new());
        let each = rows == 1 || batch;
        let number = |scalar| match FieldType::Scalar(scalar) {
            one if batch => FieldType::List(Box::new(one)),
            one => one,
        };
        let mut add = |column: Column, name: &str, unit: &str| {
            let numbers = match column {
                Column::Valid(_) if each => vec![(String::new(), Scalar::Bool)],
                Column::Valid(_) => vec![(String::new(), Scalar::UInt32)],
                _ if each => vec![(String::new(), Scalar::Float64)],
                _ => ["_min", "_mean", "_max"].map(|end| (end.to_owned(), Scalar::Float64)).to_vec(),
            };
            for (end, scalar) in numbers {
                fields.push(Field::new(format!("{name}{end}"), number(scalar), "").with_unit(unit));
            }
            columns.push(column);
        };
        let channels = reader.channels();
        for (i, channel) in channels.iter().filter(|channel| !channel.is_binary).enumerate() {
            // What has no physical value stays as it was stored.
            let (unit, scale) = match channel.physical() {
                Some(scale) => (suffix(channel.unit), Some(scale)),
                None => ("raw", Scale::new(0)),
            };
            let Some(scale) = scale else { continue };
            add(Column::Analog(i, scale), &named(&channel.name, unit), unit);
        }
        for (number, current) in sums.currents().iter().enumerate() {
            if let Some(scale) = Scale::new(current.scale).filter(|_| is_merged(current)) {
                add(Column::Current(number, scale), &named(&current.name, "A"), "A");
            }
        }
        for (bit, channel) in channels.iter().enumerate().filter(|(bit, _)| is_range(channels, *bit)) {
            add(Column::Valid(bit), &named(&channel.name, ""), "");
        }
        if batch {
            fields.push(Field::new("offset_ns", number(Scalar::Int64), "").with_unit("ns"));
        } else if rows > 1 {
            fields.push(Field::new("rows", FieldType::Scalar(Scalar::UInt32), ""));
        }
        let name = match kind {
            Kind::Ambient => "Ambient",
            _ if batch => "Batch",
            _ if rows > 1 => "Envelope",
            _ => "Samples",
        };
        let schema = Arc::new(Schema { name: name.to_owned(), fields });
        let times = reader.record_times();
        Ok(Self { reader, kind, times, sums, rows, batch, columns, schema })
    }

    fn message(&mut self, rows: Range<u64>) -> Vec<u8> {
        if self.batch {
            return self.rows_together(rows);
        }
        let sums = self.sums.stats(rows);
        let (mut out, mut number) = (Vec::new(), 0);
        let mut next = || {
            number += 1;
            number
        };
        for column in &self.columns {
            let (sums, scale) = match column {
                Column::Valid(bit) => {
                    uint(next(), sums.ones[*bit], &mut out);
                    continue;
                }
                Column::Analog(i, scale) => (&sums.channels[*i], *scale),
                Column::Current(i, scale) => (&sums.currents[*i], *scale),
            };
            let values = [sums.min(scale), sums.mean(scale), sums.max(scale)];
            // Of one row they are the same.
            for value in &values[..if self.rows == 1 { 1 } else { 3 }] {
                // Out of range is no number, so that plots have a gap there.
                double(next(), value.unwrap_or(f64::NAN), &mut out);
            }
        }
        if self.rows > 1 {
            uint(next(), sums.rows, &mut out);
        }
        out
    }

    /// All values of rows, a list for each column, and behind those how long after the first row each one is.
    fn rows_together(&mut self, rows: Range<u64>) -> Vec<u8> {
        let mut lists = vec![Vec::new(); self.columns.len()];
        let mut offsets = Vec::new();
        let start = self.times.time(rows.start);
        for row in rows {
            let offset = self.times.time(row).zip(start).map_or(0, |(time, start)| time.wrapping_sub(start));
            varint(offset.cast_unsigned(), &mut offsets);
            let sums = self.sums.stats(row..row + 1);
            for (column, list) in self.columns.iter().zip(&mut lists) {
                let value = match column {
                    Column::Valid(bit) => {
                        varint(sums.ones[*bit], list);
                        continue;
                    }
                    Column::Analog(i, scale) => sums.channels[*i].mean(*scale),
                    Column::Current(i, scale) => sums.currents[*i].mean(*scale),
                };
                list.extend_from_slice(&value.unwrap_or(f64::NAN).to_le_bytes());
            }
        }
        let mut out = Vec::new();
        for (number, list) in (1..).zip(lists.iter().chain([&offsets])) {
            bytes(number, list, &mut out);
        }
        out
    }
}

/// Rows whose times only grow; without a gap between them where several make a message.
fn stretches(series: &Series<'_>, select: &Select) -> Vec<Range<u64>> {
    let mut found: Vec<Range<u64>> = Vec::new();
    for rows in series.reader.rows_selected(select) {
        let mut row = rows.start;
        while row < rows.end {
            let end = series.times.stretch(row).map_or(rows.end, |stretch| stretch.end.min(rows.end));
            let grows = |before: u64| series.times.time(before) <= series.times.time(row);
            match found.last_mut() {
                Some(last) if series.rows == 1 && last.end == row && grows(row - 1) => last.end = end,
                _ => found.push(row..end),
            }
            row = end;
        }
    }
    found
}

/// Whether a current has more than the one channel that is written anyway.
fn is_merged(current: &Current) -> bool {
    current.low.is_some() && current.high.is_some()
}

/// Whether a binary channel says that others are in range.
fn is_range(channels: &[Channel], bit: usize) -> bool {
    channels.iter().any(|channel| channel.valid == Some(bit))
}

/// `V1` in volts is `v1_V`.
fn named(name: &str, unit: &str) -> String {
    let name = name.to_lowercase();
    if unit.is_empty() { name } else { format!("{name}_{unit}") }
}

/// The symbol of a unit as a part of a name.
fn suffix(unit: Unit) -> &'static str {
    match unit {
        Unit::Percent => "percent",
        unit => unit.symbol(),
    }
}

/// Inputs that are on or off.
struct Digital<'a> {
    reader: &'a RldReader,
    bits: Vec<usize>,
    /// By word of 32 bits: those of the inputs.
    masks: Vec<u32>,
    /// Whether only rows beside a change are messages.
    changes: bool,
    schema: Arc<Schema>,
}

impl<'a> Digital<'a> {
    fn new(reader: &'a RldReader, changes: bool) -> Option<Self> {
        let channels = reader.channels();
        let inputs = channels.iter().enumerate().filter(|(_, channel)| channel.is_binary);
        let bits: Vec<usize> = inputs.map(|(bit, _)| bit).filter(|bit| !is_range(channels, *bit)).collect();
        let field = |bit: &usize| {
            Field::new(channels[*bit].name.to_lowercase(), FieldType::Scalar(Scalar::Bool), "bit")
        };
        let schema =
            Arc::new(Schema { name: "Digital".to_owned(), fields: bits.iter().map(field).collect() });
        let mut masks = vec![0; bits.last()? / 32 + 1];
        for bit in &bits {
            masks[bit / 32] |= 1 << (bit % 32);
        }
        Some(Self { reader, bits, masks, changes, schema })
    }

    fn message(&self, row: u64) -> Vec<u8> {
        let mut out = Vec::new();
        if let Some(row) = self.reader.row(row) {
            for (number, bit) in (1..).zip(&self.bits) {
                uint(number, row.bit(*bit).unwrap_or_default().into(), &mut out);
            }
        }
        out
    }

    /// Whether the inputs of a row and of the one behind it differ.
    fn changes_behind(&self, row: u64) -> bool {
        let (Some(a), Some(b)) = (self.reader.row(row), self.reader.row(row + 1)) else { return true };
        self.masks.iter().enumerate().any(|(word, mask)| {
            let word = |row: &rovelog::rld_format::Row<'_>| row.word(word).unwrap_or_default() & mask;
            word(&a) != word(&b)
        })
    }

    /// The next row that is a message: the first and the last of a stretch, and both sides of a change, so that
    /// lines between messages are what was there.
    fn after(&self, row: u64, end: u64) -> u64 {
        if !self.changes {
            return row + 1;
        }
        let mut next = row + 1;
        if next >= end || self.changes_behind(row) {
            return next;
        }
        while next + 1 < end && !self.changes_behind(next) {
            next += 1;
        }
        next
    }
}

impl Extras for Rld<'_> {
    fn profile(&self) -> &'static str {
        "rld"
    }

    fn carried(&self, _: &Topic) -> Carried {
        Carried::Otherwise
    }

    fn wants_records(&self) -> bool {
        false
    }

    fn beside(&self) -> Vec<Extra> {
        if !self.typed {
            return Vec::new();
        }
        let comment = self.reader.header().comment_text();
        let mut events = Vec::new();
        if !comment.is_empty() {
            events.push(self.event(None, 6, "comment", &comment));
        }
        let kept = self.reader.diagnostics();
        events.extend(kept.list().iter().map(|diagnostic| self.noticed(diagnostic)));
        let more = kept.total().saturating_sub(kept.list().len() as u64);
        if more > 0 {
            events.push(self.event(None, 4, "more", &format!("{more} more of the same kinds")));
        }
        events
    }

    fn next_due(&mut self, until: Option<i64>) -> Result<Option<Extra>, ExportError> {
        let due = |cursor: &Reverse<Cursor>| until.is_none_or(|until| cursor.0.0 <= until);
        if !self.cursors.peek().is_some_and(due) {
            return Ok(None);
        }
        let Some(Reverse((time, kind, number, row, end))) = self.cursors.pop() else { return Ok(None) };
        let series = &mut self.series[number];
        let (bytes, schema, next) = if let (Kind::Digital, Some(digital)) = (kind, &self.digital) {
            (digital.message(row), &digital.schema, digital.after(row, end))
        } else {
            let next = end.min(row + series.rows);
            (series.message(row..next), &series.schema, next)
        };
        let topic = match kind {
            Kind::Samples => "/rld/samples",
            Kind::Digital => "/rld/digital",
            Kind::Ambient => "/rld/ambient",
        };
        let schema = ExtraSchema::Own(Arc::clone(schema));
        if next < end {
            let time = series.times.time(next).unwrap_or(time);
            self.cursors.push(Reverse((time, kind, number, next, end)));
        }
        if kind == Kind::Samples {
            let part =
                u128::from(self.reader.info().size) * u128::from(row) / u128::from(self.reader.rows().max(1));
            self.offset = u64::try_from(part).ok();
        }
        // Rows without times stand where the log begins.
        let nanos = if time == i64::MIN { self.start() } else { time };
        Ok(Some(Extra { nanos, topic: topic.into(), schema, bytes }))
    }

    fn offset(&self) -> Option<u64> {
        self.offset
    }

    fn notes(&self) -> Vec<String> {
        let thinned = self.series.iter().filter(|series| !series.batch);
        let rows = thinned.map(|series| series.rows).find(|rows| *rows > 1);
        rows.into_iter()
            .map(|rows| {
                format!(
                    "/rld/samples holds the least, the mean and the greatest of every {rows} samples; all of them: \
                     --full"
                )
            })
            .collect()
    }

    fn info(&self) -> BTreeMap<String, String> {
        let lead_in = &self.reader.header().lead_in;
        let mut info = BTreeMap::from([
            ("rate".to_owned(), lead_in.sample_rate.get().to_string()),
            ("device".to_owned(), lead_in.mac_text()),
        ]);
        let comment = self.reader.header().comment_text();
        if !comment.is_empty() {
            info.insert("comment".to_owned(), comment);
        }
        if let Some(series) = self.series.iter().find(|series| series.kind == Kind::Samples) {
            info.insert("rows_per_message".to_owned(), series.rows.to_string());
        }
        info
    }
}
