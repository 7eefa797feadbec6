//! Why a remote file could not be read or written. No message has an address: these may have
//! secrets in them.

use std::error::Error as StdError;
use std::time::Duration;

use rovelog_core::{Error, ErrorKind};

/// The errors of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// Text that is not an address.
    #[error("this is not an address: SCHEME://HOST/PATH is expected")]
    BadAddress,
    /// An address of a kind that is not read.
    #[error("addresses of the kind {scheme}:// are not supported")]
    UnknownScheme {
        /// Its scheme.
        scheme: String,
    },
    /// An address of a folder.
    #[error("the address ends without the name of a file")]
    NoFile,
    /// Options with which no connection can be made.
    #[error("no connection can be made: {why}")]
    BadOptions {
        /// What is missing or wrong.
        why: String,
    },
    /// There is no such file.
    #[error("no such file on the server")]
    NotFound,
    /// The server refuses the file to this user.
    #[error("the server refuses access")]
    Denied,
    /// A folder of a web server.
    #[error("a web server has no list of its files")]
    NoLists,
    /// The server does not read by ranges.
    #[error("the server does not support range requests, so only the whole file can be read")]
    NoRanges,
    /// The file is not the one that the first answer was about.
    #[error("the file was changed on the server while it was read")]
    Changed,
    /// A server that sends nothing for this time.
    #[error("the server sent nothing for {} s", .after.as_secs_f64())]
    Stalled {
        /// The limit.
        after: Duration,
    },
    /// An answer of another length than asked for.
    #[error("the server sent {got} bytes instead of {asked}, from byte {at}")]
    Short {
        /// Offset of the first byte.
        at: u64,
        /// Bytes that were asked for.
        asked: u64,
        /// Bytes that came.
        got: u64,
    },
    /// More bytes than are allowed.
    #[error("this needs {bytes} bytes of the remote file, {limit} are allowed")]
    TooMany {
        /// Bytes moved so far and those needed now.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// An output that exists.
    #[error("the output already exists")]
    Exists,
    /// Any other answer, or none.
    #[error("the server cannot be read: {why}")]
    Failed {
        /// The innermost cause.
        why: String,
    },
    /// An object through which a file is read has failed.
    #[error(transparent)]
    Object(Box<dyn StdError + Send + Sync>),
    /// The copy on this machine cannot be written or read.
    #[error("the copy of the remote file in the folder for temporary files: {0}")]
    Copy(#[from] std::io::Error),
}

impl RemoteError {
    fn next(&self) -> Option<&'static str> {
        match self {
            Self::BadAddress | Self::UnknownScheme { .. } => {
                Some("use s3://, gs://, az://, https:// or http://")
            }
            Self::NoFile | Self::NoLists => Some("name each file"),
            Self::Denied | Self::BadOptions { .. } => Some(
                "set the credentials in the environment (AWS_ACCESS_KEY_ID and its like; AWS_SKIP_SIGNATURE=true for \
                 a public bucket)",
            ),
            Self::NotFound => Some("check the address, and that you may list it"),
            Self::Changed => Some("read it again when it is complete"),
            Self::Stalled { .. } | Self::Short { .. } | Self::Failed { .. } => {
                Some("check the address and the connection, and try again")
            }
            Self::Copy(_) => Some("free disk space, or set TMPDIR to another disk"),
            Self::NoRanges | Self::TooMany { .. } | Self::Exists | Self::Object(_) => None,
        }
    }

    fn kind(&self) -> ErrorKind {
        match self {
            Self::BadAddress
            | Self::UnknownScheme { .. }
            | Self::NoFile
            | Self::NoLists
            | Self::BadOptions { .. } => ErrorKind::InvalidArgument,
            Self::NoRanges => ErrorKind::PartlyRead,
            Self::TooMany { .. } => ErrorKind::LimitExceeded,
            _ => ErrorKind::Io,
        }
    }

    /// Returns whether the same request may be answered later.
    pub(crate) fn is_passing(&self) -> bool {
        matches!(self, Self::Stalled { .. } | Self::Short { .. } | Self::Failed { .. })
    }
}

impl From<object_store::Error> for RemoteError {
    fn from(error: object_store::Error) -> Self {
        use object_store::Error as Store;
        match error {
            Store::NotFound { .. } => Self::NotFound,
            Store::PermissionDenied { .. } | Store::Unauthenticated { .. } => Self::Denied,
            Store::Precondition { .. } => Self::Changed,
            Store::AlreadyExists { .. } => Self::Exists,
            Store::NotSupported { .. } => Self::NoRanges,
            other => Self::Failed { why: innermost(&other) },
        }
    }
}

impl From<RemoteError> for Error {
    fn from(error: RemoteError) -> Self {
        let (kind, next) = (error.kind(), error.next());
        let error = match error {
            RemoteError::Object(error) => return Self::new("rovelog", kind, None, error),
            error => error,
        };
        let made = Self::new("rovelog", kind, None, error);
        match next {
            Some(next) => made.with_next(next),
            None => made,
        }
    }
}

/// Returns the text of the innermost cause. The texts around it have the address in them.
fn innermost(error: &(dyn StdError + 'static)) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    let text = cause.to_string();
    // The body of an answer is left out: servers repeat the address in it.
    if let Some((_, status)) = text.split_once("status code: ") {
        return format!("it answered {}", status.split(':').next().unwrap_or_default());
    }
    if text.contains("://") { "the request failed".to_owned() } else { text }
}
