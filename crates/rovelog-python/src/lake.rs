//! Lakes whose packs are made by engines: the driver's side and the workers' side.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rovelog_scale::lake::{Lake, Options, Progress, Worker, ingest};

use crate::scale::run;

/// Does a task of [`lake_ingest`]. Task and answer are JSON.
#[pyfunction]
pub(crate) fn lake_answer(py: Python<'_>, task: &str) -> PyResult<String> {
    run(py, || Worker::answer(task))
}

/// Adds logs to a lake. `call` takes a task and returns what [`lake_answer`] returned for it
/// somewhere; it is called from several threads: the jobs, which come with the bytes of a pack, and
/// whether logs are tried again that ended their worker. `tell` takes each row of `_logs` as JSON.
#[pyfunction]
pub(crate) fn lake_ingest(
    py: Python<'_>,
    sources: Vec<String>,
    lake: PathBuf,
    call: Py<PyAny>,
    how: (usize, u64, bool),
    tell: Py<PyAny>,
) -> PyResult<Py<PyDict>> {
    let engine = move |task: &str| {
        Python::attach(|py| {
            let answer = call.bind(py).call1((task,)).and_then(|answer| answer.extract::<String>());
            answer.map_err(|error| error.to_string())
        })
    };
    let mut options = Options::new(Worker::Engine(Arc::new(engine)));
    (options.jobs, options.pack_bytes, options.retry_quarantined) = how;
    let mut told = Ok(());
    let done = run(py, || {
        ingest(&sources, &Lake::new(&lake), &options, &mut |progress| {
            if let (Progress::Log(row), Ok(())) = (progress, &told) {
                let row =
                    serde_json::to_string(row).map_err(|error| PyValueError::new_err(error.to_string()));
                told = row.and_then(|row| Python::attach(|py| tell.call1(py, (row,)).map(drop)));
            }
        })
    })?;
    told?;
    let counts = PyDict::new(py);
    for (key, count) in [
        ("ok", done.ok),
        ("partial", done.partial),
        ("failed", done.failed),
        ("known", done.known),
        ("same", done.same),
        ("files", done.files),
        ("removed", done.removed),
    ] {
        counts.set_item(key, count)?;
    }
    Ok(counts.unbind())
}
