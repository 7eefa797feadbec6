//! What is at a place of a V1.2 bag, and where valid records begin again after damage (section 5).

use memchr::memmem;
use rovelog_core::scan::{NeedMore, Window};
use rovelog_core::wire::U32Le;
use zerocopy::FromBytes;

use crate::version;
use crate::wire::{self, Fields, Header, IndexEntry, MAX_FIELDS, RecordStart};

/// Header bytes that are believed: no recorder comes near.
pub(crate) const MAX_HEADER: u32 = 16 << 20;

/// Fields of a header that is found by searching.
const FIELDS_SEARCHED: u32 = 64;

/// The bytes that every valid header holds: the field `op` with its length.
const ANCHOR: [u8; 7] = *b"\x04\0\0\0op=";

/// A valid record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found<'a> {
    pub(crate) header: Header<'a>,
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
const LEN: u64 = size_of::<U32Le>() as u64;

fn head(window: Window<'_>, at: u64) -> Result<Head<'_>, NeedMore> {
    let Some(len) = window.view::<U32Le>(at)? else { return Ok(Head::Cut) };
    let len = len.get();
    if !(8..=MAX_HEADER).contains(&len) {
        return Ok(Head::Bad(None));
    }
    let end = at + LEN + u64::from(len);
    let Some(header) = window.slice(at + LEN, end)? else {
        let rest = window.upto(at + LEN, u64::from(len))?;
        return Ok(if is_beginning(rest, len) { Head::Cut } else { Head::Bad(None) });
    };
    let parsed = Fields::read(header).and_then(|fields| Some((Header::of(&fields)?, fields)));
    let data_len = window.view::<U32Le>(end)?;
    let data = data_len.map(|len| (end + LEN, end + LEN + u64::from(len.get())));
    Ok(match (parsed, data) {
        (Some((header, Fields { repeated, unknown, .. })), Some((data_at, end))) => {
            Head::Good(Found { header, repeated, unknown, data_at, end })
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
        if field < 2 || field > len.saturating_sub(4) {
            return false;
        }
        let Some((whole, rest)) = text.split_at_checked(field as usize) else {
            return text.iter().take(64).take_while(|b| **b != b'=').all(|b| wire::is_name(&[*b]));
        };
        if !whole.iter().position(|byte| *byte == b'=').is_some_and(|end| wire::is_name(&whole[..end])) {
            return false;
        }
        (bytes, len) = (rest, len - 4 - field);
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

/// Returns whether valid records begin at `at`, validated strictly enough to go on there after
/// damage.
fn starts(window: Window<'_>, at: u64) -> Result<bool, NeedMore> {
    if is_version_prefix(window, at)? {
        return Ok(version::at(window, at)?.is_some());
    }
    let Some(start) = window.view::<RecordStart>(at)? else { return Ok(false) };
    let (len, field) = (start.header_len.get(), start.field_len.get());
    // The cheap tests, which nearly all bytes fail.
    if !(9..=MAX_HEADER).contains(&len) || (window.eof && at + 8 + u64::from(len) > window.end()) {
        return Ok(false);
    }
    if field < 2 || field > len - 4 {
        return Ok(false);
    }
    let name = window.upto(at + size_of::<RecordStart>() as u64, u64::from(field.min(64)))?;
    let end = name.iter().position(|byte| *byte == b'=');
    if !end.is_some_and(|end| wire::is_name(&name[..end])) {
        return Ok(false);
    }
    let Head::Good(found) = head(window, at)? else { return Ok(false) };
    let may_be = match found.header {
        Header::Unknown(_) => false,
        Header::Index(index) => {
            u64::from(index.count.get()) * size_of::<IndexEntry>() as u64 == found.end - found.data_at
        }
        _ => true,
    };
    if !may_be || found.unknown > FIELDS_SEARCHED || (window.eof && found.end > window.end()) {
        return Ok(false);
    }
    follows(window, found.end)
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
}

impl Search {
    pub(crate) fn from(at: u64) -> Self {
        Self { next: at, anchor: None, none_before: at }
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
                // A header of no bytes is none. The next one has a length in its first four.
                self.next = (window.zeros_end(self.next) - 3).min(limit);
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
        let bytes = usize::try_from(from - window.base).ok().and_then(|from| window.data.get(from..));
        let Some(bytes) = bytes.filter(|bytes| bytes.len() >= ANCHOR.len()) else { return };
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
    use crate::wire::BagHeader;

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
    }
}
