//! What is at a place of a bag of V2.0, of the file and of an unpacked chunk alike.

use rovelog_core::scan::{NeedMore, Window};
use rovelog_core::wire::U32Le;

use super::wire::{Chunk, Header, IndexEntry};
use crate::headers::Fields;
use crate::validate::{LEN, MAX_HEADER, MORE_THAN_OP, SEEN, is_beginning, may_start};
use crate::version::{self, Version};
use crate::wire::list_len;

/// Bytes of a header that is found by searching: no recorder comes near.
const SEARCHED: u32 = 64 << 10;

/// A record up to its data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found<'a> {
    pub(super) header: Header<'a>,
    /// The op that is meant, if the one that is stored is damaged.
    pub(super) meant: Option<u8>,
    /// Fields of its header that are there a second time.
    pub(super) repeated: u32,
    pub(super) data_at: u64,
    pub(super) data_len: u32,
}

impl Found<'_> {
    /// Returns where it ends by its lengths.
    pub(super) fn end(&self) -> u64 {
        self.data_at + u64::from(self.data_len)
    }

    /// Returns whether such records are between chunks only.
    pub(super) fn is_top(&self) -> bool {
        matches!(
            self.header,
            Header::BagHeader(_) | Header::Chunk(_) | Header::IndexData(_) | Header::ChunkInfo(_)
        )
    }
}

/// What is at a place.
#[derive(Clone, Copy, Debug)]
pub(super) enum Probe<'a> {
    /// A record; its data need not be at hand.
    Good(Found<'a>),
    /// The beginning of one.
    Cut,
    Bad,
}

/// Looks at the head of the record at `at`.
pub(super) fn probe(window: Window<'_>, at: u64) -> Result<Probe<'_>, NeedMore> {
    let Some(len) = window.view::<U32Le>(at)? else {
        let rest = window.upto(at, LEN)?;
        return Ok(if rest.is_empty() { Probe::Bad } else { Probe::Cut });
    };
    let len = len.get();
    if !(MORE_THAN_OP..=MAX_HEADER).contains(&len) {
        return Ok(Probe::Bad);
    }
    let end = at + LEN + u64::from(len);
    // A length that is damaged should not ask for much.
    let start = window.upto(at + LEN, len.min(SEEN).into())?;
    if !is_beginning(start, len) {
        return Ok(Probe::Bad);
    }
    let Some(header) = window.slice(at + LEN, end)? else {
        let rest = window.upto(at + LEN, u64::from(len))?;
        return Ok(if is_beginning(rest, len) { Probe::Cut } else { Probe::Bad });
    };
    let Some(fields) = Fields::read(header) else { return Ok(Probe::Bad) };
    let Some((header, meant)) = Header::meant(&fields) else { return Ok(Probe::Bad) };
    let Some(data_len) = window.view::<U32Le>(end)? else { return Ok(Probe::Cut) };
    let repeated = fields.repeated;
    Ok(Probe::Good(Found { header, meant, repeated, data_at: end + LEN, data_len: data_len.get() }))
}

/// Returns whether the window ends at `at`, or another bag starts there.
fn ends(window: Window<'_>, at: u64) -> Result<bool, NeedMore> {
    if !window.has(at)? {
        return Ok(at == window.end());
    }
    is_line(window, at)
}

/// Returns whether the version line of a bag of V2.0 is at `at`.
pub(super) fn is_line(window: Window<'_>, at: u64) -> Result<bool, NeedMore> {
    if window.upto(at, version::PREFIX.len() as u64)? != version::PREFIX {
        return Ok(false);
    }
    let head = window.upto(at, version::LINE_MAX as u64)?;
    Ok(version::parse(head).is_ok_and(|line| line.version == Version::V2_0))
}

/// Returns the offset of the first record in `head`, the start of a file without a version line: a bag
/// header or a chunk, or what follows a version line that is not at the start.
pub(crate) fn first_record(head: &[u8]) -> Option<u64> {
    let window = Window::whole(head);
    (0..head.len() as u64).find_map(|at| {
        if is_line(window, at) == Ok(true) {
            let line = version::parse(&head[usize::try_from(at).ok()?..]).ok()?;
            return Some(at + line.len);
        }
        if !matches!(may_start(window, at, SEARCHED), Ok(true)) {
            return None;
        }
        let Ok(Probe::Good(found)) = probe(window, at) else { return None };
        matches!(found.header, Header::BagHeader(_) | Header::Chunk(_)).then_some(at)
    })
}

/// Returns whether what is at `at` may follow a record of the file that is no message: such a
/// record, its beginning, or the end.
pub(super) fn follows_top(window: Window<'_>, at: u64) -> Result<bool, NeedMore> {
    Ok(ends(window, at)?
        || match probe(window, at)? {
            Probe::Good(found) => !matches!(found.header, Header::Message(_)),
            Probe::Cut => true,
            Probe::Bad => false,
        })
}

/// Returns whether what is at `at` may follow any record: another one, its beginning, or the end.
pub(super) fn follows(window: Window<'_>, at: u64) -> Result<bool, NeedMore> {
    Ok(ends(window, at)? || !matches!(probe(window, at)?, Probe::Bad))
}

/// Returns whether a record starts at `at`, checked strictly enough to go on there after damage. Of
/// a chunk the header is enough.
pub(super) fn starts(window: Window<'_>, at: u64) -> Result<bool, NeedMore> {
    if is_line(window, at)? {
        return Ok(true);
    }
    if !may_start(window, at, SEARCHED)? {
        return Ok(false);
    }
    let Probe::Good(found) = probe(window, at)? else { return Ok(false) };
    match found.header {
        Header::Unknown(_) => Ok(false),
        Header::Chunk(Chunk { .. }) => Ok(true),
        Header::IndexData(index) => {
            let whole = found.data_at + list_len::<IndexEntry>(index.count.get());
            Ok(follows_top(window, whole)? || follows_top(window, found.end())?)
        }
        _ if window.eof && found.end() > window.end() => Ok(false),
        _ => follows(window, found.end()),
    }
}
