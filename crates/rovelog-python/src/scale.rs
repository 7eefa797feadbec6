//! Functions for query engines that read many logs. They find logs, divide them into splits (parts
//! that workers read in parallel), and read splits.

use std::sync::Mutex;

use arrow_schema::SchemaRef;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use pyo3_arrow::PySchema;
use pyo3_arrow::ffi::to_schema_pycapsule;
use rovelog::core::internal::parallel::lock;
use rovelog_scale::{LogFile, Rowstream, ScaleError, Split, Wanted};

use crate::errors::{self, ExceptionBuilder};
use crate::stream;

/// Converts an error to a Python exception.
fn raise(py: Python<'_>, error: &ScaleError) -> PyErr {
    match error {
        ScaleError::Log { uri, error } => errors::raise(py, error, Some(uri)),
        ScaleError::Columns(why) => ExceptionBuilder::new("UnsupportedError", why).raise(py),
        error => ExceptionBuilder::new("RovelogError", error.to_string()).raise(py),
    }
}

/// Calls `work`, which reads many logs, without holding the GIL.
pub(crate) fn run<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, ScaleError> + Send,
) -> PyResult<T> {
    errors::run(py, work)?.map_err(|error| raise(py, &error))
}

/// Parses the JSON text of a selection of logs, topics, fields and times.
fn wanted(py: Python<'_>, json: &str) -> PyResult<Wanted> {
    let parsed = serde_json::from_str(json);
    parsed.map_err(|error| {
        ExceptionBuilder::new("RovelogError", format!("the selection is invalid: {error}")).raise(py)
    })
}

/// Finds the logs in `sources`. A source is a file, a folder or a pattern.
///
/// For each log, returns its path, its size in bytes, and its modification time in microseconds
/// since 1970.
#[pyfunction]
pub(crate) fn scale_find(py: Python<'_>, sources: Vec<String>) -> PyResult<Vec<(String, u64, i64)>> {
    let found = run(py, || rovelog_scale::find(&sources))?;
    Ok(found.into_iter().map(|log| (log.uri, log.size, log.changed_us)).collect())
}

fn files(logs: Vec<(String, u64, i64)>) -> Vec<LogFile> {
    logs.into_iter().map(|(uri, size, changed_us)| LogFile { uri, size, changed_us }).collect()
}

/// Divides logs into splits of about `target_bytes`, which workers read in parallel. The selection
/// and the splits are JSON texts.
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

/// Schema of the selected fields in all logs together.
#[pyclass(frozen, module = "rovelog._core")]
pub(crate) struct ScaleSchema(SchemaRef);

#[pymethods]
impl ScaleSchema {
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        Ok(to_schema_pycapsule(py, self.0.as_ref())?)
    }
}

/// Returns the schema of the selected fields in all logs together. No row is decoded.
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

/// Rows of a split, as an Arrow stream that can be read only once.
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
        let rows = lock(&self.rows).take();
        let Some(rows) = rows else {
            return Err(
                ExceptionBuilder::new("RovelogError", "the rows of this split were already read").raise(py)
            );
        };
        stream::capsule(py, Box::new(rows), requested_schema)
    }
}

/// Reads a split, which is a unit of work for a worker. The rows have the columns of `schema`. It
/// is the result of [`scale_schema`] for all logs together.
#[pyfunction]
pub(crate) fn scale_read(py: Python<'_>, split: &str, schema: PySchema) -> PyResult<SplitRows> {
    let split = Split::from_json(split).map_err(|error| raise(py, &error))?;
    let rows = rovelog_scale::read(split, schema.into_inner());
    Ok(SplitRows { rows: Mutex::new(Some(rows)) })
}
