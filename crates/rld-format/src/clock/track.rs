//! Tracking of block times: gaps, clocks that went back or were set, and times of rows that depend
//! only on earlier blocks. The stream uses these times; the reader uses what was noticed.

use std::ops::Range;

use rovelog_core::Rule;
use rovelog_core::text::count;
use zerocopy::IntoBytes as _;

use super::span;
use crate::diagnostics as rules;
use crate::wire::{BLOCK_TIMES_LEN, BlockTimes, LeadIn};

/// Seconds beyond which a block time is invalid: 272 years.
const FAR: i64 = 1 << 33;

const SECOND: i64 = 1_000_000_000;

/// Nanoseconds by which a clock jumps against the other one if it was set, not adjusted.
const STEP: i64 = 1_000_000;

/// Returns whether block times are valid; then both fit 64 bits of nanoseconds. Zero on both clocks is
/// no time of a logger, but what zeroed bytes and idle digital channels look like.
pub(crate) fn is_plausible(block_times: &BlockTimes) -> bool {
    let sec = |sec: i64| (-FAR..FAR).contains(&sec);
    let nsec = |nsec: i64| (-SECOND..SECOND).contains(&nsec);
    let is_zero = block_times.as_bytes().iter().all(|byte| *byte == 0);
    !is_zero
        && sec(block_times.realtime_sec.get())
        && sec(block_times.monotonic_sec.get())
        && nsec(block_times.realtime_nsec.get())
        && nsec(block_times.monotonic_nsec.get())
}

/// Returns whether `second` can be the times of a later block: valid, and less than ten days later.
pub(crate) fn follows(first: &BlockTimes, second: &BlockTimes) -> bool {
    let later = second.monotonic() - first.monotonic();
    is_plausible(first) && is_plausible(second) && (1..864_000 * i128::from(SECOND)).contains(&later)
}

/// Returns whether `second` follows `first` on both clocks, which advanced equally, to the minute.
pub(crate) fn follows_by_both(first: &BlockTimes, second: &BlockTimes) -> bool {
    let went_on = |clock: fn(&BlockTimes) -> i128| clock(second) - clock(first);
    let apart = went_on(BlockTimes::realtime) - went_on(BlockTimes::monotonic);
    follows(first, second) && apart.abs() < 60 * i128::from(SECOND)
}

/// Returns the number of blocks from `first` to `second` by both clocks; `None` if the time between
/// them is not that of whole blocks, which take `period` nanoseconds.
pub(crate) fn blocks_between(first: &BlockTimes, second: &BlockTimes, period: i64) -> Option<u64> {
    if !follows_by_both(first, second) {
        return None;
    }
    let time = i64::try_from(second.monotonic() - first.monotonic()).ok()?;
    let blocks = (time + period / 2) / period;
    // Times are late by half a millisecond; old versions are off the true rate by 0.4 %.
    let slack = (period / 8).max(600_000).min(period / 8 * 3) + time / 256;
    let is_near = time.abs_diff(blocks * period) <= slack.unsigned_abs();
    u64::try_from(blocks).ok().filter(|blocks| *blocks > 0 && is_near)
}

/// The times of a block in relation to those of the previous block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Noticed {
    /// The first block, or the clock advanced as the rows did.
    Steady,
    /// About `blocks` blocks, `nanos` nanoseconds, are missing before it.
    Gap { nanos: i64, blocks: u64 },
    /// The monotonic clock went back.
    Backwards,
    /// The UTC clock was set by this many nanoseconds.
    Step(i64),
    /// No valid times.
    Implausible,
}

#[derive(Clone, Copy, Debug)]
struct Before {
    rows: u64,
    realtime: i64,
    monotonic: i64,
}

/// A row and its time, from which others are counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Anchor {
    pub(crate) row: u64,
    pub(crate) realtime: i64,
}

/// Tracks the blocks of a log.
#[derive(Clone, Debug)]
pub(crate) struct Tracker {
    rate: u16,
    block_rows: u64,
    before: Option<Before>,
    anchor: Option<Anchor>,
    negative: bool,
    implausible: bool,
    between: Between,
}

/// The blocks since the last one that was tracked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Between {
    Nothing,
    /// Blocks that were not read.
    Passed,
    /// Blocks whose rows cannot be read.
    LeftOut,
}

impl Tracker {
    pub(crate) fn new(lead_in: &LeadIn) -> Self {
        let (sec, nsec) = (lead_in.start_sec.get(), lead_in.start_nsec.get());
        // Used until the first valid block time.
        let start = (-FAR..FAR).contains(&sec) && (-SECOND..SECOND).contains(&nsec) && sec != 0;
        let anchor = start.then(|| Anchor { row: 0, realtime: sec * SECOND + nsec });
        Self {
            rate: lead_in.sample_rate.get(),
            block_rows: lead_in.data_block_size.get().into(),
            before: None,
            anchor,
            negative: false,
            implausible: false,
            between: Between::Nothing,
        }
    }

    /// Leaves out blocks whose rows cannot be read. The time that is missing before the next one is
    /// a gap, however short it is; it is not noted, because the loss of the blocks is.
    pub(crate) fn leave_out(&mut self) {
        self.between = Between::LeftOut;
    }

    /// Passes a block of `rows` rows that was not read. Where the clocks did not go on as the rows
    /// did meanwhile, no place is known and nothing is noted.
    pub(crate) fn pass(&mut self, rows: u64) {
        if let Some(before) = &mut self.before {
            before.rows += rows;
            self.between = Between::Passed;
        }
    }

    /// Adds a block of `rows` rows that starts with `row`; its times are stored at `at`.
    pub(crate) fn block(
        &mut self,
        at: u64,
        block_times: &BlockTimes,
        row: u64,
        rows: u64,
        mut note: impl FnMut(&'static Rule, Range<u64>, String),
    ) -> Noticed {
        let range = at..at + BLOCK_TIMES_LEN;
        if !is_plausible(block_times) {
            if !self.implausible {
                note(
                    &rules::STAMPS_IMPLAUSIBLE,
                    range,
                    format!("the block times before row {row} are invalid"),
                );
            }
            self.implausible = true;
            if let Some(before) = &mut self.before {
                before.rows += rows;
            }
            return Noticed::Implausible;
        }
        if !self.negative && (block_times.realtime_nsec.get() < 0 || block_times.monotonic_nsec.get() < 0) {
            let (real, mono) = (block_times.realtime_nsec.get(), block_times.monotonic_nsec.get());
            let text = format!(
                "the block time at row {row} has negative nanoseconds (UTC {real}, monotonic {mono}): normalised, \
                 no value changes"
            );
            note(&rules::NEGATIVE_NANOSECONDS, range.clone(), text);
            self.negative = true;
        }
        let narrow = |time: i128| i64::try_from(time).unwrap_or_default();
        let (realtime, monotonic) = (narrow(block_times.realtime()), narrow(block_times.monotonic()));
        let noticed = self.compare(realtime, monotonic);
        let is_next = self.between == Between::Nothing;
        self.between = Between::Nothing;
        match noticed {
            _ if !is_next => {}
            Noticed::Gap { nanos, blocks } => {
                let text =
                    format!("{nanos} ns are missing before row {row}, about {}", count(blocks, "block"));
                note(&rules::GAP, range, text);
            }
            Noticed::Backwards => {
                note(
                    &rules::CLOCK_BACKWARDS,
                    range,
                    format!("the monotonic clock went back before row {row}"),
                );
            }
            Noticed::Step(nanos) => {
                note(&rules::CLOCK_STEP, range, format!("the clock was set by {nanos} ns before row {row}"));
            }
            Noticed::Steady | Noticed::Implausible => {}
        }
        if self.before.is_none() || noticed != Noticed::Steady {
            self.anchor = Some(Anchor { row, realtime });
        }
        self.before = Some(Before { rows, realtime, monotonic });
        noticed
    }

    fn compare(&self, realtime: i64, monotonic: i64) -> Noticed {
        let Some(before) = self.before else { return Noticed::Steady };
        if self.rate == 0 {
            return Noticed::Steady;
        }
        let full = span(self.block_rows, self.rate);
        let late = i128::from(monotonic) - i128::from(before.monotonic) - span(before.rows, self.rate);
        // Times of single rows are accurate to half a millisecond at best.
        let tolerance = if self.between == Between::LeftOut { full / 2 } else { (full / 2).max(1_000_000) };
        let step = (i128::from(realtime) - i128::from(before.realtime))
            - (i128::from(monotonic) - i128::from(before.monotonic));
        if late > tolerance {
            let blocks = (2 * late + full) / (2 * full.max(1));
            Noticed::Gap {
                nanos: i64::try_from(late).unwrap_or(i64::MAX),
                blocks: u64::try_from(blocks).unwrap_or(u64::MAX),
            }
        } else if late < -tolerance {
            Noticed::Backwards
        } else if step.abs() > i128::from(STEP) {
            Noticed::Step(i64::try_from(step).unwrap_or_default())
        } else {
            Noticed::Steady
        }
    }

    /// Returns the anchor of the next rows.
    pub(crate) fn anchor(&self) -> Option<Anchor> {
        self.anchor
    }

    /// Returns a row's time on the Unix clock: the anchor's plus the true period for each row
    /// since.
    pub(crate) fn time(&self, row: u64) -> Option<i64> {
        let anchor = self.anchor.filter(|_| self.rate > 0)?;
        let piece = super::Piece::at_true_rate(anchor.row, u64::MAX, anchor.realtime, self.rate);
        piece.time(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_between_blocks_are_those_of_whole_blocks() {
        const PERIOD: i64 = 20 * 1_003_520;
        let times = |realtime: i64, monotonic: i64| {
            BlockTimes::new(1_700_000_000_000_000_000 + i128::from(realtime), 987_000 + i128::from(monotonic))
                .unwrap()
        };
        let blocks = |period, time| blocks_between(&times(0, 0), &times(time, time), period);
        assert_eq!(blocks(PERIOD, PERIOD), Some(1));
        assert_eq!(blocks(PERIOD, 5 * PERIOD), Some(5));
        assert_eq!(blocks(PERIOD, 3 * PERIOD - 2_000_000), Some(3));
        for none in [0, 1_000_000, PERIOD / 4, -PERIOD] {
            assert_eq!(blocks(PERIOD, none), None);
        }
        // An eighth of a block, 0.6 ms, or three eighths, and 0.4 % of the time.
        for (period, late) in [(PERIOD, 2_597_345), (3_000_000, 614_117), (800_000, 304_313)] {
            assert_eq!(blocks(period, period + late), Some(1));
            assert_eq!(blocks(period, period + late + 1), None);
        }
        let set = times(PERIOD + 60_000_000_000, PERIOD);
        assert_eq!(blocks_between(&times(0, 0), &set, PERIOD), None, "one of the clocks was set");
    }
}
