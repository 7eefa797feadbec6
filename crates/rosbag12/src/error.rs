//! Errors of opening, reading or writing a bag. Damage is not an error: it is a diagnostic.

use rovelog_core::ErrorKind;
use rovelog_core::error::Meaning;

use crate::msg::DefinitionError;

/// The errors of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BagError {
    /// The file does not start with a version line.
    #[error("not a ROS bag: the file does not start with #ROSBAG, #ROSRECORD or #ROSLOG")]
    NotBag,
    /// The file ends inside the version line.
    #[error("the file ends at byte {len}, inside the version line of a ROS bag")]
    VersionLineCut {
        /// Length in bytes.
        len: u64,
    },
    /// The file starts like a version line, but the line is invalid.
    #[error("the version line at the start of the file is broken")]
    BadVersionLine,
    /// A version that this crate does not read.
    #[error("a ROS bag of version {version}: V2.0, V1.2 and earlier are read")]
    OtherVersion {
        /// The version as the file has it: `2.0`.
        version: String,
    },
    /// A chunk whose compression is not built in, because the feature `compressed` is off.
    #[error("the chunk at byte {at} is compressed with {name}, which this build cannot decompress")]
    CompressionNotBuiltIn {
        /// Offset of the chunk.
        at: u64,
        /// Name of the compression in the chunk's header: `lz4` or `bz2`.
        name: &'static str,
    },
    /// A partly read bag whose index does not describe the parts that were not read.
    #[error("this bag has no usable index: what is in it is known only when all of it is read")]
    PartlyRead,
    /// A record from a pipe that is larger than the buffer may become.
    #[error("a record of {len} bytes at byte {at}: a pipe is read with at most {limit} bytes in memory")]
    RecordTooLarge {
        /// Offset of the record.
        at: u64,
        /// Bytes that it needs, as far as they are known.
        len: u64,
        /// Maximum in bytes.
        limit: u64,
    },
    /// A topic that the bag does not have.
    #[error("the bag has no topic {topic}")]
    NoSuchTopic {
        /// The topic.
        topic: String,
    },
    /// A topic whose messages cannot be decoded.
    #[error("topic {topic} cannot be decoded: {why}")]
    Undecodable {
        /// The topic.
        topic: String,
        /// Reason.
        why: DefinitionError,
    },
    /// A topic without any definition.
    #[error("topic {topic} cannot be decoded: no definition of {ty}")]
    NoDefinition {
        /// The topic.
        topic: String,
        /// Its type.
        ty: String,
    },
    /// A message that does not fit its definition.
    #[error("a message of {topic} of {len} bytes: {why}")]
    Payload {
        /// The topic.
        topic: String,
        /// Length in bytes.
        len: usize,
        /// Reason.
        why: String,
    },
    /// A record that cannot be written.
    #[error("{what} cannot be written: {why}")]
    BadRecord {
        /// What was to be written.
        what: String,
        /// Reason.
        why: &'static str,
    },
    /// V2.0 bags and older ones in one merge.
    #[error("V2.0 bags and older bags cannot be merged")]
    MixedVersions,
    /// Bags whose clocks cannot be aligned.
    #[error("{0}")]
    Clocks(&'static str),
    /// An error of the operating system during reading or writing.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl BagError {
    fn meaning(&self) -> Meaning {
        match self {
            Self::NotBag => (
                ErrorKind::NotThisFormat,
                Some(0),
                Some(
                    "a V2.0 bag is read without a version line if a record follows in the first 64 KiB; \
                     one of before V1.0, which has none, by the library on request (open_v0)",
                ),
            ),
            Self::VersionLineCut { len } => {
                (ErrorKind::Truncated, Some(*len), Some("copy the bag again from its source"))
            }
            Self::BadVersionLine => (
                ErrorKind::Malformed,
                Some(0),
                Some("check its first 16 bytes; a V1.2 bag starts with #ROSRECORD V1.2 and a line feed"),
            ),
            Self::OtherVersion { .. } => (
                ErrorKind::Unsupported,
                Some(0),
                Some("V2.0, V1.2, V1.1 and V1.0 are supported; no tool for this version is known"),
            ),
            Self::CompressionNotBuiltIn { at, .. } => (
                ErrorKind::Unsupported,
                Some(*at),
                Some("build the crate rosbag12 with its feature `compressed`, which is on by default"),
            ),
            Self::PartlyRead => (ErrorKind::PartlyRead, None, None),
            Self::RecordTooLarge { at, .. } => {
                (ErrorKind::LimitExceeded, Some(*at), Some("save the pipe as a file and open that"))
            }
            Self::NoSuchTopic { .. } => {
                (ErrorKind::InvalidArgument, None, Some("`topics` lists the topics of the bag"))
            }
            Self::Undecodable { .. } | Self::NoDefinition { .. } => (
                ErrorKind::Malformed,
                None,
                Some("give the type's definition as a layout, or read the bytes of the messages"),
            ),
            Self::Payload { .. } => (ErrorKind::Malformed, None, None),
            Self::BadRecord { .. } => {
                (ErrorKind::InvalidArgument, None, Some("see docs/formats/rosbag.md, section 7"))
            }
            Self::Clocks(_) => {
                (ErrorKind::InvalidArgument, None, Some("if they share a clock: --time-base boot"))
            }
            Self::MixedVersions => (
                ErrorKind::InvalidArgument,
                None,
                Some("convert the older ones to V2.0 first: rovelog export FILE -o new.bag"),
            ),
            Self::Io(_) => (ErrorKind::Io, None, None),
        }
    }
}

rovelog_core::explained!(BagError, crate::wire::INFO.id);
