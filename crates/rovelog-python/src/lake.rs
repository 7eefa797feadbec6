//! Lakes whose packs are made by engines: the driver's side and the workers' side.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rovelog_scale::lake::{Lake, NoAnswer, Options, Progress, Worker, ingest};

use crate::scale::run;

/// Does a task of [`lake_ingest`]. Task and answer are JSON.
#[pyfunction]
pub(crate) fn lake_answer(py: Python<'_>, task: &str) -> PyResult<String> {
    run(py, || Worker::answer(task))
}

/// Adds logs to a lake. `call` takes a task and returns what [`lake_answer`] returned for it
/// somewhere; it is called from several threads: the jobs, which come with the bytes of a pack, and
/// whether logs are tried again that ended their worker. `tell` takes each row of `_logs` as JSON.
/// What `tell` raises ends the run, and so does Ctrl-C in either.
#[pyfunction]
pub(crate) fn lake_ingest(
    py: Python<'_>,
    sources: Vec<String>,
    lake: PathBuf,
    call: Py<PyAny>,
    how: (usize, u64, bool),
    tell: Py<PyAny>,
) -> PyResult<Py<PyDict>> {
    let stop = Arc::new(Mutex::new(None));
    let stopped = Arc::clone(&stop);
    let engine = move |task: &str| {
        Python::attach(|py| {
            if held(&stopped).is_some() {
                return Err(NoAnswer::Stopped("the run was stopped".to_owned()));
            }
            let answer = call.bind(py).call1((task,)).and_then(|answer| answer.extract::<String>());
            answer.map_err(|error| {
                let why = error.to_string();
                if error.is_instance_of::<PyException>(py) {
                    return NoAnswer::Ended(why);
                }
                held(&stopped).get_or_insert(error);
                NoAnswer::Stopped(why)
            })
        })
    };
    let mut options = Options::new(Worker::Engine(Arc::new(engine)));
    (options.jobs, options.pack_bytes, options.retry_quarantined) = how;
    let done = run(py, || {
        ingest(&sources, &Lake::new(&lake), &options, &mut |progress| {
            let Progress::Log(row) = progress else { return };
            if held(&stop).is_some() {
                return;
            }
            let row = serde_json::to_string(row).map_err(|error| PyValueError::new_err(error.to_string()));
            let told = row.and_then(|row| Python::attach(|py| tell.call1(py, (row,)).map(drop)));
            if let Err(error) = told {
                held(&stop).get_or_insert(error);
            }
        })
    });
    if let Some(error) = held(&stop).take() {
        return Err(error);
    }
    let done = done?;
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
    let splits: Vec<_> = done.splits.iter().map(ToString::to_string).collect();
    counts.set_item("splits", splits)?;
    Ok(counts.unbind())
}

fn held(stop: &Mutex<Option<PyErr>>) -> MutexGuard<'_, Option<PyErr>> {
    stop.lock().unwrap_or_else(PoisonError::into_inner)
}
