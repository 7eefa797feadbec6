//! Validation of a file by its header and its length: layout, number of rows, lost bytes.
//!
//! Pure functions: from bytes to a result or "need more". The reader, the stream and recovery share
//! them.

use rovelog_core::text::{count, up_to_nul};
use std::ops::Range;

use rovelog_core::Rule;
use rovelog_core::scan::NeedMore;
use zerocopy::FromBytes;

use crate::clock;
use crate::diagnostics as rules;
use crate::error::RldError;
use crate::layout::{Aligned, Layout, times_at};
use crate::schema::{Channel, Notes, channels, is_plausible};
use crate::wire::{BLOCK_TIMES_LEN, CHANNEL_LEN, Header, LEAD_IN_LEN, LeadIn, MAGIC, MAGIC_V1, Version};

/// Maximum length of a header: 131 070 channels and a comment.
const HEADER_MAX: u64 = 4 << 20;

/// Bytes that a stream can buffer to find out whether rows have an extra word.
const LOOK_AHEAD: u64 = 1 << 20;

/// The validated header of a file.
#[derive(Clone, Debug)]
pub(crate) struct Validated {
    pub(crate) header: Header,
    pub(crate) version: &'static Version,
    pub(crate) channels: Vec<Channel>,
    pub(crate) layout: Result<Layout, String>,
    /// Rows that the header counts; `None` if its counts contradict each other.
    pub(crate) declared: Option<u64>,
    /// Rows after these that are read, too: only for recovery.
    pub(crate) further: u64,
    /// True if a known writer can have made the channel table.
    pub(crate) plausible: bool,
    pub(crate) notes: Notes,
}

/// The rows of a file, and the bytes that are not part of one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extent {
    /// Rows that are read.
    pub(crate) rows: u64,
    /// Rows after the last block that the header counts but the file does not contain.
    pub(crate) missing: u64,
    /// Rows after those that the header counts.
    pub(crate) left_out: u64,
    pub(crate) notes: Notes,
}

/// Validates the file that starts with `head`. `len` is the length of the file; `None` if it is
/// unknown.
pub(crate) fn validate(head: &[u8], len: Option<u64>) -> Result<Result<Validated, NeedMore>, RldError> {
    let Ok((lead_in, _)) = LeadIn::ref_from_prefix(head) else {
        let known = head.len().min(4);
        if !MAGIC.starts_with(&head[..known]) && !MAGIC_V1.starts_with(&head[..known]) {
            return Err(RldError::NotRld);
        }
        return match len {
            None => Ok(Err(NeedMore(LEAD_IN_LEN))),
            Some(len) => Err(RldError::HeaderCut { len, header: LEAD_IN_LEN }),
        };
    };
    let version = version(lead_in)?;
    let header = match header(head, len, lead_in, version)? {
        Ok(header) => header,
        Err(need) => return Ok(Err(need)),
    };
    let mut notes = header.notes;
    let (plausible, header) = (header.plausible, header.header);
    let end = header.size();
    header_notes(&header, version, &mut notes);
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
        notes.push((&rules::RATE_ZERO, 0x18..0x1a, "the rate is 0".to_owned()));
    }
    Ok(Ok(Validated { header, version, channels, layout, declared, further: 0, plausible, notes }))
}

fn version(lead_in: &LeadIn) -> Result<&'static Version, RldError> {
    if lead_in.magic != MAGIC && lead_in.magic != MAGIC_V1 {
        return Err(RldError::NotRld);
    }
    let number = lead_in.file_version.get();
    Version::of(number).filter(|version| version.magic == lead_in.magic).ok_or_else(|| {
        let magic = String::from_utf8_lossy(&lead_in.magic).into_owned();
        RldError::UnknownVersion { version: number, magic }
    })
}

/// An interpretation of a header.
struct Understood {
    header: Header,
    plausible: bool,
    notes: Notes,
}

/// Returns the header by the first hypothesis that gives a plausible table: as stored, by the
/// header length, or with a comment and header length that are four bytes too large. The header as
/// stored wins ties.
fn header(
    head: &[u8],
    len: Option<u64>,
    lead_in: &LeadIn,
    version: &Version,
) -> Result<Result<Understood, NeedMore>, RldError> {
    let stated = lead_in.comment_length.get();
    let size = lead_in.header_size();
    let table = LEAD_IN_LEN + CHANNEL_LEN * lead_in.channels();
    let field = u64::from(lead_in.header_length.get());
    let by_field =
        field.checked_sub(table).and_then(|len| u32::try_from(len).ok()).filter(|len| *len != stated);
    let fits = |size: u64| size <= HEADER_MAX && len.is_none_or(|len| size <= len);
    // The bytes that the longest interpretation needs.
    let longest =
        [Some(size), by_field.map(|_| field)].into_iter().flatten().filter(|size| fits(*size)).max();
    let Some(longest) = longest else {
        return Err(match len {
            Some(len) if size <= HEADER_MAX => RldError::HeaderCut { len, header: size },
            _ => RldError::HeaderTooLarge { header: size, max: HEADER_MAX },
        });
    };
    if (head.len() as u64) < longest && len.is_none() {
        return Ok(Err(NeedMore(longest)));
    }
    let binary = usize::from(lead_in.binary_count.get());
    let wrapped = field != size && field == size % (1 << 16);
    // The writer's bug, in a header that can also have a damaged length.
    let excess = |len: u32| len.checked_sub(4).filter(|_| version.number == 3);
    let (by_field_excess, stated_excess) = (by_field.and_then(excess), excess(stated));
    let readings = [
        (None, fits(size)),
        (by_field, by_field.is_some() && fits(field)),
        (by_field_excess, by_field_excess.is_some() && fits(field)),
        (stated_excess, stated_excess.is_some() && fits(size)),
    ];
    let mut first = None;
    for (reading, (comment_len, possible)) in readings.into_iter().enumerate() {
        if !possible {
            continue;
        }
        let Ok(header) = Header::from_bytes(head, comment_len) else { continue };
        let plausible = is_plausible(&header.channels, binary, version);
        if plausible || first.is_none() {
            let found = (reading, Understood { header, plausible, notes: Notes::new() });
            if plausible {
                first = Some(found);
                break;
            }
            first = Some(found);
        }
    }
    let Some((reading, mut understood)) = first else {
        return Err(RldError::HeaderCut { len: len.unwrap_or(head.len() as u64), header: size });
    };
    let notes = &mut understood.notes;
    match reading {
        0 if wrapped => notes.push((
            &rules::HEADER_LENGTH,
            6..8,
            format!("a header of {size} bytes contradicts its length field, {field}"),
        )),
        0 if field != size => {
            let text = format!("the length field is {field}, but comment and channels take {size}");
            notes.push((&rules::HEADER_LENGTH, 6..8, text));
        }
        1 => {
            let text = format!(
                "a comment of {} contradicts a header of {field}, which is used",
                count(stated, "byte")
            );
            notes.push((&rules::HEADER_LENGTH, 0x30..0x34, text));
        }
        2 | 3 => notes.push((
            &rules::COMMENT_EXCESS,
            0x30..0x34,
            format!("the comment has {}, not {stated}", count(understood.header.comment.len(), "byte")),
        )),
        _ => {}
    }
    if !understood.plausible {
        let table = LEAD_IN_LEN + understood.header.comment.len() as u64;
        let text = "invalid names, units, scales or links".to_owned();
        understood.notes.push((&rules::TABLE_IMPLAUSIBLE, table..understood.header.size(), text));
    }
    Ok(Ok(understood))
}

fn header_notes(header: &Header, version: &Version, notes: &mut Notes) {
    let end = header.size();
    if !end.is_multiple_of(4) {
        let text = format!("the header has {end} bytes, which is not a multiple of 4: blocks are unaligned");
        notes.push((&rules::UNALIGNED_HEADER, 6..8, text));
    }
    let comment = &header.comment;
    let range = LEAD_IN_LEN..LEAD_IN_LEN + comment.len() as u64;
    let text = up_to_nul(comment);
    if version.comment_has_nul && !comment.is_empty() && text.len() == comment.len() {
        notes.push((&rules::COMMENT_WITHOUT_NUL, range.clone(), count(comment.len(), "byte")));
    }
    if text.iter().any(|byte| !(0x20..0x7f).contains(byte) && !byte.is_ascii_whitespace()) {
        notes.push((&rules::COMMENT_NOT_ASCII, range, "non-printable or non-ASCII bytes".to_owned()));
    }
    let rate = header.lead_in.sample_rate.get();
    if (1..1000).contains(&rate) && header.lead_in.data_block_size.get() != 1 {
        let text = format!("{} per second: means or single samples", count(rate, "row"));
        notes.push((&rules::AVERAGED, 0x18..0x1a, text));
    }
}

/// Returns the number of rows by the lead-in; `None` if its counts contradict each other.
fn declared(lead_in: &LeadIn, notes: &mut Notes) -> Option<u64> {
    let (rows, blocks) = (lead_in.sample_count.get(), u64::from(lead_in.data_block_count.get()));
    let size = u64::from(lead_in.data_block_size.get());
    let agree = if size == 0 { rows == 0 && blocks == 0 } else { rows.div_ceil(size) == blocks };
    if !agree {
        let text = format!("{} in {} of {size}", count(rows, "row"), count(blocks, "block"));
        notes.push((&rules::COUNTS_DISAGREE, 8..0x18, text));
    }
    agree.then_some(rows)
}

/// Returns whether a release from 2.0.0-beta1 to 2.0.1 can have written the file: they wrote a word
/// of binary values even without binary channels.
pub(crate) fn may_have_extra_word(lead_in: &LeadIn, version: &Version) -> bool {
    version.number == 4 && lead_in.binary_count.get() == 0 && lead_in.analog_count.get() > 0
}

/// Returns whether rows with an extra word match the times of the second block (the size, if there
/// is one block), and rows without do not.
fn has_extra_word(
    header: &Header,
    head: &[u8],
    len: Option<u64>,
    declared: Option<u64>,
) -> Result<bool, NeedMore> {
    let end = header.size();
    let layouts = [false, true].map(|extra| Layout::of(header, end, extra).ok());
    let [Some(plain), Some(extra)] = layouts else { return Ok(false) };
    if declared == Some(0) || plain.block_rows == 0 {
        return Ok(false);
    }
    let until = end + extra.block + BLOCK_TIMES_LEN;
    if (head.len() as u64) < until.min(LOOK_AHEAD) && len.is_none() {
        return Err(NeedMore(until.min(LOOK_AHEAD)));
    }
    if (head.len() as u64) < until {
        // One block: only the sizes can tell.
        let (Some(len), Some(rows)) = (len, declared) else { return Ok(false) };
        let body = u128::from(len.saturating_sub(end));
        return Ok(plain.body(rows) != body && extra.body(rows) == body);
    }
    let pair = |layout: &Layout| layout.block_times(head, 0).zip(layout.block_times(head, 1));
    let follows = pair(&plain).is_some_and(|(first, second)| clock::follows(first, second));
    // Contradicting the header takes both clocks.
    Ok(!follows && pair(&extra).is_some_and(|(first, second)| clock::follows_by_both(first, second)))
}

/// Returns whether a file ends within a block of 2^31 bytes, the maximum size in 1.1.4 and earlier.
fn stops_at_2_gib(version: &Version, len: u64, block: u64) -> bool {
    version.number <= 3 && len.abs_diff(1 << 31) <= block.max(4096)
}

impl Validated {
    /// Returns the layout of a file whose header counts full blocks only, so that others can
    /// follow.
    pub(crate) fn counted(&self) -> Option<&Layout> {
        let layout = self.layout.as_ref().ok()?;
        let full = layout.row > 0 && self.declared?.checked_rem(layout.block_rows) == Some(0);
        full.then_some(layout)
    }

    /// Returns the number of rows to read; `None` if all complete ones are.
    pub(crate) fn to_read(&self) -> Option<u64> {
        self.declared.map(|rows| rows.saturating_add(self.further))
    }

    /// Returns the number of rows in `bytes` after those that the header counts: the logger counts
    /// a block after writing it. The times of their blocks must follow each other. `last` are the
    /// last blocks at regular distances.
    pub(crate) fn behind(&self, bytes: &[u8], last: &Aligned) -> u64 {
        let (Some(layout), Some(declared)) = (self.counted(), self.declared) else { return 0 };
        let counted = declared.checked_sub(last.before).map(|rows| layout.body(rows));
        let Some(from) = counted.and_then(|body| u64::try_from(u128::from(last.at) + body).ok()) else {
            return 0;
        };
        let physical = layout.rows_in((bytes.len() as u64).saturating_sub(from));
        let mut before = (declared > last.before).then(|| times_at(bytes, from - layout.block)).flatten();
        let mut rows = 0;
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

    /// Returns the rows of a file of `len` bytes, and what else it contains. `last` are the last
    /// blocks at regular distances; `behind` rows are known to follow those that the header counts.
    pub(crate) fn extent(&self, len: u64, last: &Aligned, behind: u64) -> Extent {
        let end = self.header.size();
        let mut extent = Extent::default();
        let mut note =
            |rule: &'static Rule, range: Range<u64>, text: String| extent.notes.push((rule, range, text));
        let layout = match &self.layout {
            Ok(layout) if layout.block_rows > 0 && layout.row > 0 => layout,
            Ok(_) => {
                if end < len {
                    note(&rules::TRAILING_BYTES, end..len, "bytes after a header without blocks".to_owned());
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
        let to_read = self.to_read();
        let physical = last.before + layout.rows_in(body);
        let rows = to_read.unwrap_or(physical).min(physical);
        let body_of = |rows: u64| layout.body(rows.saturating_sub(last.before));
        // The rows counted here end within the file.
        let used = u64::try_from(body_of(rows)).unwrap_or(body).min(body);
        let mut rest = end + used..len;
        let mut left_out = 0;
        if behind > 0 && rows == to_read.unwrap_or(0) {
            let body = u64::try_from(body_of(rows + behind)).unwrap_or(body).min(body);
            let text = format!(
                "{} not counted by the header: left out; `rovelog recover` keeps them",
                count(behind, "row")
            );
            note(&rules::HEADER_BEHIND, rest.start..end + body, text);
            left_out = behind;
            rest.start = end + body;
        }
        let missing = to_read.map_or(0, |rows| rows.saturating_sub(physical));
        let read = rows.saturating_sub(last.left_out);
        let counted = |rows| {
            let physical = physical.saturating_sub(last.left_out);
            format!("the header counts {}, {physical} in the file", count(rows, "row"))
        };
        let counted = to_read.filter(|_| missing > 0).map(counted);
        if rest.start < len {
            let bytes = len - rest.start;
            if missing > 0 || to_read.is_none() {
                let why = counted.map(|counted| format!("; {counted}")).unwrap_or_default();
                note(&rules::CUT, rest, format!("{} of what would be row {read}{why}", count(bytes, "byte")));
            } else {
                note(&rules::TRAILING_BYTES, rest, format!("{} after the last row", count(bytes, "byte")));
            }
        } else if let Some(counted) = counted {
            note(&rules::ROWS_MISSING, len..len, counted);
        }
        if missing > 0 && stops_at_2_gib(self.version, len, layout.block) {
            let text = format!("{len} bytes: the logger's files could not grow beyond 2 GiB");
            note(&rules::STOPPED_AT_2_GIB, len..len, text);
        }
        (extent.rows, extent.missing, extent.left_out) = (read, missing, left_out);
        extent
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unit::Unit;
    use crate::writer::{ChannelSpec, LogSpec, set_counts};

    /// Validates a file of `len` bytes whose header counts 3 GB.
    fn extent(version: u16, len: u64) -> Extent {
        let mut spec = LogSpec::new(64_000);
        (spec.version, spec.block_rows) = (version, 64_000);
        spec.channels = vec![ChannelSpec::analog("V1", Unit::Volt, -8)];
        let mut header = spec.header().unwrap();
        set_counts(&mut header, 750_000_000).unwrap();
        let file = validate(&header.to_bytes(), Some(len)).unwrap().unwrap();
        file.extent(len, &Aligned::from(file.header.size()), 0)
    }

    fn names(extent: &Extent) -> Vec<&str> {
        extent.notes.iter().map(|note| note.0.name).collect()
    }

    #[test]
    fn files_limited_to_2_gib_are_read_by_their_size() {
        let len = (1 << 31) - 1;
        let limited = extent(3, len);
        assert_eq!(names(&limited), ["cut", "stopped_at_2_gib"]);
        // 8387 full blocks of 256 032 bytes, and the rest.
        let body = len - (56 + 4 + 28);
        let (full, rest) = (body / 256_032, body % 256_032);
        assert_eq!(limited.rows, full * 64_000 + (rest - 32) / 4);
        assert_eq!(limited.missing, 750_000_000 - limited.rows);
        // Files of other software, and files cut elsewhere, are only cut.
        assert_eq!(names(&extent(4, len)), ["cut"]);
        assert_eq!(names(&extent(3, len - 300_001)), ["cut"]);
    }
}
