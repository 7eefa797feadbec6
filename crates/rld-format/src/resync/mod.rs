//! Resynchronization: finds the blocks of a file one after the other, even after bytes that are
//! missing or were added (rule D37 of docs/formats/rld.md).
//!
//! Rows have no marks. But each block starts with the times of two clocks, and blocks have a known
//! length and duration. If there are no valid block times at the offset where the next block should
//! start, block times are searched for near this offset. The blocks before them are damaged. Their
//! intact rows are kept if their values confirm their offsets (rule D39), and the rest is left out.
//!
//! The reader and the stream both call [`BlockScan::next`] with a window of bytes, so they make the
//! same decisions.

mod parts;
mod realign;

use std::collections::VecDeque;
use std::ops::Range;

use rovelog_core::internal::scan::{NeedMore, Window};
use rovelog_core::internal::text::count;
use zerocopy::FromBytes;

use crate::clock::{blocks_between, follows, is_plausible, span};
use crate::layout::{BlockRun, Layout};
use crate::validate::Validated;
use crate::wire::{BLOCK_TIMES_LEN, BlockTimes};
use parts::Parts;
pub(crate) use parts::grain;
use realign::{DamagedBlocks, intact_rows};

/// Maximum number of missing or added bytes after which the search can still find the next block:
/// 16 pages of 4 KiB.
pub(crate) const MAX_SHIFT: u64 = 64 << 10;

/// Maximum length in bytes of blocks that are checked for missing bytes. A stream has to buffer a
/// few blocks for this check. Blocks of the logger are shorter: one second at 64 kSPS takes 2.6 MB.
const MAX_CHECKED_BLOCK_LEN: u64 = 4 << 20;

/// Maximum number of consecutive damaged blocks in which intact rows are searched for.
const MAX_BLOCKS: u64 = 3;

/// Minimum number of rows in blocks in which intact rows are searched for. In smaller blocks, too few
/// rows show how much values usually change, and less is lost if the block is left out.
const MIN_BLOCK_ROWS: u64 = 64;

/// Number of offsets that may be searched for block times at the start of a file.
const INITIAL_BUDGET: u64 = 1 << 20;

/// Number of additional offsets that may be searched for each byte read. This limit keeps the work
/// proportional to the size of the file.
const BUDGET_PER_BYTE: u64 = 2;

/// Maximum number of possible blocks that are kept until a later block confirms one of them.
const MAX_CANDIDATES: usize = 16;

/// The next item that the scan of a file finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A block at offset `at` with `rows` rows. If the window ends within the block, `rows` is an
    /// upper bound.
    Block { at: u64, rows: u64 },
    /// Intact rows of a damaged block, without the block times. The first row is at offset `at` and
    /// has the times `times`, which are computed from those of another block.
    Rows { at: u64, rows: u64, times: BlockTimes },
    /// Bytes of consecutive blocks that are left out, because bytes are missing or were
    /// added, or the block times do not match.
    LeftOut(LeftOut),
    /// The end of the blocks. Other bytes may follow.
    End,
}

/// Bytes of consecutive blocks that are left out, because bytes are missing or were added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LeftOut {
    pub(crate) range: Range<u64>,
    /// Number of bytes that the left-out rows would take in intact blocks.
    expected: u64,
    pub(crate) rows: u64,
}

impl LeftOut {
    /// Returns the diagnostic message for the left-out rows. `row` is the number of the next row.
    pub(crate) fn text(&self, row: u64) -> String {
        let there = self.range.end - self.range.start;
        let why = match there.checked_sub(self.expected) {
            None => format!("the block is {} too short", count(self.expected - there, "byte")),
            Some(0) => "bytes are missing or were added near them".to_owned(),
            Some(more) => format!("the block is {} too long", count(more, "byte")),
        };
        let are = if self.rows == 1 { "is" } else { "are" };
        format!("{} before row {row} {are} lost, because {why}", count(self.rows, "row"))
    }
}

// Example: blocks have 112 bytes and last 20 ms. The blocks of an intact file start at 88, 200, 312
// and 424. Three bytes of the block at 200 are missing:
//
//     offset 200    times of block 1
//     offset 312    where block 2 should start: bytes of a row, so a search starts
//     offset 309    valid times 20 ms after block 1: a candidate for block 2
//     offset 421    valid times 20 ms after the candidate: they confirm it
//
// `next` returns `LeftOut` with the 109 bytes from 200 to 309 and the 20 rows of block 1, then the
// block at 309. In blocks of at least 64 rows, the rows before and after the missing bytes would be
// returned as well.
//
// A candidate needs confirmation because bytes of rows can look like times. If the block at 309
// were the last block that the header counts, no other block could confirm it, and no confirmation
// would be required.

/// Finds the blocks of a file, in file order.
#[derive(Clone, Debug)]
pub(crate) struct BlockScan {
    /// Layout of rows. If rows cannot be located, this is the default layout, in which no file has
    /// rows.
    layout: Layout,
    /// Duration of a block in nanoseconds. `None` if the lengths of blocks are not checked.
    period: Option<i64>,
    /// Number of rows according to the header. `None` if the counts in the header contradict each
    /// other.
    counted: Option<u64>,
    /// Number of rows to read.
    limit: u64,
    /// Offset of the next block.
    at: u64,
    /// Number of rows before the next block, including rows in blocks that were left out.
    before: u64,
    run: BlockRun,
    /// Times of the first block that was not left out.
    first: Option<BlockTimes>,
    resync: Resync,
}

/// State of the searches for blocks after bytes that are missing or were added.
#[derive(Clone, Debug, Default)]
struct Resync {
    /// The last block whose times continue those of earlier blocks. Later block times are compared
    /// with those of this block.
    reference: Option<TimedBlock>,
    /// Number of offsets that may still be searched for block times.
    budget: u64,
    /// Offset before which all offsets have been searched without a result since `reference` was
    /// set.
    searched_until: u64,
    /// Possible blocks whose times continue those of `reference`, but that no later block has
    /// confirmed yet.
    candidates: Vec<TimedBlock>,
    /// Number of binary channels.
    binary: usize,
    /// Parts of damaged blocks that were already found, in file order.
    parts: VecDeque<Step>,
}

impl Resync {
    fn new(binary: usize) -> Self {
        Self { binary, budget: INITIAL_BUDGET, ..Self::default() }
    }

    /// Adds the offsets that may be searched for `bytes` bytes that were read.
    fn add_budget(&mut self, bytes: u64) {
        self.budget = self.budget.saturating_add(bytes.saturating_mul(BUDGET_PER_BYTE));
    }

    /// Sets the block with which later block times are compared.
    fn set_reference(&mut self, block: TimedBlock) {
        *self = Self { reference: Some(block), budget: self.budget, binary: self.binary, ..Self::default() };
    }
}

/// A block with valid times.
#[derive(Clone, Copy, Debug)]
struct TimedBlock {
    at: u64,
    /// Number of the block in the file. Blocks that were left out are counted, too.
    number: u64,
    times: BlockTimes,
}

impl BlockScan {
    /// Creates a scan that starts at the first block. `is_checked` is false if only some ranges of
    /// the file have been fetched, so that lengths of blocks cannot be checked.
    pub(crate) fn new(file: &Validated, is_checked: bool) -> Self {
        let layout = file.layout.clone().unwrap_or_default();
        let (rate, at) = (file.header.lead_in.sample_rate.get(), layout.header);
        let period = i64::try_from(span(layout.block_rows, rate)).ok();
        let period = period.filter(|_| is_checked && rate > 0 && layout.block <= MAX_CHECKED_BLOCK_LEN);
        let (counted, limit) = (file.declared, file.rows_to_read().unwrap_or(u64::MAX));
        let resync = Resync::new(file.header.lead_in.binary_count.get().into());
        let run = BlockRun::from(at);
        Self { layout, period, counted, limit, at, before: 0, run, first: None, resync }
    }

    /// Returns the current run of blocks, which have no missing or added bytes between them.
    pub(crate) fn run(&self) -> BlockRun {
        self.run
    }

    /// Returns the next item in the file. The window must start at or before the end of the
    /// previous item.
    ///
    /// # Errors
    /// Returns an error if more bytes are needed to decide. In this case, the scan does not advance,
    /// and only the progress of a search without a result is stored.
    pub(crate) fn next(&mut self, window: Window<'_>) -> Result<Step, NeedMore> {
        if let Some(part) = self.resync.parts.pop_front() {
            return Ok(part);
        }
        let rows = self.limit.saturating_sub(self.before).min(self.layout.block_rows);
        let smallest = BLOCK_TIMES_LEN + self.layout.row as u64;
        if rows == 0 || window.slice(self.at, self.at + smallest)?.is_none() {
            return Ok(Step::End);
        }
        if let Some(period) = self.period
            && self.counted.is_none_or(|counted| self.before < counted)
            && let Some(left_out) = self.check(window, period)?
            && let Some(parts) = self.divide(window, &left_out, period)?
        {
            let lost = |part: &Step| if let Step::LeftOut(part) = part { part.rows } else { 0 };
            let lost: u64 = parts.iter().map(lost).sum();
            self.resync.add_budget(left_out.range.end - left_out.range.start);
            self.at = left_out.range.end;
            self.before += left_out.rows;
            self.run = BlockRun { at: self.at, before: self.before, left_out: self.run.left_out + lost };
            self.resync.parts = parts;
            return self.next(window);
        }
        let at = self.at;
        let bytes = window.end() - at - BLOCK_TIMES_LEN;
        let rows = if window.eof { rows.min(bytes / self.layout.row as u64) } else { rows };
        self.first = self.first.or(window.view::<BlockTimes>(at)?.copied());
        self.at += self.layout.block;
        self.before += self.layout.block_rows;
        self.resync.add_budget(self.layout.block);
        Ok(Step::Block { at, rows })
    }

    fn number(&self) -> u64 {
        self.before / self.layout.block_rows
    }

    /// Returns whether block `number` is the last block that the header counts.
    fn is_last(&self, number: u64) -> bool {
        self.counted.is_some_and(|counted| number + 1 >= self.layout.blocks(counted))
    }

    /// Checks the length of the next block. If its length is wrong, searches for the block at which
    /// reading resumes, and returns the blocks to leave out.
    fn check(&mut self, window: Window<'_>, period: i64) -> Result<Option<LeftOut>, NeedMore> {
        let number = self.number();
        let next = self.at + self.layout.block;
        let times = if self.is_last(number) { None } else { window.view::<BlockTimes>(next)? };
        let Some(times) = times else { return self.check_last(window) };
        let own = window.view::<BlockTimes>(self.at)?.filter(|times| is_plausible(times));
        let own = own.map(|times| TimedBlock { at: self.at, number, times: *times });
        // Valid times are accepted even if they do not continue the previous times. If a log was
        // recovered, some blocks were left out before such times, and the recovered log must be
        // read in the same way. But only times that continue the previous times become the
        // reference.
        if is_plausible(times) {
            let there = TimedBlock { at: next, number: number + 1, times: *times };
            let continues = |block: &TimedBlock| blocks_between(&block.times, times, period).is_some();
            if self.resync.reference.is_none() || own.iter().chain(&self.resync.reference).any(continues) {
                self.resync.set_reference(there);
            }
            return Ok(None);
        }
        let Some(resumed) = self.search(window, own, period)? else {
            let rest = self.counted.map_or(u64::MAX, |counted| counted - self.before);
            let is_near_end = rest <= MAX_BLOCKS * self.layout.block_rows;
            return if is_near_end { self.check_last(window) } else { Ok(None) };
        };
        // If the second block of a recovered log does not follow the first block, the rows may have
        // an extra word (rule D28 of docs/formats/rld.md). In this case, no bytes are missing or
        // added.
        let is_second = self.before - self.run.left_out == self.layout.block_rows;
        let first = self.first.filter(|first| is_second && is_plausible(first));
        if first.is_some_and(|first| !follows(&first, &resumed.times)) {
            return Ok(None);
        }
        let blocks = resumed.number - number;
        self.resync.set_reference(resumed);
        let (expected, rows) = (blocks * self.layout.block, blocks * self.layout.block_rows);
        Ok(Some(LeftOut { range: self.at..resumed.at, expected, rows }))
    }

    /// Checks the last block, which has no block after it. If the rest of the file does not have the
    /// length that the header implies, and blocks were left out before or the values of rows show
    /// that the block is not only cut off, returns the rest as blocks to leave out.
    fn check_last(&self, window: Window<'_>) -> Result<Option<LeftOut>, NeedMore> {
        let Some(counted) = self.counted else { return Ok(None) };
        let rows = counted - self.before;
        let is_known = self.run.left_out > 0;
        // If more blocks are missing, the file is cut off.
        let is_searched =
            rows <= MAX_BLOCKS * self.layout.block_rows && self.layout.block_rows >= MIN_BLOCK_ROWS;
        if !is_known && !is_searched {
            return Ok(None);
        }
        let Ok(expected) = u64::try_from(self.layout.body(rows)) else { return Ok(None) };
        let end = self.at.saturating_add(expected);
        // If much more data follows, the block is read, so that a stream need not wait for the end
        // of the input.
        let until = end.saturating_add(MAX_SHIFT);
        if !window.eof && window.end() <= until {
            return Err(NeedMore(until.saturating_add(1)));
        }
        let is_whole = [end, self.at + self.layout.block].contains(&window.end());
        if window.end() > until || is_whole {
            return Ok(None);
        }
        // If another block follows, the header counts too few blocks, and the last counted block is
        // intact.
        let own = window.view::<BlockTimes>(self.at)?;
        let times = window.view::<BlockTimes>(end)?;
        if own.zip(times).is_some_and(|(own, times)| follows(own, times)) {
            return Ok(None);
        }
        if !is_known && end.saturating_sub(window.end()) > MAX_SHIFT {
            return Ok(None);
        }
        Ok(Some(LeftOut { range: self.at..window.end(), expected, rows }))
    }

    /// Separates the intact rows of damaged blocks from the bytes between these rows. Returns `None`
    /// if the blocks are at the end of the file and may only be cut off.
    fn divide(
        &self,
        window: Window<'_>,
        damaged: &LeftOut,
        period: i64,
    ) -> Result<Option<VecDeque<Step>>, NeedMore> {
        let LeftOut { range, expected, rows } = damaged;
        let block_count = rows.div_ceil(self.layout.block_rows);
        let valid = |at: u64| Ok(window.view::<BlockTimes>(at)?.filter(|times| is_plausible(times)).copied());
        let (own, next) = (valid(range.start)?, valid(range.end)?);
        // The times of all rows are counted from the block times after the damage, or before it.
        let anchor = next.map(|times| (*rows, times)).or(own.map(|times| (0, times)));
        let is_searched = block_count <= MAX_BLOCKS && self.layout.block_rows >= MIN_BLOCK_ROWS;
        let is_last = next.is_none();
        let reference = range.end + BLOCK_TIMES_LEN..window.end().min(range.end + self.layout.block);
        let blocks = DamagedBlocks {
            layout: &self.layout,
            bytes: window.slice(range.start, range.end)?.unwrap_or_default(),
            expected: *expected,
            rows: usize::try_from(*rows).unwrap_or(0),
            binary: self.resync.binary,
            reference: window.slice(reference.start.min(reference.end), reference.end)?.unwrap_or_default(),
            is_last,
        };
        let mut parts = Parts::new(damaged);
        // No later block times are found, or no later block fits into the file.
        let is_end = self.resync.searched_until > range.start
            || block_count == 1
            || range.end - range.start < self.layout.block + BLOCK_TIMES_LEN;
        let is_known = !is_last || self.run.left_out > 0 && is_end;
        let intact_ranges =
            if is_searched && anchor.is_some() { intact_rows(&blocks, is_known) } else { None };
        let Some(((anchor_row, anchor), intact_ranges)) = anchor.zip(intact_ranges) else {
            return Ok(is_known.then(|| parts.finish()));
        };
        let grain = grain(self.layout.block_rows, period);
        for part in intact_ranges.iter().flat_map(|range| range.in_blocks(&self.layout, grain, *rows)) {
            let nanos = |row: u64| i128::from(row) * i128::from(period) / i128::from(self.layout.block_rows);
            let since = nanos(part.first) - nanos(anchor_row);
            let computed = BlockTimes::new(anchor.realtime() + since, anchor.monotonic() + since);
            let Some(times) = computed else { continue };
            // Valid block times directly before the first row of a block are read with its rows.
            let stored_at = (range.start + part.at).saturating_sub(BLOCK_TIMES_LEN);
            let is_first = part.first.is_multiple_of(self.layout.block_rows);
            let stored = if is_first && stored_at >= parts.at { valid(stored_at)? } else { None };
            let is_near = |stored: &BlockTimes| {
                let off = |clock: fn(&BlockTimes) -> i128| (clock(stored) - clock(&times)).unsigned_abs();
                let most = u128::from(period.unsigned_abs() / 4);
                stored_at == range.start || off(BlockTimes::realtime).max(off(BlockTimes::monotonic)) < most
            };
            parts.push(&self.layout, &part, stored.as_ref().is_some_and(is_near), times);
        }
        Ok(Some(parts.finish()))
    }

    /// Returns whether `blocks` blocks follow `first` without missing or added bytes, and with the
    /// regular time between them.
    fn is_followed_by(
        &self,
        window: Window<'_>,
        first: &TimedBlock,
        period: i64,
        blocks: u64,
    ) -> Result<bool, NeedMore> {
        let (mut at, mut before) = (first.at, &first.times);
        for _ in 0..blocks {
            at += self.layout.block;
            let Some(times) = window.view::<BlockTimes>(at)? else { return Ok(false) };
            if blocks_between(before, times, period) != Some(1) {
                return Ok(false);
            }
            before = times;
        }
        Ok(true)
    }

    /// Returns the ranges of offsets to search, in ascending order. They are the [`MAX_SHIFT`]
    /// bytes before and after the expected offsets of the next three blocks.
    fn ranges(&self) -> [Range<u64>; 3] {
        let mut from = self.at + BLOCK_TIMES_LEN;
        [1, 2, 3].map(|blocks| {
            let expected = self.at + blocks * self.layout.block;
            let range = from.max(expected.saturating_sub(MAX_SHIFT))..expected + MAX_SHIFT + 1;
            from = range.end;
            range
        })
    }

    /// Searches for the block at which reading resumes. Returns `None` if no block is found, or if
    /// the block is at its expected offset, so that no bytes are missing. `own` is the block whose
    /// length is checked, if its times are plausible.
    fn search(
        &mut self,
        window: Window<'_>,
        own: Option<TimedBlock>,
        period: i64,
    ) -> Result<Option<TimedBlock>, NeedMore> {
        let ranges = self.ranges();
        let end = ranges[2].end;
        // Offsets that were already searched with the same reference block are skipped.
        let ranges = ranges.map(|range| range.start.max(self.resync.searched_until)..range.end);
        if self.resync.budget < ranges.iter().map(|range| range.end.saturating_sub(range.start)).sum() {
            return Ok(None);
        }
        let until = end + 2 * self.layout.block + BLOCK_TIMES_LEN;
        if !window.eof && window.end() < until {
            return Err(NeedMore(until));
        }
        // The window now contains all bytes that this search and `divide` examine, so neither of them
        // requests more bytes after the candidates or the reference have changed.
        let mut candidates = std::mem::take(&mut self.resync.candidates);
        candidates.retain(|candidate| {
            candidate.number > self.number() && candidate.at >= self.at + BLOCK_TIMES_LEN
        });
        for range in ranges {
            let to = window.end().min(range.end + BLOCK_TIMES_LEN - 1);
            let bytes = window.slice(range.start.min(to), to)?.unwrap_or_default();
            let len = usize::try_from(BLOCK_TIMES_LEN).expect("small");
            for (at, bytes) in (range.start..).zip(bytes.windows(len)) {
                self.resync.budget = self.resync.budget.saturating_sub(1);
                let Some(times) = BlockTimes::ref_from_bytes(bytes).ok().filter(|times| is_plausible(times))
                else {
                    continue;
                };
                let Some(candidate) = self.candidate(window, at, times, own, period)? else { continue };
                // If the candidate continues an earlier candidate, it confirms the earlier
                // candidate.
                if let Some(first) = candidates.iter().find(|first| self.continues(first, &candidate, period))
                {
                    return Ok(Some(*first));
                }
                if (at - self.at).is_multiple_of(self.layout.block) {
                    return Ok(None);
                }
                if self.is_confirmed(window, &candidate, period)? {
                    return Ok(Some(candidate));
                }
                if candidates.len() < MAX_CANDIDATES {
                    candidates.push(candidate);
                }
            }
        }
        (self.resync.searched_until, self.resync.candidates) = (end, candidates);
        Ok(None)
    }

    /// Returns whether a candidate is confirmed as a block. This is the case if the next block
    /// follows at the expected offset and time. It is also the case if the candidate is the last
    /// block that the header counts, or the last block that fits into the file.
    fn is_confirmed(
        &self,
        window: Window<'_>,
        candidate: &TimedBlock,
        period: i64,
    ) -> Result<bool, NeedMore> {
        let is_last = candidate.at + self.layout.block + BLOCK_TIMES_LEN > self.end(window);
        Ok(is_last || self.is_followed_by(window, candidate, period, 1)?)
    }

    /// Returns the offset at which the rows end if no later blocks are left out. Recovery ends a
    /// log at this offset, so that the recovered log is read in the same way.
    fn end(&self, window: Window<'_>) -> u64 {
        let bytes = window.end() - self.run.at;
        let counted = self.counted.map_or(u64::MAX, |counted| counted - self.run.before);
        let rows = self.layout.rows_in(bytes).min(counted);
        self.run.at + u64::try_from(self.layout.body(rows)).unwrap_or(bytes)
    }

    /// Returns the block that starts at offset `at`, if this offset has plausible block times. They
    /// must continue the times of an earlier block, or two more blocks must follow at regular
    /// distances.
    fn candidate(
        &self,
        window: Window<'_>,
        at: u64,
        times: &BlockTimes,
        own: Option<TimedBlock>,
        period: i64,
    ) -> Result<Option<TimedBlock>, NeedMore> {
        let of = |number: u64| TimedBlock { at, number, times: *times };
        let is_counted = |candidate: &TimedBlock| {
            let later = candidate.number > self.number();
            later && self.counted.is_none_or(|counted| candidate.number < self.layout.blocks(counted))
        };
        for reference in [own, self.resync.reference].iter().flatten() {
            let candidate =
                blocks_between(&reference.times, times, period).map(|blocks| of(reference.number + blocks));
            let candidate = candidate
                .filter(|candidate| self.continues(reference, candidate, period) && is_counted(candidate));
            if candidate.is_some() {
                return Ok(candidate);
            }
        }
        if self.resync.reference.is_some_and(|reference| !follows(&reference.times, times)) {
            return Ok(None);
        }
        let blocks = ((at - self.at + self.layout.block / 2) / self.layout.block).max(1);
        let candidate = of(self.number() + blocks);
        Ok((is_counted(&candidate) && self.is_followed_by(window, &candidate, period, 2)?)
            .then_some(candidate))
    }

    /// Returns whether a candidate continues the block `first`. Its times must be a whole number of
    /// blocks later, and its offset at most [`MAX_SHIFT`] bytes from the expected offset.
    fn continues(&self, first: &TimedBlock, candidate: &TimedBlock, period: i64) -> bool {
        let blocks = blocks_between(&first.times, &candidate.times, period);
        let bytes = blocks.and_then(|blocks| blocks.checked_mul(self.layout.block));
        let expected = bytes.and_then(|bytes| first.at.checked_add(bytes));
        expected.is_some_and(|expected| candidate.at.abs_diff(expected) <= MAX_SHIFT)
    }
}

#[cfg(test)]
mod tests;
