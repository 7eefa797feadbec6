//! The rows of tables, in the order in which they are written.

use arrow_array::RecordBatch;
use rovelog::{LogReader, Select, TopicId};

use super::order::Order;
use crate::ExportError;
use crate::signal::{Extended, Joined};

/// The rows of tables.
pub(super) enum Source<'a> {
    /// A table for each topic.
    Topics(Topics<'a>),
    /// One table of several topics.
    Joined(Box<Joined<'a>>),
}

/// The rows of a table for each topic.
pub(super) struct Topics<'a> {
    pub(super) log: &'a dyn LogReader,
    /// Topic by table.
    pub(super) ids: Vec<TopicId>,
    /// Further columns by table.
    pub(super) further: Vec<Option<Extended>>,
    pub(super) order: Order,
    pub(super) select: Select,
}

/// Takes a batch of the table with this number.
type Push<'a> = &'a mut dyn FnMut(usize, RecordBatch) -> Result<(), ExportError>;

impl Source<'_> {
    /// Hands batches to `push`, those of each table in their order. Returns the number of rows of
    /// each.
    pub(super) fn batches(
        self,
        progress: &mut dyn FnMut(u64),
        push: Push<'_>,
    ) -> Result<Vec<u64>, ExportError> {
        let joined = match self {
            Self::Topics(topics) => return topics.batches(progress, push),
            Self::Joined(joined) => joined,
        };
        let mut rows = 0;
        for batch in *joined {
            let batch = batch?;
            rows += batch.num_rows() as u64;
            progress(batch.num_rows() as u64);
            push(0, batch)?;
        }
        Ok(vec![rows])
    }
}

impl Topics<'_> {
    fn batches(self, progress: &mut dyn FnMut(u64), push: Push<'_>) -> Result<Vec<u64>, ExportError> {
        let Self { log, ids, mut further, order, mut select } = self;
        let mut rows = vec![0; ids.len()];
        let mut give = |table: usize, batch: RecordBatch| {
            rows[table] += batch.num_rows() as u64;
            progress(batch.num_rows() as u64);
            match &mut further[table] {
                Some(further) => push(table, further.extend(&batch)?),
                None => push(table, batch),
            }
        };
        let mut tables = vec![None; log.topics().len()];
        for (table, id) in ids.iter().enumerate() {
            tables[id.index()] = Some(table);
        }
        // Topics that need sorting are read separately, window by window.
        let whole = ids.iter().filter(|id| !order.needs_sorting(**id));
        select.topics = Some(whole.map(|id| log.topics()[id.index()].name.clone()).collect());
        for item in log.batches(&select) {
            let (id, batch) = item?;
            if let Some(table) = tables[id.index()] {
                give(table, batch)?;
            }
        }
        for (table, id) in ids.iter().enumerate().filter(|(_, id)| order.needs_sorting(**id)) {
            let topic = &log.topics()[id.index()];
            order.sorted(log, topic, &select, &mut |batch| give(table, batch.clone()))?;
        }
        Ok(rows)
    }
}
