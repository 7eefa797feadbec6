//! Reads the header of an RLD file. The length fields of a header can contradict each other, or the
//! position of the channel table.

use rovelog_core::field_range;
use rovelog_core::internal::scan::NeedMore;
use rovelog_core::internal::text::{count, up_to_nul};
use zerocopy::FromBytes;

use crate::diagnostics as rules;
use crate::error::RldError;
use crate::schema::{Note, Notes, is_plausible};
use crate::wire::{CHANNEL_LEN, Header, LEAD_IN_LEN, LeadIn, MAGIC, MAGIC_V1, Version};

/// Number of bytes by which version 3 of the logger overstated the length of the comment. This is
/// rule D29 of docs/formats/rld.md.
const COMMENT_EXCESS: u32 = 4;

/// Maximum size of a header in bytes. The limit leaves room for 131 070 channels, the most that a
/// header can count, and a comment.
pub(crate) const HEADER_MAX: u64 = 4 << 20;

/// A header that was read under one interpretation of its length fields.
pub(crate) struct ReadHeader {
    pub(crate) header: Header,
    /// True if a known writer could have written the channel table.
    pub(crate) plausible: bool,
    pub(crate) notes: Notes,
}

/// Reads the header. Its length fields may be wrong, so several comment lengths are tried in this
/// order:
///
/// 1. the comment length in the lead-in
/// 2. the comment length that follows from the header length
/// 3. the second length less four bytes, because of a bug of the logger (rule D29 of
///    docs/formats/rld.md)
/// 4. the first length less four bytes
///
/// The first length that gives a plausible channel table is used. If none of them does, the first
/// length that fits into the file is used.
pub(crate) fn read(
    head: &[u8],
    len: Option<u64>,
    lead_in: &LeadIn,
    version: &Version,
) -> Result<Result<ReadHeader, NeedMore>, RldError> {
    let stated = lead_in.comment_length.get();
    let size = lead_in.header_size();
    let table = LEAD_IN_LEN + CHANNEL_LEN * lead_in.channels();
    let field = u64::from(lead_in.header_length.get());
    let by_field =
        field.checked_sub(table).and_then(|len| u32::try_from(len).ok()).filter(|len| *len != stated);
    let fits = |size: u64| size <= HEADER_MAX && len.is_none_or(|len| size <= len);
    // Number of bytes that the longest interpretation of the header needs.
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
    // The overstated comment length can occur together with a damaged header length.
    let excess = |len: u32| len.checked_sub(COMMENT_EXCESS).filter(|_| version.number == 3);
    let as_stated = fits(size).then_some(stated);
    let comment_lens = [as_stated, by_field, by_field.and_then(excess), as_stated.and_then(excess)];
    let readings = comment_lens.into_iter().enumerate().filter_map(|(reading, comment_len)| {
        let header = Header::from_bytes(head, Some(comment_len?)).ok()?;
        let plausible = is_plausible(&header.channels, binary, version);
        Some((reading, ReadHeader { header, plausible, notes: Notes::new() }))
    });
    // This is the first plausible reading. If no reading is plausible, it is the first one.
    let Some((reading, mut understood)) = readings.min_by_key(|(_, found)| !found.plausible) else {
        return Err(RldError::HeaderCut { len: len.unwrap_or(head.len() as u64), header: size });
    };
    understood.notes.extend(length_note(reading, lead_in, understood.header.comment.len()));
    if !understood.plausible {
        let table = LEAD_IN_LEN + understood.header.comment.len() as u64;
        let text =
            "the channel table contains invalid names, units, scales or links and may be damaged".to_owned();
        understood.notes.push((&rules::TABLE_IMPLAUSIBLE, table..understood.header.size(), text));
    }
    let magic = std::mem::replace(&mut understood.header.lead_in.magic, version.magic);
    if magic != version.magic {
        let text = format!(
            "the file starts with {magic:02x?} instead of {:02x?}; the rest of its header is valid",
            version.magic
        );
        understood.notes.push((&rules::BAD_MAGIC, field_range!(0, LeadIn, magic), text));
    }
    header_notes(&understood.header, version, &mut understood.notes);
    Ok(Ok(understood))
}

fn header_notes(header: &Header, version: &Version, notes: &mut Notes) {
    let end = header.size();
    if !end.is_multiple_of(4) {
        let text = format!("the header has {end} bytes, which is not a multiple of 4; all data is read");
        notes.push((&rules::UNALIGNED_HEADER, field_range!(0, LeadIn, header_length), text));
    }
    let comment = &header.comment;
    let range = LEAD_IN_LEN..LEAD_IN_LEN + comment.len() as u64;
    let text = up_to_nul(comment);
    if version.comment_has_nul && !comment.is_empty() && text.len() == comment.len() {
        let bytes = count(comment.len(), "byte");
        let text = format!("the comment of {bytes} does not end with a NUL byte; it is read completely");
        notes.push((&rules::COMMENT_WITHOUT_NUL, range.clone(), text));
    }
    if text.iter().any(|byte| !(0x20..0x7f).contains(byte) && !byte.is_ascii_whitespace()) {
        let text = "the comment contains bytes that are not printable ASCII, which are replaced on output";
        notes.push((&rules::COMMENT_NOT_ASCII, range, text.to_owned()));
    }
}

/// Returns the diagnostic for length fields that contradict each other. `reading` is the number of
/// the reading in the list of [`read`], and `comment_len` is the length of its comment.
fn length_note(reading: usize, lead_in: &LeadIn, comment_len: usize) -> Option<Note> {
    let stated = lead_in.comment_length.get();
    let (size, field) = (lead_in.header_size(), u64::from(lead_in.header_length.get()));
    let header_length = field_range!(0, LeadIn, header_length);
    let comment_length = field_range!(0, LeadIn, comment_length);
    let text = match reading {
        0 if field == size => return None,
        0 if field == size % (1 << 16) => format!(
            "the header has {size} bytes, but its length field states {field}; the correct length is used"
        ),
        0 => format!(
            "the header length field states {field} bytes, but the comment and channels need {size}, \
             which is used"
        ),
        1 => format!(
            "the comment length of {} contradicts the header length of {field} bytes, which is used",
            count(stated, "byte")
        ),
        _ => format!(
            "the comment has {}, but its length field states {stated}; the correct length is used",
            count(comment_len, "byte")
        ),
    };
    let rule = if reading < 2 { &rules::HEADER_LENGTH } else { &rules::COMMENT_EXCESS };
    Some((rule, if reading == 0 { header_length } else { comment_length }, text))
}

/// Returns the file version. If the magic number is damaged, the version can only be determined
/// from the whole header.
pub(crate) fn version(
    head: &[u8],
    lead_in: &LeadIn,
    len: Option<u64>,
) -> Result<Result<&'static Version, NeedMore>, RldError> {
    if lead_in.magic != MAGIC && lead_in.magic != MAGIC_V1 {
        let found = without_magic(head, lead_in).ok_or(RldError::NotRld)?;
        return if found.is_err() && len.is_some() { Err(RldError::NotRld) } else { Ok(found) };
    }
    let number = lead_in.file_version.get();
    let version = Version::of(number).filter(|version| version.magic == lead_in.magic);
    version.map(Ok).ok_or_else(|| {
        let magic = String::from_utf8_lossy(&lead_in.magic).into_owned();
        RldError::UnknownVersion { version: number, magic }
    })
}

/// Returns the version of a file whose magic number is damaged. Everything else in the header must
/// be consistent: the version is known, the lengths agree, and the channel table is plausible.
fn without_magic(head: &[u8], lead_in: &LeadIn) -> Option<Result<&'static Version, NeedMore>> {
    let version = Version::of(lead_in.file_version.get())?;
    let length = u64::from(lead_in.header_length.get());
    if lead_in.channels() == 0 || lead_in.header_size() != length {
        return None;
    }
    match read(head, None, lead_in, version).ok()? {
        Err(need) => Some(Err(need)),
        Ok(found) => (found.plausible && found.header.size() == length).then_some(Ok(version)),
    }
}

/// Returns whether a file that starts with `head` is an RLD file whose magic number is damaged.
pub(crate) fn recognizes(head: &[u8]) -> bool {
    LeadIn::ref_from_prefix(head)
        .is_ok_and(|(lead_in, _)| matches!(without_magic(head, lead_in), Some(Ok(_))))
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use rovelog_core::internal::wire::{I32Le, U16Le, U32Le};

    use super::*;
    use crate::unit::Unit;
    use crate::writer::{ChannelSpec, LogSpec};

    /// Returns the header of a log with one channel.
    fn head(version: u16) -> Header {
        let channels = vec![ChannelSpec::analog("V1", Unit::Volt, -8)];
        LogSpec { version, channels, ..LogSpec::new(1000) }.header().unwrap()
    }

    fn understood(header: &Header, len: Option<u64>) -> Result<Result<ReadHeader, NeedMore>, RldError> {
        let lead_in = &header.lead_in;
        read(&header.to_bytes(), len, lead_in, Version::of(lead_in.file_version.get()).unwrap())
    }

    /// Returns the diagnostics for a file that consists of only this header.
    fn noted(header: &Header) -> Vec<(&'static str, Range<u64>, String)> {
        let notes = understood(header, Some(header.size())).unwrap().unwrap().notes;
        notes.into_iter().map(|(rule, range, text)| (rule.name, range, text)).collect()
    }

    #[test]
    fn a_header_has_a_maximum_size() {
        let of = |comment: u32, len| {
            let mut header = head(4);
            header.lead_in.comment_length = U32Le::new(comment);
            header.lead_in.header_length = U16Le::new(0);
            understood(&header, len)
        };
        let size = |comment: u32| 84 + u64::from(comment);
        for len in [Some(8 << 20), None] {
            let Err(RldError::HeaderTooLarge { header, .. }) = of(5 << 20, len) else { panic!("{len:?}") };
            assert_eq!(header, size(5 << 20));
        }
        let Err(RldError::HeaderCut { len: 1000, header }) = of(1 << 20, Some(1000)) else {
            panic!("it is cut")
        };
        assert_eq!(header, size(1 << 20));
        assert_eq!(of(1 << 20, None).unwrap().err(), Some(NeedMore(size(1 << 20))));
    }

    /// The length field has 16 bits. A header that is too long for this field gets a different
    /// message than a header with a wrong length.
    #[test]
    fn a_length_field_is_contradicted_or_too_small_for_the_header() {
        let notes = |comment: usize, field: u16| {
            let mut header = head(4);
            header.comment.resize(comment, 0);
            header.lead_in.comment_length = U32Le::new(u32::try_from(comment).unwrap());
            header.lead_in.header_length = U16Le::new(field);
            noted(&header).into_iter().map(|note| note.2).collect::<Vec<_>>().join("; ")
        };
        assert_eq!(
            notes(70_000, 4548),
            "the header has 70084 bytes, but its length field states 4548; the correct length is used"
        );
        let wrong = |field: u16, size: u32| {
            format!(
                "the header length field states {field} bytes, but the comment and channels need {size}, \
                 which is used"
            )
        };
        assert_eq!((notes(70_000, 4552), notes(4, 88)), (wrong(4552, 70_084), String::new()));
        assert_eq!(notes(4, 92), wrong(92, 88));
    }

    #[test]
    fn notes_of_the_header_have_its_bytes() {
        let notes = |version, comment: &[u8], scale: i32| {
            let mut header = head(version);
            header.comment = comment.to_vec();
            header.lead_in.comment_length = U32Le::new(u32::try_from(comment.len()).unwrap());
            header.lead_in.header_length = U16Le::new(u16::try_from(header.size()).unwrap());
            header.channels[0].scale = I32Le::new(scale);
            noted(&header).into_iter().map(|note| (note.0, note.1)).collect::<Vec<_>>()
        };
        for (version, fine) in [(4, &b"abc\0"[..]), (4, b""), (2, b"abcd"), (4, b"a\n\tb c\0\0")] {
            assert_eq!(notes(version, fine, -8), [], "{fine:?}");
        }
        assert_eq!(notes(4, b"abcdefgh", -8), [("comment_without_nul", 56..64)]);
        for odd in [b"a\x01bcdef\0", b"a\x7fbcdef\0"] {
            assert_eq!(notes(4, odd, -8), [("comment_not_ascii", 56..64)]);
        }
        assert_eq!(notes(4, b"abcdefg\0", 25), [("table_implausible", 64..92)]);
    }
}
