//! Reading of logs of which only some byte ranges are fetched, for example from a server. The
//! header and the times of some blocks are enough to locate rows and to compute their times.

use std::ops::Range;

use rovelog_core::internal::partial::{END, Ranges, Unread};
use rovelog_core::{Result, Select};
use zerocopy::FromBytes as _;

use crate::clock::ClockChange;
use crate::header::HEADER_MAX;
use crate::layout::Layout;
use crate::reader::RldReader;
use crate::row::Table;
use crate::validate::{may_have_extra_word, validate};
use crate::wire::{BLOCK_TIMES_LEN, LeadIn};

/// Minimum and maximum number of blocks whose times are fetched at first, before any rows are
/// fetched. These blocks are spread evenly over the log, one for each [`SPACING`] bytes.
const SAMPLE_BLOCKS: (u64, u64) = (2, 128);

/// Distance in bytes between the blocks whose times are fetched. Ranges that are closer together
/// than this are fetched as one range, so a smaller distance would save nothing.
const SPACING: u64 = 1 << 20;

/// Maximum number of blocks, starting with the last block that the header counts, whose times are
/// fetched to open a log. The header may count too few blocks, because the logger writes each block
/// before it updates the counts.
const UNCOUNTED_BLOCKS: u64 = 4;

/// Fetches the ranges that are needed to open a log: the header and the times of the last blocks.
/// If rows may start with an extra word that a bug of the logger wrote (rule D28 of
/// docs/formats/rld.md), the times of the second block are fetched, too.
pub(crate) fn outline(file: &dyn Ranges) -> Result<()> {
    let size = file.size();
    let mut head = file.read(0..END.min(size))?;
    let stated = LeadIn::ref_from_prefix(&head).map_or(0, |(lead_in, _)| lead_in.header_size());
    if (END..=HEADER_MAX).contains(&stated) {
        head = file.read(0..stated.min(size))?;
    }
    // Errors in the header are reported when the log is opened.
    let Ok(Ok(validated)) = validate(&head, Some(size)) else { return Ok(()) };
    let Ok(layout) = &validated.layout else { return Ok(()) };
    let physical = layout.rows_in(size.saturating_sub(layout.header));
    let counted = validated.declared.unwrap_or(physical).min(physical);
    let (last, all) = (layout.blocks(counted).saturating_sub(1), layout.blocks(physical));
    let behind = last..all.min(last + UNCOUNTED_BLOCKS);
    let second = may_have_extra_word(&validated.header.lead_in, validated.version).then_some(1);
    let first = (block_times(layout, 0).end > head.len() as u64).then_some(0);
    let blocks = first.into_iter().chain(second).chain(behind).filter(|block| *block < all);
    file.fetch(&blocks.map(|block| block_times(layout, block)).collect::<Vec<_>>())
}

/// Returns the byte range of a block's times in the file.
fn block_times(layout: &Layout, block: u64) -> Range<u64> {
    let at = layout.block_at(block);
    at..at + BLOCK_TIMES_LEN
}

impl RldReader {
    /// Returns the byte ranges that must be fetched next to read the selected rows. At first, these
    /// are ranges of block times. When the times of all rows are known, these are the ranges of the
    /// selected rows.
    pub(crate) fn still_needed(&self, select: &Select) -> Vec<Range<u64>> {
        let part = self.parts.first().filter(|part| !part.unread.is_empty());
        let (Some(part), Some(Table { layout, .. })) = (part, &self.table) else { return Vec::new() };
        if select.start.zip(select.end).is_some_and(|(start, end)| start >= end) {
            return Vec::new();
        }
        let is_whole = select.start.is_none() && select.end.is_none();
        if !is_whole {
            let times = self.times_needed(layout, &part.unread);
            if !times.is_empty() {
                return times;
            }
        }
        let mut rows = self.rows_selected(select);
        let last = select.start.filter(|_| select.last_before).and_then(|start| self.last_before(start));
        rows.extend(last.map(|row| row..row + 1));
        // If some ranges have not been fetched, opening does not skip blocks of a wrong length. So
        // each row is at the offset that follows from the header.
        let ranges = rows.into_iter().map(|rows| rows.start..rows.end.min(part.rows.end));
        let bytes = ranges.filter(|rows| rows.start < rows.end).flat_map(|rows| {
            let first = block_times(layout, rows.start / layout.block_rows);
            [first, layout.row_at(rows.start)..layout.row_at(rows.end - 1) + layout.row as u64]
        });
        part.unread.missing(bytes)
    }

    /// Returns the byte ranges of block times that must be fetched next to compute the times of
    /// rows. At first, these are the times of blocks spread evenly over the log. If the clocks and
    /// the rows advanced differently between two of these blocks, the block in the middle is
    /// fetched next, so that a gap is found by bisection.
    fn times_needed(&self, layout: &Layout, unread: &Unread) -> Vec<Range<u64>> {
        let Some(last) = layout.blocks(self.rows()).checked_sub(1) else { return Vec::new() };
        let samples = (self.info.size / SPACING).clamp(SAMPLE_BLOCKS.0, SAMPLE_BLOCKS.1).min(last);
        let spread = (0..=samples).map(|i| block_times(layout, i * last / samples.max(1)));
        let spread = unread.missing(spread);
        if !spread.is_empty() {
            return spread;
        }
        let known = self.times.blocks.list.windows(2).filter(|pair| pair[1].change != ClockChange::Steady);
        let between = known.filter_map(|pair| {
            let (before, behind) = (pair[0].row / layout.block_rows, pair[1].row / layout.block_rows);
            (behind - before > 1).then(|| block_times(layout, before.midpoint(behind)))
        });
        unread.missing(between)
    }
}
