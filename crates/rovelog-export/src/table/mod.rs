//! Topics as tables: Parquet, Arrow IPC and CSV. One file per topic, all in one pass, in bounded
//! memory.

mod csv;
mod ipc;
mod options;
mod order;
mod parquet;
mod sink;
mod source;
mod vocabulary;

use std::io::Write;

use arrow_array::{Array as _, ArrayRef, RecordBatch};
use rovelog::core::parallel::{self, Jobs};
use rovelog::{LogReader, Select, Topic};

pub use options::{Dialect, Kind, Names, TableOptions, TimeUnit};

pub use crate::leaf::free_name;

pub use self::parquet::{Floats, parquet_properties};

use self::parquet::GROUP_ROWS;
use self::sink::{Job, Out, Sink};
use self::source::Source;
use crate::{ExportError, Loss, Provenance};

/// Result of writing a table.
#[derive(Debug)]
#[non_exhaustive]
pub struct Written<W> {
    /// The output, complete.
    pub out: W,
    /// Number of rows written.
    pub rows: u64,
}

/// Bytes that all tables together hold before the largest is written out: of values, which take
/// about half of it as pages that are compressed.
const HELD: usize = 192 << 20;

/// Writes the selected rows of topics, each to its own output, in one pass where the format allows
/// it. Returns the outputs in the same order, with the values that could not be carried.
///
/// # Errors
/// Returns an error if a topic has no columns, writing to an output fails, or the log cannot be
/// read.
pub fn write<W: Write + Send>(
    log: &dyn LogReader,
    outputs: Vec<(&Topic, W)>,
    select: &Select,
    (kind, options): (Kind, &TableOptions),
    provenance: &Provenance,
    progress: &mut dyn FnMut(u64),
) -> Result<(Vec<Written<W>>, Vec<Loss>), ExportError> {
    let (topics, mut outs): (Vec<&Topic>, Vec<W>) = outputs.into_iter().unzip();
    let lent = topics.into_iter().zip(outs.iter_mut().map(|out| out as Out<'_>)).collect();
    let (rows, losses) = write_all(log, lent, select, (kind, options), provenance, progress)?;
    let written = outs.into_iter().zip(rows).map(|(out, rows)| Written { out, rows });
    Ok((written.collect(), losses))
}

/// Writes tables to outputs of any type. Returns the number of rows of each.
fn write_all(
    log: &dyn LogReader,
    outputs: Vec<(&Topic, Out<'_>)>,
    select: &Select,
    (kind, options): (Kind, &TableOptions),
    provenance: &Provenance,
    progress: &mut dyn FnMut(u64),
) -> Result<(Vec<u64>, Vec<Loss>), ExportError> {
    let names = outputs.iter().map(|(topic, _)| topic.name.clone());
    let mut select = select.clone();
    (select.topics, select.last_before) = (Some(names.collect()), false);
    let pyulog = options.dialect == Dialect::Pyulog && kind == Kind::Csv;
    select.bool_bytes = pyulog;
    let order = if pyulog {
        // Rows in file order.
        order::Order::file(log)
    } else {
        order::Order::of(log, &select)?
    };
    let mut losses = Vec::new();
    let metadata = provenance.of_all_tables(log);
    let (mut ids, mut sinks, mut texts) = (Vec::new(), Vec::new(), Vec::new());
    for (topic, out) in outputs {
        let job = Job { log, topic, options, metadata: &metadata, sorted: order.is_sorted(topic.id) };
        let schema = log.own(topic)?.columns(&select)?.schema();
        ids.push(topic.id);
        match kind {
            Kind::Parquet => sinks.push(Some(Box::new(parquet::Parquet::new(&job, &schema, out)?) as _)),
            Kind::Arrow => sinks.push(Some(Box::new(ipc::Ipc::new(&job, &schema, out)?) as _)),
            Kind::Csv => texts.push(csv::Csv::new(&job, &schema, out, &mut losses)?),
        }
    }
    let source = Source { log, ids, order, select };
    let rows = if kind == Kind::Csv {
        csv::write(&source, texts, options.jobs, &mut losses, progress)?
    } else {
        in_lanes(&source, sinks, options.jobs, &mut losses, progress)?
    };
    Ok((rows, losses))
}

/// An item of work on a table.
enum Item {
    Batch(RecordBatch),
    /// Writes what is held.
    Relieve,
    Finish,
}

/// A table until it is finished, and the values that it could not carry.
type Table<'a> = Option<Box<dyn Sink + Send + 'a>>;

/// Writes tables side by side, by several threads. Returns the number of rows of each.
fn in_lanes(
    source: &Source<'_>,
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
