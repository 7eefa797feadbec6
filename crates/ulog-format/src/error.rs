//! Errors from opening, reading or writing a ULog. Damage is reported as a diagnostic, not as an
//! error.

use rovelog_core::ErrorKind;
use rovelog_core::error::Meaning;
use rovelog_core::internal::text::count;

/// Error that occurs while a ULog is opened, read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UlogError {
    /// The file does not start with the ULog magic, and has no definitions near its start.
    #[error("the file is not a ULog, because it does not start with 55 4c 6f 67 01 12 35")]
    NotUlog,
    /// The caller stated that the file is a ULog, but the file has neither a header nor messages.
    #[error(
        "the file is not a ULog, because its first {} contain no header and no valid message",
        count(*searched, "byte")
    )]
    NoMessages {
        /// Number of bytes that were searched for a header or a message.
        searched: u64,
    },
    /// The file ends inside its 16-byte header.
    #[error("the file is truncated at byte {len}, inside the 16-byte header of a ULog")]
    HeaderCut {
        /// Size of the file in bytes.
        len: u64,
    },
    /// The log sets incompatible flag bits that are not defined. The specification demands that a
    /// reader refuses such a log.
    #[error("the log cannot be read, because it sets the unknown incompatible flag {bits} at byte {at}")]
    IncompatibleFlags {
        /// Positions of the undefined flag bits, for example `byte 0 bit 1`.
        bits: String,
        /// Offset of the byte with the first undefined flag bit.
        at: u64,
    },
    /// The file is an encrypted log or the key file of such a log.
    #[error("the file is an encrypted ULog {what}, which must be decrypted before it can be read")]
    Encrypted {
        /// Kind of file, either `log` or `key file`.
        what: &'static str,
    },
    /// The rows of a topic cannot be decoded.
    #[error("topic {topic} cannot be decoded: {why}")]
    Undecodable {
        /// Name of the topic that cannot be decoded.
        topic: String,
        /// Reason why the rows cannot be decoded.
        why: String,
    },
    /// The log does not have the requested topic.
    #[error("the log has no topic {topic}")]
    NoSuchTopic {
        /// Name of the requested topic.
        topic: String,
    },
    /// The size of a row does not match the format of its topic.
    #[error("the row has {}, but rows of {topic} must have {trimmed} or {full} bytes", count(*got, "byte"))]
    RowSize {
        /// Name of the topic to which the row belongs.
        topic: String,
        /// Actual size of the row in bytes.
        got: usize,
        /// Valid size in bytes of a row without the padding at its end.
        trimmed: usize,
        /// Valid size in bytes of a row with all padding.
        full: usize,
    },
    /// The format definition is invalid, so the writer rejects it.
    #[error("format {name} cannot be written: {why}")]
    BadFormat {
        /// Name of the invalid format.
        name: String,
        /// Reason why the format is invalid.
        why: String,
    },
    /// The subscription is invalid, so the writer rejects it.
    #[error("topic {topic} cannot be subscribed: {why}")]
    BadSubscription {
        /// Name and instance of the topic in the subscription.
        topic: String,
        /// Reason why the subscription is invalid.
        why: &'static str,
    },
    /// The caller tried to write a definition after the start of the data section.
    #[error("{what} cannot be written, because the data section of the log has already started")]
    DefinitionsClosed {
        /// Description of the rejected definition.
        what: String,
    },
    /// The caller used a topic that is not subscribed, or no longer subscribed.
    #[error("data with message id {msg_id} cannot be written, because this id is not subscribed")]
    NotSubscribed {
        /// Message id of the topic.
        msg_id: u16,
    },
    /// A value does not match the type of its field.
    #[error("the value of {field} cannot be written: {why}")]
    BadValue {
        /// Flat name of the field, such as `esc[1].rpm`.
        field: String,
        /// Reason why the value does not match.
        why: String,
    },
    /// The name of an information message or a parameter is invalid or already used.
    #[error("the info message or parameter {name:?} cannot be written: {why}")]
    BadKey {
        /// Name of the information message or parameter.
        name: String,
        /// Reason why the name cannot be used.
        why: &'static str,
    },
    /// An item, such as a text or a key, is too long for a message.
    #[error("{what} needs {}, but the limit is {max} bytes", count(*len, "byte"))]
    TooLong {
        /// Description of the item that is too long.
        what: String,
        /// Size of the item in bytes.
        len: usize,
        /// Maximum size of the item in bytes.
        max: usize,
    },
    /// A message contradicts its type, or is not allowed at this position in the log.
    #[error("the message of type '{letter}' cannot be written: {why}")]
    BadMessage {
        /// Letter of the message type.
        letter: char,
        /// Reason why the message is rejected.
        why: &'static str,
    },
    /// Data cannot be appended to the log.
    #[error("data cannot be appended to this log: {why}")]
    CannotAppend {
        /// Reason why data cannot be appended.
        why: &'static str,
    },
    /// The output would contain timestamps of fewer than 64 bits that a reader completes to other
    /// times than in the input. Such timestamps are completed with the times of earlier rows, and
    /// some of these rows would be missing in the output.
    #[error(
        "the output would have wrong times for {topic}, because its timestamps have fewer than 64 bits and \
         depend on earlier rows that are not selected"
    )]
    TimesWouldMove {
        /// Name of the topic with these timestamps.
        topic: String,
    },
    /// The UTC offset of a log to be merged is unknown, so its clock cannot be compared with the
    /// clocks of the other logs.
    #[error("log {number} contains no UTC time, so it cannot be aligned with the other logs")]
    ClockUnknown {
        /// Number of the log without a UTC offset, counted from 1.
        number: usize,
    },
    /// A log to be merged contains several recordings.
    #[error(
        "log {number} cannot be merged, because it contains several recordings that each have their own clock"
    )]
    SeveralSessions {
        /// Number of the log with several recordings, counted from 1.
        number: usize,
    },
    /// The clocks of the logs to be merged started at different times, so their times cannot be
    /// compared.
    #[error(
        "the logs cannot be aligned by their log clocks, because these clocks started up to {seconds} s apart"
    )]
    ClocksDiffer {
        /// Largest difference between the clocks, in seconds.
        seconds: u64,
    },
    /// The logs to be merged define a format differently.
    #[error("the logs cannot be merged, because they define format {name} differently")]
    FormatsDiffer {
        /// Name of the format that is defined differently.
        name: String,
    },
    /// The merged log would have more topics, or more instances of a topic, than the format allows.
    #[error("the merged log would have more topics, or more instances of {topic}, than a ULog can have")]
    NoInstanceLeft {
        /// Name of the topic for which no message id or instance is left.
        topic: String,
    },
    /// The operating system reported an error while a file was read or written.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl UlogError {
    /// Returns the kind of the error, its offset in the file, and advice for the user.
    fn meaning(&self) -> Meaning {
        match self {
            Self::NotUlog => ErrorKind::NotThisFormat.at(0).hint(
                "if only the start of the file is damaged, repair it: rovelog recover FILE \
                 --input-format ulog -o OUT",
            ),
            Self::NoMessages { .. } => ErrorKind::NotThisFormat
                .at(0)
                .hint("look for another copy of the log; if it has another format, leave out --input-format"),
            Self::HeaderCut { len } => {
                ErrorKind::Truncated.at(*len).hint("copy the log again from its source")
            }
            Self::IncompatibleFlags { at, .. } => ErrorKind::Unsupported.at(*at).hint(
                "update rovelog; if the latest version cannot read the log, report it to the authors of \
                 rovelog",
            ),
            Self::Encrypted { .. } => {
                ErrorKind::Unsupported.at(0).hint("first decrypt the file with the private key of its owner")
            }
            Self::NoSuchTopic { .. } => {
                ErrorKind::InvalidArgument.hint("list the topics of the log with `topics`")
            }
            Self::Undecodable { .. } | Self::RowSize { .. } => ErrorKind::Malformed.into(),
            Self::BadFormat { .. } => {
                ErrorKind::InvalidArgument.hint("for valid formats, see 'F' messages in docs/formats/ulog.md")
            }
            Self::BadSubscription { .. } => ErrorKind::InvalidArgument.hint(
                "define a format that starts with `uint64_t timestamp`, and subscribe each instance once",
            ),
            Self::DefinitionsClosed { .. } => ErrorKind::InvalidArgument
                .hint("write definitions before the first subscription, row or text"),
            Self::NotSubscribed { .. } => {
                ErrorKind::InvalidArgument.hint("subscribe the topic with this writer first")
            }
            Self::BadValue { .. } => {
                ErrorKind::InvalidArgument.hint("give every field of the format a value of its type")
            }
            Self::BadKey { .. } => ErrorKind::InvalidArgument
                .hint("use a new name that consists of printable characters without spaces"),
            Self::TooLong { .. } => {
                ErrorKind::LimitExceeded.hint("split the value into several parts, as `multi_info` does")
            }
            Self::BadMessage { .. } => ErrorKind::InvalidArgument.into(),
            Self::CannotAppend { .. } => ErrorKind::Unsupported
                .hint("recover the log first; the recovered log has room for new appended data"),
            Self::TimesWouldMove { .. } => {
                ErrorKind::Unsupported.hint("select only a time range or only topics, not both")
            }
            Self::ClockUnknown { .. } => ErrorKind::InvalidArgument
                .hint("if all logs were recorded after the same boot, use --time-base boot"),
            Self::SeveralSessions { .. } => ErrorKind::Unsupported
                .hint("separate the recordings first: rovelog split FILE --at-restart -o DIR"),
            Self::ClocksDiffer { .. } => {
                ErrorKind::InvalidArgument.hint("align the logs by UTC with --time-base utc")
            }
            Self::FormatsDiffer { .. } => ErrorKind::Unsupported
                .hint("first slice the logs to topics that have the same definition in all logs"),
            Self::NoInstanceLeft { .. } => ErrorKind::LimitExceeded.hint("merge fewer logs or fewer topics"),
            Self::Io(_) => ErrorKind::Io.into(),
        }
    }
}

rovelog_core::impl_from_format_error!(UlogError, crate::wire::INFO.id);
