//! Reads the rows of a topic in time order, in bounded memory. Rows without a time are skipped.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use arrow_array::{Array as _, RecordBatch};
use arrow_schema::SchemaRef;
use rovelog::core::Batches;
use rovelog::core::select::Names;
use rovelog::{LogReader, Select, Topic};

use crate::ExportError;
use crate::pick::Picks;
use crate::table::order::{Order, Window};

/// Iterator over the batches of a topic in time order.
pub(super) struct Cursor<'a> {
    log: &'a dyn LogReader,
    topic: &'a Topic,
    /// Selection with which the topic is read.
    pub(super) select: Select,
    /// Batches in file order. `None` if the topic is not stored in time order.
    batches: Option<Batches<'a>>,
    /// Time windows that remain to be read and sorted. Empty if the topic is stored in time order.
    windows: VecDeque<Window>,
    pub(super) schema: SchemaRef,
    /// Number of rows that this cursor has skipped because they have no time. It is shared with the
    /// caller, who reads it after the cursor was consumed.
    pub(super) untimed: Arc<AtomicU64>,
}

impl<'a> Cursor<'a> {
    /// Opens a cursor over the selected rows of `topic`. The topics in `select` are ignored.
    pub(super) fn new(
        log: &'a dyn LogReader,
        topic: &'a Topic,
        select: &Select,
    ) -> Result<Self, ExportError> {
        let mut select = select.clone();
        // `last_before` would add the row before the start time, which is outside of the time
        // range.
        (select.topics, select.last_before) = (Some(Names::from_iter([&topic.name])), false);
        let batches = log.own(topic)?.columns(&select)?;
        let schema = batches.schema();
        let order = Order::of(log, &select)?;
        let (batches, windows) = if order.needs_sorting(topic.id) {
            (None, order.windows(log, topic, &select)?.into())
        } else {
            (Some(batches), VecDeque::new())
        };
        Ok(Self { log, topic, select, batches, windows, schema, untimed: Arc::default() })
    }

    /// Reads the next batch. The batch may contain rows without a time.
    fn read(&mut self) -> Result<Option<RecordBatch>, ExportError> {
        match &mut self.batches {
            Some(batches) => Ok(batches.next().transpose()?),
            None => match self.windows.pop_front() {
                Some(window) => Ok(Some(window.read(self.log, self.topic, &self.select)?)),
                None => Ok(None),
            },
        }
    }
}

impl Iterator for Cursor<'_> {
    type Item = Result<RecordBatch, ExportError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let batch = match self.read() {
                Ok(batch) => batch?,
                Err(error) => return Some(Err(error)),
            };
            // Nearly all batches have a time in every row and are passed on without a copy.
            let batch = match batch.column(0).nulls().filter(|nulls| nulls.null_count() > 0) {
                Some(nulls) => {
                    self.untimed.fetch_add(nulls.null_count() as u64, Relaxed);
                    let picks: Picks = nulls.valid_indices().map(|row| Some((0, row))).collect();
                    picks.of_batches(&self.schema, &[&batch])
                }
                None => Ok(batch),
            };
            match batch {
                Ok(batch) if batch.num_rows() == 0 => {}
                batch => return Some(batch.map_err(ExportError::from)),
            }
        }
    }
}
