//! A topic as a stream of Arrow batches that keeps its log alive; each call makes a new stream.

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

use crate::errors::{of_arrow, of_export};
use crate::origin::found_loss;
use crate::select::Shape;

/// Maximum rows of a batch.
const ROWS: usize = 64 << 10;
/// Maximum bytes of a batch, estimated from the mean size of a topic's records.
const BYTES: u64 = 16 << 20;

self_cell!(
    /// Batches that keep their log alive.
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

/// Batches of a topic in their final form, larger than those of the format's reader.
pub(crate) struct TopicStream {
    batches: LogBatches,
    watch: Watch,
    /// The columns of signals.
    further: Option<Extended>,
    shape: Shape,
    schema: SchemaRef,
    coalesced: BatchCoalescer,
    ended: bool,
    /// Whether the stream ends with an error if its log turns out to have lost data. Another library
    /// that reads the stream cannot be warned.
    pub(crate) fails_on_loss: bool,
}

/// Returns what adds the columns of signals to those of `select`; `None` without signals.
pub(crate) fn extended(
    log: &AnyLog,
    topic: TopicId,
    select: &Select,
    signals: &[Signal],
) -> rovelog::Result<Option<Extended>> {
    if signals.is_empty() {
        return Ok(None);
    }
    let further = Extended::new(&**log, &log.topics()[topic.index()], signals, select);
    further.map(Some).map_err(of_export(log.format().id))
}

impl TopicStream {
    pub(crate) fn new(
        (log, watch): (Arc<AnyLog>, Watch),
        topic: TopicId,
        shape: Shape,
        (select, signals): (&Select, &[Signal]),
    ) -> rovelog::Result<Self> {
        let format = log.format().id;
        let known = &log.topics()[topic.index()];
        let mean = known.bytes / known.count.max(1);
        let further = extended(&log, topic, select, signals)?;
        let read = Extended::reads(signals, select);
        let batches = LogBatches::try_new(log, |log| log.own(&log.topics()[topic.index()])?.columns(&read))?;
        let inner = match &further {
            Some(further) => Arc::clone(further.schema()),
            None => batches.with_dependent(|_, batches| batches.schema()),
        };
        let shape = shape.with(further.as_ref());
        let schema = shape.schema(&inner).map_err(of_arrow(format))?;
        let rows = usize::try_from(BYTES / mean.max(1)).map_or(ROWS, |rows| rows.clamp(1, ROWS));
        let coalesced = BatchCoalescer::new(Arc::clone(&schema), rows);
        Ok(Self { batches, watch, further, shape, schema, coalesced, ended: false, fails_on_loss: false })
    }

    fn advance(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        while !self.coalesced.has_completed_batch() && !self.ended {
            if let Some(batch) = self.batches.next() {
                let mut batch = batch?;
                if let Some(further) = &mut self.further {
                    batch =
                        further.extend(&batch).map_err(|error| ArrowError::ExternalError(error.into()))?;
                }
                self.coalesced.push_batch(self.shape.apply(&batch)?)?;
            } else {
                self.coalesced.finish_buffered_batch()?;
                self.ended = true;
            }
        }
        // The reader of the stream may be another library, so the check is here.
        self.watch.check().map_err(|error| ArrowError::ExternalError(Box::new(error)))?;
        let next = self.coalesced.next_completed_batch();
        if next.is_none() && std::mem::take(&mut self.fails_on_loss) {
            let loss = self.batches.with_dependent(|log, _| found_loss(log));
            return loss.map_or(Ok(None), |loss| Err(ArrowError::ExternalError(loss.into())));
        }
        Ok(next)
    }
}

impl Iterator for TopicStream {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.advance().transpose()
    }
}

impl RecordBatchReader for TopicStream {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// Returns the names of a requested schema that has some of the columns of `schema`, but not all.
pub(crate) fn subset(
    schema: &SchemaRef,
    requested: Option<&Bound<'_, PyCapsule>>,
) -> PyResult<Option<Vec<String>>> {
    let Some(capsule) = requested else { return Ok(None) };
    let wanted = PySchema::from_arrow_pycapsule(capsule)?.into_inner();
    let names: Vec<String> = wanted.fields().iter().map(|field| field.name().clone()).collect();
    let known = names.iter().all(|name| schema.column_with_name(name).is_some());
    Ok(Some(names).filter(|names| known && names.len() < schema.fields().len()))
}

/// Some columns of a stream.
pub(crate) struct Projected {
    batches: TopicStream,
    columns: Vec<usize>,
    schema: SchemaRef,
}

impl Projected {
    /// Returns the columns with these names, in this order.
    pub(crate) fn new(batches: TopicStream, names: &[String]) -> Result<Self, ArrowError> {
        let all = batches.schema();
        let columns = names.iter().map(|name| all.index_of(name)).collect::<Result<Vec<_>, _>>()?;
        let schema = Arc::new(all.project(&columns)?);
        Ok(Self { batches, columns, schema })
    }
}

impl Iterator for Projected {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.batches.next()?.and_then(|batch| batch.project(&self.columns)))
    }
}

impl RecordBatchReader for Projected {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// Returns `batches` as a capsule of the Arrow C stream interface, in the requested schema if that
/// loses nothing. Another library reads it: a panic becomes an error there.
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
            lossless(field.data_type(), &wanted).then_some(capsule)
        }
        None => None,
    };
    let mut next = move || {
        catch_unwind(AssertUnwindSafe(|| batches.next())).unwrap_or_else(|_| {
            let why = "an internal error, a defect of rovelog; please report it, with the log if you can";
            Some(Err(ArrowError::ComputeError(why.to_owned())))
        })
    };
    let arrays = std::iter::from_fn(move || {
        next().map(|batch| -> Result<ArrayRef, ArrowError> { Ok(Arc::new(StructArray::from(batch?))) })
    });
    let arrays = ArrayIterator::new(arrays, Arc::new(field));
    Ok(to_stream_pycapsule(py, Box::new(arrays), requested)?)
}

/// Returns whether a conversion from `from` to `to` keeps every value.
fn lossless(from: &DataType, to: &DataType) -> bool {
    use DataType as T;
    let width = |ty: &DataType| ty.primitive_width().unwrap_or(0);
    match (from, to) {
        (from, to) if from == to => true,
        (T::Utf8, T::LargeUtf8 | T::Utf8View)
        | (T::Binary, T::LargeBinary | T::BinaryView)
        | (T::Float32 | T::Int8 | T::Int16 | T::Int32 | T::UInt8 | T::UInt16 | T::UInt32, T::Float64) => true,
        (from, to) if from.is_signed_integer() && to.is_signed_integer() => width(from) <= width(to),
        (from, to) if from.is_unsigned_integer() && to.is_unsigned_integer() => width(from) <= width(to),
        (from, to) if from.is_unsigned_integer() && to.is_signed_integer() => width(from) < width(to),
        (T::FixedSizeList(from, n), T::FixedSizeList(to, m)) => {
            n == m && lossless(from.data_type(), to.data_type())
        }
        (T::FixedSizeList(from, _), T::List(to) | T::LargeList(to)) | (T::List(from), T::LargeList(to)) => {
            lossless(from.data_type(), to.data_type())
        }
        (T::Struct(from), T::Struct(to)) => {
            from.len() == to.len()
                && from
                    .iter()
                    .zip(to)
                    .all(|(from, to)| from.name() == to.name() && lossless(from.data_type(), to.data_type()))
        }
        _ => false,
    }
}
