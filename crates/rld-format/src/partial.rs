//! Logs of which parts are read: header and some block times tell where a row is and when.

use std::ops::Range;

use rovelog_core::partial::{END, Ranges};
use rovelog_core::{Result, Select};
use zerocopy::FromBytes as _;

use crate::clock::Noticed;
use crate::header::HEADER_MAX;
use crate::layout::Layout;
use crate::reader::RldReader;
use crate::validate::{may_have_extra_word, validate};
use crate::wire::{BLOCK_TIMES_LEN, LeadIn};

/// Number of blocks, spread over the log, whose times place the rows of a part of it: one for each
/// [`SPACING`] bytes, within these bounds.
const SAMPLES: (u64, u64) = (2, 128);

/// Bytes from one of these blocks to the next: what is closer is fetched with what lies between.
const SPACING: u64 = 1 << 20;

/// Blocks after those that the header counts, whose times are fetched: the logger counts a block
/// after writing it.
const BEHIND: u64 = 4;

/// Fetches the header, however long it is, the times of the last blocks, and those of the second
/// where they tell the layout of rows.
pub(crate) fn outline(file: &dyn Ranges) -> Result<()> {
    let size = file.size();
    let mut head = file.read(0..END.min(size))?;
    let stated = LeadIn::ref_from_prefix(&head).map_or(0, |(lead_in, _)| lead_in.header_size());
    if (END..=HEADER_MAX).contains(&stated) {
        head = file.read(0..stated.min(size))?;
    }
    // What is wrong with a header is said where the log is opened.
    let Ok(Ok(validated)) = validate(&head, Some(size)) else { return Ok(()) };
    let Ok(layout) = &validated.layout else { return Ok(()) };
    let physical = layout.rows_in(size.saturating_sub(layout.header));
    let counted = validated.declared.unwrap_or(physical).min(physical);
    let (last, all) = (layout.blocks(counted).saturating_sub(1), layout.blocks(physical));
    let behind = last..all.min(last + BEHIND);
    let second = may_have_extra_word(&validated.header.lead_in, validated.version).then_some(1);
    let first = (block_times(layout, 0).end > head.len() as u64).then_some(0);
    let blocks = first.into_iter().chain(second).chain(behind).filter(|block| *block < all);
    file.fetch(&blocks.map(|block| block_times(layout, block)).collect::<Vec<_>>())
}

/// Returns where the times of a block are.
fn block_times(layout: &Layout, block: u64) -> Range<u64> {
    let at = layout.block_at(block);
    at..at + BLOCK_TIMES_LEN
}

impl RldReader {
    /// Returns what is to be fetched next to read the selected rows: times of blocks until all rows
    /// have theirs, then the rows.
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
        // No block is left out in a log of which parts are read: rows are where its header says.
        let ranges = rows.into_iter().map(|rows| rows.start..rows.end.min(part.rows));
        let bytes = ranges.filter(|rows| rows.start < rows.end).map(|rows| {
            let block = layout.block_at(rows.start / layout.block_rows);
            block..layout.row_at(rows.end - 1) + layout.row as u64
        });
        self.unread.missing(bytes)
    }

    /// Returns the block times without which the times of rows are not known: of blocks spread over
    /// the log, and between two of these where a clock did not go on as the rows did.
    fn times_needed(&self, layout: &Layout) -> Vec<Range<u64>> {
        let Some(last) = layout.blocks(self.rows).checked_sub(1) else { return Vec::new() };
        let samples = (self.info.size / SPACING).clamp(SAMPLES.0, SAMPLES.1).min(last);
        let spread = (0..=samples).map(|i| block_times(layout, i * last / samples.max(1)));
        let spread = self.unread.missing(spread);
        if !spread.is_empty() {
            return spread;
        }
        let known = self.blocks.list.windows(2).filter(|pair| pair[1].noticed != Noticed::Steady);
        let between = known.filter_map(|pair| {
            let (before, behind) = (pair[0].row / layout.block_rows, pair[1].row / layout.block_rows);
            (behind - before > 1).then(|| block_times(layout, before.midpoint(behind)))
        });
        self.unread.missing(between)
    }
}
