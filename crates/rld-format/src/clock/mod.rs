//! Time: block times, the true rate, and the time axes of rows. All in exact integers.

mod axis;
mod fit;
mod track;

pub(crate) use axis::Piece;
pub use axis::{TimeAxis, TimeBase, TimeMap, TimeOptions};
pub(crate) use fit::{Block, Blocks};
pub use fit::{ClockReport, Gap, Residuals};
pub(crate) use track::{Noticed, Tracker, blocks_between, follows, follows_by_both, is_plausible};

/// Nanoseconds of a true second of the converter: rows take 3136/3125 of their nominal time.
pub const TRUE_SECOND: i64 = 1_003_520_000;

/// Returns the duration of `rows` rows at a nominal rate, in nanoseconds rounded down.
pub fn span(rows: u64, rate: u16) -> i128 {
    i128::from(rows) * i128::from(TRUE_SECOND) / i128::from(rate.max(1))
}

/// Returns the delay of block times in a version: the logger reads the clock at the end of a block
/// and subtracts a constant, which equals the duration of the block only since version 4.
pub fn latency(version: u16, rate: u16, block_rows: u64) -> i128 {
    if rate == 0 || block_rows == 0 {
        return 0;
    }
    let block = span(block_rows, rate);
    let updates = i128::from(rate) / i128::from(block_rows).max(1);
    let subtracted = match version {
        1 | 2 if updates == 1 => 1_000_000_000,
        1 | 2 => 0,
        3 if updates > 0 => 1_000_000_000 / updates,
        _ => block,
    };
    block - subtracted
}
