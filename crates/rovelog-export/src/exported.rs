//! What an export came to, and what it could not carry.

use rovelog::Topic;
use rovelog::core::text::count;

/// A file of messages that was written.
#[derive(Debug)]
#[non_exhaustive]
pub struct Exported<W> {
    /// Where it was written.
    pub out: W,
    /// Its messages.
    pub messages: u64,
    /// What could not be carried.
    pub losses: Vec<Loss>,
    /// What is different by design, and costs nothing that the other side has a place for.
    pub notes: Vec<String>,
}

impl Exported<()> {
    /// The same with where it was written.
    pub(crate) fn with_out<W>(self, out: W) -> Exported<W> {
        let Self { messages, losses, notes, .. } = self;
        Exported { out, messages, losses, notes }
    }
}

/// Values that the output could not carry.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loss {
    /// The topic.
    pub topic: String,
    /// The column; empty where it is about all of the topic.
    pub column: String,
    /// Reason, with the number of values: `raw bytes, which CSV cannot represent`.
    pub why: String,
}

impl Loss {
    /// All records of a topic that cannot be decoded.
    pub fn undecodable(topic: &Topic) -> Self {
        Self::new(&topic.name, "", format!("{} cannot be decoded", count(topic.count, "record")))
    }

    pub(crate) fn new(topic: &str, column: impl Into<String>, why: impl Into<String>) -> Self {
        Self { topic: topic.to_owned(), column: column.into(), why: why.into() }
    }
}
