//! The error type of all fallible functions. It has a coarse kind and a file offset, and wraps the
//! error type of the format crate.

use std::borrow::Cow;
use std::fmt;

use crate::internal::memory;

/// Result type whose default error is Rovelog's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Coarse kind of an error. It determines the exit code of the program and the Python exception.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The operating system reported an error.
    Io,
    /// The file does not start with the signature of a supported format.
    NotThisFormat,
    /// The bytes violate the specification of the format.
    Malformed,
    /// The input ends before any record can be read.
    Truncated,
    /// The log is valid, but uses a feature that this reader does not support.
    Unsupported,
    /// A limit that protects against malicious input was exceeded.
    LimitExceeded,
    /// The caller requested something that the log does not contain.
    InvalidArgument,
    /// The requested data is in parts of the file that were not read.
    PartlyRead,
    /// Some of the records in the index of the log are damaged or missing. All other records were
    /// returned.
    DataLost,
}

impl ErrorKind {
    /// Returns the name of the kind as used in JSON output and in tests.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Io => "io",
            Self::NotThisFormat => "not_this_format",
            Self::Malformed => "malformed",
            Self::Truncated => "truncated",
            Self::Unsupported => "unsupported",
            Self::LimitExceeded => "limit_exceeded",
            Self::InvalidArgument => "invalid_argument",
            Self::PartlyRead => "partly_read",
            Self::DataLost => "data_lost",
        }
    }
}

/// Summary of a format crate's error, for callers that do not need the details of this error.
///
/// ```
/// use rovelog_core::ErrorKind;
/// use rovelog_core::error::Meaning;
///
/// let meaning: Meaning = ErrorKind::Truncated.at(12).hint("copy the log again");
/// assert_eq!((meaning.offset, meaning.next), (Some(12), Some("copy the log again")));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Meaning {
    /// Coarse kind of the error.
    pub kind: ErrorKind,
    /// Offset of the byte that caused the error.
    pub offset: Option<u64>,
    /// Next step for the user.
    pub next: Option<&'static str>,
}

impl Meaning {
    /// Sets the next step for the user.
    #[must_use]
    pub fn hint(self, next: &'static str) -> Self {
        Self { next: Some(next), ..self }
    }
}

impl From<ErrorKind> for Meaning {
    fn from(kind: ErrorKind) -> Self {
        Self { kind, offset: None, next: None }
    }
}

impl ErrorKind {
    /// Returns the meaning of an error that the byte at `offset` caused.
    pub fn at(self, offset: u64) -> Meaning {
        Meaning { offset: Some(offset), ..self.into() }
    }

    /// Returns the meaning of an error for which the user can take the step `next`.
    pub fn hint(self, next: &'static str) -> Meaning {
        Meaning::from(self).hint(next)
    }
}

/// An error with its format, the file offset that caused it, and a next step for the user.
#[derive(Debug)]
pub struct Error {
    /// Identifier of the format, or `rovelog` if the format is unknown.
    pub format: &'static str,
    /// Coarse kind of the error, which determines the exit code of the program and the Python
    /// exception.
    pub kind: ErrorKind,
    /// Offset in the file of the byte that caused the error, if there is such a byte.
    pub offset: Option<u64>,
    /// Suggested next step for the user, in one line.
    pub next: Option<Cow<'static, str>>,
    /// The wrapped error. Its message is displayed.
    source: Box<dyn std::error::Error + Send + Sync>,
}

impl Error {
    /// Creates an error with the message of `source`.
    pub fn new(
        format: &'static str,
        kind: ErrorKind,
        offset: Option<u64>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self { format, kind, offset, next: None, source: source.into() }
    }

    /// Creates an error from a format crate's error and its meaning.
    pub fn explained(
        format: &'static str,
        Meaning { kind, offset, next }: Meaning,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self { next: next.map(Cow::Borrowed), ..Self::new(format, kind, offset, source) }
    }

    /// Creates an error from an operating-system error that occurred while a log of this format was
    /// read. The operating-system error is stored as the source directly, so that callers can query
    /// its kind.
    pub fn io(format: &'static str, error: std::io::Error) -> Self {
        let next = (error.kind() == std::io::ErrorKind::OutOfMemory).then_some(memory::NEXT);
        Self::explained(format, Meaning { next, ..ErrorKind::Io.into() }, error)
    }

    /// Sets the suggested next step.
    #[must_use]
    pub fn with_next(mut self, next: impl Into<Cow<'static, str>>) -> Self {
        self.next = Some(next.into());
        self
    }

    /// Returns the wrapped error of the format crate.
    pub fn get_ref(&self) -> &(dyn std::error::Error + Send + Sync + 'static) {
        &*self.source
    }
}

/// Creates the error for a record that was in the file when the log was opened, but no longer is.
/// Another program can change a memory-mapped file at any time.
#[doc(hidden)]
pub fn changed(at: u64) -> std::io::Error {
    let what = "was changed by another program while the log was read; copy the log, then read the copy";
    std::io::Error::other(format!("the record at byte {at} {what}"))
}

/// Implements `From`, so that the error type of a format crate can be converted to [`Error`]. The
/// error type must have a method `fn meaning(&self) -> Meaning` and a variant `Io`.
#[macro_export]
macro_rules! impl_from_format_error {
    ($error:ident, $format:expr) => {
        impl From<$error> for $crate::Error {
            fn from(error: $error) -> Self {
                let meaning = error.meaning();
                match error {
                    $error::Io(error) => Self::io($format, error),
                    error => Self::explained($format, meaning, error),
                }
            }
        }
    };
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.source, f)
    }
}

impl std::error::Error for Error {
    // `Display` already shows the message of the wrapped error. This function therefore returns the
    // source of the wrapped error. Otherwise, the same message would be printed twice.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.source()
    }
}
