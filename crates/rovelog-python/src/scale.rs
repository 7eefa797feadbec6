//! Many logs: plans, and reading the splits of a plan.

use std::sync::{Mutex, PoisonError};

use arrow_schema::SchemaRef;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use pyo3_arrow::PySchema;
use pyo3_arrow::ffi::to_schema_pycapsule;
use rovelog_scale::{LogFile, Rowstream, ScaleError, Split, Wanted};

use crate::errors::{self, Raise};
use crate::stream;

fn raise(py: Python<'_>, error: &ScaleError) -> PyErr {
    match error {
        ScaleError::Log { uri, error } => errors::raise(py, error, Some(uri)),
        ScaleError::Columns(why) => Raise::new("UnsupportedError", why).raise(py),
        error => Raise::new("RovelogError", error.to_string()).raise(py),
    }
}

pub(crate) fn run<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, ScaleError> + Send,
) -> PyResult<T> {
    errors::run(py, work)?.map_err(|error| raise(py, &error))
}

fn wanted(py: Python<'_>, json: &str) -> PyResult<Wanted> {
    let parsed = serde_json::from_str(json);
    parsed.map_err(|error| Raise::new("RovelogError", format!("not a selection: {error}")).raise(py))
}

/// Returns the logs of files, folders and patterns: path, size, time of change in microseconds.
#[pyfunction]
pub(crate) fn scale_find(py: Python<'_>, sources: Vec<String>) -> PyResult<Vec<(String, u64, i64)>> {
    let found = run(py, || rovelog_scale::find(&sources))?;
    Ok(found.into_iter().map(|log| (log.uri, log.size, log.changed_us)).collect())
}

fn files(logs: Vec<(String, u64, i64)>) -> Vec<LogFile> {
    logs.into_iter().map(|(uri, size, changed_us)| LogFile { uri, size, changed_us }).collect()
}

/// Returns splits of logs as JSON; `selection` is JSON, too.
#[pyfunction]
pub(crate) fn scale_divide(
    py: Python<'_>,
    logs: Vec<(String, u64, i64)>,
    selection: &str,
    target_bytes: u64,
) -> PyResult<Vec<String>> {
    let wanted = wanted(py, selection)?;
    let logs = files(logs);
    run(py, || Ok(rovelog_scale::divide(logs, &wanted, target_bytes).iter().map(Split::to_json).collect()))
}

/// Columns of a selection over logs.
#[pyclass(frozen, module = "rovelog._core")]
pub(crate) struct ScaleSchema(SchemaRef);

#[pymethods]
impl ScaleSchema {
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        Ok(to_schema_pycapsule(py, self.0.as_ref())?)
    }
}

/// Returns the columns of a selection over logs, without decoding a row.
#[pyfunction]
pub(crate) fn scale_schema(
    py: Python<'_>,
    logs: Vec<(String, u64, i64)>,
    selection: &str,
) -> PyResult<ScaleSchema> {
    let wanted = wanted(py, selection)?;
    let logs = files(logs);
    Ok(ScaleSchema(run(py, || rovelog_scale::schema(&logs, &wanted))?))
}

/// The rows of a split; a stream that can be taken once.
#[pyclass(frozen, module = "rovelog._core")]
pub(crate) struct SplitRows {
    rows: Mutex<Option<Rowstream>>,
}

#[pymethods]
impl SplitRows {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(rows) = rows else {
            return Err(Raise::new("RovelogError", "the rows of this split were read already").raise(py));
        };
        stream::capsule(py, Box::new(rows), requested_schema)
    }
}

/// Returns the rows of a split in columns that [`scale_schema`] gave for all logs.
#[pyfunction]
pub(crate) fn scale_read(py: Python<'_>, split: &str, schema: PySchema) -> PyResult<SplitRows> {
    let split = Split::from_json(split).map_err(|error| raise(py, &error))?;
    let rows = rovelog_scale::read(split, schema.into_inner());
    Ok(SplitRows { rows: Mutex::new(Some(rows)) })
}
