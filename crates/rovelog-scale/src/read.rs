//! Reading of splits. The rows of all logs in a split are returned as one table, in a stream of
//! record batches.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, Schema, SchemaRef};
use arrow_select::concat::concat_batches;
use rovelog::core::reader::Batches;
use rovelog::{AnyLog, LogReader, Topic};
use self_cell::self_cell;

use crate::plan::{Part, Split};
use crate::rows::{Rows, SEQ, has};
use crate::union::{fit, union};
use crate::{LogFile, OpenLogs, ScaleError, Wanted};

/// Number of rows at which a batch is complete.
const BATCH_ROWS: usize = 64 << 10;

/// Size in bytes at which a batch is complete.
const BATCH_BYTES: usize = 16 << 20;

/// Converter for the rows of a topic, and an iterator over the batches that it converts.
type Table<'a> = (Rows, Batches<'a>);

/// Returns the batches of each selected topic of a log, together with a converter for them. `only`
/// are the columns of the table, or `None` for all columns.
fn tables<'a>(
    log: &'a dyn LogReader,
    uri: &str,
    wanted: &Wanted,
    blocks: Option<&Range<u64>>,
    only: Option<&SchemaRef>,
) -> Result<VecDeque<Table<'a>>, ScaleError> {
    let Some(window) = wanted.window(log) else { return Ok(VecDeque::new()) };
    let label = Arc::from(uri);
    let table = |topic: &'a Topic| {
        let rows = Rows::new(log, topic, &label, window, wanted.rules(), blocks, only);
        let mut select = wanted.select(topic, blocks);
        // Rows are numbered before the time window is applied.
        if !has(only, SEQ) {
            select = window.limit(select);
        }
        let batches = log.own(topic).and_then(|topic| topic.columns(&select));
        Ok((rows.map_err(ScaleError::batch(uri))?, batches.map_err(ScaleError::log(uri))?))
    };
    wanted.topics(log, window).into_iter().map(table).collect()
}

/// Returns the schema of the selected topics in all logs. Each column has a type that can represent
/// its values in all logs. The logs are opened, but no rows are decoded.
///
/// # Errors
/// Returns an error if a log cannot be opened, if no log has a selected topic, or if no type can
/// represent all values of a column.
pub fn schema(logs: &[LogFile], wanted: &Wanted) -> Result<SchemaRef, ScaleError> {
    schema_with(logs, wanted, &OpenLogs::default())
}

/// Like [`schema`], but keeps logs open for later calls of [`read_with`].
///
/// # Errors
/// Returns the errors of [`schema`].
pub fn schema_with(logs: &[LogFile], wanted: &Wanted, open: &OpenLogs) -> Result<SchemaRef, ScaleError> {
    let mut all: Option<Schema> = None;
    // The time window is ignored, so that all windows of the same logs have the same schema.
    let all_times = Wanted { start_ns: None, end_ns: None, start_us: None, end_us: None, ..wanted.clone() };
    for file in logs.iter().filter(|log| wanted.keeps_log(&log.uri)) {
        let log = open.open(file)?;
        for (mut rows, batches) in tables(&**log, &file.uri, &all_times, None, None)? {
            let own = rows.schema(&batches.schema()).map_err(ScaleError::batch(&file.uri))?;
            all = Some(match all {
                None => Schema::clone(&own),
                Some(all) => {
                    union(&all, &own).map_err(|why| ScaleError::Columns(format!("{}: {why}", file.uri)))?
                }
            });
        }
    }
    all.map(Arc::new).ok_or_else(|| {
        let topics = wanted.topics.as_ref().map(|topics| topics.join(", "));
        let topics = topics.unwrap_or_else(|| "any topic".to_owned());
        ScaleError::Columns(format!("none of {} logs has rows of {topics}", logs.len()))
    })
}

/// Returns the selected rows of a split, log by log and topic by topic. The rows of a topic are in
/// file order.
///
/// A batch has up to 64 Ki rows or about 16 MiB, so the required memory does not depend on the size
/// of the split. `schema` is the result of the function [`schema`] for all logs. Columns of
/// [`COLUMNS`](crate::COLUMNS) may be removed from it, which saves time.
pub fn read(split: Split, schema: SchemaRef) -> Rowstream {
    read_with(split, schema, OpenLogs::default())
}

/// Like [`read`], but uses logs that are open already.
pub fn read_with(split: Split, schema: SchemaRef, logs: OpenLogs) -> Rowstream {
    Rowstream { schema, parts: split.parts.into(), wanted: split.wanted, logs, open: None, lost: 0 }
}

/// Iterator over the rows of a split, which returns them as record batches.
pub struct Rowstream {
    schema: SchemaRef,
    /// Parts of the split that have not been opened yet.
    parts: VecDeque<Part>,
    wanted: Wanted,
    logs: OpenLogs,
    /// The log that is being read. `None` before the first log and between two logs.
    open: Option<(LogFile, Opened)>,
    /// Number of values that were replaced by null, because no column type can represent them.
    lost: u64,
}

/// Topics of the current log whose rows have not been read completely.
type PendingTables<'a> = VecDeque<Table<'a>>;

self_cell!(
    /// An open log, together with the tables that borrow from it.
    struct Opened {
        owner: Arc<AnyLog>,
        #[not_covariant]
        dependent: PendingTables,
    }
);

impl Rowstream {
    /// Returns the number of values that were replaced by null so far. They are unsigned integers
    /// that exceed the range of a signed 64-bit integer.
    pub fn lost_values(&self) -> u64 {
        self.lost
    }

    /// Returns the next batch, which can have any size. Returns `None` at the end of the split.
    fn next_piece(&mut self) -> Result<Option<RecordBatch>, ScaleError> {
        loop {
            let Some((file, opened)) = &mut self.open else {
                let Some(Part { log: file, blocks }) = self.parts.pop_front() else { return Ok(None) };
                let (wanted, blocks) = (&self.wanted, blocks.as_ref());
                let log = self.logs.open(&file)?;
                let opened = Opened::try_new(log, |log| {
                    tables(&***log, &file.uri, wanted, blocks, Some(&self.schema))
                })?;
                self.open = Some((file, opened));
                continue;
            };
            let (schema, lost) = (&self.schema, &mut self.lost);
            let next = opened.with_dependent_mut(|_, pending| {
                while let Some((rows, batches)) = pending.front_mut() {
                    if let Some(batch) = batches.next() {
                        let batch = batch.and_then(|batch| rows.convert(&batch));
                        let batch = batch.map_err(ScaleError::batch(&file.uri))?;
                        return fit(&batch, schema, &file.uri).map(Some);
                    }
                    *lost += rows.lost;
                    pending.pop_front();
                }
                Ok(None)
            })?;
            match next {
                Some(batch) if batch.num_rows() == 0 => {}
                Some(batch) => return Ok(Some(batch)),
                None => {
                    // If the file has changed while it was read, the rows may be a mixture of two
                    // versions. The error causes the engine to discard these rows.
                    file.verify()?;
                    self.open = None;
                }
            }
        }
    }

    /// Returns the next batch, in which small batches are joined. An engine needs a fixed amount of
    /// time for each batch, so small batches would be slow.
    fn next_batch(&mut self) -> Result<Option<RecordBatch>, ScaleError> {
        let (mut pieces, mut rows, mut bytes) = (Vec::new(), 0, 0);
        while rows < BATCH_ROWS && bytes < BATCH_BYTES {
            let Some(piece) = self.next_piece()? else { break };
            rows += piece.num_rows();
            bytes += piece.get_array_memory_size();
            pieces.push(piece);
        }
        if pieces.is_empty() { Ok(None) } else { Ok(Some(concat_batches(&self.schema, &pieces)?)) }
    }
}

impl Iterator for Rowstream {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_batch().map_err(|error| ArrowError::ExternalError(Box::new(error)));
        if next.is_err() {
            // After an error, the iterator returns no more batches.
            (self.open, self.parts) = (None, VecDeque::new());
        }
        next.transpose()
    }
}

impl RecordBatchReader for Rowstream {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
