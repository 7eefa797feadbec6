//! Records: borrowed views of the entries of a log.

use std::fmt;

use crate::{Result, Timestamp, Topic, Value};

/// Turns a payload into values; each format's tables of definitions implement it.
pub trait Decode: Send + Sync {
    /// Returns the fields of one record of `topic`, as a [`Value::Struct`].
    ///
    /// # Errors
    /// Returns an error if the payload does not have the size or the content that the schema asks
    /// for.
    fn value(&self, topic: &Topic, payload: &[u8]) -> Result<Value>;
}

/// One timestamped entry of a log. Borrows from its reader: nothing is copied until asked for.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Record<'a> {
    /// The topic it belongs to.
    pub topic: &'a Topic,
    /// Its time on the log's clock; `None` where the topic carries none.
    pub time: Option<Timestamp>,
    /// The offset of its first byte, framing included, from the start of the file.
    pub offset: u64,
    /// Its number within the topic, in file order from 0.
    pub seq: u64,
    /// Its bytes, framing excluded.
    pub payload: &'a [u8],
    decode: &'a dyn Decode,
}

impl<'a> Record<'a> {
    /// Returns a record over its parts; for implementations of readers.
    pub fn new(
        topic: &'a Topic,
        time: Option<Timestamp>,
        offset: u64,
        seq: u64,
        payload: &'a [u8],
        decode: &'a dyn Decode,
    ) -> Self {
        Self { topic, time, offset, seq, payload, decode }
    }

    /// Returns the record's fields as an owned [`Value::Struct`].
    ///
    /// # Errors
    /// Returns an error if the payload does not have the size or the content that the schema asks
    /// for.
    pub fn value(&self) -> Result<Value> {
        self.decode.value(self.topic, self.payload)
    }
}

impl fmt::Debug for Record<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record")
            .field("topic", &self.topic.name)
            .field("time", &self.time)
            .field("offset", &self.offset)
            .field("seq", &self.seq)
            .field("payload", &self.payload.len())
            .finish()
    }
}

/// A line of a log's console: what a device printed while it recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Text {
    /// When it was printed; `None` where the format does not say.
    pub time: Option<Timestamp>,
    /// The offset of its first byte, framing included.
    pub offset: u64,
    /// How grave it is: 0 emergency to 7 debug, as in syslog.
    pub level: u8,
    /// Who printed it: a tag, a node, a process.
    pub source: Option<String>,
    /// The text; invalid UTF-8 replaced.
    pub text: String,
}

/// The names of the syslog levels, by number.
pub const LEVELS: [&str; 8] =
    ["emergency", "alert", "critical", "error", "warning", "notice", "info", "debug"];

impl Text {
    /// Returns a line without a source.
    pub fn new(time: Option<Timestamp>, offset: u64, level: u8, text: String) -> Self {
        Self { time, offset, level, source: None, text }
    }

    /// Returns the same line with its source.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<String>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Returns the level's name: `warning`.
    pub fn level_name(&self) -> &'static str {
        LEVELS[usize::from(self.level.min(7))]
    }
}
