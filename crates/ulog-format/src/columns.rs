//! Conversion of topics to Arrow columns, directly from the bytes of the log.
//!
//! If the log has not been scanned yet, its messages are validated and converted in one pass. If
//! the log has been scanned, or if a time range is selected, the index of the log is used instead.
//! In both cases, half a mebibyte is scanned at a time, and its rows are copied while they are in
//! the processor's cache.
//!
//! Rows are in file order. The first column, `t_ns`, contains the time of the row. Timestamps of
//! fewer than 64 bits are completed.
//!
//! # Example
//!
//! For rows of three topics, the scan first records the offsets of the rows: topic 0 at 100 and
//! 160, topic 1 at 120, topic 2 at 140. It then copies topic by topic and column by column, so that
//! the inner loop copies one field of many rows.

use std::collections::VecDeque;
use std::io::Read;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use rovelog_core::internal::columns::{FixedBuilder, OneTopic, Plan, Times, metadata};
use rovelog_core::internal::scan::{Scan as _, Stream, Window};
use rovelog_core::{LogReader, Select, Topic, TopicId};

use crate::definitions::Definitions;
use crate::error::UlogError;
use crate::index::Cursor;
use crate::layout::{Layout, TimeWidth};
use crate::reader::UlogReader;
use crate::scan::{ROW_AT, RowInfo, Scanner, Step};
use crate::stream::UlogStream;

/// Minimum number of rows in a record batch. Only the last batch of a topic may have fewer rows.
const BATCH_ROWS: usize = 1024;

/// Number of bytes of the log that are scanned before the rows in them are copied.
const STRIDE: u64 = 512 << 10;

/// Number of equal parts of a log for estimating the size of whole columns. The first part is
/// converted before memory for the rows of the other parts is reserved.
const PARTS: usize = 32;

impl UlogReader {
    /// Returns the rows of a topic as record batches of about a thousand rows each.
    pub(crate) fn topic_batches(
        &self,
        topic: TopicId,
        select: &Select,
    ) -> Result<OneTopic<ColumnBatches<'_>>, UlogError> {
        let topic = &self.topics()[topic.index()];
        let layout = self.definitions().row_layout(topic)?;
        let schema = plan(self.definitions(), topic, layout, select).schema();
        let builders = Builders::new(select, Some(topic.id), BATCH_ROWS);
        Ok(OneTopic::new(schema, ColumnBatches::new(self, builders)))
    }

    /// Returns the selected topics as record batches, in one pass over the log. Topics that cannot
    /// be decoded are skipped.
    pub fn batches(&self, select: &Select) -> ColumnBatches<'_> {
        ColumnBatches::new(self, Builders::new(select, None, BATCH_ROWS))
    }

    /// Returns each selected topic as one batch that contains all of its rows. Topics without rows
    /// and topics that cannot be decoded are skipped.
    ///
    /// # Errors
    /// Returns an error if a column would contain more than 2 GiB of text, or if memory is not
    /// sufficient.
    pub fn tables(&self, select: &Select) -> Result<Vec<(TopicId, RecordBatch)>, ArrowError> {
        let mut builders = Builders::new(select, None, usize::MAX);
        let unbounded = select.start.is_none() && select.end.is_none() && select.blocks.is_none();
        if unbounded && self.is_indexed() {
            // The number of rows of each topic is known, so memory for each column is allocated
            // once, with the final size.
            for topic in self.topics() {
                if builders.wants(topic) && topic.count > 0 {
                    let rows = usize::try_from(topic.count).unwrap_or(usize::MAX);
                    if let Some(builder) = builders.column_for(self.definitions(), topic.id.0) {
                        builder.columns.reserve(rows).map_err(no_memory)?;
                    }
                }
            }
        }
        let mut batches = ColumnBatches::new(self, builders);
        if unbounded && !self.is_indexed() {
            batches.scan_first_part()?;
        }
        batches.collect()
    }
}

/// Iterator over record batches of several topics, created in one pass over the log. Each batch
/// contains rows of one topic.
pub struct ColumnBatches<'a> {
    reader: &'a UlogReader,
    pass: Pass<'a>,
    builders: Builders,
}

/// State of the pass over the log that creates record batches.
enum Pass<'a> {
    /// The log is scanned and validated for the first time. The number is the offset of the end of
    /// the bytes to scan next.
    Validating(Box<Scanner>, u64),
    /// The log is read with the index of an earlier scan.
    Indexed(Box<Indexed<'a>>),
    Done,
}

/// A pass over the blocks of the log that contain selected rows, according to the index.
struct Indexed<'a> {
    reader: &'a UlogReader,
    /// For each topic number, true if the topic is selected. The list is filled when the first row
    /// is requested, so that a caller who needs only the schema does not wait for the scan.
    wanted: Vec<bool>,
    /// Numbers of the blocks that have not been read yet.
    blocks: std::ops::Range<usize>,
    /// Cursor over the messages of the current block.
    cursor: Option<Cursor<'a>>,
}

impl<'a> ColumnBatches<'a> {
    fn new(reader: &'a UlogReader, mut builders: Builders) -> Self {
        let select = &builders.select;
        let partial = select.start.is_some() || select.end.is_some() || select.blocks.is_some();
        let pass = if reader.is_indexed() || partial {
            if let Some(moved) = reader.boundaries().iter().find(|boundary| boundary.shift > 0) {
                let series = reader.definitions().subscriptions();
                builders.moved_from = series.partition_point(|series| series.offset < moved.at);
            }
            let blocks = 0..reader.index().blocks.blocks().len();
            Pass::Indexed(Box::new(Indexed { reader, wanted: Vec::new(), blocks, cursor: None }))
        } else {
            Pass::Validating(Box::new(reader.start()), STRIDE)
        };
        Self { reader, pass, builders }
    }

    /// Converts the rows in the first part of the log, and reserves memory for the rows in the
    /// other parts.
    fn scan_first_part(&mut self) -> Result<(), ArrowError> {
        let reader = self.reader;
        let part = (reader.bytes.len() / PARTS) as u64;
        while let Pass::Validating(scanner, until) = &mut self.pass
            && *until < part
            && validated(scanner, reader, until, &mut self.builders)
        {
            self.builders.copy(&reader.bytes);
        }
        self.builders.reserve_for_parts()
    }
}

impl Iterator for ColumnBatches<'_> {
    type Item = Result<(TopicId, RecordBatch), ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(batch) = self.builders.ready.pop_front() {
                return Some(batch);
            }
            let more = match &mut self.pass {
                Pass::Validating(scanner, until) => {
                    validated(scanner, self.reader, until, &mut self.builders)
                }
                Pass::Indexed(pass) => pass.advance(&self.reader.bytes, &mut self.builders),
                Pass::Done => return None,
            };
            self.builders.copy(&self.reader.bytes);
            if !more {
                self.pass = Pass::Done;
                self.builders.flush();
            }
        }
    }
}

/// Scans the log up to the offset `until`, and sets `until` to the end of the next bytes to scan.
/// Returns `false` at the end of the log.
fn validated(scanner: &mut Scanner, reader: &UlogReader, until: &mut u64, builders: &mut Builders) -> bool {
    let data: &[u8] = &reader.bytes;
    let index = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
    let end = index(*until).min(data.len());
    let window = Window { data: &data[..end], base: 0, eof: end == data.len() };
    loop {
        scanner
            .rows(window, |definitions, row| builders.row(definitions, data, index(row.at), row.row_info()));
        match scanner.step(window) {
            Ok(Step::Row { at, shape, time, .. }) => {
                let row = RowInfo { series: shape.series, time, now: scanner.clock.now };
                builders.row(&scanner.definitions, data, index(at), row);
            }
            Ok(Step::Message { .. } | Step::Lost { .. } | Step::Unread { .. }) => {}
            // The clock of a second log in the file is known only at the end of that log.
            // `boundaries` scans the whole file and returns it.
            Ok(Step::SecondHeader { at, .. }) => {
                let mut starts = reader.boundaries().iter();
                if let Some(boundary) = starts.find(|boundary| boundary.at == at) {
                    boundary.enter(&mut scanner.clock);
                }
                builders.start_log(scanner);
            }
            Ok(Step::End) => return false,
            Err(need) => {
                *until = need.0.max(scanner.needed_from() + STRIDE);
                return true;
            }
        }
    }
}

impl Indexed<'_> {
    /// Reads the rows in the next [`STRIDE`] bytes. Returns `false` at the end of the log.
    fn advance(&mut self, data: &[u8], builders: &mut Builders) -> bool {
        let reader = self.reader;
        if self.wanted.is_empty() {
            self.wanted = reader.topics().iter().map(|topic| builders.wants(topic)).collect();
        }
        if self.cursor.is_none() {
            let select = &builders.select;
            let Some(block) = self.blocks.clone().find(|block| self.is_wanted(*block, select)) else {
                return false;
            };
            self.blocks.start = block + 1;
            self.cursor = Some(Cursor::blocks(&reader.bytes, reader.index(), block..block + 1));
        }
        let Some(cursor) = &mut self.cursor else { return false };
        let more = cursor.rows(cursor.at + STRIDE, |at, row| {
            let at = usize::try_from(at).expect("within the bytes at hand");
            builders.row(reader.definitions(), data, at, row);
        });
        if !more {
            self.cursor = None;
        }
        true
    }

    /// Returns `true` if the block with the given number may contain selected rows.
    fn is_wanted(&self, number: usize, select: &Select) -> bool {
        let index = self.reader.index();
        let block = &index.blocks.blocks()[number];
        select.keeps_block(block.start)
            && block.mark.whole_span().is_some_and(|(first, last)| select.keeps_span(first, last))
            && index.blocks.has_any(number, &self.wanted)
    }
}

impl<R: Read> UlogStream<R> {
    /// Returns the selected topics as record batches, in one pass over the input.
    ///
    /// Topics that cannot be decoded are skipped. Rows that were read from the stream before this
    /// call are not included.
    pub fn batches(self, select: &Select) -> StreamBatches<R> {
        StreamBatches { stream: self, builders: Builders::new(select, None, BATCH_ROWS), done: false }
    }

    /// Converts the rows in the buffer, then reads more bytes. Returns `false` at the end of the
    /// input.
    fn fill(&mut self, builders: &mut Builders) -> Result<bool, UlogError> {
        loop {
            let Stream { source, scan } = &mut self.stream;
            let (window, summary) = (source.window(), &mut self.summary);
            let index = |at: u64| usize::try_from(at - window.base).expect("within the window");
            scan.rows(window, |definitions, row| {
                summary.row(row.series, row.at, row.len, Some(row.micros), row.before);
                builders.row(definitions, window.data, index(row.at), row.row_info());
            });
            match scan.step(window) {
                Ok(Step::End) => {
                    builders.copy(window.data);
                    summary.finish(scan, None);
                    return Ok(false);
                }
                Ok(step) => {
                    if let Step::Row { at, shape, time, .. } = step {
                        let row = RowInfo { series: shape.series, time, now: scan.clock.now };
                        builders.row(&scan.definitions, window.data, index(at), row);
                    }
                    self.item(step);
                    if matches!(step, Step::SecondHeader { .. }) {
                        builders.start_log(&self.stream.scan);
                    }
                }
                Err(need) => {
                    builders.copy(window.data);
                    source.fill(scan.needed_from(), need.0)?;
                    return Ok(true);
                }
            }
        }
    }
}

/// Iterator over record batches of the topics of a [`UlogStream`]. Each batch contains rows of one
/// topic.
pub struct StreamBatches<R> {
    stream: UlogStream<R>,
    builders: Builders,
    done: bool,
}

impl<R> StreamBatches<R> {
    /// Returns the underlying stream.
    ///
    /// The stream describes the part of the log that has been read. Its summary and its diagnostics
    /// are complete after the last batch.
    pub fn stream(&self) -> &UlogStream<R> {
        &self.stream
    }
}

impl<R: Read> Iterator for StreamBatches<R> {
    type Item = Result<(TopicId, RecordBatch), ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(batch) = self.builders.ready.pop_front() {
                return Some(batch);
            }
            if self.done {
                return None;
            }
            match self.stream.fill(&mut self.builders) {
                Ok(true) => {}
                Ok(false) => {
                    self.done = true;
                    self.builders.flush();
                }
                Err(error) => {
                    self.done = true;
                    return Some(Err(ArrowError::ExternalError(Box::new(error))));
                }
            }
        }
    }
}

/// Maximum number of rows of a topic whose offsets are recorded before the rows are copied.
const MAX_PENDING_ROWS: usize = 1024;

/// A record batch with the topic of its rows.
type Batch = Result<(TopicId, RecordBatch), ArrowError>;

/// Creates the columns of all selected topics.
struct Builders {
    select: Select,
    /// The only selected topic. If this is set, the topics in `select` are ignored.
    only: Option<TopicId>,
    /// True if a time range is selected, so that the time of each row must be checked.
    windowed: bool,
    /// Conversion state of each topic, by topic number.
    slots: Vec<Slot>,
    /// Complete batches that have not been returned yet.
    ready: VecDeque<Batch>,
    /// Minimum number of rows in a record batch.
    batch_rows: usize,
    /// Number of the first topic of which the times differ from the stored timestamps. The same is
    /// true of all later topics.
    moved_from: usize,
}

/// Conversion state of a topic.
enum Slot {
    /// No row of the topic has been found yet.
    Unseen,
    /// The topic is not selected or cannot be decoded.
    Excluded,
    Included(Box<Builder>),
}

/// Creates the columns of one topic.
struct Builder {
    topic: TopicId,
    columns: FixedBuilder,
    /// Offsets of the rows that were recorded since rows were last copied.
    starts: Vec<usize>,
    /// Offset of the 64-bit timestamp within a row. If this is `None`, the times of the rows are in
    /// `times`.
    time_at: Option<usize>,
    /// Times of the recorded rows in nanoseconds, used only if `time_at` is `None`.
    times: Vec<Option<i64>>,
}

impl Builders {
    fn new(select: &Select, only: Option<TopicId>, batch_rows: usize) -> Self {
        let windowed = select.start.is_some() || select.end.is_some();
        let (select, slots, ready) = (select.clone(), Vec::new(), VecDeque::new());
        Self { select, only, windowed, slots, ready, batch_rows, moved_from: usize::MAX }
    }

    /// Returns `true` if a topic is selected.
    fn wants(&self, topic: &Topic) -> bool {
        self.only.map_or_else(|| self.select.keeps_topic(topic), |only| only == topic.id)
    }

    /// Starts another log in the same file. If the times of this log are moved to the clock of the
    /// first log, they cannot be copied from the rows.
    fn start_log(&mut self, scanner: &Scanner) {
        if !scanner.clock.is_plain() {
            self.moved_from = self.moved_from.min(scanner.definitions.topics.len());
        }
    }

    /// Records the row whose message starts at the index `at` in `data`, if the row is selected.
    #[inline]
    fn row(&mut self, definitions: &Definitions, data: &[u8], at: usize, row: RowInfo) {
        if self.windowed && !self.select.keeps_time(row.time.in_order(row.now)) {
            return;
        }
        let builder = match self.slots.get_mut(row.series as usize) {
            Some(Slot::Included(builder)) => builder,
            Some(Slot::Excluded) => return,
            _ => match self.column_for(definitions, row.series) {
                Some(builder) => builder,
                None => return,
            },
        };
        builder.starts.push(at + ROW_AT);
        if builder.time_at.is_none() {
            builder.times.push(row.time.nanos());
        }
        if builder.starts.len() == MAX_PENDING_ROWS {
            builder.copy(data);
        }
    }

    /// Creates the columns of a topic. Returns `None` if the topic is not selected or cannot be
    /// decoded.
    #[cold]
    fn column_for(&mut self, definitions: &Definitions, series: u32) -> Option<&mut Builder> {
        let topic = &definitions.topics[series as usize];
        let builder = if self.wants(topic) {
            // A topic that cannot be decoded has no rows, so it needs no columns.
            let layout = definitions.row_layout(topic).ok()?;
            let mut builder = Builder::new(definitions, topic, layout, &self.select);
            if series as usize >= self.moved_from {
                builder.time_at = None;
            }
            Some(builder)
        } else {
            None
        };
        let series = series as usize;
        if series >= self.slots.len() {
            self.slots.resize_with(series + 1, || Slot::Unseen);
        }
        self.slots[series] = builder.map_or(Slot::Excluded, |builder| Slot::Included(Box::new(builder)));
        match &mut self.slots[series] {
            Slot::Included(builder) => Some(builder),
            _ => None,
        }
    }

    /// Copies the recorded rows from `data` to the columns, and creates batches from columns with
    /// enough rows.
    fn copy(&mut self, data: &[u8]) {
        for builder in included(&mut self.slots) {
            if !builder.starts.is_empty() {
                builder.copy(data);
            }
            if builder.columns.rows() >= self.batch_rows {
                self.ready.push_back(builder.finish());
            }
        }
    }

    /// Reserves memory for the rest of the log. The estimate assumes that each of the [`PARTS`] of
    /// the log contains as many rows as the first part.
    fn reserve_for_parts(&mut self) -> Result<(), ArrowError> {
        for builder in included(&mut self.slots) {
            // Adds a quarter to the estimate, because the parts of a log differ. Memory that is
            // reserved but not used costs nothing, whereas growing a column copies it.
            let rows = builder.columns.rows().saturating_mul(PARTS);
            builder.columns.reserve(rows.saturating_add(rows / 4)).map_err(no_memory)?;
        }
        Ok(())
    }

    /// Creates batches from the rows that remain in the columns.
    fn flush(&mut self) {
        let rest = included(&mut self.slots).filter(|builder| builder.columns.rows() > 0);
        self.ready.extend(rest.map(Builder::finish));
    }
}

/// Returns the builders of the included topics.
fn included(slots: &mut [Slot]) -> impl Iterator<Item = &mut Builder> {
    slots.iter_mut().filter_map(|slot| match slot {
        Slot::Included(builder) => Some(&mut **builder),
        _ => None,
    })
}

impl Builder {
    fn new(definitions: &Definitions, topic: &Topic, layout: &Layout, select: &Select) -> Self {
        let columns = FixedBuilder::new(Arc::new(plan(definitions, topic, layout, select)));
        let wide = layout.timestamp.filter(|field| field.width == TimeWidth::U64Micros);
        let time_at = wide.map(|field| field.offset);
        Self { topic: topic.id, columns, starts: Vec::new(), time_at, times: Vec::new() }
    }

    fn finish(&mut self) -> Batch {
        Ok((self.topic, self.columns.finish()?))
    }

    fn copy(&mut self, data: &[u8]) {
        let times = self.time_at.map_or(Times::Given(&self.times), Times::MicrosAt);
        self.columns.append(data, &self.starts, times);
        self.starts.clear();
        self.times.clear();
    }
}

/// Converts the error for insufficient memory.
fn no_memory(error: std::io::Error) -> ArrowError {
    ArrowError::from_external_error(Box::new(rovelog_core::Error::io(crate::wire::INFO.id, error)))
}

/// Returns the plan for decoding the selected fields of a topic into columns.
fn plan(definitions: &Definitions, topic: &Topic, layout: &Layout, select: &Select) -> Plan {
    let format = crate::wire::INFO.id;
    let pairs =
        [("rovelog.format", format), ("rovelog.topic", &topic.name), ("rovelog.type", &topic.type_name)];
    let padded = if select.like_pyulog { definitions.padded(topic) } else { None };
    Plan::new(padded.as_ref().unwrap_or(&layout.record), select, metadata(pairs))
        .expect("all rows of a format have one size")
}
