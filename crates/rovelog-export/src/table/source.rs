//! Reads the rows of tables in the order in which they will be written.

use arrow_array::RecordBatch;
use rovelog::{LogReader, Select, TopicId};

use super::order::Order;
use crate::ExportError;
use crate::signal::{Extended, Joined};

/// Source of the rows of one or more tables.
pub(super) enum Source<'a> {
    /// Each topic becomes a separate table.
    Topics(Topics<'a>),
    /// Several topics are joined into a single table.
    Joined(Box<Joined<'a>>),
}

/// Source of the rows of several tables, each of which contains one topic.
pub(super) struct Topics<'a> {
    pub(super) log: &'a dyn LogReader,
    /// Topic that each table contains.
    pub(super) ids: Vec<TopicId>,
    /// The columns that are computed from signals, for each table. `None` if a table has no such
    /// columns.
    pub(super) computed: Vec<Option<Extended>>,
    pub(super) order: Order,
    pub(super) select: Select,
}

/// Callback that receives a batch. The number is the index of the table that the batch belongs to.
type Push<'a> = &'a mut dyn FnMut(usize, RecordBatch) -> Result<(), ExportError>;

impl Source<'_> {
    /// Calls `push` with all batches. The batches of a table are in order, but batches of different
    /// tables may alternate. Returns the number of rows of each table.
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
    /// Reads all batches of the topics. See [`Source::batches`].
    fn batches(self, progress: &mut dyn FnMut(u64), push: Push<'_>) -> Result<Vec<u64>, ExportError> {
        let Self { log, ids, mut computed, order, mut select } = self;
        let mut rows = vec![0; ids.len()];
        let mut emit = |table: usize, batch: RecordBatch| {
            rows[table] += batch.num_rows() as u64;
            progress(batch.num_rows() as u64);
            match &mut computed[table] {
                Some(computed) => push(table, computed.extend(&batch)?),
                None => push(table, batch),
            }
        };
        let mut tables = vec![None; log.topics().len()];
        for (table, id) in ids.iter().enumerate() {
            tables[id.index()] = Some(table);
        }
        // All topics that are stored in time order are read in one pass over the log. Any other
        // topic is read separately, one time window after the other.
        let in_order = ids.iter().filter(|id| !order.needs_sorting(**id));
        select.topics = Some(in_order.map(|id| log.topics()[id.index()].name.clone()).collect());
        for item in log.batches(&select) {
            let (id, batch) = item?;
            // Topics that are not written have no table.
            if let Some(table) = tables[id.index()] {
                emit(table, batch)?;
            }
        }
        for (table, id) in ids.iter().enumerate().filter(|(_, id)| order.needs_sorting(**id)) {
            let topic = &log.topics()[id.index()];
            order.sorted(log, topic, &select, &mut |batch| emit(table, batch.clone()))?;
        }
        Ok(rows)
    }
}
