//! Topics as Arrow columns, straight from the bytes of the bag by the layout of each type.
//!
//! Rows come in file order; the first column, `t_ns`, is the stamp of the record. Messages that
//! cannot be decoded have no row; they are counted.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use rovelog_core::columns::{OneTopic, VariableBuilder, metadata};
use rovelog_core::text::escape_bytes;
use rovelog_core::{LogReader, Select, Topic, TopicId};

use crate::definitions::Definition;
use crate::error::BagError;
use crate::index::Cursor;
use crate::reader::BagReader;
use crate::tables::Connection;
use crate::v2;

/// Rows from which a batch is handed out.
const BATCH_ROWS: usize = 1024;

/// Bytes of messages from which a batch is handed out.
const BATCH_BYTES: usize = 16 << 20;

/// Bytes of messages of all topics from which all batches are handed out.
const ALL_BYTES: usize = 4 * BATCH_BYTES;

/// Bytes of the bag that are scanned at once.
const STRIDE: u64 = 1 << 20;

impl BagReader {
    /// Returns one topic as record batches of about a thousand rows.
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

    /// Returns all selected topics that can be decoded as record batches, in one pass over the bag.
    pub fn batches(&self, select: &Select) -> ColumnBatches<'_> {
        ColumnBatches::new(self, select, None)
    }

    /// Returns how many of the selected messages have no row, by topic. Bags have hardly ever any:
    /// only once columns had to leave one out, they are counted.
    pub(crate) fn without_row(&self, select: &Select) -> Vec<(TopicId, u64)> {
        if !self.has_undecodable.load(Ordering::Relaxed) {
            return Vec::new();
        }
        let mut batches = self.batches(&select.clone().with_fields(Vec::<String>::new()));
        batches.by_ref().for_each(drop);
        let counts = self.topics().iter().map(|topic| topic.id).zip(batches.undecodable);
        counts.filter(|(_, count)| *count > 0).collect()
    }
}

/// Returns the definition that decodes a topic, or why there is none.
fn definition_of<'a>(topic: &Topic, connection: &'a Connection) -> Result<&'a Definition, BagError> {
    connection.definition.as_deref().map_err(|why| match why {
        Some(why) => BagError::Undecodable { topic: topic.name.clone(), why: why.clone() },
        None => BagError::NoDefinition { topic: topic.name.clone(), ty: topic.type_name.clone() },
    })
}

/// Returns the columns of a topic.
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

/// What is being collected of one topic.
struct TopicBuilder<'a> {
    topic: TopicId,
    definition: &'a Definition,
    rows: VariableBuilder,
    bytes: usize,
}

impl<'a> TopicBuilder<'a> {
    fn new(reader: &'a BagReader, select: &Select, topic: &Topic) -> Option<Self> {
        let connection = &reader.connections()[topic.id.index()];
        let definition = connection.definition()?;
        let rows = builder(topic, connection, definition, select);
        Some(Self { topic: topic.id, definition, rows, bytes: 0 })
    }

    /// Returns whether the message can be decoded.
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

/// Record batches of several topics, in one pass; each batch is of one topic.
pub struct ColumnBatches<'a> {
    reader: &'a BagReader,
    select: Select,
    /// One topic, whatever its name.
    only: Option<TopicId>,
    /// By topic. Made with the first row: who only asks for a schema does not wait for all topics.
    wanted: Vec<bool>,
    /// By topic; empty where a topic is not wanted or not met yet.
    builders: Vec<Option<Box<TopicBuilder<'a>>>>,
    /// Bytes of messages that were taken since all builders were empty.
    held: usize,
    /// By topic, messages that cannot be decoded.
    undecodable: Vec<u64>,
    ready: VecDeque<Result<(TopicId, RecordBatch), ArrowError>>,
    /// Blocks still to be scanned, and the scanner over the current one.
    blocks: std::ops::Range<usize>,
    cursor: Option<Cursor<'a>>,
    /// The way through chunks, of a bag of V2.0.
    pass: Option<v2::Pass<'a>>,
    flushed: bool,
}

impl<'a> ColumnBatches<'a> {
    fn new(reader: &'a BagReader, select: &Select, only: Option<TopicId>) -> Self {
        Self {
            reader,
            select: select.clone(),
            only,
            wanted: Vec::new(),
            builders: Vec::new(),
            held: 0,
            undecodable: Vec::new(),
            ready: VecDeque::new(),
            blocks: 0..reader.index.blocks.blocks().len(),
            cursor: None,
            pass: None,
            flushed: false,
        }
    }

    /// Scans one stride further; false at the end of the bag.
    fn advance(&mut self) -> bool {
        let reader = self.reader;
        if self.wanted.is_empty() {
            let wants = |topic: &Topic| {
                self.only.map_or_else(|| self.select.keeps_topic(topic), |only| only == topic.id)
            };
            self.wanted = reader.topics().iter().map(wants).collect();
            self.builders.resize_with(self.wanted.len(), || None);
            self.undecodable.resize(self.wanted.len(), 0);
            if reader.scanner.v2.is_some() {
                self.pass = Some(v2::Pass::new(reader, &self.wanted, &self.select));
            }
        }
        if self.held >= ALL_BYTES {
            self.hand_out();
        }
        let (wanted, builders, held, select, ready, undecodable) = (
            &self.wanted,
            &mut self.builders,
            &mut self.held,
            &self.select,
            &mut self.ready,
            &mut self.undecodable,
        );
        let mut take = |connection: u32, time: i64, payload: &[u8]| {
            let topic = connection as usize;
            if !wanted[topic] || !select.keeps_time(time) {
                return;
            }
            if builders[topic].is_none() {
                builders[topic] = TopicBuilder::new(reader, select, &reader.topics()[topic]).map(Box::new);
            }
            if let Some(builders) = &mut builders[topic] {
                if !builders.push(payload, time) {
                    undecodable[topic] += 1;
                    reader.has_undecodable.store(true, Ordering::Relaxed);
                }
                *held += payload.len();
                if builders.rows.rows() >= BATCH_ROWS || builders.bytes >= BATCH_BYTES {
                    ready.push_back(builders.finish());
                }
            }
        };
        if let Some(pass) = &mut self.pass {
            return pass.chunk(|_, met, payload| take(met.connection, met.time, payload));
        }
        if self.cursor.is_none() {
            let is_wanted = |number: &usize| {
                let index = &reader.index.blocks;
                let block = &index.blocks()[*number];
                let span = block.mark.range();
                select.keeps_block(block.start)
                    && span.is_some_and(|span| select.keeps_span(*span.start(), *span.end()))
                    && index.has_any(*number, wanted)
            };
            let Some(block) = self.blocks.clone().find(is_wanted) else { return false };
            self.blocks.start = block + 1;
            let scanner = &reader.scanner;
            self.cursor =
                Some(Cursor::block(&reader.bytes, &reader.index, &scanner.tables, scanner.version, block));
        }
        let Some(cursor) = &mut self.cursor else { return false };
        let more = cursor.messages(cursor.at + STRIDE, |_, message| {
            let payload = &reader.bytes[message.payload_at..message.payload_at + message.len];
            take(message.connection, message.time(), payload);
        });
        if !more {
            self.cursor = None;
        }
        true
    }

    /// Makes batches of all rows that are in builders.
    fn hand_out(&mut self) {
        for builders in self.builders.iter_mut().flatten().filter(|builders| builders.rows.rows() > 0) {
            self.ready.push_back(builders.finish());
        }
        self.held = 0;
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
                self.hand_out();
                self.flushed = true;
            }
        }
    }
}
