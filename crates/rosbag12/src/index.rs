//! Index of the records of a V1.2 or older bag. The scan at opening builds the index, and a cursor
//! uses it to iterate over the bag again.

use std::ops::Range;

use rovelog_core::internal::index::{Index as Blocks, Skips, Span};
use rovelog_core::internal::ranges;
use zerocopy::FromBytes;

use crate::message::MessageRef;
use crate::old::lines_len;
use crate::shapes::{Head, MatchedHeader, Shapes};
use crate::tables::{Connection, Stats};
use crate::version::Version;
use crate::wire::{OldStamp, RecordHead};

/// Index of a bag before V2.0. It has blocks of records, each with its time span. Bytes outside of
/// records, such as lost ranges, version lines and padding, are recorded as skipped.
#[derive(Debug, Default)]
pub(crate) struct Index {
    /// Blocks of records, each with its time span.
    pub(crate) blocks: Blocks<Span>,
    /// Byte ranges that cannot be read. These ranges are also recorded as skipped in `blocks`.
    lost: Vec<Range<u64>>,
}

impl Index {
    /// Adds a message to the index. Messages must be added in file order. `stats` are the
    /// statistics of the connection, which already include this message.
    #[inline]
    pub(crate) fn add_message(&mut self, message: &MessageRef, stats: &mut Stats) {
        let (block, before) = (&mut stats.block, stats.count - 1);
        self.blocks.record(message.at, message.connection, block, before, Span::default).add(message.time());
    }

    /// Adds a byte range that is not part of any record, so that the cursor skips this range.
    pub(crate) fn add_skipped(&mut self, range: Range<u64>) {
        self.blocks.skip(range);
    }

    /// Adds a byte range that cannot be read, so that the cursor skips this range.
    pub(crate) fn add_lost(&mut self, range: Range<u64>) {
        self.add_skipped(range.clone());
        ranges::push(&mut self.lost, range);
    }

    /// Returns all unreadable ranges in ascending order. Adjacent ranges are merged.
    pub(crate) fn lost(&self) -> &[Range<u64>] {
        &self.lost
    }
}

/// Iterator over the records in a part of a bag. The cursor does not validate records, because the
/// scan at opening has validated them. It allocates no memory per message.
#[derive(Debug)]
pub(crate) struct Cursor<'a> {
    /// Version of the bag.
    version: Version,
    /// Shapes of the message headers in the bag. A shape is a header without its time.
    shapes: &'a Shapes,
    /// Bytes of the bag.
    data: &'a [u8],
    /// Offset in the file of the next record.
    pub(crate) at: u64,
    /// Offset in the file of the end of the part.
    end: u64,
    /// Ranges in the file that are not records and must be skipped.
    skips: Skips<'a>,
    /// Shape (header without time) of the previous message. The next message probably has the shape
    /// that came after this shape the last time.
    after: u32,
    /// Reusable buffer for looking up the shape of a message header.
    scratch: Vec<u8>,
}

/// A record found by a [`Cursor`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordRef {
    /// Offset in the file of the record.
    pub(crate) at: u64,
    /// Offset in the file of the end of the record.
    pub(crate) end: u64,
    /// Reference to the message, if the record is a message. The field `seq` of the reference is
    /// not set.
    pub(crate) message: Option<MessageRef>,
}

impl<'a> Cursor<'a> {
    /// Creates a cursor over a range of the file. The range must start and end between two records.
    /// `data` are the bytes of the bag, and `index` is the index of the bag.
    pub(crate) fn new(
        version: Version,
        shapes: &'a Shapes,
        data: &'a [u8],
        index: &'a Index,
        Range { start: at, end }: Range<u64>,
    ) -> Self {
        let skips = index.blocks.skips_from(at);
        Self { version, shapes, data, at, end, skips, after: 0, scratch: Vec::new() }
    }

    /// Returns the record at the current offset. Returns `None` if no valid record is there.
    #[inline]
    pub(crate) fn record(&mut self) -> Option<RecordRef> {
        let at = self.at;
        let bytes = self.data.get(usize::try_from(at).ok()?..)?;
        let shapes = self.shapes;
        let found = match shapes.find(bytes, self.after) {
            Some(found) => Some(found),
            None => self.parsed(bytes),
        };
        if let Some(found) = found {
            self.after = found.shape;
            let message = found.message(at, shapes.list[found.shape as usize].connection);
            self.at = message.end();
            return Some(RecordRef { at, end: self.at, message: Some(message) });
        }
        // Before V1.2, all records are messages. This record is not a message, so the file was
        // modified after it was opened.
        if self.version != Version::V1_2 {
            return None;
        }
        // The scan at opening has found a valid record here that is not a message.
        let head = RecordHead::read(bytes)?;
        self.at = at + head.size() as u64 + u64::from(head.data_len);
        Some(RecordRef { at, end: self.at, message: None })
    }

    /// Parses the header of the message at the start of `bytes`. This is the slow path for headers
    /// whose shape was not guessed.
    #[cold]
    fn parsed(&mut self, bytes: &[u8]) -> Option<MatchedHeader> {
        // The number of text lines before a message depends only on the version.
        let head = match self.version {
            Version::V1_1 => Head::old(end_of_lines(bytes, 3)?),
            Version::V1_0 => Head::old(end_of_lines(bytes, 1)?),
            Version::V1_2 => Head::of(bytes)?.0,
            _ => Head::old(0),
        };
        self.shapes.look_up(bytes, head, &mut self.scratch)
    }

    /// Calls `sink` for all messages of the part that start before `until`. Returns false at the
    /// end of the part.
    #[inline]
    pub(crate) fn messages(&mut self, until: u64, mut sink: impl FnMut(MessageRef)) -> bool {
        let until = until.min(self.end);
        loop {
            // Between two skipped ranges, one record directly follows the other, so no check for
            // skipped ranges is needed.
            let stop = self.skips.step_over(&mut self.at, self.end).min(until);
            if self.at >= until {
                return self.at < self.end;
            }
            while self.at < stop {
                let Some(record) = self.record() else { return false };
                if let Some(message) = record.message {
                    sink(message);
                }
            }
        }
    }
}

impl Iterator for Cursor<'_> {
    type Item = RecordRef;

    /// Returns the next record. This iterator may be used only for cursors over the whole file.
    fn next(&mut self) -> Option<RecordRef> {
        self.skips.step_over(&mut self.at, self.end);
        self.record()
    }
}

/// Returns the size in bytes of the first `count` lines of text.
fn end_of_lines(bytes: &[u8], count: usize) -> Option<usize> {
    memchr::memchr_iter(b'\n', bytes).nth(count - 1).map(|end| end + 1)
}

/// Returns the range in `data` of the payload of the message at offset `at`. Returns `None` if
/// `data` does not contain the whole record.
pub(crate) fn payload(
    data: &[u8],
    at: u64,
    version: Version,
    connection: &Connection,
) -> Option<Range<usize>> {
    let start = usize::try_from(at).ok()?;
    let bytes = data.get(start..)?;
    let (head, len) = if version == Version::V1_2 {
        let head = RecordHead::read(bytes)?;
        (head.size(), head.data_len)
    } else {
        let lines = lines_len(version, &connection.topic, &connection.md5, &connection.ty);
        let (stamp, _) = OldStamp::ref_from_prefix(bytes.get(lines..)?).ok()?;
        (lines + size_of::<OldStamp>(), stamp.data_len.get())
    };
    let len = len as usize;
    (bytes.len() - head >= len).then_some(start + head..start + head + len)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor as Memory;

    use super::*;
    use crate::{BagOptions, BagReader, BagWriter};

    #[test]
    fn a_cut_payload_is_not_returned() {
        let mut out = BagWriter::new(Memory::new(Vec::new())).unwrap();
        let id = out.connect(b"/a", b"a/B", &[b'0'; 32], b"uint8[] x").unwrap();
        out.message(id, 1, 0, None, b"\x02\0\0\0hi").unwrap();
        let bag = out.finish().unwrap().into_inner();
        let bag = BagReader::new(bag.into(), &BagOptions::default()).unwrap();
        let at = bag.records_in_file_order().next().unwrap().offset;
        let connection = &bag.connections()[0];
        let of = |data: &[u8]| payload(data, at, Version::V1_2, connection);
        let range = of(&bag.bytes).unwrap();
        assert_eq!(&bag.bytes[range.clone()], b"\x02\0\0\0hi");
        assert!(of(&bag.bytes[..range.end]).is_some());
        assert!(of(&bag.bytes[..range.end - 1]).is_none());
    }
}
