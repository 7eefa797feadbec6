//! Reference to a message in a bag, and its publisher.

use rovelog_core::internal::text::escape_bytes;

/// Reference to a message in a bag.
///
/// Offsets refer to the file before V2.0, and to the decompressed chunk in V2.0. The structure has
/// 40 bytes, because merging keeps many references in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MessageRef {
    /// Offset of the message record.
    pub(crate) at: u64,
    /// Size in bytes of the part of the record before the payload.
    pub(crate) head_len: u32,
    /// Size in bytes of the payload.
    pub(crate) payload_len: u32,
    /// Index of the connection to which the message belongs.
    pub(crate) connection: u32,
    /// For V2.0, the index of the origin, that is, of a distinct connection record. Until the
    /// origin is looked up, the connection id in the message header.
    pub(crate) origin: u32,
    /// Number of earlier messages of the same connection, if the messages are counted.
    pub(crate) seq: u64,
    /// Seconds part of the message time.
    pub(crate) sec: u32,
    /// Nanoseconds part of the message time, as stored. The value may be a second or more.
    pub(crate) nsec: u32,
}

impl MessageRef {
    /// Returns the message time in nanoseconds.
    #[inline]
    pub(crate) fn time(&self) -> i64 {
        nanos(self.sec, self.nsec)
    }

    /// Returns the offset of the payload.
    #[inline]
    pub(crate) fn payload_at(&self) -> u64 {
        self.at + u64::from(self.head_len)
    }

    /// Returns the offset of the end of the message record.
    #[inline]
    pub(crate) fn end(&self) -> u64 {
        self.payload_at() + u64::from(self.payload_len)
    }

    /// Returns the payload of the message. `bytes` is the whole file, or the decompressed chunk
    /// that contains the message.
    #[inline]
    pub(crate) fn payload<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        &bytes[usize_of(self.payload_at())..usize_of(self.end())]
    }
}

/// Converts seconds and nanoseconds to nanoseconds. A nanoseconds value of one second or more is
/// added in full.
#[inline]
pub(crate) fn nanos(sec: u32, nsec: u32) -> i64 {
    i64::from(sec) * 1_000_000_000 + i64::from(nsec)
}

/// Converts an offset to an index. The offset must be within bytes that are in memory.
pub(crate) fn usize_of(at: u64) -> usize {
    usize::try_from(at).expect("within the bytes at hand")
}

/// Publisher of a message. Fields that the bag does not record are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Publisher {
    /// True if the publisher is latching, that is, if it sends its last message to every new
    /// subscriber.
    pub latching: bool,
    /// Node name of the publisher.
    pub callerid: Option<String>,
}

impl Publisher {
    /// Creates a publisher from the fields `latching` and `callerid` of a header.
    pub(crate) fn of_fields(latching: Option<&[u8]>, callerid: Option<&[u8]>) -> Self {
        Self { latching: latching == Some(b"1"), callerid: callerid.map(escape_bytes) }
    }

    /// Creates a latching publisher. V1.2 bags record only latching publishers.
    pub fn latching(callerid: impl Into<String>) -> Self {
        Self { latching: true, callerid: Some(callerid.into()) }
    }
}
