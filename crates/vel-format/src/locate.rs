//! Location of the first message: after the index, at an index entry, or found by search. Sections
//! 3 and 5 of docs/formats/vel.md.

use rovelog_core::scan::{NeedMore, Window};
use rovelog_core::wire::{I64Le, whole};

use crate::declared::Types;
use crate::error::VelError;
use crate::message::SizeRule;
use crate::validate::{Evidence, Seen, Validator, size_rule};
use crate::wire::{FileHeader, HEADER_LEN, INDEX_AT, MAGIC, TERMINATOR, entries_len};

/// Maximum number of index entries: 48 days at one per second.
pub(crate) const MAX_ENTRIES: u64 = 1 << 22;

/// Maximum distance of the first message from the header.
const REACH: u64 = 40 << 20;

/// Number of entries that are tried as the first message.
const TRIED: u64 = 4096;

/// The method by which the first message was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Directly after the index.
    BehindIndex,
    /// By an index entry.
    ByEntry,
    /// By searching every byte.
    ByScan,
}

/// The start of a log.
#[derive(Clone, Debug)]
pub(crate) struct Located {
    pub(crate) header: FileHeader,
    /// Number of entries in the header of the index.
    pub(crate) claimed: u32,
    /// Stored entries; empty if their number is invalid.
    pub(crate) entries: Vec<i64>,
    /// Offset of the end of the index.
    pub(crate) index_end: u64,
    pub(crate) first: u64,
    pub(crate) found: Found,
    pub(crate) evidence: Evidence,
    /// True if the magic is correct.
    pub(crate) magic: bool,
}

/// Reason for a missing start: more bytes are needed, or the log is refused.
#[derive(Debug)]
pub(crate) enum NoStart {
    Need(NeedMore),
    Refused(VelError),
}

impl From<NeedMore> for NoStart {
    fn from(need: NeedMore) -> Self {
        Self::Need(need)
    }
}

/// Finds the start of the log in `window`, which starts with the file.
pub(crate) fn locate(window: Window<'_>, types: &Types, salvage: bool) -> Result<Located, NoStart> {
    let cut = || NoStart::Refused(VelError::HeaderCut { len: window.end() });
    // An empty file, or one cut inside the magic, is reported as cut, another as not VEL.
    let Some(header) = window.view::<FileHeader>(0)? else {
        let is_start = MAGIC.starts_with(&window.data[..window.data.len().min(MAGIC.len())]);
        return Err(if is_start { cut() } else { NoStart::Refused(VelError::NotVel) });
    };
    let magic = header.magic == MAGIC;
    if !magic && !salvage {
        return Err(NoStart::Refused(VelError::NotVel));
    }
    let Some(claimed) = window.u32(size_of::<FileHeader>() as u64)? else { return Err(cut()) };
    let search = Search { window, types, seen: Seen::new() };
    let (first, found, sane) = search.first(claimed)?.ok_or_else(cut)?;
    let evidence = size_rule(window, first, types, &search.seen)?;
    let entries = if sane { search.positions(claimed.into())? } else { &[] };
    let entries = entries.iter().map(|position| position.get()).collect();
    let claimed_end = INDEX_AT + entries_len(claimed.into());
    // Entries beyond the count are still part of the index if an entry names the first message;
    // otherwise the bytes before it are damage.
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
    fn validators(&self) -> impl Iterator<Item = Validator<'_>> {
        let validator = |rule| Validator { window: self.window, rule, types: self.types, seen: &self.seen };
        SizeRule::ALL.into_iter().map(validator)
    }

    /// Returns whether valid messages start at `at` under any size rule.
    fn starts(&self, at: u64) -> Result<bool, NeedMore> {
        for validator in self.validators() {
            if validator.starts(at)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the first message, how it was found, and whether the index can be valid.
    fn first(&self, claimed: u32) -> Result<Option<(u64, Found, bool)>, NeedMore> {
        let behind = INDEX_AT + entries_len(claimed.into());
        let sane = u64::from(claimed) <= MAX_ENTRIES && self.window.slice(INDEX_AT, behind)?.is_some();
        if sane {
            let ends = !self.window.has(behind)? || self.window.u32(behind)? == Some(TERMINATOR);
            if ends || self.starts(behind)? {
                return Ok(Some((behind, Found::BehindIndex, sane)));
            }
        }
        let named = self.named(u64::from(claimed).min(TRIED))?;
        let limit = named.unwrap_or(REACH);
        let mut earliest: Option<u64> = None;
        for validator in self.validators() {
            let mut next = INDEX_AT;
            let found = validator.scan(&mut next, earliest.unwrap_or(limit))?;
            earliest = found.or(earliest);
        }
        Ok(match (earliest, named) {
            (Some(at), _) => Some((at, Found::ByScan, sane)),
            (None, Some(at)) => Some((at, Found::ByEntry, sane)),
            // A log of one cut message, or of damage only.
            (None, None) if sane => Some((behind, Found::BehindIndex, sane)),
            (None, None) => None,
        })
    }

    /// Returns the smallest entry at which valid messages start.
    fn named(&self, tried: u64) -> Result<Option<u64>, NeedMore> {
        let places = self.positions(tried)?.iter().filter_map(|place| u64::try_from(place.get()).ok());
        let mut places: Vec<u64> = places.filter(|place| (INDEX_AT..REACH).contains(place)).collect();
        places.sort_unstable();
        places.dedup();
        for place in places {
            if self.window.slice(place, place + HEADER_LEN)?.is_some() && self.starts(place)? {
                return Ok(Some(place));
            }
        }
        Ok(None)
    }

    /// Returns `count` positions of the index, or as many as there are bytes for.
    fn positions(&self, count: u64) -> Result<&[I64Le], NeedMore> {
        Ok(whole(self.window.upto(INDEX_AT, entries_len(count))?))
    }
}
