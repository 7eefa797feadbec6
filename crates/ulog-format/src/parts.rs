//! A log in parts that several threads can walk at the same time.

use std::ops::Range;

use rovelog_core::{LogReader as _, Topic};

use crate::index::{Cursor, Walked, row_bytes};
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
    /// The log in at most `parts` parts, one behind the other in the file, that can be walked at the same time. The
    /// first begins behind the header, the others at a record; there is none where there are no records.
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
    /// The offset where it begins.
    pub fn start(&self) -> u64 {
        self.cursor().at
    }

    /// How many records of each topic are before this part: the number ([`Record::seq`](rovelog_core::Record::seq)) of
    /// its first one.
    pub fn first_rows(&self) -> &[u64] {
        &self.first_rows
    }

    /// Hands all sound messages of this part in file order to `visit`, each with its offset. The fastest way through a
    /// log.
    pub fn scan(&self, mut visit: impl FnMut(u64, Scanned<'a>)) {
        let (data, topics) = (self.reader.bytes(), self.reader.topics());
        self.cursor().walk(u64::MAX, |met| match met {
            Walked::Row(at, row) => {
                if let Some(payload) = row_bytes(data, at) {
                    visit(at, Scanned::Record(&topics[row.series as usize], payload));
                }
            }
            Walked::Other(met) => {
                if let Some(message) = met.message() {
                    visit(met.at, Scanned::Message(message));
                }
            }
        });
    }

    fn cursor(&self) -> Cursor<'a> {
        let (data, index) = (self.reader.bytes(), self.reader.index());
        let cursor = Cursor::blocks(data, index, &self.reader.walk().definitions, self.blocks.clone());
        if self.blocks.start == 0 { cursor.after_the_header() } else { cursor }
    }
}
