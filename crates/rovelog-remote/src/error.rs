//! Errors of remote files. No error message contains an address, because an address may contain
//! secrets.

use std::error::Error as StdError;
use std::time::Duration;

use rovelog_core::{Error, ErrorKind};

use crate::redirect::Refused;

/// An error that occurred while reading, listing or writing remote files.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// The text given as an address is not a URL.
    #[error("the address is not valid; it must have the form SCHEME://HOST/PATH")]
    BadAddress,
    /// The scheme of the address is not supported.
    #[error("addresses that start with {scheme}:// are not supported")]
    UnknownScheme {
        /// Scheme of the address.
        scheme: String,
    },
    /// The address names a folder instead of a file.
    #[error("the address names a folder, because it does not end with a file name")]
    NoFile,
    /// The options do not suffice to connect to the server.
    #[error("cannot connect to the server: {why}")]
    BadOptions {
        /// Description of the setting that is missing or invalid.
        why: String,
    },
    /// The server has no such file.
    #[error("the server has no such file")]
    NotFound,
    /// The server denies this user access to the file.
    #[error("the server denies access to the file")]
    Denied,
    /// The address is a folder of a web server, which cannot be listed.
    #[error("the address is a folder on a web server, and such folders cannot be listed")]
    NoLists,
    /// The address has a user, a password or a query, and would be stored.
    #[error("the address has a user, a password or a query, and such an address cannot be stored in a lake")]
    SecretAddress,
    /// The server does not support range requests.
    #[error("the server does not support range requests, so only the whole file can be read")]
    NoRanges,
    /// The size or the version of the file is different from the first response. The file was
    /// probably changed during the download.
    #[error("the file on the server was changed while it was being read, so reading stopped")]
    Changed,
    /// The server has sent no data until the timeout.
    #[error("the server sent no data for {} s", .after.as_secs_f64())]
    Stalled {
        /// Timeout that was exceeded.
        after: Duration,
    },
    /// The response contains fewer or more bytes than requested.
    #[error("the server sent {got} bytes from offset {at}, but {asked} bytes were requested")]
    Short {
        /// Offset of the first requested byte.
        at: u64,
        /// Number of bytes requested.
        asked: u64,
        /// Number of bytes received.
        got: u64,
    },
    /// The download would exceed the limit set by the user.
    #[error("the command needs to download {bytes} bytes of the remote file, but only {limit} are allowed")]
    TooMany {
        /// Number of bytes downloaded so far, plus the number of bytes needed now.
        bytes: u64,
        /// Maximum number of bytes that the user allows.
        limit: u64,
    },
    /// The server redirects the request, and the redirect is not followed.
    #[error("cannot read from the server: {why}")]
    Redirects {
        /// Description of the redirect.
        why: String,
    },
    /// The output file already exists, and the caller did not request to replace it.
    #[error("the output file already exists")]
    Exists,
    /// The request failed for another reason.
    #[error("cannot read from the server: {why}")]
    Failed {
        /// Text of the innermost error, which is the original cause.
        why: String,
    },
    /// An [`Origin`](crate::Origin) implemented by the caller returned an error.
    #[error(transparent)]
    Object(Box<dyn StdError + Send + Sync>),
    /// The local copy of the file cannot be written or read.
    #[error("the temporary copy of the remote file cannot be written or read: {0}")]
    Copy(#[from] std::io::Error),
}

impl RemoteError {
    /// Returns advice for the user on what to do next, which is shown below the error message.
    fn advice(&self) -> Option<&'static str> {
        match self {
            Self::BadAddress | Self::UnknownScheme { .. } => {
                Some("use an address that starts with s3://, gs://, az://, https:// or http://")
            }
            Self::SecretAddress => {
                Some("set credentials as environment variables, or download the log first")
            }
            Self::NoFile | Self::NoLists => Some("name each file by its full address"),
            Self::Denied | Self::BadOptions { .. } => Some(
                "set the credentials as environment variables, such as AWS_ACCESS_KEY_ID, or \
                 AWS_SKIP_SIGNATURE=true for a public bucket",
            ),
            Self::Redirects { .. } => {
                Some("name the final address, or use --follow-redirects to read from other hosts")
            }
            Self::NotFound => Some("check the address, and whether you have access to the file"),
            Self::Changed => Some("run the command again when no program writes to the file"),
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
            | Self::SecretAddress
            | Self::BadOptions { .. } => ErrorKind::InvalidArgument,
            Self::NoRanges => ErrorKind::PartlyRead,
            Self::TooMany { .. } => ErrorKind::LimitExceeded,
            _ => ErrorKind::Io,
        }
    }

    /// Returns true if the same request may succeed when it is repeated.
    pub(crate) fn is_transient(&self) -> bool {
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
            other => {
                let cause = innermost(&other);
                match cause.downcast_ref() {
                    Some(Refused(why)) => Self::Redirects { why: why.clone() },
                    None => Self::Failed { why: shown(cause) },
                }
            }
        }
    }
}

impl From<RemoteError> for Error {
    fn from(error: RemoteError) -> Self {
        let (kind, advice) = (error.kind(), error.advice());
        let error = match error {
            // An error returned by the caller's own code is passed on unchanged, so that Python
            // raises the original exception.
            RemoteError::Object(error) => return Self::new("rovelog", kind, None, error),
            error => error,
        };
        let core_error = Self::new("rovelog", kind, None, error);
        match advice {
            Some(advice) => core_error.with_next(advice),
            None => core_error,
        }
    }
}

/// Returns the innermost error, which is the original cause.
fn innermost<'e>(mut error: &'e (dyn StdError + 'static)) -> &'e (dyn StdError + 'static) {
    while let Some(source) = error.source() {
        error = source;
    }
    error
}

/// Returns the text of the innermost error. The outer errors contain the address, which may be
/// secret.
fn shown(cause: &dyn StdError) -> String {
    let text = cause.to_string();
    // Only the HTTP status is shown. Some servers repeat the address in the body of an error
    // response.
    if let Some((_, status)) = text.split_once("status code: ") {
        return format!("it responded with status {}", status.split(':').next().unwrap_or_default());
    }
    if text.contains("://") { "the request failed".to_owned() } else { text }
}
