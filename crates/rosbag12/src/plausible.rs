//! What stands at a place of a V1.2 bag, and where sound records begin again after damage (section 5).

use memchr::memmem;
use rovelog_core::window::{NeedMore, Window};

use crate::header::{HeaderRef, MAX_HEADER, is_beginning};
use crate::version;

/// Fields of a header that is found by searching.
const FIELDS_SEARCHED: usize = 64;

/// The bytes that every sound header holds: the field `op` with its length.
const ANCHOR: [u8; 7] = *b"\x04\0\0\0op=";

/// A sound record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sound<'a> {
    pub(crate) header: HeaderRef<'a>,
    /// Where its data begins and ends.
    pub(crate) data_at: u64,
    pub(crate) end: u64,
}

/// What stands at a place.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Probe<'a> {
    Good(Sound<'a>),
    /// A record that the file cuts.
    Cut,
    /// No record; where it would end, if its lengths were sound.
    Bad(Option<u64>),
}

/// The header at `at`, where data of `.1` bytes follows.
enum Head<'a> {
    Good(HeaderRef<'a>, u64, u32),
    Cut,
    Bad(Option<u64>),
}

fn head(window: Window<'_>, at: u64) -> Result<Head<'_>, NeedMore> {
    let Some(len) = window.u32(at)? else { return Ok(Head::Cut) };
    if !(8..=MAX_HEADER).contains(&len) {
        return Ok(Head::Bad(None));
    }
    let end = at + 4 + u64::from(len);
    let Some(header) = window.slice(at + 4, end)? else {
        let rest = window.upto(at + 4, u64::from(len))?;
        return Ok(if is_beginning(rest, len) { Head::Cut } else { Head::Bad(None) });
    };
    let parsed = HeaderRef::parse(header);
    match (parsed, window.u32(end)?) {
        (Some(header), Some(data)) => Ok(Head::Good(header, end + 4, data)),
        (Some(_), None) => Ok(Head::Cut),
        (None, Some(data)) => Ok(Head::Bad(Some(end + 4 + u64::from(data)))),
        (None, None) => Ok(Head::Bad(None)),
    }
}

/// Looks at the record at `at`.
pub(crate) fn probe(window: Window<'_>, at: u64) -> Result<Probe<'_>, NeedMore> {
    Ok(match head(window, at)? {
        Head::Good(header, data_at, len) => {
            let end = data_at + u64::from(len);
            match window.slice(at, end)? {
                Some(_) => Probe::Good(Sound { header, data_at, end }),
                None => Probe::Cut,
            }
        }
        Head::Cut => Probe::Cut,
        Head::Bad(claimed) => Probe::Bad(claimed),
    })
}

/// Whether what stands at `at` may follow a sound record: the end, a header, or another section.
pub(crate) fn follows(window: Window<'_>, at: u64) -> Result<bool, NeedMore> {
    if window.eof && at >= window.end() {
        return Ok(at == window.end());
    }
    Ok(!matches!(head(window, at)?, Head::Bad(_)) || version::at(window, at)?.is_some())
}

/// Whether sound records begin at `at`, judged strictly enough to go on there after damage.
fn begins(window: Window<'_>, at: u64) -> Result<bool, NeedMore> {
    let Some(len) = window.u32(at)? else { return Ok(false) };
    if len == u32::from_le_bytes(*version::PREFIX) {
        return Ok(version::at(window, at)?.is_some());
    }
    // The cheap tests, which nearly all bytes fail.
    if !(9..=MAX_HEADER).contains(&len) || (window.eof && at + 8 + u64::from(len) > window.end()) {
        return Ok(false);
    }
    let Some(field) = window.u32(at + 4)? else { return Ok(false) };
    if field < 2 || field > len - 4 {
        return Ok(false);
    }
    let name = window.upto(at + 8, u64::from(field.min(64)))?;
    let end = name.iter().position(|byte| *byte == b'=');
    let printable = |name: &[u8]| !name.is_empty() && name.iter().all(|b| (0x20..=0x7e).contains(b));
    if !end.is_some_and(|end| printable(&name[..end])) {
        return Ok(false);
    }
    let Head::Good(header, data_at, data) = head(window, at)? else { return Ok(false) };
    let known = header.is_known() && header.others as usize <= FIELDS_SEARCHED;
    let end = data_at + u64::from(data);
    if !known || (window.eof && end > window.end()) {
        return Ok(false);
    }
    if header.op == crate::wire::op::INDEX && u64::from(header.count.unwrap_or(0)) * 16 != u64::from(data) {
        return Ok(false);
    }
    follows(window, end)
}

/// Where the records of a bag go on inside the data of a record at `from..end`, part of which is lost: the first place
/// from which valid records lead beyond `end`. A message may hold whole records too, but those end where it ends.
pub(crate) fn crossing(window: Window<'_>, from: u64, end: u64) -> Result<Option<u64>, NeedMore> {
    let mut search = Search::from(from);
    while let Some(found) = search.run(window, end)? {
        let mut at = found;
        loop {
            let behind = match version::at(window, at)? {
                Some(line) => at + line.len,
                None => match probe(window, at)? {
                    Probe::Good(sound) => sound.end,
                    Probe::Cut | Probe::Bad(_) => break,
                },
            };
            if behind > end {
                if follows(window, behind)? {
                    return Ok(Some(found));
                }
                break;
            }
            // What begins inside of the last record of this chain may still lead further.
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

/// A search for the next sound record, which can be continued when more of the file is there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Search {
    /// The next place to look at.
    pub(crate) next: u64,
    /// The first anchor at or behind `next`, where one is known.
    anchor: Option<u64>,
    /// Where none is known: none begins before this place.
    none_before: u64,
}

impl Search {
    pub(crate) fn from(at: u64) -> Self {
        Self { next: at, anchor: None, none_before: at }
    }

    /// The next place before `limit` where sound records begin; `None` where there is none.
    pub(crate) fn run(&mut self, window: Window<'_>, limit: u64) -> Result<Option<u64>, NeedMore> {
        while self.next < limit {
            if window.u32(self.next)? == Some(0) {
                // A header of no bytes is none. The next one has a length in its first four.
                self.next = (window.zeros_end(self.next) - 3).min(limit);
                continue;
            }
            self.find_anchor(window);
            if self.is_possible(window)? && begins(window, self.next)? {
                return Ok(Some(self.next));
            }
            self.next += 1;
        }
        Ok(None)
    }

    /// Whether a version line stands here, or a header that would be long enough to hold the next anchor.
    fn is_possible(&self, window: Window<'_>) -> Result<bool, NeedMore> {
        let Some(len) = window.u32(self.next)? else { return Ok(false) };
        if len == u32::from_le_bytes(*version::PREFIX) {
            return Ok(true);
        }
        let end = self.next + 4 + u64::from(len);
        let anchor = match self.anchor {
            None if window.eof => return Ok(false),
            anchor => anchor.unwrap_or(self.none_before),
        };
        Ok(len <= MAX_HEADER && anchor + ANCHOR.len() as u64 <= end)
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
