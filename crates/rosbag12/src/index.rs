//! The index that opening a bag leaves: enough to walk any part of it again, and no more than a
//! thousandth of its size.

use std::ops::Range;

use rovelog_core::ranges;
use zerocopy::FromBytes;

use crate::old::lines_len;
use crate::shapes::{Head, Matched};
use crate::tables::{Connection, Stats, Tables, nanos};
use crate::version::Version;
use crate::wire::{OldStamp, RecordHead};

/// Bytes of file per block.
const BLOCK: u64 = 4 << 20;

/// A stretch of the file that begins at a message.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) start: u64,
    /// Lowest and highest stamp in it.
    pub(crate) first: i64,
    pub(crate) last: i64,
    /// The connections with messages in it, and how many they have before it.
    pub(crate) before: Vec<(u32, u64)>,
}

/// Blocks, and what a walk over them must step over.
#[derive(Debug, Default)]
pub(crate) struct Index {
    pub(crate) blocks: Vec<Block>,
    /// Bytes outside of records, ascending: lost ones, version lines, padding.
    gaps: Vec<Range<u64>>,
    /// The lost ones among them.
    lost: Vec<Range<u64>>,
    /// Where the file ends.
    end: u64,
    number: u32,
    full_at: u64,
    first: i64,
    last: i64,
}

impl Index {
    /// Takes a message in file order; `stats` is what is counted of its connection, this message included.
    #[inline]
    pub(crate) fn message(&mut self, at: u64, connection: u32, time: i64, stats: &mut Stats) {
        if at >= self.full_at {
            self.begin_block(at);
        }
        self.first = self.first.min(time);
        self.last = self.last.max(time);
        if stats.block != self.number {
            stats.block = self.number;
            if let Some(block) = self.blocks.last_mut() {
                block.before.push((connection, stats.count - 1));
            }
        }
    }

    #[cold]
    fn begin_block(&mut self, at: u64) {
        self.end_block();
        self.blocks.push(Block { start: at, first: i64::MAX, last: i64::MIN, before: Vec::new() });
        self.number += 1;
        self.full_at = at + BLOCK;
        (self.first, self.last) = (i64::MAX, i64::MIN);
    }

    fn end_block(&mut self) {
        if let Some(block) = self.blocks.last_mut() {
            (block.first, block.last) = (self.first, self.last);
        }
    }

    /// Takes bytes outside of records.
    pub(crate) fn gap(&mut self, range: Range<u64>) {
        ranges::push(&mut self.gaps, range);
    }

    /// Takes bytes that cannot be read.
    pub(crate) fn lose(&mut self, range: Range<u64>) {
        ranges::push(&mut self.gaps, range.clone());
        ranges::push(&mut self.lost, range);
    }

    /// Bytes that cannot be read, ascending, neighbours joined; all of them.
    pub(crate) fn lost(&self) -> &[Range<u64>] {
        &self.lost
    }

    /// Bytes outside of records, ascending, neighbours joined.
    pub(crate) fn gaps(&self) -> &[Range<u64>] {
        &self.gaps
    }

    /// Completes the index when the walk has ended at `end`.
    pub(crate) fn finish(&mut self, end: u64) {
        self.end = end;
        self.end_block();
    }

    /// Whether any of these connections has messages in a block.
    pub(crate) fn has_any(&self, block: usize, wanted: &[bool]) -> bool {
        self.blocks[block].before.iter().any(|(connection, _)| wanted[*connection as usize])
    }
}

/// A second walk over a part of a bag, by the index: no judging, no allocation per message.
#[derive(Debug)]
pub(crate) struct Cursor<'a> {
    data: &'a [u8],
    index: &'a Index,
    tables: &'a Tables,
    version: Version,
    pub(crate) at: u64,
    end: u64,
    gap: usize,
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
    /// Its time, nanoseconds.
    #[inline]
    pub(crate) fn time(&self) -> i64 {
        nanos(self.sec, self.nsec)
    }
}

impl<'a> Cursor<'a> {
    /// A walk over all of the file.
    pub(crate) fn all(data: &'a [u8], index: &'a Index, tables: &'a Tables, version: Version) -> Self {
        Self::new(data, index, tables, version, 0..index.end)
    }

    /// The message at `at`, where the first walk found one.
    pub(crate) fn message_at(
        data: &'a [u8],
        index: &'a Index,
        tables: &'a Tables,
        version: Version,
        at: u64,
    ) -> Option<(Record, Message)> {
        let record = Self::new(data, index, tables, version, at..index.end).record()?;
        Some((record, record.message?))
    }

    /// A walk over one block.
    pub(crate) fn block(
        data: &'a [u8],
        index: &'a Index,
        tables: &'a Tables,
        version: Version,
        block: usize,
    ) -> Self {
        let end = index.blocks.get(block + 1).map_or(index.end, |next| next.start);
        Self::new(data, index, tables, version, index.blocks[block].start..end)
    }

    fn new(
        data: &'a [u8],
        index: &'a Index,
        tables: &'a Tables,
        version: Version,
        Range { start: at, end }: Range<u64>,
    ) -> Self {
        let gap = index.gaps.partition_point(|gap| gap.end <= at);
        Self { data, index, tables, version, at, end, gap, after: 0, scratch: Vec::new() }
    }

    /// Steps over gaps; where the next one begins.
    fn settle(&mut self) -> u64 {
        while let Some(gap) = self.index.gaps.get(self.gap).filter(|gap| gap.start <= self.at) {
            self.at = self.at.max(gap.end);
            self.gap += 1;
        }
        self.index.gaps.get(self.gap).map_or(self.end, |gap| gap.start.min(self.end))
    }

    /// The record at the place, which [`settle`](Self::settle) found to be one.
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
        // Before V1.2 all records are messages: another program has changed the file since the first walk.
        if self.version != Version::V1_2 {
            return None;
        }
        // The first walk found a whole record of another kind here.
        let head = RecordHead::read(bytes)?;
        self.at = at + head.size() as u64 + u64::from(head.data_len);
        Some(Record { at, end: self.at, message: None })
    }

    /// The message at the start of `bytes`, by its header.
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

    /// Hands all messages that begin before `until` to `sink`; false at the end of the walk.
    #[inline]
    pub(crate) fn messages(&mut self, until: u64, mut sink: impl FnMut(u64, Message)) -> bool {
        let until = until.min(self.end);
        loop {
            let stop = self.settle().min(until);
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

    fn next(&mut self) -> Option<Record> {
        self.settle();
        if self.at < self.end { self.record() } else { None }
    }
}

/// The payload of the message at `at`, whose whole record lies in `data`.
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
