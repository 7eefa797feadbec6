//! A log in parts that several threads can walk at the same time.

use std::ops::Range;

use rovelog_core::{LogReader as _, Topic};

use crate::index::{Cursor, row_bytes};
use crate::message::Message;
use crate::reader::UlogReader;

/// A part of a log.
#[derive(Debug)]
pub struct Part<'a> {
    reader: &'a UlogReader,
    blocks: Range<usize>,
    first_rows: Vec<u64>,
}

impl UlogReader {
    /// The log in at most `parts` parts, one behind the other in the file, that can be walked at the same time. The
    /// first begins behind the header, the others at a record; there is none where there are no records.
    pub fn parts(&self, parts: usize) -> Vec<Part<'_>> {
        let blocks = self.index().blocks.len();
        let parts = parts.min(blocks);
        let bounds = |part: usize| part * blocks / parts..(part + 1) * blocks / parts;
        let part = |blocks: Range<usize>| {
            let topics = self.topics().iter().enumerate();
            let before = |block, series, count| self.index().topic_rows_before(block, series, count);
            let first_rows =
                topics.map(|(series, topic)| before(blocks.start, series, topic.count)).collect();
            Part { reader: self, blocks, first_rows }
        };
        (0..parts).map(bounds).map(part).collect()
    }
}

impl<'a> Part<'a> {
    /// The offset where it begins.
    pub fn start(&self) -> u64 {
        self.cursor().at
    }

    /// How many records of each topic are before this part: the number ([`Record::seq`](rovelog_core::Record::seq)) of
    /// its first one.
    pub fn first_rows(&self) -> &[u64] {
        &self.first_rows
    }

    /// Hands every record of this part in file order to `visit`: offset, topic, payload. The fastest way through a
    /// log.
    pub fn scan(&self, mut visit: impl FnMut(u64, &'a Topic, &'a [u8])) {
        let (data, topics) = (self.reader.bytes(), self.reader.topics());
        self.cursor().rows(u64::MAX, |at, row| {
            if let Some(payload) = row_bytes(data, at) {
                visit(at, &topics[row.series as usize], payload);
            }
        });
    }

    /// The sound messages of this part in file order, with the offset of each.
    pub fn messages(&self) -> impl Iterator<Item = (u64, Message<'a>)> + use<'a> {
        self.cursor().filter_map(|met| Some((met.at, Message::view(met.msg_type, met.payload)?)))
    }

    fn cursor(&self) -> Cursor<'a> {
        let (data, index) = (self.reader.bytes(), self.reader.index());
        let cursor = Cursor::blocks(data, index, &self.reader.walk().definitions, self.blocks.clone());
        if self.blocks.start == 0 { cursor.after_the_header() } else { cursor }
    }
}
