//! Source of a log, and the check that its file was not shortened.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;
use rovelog::core::layout::EscapedTexts;
use rovelog::core::text::count;
use rovelog::{AnyLog, Result, Watch};

use crate::errors;

/// Source of an open log, for work on it.
#[derive(Clone, Default)]
pub(crate) struct Origin {
    /// Path of the file, or the name of the input.
    pub(crate) path: Option<String>,
    /// The path when the log was opened: the current folder may be another one later.
    pub(crate) place: Option<PathBuf>,
    pub(crate) watch: Watch,
    /// Whether the loss that reading has found was reported.
    loss_reported: Arc<AtomicBool>,
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
        Self { path, place, watch, loss_reported: Arc::default() }
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

    /// Warns of texts that were escaped, and once of a loss that was not known when the log was opened:
    /// a bag that was opened by its index can have damaged chunks.
    pub(crate) fn report(&self, py: Python<'_>, log: &AnyLog) -> PyResult<()> {
        for EscapedTexts { field, count: texts } in log.take_escaped_texts() {
            let are = if texts == 1 { "is" } else { "are" };
            let what = format!(
                "{} of {field} {are} not UTF-8: bytes are written as \\xcf; open(.., text_encoding=NAME) decodes them",
                count(texts, "text")
            );
            py.import("rovelog._errors")?.getattr("warn_of_text")?.call1((what,))?;
        }
        let Some(loss) = errors::run(py, || found_loss(log))? else { return Ok(()) };
        if self.loss_reported.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        py.import("rovelog._errors")?.getattr("warn")?.call1((loss,))?;
        Ok(())
    }

    /// Returns whether a loss that reading has found was reported.
    pub(crate) fn is_loss_reported(&self) -> bool {
        self.loss_reported.load(Ordering::Relaxed)
    }

    /// Raises an exception if the file was shortened.
    pub(crate) fn check(&self, py: Python<'_>) -> PyResult<()> {
        self.watch.check().map_err(|error| errors::raise_as(py, "ReadError", &error, self.path()))
    }
}

/// Returns the loss that reading has found since the log was opened; `None` if there is none.
pub(crate) fn found_loss(log: &AnyLog) -> Option<String> {
    let lost = log.losses();
    (*lost != log.info().lost).then(|| {
        format!("{lost}: found while reading, because the log was opened by its index; strict=True compares all of it")
    })
}
