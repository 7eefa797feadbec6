//! Errors, which state the log or the file that they are about.

use std::io;
#[cfg(feature = "lake")]
use std::path::Path;

use arrow_schema::ArrowError;
#[cfg(feature = "lake")]
use rovelog::ErrorKind;
use rovelog_export::ExportError;

/// The errors of planning, reading and adding logs to a lake.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScaleError {
    /// A source is not a file, folder or pattern with logs.
    #[error("{0}")]
    Source(String),
    /// A split was made by another version, or was changed.
    #[error("this is not a split: {0}")]
    Split(String),
    /// A log could not be read.
    #[error("{uri}: {error}")]
    Log {
        /// The log.
        uri: String,
        /// Why.
        error: rovelog::Error,
    },
    /// A log has changed since it was planned: its size or its time of change differs.
    #[error("{uri} has changed since it was planned; plan again")]
    Changed {
        /// The log.
        uri: String,
    },
    /// Columns of logs contradict each other or the schema.
    #[error("{0}")]
    Columns(String),
    /// A file of a lake could not be read or written.
    #[error("{path}: {error}")]
    Lake {
        /// The file.
        path: String,
        /// Why.
        error: io::Error,
    },
    /// A folder has files but is not a lake.
    #[error("{0} is not empty, and not a lake: it has no table _logs")]
    NotLake(String),
    /// A worker could not be started, or could not write to the lake.
    #[error("a worker has failed: {0}")]
    Worker(String),
    /// Another program is writing to the lake.
    #[error("{0}")]
    Busy(String),
    /// Columns could not be converted or written.
    #[error(transparent)]
    Export(#[from] ExportError),
}

/// The cause of a failed ingestion. It decides whether trying again can succeed.
#[cfg(feature = "lake")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blame {
    /// The log itself, which fails whenever it is read.
    Log,
    /// The place the log is read from, such as the network or the machine.
    Source,
    /// The place the lake is written to.
    Lake,
}

impl ScaleError {
    #[cfg(feature = "lake")]
    pub(crate) fn blame(&self) -> Blame {
        match self {
            Self::Log { error, .. } | Self::Export(ExportError::Log(error)) => match error.kind {
                ErrorKind::Io | ErrorKind::InvalidArgument | ErrorKind::PartlyRead => Blame::Source,
                _ => Blame::Log,
            },
            Self::Changed { .. } => Blame::Source,
            // The file name comes from a topic of the log, so it fails each time.
            Self::Lake { error, .. } if error.kind() == io::ErrorKind::InvalidFilename => Blame::Log,
            Self::Lake { .. } | Self::Export(ExportError::Io(_)) => Blame::Lake,
            _ => Blame::Log,
        }
    }

    #[cfg(feature = "lake")]
    pub(crate) fn lake(path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::Lake { path: path.as_ref().display().to_string(), error }
    }

    pub(crate) fn log(uri: &str) -> impl Fn(rovelog::Error) -> Self {
        move |error| Self::Log { uri: uri.to_owned(), error }
    }

    /// Returns a function that converts errors from reading batches of a log.
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
