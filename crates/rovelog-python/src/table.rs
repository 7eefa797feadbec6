//! A topic's columns in memory: one batch, handed on without copies.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{RecordBatch, RecordBatchIterator};
use arrow_schema::ArrowError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use pyo3_arrow::ffi::to_schema_pycapsule;

use crate::errors;
use crate::memory::{self, Leaf};
use crate::stream::{self, TopicStream};

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

    /// The bytes of all columns.
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

    /// The columns as numpy can hold them; `fields` are names of columns.
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

/// An iterator over the pieces of a topic.
#[pyclass(frozen, module = "rovelog._core")]
pub(crate) struct Batches {
    stream: Mutex<TopicStream>,
    path: Option<String>,
}

impl Batches {
    pub(crate) fn new(stream: TopicStream, path: Option<String>) -> Self {
        Self { stream: Mutex::new(stream), path }
    }
}

#[pymethods]
impl Batches {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Table>> {
        py.check_signals()?;
        let next = || self.stream.lock().unwrap_or_else(PoisonError::into_inner).next().transpose();
        match errors::run(py, next)? {
            Ok(batch) => Ok(batch.map(|batch| Table { batch })),
            Err(error) => Err(errors::raise(py, &errors::columns(error), self.path.as_deref())),
        }
    }
}
