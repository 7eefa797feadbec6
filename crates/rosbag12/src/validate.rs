//! What is at a place of a V1.2 bag, and where valid records begin again after damage (section 5).

use memchr::memmem;
use rovelog_core::scan::{NeedMore, Window};
use rovelog_core::wire::U32Le;
use zerocopy::FromBytes;

use crate::headers::Fields;
use crate::version;
use crate::wire::{self, Header, IndexEntry, MAX_FIELDS, RecordStart};

/// Header bytes that are believed: no recorder comes near.
pub(crate) const MAX_HEADER: u32 = 16 << 20;

/// Bytes that are looked at for the name of a field: a longer one is not a field's.
pub(crate) const SEEN: u32 = 64;

/// Fields of a header that is found by searching.
const FIELDS_SEARCHED: u32 = 64;

/// The bytes that every valid header holds: the field `op` with its length.
const ANCHOR: [u8; 7] = *b"\x04\0\0\0op=";

/// A valid record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found<'a> {
    pub(crate) header: Header<'a>,
    /// The op that is meant, if the one that is stored is damaged.
    pub(crate) meant: Option<u8>,
    /// Fields of its header that are there a second time, and those without a meaning.
    pub(crate) repeated: u32,
    unknown: u32,
    /// Where its data starts and ends.
    pub(crate) data_at: u64,
    pub(crate) end: u64,
}

/// What is at a place.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Probe<'a> {
    Good(Found<'a>),
    /// A record that the file cuts.
    Cut,
    /// No record; where it would end, if its lengths were valid.
    Bad(Option<u64>),
}

/// What is at a place, up to the data.
enum Head<'a> {
    /// The data need not be at hand.
    Good(Found<'a>),
    Cut,
    Bad(Option<u64>),
}

/// Bytes of the lengths in front of a header, of its fields and of the data.
pub(crate) const LEN: u64 = FIELD_LEN as u64;

/// The same, for what has 32 bits itself.
const FIELD_LEN: u32 = u32::BITS / 8;

/// The shortest header: its op alone, whose length the anchor starts with.
const OP_ONLY: u32 = FIELD_LEN + ANCHOR[0] as u32;

/// The shortest header that has more than an op.
pub(crate) const MORE_THAN_OP: u32 = OP_ONLY + 1;

/// The shortest field: a name of one character, and `=`.
const MIN_FIELD: u32 = 2;

fn head(window: Window<'_>, at: u64) -> Result<Head<'_>, NeedMore> {
    let Some(len) = window.view::<U32Le>(at)? else { return Ok(Head::Cut) };
    let len = len.get();
    if !(OP_ONLY..=MAX_HEADER).contains(&len) {
        return Ok(Head::Bad(None));
    }
    let end = at + LEN + u64::from(len);
    let Some(header) = window.slice(at + LEN, end)? else {
        let rest = window.upto(at + LEN, u64::from(len))?;
        return Ok(if is_beginning(rest, len) { Head::Cut } else { Head::Bad(None) });
    };
    let parsed = Fields::read(header).and_then(|fields| Some((Header::meant(&fields)?, fields)));
    let data_len = window.view::<U32Le>(end)?;
    let data = data_len.map(|len| (end + LEN, end + LEN + u64::from(len.get())));
    Ok(match (parsed, data) {
        (Some(((header, meant), Fields { repeated, unknown, .. })), Some((data_at, end))) => {
            Head::Good(Found { header, meant, repeated, unknown, data_at, end })
        }
        (Some(_), None) => Head::Cut,
        (None, data) => Head::Bad(data.map(|(_, end)| end)),
    })
}

/// Returns whether `bytes`, which the file cuts, can be the beginning of a header of `len` bytes.
pub(crate) fn is_beginning(mut bytes: &[u8], mut len: u32) -> bool {
    for _ in 0..MAX_FIELDS {
        let Ok((field, text)) = U32Le::ref_from_prefix(bytes) else { return true };
        let field = field.get();
        if field < MIN_FIELD || field > len.saturating_sub(FIELD_LEN) {
            return false;
        }
        let Some((whole, rest)) = text.split_at_checked(field as usize) else {
            return text.iter().take(SEEN as usize).take_while(|b| **b != b'=').all(|b| wire::is_name(&[*b]));
        };
        if !whole.iter().position(|byte| *byte == b'=').is_some_and(|end| wire::is_name(&whole[..end])) {
            return false;
        }
        (bytes, len) = (rest, len - FIELD_LEN - field);
    }
    false
}

/// Looks at the record at `at`.
pub(crate) fn probe(window: Window<'_>, at: u64) -> Result<Probe<'_>, NeedMore> {
    Ok(match head(window, at)? {
        Head::Good(found) => match window.slice(at, found.end)? {
            Some(_) => Probe::Good(found),
            None => Probe::Cut,
        },
        Head::Cut => Probe::Cut,
        Head::Bad(claimed) => Probe::Bad(claimed),
    })
}

/// Returns whether what is at `at` may follow a valid record: the end, a header, or another
/// section.
pub(crate) fn follows(window: Window<'_>, at: u64) -> Result<bool, NeedMore> {
    if window.eof && at >= window.end() {
        return Ok(at == window.end());
    }
    Ok(!matches!(head(window, at)?, Head::Bad(_)) || version::at(window, at)?.is_some())
}

/// Returns whether a version line may begin at `at`.
fn is_version_prefix(window: Window<'_>, at: u64) -> Result<bool, NeedMore> {
    Ok(window.slice(at, at + version::PREFIX.len() as u64)? == Some(version::PREFIX))
}

/// Returns whether the bytes at `at` look like a record whose header has more than an op, and at
/// most `longest` bytes: cheap tests, which nearly all bytes fail.
#[inline]
pub(crate) fn may_start(window: Window<'_>, at: u64, longest: u32) -> Result<bool, NeedMore> {
    let Some(start) = window.view::<RecordStart>(at)? else { return Ok(false) };
    let (len, field) = (start.header_len.get(), start.field_len.get());
    if !(MORE_THAN_OP..=longest).contains(&len) || field < MIN_FIELD || field > len - FIELD_LEN {
        return Ok(false);
    }
    let name = window.upto(at + size_of::<RecordStart>() as u64, field.min(SEEN).into())?;
    let end = name.iter().position(|byte| *byte == b'=');
    Ok(end.is_some_and(|end| wire::is_name(&name[..end])))
}

/// Returns whether valid records begin at `at`, validated strictly enough to go on there after
/// damage.
fn starts(window: Window<'_>, at: u64) -> Result<bool, NeedMore> {
    if is_version_prefix(window, at)? {
        return Ok(version::at(window, at)?.is_some());
    }
    if !may_start(window, at, MAX_HEADER)? {
        return Ok(false);
    }
    let Head::Good(found) = head(window, at)? else { return Ok(false) };
    let may_be = match found.header {
        Header::Unknown(_) => false,
        Header::Index(index) => wire::list_len::<IndexEntry>(index.count.get()) == found.end - found.data_at,
        _ => true,
    };
    Ok(may_be && found.unknown <= FIELDS_SEARCHED && follows(window, found.end)?)
}

/// No message of a bag is shorter.
const SHORTEST: u64 = 32;

/// Returns whether the places that an index names for a topic, in its order, are damaged: two in a
/// row are nearer to each other than any message is long, or both are outside of their chunk or bag.
pub(crate) fn are_damaged(places: impl Iterator<Item = u64>, is_outside: impl Fn(u64) -> bool) -> bool {
    let mut before = None;
    let mut two = places.filter_map(|place| Some((before.replace(place)?, place)));
    two.any(|(one, other)| is_outside(one) && is_outside(other) || one.abs_diff(other) < SHORTEST)
}

/// Returns where the records of a bag go on inside the data of a record at `from..end`, part of
/// which is lost: the first place from which valid records lead beyond `end`. A message may hold
/// whole records too, but those end where it ends.
pub(crate) fn crossing(window: Window<'_>, from: u64, end: u64) -> Result<Option<u64>, NeedMore> {
    let mut search = Search::from(from);
    while let Some(found) = search.run(window, end)? {
        let mut at = found;
        loop {
            let behind = match version::at(window, at)? {
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
            // What starts inside of the last record of this chain may still lead further.
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

/// A search for the next valid record, which can be continued when more of the file is there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Search {
    /// The next place to look at.
    pub(crate) next: u64,
    /// The first anchor at or behind `next`, where one is known.
    anchor: Option<u64>,
    /// Where none is known: none starts before this place.
    none_before: u64,
    /// Where the run of zeros ends that was passed last: searches with limits inside of it must not
    /// each look for its end.
    zeros_end: u64,
}

impl Search {
    pub(crate) fn from(at: u64) -> Self {
        Self { next: at, anchor: None, none_before: at, zeros_end: 0 }
    }

    /// Returns the next place before `limit` where valid records begin; `None` where there is none.
    pub(crate) fn run(&mut self, window: Window<'_>, limit: u64) -> Result<Option<u64>, NeedMore> {
        self.run_to(window, limit, starts)
    }

    /// Returns the next place before `limit` that `starts` takes; `None` where there is none.
    pub(crate) fn run_to<'a>(
        &mut self,
        window: Window<'a>,
        limit: u64,
        starts: impl Fn(Window<'a>, u64) -> Result<bool, NeedMore>,
    ) -> Result<Option<u64>, NeedMore> {
        while self.next < limit {
            if window.view::<U32Le>(self.next)?.is_some_and(|len| len.get() == 0) {
                if self.zeros_end < self.next + LEN {
                    self.zeros_end = window.zeros_end(self.next);
                }
                // A header of no bytes is none. The next one has a length in its first four.
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

    /// Returns whether a version line is here, or a header that would be long enough to hold the
    /// next anchor.
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
        let Some(bytes) = window.at_hand(from).filter(|bytes| bytes.len() >= ANCHOR.len()) else { return };
        match memmem::find(bytes, &ANCHOR) {
            Some(offset) => self.anchor = Some(from + offset as u64),
            None => self.none_before = window.end() - (ANCHOR.len() as u64 - 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use rovelog_core::wire::U64Le;

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

    /// The same, with the op as the last field of the header.
    fn message_of_last_op(data: &[u8]) -> Vec<u8> {
        record(&[&OTHERS[..], &[OP]].concat(), data)
    }

    fn index(count: u8, data: &[u8]) -> Vec<u8> {
        record(&[("op", &[4]), ("topic", b"/a"), ("ver", &[0; 4]), ("count", &[count, 0, 0, 0])], data)
    }

    #[test]
    fn a_beginning_may_be_cut_anywhere() {
        let head = Header::BagHeader(BagHeader { index_pos: &U64Le::new(7) }).to_head(0);
        let header = &head[4..head.len() - 4];
        let len = u32::try_from(header.len()).unwrap();
        for cut in 0..header.len() {
            assert!(is_beginning(&header[..cut], len), "{cut}");
        }
        assert!(Header::read(header).is_some());
        assert!(!is_beginning(b"\0\0\0\0op=", 30));
        assert!(!is_beginning(b"\x05\0\0\0\x01p=", 30));
        // The shortest field, and those that pass the end of the header.
        assert!(is_beginning(b"\x02\0\0\0x=", 30));
        assert!(!is_beginning(b"\x64\0\0\0op=", 20));
        assert!(is_beginning(b"\x0a\0\0\0field=1234\x16\0\0\0op=", 40));
        assert!(!is_beginning(b"\x0a\0\0\0field=1234\x17\0\0\0op=", 40));
    }

    #[test]
    fn only_a_header_that_begins_well_is_cut() {
        let at_end = |rest: &[u8]| {
            let file = [&message(b"hi")[..], rest].concat();
            let at = file.len() - rest.len();
            probe(Window::whole(&file), at as u64).map(|found| matches!(found, Probe::Cut))
        };
        assert_eq!(at_end(b"\x40\0\0\0\x08\0\0\0top"), Ok(true));
        assert_eq!(at_end(b"\x40\0\0\0\x08\0\0\0\xff\xff\xff"), Ok(false));
    }

    #[test]
    fn a_record_is_followed_by_the_end_of_the_file_or_by_another_one() {
        let file = [message(b"hi"), message(b"hi")].concat();
        let window = Window::whole(&file);
        let behind = |at| follows(window, at).unwrap();
        assert!(behind(window.end() / 2) && behind(window.end()));
        assert!(!behind(window.end() + 1) && !behind(1));
    }

    #[test]
    fn a_record_is_recognised_by_its_header_and_what_follows() {
        let starts = |bytes: &[u8]| starts(Window::whole(bytes), 0).unwrap();
        let followed = |bytes: &[u8]| starts(&[bytes, &message(b"hi")].concat());
        assert!(followed(&message(b"hi")) && followed(&message_of_last_op(b"hi")) && followed(LINE));
        // At the end of the file, without data.
        assert!(starts(&message(b"")));
        assert!(!starts(&[&message(b"hi")[..], JUNK].concat()));
        assert!(!starts(&message(b"hi")[..message(b"hi").len() - 1]));
        // The length of an index is that of its entries.
        assert!(followed(&index(2, &[0; 32])));
        assert!(!followed(&index(2, &[0; 16])) && !followed(&index(3, &[0; 32])));
        // Records of an unknown op, and those of many unknown fields, may be anything.
        assert!(!followed(&record(&[("op", &[99]), ("topic", b"/a")], b"")));
        let with = |unknown: usize| {
            followed(&record(&[&vec![("x", &b"1"[..]); unknown], &[OP][..], &OTHERS].concat(), b""))
        };
        assert!(with(64) && !with(65));
        // Lengths that a header cannot have, and the shortest field.
        assert!(!followed(b"\x01\0\0\0\x05\0\0\0topic="));
        assert!(followed(&record(&[&[("x", &b""[..]), OP][..], &OTHERS].concat(), b"")));
    }

    #[test]
    fn a_search_finds_the_first_record() {
        let find = |bytes: &[u8]| Search::from(0).run(Window::whole(bytes), bytes.len() as u64).unwrap();
        assert_eq!(find(&[message(b"hi"), message(b"hi")].concat()), Some(0));
        assert_eq!(find(&[message_of_last_op(b""), message(b"hi")].concat()), Some(0));
        // A version line has no op, and none needs to follow it.
        assert_eq!(find(&[JUNK, LINE].concat()), Some(20));
        assert_eq!(find(JUNK), None);
    }

    /// A pipe shows the file bit by bit.
    #[test]
    fn a_search_that_is_continued_finds_the_first_record() {
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

    /// Bytes of a record are lost, so its length reaches into what follows: the data are searched.
    #[test]
    fn the_first_of_the_records_that_lead_out_of_a_record_is_found() {
        let (a, b, behind) = (message(b"one"), message(b"two"), message(b"three"));
        let crossing = |file: &[u8], end: usize| crossing(Window::whole(file), 0, end as u64).unwrap();
        let file = [b"junk", &a[..], &b, &behind].concat();
        assert_eq!(crossing(&file, 4 + a.len() + 10), Some(4));
        // Those that end with the record are part of its data.
        assert_eq!(crossing(&file, 4 + a.len() + b.len()), None);
        let file = [b"junk", LINE, &a, &b].concat();
        assert_eq!(crossing(&file, 4 + LINE.len() + 10), Some(4));
        let file = [b"junk", LINE, JUNK].concat();
        assert_eq!(crossing(&file, 4 + 8), None);
    }
}
