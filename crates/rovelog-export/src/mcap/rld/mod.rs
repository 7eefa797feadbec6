//! RocketLogger logs: samples with the SI unit in their names, digital inputs, ambient sensors, and
//! events of the recording.
//!
//! Viewers spend the same time on a small message as on a large one. Above 1000 samples/s there is
//! therefore one message per millisecond, with the minimum, mean and maximum value. A digital input
//! is written whenever it changes.

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
use super::extras::{Carried, Extra, ExtraSchema, Extras};
use super::foxglove::{self, WellKnown};
use super::options::McapOptions;
use crate::{ExportError, TimeBase};

/// Messages per second that viewers can handle.
const RATE: u16 = 1000;

/// The next message of a segment of rows: its time, kind and series, its row, and the end of the
/// segment.
type Cursor = (i64, Kind, usize, u64, u64);

pub(super) struct Rld<'a> {
    reader: &'a RldReader,
    select: Select,
    typed: bool,
    series: Vec<Series<'a>>,
    digital: Option<Digital<'a>>,
    /// Cursors by time: one for each segment in which the clock only grows.
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

    /// Returns the start of the log on its clock.
    fn start(&self) -> i64 {
        self.reader.info().start.map_or(0, |start| start.nanos)
    }

    /// Returns the first row of the block that contains a byte, or the last row before it; `None` in
    /// the first header.
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

    fn event(&self, row: Option<u64>, level: u8, name: &str, message: &str) -> Extra {
        let time = row.and_then(|row| self.reader.record_times().time(row));
        // Messages about the whole log are at the start of the window.
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

    fn carried(&self, _: &Topic) -> Carried {
        Carried::Otherwise
    }

    fn wants_records(&self) -> bool {
        false
    }

    fn messages(&self) -> Vec<Extra> {
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
        // Rows without times are at the start of the log.
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
                    "/rld/samples is a min/mean/max envelope ({rows} samples each); --full writes every sample"
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
