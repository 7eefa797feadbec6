//! Topics and points as Arrow columns. Section 10 of docs/formats/vel.md lists them.
//!
//! A batch is gathered column by column from the views of its messages: fields go from the log to their column
//! once, and nothing is kept in between.

mod declared;
mod points;
mod tables;

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, RecordBatchReader};
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};
use rovelog_core::{Select, Topic};

pub use points::PointBatches;

use crate::error::VelError;
use crate::message::Message;
use crate::reader::VelReader;
use crate::summary::Reading;

/// Rows of a batch.
const BATCH_ROWS: usize = 1024;

/// Bytes of data of a batch: images and packets are large.
const BATCH_BYTES: u64 = 16 << 20;

/// Columns that are being made: name, unit, array.
struct Table {
    select: Select,
    fields: Vec<Arc<Field>>,
    arrays: Vec<ArrayRef>,
}

impl Table {
    fn new(select: &Select) -> Self {
        Self { select: select.clone(), fields: Vec::new(), arrays: Vec::new() }
    }

    /// Adds a column, if it is selected.
    fn column(&mut self, name: &str, unit: &str, array: impl FnOnce() -> ArrayRef) {
        if self.select.keeps_field(name) {
            self.always(name, unit, array());
        }
    }

    /// Adds a column whatever is selected.
    fn always(&mut self, name: &str, unit: &str, array: ArrayRef) {
        let mut metadata = HashMap::new();
        if !unit.is_empty() {
            metadata.insert("unit".to_owned(), unit.to_owned());
        }
        let field = Field::new(name, array.data_type().clone(), array.is_nullable());
        self.fields.push(Arc::new(field.with_metadata(metadata)));
        self.arrays.push(array);
    }

    fn batch(self, rows: usize, metadata: HashMap<String, String>) -> Result<RecordBatch, ArrowError> {
        // Whether there is a null depends on the batch, the schema does not.
        let nullable = |field: &Arc<Field>| {
            let may = tables::MAY_BE_NULL.contains(&field.name().as_str());
            Arc::new(field.as_ref().clone().with_nullable(may))
        };
        let fields: Vec<_> = self.fields.iter().map(nullable).collect();
        let schema = Arc::new(Schema::new_with_metadata(fields, metadata));
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(schema, self.arrays, &options)
    }
}

impl VelReader {
    /// One topic as record batches in file order: the time, how the log stores it, and the fields. Positions are
    /// in degrees and quaternions in the settled order, beside the log's own numbers. A row is a message, or one
    /// packet of it.
    ///
    /// # Errors
    /// Where the topic is not one of this log.
    pub fn topic_batches(&self, topic: &Topic, select: &Select) -> Result<TopicBatches<'_>, VelError> {
        let reading =
            self.reading(topic).ok_or_else(|| VelError::Undescribed { topic: topic.name.clone() })?;
        let mut batches = TopicBatches {
            reader: self,
            topic: topic.name.clone(),
            type_name: topic.type_name.clone(),
            places: self.places_of(topic.id.0),
            reading,
            select: select.clone(),
            schema: Arc::new(Schema::empty()),
        };
        batches.schema =
            batches.table(&[]).map_err(|error| VelError::Io(std::io::Error::other(error)))?.schema();
        Ok(batches)
    }
}

/// Record batches of one topic.
pub struct TopicBatches<'a> {
    reader: &'a VelReader,
    topic: String,
    type_name: String,
    /// The entries of the topic that are still to be read.
    places: &'a [u32],
    reading: Reading,
    select: Select,
    schema: SchemaRef,
}

impl TopicBatches<'_> {
    fn table(&self, messages: &[Message<'_>]) -> Result<RecordBatch, ArrowError> {
        let mut table = Table::new(&self.select);
        let rows = tables::fill(&mut table, self.reader, self.reading, messages);
        table.batch(rows, metadata(&self.topic, &self.type_name))
    }
}

impl<'a> TopicBatches<'a> {
    /// The messages of the next batch.
    fn gather(&mut self) -> Vec<Message<'a>> {
        let reader = self.reader;
        let (mut messages, mut bytes) = (Vec::new(), 0);
        while let Some((place, rest)) = self.places.split_first() {
            if messages.len() == BATCH_ROWS || bytes >= BATCH_BYTES {
                break;
            }
            self.places = rest;
            let entry = &reader.entries[*place as usize];
            if self.select.keeps_time(entry.nanos) {
                let message = reader.message_of(entry);
                bytes += message.data.len() as u64;
                messages.push(message);
            }
        }
        messages
    }
}

impl Iterator for TopicBatches<'_> {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let messages = self.gather();
        (!messages.is_empty()).then(|| self.table(&messages))
    }
}

impl RecordBatchReader for TopicBatches<'_> {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

fn metadata(topic: &str, type_name: &str) -> HashMap<String, String> {
    let pairs = [("rovelog.format", crate::ID), ("rovelog.topic", topic), ("rovelog.type", type_name)];
    rovelog_core::columns::metadata(pairs)
}
