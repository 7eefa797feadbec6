//! The result of an export, with the values that it could not carry.

use rovelog::core::text::count;
use rovelog::{LogReader, Select, Topic};

/// Result of an export that writes messages to one file.
#[derive(Debug)]
#[non_exhaustive]
pub struct Exported<W> {
    /// The output, complete.
    pub out: W,
    /// Number of messages written.
    pub messages: u64,
    /// Values that could not be carried.
    pub losses: Vec<Loss>,
    /// Intended differences from the log that lose no data the output format could hold.
    pub notes: Vec<String>,
}

impl Exported<()> {
    /// Returns the same result with another output.
    pub(crate) fn with_out<W>(self, out: W) -> Exported<W> {
        let Self { messages, losses, notes, .. } = self;
        Exported { out, messages, losses, notes }
    }
}

/// Values that the output could not carry.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loss {
    /// Name of the topic.
    pub topic: String,
    /// Name of the column; empty if the loss concerns the whole topic.
    pub column: String,
    /// Reason, with the number of values: `raw bytes, which CSV cannot represent`.
    pub why: String,
}

impl Loss {
    /// Returns the loss of so many records of a topic that cannot be decoded.
    pub fn undecodable(topic: &Topic, records: u64) -> Self {
        Self::new(&topic.name, "", format!("{} cannot be decoded", count(records, "record")))
    }

    /// Returns the losses of the selected records that columns leave out. They are known once the
    /// columns were read.
    #[doc(hidden)]
    pub fn of_columns(log: &dyn LogReader, select: &Select) -> Vec<Self> {
        let lost = log.undecodable(select).into_iter();
        lost.map(|(topic, records)| Self::undecodable(&log.topics()[topic.index()], records)).collect()
    }

    pub(crate) fn new(topic: &str, column: impl Into<String>, why: impl Into<String>) -> Self {
        Self { topic: topic.to_owned(), column: column.into(), why: why.into() }
    }
}
