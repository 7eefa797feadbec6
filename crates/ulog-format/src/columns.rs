//! Topics as Arrow columns: the fast path, straight from the bytes of the log.
//!
//! A log that was only opened is validated and collected in one pass. Where the index is there
//! already, or helps because only a span of time is wanted, the pass goes by the index. Both scan
//! half a mebibyte at a time and copy its rows while they are still in the processor's cache. Rows
//! come in file order; the first column, `t_ns`, is the row's time, unwrapped where the log stores
//! fewer than 64 bits.

use std::collections::VecDeque;
use std::io::Read;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use rovelog_core::columns::{FixedBuilder, OneTopic, Plan, Times, metadata};
use rovelog_core::scan::{Scan as _, Stream, Window};
use rovelog_core::{LogReader, Select, Topic, TopicId};

use crate::definitions::Definitions;
use crate::error::UlogError;
use crate::index::Cursor;
use crate::layout::{Layout, TimeWidth};
use crate::reader::UlogReader;
use crate::scan::{MetRow, ROW_AT, Scanner, Step};
use crate::stream::UlogStream;

/// Rows from which a batch is handed out.
const BATCH_ROWS: usize = 1024;

/// Bytes of the log that are scanned before their rows are copied.
const STRIDE: u64 = 512 << 10;

/// Space for columns that keep all rows is made after one of so many parts of the log.
const PARTS: usize = 32;

impl UlogReader {
    /// Returns one topic as record batches of about a thousand rows.
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

    /// Returns all selected topics that can be decoded as record batches, in one pass over the log.
    pub fn batches(&self, select: &Select) -> ColumnBatches<'_> {
        ColumnBatches::new(self, Builders::new(select, None, BATCH_ROWS))
    }

    /// Returns all selected topics that can be decoded and have rows, each as one batch with all of
    /// its rows.
    ///
    /// # Errors
    /// Returns an error if one column would hold more than 2 GiB of text.
    pub fn tables(&self, select: &Select) -> Result<Vec<(TopicId, RecordBatch)>, ArrowError> {
        let mut builders = Builders::new(select, None, usize::MAX);
        let unbounded = select.start.is_none() && select.end.is_none() && select.blocks.is_none();
        if unbounded && self.is_indexed() {
            // Every column is allocated once, at its final size.
            for topic in self.topics() {
                if builders.wants(topic) && topic.count > 0 {
                    let rows = usize::try_from(topic.count).unwrap_or(usize::MAX);
                    builders.column_for(self.definitions(), topic.id.0, rows);
                }
            }
        }
        let mut batches = ColumnBatches::new(self, builders);
        if unbounded && !self.is_indexed() {
            batches.scan_first_part();
        }
        batches.collect()
    }
}

/// Record batches of several topics, in one pass; each batch is of one topic.
pub struct ColumnBatches<'a> {
    reader: &'a UlogReader,
    pass: Pass<'a>,
    builders: Builders,
}

/// What is still to be read.
enum Pass<'a> {
    /// The validating scan, and where its window ends.
    Validating(Box<Scanner>, u64),
    Indexed(Box<Indexed<'a>>),
    Done,
}

/// A pass over the blocks of the index that hold something that is wanted.
struct Indexed<'a> {
    reader: &'a UlogReader,
    /// By topic. Made with the first row: a caller that needs only the schema does not wait for it.
    wanted: Vec<bool>,
    /// Blocks still to be read, and the pass over the current one.
    blocks: std::ops::Range<usize>,
    cursor: Option<Cursor<'a>>,
}

impl<'a> ColumnBatches<'a> {
    fn new(reader: &'a UlogReader, mut builders: Builders) -> Self {
        let select = builders.select();
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

    /// Collects the first part of the log, and makes space for the others.
    fn scan_first_part(&mut self) {
        let reader = self.reader;
        let part = (reader.bytes.len() / PARTS) as u64;
        while let Pass::Validating(scanner, until) = &mut self.pass
            && *until < part
            && validated(scanner, reader, until, &mut self.builders)
        {
            self.builders.copy(&reader.bytes);
        }
        self.builders.reserve_for_parts(PARTS);
    }
}

impl Iterator for ColumnBatches<'_> {
    type Item = Result<(TopicId, RecordBatch), ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(batch) = self.builders.pop() {
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

/// Scans up to `until`, which it moves on; false at the end of the log.
fn validated(scanner: &mut Scanner, reader: &UlogReader, until: &mut u64, builders: &mut Builders) -> bool {
    let data: &[u8] = &reader.bytes;
    let index = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
    let end = index(*until).min(data.len());
    let window = Window { data: &data[..end], base: 0, eof: end == data.len() };
    loop {
        scanner.rows(window, |definitions, row| builders.row(definitions, data, index(row.at), row.met()));
        match scanner.step(window) {
            Ok(Step::Row { at, shape, time, .. }) => {
                let row = MetRow { series: shape.series, time, now: scanner.clock.now };
                builders.row(&scanner.definitions, data, index(at), row);
            }
            Ok(Step::Message { .. } | Step::Lost { .. } | Step::Unread { .. }) => {}
            // Its times depend on what follows.
            Ok(Step::Joined { at, .. }) => {
                let mut starts = reader.boundaries().iter();
                if let Some(boundary) = starts.find(|boundary| boundary.at == at) {
                    boundary.enter(&mut scanner.clock);
                }
                builders.join(scanner);
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
    /// Scans one stride further; false at the end of the log.
    fn advance(&mut self, data: &[u8], builders: &mut Builders) -> bool {
        let reader = self.reader;
        if self.wanted.is_empty() {
            self.wanted = reader.topics().iter().map(|topic| builders.wants(topic)).collect();
        }
        if self.cursor.is_none() {
            let select = builders.select();
            let Some(block) = self.blocks.clone().find(|block| self.is_wanted(*block, select)) else {
                return false;
            };
            self.blocks.start = block + 1;
            self.cursor =
                Some(Cursor::blocks(&reader.bytes, reader.index(), reader.definitions(), block..block + 1));
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

    fn is_wanted(&self, number: usize, select: &Select) -> bool {
        let index = self.reader.index();
        let block = &index.blocks.blocks()[number];
        select.keeps_block(block.start)
            && block.mark.whole_span().is_some_and(|(first, last)| select.keeps_span(first, last))
            && index.blocks.has_any(number, &self.wanted)
    }
}

impl<R: Read> UlogStream<R> {
    /// Returns all selected topics that can be decoded as record batches, in one pass over the
    /// input; what was read from the stream before is not in them.
    pub fn batches(self, select: &Select) -> StreamBatches<R> {
        StreamBatches { stream: self, builders: Builders::new(select, None, BATCH_ROWS), done: false }
    }

    /// Collects the rows of the bytes at hand and reads on; false at the end.
    fn fill(&mut self, builders: &mut Builders) -> Result<bool, UlogError> {
        loop {
            let Stream { source, scan } = &mut self.stream;
            let (window, summary) = (source.window(), &mut self.summary);
            let index = |at: u64| usize::try_from(at - window.base).expect("within the window");
            scan.rows(window, |definitions, row| {
                summary.row(row.series, row.at, row.len, Some(row.micros), row.before);
                builders.row(definitions, window.data, index(row.at), row.met());
            });
            match scan.step(window) {
                Ok(Step::End) => {
                    builders.copy(window.data);
                    summary.finish(scan, None);
                    return Ok(false);
                }
                Ok(step) => {
                    if let Step::Row { at, shape, time, .. } = step {
                        let row = MetRow { series: shape.series, time, now: scan.clock.now };
                        builders.row(&scan.definitions, window.data, index(at), row);
                    }
                    self.item(step);
                    if matches!(step, Step::Joined { .. }) {
                        builders.join(&self.stream.scan);
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

/// Record batches of the topics of a [`UlogStream`]; each batch is of one topic.
pub struct StreamBatches<R> {
    stream: UlogStream<R>,
    builders: Builders,
    done: bool,
}

impl<R> StreamBatches<R> {
    /// Returns the stream: its topics and definitions are those met so far, its summary and its
    /// diagnostics are complete when there are no more batches.
    pub fn stream(&self) -> &UlogStream<R> {
        &self.stream
    }
}

impl<R: Read> Iterator for StreamBatches<R> {
    type Item = Result<(TopicId, RecordBatch), ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(batch) = self.builders.pop() {
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

/// Rows of a topic that are noted at most before they are copied.
const NOTED: usize = 1024;

/// A record batch and the topic that it is of.
pub(crate) type Batch = Result<(TopicId, RecordBatch), ArrowError>;

/// The columns of all topics that a selection keeps.
pub(crate) struct Builders {
    select: Select,
    /// One topic, whatever its name.
    only: Option<TopicId>,
    windowed: bool,
    slots: Vec<Slot>,
    ready: VecDeque<Batch>,
    /// Rows from which a batch is handed out.
    batch_rows: usize,
    /// The first topic whose times are not those stored in its rows.
    moved_from: usize,
}

/// What is known of a topic's place in the builders.
enum Slot {
    Unmet,
    LeftOut,
    Kept(Box<Builder>),
}

/// What is being collected of one topic.
pub(crate) struct Builder {
    topic: TopicId,
    columns: FixedBuilder,
    /// Where the rows noted since the last copy begin.
    starts: Vec<usize>,
    /// Offset of a 64-bit timestamp; without one, the times of the rows noted.
    time_at: Option<usize>,
    times: Vec<Option<i64>>,
}

impl Builders {
    pub(crate) fn new(select: &Select, only: Option<TopicId>, batch_rows: usize) -> Self {
        let windowed = select.start.is_some() || select.end.is_some();
        let (select, slots, ready) = (select.clone(), Vec::new(), VecDeque::new());
        Self { select, only, windowed, slots, ready, batch_rows, moved_from: usize::MAX }
    }

    pub(crate) fn select(&self) -> &Select {
        &self.select
    }

    /// Returns whether the selection names a topic.
    pub(crate) fn wants(&self, topic: &Topic) -> bool {
        self.only.map_or_else(|| self.select.keeps_topic(topic), |only| only == topic.id)
    }

    /// Starts another log in the same file.
    fn join(&mut self, scanner: &Scanner) {
        if !scanner.clock.is_plain() {
            self.moved_from = self.moved_from.min(scanner.definitions.topics.len());
        }
    }

    /// Notes the row whose message starts at `at` in `data`, if it is wanted.
    #[inline]
    pub(crate) fn row(&mut self, definitions: &Definitions, data: &[u8], at: usize, row: MetRow) {
        if self.windowed && !self.select.keeps_time(row.time.in_order(row.now)) {
            return;
        }
        let builder = match self.slots.get_mut(row.series as usize) {
            Some(Slot::Kept(builder)) => builder,
            Some(Slot::LeftOut) => return,
            _ => match self.column_for(definitions, row.series, 0) {
                Some(builder) => builder,
                None => return,
            },
        };
        builder.starts.push(at + ROW_AT);
        if builder.time_at.is_none() {
            builder.times.push(row.time.nanos());
        }
        if builder.starts.len() == NOTED {
            builder.copy(data);
        }
    }

    /// Makes the columns of a topic, with space for so many rows; `None` where it is left out.
    #[cold]
    pub(crate) fn column_for(
        &mut self,
        definitions: &Definitions,
        series: u32,
        rows: usize,
    ) -> Option<&mut Builder> {
        let topic = &definitions.topics[series as usize];
        let builder = if self.wants(topic) {
            // What cannot be decoded has no rows either.
            let layout = definitions.row_layout(topic).ok()?;
            let mut builder = Builder::new(definitions, topic, layout, &self.select, rows);
            if series as usize >= self.moved_from {
                builder.time_at = None;
            }
            Some(builder)
        } else {
            None
        };
        let series = series as usize;
        if series >= self.slots.len() {
            self.slots.resize_with(series + 1, || Slot::Unmet);
        }
        self.slots[series] = builder.map_or(Slot::LeftOut, |builder| Slot::Kept(Box::new(builder)));
        match &mut self.slots[series] {
            Slot::Kept(builder) => Some(builder),
            _ => None,
        }
    }

    fn kept(&mut self) -> impl Iterator<Item = &mut Builder> {
        self.slots.iter_mut().filter_map(|slot| match slot {
            Slot::Kept(builder) => Some(&mut **builder),
            _ => None,
        })
    }

    /// Copies the rows noted, which lie in `data`, and makes batches of the columns that are long
    /// enough.
    pub(crate) fn copy(&mut self, data: &[u8]) {
        let mut ready = std::mem::take(&mut self.ready);
        let batch_rows = self.batch_rows;
        for builder in self.kept() {
            if !builder.starts.is_empty() {
                builder.copy(data);
            }
            if builder.columns.rows() >= batch_rows {
                ready.push_back(builder.finish());
            }
        }
        self.ready = ready;
    }

    /// Makes space for what is to come, where so many parts like the one collected make up the log.
    pub(crate) fn reserve_for_parts(&mut self, parts: usize) {
        for builder in self.kept() {
            // And a quarter, as no part is quite like the others: memory that is not touched costs nothing.
            let rows = builder.columns.rows().saturating_mul(parts);
            builder.columns.reserve(rows.saturating_add(rows / 4));
        }
    }

    /// Makes batches of what is left.
    pub(crate) fn flush(&mut self) {
        let mut ready = std::mem::take(&mut self.ready);
        ready.extend(self.kept().filter(|builder| builder.columns.rows() > 0).map(Builder::finish));
        self.ready = ready;
    }

    /// Returns the next batch, if one is ready.
    pub(crate) fn pop(&mut self) -> Option<Batch> {
        self.ready.pop_front()
    }
}

impl Builder {
    fn new(definitions: &Definitions, topic: &Topic, layout: &Layout, select: &Select, rows: usize) -> Self {
        let columns = FixedBuilder::with_rows(Arc::new(plan(definitions, topic, layout, select)), rows);
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

/// Returns the decode plan of a topic for the selected fields.
fn plan(definitions: &Definitions, topic: &Topic, layout: &Layout, select: &Select) -> Plan {
    let format = crate::wire::INFO.id;
    let pairs =
        [("rovelog.format", format), ("rovelog.topic", &topic.name), ("rovelog.type", &topic.type_name)];
    let padded = if select.like_pyulog { definitions.padded(topic) } else { None };
    Plan::new(padded.as_ref().unwrap_or(&layout.record), select, metadata(pairs))
        .expect("all rows of a format have one size")
}
