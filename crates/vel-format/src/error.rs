//! Errors that occur when VEL logs are opened, read or written. Damage in a file is not an error
//! but a diagnostic.

use rovelog_core::ErrorKind;
use rovelog_core::error::Meaning;
use rovelog_core::internal::text::count;

/// The errors of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VelError {
    /// The file does not start with the magic number of VEL.
    #[error("the file is not a VEL log, because it does not start with a4 56 45 4c")]
    NotVel,
    /// The file ends inside the header or the index.
    #[error("the file is truncated at byte {len}, inside the header or index of a VEL log")]
    HeaderCut {
        /// Size of the file in bytes.
        len: u64,
    },
    /// The data of a message is too short for its content.
    #[error("the {what} message has only {} of data, which is too short for its fields", count(*len, "byte"))]
    BadPayload {
        /// Name of the message type.
        what: String,
        /// Length of the data in bytes.
        len: usize,
    },
    /// The fields of the message type are unknown.
    #[error("topic {topic} cannot be decoded, because the fields of its type are unknown")]
    Undescribed {
        /// Name of the topic whose messages have this type.
        topic: String,
    },
    /// The name of a message type cannot be hashed, because it is not ASCII.
    #[error(
        "the id of the message type {name:?} cannot be computed, because its name has a non-ASCII character \
         at byte {at}"
    )]
    NotAscii {
        /// The name that cannot be hashed.
        name: String,
        /// Index of the first character outside ASCII.
        at: usize,
    },
    /// A declaration of a message type is invalid.
    #[error("line {line} of the message type declarations is invalid: {why}")]
    BadDeclaration {
        /// Number of the invalid line, counted from 1.
        line: usize,
        /// Reason why the line is invalid.
        why: String,
    },
    /// The calibration of a Velodyne sensor is invalid.
    #[error("the Velodyne calibration cannot be read: {why}")]
    BadCalibration {
        /// Reason why the calibration is invalid.
        why: String,
    },
    /// Points of an HDL-64E were requested, but no calibration was found or given.
    #[error(
        "the points of an HDL-64E cannot be computed without its calibration, which this log does not contain"
    )]
    NoCalibration,
    /// The Velodyne packets do not match any known model.
    #[error("the Velodyne model cannot be determined from the {} of the log", count(*packets, "packet"))]
    UnknownModel {
        /// Number of packets that were examined.
        packets: usize,
    },
    /// The calibration has fewer lasers than the sensor.
    #[error("the calibration contains {}, but an HDL-64E has 64 lasers", count(*lasers, "laser"))]
    CalibrationSize {
        /// Number of lasers in the calibration.
        lasers: usize,
    },
    /// An image cannot be decoded.
    #[error("the image at byte {at} cannot be decoded: {why}")]
    BadImage {
        /// Offset of the message that contains the image.
        at: u64,
        /// Reason why the image cannot be decoded.
        why: String,
    },
    /// An image is larger than the limit.
    #[error("the image at byte {at} has {pixels} pixels, but the limit is {limit}")]
    ImageTooLarge {
        /// Offset of the message that contains the image.
        at: u64,
        /// Number of pixels in the image.
        pixels: u64,
        /// Maximum number of pixels.
        limit: u64,
    },
    /// The data is too long for a single message.
    #[error("a message of {len} bytes cannot be written, because the limit is {max} bytes")]
    TooLong {
        /// Length of the data in bytes.
        len: u64,
        /// Maximum length in bytes.
        max: u64,
    },
    /// A value does not fit its field.
    #[error("the value of {field} cannot be written: {why}")]
    BadValue {
        /// Name of the field.
        field: String,
        /// Reason why the value does not fit.
        why: String,
    },
    /// The logs cannot be merged.
    #[error("the logs cannot be merged: {why}")]
    CannotMerge {
        /// Reason why the logs cannot be merged.
        why: String,
    },
    /// The size fields of the messages are ambiguous. Whichever size rule is used to write them, a
    /// reader would infer a different rule.
    #[error(
        "a log with only {messages} messages cannot be written, because readers need more messages to \
         determine whether size fields include the header"
    )]
    SizesAmbiguous {
        /// Number of messages to write.
        messages: usize,
    },
    /// An error of the operating system during reading or writing.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl VelError {
    fn meaning(&self) -> Meaning {
        match self {
            Self::NotVel => ErrorKind::NotThisFormat.at(0).hint(
                "if only the first bytes are damaged, repair the file: rovelog recover FILE \
                 --input-format vel -o OUT",
            ),
            Self::HeaderCut { len } => {
                ErrorKind::Truncated.at(*len).hint("copy the log again from its source")
            }
            Self::BadPayload { .. } => ErrorKind::Malformed.into(),
            Self::Undescribed { .. } => ErrorKind::Unsupported
                .hint("declare the fields of the type (see docs/formats/vel.md, \"Own message types\")"),
            Self::NotAscii { .. } => {
                ErrorKind::InvalidArgument.hint("use only ASCII letters and digits in the name")
            }
            Self::BadDeclaration { .. } => ErrorKind::InvalidArgument.hint(
                "write `message NAME VERSION`, then one `TYPE NAME` per line (see docs/formats/vel.md)",
            ),
            Self::BadCalibration { .. } | Self::CalibrationSize { .. } => ErrorKind::InvalidArgument
                .hint("use the db.xml file that came with the sensor, or a YAML file converted from it"),
            Self::NoCalibration => {
                ErrorKind::Unsupported.hint("use the db.xml file that came with the sensor")
            }
            Self::UnknownModel { .. } => ErrorKind::Unsupported.hint("name the model, such as VLP-16"),
            Self::BadImage { at, .. } => ErrorKind::Malformed.at(*at),
            Self::ImageTooLarge { at, .. } => ErrorKind::LimitExceeded.at(*at),
            Self::TooLong { .. } => ErrorKind::LimitExceeded.into(),
            Self::BadValue { .. } => ErrorKind::InvalidArgument.into(),
            Self::CannotMerge { .. } => ErrorKind::InvalidArgument.hint(
                "align the logs by UTC with --time-base utc or, if they share a clock, use --time-base \
                 boot",
            ),
            Self::SizesAmbiguous { .. } => ErrorKind::Unsupported.hint("select more messages or more topics"),
            Self::Io(_) => ErrorKind::Io.into(),
        }
    }
}

rovelog_core::impl_from_format_error!(VelError, crate::wire::INFO.id);
