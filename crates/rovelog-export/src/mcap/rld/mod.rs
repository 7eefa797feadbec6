//! Messages for `RocketLogger` logs: samples, digital inputs, ambient sensors, and events of the
//! recording. The names of the fields contain the unit, such as `v1_V`.
//!
//! Viewers need about the same time for a small and a large message. Logs with more than 1000
//! samples per second are therefore reduced to 1000 messages per second, each with the minimum,
//! mean and maximum of several samples. Digital inputs are only written when they change.

mod digital;
mod series;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Range;
use std::sync::Arc;

use rovelog::rld_format::{AMBIENT, RldReader, diagnostics};
use rovelog::{Diagnostic, LogReader as _, Select, Severity, Topic};

use self::digital::Digital;
use self::series::{Kind, Series, segments};
use super::extras::{Extra, ExtraSchema, Extras, RecordForm};
use super::foxglove::{self, WellKnown};
use super::options::McapOptions;
use crate::{ExportError, TimeBase};

/// Maximum number of messages per second that viewers can handle.
const RATE: u16 = 1000;

/// The next message of a segment. The order of the fields matters: messages are written in order of
/// their times, and at the same time in the order of the further fields.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Cursor {
    time: i64,
    kind: Kind,
    /// Index of the series.
    series: usize,
    /// First row of the message.
    row: u64,
    /// The row after the last row of the segment.
    end: u64,
}

/// Messages that are created for a `RocketLogger` log.
pub(super) struct Rld<'a> {
    reader: &'a RldReader,
    select: Select,
    /// True if messages are added that viewers can draw.
    typed: bool,
    series: Vec<Series<'a>>,
    digital: Option<Digital<'a>>,
    /// The next message of each segment. The earliest message comes first. Within a segment, times
    /// do not decrease. If the clock was set back, segments overlap in time, and the heap merges
    /// them.
    cursors: BinaryHeap<Reverse<Cursor>>,
    /// Approximate offset in the log that the messages have reached.
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
            // For example, a log with 64,000 rows per second gets 64 rows in each message.
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
                let Range { start: row, end } = rows;
                cursors.push(Reverse(Cursor { time, kind, series: number, row, end }));
            };
            for rows in segments(series, select) {
                add(series.kind, rows.clone());
                if series.kind == Kind::Samples && digital.is_some() {
                    add(Kind::Digital, rows);
                }
            }
        }
        let typed = options.typed;
        Ok(Self { reader, select: select.clone(), typed, series, digital, cursors, offset: None })
    }

    /// Returns the start time of the log in nanoseconds of the log's clock.
    fn start(&self) -> i64 {
        self.reader.info().start.map_or(0, |start| start.nanos)
    }

    /// Returns the first row of the block that contains the byte at `offset`. If no block contains
    /// the byte, returns the last row before this byte. Returns `None` if no row precedes the byte.
    fn row_of(&self, offset: u64) -> Option<u64> {
        let block = self.reader.layout().ok()?.block;
        let before = offset.saturating_add(1);
        let rows = |from: u64| {
            let mut select = Select::all();
            select.blocks = Some(from..before);
            self.reader.rows_selected(&select)
        };
        if let Some(rows) = rows(before.saturating_sub(block)).last() {
            return Some(rows.start);
        }
        rows(0).last().map(|rows| rows.end - 1)
    }

    /// Returns a `foxglove.Log` message about a row, or about the whole log if `row` is `None`.
    fn event(&self, row: Option<u64>, level: u8, name: &str, message: &str) -> Extra {
        let time = row.and_then(|row| self.reader.record_times().time(row));
        // A message about the whole log has the start of the selected time range as its time.
        let start = self.start().max(self.select.start.unwrap_or(i64::MIN));
        let nanos = time.unwrap_or(start);
        let at = TimeBase::of(self.reader).place(nanos).unwrap_or(nanos);
        Extra::drawn(nanos, "/rld/events", WellKnown::Log, foxglove::log(at, level, name, message))
    }

    /// Returns a message about a diagnostic of the reader. The level of the message is that of
    /// syslog: 3 is an error, 4 a warning and 6 information.
    fn diagnostic_event(&self, diagnostic: &Diagnostic) -> Extra {
        // These notes mean that times are not continuous. Users who look at a plot should know
        // this, so the notes become warnings.
        let moved = [&diagnostics::GAP, &diagnostics::CLOCK_BACKWARDS, &diagnostics::CLOCK_STEP];
        let level = match diagnostic.rule.severity {
            Severity::DataLost => 3,
            Severity::LeftOut | Severity::Repaired => 4,
            Severity::Note if moved.contains(&diagnostic.rule) => 4,
            Severity::Note => 6,
        };
        let row = self.row_of(diagnostic.range.start);
        self.event(row, level, diagnostic.rule.name, &diagnostic.message)
    }
}

impl Extras for Rld<'_> {
    fn profile(&self) -> &'static str {
        "rld"
    }

    fn record_form(&self, _: &Topic) -> RecordForm {
        RecordForm::Omitted
    }

    fn wants_records(&self) -> bool {
        false
    }

    fn messages(&self, _from: Option<i64>) -> Vec<Extra> {
        if !self.typed {
            return Vec::new();
        }
        let comment = self.reader.header().comment_text();
        let mut events = Vec::new();
        if !comment.is_empty() {
            events.push(self.event(None, 6, "comment", &comment));
        }
        let kept = self.reader.diagnostics();
        events.extend(kept.list().iter().map(|diagnostic| self.diagnostic_event(diagnostic)));
        let more = kept.total().saturating_sub(kept.list().len() as u64);
        if more > 0 {
            let text = format!("{more} more problems of the same kinds are not listed");
            events.push(self.event(None, 4, "more", &text));
        }
        events
    }

    fn next_message(&mut self, until: Option<i64>) -> Result<Option<Extra>, ExportError> {
        let is_due = |Reverse(cursor): &Reverse<Cursor>| until.is_none_or(|until| cursor.time <= until);
        if !self.cursors.peek().is_some_and(is_due) {
            return Ok(None);
        }
        let Some(Reverse(cursor)) = self.cursors.pop() else { return Ok(None) };
        let Cursor { time, kind, row, end, .. } = cursor;
        let series = &mut self.series[cursor.series];
        let (bytes, schema, next) = if let (Kind::Digital, Some(digital)) = (kind, &self.digital) {
            (digital.message(row), &digital.schema, digital.next_message_row(row, end))
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
            self.cursors.push(Reverse(Cursor { time, row: next, ..cursor }));
        }
        // If the clock was set back, rows are not read in file order, so the offset is only an
        // estimate.
        if kind == Kind::Samples {
            let part =
                u128::from(self.reader.info().size) * u128::from(row) / u128::from(self.reader.rows().max(1));
            self.offset = u64::try_from(part).ok();
        }
        // If rows have no times, all of their messages get the start of the log as their time.
        let nanos = if time == i64::MIN { self.start() } else { time };
        Ok(Some(Extra { nanos, topic: topic.into(), schema, bytes }))
    }

    fn offset(&self) -> Option<u64> {
        self.offset
    }

    fn notes(&self) -> Vec<String> {
        let thinned = self.series.iter().filter(|series| !series.batch);
        let rows = thinned.map(|series| series.rows).find(|rows| *rows > 1);
        let note = |rows| {
            format!(
                "/rld/samples contains the minimum, mean and maximum of every {rows} samples; --full writes \
                 every sample"
            )
        };
        rows.map(note).into_iter().collect()
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
