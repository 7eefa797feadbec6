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
    #[error("the file is not a ROS bag, because it does not start with #ROSBAG, #ROSRECORD or #ROSLOG")]
    NotBag,
    /// The file ends inside the version line.
    #[error("the file is truncated at byte {len}, inside the version line of a ROS bag")]
    VersionLineCut {
        /// Size in bytes of the file.
        len: u64,
    },
    /// The file starts with the first bytes of a version line, but the version line is invalid.
    #[error("the version line at the start of the ROS bag is invalid")]
    BadVersionLine,
    /// The file is a bag of a version that this crate does not read.
    #[error("the file is a ROS bag of version {version}, but only V2.0 and versions up to V1.2 can be read")]
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
    #[error(
        "this bag cannot be opened by its index, because the index is missing or unusable; the whole bag \
         must be read instead"
    )]
    PartlyRead,
    /// A record in a stream exceeds the maximum size for records in a stream.
    #[error("the record at byte {at} has {len} bytes, but records from a pipe are limited to {limit} bytes")]
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
    #[error("topic {topic} cannot be decoded, because the bag has no definition of its type {ty}")]
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
    #[error("{what} cannot be written to the bag: {why}")]
    BadRecord {
        /// Description of the record.
        what: String,
        /// Reason why the record cannot be written.
        why: &'static str,
    },
    /// The logs to merge contain both V2.0 bags and older bags.
    #[error("V2.0 bags and older bags cannot be merged into one bag")]
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
            Self::NotBag => ErrorKind::NotThisFormat.at(0).hint(
                "look for another copy of the bag; if it is older than V1.0, it has no version line \
                 and can be read with `open_v0` of the library",
            ),
            Self::VersionLineCut { len } => {
                ErrorKind::Truncated.at(*len).hint("copy the bag again from its source")
            }
            Self::BadVersionLine => ErrorKind::Malformed.at(0).hint(
                "check the first 16 bytes of the file; a V1.2 bag starts with #ROSRECORD V1.2 and a \
                 line feed",
            ),
            Self::OtherVersion { .. } => ErrorKind::Unsupported.at(0).hint(
                "check whether the version line at the start of the file is damaged; no tool for this \
                 version is known",
            ),
            Self::CompressionNotBuiltIn { at, .. } => ErrorKind::Unsupported
                .at(*at)
                .hint("build the crate rosbag12 with its feature `compressed`, which is on by default"),
            Self::PartlyRead => ErrorKind::PartlyRead.into(),
            Self::RecordTooLarge { at, .. } => {
                ErrorKind::LimitExceeded.at(*at).hint("save the data to a file, and open this file")
            }
            Self::NoSuchTopic { .. } => {
                ErrorKind::InvalidArgument.hint("list the topics of the bag with `topics`")
            }
            Self::Undecodable { .. } | Self::NoDefinition { .. } => ErrorKind::Malformed.hint(
                "give the message definition of this type as a layout, or read the messages as raw bytes",
            ),
            Self::Payload { .. } => ErrorKind::Malformed.into(),
            Self::BadRecord { .. } => {
                ErrorKind::InvalidArgument.hint("for the rules, see docs/formats/rosbag.md, section 7")
            }
            Self::Clocks(_) => {
                ErrorKind::InvalidArgument.hint("if the logs share a clock, use --time-base boot")
            }
            Self::MixedVersions => ErrorKind::InvalidArgument
                .hint("first convert the older bags to V2.0: rovelog export FILE -o new.bag"),
            Self::Io(_) => ErrorKind::Io.into(),
        }
    }
}

rovelog_core::impl_from_format_error!(BagError, crate::wire::INFO.id);
