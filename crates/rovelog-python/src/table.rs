//! Columns in memory: one batch, exported without copies; and batches one after the other.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow_schema::ArrowError;
use arrow_select::concat::concat_batches;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use pyo3_arrow::ffi::to_schema_pycapsule;
use rovelog::{AnyLog, Result};

use crate::errors::{self, of_arrow};
use crate::memory::{self, Leaf};
use crate::origin::Origin;
use crate::reader::Reader;
use crate::stream;

/// Bytes of columns between two checks for signals.
const LOOK_BYTES: usize = 64 << 20;

/// Columns in memory.
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

    /// Returns the number of bytes of all columns.
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

    /// Returns the columns in a form for numpy; `fields` are names of columns.
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

/// Returns all batches of a log of `format` as one.
pub(crate) fn joined(format: &'static str, batches: impl RecordBatchReader) -> Result<RecordBatch> {
    let schema = batches.schema();
    let (mut joined, mut unwatched) = (Vec::new(), 0);
    for batch in batches {
        let batch = batch.map_err(of_arrow(format))?;
        unwatched += batch.get_array_memory_size();
        joined.push(batch);
        // Signals are checked now and then, not for each of thousands of small batches.
        if unwatched > LOOK_BYTES {
            unwatched = 0;
            if let Some(raised) = errors::signal() {
                return Err(errors::of_signal(raised));
            }
        }
    }
    concat_batches(&schema, &joined).map_err(of_arrow(format))
}

type BoxedBatches = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + Send>;

/// An iterator over columns, one table at a time.
#[pyclass(frozen, module = "rovelog._core")]
pub(crate) struct Batches {
    left: Mutex<BoxedBatches>,
    format: &'static str,
    origin: Origin,
    log: Arc<AnyLog>,
}

impl Batches {
    /// Returns batches of the reader's log.
    pub(crate) fn new(
        reader: &Reader,
        batches: impl Iterator<Item = Result<RecordBatch, ArrowError>> + Send + 'static,
    ) -> Self {
        let format = reader.log.format().id;
        Self {
            left: Mutex::new(Box::new(batches)),
            format,
            origin: reader.origin.clone(),
            log: reader.known(),
        }
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
            let next = self.left.lock().unwrap_or_else(PoisonError::into_inner).next();
            next.transpose().map_err(of_arrow(self.format))
        })?;
        if batch.is_none() {
            self.origin.report(py, &self.log)?;
        }
        Ok(batch.map(|batch| Table { batch }))
    }
}
