//! Plausibility: which bytes are a valid message, and where valid messages begin again after
//! damage.
//!
//! A ULog has no checksums, so all there is to go by is whether bytes make sense. The rules are
//! those of section 5 of docs/formats/ulog.md: **fits**, **unverifiable**, **chain** and **scan**.
//! Nothing here changes anything; [`scan`](crate::scan) goes by these answers.

use std::cell::Cell;
use std::mem::offset_of;
use std::ops::Range;

use rovelog_core::scan::{NeedMore, Window};

use crate::definitions::Definitions;
use crate::layout::Formats;
use crate::schema::{BadFormat, Basic, FormatText, can_name_format, is_type_name};
use crate::sessions::header_at;
use crate::wire::{
    self, FLAG_BITS_AT, HEADER_LEN, Info, LoggedString, MAGIC, Message, MessageHeader, SYNC_MAGIC,
    TaggedString, kind, level_number,
};

/// Unverifiable messages in a row that are as good as a chain: no damage leads from header to
/// header so often.
const LONG_RUN: usize = 128;

/// Bytes of definitions that looking ahead may parse anywhere in a log.
pub(crate) const FREE_DEFINITIONS: u64 = 4 << 20;

/// Fitting messages that make a chain.
pub(crate) const CHAIN: usize = 3;

/// Look-ahead work allowed per scanned byte; beyond it only 'D' and 'S' begin a chain.
const WORK_PER_BYTE: u64 = 64;

/// Look-ahead work allowed in addition, so that the first bytes of a search are not looked at less.
const WORK_AT_ONCE: u64 = 4096;

/// Where the letter of a message is, from its start.
pub(crate) const TYPE_AT: u64 = offset_of!(MessageHeader, msg_type) as u64;

/// What can be said of the bytes at some offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// A message that makes sense.
    Fits {
        end: u64,
        /// Whether its content confirms its length.
        confirmed: bool,
    },
    /// A whole message of which nothing more can be said.
    Unverifiable { end: u64 },
    /// No message.
    No {
        /// Where it would end by its own claim; `None` where even the header is cut.
        claimed: Option<u64>,
    },
}

/// How strictly to validate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Strictness {
    /// At a place where a message is due.
    Due,
    /// At a place where one is being looked for.
    Searched,
    /// The same when the work allowed is used up: only what costs nothing to validate.
    Cheap,
}

/// Definitions met on the way of a chain, over those active.
#[derive(Default)]
struct Overlay {
    formats: Vec<(String, Vec<u8>)>,
    /// Subscriptions: id, and the trimmed and full size of its rows where they are known.
    subscriptions: Vec<(u16, Option<(usize, usize)>)>,
}

/// Validates the bytes of a window by the active definitions.
pub(crate) struct Validator<'a> {
    pub(crate) window: Window<'a>,
    pub(crate) definitions: &'a Definitions,
    /// No message may pass this offset: the start of appended data, or the end of the file.
    pub(crate) limit: u64,
    /// Offsets at which flag bits may be: that of the first message.
    flag_bits: Range<u64>,
    /// Work of the chain that is being looked at.
    work: Cell<u64>,
    /// Bytes of definitions that looking ahead may still parse, and has parsed.
    budget: u64,
    used: Cell<u64>,
    /// Whether a message was no message because it passes the limit.
    crossed: Cell<bool>,
}

/// A search for the next chain, kept between calls so that a stream can let go of bytes already
/// searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scan {
    start: u64,
    pub(crate) next: u64,
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
            work: Cell::new(0),
            budget,
            used: Cell::new(0),
            crossed: Cell::new(false),
        }
    }

    /// Accepts flag bits at these offsets.
    pub(crate) fn with_flag_bits(self, flag_bits: Range<u64>) -> Self {
        Self { flag_bits, ..self }
    }

    /// Returns the number of bytes of definitions parsed so far.
    pub(crate) fn used(&self) -> u64 {
        self.used.get()
    }

    /// Returns whether the limit had a say in what was answered so far.
    pub(crate) fn crossed(&self) -> bool {
        self.crossed.get()
    }

    /// Validates the message that is due at `at`.
    pub(crate) fn due(&self, at: u64) -> Result<Verdict, NeedMore> {
        self.verdict(at, Strictness::Due, &Overlay::default())
    }

    /// Returns whether a message that ends at `end` is followed by one that makes sense. `before`
    /// is that message, not yet part of the definitions.
    pub(crate) fn followed(&self, end: u64, before: &Message<'_>) -> Result<bool, NeedMore> {
        if end == self.limit {
            return Ok(true);
        }
        let mut overlay = Overlay::default();
        self.learn(before, &mut overlay);
        match self.verdict(end, Strictness::Due, &overlay)? {
            Verdict::Fits { .. } => Ok(true),
            Verdict::Unverifiable { end: next } => {
                self.learn_at(end, next, &mut overlay);
                Ok(self.pass_on(next, overlay)?.is_some())
            }
            Verdict::No { .. } => Ok(false),
        }
    }

    /// Returns whether the unverifiable message `before`, which ends at `end`, may be passed, and all
    /// others up to which offset: the limit or a chain follows, at most after further unverifiable
    /// ones, or a long run of these.
    pub(crate) fn passable(&self, end: u64, before: &Message<'_>) -> Result<Option<u64>, NeedMore> {
        let mut overlay = Overlay::default();
        self.learn(before, &mut overlay);
        self.pass_on(end, overlay)
    }

    fn pass_on(&self, mut at: u64, mut overlay: Overlay) -> Result<Option<u64>, NeedMore> {
        for _ in 0..LONG_RUN {
            if at == self.limit {
                return Ok(Some(at));
            }
            match self.verdict(at, Strictness::Due, &overlay)? {
                Verdict::Fits { .. } => {
                    return Ok(self.chain(at, Strictness::Due, overlay)?.then_some(at));
                }
                Verdict::Unverifiable { end } => {
                    self.learn_at(at, end, &mut overlay);
                    at = end;
                }
                Verdict::No { .. } => return Ok(None),
            }
        }
        Ok(Some(at))
    }

    /// Returns whether appended data starts at `at`, where a message is due then: three that fit
    /// follow, at most after unverifiable ones, or the limit, or a long run of messages.
    pub(crate) fn starts(&self, mut at: u64) -> Result<bool, NeedMore> {
        let (mut overlay, mut fitting) = (Overlay::default(), 0);
        for _ in 0..LONG_RUN {
            if at == self.limit || fitting == CHAIN {
                return Ok(true);
            }
            let verdict = self.verdict(at, Strictness::Due, &overlay)?;
            let (Verdict::Fits { end, .. } | Verdict::Unverifiable { end }) = verdict else {
                return Ok(false);
            };
            fitting += usize::from(matches!(verdict, Verdict::Fits { .. }));
            self.learn_at(at, end, &mut overlay);
            at = end;
        }
        Ok(true)
    }

    /// Returns the first offset before `until` at which a chain starts.
    pub(crate) fn scan(&self, scan: &mut Scan, until: u64) -> Result<Option<u64>, NeedMore> {
        while scan.next < until {
            let at = scan.next;
            let letter = self.window.byte(at + TYPE_AT)?;
            if letter == Some(0) {
                // The letter of the next message is the first byte that is not zero, or is behind it.
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
                    let used = self.used.get();
                    let chain = self.chain(at, strictness, Overlay::default());
                    if chain.is_err() {
                        // The same is parsed again when there is more.
                        self.used.set(used);
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

    fn chain(&self, mut at: u64, strictness: Strictness, mut overlay: Overlay) -> Result<bool, NeedMore> {
        let (mut fitting, mut passed) = (0, 0);
        // Whether the last fitting message confirms its length: only then may the limit end the chain early.
        let mut sure = false;
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
                    sure = confirmed;
                    self.learn_at(at, end, &mut overlay);
                    at = end;
                }
                Verdict::Unverifiable { end } if fitting > 0 && strictness != Strictness::Cheap => {
                    passed += 1;
                    if passed == LONG_RUN {
                        return Ok(true);
                    }
                    if end == self.limit {
                        return Ok(sure);
                    }
                    self.learn_at(at, end, &mut overlay);
                    at = end;
                }
                _ => return Ok(false),
            }
        }
    }

    fn verdict(&self, at: u64, strictness: Strictness, overlay: &Overlay) -> Result<Verdict, NeedMore> {
        self.work.set(self.work.get() + HEADER_LEN);
        if at + HEADER_LEN > self.limit {
            self.crossed.set(true);
            return Ok(Verdict::No { claimed: None });
        }
        let Some(header) = self.window.view::<MessageHeader>(at)? else {
            return Ok(Verdict::No { claimed: None });
        };
        if header.msg_type == MAGIC[2] && header_at(self.window, at)?.is_some() {
            return Ok(Verdict::Fits { end: at + FLAG_BITS_AT, confirmed: true });
        }
        let end = at + HEADER_LEN + u64::from(header.msg_size.get());
        let no = Verdict::No { claimed: Some(end) };
        if end > self.limit {
            self.crossed.set(true);
            return Ok(no);
        }
        // A type that says nothing costs no payload. Where a message is due it may be any sign, for those are
        // no less unknown than letters.
        let msg_type = header.msg_type;
        let due = strictness == Strictness::Due && msg_type.is_ascii_graphic();
        if !due && !msg_type.is_ascii_alphabetic() {
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

    fn validate(
        &self,
        at: u64,
        message: &Message<'_>,
        strictness: Strictness,
        overlay: &Overlay,
    ) -> Validity {
        const FITS: Validity = Validity::Fits { confirmed: true };
        let fits = |fits: bool| if fits { FITS } else { Validity::No };
        let searched = strictness != Strictness::Due;
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
                    !searched || (format.is_tight() && format.unusual_names().next().is_none())
                };
                fits(FormatText::parse(text).is_some_and(usual))
            }
            Message::Info(info) => self.validate_info(info, searched),
            Message::MultiInfo(multi) if multi.is_continued <= 1 => self.validate_info(multi.info, searched),
            Message::MultiInfo(_) => Validity::No,
            Message::Parameter(parameter) => fits(fits_parameter(parameter, searched)),
            Message::DefaultParameter(default) => {
                fits((1..=3).contains(&default.default_types) && fits_parameter(default.info, searched))
            }
            Message::Subscription(subscription) => match subscription.name() {
                Some(name) if self.defines(name, overlay) => FITS,
                Some(name) if is_type_name(name) || (!searched && can_name_format(name)) => {
                    Validity::Unverifiable
                }
                _ => Validity::No,
            },
            Message::LoggedString(LoggedString { log_level: level, message: text, .. })
            | Message::TaggedString(TaggedString { log_level: level, message: text, .. }) => {
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
            // The others returned above.
            _ => Validity::Unverifiable,
        }
    }

    /// Returns whether the header of another log ends at `at`.
    fn is_behind_header(&self, at: u64) -> bool {
        let start = at.checked_sub(FLAG_BITS_AT).filter(|start| *start >= self.window.base);
        start.is_some_and(|start| matches!(header_at(self.window, start), Ok(Some(_))))
    }

    fn validate_row(&self, wire::Data { msg_id, row }: wire::Data<'_>, overlay: &Overlay) -> Validity {
        let fits = |fits: bool| if fits { Validity::Fits { confirmed: true } } else { Validity::No };
        if let Some((_, size)) = overlay.subscriptions.iter().rev().find(|(id, _)| *id == msg_id) {
            return match size {
                Some((trimmed, full)) => fits(row.len() == *trimmed || row.len() == *full),
                None => Validity::Unverifiable,
            };
        }
        let shape = self.definitions.shapes.get(msg_id);
        if shape.usable() { fits(shape.fits(row.len())) } else { Validity::Unverifiable }
    }

    fn validate_info(&self, part: Info<'_>, searched: bool) -> Validity {
        self.cost(part.key);
        match part.parse_key() {
            Some(key) if !searched || key.is_usual() => Validity::Fits { confirmed: part.confirms_length() },
            _ => Validity::No,
        }
    }

    fn cost(&self, bytes: &[u8]) {
        self.work.set(self.work.get() + bytes.len() as u64);
    }

    fn defines(&self, name: &str, overlay: &Overlay) -> bool {
        self.definitions.formats.text(name).is_some()
            || overlay.formats.iter().any(|(known, _)| known == name)
    }

    fn learn_at(&self, at: u64, end: u64, overlay: &mut Overlay) {
        if let Ok(Some(bytes)) = self.window.slice(at, end)
            && let Some((header, payload)) = MessageHeader::split(bytes)
            && matches!(header.msg_type, kind::FORMAT | kind::SUBSCRIPTION)
            && let Some(message) = Message::parse(header.msg_type, payload)
        {
            self.learn(&message, overlay);
        }
    }

    /// "A and F met on the way already count."
    fn learn(&self, message: &Message<'_>, overlay: &mut Overlay) {
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

    /// Returns the trimmed and full size of a format's rows, by the active definitions and those on
    /// the way.
    fn row_size(&self, name: &str, overlay: &Overlay) -> Option<(usize, usize)> {
        if overlay.formats.is_empty()
            && let Some(known) = self.definitions.formats.known(name)
        {
            return known.ok().map(|layout| (layout.trimmed, layout.full));
        }
        let mut formats = Formats::default();
        let mut missing = vec![name.to_owned()];
        // What the format is made of, and nothing else; as many steps as there can be levels and fields.
        while let Some(name) = missing.pop() {
            if formats.text(&name).is_some() {
                continue;
            }
            let met = overlay.formats.iter().rev().find(|(known, _)| *known == name);
            let text: &[u8] = match met {
                Some((_, text)) => text,
                None => self.definitions.formats.text(&name)?.as_bytes(),
            };
            self.cost(text);
            self.used.set(self.used.get() + text.len() as u64);
            if self.used.get() > self.budget {
                return None;
            }
            let format = FormatText::parse(text)?;
            formats.define(&format, text);
            let nested = format.fields().filter(|(ty, _)| Basic::parse(ty.base).is_none());
            missing.extend(nested.map(|(ty, _)| ty.base.to_owned()));
        }
        let layout = formats.layout(name, self.definitions.limits()).ok()?;
        Some((layout.trimmed, layout.full))
    }
}

enum Validity {
    Fits { confirmed: bool },
    Unverifiable,
    No,
}

/// Returns whether a message of this type can begin a chain.
fn begins_chain(letter: u8, strictness: Strictness) -> bool {
    match strictness {
        Strictness::Cheap => matches!(letter, kind::DATA | kind::SYNC),
        _ => kind::ALL.contains(&letter),
    }
}

/// Returns why a whole format definition cannot be read, if it has a name: without one, nothing says
/// that it is a definition.
pub(crate) fn why_no_format(window: Window<'_>, at: u64, msg_type: u8, end: u64) -> Option<String> {
    let payload = window.slice(at + HEADER_LEN, end).ok()??;
    match FormatText::explained(payload) {
        Err(bad @ BadFormat::Field { .. }) if msg_type == kind::FORMAT => Some(bad.to_string()),
        _ => None,
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
    fn looking_ahead_parses_no_more_than_its_budget() {
        let mut definitions = Definitions::default();
        for text in [&b"t:e[2] x;"[..], b"e:uint16_t y;"] {
            let format = Message::Format(wire::Format { format: text });
            definitions.apply(0, 0, &format, &mut ReadOptions::default().diagnostics());
        }
        let both = 9 + 13;
        let validator = Validator::new(Window::whole(&[]), &definitions, 0, 2 * both);
        let size = || validator.row_size("t", &Overlay::default());
        assert_eq!((size(), validator.used()), (Some((4, 4)), both));
        assert_eq!((size(), validator.used()), (Some((4, 4)), 2 * both));
        assert_eq!(size(), None);
        // What is parsed is work too.
        assert_eq!(validator.work.get(), 2 * both + 9);
    }
}
