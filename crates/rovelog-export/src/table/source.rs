//! The rows of tables, in the order in which they are written.

use arrow_array::RecordBatch;
use rovelog::{LogReader, Select, TopicId};

use super::order::Order;
use crate::ExportError;

/// The rows of tables.
pub(super) struct Source<'a> {
    pub(super) log: &'a dyn LogReader,
    /// Topic by table.
    pub(super) ids: Vec<TopicId>,
    pub(super) order: Order,
    pub(super) select: Select,
}

impl Source<'_> {
    /// Hands batches to `push`, those of each table in their order, with the number of the table.
    /// Returns the number of rows of each.
    pub(super) fn batches(
        &self,
        progress: &mut dyn FnMut(u64),
        push: &mut dyn FnMut(usize, RecordBatch) -> Result<(), ExportError>,
    ) -> Result<Vec<u64>, ExportError> {
        let Self { log, ids, order, select } = self;
        let mut rows = vec![0; ids.len()];
        let mut give = |table: usize, batch: RecordBatch| {
            rows[table] += batch.num_rows() as u64;
            progress(batch.num_rows() as u64);
            push(table, batch)
        };
        let mut tables = vec![None; log.topics().len()];
        for (table, id) in ids.iter().enumerate() {
            tables[id.index()] = Some(table);
        }
        // Topics that need sorting are read separately, window by window.
        let whole = ids.iter().filter(|id| !order.needs_sorting(**id));
        let mut select = select.clone();
        select.topics = Some(whole.map(|id| log.topics()[id.index()].name.clone()).collect());
        for item in log.batches(&select) {
            let (id, batch) = item?;
            if let Some(table) = tables[id.index()] {
                give(table, batch)?;
            }
        }
        for (table, id) in ids.iter().enumerate().filter(|(_, id)| order.needs_sorting(**id)) {
            let topic = &log.topics()[id.index()];
            order.sorted(*log, topic, &select, &mut |batch| give(table, batch.clone()))?;
        }
        Ok(rows)
    }
}
