//! Errors of opening, reading or writing a ULog. Damage is not an error: it is a diagnostic.

use rovelog_core::ErrorKind;
use rovelog_core::error::Meaning;
use rovelog_core::text::count;

/// The errors of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UlogError {
    /// The first bytes are not the ULog magic, and no definitions follow.
    #[error("not a ULog: the file does not start with 55 4c 6f 67 01 12 35")]
    NotUlog,
    /// A file that was to be read as a ULog has neither a header nor messages.
    #[error("not a ULog: no header and no valid message in the first {}", count(*searched, "byte"))]
    NoMessages {
        /// Number of bytes that were searched.
        searched: u64,
    },
    /// The file ends inside its 16-byte header.
    #[error("the file ends at byte {len}, inside the 16-byte header of a ULog")]
    HeaderCut {
        /// Length in bytes.
        len: u64,
    },
    /// Incompatible flag bits are set that this reader does not know: the log must be refused.
    #[error("incompatible flag {bits} set at byte {at}: the log needs a newer reader")]
    IncompatibleFlags {
        /// The bits by name: `byte 0 bit 1`.
        bits: String,
        /// The offset of the first of them.
        at: u64,
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
        /// Reason.
        why: String,
    },
    /// A topic that the log does not have.
    #[error("the log has no topic {topic}")]
    NoSuchTopic {
        /// The topic.
        topic: String,
    },
    /// A row that is neither the full nor the trimmed size of its format.
    #[error("a row of {}, but rows of {topic} have {trimmed} or {full}", count(*got, "byte"))]
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
    /// A format that must not be written.
    #[error("format {name} cannot be written: {why}")]
    BadFormat {
        /// The format.
        name: String,
        /// Reason.
        why: String,
    },
    /// A subscription that must not be written.
    #[error("topic {topic} cannot be subscribed: {why}")]
    BadSubscription {
        /// Name and instance.
        topic: String,
        /// Reason.
        why: &'static str,
    },
    /// A definition after the start of the data section.
    #[error("{what} cannot be written after the start of the data section")]
    DefinitionsClosed {
        /// What was to be written.
        what: String,
    },
    /// A topic that the writer has not subscribed, or has unsubscribed.
    #[error("message id {msg_id} is not subscribed in this log")]
    NotSubscribed {
        /// The id.
        msg_id: u16,
    },
    /// A value that does not fit its field.
    #[error("{field}: {why}")]
    BadValue {
        /// The field, by its flat name.
        field: String,
        /// What does not fit.
        why: String,
    },
    /// An information message or a parameter that must not be written.
    #[error("{name:?} cannot be written: {why}")]
    BadKey {
        /// Its name.
        name: String,
        /// Reason.
        why: &'static str,
    },
    /// More than a message can hold.
    #[error("{what} takes {}, but the limit is {max}", count(*len, "byte"))]
    TooLong {
        /// What is too long.
        what: String,
        /// Its length.
        len: usize,
        /// The largest length.
        max: usize,
    },
    /// A message that contradicts its type, or that is not allowed at this position.
    #[error("a '{letter}' message cannot be written here: {why}")]
    BadMessage {
        /// The letter of its type.
        letter: char,
        /// Reason.
        why: &'static str,
    },
    /// A log to which nothing can be appended.
    #[error("cannot append to this log: {why}")]
    CannotAppend {
        /// Reason.
        why: &'static str,
    },
    /// A part of a log in which timestamps of fewer than 64 bits would be unwrapped differently.
    #[error("{topic} has timestamps shorter than 64 bits, which depend on the rows left out")]
    TimesWouldMove {
        /// The topic.
        topic: String,
    },
    /// A log to be merged whose clock has no known offset to the others.
    #[error("log {number} has no UTC, so it cannot be aligned with the others")]
    ClockUnknown {
        /// Number of the log, from 1.
        number: usize,
    },
    /// A log to be merged that contains several recordings.
    #[error("log {number} contains several recordings with clocks of their own")]
    SeveralSessions {
        /// Number of the log, from 1.
        number: usize,
    },
    /// Logs to be merged whose clocks started at different times.
    #[error("the clocks of the logs started up to {seconds} s apart")]
    ClocksDiffer {
        /// Largest difference in seconds.
        seconds: u64,
    },
    /// Logs to be merged that define one format in two ways.
    #[error("the logs define format {name} differently")]
    FormatsDiffer {
        /// The format.
        name: String,
    },
    /// More topics, or instances of one, than a log can hold.
    #[error("no free instance for topic {topic}")]
    NoInstanceLeft {
        /// The topic.
        topic: String,
    },
    /// An error of the operating system during reading or writing.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl UlogError {
    fn meaning(&self) -> Meaning {
        match self {
            Self::NotUlog => (
                ErrorKind::NotThisFormat,
                Some(0),
                Some("if only its start is damaged: rovelog recover FILE --input-format ulog -o OUT"),
            ),
            Self::NoMessages { .. } => (
                ErrorKind::NotThisFormat,
                Some(0),
                Some("look for another copy of the log; leave out --input-format if it is of another format"),
            ),
            Self::HeaderCut { len } => {
                (ErrorKind::Truncated, Some(*len), Some("copy the log again from its source"))
            }
            Self::IncompatibleFlags { at, .. } => {
                (ErrorKind::Unsupported, Some(*at), Some("update rovelog, or report the log to its authors"))
            }
            Self::Encrypted { .. } => {
                (ErrorKind::Unsupported, Some(0), Some("decrypt it with the private key of its owner"))
            }
            Self::NoSuchTopic { .. } => {
                (ErrorKind::InvalidArgument, None, Some("`topics` lists the topics of the log"))
            }
            Self::Undecodable { .. } | Self::RowSize { .. } => (ErrorKind::Malformed, None, None),
            Self::BadFormat { .. } => {
                (ErrorKind::InvalidArgument, None, Some("see 'F' messages in docs/formats/ulog.md"))
            }
            Self::BadSubscription { .. } => (
                ErrorKind::InvalidArgument,
                None,
                Some(
                    "define a format that starts with `uint64_t timestamp`, and subscribe each instance once",
                ),
            ),
            Self::DefinitionsClosed { .. } => (
                ErrorKind::InvalidArgument,
                None,
                Some("write it before the first subscription, row or text"),
            ),
            Self::NotSubscribed { .. } => {
                (ErrorKind::InvalidArgument, None, Some("subscribe the topic with this writer first"))
            }
            Self::BadValue { .. } => {
                (ErrorKind::InvalidArgument, None, Some("give every field of the format a value of its type"))
            }
            Self::BadKey { .. } => (
                ErrorKind::InvalidArgument,
                None,
                Some("use a name of printable characters without spaces, once"),
            ),
            Self::TooLong { .. } => {
                (ErrorKind::LimitExceeded, None, Some("split it: `multi_info` does so by itself"))
            }
            Self::BadMessage { .. } => (ErrorKind::InvalidArgument, None, None),
            Self::CannotAppend { .. } => (
                ErrorKind::Unsupported,
                None,
                Some("`recover` it first: that merges what was appended before"),
            ),
            Self::TimesWouldMove { .. } => (
                ErrorKind::Unsupported,
                None,
                Some("keep all topics and cut by time alone, or keep the whole time"),
            ),
            Self::ClockUnknown { .. } => (
                ErrorKind::InvalidArgument,
                None,
                Some("if all were recorded after the same boot: --time-base boot"),
            ),
            Self::SeveralSessions { .. } => (
                ErrorKind::Unsupported,
                None,
                Some("separate them first: rovelog split FILE --at-restart -o DIR"),
            ),
            Self::ClocksDiffer { .. } => {
                (ErrorKind::InvalidArgument, None, Some("align them by UTC: --time-base utc"))
            }
            Self::FormatsDiffer { .. } => (
                ErrorKind::Unsupported,
                None,
                Some("slice the logs to topics with the same definition first"),
            ),
            Self::NoInstanceLeft { .. } => {
                (ErrorKind::LimitExceeded, None, Some("merge fewer logs or fewer topics"))
            }
            Self::Io(_) => (ErrorKind::Io, None, None),
        }
    }
}

rovelog_core::explained!(UlogError, crate::wire::INFO.id);
