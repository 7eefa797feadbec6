//! Writing of new files.
//!
//! Error messages contain the path that the user requested, and not the path of the partial file. A
//! signal ends the writing.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use rovelog::core::internal::parallel::lock;
use rovelog_export::{ExportError, partial};

use crate::errors::{self, ExceptionBuilder, SIGNAL_CHECK_INTERVAL};
use crate::reader::Reader;

/// Calls `work`, which writes the log of `reader` to the file `out`.
///
/// An error becomes the Python exception for its kind. If a signal arrives, returns the exception
/// of the signal handler.
pub(crate) fn write<T: Send>(
    py: Python<'_>,
    reader: &Reader,
    out: &Path,
    work: impl FnOnce(&Arc<Signals>) -> Result<T, ExportError> + Send,
) -> PyResult<T> {
    let state = SignalState { last_check: Instant::now(), raised: None };
    let signals = Arc::new(Signals(Mutex::new(state)));
    let outcome = reader.origin.checked(py, || errors::run(py, || work(&signals)))?;
    // After a signal, `outcome` only contains the error that stopped the writing. The exception of
    // the signal handler is returned instead.
    if let Some(raised) = lock(&signals.0).raised.take() {
        return Err(raised);
    }
    // A signal may have arrived after the last write.
    py.check_signals()?;
    reader.report(py)?;
    outcome.map_err(|error| match error {
        ExportError::Log(error) => reader.raise(py, &error),
        ExportError::Io(error) => {
            // The partial file is renamed when it is complete. The user only knows the final name.
            let path = out.to_string_lossy();
            let path = path.strip_suffix(".partial").unwrap_or(&path);
            cannot_write(&error).in_format(reader.log.format().id, Some(path)).raise(py)
        }
        error => {
            let raise = ExceptionBuilder::new("RovelogError", error.to_string());
            raise.in_format(reader.log.format().id, reader.origin.path()).raise(py)
        }
    })
}

/// Returns the exception for an output that cannot be written.
fn cannot_write<'a>(error: &io::Error) -> ExceptionBuilder<'a> {
    // The output is a new file. If the error says that a file or folder was not found, it can
    // therefore only be the folder of the output.
    let missing = error.kind() == io::ErrorKind::NotFound;
    let class = if missing { "MissingFolderError" } else { "WriteError" };
    let raise = ExceptionBuilder::new(class, format!("cannot write the output: {error}"));
    raise.errno(error.raw_os_error()).next(rovelog_export::next_step(error))
}

/// Context manager for the partial file of an output. `__enter__` creates and locks the file.
/// `__exit__` removes the file unless it was renamed.
///
/// If the object is destroyed before `__exit__`, the file is removed, too. Python code cannot
/// guarantee this: Ctrl-C can interrupt it after the file was created and before the file is assigned
/// to a variable.
#[pyclass(frozen, module = "rovelog._core")]
pub(crate) struct PartialFile {
    target: PathBuf,
    path: PathBuf,
    file: Mutex<Option<File>>,
}

#[pymethods]
impl PartialFile {
    #[new]
    fn new(target: PathBuf) -> Self {
        Self { path: partial::path(&target), target, file: Mutex::new(None) }
    }

    /// Path of the partial file.
    #[getter]
    fn path(&self) -> &OsStr {
        self.path.as_os_str()
    }

    fn __enter__(&self, py: Python<'_>) -> PyResult<()> {
        let file = partial::create(&self.path).map_err(|error| {
            let path = self.target.to_string_lossy();
            let raise = if error.kind() == io::ErrorKind::WouldBlock {
                ExceptionBuilder::new("WriteError", "another program is writing this output")
                    .next("wait until it is done, or name another file")
            } else {
                cannot_write(&error)
            };
            raise.at_path(Some(&path)).raise(py)
        })?;
        // On Windows, a lock would prevent the writers from opening the file again. It is not needed
        // there.
        #[cfg(windows)]
        file.unlock()?;
        *lock(&self.file) = Some(file);
        Ok(())
    }

    #[pyo3(signature = (*_args))]
    fn __exit__(&self, _args: &Bound<'_, PyTuple>) {
        self.remove();
    }
}

impl PartialFile {
    /// Removes the file unless it was renamed. An error is ignored, because the next program that
    /// writes this output replaces the file.
    fn remove(&self) {
        if let Some(file) = lock(&self.file).take()
            && partial::is_at(&file, &self.path)
        {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Returns advice for the user after an output could not be written. `errno` is the error number
/// returned by the operating system.
#[pyfunction]
pub(crate) fn next_step(errno: i32) -> &'static str {
    rovelog_export::next_step(&io::Error::from_raw_os_error(errno))
}

/// Opens a partial file for writing. After a signal, writing to the file fails.
pub(crate) fn create(path: &Path, signals: &Arc<Signals>) -> io::Result<BufWriter<InterruptibleFile>> {
    // A `PartialFile` has already created and locked the file. `File::create` opens the same file and
    // truncates it.
    let file = File::create(path)?;
    Ok(BufWriter::with_capacity(1 << 16, InterruptibleFile { file, signals: Arc::clone(signals) }))
}

/// Periodic check for signals. All output files of an export share it.
pub(crate) struct Signals(Mutex<SignalState>);

struct SignalState {
    last_check: Instant,
    /// Python exception that a signal handler raised.
    raised: Option<PyErr>,
}

impl Signals {
    /// Returns an error if a signal handler has raised an exception.
    fn check(&self) -> io::Result<()> {
        let mut state = lock(&self.0);
        // A check for signals acquires the GIL, which is too slow to be done for every write.
        if state.raised.is_none() && state.last_check.elapsed() > SIGNAL_CHECK_INTERVAL {
            state.raised = errors::pending_signal();
            state.last_check = Instant::now();
        }
        if state.raised.is_some() { Err(io::Error::other("interrupted")) } else { Ok(()) }
    }
}

/// A file that returns errors when it is written after a signal.
pub(crate) struct InterruptibleFile {
    file: File,
    signals: Arc<Signals>,
}

impl Write for InterruptibleFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.signals.check()?;
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
