//! Source of a log, and the check that its file was not shortened.

use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use rovelog::{Result, Watch};

use crate::errors;

/// Source of an open log, for work on it.
#[derive(Clone, Default)]
pub(crate) struct Origin {
    /// Path of the file, or the name of the input.
    pub(crate) path: Option<String>,
    /// The path when the log was opened: the current folder may be another one later.
    pub(crate) place: Option<PathBuf>,
    pub(crate) watch: Watch,
}

impl Origin {
    /// Source of bytes in memory.
    pub(crate) fn named(path: Option<String>) -> Self {
        Self::watched(path, Watch::default())
    }

    /// Source that is a file, which is watched.
    pub(crate) fn watched(path: Option<String>, watch: Watch) -> Self {
        let place = path.as_ref().map(|path| {
            let is_address = rovelog::is_address(Path::new(path));
            let absolute = std::path::absolute(path).ok().filter(|_| !is_address);
            absolute.unwrap_or_else(|| path.into())
        });
        Self { path, place, watch }
    }

    pub(crate) fn path(&self) -> Option<&str> {
        self.path.as_deref()
    }

    /// Runs work on the log without the GIL; its error becomes the exception of its kind. If the
    /// file was shortened, that exception takes precedence.
    pub(crate) fn run<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce() -> Result<T> + Send,
    ) -> PyResult<T> {
        self.checked(py, || errors::run(py, work))?.map_err(|error| errors::raise(py, &error, self.path()))
    }

    /// Runs work that checks signals and raises exceptions itself.
    pub(crate) fn checked<T>(&self, py: Python<'_>, work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
        self.check(py)?;
        let outcome = work();
        self.check(py)?;
        outcome
    }

    /// Raises an exception if the file was shortened.
    pub(crate) fn check(&self, py: Python<'_>) -> PyResult<()> {
        self.watch.check().map_err(|error| errors::raise_as(py, "ReadError", &error, self.path()))
    }
}
