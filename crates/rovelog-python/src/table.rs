//! Decoded columns. [`Table`] is one batch in memory, and [`Batches`] is an iterator over batches.

use std::sync::{Arc, Mutex};

use arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use arrow_select::concat::concat_batches;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use pyo3_arrow::ffi::to_schema_pycapsule;
use rovelog::core::internal::memory::check as check_memory;
use rovelog::core::internal::parallel::lock;
use rovelog::{AnyLog, Result};

use crate::errors::{self, from_arrow};
use crate::memory::{self, Leaf};
use crate::origin::Origin;
use crate::reader::Reader;
use crate::stream;

/// Size in bytes of the batches that are processed between two checks for operating system signals.
const SIGNAL_CHECK_BYTES: usize = 64 << 20;

/// Columns of one batch in memory. Other libraries can use them without copying.
#[pyclass(frozen, module = "rovelog._core")]
pub(crate) struct Table {
    pub(crate) batch: RecordBatch,
}

#[pymethods]
impl Table {
    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    #[getter]
    fn names(&self) -> Vec<String> {
        self.batch.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// Returns the size of all columns in bytes.
    #[getter]
    fn nbytes(&self) -> usize {
        self.batch.get_array_memory_size()
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        Ok(to_schema_pycapsule(py, self.batch.schema().as_ref())?)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = self.batch.schema();
        let batches: [Result<_, ArrowError>; 1] = [Ok(self.batch.clone())];
        let batches = RecordBatchIterator::new(batches, Arc::clone(&schema));
        stream::capsule(py, Box::new(batches), requested_schema)
    }

    /// Returns the columns as memory for numpy. If `fields` is given, only the columns with these
    /// names are returned.
    #[pyo3(signature = (fields=None))]
    fn leaves(&self, py: Python<'_>, fields: Option<Vec<String>>) -> PyResult<Vec<Py<Leaf>>> {
        let mut found = Vec::new();
        for (field, column) in self.batch.schema().fields().iter().zip(self.batch.columns()) {
            if fields.as_ref().is_none_or(|names| names.contains(field.name())) {
                found.extend(memory::leaves(py, field.name(), column)?);
            }
        }
        Ok(found)
    }
}

/// Concatenates the batches of a log in the format `format`.
pub(crate) fn concat(format: &'static str, batches: impl RecordBatchReader) -> Result<RecordBatch> {
    let schema = batches.schema();
    concat_all(format, &schema, batches.map(|batch| batch.map_err(from_arrow(format))))
}

/// Concatenates batches. Checks for operating system signals, such as Ctrl-C, between batches, and
/// whether there is enough memory.
pub(crate) fn concat_all(
    format: &'static str,
    schema: &SchemaRef,
    batches: impl Iterator<Item = Result<RecordBatch>>,
) -> Result<RecordBatch> {
    let (mut parts, mut bytes_since_check) = (Vec::new(), 0);
    for batch in batches {
        let batch = batch?;
        bytes_since_check += batch.get_array_memory_size();
        parts.push(batch);
        // A check for signals acquires the GIL. This would be too slow after each of thousands of
        // small batches.
        if bytes_since_check > SIGNAL_CHECK_BYTES {
            bytes_since_check = 0;
            if let Some(raised) = errors::pending_signal() {
                return Err(errors::from_signal(raised));
            }
        }
    }
    let bytes = parts.iter().map(RecordBatch::get_array_memory_size).sum();
    check_memory(bytes).map_err(|error| rovelog::Error::io(format, error))?;
    concat_batches(schema, &parts).map_err(from_arrow(format))
}

type BoxedBatches = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + Send>;

/// Iterator that returns a table for each batch.
#[pyclass(frozen, module = "rovelog._core")]
pub(crate) struct Batches {
    /// Batches that have not been returned yet.
    remaining: Mutex<BoxedBatches>,
    /// Id of the log format, which errors contain.
    format: &'static str,
    origin: Origin,
    log: Arc<AnyLog>,
}

impl Batches {
    /// Wraps the iterator `batches` over batches of the log of `reader`.
    pub(crate) fn new(
        reader: &Reader,
        batches: impl Iterator<Item = Result<RecordBatch, ArrowError>> + Send + 'static,
    ) -> Self {
        let (format, origin, log) = (reader.log.format().id, reader.origin.clone(), reader.loaded_log());
        Self { remaining: Mutex::new(Box::new(batches)), format, origin, log }
    }
}

#[pymethods]
impl Batches {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Table>> {
        py.check_signals()?;
        let batch = self.origin.run(py, || {
            let next = lock(&self.remaining).next();
            next.transpose().map_err(from_arrow(self.format))
        })?;
        // All batches have been read. If some data could not be read, this has therefore been found
        // out.
        if batch.is_none() {
            self.origin.report(py, &self.log)?;
        }
        Ok(batch.map(|batch| Table { batch }))
    }
}
