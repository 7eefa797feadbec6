//! Why a VEL log could not be opened, read or written. Damage is no error: it is a diagnostic.

use rovelog_core::ErrorKind;
use rovelog_core::error::Meaning;
use rovelog_core::text::count;

/// The errors of this crate, each with what a user needs to act on it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VelError {
    /// The first bytes are not the VEL magic.
    #[error("not a VEL log: the file does not start with a4 56 45 4c")]
    NotVel,
    /// The file ends inside its header or index.
    #[error("the file ends at byte {len}, inside the header or index of a VEL log")]
    HeaderCut {
        /// Its length in bytes.
        len: u64,
    },
    /// A message whose data ends before its content does.
    #[error("{} of data, too few for a {what}", count(*len, "byte"))]
    BadPayload {
        /// The type.
        what: String,
        /// The bytes there are.
        len: usize,
    },
    /// A topic without fields.
    #[error("topic {topic} cannot be decoded: its type is not described")]
    Undescribed {
        /// The topic.
        topic: String,
    },
    /// A name that cannot be hashed.
    #[error("{name:?} has a non-ASCII character at byte {at}: its id would depend on the program")]
    NotAscii {
        /// The name.
        name: String,
        /// Where.
        at: usize,
    },
    /// A declaration of a message type that cannot be read.
    #[error("line {line} of the declarations: {why}")]
    BadDeclaration {
        /// From 1.
        line: usize,
        /// Why.
        why: String,
    },
    /// A calibration that cannot be read.
    #[error("the calibration cannot be read: {why}")]
    BadCalibration {
        /// Why.
        why: String,
    },
    /// Points of an HDL-64E without a calibration.
    #[error("points of an HDL-64E need its calibration, which this log does not contain")]
    NoCalibration,
    /// Velodyne packets of a model that is not told.
    #[error("the model of the Velodyne cannot be inferred from {}", count(*packets, "packet"))]
    UnknownModel {
        /// Packets looked at.
        packets: usize,
    },
    /// Points with a calibration of fewer lasers than the sensor has.
    #[error("the calibration has {}, and an HDL-64E has 64", count(*lasers, "laser"))]
    CalibrationSize {
        /// Lasers.
        lasers: usize,
    },
    /// An image that cannot be turned into pixels.
    #[error("the image at byte {at} cannot be decoded: {why}")]
    BadImage {
        /// Offset of its message.
        at: u64,
        /// Why.
        why: String,
    },
    /// An image larger than the limit.
    #[error("the image at byte {at} has {pixels} pixels, and the limit is {limit}")]
    ImageTooLarge {
        /// Offset of its message.
        at: u64,
        /// Pixels.
        pixels: u64,
        /// The limit.
        limit: u64,
    },
    /// More than a message can hold.
    #[error("a message of {len} bytes cannot be written: the limit is {max}")]
    TooLong {
        /// Its length.
        len: u64,
        /// The greatest length.
        max: u64,
    },
    /// A value that does not fit its field.
    #[error("{field}: {why}")]
    BadValue {
        /// The field.
        field: String,
        /// What does not fit.
        why: String,
    },
    /// Logs that cannot be merged.
    #[error("these logs cannot be merged: {why}")]
    CannotMerge {
        /// Why.
        why: String,
    },
    /// Messages that no reader would read as they are meant.
    #[error(
        "the sizes of these {messages} messages are ambiguous: no size convention can be inferred from them"
    )]
    SizesAmbiguous {
        /// Messages.
        messages: usize,
    },
    /// The operating system refused to read or write.
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
                Some("align them by UTC: --time-base utc; or, if they share a clock: --time-base boot"),
            ),
            Self::SizesAmbiguous { .. } => {
                (Kind::Unsupported, None, Some("select more messages, or more topics"))
            }
            Self::Io(_) => (Kind::Io, None, None),
        }
    }
}

rovelog_core::explained!(VelError, crate::wire::INFO.id);
