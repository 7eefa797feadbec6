//! Times of rows: the block times in a log, the true rate, and the time axes. All arithmetic is on
//! integers.

mod axis;
mod fit;
mod track;

pub(crate) use axis::Piece;
pub use axis::{TimeAxis, TimeBase, TimeMap, TimeOptions};
pub(crate) use fit::{Block, Blocks, LogTimes};
pub use fit::{ClockReport, Gap, Residuals};
pub(crate) use track::{
    ClockChange, Gaps, Tracker, blocks_between, follows, follows_on_both_clocks, is_plausible,
    is_plausible_time,
};

/// True duration in nanoseconds of the rows that nominally last one second. Each row takes
/// 3136/3125 of its nominal duration.
pub const TRUE_SECOND: i64 = 1_003_520_000;

/// Returns the true duration of `rows` rows at a nominal rate, in nanoseconds rounded down.
pub fn span(rows: u64, rate: u16) -> i128 {
    i128::from(rows) * i128::from(TRUE_SECOND) / i128::from(rate.max(1))
}
