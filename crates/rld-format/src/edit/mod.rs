//! Functions that create new logs from existing logs: slices, merged parts, [recovery](recover) and
//! copies with changed values.

mod recover;
mod rewrite;

use std::io::Write;
use std::ops::Range;

pub(crate) use recover::recover;
pub(crate) use rewrite::rewrite;

use rovelog_core::internal::text::count;
use rovelog_core::internal::wire::{U16Le, U32Le};
use rovelog_core::select::Names;
use rovelog_core::{Detail, Merged, ReadOptions, Select, Sliced, Value};
use zerocopy::FromBytes;

use crate::clock::{ClockChange, is_plausible, span};
use crate::error::RldError;
use crate::log_scan::AMBIENT;
use crate::reader::{Part, RldReader, Segment};
use crate::resync::grain;
use crate::wire::{BlockTimes, Header};
use crate::writer::{RldWriter, Written, set_counts};

impl RldReader {
    /// Finds the block that contains `row`. Returns the number of the block's first row, and the
    /// stored block times.
    pub fn block_of(&self, row: u64) -> Option<(u64, BlockTimes)> {
        let layout = &self.table.as_ref()?.layout;
        let segment = self.segment_of(row)?;
        let block = (row - segment.row) / layout.block_rows;
        let times = segment.block_times(layout, &self.parts[segment.part].bytes, block)?;
        Some((segment.row + block * layout.block_rows, *times))
    }

    /// Returns the block times for a new block that starts with `row`. If a block of the log starts
    /// with `row`, these are its stored times. Otherwise, the times are counted at the true rate
    /// from the start of the block that contains `row`.
    fn block_times_at(&self, row: u64) -> Result<BlockTimes, RldError> {
        let (first, times) = self.block_of(row).ok_or_else(|| RldError::refused("no such row"))?;
        if first == row || !is_plausible(&times) {
            return Ok(times);
        }
        self.counted((first, times), row)
    }

    /// Returns the block times of `row`, counted at the true rate from the block times `times` of
    /// row `from`.
    fn counted(&self, (from, times): (u64, BlockTimes), row: u64) -> Result<BlockTimes, RldError> {
        let rate = self.header().lead_in.sample_rate.get();
        let since = span(row.saturating_sub(from), rate) - span(from.saturating_sub(row), rate);
        BlockTimes::new(times.realtime() + since, times.monotonic() + since)
            .ok_or_else(|| RldError::not_writable("block times do not fit into 64 bits"))
    }

    /// Returns the last valid block times before `row`. If there are none, returns the first valid
    /// block times after `row`. The result includes the number of the block's first row.
    fn valid_times_near(&self, row: u64) -> Option<(u64, BlockTimes)> {
        let is_valid = |(_, times): &(u64, &BlockTimes)| is_plausible(times);
        let before = self.block_times().take_while(|(first, _)| *first < row).filter(is_valid).last();
        let nearest = before.or_else(|| self.block_times().find(is_valid));
        nearest.map(|(first, times)| (first, *times))
    }

    /// Returns the header of the log for a new file of `rows` rows. All faults of the header are
    /// corrected.
    pub(crate) fn clean_header(&self, rows: u64) -> Result<Header, RldError> {
        let mut header = self.validated.header.clone();
        let length = u32::try_from(header.comment.len())
            .map_err(|_| RldError::not_writable("the comment is too long"))?;
        header.lead_in.comment_length = U32Le::new(length);
        // If a header is larger than 64 KiB, its size is stored modulo 2^16, as in files of the
        // logger.
        let low = header.size() % (1 << 16);
        header.lead_in.header_length = U16Le::new(u16::try_from(low).unwrap_or_default());
        set_counts(&mut header, rows)?;
        Ok(header)
    }

    /// Writes the rows in `rows` as one file. If a new block has the same rows as a block of the
    /// log, it keeps the stored block times, provided that they are valid. The times of other
    /// blocks are counted from stored block times.
    ///
    /// # Errors
    /// Returns an error if a gap would be inside a block, or if writing fails.
    pub fn write_rows(&self, rows: Range<u64>, out: impl Write) -> Result<Written, RldError> {
        let split = self.split_for_one_file(rows);
        if let Some(short) = split.short.first() {
            let (from, gap) = (short.start, short.end);
            let why = format!(
                "rows {from} to {gap} would become a short block before a gap, and only the last block of \
                 a file can be short"
            );
            return Err(RldError::not_writable(why));
        }
        self.write_blocks(&split.blocks, &[], out)
    }

    /// Returns the number of rows in the blocks of a new file. It is that of the log, unless some
    /// blocks of the log have lost rows. Only the last block of a file can be short, so the new file
    /// then has smaller blocks.
    fn new_block_rows(&self) -> u64 {
        let size = self.table.as_ref().map_or(1, |table| table.layout.block_rows.max(1));
        let is_short = |pair: &[Segment]| pair[0].part == pair[1].part && !pair[0].rows.is_multiple_of(size);
        if !self.segments.windows(2).any(is_short) {
            return size;
        }
        let period = span(size, self.header().lead_in.sample_rate.get());
        i64::try_from(period).map_or(size, |period| grain(size, period))
    }

    /// Splits rows into those that can be written to one file and those that cannot. A gap must not
    /// be inside a block, and only the last block of a file can be short. So the rows of a short
    /// block before a gap cannot be written.
    fn split_for_one_file(&self, rows: Range<u64>) -> FileRows {
        let mut divided = FileRows { blocks: Vec::new(), short: Vec::new() };
        let size = self.new_block_rows();
        let mut from = rows.start;
        for gap in self.gaps_inside(rows.start + 1..rows.end) {
            let short = (gap - from) % size;
            if short > 0 {
                divided.blocks.push(from..gap - short);
                divided.short.push(gap - short..gap);
                from = gap;
            }
        }
        divided.blocks.push(from..rows.end);
        divided.blocks.retain(|rows| !rows.is_empty());
        divided
    }

    /// Writes ranges of rows to one file. Each range starts with a new block. `shifts` is sorted by
    /// row.
    fn write_blocks(
        &self,
        ranges: &[Range<u64>],
        shifts: &[Shift],
        out: impl Write,
    ) -> Result<Written, RldError> {
        let table = self.table()?;
        let mut header = self.clean_header(0)?;
        header.lead_in.data_block_size = U32Le::new(u32::try_from(self.new_block_rows()).unwrap_or(u32::MAX));
        set_counts(&mut header, ranges.iter().map(|rows| rows.end - rows.start).sum())?;
        let mut writer = RldWriter::new(out, header)?;
        // Number of bytes to drop from each row. They are the extra word that a bug of the logger
        // wrote (rule D28 of docs/formats/rld.md).
        let extra_len = table.layout.row - writer.layout().row;
        let size = writer.layout().block_rows;
        let step = usize::try_from(size).unwrap_or(usize::MAX).max(1);
        let blocks = |rows: &Range<u64>| {
            let end = rows.end;
            rows.clone().step_by(step).map(move |from| from..end.min(from.saturating_add(size)))
        };
        let mut kept = Vec::new();
        // The last block with valid times.
        let mut valid_block = None;
        for Range { start: from, end: to } in ranges.iter().flat_map(blocks) {
            let mut times = self.block_times_at(from)?;
            if !is_plausible(&times) {
                valid_block = valid_block.or_else(|| self.valid_times_near(from));
                // Invalid block times must not be copied, because a reader would take them for
                // missing bytes.
                if let Some(block) = valid_block {
                    times = self.counted(block, from)?;
                }
            }
            if is_plausible(&times) {
                valid_block = Some((from, times));
            }
            let shift = shifts.iter().rfind(|shift| shift.row <= from).map_or(0, |shift| shift.nanos);
            if shift != 0 {
                times = BlockTimes::new(times.realtime(), times.monotonic() + shift)
                    .ok_or_else(|| RldError::not_writable("block times do not fit into 64 bits"))?;
            }
            writer.start_block(&times, to - from)?;
            for (_, bytes) in self.runs(from..to, 4096) {
                if extra_len == 0 {
                    writer.rows(bytes)?;
                    continue;
                }
                kept.clear();
                let rows = bytes.chunks_exact(table.layout.row);
                rows.for_each(|row| kept.extend_from_slice(&row[extra_len..]));
                writer.rows(&kept)?;
            }
        }
        let (_, written) = writer.finish()?;
        Ok(written)
    }

    /// Returns the number of rows whose UTC time is wrong in a new file. If the clock was set at a
    /// row inside a block of the new file, the block's later rows get UTC from before this step.
    fn rows_before_step(&self, rows: &Range<u64>) -> u64 {
        let size = self.new_block_rows();
        let steps = self.times.blocks.list.iter().filter(|block| block.change.step() != 0);
        let inside = steps.filter(|block| rows.start < block.row && block.row < rows.end);
        let early = |row: u64| row.next_multiple_of(size).min(rows.end - rows.start) - row;
        inside.map(|block| early(block.row - rows.start)).sum()
    }

    /// Returns the number of the first row in a slice of the rows `rows`. It may be smaller than
    /// `rows.start`.
    ///
    /// All blocks of an RLD file except the last have the same number of rows, and a gap is only
    /// possible between two blocks. So a slice with a gap must start at a block. If `rows` has a gap
    /// and starts within a block, the slice contains the whole block.
    pub fn slice_start(&self, rows: &Range<u64>) -> u64 {
        let has_gap = self.gaps_inside(rows.start + 1..rows.end).next().is_some();
        let block = self.block_of(rows.start).filter(|_| has_gap);
        block.map_or(rows.start, |(first, _)| first)
    }

    /// Returns the first row after each gap within `rows`.
    fn gaps_inside(&self, rows: Range<u64>) -> impl Iterator<Item = u64> {
        let from = self.times.blocks.list.partition_point(|block| block.row < rows.start);
        let blocks = self.times.blocks.list[from..].iter().take_while(move |block| block.row < rows.end);
        let is_gap = |change| matches!(change, ClockChange::Gap { .. } | ClockChange::Backwards);
        blocks.filter(move |block| is_gap(block.change)).map(|block| block.row)
    }
}

/// The rows for a new file, split into those that can be written to one file and those that cannot.
struct FileRows {
    /// Ranges of rows that can be written to one file. Only the last block of the last range may be
    /// short.
    blocks: Vec<Range<u64>>,
    /// Rows of short blocks before a gap, which cannot be written.
    short: Vec<Range<u64>>,
}

impl FileRows {
    /// Returns the number of rows that cannot be written.
    fn short_rows(&self) -> u64 {
        self.short.iter().map(|rows| rows.end - rows.start).sum()
    }

    /// Returns a description of the rows that cannot be written. Returns `None` if all rows can be
    /// written.
    fn left_out(&self) -> Option<String> {
        let rows = self.short_rows();
        (rows > 0).then(|| {
            format!(
                "{} of a short block before a gap, because only the last block of a file can be short",
                count(rows, "row")
            )
        })
    }
}

/// Returns a description of the rows of the ambient file, which cannot be written to the same file
/// as the rows of the log. Returns `None` if the log has no ambient file.
fn ambient_left_out(log: &RldReader) -> Option<String> {
    let rows = |log: &RldReader| {
        format!("{} of the ambient file, because it is a separate log", count(log.rows(), "row"))
    };
    log.ambient().map(rows)
}

/// Writes the selected rows of `log` as a new log.
pub(crate) fn slice(log: &RldReader, select: &Select, out: &mut dyn Write) -> Result<Sliced, RldError> {
    use rovelog_core::LogReader as _;
    let wanted = |i: usize| log.topics().get(i).is_some_and(|topic| select.keeps_topic(topic));
    if !wanted(0)
        && wanted(1)
        && let Some(ambient) = log.ambient()
    {
        let mut of_ambient = select.clone();
        of_ambient.topics = Some(Names::from_iter([AMBIENT]));
        return slice(ambient, &of_ambient, out);
    }
    let mut details = Vec::new();
    let mut ranges = if wanted(0) { log.rows_selected(select) } else { Vec::new() };
    let kept = select.start.filter(|_| select.keeps_last_before(log.rows_topic()));
    if let Some(row) = kept.and_then(|start| log.last_before(start)) {
        match ranges.first_mut() {
            Some(rows) if rows.start == row + 1 => rows.start = row,
            _ => ranges.insert(0, row..row + 1),
        }
    }
    if ranges.len() > 1 {
        let why = format!(
            "the time range contains {} separate ranges of rows, because the clock was set",
            ranges.len()
        );
        return Err(RldError::not_writable(why));
    }
    let mut rows = 0..0;
    if let Some(selected) = ranges.pop() {
        rows = log.slice_start(&selected)..selected.end;
        let more = selected.start - rows.start;
        if more > 0 {
            let text = format!(
                "the slice has {} more at its start, because blocks are kept whole if a gap follows",
                count(more, "row")
            );
            details.push(Detail::new("rows_more", text, Value::UInt(more, 64)));
        }
    }
    let early = log.rows_before_step(&rows);
    if early > 0 {
        let text = format!(
            "{} recorded after the clock was set have UTC times from before, because a block has only one \
             time",
            count(early, "row")
        );
        details.push(Detail::new("rows_before_step", text, Value::UInt(early, 64)));
    }
    if wanted(0) && wanted(1) {
        let text = "the ambient file is not in the slice; it is a separate log, so slice it by its own name";
        details.push(Detail::new("ambient", text, Value::Bool(true)));
    }
    let records = rows.end - rows.start;
    let bytes = if records == 0 {
        let header = log.clean_header(0)?;
        out.write_all(&header.to_bytes())?;
        header.size()
    } else {
        log.write_rows(rows, &mut *out)?.bytes
    };
    out.flush()?;
    Ok(Sliced { records, others: 0, topics: 1, bytes, details })
}

/// A number of nanoseconds that is added to the monotonic times of a row and of all later rows.
struct Shift {
    /// Number of the first row whose time is changed.
    row: u64,
    nanos: i128,
}

/// Returns the shifts after which the monotonic clock runs on through all recordings in `log`, as
/// the UTC clock does. The monotonic clock of a recording may have started again at 0, because the
/// logger was started again.
///
/// For example, a recording ends at 12:00:00 UTC and 500 s on the monotonic clock, and the next one
/// starts at 13:00:00 UTC and 20 s. Its shift is 4080 s, so that it starts at 4100 s.
fn monotonic_shifts(log: &RldReader) -> Result<Vec<Shift>, RldError> {
    let (mut shifts, mut nanos) = (Vec::new(), 0);
    let parts: Vec<_> = log.parts.iter().filter(|part| !part.rows.is_empty()).collect();
    for pair in parts.windows(2) {
        let row = pair[1].rows.start;
        if started(pair[0]) == started(pair[1]) {
            continue;
        }
        let (Some((from, last)), Some((_, first))) = (log.block_of(row - 1), log.block_of(row)) else {
            continue;
        };
        let elapsed = first.realtime() - last.realtime();
        if elapsed < span(row - from, log.header().lead_in.sample_rate.get()) {
            return Err(RldError::refused("the recordings overlap in time, so they cannot be one log"));
        }
        nanos += last.monotonic() + elapsed - first.monotonic();
        shifts.push(Shift { row, nanos });
    }
    Ok(shifts)
}

/// Returns the start time in the header of a part. It is the same in all parts of a recording.
fn started(part: &Part) -> i128 {
    let lead_in = &part.header.lead_in;
    i128::from(lead_in.start_sec.get()) * 1_000_000_000 + i128::from(lead_in.start_nsec.get())
}

/// Joins the parts of a split recording into one file, or recordings that the same logger made with
/// the same channels. The parts can be given in any order. Between two recordings there is a gap.
pub(crate) fn merge(logs: &[&RldReader], out: &mut dyn Write) -> Result<Merged, RldError> {
    let mut parts: Vec<_> = logs.iter().flat_map(|log| &log.parts).collect();
    // The monotonic clock sorts the parts of one recording, during which the UTC clock can be set.
    // It starts again with each start of the logger, so UTC sorts several recordings.
    let sessions = parts.windows(2).any(|pair| started(pair[0]) != started(pair[1]));
    let first = |part: &&Part| {
        let at = usize::try_from(part.header.size()).unwrap_or(usize::MAX);
        let block_times = part.bytes.get(at..).and_then(|bytes| BlockTimes::ref_from_prefix(bytes).ok());
        block_times.map(|(times, _)| if sessions { times.realtime() } else { times.monotonic() })
    };
    parts.sort_by_key(first);
    // The list can contain the same part twice: once named by the user, and once found next to the
    // first part.
    parts.dedup_by(|a, b| a.bytes == b.bytes);
    let other_comments = parts.iter().filter(|part| part.header.comment != parts[0].header.comment).count();
    let other_comments = (other_comments > 0).then(|| {
        let comments = count(other_comments, "comment");
        format!("{comments} of later recordings, because a file has one comment")
    });
    let bytes = parts.into_iter().map(|part| part.bytes.clone()).collect();
    let joined = RldReader::join_files(bytes, &ReadOptions::default(), sessions)?;
    let shifts = monotonic_shifts(&joined)?;
    let rows = joined.split_for_one_file(0..joined.rows());
    let written = joined.write_blocks(&rows.blocks, &shifts, &mut *out)?;
    out.flush()?;
    let gaps = joined.gaps_inside(1..joined.rows()).count() as u64;
    let text = if gaps == 0 { "none".to_owned() } else { gaps.to_string() };
    let left_out =
        logs.iter().filter_map(|log| ambient_left_out(log)).chain(rows.left_out()).chain(other_comments);
    let left_out = left_out.collect();
    let details = vec![Detail::new("gaps", text, Value::UInt(gaps, 64))];
    Ok(Merged { records: written.rows, topics: 1, bytes: written.bytes, left_out, details })
}
