//! Where a log came from, and whether its file still has the bytes that it had.

use pyo3::prelude::*;
use rovelog::{Result, Watch};

use crate::errors;

/// The origin of an open log, for work on it.
#[derive(Clone, Default)]
pub(crate) struct Origin {
    /// The file, or the name of what was read.
    pub(crate) path: Option<String>,
    pub(crate) watch: Watch,
}

impl Origin {
    /// Of bytes that were given.
    pub(crate) fn named(path: Option<String>) -> Self {
        Self { path, watch: Watch::default() }
    }

    pub(crate) fn path(&self) -> Option<&str> {
        self.path.as_deref()
    }

    /// Runs work on the log without the interpreter's lock; its error becomes the exception of its kind. Where the file
    /// was shortened, that is the exception, whatever the work made of it.
    pub(crate) fn run<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce() -> Result<T> + Send,
    ) -> PyResult<T> {
        self.checked(py, || errors::run(py, work))?.map_err(|error| errors::raise(py, &error, self.path()))
    }

    /// Runs work that looks at the signals and raises by itself.
    pub(crate) fn checked<T>(&self, py: Python<'_>, work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
        self.check(py)?;
        let outcome = work();
        self.check(py)?;
        outcome
    }

    /// Raises where the file was shortened.
    pub(crate) fn check(&self, py: Python<'_>) -> PyResult<()> {
        self.watch.check().map_err(|error| errors::raise_as(py, "ReadError", &error, self.path()))
    }
}
