//! Messages and points as Arrow columns. Section 6 of docs/formats/vel.md describes the columns.
//!
//! A batch is built column by column from views of its messages. So each field is copied only once,
//! from the log to its column.

mod points;
mod table;
mod tables;

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, Schema, SchemaRef};
use rovelog_core::internal::layout::Layout;
use rovelog_core::{LogReader, Select, Topic, TopicId};

pub use points::PointBatches;
use table::{Table, metadata};

use crate::error::VelError;
use crate::message::{Kind, Message};
use crate::reader::VelReader;

/// Maximum number of messages in a batch.
const BATCH_ROWS: usize = 1024;

/// Number of bytes of messages at which a batch ends, even if it has fewer messages than the
/// maximum. Images and packets are large, so such a limit is needed.
const BATCH_BYTES: u64 = 16 << 20;

impl VelReader {
    /// Returns the messages of a topic as record batches in file order. A row is a message. In
    /// topics of Velodyne packets, a row is a packet. The columns are:
    ///
    /// - the time in nanoseconds, and the timestamp as stored
    /// - the fields, as in records
    /// - converted values: positions in degrees, quaternions in the inferred order, accelerations
    ///   in m/s²
    pub(crate) fn topic_batches(
        &self,
        topic: TopicId,
        select: &Select,
    ) -> Result<TopicBatches<'_>, VelError> {
        let topic = &self.topics()[topic.index()];
        let record_type =
            self.record_type(topic).ok_or_else(|| VelError::Undescribed { topic: topic.name.clone() })?;
        let declared =
            record_type.as_deref().map(|declared| (declared.kind(), tables::renamed(declared.layout())));
        let places = self.entries.of_topic(topic.id.0, self.topics().len());
        let (select, schema) = (select.clone(), Arc::new(Schema::empty()));
        let mut batches = TopicBatches { reader: self, topic, places, declared, select, schema };
        batches.schema =
            batches.table(&[]).map_err(|error| VelError::Io(std::io::Error::other(error)))?.schema();
        Ok(batches)
    }
}

/// Iterator over the record batches of a topic.
pub(crate) struct TopicBatches<'a> {
    reader: &'a VelReader,
    topic: &'a Topic,
    /// Indices of the topic's messages that have not been read yet.
    places: &'a [u32],
    /// Kind of the messages, and layout of their fields. In this layout, the fields have the names
    /// of the columns. `None` if the fields are unknown.
    declared: Option<(Option<Kind>, Layout)>,
    select: Select,
    schema: SchemaRef,
}

impl TopicBatches<'_> {
    fn table(&self, messages: &[Message<'_>]) -> Result<RecordBatch, ArrowError> {
        let mut table = Table::new(&self.select);
        let declared = self.declared.as_ref().map(|(kind, layout)| (*kind, layout));
        let rows = tables::fill(&mut table, self.reader.meaning(), declared, messages)?;
        table.batch(rows, metadata(&self.topic.name, &self.topic.type_name))
    }
}

impl<'a> TopicBatches<'a> {
    /// Returns the messages of the next batch. Returns no messages at the end of the topic.
    fn next_messages(&mut self) -> Vec<Message<'a>> {
        let reader = self.reader;
        let (mut messages, mut bytes) = (Vec::new(), 0);
        while let Some((place, rest)) = self.places.split_first() {
            if messages.len() == BATCH_ROWS || bytes >= BATCH_BYTES {
                break;
            }
            self.places = rest;
            let entry = &reader.entries[*place as usize];
            if self.select.keeps_block(entry.at) && self.select.keeps_time(entry.nanos) {
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
        let messages = self.next_messages();
        (!messages.is_empty()).then(|| self.table(&messages))
    }
}

impl RecordBatchReader for TopicBatches<'_> {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
