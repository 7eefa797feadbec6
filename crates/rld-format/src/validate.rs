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
    let extra = if may_have_extra_word(lead_in, version) {
        match has_extra_word(&header, head, len, declared) {
            Ok(extra) => extra,
            Err(need) => return Ok(Err(need)),
        }
    } else {
        false
    };
    if extra {
        notes.push((&rules::EXTRA_WORD, end..end, "every row starts with an extra word".to_owned()));
    }
    let layout = Layout::of(&header, end, extra);
    if lead_in.sample_rate.get() == 0 && declared != Some(0) {
        notes.push((&rules::RATE_ZERO, field_range!(0, LeadIn, sample_rate), "its rate is 0".to_owned()));
    }
    let rate = lead_in.sample_rate.get();
    if (1..1000).contains(&rate) && !is_ambient(lead_in, &channels) {
        let text = format!("{} per second can be means or single samples", count(rate, "row"));
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
        let text = format!("the header contradicts itself: it states {rows} in {blocks} of {size} rows");
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
    /// Replaces the layout of this part by that of the log's first part. The bytes that show an
    /// extra word (rule D28 of docs/formats/rld.md) can be damaged in a later part.
    pub(crate) fn with_rows_of(mut self, first: &Self) -> Self {
        if self.layout.as_ref().map(|own| own.words) != first.layout.as_ref().map(|layout| layout.words) {
            self.notes.retain(|(rule, ..)| *rule != &rules::EXTRA_WORD);
        }
        let header = self.header.size();
        self.layout = first.layout.clone().map(|layout| Layout { header, ..layout });
        self
    }

    /// Returns the layout if the header counts only full blocks, so that more blocks can follow.
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
        let end = self.header.size();
        let mut extent = Extent::default();
        let mut note =
            |rule: &'static Rule, range: Range<u64>, text: String| extent.notes.push((rule, range, text));
        let layout = match &self.layout {
            Ok(layout) if layout.block_rows > 0 && layout.row > 0 => layout,
            Ok(_) => {
                if end < len {
                    note(&rules::TRAILING_BYTES, end..len, "bytes follow a header without blocks".to_owned());
                }
                return extent;
            }
            Err(why) => {
                if end < len {
                    note(&rules::NO_LAYOUT, end..len, why.clone());
                }
                return extent;
            }
        };
        let end = last.at;
        let body = len.saturating_sub(end);
        let rows_to_read = self.rows_to_read();
        let physical = last.before + layout.rows_in(body);
        let rows = rows_to_read.unwrap_or(physical).min(physical);
        let body_of = |rows: u64| layout.body(rows.saturating_sub(last.before));
        // The size is at most `body`, because the file has at least `rows` rows.
        let used = u64::try_from(body_of(rows)).unwrap_or(body).min(body);
        let mut rest = end + used..len;
        let mut left_out = 0;
        if uncounted > 0 {
            let body = u64::try_from(body_of(rows + uncounted)).unwrap_or(body).min(body);
            let text = format!(
                "left out {} that the header does not count; `rovelog recover` keeps them",
                count(uncounted, "row")
            );
            note(&rules::HEADER_BEHIND, rest.start..end + body, text);
            left_out = uncounted;
            rest.start = end + body;
        }
        let missing = rows_to_read.map_or(0, |rows| rows.saturating_sub(physical));
        let read = rows.saturating_sub(last.left_out);
        let counted = |rows| {
            let physical = physical.saturating_sub(last.left_out);
            format!("the header counts {}, but the file has {physical}", count(rows, "row"))
        };
        let counted = rows_to_read.filter(|_| missing > 0).map(counted);
        if rest.start < len {
            let bytes = count(len - rest.start, "byte");
            if missing > 0 || rows_to_read.is_none() {
                let why = counted.map(|counted| format!("; {counted}")).unwrap_or_default();
                note(&rules::CUT, rest, format!("row {read} is truncated after {bytes}{why}"));
            } else {
                note(&rules::TRAILING_BYTES, rest, format!("the file ends with {bytes} of other data"));
            }
        } else if let Some(counted) = counted {
            note(&rules::ROWS_MISSING, len..len, counted);
        }
        if missing > 0 && stops_at_2_gib(self.version, len, layout.block) {
            let text = format!("the file ends at {len} bytes, because the logger could write at most 2 GiB");
            note(&rules::STOPPED_AT_2_GIB, len..len, text);
        }
        (extent.rows, extent.missing, extent.left_out) = (read, missing, left_out);
        extent
    }
}

#[cfg(test)]
mod tests {
    use rovelog_core::internal::wire::{I32Le, U16Le, U32Le, U64Le};
    use zerocopy::IntoBytes as _;

    use super::*;
    use crate::unit::Unit;
    use crate::wire::BlockTimes;
    use crate::writer::{ChannelSpec, LogSpec, set_counts};

    /// Duration of a block of 20 rows at 1 kSPS, in nanoseconds.
    const PERIOD: i128 = 20 * 1_003_520;

    /// Returns the header of a log with a single analog channel and 20 rows per block.
    fn head(version: u16, rows: u64) -> Header {
        let channels = vec![ChannelSpec::analog("V1", Unit::Volt, -8)];
        let mut header =
            LogSpec { version, block_rows: 20, channels, ..LogSpec::new(1000) }.header().unwrap();
        set_counts(&mut header, rows).unwrap();
        header
    }

    fn of_header(header: &Header) -> Validated {
        let bytes = header.to_bytes();
        validate(&bytes, Some(bytes.len() as u64)).unwrap().unwrap()
    }

    fn named(notes: &Notes) -> Vec<(&str, Range<u64>)> {
        notes.iter().map(|(rule, range, _)| (rule.name, range.clone())).collect()
    }

    fn texts(notes: &Notes) -> Vec<&str> {
        notes.iter().map(|(_, _, text)| &**text).collect()
    }

    /// Returns `header` followed by `len` bytes of noise. `times` lists offsets within the noise at
    /// which block times are stored, each with its time in nanoseconds.
    fn log(header: &Header, len: usize, times: &[(usize, i128)]) -> Vec<u8> {
        let mut bytes = header.to_bytes();
        let start = bytes.len();
        bytes.resize(start + len, 0x7F);
        for (at, time) in times {
            let times = BlockTimes::new(1_700_000_000_000_000_000 + time, 1_000 + time).unwrap();
            bytes[start + at..][..32].copy_from_slice(times.as_bytes());
        }
        bytes
    }

    #[test]
    fn a_cut_lead_in_is_not_mistaken_for_another_format() {
        for head in [&b""[..], b"%R", b"%RLD", b"BLR%\x01"] {
            let of_file = validate(head, Some(5));
            assert!(matches!(of_file, Err(RldError::HeaderCut { len: 5, header: LEAD_IN_LEN })), "{head:?}");
            assert!(matches!(validate(head, None), Ok(Err(NeedMore(LEAD_IN_LEN)))), "{head:?}");
        }
        for head in [&b"%RLC"[..], b"RLD%", b"ULog\x01"] {
            assert!(matches!(validate(head, Some(5)), Err(RldError::NotRld)), "{head:?}");
            // A file with a damaged magic number is recognized by the rest of its header.
            assert!(matches!(validate(head, None), Ok(Err(NeedMore(LEAD_IN_LEN)))), "{head:?}");
        }
    }

    #[test]
    fn counts_of_rows_and_blocks_must_agree() {
        for (rows, blocks, size, want) in [
            (0, 0, 0, Some(0)),
            (1, 0, 0, None),
            (0, 1, 0, None),
            (10, 2, 5, Some(10)),
            (11, 2, 5, None),
            (11, 3, 5, Some(11)),
        ] {
            let mut lead_in = head(4, 0).lead_in;
            (lead_in.sample_count, lead_in.data_block_count) = (U64Le::new(rows), U32Le::new(blocks));
            lead_in.data_block_size = U32Le::new(size);
            let mut notes = Notes::new();
            assert_eq!(declared(&lead_in, &mut notes), want, "{rows} in {blocks} of {size}");
            assert_eq!(notes.is_empty(), want.is_some());
        }
    }

    #[test]
    fn rows_need_a_rate_for_their_times() {
        let notes = |rate: u16, rows| {
            let mut header = head(4, rows);
            header.lead_in.sample_rate = U16Le::new(rate);
            texts(&of_header(&header).notes).join("; ")
        };
        assert_eq!((&*notes(0, 20), &*notes(0, 0), &*notes(1000, 20)), ("its rate is 0", "", ""));
    }

    #[test]
    fn extra_words_are_detected_by_block_times_or_size() {
        let is_extra = |header: &Header, bytes: &[u8], len| {
            let found = validate(bytes, len).unwrap().map(|found| found.notes);
            found.map(|notes| named(&notes).contains(&("extra_word", header.size()..header.size())))
        };
        let in_file = |header: &Header, bytes: &[u8]| is_extra(header, bytes, Some(bytes.len() as u64));
        // If the file has one block, its size decides.
        for rows in [3, 20] {
            for (version, body, extra) in
                [(4, rows * 8, true), (4, rows * 4, false), (4, rows * 8 + 1, false), (3, rows * 8, false)]
            {
                let header = head(version, rows as u64);
                let found = in_file(&header, &log(&header, 32 + body, &[(0, 0)]));
                assert_eq!(found, Ok(extra), "version {version}, {rows} rows in {body} bytes");
            }
        }
        let mut bits = head(4, 3);
        bits.channels.insert(0, bits.channels[0]);
        (bits.channels[0].unit, bits.channels[0].scale) = (U32Le::new(Unit::Binary.code()), I32Le::new(0));
        (bits.lead_in.binary_count, bits.lead_in.header_length) = (U16Le::new(1), U16Le::new(116));
        assert_eq!(in_file(&bits, &log(&bits, 32 + 36, &[(0, 0)])), Ok(false), "it has bits");
        // If the file has two blocks, the times of the second block decide.
        let header = head(4, 40);
        let extra = log(&header, 192 + 32, &[(0, 0), (192, PERIOD)]);
        // A stream requests the bytes up to the times of the second block. If these times
        // contradict the header, it requests the times of more blocks.
        for len in [extra.len() - 1, extra.len()] {
            let need = if len < extra.len() { extra.len() } else { 88 + 8 * 192 + 32 } as u64;
            assert_eq!(is_extra(&header, &extra[..len], None), Err(NeedMore(need)));
        }
        // The times fit rows with an extra word. But if the file has exactly the size for rows
        // without an extra word, its rows have none.
        for (rows, body, found) in [(40, 224, false), (40, 228, true), (41, 224 + 32 + 4, false)] {
            let header = head(4, rows);
            let bytes = log(&header, body, &[(0, 0), (192, PERIOD)]);
            assert_eq!(in_file(&header, &bytes), Ok(found), "{rows} rows in {body} bytes");
        }
        let longer = log(&header, 192 + 40, &[(0, 0), (192, PERIOD)]);
        assert_eq!(in_file(&header, &longer), Ok(true));
        let both = log(&header, 192 + 40, &[(0, 0), (112, PERIOD), (192, PERIOD)]);
        let neither = log(&header, 192 + 40, &[(0, 0)]);
        assert_eq!((in_file(&header, &both), in_file(&header, &neither)), (Ok(false), Ok(false)));
        // If the clock went back at the second block, the layout is used that fits most of the
        // first blocks.
        let plain = |n: u32| (112 * n as usize, i128::from(n) * PERIOD);
        let extra = |n: u32| (192 * n as usize, i128::from(n) * PERIOD);
        let first = [(0, 3 * PERIOD), (192, 4 * PERIOD)];
        for (counted, more, want) in [
            (5, vec![plain(2), plain(3), plain(4)], false),
            (5, vec![plain(3), plain(4)], false),
            (2, vec![plain(3), plain(4)], true),
            (5, vec![(2 * 192, 5 * PERIOD), plain(6), plain(7)], true),
            // The header is right if, with the layout of the header, the second block follows the
            // first.
            (5, vec![(112, 4 * PERIOD), (2 * 192, 5 * PERIOD), (3 * 192, 6 * PERIOD)], false),
        ] {
            let header = head(4, 20 * counted);
            let bytes = log(&header, 1000, &[&first[..], &more].concat());
            assert_eq!(in_file(&header, &bytes), Ok(want), "{counted}: {more:?}");
        }
        let uncounted =
            Header { lead_in: LeadIn { data_block_count: U32Le::new(9), ..header.lead_in }, ..header };
        let of_stream = |len: usize| {
            is_extra(&uncounted, &log(&uncounted, 2000, &[extra(0), extra(1)])[..88 + len], None)
        };
        assert_eq!(
            (of_stream(192 * 8 + 31), of_stream(192 * 8 + 32)),
            (Err(NeedMore(88 + 192 * 8 + 32)), Ok(true))
        );
    }

    #[test]
    fn extra_words_are_detected_within_the_stream_buffer() {
        let mut header = head(4, 0);
        let most = (LOOK_AHEAD - header.size() - 2 * BLOCK_TIMES_LEN) / 8;
        for (rows, extra) in [(most, true), (most + 1, false)] {
            header.lead_in.data_block_size = U32Le::new(u32::try_from(rows).unwrap());
            set_counts(&mut header, 2 * rows).unwrap();
            let second = usize::try_from(32 + 8 * rows).unwrap();
            let bytes = log(&header, second + 100, &[(0, 0), (second, PERIOD)]);
            let found = validate(&bytes, Some(bytes.len() as u64)).unwrap().unwrap();
            let of_stream = validate(&bytes[..usize::try_from(LOOK_AHEAD).unwrap()], None).unwrap().unwrap();
            for found in [found, of_stream] {
                assert_eq!(
                    named(&found.notes).iter().any(|(name, _)| *name == "extra_word"),
                    extra,
                    "{rows}"
                );
            }
        }
    }

    #[test]
    fn uncounted_blocks_must_continue_the_counted_ones() {
        let uncounted = |rows, len, times: &[(usize, i128)], last: Option<BlockRun>| {
            let header = head(4, rows);
            let validated = of_header(&header);
            validated.count_uncounted_rows(
                &log(&header, len, times),
                &last.unwrap_or(BlockRun::from(header.size())),
            )
        };
        let three = [(0, 0), (112, PERIOD), (224, 2 * PERIOD)];
        assert_eq!(uncounted(20, 3 * 112, &three, None), 40);
        assert_eq!(uncounted(20, 2 * 112 + 32 + 11, &three, None), 22);
        assert_eq!(uncounted(20, 2 * 112 + 32, &three, None), 20);
        assert_eq!(uncounted(20, 3 * 112, &three[..2], None), 20, "no times");
        assert_eq!(uncounted(20, 2 * 112, &[(0, PERIOD), (112, 0)], None), 0, "an earlier block");
        assert_eq!(uncounted(20, 3 * 112, &[(0, 0), (112, PERIOD), (224, 0)], None), 20);
        assert_eq!(uncounted(25, 3 * 112, &three, None), 0, "the last block that is counted is not full");
        // The file has no counted block before the uncounted rows.
        assert_eq!(uncounted(0, 112, &three[..1], None), 20);
        let last = BlockRun { at: 88 + 112, before: 20, left_out: 20 };
        assert_eq!(uncounted(20, 2 * 112, &three[1..2], Some(last)), 20);
    }

    #[test]
    fn without_a_layout_no_rows_are_counted() {
        let of = |channels: usize, block_rows: u32, rows: u64| {
            let mut header = head(4, 0);
            header.channels.truncate(channels);
            header.lead_in.analog_count = U16Le::new(u16::try_from(channels).unwrap());
            header.lead_in.header_length = U16Le::new(u16::try_from(header.size()).unwrap());
            header.lead_in.data_block_size = U32Le::new(block_rows);
            header.lead_in.sample_count = U64Le::new(rows);
            let validated = of_header(&header);
            assert!(validated.full_block_layout().is_none());
            let end = header.size();
            let extent = |len| {
                let extent = validated.extent(end + len, &BlockRun::from(end), 0);
                assert_eq!((extent.rows, extent.missing, extent.left_out), (0, 0, 0));
                let notes = extent
                    .notes
                    .into_iter()
                    .map(|(rule, range, text)| (rule.name, range.start - end..range.end - end, text));
                notes.collect::<Vec<_>>()
            };
            assert_eq!(extent(0), []);
            extent(40)
        };
        let trailing = [("trailing_bytes", 0..40, "bytes follow a header without blocks".to_owned())];
        assert_eq!((of(0, 5, 0), of(1, 0, 0)), (trailing.to_vec(), trailing.to_vec()));
        assert_eq!(of(1, 0, 3), [("no_layout", 0..40, "the header states blocks of 0 rows".to_owned())]);
    }

    #[test]
    fn diagnostics_cover_the_bytes_that_are_not_read() {
        let extent = |rows, len, uncounted| {
            let header = head(4, rows);
            let end = header.size();
            let extent = of_header(&header).extent(end + len, &BlockRun::from(end), uncounted);
            let notes = extent
                .notes
                .into_iter()
                .map(|(rule, range, text)| (rule.name, range.start - end..range.end - end, text));
            (extent.rows, extent.missing, extent.left_out, notes.collect::<Vec<_>>())
        };
        let cut =
            "row 2 is truncated after 3 bytes; the header counts 20 rows, but the file has 2".to_owned();
        assert_eq!(extent(20, 43, 0), (2, 18, 0, vec![("cut", 40..43, cut)]));
        let uncounted =
            "left out 30 rows that the header does not count; `rovelog recover` keeps them".to_owned();
        let rest = ("trailing_bytes", 296..299, "the file ends with 3 bytes of other data".to_owned());
        assert_eq!(
            extent(20, 299, 30),
            (20, 0, 30, vec![("header_behind", 112..296, uncounted), rest.clone()])
        );
        assert_eq!(extent(50, 299, 0), (50, 0, 0, vec![rest]));
    }

    /// Computes the row counts of a file of `len` bytes whose header counts `rows` rows in blocks
    /// of 256 032 bytes.
    fn limited(version: u16, rows: u64, len: u64) -> Extent {
        let mut header = head(version, 0);
        header.lead_in.data_block_size = U32Le::new(64_000);
        header.lead_in.sample_rate = U16Le::new(64_000);
        set_counts(&mut header, rows).unwrap();
        of_header(&header).extent(len, &BlockRun::from(header.size()), 0)
    }

    #[test]
    fn files_limited_to_2_gib_are_read_to_their_end() {
        let names = |extent: &Extent| extent.notes.iter().map(|note| note.0.name).collect::<Vec<_>>();
        // The header counts 750 000 000 rows, which would take 3 GB.
        let (rows, len) = (750_000_000, (1 << 31) - 1);
        let file = limited(3, rows, len);
        assert_eq!(names(&file), ["cut", "stopped_at_2_gib"]);
        // The file has full blocks and a part of another block.
        let body = len - (56 + 4 + 28);
        assert_eq!(file.rows, body / 256_032 * 64_000 + (body % 256_032 - 32) / 4);
        assert_eq!(file.missing, rows - file.rows);
        // The diagnostic is not reported for other versions, other file sizes, and complete files.
        assert_eq!(names(&limited(4, rows, len)), ["cut"]);
        assert_eq!(names(&limited(3, rows, len - 300_001)), ["cut"]);
        assert_eq!(names(&limited(3, 8387 * 64_000, 88 + 8387 * 256_032)), [""; 0]);
    }
}
