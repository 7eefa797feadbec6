//! Finds the intact rows in blocks whose total length is wrong (rule D39 of docs/formats/rld.md).
//!
//! Rows before the damage are at their regular offsets from the start of the blocks. Rows after the
//! damage are at their regular offsets from the end. The offset of the damage is unknown, but
//! values change little from row to row, unless a row is read at a wrong offset.
//!
//! So each row has a few possible offsets, one for each *shift*: the number of bytes that are
//! missing before the row. The rows from first to last are a path through these shifts. It starts
//! with no missing bytes and ends with all of them. The cost of a path is the sum of all unusual
//! changes between its rows. A row is intact if all paths of nearly the lowest cost agree on its
//! bytes.

use std::ops::Range;

use crate::layout::{Layout, Slot, value};
use crate::wire::BLOCK_TIMES_LEN;

/// Maximum number of shifts between no missing bytes and all missing bytes. If there are more, bytes
/// are assumed to be missing at only one offset.
const MAX_SHIFTS: u64 = 8;

/// File systems lose and double whole pages of this size in bytes.
const PAGE: u64 = 4096;

/// Maximum cost of the change between two rows, in bits.
const MAX_JUMP: u32 = 24;

/// Cost in bits of changing the shift within a path.
const SWITCH: u32 = 8;

/// Maximum difference in bits to the lowest cost at which a path is still possible.
const MARGIN: u32 = 8;

/// Maximum difference in bits to the lowest cost at which a file is taken to be only cut off. Files
/// are cut off more often than bytes are missing in the last block.
const CUT_MARGIN: u32 = 8 * MAX_JUMP;

/// Number of consecutive rows that are left out together if their values change too much.
const CHECKED_ROWS: u64 = 8;

/// Maximum number of rows times shifts for which costs are computed. They need 8 bytes each.
const MAX_CELLS: usize = 4 << 20;

/// Cost of a path that does not exist. It is so small that sums do not overflow.
const IMPOSSIBLE: u32 = u32::MAX / 8;

/// Consecutive blocks whose total length is wrong.
pub(super) struct DamagedBlocks<'a> {
    pub(super) layout: &'a Layout,
    /// The blocks, starting with the times of the first block.
    pub(super) bytes: &'a [u8],
    /// Size in bytes that the blocks should have.
    pub(super) expected: u64,
    /// Number of rows that the blocks should have.
    pub(super) rows: usize,
    /// Number of binary channels.
    pub(super) binary: usize,
    /// Intact rows of another block, or nothing.
    pub(super) reference: &'a [u8],
    /// True if the file ends after the blocks, so that they may be cut off.
    pub(super) is_last: bool,
}

impl DamagedBlocks<'_> {
    /// Returns the bits of a word that belong to channels.
    fn bits(&self, index: usize) -> u32 {
        let bits = self.binary.saturating_sub(32 * index).min(32);
        u32::try_from((1u64 << bits) - 1).unwrap_or(u32::MAX)
    }

    /// Returns whether rows have no bits that belong to no channel.
    fn is_clean(&self, rows: &[&[u8]]) -> bool {
        (0..self.layout.words).all(|index| rows.iter().all(|row| word(row, index) & !self.bits(index) == 0))
    }

    /// Returns whether rows can be intact: no value changes by its full range from row to row.
    fn is_smooth(&self, rows: &[&[u8]]) -> bool {
        self.layout.slots.iter().filter(|slot| slot.size > 1).all(|slot| {
            let changes = rows.windows(2).map(|pair| change(pair[0], pair[1], *slot));
            (median(changes) as usize) < 8 * slot.size - 4
        })
    }
}

/// Consecutive intact rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct IntactRows {
    /// Offset of the first row from the start of the damaged blocks.
    pub(super) at: u64,
    /// Index of the first row, counted from the start of the damaged blocks.
    pub(super) first: u64,
    pub(super) rows: u64,
}

/// Usual changes of values between two rows.
#[derive(Default)]
struct Usual {
    words: Vec<UsualWord>,
    /// For each analog value, the usual number of bits of the change.
    changes: Vec<u32>,
}

/// Usual changes of a word of binary channels between two rows.
struct UsualWord {
    /// Bits that can be set. If all unused bits of the log are 0, these are the bits of the channels.
    mask: u32,
    /// Number of bits that usually change.
    changed: u32,
}

impl Usual {
    /// Determines the usual changes from groups of rows. Most groups should be intact, because the
    /// median of the groups is used.
    fn of(blocks: &DamagedBlocks<'_>, groups: &[Vec<&[u8]>]) -> Self {
        let of_pairs = |change: &dyn Fn(&[u8], &[u8]) -> u32| {
            let of_group = |group: &Vec<&[u8]>| median(group.windows(2).map(|pair| change(pair[0], pair[1])));
            median(groups.iter().map(of_group))
        };
        let is_clean = groups.iter().any(|group| blocks.is_clean(group));
        let words = (0..blocks.layout.words).map(|index| {
            let changed = of_pairs(&|before, row| (word(before, index) ^ word(row, index)).count_ones()) + 2;
            UsualWord { mask: if is_clean { blocks.bits(index) } else { u32::MAX }, changed }
        });
        let changes =
            blocks.layout.slots.iter().map(|slot| of_pairs(&|before, row| change(before, row, *slot)) + 2);
        Self { words: words.collect(), changes: changes.collect() }
    }

    /// Returns the number of bits by which the change between two rows is larger than usual.
    fn jump(&self, layout: &Layout, before: &[u8], row: &[u8]) -> u32 {
        let words = self.words.iter().enumerate().map(|(index, usual)| {
            let bits = word(row, index);
            let changed = (word(before, index) ^ bits).count_ones();
            if bits & !usual.mask == 0 { changed.saturating_sub(usual.changed) } else { MAX_JUMP }
        });
        let values = layout.slots.iter().zip(&self.changes);
        let values = values.map(|(slot, usual)| change(before, row, *slot).saturating_sub(*usual));
        words.chain(values).sum::<u32>().min(MAX_JUMP)
    }
}

/// Returns the median of numbers, or 0 if there are none.
fn median(numbers: impl Iterator<Item = u32>) -> u32 {
    let mut sorted: Vec<u32> = numbers.collect();
    sorted.sort_unstable();
    sorted.get(sorted.len().saturating_sub(1) / 2).copied().unwrap_or(0)
}

/// Returns the number of bits by which a value changes between two rows.
fn change(before: &[u8], row: &[u8], slot: Slot) -> u32 {
    let of = |row: &[u8]| value(&row[slot.offset..slot.offset + slot.size]);
    u64::BITS - of(before).abs_diff(of(row)).leading_zeros()
}

fn word(row: &[u8], index: usize) -> u32 {
    row[4 * index..].first_chunk().map_or(0, |word| u32::from_le_bytes(*word))
}

// Example: a block of 1000 rows of 16 bytes has lost one byte of row 400. There are two shifts, 0
// and 1. Rows 0 to 399 follow each other smoothly with shift 0, and rows 401 to 999 with shift 1.
// All other paths have jumps, because they read some rows at wrong offsets:
//
//     shift 0 until row 399, shift 1 from row 401    cost SWITCH
//     shift 0 until row 400, shift 1 from row 402    SWITCH + jump to the damaged row 400
//     shift 0 until row 398, shift 1 from row 400    SWITCH + jump to the damaged row 400
//     shift 0 until row 300, shift 1 from row 302    SWITCH + about 99 * MAX_JUMP
//
// Some of these jumps may be small by chance, for example if the damaged byte is the highest byte of
// a value. Then both paths are possible, and rows 399 to 401 are left out.

/// Search for the paths of nearly the lowest cost.
struct Search<'a> {
    blocks: &'a DamagedBlocks<'a>,
    usual: Usual,
    /// Possible shifts, in the order in which a path has them.
    shifts: Vec<i64>,
    /// For each row and shift, the lowest cost of the path up to this row.
    before: Vec<u32>,
    /// For each row and shift, the lowest cost of the path after this row.
    behind: Vec<u32>,
    /// For each row, the number of possible changes of the shift that start at this row, less the
    /// number of those that end before it.
    switch_edges: Vec<i32>,
}

/// Returns the intact rows of damaged blocks in ascending order. If `is_known` is false, it is not
/// known that the blocks are damaged, and `None` is returned if they may only be cut off.
pub(super) fn intact_rows(blocks: &DamagedBlocks<'_>, is_known: bool) -> Option<Vec<IntactRows>> {
    let missing = blocks.expected.cast_signed() - (blocks.bytes.len() as u64).cast_signed();
    let mut shifts = shifts(missing, blocks.layout.row);
    if blocks.rows.saturating_mul(shifts.len()) > MAX_CELLS {
        shifts = [shifts.first(), shifts.last()].into_iter().flatten().copied().collect();
    }
    let cells = blocks.rows.saturating_mul(shifts.len());
    let mut search = Search {
        usual: Usual::default(),
        before: Vec::new(),
        behind: Vec::new(),
        switch_edges: Vec::new(),
        blocks,
        shifts,
    };
    let groups = if cells > MAX_CELLS { Vec::new() } else { search.groups() };
    if groups.is_empty() {
        return is_known.then(Vec::new);
    }
    search.before = vec![IMPOSSIBLE; cells];
    search.behind = vec![IMPOSSIBLE; cells];
    search.switch_edges = vec![0; blocks.rows + 1];
    search.usual = Usual::of(blocks, &groups);
    search.go_forward();
    let ends = search.ends();
    let best = ends.iter().map(|(cell, cost)| search.before[*cell] + cost).min()?;
    let is_likely = |(cell, cost): &(usize, u32)| search.before[*cell] + cost <= best + CUT_MARGIN;
    if !is_known && ends.first().is_some_and(is_likely) {
        return None;
    }
    search.go_back(&ends, best);
    Some(search.agreed(best))
}

/// Returns the possible shifts if `missing` bytes are missing, which is negative if bytes were
/// added. Shifts between none and all missing bytes are possible if they determine the row numbers.
fn shifts(missing: i64, row: usize) -> Vec<i64> {
    let all = missing.unsigned_abs();
    let unit = if all.is_multiple_of(PAGE) { PAGE } else { 1 };
    let is_clear = unit == PAGE || all < row as u64;
    let unit = if is_clear && all / unit <= MAX_SHIFTS { unit } else { all.max(1) };
    (0..=all / unit).map(|count| (count * unit).cast_signed() * missing.signum()).collect()
}

impl<'a> Search<'a> {
    /// Returns groups of rows that are probably intact: the first and last rows of the blocks, and
    /// the first rows of the reference. If the file ends after the blocks, only the first rows are
    /// at a known offset.
    fn groups(&self) -> Vec<Vec<&'a [u8]>> {
        let (rows, last) = (self.blocks.rows, self.shifts.len() - 1);
        let len = rows.div_ceil(if self.blocks.is_last { 32 } else { 8 }).max(16).min(rows);
        let first: Vec<_> = (0..len).filter_map(|index| self.row(index, 0)).collect();
        let last: Vec<_> = (rows - len..rows).filter_map(|index| self.row(index, last)).collect();
        let reference = self.blocks.reference.chunks_exact(self.blocks.layout.row).take(len).collect();
        let mut groups = if self.blocks.is_last { vec![first] } else { vec![first, last, reference] };
        groups.retain(|group| group.len() > 1 && self.blocks.is_smooth(group));
        if groups.iter().any(|group| self.blocks.is_clean(group)) {
            groups.retain(|group| self.blocks.is_clean(group));
        }
        groups
    }

    /// Returns the bytes of a row with a shift, or `None` if they are not within the blocks.
    fn row(&self, index: usize, shift: usize) -> Option<&'a [u8]> {
        let at = self.offset(index, shift)?;
        self.blocks.bytes.get(at..at + self.blocks.layout.row)
    }

    fn offset(&self, index: usize, shift: usize) -> Option<usize> {
        let at = self.blocks.layout.row_from(index as u64).cast_signed() - self.shifts[shift];
        usize::try_from(at).ok().filter(|at| *at as u64 >= BLOCK_TIMES_LEN)
    }

    fn cell(&self, index: usize, shift: usize) -> usize {
        index * self.shifts.len() + shift
    }

    /// Returns the cost of the change from one row to another, both given as row and shift.
    fn jump(&self, (before, before_shift): (usize, usize), (row, shift): (usize, usize)) -> u32 {
        match (self.row(before, before_shift), self.row(row, shift)) {
            (Some(before), Some(row)) => self.usual.jump(self.blocks.layout, before, row),
            _ => IMPOSSIBLE,
        }
    }

    /// Returns the number of rows that may be damaged where a path changes its shift.
    fn damaged(&self, from: usize, to: usize) -> usize {
        let missing = usize::try_from(self.shifts[to] - self.shifts[from]).unwrap_or(0);
        missing.div_ceil(self.blocks.layout.row) + 1
    }

    /// Computes the lowest costs of the paths up to each row.
    fn go_forward(&mut self) {
        for index in 0..self.blocks.rows {
            for to in 0..self.shifts.len() {
                let mut cost = match index.checked_sub(1) {
                    None if to == 0 => 0,
                    None => IMPOSSIBLE,
                    Some(last) => match self.before[self.cell(last, to)] {
                        IMPOSSIBLE.. => IMPOSSIBLE,
                        cost => cost + self.jump((last, to), (index, to)),
                    },
                };
                for from in 0..to {
                    let Some(rows) = index.checked_sub(self.damaged(from, to)) else { continue };
                    let Some(last) = rows.checked_sub(1) else {
                        cost = cost.min(if from == 0 { SWITCH } else { IMPOSSIBLE });
                        continue;
                    };
                    let switched = self.before[self.cell(last, from)] + SWITCH;
                    if switched < cost {
                        cost = cost.min(switched + self.jump((last, from), (index, to)));
                    }
                }
                let cell = self.cell(index, to);
                self.before[cell] =
                    if self.row(index, to).is_some() { cost.min(IMPOSSIBLE) } else { IMPOSSIBLE };
            }
        }
    }

    /// Returns the cells in which a path can end, and the cost of each end. If the blocks may be cut
    /// off, the first end is that of the path without any change of the shift.
    fn ends(&self) -> Vec<(usize, u32)> {
        let (last, rows) = (self.shifts.len() - 1, self.blocks.rows);
        let uncut = (0..rows).rev().find(|index| self.row(*index, 0).is_some());
        let cut = uncut.filter(|_| self.blocks.is_last).map(|index| (self.cell(index, 0), SWITCH));
        let damaged = (0..last).filter_map(|shift| {
            let index = rows.checked_sub(self.damaged(shift, last) + 1)?;
            Some((self.cell(index, shift), SWITCH))
        });
        let whole = rows.checked_sub(1).map(|index| (self.cell(index, last), 0));
        cut.into_iter().chain(damaged).chain(whole).collect()
    }

    /// Computes the lowest costs of the paths after each row, and marks the rows at which a possible
    /// path changes its shift. `best` is the lowest cost of a path.
    fn go_back(&mut self, ends: &[(usize, u32)], best: u32) {
        for (cell, cost) in ends {
            self.behind[*cell] = self.behind[*cell].min(*cost);
            if *cost > 0 && self.before[*cell] + cost <= best + MARGIN {
                self.mark_switch(cell / self.shifts.len() + 1..self.blocks.rows);
            }
        }
        for index in (0..self.blocks.rows).rev() {
            for from in 0..self.shifts.len() {
                let cell = self.cell(index, from);
                let mut cost = self.behind[cell];
                if index + 1 < self.blocks.rows {
                    let next = self.behind[self.cell(index + 1, from)];
                    if next < cost {
                        cost = cost.min(next + self.jump((index, from), (index + 1, from)));
                    }
                }
                for to in from + 1..self.shifts.len() {
                    let next = index + 1 + self.damaged(from, to);
                    if next >= self.blocks.rows {
                        continue;
                    }
                    let switched = self.behind[self.cell(next, to)] + SWITCH;
                    if switched < cost || switched + self.before[cell] <= best + MARGIN {
                        let switched = switched + self.jump((index, from), (next, to));
                        cost = cost.min(switched);
                        if switched + self.before[cell] <= best + MARGIN {
                            self.mark_switch(index + 1..next);
                        }
                    }
                }
                self.behind[cell] = cost.min(IMPOSSIBLE);
            }
        }
        for to in 1..self.shifts.len() {
            let rows = self.damaged(0, to);
            if rows < self.blocks.rows && SWITCH + self.behind[self.cell(rows, to)] <= best + MARGIN {
                self.mark_switch(0..rows);
            }
        }
    }

    /// Marks rows at which a possible path changes its shift. All ranges are marked in constant time,
    /// because they may be long and overlap.
    fn mark_switch(&mut self, rows: Range<usize>) {
        self.switch_edges[rows.start] += 1;
        self.switch_edges[rows.end] -= 1;
    }

    /// Returns the rows on whose bytes all possible paths agree.
    fn agreed(&self, best: u32) -> Vec<IntactRows> {
        let all = 0..self.shifts.len();
        let mut found: Vec<(IntactRows, usize)> = Vec::new();
        // Offset at which the last intact row ends, and the number of possible changes of the shift
        // at a row.
        let (mut end, mut switches) = (0, 0);
        for index in 0..self.blocks.rows {
            switches += self.switch_edges[index];
            let cost = |shift: &usize| {
                let cell = self.cell(index, *shift);
                self.before[cell] + self.behind[cell]
            };
            let Some(shift) = all.clone().min_by_key(cost) else { continue };
            let Some((row, at)) = self.row(index, shift).zip(self.offset(index, shift)) else { continue };
            let is_equal = |shift: usize| self.row(index, shift) == Some(row);
            let is_possible = |shift: &usize| switches > 0 || cost(shift) <= best + MARGIN;
            if at < end || !all.clone().filter(is_possible).all(is_equal) {
                continue;
            }
            end = at + row.len();
            match found.last_mut() {
                Some((last, of)) if *of == shift && last.first + last.rows == index as u64 => last.rows += 1,
                _ => found.push((IntactRows { at: at as u64, first: index as u64, rows: 1 }, shift)),
            }
        }
        found.iter().filter_map(|(rows, shift)| self.smooth(rows, *shift)).collect()
    }

    /// Returns those rows of a shift whose values change smoothly, as far as they follow the start or
    /// the end of the blocks. Behind a place where values change too much, rows may have another
    /// shift, because more bytes are missing and others were added.
    fn smooth(&self, rows: &IntactRows, shift: usize) -> Option<IntactRows> {
        let index = |row: u64| usize::try_from(row).unwrap_or(usize::MAX);
        let end = rows.first + rows.rows;
        let is_smooth = |first: &u64| {
            let next = end.min(first + CHECKED_ROWS);
            let jumps = (first + 1..next).map(|row| self.jump((index(row - 1), shift), (index(row), shift)));
            jumps.sum::<u32>() <= 2 * MAX_JUMP
        };
        let mut groups = (rows.first..end).step_by(index(CHECKED_ROWS));
        let (from, to) = if shift == 0 {
            (rows.first, groups.find(|first| !is_smooth(first)).unwrap_or(end))
        } else if shift + 1 == self.shifts.len() {
            let last = groups.filter(|first| !is_smooth(first)).last();
            (last.map_or(rows.first, |first| end.min(first + CHECKED_ROWS)), end)
        } else if groups.all(|first| is_smooth(&first)) {
            (rows.first, end)
        } else {
            return None;
        };
        let at = self.offset(index(from), shift)? as u64;
        (from < to).then(|| IntactRows { at, first: from, rows: to - from })
    }
}
