//! Errors of this crate. Each error states the log or file that caused it.

use std::io;
#[cfg(feature = "lake")]
use std::path::Path;

use arrow_schema::ArrowError;
#[cfg(feature = "lake")]
use rovelog::ErrorKind;
use rovelog_export::ExportError;

#[cfg(feature = "lake")]
use crate::lake::Failure;

/// An error that occurred while work was divided into splits, while logs were read, or while logs
/// were added to a lake.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScaleError {
    /// A source is invalid, does not exist, or contains no logs.
    #[error("{0}")]
    Source(String),
    /// A text cannot be parsed as a split, which is a unit of work, because a different version
    /// wrote it or because it was changed.
    #[error("the text is not a valid split, which is a part of the logs to read: {0}")]
    Split(String),
    /// A log could not be read.
    #[error("{uri}: {error}")]
    Log {
        /// Path or URL of the log.
        uri: String,
        /// Error that occurred when the log was read.
        error: rovelog::Error,
    },
    /// A log has changed since it was found. Its size or the time of its last change differs.
    #[error("the log {uri} has changed since the splits were planned; plan the splits again")]
    Changed {
        /// Path or URL of the log.
        uri: String,
    },
    /// The columns of two logs contradict each other, or the columns of a log contradict the schema
    /// of all logs.
    #[error("{0}")]
    Columns(String),
    /// A file of a lake could not be read or written.
    #[error("{path}: {error}")]
    Lake {
        /// Path of the file.
        path: String,
        /// Error that occurred when the file was read or written.
        error: io::Error,
    },
    /// A folder contains files, but is not a lake.
    #[error("the folder {0} is not empty, but is not a lake, because it has no table _logs")]
    NotLake(String),
    /// A worker process that writes the files of a lake could not be started, or could not write
    /// them.
    #[error("a worker process failed: {0}")]
    Worker(String),
    /// Columns could not be converted or written.
    #[error(transparent)]
    Export(#[from] ExportError),
}

impl ScaleError {
    /// Returns the failure of a worker that this error causes.
    #[cfg(feature = "lake")]
    pub(crate) fn failure(&self) -> Failure {
        let why = self.to_string();
        match self {
            Self::Log { error, .. } | Self::Export(ExportError::Log(error)) => match error.kind {
                // The cause is the place from which the log is read, such as the network or the
                // machine, so the error can be temporary.
                ErrorKind::Io | ErrorKind::InvalidArgument | ErrorKind::PartlyRead => Failure::Unread(why),
                _ => Failure::Refused(why),
            },
            Self::Changed { .. } => Failure::Unread(why),
            // The file name comes from the name of a topic, so another attempt would fail, too.
            Self::Lake { error, .. } if error.kind() == io::ErrorKind::InvalidFilename => {
                Failure::Refused(why)
            }
            Self::Lake { .. } | Self::Export(ExportError::Io(_)) => Failure::Stopped(why),
            _ => Failure::Refused(why),
        }
    }

    /// Returns a function that adds the path of a file in a lake to an I/O error.
    #[cfg(feature = "lake")]
    pub(crate) fn lake(path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::Lake { path: path.as_ref().display().to_string(), error }
    }

    /// Returns a function that adds the path or URL of a log to an error.
    pub(crate) fn log(uri: &str) -> impl Fn(rovelog::Error) -> Self {
        move |error| Self::Log { uri: uri.to_owned(), error }
    }

    /// Returns a function that adds the path or URL of a log to an error from reading its batches.
    #[cfg(feature = "lake")]
    pub(crate) fn batch(uri: &str) -> impl Fn(ArrowError) -> Self {
        move |error| match error {
            ArrowError::ExternalError(source) => match source.downcast::<rovelog::Error>() {
                Ok(error) => Self::Log { uri: uri.to_owned(), error: *error },
                Err(source) => Self::Columns(format!("{uri}: {source}")),
            },
            error => Self::Columns(format!("{uri}: {error}")),
        }
    }
}

impl From<ArrowError> for ScaleError {
    fn from(error: ArrowError) -> Self {
        Self::Export(error.into())
    }
}
