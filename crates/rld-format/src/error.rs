//! Why an RLD file could not be opened, measured or written. Damage is no error: it is a diagnostic.

use rovelog_core::ErrorKind;
use rovelog_core::error::Meaning;

/// The errors of this crate, each with what a user needs to act on it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RldError {
    /// The first bytes are no magic of RLD.
    #[error("not an RLD file: it starts with neither %RLD nor BLR%")]
    NotRld,
    /// The file ends inside its header.
    #[error("the file ends at byte {len}, inside its header of {header} bytes")]
    HeaderCut {
        /// Its length in bytes.
        len: u64,
        /// The length of the header, as far as it is known.
        header: u64,
    },
    /// A version that nobody has described.
    #[error("unsupported file version {version} after the magic {magic}; supported: BLR% 1 and %RLD 2 to 4")]
    UnknownVersion {
        /// The version that the header states.
        version: u16,
        /// The magic as text.
        magic: String,
    },
    /// A header that is too large to be one.
    #[error("a header of {header} bytes, more than {max}")]
    HeaderTooLarge {
        /// Its length.
        header: u64,
        /// The limit.
        max: u64,
    },
    /// A header from which no rows can be found.
    #[error("the rows of this log cannot be found: {why}")]
    NoLayout {
        /// Why.
        why: String,
    },
    /// A channel that the log does not have.
    #[error("the log has no channel {name:?}")]
    NoChannel {
        /// The name asked for.
        name: String,
    },
    /// Something asked for that this log cannot give.
    #[error("{why}")]
    Refused {
        /// What and why.
        why: String,
    },
    /// Parts that do not belong together.
    #[error("part {part} is no part of this log: {why}")]
    NotAPart {
        /// The number of the part, the first file being 0.
        part: usize,
        /// What differs.
        why: &'static str,
    },
    /// A header, a block or a value that cannot be written.
    #[error("this cannot be written as RLD: {why}")]
    NotWritable {
        /// Why.
        why: String,
    },
    /// Text that is not the logger's CSV.
    #[error("line {line} is not CSV of the RocketLogger: {why}")]
    BadCsv {
        /// The line, from 1.
        line: u64,
        /// Why.
        why: String,
    },
    /// A file that is no calibration.
    #[error("not a calibration file: {why}")]
    NotCalibration {
        /// Why.
        why: String,
    },
    /// The operating system refused to read or write.
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
            Self::NotRld | Self::NotCalibration { .. } => (ErrorKind::NotThisFormat, Some(0), None),
            Self::HeaderCut { len, .. } => {
                (ErrorKind::Truncated, Some(*len), Some("copy the log again from the logger"))
            }
            Self::UnknownVersion { .. } => {
                (ErrorKind::Unsupported, Some(4), Some("update rovelog, or report the log to its authors"))
            }
            Self::HeaderTooLarge { .. } => {
                (ErrorKind::LimitExceeded, Some(48), Some("the lead-in is damaged: copy the log again"))
            }
            Self::NoLayout { .. } => {
                (ErrorKind::Malformed, None, Some("list the problems of the header: rovelog check FILE"))
            }
            Self::NoChannel { .. } => {
                (ErrorKind::InvalidArgument, None, Some("list the channels: rovelog schema FILE"))
            }
            Self::NotAPart { .. } => (
                ErrorKind::InvalidArgument,
                None,
                Some("name the files of one split recording, in order, or leave that part out"),
            ),
            Self::Refused { .. } | Self::NotWritable { .. } | Self::BadCsv { .. } => {
                (ErrorKind::InvalidArgument, None, None)
            }
            Self::Io(_) => (ErrorKind::Io, None, None),
        }
    }
}

rovelog_core::explained!(RldError, crate::wire::INFO.id);
