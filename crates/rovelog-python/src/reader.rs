//! The type [`Reader`], which represents an open log in Python. All functions on a log are called
//! with it.

use std::sync::{Arc, OnceLock};

use pyo3::prelude::*;
use rovelog::{AnyLog, Bytes, Clock, Error, Result, Select, Timestamp};
use rovelog_export::TimeBase;

use crate::errors::{self, ExceptionBuilder};
use crate::origin::Origin;
use crate::remote::RemoteLog;
use crate::select::Projection;

/// An open log.
#[pyclass(frozen, module = "rovelog._core")]
pub(crate) struct Reader {
    /// The open log. If the log is remote, it contains only the parts that were fetched to open it.
    pub(crate) log: Arc<AnyLog>,
    pub(crate) origin: Origin,
    /// Bytes of the log, if it was opened from memory.
    pub(crate) memory: Option<Bytes>,
    /// The fetched parts of the log, if only the needed byte ranges of the log are read.
    pub(crate) remote: Option<Arc<RemoteLog>>,
    /// The complete log, if the log is remote. It is set by the first call of
    /// [`Reader::whole_log`].
    pub(crate) complete: OnceLock<Arc<AnyLog>>,
}

/// Time window in nanoseconds on the log's clock. The first value is the inclusive start and the
/// second value is the exclusive end. `None` means that the window has no limit on this side.
#[derive(Clone, Copy, FromPyObject)]
pub(crate) struct Window(Option<i64>, Option<i64>);

impl Window {
    /// Restricts a selection of records to the time window.
    pub(crate) fn limit(self, select: Select) -> Select {
        select.between(self.0, self.1)
    }

    /// Restricts a time range, whose end is inclusive, to the time window.
    pub(crate) fn within(self, (start, end): (i64, i64)) -> (i64, i64) {
        let last = self.1.map_or(end, |window| end.min(window.saturating_sub(1)));
        (self.0.map_or(start, |window| start.max(window)), last)
    }
}

impl Reader {
    pub(crate) fn new(log: AnyLog, origin: Origin, memory: Option<Bytes>) -> Self {
        Self::from_shared(Arc::new(log), origin, memory)
    }

    pub(crate) fn from_shared(log: Arc<AnyLog>, origin: Origin, memory: Option<Bytes>) -> Self {
        Self { log, origin, memory, remote: None, complete: OnceLock::new() }
    }

    /// Returns the reader for one log format. Returns an exception if the log has another format,
    /// which the message names.
    pub(crate) fn format_reader<'a, T>(
        &'a self,
        py: Python<'_>,
        what: &str,
        select_format: impl FnOnce(&'a AnyLog) -> Option<&'a T>,
    ) -> PyResult<&'a T> {
        self.origin.check(py)?;
        select_format(self.whole_log(py)?).ok_or_else(|| {
            let format = self.log.format();
            let message = format!("the format of this log is {}, not {what}", format.name);
            ExceptionBuilder::new("UnsupportedError", message)
                .in_format(format.id, self.origin.path())
                .raise(py)
        })
    }

    /// Calls `work` on the log without holding the GIL, and then warns about lost data. An error
    /// becomes the Python exception for its kind.
    pub(crate) fn run<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce() -> Result<T> + Send,
    ) -> PyResult<T> {
        let outcome = self.origin.run(py, work)?;
        self.report(py)?;
        Ok(outcome)
    }

    /// Warns about texts that were escaped. Also warns once about data that could not be read, if
    /// this was found out after the log was opened.
    pub(crate) fn report(&self, py: Python<'_>) -> PyResult<()> {
        self.origin.report(py, &self.loaded_log())
    }

    /// Returns the log with all parts that have been fetched so far.
    pub(crate) fn loaded_log(&self) -> Arc<AnyLog> {
        self.remote.as_ref().map_or_else(|| Arc::clone(&self.log), |remote| remote.loaded_log())
    }

    pub(crate) fn raise(&self, py: Python<'_>, error: &Error) -> PyErr {
        errors::raise(py, error, self.origin.path())
    }

    /// Returns the projection that selects the columns `paths`. If `paths` is `None`, all columns
    /// are selected.
    ///
    /// The times of a topic may be on a different clock than the start of the log. If `time` is
    /// given, times are converted to UTC from its clock, otherwise from the clock of the log's
    /// start.
    pub(crate) fn projection(&self, paths: Option<Vec<String>>, time: Option<Timestamp>) -> Projection {
        let info = self.log.info();
        let clock = time.or(info.start).map_or(Clock::Boot, |time| time.clock);
        Projection::new(paths, TimeBase::of_clock(clock, info))
    }

    /// Returns the log with the parts that are needed for the selected records. Missing parts are
    /// fetched.
    pub(crate) fn log_for(&self, py: Python<'_>, select: &Select) -> PyResult<Arc<AnyLog>> {
        let Some(remote) = &self.remote else { return Ok(Arc::clone(&self.log)) };
        let (remote, select) = (Arc::clone(remote), select.clone());
        errors::run_in_background(py, move || remote.load_for(&select))?
            .map_err(|error| self.raise(py, &error))
    }

    /// Returns the complete log. Missing parts are fetched.
    pub(crate) fn whole_log(&self, py: Python<'_>) -> PyResult<&Arc<AnyLog>> {
        let Some(remote) = &self.remote else { return Ok(&self.log) };
        if let Some(whole) = self.complete.get() {
            return Ok(whole);
        }
        let remote = Arc::clone(remote);
        // The log is fetched on another thread, so that Ctrl-C ends the wait for a slow server.
        let whole = errors::run_in_background(py, move || remote.load_all())?
            .map_err(|error| self.raise(py, &error))?;
        // Another thread may have loaded the complete log in the meantime. Then the log of that
        // thread is used.
        Ok(self.complete.get_or_init(|| whole))
    }
}
