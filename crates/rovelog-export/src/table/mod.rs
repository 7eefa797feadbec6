//! Topics as tables: Parquet, Arrow IPC and CSV. One file per topic, all in one pass, in bounded
//! memory.

mod csv;
#[cfg(feature = "parquet")]
mod ipc;
mod number;
mod options;
pub(crate) mod order;
#[cfg(feature = "parquet")]
mod parquet;
mod sink;
#[cfg(feature = "parquet")]
mod vocabulary;

use std::io::Write;

use arrow_array::RecordBatch;
use arrow_schema::Schema;
use rovelog::{LogReader, Select, Topic, TopicId};

pub use options::{Dialect, Kind, Names, TableOptions, TimeUnit};

pub use crate::leaf::free_name;

#[cfg(feature = "parquet")]
pub use self::parquet::parquet_properties;

use self::sink::{Job, Out, Sink};
use crate::signal::{Extended, Joined};
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
    let wanted = select.clone();
    select = Extended::reads(&options.derived, &wanted);
    let mut tables: Vec<Option<Table<'_>>> = log.topics().iter().map(|_| None).collect();
    let mut ids = Vec::new();
    let metadata = provenance.of_all_tables(log);
    for (topic, out) in outputs {
        let job = Job { log, topic, options, metadata: &metadata, sorted: order.is_sorted(topic.id) };
        let extended = match options.derived[..] {
            [] => None,
            _ => Some(Extended::new(log, topic, &options.derived, &wanted)?),
        };
        let sink = match &extended {
            Some(extended) => sink(kind, &job, extended.schema(), out)?,
            None => sink(kind, &job, &log.own(topic)?.columns(&select)?.schema(), out)?,
        };
        tables[topic.id.index()] = Some(Table { sink, rows: 0, extended });
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

/// Returns a writer of rows with `schema`.
fn sink<'w>(
    kind: Kind,
    job: &Job<'_>,
    schema: &Schema,
    out: Out<'w>,
) -> Result<Box<dyn Sink + 'w>, ExportError> {
    Ok(match kind {
        #[cfg(feature = "parquet")]
        Kind::Parquet => Box::new(parquet::Parquet::new(job, schema, out)?),
        #[cfg(feature = "parquet")]
        Kind::Arrow => Box::new(ipc::Ipc::new(job, schema, out)?),
        #[cfg(not(feature = "parquet"))]
        Kind::Parquet | Kind::Arrow => {
            return Err(ExportError::NotBuiltIn { what: kind.name(), feature: "parquet" });
        }
        Kind::Csv => Box::new(csv::Csv::new(job, schema, out)),
    })
}

/// Writes topics that were joined as one table. Returns the number of rows, with the values that could
/// not be carried.
///
/// # Errors
/// Returns an error if writing to the output fails, or the log cannot be read.
pub fn write_joined<W: Write + Send>(
    log: &dyn LogReader,
    joined: Joined<'_>,
    out: &mut W,
    (kind, options): (Kind, &TableOptions),
    provenance: &Provenance,
    progress: &mut dyn FnMut(u64),
) -> Result<(u64, Vec<Loss>), ExportError> {
    // The table is of no topic of the log.
    let topic = Topic::new(TopicId(0), "joined".to_owned(), String::new(), None);
    let metadata = provenance.of_all_tables(log);
    let job = Job { log, topic: &topic, options, metadata: &metadata, sorted: true };
    let sink = sink(kind, &job, joined.schema(), out)?;
    let mut table = Table { sink, rows: 0, extended: None };
    for batch in joined {
        table.write(&batch?, progress)?;
    }
    let mut losses = Vec::new();
    let rows = table.rows;
    table.sink.finish(&mut losses)?;
    Ok((rows, losses))
}

struct Table<'a> {
    sink: Box<dyn Sink + 'a>,
    rows: u64,
    extended: Option<Extended>,
}

impl Table<'_> {
    fn write(&mut self, batch: &RecordBatch, progress: &mut dyn FnMut(u64)) -> Result<(), ExportError> {
        self.rows += batch.num_rows() as u64;
        progress(batch.num_rows() as u64);
        match &mut self.extended {
            Some(extended) => self.sink.write(&extended.extend(batch)?),
            None => self.sink.write(batch),
        }
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
