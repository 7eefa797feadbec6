//! What a scan of a log meets.

use rovelog_core::Rule;

use crate::clock::RowMicros;
use crate::definitions::RowShape;

/// What comes next in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A valid message that is not a row.
    Message { at: u64, end: u64, msg_type: u8 },
    /// A valid row of data, with its active shape and its time.
    Row { at: u64, end: u64, shape: RowShape, time: RowMicros, before: u64 },
    /// Bytes that cannot be read.
    Lost { at: u64, end: u64, rule: &'static Rule },
    /// Bytes of a message that is in part in bytes that were not read.
    Unread { at: u64, end: u64 },
    /// The end of the file.
    End,
}

/// What is known of a row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MetRow {
    pub(crate) series: u32,
    pub(crate) time: RowMicros,
    /// The log time at its place.
    pub(crate) now: u64,
}

/// A row as [`Scanner::rows`] hands it out: one with a 64-bit timestamp and nothing to note.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlainRow {
    pub(crate) at: u64,
    pub(crate) series: u32,
    /// Bytes of its fields.
    pub(crate) len: usize,
    pub(crate) micros: u64,
    /// Log time before and after it.
    pub(crate) before: u64,
    #[cfg(feature = "arrow")]
    pub(crate) now: u64,
}

#[cfg(feature = "arrow")]
impl PlainRow {
    /// Returns the same row as a second pass meets it.
    #[inline]
    pub(crate) fn met(&self) -> MetRow {
        MetRow { series: self.series, time: RowMicros::At(self.micros), now: self.now }
    }
}
