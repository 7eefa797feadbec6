//! Stream of the rows of a topic, which owns its log.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use rovelog::core::reader::Batches;
use rovelog::core::select::Names;
use rovelog::{AnyLog, Error, ErrorKind, Result, Select, Topic, TopicId, TopicRef, Watch};
use self_cell::self_cell;

use crate::error::{invalid, panic_message};
use crate::log::choices;

/// Name of the column with the times of the rows.
const TIME: &str = "t_ns";

self_cell!(
    /// Batches of a topic, together with the log from which they borrow.
    struct LogBatches {
        owner: Arc<AnyLog>,
        #[not_covariant]
        dependent: Batches,
    }
);

/// Rows of a topic in file order, as record batches. The stream stays valid after its log has been
/// closed.
pub struct TopicStream {
    batches: LogBatches,
    watch: Watch,
    schema: SchemaRef,
    /// True after the last batch or an error. The stream then returns no more batches.
    ended: bool,
}

impl TopicStream {
    pub(crate) fn new(log: Arc<AnyLog>, watch: Watch, topic: &Topic, select: &Select) -> Result<Self> {
        for name in select.fields.iter().flat_map(Names::iter) {
            check_field(&log, topic, name)?;
        }
        let batches = LogBatches::try_new(log, |log| topic_of(log, topic.id)?.columns(select))?;
        let schema = batches.with_dependent(|_, batches| batches.schema());
        Ok(Self { batches, watch, schema, ended: false })
    }

    /// Returns the next batch, or `None` at the end. Returns an error at the end if reading the log
    /// found damage that was unknown when the log was opened.
    fn advance(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        let next = self.batches.with_dependent_mut(|_, batches| batches.next());
        let external = |error: Error| ArrowError::from_external_error(Box::new(error));
        // If the file was truncated, this is also the cause of a decoding error.
        self.watch.check().map_err(external)?;
        let batch = next.transpose()?;
        if batch.is_none() {
            let log = self.batches.borrow_owner();
            let lost = log.losses();
            if *lost != log.info().lost {
                let why = format!(
                    "{lost}; this was found only while reading, because the log was opened by its index"
                );
                let error = Error::new(log.format().id, ErrorKind::DataLost, None, why);
                return Err(external(error));
            }
        }
        Ok(batch)
    }
}

/// Checks that a topic has a column for the field `name`.
fn check_field(log: &AnyLog, topic: &Topic, name: &str) -> Result<()> {
    let schema = |select: &Select| Ok::<_, Error>(topic_of(log, topic.id)?.columns(select)?.schema());
    // The first column is always the time.
    if name == TIME || schema(&Select::all().with_fields([name]))?.fields().len() > 1 {
        return Ok(());
    }
    let all = schema(&Select::all())?;
    let names: Vec<_> = all.fields().iter().skip(1).map(|field| field.name().as_str()).collect();
    Err(invalid(format!("the topic {} has no field {name}", topic.name)).with_next(choices(&names)))
}

/// Returns the topic with this id.
fn topic_of(log: &AnyLog, id: TopicId) -> Result<TopicRef<'_>> {
    let topic = log.topics().get(id.index()).ok_or_else(|| invalid("the topic belongs to another log"))?;
    log.own(topic)
}

impl Iterator for TopicStream {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        // A panic must not unwind into the C code that reads the stream. The stream ends after a
        // panic, so its state is not used again.
        let next = catch_unwind(AssertUnwindSafe(|| self.advance()))
            .unwrap_or_else(|panic| Err(ArrowError::ComputeError(panic_message(&*panic))));
        self.ended = !matches!(next, Ok(Some(_)));
        next.transpose()
    }
}

impl RecordBatchReader for TopicStream {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
