//! Logs of which only parts are fetched. The header and the times of some blocks are enough to
//! locate rows and to compute their times.

use std::ops::Range;

use rovelog_core::partial::{END, Ranges};
use rovelog_core::{Result, Select};
use zerocopy::FromBytes as _;

use crate::clock::ClockChange;
use crate::header::HEADER_MAX;
use crate::layout::Layout;
use crate::reader::RldReader;
use crate::validate::{may_have_extra_word, validate};
use crate::wire::{BLOCK_TIMES_LEN, LeadIn};

/// Minimum and maximum number of blocks whose times are fetched before the rows. They are spread
/// over the log, one for each [`SPACING`] bytes.
const SAMPLE_BLOCKS: (u64, u64) = (2, 128);

/// Distance between these blocks in bytes. Ranges closer than this are fetched together with the
/// bytes between them, so a smaller distance would save nothing.
const SPACING: u64 = 1 << 20;

/// Number of blocks after those that the header counts whose times are fetched. The logger updates
/// the counts after it has written a block.
const UNCOUNTED_BLOCKS: u64 = 4;

/// Fetches the parts that opening needs: the header, the times of the last blocks, and the times of
/// the second block if rows may have an extra word.
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

/// Returns the byte range of the times of a block.
fn block_times(layout: &Layout, block: u64) -> Range<u64> {
    let at = layout.block_at(block);
    at..at + BLOCK_TIMES_LEN
}

impl RldReader {
    /// Returns the ranges to fetch next in order to read the selected rows: first block times,
    /// until the times of all rows are known, then the rows.
    pub(crate) fn still_needed(&self, select: &Select) -> Vec<Range<u64>> {
        let Some(table) = self.table.as_ref().filter(|_| !self.unread.is_empty()) else { return Vec::new() };
        let layout = &table.layout;
        let is_whole = select.start.is_none() && select.end.is_none();
        if !is_whole {
            let times = self.times_needed(layout);
            if !times.is_empty() {
                return times;
            }
        }
        let mut rows = self.rows_selected(select);
        let last = select.start.filter(|_| select.last_before).and_then(|start| self.last_before(start));
        rows.extend(last.map(|row| row..row + 1));
        let Some(part) = self.parts.first() else { return Vec::new() };
        // No block is left out while parts of the log are missing, so rows are where the header
        // says.
        let ranges = rows.into_iter().map(|rows| rows.start..rows.end.min(part.rows));
        let bytes = ranges.filter(|rows| rows.start < rows.end).map(|rows| {
            let block = layout.block_at(rows.start / layout.block_rows);
            block..layout.row_at(rows.end - 1) + layout.row as u64
        });
        self.unread.missing(bytes)
    }

    /// Returns the ranges of block times that are needed to compute the times of rows: those of
    /// blocks spread over the log, and then, by bisection, those between two blocks if a clock did
    /// not advance as the rows did.
    fn times_needed(&self, layout: &Layout) -> Vec<Range<u64>> {
        let Some(last) = layout.blocks(self.rows).checked_sub(1) else { return Vec::new() };
        let samples = (self.info.size / SPACING).clamp(SAMPLE_BLOCKS.0, SAMPLE_BLOCKS.1).min(last);
        let spread = (0..=samples).map(|i| block_times(layout, i * last / samples.max(1)));
        let spread = self.unread.missing(spread);
        if !spread.is_empty() {
            return spread;
        }
        let known = self.blocks.list.windows(2).filter(|pair| pair[1].change != ClockChange::Steady);
        let between = known.filter_map(|pair| {
            let (before, behind) = (pair[0].row / layout.block_rows, pair[1].row / layout.block_rows);
            (behind - before > 1).then(|| block_times(layout, before.midpoint(behind)))
        });
        self.unread.missing(between)
    }
}
