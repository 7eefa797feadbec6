//! Location of the first message of a log. The first message is directly after the index, at an
//! offset in an index entry, or at an offset that is found by searching every byte. See sections 3
//! and 5 of docs/formats/vel.md.

use rovelog_core::internal::scan::{NeedMore, Window};
use rovelog_core::internal::wire::{I64Le, whole};

use crate::declared::Types;
use crate::error::VelError;
use crate::message::SizeRule;
use crate::validate::{Evidence, Seen, Validator, size_rule};
use crate::wire::{FileHeader, HEADER_LEN, INDEX_AT, MAGIC, TERMINATOR, entries_len};

/// Maximum number of index entries. With one entry per second, they cover 48 days.
pub(crate) const MAX_ENTRIES: u64 = 1 << 22;

/// Maximum offset of the first message from the start of the file.
const MAX_FIRST_OFFSET: u64 = 40 << 20;

/// Maximum number of index entries whose offsets are checked for the first message.
const MAX_TRIED_ENTRIES: u64 = 4096;

/// Method by which the first message was located.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LocatedBy {
    /// The first message is directly after the index.
    AfterIndex,
    /// The offset of the first message is in an index entry.
    ByEntry,
    /// The first message was found by searching at every offset.
    ByScan,
}

/// The header and the index of a log, and the offset of its first message.
#[derive(Clone, Debug)]
pub(crate) struct LogStart {
    pub(crate) header: FileHeader,
    /// Number of index entries that the file states, which may be wrong.
    pub(crate) claimed: u32,
    /// The stored index entries. Empty if the number of entries is invalid.
    pub(crate) entries: Vec<i64>,
    /// Offset of the end of the index.
    pub(crate) index_end: u64,
    pub(crate) first: u64,
    pub(crate) found: LocatedBy,
    pub(crate) evidence: Evidence,
    /// True if the file starts with the correct magic number.
    pub(crate) magic: bool,
}

/// Reason why the start of a log could not be located.
#[derive(Debug)]
pub(crate) enum StartError {
    Need(NeedMore),
    Refused(VelError),
}

impl From<NeedMore> for StartError {
    fn from(need: NeedMore) -> Self {
        Self::Need(need)
    }
}

/// Locates the start of the log in `window`, which must begin at offset 0 of the file. If `salvage`
/// is true, a wrong magic number is accepted.
pub(crate) fn locate(window: Window<'_>, types: &Types, salvage: bool) -> Result<LogStart, StartError> {
    let cut = || StartError::Refused(VelError::HeaderCut { len: window.end() });
    // If a file ends within its header but starts like a VEL log, it is truncated. If its first
    // bytes differ from the magic number, it is not a VEL log.
    let Some(header) = window.view::<FileHeader>(0)? else {
        let is_start = MAGIC.starts_with(&window.data[..window.data.len().min(MAGIC.len())]);
        return Err(if is_start { cut() } else { StartError::Refused(VelError::NotVel) });
    };
    let magic = header.magic == MAGIC;
    if !magic && !salvage {
        return Err(StartError::Refused(VelError::NotVel));
    }
    let Some(claimed) = window.u32(size_of::<FileHeader>() as u64)? else { return Err(cut()) };
    let search = Search { window, types, seen: Seen::new() };
    let index_fits = search.index_fits(claimed)?;
    let (first, found) = search.first_message(claimed, index_fits)?.ok_or_else(cut)?;
    let evidence = size_rule(window, first, types, &search.seen)?;
    let entries = if index_fits { search.positions(claimed.into())? } else { &[] };
    let entries = entries.iter().map(|position| position.get()).collect();
    let claimed_end = INDEX_AT + entries_len(claimed.into());
    // The index extends to the first message, even if the stored number of entries is too small.
    // But if the first message was found by searching every byte, the bytes before it are damaged.
    let index_end = match found {
        LocatedBy::ByScan if index_fits && claimed_end < first => claimed_end,
        _ => first,
    };
    Ok(LogStart { header: *header, claimed, entries, index_end, first, found, evidence, magic })
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

    /// Returns whether a valid message starts at offset `at` under any of the three size rules.
    fn starts_at(&self, at: u64) -> Result<bool, NeedMore> {
        for validator in self.validators() {
            if validator.starts_at(at)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns whether the file has room for `claimed` index entries.
    fn index_fits(&self, claimed: u32) -> Result<bool, NeedMore> {
        let after_index = INDEX_AT + entries_len(claimed.into());
        Ok(u64::from(claimed) <= MAX_ENTRIES && self.window.slice(INDEX_AT, after_index)?.is_some())
    }

    /// Locates the first message. Returns its offset and the method by which it was located.
    /// `claimed` is the number of index entries that the file states. `index_fits` is true if the
    /// file has room for them.
    fn first_message(&self, claimed: u32, index_fits: bool) -> Result<Option<(u64, LocatedBy)>, NeedMore> {
        let after_index = INDEX_AT + entries_len(claimed.into());
        if index_fits {
            let ends = !self.window.has(after_index)? || self.window.u32(after_index)? == Some(TERMINATOR);
            if ends || self.starts_at(after_index)? {
                return Ok(Some((after_index, LocatedBy::AfterIndex)));
            }
        }
        let named = self.smallest_valid_entry(u64::from(claimed).min(MAX_TRIED_ENTRIES))?;
        let limit = named.unwrap_or(MAX_FIRST_OFFSET);
        let mut earliest: Option<u64> = None;
        for validator in self.validators() {
            let mut next = INDEX_AT;
            let found = validator.find_next(&mut next, earliest.unwrap_or(limit))?;
            earliest = found.or(earliest);
        }
        Ok(match (earliest, named) {
            (Some(at), _) => Some((at, LocatedBy::ByScan)),
            (None, Some(at)) => Some((at, LocatedBy::ByEntry)),
            // No valid message was found, so the log contains a single truncated message, or only
            // damage.
            (None, None) if index_fits => Some((after_index, LocatedBy::AfterIndex)),
            (None, None) => None,
        })
    }

    /// Returns the smallest offset in the index entries at which a valid message starts. Only the
    /// first `tried` entries are checked.
    fn smallest_valid_entry(&self, tried: u64) -> Result<Option<u64>, NeedMore> {
        let places = self.positions(tried)?.iter().filter_map(|place| u64::try_from(place.get()).ok());
        let mut places: Vec<u64> =
            places.filter(|place| (INDEX_AT..MAX_FIRST_OFFSET).contains(place)).collect();
        places.sort_unstable();
        places.dedup();
        for place in places {
            if self.window.slice(place, place + HEADER_LEN)?.is_some() && self.starts_at(place)? {
                return Ok(Some(place));
            }
        }
        Ok(None)
    }

    /// Returns the first `count` index entries. If the file is too short for them, returns the
    /// entries that it has.
    fn positions(&self, count: u64) -> Result<&[I64Le], NeedMore> {
        Ok(whole(self.window.upto(INDEX_AT, entries_len(count))?))
    }
}
