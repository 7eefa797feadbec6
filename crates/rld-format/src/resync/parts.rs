//! Parts of damaged blocks: intact rows, and the bytes between them that are left out.

use std::collections::VecDeque;

use super::realign::IntactRows;
use super::{LeftOut, Step};
use crate::layout::Layout;
use crate::wire::{BLOCK_TIMES_LEN, BlockTimes};

/// Minimum duration of [`grain`] rows in nanoseconds. Block times can be half a millisecond late, so
/// shorter gaps in a recovered log would not be recognized.
const MIN_GRAIN: i64 = 2_000_000;

/// Returns the number of rows of which intact rows in a damaged block are a multiple. `period` is the
/// duration of a block in nanoseconds.
///
/// A recovered log has blocks of this size, because only the last block of a file can be short. So
/// the number is at least a hundredth of a block, and a divisor of the number of rows in a block. For
/// example, it is 10 for blocks of 1000 rows that last one second.
pub(crate) fn grain(block_rows: u64, period: i64) -> u64 {
    let is_long =
        |rows: u64| i128::from(rows) * i128::from(period) >= i128::from(block_rows) * i128::from(MIN_GRAIN);
    let from = block_rows.div_ceil(100).max(1);
    (from..block_rows).find(|rows| block_rows.is_multiple_of(*rows) && is_long(*rows)).unwrap_or(block_rows)
}

impl IntactRows {
    /// Divides intact rows at the borders of blocks, and rounds each part to multiples of `grain`
    /// rows. Only the last of all `rows` rows may end elsewhere.
    pub(super) fn in_blocks(&self, layout: &Layout, grain: u64, rows: u64) -> Vec<Self> {
        let end = self.first + self.rows;
        let part = |block: u64| {
            let first = self.first.max(block * layout.block_rows).next_multiple_of(grain);
            let end = end.min((block + 1) * layout.block_rows);
            let end = if end == rows { end } else { end - end % grain };
            let at = self.at + layout.row_from(first) - layout.row_from(self.first);
            (first < end).then(|| Self { at, first, rows: end - first })
        };
        (self.first / layout.block_rows..end.div_ceil(layout.block_rows)).filter_map(part).collect()
    }
}

/// Parts of damaged blocks, which are added in file order.
pub(super) struct Parts<'a> {
    damaged: &'a LeftOut,
    steps: VecDeque<Step>,
    /// End of the last part, as an offset in the file.
    pub(super) at: u64,
    /// Offset from the start of the blocks at which the last part would end if no bytes were
    /// missing or added.
    intact_at: u64,
    /// Number of rows before the end of the last part.
    row: u64,
}

impl<'a> Parts<'a> {
    pub(super) fn new(damaged: &'a LeftOut) -> Self {
        Self { damaged, steps: VecDeque::new(), at: damaged.range.start, intact_at: 0, row: 0 }
    }

    /// Adds intact rows. If `is_stored` is true, valid block times are stored before the rows.
    /// Otherwise, the rows get the times `times`.
    pub(super) fn push(&mut self, layout: &Layout, intact: &IntactRows, is_stored: bool, times: BlockTimes) {
        let times_len = if is_stored { BLOCK_TIMES_LEN } else { 0 };
        let (at, rows) = (self.damaged.range.start + intact.at, intact.rows);
        self.leave_out(at - times_len, layout.row_from(intact.first) - times_len, intact.first);
        self.steps.push_back(if is_stored {
            Step::Block { at: at - times_len, rows }
        } else {
            Step::Rows { at, rows, times }
        });
        let len = rows * layout.row as u64;
        (self.at, self.row) = (at + len, intact.first + rows);
        self.intact_at = layout.row_from(intact.first) + len;
    }

    /// Leaves out everything from the last part to offset `at`, at which row `row` starts.
    /// `intact_at` is the offset of this row in intact blocks, from the start of the blocks.
    fn leave_out(&mut self, at: u64, intact_at: u64, row: u64) {
        let left_out =
            LeftOut { range: self.at..at, expected: intact_at - self.intact_at, rows: row - self.row };
        if left_out.rows > 0 || !left_out.range.is_empty() {
            self.steps.push_back(Step::LeftOut(left_out));
        }
    }

    /// Returns the parts, which cover all bytes of the damaged blocks.
    pub(super) fn finish(mut self) -> VecDeque<Step> {
        let LeftOut { range, expected, rows } = self.damaged;
        self.leave_out(range.end, *expected, *rows);
        self.steps
    }
}
