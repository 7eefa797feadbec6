//! Resynchronisation after bytes that are missing or were added: the blocks of a file, one after
//! the other, and the block where reading resumes.
//!
//! Rows have no marks, but each block starts with the times of two clocks, and blocks have a known
//! length and duration. Where there are no valid times at the place of the next block, they are
//! searched for nearby. A block that turns out to be too short or too long is left out: where in it the
//! bytes are missing is unknown, and all its rows behind that place would be read wrongly.
//!
//! Reader and stream call [`Follower::next`] for the same windows of bytes, so they decide alike.

use std::ops::Range;

use rovelog_core::scan::{NeedMore, Window};
use rovelog_core::text::count;
use zerocopy::FromBytes;

use crate::clock::{follows, follows_by_both, is_plausible, span};
use crate::layout::{Aligned, Layout};
use crate::validate::Validated;
use crate::wire::{BLOCK_TIMES_LEN, BlockTimes};

/// Largest number of bytes that are missing or were added: 16 pages of 4 KiB.
pub(crate) const REACH: u64 = 64 << 10;

/// Largest block that is checked, because a pipe buffers a few of them. Those of the logger are
/// smaller: a second at 64 kSPS takes 2.6 MB.
const BLOCK_MAX: u64 = 4 << 20;

/// Places that may be searched at the start of a file, and then for each byte that is read, so that
/// the work is proportional to the file.
const BUDGET: (u64, u64) = (1 << 20, 2);

/// Number of places that are remembered until a later one confirms them.
const PLACES_MAX: usize = 16;

/// What comes next in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A block at this offset, with this many rows. Of a block that is not in the window as a whole,
    /// no more than these.
    Block { at: u64, rows: u64 },
    /// Blocks that are left out, because they are together too short or too long.
    LeftOut(LeftOut),
    /// No further block.
    End,
}

/// Blocks that are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LeftOut {
    pub(crate) range: Range<u64>,
    /// Bytes that the rows of these blocks take.
    expected: u64,
    pub(crate) rows: u64,
}

impl LeftOut {
    /// Says what is wrong with these blocks, after which row `row` is the first one.
    pub(crate) fn text(&self, row: u64) -> String {
        let there = self.range.end - self.range.start;
        let wrong = match there.checked_sub(self.expected) {
            None => format!("{} too short", count(self.expected - there, "byte")),
            Some(more) => format!("{} too long", count(more, "byte")),
        };
        let are = if self.rows == 1 { "is" } else { "are" };
        format!("{} before row {row} {are} left out: the block is {wrong}", count(self.rows, "row"))
    }
}

/// Follows the blocks of a file.
#[derive(Clone, Debug)]
pub(crate) struct Follower {
    row: u64,
    block_rows: u64,
    block: u64,
    /// Duration of a block in nanoseconds; `None` if lengths of blocks are not checked.
    period: Option<i64>,
    /// Rows that the header counts.
    counted: Option<u64>,
    /// Rows to read.
    limit: u64,
    /// Offset of the next block.
    at: u64,
    /// Rows before it, as the header counts.
    before: u64,
    aligned: Aligned,
    /// The times of the first block that is read.
    first: Option<BlockTimes>,
    /// The last block whose times are known to be those of a block.
    known: Option<Known>,
    /// Places that may still be searched.
    budget: u64,
    /// End of what was searched for this block in vain.
    searched: u64,
    /// Places that continue this block, but are not confirmed.
    places: Vec<Known>,
}

/// A block with valid times.
#[derive(Clone, Copy, Debug)]
struct Known {
    at: u64,
    /// Its number, as the header counts.
    number: u64,
    times: BlockTimes,
}

impl Follower {
    /// Starts with the first block. `is_checked` is false for a file of which only parts are read.
    pub(crate) fn new(file: &Validated, is_checked: bool) -> Self {
        let layout = file.layout.as_ref().ok().filter(|layout| layout.block_rows > 0 && layout.row > 0);
        let (row, block_rows, block, at) = layout.map_or((0, 0, 0, 0), |layout: &Layout| {
            (layout.row as u64, layout.block_rows, layout.block, layout.header)
        });
        let rate = file.header.lead_in.sample_rate.get();
        let period = i64::try_from(span(block_rows, rate)).ok();
        let period = period.filter(|period| is_checked && rate > 0 && *period > 0 && block <= BLOCK_MAX);
        Self {
            row,
            block_rows,
            block,
            period,
            counted: file.declared,
            limit: file.to_read().unwrap_or(u64::MAX),
            at,
            before: 0,
            aligned: Aligned::from(at),
            first: None,
            known: None,
            budget: BUDGET.0,
            searched: 0,
            places: Vec::new(),
        }
    }

    /// Returns the last blocks at regular distances.
    pub(crate) fn aligned(&self) -> Aligned {
        self.aligned
    }

    /// Returns what comes next. The window starts at or before the end of the last step.
    ///
    /// # Errors
    /// Returns an error if the window ends before that is known; nothing has changed then.
    pub(crate) fn next(&mut self, window: Window<'_>) -> Result<Step, NeedMore> {
        let rows = self.limit.saturating_sub(self.before).min(self.block_rows);
        let smallest = BLOCK_TIMES_LEN + self.row;
        if rows == 0 || window.slice(self.at, self.at + smallest)?.is_none() {
            return Ok(Step::End);
        }
        if let Some(period) = self.period
            && self.counted.is_none_or(|counted| self.before < counted)
            && let Some(left_out) = self.check(window, period)?
        {
            self.earn(left_out.range.end - left_out.range.start);
            self.at = left_out.range.end;
            self.before += left_out.rows;
            self.aligned =
                Aligned { at: self.at, before: self.before, left_out: self.aligned.left_out + left_out.rows };
            return Ok(Step::LeftOut(left_out));
        }
        let at = self.at;
        let bytes = window.end() - at - BLOCK_TIMES_LEN;
        let rows = if window.eof { rows.min(bytes / self.row) } else { rows };
        self.first = self.first.or(window.view::<BlockTimes>(at)?.copied());
        self.at += self.block;
        self.before += self.block_rows;
        self.earn(self.block);
        Ok(Step::Block { at, rows })
    }

    /// Allows further searches for bytes that are read.
    fn earn(&mut self, bytes: u64) {
        self.budget = self.budget.saturating_add(bytes.saturating_mul(BUDGET.1));
    }

    /// Goes on from a block whose times are known to be those of a block.
    fn know(&mut self, block: Known) {
        self.known = Some(block);
        self.searched = 0;
        self.places.clear();
    }

    fn number(&self) -> u64 {
        self.before / self.block_rows
    }

    /// Returns whether the header counts no further block.
    fn is_last(&self, number: u64) -> bool {
        self.counted.is_some_and(|counted| number + 1 >= counted.div_ceil(self.block_rows))
    }

    /// Returns the next block, and those that are lost with it, if it does not have the length of a
    /// block.
    fn check(&mut self, window: Window<'_>, period: i64) -> Result<Option<LeftOut>, NeedMore> {
        let number = self.number();
        let next = self.at + self.block;
        let times = if self.is_last(number) { None } else { window.view::<BlockTimes>(next)? };
        let Some(times) = times else { return self.last(window) };
        let own = window.view::<BlockTimes>(self.at)?.filter(|times| is_plausible(times));
        let own = own.map(|times| Known { at: self.at, number, times: *times });
        // Whether valid times continue those before does not decide: a recovered log has other blocks
        // before them, and must be read alike. Only if they do, later times are compared with them.
        if is_plausible(times) {
            let there = Known { at: next, number: number + 1, times: *times };
            let mut before = own.iter().chain(&self.known);
            if self.known.is_none() || before.any(|block| block.blocks_to(&there, period).is_some()) {
                self.know(there);
            }
            return Ok(None);
        }
        let Some(resumed) = self.search(window, own, period)? else { return Ok(None) };
        // Of a recovered log whose second block does not follow the first, the rows may be read with an
        // extra word (D28).
        let is_second = self.before - self.aligned.left_out == self.block_rows;
        let first = self.first.filter(|first| is_second && is_plausible(first));
        if first.is_some_and(|first| !follows(&first, &resumed.times)) {
            return Ok(None);
        }
        let blocks = resumed.number - number;
        self.know(resumed);
        Ok(Some(LeftOut {
            range: self.at..resumed.at,
            expected: blocks * self.block,
            rows: blocks * self.block_rows,
        }))
    }

    /// Returns the rest of the file, if it must be left out: bytes are missing or were added before,
    /// and the rest does not have the length that the header counts.
    fn last(&self, window: Window<'_>) -> Result<Option<LeftOut>, NeedMore> {
        let Some(counted) = self.counted.filter(|_| self.aligned.left_out > 0) else { return Ok(None) };
        let rows = counted - self.before;
        let Some(expected) = self.body(rows) else { return Ok(None) };
        let end = self.at.saturating_add(expected);
        // Nothing is said where much follows, so that a pipe need not wait for its end.
        let until = end.saturating_add(REACH);
        if !window.eof && window.end() <= until {
            return Err(NeedMore(until.saturating_add(1)));
        }
        let is_whole = [end, self.at + self.block].contains(&window.end());
        if window.end() > until || is_whole {
            return Ok(None);
        }
        // The header may be behind: more blocks follow.
        let own = window.view::<BlockTimes>(self.at)?;
        let times = if end < window.end() { window.view::<BlockTimes>(end)? } else { None };
        if own.zip(times).is_some_and(|(own, times)| follows(own, times)) {
            return Ok(None);
        }
        Ok(Some(LeftOut { range: self.at..window.end(), expected, rows }))
    }

    /// Returns whether this many blocks follow at regular distances, in bytes and in time.
    fn is_followed(
        &self,
        window: Window<'_>,
        first: &Known,
        period: i64,
        blocks: u64,
    ) -> Result<bool, NeedMore> {
        let mut block = *first;
        for _ in 0..blocks {
            let at = block.at + self.block;
            let Some(times) = window.view::<BlockTimes>(at)? else { return Ok(false) };
            let next = Known { at, number: block.number + 1, times: *times };
            if block.blocks_to(&next, period) != Some(1) {
                return Ok(false);
            }
            block = next;
        }
        Ok(true)
    }

    /// Returns the ranges to search, ascending: around the places of the next three blocks.
    fn ranges(&self) -> [Range<u64>; 3] {
        let mut from = self.at + BLOCK_TIMES_LEN;
        [1, 2, 3].map(|blocks| {
            let place = self.at + blocks * self.block;
            let range = from.max(place.saturating_sub(REACH))..place + REACH + 1;
            from = range.end;
            range
        })
    }

    /// Searches for the block where reading resumes; `None` if it is at a regular distance, or there
    /// is none nearby. `own` are the times of the block that is checked, if they are plausible.
    fn search(
        &mut self,
        window: Window<'_>,
        own: Option<Known>,
        period: i64,
    ) -> Result<Option<Known>, NeedMore> {
        let ranges = self.ranges();
        let end = ranges[2].end;
        // What was searched for the same known block need not be searched again.
        let ranges = ranges.map(|range| range.start.max(self.searched)..range.end);
        if self.budget < ranges.iter().map(|range| range.end.saturating_sub(range.start)).sum() {
            return Ok(None);
        }
        let until = end + 2 * self.block + BLOCK_TIMES_LEN;
        if !window.eof && window.end() < until {
            return Err(NeedMore(until));
        }
        let mut places = std::mem::take(&mut self.places);
        places.retain(|place| place.number > self.number() && place.at >= self.at + BLOCK_TIMES_LEN);
        for range in ranges {
            let to = window.end().min(range.end + BLOCK_TIMES_LEN - 1);
            let bytes = window.slice(range.start.min(to), to)?.unwrap_or_default();
            let len = usize::try_from(BLOCK_TIMES_LEN).expect("small");
            for (at, bytes) in (range.start..).zip(bytes.windows(len)) {
                self.budget = self.budget.saturating_sub(1);
                let Some(times) = BlockTimes::ref_from_bytes(bytes).ok().filter(|times| is_plausible(times))
                else {
                    continue;
                };
                let Some(place) = self.place(window, (at, times), own, period)? else { continue };
                // It also confirms an earlier place, of a block that has a wrong length, too.
                if let Some(first) = places.iter().find(|first| self.continues(first, &place, period)) {
                    return Ok(Some(*first));
                }
                if (at - self.at).is_multiple_of(self.block) {
                    return Ok(None);
                }
                if self.is_confirmed(window, &place, period)? {
                    return Ok(Some(place));
                }
                if places.len() < PLACES_MAX {
                    places.push(place);
                }
            }
        }
        (self.searched, self.places) = (end, places);
        Ok(None)
    }

    /// Returns whether a place is followed by a block at a regular distance, or is the last block of
    /// those that the header counts or the file has room for.
    fn is_confirmed(&self, window: Window<'_>, place: &Known, period: i64) -> Result<bool, NeedMore> {
        let is_last = place.at + self.block + BLOCK_TIMES_LEN > self.end(window);
        Ok(is_last || self.is_followed(window, place, period, 1)?)
    }

    /// Returns where the rows end if no further block is left out. Recovery ends a log there, so that
    /// the recovered log is read alike.
    fn end(&self, window: Window<'_>) -> u64 {
        let bytes = window.end() - self.aligned.at;
        let rest = (bytes % self.block).checked_sub(BLOCK_TIMES_LEN).map_or(0, |rest| rest / self.row);
        let rows = bytes / self.block * self.block_rows + rest.min(self.block_rows);
        let counted = self.counted.map_or(u64::MAX, |counted| counted - self.aligned.before);
        self.aligned.at + self.body(rows.min(counted)).unwrap_or(bytes)
    }

    /// Returns the size of blocks with this many rows.
    fn body(&self, rows: u64) -> Option<u64> {
        let short = rows % self.block_rows;
        let short = if short > 0 { BLOCK_TIMES_LEN + short * self.row } else { 0 };
        (rows / self.block_rows).checked_mul(self.block)?.checked_add(short)
    }

    /// Returns the block that starts at a place, if its times continue those of a block before, or if
    /// two more blocks follow it regularly.
    fn place(
        &self,
        window: Window<'_>,
        (at, times): (u64, &BlockTimes),
        own: Option<Known>,
        period: i64,
    ) -> Result<Option<Known>, NeedMore> {
        let of = |number: u64| Known { at, number, times: *times };
        let is_counted = |place: &Known| {
            let later = place.number > self.number();
            later && self.counted.is_none_or(|counted| place.number < counted.div_ceil(self.block_rows))
        };
        for known in [own, self.known].iter().flatten() {
            let place = known.blocks_to(&of(0), period).map(|blocks| of(known.number + blocks));
            let place = place.filter(|place| self.continues(known, place, period) && is_counted(place));
            if place.is_some() {
                return Ok(place);
            }
        }
        if self.known.is_some_and(|known| !follows(&known.times, times)) {
            return Ok(None);
        }
        let blocks = ((at - self.at + self.block / 2) / self.block).max(1);
        let place = of(self.number() + blocks);
        Ok((is_counted(&place) && self.is_followed(window, &place, period, 2)?).then_some(place))
    }

    /// Returns whether a place continues a block: by its times, and not far from where it would be.
    fn continues(&self, first: &Known, place: &Known, period: i64) -> bool {
        let blocks = first.blocks_to(place, period).and_then(|blocks| blocks.checked_mul(self.block));
        let expected = blocks.and_then(|bytes| first.at.checked_add(bytes));
        expected.is_some_and(|expected| place.at.abs_diff(expected) <= REACH)
    }
}

impl Known {
    /// Returns the number of blocks from this one to `next` by both clocks; `None` if the time
    /// between them is not that of whole blocks.
    fn blocks_to(&self, next: &Self, period: i64) -> Option<u64> {
        if !follows_by_both(&self.times, &next.times) {
            return None;
        }
        let time = i64::try_from(next.times.monotonic() - self.times.monotonic()).ok()?;
        let blocks = (time + period / 2) / period;
        // Times are late by half a millisecond; old versions are off the true rate by 0.4 %.
        let slack = (period / 8).max(600_000).min(period / 8 * 3) + time / 256;
        let is_near = time.abs_diff(blocks * period) <= slack.unsigned_abs();
        u64::try_from(blocks).ok().filter(|blocks| *blocks > 0 && is_near)
    }
}
