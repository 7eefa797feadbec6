//! Records: borrowed views of the entries of a log.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

use crate::layout::Layout;
use crate::{Result, Timestamp, Topic, Value};

/// Turns a payload into values; each format's tables of definitions implement it.
pub trait Decode: Send + Sync {
    /// Returns the fields of one record of `topic`, as a [`Value::Struct`].
    ///
    /// # Errors
    /// Returns an error if the payload does not have the size or the content that the schema asks
    /// for.
    fn value(&self, topic: &Topic, payload: &[u8]) -> Result<Value>;

    /// Returns the layout by which [`value`](Self::value) decodes the payload; `None` if it decodes
    /// otherwise, or not at all.
    #[doc(hidden)]
    fn layout(&self, _topic: &Topic, _payload: &[u8]) -> Option<&Arc<Layout>> {
        None
    }
}

/// The bytes of a record: borrowed from the log, or shared with the other records of a block that
/// was decompressed.
#[derive(Clone)]
pub struct Payload<'a>(Bytes<'a>);

#[derive(Clone)]
enum Bytes<'a> {
    Borrowed(&'a [u8]),
    Shared(Arc<Vec<u8>>, Range<usize>),
}

impl<'a> Payload<'a> {
    /// Returns the bytes of the log itself; `None` if they were decompressed.
    #[inline]
    pub fn borrowed(&self) -> Option<&'a [u8]> {
        match self.0 {
            Bytes::Borrowed(bytes) => Some(bytes),
            Bytes::Shared(..) => None,
        }
    }

    /// Makes a payload of a range of a decompressed block.
    ///
    /// # Panics
    /// Panics if the block does not have them.
    pub fn shared(block: &Arc<Vec<u8>>, range: Range<usize>) -> Self {
        assert!(range.start <= range.end && range.end <= block.len());
        Self(Bytes::Shared(Arc::clone(block), range))
    }
}

impl<'a> From<&'a [u8]> for Payload<'a> {
    #[inline]
    fn from(bytes: &'a [u8]) -> Self {
        Self(Bytes::Borrowed(bytes))
    }
}

impl Deref for Payload<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Bytes::Borrowed(bytes) => bytes,
            Bytes::Shared(block, range) => &block[range.clone()],
        }
    }
}

impl AsRef<[u8]> for Payload<'_> {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Eq for Payload<'_> {}

impl<T: AsRef<[u8]> + ?Sized> PartialEq<T> for Payload<'_> {
    fn eq(&self, other: &T) -> bool {
        **self == *other.as_ref()
    }
}

impl fmt::Debug for Payload<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

/// One timestamped entry of a log. Borrows from its reader: nothing is copied until asked for.
#[derive(Clone)]
#[non_exhaustive]
pub struct Record<'a> {
    /// The topic it belongs to.
    pub topic: &'a Topic,
    /// Its time on the log's clock; `None` if it has none.
    pub time: Option<Timestamp>,
    /// The offset of its first byte, framing included, from the start of the file.
    pub offset: u64,
    /// Its number within the topic, in file order from 0.
    pub seq: u64,
    /// Its bytes, framing excluded.
    pub payload: Payload<'a>,
    decode: &'a dyn Decode,
    origin: u32,
}

impl<'a> Record<'a> {
    /// Returns a record over its parts; for implementations of readers.
    pub fn new(
        topic: &'a Topic,
        time: Option<Timestamp>,
        offset: u64,
        seq: u64,
        payload: impl Into<Payload<'a>>,
        decode: &'a dyn Decode,
    ) -> Self {
        Self { topic, time, offset, seq, payload: payload.into(), decode, origin: 0 }
    }

    /// Returns the same record with the number of its source, for readers that distinguish several
    /// sources of one topic.
    #[doc(hidden)]
    #[must_use]
    pub fn with_origin(mut self, origin: u32) -> Self {
        self.origin = origin;
        self
    }

    /// Returns the number of the record's source; 0 if the reader does not distinguish sources.
    #[doc(hidden)]
    pub fn origin(&self) -> u32 {
        self.origin
    }

    /// Returns the record's fields as an owned [`Value::Struct`].
    ///
    /// # Errors
    /// Returns an error if the payload does not have the size or the content that the schema asks
    /// for.
    pub fn value(&self) -> Result<Value> {
        self.decode.value(self.topic, &self.payload)
    }

    /// Returns the layout by which [`value`](Self::value) decodes the record; `None` if it decodes
    /// otherwise, or not at all.
    #[doc(hidden)]
    #[inline]
    pub fn layout(&self) -> Option<&'a Arc<Layout>> {
        self.decode.layout(self.topic, &self.payload)
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
    /// Its severity: 0 emergency to 7 debug, as in syslog.
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
