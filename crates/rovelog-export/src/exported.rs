//! The result of an export: the number of messages, and the values that were lost.

use rovelog::core::internal::text::count;
use rovelog::{LogReader, Select, Topic};

/// Result of an export that writes messages to one file.
#[derive(Debug)]
#[non_exhaustive]
pub struct Exported {
    /// Number of messages written to the output.
    pub messages: u64,
    /// Values that the output format cannot represent.
    pub losses: Vec<Loss>,
    /// Sentences for the user about intended differences between the output and the log.
    pub notes: Vec<String>,
}

/// Values of one topic that are missing from the output, because its format cannot represent them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loss {
    /// Name of the topic whose values are missing.
    pub topic: String,
    /// Name of the column whose values are missing. Empty if the loss concerns the whole topic.
    pub column: String,
    /// Reason for the loss, such as `raw bytes, which CSV cannot represent`. The text may contain
    /// the number of lost values.
    pub why: String,
}

impl Loss {
    /// Creates the loss for records of a topic that cannot be decoded. `records` is their number.
    pub fn undecodable(topic: &Topic, records: u64) -> Self {
        Self::new(&topic.name, "", format!("{} cannot be decoded", count(records, "record")))
    }

    /// Returns a loss for each topic with selected records that cannot be decoded. Such records are
    /// missing from the columns. This function must be called after the columns have been read.
    #[doc(hidden)]
    pub fn of_columns(log: &dyn LogReader, select: &Select) -> Vec<Self> {
        let lost = log.undecodable(select).into_iter();
        lost.map(|(topic, records)| Self::undecodable(&log.topics()[topic.index()], records)).collect()
    }

    /// Returns the loss of `lost` values of a topic, or `None` if there are none. `noun` is the
    /// name of one value, and `why` completes the sentence.
    pub(crate) fn counted(topic: &str, lost: u64, noun: &str, why: &str) -> Option<Self> {
        (lost > 0).then(|| Self::new(topic, "", format!("{} {why}", count(lost, noun))))
    }

    pub(crate) fn new(topic: &str, column: impl Into<String>, why: impl Into<String>) -> Self {
        Self { topic: topic.to_owned(), column: column.into(), why: why.into() }
    }
}
