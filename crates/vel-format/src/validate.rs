//! Validation of messages under a size rule, inference of the size rule, and resynchronisation
//! after damage. Sections 3 and 4 of docs/formats/vel.md.

use std::collections::HashSet;
use std::mem::offset_of;

use rovelog_core::layout::Fit;
use rovelog_core::scan::{NeedMore, Window};

use crate::declared::Types;
use crate::message::SizeRule;
use crate::wire::{
    HEADER_LEN, MARKER_ASCII, MARKER_INVALID, MARKER_PRINTED, MessageHeader, TERMINATOR, TERMINATOR_LEN,
};

/// Where the marker of a message is, from its start.
const MARKER_AT: u64 = offset_of!(MessageHeader, marker) as u64;

/// Maximum size of the data of a message: 1 GiB.
pub(crate) const MAX_DATA: u64 = 1 << 30;

/// Number of messages from which the size rule is inferred.
pub(crate) const CHAIN: u32 = 64;

/// Content at an offset.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Look<'a> {
    /// A plausible header and the whole message.
    Whole { end: u64, header: &'a MessageHeader, data: &'a [u8] },
    /// A plausible header; the file ends before the message does.
    Cut,
    /// Fewer bytes than a header.
    Tail,
    /// Nothing plausible.
    No,
}

/// Types that are neither described nor declared, but occurred.
pub(crate) type Seen = HashSet<(u32, i32)>;

/// Validates bytes under one size rule.
#[derive(Clone, Copy)]
pub(crate) struct Validator<'w> {
    pub(crate) window: Window<'w>,
    pub(crate) rule: SizeRule,
    pub(crate) types: &'w Types,
    pub(crate) seen: &'w Seen,
}

impl<'w> Validator<'w> {
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

    /// Returns whether the message is valid regardless of the bytes after it: its size equals that
    /// of its content.
    pub(crate) fn is_sure(&self, header: &MessageHeader, data: &[u8]) -> bool {
        self.fit(header, data) == Some(Fit::Exact) && header.marker != MARKER_INVALID
    }

    /// Returns whether the type is described, declared, or occurred before.
    fn is_familiar(&self, header: &MessageHeader) -> bool {
        let (id, version) = (header.type_id.get(), header.version.get());
        self.types.find(id, version).is_some() || self.seen.contains(&(id, version))
    }

    pub(crate) fn is_terminator(&self, at: u64) -> Result<bool, NeedMore> {
        Ok(self.window.u32(at)? == Some(TERMINATOR))
    }

    /// Returns whether a message can end at `end`: at the end of the file, before a terminator,
    /// before a plausible header, or before fewer bytes than a header. With `familiar`, that header
    /// must have a familiar type; the type of the message itself, in `own`, counts as such.
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
        // A message of a familiar type can be cut by the end of the file.
        let same = (header.type_id, header.version) == (own.type_id, own.version);
        Ok(sized
            && (same
                || self.is_familiar(header)
                || (!familiar && matches!(self.look(end)?, Look::Whole { .. }))))
    }

    /// Returns whether a valid message starts at `at` and is followed by another or by the end.
    pub(crate) fn starts(&self, at: u64) -> Result<bool, NeedMore> {
        let Look::Whole { end, header, data } = self.look(at)? else { return Ok(false) };
        Ok(self.fit(header, data) == Some(Fit::Exact) || self.follows(end, header, false)?)
    }

    /// Returns whether valid messages start again at `at`, after damage. This is stricter because a
    /// payload can contain anything.
    fn resumes(&self, at: u64) -> Result<bool, NeedMore> {
        let Some(header) = self.window.view::<MessageHeader>(at)? else { return Ok(false) };
        if !self.is_familiar(header) {
            return Ok(false);
        }
        let Look::Whole { end, header, data } = self.look(at)? else { return Ok(false) };
        let plausible = match self.fit(header, data) {
            Some(Fit::Exact) => true,
            None => header.timestamp.get().is_finite(),
            Some(_) => false,
        };
        Ok(plausible && self.follows(end, header, true)?)
    }

    /// Finds the next offset from `*next` on, before `limit`, where valid messages start. Advances
    /// `*next`.
    pub(crate) fn scan(&self, next: &mut u64, limit: u64) -> Result<Option<u64>, NeedMore> {
        loop {
            let from = *next + MARKER_AT;
            if *next >= limit || !self.window.has(from)? {
                return Ok(None);
            }
            let data = &self.window.data[usize::try_from(from - self.window.base).expect("in the window")..];
            let Some(found) = memchr::memchr2(MARKER_ASCII, MARKER_PRINTED, data) else {
                *next = self.window.end() - MARKER_AT;
                continue;
            };
            let at = from + found as u64 - MARKER_AT;
            *next = at;
            if at < limit && self.resumes(at)? {
                return Ok(Some(at));
            }
            *next = at + 1;
        }
    }
}

/// The evidence for a size rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Evidence {
    pub(crate) rule: SizeRule,
    /// Scanned messages whose size equals that of their content.
    pub(crate) exact: u32,
    /// True if the scan reached the end of the file, or a terminator there.
    pub(crate) ends: bool,
    /// True if it reached a terminator before further bytes. The data of a message can look so.
    pub(crate) marked: bool,
    pub(crate) scanned: u32,
}

#[derive(Clone, Copy)]
struct Candidate {
    evidence: Evidence,
    at: u64,
    alive: bool,
}

impl Candidate {
    fn score(&self) -> (u32, bool, u32) {
        let evidence = &self.evidence;
        (evidence.exact, evidence.ends, evidence.scanned + u32::from(evidence.marked))
    }
}

/// Infers the size rule from the first message on: section 3.
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
            let validator = Validator { window, rule: candidate.evidence.rule, types, seen };
            let marked = validator.is_terminator(candidate.at)?;
            if marked || !window.has(candidate.at)? {
                let more = marked && window.has(candidate.at + TERMINATOR_LEN)?;
                candidate.alive = false;
                (candidate.evidence.ends, candidate.evidence.marked) = (!more, more);
                continue;
            }
            let Look::Whole { end, header, data } = validator.look(candidate.at)? else {
                candidate.alive = false;
                continue;
            };
            candidate.evidence.exact += u32::from(validator.fit(header, data) == Some(Fit::Exact));
            candidate.evidence.scanned += 1;
            candidate.at = end;
        }
        // Stopped candidates can no longer score.
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
    // The first of equal ones: exclusive.
    let best = all.iter().rev().max_by_key(|candidate| candidate.score());
    Ok(best.expect("three candidates").evidence)
}
