//! Runs the command line of the package, and compares two logs.

use std::ffi::OsString;
use std::path::PathBuf;

use pyo3::prelude::*;
use rovelog_cli::{DiffOptions, NoDiff};

use crate::errors::{self, ExceptionBuilder};
use crate::python_terms::in_python;
use crate::reader::Reader;

/// Runs the command line and returns the exit code. `args[0]` is the name of the program.
#[pyfunction]
pub(crate) fn main(py: Python<'_>, args: Vec<OsString>) -> PyResult<u8> {
    // The command line starts this Python interpreter for commands that need it, such as an ingest
    // with Spark. In an embedded interpreter, `sys.executable` is None or empty.
    let interpreter: Option<PathBuf> = py.import("sys")?.getattr("executable")?.extract()?;
    if let Some(interpreter) = interpreter.filter(|path| !path.as_os_str().is_empty()) {
        rovelog_cli::set_interpreter(interpreter);
    }
    errors::run(py, || rovelog_cli::run(args))
}

/// Compares two logs. Returns the JSON document that `rovelog diff` prints.
#[pyfunction]
#[pyo3(signature = (a, b, counts, calibration, stats=false, fields=Vec::new(), topics=Vec::new()))]
#[expect(clippy::too_many_arguments, reason = "each is an option of its own")]
pub(crate) fn diff(
    py: Python<'_>,
    a: &Reader,
    b: &Reader,
    counts: bool,
    calibration: bool,
    stats: bool,
    fields: Vec<String>,
    topics: Vec<String>,
) -> PyResult<String> {
    let name = |reader: &Reader| reader.origin.path.clone().unwrap_or_else(|| "-".to_owned());
    let (name_a, name_b) = (name(a), name(b));
    let options =
        DiffOptions { ignore_counts: counts, ignore_calibration: calibration, stats, fields, topics };
    let (log_a, log_b) = (a.whole_log(py)?, b.whole_log(py)?);
    // Before and after the comparison, both files are checked for truncation by other programs.
    let document = a.origin.checked(py, || {
        let work = || rovelog_cli::diff((&name_a, log_a), (&name_b, log_b), &options);
        b.origin.checked(py, || errors::run(py, work))
    })?;
    document.map_err(|NoDiff { is_usage, cause, next, file }| {
        let file = file.map(|file| file.to_string_lossy().into_owned());
        let class = if is_usage { "FieldNotFound" } else { "RovelogError" };
        let raise = ExceptionBuilder::new(class, cause).at_path(file.as_deref().filter(|file| *file != "-"));
        match next {
            Some(next) => raise.next(in_python(&next)).raise(py),
            None => raise.raise(py),
        }
    })
}
