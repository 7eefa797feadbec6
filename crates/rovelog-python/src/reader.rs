//! An open log, as all that works on it takes it.

use std::sync::{Arc, OnceLock};

use pyo3::prelude::*;
use rovelog::{AnyLog, Bytes, Clock, Error, Result, Select, Timestamp};
use rovelog_export::TimeBase;

use crate::errors::{self, Raise};
use crate::origin::Origin;
use crate::remote::Parts;
use crate::select::Shape;

/// An open log.
#[pyclass(frozen, module = "rovelog._core")]
pub(crate) struct Reader {
    pub(crate) log: Arc<AnyLog>,
    pub(crate) origin: Origin,
    /// The bytes, if they were given and not read from the path.
    pub(crate) memory: Option<Bytes>,
    /// What was fetched, of a log that is read by ranges; `log` is its outline then.
    pub(crate) parts: Option<Arc<Parts>>,
    /// The log with all that is in it, once that is asked for.
    pub(crate) whole: OnceLock<Arc<AnyLog>>,
}

/// Time window in nanoseconds of the log's clock, with an exclusive end; `None` leaves a side open.
#[derive(Clone, Copy, FromPyObject)]
pub(crate) struct Window(Option<i64>, Option<i64>);

impl Window {
    /// Restricts a selection to the window.
    pub(crate) fn of(self, select: Select) -> Select {
        select.between(self.0, self.1)
    }
}

impl Reader {
    pub(crate) fn new(log: AnyLog, origin: Origin, memory: Option<Bytes>) -> Self {
        Self::new_of(Arc::new(log), origin, memory)
    }

    pub(crate) fn new_of(log: Arc<AnyLog>, origin: Origin, memory: Option<Bytes>) -> Self {
        Self { log, origin, memory, parts: None, whole: OnceLock::new() }
    }

    /// Returns the format-specific reader, or an error that names the log's own format.
    pub(crate) fn only<'a, T>(
        &'a self,
        py: Python<'_>,
        what: &str,
        of_format: impl FnOnce(&'a AnyLog) -> Option<&'a T>,
    ) -> PyResult<&'a T> {
        self.origin.check(py)?;
        of_format(self.all(py)?).ok_or_else(|| {
            let format = self.log.format();
            let message = format!("this log is no {what}, it is {}", format.name);
            Raise::new("UnsupportedError", message).of(format.id, self.origin.path()).raise(py)
        })
    }

    /// Runs work on the log; its error becomes the exception of its kind.
    pub(crate) fn run<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce() -> Result<T> + Send,
    ) -> PyResult<T> {
        let outcome = self.origin.run(py, work)?;
        self.report(py)?;
        Ok(outcome)
    }

    /// Warns of escaped texts, and once of a loss that reading has found.
    pub(crate) fn report(&self, py: Python<'_>) -> PyResult<()> {
        self.origin.report(py, &self.known())
    }

    /// Returns the log as far as it was read.
    pub(crate) fn known(&self) -> Arc<AnyLog> {
        self.parts.as_ref().map_or_else(|| Arc::clone(&self.log), |parts| parts.known())
    }

    pub(crate) fn raise(&self, py: Python<'_>, error: &Error) -> PyErr {
        errors::raise(py, error, self.origin.path())
    }

    /// Returns the shape of columns; their times are of the clock of `time`, or of the log's clock.
    pub(crate) fn shape(&self, paths: Option<Vec<String>>, time: Option<Timestamp>) -> Shape {
        let info = self.log.info();
        let clock = time.or(info.start).map_or(Clock::Boot, |time| time.clock);
        Shape::new(paths, TimeBase::of_clock(clock, info))
    }

    /// Returns the log with all that the selected records need.
    pub(crate) fn with(&self, py: Python<'_>, select: &Select) -> PyResult<Arc<AnyLog>> {
        let Some(parts) = &self.parts else { return Ok(Arc::clone(&self.log)) };
        let (parts, select) = (Arc::clone(parts), select.clone());
        errors::run_aside(py, move || parts.with(&select))?.map_err(|error| self.raise(py, &error))
    }

    /// Returns the log with all that is in it.
    pub(crate) fn all(&self, py: Python<'_>) -> PyResult<&Arc<AnyLog>> {
        let Some(parts) = &self.parts else { return Ok(&self.log) };
        if let Some(whole) = self.whole.get() {
            return Ok(whole);
        }
        let parts = Arc::clone(parts);
        let whole = errors::run_aside(py, move || parts.whole())?.map_err(|error| self.raise(py, &error))?;
        Ok(self.whole.get_or_init(|| whole))
    }
}
