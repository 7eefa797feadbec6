//! What a scan of a log meets.

use rovelog_core::Rule;
use rovelog_core::wire::U64Le;
use zerocopy::FromBytes as _;

use crate::clock::{MAX_MICROS, RowMicros};
use crate::definitions::{RowShape, Shapes};
use crate::wire::{Data, FileHeader, HEADER_SIZE, MSG_ID_LEN, MessageHeader, kind, number};

/// What comes next in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A valid message that is not a row.
    Message { at: u64, end: u64, msg_type: u8 },
    /// A valid row of data, with its active shape and its time.
    Row { at: u64, end: u64, shape: RowShape, time: RowMicros, before: u64 },
    /// Bytes that cannot be read.
    Lost { at: u64, end: u64, rule: &'static Rule },
    /// The header of another log.
    Joined { at: u64, end: u64, header: FileHeader },
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

/// Offset of the fields of a row in its message, behind header and id.
pub(crate) const ROW_AT: usize = HEADER_SIZE + MSG_ID_LEN;

/// Returns a row at `at` that needs no closer look, and its end.
#[inline]
pub(crate) fn plain_row<'s>(shapes: &'s Shapes, data: &[u8], at: usize) -> Option<(&'s RowShape, usize)> {
    let (header, payload) = MessageHeader::ref_from_prefix(data.get(at..)?).ok()?;
    if header.msg_type != kind::DATA {
        return None;
    }
    let size = usize::from(header.msg_size.get());
    let shape = shapes.find(Data::view(payload)?.msg_id)?;
    let end = at + HEADER_SIZE + size;
    let plain = shape.flags == 0 && shape.fits(size.wrapping_sub(MSG_ID_LEN)) && end <= data.len();
    plain.then_some((shape, end))
}

/// Returns the time of a plain row at `at`; `None` where nanoseconds cannot hold it.
#[inline]
pub(crate) fn plain_time(shape: &RowShape, data: &[u8], at: usize) -> Option<u64> {
    let micros = number::<U64Le>(data, at + ROW_AT + usize::from(shape.time_at))?.get();
    (micros <= MAX_MICROS).then_some(micros)
}
