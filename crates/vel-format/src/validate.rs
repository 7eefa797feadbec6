//! Validation of messages under a size rule, inference of the size rule, and search for the next
//! valid message after damage. See sections 3 and 4 of docs/formats/vel.md.

use std::collections::HashSet;
use std::mem::offset_of;

use rovelog_core::internal::layout::Fit;
use rovelog_core::internal::scan::{NeedMore, Window};

use crate::declared::Types;
use crate::message::SizeRule;
use crate::wire::{HEADER_LEN, MARKER_ASCII, MARKER_INVALID, MARKER_PRINTED, MessageHeader, TERMINATOR};

/// Offset of the marker from the start of a message.
const MARKER_AT: u64 = offset_of!(MessageHeader, marker) as u64;

/// Maximum length of a message's data in bytes: 1 GiB.
pub(crate) const MAX_DATA: u64 = 1 << 30;

/// Maximum number of messages from which the size rule is inferred.
pub(crate) const CHAIN: u32 = 64;

/// Result of looking for a message at an offset of the file.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MessageAt<'a> {
    /// A complete message with a plausible header. `end` is the offset of its end in the file.
    Whole { end: u64, header: &'a MessageHeader, data: &'a [u8] },
    /// A plausible header of a message that extends beyond the end of the file.
    Cut,
    /// The end of the file, before which there are fewer bytes than a header has.
    Remainder,
    /// Bytes that are not a plausible header.
    Invalid,
}

/// Type ids and versions of valid messages in the log whose types are neither specified nor
/// declared.
pub(crate) type Seen = HashSet<(u32, i32)>;

/// Checks whether messages in a window are valid under one size rule.
#[derive(Clone, Copy)]
pub(crate) struct Validator<'w> {
    pub(crate) window: Window<'w>,
    pub(crate) rule: SizeRule,
    pub(crate) types: &'w Types,
    pub(crate) seen: &'w Seen,
}

impl<'w> Validator<'w> {
    #[inline]
    pub(crate) fn message_at(&self, at: u64) -> Result<MessageAt<'w>, NeedMore> {
        let Some(header) = self.window.view::<MessageHeader>(at)? else { return Ok(MessageAt::Remainder) };
        if !matches!(header.marker, MARKER_ASCII | MARKER_PRINTED | MARKER_INVALID) {
            return Ok(MessageAt::Invalid);
        }
        let Some(len) = self.rule.data_len(header).filter(|len| *len <= MAX_DATA) else {
            return Ok(MessageAt::Invalid);
        };
        let (from, end) = (at + HEADER_LEN, at + HEADER_LEN + len);
        Ok(match self.window.slice(from, end)? {
            Some(data) => MessageAt::Whole { end, header, data },
            None => MessageAt::Cut,
        })
    }

    pub(crate) fn fit(&self, header: &MessageHeader, data: &[u8]) -> Option<Fit> {
        self.types.fit(header.type_id.get(), header.version.get(), data)
    }

    /// Returns whether the message is valid regardless of the bytes after it. This is the case if
    /// its size is exactly the size of its content.
    pub(crate) fn fits_exactly(&self, header: &MessageHeader, data: &[u8]) -> bool {
        self.fit(header, data) == Some(Fit::Exact) && header.marker != MARKER_INVALID
    }

    /// Returns whether the type of a message is known: it is specified, declared, or occurred
    /// before in the log.
    fn is_known_type(&self, header: &MessageHeader) -> bool {
        let (id, version) = (header.type_id.get(), header.version.get());
        self.types.find(id, version).is_some() || self.seen.contains(&(id, version))
    }

    pub(crate) fn is_terminator(&self, at: u64) -> Result<bool, NeedMore> {
        Ok(self.window.u32(at)? == Some(TERMINATOR))
    }

    /// Returns whether a message can end at offset `end`. This is the case if one of these
    /// conditions is true:
    ///
    /// - The file ends at `end`, or too few bytes follow for another header.
    /// - An end mark follows.
    /// - A message with a plausible header follows. If `known_only` is true, the type of this next
    ///   message must be known. The type of the header `own`, which belongs to the ending message,
    ///   counts as known.
    pub(crate) fn may_end(&self, end: u64, own: &MessageHeader, known_only: bool) -> Result<bool, NeedMore> {
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
        // The next message may extend beyond the end of the file if its type is known.
        let same = (header.type_id, header.version) == (own.type_id, own.version);
        Ok(sized
            && (same
                || self.is_known_type(header)
                || (!known_only && matches!(self.message_at(end)?, MessageAt::Whole { .. }))))
    }

    /// Returns whether a valid message starts at offset `at`.
    pub(crate) fn starts_at(&self, at: u64) -> Result<bool, NeedMore> {
        let MessageAt::Whole { end, header, data } = self.message_at(at)? else { return Ok(false) };
        Ok(self.fit(header, data) == Some(Fit::Exact) || self.may_end(end, header, false)?)
    }

    /// Returns whether valid messages start at offset `at` after damage. This check is stricter
    /// than [`starts_at`](Self::starts_at), because `at` may be inside the data of a message, which
    /// can contain any bytes.
    fn resumes_at(&self, at: u64) -> Result<bool, NeedMore> {
        let Some(header) = self.window.view::<MessageHeader>(at)? else { return Ok(false) };
        if !self.is_known_type(header) {
            return Ok(false);
        }
        let MessageAt::Whole { end, header, data } = self.message_at(at)? else { return Ok(false) };
        let plausible = match self.fit(header, data) {
            Some(Fit::Exact) => true,
            None => header.timestamp.get().is_finite(),
            Some(_) => false,
        };
        Ok(plausible && self.may_end(end, header, true)?)
    }

    // Example: messages of 49 bytes start at the offsets 12, 61 and 110. The first 20 bytes of the
    // message at 61 are overwritten. The search starts at offset 62. It looks for markers, which
    // are at byte 4 of a message:
    //
    //     offset 79     the byte at 83 looks like a marker, but the type is unknown: rejected
    //     offset 110    a known type, its size fits its content, and a message follows: found
    //
    // The bytes from 61 to 110 are one lost range.

    /// Finds the next offset from `*next` up to `limit` at which valid messages start. Advances
    /// `*next`, so that the search can continue at this offset if more bytes are needed.
    pub(crate) fn find_next(&self, next: &mut u64, limit: u64) -> Result<Option<u64>, NeedMore> {
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
            if at < limit && self.resumes_at(at)? {
                return Ok(Some(at));
            }
            *next = at + 1;
        }
    }
}

/// The evidence that supports a size rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Evidence {
    pub(crate) rule: SizeRule,
    /// Number of scanned messages whose size is exactly the size of their content.
    pub(crate) exact: u32,
    /// True if the scan reached the end of the file.
    pub(crate) ends: bool,
    /// True if the scan reached an end mark. An end mark is weaker evidence than the end of the
    /// file, because data can look like an end mark.
    pub(crate) marked: bool,
    pub(crate) scanned: u32,
}

#[derive(Clone, Copy)]
struct Candidate {
    evidence: Evidence,
    at: u64,
    alive: bool,
}

/// Quality of the evidence for a size rule. Earlier fields are compared first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Score {
    exact: u32,
    /// True if the scan reached the end of the file or the maximum number of messages.
    is_complete: bool,
    /// Number of scanned messages. An end mark counts as one more message.
    scanned: u32,
}

impl Candidate {
    fn score(&self) -> Score {
        let Evidence { exact, ends, marked, scanned, .. } = self.evidence;
        Score { exact, is_complete: ends || scanned == CHAIN, scanned: scanned + u32::from(marked) }
    }
}

// Example: two OBD messages have 28 bytes of data each, and the size field is 45. The first message
// is at offset 12.
//
//     exclusive    45 = 17 + 28: the size fits the content, and the next message is at 61
//     inclusive    45 = 21 + 24: too short for the content, and there is no header at 57
//     data only    45 = 0 + 45: too long for the content, and there is no header at 78
//
// Under the exclusive rule, two messages fit exactly, and the scan reaches the end of the file.
// Under the other two rules, no message fits.

/// Infers the size rule from the messages that start at offset `first`. See section 3 of
/// docs/formats/vel.md.
pub(crate) fn size_rule(
    window: Window<'_>,
    first: u64,
    types: &Types,
    seen: &Seen,
) -> Result<Evidence, NeedMore> {
    let mut all = SizeRule::ALL.map(|rule| {
        let evidence = Evidence { rule, ..Evidence::default() };
        Candidate { evidence, at: first, alive: true }
    });
    for _ in 0..CHAIN {
        for candidate in all.iter_mut().filter(|candidate| candidate.alive) {
            let validator = Validator { window, rule: candidate.evidence.rule, types, seen };
            let MessageAt::Whole { end, header, data } = validator.message_at(candidate.at)? else {
                candidate.alive = false;
                candidate.evidence.ends = !window.has(candidate.at)?;
                candidate.evidence.marked = validator.is_terminator(candidate.at)?;
                continue;
            };
            candidate.evidence.exact += u32::from(validator.fit(header, data) == Some(Fit::Exact));
            candidate.evidence.scanned += 1;
            candidate.at = end;
        }
        // The evidence for a rule whose scan has stopped does not improve. So if only one rule is
        // left and has the best evidence, the scan can end.
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
    // If rules have equal evidence, `max_by_key` returns the last of them. The list is reversed, so
    // this is the most likely rule.
    let best = all.iter().rev().max_by_key(|candidate| candidate.score());
    Ok(best.expect("three candidates").evidence)
}
