//! Writes Parquet and Arrow files of several topics with several threads. Each file is written by
//! one thread at a time, because its batches must be written in order.

use arrow_array::{Array as _, ArrayRef, RecordBatch};
use rovelog::core::internal::parallel::{self, Jobs};

use super::held::HeldBatches;
use super::parquet::GROUP_ROWS;
use super::sink::Sink;
use super::source::Source;
use crate::{ExportError, Loss};

/// Limit on the rows that tables hold in memory.
#[derive(Clone, Copy)]
pub(super) struct Limit {
    /// Maximum size in bytes of the values that all tables together hold. If they exceed this size,
    /// the table with the most values is flushed.
    bytes: usize,
    /// True if batches are collected before they are passed to a writer.
    is_grouped: bool,
}

impl Limit {
    /// Batches of Parquet files are collected until a row group is complete.
    pub(super) const PARQUET: Self = Self { bytes: 48 << 20, is_grouped: true };
    /// Batches of Arrow files are passed to their writers at once. A writer keeps rows in memory
    /// until they are enough for a batch of the file.
    pub(super) const ARROW: Self = Self { bytes: 192 << 20, is_grouped: false };
}

/// A task for the writer of a table.
enum Item {
    /// Adds batches to the table.
    Batches(Vec<RecordBatch>),
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
    (limit, jobs): (Limit, Jobs),
    losses: &mut Vec<Loss>,
    progress: &mut dyn FnMut(u64),
) -> Result<Vec<u64>, ExportError> {
    let mut rows = Vec::new();
    let mut buffered = Buffered { tables: sinks.iter().map(|_| Held::default()).collect(), total: 0, limit };
    let states = sinks.into_iter().map(|sink| (sink, Vec::new())).collect();
    let work = |(table, losses): &mut (Table<'_>, Vec<Loss>), item| {
        let Some(sink) = table else { return Ok(()) };
        match item {
            Item::Batches(batches) => sink.write(batches),
            Item::Flush => sink.flush(),
            Item::Finish => table.take().map_or(Ok(()), |sink| sink.finish(losses)),
        }
    };
    let done = parallel::lanes(jobs, states, work, |push| {
        rows = source.batches(progress, &mut |table, batch| buffered.add(table, batch, push))?;
        buffered.tables.into_iter().enumerate().try_for_each(|(table, mut held)| {
            push(table, Item::Batches(held.batches.take()))?;
            push(table, Item::Finish)
        })
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
    tables: Vec<Held>,
    /// Size in bytes of the values of all tables in memory.
    total: usize,
    limit: Limit,
}

/// Rows of a table that are in memory.
#[derive(Default)]
struct Held {
    /// Batches that have not been passed to the writer, if batches are collected.
    batches: HeldBatches,
    /// Number of rows in memory.
    rows: usize,
    /// Size in bytes of their values.
    bytes: usize,
}

impl Buffered {
    /// Adds a batch to a table. Calls `push` with the tasks for the writers of tables.
    fn add(
        &mut self,
        table: usize,
        batch: RecordBatch,
        push: &mut dyn FnMut(usize, Item) -> Result<(), ExportError>,
    ) -> Result<(), ExportError> {
        let bytes: usize = batch.columns().iter().map(bytes_of).sum();
        let held = &mut self.tables[table];
        held.rows += batch.num_rows();
        held.bytes += bytes;
        self.total += bytes;
        let is_complete = held.rows >= GROUP_ROWS;
        if self.limit.is_grouped {
            held.batches.add(batch)?;
            if is_complete {
                self.total -= held.bytes;
                push(table, Item::Batches(std::mem::take(held).batches.take()))?;
            }
        } else {
            if is_complete {
                // The writer of the table has written the complete groups. What remains in memory
                // is at most this batch.
                held.rows %= GROUP_ROWS;
                self.total -= held.bytes - bytes;
                held.bytes = bytes;
            }
            push(table, Item::Batches(vec![batch]))?;
        }
        if self.total <= self.limit.bytes {
            return Ok(());
        }
        let most = (0..self.tables.len()).max_by_key(|table| (self.tables[*table].bytes, usize::MAX - table));
        let Some(table) = most else { return Ok(()) };
        let mut held = std::mem::take(&mut self.tables[table]);
        self.total -= held.bytes;
        push(table, if self.limit.is_grouped { Item::Batches(held.batches.take()) } else { Item::Flush })
    }
}

/// Returns the size in bytes of the values of a column. If the column is a slice of a larger array,
/// only the slice is counted.
fn bytes_of(column: &ArrayRef) -> usize {
    column.to_data().get_slice_memory_size().unwrap_or_else(|_| column.get_array_memory_size())
}
