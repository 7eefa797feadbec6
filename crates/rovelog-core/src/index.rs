//! The index that the first scan of a log leaves: enough to read any part of the log again without
//! validating it, and no more than a thousandth of its size.

use std::ops::{Range, RangeInclusive};

use crate::ranges;

/// Bytes of the file per block.
const BLOCK: u64 = 4 << 20;

/// Blocks of a file, each of which starts at a record, and the ranges that hold no records.
///
/// ```
/// use rovelog_core::index::{Index, Span};
///
/// let mut index = Index::default();
/// // Two topics; the last block in which each has records.
/// let mut last = [0; 2];
/// for (at, topic, time) in [(10, 0, 7), (20, 1, 5), (5 << 20, 0, 9)] {
///     let span = index.record(at, topic, (&mut last[topic as usize], 0), Span::default);
///     span.add(time);
/// }
/// index.finish(6 << 20);
/// assert_eq!(index.blocks().len(), 2);
/// assert_eq!(index.blocks()[0].mark.range(), Some(5..=7));
/// assert_eq!(index.bytes_of(1), 5 << 20..6 << 20);
/// assert!(!index.has_any(1, &[false, true]));
/// ```
#[derive(Debug)]
pub struct Index<M> {
    blocks: Vec<Block<M>>,
    /// Ranges without records, ascending, neighbours joined.
    skips: Vec<Range<u64>>,
    /// Where the records end.
    end: u64,
    /// The block that is being filled, counted from 1, and where it is full.
    number: u32,
    full_at: u64,
    /// Its mark so far.
    mark: M,
    /// There is one block, whatever the size of the file.
    whole: bool,
}

/// A part of the file that starts at a record.
#[derive(Debug)]
pub struct Block<M> {
    /// The offset of its first record.
    pub start: u64,
    /// What the format notes of it: the span of its times, and what a reader must know to begin
    /// there.
    pub mark: M,
    /// The topics with records in it, and how many records each has before it.
    before: Vec<(u32, u64)>,
}

/// First and last of some times; empty at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    first: i64,
    last: i64,
}

impl Default for Span {
    fn default() -> Self {
        Self { first: i64::MAX, last: i64::MIN }
    }
}

impl Span {
    /// Takes a time.
    #[inline]
    pub fn add(&mut self, time: i64) {
        (self.first, self.last) = (self.first.min(time), self.last.max(time));
    }

    /// Returns the span of both.
    #[must_use]
    pub fn joined(self, other: Self) -> Self {
        Self { first: self.first.min(other.first), last: self.last.max(other.last) }
    }

    /// Returns the first and the last time; `None` without any.
    pub fn range(self) -> Option<RangeInclusive<i64>> {
        (self.first <= self.last).then_some(self.first..=self.last)
    }
}

impl<M: Default> Default for Index<M> {
    fn default() -> Self {
        Self {
            blocks: Vec::new(),
            skips: Vec::new(),
            end: 0,
            number: 0,
            full_at: 0,
            mark: M::default(),
            whole: false,
        }
    }
}

impl<M: Copy> Index<M> {
    /// Takes a record in file order, and returns the mark of its block, which starts as `mark`.
    /// `seen` is the last block in which its topic has records, 0 for none, and how many records of
    /// the topic come before this one.
    #[inline]
    pub fn record(
        &mut self,
        at: u64,
        topic: u32,
        (block, before): (&mut u32, u64),
        mark: impl FnOnce() -> M,
    ) -> &mut M {
        if at >= self.full_at {
            self.begin(at, mark());
        }
        if *block != self.number {
            *block = self.number;
            if let Some(last) = self.blocks.last_mut() {
                last.before.push((topic, before));
            }
        }
        &mut self.mark
    }

    #[cold]
    fn begin(&mut self, at: u64, mark: M) {
        self.seal();
        self.blocks.push(Block { start: at, mark, before: Vec::new() });
        self.mark = mark;
        self.number += 1;
        self.full_at = if self.whole { u64::MAX } else { at + BLOCK };
    }

    /// Gives the last block its mark.
    fn seal(&mut self) {
        if let Some(last) = self.blocks.last_mut() {
            last.mark = self.mark;
        }
    }

    /// Makes one block of all there are and of all that come, for a log of which no part can be
    /// read without what is before it.
    pub fn join(&mut self, join: impl Fn(M, M) -> M) {
        if std::mem::replace(&mut self.whole, true) {
            return;
        }
        self.seal();
        self.full_at = if self.blocks.is_empty() { 0 } else { u64::MAX };
        let one = self.blocks.drain(..).reduce(|mut one, next| {
            one.mark = join(one.mark, next.mark);
            one
        });
        self.blocks.extend(one);
        if let Some(one) = self.blocks.last() {
            self.mark = one.mark;
        }
    }

    /// Takes a range without records, in file order.
    pub fn skip(&mut self, range: Range<u64>) {
        ranges::push(&mut self.skips, range);
    }

    /// Completes the index of a file whose records end at `end`.
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

    /// Returns where the records end.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Returns the ranges without records, ascending, neighbours joined.
    pub fn skips(&self) -> &[Range<u64>] {
        &self.skips
    }

    /// Returns the bytes of the file that a block is made of.
    pub fn bytes_of(&self, block: usize) -> Range<u64> {
        self.blocks[block].start..self.blocks.get(block + 1).map_or(self.end, |next| next.start)
    }

    /// Returns whether any of these topics has records in a block.
    pub fn has_any(&self, block: usize, wanted: &[bool]) -> bool {
        self.whole || self.blocks[block].before.iter().any(|(topic, _)| wanted[*topic as usize])
    }

    /// Returns how many records of each topic are before a block, for those with records in it.
    /// Where all of the file is one block, there are none before it.
    pub fn before(&self, block: usize) -> &[(u32, u64)] {
        if self.whole { &[] } else { &self.blocks[block].before }
    }

    /// Returns how many records of a topic with `count` records are before a block.
    pub fn count_before(&self, block: usize, topic: u32, count: u64) -> u64 {
        if block == 0 {
            return 0;
        }
        let mut later = self.blocks[block..].iter().flat_map(|block| &block.before);
        later.find(|(of, _)| *of == topic).map_or(count, |(_, before)| *before)
    }

    /// Starts to follow the skips from `at` on.
    pub fn skips_from(&self, at: u64) -> Skips<'_> {
        Skips { left: &self.skips[self.skips.partition_point(|skip| skip.end <= at)..] }
    }
}

/// The ranges without records that a pass over the file has still to step over.
#[derive(Clone, Debug)]
pub struct Skips<'a> {
    left: &'a [Range<u64>],
}

impl Skips<'_> {
    /// Moves `at` behind the ranges that start there or before, and returns where the next one
    /// starts, or `end`.
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

    /// An index of records, with the last block and the number of records of each topic.
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
            let seen = (&mut self.last[number], self.counts[number]);
            self.index.record(at, topic, seen, Span::default).add(time);
            self.counts[number] += 1;
        }

        fn marks(&self) -> Vec<(u64, Option<RangeInclusive<i64>>)> {
            self.index.blocks().iter().map(|block| (block.start, block.mark.range())).collect()
        }
    }

    /// Two blocks of 4 MiB, and the last record as a third.
    const THREE: [(u64, u32, i64); 6] = [
        (10, 0, 7),
        (20, 1, 5),
        (BLOCK + 9, 0, 6),
        (BLOCK + 10, 0, 9),
        (BLOCK + 30, 0, 8),
        (2 * BLOCK + 10, 1, -3),
    ];

    #[test]
    fn a_block_starts_at_the_first_record_behind_4_mib() {
        let mut all = Records::of(&THREE);
        all.index.finish(3 * BLOCK);
        let third = 2 * BLOCK + 10;
        assert_eq!(all.marks(), [(10, Some(5..=7)), (BLOCK + 10, Some(8..=9)), (third, Some(-3..=-3))]);
        assert_eq!((all.index.bytes_of(0), all.index.bytes_of(1)), (10..BLOCK + 10, BLOCK + 10..third));
        assert_eq!((all.index.bytes_of(2), all.index.end()), (third..3 * BLOCK, 3 * BLOCK));
        let before: Vec<_> = (0..3).map(|block| all.index.before(block)).collect();
        assert_eq!(before, [&[(0, 0), (1, 0)][..], &[(0, 2)], &[(1, 1)]]);
    }

    #[test]
    fn a_block_knows_its_topics_and_their_records_before_it() {
        let index = Records::of(&THREE).index;
        let has: Vec<_> = (0..3).map(|block| index.has_any(block, &[false, true, true])).collect();
        assert_eq!(has, [true, false, true]);
        let count = |topic, count| (0..3).map(|block| index.count_before(block, topic, count)).collect();
        let (first, second, third): (Vec<_>, Vec<_>, Vec<_>) = (count(0, 4), count(1, 2), count(2, 0));
        assert_eq!((first, second, third), (vec![0, 2, 4], vec![0, 1, 1], vec![0, 0, 0]));
    }

    #[test]
    fn a_log_that_is_read_from_its_start_has_one_block() {
        let mut all = Records::of(&THREE);
        all.add((2 * BLOCK + 20, 2, 4));
        all.index.join(Span::joined);
        // It is one already.
        all.index.join(|_, _| Span::default());
        all.add((9 * BLOCK, 2, 30));
        all.index.finish(10 * BLOCK);
        assert_eq!(all.marks(), [(10, Some(-3..=30))]);
        assert_eq!(all.index.bytes_of(0), 10..10 * BLOCK);
        assert!(all.index.has_any(0, &[false; 3]) && all.index.before(0).is_empty());
        assert_eq!(all.index.count_before(0, 2, 2), 0);
        // The same for records that all come later.
        let mut later = Records::default();
        later.index.join(Span::joined);
        later.add((10, 0, 7));
        later.add((9 * BLOCK, 1, 8));
        later.index.finish(10 * BLOCK);
        assert_eq!(later.marks(), [(10, Some(7..=8))]);
    }

    #[test]
    fn a_pass_steps_over_ranges_without_records() {
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
        // What ends at the start is left out at once.
        assert_eq!(index.skips_from(9).left, [20..30, 40..41]);
    }
}
