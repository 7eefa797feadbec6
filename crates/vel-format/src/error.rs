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
    #[error("not a VEL log: the file does not start with a4 56 45 4c")]
    NotVel,
    /// The file ends inside the header or the index.
    #[error("the file ends at byte {len}, inside the header or index of a VEL log")]
    HeaderCut {
        /// Size of the file in bytes.
        len: u64,
    },
    /// The data of a message is too short for its content.
    #[error("a {what} needs more than {} of data", count(*len, "byte"))]
    BadPayload {
        /// Name of the message type.
        what: String,
        /// Length of the data in bytes.
        len: usize,
    },
    /// The fields of the message type are unknown.
    #[error("topic {topic} cannot be decoded: its type is not described")]
    Undescribed {
        /// Name of the topic whose messages have this type.
        topic: String,
    },
    /// The name of a message type cannot be hashed, because it is not ASCII.
    #[error("{name:?} has a non-ASCII character at byte {at}: its id would depend on the program")]
    NotAscii {
        /// The name that cannot be hashed.
        name: String,
        /// Index of the first character outside ASCII.
        at: usize,
    },
    /// A declaration of a message type is invalid.
    #[error("line {line} of the declarations: {why}")]
    BadDeclaration {
        /// Number of the invalid line, counted from 1.
        line: usize,
        /// Reason why the line is invalid.
        why: String,
    },
    /// The calibration of a Velodyne sensor is invalid.
    #[error("the calibration cannot be read: {why}")]
    BadCalibration {
        /// Reason why the calibration is invalid.
        why: String,
    },
    /// Points of an HDL-64E were requested, but no calibration was found or given.
    #[error("points of an HDL-64E need its calibration, which this log does not contain")]
    NoCalibration,
    /// The Velodyne packets do not match any known model.
    #[error("the model of the Velodyne cannot be inferred from {}", count(*packets, "packet"))]
    UnknownModel {
        /// Number of packets that were examined.
        packets: usize,
    },
    /// The calibration has fewer lasers than the sensor.
    #[error("the calibration has {}, and an HDL-64E has 64", count(*lasers, "laser"))]
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
    #[error("the image at byte {at} has {pixels} pixels, and the limit is {limit}")]
    ImageTooLarge {
        /// Offset of the message that contains the image.
        at: u64,
        /// Number of pixels in the image.
        pixels: u64,
        /// Maximum number of pixels.
        limit: u64,
    },
    /// The data is too long for a single message.
    #[error("a message of {len} bytes cannot be written: the limit is {max}")]
    TooLong {
        /// Length of the data in bytes.
        len: u64,
        /// Maximum length in bytes.
        max: u64,
    },
    /// A value does not fit its field.
    #[error("{field}: {why}")]
    BadValue {
        /// Name of the field.
        field: String,
        /// Reason why the value does not fit.
        why: String,
    },
    /// The logs cannot be merged.
    #[error("these logs cannot be merged: {why}")]
    CannotMerge {
        /// Reason why the logs cannot be merged.
        why: String,
    },
    /// The size fields of the messages are ambiguous. Whichever size rule is used to write them, a
    /// reader would infer a different rule.
    #[error(
        "the sizes of these {messages} messages are ambiguous: no size convention can be inferred from them"
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
        use ErrorKind as Kind;
        match self {
            Self::NotVel => (
                Kind::NotThisFormat,
                Some(0),
                Some("if only the first bytes are damaged: rovelog recover FILE --input-format vel -o OUT"),
            ),
            Self::HeaderCut { len } => {
                (Kind::Truncated, Some(*len), Some("copy the log again from its source"))
            }
            Self::BadPayload { .. } => (Kind::Malformed, None, None),
            Self::Undescribed { .. } => (
                Kind::Unsupported,
                None,
                Some("declare its fields: docs/formats/vel.md, \"Own message types\""),
            ),
            Self::NotAscii { .. } => (Kind::InvalidArgument, None, Some("use ASCII letters and digits")),
            Self::BadDeclaration { .. } => (
                Kind::InvalidArgument,
                None,
                Some("write `message NAME VERSION`, then one `TYPE NAME` per line: docs/formats/vel.md"),
            ),
            Self::BadCalibration { .. } | Self::CalibrationSize { .. } => {
                (Kind::InvalidArgument, None, Some("give the db.xml of the sensor, or the YAML made from it"))
            }
            Self::NoCalibration => {
                (Kind::Unsupported, None, Some("give the db.xml that came with the sensor"))
            }
            Self::UnknownModel { .. } => (Kind::Unsupported, None, Some("name the model")),
            Self::BadImage { at, .. } => (Kind::Malformed, Some(*at), None),
            Self::ImageTooLarge { at, .. } => (Kind::LimitExceeded, Some(*at), None),
            Self::TooLong { .. } => (Kind::LimitExceeded, None, None),
            Self::BadValue { .. } => (Kind::InvalidArgument, None, None),
            Self::CannotMerge { .. } => (
                Kind::InvalidArgument,
                None,
                Some(
                    "align them by UTC: --time-base utc; or, if the logs share a clock, use --time-base boot",
                ),
            ),
            Self::SizesAmbiguous { .. } => {
                (Kind::Unsupported, None, Some("select more messages, or more topics"))
            }
            Self::Io(_) => (Kind::Io, None, None),
        }
    }
}

rovelog_core::impl_from_format_error!(VelError, crate::wire::INFO.id);
