//! Errors that occur when a bag is opened, read or written. Damage is not an error, but is reported
//! as a diagnostic.

use rovelog_core::ErrorKind;
use rovelog_core::error::Meaning;

use crate::msg::DefinitionError;

/// Errors that this crate returns.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BagError {
    /// The file does not start with a version line.
    #[error("not a ROS bag: the file does not start with #ROSBAG, #ROSRECORD or #ROSLOG")]
    NotBag,
    /// The file ends inside the version line.
    #[error("the file ends at byte {len}, inside the version line of a ROS bag")]
    VersionLineCut {
        /// Size in bytes of the file.
        len: u64,
    },
    /// The file starts with the first bytes of a version line, but the version line is invalid.
    #[error("the version line at the start of the file is broken")]
    BadVersionLine,
    /// The file is a bag of a version that this crate does not read.
    #[error("ROS bags of version {version} cannot be read: only V2.0, V1.2 and earlier are supported")]
    OtherVersion {
        /// Version as stored in the file, such as `2.1`.
        version: String,
    },
    /// A chunk is compressed, but the crate feature `compressed` is disabled.
    #[error("the chunk at byte {at} is compressed with {name}, which this build cannot decompress")]
    CompressionNotBuiltIn {
        /// Offset of the compressed chunk.
        at: u64,
        /// Name of the compression, `lz4` or `bz2`.
        name: &'static str,
    },
    /// Only parts of the bag were fetched, and the bag has no usable index for the parts that were
    /// not fetched.
    #[error("this bag has no usable index, so its content is only known after all of it is read")]
    PartlyRead,
    /// A record in a stream exceeds the maximum size for records in a stream.
    #[error(
        "the record at byte {at} has {len} bytes, but a pipe is read with at most {limit} bytes in memory"
    )]
    RecordTooLarge {
        /// Offset of the record in the stream.
        at: u64,
        /// Size in bytes of the record. If the length of the record is not known completely, a
        /// lower bound.
        len: u64,
        /// Maximum size in bytes of a record in a stream.
        limit: u64,
    },
    /// The bag has no topic with this name.
    #[error("the bag has no topic {topic}")]
    NoSuchTopic {
        /// Name of the topic.
        topic: String,
    },
    /// The messages of a topic cannot be decoded, because the definition of the topic cannot be
    /// used.
    #[error("topic {topic} cannot be decoded: {why}")]
    Undecodable {
        /// Name of the topic.
        topic: String,
        /// Reason why the definition of the topic cannot be used.
        why: DefinitionError,
    },
    /// A topic has no message definition.
    #[error("topic {topic} cannot be decoded: no definition of {ty}")]
    NoDefinition {
        /// Name of the topic.
        topic: String,
        /// Message type of the topic.
        ty: String,
    },
    /// The payload of a message does not match the definition of its topic.
    #[error("a message of {topic} with {len} bytes does not match its definition: {why}")]
    Payload {
        /// Name of the topic.
        topic: String,
        /// Size in bytes of the payload.
        len: usize,
        /// Reason why the payload does not match, in words.
        why: String,
    },
    /// A record cannot be written to a bag.
    #[error("{what} cannot be written: {why}")]
    BadRecord {
        /// Description of the record.
        what: String,
        /// Reason why the record cannot be written.
        why: &'static str,
    },
    /// The logs to merge contain both V2.0 bags and older bags.
    #[error("V2.0 bags and older bags cannot be merged")]
    MixedVersions,
    /// The clocks of the bags to merge cannot be aligned. Contains the reason.
    #[error("{0}")]
    Clocks(&'static str),
    /// The operating system returned an error while reading or writing.
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
                    "V2.0 bags are read without a version line if their first record is in the first 64 KiB; \
                     bags older than V1.0, which have no version line, can be read with `open_v0` of the library",
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
                (ErrorKind::InvalidArgument, None, Some("if the logs share a clock, use --time-base boot"))
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

rovelog_core::impl_from_format_error!(BagError, crate::wire::INFO.id);
