//! A log in parts that several threads can walk at the same time.

use std::ops::Range;

use rovelog_core::{LogReader as _, Record};

use crate::index::Cursor;
use crate::reader::UlogReader;

/// A part of a log's records.
#[derive(Debug)]
pub struct RecordPart<'a> {
    reader: &'a UlogReader,
    blocks: Range<usize>,
    first_rows: Vec<u64>,
}

impl UlogReader {
    /// The records in at most `parts` parts, one behind the other in the file, that can be walked at the same time;
    /// none where there are no records.
    pub fn record_parts(&self, parts: usize) -> Vec<RecordPart<'_>> {
        let blocks = self.index().blocks.len();
        let parts = parts.min(blocks);
        let bounds = |part: usize| part * blocks / parts..(part + 1) * blocks / parts;
        let part = |blocks: Range<usize>| {
            let topics = self.topics().iter().enumerate();
            let before = |block, series, count| self.index().topic_rows_before(block, series, count);
            let first_rows =
                topics.map(|(series, topic)| before(blocks.start, series, topic.count)).collect();
            RecordPart { reader: self, blocks, first_rows }
        };
        (0..parts).map(bounds).map(part).collect()
    }
}

impl<'a> RecordPart<'a> {
    /// How many records of each topic are before this part: the number ([`Record::seq`]) of its first one.
    pub fn first_rows(&self) -> &[u64] {
        &self.first_rows
    }

    /// The records of this part in file order, as [`UlogReader::records_in_file_order`] has them.
    pub fn records(&self) -> impl Iterator<Item = Record<'a>> + use<'a> {
        let (reader, blocks) = (self.reader, self.blocks.clone());
        let cursor = Cursor::blocks(reader.bytes(), reader.index(), &reader.walk().definitions, blocks);
        reader.records_of(cursor, self.first_rows.clone())
    }
}
