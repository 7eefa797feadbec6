//! The error of every fallible call: coarse kind, absolute offset, the format's own error inside.

use std::borrow::Cow;
use std::fmt;

/// A result with Rovelog's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The coarse kind of an error, which decides the exit code and the Python exception.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The operating system refused.
    Io,
    /// The first bytes are not those of a format that is built in.
    NotThisFormat,
    /// The bytes contradict the format.
    Malformed,
    /// The input ends before anything can be read.
    Truncated,
    /// The log is valid, but uses what this reader does not support.
    Unsupported,
    /// A limit against hostile input was passed.
    LimitExceeded,
    /// The caller asked for something the log does not have.
    InvalidArgument,
    /// What was asked for is in parts of the file that were not read.
    PartlyRead,
    /// Records that the index of the log names are damaged or missing; all others were returned.
    DataLost,
}

impl ErrorKind {
    /// Returns the word used in JSON and in tests.
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

/// Meaning of an error of a format crate for callers that do not need its details: the coarse kind,
/// the offset of the byte that caused it, and the next step.
pub type Meaning = (ErrorKind, Option<u64>, Option<&'static str>);

/// An error with the format it came from, the byte where it arose and what to do next.
#[derive(Debug)]
pub struct Error {
    /// The format's id, or `rovelog` if no format is known.
    pub format: &'static str,
    /// The coarse kind.
    pub kind: ErrorKind,
    /// Offset from the start of the file, if one byte caused the error.
    pub offset: Option<u64>,
    /// What the user can do next, one line.
    pub next: Option<Cow<'static, str>>,
    source: Box<dyn std::error::Error + Send + Sync>,
}

impl Error {
    /// Returns an error whose message is `source`.
    pub fn new(
        format: &'static str,
        kind: ErrorKind,
        offset: Option<u64>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self { format, kind, offset, next: None, source: source.into() }
    }

    /// Returns the error `source` of a format crate with what it means.
    pub fn explained(
        format: &'static str,
        (kind, offset, next): Meaning,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self { next: next.map(Cow::Borrowed), ..Self::new(format, kind, offset, source) }
    }

    /// Returns an operating-system error while reading `format`. It is the source itself, so that
    /// its kind can be asked for.
    pub fn io(format: &'static str, error: std::io::Error) -> Self {
        Self::new(format, ErrorKind::Io, None, error)
    }

    /// Returns the same error with the next step.
    #[must_use]
    pub fn with_next(mut self, next: impl Into<Cow<'static, str>>) -> Self {
        self.next = Some(next.into());
        self
    }

    /// Returns the format's own error.
    pub fn get_ref(&self) -> &(dyn std::error::Error + Send + Sync + 'static) {
        &*self.source
    }
}

/// For implementations: returns the error for a record that was found when the log was opened, and
/// is not there any more. Another program can change a mapped file at any time.
#[doc(hidden)]
pub fn changed(at: u64) -> std::io::Error {
    let what = "was changed by another program while the log was read; copy the log, then read the copy";
    std::io::Error::other(format!("the record at byte {at} {what}"))
}

/// Makes an [`Error`] of a format crate's own error, which has `fn meaning(&self) -> Meaning` and a
/// variant `Io`.
#[macro_export]
macro_rules! explained {
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
    // The message is the source's own, so the chain goes on behind it.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.source()
    }
}
