//! Topics as Arrow columns: the fast path, straight from the bytes of the log.
//!
//! The walk collects where rows begin and, every half mebibyte, copies what it has collected column by
//! column, while the rows are still in the processor's cache. Rows come in file order; the first column,
//! `t_ns`, is the row's time, unwrapped where the log stores fewer than 64 bits.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use rovelog_core::columns::{Columns, Plan, Source, SourceKind, Times};
use rovelog_core::{LogReader, Select, Topic, TopicId};

use crate::clock::RowMicros;
use crate::definitions::Definitions;
use crate::error::UlogError;
use crate::frame::ROW_AT;
use crate::index::Cursor;
use crate::layout::{Layout, SlotKind, TimeWidth};
use crate::reader::UlogReader;

/// Rows from which a batch is handed out.
const BATCH_ROWS: usize = 1024;

/// Bytes of the log that are walked before their rows are copied.
const STRIDE: u64 = 512 << 10;

/// Rows of a topic that are collected at most before they are copied.
const COLLECTED: usize = 1024;

impl UlogReader {
    /// One topic as record batches of about a thousand rows.
    ///
    /// # Errors
    /// Where the topic cannot be decoded.
    pub fn topic_batches(&self, topic: &Topic, select: &Select) -> Result<TopicBatches<'_>, UlogError> {
        let layout = self.definitions().layout_of(topic)?;
        let schema = plan(topic, layout, select).schema();
        let wanted = self.topics().iter().map(|known| known.id == topic.id).collect();
        Ok(TopicBatches { schema, batches: ColumnBatches::new(self, select, wanted, BATCH_ROWS) })
    }

    /// All selected topics that can be decoded as record batches, in one pass over the log.
    pub fn batches(&self, select: &Select) -> ColumnBatches<'_> {
        let wanted = self.topics().iter().map(|topic| select.keeps_topic(topic)).collect();
        ColumnBatches::new(self, select, wanted, BATCH_ROWS)
    }

    /// All selected topics that can be decoded and have rows, each as one batch with all of its rows.
    ///
    /// # Errors
    /// Where one column would hold more than 2 GiB of text.
    pub fn tables(&self, select: &Select) -> Result<Vec<(TopicId, RecordBatch)>, ArrowError> {
        let wanted = self.topics().iter().map(|topic| select.keeps_topic(topic)).collect();
        let mut batches = ColumnBatches::new(self, select, wanted, usize::MAX);
        batches.reserve_all();
        batches.collect()
    }
}

impl Definitions {
    fn layout_of(&self, topic: &Topic) -> Result<&Arc<Layout>, UlogError> {
        self.subscriptions[topic.id.index()]
            .layout
            .as_ref()
            .map_err(|why| UlogError::Undecodable { topic: topic.name.clone(), why: why.to_string() })
    }
}

/// The decode plan of a topic for the selected fields.
fn plan(topic: &Topic, layout: &Layout, select: &Select) -> Plan {
    let metadata =
        [("rovelog.format", crate::ID), ("rovelog.topic", &topic.name), ("rovelog.type", &topic.type_name)];
    let metadata = metadata.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned()));
    Plan::new(&sources(layout, "", select), metadata.collect::<HashMap<_, _>>())
}

/// The fields of a layout under `path`, those that are selected.
fn sources(layout: &Layout, path: &str, select: &Select) -> Vec<Source> {
    let fields = layout.schema.fields.iter().zip(&layout.slots);
    fields
        .filter_map(|(field, slot)| {
            let path =
                if path.is_empty() { field.name.to_string() } else { format!("{path}.{}", field.name) };
            if !select.keeps_field(&path) {
                return None;
            }
            let (kind, len) = match &slot.kind {
                SlotKind::Scalar(scalar) => (SourceKind::Scalar(*scalar), slot.len),
                SlotKind::Char => (SourceKind::Text(slot.len.unwrap_or(1)), None),
                SlotKind::Nested(inner) => {
                    (SourceKind::Struct(sources(inner, &path, select), inner.full), slot.len)
                }
            };
            Some(Source {
                name: Arc::clone(&field.name),
                source_type: field.source_type.clone(),
                unit: field.unit.clone(),
                offset: slot.offset,
                kind,
                len,
            })
        })
        .collect()
}

/// What is being collected of one topic.
struct Filling {
    topic: TopicId,
    columns: Columns,
    /// Where the rows collected since the last copy begin.
    starts: Vec<usize>,
    /// Offset of a 64-bit timestamp; without one, the times of the rows collected.
    time_at: Option<usize>,
    times: Vec<Option<i64>>,
}

impl Filling {
    /// Empty columns with room for `rows`; `None` for a topic that cannot be decoded, which has no rows either.
    fn new(reader: &UlogReader, select: &Select, topic: &Topic, rows: usize) -> Option<Box<Self>> {
        let layout = reader.definitions().layout_of(topic).ok()?;
        let columns = Columns::with_rows(Arc::new(plan(topic, layout, select)), rows);
        let wide = layout.timestamp.filter(|field| field.width == TimeWidth::U64Micros);
        let time_at = wide.map(|field| field.offset);
        Some(Box::new(Self { topic: topic.id, columns, starts: Vec::new(), time_at, times: Vec::new() }))
    }

    #[inline]
    fn push(&mut self, data: &[u8], at: usize, time: RowMicros) {
        self.starts.push(at + ROW_AT);
        if self.time_at.is_none() {
            self.times.push(time.nanos());
        }
        if self.starts.len() == COLLECTED {
            self.copy(data);
        }
    }

    fn finish(&mut self) -> Result<(TopicId, RecordBatch), ArrowError> {
        Ok((self.topic, self.columns.finish()?))
    }

    fn copy(&mut self, data: &[u8]) {
        let times = self.time_at.map_or(Times::Given(&self.times), Times::MicrosAt);
        self.columns.gather(data, &self.starts, times);
        self.starts.clear();
        self.times.clear();
    }
}

/// Record batches of several topics, in one pass; each batch is of one topic.
pub struct ColumnBatches<'a> {
    reader: &'a UlogReader,
    select: Select,
    wanted: Vec<bool>,
    /// By topic; empty where a topic is not wanted or not met yet.
    filling: Vec<Option<Box<Filling>>>,
    ready: VecDeque<Result<(TopicId, RecordBatch), ArrowError>>,
    /// Blocks still to be walked, and the walk over the current one.
    blocks: std::ops::Range<usize>,
    cursor: Option<Cursor<'a>>,
    batch_rows: usize,
    flushed: bool,
}

impl<'a> ColumnBatches<'a> {
    fn new(reader: &'a UlogReader, select: &Select, wanted: Vec<bool>, batch_rows: usize) -> Self {
        let filling = wanted.iter().map(|_| None).collect();
        Self {
            reader,
            select: select.clone(),
            wanted,
            filling,
            ready: VecDeque::new(),
            blocks: 0..reader.index.blocks.len(),
            cursor: None,
            batch_rows,
            flushed: false,
        }
    }

    /// Allocates every column once, at its final size, where all rows are kept.
    fn reserve_all(&mut self) {
        let in_window = self.select.start.is_none() && self.select.end.is_none();
        for topic in self.reader.topics() {
            if self.wanted[topic.id.index()] && topic.count > 0 && in_window {
                let rows = usize::try_from(topic.count).unwrap_or(usize::MAX);
                self.filling[topic.id.index()] = Filling::new(self.reader, &self.select, topic, rows);
            }
        }
    }

    /// Walks one stride further; false at the end of the log.
    fn advance(&mut self) -> bool {
        let reader = self.reader;
        let data: &[u8] = &reader.bytes;
        if self.cursor.is_none() {
            let Some(block) = self.blocks.clone().find(|block| self.is_wanted(*block)) else { return false };
            self.blocks.start = block + 1;
            self.cursor = Some(Cursor::block(data, &reader.index, &reader.walk.definitions, block));
        }
        let Some(cursor) = &mut self.cursor else { return false };
        let (wanted, filling, select) = (&self.wanted, &mut self.filling, &self.select);
        let windowed = select.start.is_some() || select.end.is_some();
        let more = cursor.rows(cursor.at + STRIDE, |at, row| {
            let topic = row.series as usize;
            if !wanted[topic] || windowed && !select.keeps_time(row.time.in_order(row.now)) {
                return;
            }
            if filling[topic].is_none() {
                filling[topic] = Filling::new(reader, select, &reader.topics()[topic], 0);
            }
            if let (Some(filling), Ok(at)) = (&mut filling[topic], usize::try_from(at)) {
                filling.push(data, at, row.time);
            }
        });
        if !more {
            self.cursor = None;
        }
        for filling in self.filling.iter_mut().flatten() {
            if !filling.starts.is_empty() {
                filling.copy(data);
            }
            if filling.columns.rows() >= self.batch_rows {
                self.ready.push_back(filling.finish());
            }
        }
        true
    }

    fn is_wanted(&self, number: usize) -> bool {
        let block = &self.reader.index.blocks[number];
        let before = self.select.end.is_some_and(|end| block.first >= end);
        let behind = self.select.start.is_some_and(|start| block.last < start);
        !before && !behind && self.reader.index.has_any(number, &self.wanted)
    }

    /// What is left in the columns when the walk is done.
    fn flush(&mut self) {
        for filling in self.filling.iter_mut().flatten().filter(|filling| filling.columns.rows() > 0) {
            self.ready.push_back(filling.finish());
        }
        self.flushed = true;
    }
}

impl Iterator for ColumnBatches<'_> {
    type Item = Result<(TopicId, RecordBatch), ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(batch) = self.ready.pop_front() {
                return Some(batch);
            }
            if self.flushed {
                return None;
            }
            if !self.advance() {
                self.flush();
            }
        }
    }
}

/// Record batches of one topic.
pub struct TopicBatches<'a> {
    schema: SchemaRef,
    batches: ColumnBatches<'a>,
}

impl Iterator for TopicBatches<'_> {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.batches.next()?.map(|(_, batch)| batch))
    }
}

impl RecordBatchReader for TopicBatches<'_> {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
