//! The command line inside the package, and the comparison of its `diff`.

use std::ffi::OsString;
use std::path::PathBuf;

use pyo3::prelude::*;
use rovelog_cli::Ignored;

use crate::errors::{self, Raise};
use crate::reader::Reader;

/// Runs the command line. Returns the exit code.
#[pyfunction]
pub(crate) fn main(py: Python<'_>, args: Vec<OsString>) -> PyResult<u8> {
    let interpreter: Option<PathBuf> = py.import("sys")?.getattr("executable")?.extract()?;
    if let Some(interpreter) = interpreter.filter(|path| !path.as_os_str().is_empty()) {
        rovelog_cli::runs_in(interpreter);
    }
    errors::run(py, || rovelog_cli::run(args))
}

/// Returns the differences of two logs as the JSON document of the command `diff`.
#[pyfunction]
pub(crate) fn diff(
    py: Python<'_>,
    a: &Reader,
    b: &Reader,
    counts: bool,
    calibration: bool,
) -> PyResult<String> {
    let name = |reader: &Reader| reader.origin.path.clone().unwrap_or_else(|| "-".to_owned());
    let (name_a, name_b) = (name(a), name(b));
    let ignored = Ignored { counts, calibration };
    let (log_a, log_b) = (a.all(py)?, b.all(py)?);
    let document = a.origin.checked(py, || {
        let work = || rovelog_cli::diff((&name_a, log_a), (&name_b, log_b), ignored);
        b.origin.checked(py, || errors::run(py, work))
    })?;
    document.map_err(|error| Raise::new("RovelogError", error.to_string()).raise(py))
}
