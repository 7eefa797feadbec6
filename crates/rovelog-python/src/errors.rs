//! Conversion of errors and panics to the Python exceptions of `rovelog._errors`.
//!
//! An exception has these attributes of the error: the offset, the format, the path, and the advice
//! on what to do next. The exception classes are defined in Python, because Rust cannot derive a
//! class from two built-in exceptions, such as `RovelogError` and `OSError`.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use arrow_schema::ArrowError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rovelog::core::internal::parallel::lock;
use rovelog::{Error, ErrorKind, Result};
use rovelog_export::ExportError;
use rovelog_remote::RemoteError;

use crate::python_terms::in_python;

/// Time between two checks for operating system signals, such as SIGINT after Ctrl-C.
pub(crate) const SIGNAL_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Calls `work` without holding the GIL. A panic becomes a Python exception.
pub(crate) fn run<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    // A panic must not unwind into the Python interpreter. Asserting unwind safety is sound,
    // because the result of `work` is dropped after a panic.
    py.detach(|| catch_unwind(AssertUnwindSafe(work))).map_err(|panic| panic_to_exception(py, &*panic))
}

/// Calls `work` on another thread and returns its result.
///
/// If a signal arrives, this function returns immediately with the exception of the signal handler.
/// The thread cannot be interrupted, so `work` continues in the background, and its result is
/// dropped.
pub(crate) fn run_in_background<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let (send, mut receive) = mpsc::channel();
    // If the wait was ended by a signal, the receiver no longer exists. Then `send` fails, which is
    // ignored.
    let work = Arc::new(Mutex::new(Some(work)));
    let take = |work: &Mutex<Option<_>>| lock(work).take();
    let of_thread = Arc::clone(&work);
    let thread = std::thread::Builder::new().spawn(move || {
        let work = take(&of_thread).expect("the work is done once");
        drop(send.send(catch_unwind(AssertUnwindSafe(work))));
    });
    // If the operating system cannot create a thread, the work is done on this thread.
    if thread.is_err()
        && let Some(work) = take(&work)
    {
        return run(py, work);
    }
    loop {
        // A receiver cannot be shared between threads, so it is moved into the closure and returned
        // by it.
        let outcome;
        (receive, outcome) = py.detach(move || {
            let outcome = receive.recv_timeout(SIGNAL_CHECK_INTERVAL);
            (receive, outcome)
        });
        match outcome {
            Ok(done) => return done.map_err(|panic| panic_to_exception(py, &*panic)),
            Err(_) => py.check_signals()?,
        }
    }
}

/// Returns the Python exception for a panic, with the message of the panic.
fn panic_to_exception(py: Python<'_>, panic: &(dyn Any + Send)) -> PyErr {
    let why = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let why = why.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    let why = format!("an internal error occurred, which is a bug in rovelog: {why}");
    ExceptionBuilder::new("RovelogError", why)
        .next("please report it, and include the log if you can")
        .raise(py)
}

/// Calls `work` on the log at `path` without holding the GIL. An error becomes the Python exception
/// for its kind.
pub(crate) fn run_on<T: Send>(
    py: Python<'_>,
    path: Option<&str>,
    work: impl FnOnce() -> Result<T> + Send,
) -> PyResult<T> {
    run(py, work)?.map_err(|error| raise(py, &error, path))
}

/// Returns the Python exception that a signal handler raised, if there is one.
pub(crate) fn pending_signal() -> Option<PyErr> {
    // A background thread can outlive the Python interpreter. Attaching to the interpreter then
    // fails.
    #[expect(
        clippy::redundant_closure_for_method_calls,
        reason = "the method is not generic over the lifetime"
    )]
    let signals = Python::try_attach(|py| py.check_signals());
    signals?.err()
}

/// Panics. The tests call this function to check that a panic becomes a Python exception.
#[pyfunction]
#[pyo3(name = "_panic_on_purpose")]
pub(crate) fn panic_on_purpose(py: Python<'_>) -> PyResult<()> {
    run(py, || panic!("on purpose"))
}

/// Builder of an exception defined in `rovelog._errors`.
pub(crate) struct ExceptionBuilder<'a> {
    /// Name of the Python exception class.
    class: &'static str,
    message: String,
    /// Offset in the log at which reading failed.
    offset: Option<u64>,
    /// Id of the log format.
    format: Option<&'a str>,
    path: Option<&'a str>,
    /// Advice for the user on what to do next.
    next: Option<String>,
    /// Error number returned by the operating system, if an output could not be written.
    errno: Option<i32>,
}

impl<'a> ExceptionBuilder<'a> {
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

    pub(crate) fn in_format(mut self, format: &'a str, path: Option<&'a str>) -> Self {
        (self.format, self.path) = (Some(format), path);
        self
    }

    pub(crate) fn at_path(mut self, path: Option<&'a str>) -> Self {
        self.path = path;
        self
    }

    /// Creates the exception. If this fails, returns the exception that occurred instead.
    pub(crate) fn raise(self, py: Python<'_>) -> PyErr {
        match self.try_build(py) {
            Ok(error) | Err(error) => error,
        }
    }

    fn try_build(self, py: Python<'_>) -> PyResult<PyErr> {
        let class = py.import(intern!(py, "rovelog._errors"))?.getattr(self.class)?;
        let facts = PyDict::new(py);
        facts.set_item(intern!(py, "offset"), self.offset)?;
        facts.set_item(intern!(py, "format"), self.format)?;
        facts.set_item(intern!(py, "path"), self.path)?;
        facts.set_item(intern!(py, "next"), self.next)?;
        // Only the exception class `WriteError` accepts the argument `errno`.
        if let Some(errno) = self.errno {
            facts.set_item(intern!(py, "errno"), errno)?;
        }
        Ok(PyErr::from_value(class.call((self.message,), Some(&facts))?))
    }
}

/// Returns a function that converts an Arrow error to an error about a log in the format `format`.
pub(crate) fn from_arrow(format: &'static str) -> impl Fn(ArrowError) -> Error {
    move |error| Error::new(format, ErrorKind::InvalidArgument, None, error)
}

/// Returns a function that converts an export error to an error about a log in the format `format`.
pub(crate) fn from_export(format: &'static str) -> impl Fn(ExportError) -> Error {
    move |error| match error {
        ExportError::Log(error) => error,
        other => Error::new(format, ErrorKind::InvalidArgument, None, other),
    }
}

/// Wraps the Python exception of a signal handler in an [`Error`].
///
/// The exception can then be returned by functions of the library that return [`Error`]. [`raise`]
/// unwraps the exception again.
pub(crate) fn from_signal(raised: PyErr) -> Error {
    Error::new("rovelog", ErrorKind::Io, None, raised)
}

/// Converts an error to the Python exception for its kind.
pub(crate) fn raise(py: Python<'_>, error: &Error, path: Option<&str>) -> PyErr {
    // The error may contain the exception of a signal handler, such as `KeyboardInterrupt`, which
    // `from_signal` has wrapped.
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

/// Converts an error to a Python exception of the class named `class`.
pub(crate) fn raise_as(py: Python<'_>, class: &'static str, error: &Error, path: Option<&str>) -> PyErr {
    // The advice is written for the command line, and the word `FILE` stands for the path of the
    // log.
    let next = error.next.as_deref().map(|next| in_python(next).replace("FILE", path.unwrap_or("FILE")));
    let message = in_python(&error.to_string()).into_owned();
    let (offset, format) = (error.offset, Some(error.format));
    ExceptionBuilder { class, message, offset, format, path, next, errno: None }.raise(py)
}
