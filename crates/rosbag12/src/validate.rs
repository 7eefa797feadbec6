//! Validates V1.2 records, and finds the next valid record after damage (section 5 of
//! docs/formats/rosbag.md).
//!
//! A search examines every offset, so it must reject most offsets quickly. Every valid header
//! contains the bytes of the field `op`, the *anchor*. The search first finds the next anchor with
//! `memmem`. An offset is examined further only if a header of the stated length would contain the
//! anchor. Example: the bytes at offset 100 state a header of 50 bytes, so this header would end at
//! 154. If the next anchor is at 300, offset 100 is rejected without reading the header.

use memchr::memmem;
use rovelog_core::internal::scan::{NeedMore, Window};
use rovelog_core::internal::wire::U32Le;
use zerocopy::FromBytes;

use crate::headers::Fields;
use crate::version::{self, Version};
use crate::wire::{self, Header, IndexEntry, MAX_FIELDS, RecordStart};

/// Maximum size in bytes of a record header. Recorders never write headers of this size.
pub(crate) const MAX_HEADER: u32 = 16 << 20;

/// Maximum number of bytes in which the end of a field name is searched.
pub(crate) const MAX_NAME_LEN: u32 = 64;

/// Maximum number of fields with undefined names in a header that a search for the next record
/// accepts.
const MAX_UNKNOWN_FIELDS: u32 = 64;

/// Bytes that every valid record header contains: the length, the name and the `=` of the field
/// `op`.
const ANCHOR: [u8; 7] = *b"\x04\0\0\0op=";

/// A valid record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProbedRecord<'a> {
    pub(crate) header: Header<'a>,
    /// The right op (record type) according to the header fields, if the stored op is damaged.
    pub(crate) corrected_op: Option<u8>,
    /// Number of fields whose name occurs more than once.
    pub(crate) duplicates: u32,
    /// Number of header fields whose name is not defined by the specification.
    unknown: u32,
    /// Offset of the record data.
    pub(crate) data_at: u64,
    /// Offset of the end of the record data.
    pub(crate) end: u64,
}

/// Result of testing whether a valid record starts at an offset.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Probe<'a> {
    Good(ProbedRecord<'a>),
    /// A record that is truncated at the end of the file.
    Cut,
    /// Bytes that are not a valid record. Contains the offset where a record would end if the
    /// lengths at this offset were right.
    Bad(Option<u64>),
}

/// Size in bytes of each length field in a record.
pub(crate) const LEN: u64 = FIELD_LEN as u64;

/// Value of [`LEN`] as a 32-bit number.
const FIELD_LEN: u32 = u32::BITS / 8;

/// Minimum size in bytes of a header, which has only the field `op`. The first byte of the anchor
/// is the size of this field.
const OP_ONLY: u32 = FIELD_LEN + ANCHOR[0] as u32;

/// Minimum size in bytes of a header that has another field besides `op`.
pub(crate) const MORE_THAN_OP: u32 = OP_ONLY + 1;

/// Minimum size in bytes of a header field: a name of one character, and `=`.
const MIN_FIELD: u32 = 2;

/// Tests whether the head of a record (header and length fields) starts at offset `at`. The data of
/// the record need not be in the window.
fn head(window: Window<'_>, at: u64) -> Result<Probe<'_>, NeedMore> {
    // Fewer than the four bytes of the header length are left in the file.
    let Some(len) = window.view::<U32Le>(at)? else { return Ok(Probe::Cut) };
    let len = len.get();
    if !(OP_ONLY..=MAX_HEADER).contains(&len) {
        return Ok(Probe::Bad(None));
    }
    let end = at + LEN + u64::from(len);
    let Some(header) = window.slice(at + LEN, end)? else {
        let rest = window.upto(at + LEN, u64::from(len))?;
        return Ok(if is_beginning(rest, len) { Probe::Cut } else { Probe::Bad(None) });
    };
    let parsed = Fields::read(header).and_then(|fields| Some((Header::interpret(&fields)?, fields)));
    let data_len = window.view::<U32Le>(end)?;
    let data = data_len.map(|len| (end + LEN, end + LEN + u64::from(len.get())));
    Ok(match (parsed, data) {
        (Some(((header, corrected_op), Fields { duplicates, unknown, .. })), Some((data_at, end))) => {
            Probe::Good(ProbedRecord { header, corrected_op, duplicates, unknown, data_at, end })
        }
        (Some(_), None) => Probe::Cut,
        (None, data) => Probe::Bad(data.map(|(_, end)| end)),
    })
}

/// Returns whether `bytes` can be the start of a record header of `len` bytes.
pub(crate) fn is_beginning(mut bytes: &[u8], mut len: u32) -> bool {
    // Check only the header fields that are in `bytes`. The rest of the header may be missing.
    for _ in 0..MAX_FIELDS {
        let Ok((field, text)) = U32Le::ref_from_prefix(bytes) else { return true };
        let field = field.get();
        if field < MIN_FIELD || field > len.saturating_sub(FIELD_LEN) {
            return false;
        }
        let Some((whole, rest)) = text.split_at_checked(field as usize) else {
            return text
                .iter()
                .take(MAX_NAME_LEN as usize)
                .take_while(|b| **b != b'=')
                .all(|b| wire::is_name(&[*b]));
        };
        if !whole.iter().position(|byte| *byte == b'=').is_some_and(|end| wire::is_name(&whole[..end])) {
            return false;
        }
        (bytes, len) = (rest, len - FIELD_LEN - field);
    }
    false
}

/// Tests whether a record starts at offset `at`.
pub(crate) fn probe(window: Window<'_>, at: u64) -> Result<Probe<'_>, NeedMore> {
    Ok(match head(window, at)? {
        Probe::Good(found) if window.slice(at, found.end)?.is_none() => Probe::Cut,
        found => found,
    })
}

/// Returns whether the bytes at offset `at` can follow a valid record. This is the case at the end
/// of the file, at a record header, and at a version line.
pub(crate) fn follows(window: Window<'_>, at: u64) -> Result<bool, NeedMore> {
    if window.eof && at >= window.end() {
        return Ok(at == window.end());
    }
    Ok(!matches!(head(window, at)?, Probe::Bad(_)) || version::at(window, at, Version::V1_2)?.is_some())
}

/// Returns whether the bytes at offset `at` are the first bytes of a version line.
fn is_version_prefix(window: Window<'_>, at: u64) -> Result<bool, NeedMore> {
    Ok(window.slice(at, at + version::PREFIX.len() as u64)? == Some(version::PREFIX))
}

/// Returns whether a record header may start at offset `at`. The header must have another field
/// besides `op`, and at most `longest` bytes. The check is fast and rejects nearly all offsets.
#[inline]
pub(crate) fn may_start(window: Window<'_>, at: u64, longest: u32) -> Result<bool, NeedMore> {
    let Some(start) = window.view::<RecordStart>(at)? else { return Ok(false) };
    let (len, field) = (start.header_len.get(), start.field_len.get());
    if !(MORE_THAN_OP..=longest).contains(&len) || field < MIN_FIELD || field > len - FIELD_LEN {
        return Ok(false);
    }
    let name = window.upto(at + size_of::<RecordStart>() as u64, field.min(MAX_NAME_LEN).into())?;
    let end = name.iter().position(|byte| *byte == b'=');
    Ok(end.is_some_and(|end| wire::is_name(&name[..end])))
}

/// Returns whether a valid record or version line starts at offset `at`. The check is strict, so
/// that reading can resume there after damage.
fn starts(window: Window<'_>, at: u64) -> Result<bool, NeedMore> {
    if is_version_prefix(window, at)? {
        return Ok(version::at(window, at, Version::V1_2)?.is_some());
    }
    if !may_start(window, at, MAX_HEADER)? {
        return Ok(false);
    }
    let Probe::Good(found) = head(window, at)? else { return Ok(false) };
    let may_be = match found.header {
        Header::Unknown(_) => false,
        Header::Index(index) => wire::list_len::<IndexEntry>(index.count.get()) == found.end - found.data_at,
        _ => true,
    };
    Ok(may_be && found.unknown <= MAX_UNKNOWN_FIELDS && follows(window, found.end)?)
}

/// Returns the offset of the first V1.2 record of a file without a version line. `head` are the
/// first bytes of the file. Header fields such as `topic` and `md5` together occur in no other
/// format.
pub(crate) fn first_record(head: &[u8]) -> Option<u64> {
    let window = Window::whole(head);
    (0..head.len() as u64).find(|at| starts(window, *at) == Ok(true))
}

/// Minimum size in bytes of a message record.
const MIN_MESSAGE_LEN: u64 = 32;

/// Returns whether the message offsets in the index of a topic are damaged. They are damaged if two
/// consecutive offsets are closer to each other than the minimum size of a message, or if two
/// consecutive offsets are outside of the chunk or bag. A single wrong offset is tolerated.
pub(crate) fn are_damaged(places: impl Iterator<Item = u64>, is_outside: impl Fn(u64) -> bool) -> bool {
    let mut before = None;
    let mut two = places.filter_map(|place| Some((before.replace(place)?, place)));
    two.any(|(one, other)| is_outside(one) && is_outside(other) || one.abs_diff(other) < MIN_MESSAGE_LEN)
}

/// Searches the data `from..end` of a record for a chain of valid records that leads beyond `end`.
/// In a chain, each record starts where the previous record ends. Returns the offset of the first
/// record in the chain.
///
/// If bytes of the outer record are missing, its length reaches into the next records of the bag,
/// and these records form such a chain. Example: 10 bytes are missing from a message of 100 bytes,
/// so the next record starts at offset 90 of the message and ends after the stated end of the
/// message. The records of a bag inside a message also form a chain, but this chain ends with the
/// message.
pub(crate) fn crossing_chain(window: Window<'_>, from: u64, end: u64) -> Result<Option<u64>, NeedMore> {
    let mut search = Search::from(from);
    while let Some(found) = search.run(window, end)? {
        let mut at = found;
        loop {
            let behind = match version::at(window, at, Version::V1_2)? {
                Some(line) => at + line.len,
                None => match probe(window, at)? {
                    Probe::Good(found) => found.end,
                    Probe::Cut | Probe::Bad(_) => break,
                },
            };
            if behind > end {
                if follows(window, behind)? {
                    return Ok(Some(found));
                }
                break;
            }
            // Another chain may start inside the last record of this chain.
            search.next = at + 1;
            if behind == end {
                break;
            }
            at = behind;
        }
        search.next = search.next.max(found + 1);
    }
    Ok(None)
}

/// Search for the next valid record. In a stream, the search can be continued with a larger window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Search {
    /// Offset that is examined next.
    pub(crate) next: u64,
    /// Offset of the first anchor (the bytes of the field `op`) at or after `next`, if known.
    anchor: Option<u64>,
    /// If the next anchor (the bytes of the field `op`) is not known, no anchor starts before this
    /// offset.
    none_before: u64,
    /// End of the last sequence of zero bytes that was skipped. Without this cache, repeated
    /// searches within a long sequence would each scan the sequence to its end.
    zeros_end: u64,
}

impl Search {
    pub(crate) fn from(at: u64) -> Self {
        Self { next: at, anchor: None, none_before: at, zeros_end: 0 }
    }

    /// Returns the offset of the next valid V1.2 record before `limit`.
    pub(crate) fn run(&mut self, window: Window<'_>, limit: u64) -> Result<Option<u64>, NeedMore> {
        self.run_to(window, limit, starts)
    }

    /// Returns the next offset before `limit` that the function `starts` accepts.
    pub(crate) fn run_to<'a>(
        &mut self,
        window: Window<'a>,
        limit: u64,
        starts: impl Fn(Window<'a>, u64) -> Result<bool, NeedMore>,
    ) -> Result<Option<u64>, NeedMore> {
        while self.next < limit {
            // Long sequences of zero bytes occur after a power loss. Each offset in such a sequence
            // looks like a header of length 0, so the whole sequence is skipped.
            if window.view::<U32Le>(self.next)?.is_some_and(|len| len.get() == 0) {
                if self.zeros_end < self.next + LEN {
                    self.zeros_end = window.zeros_end(self.next);
                }
                // A header length of 0 is invalid, but a valid length may start in the last 3 zero
                // bytes.
                self.next = (self.zeros_end - 3).min(limit);
                continue;
            }
            self.find_anchor(window);
            if self.is_possible(window)? && starts(window, self.next)? {
                return Ok(Some(self.next));
            }
            self.next += 1;
        }
        Ok(None)
    }

    /// Returns whether a version line starts at offset `next`, or a header at `next` would be long
    /// enough to contain the next anchor (the bytes of the field `op`).
    fn is_possible(&self, window: Window<'_>) -> Result<bool, NeedMore> {
        if is_version_prefix(window, self.next)? {
            return Ok(true);
        }
        let Some(len) = window.view::<U32Le>(self.next)? else { return Ok(false) };
        let end = self.next + LEN + u64::from(len.get());
        let anchor = match self.anchor {
            None if window.eof => return Ok(false),
            anchor => anchor.unwrap_or(self.none_before),
        };
        Ok(len.get() <= MAX_HEADER && anchor + ANCHOR.len() as u64 <= end)
    }

    fn find_anchor(&mut self, window: Window<'_>) {
        if self.anchor.is_some_and(|anchor| anchor >= self.next) {
            return;
        }
        self.anchor = None;
        let from = self.none_before.max(self.next).max(window.base);
        // The window of a stream may not reach the anchor, so only the bytes in the window are
        // searched.
        let Some(bytes) = window.available_from(from).filter(|bytes| bytes.len() >= ANCHOR.len()) else {
            return;
        };
        match memmem::find(bytes, &ANCHOR) {
            Some(offset) => self.anchor = Some(from + offset as u64),
            // An anchor may start in the last bytes of the window and continue after the window.
            None => self.none_before = window.end() - (ANCHOR.len() as u64 - 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use rovelog_core::internal::wire::U64Le;

    use super::*;
    use crate::wire::{BagHeader, Field};

    const LINE: &[u8] = b"#ROSRECORD V1.2\n";
    const JUNK: &[u8] = &[0xff; 20];
    const OP: (&str, &[u8]) = ("op", &[2]);
    const OTHERS: [(&str, &[u8]); 5] =
        [("topic", b"/a"), ("md5", b"*"), ("type", b"a/B"), ("sec", &[1, 0, 0, 0]), ("nsec", &[0; 4])];

    fn record(fields: &[(&str, &[u8])], data: &[u8]) -> Vec<u8> {
        let fields: Vec<_> =
            fields.iter().map(|(name, value)| Field { name: name.as_bytes(), value }).collect();
        [wire::head_of(&fields, u32::try_from(data.len()).unwrap()), data.to_vec()].concat()
    }

    fn message(data: &[u8]) -> Vec<u8> {
        record(&[&[OP][..], &OTHERS].concat(), data)
    }

    /// Returns a message record in which the field `op` comes last in the header.
    fn message_of_last_op(data: &[u8]) -> Vec<u8> {
        record(&[&OTHERS[..], &[OP]].concat(), data)
    }

    fn index(count: u8, data: &[u8]) -> Vec<u8> {
        record(&[("op", &[4]), ("topic", b"/a"), ("ver", &[0; 4]), ("count", &[count, 0, 0, 0])], data)
    }

    #[test]
    fn a_header_may_be_cut_anywhere() {
        let head = Header::BagHeader(BagHeader { index_pos: &U64Le::new(7) }).to_head(0);
        let header = &head[4..head.len() - 4];
        let len = u32::try_from(header.len()).unwrap();
        for cut in 0..header.len() {
            assert!(is_beginning(&header[..cut], len), "{cut}");
        }
        assert!(Header::read(header).is_some());
        assert!(!is_beginning(b"\0\0\0\0op=", 30));
        assert!(!is_beginning(b"\x05\0\0\0\x01p=", 30));
        // Test the shortest field, and fields that extend beyond the end of the header.
        assert!(is_beginning(b"\x02\0\0\0x=", 30));
        assert!(!is_beginning(b"\x64\0\0\0op=", 20));
        assert!(is_beginning(b"\x0a\0\0\0field=1234\x16\0\0\0op=", 40));
        assert!(!is_beginning(b"\x0a\0\0\0field=1234\x17\0\0\0op=", 40));
    }

    #[test]
    fn an_invalid_start_is_not_a_cut_header() {
        let at_end = |rest: &[u8]| {
            let file = [&message(b"hi")[..], rest].concat();
            let at = file.len() - rest.len();
            probe(Window::whole(&file), at as u64).map(|found| matches!(found, Probe::Cut))
        };
        assert_eq!(at_end(b"\x40\0\0\0\x08\0\0\0top"), Ok(true));
        assert_eq!(at_end(b"\x40\0\0\0\x08\0\0\0\xff\xff\xff"), Ok(false));
    }

    #[test]
    fn the_end_of_the_file_or_a_record_follows_a_record() {
        let file = [message(b"hi"), message(b"hi")].concat();
        let window = Window::whole(&file);
        let behind = |at| follows(window, at).unwrap();
        assert!(behind(window.end() / 2) && behind(window.end()));
        assert!(!behind(window.end() + 1) && !behind(1));
    }

    #[test]
    fn a_record_is_recognized_by_its_header_and_its_successor() {
        let starts = |bytes: &[u8]| starts(Window::whole(bytes), 0).unwrap();
        let followed = |bytes: &[u8]| starts(&[bytes, &message(b"hi")].concat());
        assert!(followed(&message(b"hi")) && followed(&message_of_last_op(b"hi")) && followed(LINE));
        // A message without data is accepted at the end of the file.
        assert!(starts(&message(b"")));
        assert!(!starts(&[&message(b"hi")[..], JUNK].concat()));
        assert!(!starts(&message(b"hi")[..message(b"hi").len() - 1]));
        // The data of an index record must have exactly the size of its entries.
        assert!(followed(&index(2, &[0; 32])));
        assert!(!followed(&index(2, &[0; 16])) && !followed(&index(3, &[0; 32])));
        // Records with an undefined op (record type) or with many undefined fields are rejected,
        // because they may be random bytes.
        assert!(!followed(&record(&[("op", &[99]), ("topic", b"/a")], b"")));
        let with = |unknown: usize| {
            followed(&record(&[&vec![("x", &b"1"[..]); unknown], &[OP][..], &OTHERS].concat(), b""))
        };
        assert!(with(64) && !with(65));
        // Test impossible lengths, and the shortest field.
        assert!(!followed(b"\x01\0\0\0\x05\0\0\0topic="));
        assert!(followed(&record(&[&[("x", &b""[..]), OP][..], &OTHERS].concat(), b"")));
    }

    #[test]
    fn a_search_finds_the_first_record() {
        let find = |bytes: &[u8]| Search::from(0).run(Window::whole(bytes), bytes.len() as u64).unwrap();
        assert_eq!(find(&[message(b"hi"), message(b"hi")].concat()), Some(0));
        assert_eq!(find(&[message_of_last_op(b""), message(b"hi")].concat()), Some(0));
        // A version line is found although it has no field `op` and no record follows.
        assert_eq!(find(&[JUNK, LINE].concat()), Some(20));
        assert_eq!(find(JUNK), None);
    }

    /// The search is continued each time a stream provides one more byte.
    #[test]
    fn a_continued_search_finds_the_first_record() {
        for first in [message(&[1; 100]), message_of_last_op(&[1; 100])] {
            let file = [JUNK, &first, &message(b"hi")].concat();
            for len in 0..file.len() {
                let mut search = Search::from(5);
                let begin = Window { data: &file[..len], base: 0, eof: false };
                if let Ok(found) = search.run(begin, u64::MAX) {
                    assert_eq!(found, Some(20), "{len} bytes");
                }
                let rest = &file[usize::try_from(search.next).unwrap()..];
                let rest = Window { data: rest, base: search.next, eof: true };
                assert_eq!(search.run(rest, rest.end()), Ok(Some(20)), "{len} bytes before");
            }
        }
    }

    /// Bytes of a record are missing, so the length of this record reaches into the next records.
    #[test]
    fn the_first_record_of_a_crossing_chain_is_found() {
        let (a, b, behind) = (message(b"one"), message(b"two"), message(b"three"));
        let crossing_chain =
            |file: &[u8], end: usize| crossing_chain(Window::whole(file), 0, end as u64).unwrap();
        let file = [b"junk", &a[..], &b, &behind].concat();
        assert_eq!(crossing_chain(&file, 4 + a.len() + 10), Some(4));
        // Records that end exactly at the end of the outer record are part of its data.
        assert_eq!(crossing_chain(&file, 4 + a.len() + b.len()), None);
        let file = [b"junk", LINE, &a, &b].concat();
        assert_eq!(crossing_chain(&file, 4 + LINE.len() + 10), Some(4));
        let file = [b"junk", LINE, JUNK].concat();
        assert_eq!(crossing_chain(&file, 4 + 8), None);
    }
}
