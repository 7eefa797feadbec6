//! Errors that occur when RLD files are opened, analyzed or written. Damage in a file is not an
//! error but a diagnostic.

use rovelog_core::ErrorKind;
use rovelog_core::error::Meaning;

/// The errors of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RldError {
    /// The file does not start with a magic number of RLD.
    #[error("the file is not an RLD file, because it starts with neither %RLD nor BLR%")]
    NotRld,
    /// The file ends inside its header.
    #[error("the file is truncated at byte {len}, inside its header of {header} bytes")]
    HeaderCut {
        /// Size of the file in bytes.
        len: u64,
        /// Size of the header in bytes, as far as it is known.
        header: u64,
    },
    /// The version in the header is not supported.
    #[error(
        "the RLD file has version {version} and starts with {magic}, but only BLR% with version 1 and %RLD \
         with versions 2 to 4 can be read"
    )]
    UnknownVersion {
        /// The unsupported version number.
        version: u16,
        /// Magic number of the file, as text.
        magic: String,
    },
    /// The header is longer than the supported maximum.
    #[error("the header states a size of {header} bytes, but the limit is {max} bytes")]
    HeaderTooLarge {
        /// Size of the header in bytes.
        header: u64,
        /// Maximum size of a header in bytes.
        max: u64,
    },
    /// The header does not allow rows to be located.
    #[error("the rows of this log cannot be located: {why}")]
    NoLayout {
        /// Reason why rows cannot be located.
        why: String,
    },
    /// The name of a power is not the product of a voltage and a current of the log.
    #[error(
        "{text:?} is not a voltage times a current of this log, such as V1*I1 or (V1-V2)*I1; the log has the \
         currents {currents}"
    )]
    NotAPower {
        /// The invalid name.
        text: String,
        /// Names of the currents of the log.
        currents: String,
    },
    /// The log has no channel with this name.
    #[error("the log has no channel {name:?}")]
    NoChannel {
        /// The requested name.
        name: String,
    },
    /// The request is invalid or impossible for this log.
    #[error("{why}")]
    Refused {
        /// Reason why the request was refused.
        why: String,
    },
    /// The files are not parts of the same recording.
    #[error("part {part} does not belong to this log: {why}")]
    NotAPart {
        /// Number of the file that does not match. The first file has the number 0.
        part: usize,
        /// Difference between the file and the first file.
        why: &'static str,
    },
    /// The header, block or value cannot be written.
    #[error("the data cannot be written as RLD, because {why}")]
    NotWritable {
        /// Reason why the header, block or value cannot be written.
        why: String,
    },
    /// The text is not the logger's CSV.
    #[error("line {line} is not valid RocketLogger CSV: {why}")]
    BadCsv {
        /// Line number, counted from 1.
        line: u64,
        /// Reason why the line is invalid.
        why: String,
    },
    /// The file is not a calibration file.
    #[error("the file is not a calibration file: {why}")]
    NotCalibration {
        /// Reason why the file was refused.
        why: String,
    },
    /// An error of the operating system during reading or writing.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl RldError {
    pub(crate) fn refused(why: impl Into<String>) -> Self {
        Self::Refused { why: why.into() }
    }

    pub(crate) fn not_writable(why: impl Into<String>) -> Self {
        Self::NotWritable { why: why.into() }
    }
}

impl RldError {
    fn meaning(&self) -> Meaning {
        match self {
            Self::NotRld => ErrorKind::NotThisFormat.at(0).hint(
                "look for another copy of the log; this file may also be an RLD file with a badly \
                 damaged header",
            ),
            Self::NotCalibration { .. } => ErrorKind::NotThisFormat.at(0),
            Self::HeaderCut { len, .. } => {
                ErrorKind::Truncated.at(*len).hint("copy the log again from the logger")
            }
            Self::UnknownVersion { .. } => ErrorKind::Unsupported.at(4).hint(
                "update rovelog; if the latest version cannot read the log, report it to the authors of \
                 rovelog",
            ),
            Self::HeaderTooLarge { .. } => {
                ErrorKind::LimitExceeded.at(48).hint("copy the log again, because its header is damaged")
            }
            Self::NoLayout { .. } => {
                ErrorKind::Malformed.hint("list the problems of the header: rovelog check FILE")
            }
            Self::NoChannel { .. } => {
                ErrorKind::InvalidArgument.hint("list the channels: rovelog schema FILE")
            }
            Self::NotAPower { .. } => {
                ErrorKind::InvalidArgument.hint("list the channels of the log: rovelog schema FILE")
            }
            Self::NotAPart { .. } => ErrorKind::InvalidArgument.hint(
                "name the files of one split recording, or recordings of one logger with equal channels",
            ),
            Self::Refused { .. } | Self::NotWritable { .. } | Self::BadCsv { .. } => {
                ErrorKind::InvalidArgument.into()
            }
            Self::Io(_) => ErrorKind::Io.into(),
        }
    }
}

rovelog_core::impl_from_format_error!(RldError, crate::wire::INFO.id);
