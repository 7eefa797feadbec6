//! New files: errors name the requested file, and a signal ends the writing.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use pyo3::prelude::*;
use rovelog_export::ExportError;

use crate::errors::{self, LOOK, Raise};
use crate::reader::Reader;

/// Runs work that writes `out` from the reader's log. An error becomes the exception of its kind, a
/// signal the exception of its handler.
pub(crate) fn write<T: Send>(
    py: Python<'_>,
    reader: &Reader,
    out: &Path,
    work: impl FnOnce(&Arc<Signals>) -> Result<T, ExportError> + Send,
) -> PyResult<T> {
    let signals = Arc::new(Signals(Mutex::new((Instant::now(), None))));
    let outcome = reader.origin.checked(py, || errors::run(py, || work(&signals)))?;
    if let Some(signal) = signals.lock().1.take() {
        return Err(signal);
    }
    py.check_signals()?;
    reader.report(py)?;
    outcome.map_err(|error| match error {
        ExportError::Log(error) => reader.raise(py, &error),
        ExportError::Io(error) => {
            let missing = error.kind() == io::ErrorKind::NotFound;
            let class = if missing { "MissingFolderError" } else { "WriteError" };
            let path = out.to_string_lossy();
            let raise = Raise::new(class, format!("cannot write the output: {error}"));
            let raise = raise.errno(error.raw_os_error()).next(rovelog_export::next_step(&error));
            // The file gets its own name when it is complete.
            raise.of(reader.log.format().id, Some(path.trim_end_matches(".partial"))).raise(py)
        }
        error => {
            let raise = Raise::new("RovelogError", error.to_string());
            raise.of(reader.log.format().id, reader.origin.path()).raise(py)
        }
    })
}

/// Returns what to do next after the file system refused to write an output, by the number of the
/// error.
#[pyfunction]
pub(crate) fn next_step(errno: i32) -> &'static str {
    rovelog_export::next_step(&io::Error::from_raw_os_error(errno))
}

/// Creates a file whose writing ends at a signal.
pub(crate) fn create(path: &Path, signals: &Arc<Signals>) -> io::Result<BufWriter<Watched>> {
    // It exists already, locked for this run.
    let file = File::create(path)?;
    Ok(BufWriter::with_capacity(1 << 16, Watched { file, signals: Arc::clone(signals) }))
}

/// Time of the last check for signals, and the exception of their handler.
pub(crate) struct Signals(Mutex<(Instant, Option<PyErr>)>);

impl Signals {
    fn lock(&self) -> MutexGuard<'_, (Instant, Option<PyErr>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns an error once a signal handler has raised an exception.
    fn look(&self) -> io::Result<()> {
        let mut state = self.lock();
        if state.1.is_none() && state.0.elapsed() > LOOK {
            state.1 = errors::signal();
            state.0 = Instant::now();
        }
        if state.1.is_some() { Err(io::Error::other("interrupted")) } else { Ok(()) }
    }
}

/// A file, and the signals that end its writing.
pub(crate) struct Watched {
    file: File,
    signals: Arc<Signals>,
}

impl Write for Watched {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.signals.look()?;
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
