//! Topics as tables: Parquet, Arrow IPC and CSV. One file per topic, all in one pass, in bounded
//! memory.

mod csv;
#[cfg(feature = "parquet")]
mod ipc;
mod number;
mod options;
mod order;
#[cfg(feature = "parquet")]
mod parquet;
mod sink;
#[cfg(feature = "parquet")]
mod vocabulary;

use std::io::Write;

use arrow_array::RecordBatch;
use rovelog::{LogReader, Select, Topic};

pub use options::{Dialect, Kind, Names, TableOptions, TimeUnit};

pub use crate::leaf::free_name;

#[cfg(feature = "parquet")]
pub use self::parquet::parquet_properties;

use self::sink::{Job, Out, Sink};
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

/// Maximum memory that all tables together hold before the largest is written out.
const HELD: usize = 96 << 20;

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
    let mut tables: Vec<Option<Table<'_>>> = log.topics().iter().map(|_| None).collect();
    let mut ids = Vec::new();
    let metadata = provenance.of_all_tables(log);
    for (topic, out) in outputs {
        let job = Job { log, topic, options, metadata: &metadata, sorted: order.is_sorted(topic.id) };
        let schema = log.own(topic)?.columns(&select)?.schema();
        let sink: Box<dyn Sink + '_> = match kind {
            #[cfg(feature = "parquet")]
            Kind::Parquet => Box::new(parquet::Parquet::new(&job, &schema, out)?),
            #[cfg(feature = "parquet")]
            Kind::Arrow => Box::new(ipc::Ipc::new(&job, &schema, out)?),
            #[cfg(not(feature = "parquet"))]
            Kind::Parquet | Kind::Arrow => {
                return Err(ExportError::NotBuiltIn { what: kind.name(), feature: "parquet" });
            }
            Kind::Csv => Box::new(csv::Csv::new(&job, &schema, out)),
        };
        tables[topic.id.index()] = Some(Table { sink, rows: 0 });
        ids.push(topic.id);
    }
    // Topics that need sorting are read separately, window by window.
    let whole = ids.iter().filter(|id| !order.needs_sorting(**id));
    select.topics = Some(whole.map(|id| log.topics()[id.index()].name.clone()).collect());
    let mut held = Held::default();
    for item in log.batches(&select) {
        let (id, batch) = item?;
        if let Some(table) = &mut tables[id.index()] {
            table.write(&batch, progress)?;
            held.after(id.index(), &mut tables)?;
        }
    }
    for id in ids.iter().filter(|id| order.needs_sorting(**id)) {
        let topic = &log.topics()[id.index()];
        order.sorted(log, topic, &select, &mut |batch| {
            if let Some(table) = &mut tables[id.index()] {
                table.write(batch, progress)?;
                held.after(id.index(), &mut tables)?;
            }
            Ok(())
        })?;
    }
    let mut losses = Vec::new();
    let mut rows = Vec::new();
    for id in ids {
        let Some(table) = tables[id.index()].take() else { continue };
        rows.push(table.rows);
        table.sink.finish(&mut losses)?;
    }
    Ok((rows, losses))
}

struct Table<'a> {
    sink: Box<dyn Sink + 'a>,
    rows: u64,
}

impl Table<'_> {
    fn write(&mut self, batch: &RecordBatch, progress: &mut dyn FnMut(u64)) -> Result<(), ExportError> {
        self.rows += batch.num_rows() as u64;
        progress(batch.num_rows() as u64);
        self.sink.write(batch)
    }
}

/// Memory that tables hold, so that many small ones together stay small.
#[derive(Default)]
struct Held {
    by_topic: Vec<usize>,
    total: usize,
}

impl Held {
    fn after(&mut self, index: usize, tables: &mut [Option<Table<'_>>]) -> Result<(), ExportError> {
        self.by_topic.resize(tables.len(), 0);
        self.set(index, tables);
        while self.total > HELD {
            let Some(largest) = (0..tables.len()).max_by_key(|i| (self.by_topic[*i], tables.len() - i))
            else {
                break;
            };
            let before = self.total;
            if let Some(table) = &mut tables[largest] {
                table.sink.relieve()?;
            }
            self.set(largest, tables);
            if self.total >= before {
                break;
            }
        }
        Ok(())
    }

    fn set(&mut self, index: usize, tables: &[Option<Table<'_>>]) {
        let now = tables[index].as_ref().map_or(0, |table| table.sink.held());
        self.total = self.total - self.by_topic[index] + now;
        self.by_topic[index] = now;
    }
}
