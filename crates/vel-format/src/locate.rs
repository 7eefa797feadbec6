//! Where the messages of a log begin: behind the index, where the index says, or where they are found.
//! Sections 3 and 5 of docs/formats/vel.md.

use rovelog_core::scan::{NeedMore, Window};
use rovelog_core::wire::I64Le;
use zerocopy::FromBytes as _;

use crate::declared::Types;
use crate::error::VelError;
use crate::message::SizeRule;
use crate::validate::{Evidence, Judge, Seen, size_rule};
use crate::wire::{FileHeader, HEADER_LEN, MAGIC, TERMINATOR};

/// Entries beyond this are no index: 48 days, one entry a second.
pub(crate) const MAX_ENTRIES: u64 = 1 << 22;

/// How far behind the header the first message is looked for.
const REACH: u64 = 40 << 20;

/// Entries that are tried as the first message.
const TRIED: u64 = 4096;

/// Where the index ends: its count, and the file's length, allow no other.
pub(crate) const INDEX_AT: u64 = size_of::<FileHeader>() as u64 + 4;

/// How the first message was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Right behind the index.
    BehindIndex,
    /// An index entry names it.
    ByEntry,
    /// By looking at every byte.
    ByScan,
}

/// The start of a log.
#[derive(Clone, Debug)]
pub(crate) struct Located {
    pub(crate) header: FileHeader,
    /// Entries that the index claims.
    pub(crate) claimed: u32,
    /// The entries that are there; none where the claim cannot be true.
    pub(crate) entries: Vec<i64>,
    /// Where the index ends, and what is not index begins.
    pub(crate) index_end: u64,
    pub(crate) first: u64,
    pub(crate) found: Found,
    pub(crate) evidence: Evidence,
    /// Whether the magic is right.
    pub(crate) magic: bool,
}

/// More bytes are needed, or the log is refused.
#[derive(Debug)]
pub(crate) enum Begin {
    Need(NeedMore),
    Refused(VelError),
}

impl From<NeedMore> for Begin {
    fn from(need: NeedMore) -> Self {
        Self::Need(need)
    }
}

/// Finds the start of the log in `window`, which begins with the file.
pub(crate) fn locate(window: Window<'_>, types: &Types, salvage: bool) -> Result<Located, Begin> {
    let cut = || Begin::Refused(VelError::HeaderCut { len: window.end() });
    // An empty file, or one that is cut inside the magic, is said to be cut, another file to be another.
    let Some(header) = window.view::<FileHeader>(0)? else {
        let is_start = MAGIC.starts_with(&window.data[..window.data.len().min(4)]);
        return Err(if is_start { cut() } else { Begin::Refused(VelError::NotVel) });
    };
    let magic = header.magic == MAGIC;
    if !magic && !salvage {
        return Err(Begin::Refused(VelError::NotVel));
    }
    let Some(claimed) = window.u32(size_of::<FileHeader>() as u64)? else { return Err(cut()) };
    let search = Search { window, types, seen: Seen::new() };
    let (first, found, sane) = search.first(claimed)?.ok_or_else(cut)?;
    let evidence = size_rule(window, first, types, &search.seen)?;
    let entries = if sane { search.positions(claimed.into())? } else { &[] };
    let entries = entries.iter().map(|position| position.get()).collect();
    let claimed_end = INDEX_AT + 8 * u64::from(claimed);
    // Entries that the count leaves out are index all the same where an entry names the first message;
    // where nothing does, the bytes before it are damage.
    let index_end = match found {
        Found::ByScan if sane && claimed_end < first => claimed_end,
        _ => first,
    };
    Ok(Located { header: *header, claimed, entries, index_end, first, found, evidence, magic })
}

struct Search<'w> {
    window: Window<'w>,
    types: &'w Types,
    seen: Seen,
}

impl Search<'_> {
    fn judges(&self) -> impl Iterator<Item = Judge<'_>> {
        let judge = |rule| Judge { window: self.window, rule, types: self.types, seen: &self.seen };
        SizeRule::ALL.into_iter().map(judge)
    }

    /// Whether sound messages begin at `at` under any size rule.
    fn begins(&self, at: u64) -> Result<bool, NeedMore> {
        for judge in self.judges() {
            if judge.begins(at)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The first message, how it was found, and whether the index may be what it claims to be.
    fn first(&self, claimed: u32) -> Result<Option<(u64, Found, bool)>, NeedMore> {
        let behind = INDEX_AT + 8 * u64::from(claimed);
        let sane = u64::from(claimed) <= MAX_ENTRIES && self.window.slice(INDEX_AT, behind)?.is_some();
        if sane {
            let ends = !self.window.has(behind)? || self.window.u32(behind)? == Some(TERMINATOR);
            if ends || self.begins(behind)? {
                return Ok(Some((behind, Found::BehindIndex, sane)));
            }
        }
        let named = self.named(u64::from(claimed).min(TRIED))?;
        let limit = named.unwrap_or(REACH);
        let mut earliest: Option<u64> = None;
        for judge in self.judges() {
            let mut next = INDEX_AT;
            let found = judge.scan(&mut next, earliest.unwrap_or(limit))?;
            earliest = found.or(earliest);
        }
        Ok(match (earliest, named) {
            (Some(at), _) => Some((at, Found::ByScan, sane)),
            (None, Some(at)) => Some((at, Found::ByEntry, sane)),
            // A log of one message that is cut, or of nothing but damage.
            (None, None) if sane => Some((behind, Found::BehindIndex, sane)),
            (None, None) => None,
        })
    }

    /// The smallest entry at which sound messages begin.
    fn named(&self, tried: u64) -> Result<Option<u64>, NeedMore> {
        let places = self.positions(tried)?.iter().filter_map(|place| u64::try_from(place.get()).ok());
        let mut places: Vec<u64> = places.filter(|place| (INDEX_AT..REACH).contains(place)).collect();
        places.sort_unstable();
        places.dedup();
        for place in places {
            if self.window.slice(place, place + HEADER_LEN)?.is_some() && self.begins(place)? {
                return Ok(Some(place));
            }
        }
        Ok(None)
    }

    /// So many positions of the index, or as many as there are bytes for.
    fn positions(&self, count: u64) -> Result<&[I64Le], NeedMore> {
        let bytes = self.window.upto(INDEX_AT, count * size_of::<I64Le>() as u64)?;
        let whole = bytes.len() / size_of::<I64Le>();
        Ok(<[I64Le]>::ref_from_prefix_with_elems(bytes, whole).map_or(&[], |(positions, _)| positions))
    }
}
