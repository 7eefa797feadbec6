//! Errors of exports.

use std::io;

use arrow_schema::ArrowError;
#[cfg(feature = "parquet")]
use parquet::errors::ParquetError;
use rovelog::core::internal::memory;

/// Error of an export.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The log could not be read.
    #[error(transparent)]
    Log(#[from] rovelog::Error),
    /// Writing to the output failed.
    #[error(transparent)]
    Io(io::Error),
    /// The output format cannot represent the data.
    #[error("the data cannot be written in this format: {0}")]
    Format(String),
    /// The crate was built without support for the output format.
    #[error("this build cannot write {what}, because it lacks the feature `{feature}`")]
    NotBuiltIn {
        /// Name of the output format.
        what: &'static str,
        /// Name of the feature of `rovelog-export` that adds the output format.
        feature: &'static str,
    },
}

impl From<io::Error> for ExportError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<rovelog::rosbag12::BagError> for ExportError {
    fn from(error: rovelog::rosbag12::BagError) -> Self {
        match error {
            rovelog::rosbag12::BagError::Io(error) => Self::Io(error),
            error => Self::Log(error.into()),
        }
    }
}

impl From<rovelog::rld_format::RldError> for ExportError {
    fn from(error: rovelog::rld_format::RldError) -> Self {
        match error {
            rovelog::rld_format::RldError::Io(error) => Self::Io(error),
            error => Self::Log(error.into()),
        }
    }
}

impl From<ArrowError> for ExportError {
    fn from(error: ArrowError) -> Self {
        match error {
            ArrowError::IoError(_, error) => Self::Io(error),
            // Batches are read through Arrow's iterator, which wraps the errors of the log reader.
            ArrowError::ExternalError(source) => match source.downcast::<rovelog::Error>() {
                Ok(error) => Self::Log(*error),
                Err(source) => Self::Format(source.to_string()),
            },
            error => Self::Format(error.to_string()),
        }
    }
}

#[cfg(feature = "parquet")]
impl From<ParquetError> for ExportError {
    fn from(error: ParquetError) -> Self {
        match error {
            ParquetError::External(source) => match source.downcast::<io::Error>() {
                Ok(error) => Self::Io(*error),
                Err(source) => Self::Format(source.to_string()),
            },
            error => Self::Format(error.to_string()),
        }
    }
}

/// Checks that at least `bytes` bytes of memory can be allocated for the next part of an output.
///
/// # Errors
/// Returns an error if memory is not sufficient. It is an error of the log, because an error of the
/// output would advise another disk.
pub(crate) fn check_memory(bytes: usize) -> Result<(), ExportError> {
    memory::check(bytes).map_err(|error| ExportError::Log(rovelog::Error::io("rovelog", error)))
}

/// Returns advice for the user, after the operating system refused to write an output file.
pub fn next_step(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "check the path, because its folder does not exist",
        io::ErrorKind::PermissionDenied => "write to a folder in which you may create files",
        io::ErrorKind::AlreadyExists => "choose another name, or move the existing file away",
        io::ErrorKind::StorageFull => "free disk space, or write to another disk",
        io::ErrorKind::QuotaExceeded => "free some of your disk quota, or write to another disk",
        io::ErrorKind::FileTooLarge => {
            "write to a file system that allows larger files, or raise the limit with ulimit -f"
        }
        io::ErrorKind::ReadOnlyFilesystem => "write to a disk that is not read-only",
        // Other errors are, for example, hardware errors or a network file system that is not
        // available.
        _ => "write to another disk, or try again",
    }
}
