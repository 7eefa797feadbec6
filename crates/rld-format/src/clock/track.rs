//! Tracking of block times. It detects gaps, clocks that went back, and clocks that were set. It
//! also computes times of rows that depend only on earlier blocks. The stream uses these times. The
//! random-access reader uses only the detected events.

use std::ops::Range;

use rovelog_core::Rule;
use rovelog_core::internal::text::count;
use rovelog_core::time::Seconds;
use zerocopy::IntoBytes as _;

use super::{TimeBase, span};
use crate::diagnostics as rules;
use crate::wire::{BLOCK_TIMES_LEN, BlockTimes, LeadIn};

/// Maximum number of seconds in a valid block time, which is 272 years.
const MAX_SEC: i64 = 1 << 33;

const SECOND: i64 = 1_000_000_000;

/// Minimum jump of one clock against the other, in nanoseconds, that shows that the clock was set.
/// Smaller differences occur when the operating system adjusts the rate of a clock.
const MIN_STEP: i64 = 1_000_000;

/// The operating system adjusts the rate of a clock by at most one part in 2000 (500 ppm).
const SLEW_DIVISOR: i128 = 2000;

/// Returns whether block times are valid. Valid times fit into 64 bits of nanoseconds. Times that
/// are zero on both clocks are invalid, because zeroed bytes and rows of idle digital channels look
/// like such times.
pub(crate) fn is_plausible(block_times: &BlockTimes) -> bool {
    let is_zero = block_times.as_bytes().iter().all(|byte| *byte == 0);
    !is_zero
        && is_plausible_time(block_times.realtime_sec.get(), block_times.realtime_nsec.get())
        && is_plausible_time(block_times.monotonic_sec.get(), block_times.monotonic_nsec.get())
}

/// Returns whether seconds and nanoseconds can be a time of a clock.
pub(crate) fn is_plausible_time(sec: i64, nsec: i64) -> bool {
    (-MAX_SEC..MAX_SEC).contains(&sec) && (-SECOND..SECOND).contains(&nsec)
}

/// Returns whether `second` can be the times of a block after `first`: both are valid, and `second`
/// is less than ten days later.
pub(crate) fn follows(first: &BlockTimes, second: &BlockTimes) -> bool {
    let later = second.monotonic() - first.monotonic();
    is_plausible(first) && is_plausible(second) && (1..864_000 * i128::from(SECOND)).contains(&later)
}

/// Returns whether `second` can be the times of a block after `first`, and both clocks advanced by
/// the same time, with a tolerance of a minute.
pub(crate) fn follows_on_both_clocks(first: &BlockTimes, second: &BlockTimes) -> bool {
    let elapsed = |clock: fn(&BlockTimes) -> i128| clock(second) - clock(first);
    let apart = elapsed(BlockTimes::realtime) - elapsed(BlockTimes::monotonic);
    follows(first, second) && apart.abs() < 60 * i128::from(SECOND)
}

/// Returns the number of blocks from `first` to `second`. `period` is the duration of a block in
/// nanoseconds. Returns `None` if the two clocks advanced by different times, or if the time is not
/// the duration of a whole number of blocks.
pub(crate) fn blocks_between(first: &BlockTimes, second: &BlockTimes, period: i64) -> Option<u64> {
    if !follows_on_both_clocks(first, second) {
        return None;
    }
    let time = i64::try_from(second.monotonic() - first.monotonic()).ok()?;
    let blocks = (time + period / 2) / period;
    // Block times are up to half a millisecond late. In old versions, they differ from the true
    // rate by 0.4 %.
    let slack = (period / 8).max(600_000).min(period / 8 * 3) + time / 256;
    let is_near = time.abs_diff(blocks * period) <= slack.unsigned_abs();
    u64::try_from(blocks).ok().filter(|blocks| *blocks > 0 && is_near)
}

/// The change of the clocks between a block and the previous block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClockChange {
    /// The monotonic clock advanced by the duration of the rows. Also used for the first block.
    Steady,
    /// About `blocks` blocks are missing before this block. They lasted `nanos` nanoseconds in
    /// total. During this gap, the UTC clock was set by `step` nanoseconds, or not at all if `step`
    /// is 0.
    Gap { nanos: i64, blocks: u64, step: i64 },
    /// The monotonic clock went back.
    Backwards,
    /// The UTC clock was set by this number of nanoseconds. It is negative if the clock was set
    /// back.
    Step(i64),
    /// The block has no valid times.
    Implausible,
}

impl ClockChange {
    /// Returns the number of nanoseconds by which the UTC clock was set before the block. Returns 0
    /// if the clock was not set.
    pub(crate) fn step(self) -> i64 {
        match self {
            Self::Step(step) | Self::Gap { step, .. } => step,
            Self::Steady | Self::Backwards | Self::Implausible => 0,
        }
    }

    /// Reports a change before row `row`. The times of the block are at `range`.
    fn report(self, row: u64, range: &Range<u64>, mut note: impl FnMut(&'static Rule, Range<u64>, String)) {
        match self {
            Self::Gap { nanos, blocks, .. } => {
                let text = format!(
                    "{nanos} ns of data are missing before row {row} (about {}), because the logger lost \
                     them",
                    count(blocks, "block")
                );
                note(&rules::GAP, range.clone(), text);
            }
            Self::Backwards => {
                let text = format!(
                    "the monotonic clock goes back before row {row}, because a new run of the logger starts \
                     there"
                );
                note(&rules::CLOCK_BACKWARDS, range.clone(), text);
            }
            Self::Step(_) | Self::Steady | Self::Implausible => {}
        }
        if self.step() != 0 {
            let seconds = Seconds(self.step());
            let text = format!("the UTC clock of the logger was changed by {seconds} s before row {row}");
            note(&rules::CLOCK_STEP, range.clone(), text);
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct PreviousBlock {
    rows: u64,
    realtime: i64,
    monotonic: i64,
}

/// A row with known times. The times of later rows are counted from this row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Anchor {
    pub(crate) row: u64,
    pub(crate) realtime: i64,
    pub(crate) monotonic: i64,
}

/// Gaps in a log, in which the logger lost rows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Gaps {
    pub(crate) count: u64,
    /// Total duration in nanoseconds.
    pub(crate) nanos: i128,
}

/// Tracks the block times of a log to detect gaps and changes of the clocks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tracker {
    /// Number of blocks so far, without those that are left out.
    pub(crate) blocks: u64,
    pub(crate) gaps: Gaps,
    rate: u16,
    block_rows: u64,
    previous: Option<PreviousBlock>,
    anchor: Option<Anchor>,
    reported_negative: bool,
    reported_implausible: bool,
    skipped: Skipped,
}

/// Kind of blocks that were skipped between the last tracked block and the next block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Skipped {
    #[default]
    Nothing,
    /// Blocks whose bytes have not been fetched.
    Passed,
    /// Blocks that are not read because bytes are missing or were added.
    LeftOut,
}

impl Tracker {
    pub(crate) fn new(lead_in: &LeadIn) -> Self {
        let (sec, nsec) = (lead_in.start_sec.get(), lead_in.start_nsec.get());
        // Until the first valid block time, rows are counted from the start time in the header.
        let start = is_plausible_time(sec, nsec) && sec != 0;
        let anchor = start.then(|| Anchor { row: 0, realtime: sec * SECOND + nsec, monotonic: 0 });
        let (rate, block_rows) = (lead_in.sample_rate.get(), lead_in.data_block_size.get().into());
        Self { rate, block_rows, anchor, ..Self::default() }
    }

    /// Records that blocks before the next block were skipped, because bytes are missing or were
    /// added. The time between the blocks before and after them counts as a gap. No diagnostic is
    /// added for this gap, because the lost blocks already have one.
    pub(crate) fn leave_out(&mut self) {
        self.skipped = Skipped::LeftOut;
    }

    /// Skips a block of `rows` rows whose times have not been fetched. If the clocks and the rows
    /// have advanced differently at the next block, this is not reported, because the change may
    /// have been at any of the skipped blocks.
    pub(crate) fn skip_unread(&mut self, rows: u64) {
        self.blocks += 1;
        if let Some(previous) = &mut self.previous {
            previous.rows += rows;
            self.skipped = Skipped::Passed;
        }
    }

    /// Adds a block of `rows` rows whose first row has the number `row`. The block times are stored
    /// at offset `at`.
    pub(crate) fn block(
        &mut self,
        at: u64,
        block_times: &BlockTimes,
        row: u64,
        rows: u64,
        mut note: impl FnMut(&'static Rule, Range<u64>, String),
    ) -> ClockChange {
        self.blocks += 1;
        let range = at..at + BLOCK_TIMES_LEN;
        if !is_plausible(block_times) {
            if !self.reported_implausible {
                let text = format!(
                    "the block times before row {row} are invalid, so its rows get times that continue from \
                     the previous block"
                );
                note(&rules::STAMPS_IMPLAUSIBLE, range, text);
            }
            self.reported_implausible = true;
            if let Some(previous) = &mut self.previous {
                previous.rows += rows;
            }
            return ClockChange::Implausible;
        }
        let (real, mono) = (block_times.realtime_nsec.get(), block_times.monotonic_nsec.get());
        if !self.reported_negative && (real < 0 || mono < 0) {
            let text = format!(
                "the block time at row {row} has negative nanoseconds (UTC {real}, monotonic {mono}); the \
                 same time is shown with positive nanoseconds"
            );
            note(&rules::NEGATIVE_NANOSECONDS, range.clone(), text);
            self.reported_negative = true;
        }
        let narrow = |time: i128| i64::try_from(time).unwrap_or_default();
        let (realtime, monotonic) = (narrow(block_times.realtime()), narrow(block_times.monotonic()));
        let change = self.compare(realtime, monotonic);
        if let ClockChange::Gap { nanos, .. } = change {
            self.gaps.count += 1;
            self.gaps.nanos += i128::from(nanos);
        }
        if std::mem::take(&mut self.skipped) == Skipped::Nothing {
            change.report(row, &range, note);
        }
        if self.previous.is_none() || change != ClockChange::Steady {
            self.anchor = Some(Anchor { row, realtime, monotonic });
        }
        self.previous = Some(PreviousBlock { rows, realtime, monotonic });
        change
    }

    /// Returns the change of the clocks since the previous block.
    fn compare(&self, realtime: i64, monotonic: i64) -> ClockChange {
        let Some(previous) = self.previous else { return ClockChange::Steady };
        if self.rate == 0 {
            return ClockChange::Steady;
        }
        let full = span(self.block_rows, self.rate);
        let elapsed = i128::from(monotonic) - i128::from(previous.monotonic);
        let late = elapsed - span(previous.rows, self.rate);
        // Block times are accurate to half a millisecond at best. This limits the tolerance for
        // blocks of only a few rows. If rows were left out, the gap lasts at least 2 ms, so a delay of
        // more than 1 ms is a gap.
        let (half, inaccuracy) = (full / 2, 1_000_000);
        let (gap_limit, step_back_limit) = match self.skipped {
            Skipped::LeftOut => (half.min(inaccuracy), half),
            Skipped::Nothing | Skipped::Passed => (half.max(inaccuracy), half.max(inaccuracy)),
        };
        let step = i128::from(realtime) - i128::from(previous.realtime) - elapsed;
        let narrow = |step: i128| i64::try_from(step).unwrap_or_default();
        if late > gap_limit {
            let blocks = (2 * late + full) / (2 * full.max(1));
            // During the gap, the operating system may have adjusted the rate of the clock. So the
            // two clocks may differ by up to 500 ppm of the gap.
            let adjusted = i128::from(MIN_STEP) + late / SLEW_DIVISOR;
            ClockChange::Gap {
                nanos: i64::try_from(late).unwrap_or(i64::MAX),
                blocks: u64::try_from(blocks).unwrap_or(u64::MAX),
                step: if step.abs() > adjusted { narrow(step) } else { 0 },
            }
        } else if late < -step_back_limit {
            ClockChange::Backwards
        } else if step.abs() > i128::from(MIN_STEP) {
            ClockChange::Step(narrow(step))
        } else {
            ClockChange::Steady
        }
    }

    /// Returns the row with known times from which the times of the next rows are counted.
    pub(crate) fn anchor(&self) -> Option<Anchor> {
        self.anchor
    }

    /// Returns the time of a row. It is the time of the last row with known times, plus the true
    /// period for each row since then.
    pub(crate) fn time(&self, row: u64, base: TimeBase) -> Option<i64> {
        let anchor = self.anchor.filter(|_| self.rate > 0)?;
        let start = if base == TimeBase::Monotonic { anchor.monotonic } else { anchor.realtime };
        super::Piece::at_true_rate(anchor.row, u64::MAX, start, self.rate).time(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_between_requires_whole_blocks() {
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
        // The tolerance is an eighth of a block, but at least 0.6 ms and at most three eighths of a
        // block. In addition, the time between the blocks may be off by 0.4 %.
        for (period, late) in [(PERIOD, 2_597_345), (3_000_000, 614_117), (800_000, 304_313)] {
            assert_eq!(blocks(period, period + late), Some(1));
            assert_eq!(blocks(period, period + late + 1), None);
        }
        let set = times(PERIOD + 60_000_000_000, PERIOD);
        assert_eq!(blocks_between(&times(0, 0), &set, PERIOD), None, "one of the clocks was set");
    }
}
