//! Builder for opening a log: [`OpenOptions`].

use std::fmt;
use std::fs;
use std::marker::PhantomData;
use std::path::Path;

use bytes::Bytes;

use crate::diagnostic::Severity;
use crate::error::{Error, ErrorKind, Result};
use crate::format::{Format, ReadOptions};
use crate::reader::LogReader;

/// Builder that sets options and then opens a log.
///
/// Each reader has a function `options` that returns this builder, for example
/// `UlogReader::options().strict(true).open("flight.ulg")`.
pub struct OpenOptions<F> {
    /// Options that are passed to the reader.
    read: ReadOptions,
    /// True if opening returns an error when data is lost.
    strict: bool,
    /// The format of the log. The builder stores no value of this type.
    format: PhantomData<fn() -> F>,
}

impl<F: Format> OpenOptions<F> {
    /// Returns the default options: damage is not an error, and a log with an index is opened by
    /// reading only its index.
    pub fn new() -> Self {
        Self { read: ReadOptions::default(), strict: false, format: PhantomData }
    }

    /// Sets whether opening returns an error when data is lost. In this case, opening reads the
    /// whole log, because damage is only found by reading.
    #[must_use]
    pub fn strict(mut self, strict: bool) -> Self {
        self.strict = strict;
        self
    }

    /// Sets whether opening reads the whole log, even if the log has an index.
    #[must_use]
    pub fn read_all(mut self, read_all: bool) -> Self {
        self.read.read_all = read_all;
        self
    }

    /// Sets the Unix time in nanoseconds at which the data of the log starts. Use this for logs
    /// that do not store UTC.
    #[must_use]
    pub fn utc_start(mut self, nanos: i64) -> Self {
        self.read.utc_start = Some(nanos);
        self
    }

    /// Replaces all read options. Use this method for options that have no method in this builder,
    /// such as limits.
    #[must_use]
    pub fn read_options(mut self, options: ReadOptions) -> Self {
        self.read = options;
        self
    }

    /// Opens the log at `path`. The whole file is read into memory.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, if it is not a log that the reader can open, or
    /// if [`strict`](Self::strict) is set and data is lost. Without `strict`, damage is listed by
    /// [`LogReader::diagnostics`] instead.
    pub fn open(self, path: impl AsRef<Path>) -> Result<F::Reader> {
        let bytes = fs::read(path).map_err(|error| Error::io(F::INFO.id, error))?;
        self.from_bytes(bytes)
    }

    /// Opens the log in `bytes`.
    ///
    /// # Errors
    /// Returns the same errors as [`open`](Self::open).
    pub fn from_bytes(mut self, bytes: impl Into<Bytes>) -> Result<F::Reader> {
        // An index only lists the records that should be in the file. A strict check must read all
        // records.
        self.read.read_all |= self.strict;
        let log = F::open(bytes.into(), &self.read)?;
        if self.strict && !log.verify().is_empty() {
            return Err(first_loss(&log));
        }
        Ok(log)
    }
}

impl<F: Format> Default for OpenOptions<F> {
    fn default() -> Self {
        Self::new()
    }
}

impl<F> Clone for OpenOptions<F> {
    fn clone(&self) -> Self {
        Self { read: self.read.clone(), strict: self.strict, format: PhantomData }
    }
}

impl<F> fmt::Debug for OpenOptions<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenOptions").field("read", &self.read).field("strict", &self.strict).finish()
    }
}

/// Converts the first diagnostic about lost or omitted data to an error.
fn first_loss(log: &dyn LogReader) -> Error {
    let diagnostics = log.diagnostics().list();
    let first = diagnostics.iter().find(|diagnostic| diagnostic.rule.severity >= Severity::LeftOut);
    // The list of diagnostics has a limited length, so the diagnostic of a loss may not be stored.
    let (message, at) = first.map_or_else(
        || ("the log is damaged".to_owned(), None),
        |diagnostic| (diagnostic.message.clone(), Some(diagnostic.range.start)),
    );
    Error::new(log.format().id, ErrorKind::Malformed, at, message)
        .with_next("to skip the damage, open the log without `strict`")
}
