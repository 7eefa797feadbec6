//! Why a ULog could not be opened. Damage is no error: it is a diagnostic.

use rovelog_core::{Error, ErrorKind};

/// The errors of this crate, each with what a user needs to act on it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UlogError {
    /// The first bytes are not the ULog magic.
    #[error("not a ULog: the file does not begin with 55 4c 6f 67 01 12 35")]
    NotUlog,
    /// The file ends inside its 16-byte header.
    #[error("the file ends at byte {len}, inside the 16-byte header of a ULog")]
    HeaderCut {
        /// Its length in bytes.
        len: u64,
    },
    /// Incompatible flag bits are set that this reader does not know: the log must be refused.
    #[error("incompatible flag {bits} set at byte 27: this log uses a newer ULog than this reader knows")]
    IncompatibleFlags {
        /// The bits by name: `byte 0 bit 1`.
        bits: String,
    },
    /// An encrypted log, or the file with its key.
    #[error("an encrypted ULog {what}, not a plain one")]
    Encrypted {
        /// `log` or `key file`.
        what: &'static str,
    },
    /// A topic's definition does not allow decoding its rows.
    #[error("topic {topic} cannot be decoded: {why}")]
    Undecodable {
        /// The topic.
        topic: String,
        /// Why.
        why: String,
    },
    /// A row that is neither the full nor the trimmed size of its format.
    #[error("a row of {got} bytes, where {topic} has {trimmed} or {full}")]
    RowSize {
        /// The topic.
        topic: String,
        /// The bytes given.
        got: usize,
        /// The size without trailing padding.
        trimmed: usize,
        /// The size of all fields.
        full: usize,
    },
    /// The operating system refused to read.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl From<UlogError> for Error {
    fn from(error: UlogError) -> Self {
        let (kind, offset, next) = match &error {
            UlogError::NotUlog => (ErrorKind::NotThisFormat, Some(0), None),
            UlogError::HeaderCut { len } => {
                (ErrorKind::Truncated, Some(*len), Some("copy the log again from its source"))
            }
            UlogError::IncompatibleFlags { .. } => {
                (ErrorKind::Unsupported, Some(27), Some("update rovelog, or report the log to its authors"))
            }
            UlogError::Encrypted { .. } => {
                (ErrorKind::Unsupported, Some(0), Some("decrypt it with the private key of its owner"))
            }
            UlogError::Undecodable { .. } | UlogError::RowSize { .. } => (ErrorKind::Malformed, None, None),
            UlogError::Io(_) => (ErrorKind::Io, None, None),
        };
        let core = Error::new(crate::ID, kind, offset, error);
        match next {
            Some(next) => core.with_next(next),
            None => core,
        }
    }
}
