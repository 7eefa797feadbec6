//! Streams of Arrow batches over a topic.
//!
//! Another library may read a stream after the Python objects of the log have been deleted. So the
//! stream owns a reference to its log.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchReader, StructArray};
use arrow_schema::{ArrowError, DataType, Field, SchemaRef};
use arrow_select::coalesce::BatchCoalescer;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use pyo3_arrow::PySchema;
use pyo3_arrow::ffi::{ArrayIterator, to_stream_pycapsule};
use rovelog::core::Batches;
use rovelog::{AnyLog, Select, TopicId, Watch};
use rovelog_export::signal::{Extended, Signal};
use self_cell::self_cell;

use crate::errors::{from_arrow, from_export};
use crate::origin::new_loss;
use crate::select::Projection;

/// Maximum number of rows in a batch of a stream.
const MAX_BATCH_ROWS: usize = 64 << 10;
/// Maximum size of a batch in bytes, estimated from the mean size of the records.
///
/// For example, if each record contains an image of 1 MB, a batch has 16 rows.
const MAX_BATCH_BYTES: u64 = 16 << 20;

self_cell!(
    /// Batches from the reader of a log format, together with the log from which they borrow.
    pub(crate) struct LogBatches {
        owner: Arc<AnyLog>,
        #[not_covariant]
        dependent: Batches,
    }
);

impl Iterator for LogBatches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.with_dependent_mut(|_, batches| batches.next())
    }
}

/// Stream of batches over a topic, with the columns that Python gets.
///
/// The reader of a log format may return small batches, for example one for each chunk of a bag.
/// They are combined into larger batches, because other libraries need some time for each batch.
pub(crate) struct TopicStream {
    batches: LogBatches,
    watch: Watch,
    /// Computation of the signals. `None` if no signals were requested.
    signal_columns: Option<Extended>,
    projection: Projection,
    schema: SchemaRef,
    coalescer: BatchCoalescer,
    /// True if the reader of the log format has returned its last batch.
    ended: bool,
    /// True if the stream must end with an error when some data of the log turns out to be
    /// unreadable.
    ///
    /// The library that reads the stream would not show a Python warning, so the user would not
    /// notice the lost data.
    pub(crate) fails_on_loss: bool,
}

/// Returns the computation that adds signals as columns after the selected fields. Returns `None`
/// if there are no signals.
pub(crate) fn signal_columns(
    log: &AnyLog,
    topic: TopicId,
    select: &Select,
    signals: &[Signal],
) -> rovelog::Result<Option<Extended>> {
    if signals.is_empty() {
        return Ok(None);
    }
    let signal_columns = Extended::new(&**log, &log.topics()[topic.index()], signals, select);
    signal_columns.map(Some).map_err(from_export(log.format().id))
}

impl TopicStream {
    pub(crate) fn new(
        (log, watch): (Arc<AnyLog>, Watch),
        topic: TopicId,
        projection: Projection,
        (select, signals): (&Select, &[Signal]),
    ) -> rovelog::Result<Self> {
        let format = log.format().id;
        let topic_facts = &log.topics()[topic.index()];
        let mean_bytes = topic_facts.bytes / topic_facts.count.max(1);
        let signal_columns = signal_columns(&log, topic, select, signals)?;
        let read = Extended::reads(signals, select);
        let batches = LogBatches::try_new(log, |log| log.own(&log.topics()[topic.index()])?.columns(&read))?;
        let inner = match &signal_columns {
            Some(signal_columns) => Arc::clone(signal_columns.schema()),
            None => batches.with_dependent(|_, batches| batches.schema()),
        };
        let projection = projection.with_signals(signal_columns.as_ref());
        let schema = projection.schema(&inner).map_err(from_arrow(format))?;
        let rows = usize::try_from(MAX_BATCH_BYTES / mean_bytes.max(1))
            .map_or(MAX_BATCH_ROWS, |rows| rows.clamp(1, MAX_BATCH_ROWS));
        let coalescer = BatchCoalescer::new(Arc::clone(&schema), rows);
        Ok(Self {
            batches,
            watch,
            signal_columns,
            projection,
            schema,
            coalescer,
            ended: false,
            fails_on_loss: false,
        })
    }

    /// Returns the next batch, or `None` at the end of the stream.
    fn advance(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        while !self.coalescer.has_completed_batch() && !self.ended {
            if let Some(batch) = self.batches.next() {
                let mut batch = batch?;
                if let Some(signal_columns) = &mut self.signal_columns {
                    batch = signal_columns
                        .extend(&batch)
                        .map_err(|error| ArrowError::ExternalError(error.into()))?;
                }
                self.coalescer.push_batch(self.projection.apply(&batch)?)?;
            } else {
                self.coalescer.finish_buffered_batch()?;
                self.ended = true;
            }
        }
        let next = self.coalescer.next_completed_batch();
        if next.is_none() && std::mem::take(&mut self.fails_on_loss) {
            let loss = self.batches.with_dependent(|log, _| new_loss(log));
            return loss.map_or(Ok(None), |loss| Err(ArrowError::ExternalError(loss.into())));
        }
        Ok(next)
    }
}

impl Iterator for TopicStream {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.advance();
        // Another library may read the stream without calling Python code. So the check for a
        // truncated file must be here. A truncated file is also the cause of a decoding error.
        if let Err(error) = self.watch.check() {
            return Some(Err(ArrowError::ExternalError(Box::new(error))));
        }
        next.transpose()
    }
}

impl RecordBatchReader for TopicStream {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// Returns the column names of the requested schema. Returns `None` unless they are some, but not
/// all, of the columns in `schema`.
pub(crate) fn requested_subset(
    schema: &SchemaRef,
    requested: Option<&Bound<'_, PyCapsule>>,
) -> PyResult<Option<Vec<String>>> {
    let Some(capsule) = requested else { return Ok(None) };
    let wanted = PySchema::from_arrow_pycapsule(capsule)?.into_inner();
    let names: Vec<String> = wanted.fields().iter().map(|field| field.name().clone()).collect();
    let is_subset = names.iter().all(|name| schema.column_with_name(name).is_some());
    Ok(Some(names).filter(|names| is_subset && names.len() < schema.fields().len()))
}

/// A stream that contains only some columns of another stream.
pub(crate) struct ColumnSubset {
    batches: TopicStream,
    columns: Vec<usize>,
    schema: SchemaRef,
}

impl ColumnSubset {
    /// Selects the columns with the given names, in the order of these names.
    pub(crate) fn new(batches: TopicStream, names: &[String]) -> Result<Self, ArrowError> {
        let all = batches.schema();
        let columns = names.iter().map(|name| all.index_of(name)).collect::<Result<Vec<_>, _>>()?;
        let schema = Arc::new(all.project(&columns)?);
        Ok(Self { batches, columns, schema })
    }
}

impl Iterator for ColumnSubset {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.batches.next()?.and_then(|batch| batch.project(&self.columns)))
    }
}

impl RecordBatchReader for ColumnSubset {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// Returns `batches` as a Python capsule with an Arrow C stream.
///
/// The batches are converted to the requested schema if this conversion keeps every value.
/// Otherwise they keep their schema, as the Arrow `PyCapsule` interface allows. A panic becomes an
/// error of the stream, because it must not unwind into the library that reads the stream.
pub(crate) fn capsule<'py>(
    py: Python<'py>,
    mut batches: Box<dyn RecordBatchReader + Send>,
    requested: Option<Bound<'py, PyCapsule>>,
) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = batches.schema();
    let field =
        Field::new_struct("", schema.fields().clone(), false).with_metadata(schema.metadata().clone());
    let requested = match requested {
        Some(capsule) => {
            let wanted = PySchema::from_arrow_pycapsule(&capsule)?.into_inner();
            let wanted = DataType::Struct(wanted.fields().clone());
            is_lossless(field.data_type(), &wanted).then_some(capsule)
        }
        None => None,
    };
    let mut next = move || {
        catch_unwind(AssertUnwindSafe(|| batches.next())).unwrap_or_else(|_| {
            let why = "an internal error occurred, which is a bug in rovelog; please report it, and \
                       include the log if you can";
            Some(Err(ArrowError::ComputeError(why.to_owned())))
        })
    };
    let arrays = std::iter::from_fn(move || {
        next().map(|batch| -> Result<ArrayRef, ArrowError> { Ok(Arc::new(StructArray::from(batch?))) })
    });
    let arrays = ArrayIterator::new(arrays, Arc::new(field));
    Ok(to_stream_pycapsule(py, Box::new(arrays), requested)?)
}

/// Returns true if a conversion from the type `from` to the type `to` keeps every value.
fn is_lossless(from: &DataType, to: &DataType) -> bool {
    use DataType as T;
    let width = |ty: &DataType| ty.primitive_width().unwrap_or(0);
    match (from, to) {
        (from, to) if from == to => true,
        // 64-bit integers are not converted to floats, because floats cannot represent all integers
        // above 2^53.
        (T::Utf8, T::LargeUtf8 | T::Utf8View)
        | (T::Binary, T::LargeBinary | T::BinaryView)
        | (T::Float32 | T::Int8 | T::Int16 | T::Int32 | T::UInt8 | T::UInt16 | T::UInt32, T::Float64) => true,
        (from, to) if from.is_signed_integer() && to.is_signed_integer() => width(from) <= width(to),
        (from, to) if from.is_unsigned_integer() && to.is_unsigned_integer() => width(from) <= width(to),
        // A signed type needs one additional bit for the sign.
        (from, to) if from.is_unsigned_integer() && to.is_signed_integer() => width(from) < width(to),
        (T::FixedSizeList(from, n), T::FixedSizeList(to, m)) => {
            n == m && is_lossless(from.data_type(), to.data_type())
        }
        (T::FixedSizeList(from, _), T::List(to) | T::LargeList(to)) | (T::List(from), T::LargeList(to)) => {
            is_lossless(from.data_type(), to.data_type())
        }
        (T::Struct(from), T::Struct(to)) => {
            from.len() == to.len()
                && from.iter().zip(to).all(|(from, to)| {
                    from.name() == to.name() && is_lossless(from.data_type(), to.data_type())
                })
        }
        _ => false,
    }
}
