//! Parquet and Arrow files side by side, by several threads.

use arrow_array::{Array as _, ArrayRef, RecordBatch};
use rovelog::core::parallel::{self, Jobs};

use super::parquet::GROUP_ROWS;
use super::sink::Sink;
use super::source::Source;
use crate::{ExportError, Loss};

/// Bytes that all tables together hold before the largest is written out: of values, which take
/// about half of it as pages that are compressed.
const HELD: usize = 192 << 20;

/// An item of work on a table.
enum Item {
    Batch(RecordBatch),
    /// Writes what is held.
    Relieve,
    Finish,
}

/// A table until it is finished.
pub(super) type Table<'a> = Option<Box<dyn Sink + Send + 'a>>;

/// Writes tables side by side, by several threads. Returns the number of rows of each.
pub(super) fn write(
    source: Source<'_>,
    sinks: Vec<Table<'_>>,
    jobs: Jobs,
    losses: &mut Vec<Loss>,
    progress: &mut dyn FnMut(u64),
) -> Result<Vec<u64>, ExportError> {
    let mut rows = Vec::new();
    let mut held = Held { tables: vec![(0, 0); sinks.len()], total: 0 };
    let states = sinks.into_iter().map(|sink| (sink, Vec::new())).collect();
    let work = |(table, losses): &mut (Table<'_>, Vec<Loss>), item| {
        let Some(sink) = table else { return Ok(()) };
        match item {
            Item::Batch(batch) => sink.write(&batch),
            Item::Relieve => sink.relieve(),
            Item::Finish => table.take().map_or(Ok(()), |sink| sink.finish(losses)),
        }
    };
    let done = parallel::lanes(jobs, states, work, |push| {
        rows = source.batches(progress, &mut |table, batch| {
            let full = held.after(table, &batch);
            push(table, Item::Batch(batch))?;
            full.map_or(Ok(()), |table| push(table, Item::Relieve))
        })?;
        (0..rows.len()).try_for_each(|table| push(table, Item::Finish))
    })?;
    losses.extend(done.into_iter().flat_map(|(_, losses)| losses));
    Ok(rows)
}

/// Rows and bytes that tables hold until a group of rows is complete, so that many small tables
/// together stay small. It is counted by what is handed to them, which does not depend on threads.
struct Held {
    tables: Vec<(usize, usize)>,
    total: usize,
}

impl Held {
    /// Counts a batch. Returns the table that must write what it holds, if all hold too much: the
    /// one that holds most.
    fn after(&mut self, table: usize, batch: &RecordBatch) -> Option<usize> {
        let bytes: usize = batch.columns().iter().map(bytes_of).sum();
        let (rows, held) = &mut self.tables[table];
        *rows += batch.num_rows();
        *held += bytes;
        self.total += bytes;
        if *rows >= GROUP_ROWS {
            // The table has written complete groups, and holds a part of this batch at most.
            *rows %= GROUP_ROWS;
            self.total -= *held - bytes;
            *held = bytes;
        }
        if self.total <= HELD {
            return None;
        }
        let most = (0..self.tables.len()).max_by_key(|table| (self.tables[*table].1, usize::MAX - table))?;
        self.total -= self.tables[most].1;
        self.tables[most] = (0, 0);
        Some(most)
    }
}

/// Returns the number of bytes of the values of a column.
fn bytes_of(column: &ArrayRef) -> usize {
    column.to_data().get_slice_memory_size().unwrap_or_else(|_| column.get_array_memory_size())
}
