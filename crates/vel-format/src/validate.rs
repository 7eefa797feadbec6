//! Which bytes make sense as a message, under which size rule, and where sound messages begin again after
//! damage. Sections 3 and 4 of docs/formats/vel.md.

use std::collections::HashSet;

use rovelog_core::layout::Fit;
use rovelog_core::scan::{NeedMore, Window};

use crate::declared::Types;
use crate::message::SizeRule;
use crate::wire::{HEADER_LEN, MARKER_ASCII, MARKER_INVALID, MARKER_PRINTED, MessageHeader, TERMINATOR};

/// The greatest message that is taken for one: 1 GiB.
pub(crate) const MAX_DATA: u64 = 1 << 30;

/// Messages that are looked at to settle the size rule.
const CHAIN: u32 = 64;

/// What stands at an offset.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Look<'a> {
    /// A header that makes sense, and the whole message.
    Whole { end: u64, header: &'a MessageHeader, data: &'a [u8] },
    /// A header that makes sense; the file ends before the message does.
    Cut,
    /// Fewer bytes than a header.
    Tail,
    /// Nothing that makes sense.
    No,
}

/// Types that are neither described nor declared, but occurred.
pub(crate) type Seen = HashSet<(u32, i32)>;

/// Judges bytes under one size rule.
#[derive(Clone, Copy)]
pub(crate) struct Judge<'w> {
    pub(crate) window: Window<'w>,
    pub(crate) rule: SizeRule,
    pub(crate) types: &'w Types,
    pub(crate) seen: &'w Seen,
}

impl<'w> Judge<'w> {
    #[inline]
    pub(crate) fn look(&self, at: u64) -> Result<Look<'w>, NeedMore> {
        let Some(header) = self.window.view::<MessageHeader>(at)? else { return Ok(Look::Tail) };
        if !matches!(header.marker, MARKER_ASCII | MARKER_PRINTED | MARKER_INVALID) {
            return Ok(Look::No);
        }
        let Some(len) = self.rule.data_len(header).filter(|len| *len <= MAX_DATA) else {
            return Ok(Look::No);
        };
        let (from, end) = (at + HEADER_LEN, at + HEADER_LEN + len);
        Ok(match self.window.slice(from, end)? {
            Some(data) => Look::Whole { end, header, data },
            None => Look::Cut,
        })
    }

    pub(crate) fn fit(&self, header: &MessageHeader, data: &[u8]) -> Option<Fit> {
        self.types.fit(header.type_id.get(), header.version.get(), data)
    }

    /// Whether a message needs nothing behind it to be one: its size is that of its content.
    pub(crate) fn is_sure(&self, header: &MessageHeader, data: &[u8]) -> bool {
        self.fit(header, data) == Some(Fit::Exact) && header.marker != MARKER_INVALID
    }

    /// Whether the type is described, declared, or occurred before.
    fn is_familiar(&self, header: &MessageHeader) -> bool {
        let (id, version) = (header.type_id.get(), header.version.get());
        self.types.find(id, version).is_some() || self.seen.contains(&(id, version))
    }

    pub(crate) fn is_terminator(&self, at: u64) -> Result<bool, NeedMore> {
        Ok(self.window.u32(at)? == Some(TERMINATOR))
    }

    /// Whether a message may end at `end`: with the file, at a terminator, before a plausible header or a
    /// rest that is too short for one. With `familiar`, the header must be of a type that is; `own` is the
    /// header of the message itself, whose type counts as such.
    pub(crate) fn follows(&self, end: u64, own: &MessageHeader, familiar: bool) -> Result<bool, NeedMore> {
        if !self.window.has(end)? {
            return Ok(true);
        }
        let Some(header) = self.window.view::<MessageHeader>(end)? else { return Ok(true) };
        if self.is_terminator(end)? {
            return Ok(true);
        }
        if !matches!(header.marker, MARKER_ASCII | MARKER_PRINTED | MARKER_INVALID) {
            return Ok(false);
        }
        let sized = self.rule.data_len(header).is_some_and(|len| len <= MAX_DATA);
        // A message of a familiar type may be cut by the end of the file.
        let same = (header.type_id, header.version) == (own.type_id, own.version);
        Ok(sized
            && (same
                || self.is_familiar(header)
                || (!familiar && matches!(self.look(end)?, Look::Whole { .. }))))
    }

    /// Whether a sound message begins at `at` and is followed by one, or by the end.
    pub(crate) fn begins(&self, at: u64) -> Result<bool, NeedMore> {
        let Look::Whole { end, header, data } = self.look(at)? else { return Ok(false) };
        Ok(self.fit(header, data) == Some(Fit::Exact) || self.follows(end, header, false)?)
    }

    /// Whether sound messages begin again at `at`, after damage: stricter, because a payload may hold
    /// anything.
    fn resumes(&self, at: u64) -> Result<bool, NeedMore> {
        let Some(header) = self.window.view::<MessageHeader>(at)? else { return Ok(false) };
        if !self.is_familiar(header) {
            return Ok(false);
        }
        let Look::Whole { end, header, data } = self.look(at)? else { return Ok(false) };
        let sound = match self.fit(header, data) {
            Some(Fit::Exact) => true,
            None => header.timestamp.get().is_finite(),
            Some(_) => false,
        };
        Ok(sound && self.follows(end, header, true)?)
    }

    /// Looks for the next place from `*next` on, before `limit`, where sound messages begin. `*next` moves.
    pub(crate) fn scan(&self, next: &mut u64, limit: u64) -> Result<Option<u64>, NeedMore> {
        loop {
            let from = *next + 4;
            if *next >= limit || !self.window.has(from)? {
                return Ok(None);
            }
            let data = &self.window.data[usize::try_from(from - self.window.base).expect("in the window")..];
            let Some(found) = memchr::memchr2(MARKER_ASCII, MARKER_PRINTED, data) else {
                *next = self.window.end() - 4;
                continue;
            };
            let at = from + found as u64 - 4;
            *next = at;
            if at < limit && self.resumes(at)? {
                return Ok(Some(at));
            }
            *next = at + 1;
        }
    }
}

/// Why a size rule was chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Evidence {
    pub(crate) rule: SizeRule,
    /// Messages whose size is that of their content, of those walked over.
    pub(crate) exact: u32,
    /// Whether the walk came to the very end of the file, or to a terminator.
    pub(crate) ends: bool,
    pub(crate) walked: u32,
}

#[derive(Clone, Copy)]
struct Candidate {
    evidence: Evidence,
    at: u64,
    alive: bool,
}

impl Candidate {
    fn score(&self) -> (u32, bool, u32) {
        (self.evidence.exact, self.evidence.ends, self.evidence.walked)
    }
}

/// Settles the size rule from the first message on: section 3.
pub(crate) fn size_rule(
    window: Window<'_>,
    first: u64,
    types: &Types,
    seen: &Seen,
) -> Result<Evidence, NeedMore> {
    let mut all = SizeRule::ALL.map(|rule| Candidate {
        evidence: Evidence { rule, ..Evidence::default() },
        at: first,
        alive: true,
    });
    for _ in 0..CHAIN {
        for candidate in all.iter_mut().filter(|candidate| candidate.alive) {
            let judge = Judge { window, rule: candidate.evidence.rule, types, seen };
            if !window.has(candidate.at)? || judge.is_terminator(candidate.at)? {
                (candidate.alive, candidate.evidence.ends) = (false, candidate.evidence.walked > 0);
                continue;
            }
            let Look::Whole { end, header, data } = judge.look(candidate.at)? else {
                candidate.alive = false;
                continue;
            };
            candidate.evidence.exact += u32::from(judge.fit(header, data) == Some(Fit::Exact));
            candidate.evidence.walked += 1;
            candidate.at = end;
        }
        // Those that have stopped cannot score any more.
        let mut alive = all.iter().filter(|candidate| candidate.alive);
        let (last, others) = (alive.next(), alive.next());
        match (last, others) {
            (None, _) => break,
            (Some(last), None) => {
                let stopped = all.iter().filter(|candidate| !candidate.alive);
                if stopped.map(Candidate::score).max().is_some_and(|best| last.score() > best) {
                    break;
                }
            }
            _ => {}
        }
    }
    // The first of equals: exclusive.
    let best = all.iter().rev().max_by_key(|candidate| candidate.score());
    Ok(best.expect("three candidates").evidence)
}
