//! Validation of a file by its header and size: layout, number of rows and lost bytes.
//!
//! All functions are pure. The reader, the stream and recovery share them.

use std::ops::Range;

use rovelog_core::internal::scan::NeedMore;
use rovelog_core::internal::text::count;
use rovelog_core::{Rule, field_range};
use zerocopy::FromBytes;

use crate::clock;
use crate::diagnostics as rules;
use crate::error::RldError;
use crate::header;
use crate::layout::{BlockRun, Layout, times_at};
use crate::schema::{Channel, Notes, channels, is_ambient};
use crate::wire::{BLOCK_TIMES_LEN, Header, LEAD_IN_LEN, LeadIn, MAGIC, MAGIC_V1, Version};

/// Maximum number of bytes that a stream buffers to find out whether each row starts with an extra
/// word (rule D28). A block of one second at 64 kSPS with all channels has only 2.3 MB.
const LOOK_AHEAD: u64 = 4 << 20;

/// The validated header of a file.
#[derive(Clone, Debug)]
pub(crate) struct Validated {
    pub(crate) header: Header,
    pub(crate) version: &'static Version,
    pub(crate) channels: Vec<Channel>,
    pub(crate) layout: Result<Layout, String>,
    /// Number of rows according to the header. `None` if its counts contradict each other.
    pub(crate) declared: Option<u64>,
    /// Number of rows to read after those that the header counts. Only recovery reads such rows.
    pub(crate) extra_rows: u64,
    /// True if a known writer could have written the channel table.
    pub(crate) plausible: bool,
    pub(crate) notes: Notes,
}

impl Validated {
    /// Returns whether the file is an ambient file, which contains sensor values.
    pub(crate) fn is_ambient(&self) -> bool {
        is_ambient(&self.header.lead_in, &self.channels)
    }
}

/// Number of rows in a file, and diagnostics about bytes that do not belong to any row.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extent {
    /// Number of rows that are read.
    pub(crate) rows: u64,
    /// Number of rows that the header counts, but for which the file is too short.
    pub(crate) missing: u64,
    /// Number of rows in the file that the header does not count. They are not read.
    pub(crate) left_out: u64,
    pub(crate) notes: Notes,
}

/// Validates the file that starts with `head`. `len` is the file size, or `None` if unknown.
pub(crate) fn validate(head: &[u8], len: Option<u64>) -> Result<Result<Validated, NeedMore>, RldError> {
    let Ok((lead_in, _)) = LeadIn::ref_from_prefix(head) else {
        let known = head.len().min(MAGIC.len());
        return match len {
            None => Ok(Err(NeedMore(LEAD_IN_LEN))),
            Some(_) if !MAGIC.starts_with(&head[..known]) && !MAGIC_V1.starts_with(&head[..known]) => {
                Err(RldError::NotRld)
            }
            Some(len) => Err(RldError::HeaderCut { len, header: LEAD_IN_LEN }),
        };
    };
    let version = match header::version(head, lead_in, len)? {
        Ok(version) => version,
        Err(need) => return Ok(Err(need)),
    };
    let header = match header::read(head, len, lead_in, version)? {
        Ok(header) => header,
        Err(need) => return Ok(Err(need)),
    };
    let mut notes = header.notes;
    let (plausible, header) = (header.plausible, header.header);
    let end = header.size();
    let channels = channels(&header, version, LEAD_IN_LEN + header.comment.len() as u64, &mut notes);
    let declared = declared(lead_in, &mut notes);
    let extra = may_have_extra_word(lead_in, version)
        && match has_extra_word(&header, head, len, declared) {
            Ok(extra) => extra,
            Err(need) => return Ok(Err(need)),
        };
    if extra {
        let text = "each row starts with an extra 32-bit word, which is ignored";
        notes.push((&rules::EXTRA_WORD, end..end, text.to_owned()));
    }
    let layout = Layout::of(&header, end, extra);
    if lead_in.sample_rate.get() == 0 && declared != Some(0) {
        let text = "the sample rate in the header is 0, so rows have no times";
        notes.push((&rules::RATE_ZERO, field_range!(0, LeadIn, sample_rate), text.to_owned()));
    }
    let rate = lead_in.sample_rate.get();
    if (1..1000).contains(&rate) && !is_ambient(lead_in, &channels) {
        let text = format!(
            "the log has {} per second, which are means or single samples; the file does not state which",
            count(rate, "row")
        );
        notes.push((&rules::AVERAGED, field_range!(0, LeadIn, sample_rate), text));
    }
    Ok(Ok(Validated { header, version, channels, layout, declared, extra_rows: 0, plausible, notes }))
}

/// Returns the number of rows by the lead-in, or `None` if its counts contradict each other.
fn declared(lead_in: &LeadIn, notes: &mut Notes) -> Option<u64> {
    let (rows, blocks) = (lead_in.sample_count.get(), u64::from(lead_in.data_block_count.get()));
    let size = u64::from(lead_in.data_block_size.get());
    let agree = if size == 0 { rows == 0 && blocks == 0 } else { rows.div_ceil(size) == blocks };
    if !agree {
        let (rows, blocks) = (count(rows, "row"), count(blocks, "block"));
        let text = format!(
            "the header contradicts itself, because it states {rows} in {blocks} of {size} rows; rows are \
             read up to the end of the file"
        );
        notes.push((&rules::COUNTS_DISAGREE, field_range!(0, LeadIn, data_block_size..=sample_count), text));
    }
    agree.then_some(rows)
}

/// Returns whether a release from 2.0.0-beta1 to 2.0.1 may have written the file. These releases
/// wrote a word of bits in each row even if there were no binary channels.
pub(crate) fn may_have_extra_word(lead_in: &LeadIn, version: &Version) -> bool {
    version.number == 4 && lead_in.binary_count.get() == 0
}

/// Number of pairs of blocks to compare if the times of the first pair contradict the header.
const PAIRS: u64 = 8;

/// Returns whether rows start with an extra word (rule D28 of docs/formats/rld.md). An extra word
/// changes the offsets of blocks, so the times of the first blocks show whether rows have one. If
/// there is only one block, the file size decides.
fn has_extra_word(
    header: &Header,
    head: &[u8],
    len: Option<u64>,
    declared: Option<u64>,
) -> Result<bool, NeedMore> {
    let end = header.size();
    let layouts = [false, true].map(|extra| Layout::of(header, end, extra).ok());
    let [Some(plain), Some(extra)] = layouts else { return Ok(false) };
    if declared == Some(0) {
        return Ok(false);
    }
    let until = end + extra.block + BLOCK_TIMES_LEN;
    if (head.len() as u64) < until.min(LOOK_AHEAD) && len.is_none() {
        return Err(NeedMore(until.min(LOOK_AHEAD)));
    }
    if (head.len() as u64) < until {
        // The file has only one block, so only the file size can decide.
        let (Some(len), Some(rows)) = (len, declared) else { return Ok(false) };
        let body = u128::from(len.saturating_sub(end));
        return Ok(plain.body(rows) != body && extra.body(rows) == body);
    }
    let pair = |layout: &Layout, first: u64| {
        let within = layout.block_at(first + 1) + BLOCK_TIMES_LEN <= LOOK_AHEAD;
        let [first, second] = [first, first + 1].map(|block| layout.block_times(head, block));
        first.zip(second).filter(|_| within)
    };
    // An extra word contradicts the header, so the times on both clocks must confirm it.
    let follows = |at| pair(&plain, at).is_some_and(|(first, second)| clock::follows(first, second));
    let extra_follows =
        |at| pair(&extra, at).is_some_and(|(first, second)| clock::follows_on_both_clocks(first, second));
    if follows(0) || !extra_follows(0) {
        return Ok(false);
    }
    // A single pair of block times may match by chance. So there are two further checks. First, the
    // size of a short file must not be the size without extra words. Second, more of the next pairs
    // must match with extra words than without.
    let until = (extra.block_at(PAIRS) + BLOCK_TIMES_LEN).min(LOOK_AHEAD);
    if (head.len() as u64) < until && len.is_none() {
        return Err(NeedMore(until));
    }
    let short = len.filter(|len| *len < until).map(|len| u128::from(len - end));
    if declared.is_some_and(|rows| short == Some(plain.body(rows)) && short != Some(extra.body(rows))) {
        return Ok(false);
    }
    let pairs = declared.map_or(PAIRS, |rows| extra.blocks(rows).saturating_sub(1).clamp(1, PAIRS));
    let number = |follows: &dyn Fn(u64) -> bool| (0..pairs).filter(|at| follows(*at)).count();
    Ok(number(&extra_follows) > number(&follows))
}

/// Page size of the file system in bytes. A truncated file can end at a page boundary in a block.
const PAGE: u64 = 4096;

/// Returns whether the size of a file is within one block of 2^31 bytes. The logger's software up
/// to version 1.1.4 cannot write larger files, so the recording was cut off.
fn stops_at_2_gib(version: &Version, len: u64, block: u64) -> bool {
    version.number <= 3 && len.abs_diff(1 << 31) <= block.max(PAGE)
}

impl Validated {
    /// Returns this part with the layout of the log's first part. In a later part, the bytes that
    /// show whether rows have an extra word (rule D28 of docs/formats/rld.md) can be damaged.
    pub(crate) fn with_rows_of(mut self, first: &Self) -> Self {
        if self.layout.as_ref().map(|own| own.words) != first.layout.as_ref().map(|layout| layout.words) {
            self.notes.retain(|(rule, ..)| *rule != &rules::EXTRA_WORD);
        }
        let header = self.header.size();
        self.layout = first.layout.clone().map(|layout| Layout { header, ..layout });
        self
    }

    /// Returns the layout if all blocks that the header counts are full. Only then can more blocks
    /// follow.
    pub(crate) fn full_block_layout(&self) -> Option<&Layout> {
        let layout = self.layout.as_ref().ok()?;
        let full = layout.row > 0 && self.declared?.checked_rem(layout.block_rows) == Some(0);
        full.then_some(layout)
    }

    /// Returns the number of rows to read. `None` means that all complete rows are read.
    pub(crate) fn rows_to_read(&self) -> Option<u64> {
        self.declared.map(|rows| rows.saturating_add(self.extra_rows))
    }

    /// Returns the number of rows in `bytes` that the header does not count. The logger writes each
    /// block before it updates the counts, so the last blocks may not be counted. The times of
    /// these blocks must continue the times of the blocks before. `last` is the last run of blocks.
    pub(crate) fn count_uncounted_rows(&self, bytes: &[u8], last: &BlockRun) -> u64 {
        let (Some(layout), Some(declared)) = (self.full_block_layout(), self.declared) else { return 0 };
        let counted = declared.checked_sub(last.before).map(|rows| layout.body(rows));
        let Some(from) = counted.and_then(|body| u64::try_from(u128::from(last.at) + body).ok()) else {
            return 0;
        };
        let physical = layout.rows_in((bytes.len() as u64).saturating_sub(from));
        let mut before = (declared > last.before).then(|| times_at(bytes, from - layout.block)).flatten();
        let mut rows = 0;
        // A block is not part of the log if its times do not continue those of the block before.
        while rows < physical {
            let here = times_at(bytes, from + rows / layout.block_rows * layout.block);
            let follows = here.is_some_and(|here| match before {
                Some(before) => clock::follows(before, here),
                None => clock::is_plausible(here),
            });
            if !follows {
                break;
            }
            rows = physical.min(rows + layout.block_rows);
            before = here;
        }
        rows
    }

    /// Returns the row counts of a file of `len` bytes. `last` is the last run of blocks.
    /// `uncounted` is the known number of rows that the header does not count.
    pub(crate) fn extent(&self, len: u64, last: &BlockRun, uncounted: u64) -> Extent {
        let header_end = self.header.size();
        let mut extent = Extent::default();
        let mut note =
            |rule: &'static Rule, range: Range<u64>, text: String| extent.notes.push((rule, range, text));
        let layout = match &self.layout {
            Ok(layout) if layout.block_rows > 0 && layout.row > 0 => layout,
            _ if header_end >= len => return extent,
            Ok(_) => {
                let text = "the header states no blocks, so the bytes after it are not read";
                note(&rules::TRAILING_BYTES, header_end..len, text.to_owned());
                return extent;
            }
            Err(why) => {
                note(&rules::NO_LAYOUT, header_end..len, why.clone());
                return extent;
            }
        };
        let run_start = last.at;
        let run_len = len.saturating_sub(run_start);
        let rows_to_read = self.rows_to_read();
        let physical = last.before + layout.rows_in(run_len);
        let rows = rows_to_read.unwrap_or(physical).min(physical);
        // The size is at most `run_len`, because the file has at least `rows` rows.
        let end_of = |rows: u64| {
            let size = layout.body(rows.saturating_sub(last.before));
            run_start + u64::try_from(size).unwrap_or(run_len).min(run_len)
        };
        let mut rest = end_of(rows)..len;
        let mut left_out = 0;
        if uncounted > 0 {
            let kept_end = end_of(rows + uncounted);
            let text = format!(
                "the reader skipped {} that the header does not count; `rovelog recover` keeps them",
                count(uncounted, "row")
            );
            note(&rules::HEADER_BEHIND, rest.start..kept_end, text);
            left_out = uncounted;
            rest.start = kept_end;
        }
        let missing = rows_to_read.map_or(0, |rows| rows.saturating_sub(physical));
        let read = rows.saturating_sub(last.left_out);
        let missing_text = rows_to_read.filter(|_| missing > 0).map(|rows_to_read| {
            let present = physical.saturating_sub(last.left_out);
            format!("the header counts {}, but the file has {present}", count(rows_to_read, "row"))
        });
        if rest.start < len {
            let bytes = count(len - rest.start, "byte");
            if missing > 0 || rows_to_read.is_none() {
                let why = missing_text.map(|text| format!("; {text}")).unwrap_or_default();
                let text =
                    format!("the file ends {bytes} after the last complete row, so row {read} is lost{why}");
                note(&rules::CUT, rest, text);
            } else {
                let text =
                    format!("the file ends with {bytes} of data that is not part of a block and is not read");
                note(&rules::TRAILING_BYTES, rest, text);
            }
        } else if let Some(missing_text) = missing_text {
            note(&rules::ROWS_MISSING, len..len, missing_text);
        }
        if missing > 0 && stops_at_2_gib(self.version, len, layout.block) {
            let text = format!(
                "the file ends at {len} bytes, because the logger cannot write more than 2 GiB; its rows are \
                 read up to there"
            );
            note(&rules::STOPPED_AT_2_GIB, len..len, text);
        }
        (extent.rows, extent.missing, extent.left_out) = (read, missing, left_out);
        extent
    }
}

#[cfg(test)]
mod tests;
