//! Errors and panics as exceptions of `rovelog._errors`, with offset, format, path and next step.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::time::Duration;

use arrow_schema::ArrowError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rovelog::{Error, ErrorKind, Result};
use rovelog_export::ExportError;
use rovelog_remote::RemoteError;

use crate::words::in_python;

/// Time between two checks for signals.
pub(crate) const LOOK: Duration = Duration::from_millis(100);

/// Runs `work` without the GIL; a panic becomes an exception.
pub(crate) fn run<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    py.detach(|| catch_unwind(AssertUnwindSafe(work))).map_err(|panic| of_panic(py, &*panic))
}

/// Runs `work` on another thread, so that a signal ends the waiting at once. The work itself
/// continues to its end in the background.
pub(crate) fn run_aside<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let (send, mut receive) = mpsc::channel();
    // The caller may have stopped waiting.
    std::thread::spawn(move || drop(send.send(catch_unwind(AssertUnwindSafe(work)))));
    loop {
        let outcome;
        (receive, outcome) = py.detach(move || {
            let outcome = receive.recv_timeout(LOOK);
            (receive, outcome)
        });
        match outcome {
            Ok(done) => return done.map_err(|panic| of_panic(py, &*panic)),
            Err(_) => py.check_signals()?,
        }
    }
}

fn of_panic(py: Python<'_>, panic: &(dyn Any + Send)) -> PyErr {
    let why = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let why = why.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    let why = format!("an internal error, a defect of rovelog: {why}");
    Raise::new("RovelogError", why).next("please report it, with the log if you can").raise(py)
}

/// Runs work on the log at `path`; its error becomes the exception of its kind.
pub(crate) fn run_on<T: Send>(
    py: Python<'_>,
    path: Option<&str>,
    work: impl FnOnce() -> Result<T> + Send,
) -> PyResult<T> {
    run(py, work)?.map_err(|error| raise(py, &error, path))
}

/// Returns the exception that a signal handler raised, if any.
pub(crate) fn signal() -> Option<PyErr> {
    // The interpreter may have ended if the caller has stopped waiting.
    #[expect(clippy::redundant_closure_for_method_calls, reason = "the method is of one lifetime")]
    let signals = Python::try_attach(|py| py.check_signals());
    signals?.err()
}

/// Panics, for tests of the conversion.
#[pyfunction]
#[pyo3(name = "_panic_on_purpose")]
pub(crate) fn panic_on_purpose(py: Python<'_>) -> PyResult<()> {
    run(py, || panic!("on purpose"))
}

/// An exception to raise.
pub(crate) struct Raise<'a> {
    class: &'static str,
    message: String,
    offset: Option<u64>,
    format: Option<&'a str>,
    path: Option<&'a str>,
    next: Option<String>,
    /// Number of the error of the operating system, of an output.
    errno: Option<i32>,
}

impl<'a> Raise<'a> {
    pub(crate) fn new(class: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { class, message, offset: None, format: None, path: None, next: None, errno: None }
    }

    pub(crate) fn next(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }

    pub(crate) fn errno(mut self, errno: Option<i32>) -> Self {
        self.errno = errno;
        self
    }

    pub(crate) fn of(mut self, format: &'a str, path: Option<&'a str>) -> Self {
        (self.format, self.path) = (Some(format), path);
        self
    }

    pub(crate) fn at(mut self, path: Option<&'a str>) -> Self {
        self.path = path;
        self
    }

    pub(crate) fn raise(self, py: Python<'_>) -> PyErr {
        match self.build(py) {
            Ok(error) | Err(error) => error,
        }
    }

    fn build(self, py: Python<'_>) -> PyResult<PyErr> {
        let class = py.import(intern!(py, "rovelog._errors"))?.getattr(self.class)?;
        let facts = PyDict::new(py);
        facts.set_item(intern!(py, "offset"), self.offset)?;
        facts.set_item(intern!(py, "format"), self.format)?;
        facts.set_item(intern!(py, "path"), self.path)?;
        facts.set_item(intern!(py, "next"), self.next)?;
        if let Some(errno) = self.errno {
            facts.set_item(intern!(py, "errno"), errno)?;
        }
        Ok(PyErr::from_value(class.call((self.message,), Some(&facts))?))
    }
}

/// Converts an Arrow error to the library's; `format` is the log's.
pub(crate) fn of_arrow(format: &'static str) -> impl Fn(ArrowError) -> Error {
    move |error| Error::new(format, ErrorKind::InvalidArgument, None, error)
}

/// Converts an error of an export to the library's; `format` is the log's.
pub(crate) fn of_export(format: &'static str) -> impl Fn(ExportError) -> Error {
    move |error| match error {
        ExportError::Log(error) => error,
        other => Error::new(format, ErrorKind::InvalidArgument, None, other),
    }
}

/// Wraps the exception of a signal handler as an error of the library.
pub(crate) fn of_signal(raised: PyErr) -> Error {
    Error::new("rovelog", ErrorKind::Io, None, raised)
}

/// Converts an error of the library to the exception of its kind.
pub(crate) fn raise(py: Python<'_>, error: &Error, path: Option<&str>) -> PyErr {
    if let Some(raised) = error.get_ref().downcast_ref::<PyErr>() {
        return raised.clone_ref(py);
    }
    let missing = |path: &str| !std::path::Path::new(path).exists();
    let class = match error.kind {
        ErrorKind::Io if let Some(error) = error.get_ref().downcast_ref::<RemoteError>() => {
            if matches!(error, RemoteError::NotFound) { "MissingFileError" } else { "ReadError" }
        }
        ErrorKind::Io if path.is_some_and(missing) => "MissingFileError",
        ErrorKind::Io => "ReadError",
        ErrorKind::DataLost => "CorruptError",
        ErrorKind::NotThisFormat => "NotALogError",
        ErrorKind::PartlyRead | ErrorKind::Unsupported => "UnsupportedError",
        _ => "UnreadableError",
    };
    raise_as(py, class, error, path)
}

/// Converts an error of the library to an exception of this class.
pub(crate) fn raise_as(py: Python<'_>, class: &'static str, error: &Error, path: Option<&str>) -> PyErr {
    let next = error.next.as_deref().map(|next| in_python(next).replace("FILE", path.unwrap_or("FILE")));
    let message = in_python(&error.to_string()).into_owned();
    Raise { class, message, offset: error.offset, format: Some(error.format), path, next, errno: None }
        .raise(py)
}
