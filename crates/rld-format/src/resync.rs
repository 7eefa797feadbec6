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

use crate::clock::{blocks_between, follows, is_plausible, span};
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
    /// Positions of rows; of blocks without rows if they cannot be located.
    layout: Layout,
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
        let layout = file.layout.clone().unwrap_or_default();
        let (rate, at) = (file.header.lead_in.sample_rate.get(), layout.header);
        let period = i64::try_from(span(layout.block_rows, rate)).ok();
        let period = period.filter(|_| is_checked && rate > 0 && layout.block <= BLOCK_MAX);
        Self {
            layout,
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
        let rows = self.limit.saturating_sub(self.before).min(self.layout.block_rows);
        let smallest = BLOCK_TIMES_LEN + self.layout.row as u64;
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
        let rows = if window.eof { rows.min(bytes / self.layout.row as u64) } else { rows };
        self.first = self.first.or(window.view::<BlockTimes>(at)?.copied());
        self.at += self.layout.block;
        self.before += self.layout.block_rows;
        self.earn(self.layout.block);
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
        self.before / self.layout.block_rows
    }

    /// Returns whether the header counts no further block.
    fn is_last(&self, number: u64) -> bool {
        self.counted.is_some_and(|counted| number + 1 >= self.layout.blocks(counted))
    }

    /// Returns the next block, and those that are lost with it, if it does not have the length of a
    /// block.
    fn check(&mut self, window: Window<'_>, period: i64) -> Result<Option<LeftOut>, NeedMore> {
        let number = self.number();
        let next = self.at + self.layout.block;
        let times = if self.is_last(number) { None } else { window.view::<BlockTimes>(next)? };
        let Some(times) = times else { return self.last(window) };
        let own = window.view::<BlockTimes>(self.at)?.filter(|times| is_plausible(times));
        let own = own.map(|times| Known { at: self.at, number, times: *times });
        // Whether valid times continue those before does not decide: a recovered log has other blocks
        // before them, and must be read alike. Only if they do, later times are compared with them.
        if is_plausible(times) {
            let there = Known { at: next, number: number + 1, times: *times };
            let continues = |block: &Known| blocks_between(&block.times, times, period).is_some();
            if self.known.is_none() || own.iter().chain(&self.known).any(continues) {
                self.know(there);
            }
            return Ok(None);
        }
        let Some(resumed) = self.search(window, own, period)? else { return Ok(None) };
        // Of a recovered log whose second block does not follow the first, the rows may be read with an
        // extra word (D28).
        let is_second = self.before - self.aligned.left_out == self.layout.block_rows;
        let first = self.first.filter(|first| is_second && is_plausible(first));
        if first.is_some_and(|first| !follows(&first, &resumed.times)) {
            return Ok(None);
        }
        let blocks = resumed.number - number;
        self.know(resumed);
        Ok(Some(LeftOut {
            range: self.at..resumed.at,
            expected: blocks * self.layout.block,
            rows: blocks * self.layout.block_rows,
        }))
    }

    /// Returns the rest of the file, if it must be left out: bytes are missing or were added before,
    /// and the rest does not have the length that the header counts.
    fn last(&self, window: Window<'_>) -> Result<Option<LeftOut>, NeedMore> {
        let Some(counted) = self.counted.filter(|_| self.aligned.left_out > 0) else { return Ok(None) };
        let rows = counted - self.before;
        let Ok(expected) = u64::try_from(self.layout.body(rows)) else { return Ok(None) };
        let end = self.at.saturating_add(expected);
        // Nothing is said where much follows, so that a pipe need not wait for its end.
        let until = end.saturating_add(REACH);
        if !window.eof && window.end() <= until {
            return Err(NeedMore(until.saturating_add(1)));
        }
        let is_whole = [end, self.at + self.layout.block].contains(&window.end());
        if window.end() > until || is_whole {
            return Ok(None);
        }
        // The header may be behind: more blocks follow.
        let own = window.view::<BlockTimes>(self.at)?;
        let times = window.view::<BlockTimes>(end)?;
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

    /// Returns the ranges to search, ascending: around the places of the next three blocks.
    fn ranges(&self) -> [Range<u64>; 3] {
        let mut from = self.at + BLOCK_TIMES_LEN;
        [1, 2, 3].map(|blocks| {
            let place = self.at + blocks * self.layout.block;
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
        let until = end + 2 * self.layout.block + BLOCK_TIMES_LEN;
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
                if (at - self.at).is_multiple_of(self.layout.block) {
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
        let is_last = place.at + self.layout.block + BLOCK_TIMES_LEN > self.end(window);
        Ok(is_last || self.is_followed(window, place, period, 1)?)
    }

    /// Returns where the rows end if no further block is left out. Recovery ends a log there, so that
    /// the recovered log is read alike.
    fn end(&self, window: Window<'_>) -> u64 {
        let bytes = window.end() - self.aligned.at;
        let counted = self.counted.map_or(u64::MAX, |counted| counted - self.aligned.before);
        let rows = self.layout.rows_in(bytes).min(counted);
        self.aligned.at + u64::try_from(self.layout.body(rows)).unwrap_or(bytes)
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
            later && self.counted.is_none_or(|counted| place.number < self.layout.blocks(counted))
        };
        for known in [own, self.known].iter().flatten() {
            let place = blocks_between(&known.times, times, period).map(|blocks| of(known.number + blocks));
            let place = place.filter(|place| self.continues(known, place, period) && is_counted(place));
            if place.is_some() {
                return Ok(place);
            }
        }
        if self.known.is_some_and(|known| !follows(&known.times, times)) {
            return Ok(None);
        }
        let blocks = ((at - self.at + self.layout.block / 2) / self.layout.block).max(1);
        let place = of(self.number() + blocks);
        Ok((is_counted(&place) && self.is_followed(window, &place, period, 2)?).then_some(place))
    }

    /// Returns whether a place continues a block: by its times, and not far from where it would be.
    fn continues(&self, first: &Known, place: &Known, period: i64) -> bool {
        let blocks = blocks_between(&first.times, &place.times, period);
        let bytes = blocks.and_then(|blocks| blocks.checked_mul(self.layout.block));
        let expected = bytes.and_then(|bytes| first.at.checked_add(bytes));
        expected.is_some_and(|expected| place.at.abs_diff(expected) <= REACH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unit::Unit;
    use crate::validate::validate;
    use crate::writer::{ChannelSpec, LogSpec, set_counts};

    /// Nanoseconds of a block of 20 rows at 1 kSPS.
    const PERIOD: i64 = 20 * 1_003_520;

    /// Bytes of such a block, with rows of one value, and of the header before the first one.
    const BLOCK: u64 = 32 + 20 * 4;
    const HEADER: u64 = 56 + 4 + 28;

    /// Not a block time at any offset.
    const NOISE: u8 = 0x7F;

    fn follower(block_rows: u32, rows: u64) -> Follower {
        let channels = vec![ChannelSpec::analog("V1", Unit::Volt, -8)];
        let spec = LogSpec { block_rows, channels, ..LogSpec::new(1000) };
        let mut header = spec.header().unwrap();
        set_counts(&mut header, rows).unwrap();
        Follower::new(&validate(&header.to_bytes(), Some(HEADER)).unwrap().unwrap(), true)
    }

    /// Returns the times of a block that starts so many nanoseconds after the first one.
    fn times(after: i64) -> BlockTimes {
        let after = i128::from(after);
        BlockTimes::new(1_700_000_000_000_000_000 + after, 987_654_321_000 + after).unwrap()
    }

    fn known(at: u64, number: u64) -> Known {
        Known { at, number, times: times(i64::try_from(number).unwrap() * PERIOD) }
    }

    fn bytes(len: u64, blocks: &[(u64, BlockTimes)]) -> Vec<u8> {
        let mut bytes = vec![NOISE; usize::try_from(len).unwrap()];
        for (at, times) in blocks {
            let at = usize::try_from(*at).unwrap();
            bytes[at..at + 32].copy_from_slice(zerocopy::IntoBytes::as_bytes(times));
        }
        bytes
    }

    #[test]
    fn the_places_of_three_blocks_are_searched() {
        assert_eq!(follower(20, 100).ranges(), [120..65_737, 65_737..65_849, 65_849..65_961]);
        assert_eq!(follower(50_000, 500_000).ranges()[1..], [334_616..465_689, 534_648..665_721]);
    }

    #[test]
    fn a_pipe_is_read_as_far_as_the_search_looks() {
        let next = |len: usize, eof| {
            let data = vec![NOISE; len];
            follower(20, 100_000).next(Window { data: &data, base: 0, eof })
        };
        let until = 65_961 + 2 * BLOCK + 32;
        assert_eq!((next(66_216, false), until), (Err(NeedMore(until)), 66_217));
        assert!(next(66_217, false).is_ok() && next(66_216, true).is_ok());
    }

    #[test]
    fn searches_are_paid_for_by_what_is_read() {
        let budget = |budget| {
            let mut follower = Follower { budget, ..follower(20, 100_000) };
            follower.search(Window::whole(&bytes(70_000, &[])), None, PERIOD).unwrap();
            (follower.searched, follower.budget)
        };
        assert_eq!((budget(65_841), budget(65_840)), ((65_961, 0), (0, 65_840)));

        let mut follower = follower(20, 100);
        let shifted = [(0, HEADER), (1, HEADER + BLOCK - 3), (2, HEADER + 2 * BLOCK - 3)];
        let log = bytes(5000, &shifted.map(|(block, at)| (at, times(block * PERIOD))));
        let mut searched = follower.clone();
        searched.search(Window::whole(&log), Some(known(HEADER, 0)), PERIOD).unwrap();
        let Ok(Step::LeftOut(left_out)) = follower.next(Window::whole(&log)) else { panic!("it is short") };
        assert_eq!((left_out.range, left_out.rows), (HEADER..HEADER + BLOCK - 3, 20));
        assert_eq!(follower.budget, searched.budget + 2 * (BLOCK - 3));
        assert!(matches!(follower.next(Window::whole(&log)), Ok(Step::Block { .. })));
        assert_eq!(follower.budget, searched.budget + 2 * (BLOCK - 3) + 2 * BLOCK);
        assert_eq!(follower.known.map(|known| known.number), Some(2), "the last block that was found");
    }

    #[test]
    fn blocks_of_the_search_have_numbers() {
        let of_times = |log: &[(u64, BlockTimes)], own, known, before, counted| {
            let mut follower = Follower { before, known, ..follower(20, counted) };
            follower.at += before / 20 * BLOCK;
            let log_bytes = bytes(3000, log);
            let (at, times) = log[0];
            follower.place(Window::whole(&log_bytes), (at, &times), own, PERIOD).unwrap().map(|it| it.number)
        };
        let fourth = [(HEADER + 4 * BLOCK + 40, times(4 * PERIOD))];
        let own = Some(known(HEADER + 3 * BLOCK, 3));
        assert_eq!(of_times(&fourth, own, None, 60, 81), Some(4));
        assert_eq!(of_times(&fourth, own, None, 60, 80), None, "the header does not count it");
        assert_eq!(of_times(&fourth, Some(known(0, 3)), None, 80, 200), None, "it is not a later one");
        // By its place, if two more follow: times after a pause are not those of whole blocks.
        let paused =
            |at| [0, 1, 2].map(|i: u64| (at + i * BLOCK, times(9_000_000 + i.cast_signed() * PERIOD)));
        assert_eq!(of_times(&paused(HEADER + 2 * BLOCK - 1), None, None, 0, 200), Some(2));
        assert_eq!(of_times(&paused(HEADER + 40), None, None, 0, 200), Some(1));
        assert_eq!(of_times(&paused(HEADER + 3 * BLOCK), None, Some(known(HEADER, 0)), 20, 200), Some(3));
        assert_eq!(of_times(&paused(HEADER + 3 * BLOCK)[..2], None, None, 20, 200), None);
        assert_eq!(of_times(&paused(HEADER + 3 * BLOCK), None, Some(known(HEADER, 1)), 20, 200), None);
    }

    #[test]
    fn places_are_remembered_until_a_later_one_confirms_them() {
        let search = |places: Vec<Known>, second: u64| {
            let log = bytes(70_000, &[(second, times(2 * PERIOD))]);
            let mut follower = Follower { places, ..follower(20, 100_000) };
            let found = follower.search(Window::whole(&log), Some(known(HEADER, 0)), PERIOD).unwrap();
            (found.map(|found| found.at), follower.places, follower.searched)
        };
        let second = HEADER + 2 * BLOCK - 4;
        let of_place = |at, number| search(vec![Known { number, ..known(at, 1) }], second).0;
        for at in [HEADER + 108, HEADER + 32] {
            assert_eq!(of_place(at, 1), Some(at));
        }
        assert_eq!((of_place(HEADER + 31, 1), of_place(HEADER + 108, 0)), (None, None), "they are passed");
        assert_eq!(search(vec![known(HEADER + 108, 90); 16], second).1.len(), 16, "and no more");
        // A block at its own place ends the search.
        let (found, places, searched) = search(Vec::new(), HEADER + 2 * BLOCK);
        assert_eq!((found, places.len(), searched), (None, 0, 0));
        // The last place that is searched.
        let at = follower(20, 100).ranges()[2].end;
        let found = |at: u64| {
            let blocks = [0, 1, 2].map(|i: u64| (at + i * BLOCK, times(i.cast_signed() * PERIOD)));
            let mut follower = follower(20, 100_000);
            follower.search(Window::whole(&bytes(70_000, &blocks)), None, PERIOD).unwrap().map(|it| it.at)
        };
        assert_eq!((found(at - 1), found(at)), (Some(at - 1), None));
    }

    #[test]
    fn a_place_is_confirmed_by_the_next_block_or_the_end_of_the_rows() {
        let is_confirmed = |len: u64, blocks: &[(u64, BlockTimes)]| {
            let (log, place) = (bytes(len, blocks), known(HEADER + BLOCK + 40, 1));
            follower(20, 100).is_confirmed(Window::whole(&log), &place, PERIOD).unwrap()
        };
        let next = HEADER + 2 * BLOCK + 40;
        assert!(!is_confirmed(next + 32, &[]) && is_confirmed(next + 31, &[]));
        assert!(is_confirmed(next + 32, &[(next, times(2 * PERIOD))]));

        let end =
            |len, aligned| Follower { aligned, ..follower(20, 100) }.end(Window::whole(&bytes(len, &[])));
        let first = Aligned::from(HEADER);
        assert_eq!(end(HEADER + 2 * BLOCK + 32 + 13, first), HEADER + 2 * BLOCK + 32 + 12);
        assert_eq!(end(HEADER + 7 * BLOCK, first), HEADER + 5 * BLOCK);
        assert_eq!(end(HEADER + 7 * BLOCK, Aligned { at: 300, before: 40, left_out: 20 }), 300 + 3 * BLOCK);
    }

    #[test]
    fn the_first_block_that_is_read_may_tell_of_an_extra_word() {
        let resumes = |before: u64, left_out, first| {
            let number = before / 20;
            let at = HEADER + number * BLOCK;
            let follows = [0, 1, 2].map(|i| (at + i * BLOCK - i.min(1) * 4, known(0, number + i).times));
            let mut follower = Follower { before, at, first: Some(first), ..follower(20, 1000) };
            follower.aligned.left_out = left_out;
            follower.check(Window::whole(&bytes(5000, &follows)), PERIOD).unwrap().is_some()
        };
        let (earlier, later, noise) = (times(0), times(900 * PERIOD), bytes(32, &[]));
        let noise = *BlockTimes::ref_from_bytes(&noise).unwrap();
        for (before, left_out) in [(20, 0), (40, 20)] {
            assert!(resumes(before, left_out, earlier) && resumes(before, left_out, noise));
            assert!(!resumes(before, left_out, later), "the second block does not follow the first");
        }
        assert!(resumes(40, 0, later) && resumes(60, 20, later), "it is not the second block");
    }

    #[test]
    fn the_rest_behind_left_out_blocks_has_the_length_that_is_counted() {
        let (at, own) = (HEADER + 4 * BLOCK, times(0));
        let last = |len: u64, eof, left_out, next: &[(u64, BlockTimes)]| {
            let log = bytes(len, &[&[(at, own)], next].concat());
            let mut follower = Follower { before: 80, at, ..follower(20, 87) };
            follower.aligned.left_out = left_out;
            let window = Window { eof, ..Window::whole(&log) };
            follower.last(window).map(|left_out| left_out.map(|it| (it.range, it.expected, it.rows)))
        };
        // Seven rows.
        let end = at + 32 + 28;
        let until = end + REACH;
        for whole in [end, at + BLOCK, until + 1] {
            assert_eq!(last(whole, true, 20, &[]), Ok(None));
        }
        for wrong in [end - 1, end + 1, end + 40, until] {
            assert_eq!(last(wrong, true, 20, &[]), Ok(Some((at..wrong, 60, 7))));
            assert_eq!(last(wrong, true, 0, &[]), Ok(None), "no byte is known to be missing");
        }
        assert_eq!(last(end + 40, true, 20, &[(end, times(7 * 1_003_520))]), Ok(None), "blocks follow");
        assert_eq!(last(until, false, 20, &[]), Err(NeedMore(until + 1)));
        assert_eq!(last(until + 1, false, 20, &[]), Ok(None));
    }

    /// The last block that the header counts is not checked by what follows it.
    #[test]
    fn bytes_after_the_counted_blocks_are_not_their_next() {
        let mut follower = follower(20, 40);
        follower.aligned.left_out = 20;
        assert!(!follower.is_last(0) && follower.is_last(1) && follower.is_last(2));
        let log = bytes(HEADER + 2 * BLOCK + 40, &[(HEADER, times(0)), (HEADER + BLOCK, times(PERIOD))]);
        (follower.at, follower.before) = (HEADER + BLOCK, 20);
        let left_out = follower.check(Window::whole(&log), PERIOD).unwrap().unwrap();
        assert_eq!((left_out.range, left_out.rows), (HEADER + BLOCK..HEADER + 2 * BLOCK + 40, 20));
    }

    #[test]
    fn left_out_blocks_are_told_with_their_bytes_and_rows() {
        let text = |range, rows| LeftOut { range, expected: 112, rows }.text(7);
        assert_eq!(text(10..119, 20), "20 rows before row 7 are left out: the block is 3 bytes too short");
        assert_eq!(text(10..123, 1), "1 row before row 7 is left out: the block is 1 byte too long");
    }
}
