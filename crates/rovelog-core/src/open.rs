//! [`OpenOptions`]: how a log is opened.

use std::fmt;
use std::fs;
use std::marker::PhantomData;
use std::path::Path;

use bytes::Bytes;

use crate::diagnostic::Severity;
use crate::error::{Error, ErrorKind, Result};
use crate::reader::{Format, LogReader, ReadOptions};

/// Opens logs of one format, or of any format in the facade.
pub trait Open {
    /// The reader.
    type Reader;

    /// Opens the log at `path`.
    ///
    /// # Errors
    /// If the file cannot be read, or is not a log that the reader can open.
    fn open_path(path: &Path, options: &ReadOptions) -> Result<Self::Reader>;

    /// Opens the log in `bytes`.
    ///
    /// # Errors
    /// If the bytes are not a log that the reader can open.
    fn open_bytes(bytes: Bytes, options: &ReadOptions) -> Result<Self::Reader>;

    /// Returns the reader as a trait object.
    fn as_log(reader: &Self::Reader) -> &dyn LogReader;
}

/// Reads the file into memory. The facade maps large files instead.
impl<F: Format> Open for F {
    type Reader = F::Reader;

    fn open_path(path: &Path, options: &ReadOptions) -> Result<F::Reader> {
        let bytes = fs::read(path).map_err(|error| Error::io(F::INFO.id, error))?;
        F::open(bytes.into(), options)
    }

    fn open_bytes(bytes: Bytes, options: &ReadOptions) -> Result<F::Reader> {
        F::open(bytes, options)
    }

    fn as_log(reader: &F::Reader) -> &dyn LogReader {
        reader
    }
}

/// Options and methods that open a log. Each reader has a function `options` that returns them:
/// `UlogReader::options().strict(true).open("flight.ulg")`.
pub struct OpenOptions<O> {
    read: ReadOptions,
    strict: bool,
    opener: PhantomData<fn() -> O>,
}

impl<O: Open> OpenOptions<O> {
    /// Returns the default options.
    pub fn new() -> Self {
        Self { read: ReadOptions::default(), strict: false, opener: PhantomData }
    }

    /// Sets whether damage is an error. If so, opening reads all of the log.
    #[must_use]
    pub fn strict(mut self, strict: bool) -> Self {
        self.strict = strict;
        self
    }

    /// Sets whether opening reads all of the log, even if its index says what the log contains.
    #[must_use]
    pub fn read_all(mut self, read_all: bool) -> Self {
        self.read.read_all = read_all;
        self
    }

    /// Sets the Unix time of the log's start in nanoseconds, for logs without UTC.
    #[must_use]
    pub fn utc_start(mut self, nanos: i64) -> Self {
        self.read.utc_start = Some(nanos);
        self
    }

    /// Replaces the options that have no method here, such as limits.
    #[must_use]
    pub fn read_options(mut self, options: ReadOptions) -> Self {
        self.read = options;
        self
    }

    /// Opens the log at `path`.
    ///
    /// # Errors
    /// If the file cannot be read or is not a log that the reader can open, and with
    /// [`strict`](Self::strict) if data is lost. Otherwise damage is not an error:
    /// [`LogReader::diagnostics`] lists it.
    pub fn open(self, path: impl AsRef<Path>) -> Result<O::Reader> {
        self.checked(|options| O::open_path(path.as_ref(), options))
    }

    /// Opens the log in `bytes`.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn from_bytes(self, bytes: impl Into<Bytes>) -> Result<O::Reader> {
        let bytes = bytes.into();
        self.checked(|options| O::open_bytes(bytes, options))
    }

    fn checked(mut self, open: impl FnOnce(&ReadOptions) -> Result<O::Reader>) -> Result<O::Reader> {
        self.read.read_all |= self.strict;
        let log = open(&self.read)?;
        if self.strict && !O::as_log(&log).verify().is_empty() {
            return Err(first_loss(O::as_log(&log)));
        }
        Ok(log)
    }
}

impl<O: Open> Default for OpenOptions<O> {
    fn default() -> Self {
        Self::new()
    }
}

impl<O> Clone for OpenOptions<O> {
    fn clone(&self) -> Self {
        Self { read: self.read.clone(), strict: self.strict, opener: PhantomData }
    }
}

impl<O> fmt::Debug for OpenOptions<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenOptions").field("read", &self.read).field("strict", &self.strict).finish()
    }
}

/// Returns the first loss of a log as an error.
fn first_loss(log: &dyn LogReader) -> Error {
    let problems = log.diagnostics().list();
    let first = problems.iter().find(|problem| problem.rule.severity >= Severity::LeftOut);
    let (message, at) = first.map_or_else(
        || ("the log is damaged".to_owned(), None),
        |problem| (problem.message.clone(), Some(problem.range.start)),
    );
    Error::new(log.format().id, ErrorKind::Malformed, at, message)
        .with_next("open the log without `strict` to skip the damage")
}
