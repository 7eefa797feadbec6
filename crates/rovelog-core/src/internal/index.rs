//! The index that the first scan of a log builds.
//!
//! With the index, any part of the log can be read again without validating the records before that
//! part. The file is divided into blocks of about 4 MiB. Each block stores its time span, the
//! topics that have records in the block, and the number of records that each of these topics has
//! before the block. The index takes 16 bytes for each topic in a block, and a log of 1 GiB has
//! about 256 blocks.
//!
//! For example, a log has records of topic 0 at the offsets 10 and 5 MiB, and a record of topic 1
//! at offset 20. The first block starts at offset 10 and is full at 10 + 4 MiB, so the record at 5
//! MiB starts the second block. The blocks store:
//!
//! | block | start | topics, with the number of records before the block |
//! |-------|-------|------------------------------------------------------|
//! | 0 | 10 | topic 0: 0, topic 1: 0 |
//! | 1 | 5 MiB | topic 0: 1 |
//!
//! A reader that wants topic 1 skips block 1. A reader that wants topic 0 starting with block 1
//! knows that the first record of topic 0 in this block has the number 1.

use std::ops::{Range, RangeInclusive};

use crate::internal::ranges;

/// Size of a block in bytes. A record starts a new block if its offset is at least this number of
/// bytes after the start of the current block.
const BLOCK_SIZE: u64 = 4 << 20;

/// The blocks of a file, and the ranges of the file without records.
///
/// `M` is the type of the mark. The mark is data that a format stores for each block, such as the
/// time span of the block.
///
/// ```
/// use rovelog_core::internal::index::{Index, Span};
///
/// let mut index = Index::default();
/// // For each of two topics, the number of the last block with records of the topic.
/// let mut last = [0; 2];
/// for (at, topic, time) in [(10, 0, 7), (20, 1, 5), (5 << 20, 0, 9)] {
///     let span = index.record(at, topic, &mut last[topic as usize], 0, Span::default);
///     span.add(time);
/// }
/// index.finish(6 << 20);
/// assert_eq!(index.blocks().len(), 2);
/// assert_eq!(index.blocks()[0].mark.range(), Some(5..=7));
/// assert_eq!(index.bytes_of(1), 5 << 20..6 << 20);
/// assert!(!index.has_any(1, &[false, true]));
/// ```
#[derive(Debug, Default)]
pub struct Index<M> {
    /// Blocks of the file in file order.
    blocks: Vec<Block<M>>,
    /// Byte ranges without records, in ascending order. Adjacent ranges are joined.
    skips: Vec<Range<u64>>,
    /// Offset of the end of the last record in the file.
    end: u64,
    /// Number of the block to which records are being added, counted from 1.
    number: u32,
    /// Offset at which the current block is full. A record at or after this offset starts the next
    /// block.
    full_at: u64,
    /// Data that the format stores for the block to which records are being added. It is copied to
    /// the block when the block is complete.
    mark: M,
    /// True if the whole file is one block.
    is_single_block: bool,
}

/// A byte range of the file that starts at a record.
#[derive(Debug)]
pub struct Block<M> {
    /// Offset of the block's first record.
    pub start: u64,
    /// Data that the format stores for the block: its time span, and the state that a reader needs
    /// to start at this block.
    pub mark: M,
    /// The topics with records in the block, each with the number of its records before the block.
    before: Vec<(u32, u64)>,
}

/// The earliest and the latest of several times. The default is an empty span.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// Earliest time in the span.
    pub first: i64,
    /// Latest time in the span.
    pub last: i64,
}

impl Default for Span {
    fn default() -> Self {
        Self { first: i64::MAX, last: i64::MIN }
    }
}

impl Span {
    /// Extends the span so that it contains `time`.
    #[inline]
    pub fn add(&mut self, time: i64) {
        (self.first, self.last) = (self.first.min(time), self.last.max(time));
    }

    /// Returns the smallest span that contains both spans.
    #[must_use]
    pub fn joined(self, other: Self) -> Self {
        Self { first: self.first.min(other.first), last: self.last.max(other.last) }
    }

    /// Returns the earliest and the latest time, or `None` if the span is empty.
    pub fn range(self) -> Option<RangeInclusive<i64>> {
        (self.first <= self.last).then_some(self.first..=self.last)
    }
}

impl<M: Copy> Index<M> {
    /// Adds a record. Records must be added in file order.
    ///
    /// - `at` is the offset of the record.
    /// - `block` is the number of the last block with records of the same topic. It is 0 before the
    ///   first record of the topic. The caller stores this number for each topic, and this function
    ///   updates it.
    /// - `before` is the number of records of the same topic before this record.
    /// - `mark` creates the data that the format stores for a new block.
    ///
    /// Returns the data of the record's block, so that the caller can extend its time span.
    #[inline]
    pub fn record(
        &mut self,
        at: u64,
        topic: u32,
        block: &mut u32,
        before: u64,
        mark: impl FnOnce() -> M,
    ) -> &mut M {
        if at >= self.full_at {
            self.begin(at, mark());
        }
        // If this is the first record of its topic in the block, the number of earlier records of
        // the topic is stored.
        if *block != self.number {
            *block = self.number;
            if let Some(last) = self.blocks.last_mut() {
                last.before.push((topic, before));
            }
        }
        &mut self.mark
    }

    /// Completes the current block and starts a new block at offset `at`.
    #[cold]
    fn begin(&mut self, at: u64, mark: M) {
        self.seal();
        self.blocks.push(Block { start: at, mark, before: Vec::new() });
        self.mark = mark;
        self.number += 1;
        self.full_at = if self.is_single_block { u64::MAX } else { at + BLOCK_SIZE };
    }

    /// Copies the data for the current block to the last block in the list. This block is then
    /// complete.
    fn seal(&mut self) {
        if let Some(last) = self.blocks.last_mut() {
            last.mark = self.mark;
        }
    }

    /// Joins all blocks into one, and adds all later records to this block.
    ///
    /// This is for logs that can only be read from the start, because a record may depend on any
    /// record before it.
    pub fn join(&mut self, join: impl Fn(M, M) -> M) {
        if std::mem::replace(&mut self.is_single_block, true) {
            return;
        }
        self.seal();
        // If there is no block yet, the next record must start a block.
        self.full_at = if self.blocks.is_empty() { 0 } else { u64::MAX };
        let joined_block = self.blocks.drain(..).reduce(|mut joined_block, next| {
            joined_block.mark = join(joined_block.mark, next.mark);
            joined_block
        });
        self.blocks.extend(joined_block);
        if let Some(joined_block) = self.blocks.last() {
            self.mark = joined_block.mark;
        }
    }

    /// Adds a byte range without records. Ranges must be added in file order.
    pub fn skip(&mut self, range: Range<u64>) {
        ranges::push(&mut self.skips, range);
    }

    /// Completes the index. `end` is the offset of the end of the last record in the file.
    pub fn finish(&mut self, end: u64) {
        self.seal();
        self.end = end;
    }
}

impl<M> Index<M> {
    /// Returns the blocks in file order.
    pub fn blocks(&self) -> &[Block<M>] {
        &self.blocks
    }

    /// Returns the offset of the end of the last record in the file.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Returns the byte ranges without records, in ascending order. Adjacent ranges are joined.
    pub fn skips(&self) -> &[Range<u64>] {
        &self.skips
    }

    /// Returns the byte range of the file that a block occupies.
    pub fn bytes_of(&self, block: usize) -> Range<u64> {
        self.blocks[block].start..self.blocks.get(block + 1).map_or(self.end, |next| next.start)
    }

    /// Returns whether a block has records of any topic for which `wanted` is true.
    pub fn has_any(&self, block: usize, wanted: &[bool]) -> bool {
        self.is_single_block || self.blocks[block].before.iter().any(|(topic, _)| wanted[*topic as usize])
    }

    /// Returns the topics that have records in a block, each with the number of its records before
    /// the block. If the whole file is one block, the list is empty, because all of these numbers
    /// are 0.
    pub fn before(&self, block: usize) -> &[(u32, u64)] {
        if self.is_single_block { &[] } else { &self.blocks[block].before }
    }

    /// Returns the number of records that a topic has before a block. `count` is the number of
    /// records that the topic has in the whole log.
    pub fn count_before(&self, block: usize, topic: u32, count: u64) -> u64 {
        if block == 0 {
            return 0;
        }
        // A block stores this number only if it has records of the topic. The next block that has
        // records of the topic stores the same number, because no record of the topic is in the
        // blocks before it.
        let mut later = self.blocks[block..].iter().flat_map(|block| &block.before);
        later.find(|(of, _)| *of == topic).map_or(count, |(_, before)| *before)
    }

    /// Returns a cursor over those byte ranges without records that end after offset `at`.
    pub fn skips_from(&self, at: u64) -> Skips<'_> {
        Skips { left: &self.skips[self.skips.partition_point(|skip| skip.end <= at)..] }
    }
}

/// Cursor over the byte ranges without records. A reader uses it to skip these ranges in one pass
/// over the file.
#[derive(Clone, Debug)]
pub struct Skips<'a> {
    /// Byte ranges that the cursor has not passed yet.
    left: &'a [Range<u64>],
}

impl Skips<'_> {
    /// If byte ranges without records contain `at`, moves `at` to their end. Returns the offset up
    /// to which records can then be read. This is the start of the next range without records, or
    /// `end`.
    #[inline]
    pub fn step_over(&mut self, at: &mut u64, end: u64) -> u64 {
        while let [skip, left @ ..] = self.left {
            if skip.start > *at {
                return skip.start.min(end);
            }
            *at = skip.end.max(*at);
            self.left = left;
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds an index. For each topic, it stores the two numbers that a caller of
    /// [`Index::record`] must store.
    #[derive(Default)]
    struct Records {
        index: Index<Span>,
        last: [u32; 3],
        counts: [u64; 3],
    }

    impl Records {
        fn of(records: &[(u64, u32, i64)]) -> Self {
            let mut all = Self::default();
            for record in records {
                all.add(*record);
            }
            all
        }

        fn add(&mut self, (at, topic, time): (u64, u32, i64)) {
            let number = topic as usize;
            let (last, count) = (&mut self.last[number], self.counts[number]);
            self.index.record(at, topic, last, count, Span::default).add(time);
            self.counts[number] += 1;
        }

        fn marks(&self) -> Vec<(u64, Option<RangeInclusive<i64>>)> {
            self.index.blocks().iter().map(|block| (block.start, block.mark.range())).collect()
        }
    }

    /// Records that fill two blocks of 4 MiB, followed by one record in a third block.
    const THREE: [(u64, u32, i64); 6] = [
        (10, 0, 7),
        (20, 1, 5),
        (BLOCK_SIZE + 9, 0, 6),
        (BLOCK_SIZE + 10, 0, 9),
        (BLOCK_SIZE + 30, 0, 8),
        (2 * BLOCK_SIZE + 10, 1, -3),
    ];

    #[test]
    fn a_block_starts_at_the_first_record_after_4_mib() {
        let mut all = Records::of(&THREE);
        all.index.finish(3 * BLOCK_SIZE);
        let third = 2 * BLOCK_SIZE + 10;
        assert_eq!(all.marks(), [(10, Some(5..=7)), (BLOCK_SIZE + 10, Some(8..=9)), (third, Some(-3..=-3))]);
        assert_eq!(
            (all.index.bytes_of(0), all.index.bytes_of(1)),
            (10..BLOCK_SIZE + 10, BLOCK_SIZE + 10..third)
        );
        assert_eq!((all.index.bytes_of(2), all.index.end()), (third..3 * BLOCK_SIZE, 3 * BLOCK_SIZE));
        let before: Vec<_> = (0..3).map(|block| all.index.before(block)).collect();
        assert_eq!(before, [&[(0, 0), (1, 0)][..], &[(0, 2)], &[(1, 1)]]);
    }

    #[test]
    fn a_block_stores_its_topics_and_their_record_counts() {
        let index = Records::of(&THREE).index;
        let has: Vec<_> = (0..3).map(|block| index.has_any(block, &[false, true, true])).collect();
        assert_eq!(has, [true, false, true]);
        let count = |topic, count| (0..3).map(|block| index.count_before(block, topic, count)).collect();
        let (first, second, third): (Vec<_>, Vec<_>, Vec<_>) = (count(0, 4), count(1, 2), count(2, 0));
        assert_eq!((first, second, third), (vec![0, 2, 4], vec![0, 1, 1], vec![0, 0, 0]));
    }

    #[test]
    fn joined_blocks_stay_one_block() {
        let mut all = Records::of(&THREE);
        all.add((2 * BLOCK_SIZE + 20, 2, 4));
        all.index.join(Span::joined);
        // A second call of `join` must have no effect.
        all.index.join(|_, _| Span::default());
        all.add((9 * BLOCK_SIZE, 2, 30));
        all.index.finish(10 * BLOCK_SIZE);
        assert_eq!(all.marks(), [(10, Some(-3..=30))]);
        assert_eq!(all.index.bytes_of(0), 10..10 * BLOCK_SIZE);
        assert!(all.index.has_any(0, &[false; 3]) && all.index.before(0).is_empty());
        assert_eq!(all.index.count_before(0, 2, 2), 0);
        // The result must be the same if `join` is called before any record is added.
        let mut later = Records::default();
        later.index.join(Span::joined);
        later.add((10, 0, 7));
        later.add((9 * BLOCK_SIZE, 1, 8));
        later.index.finish(10 * BLOCK_SIZE);
        assert_eq!(later.marks(), [(10, Some(7..=8))]);
    }

    #[test]
    fn skips_are_stepped_over_in_order() {
        let mut index = Index::<Span>::default();
        for range in [5..9, 20..25, 25..30, 40..41] {
            index.skip(range);
        }
        assert_eq!(index.skips(), [5..9, 20..30, 40..41]);
        let step = |from, at, end| {
            let (mut skips, mut at) = (index.skips_from(from), at);
            let next = skips.step_over(&mut at, end);
            (at, next)
        };
        assert_eq!([step(0, 0, 100), step(0, 0, 3)], [(0, 5), (0, 3)]);
        assert_eq!([step(0, 5, 100), step(5, 8, 100), step(9, 9, 100)], [(9, 20), (9, 20), (9, 20)]);
        assert_eq!([step(8, 29, 100), step(30, 30, 100)], [(30, 40), (30, 40)]);
        assert_eq!([step(35, 45, 100), step(41, 41, 100)], [(45, 100), (41, 100)]);
        // A byte range that ends at the start offset of the cursor is not part of the cursor.
        assert_eq!(index.skips_from(9).left, [20..30, 40..41]);
    }
}
