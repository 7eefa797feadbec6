//! Plausibility checks, which decide whether bytes are a valid message and where valid messages
//! start after damage.
//!
//! A ULog has no checksums, so a message can only be compared with the definitions before it. The
//! rules are in section 5 of docs/formats/ulog.md. This module uses their terms:
//!
//! - A message **fits** if its content agrees with its type.
//! - A message is **unverifiable** if its content cannot be checked, such as a row of a topic
//!   without a usable format.
//! - A **chain** is three consecutive fitting messages, with any unverifiable ones between them.
//!   Two would not be enough, because noise often contains a plausible message.
//!
//! The checks do not change the state of a scan; [`scan`](crate::scan) decides what to do with
//! their results.
//!
//! # Example
//!
//! After damage, [`Validator::scan`] tests each offset. At offset 500, the byte at 502 is `D`, the
//! id is 3 and the size is 14. If topic 3 has rows of 12 bytes, the message fits, because 14 is the
//! size of the id and the row. The search ends at 500 if the messages at 517 and at the end of that
//! one fit too. If topic 3 has rows of 20 bytes, the search continues at 501.

use std::cell::Cell;
use std::mem::offset_of;
use std::ops::Range;

use rovelog_core::internal::scan::{NeedMore, Window};

use crate::definitions::Definitions;
use crate::layout::Formats;
use crate::schema::{Basic, FormatText, can_name_format, is_type_name};
use crate::sessions::header_at;
use crate::wire::{
    self, FLAG_BITS_AT, HEADER_LEN, Info, LoggedString, MAGIC, Message, MessageHeader, SYNC_MAGIC,
    TaggedString, kind, level_number,
};

/// Number of consecutive unverifiable messages that count as a chain, that is as proof of valid
/// messages. Noise hardly ever leads from header to header so often.
const LONG_RUN: usize = 128;

/// Number of bytes of definitions that lookahead may parse in a log of any size.
pub(crate) const FREE_DEFINITIONS: u64 = 4 << 20;

/// Number of messages in a chain. If so many consecutive messages agree with their types, they are
/// accepted as valid.
pub(crate) const CHAIN: usize = 3;

/// Number of bytes that lookahead may examine for each byte searched after damage. If a search
/// exceeds this number, only 'D' and 'S' messages can start a chain, because they are cheap to
/// check.
const WORK_PER_BYTE: u64 = 64;

/// Number of bytes that lookahead may examine in addition to [`WORK_PER_BYTE`], so that the full
/// checks apply to the first bytes of a search.
const WORK_AT_ONCE: u64 = 4096;

/// Offset of the type within a message header.
pub(crate) const TYPE_AT: u64 = offset_of!(MessageHeader, msg_type) as u64;

/// Result of validating the bytes at an offset of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// A message whose content agrees with its type.
    Fits {
        end: u64,
        /// True if the content would not agree with the type if the message had another length. A
        /// text agrees with any length.
        confirmed: bool,
    },
    /// A complete message whose content cannot be checked.
    Unverifiable { end: u64 },
    /// Bytes that are not a valid message.
    No {
        /// Offset of the end of the message according to its header. `None` if the header is
        /// incomplete.
        claimed: Option<u64>,
    },
}

/// Strictness with which a message is validated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Strictness {
    /// The previous message ends at this offset, so a message is expected.
    Expected,
    /// The offset is one of many that are tested after damage. Messages that PX4 would not write
    /// are rejected, because noise would match them too often.
    Searched,
    /// The search after damage has exceeded its work limit. Only messages that are cheap to check
    /// are accepted.
    Cheap,
}

/// Definitions that lookahead has found. They are used in addition to the definitions of the log,
/// and discarded after the lookahead.
#[derive(Default)]
struct Overlay {
    /// Names and definition texts of formats.
    formats: Vec<(String, Vec<u8>)>,
    /// Message ids of subscriptions, each with the trimmed and the full size of its rows. The sizes
    /// are `None` if they are unknown.
    subscriptions: Vec<(u16, Option<(usize, usize)>)>,
}

/// Validates messages in a window of the log with the current definitions.
///
/// The counters are `Cell`s because all checks take `&self`.
pub(crate) struct Validator<'a> {
    pub(crate) window: Window<'a>,
    pub(crate) definitions: &'a Definitions,
    /// Offset that no message may cross. It is the start of appended data or the end of the file.
    pub(crate) limit: u64,
    /// Offsets at which a flag bits message is valid. At any other offset, such a message is
    /// damage.
    flag_bits: Range<u64>,
    /// Offset of the scan. Headers of other logs before it are not considered.
    position: u64,
    /// Number of bytes that were examined for the current chain, to limit the work.
    work: Cell<u64>,
    /// Maximum number of bytes of definitions that lookahead may parse.
    budget: u64,
    /// Number of bytes of definitions that lookahead has parsed.
    lookahead_bytes: Cell<u64>,
    /// True if a message was rejected because it crosses `limit`.
    crossed: Cell<bool>,
}

/// Progress of a search for valid messages after damage. It is stored between calls, so that a
/// stream can discard the bytes that were searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scan {
    start: u64,
    /// Offset that is tested next.
    pub(crate) next: u64,
    /// Number of bytes that lookahead has examined so far.
    work: u64,
}

impl Scan {
    pub(crate) fn from(start: u64) -> Self {
        Self { start, next: start, work: 0 }
    }
}

impl<'a> Validator<'a> {
    pub(crate) fn new(window: Window<'a>, definitions: &'a Definitions, limit: u64, budget: u64) -> Self {
        Self {
            window,
            definitions,
            limit,
            flag_bits: FLAG_BITS_AT..FLAG_BITS_AT + 1,
            position: 0,
            work: Cell::new(0),
            budget,
            lookahead_bytes: Cell::new(0),
            crossed: Cell::new(false),
        }
    }

    /// Sets the offsets at which a flag bits message is valid, and the offset of the scan.
    pub(crate) fn with_flag_bits(self, flag_bits: Range<u64>, position: u64) -> Self {
        Self { flag_bits, position, ..self }
    }

    /// Returns the number of bytes of definitions that lookahead has parsed.
    pub(crate) fn lookahead_bytes(&self) -> u64 {
        self.lookahead_bytes.get()
    }

    /// Returns `true` if any message was rejected because it crosses the limit, which is the start
    /// of appended data or the end of the file.
    pub(crate) fn crossed(&self) -> bool {
        self.crossed.get()
    }

    /// Validates the bytes at the offset `at`, where the previous message ends.
    pub(crate) fn validate_expected(&self, at: u64) -> Result<Verdict, NeedMore> {
        self.verdict(at, Strictness::Expected, &Overlay::default())
    }

    /// Returns `true` if a fitting message follows at the offset `end`, possibly after unverifiable
    /// messages.
    ///
    /// `before` is the message that ends at `end`. It may contain a definition that the next
    /// message needs, but has not been added to the definitions yet.
    pub(crate) fn followed(&self, end: u64, before: &Message<'_>) -> Result<bool, NeedMore> {
        if end == self.limit {
            return Ok(true);
        }
        let mut overlay = Overlay::default();
        self.add_definition(before, &mut overlay);
        match self.verdict(end, Strictness::Expected, &overlay)? {
            Verdict::Fits { .. } => Ok(true),
            Verdict::Unverifiable { end: next } => {
                self.add_definition_at(end, next, &mut overlay);
                Ok(self.skip_unverifiable(next, overlay)?.is_some())
            }
            Verdict::No { .. } => Ok(false),
        }
    }

    /// Returns the offset up to which unverifiable messages can be skipped. The first of them is
    /// `before`, which ends at the offset `end`.
    ///
    /// They can be skipped if a chain or the limit follows, or if their number is at least
    /// [`LONG_RUN`]. Otherwise returns `None`.
    pub(crate) fn skippable(&self, end: u64, before: &Message<'_>) -> Result<Option<u64>, NeedMore> {
        let mut overlay = Overlay::default();
        self.add_definition(before, &mut overlay);
        self.skip_unverifiable(end, overlay)
    }

    /// Skips unverifiable messages from the offset `at` on. Returns the same result as
    /// [`skippable`](Self::skippable).
    fn skip_unverifiable(&self, mut at: u64, mut overlay: Overlay) -> Result<Option<u64>, NeedMore> {
        for _ in 0..LONG_RUN {
            if at == self.limit {
                return Ok(Some(at));
            }
            match self.verdict(at, Strictness::Expected, &overlay)? {
                Verdict::Fits { .. } => {
                    return Ok(self.chain(at, Strictness::Expected, overlay)?.then_some(at));
                }
                Verdict::Unverifiable { end } => {
                    self.add_definition_at(at, end, &mut overlay);
                    at = end;
                }
                Verdict::No { .. } => return Ok(None),
            }
        }
        Ok(Some(at))
    }

    /// Returns `true` if appended data starts at the offset `at`.
    ///
    /// The messages from this offset on must lead exactly to the limit, contain three messages that
    /// agree with their types, or be [`LONG_RUN`] messages without an invalid message.
    pub(crate) fn starts(&self, mut at: u64) -> Result<bool, NeedMore> {
        let (mut overlay, mut fitting) = (Overlay::default(), 0);
        for _ in 0..LONG_RUN {
            if at == self.limit || fitting == CHAIN {
                return Ok(true);
            }
            let verdict = self.verdict(at, Strictness::Expected, &overlay)?;
            let (Verdict::Fits { end, .. } | Verdict::Unverifiable { end }) = verdict else {
                return Ok(false);
            };
            fitting += usize::from(matches!(verdict, Verdict::Fits { .. }));
            self.add_definition_at(at, end, &mut overlay);
            at = end;
        }
        Ok(true)
    }

    /// Returns the first offset before `until` at which a chain starts, that is three consecutive
    /// messages that agree with their types. The search starts at `scan.next`.
    pub(crate) fn scan(&self, scan: &mut Scan, until: u64) -> Result<Option<u64>, NeedMore> {
        while scan.next < until {
            let at = scan.next;
            let letter = self.window.byte(at + TYPE_AT)?;
            if letter == Some(0) {
                // No message type is 0, so the type of the next message follows these zero bytes.
                // Skipping all of them at once makes it fast to search a part of the file that is
                // filled with zeros.
                scan.next = (self.window.zeros_end(at + TYPE_AT) - TYPE_AT).min(until);
                continue;
            }
            if letter == Some(MAGIC[2]) && header_at(self.window, at)?.is_some() {
                return Ok(Some(at));
            }
            if let Some(letter) = letter {
                let allowed = WORK_PER_BYTE * (at - scan.start) + WORK_AT_ONCE;
                let strictness = if scan.work <= allowed { Strictness::Searched } else { Strictness::Cheap };
                if begins_chain(letter, strictness) {
                    self.work.set(0);
                    let lookahead_bytes = self.lookahead_bytes.get();
                    let chain = self.chain(at, strictness, Overlay::default());
                    if chain.is_err() {
                        // If the window is too short, the same definitions are parsed again with a
                        // longer window. They must not be counted twice, because the result would
                        // depend on the size of the window.
                        self.lookahead_bytes.set(lookahead_bytes);
                    }
                    if chain? {
                        return Ok(Some(at));
                    }
                    scan.work += self.work.get();
                }
            }
            scan.next += 1;
        }
        Ok(None)
    }

    /// Returns `true` if a chain starts at the offset `at`, that is three consecutive messages that
    /// agree with their types.
    fn chain(&self, mut at: u64, strictness: Strictness, mut overlay: Overlay) -> Result<bool, NeedMore> {
        let (mut fitting, mut passed) = (0, 0);
        // At the end of the file, fewer than three messages are enough, but only if the content of
        // the last message that fits confirms its length. A text does not, because it fits any
        // bytes.
        let mut is_confirmed = false;
        loop {
            match self.verdict(at, strictness, &overlay)? {
                Verdict::Fits { end, confirmed } => {
                    fitting += 1;
                    if fitting == CHAIN {
                        return Ok(true);
                    }
                    if end == self.limit {
                        return Ok(confirmed);
                    }
                    is_confirmed = confirmed;
                    self.add_definition_at(at, end, &mut overlay);
                    at = end;
                }
                // Unverifiable messages are allowed inside a chain. A chain cannot start with such
                // a message, because noise often looks like one.
                Verdict::Unverifiable { end } if fitting > 0 && strictness != Strictness::Cheap => {
                    passed += 1;
                    if passed == LONG_RUN {
                        return Ok(true);
                    }
                    if end == self.limit {
                        return Ok(is_confirmed);
                    }
                    self.add_definition_at(at, end, &mut overlay);
                    at = end;
                }
                _ => return Ok(false),
            }
        }
    }

    /// Validates the message at the offset `at`.
    fn verdict(&self, at: u64, strictness: Strictness, overlay: &Overlay) -> Result<Verdict, NeedMore> {
        self.work.set(self.work.get() + HEADER_LEN);
        if at + HEADER_LEN > self.limit {
            self.crossed.set(true);
            return Ok(Verdict::No { claimed: None });
        }
        let Some(header) = self.window.view::<MessageHeader>(at)? else {
            return Ok(Verdict::No { claimed: None });
        };
        // The header of another log counts as a message of 16 bytes (rule D41 of
        // docs/formats/ulog.md).
        if header.msg_type == MAGIC[2] && header_at(self.window, at)?.is_some() {
            return Ok(Verdict::Fits { end: at + FLAG_BITS_AT, confirmed: true });
        }
        let end = at + HEADER_LEN + u64::from(header.msg_size.get());
        let no = Verdict::No { claimed: Some(end) };
        if end > self.limit {
            self.crossed.set(true);
            return Ok(no);
        }
        // The type is checked before the payload is requested, so that a stream does not read 64
        // KiB for an invalid type. An expected message may have any visible ASCII character as its
        // type (rule D4 of docs/formats/ulog.md). A search accepts only letters, because noise
        // matches them less often.
        let msg_type = header.msg_type;
        let is_expected = strictness == Strictness::Expected && msg_type.is_ascii_graphic();
        if !is_expected && !msg_type.is_ascii_alphabetic() {
            return Ok(no);
        }
        let Some(payload) = self.window.slice(at + HEADER_LEN, end)? else { return Ok(no) };
        let Some(message) = Message::parse(msg_type, payload) else { return Ok(no) };
        Ok(match self.validate(at, &message, strictness, overlay) {
            Validity::Fits { confirmed } => Verdict::Fits { end, confirmed },
            Validity::Unverifiable => Verdict::Unverifiable { end },
            Validity::No => no,
        })
    }

    /// Checks that the content of a parsed message agrees with its type.
    fn validate(
        &self,
        at: u64,
        message: &Message<'_>,
        strictness: Strictness,
        overlay: &Overlay,
    ) -> Validity {
        const FITS: Validity = Validity::Fits { confirmed: true };
        let fits = |fits: bool| if fits { FITS } else { Validity::No };
        let searched = strictness != Strictness::Expected;
        match *message {
            Message::Data(data) => return self.validate_row(data, overlay),
            Message::Sync(sync) => return fits(sync.sync_magic == SYNC_MAGIC),
            Message::Unsubscription(_) | Message::Dropout(_) => return FITS,
            _ if strictness == Strictness::Cheap => return Validity::No,
            _ => {}
        }
        match *message {
            Message::FlagBits(_) => fits(self.flag_bits.contains(&at) || self.is_behind_header(at)),
            Message::Format(wire::Format { format: text }) => {
                self.cost(text);
                let usual = |format: FormatText<'_>| {
                    !searched || (format.has_canonical_blanks() && format.unusual_names().next().is_none())
                };
                fits(FormatText::parse(text).is_some_and(usual))
            }
            Message::Info(info) => self.validate_info(info, searched),
            Message::MultiInfo(multi) if multi.is_continued <= 1 => self.validate_info(multi.info, searched),
            // This message has an invalid `is_continued`, which must be 0 or 1.
            Message::MultiInfo(_) => Validity::No,
            Message::Parameter(parameter) => fits(fits_parameter(parameter, searched)),
            // The message must set at least one of the two defined bits, and no other bit.
            Message::DefaultParameter(default) => {
                fits((1..=3).contains(&default.default_types) && fits_parameter(default.info, searched))
            }
            Message::Subscription(subscription) => match subscription.name() {
                Some(name) if self.defines(name, overlay) => FITS,
                // The definition of the subscribed format may be lost, or follow later.
                Some(name) if is_type_name(name) || (!searched && can_name_format(name)) => {
                    Validity::Unverifiable
                }
                _ => Validity::No,
            },
            Message::LoggedString(LoggedString { log_level: level, message: text, .. })
            | Message::TaggedString(TaggedString { log_level: level, message: text, .. }) => {
                // Nearly any bytes are a valid text. A search accepts only short printable texts,
                // because a false match would hide the messages inside the text.
                let valid = if searched {
                    self.cost(text);
                    let printable = |b: &u8| *b >= 32 || [9, 10, 13, 27].contains(b);
                    level.is_ascii_digit() && text.len() <= 2048 && text.iter().all(printable)
                } else {
                    true
                };
                if valid && level_number(level).is_some() {
                    Validity::Fits { confirmed: false }
                } else {
                    Validity::No
                }
            }
            // Only messages of unknown types reach this line. The other types returned in the first
            // `match`.
            _ => Validity::Unverifiable,
        }
    }

    /// Returns `true` if the header of another log ends at the offset `at`. A flag bits message is
    /// valid there (rule D41 of docs/formats/ulog.md).
    ///
    /// Bytes inside a message before the position of the scan are not a header, even if they look
    /// like one. A stream may have discarded these bytes.
    fn is_behind_header(&self, at: u64) -> bool {
        let earliest = self.window.base.max(self.position);
        at.checked_sub(FLAG_BITS_AT)
            .is_some_and(|start| start >= earliest && matches!(header_at(self.window, start), Ok(Some(_))))
    }

    /// Checks that the size of a row is one of the sizes that its subscription allows.
    fn validate_row(&self, wire::Data { msg_id, row }: wire::Data<'_>, overlay: &Overlay) -> Validity {
        let fits = |fits: bool| if fits { Validity::Fits { confirmed: true } } else { Validity::No };
        if let Some((_, size)) = overlay.subscriptions.iter().rev().find(|(id, _)| *id == msg_id) {
            return match size {
                Some((trimmed, full)) => fits(row.len() == *trimmed || row.len() == *full),
                None => Validity::Unverifiable,
            };
        }
        let shape = self.definitions.shapes.get(msg_id);
        // If the format of the row is missing or unusable, the valid size of the row is unknown.
        if shape.usable() { fits(shape.fits(row.len())) } else { Validity::Unverifiable }
    }

    fn validate_info(&self, part: Info<'_>, searched: bool) -> Validity {
        self.cost(part.key);
        match part.parse_key() {
            Some(key) if !searched || key.is_usual() => Validity::Fits { confirmed: part.confirms_length() },
            _ => Validity::No,
        }
    }

    /// Adds the length of `bytes` to the number of bytes examined for the current chain.
    fn cost(&self, bytes: &[u8]) {
        self.work.set(self.work.get() + bytes.len() as u64);
    }

    fn defines(&self, name: &str, overlay: &Overlay) -> bool {
        self.definitions.formats.text(name).is_some()
            || overlay.formats.iter().any(|(known, _)| known == name)
    }

    /// Adds the message between the offsets `at` and `end` to the overlay if it is a definition.
    fn add_definition_at(&self, at: u64, end: u64, overlay: &mut Overlay) {
        if let Ok(Some(bytes)) = self.window.slice(at, end)
            && let Some((header, payload)) = MessageHeader::split(bytes)
            && matches!(header.msg_type, kind::FORMAT | kind::SUBSCRIPTION)
            && let Some(message) = Message::parse(header.msg_type, payload)
        {
            self.add_definition(&message, overlay);
        }
    }

    /// Adds a format or a subscription to the overlay, because later messages in the lookahead may
    /// depend on it. Ignores other messages.
    fn add_definition(&self, message: &Message<'_>, overlay: &mut Overlay) {
        match *message {
            Message::Format(wire::Format { format: text }) => {
                if let Some(format) = FormatText::parse(text) {
                    overlay.formats.push((format.name.to_owned(), text.to_vec()));
                }
            }
            Message::Subscription(subscription) => {
                let Some(name) = subscription.name() else { return };
                overlay.subscriptions.push((subscription.msg_id, self.row_size(name, overlay)));
            }
            _ => {}
        }
    }

    /// Returns the trimmed and the full size of rows with the format `name`. The size is computed
    /// from the definitions of the log and of the overlay.
    ///
    /// Returns `None` if the layout of the format cannot be computed, or if the budget is used up.
    fn row_size(&self, name: &str, overlay: &Overlay) -> Option<(usize, usize)> {
        if overlay.formats.is_empty()
            && let Some(known) = self.definitions.formats.known(name)
        {
            return known.ok().map(|layout| (layout.trimmed_len, layout.full_len));
        }
        let mut formats = Formats::default();
        let mut missing = vec![name.to_owned()];
        // The format and all types nested in it are copied. Their number is limited by the budget
        // for parsing.
        while let Some(name) = missing.pop() {
            if formats.text(&name).is_some() {
                continue;
            }
            let added = overlay.formats.iter().rev().find(|(known, _)| *known == name);
            let text: &[u8] = match added {
                Some((_, text)) => text,
                None => self.definitions.formats.text(&name)?.as_bytes(),
            };
            self.cost(text);
            self.lookahead_bytes.set(self.lookahead_bytes.get() + text.len() as u64);
            if self.lookahead_bytes.get() > self.budget {
                return None;
            }
            let format = FormatText::parse(text)?;
            formats.define(&format, text);
            let nested = format.fields().filter(|(ty, _)| Basic::parse(ty.base).is_none());
            missing.extend(nested.map(|(ty, _)| ty.base.to_owned()));
        }
        let layout = formats.layout(name, self.definitions.limits()).ok()?;
        Some((layout.trimmed_len, layout.full_len))
    }
}

/// A [`Verdict`] without the offsets.
enum Validity {
    Fits { confirmed: bool },
    Unverifiable,
    No,
}

/// Returns `true` if a message of the type `letter` can be the first message of a chain.
fn begins_chain(letter: u8, strictness: Strictness) -> bool {
    match strictness {
        Strictness::Cheap => matches!(letter, kind::DATA | kind::SYNC),
        _ => kind::ALL.contains(&letter),
    }
}

fn fits_parameter(parameter: Info<'_>, searched: bool) -> bool {
    parameter.parse_key().is_some_and(|key| {
        let usual = matches!(key.ty, "int32_t" | "float") && key.is_usual();
        key.scalar().is_some_and(|scalar| scalar.size() == parameter.value.len() && (usual || !searched))
    })
}

#[cfg(test)]
mod tests {
    use rovelog_core::ReadOptions;

    use super::*;

    #[test]
    fn lookahead_parses_no_more_than_its_budget() {
        let mut definitions = Definitions::default();
        for text in [&b"t:e[2] x;"[..], b"e:uint16_t y;"] {
            let format = Message::Format(wire::Format { format: text });
            definitions.apply(0, 0, &format, &mut ReadOptions::default().diagnostics());
        }
        let both = 9 + 13;
        let validator = Validator::new(Window::whole(&[]), &definitions, 0, 2 * both);
        let size = || validator.row_size("t", &Overlay::default());
        assert_eq!((size(), validator.lookahead_bytes()), (Some((4, 4)), both));
        assert_eq!((size(), validator.lookahead_bytes()), (Some((4, 4)), 2 * both));
        assert_eq!(size(), None);
        // The bytes of parsed definitions are also counted as work.
        assert_eq!(validator.work.get(), 2 * both + 9);
    }
}
