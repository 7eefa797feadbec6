//! Reads topics as Arrow columns, directly from the payloads in the bag.
//!
//! Rows are in file order. The first column, `t_ns`, is the time of the record. A message that
//! cannot be decoded has no row, and the number of such messages is reported.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use rovelog_core::internal::columns::{OneTopic, VariableBuilder, metadata};
use rovelog_core::internal::text::escape_bytes;
use rovelog_core::{LogReader, Select, Topic, TopicId};

use crate::definitions::Definition;
use crate::error::BagError;
use crate::index::Cursor;
use crate::message::MessageRef;
use crate::reader::BagReader;
use crate::tables::Connection;
use crate::v2;

/// Number of rows at which a batch is returned.
const BATCH_ROWS: usize = 1024;

/// Number of payload bytes at which a batch is returned.
const BATCH_BYTES: usize = 16 << 20;

/// Total number of payload bytes, over all topics, at which the batches of all topics are returned.
const ALL_BYTES: usize = 4 * BATCH_BYTES;

/// Number of bytes in the file that are scanned in one step.
const STRIDE: u64 = 1 << 20;

impl BagReader {
    /// Returns the rows of one topic as record batches of about 1000 rows each.
    pub(crate) fn topic_batches(
        &self,
        topic: TopicId,
        select: &Select,
    ) -> Result<OneTopic<ColumnBatches<'_>>, BagError> {
        let topic = &self.topics()[topic.index()];
        let connection = &self.connections()[topic.id.index()];
        let definition = definition_of(topic, connection)?;
        let schema = builder(topic, connection, definition, select).schema();
        Ok(OneTopic::new(schema, ColumnBatches::new(self, select, Some(topic.id))))
    }

    /// Returns the rows of all selected topics as record batches. Topics that cannot be decoded are
    /// omitted. The bag is read once for all topics.
    pub fn batches(&self, select: &Select) -> ColumnBatches<'_> {
        ColumnBatches::new(self, select, None)
    }

    /// Returns, by topic, the number of selected messages that have no row because they cannot be
    /// decoded. Such messages are rare, so they are counted only if an earlier export has omitted a
    /// message.
    pub(crate) fn without_row(&self, select: &Select) -> Vec<(TopicId, u64)> {
        if !self.has_undecodable.load(Ordering::Relaxed) {
            return Vec::new();
        }
        let mut batches = self.batches(&select.clone().without_fields());
        batches.by_ref().for_each(drop);
        let counts = self.topics().iter().map(|topic| topic.id).zip(batches.rows.undecodable);
        counts.filter(|(_, count)| *count > 0).collect()
    }
}

/// Returns the definition that decodes the messages of a topic.
fn definition_of<'a>(topic: &Topic, connection: &'a Connection) -> Result<&'a Definition, BagError> {
    connection.definition.as_deref().map_err(|why| match why {
        Some(why) => BagError::Undecodable { topic: topic.name.clone(), why: why.clone() },
        None => BagError::NoDefinition { topic: topic.name.clone(), ty: topic.type_name.clone() },
    })
}

/// Returns a builder for the Arrow columns of a topic.
fn builder(
    topic: &Topic,
    connection: &Connection,
    definition: &Definition,
    select: &Select,
) -> VariableBuilder {
    let constants = definition.types.constants().iter();
    let constants: Vec<_> = constants.map(|c| format!("{} {}={}", c.ty, c.name, c.value)).collect();
    let md5 = escape_bytes(&connection.md5);
    let pairs = [
        ("rovelog.format", crate::wire::INFO.id),
        ("rovelog.topic", &topic.name),
        ("rovelog.type", &topic.type_name),
        ("rovelog.md5", &md5),
        ("rovelog.definition", definition.source.name()),
        ("rovelog.constants", &constants.join("\n")),
    ];
    VariableBuilder::new(&definition.layout, select, metadata(pairs))
}

/// Rows of one topic that have not been returned yet.
struct TopicBuilder<'a> {
    /// Index of the topic whose rows are built.
    topic: TopicId,
    /// Definition that decodes the messages of the topic.
    definition: &'a Definition,
    /// Builder of the Arrow columns.
    rows: VariableBuilder,
    /// Number of payload bytes that were added to `rows`.
    bytes: usize,
}

impl<'a> TopicBuilder<'a> {
    fn new(reader: &'a BagReader, select: &Select, topic: &Topic) -> Option<Self> {
        let connection = &reader.connections()[topic.id.index()];
        let definition = connection.definition()?;
        let rows = builder(topic, connection, definition, select);
        Some(Self { topic: topic.id, definition, rows, bytes: 0 })
    }

    /// Adds a message as a row. Returns false if the message cannot be decoded.
    #[inline]
    fn push(&mut self, payload: &[u8], time: i64) -> bool {
        let decodes = self.definition.layout.decodes(payload, !self.definition.is_guess());
        if decodes {
            self.rows.push(&self.definition.layout, payload, time);
            self.bytes += payload.len();
        }
        decodes
    }

    fn finish(&mut self) -> Result<(TopicId, RecordBatch), ArrowError> {
        self.bytes = 0;
        Ok((self.topic, self.rows.finish()?))
    }
}

/// Rows of all topics that have not been returned yet.
struct Rows<'a> {
    reader: &'a BagReader,
    /// Selection of the caller: topics and times of the messages that are read.
    select: Select,
    /// By index of the topic, true if the topic is read. The list is filled when the first row is
    /// read. Filling it takes time, and a caller that needs only the schema should not wait.
    wanted: Vec<bool>,
    /// By index of the topic, the rows of the next batch. `None` if no row of the topic was read so
    /// far.
    builders: Vec<Option<Box<TopicBuilder<'a>>>>,
    /// Number of payload bytes in all builders.
    held: usize,
    /// By index of the topic, the number of messages that cannot be decoded.
    undecodable: Vec<u64>,
    /// Finished batches.
    ready: VecDeque<Result<(TopicId, RecordBatch), ArrowError>>,
}

impl Rows<'_> {
    /// Adds a message as a row, if the message is selected.
    #[inline]
    fn push(&mut self, message: &MessageRef, payload: &[u8]) {
        let (topic, time, reader) = (message.connection as usize, message.time(), self.reader);
        if !self.wanted[topic] || !self.select.keeps_time(time) {
            return;
        }
        let builder = &mut self.builders[topic];
        if builder.is_none() {
            *builder = TopicBuilder::new(reader, &self.select, &reader.topics()[topic]).map(Box::new);
        }
        if let Some(builder) = builder {
            if !builder.push(payload, time) {
                self.undecodable[topic] += 1;
                reader.has_undecodable.store(true, Ordering::Relaxed);
            }
            self.held += payload.len();
            if builder.rows.rows() >= BATCH_ROWS || builder.bytes >= BATCH_BYTES {
                self.ready.push_back(builder.finish());
            }
        }
    }

    /// Finishes the batches of all builders that have rows.
    fn finish(&mut self) {
        for builder in self.builders.iter_mut().flatten().filter(|builder| builder.rows.rows() > 0) {
            self.ready.push_back(builder.finish());
        }
        self.held = 0;
    }
}

/// Iterator over record batches of several topics. All rows of a batch belong to one topic.
pub struct ColumnBatches<'a> {
    /// Rows of the scanned part of the bag.
    rows: Rows<'a>,
    /// The topic that is read. `None` if all selected topics are read.
    only: Option<TopicId>,
    /// Blocks of records that have not been scanned yet. Used before V2.0.
    blocks: std::ops::Range<usize>,
    /// Cursor over the block of records that is being scanned. Used before V2.0.
    cursor: Option<Cursor<'a>>,
    /// Pass over the chunks of a V2.0 bag.
    pass: Option<v2::ChunkPass<'a>>,
    /// True after the remaining rows of all builders were returned.
    flushed: bool,
}

impl<'a> ColumnBatches<'a> {
    fn new(reader: &'a BagReader, select: &Select, only: Option<TopicId>) -> Self {
        let rows = Rows {
            reader,
            select: select.clone(),
            wanted: Vec::new(),
            builders: Vec::new(),
            held: 0,
            undecodable: Vec::new(),
            ready: VecDeque::new(),
        };
        let blocks = 0..reader.index.blocks.blocks().len();
        Self { rows, only, blocks, cursor: None, pass: None, flushed: false }
    }

    /// Scans the next part of the bag. Returns false at the end of the bag.
    fn advance(&mut self) -> bool {
        let Self { rows, only, blocks, cursor, pass, .. } = self;
        let (reader, select) = (rows.reader, &rows.select);
        if rows.wanted.is_empty() {
            let is_wanted = |topic: &Topic| match *only {
                Some(only) => only == topic.id,
                None => select.keeps_topic(topic),
            };
            rows.wanted = reader.topics().iter().map(is_wanted).collect();
            rows.builders.resize_with(rows.wanted.len(), || None);
            rows.undecodable.resize(rows.wanted.len(), 0);
            if reader.is_chunked() {
                *pass = Some(v2::ChunkPass::new(reader, &rows.wanted, select));
            }
        }
        // If many topics have few rows each, their rows together use too much memory. Return them
        // early.
        if rows.held >= ALL_BYTES {
            rows.finish();
        }
        if let Some(pass) = pass {
            return pass.chunk(|_, message, payload| rows.push(&message, payload));
        }
        if cursor.is_none() {
            let is_wanted = |number: &usize| {
                let index = &reader.index.blocks;
                let block = &index.blocks()[*number];
                let span = block.mark.range();
                rows.select.keeps_block(block.start)
                    && span.is_some_and(|span| rows.select.keeps_span(*span.start(), *span.end()))
                    && index.has_any(*number, &rows.wanted)
            };
            let Some(block) = blocks.clone().find(is_wanted) else { return false };
            blocks.start = block + 1;
            *cursor = Some(reader.cursor(reader.index.blocks.bytes_of(block)));
        }
        let Some(block_cursor) = cursor else { return false };
        let has_more = block_cursor.messages(block_cursor.at + STRIDE, |message| {
            rows.push(&message, message.payload(&reader.bytes));
        });
        if !has_more {
            // The next call starts with the next block.
            *cursor = None;
        }
        true
    }
}

impl Iterator for ColumnBatches<'_> {
    type Item = Result<(TopicId, RecordBatch), ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(batch) = self.rows.ready.pop_front() {
                return Some(batch);
            }
            if self.flushed {
                return None;
            }
            if !self.advance() {
                self.rows.finish();
                self.flushed = true;
            }
        }
    }
}
