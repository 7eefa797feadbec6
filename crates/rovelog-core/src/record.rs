//! Records: entries of a log, borrowed from its reader.

use std::borrow::Cow;
use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

use crate::internal::layout::{DecodeError, Keys, Layout, Visit};
use crate::{Error, ErrorKind, Result, Timestamp, Topic, Value};

/// Finds the fields in the payload of a record. Each format implements this trait, because each
/// format defines the types of records in a different way.
pub trait Decode: Send + Sync {
    /// Returns the fields of a record of `topic`. The payload is checked first.
    ///
    /// # Errors
    /// Returns an error if the size or the content of the payload contradicts the schema.
    fn fields<'a>(&'a self, topic: &Topic, payload: &'a [u8]) -> Result<Fields<'a>>;
}

/// The encoded fields of a record: bytes, and the layout of these bytes.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    /// Layout of the bytes.
    pub layout: &'a Arc<Layout>,
    /// Bytes of the fields. These are the bytes of the payload, unless the format computes the
    /// fields from the payload.
    pub bytes: Cow<'a, [u8]>,
}

impl<'a> Fields<'a> {
    /// Returns the fields of a payload. `layout` must be the layout of the payload.
    #[inline]
    pub fn new(layout: &'a Arc<Layout>, payload: &'a [u8]) -> Self {
        Self { layout, bytes: Cow::Borrowed(payload) }
    }

    /// Returns a single field that contains all bytes of a payload. `layout` must come from
    /// [`Layout::of_bytes`].
    pub fn raw(layout: &'a Arc<Layout>, payload: &[u8]) -> Self {
        let len = u32::try_from(payload.len()).unwrap_or(u32::MAX);
        Self { layout, bytes: [&len.to_le_bytes(), payload].concat().into() }
    }

    /// Passes the fields to a visitor. `keys` has the data that the visitor prepared for each
    /// field.
    ///
    /// # Errors
    /// Returns an error if the bytes do not match the layout. This does not happen for records of a
    /// log, because [`Decode::fields`] has checked them.
    #[inline]
    pub fn visit<T: Keys>(&self, keys: &T, visitor: &mut impl Visit<T::Key>) -> Result<()> {
        self.layout.visit(&self.bytes, keys, visitor).map(|_| ()).map_err(Self::error)
    }

    /// Decodes the fields to an owned [`Value::Struct`].
    ///
    /// # Errors
    /// Returns the same errors as [`visit`](Self::visit).
    pub fn value(&self) -> Result<Value> {
        self.layout.value(&self.bytes).map(|(value, _)| value).map_err(Self::error)
    }

    #[cold]
    fn error(error: DecodeError) -> Error {
        Error::new("rovelog", ErrorKind::Malformed, None, error.to_string())
    }
}

/// The bytes of a record without its header. They are borrowed from the log, or they are a range of
/// a decompressed block that several records share.
#[derive(Clone)]
pub struct Payload<'a>(Bytes<'a>);

/// Storage of a payload's bytes.
#[derive(Clone)]
enum Bytes<'a> {
    /// Bytes that are borrowed from the log.
    Borrowed(&'a [u8]),
    /// A range of a decompressed block that several payloads share.
    Shared(Arc<Vec<u8>>, Range<usize>),
}

impl<'a> Payload<'a> {
    /// Returns the bytes if they are borrowed from the log. Returns `None` if they are in a
    /// decompressed block.
    #[inline]
    pub fn borrowed(&self) -> Option<&'a [u8]> {
        match self.0 {
            Bytes::Borrowed(bytes) => Some(bytes),
            Bytes::Shared(..) => None,
        }
    }

    /// Creates a payload from a range of a decompressed block.
    ///
    /// # Panics
    /// Panics if `range` is not within the block.
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

/// A timestamped entry of a log. The payload is not copied, and it is decoded only when a method
/// requests it.
#[derive(Clone)]
#[non_exhaustive]
pub struct Record<'a> {
    /// The topic that the record belongs to.
    pub topic: &'a Topic,
    /// Time on the log's clock, or `None` if the record has no time.
    pub time: Option<Timestamp>,
    /// Offset in the file of the record's first byte, which may belong to the header of the record.
    pub offset: u64,
    /// Number of the record within its topic, in file order, starting with 0.
    pub seq: u64,
    /// Bytes of the record without its header.
    pub payload: Payload<'a>,
    /// Decoder for the payload of the record.
    decode: &'a dyn Decode,
    /// Number of the record's source, if the reader distinguishes several sources of a topic.
    origin: u32,
}

impl<'a> Record<'a> {
    /// Creates a record. This function is for implementations of readers.
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

    /// Sets the number of the record's source. This is for readers that distinguish several sources
    /// of a topic, such as several publishers.
    #[doc(hidden)]
    #[must_use]
    pub fn with_origin(mut self, origin: u32) -> Self {
        self.origin = origin;
        self
    }

    /// Returns the number of the record's source, or 0 if the reader does not distinguish sources.
    #[doc(hidden)]
    pub fn origin(&self) -> u32 {
        self.origin
    }

    /// Decodes the record's fields to an owned [`Value::Struct`].
    ///
    /// # Errors
    /// Returns an error if the size or the content of the payload contradicts the schema.
    pub fn value(&self) -> Result<Value> {
        self.fields()?.value()
    }

    /// Returns the encoded fields of the record: bytes, and the layout of these bytes.
    ///
    /// # Errors
    /// Returns the same errors as [`value`](Self::value).
    #[inline]
    pub fn fields(&self) -> Result<Fields<'_>> {
        self.decode.fields(self.topic, &self.payload)
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

/// A console line that the device printed during the recording.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Text {
    /// Time at which the line was printed, or `None` if the format does not store it.
    pub time: Option<Timestamp>,
    /// Offset in the file of the line's first byte, which may belong to the header of the line.
    pub offset: u64,
    /// Syslog severity, from 0 (emergency) to 7 (debug).
    pub level: u8,
    /// Source of the line, such as a tag, a node or a process.
    pub source: Option<String>,
    /// Text of the line. Bytes that are not UTF-8 are replaced.
    pub text: String,
}

/// Names of the syslog severities, indexed by severity.
pub const LEVELS: [&str; 8] =
    ["emergency", "alert", "critical", "error", "warning", "notice", "info", "debug"];

impl Text {
    /// Creates a console line without a source.
    pub fn new(time: Option<Timestamp>, offset: u64, level: u8, text: String) -> Self {
        Self { time, offset, level, source: None, text }
    }

    /// Sets the source of the console line.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<String>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Returns the name of the line's severity, such as `warning`. A severity above 7 counts as
    /// debug.
    pub fn level_name(&self) -> &'static str {
        LEVELS[usize::from(self.level.min(7))]
    }
}
