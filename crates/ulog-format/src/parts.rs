//! A log in parts that several threads can scan at the same time.

use std::ops::Range;

use rovelog_core::{LogReader as _, Topic};

use crate::index::{Cursor, Passed, row_bytes};
use crate::reader::UlogReader;
use crate::wire::Message;

/// A part of a log.
#[derive(Debug)]
pub struct Part<'a> {
    reader: &'a UlogReader,
    blocks: Range<usize>,
    first_rows: Vec<u64>,
}

/// What [`Part::scan`] meets.
#[derive(Clone, Copy, Debug)]
pub enum Scanned<'a> {
    /// A record: its topic and its payload.
    Record(&'a Topic, &'a [u8]),
    /// A message that is none.
    Message(Message<'a>),
}

impl UlogReader {
    /// Returns the log in at most `parts` parts, one behind the other in the file, that can be
    /// scanned at the same time. The first starts behind the header, the others at a record; there
    /// is none where there are no records.
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
    /// Returns the offset where it starts.
    pub fn start(&self) -> u64 {
        self.cursor().at
    }

    /// Returns how many records of each topic are before this part: the number
    /// ([`Record::seq`](rovelog_core::Record::seq)) of its first one.
    pub fn first_rows(&self) -> &[u64] {
        &self.first_rows
    }

    /// Hands all valid messages of this part in file order to `visit`, each with its offset. The
    /// fastest way through a log.
    pub fn scan(&self, mut visit: impl FnMut(u64, Scanned<'a>)) {
        let (data, topics) = (self.reader.bytes(), self.reader.topics());
        self.cursor().messages(u64::MAX, |met| match met {
            Passed::Row(at, row) => {
                if let Some(payload) = row_bytes(data, at) {
                    visit(at, Scanned::Record(&topics[row.series as usize], payload));
                }
            }
            Passed::Other(met) => {
                if let Some(message) = met.message() {
                    visit(met.at, Scanned::Message(message));
                }
            }
        });
    }

    fn cursor(&self) -> Cursor<'a> {
        let (data, index) = (self.reader.bytes(), self.reader.index());
        let cursor = Cursor::blocks(data, index, &self.reader.scanner().definitions, self.blocks.clone());
        if self.blocks.start == 0 { cursor.after_the_header() } else { cursor }
    }
}
