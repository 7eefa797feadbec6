//! Writes topics as tables in Parquet, Arrow IPC and CSV.
//!
//! Each topic becomes one file. All topics are written in one pass over the log if possible, and
//! the memory use does not grow with the log.

#[cfg(feature = "parquet")]
mod convert;
mod csv;
#[cfg(feature = "parquet")]
mod held;
#[cfg(feature = "parquet")]
mod ipc;
#[cfg(feature = "parquet")]
mod lanes;
mod options;
pub(crate) mod order;
#[cfg(feature = "parquet")]
mod parquet;
mod sink;
mod source;

use std::io::Write;
use std::sync::atomic::Ordering::Relaxed;

use arrow_schema::Schema;
use rovelog::core::internal::parallel::Jobs;
use rovelog::core::internal::text::count;
use rovelog::{LogReader, Select, Topic, TopicId};

pub use csv::quoted;
pub use options::{Dialect, Kind, Names, TableOptions, TimeUnit};

pub use crate::leaf::free_name;

#[cfg(feature = "parquet")]
pub use self::held::HeldBatches;
#[cfg(feature = "parquet")]
pub use self::parquet::{Floats, RowGroups, parquet_properties};

use self::sink::{Job, Out};
use self::source::{Source, Topics};
use crate::leaf;
use crate::signal::{Extended, Joined};
use crate::{ExportError, Loss, Provenance};

/// Result of writing one table.
#[derive(Debug)]
#[non_exhaustive]
pub struct Written<W> {
    /// The output of the table. All data has been written to it.
    pub out: W,
    /// Number of rows written to the table.
    pub rows: u64,
}

/// Writes the selected rows of topics, each topic to its own output. Returns the results in the
/// order of `outputs`, and the values that cannot be represented.
///
/// All topics are written in one pass over the log, unless they have too many columns together.
/// Topics that are not stored in time order need additional passes.
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
    let (mut written, mut losses) = (Vec::new(), Vec::new());
    for group in in_passes(outputs, |(topic, _)| *topic, kind == Kind::Csv) {
        let (topics, mut outs): (Vec<&Topic>, Vec<W>) = group.into_iter().unzip();
        let lent = topics.into_iter().zip(outs.iter_mut().map(|out| out as Out<'_>)).collect();
        let (rows, lost) = write_all(log, lent, select, kind, options, provenance, progress)?;
        written.extend(outs.into_iter().zip(rows).map(|(out, rows)| Written { out, rows }));
        losses.extend(lost);
    }
    Ok((written, losses))
}

/// Maximum number of columns that are written in one pass over the log. Each column needs up to
/// tens of kilobytes of memory. Real logs have thousands of columns, but a malicious log of 20 MB
/// may declare millions of columns.
const MAX_COLUMNS: usize = 16_384;

/// Divides topics into groups with a limited number of columns. A group is written in one pass over
/// the log. The order of the topics is preserved. If `flat` is true, each element of an array
/// counts as a column.
pub fn in_passes<'t, T>(
    items: impl IntoIterator<Item = T>,
    topic: impl Fn(&T) -> &'t Topic,
    flat: bool,
) -> Vec<Vec<T>> {
    let (mut groups, mut group, mut columns) = (Vec::new(), Vec::new(), 0);
    for item in items {
        let more = topic(&item).schema.as_deref().map_or(1, |schema| leaf::count(schema, flat));
        columns += more;
        if columns > MAX_COLUMNS && !group.is_empty() {
            groups.push(std::mem::take(&mut group));
            columns = more;
        }
        group.push(item);
    }
    groups.push(group);
    groups
}

/// Writes tables in one pass over the log. Returns the number of rows of each table, and the values
/// that cannot be represented. This function is not generic, so that it is compiled only once.
fn write_all(
    log: &dyn LogReader,
    outputs: Vec<(&Topic, Out<'_>)>,
    select: &Select,
    kind: Kind,
    options: &TableOptions,
    provenance: &Provenance,
    progress: &mut dyn FnMut(u64),
) -> Result<(Vec<u64>, Vec<Loss>), ExportError> {
    let names = outputs.iter().map(|(topic, _)| topic.name.clone());
    // `last_before` would add a row before the start time to each table.
    let mut select = select.clone();
    (select.topics, select.last_before) = (Some(names.collect()), false);
    let pyulog = options.dialect == Dialect::Pyulog && kind == Kind::Csv;
    select.like_pyulog = pyulog;
    let order = if pyulog {
        // pyulog does not sort the rows, so its dialect keeps the file order.
        order::Order::file(log)
    } else {
        order::Order::of(log, &select)?
    };
    // The computed signals may need fields that the user did not select. These fields are read, but
    // not written.
    let wanted = select.clone();
    select = Extended::reads(&options.derived, &wanted);
    let metadata = provenance.of_all_tables(log);
    let mut tables = Tables::new(kind);
    let (mut ids, mut computed) = (Vec::new(), Vec::new());
    for (topic, out) in outputs {
        let job = Job { log, topic, options, metadata: &metadata, sorted: order.is_sorted(topic.id) };
        let extended = match options.derived[..] {
            [] => None,
            _ => Some(Extended::new(log, topic, &options.derived, &wanted)?),
        };
        match &extended {
            Some(extended) => tables.add(&job, extended.schema(), out)?,
            None => tables.add(&job, &log.own(topic)?.columns(&select)?.schema(), out)?,
        }
        ids.push(topic.id);
        computed.push(extended);
    }
    let source = Source::Topics(Topics { log, ids, computed, order, select });
    let (rows, mut losses) = tables.write(source, options.jobs, progress)?;
    losses.extend(Loss::of_columns(log, &wanted));
    Ok((rows, losses))
}

/// Writes joined topics as one table. Returns the number of rows, and the values that cannot be
/// represented.
///
/// # Errors
/// Returns an error if writing to the output fails, or the log cannot be read.
pub fn write_joined<W: Write + Send>(
    log: &dyn LogReader,
    joined: Joined<'_>,
    out: &mut W,
    (kind, options): (Kind, &TableOptions),
    provenance: &Provenance,
) -> Result<(u64, Vec<Loss>), ExportError> {
    // The metadata of a table names a topic. A joined table has several topics, so a topic named
    // `joined` is created.
    let topic = Topic::new(TopicId(0), "joined".to_owned(), String::new(), None);
    let metadata = provenance.of_all_tables(log);
    let job = Job { log, topic: &topic, options, metadata: &metadata, sorted: true };
    let mut tables = Tables::new(kind);
    tables.add(&job, joined.schema(), out)?;
    let (reads, untimed) = (joined.reads(), joined.untimed());
    let (rows, mut losses) = tables.write(Source::Joined(Box::new(joined)), options.jobs, &mut |_| ())?;
    losses.extend(reads.iter().flat_map(|select| Loss::of_columns(log, select)));
    let untimed = untimed.load(Relaxed);
    if untimed > 0 {
        let why = format!("{} without a time, which a joined table cannot contain", count(untimed, "record"));
        losses.push(Loss::new("joined", "", why));
    }
    Ok((rows.iter().sum(), losses))
}

/// Tables of the same format that are written together.
struct Tables<'w> {
    kind: Kind,
    /// The tables, if the format is CSV.
    texts: Vec<csv::Csv<'w>>,
    /// The tables, if the format is Parquet or Arrow.
    #[cfg(feature = "parquet")]
    files: Vec<lanes::Table<'w>>,
    losses: Vec<Loss>,
}

impl<'w> Tables<'w> {
    fn new(kind: Kind) -> Self {
        Self {
            kind,
            texts: Vec::new(),
            #[cfg(feature = "parquet")]
            files: Vec::new(),
            losses: Vec::new(),
        }
    }

    /// Adds a table with the columns of `schema`.
    fn add(&mut self, job: &Job<'_>, schema: &Schema, out: Out<'w>) -> Result<(), ExportError> {
        match self.kind {
            #[cfg(feature = "parquet")]
            Kind::Parquet => self.files.push(Some(Box::new(parquet::Parquet::new(job, schema, out)?))),
            #[cfg(feature = "parquet")]
            Kind::Arrow => self.files.push(Some(Box::new(ipc::Ipc::new(job, schema, out)?))),
            #[cfg(not(feature = "parquet"))]
            Kind::Parquet | Kind::Arrow => {
                return Err(ExportError::NotBuiltIn { what: self.kind.name(), feature: "parquet" });
            }
            Kind::Csv => self.texts.push(csv::Csv::new(job, schema, out, &mut self.losses)?),
        }
        Ok(())
    }

    /// Writes the rows from `source` to the tables. Returns the number of rows of each table, and
    /// the values that cannot be represented.
    fn write(
        mut self,
        source: Source<'_>,
        jobs: Jobs,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(Vec<u64>, Vec<Loss>), ExportError> {
        #[cfg(feature = "parquet")]
        if self.kind != Kind::Csv {
            let limit = if self.kind == Kind::Parquet { lanes::Limit::PARQUET } else { lanes::Limit::ARROW };
            let rows = lanes::write(source, self.files, (limit, jobs), &mut self.losses, progress)?;
            return Ok((rows, self.losses));
        }
        let rows = csv::write(source, self.texts, jobs, &mut self.losses, progress)?;
        Ok((rows, self.losses))
    }
}
