//! Path of a log, and the check that its file has not been truncated by another program.
//!
//! Logs are memory-mapped. If another program truncates the file, the missing pages are read as
//! zeros, and results would be wrong without notice. So the size of the file is checked before and
//! after each access.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;
use rovelog::core::internal::layout::EscapedTexts;
use rovelog::core::internal::text::count;
use rovelog::{AnyLog, Result, Watch};

use crate::errors;

/// Path of an open log, and checks of its file. Iterators and streams over the log have a clone of
/// it.
#[derive(Clone, Default)]
pub(crate) struct Origin {
    /// Path of the file as the caller wrote it. If the log is not a local file, its name or
    /// address.
    pub(crate) path: Option<String>,
    /// Absolute path of the file. Unlike a relative path, it stays valid if the current folder
    /// changes.
    pub(crate) absolute_path: Option<PathBuf>,
    /// Detects whether another program has truncated the file.
    pub(crate) watch: Watch,
    /// True if some data could not be read and the user has been warned about it.
    loss_reported: Arc<AtomicBool>,
}

impl Origin {
    /// Creates the origin of a log that is not a local file, such as a URL. `path` is the name of
    /// the log.
    pub(crate) fn named(path: Option<String>) -> Self {
        Self::watched(path, Watch::default())
    }

    /// Creates the origin of a local file from its path. `watch` detects whether another program
    /// truncates the file.
    pub(crate) fn watched(path: Option<String>, watch: Watch) -> Self {
        let absolute_path = path.as_ref().map(|path| {
            // An address is not a path of the local file system, so it is stored unchanged.
            let is_address = rovelog::is_address(Path::new(path));
            let absolute = std::path::absolute(path).ok().filter(|_| !is_address);
            absolute.unwrap_or_else(|| path.into())
        });
        Self { path, absolute_path, watch, loss_reported: Arc::default() }
    }

    pub(crate) fn path(&self) -> Option<&str> {
        self.path.as_deref()
    }

    /// Calls `work` on the log without holding the GIL. An error becomes the Python exception for
    /// its kind.
    ///
    /// If the file has been truncated, the exception for the truncation is returned instead of any
    /// other error, because the truncation is the cause.
    pub(crate) fn run<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce() -> Result<T> + Send,
    ) -> PyResult<T> {
        self.checked(py, || errors::run(py, work))?.map_err(|error| errors::raise(py, &error, self.path()))
    }

    /// Calls `work` while holding the GIL. Returns an exception if the file was truncated before or
    /// during this call.
    pub(crate) fn checked<T>(&self, py: Python<'_>, work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
        self.check(py)?;
        let outcome = work();
        self.check(py)?;
        outcome
    }

    /// Warns about texts that were escaped. Also warns once about data that could not be read, if
    /// this was found out after the log was opened.
    ///
    /// For example, a bag is opened by its index, and a damaged chunk is only found when its
    /// messages are read.
    pub(crate) fn report(&self, py: Python<'_>, log: &AnyLog) -> PyResult<()> {
        for EscapedTexts { field, count: texts } in log.take_escaped_texts() {
            let are = if texts == 1 { "is" } else { "are" };
            let what = format!(
                "{} of {field} {are} not UTF-8, so bytes are written as \\xcf; open(.., \
                 text_encoding=NAME) decodes them",
                count(texts, "text")
            );
            py.import("rovelog._errors")?.getattr("warn_of_text")?.call1((what,))?;
        }
        let Some(loss) = errors::run(py, || new_loss(log))? else { return Ok(()) };
        if self.loss_reported.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        py.import("rovelog._errors")?.getattr("warn")?.call1((loss,))?;
        Ok(())
    }

    /// Returns true if some data could not be read and the user has been warned about it.
    pub(crate) fn is_loss_reported(&self) -> bool {
        self.loss_reported.load(Ordering::Relaxed)
    }

    /// Returns an exception if the file has been truncated.
    pub(crate) fn check(&self, py: Python<'_>) -> PyResult<()> {
        self.watch.check().map_err(|error| errors::raise_as(py, "ReadError", &error, self.path()))
    }
}

/// Describes the data that could not be read. Returns `None` if all of this lost data was already
/// known when the log was opened.
pub(crate) fn new_loss(log: &AnyLog) -> Option<String> {
    let lost = log.losses();
    (*lost != log.info().lost).then(|| {
        format!(
            "{lost}; this was found only while reading, because the log was opened by its index; \
             strict=True checks the whole log"
        )
    })
}
