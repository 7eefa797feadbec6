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
