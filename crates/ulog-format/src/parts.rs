//! Division of a log into parts that several threads scan concurrently.

use std::ops::Range;

use rovelog_core::{LogReader as _, Topic};

use crate::index::{Cursor, Visited, row_bytes};
use crate::reader::UlogReader;
use crate::wire::Message;

/// A part of a log, created by [`UlogReader::parts`].
#[derive(Debug)]
pub struct Part<'a> {
    reader: &'a UlogReader,
    /// Numbers of the index blocks that belong to this part.
    blocks: Range<usize>,
    /// For each topic, the number of rows before this part.
    first_rows: Vec<u64>,
}

/// A message passed by [`Part::scan`].
#[derive(Clone, Copy, Debug)]
pub enum Scanned<'a> {
    /// A record, with its topic and the bytes of its fields.
    Record(&'a Topic, &'a [u8]),
    /// A message that is not a record.
    Message(Message<'a>),
}

impl UlogReader {
    /// Divides the log into at most `parts` consecutive parts, which can be scanned concurrently.
    ///
    /// The first part starts after the file header, and every other part starts at a record. The
    /// result is empty if the log has no records.
    #[doc(hidden)]
    pub fn parts(&self, parts: usize) -> Vec<Part<'_>> {
        let index = &self.index().blocks;
        let blocks = index.blocks().len();
        let parts = parts.min(blocks);
        let bounds = |part: usize| part * blocks / parts..(part + 1) * blocks / parts;
        let part = |blocks: Range<usize>| {
            let topics = (0..).zip(self.topics());
            let before = topics.map(|(series, topic)| index.count_before(blocks.start, series, topic.count));
            let first_rows = before.collect();
            Part { reader: self, blocks, first_rows }
        };
        (0..parts).map(bounds).map(part).collect()
    }
}

impl<'a> Part<'a> {
    /// Returns the offset in the file at which this part of the log starts.
    pub fn start(&self) -> u64 {
        self.cursor().at
    }

    /// Returns the number of records before this part, for each topic.
    ///
    /// This number equals [`Record::seq`](rovelog_core::Record::seq) of the topic's first record in
    /// this part.
    pub fn first_rows(&self) -> &[u64] {
        &self.first_rows
    }

    /// Calls `visit` for each valid message of this part in file order, with the message's offset.
    ///
    /// This is the fastest function for reading all messages of a log.
    pub fn scan(&self, mut visit: impl FnMut(u64, Scanned<'a>)) {
        let (data, topics) = (self.reader.bytes(), self.reader.topics());
        self.cursor().messages(u64::MAX, |msg| match msg {
            Visited::Row(at, row) => {
                if let Some(payload) = row_bytes(data, at) {
                    visit(at, Scanned::Record(&topics[row.series as usize], payload));
                }
            }
            Visited::Other(msg) => {
                if let Some(message) = msg.message() {
                    visit(msg.at, Scanned::Message(message));
                }
            }
        });
    }

    fn cursor(&self) -> Cursor<'a> {
        let (data, index) = (self.reader.bytes(), self.reader.index());
        let cursor = Cursor::blocks(data, index, self.blocks.clone());
        if self.blocks.start == 0 { cursor.after_the_header(index) } else { cursor }
    }
}
