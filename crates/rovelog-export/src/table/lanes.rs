//! Writes Parquet and Arrow files of several topics with several threads. Each file is written by
//! one thread at a time, because its batches must be written in order.

use arrow_array::{Array as _, ArrayRef, RecordBatch};
use rovelog::core::internal::parallel::{self, Jobs};

use super::parquet::GROUP_ROWS;
use super::sink::Sink;
use super::source::Source;
use crate::{ExportError, Loss};

/// Maximum size in bytes of the values that all tables together hold in memory. If they exceed this
/// size, the table with the most values is flushed. Encoded and compressed pages need about half of
/// the size of the values.
const MAX_BUFFERED_BYTES: usize = 192 << 20;

/// A task for the writer of a table.
enum Item {
    /// Adds a batch to the table.
    Batch(RecordBatch),
    /// Writes the buffered rows of the table to the file.
    Flush,
    /// Completes the file of the table.
    Finish,
}

/// The writer of a table. `None` after the table has been finished.
pub(super) type Table<'a> = Option<Box<dyn Sink + Send + 'a>>;

/// Writes tables with several threads. Returns the number of rows of each table.
pub(super) fn write(
    source: Source<'_>,
    sinks: Vec<Table<'_>>,
    jobs: Jobs,
    losses: &mut Vec<Loss>,
    progress: &mut dyn FnMut(u64),
) -> Result<Vec<u64>, ExportError> {
    let mut rows = Vec::new();
    let mut buffered = Buffered { tables: vec![(0, 0); sinks.len()], total: 0 };
    let states = sinks.into_iter().map(|sink| (sink, Vec::new())).collect();
    let work = |(table, losses): &mut (Table<'_>, Vec<Loss>), item| {
        let Some(sink) = table else { return Ok(()) };
        match item {
            Item::Batch(batch) => sink.write(&batch),
            Item::Flush => sink.flush(),
            Item::Finish => table.take().map_or(Ok(()), |sink| sink.finish(losses)),
        }
    };
    let done = parallel::lanes(jobs, states, work, |push| {
        rows = source.batches(progress, &mut |table, batch| {
            let full = buffered.add(table, &batch);
            push(table, Item::Batch(batch))?;
            full.map_or(Ok(()), |table| push(table, Item::Flush))
        })?;
        (0..rows.len()).try_for_each(|table| push(table, Item::Finish))
    })?;
    losses.extend(done.into_iter().flat_map(|(_, losses)| losses));
    Ok(rows)
}

/// Estimate of the rows that tables hold in memory until their next row group is complete. A log
/// may have thousands of small topics. Their incomplete row groups together would need too much
/// memory.
///
/// The estimate counts the batches passed to the tables. It does not depend on the progress of the
/// threads, so the files are the same for any number of threads.
struct Buffered {
    /// For each table, number of rows and size in bytes of the values in memory.
    tables: Vec<(usize, usize)>,
    /// Size in bytes of the values of all tables in memory.
    total: usize,
}

impl Buffered {
    /// Adds a batch to a table. If all tables together now hold too many bytes, returns the index
    /// of the table that holds the most bytes. The caller must flush this table.
    fn add(&mut self, table: usize, batch: &RecordBatch) -> Option<usize> {
        let bytes: usize = batch.columns().iter().map(bytes_of).sum();
        let (rows, buffered) = &mut self.tables[table];
        *rows += batch.num_rows();
        *buffered += bytes;
        self.total += bytes;
        if *rows >= GROUP_ROWS {
            // The Parquet writer has written the complete row groups. What remains in memory is at
            // most this batch.
            *rows %= GROUP_ROWS;
            self.total -= *buffered - bytes;
            *buffered = bytes;
        }
        if self.total <= MAX_BUFFERED_BYTES {
            return None;
        }
        let most = (0..self.tables.len()).max_by_key(|table| (self.tables[*table].1, usize::MAX - table))?;
        self.total -= self.tables[most].1;
        self.tables[most] = (0, 0);
        Some(most)
    }
}

/// Returns the size in bytes of the values of a column. If the column is a slice of a larger array,
/// only the slice is counted.
fn bytes_of(column: &ArrayRef) -> usize {
    column.to_data().get_slice_memory_size().unwrap_or_else(|_| column.get_array_memory_size())
}
