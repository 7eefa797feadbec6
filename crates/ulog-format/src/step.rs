//! Steps of a scan, and the fast check for ordinary rows.
//!
//! More than 99 % of the messages of a usual log are rows with a 64-bit timestamp. [`plain_row`]
//! recognizes them by the type, the id and the size, without parsing.

use rovelog_core::Rule;
use rovelog_core::internal::wire::U64Le;
use zerocopy::FromBytes as _;

use crate::clock::{MAX_MICROS, RowMicros};
use crate::definitions::{RowShape, Shapes};
use crate::wire::{Data, FileHeader, HEADER_SIZE, MSG_ID_LEN, MessageHeader, kind, number};

/// The next part of a log. Each variant contains the byte range from `at` to `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A valid message that is not a row.
    Message { at: u64, end: u64, msg_type: u8 },
    /// A valid row. `shape` describes the rows of its topic, and `before` is the log time before
    /// the row.
    Row { at: u64, end: u64, shape: RowShape, time: RowMicros, before: u64 },
    /// Bytes that cannot be read, with the rule of the diagnostic that reports them.
    Lost { at: u64, end: u64, rule: &'static Rule },
    /// The header of another log in the same file (rule D41 of docs/formats/ulog.md).
    SecondHeader { at: u64, end: u64, header: FileHeader },
    /// Bytes of a message that continues in a byte range that was not fetched.
    Unread { at: u64, end: u64 },
    /// The end of the file.
    End,
}

/// Topic and time of a row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowInfo {
    /// Number of the row's topic.
    pub(crate) series: u32,
    pub(crate) time: RowMicros,
    /// Log time after the row, in microseconds.
    pub(crate) now: u64,
}

/// A row with a 64-bit timestamp and without any diagnostic, as passed to callers of
/// `Scanner::rows`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlainRow {
    /// Offset of the row's message.
    pub(crate) at: u64,
    /// Number of the row's topic.
    pub(crate) series: u32,
    /// Size in bytes of the row's fields.
    pub(crate) len: usize,
    /// Time of the row in microseconds, on the clock of the log.
    pub(crate) micros: u64,
    /// Log time before the row, in microseconds.
    pub(crate) before: u64,
    /// Log time after the row, in microseconds.
    #[cfg(feature = "arrow")]
    pub(crate) now: u64,
}

#[cfg(feature = "arrow")]
impl PlainRow {
    /// Converts the row into the type that a [`Cursor`](crate::index::Cursor) returns.
    #[inline]
    pub(crate) fn row_info(&self) -> RowInfo {
        RowInfo { series: self.series, time: RowMicros::At(self.micros), now: self.now }
    }
}

/// Offset of a row's fields within its message, after the header and the message id.
pub(crate) const ROW_AT: usize = HEADER_SIZE + MSG_ID_LEN;

/// Returns the shape of the row at the index `at`, and the index of its end. Returns `None` if `at`
/// is not the start of an ordinary row.
///
/// A row is ordinary if all of its bytes are in `data`, its size is valid, and its topic has a
/// 64-bit timestamp and no pending diagnostic.
#[inline]
pub(crate) fn plain_row<'s>(shapes: &'s Shapes, data: &[u8], at: usize) -> Option<(&'s RowShape, usize)> {
    let (header, payload) = MessageHeader::ref_from_prefix(data.get(at..)?).ok()?;
    if header.msg_type != kind::DATA {
        return None;
    }
    let size = usize::from(header.msg_size.get());
    let shape = shapes.find(Data::view(payload)?.msg_id)?;
    let end = at + HEADER_SIZE + size;
    // If the payload is too short for an id, the subtraction wraps around to a size that no topic
    // has.
    let plain = shape.flags == 0 && shape.fits(size.wrapping_sub(MSG_ID_LEN)) && end <= data.len();
    plain.then_some((shape, end))
}

/// Returns the time in microseconds of the ordinary row at the index `at`. Returns `None` if the
/// time is after the year 2262, because it does not fit into a 64-bit number of nanoseconds.
#[inline]
pub(crate) fn plain_time(shape: &RowShape, data: &[u8], at: usize) -> Option<u64> {
    let micros = number::<U64Le>(data, at + ROW_AT + usize::from(shape.time_at))?.get();
    (micros <= MAX_MICROS).then_some(micros)
}
