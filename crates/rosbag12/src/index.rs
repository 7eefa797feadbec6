//! The index that the first scan of a bag leaves, and the cursor that goes through the bag again by
//! it.

use std::ops::Range;

use rovelog_core::index::{Index as Blocks, Skips, Span};
use rovelog_core::ranges;
use zerocopy::FromBytes;

use crate::old::lines_len;
use crate::shapes::{Head, Matched};
use crate::tables::{Connection, Stats, Tables, nanos};
use crate::version::Version;
use crate::wire::{OldStamp, RecordHead};

/// Blocks with the span of their stamps; the ranges between records are lost ranges, version lines,
/// padding.
#[derive(Debug, Default)]
pub(crate) struct Index {
    pub(crate) blocks: Blocks<Span>,
    /// The lost ranges among them.
    lost: Vec<Range<u64>>,
}

impl Index {
    /// Takes a message in file order; `stats` is what is counted of its connection, this message
    /// included.
    #[inline]
    pub(crate) fn message(&mut self, at: u64, connection: u32, time: i64, stats: &mut Stats) {
        self.blocks.record(at, connection, (&mut stats.block, stats.count - 1), Span::default).add(time);
    }

    /// Takes bytes outside of records.
    pub(crate) fn skip(&mut self, range: Range<u64>) {
        self.blocks.skip(range);
    }

    /// Takes bytes that cannot be read.
    pub(crate) fn lose(&mut self, range: Range<u64>) {
        self.skip(range.clone());
        ranges::push(&mut self.lost, range);
    }

    /// Returns bytes that cannot be read, ascending, neighbours joined; all of them.
    pub(crate) fn lost(&self) -> &[Range<u64>] {
        &self.lost
    }
}

/// A second pass over a part of a bag, by the index: no validation, no allocation per message.
#[derive(Debug)]
pub(crate) struct Cursor<'a> {
    data: &'a [u8],
    tables: &'a Tables,
    version: Version,
    pub(crate) at: u64,
    end: u64,
    skips: Skips<'a>,
    after: u32,
    scratch: Vec<u8>,
}

/// A record met by a [`Cursor`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    pub(crate) at: u64,
    pub(crate) end: u64,
    /// What is known of it, if it is a message.
    pub(crate) message: Option<Message>,
}

/// A message met by a [`Cursor`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message {
    pub(crate) connection: u32,
    /// The offset of its data within the file, and its length.
    pub(crate) payload_at: usize,
    pub(crate) len: usize,
    /// As they are stored: nanoseconds of a second or more are not carried.
    pub(crate) sec: u32,
    pub(crate) nsec: u32,
}

impl Message {
    /// Returns its time, nanoseconds.
    #[inline]
    pub(crate) fn time(&self) -> i64 {
        nanos(self.sec, self.nsec)
    }
}

impl<'a> Cursor<'a> {
    /// Returns a pass over all of the file.
    pub(crate) fn all(data: &'a [u8], index: &'a Index, tables: &'a Tables, version: Version) -> Self {
        Self::new(data, index, tables, version, 0..index.blocks.end())
    }

    /// Returns the message at `at`, where the first scanner found one.
    pub(crate) fn message_at(
        data: &'a [u8],
        index: &'a Index,
        tables: &'a Tables,
        version: Version,
        at: u64,
    ) -> Option<(Record, Message)> {
        let record = Self::new(data, index, tables, version, at..index.blocks.end()).record()?;
        Some((record, record.message?))
    }

    /// Returns a pass over one block.
    pub(crate) fn block(
        data: &'a [u8],
        index: &'a Index,
        tables: &'a Tables,
        version: Version,
        block: usize,
    ) -> Self {
        Self::new(data, index, tables, version, index.blocks.bytes_of(block))
    }

    fn new(
        data: &'a [u8],
        index: &'a Index,
        tables: &'a Tables,
        version: Version,
        Range { start: at, end }: Range<u64>,
    ) -> Self {
        let skips = index.blocks.skips_from(at);
        Self { data, tables, version, at, end, skips, after: 0, scratch: Vec::new() }
    }

    /// Returns the record at the place, behind what is skipped.
    #[inline]
    fn record(&mut self) -> Option<Record> {
        let at = self.at;
        let start = usize::try_from(at).ok()?;
        let bytes = self.data.get(start..)?;
        let found = match self.tables.shapes.find(bytes, self.after) {
            Some(found) => Some(found),
            None => self.parsed(bytes),
        };
        if let Some(found) = found {
            self.after = found.shape;
            self.at = at + found.size() as u64;
            let message = Message {
                connection: self.tables.shapes.list[found.shape as usize].connection,
                payload_at: start + found.head,
                len: found.len,
                sec: found.sec,
                nsec: found.nsec,
            };
            return Some(Record { at, end: self.at, message: Some(message) });
        }
        // Before V1.2 all records are messages: another program has changed the file since the first scanner.
        if self.version != Version::V1_2 {
            return None;
        }
        // The first scanner found a whole record of another kind here.
        let head = RecordHead::read(bytes)?;
        self.at = at + head.size() as u64 + u64::from(head.data_len);
        Some(Record { at, end: self.at, message: None })
    }

    /// Returns the message at the start of `bytes`, by its header.
    #[cold]
    fn parsed(&mut self, bytes: &[u8]) -> Option<Matched> {
        if self.version != Version::V1_2 {
            // The number of lines is known, and every topic has been met.
            let lines = match self.version {
                Version::V1_1 => 3,
                Version::V1_0 => 1,
                _ => 0,
            };
            let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(i, _)| i + 1);
            let lines = if lines == 0 { 0 } else { ends.take(lines).last()? };
            return self.tables.shapes.look_up(bytes, Head::old(lines), &mut self.scratch);
        }
        let (head, _) = Head::of(bytes)?;
        self.tables.shapes.look_up(bytes, head, &mut self.scratch)
    }

    /// Hands all messages that begin before `until` to `sink`; false at the end of the scanner.
    #[inline]
    pub(crate) fn messages(&mut self, until: u64, mut sink: impl FnMut(u64, Message)) -> bool {
        let until = until.min(self.end);
        loop {
            let stop = self.skips.step_over(&mut self.at, self.end).min(until);
            if self.at >= until {
                return self.at < self.end;
            }
            while self.at < stop {
                let Some(record) = self.record() else { return false };
                if let Some(message) = record.message {
                    sink(record.at, message);
                }
            }
        }
    }
}

impl Iterator for Cursor<'_> {
    type Item = Record;

    /// Returns the next record of a pass over all of the file: where its bytes end, there is none.
    fn next(&mut self) -> Option<Record> {
        self.skips.step_over(&mut self.at, self.end);
        self.record()
    }
}

/// Returns the payload of the message at `at`, whose whole record is in `data`.
pub(crate) fn payload(
    data: &[u8],
    at: u64,
    version: Version,
    connection: &Connection,
) -> Option<(usize, usize)> {
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
    (bytes.len() - head >= len as usize).then_some((start + head, len as usize))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor as Memory;

    use super::*;
    use crate::{BagOptions, BagReader, BagWriter};

    #[test]
    fn a_payload_is_whole() {
        let mut out = BagWriter::new(Memory::new(Vec::new())).unwrap();
        let id = out.connect(b"/a", b"a/B", &[b'0'; 32], b"uint8[] x").unwrap();
        out.message(id, 1, 0, None, b"\x02\0\0\0hi").unwrap();
        let bag = out.finish().unwrap().into_inner();
        let bag = BagReader::new(bag.into(), &BagOptions::default()).unwrap();
        let at = bag.records_in_file_order().next().unwrap().offset;
        let connection = &bag.connections()[0];
        let of = |data: &[u8]| payload(data, at, Version::V1_2, connection);
        let (place, len) = of(&bag.bytes).unwrap();
        assert_eq!(&bag.bytes[place..place + len], b"\x02\0\0\0hi");
        assert!(of(&bag.bytes[..place + len]).is_some());
        assert!(of(&bag.bytes[..place + len - 1]).is_none());
    }
}
