//! Adds logs to a lake with a query engine, such as Spark.
//!
//! The driver of the engine calls [`lake_ingest`], which divides the logs into packs and passes a
//! task for each pack to the engine. A pack is a group of logs that are added in one step. A worker
//! of the engine calls [`lake_answer`] to run the task.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rovelog::core::internal::parallel::lock;
use rovelog_scale::lake::{Failure, Lake, Options, Progress, Worker, ingest};

use crate::scale::run;

/// Runs a task of [`lake_ingest`] on a worker of the engine. The task and the result are JSON
/// texts.
#[pyfunction]
pub(crate) fn lake_answer(py: Python<'_>, task: &str) -> PyResult<String> {
    run(py, || Worker::answer(task))
}

/// Adds logs to a lake.
///
/// - `call` is called with a task, from several threads. It must run [`lake_answer`] on a worker
///   and return its result.
/// - `how` contains the number of tasks that may run at the same time, the approximate total size
///   in bytes of the logs in one task, and a boolean. The boolean is true if logs that made their
///   worker crash are tried again.
/// - `tell` is called with each row of the table `_logs` as JSON. This table has a row for each
///   log.
///
/// An exception in `tell` ends the call, and so does Ctrl-C in `call` or `tell`. Any other
/// exception in `call` means that the worker failed.
#[pyfunction]
pub(crate) fn lake_ingest(
    py: Python<'_>,
    sources: Vec<String>,
    lake: PathBuf,
    call: Py<PyAny>,
    how: (usize, u64, bool),
    tell: Py<PyAny>,
) -> PyResult<Py<PyDict>> {
    // The first exception that must end [`lake_ingest`]. Later exceptions are ignored.
    let abort = Arc::new(Mutex::new(None));
    let abort_in_engine = Arc::clone(&abort);
    let engine = move |task: &str| {
        Python::attach(|py| {
            // An exception must end `lake_ingest`, so no further task is started.
            if lock(&abort_in_engine).is_some() {
                return Err(Failure::Stopped("the run was stopped".to_owned()));
            }
            let answer = call.bind(py).call1((task,)).and_then(|answer| answer.extract::<String>());
            answer.map_err(|error| {
                let why = error.to_string();
                // An ordinary exception means that the worker failed. `KeyboardInterrupt` is not a
                // subclass of `Exception`, so Ctrl-C ends `lake_ingest`.
                if error.is_instance_of::<PyException>(py) {
                    return Failure::Ended(why);
                }
                lock(&abort_in_engine).get_or_insert(error);
                Failure::Stopped(why)
            })
        })
    };
    let mut options = Options::new(Worker::Engine(Arc::new(engine)));
    (options.jobs, options.pack_bytes, options.retry_quarantined) = how;
    let done = run(py, || {
        ingest(&sources, &Lake::new(&lake), &options, &mut |progress| {
            let Progress::Log(row) = progress else { return };
            if lock(&abort).is_some() {
                return;
            }
            let row = serde_json::to_string(row).map_err(|error| PyValueError::new_err(error.to_string()));
            let reported = row.and_then(|row| Python::attach(|py| tell.call1(py, (row,)).map(drop)));
            if let Err(error) = reported {
                lock(&abort).get_or_insert(error);
            }
        })
    });
    if let Some(error) = lock(&abort).take() {
        return Err(error);
    }
    let done = done?;
    let counts = PyDict::new(py);
    for (key, count) in [
        ("ok", done.ok),
        ("partial", done.partial),
        ("failed", done.failed),
        ("known", done.known),
        ("gone", done.gone),
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
