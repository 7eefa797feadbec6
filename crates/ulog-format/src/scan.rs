//! The scanner, which divides the bytes of a log into messages and damage.
//!
//! The reader, the stream and the recovery all use [`Scanner`]. It does no I/O: each call of
//! [`step`](scan::Scan::step) examines a [`Window`] of the file and returns the next [`Step`], or
//! requests a longer window. Every byte of the file belongs to exactly one step.
//!
//! # Decisions
//!
//! ULog has no checksums, so the scanner relies on the plausibility checks in
//! [`validate`](crate::validate). At each offset it asks for a [`Verdict`]:
//!
//! 1. The message fits, and so does the next one: the message is accepted.
//! 2. The message fits, but the next one does not: if three fitting messages start inside it, the
//!    length in its header is wrong, and the bytes before them are lost. Otherwise the message is
//!    accepted, because the damage comes after it.
//! 3. The message cannot be verified: it is skipped if fitting messages follow.
//! 4. The bytes are no message: the scanner searches for the next three fitting messages, starting
//!    at the next byte. The length in the header may be damaged, so it is not used to continue.
//!
//! # Example
//!
//! A log has messages of 14 bytes, all of them rows, at offsets 100, 114, 128, 142 and 156. If the
//! type of the second row, at byte 116, is overwritten with zero, the steps are:
//!
//! - 100..114, `Row`: the row fits. The next message does not, but no messages start inside the
//!   row.
//! - 114..128, `Lost` with the rule `bad_message`: three rows start at byte 128, which is also the
//!   end of the damaged message according to its header.
//! - 128..142, `Row`: the row and the next one fit.
//!
//! If the size at byte 114 is overwritten instead, the same bytes are lost with the rule `gap`,
//! because the claimed end of the message is somewhere else.

use rovelog_core::internal::layout::TextDecoding;
use rovelog_core::internal::partial::PartBounds;
use rovelog_core::internal::scan::{self, NeedMore, Window};
use rovelog_core::internal::text::count;
use rovelog_core::{Diagnostics, ReadOptions, Rule, field_range};

use crate::clock::{LogClock, RowMicros};
use crate::definitions::Definitions;
use crate::deviations::Deviations;
use crate::diagnostics as rules;
use crate::error::UlogError;
use crate::flags::{AppendedData, FLAGS_LEN, flag_bits};
use crate::locate::{Search, Start, locate};
use crate::schema::{BadFormat, FormatText};
use crate::sessions::{Boundaries, header_at};
pub(crate) use crate::step::{PlainRow, ROW_AT, RowInfo, Step, plain_row, plain_time};
use crate::validate::{FREE_DEFINITIONS, Scan, TYPE_AT, Validator, Verdict};
use crate::wire::{FLAG_BITS_AT, FileHeader, HEADER_LEN, Message, MessageHeader, kind};

/// Distance in bytes from the current row to the byte that is loaded into the processor's cache in
/// advance. Otherwise, the scan would wait for memory at most rows.
pub(crate) const PREFETCH_DISTANCE: usize = 4096;

/// Number of bytes of definitions that lookahead may parse for each byte scanned so far.
/// [`FREE_DEFINITIONS`] may be parsed in addition. The limit keeps the total work linear in the
/// size of the log.
const DEFINITIONS_PER_BYTE: u64 = 16;

/// A lost range of bytes whose end has not been found yet.
#[derive(Clone, Debug)]
struct Damage {
    start: u64,
    /// The invalid message at `start`, or `None` if its header is incomplete.
    invalid: Option<InvalidMessage>,
    /// Progress of the search for the end of the lost range.
    scan: Scan,
}

/// An invalid message with a complete header.
#[derive(Clone, Debug)]
struct InvalidMessage {
    msg_type: u8,
    /// Offset of the end of the message, according to its header.
    end: u64,
    /// Reason why the message cannot be read, or `None` if it is unknown.
    why: Option<String>,
}

/// The last row that was found.
#[derive(Clone, Copy, Debug)]
struct LastRow {
    at: u64,
    end: u64,
    /// Number of the row's topic.
    series: u32,
}

/// Position of a scan in the file.
#[derive(Debug, Default)]
pub(crate) struct Position {
    /// Offset in the file at which the next step starts.
    pub(crate) at: u64,
    /// Lost range at `at` whose end has not been found yet.
    damage: Option<Damage>,
    /// If damage directly follows this row, a diagnostic names the row, because the damage may have
    /// started inside it.
    last_row: Option<LastRow>,
    /// Boundaries of the byte range that is scanned, if the log was fetched in part.
    part: PartBounds,
}

impl Position {
    /// Moves the position to the end of a row.
    #[inline]
    pub(crate) fn pass_row(&mut self, at: u64, end: u64, series: u32) {
        self.last_row = Some(LastRow { at, end, series });
        self.at = end;
    }
}

/// Results of lookahead that later steps need.
#[derive(Debug, Default)]
struct Lookahead {
    /// Number of bytes of definitions that lookahead has parsed. They are limited, because a
    /// hostile log could make lookahead parse them again and again.
    parsed_bytes: u64,
    /// Offset up to which unverifiable messages can be skipped, because lookahead has found
    /// verifiable messages after them.
    skippable: u64,
}

impl Lookahead {
    /// Returns the number of bytes of definitions that lookahead may parse at the offset `at`.
    fn budget(&self, at: u64) -> u64 {
        (FREE_DEFINITIONS + DEFINITIONS_PER_BYTE * at).saturating_sub(self.parsed_bytes)
    }
}

/// State of a scan, with the definitions and the problems found so far.
#[derive(Debug)]
pub(crate) struct Scanner {
    /// Start of the first log in the file. The bytes before its header are lost.
    pub(crate) start: Start,
    pub(crate) position: Position,
    lookahead: Lookahead,
    pub(crate) definitions: Definitions,
    pub(crate) clock: LogClock,
    pub(crate) appended: AppendedData,
    /// Starts of the recordings in the file except the first, as found by an earlier scan.
    pub(crate) boundaries: Boundaries,
    pub(crate) deviations: Deviations,
    pub(crate) diagnostics: Diagnostics,
}

impl Scanner {
    /// Creates a scanner from the header and the flag bits of a log. `window` must start at the
    /// start of the file.
    pub(crate) fn start(
        window: Window<'_>,
        options: &ReadOptions,
        search: Search,
    ) -> Result<Result<Self, UlogError>, NeedMore> {
        let start = match locate(window, search)? {
            Ok(start) => start,
            Err(error) => return Ok(Err(error)),
        };
        let Start { header, at, first, .. } = start;
        let mut scanner = Self {
            position: Position { at: if at > 0 { 0 } else { first }, ..Position::default() },
            lookahead: Lookahead::default(),
            definitions: Definitions::new(&options.limits, TextDecoding::new(options.text_encoding)),
            clock: LogClock::new(header.timestamp.get()),
            appended: AppendedData { flag_bits_at: first, ..AppendedData::default() },
            boundaries: Boundaries::default(),
            deviations: Deviations::default(),
            diagnostics: options.diagnostics(),
            start,
        };
        if let Some(damage) = &scanner.start.damage {
            scanner.diagnostics.push(&rules::DAMAGED_HEADER, at..first.max(at + 1), || damage.clone());
        } else if header.version > 1 {
            scanner.diagnostics.push(&rules::UNKNOWN_VERSION, field_range!(0, FileHeader, version), || {
                format!("the file has the unknown version {} and is read as version 1", header.version)
            });
        }
        if let Some(flags) = flag_bits(window.upto(first, FLAGS_LEN)?)
            && let Err(error) = scanner.appended.apply(flags, &mut scanner.diagnostics)
        {
            return Ok(Err(error));
        }
        Ok(Ok(scanner))
    }

    /// Enters a byte range of a log that was fetched in part.
    ///
    /// After bytes that were not fetched, the offset of the next message is unknown. The scan
    /// treats this as damage and searches for the first valid message.
    pub(crate) fn enter(&mut self, part: PartBounds) {
        self.position.part = part;
        let Some(at) = part.start else { return };
        self.appended.candidates.retain(|candidate| *candidate > at);
        let damage = Some(Damage { start: at, invalid: None, scan: Scan::from(at) });
        self.position = Position { at, damage, last_row: None, part };
    }

    /// Returns `true` if the scan has passed the header of another log in the file (rule D41 of
    /// docs/formats/ulog.md).
    pub(crate) fn is_second_log(&self) -> bool {
        self.appended.flag_bits_at != self.start.first
    }

    /// Returns the offset that no message may cross. It is the start of the next appended data, or
    /// the end of the file.
    fn limit(&self, window: &Window<'_>) -> u64 {
        let end = if window.eof { window.end() } else { u64::MAX };
        self.appended.next().map_or(end, |next| end.min(next))
    }

    fn validator<'w>(&'w self, window: Window<'w>, limit: u64) -> Validator<'w> {
        let (position, first) = (self.position.at, self.appended.flag_bits_at);
        Validator::new(window, &self.definitions, limit, self.lookahead.budget(position))
            .with_flag_bits(first..first + 1, position)
    }

    /// Removes `limit` from the offsets of appended data if no messages start there (rule D29 of
    /// docs/formats/ulog.md).
    ///
    /// Returns `true` if the offset was removed. The caller must then validate again with the next
    /// limit.
    fn remove_false_limit(&mut self, window: Window<'_>, limit: u64) -> Result<bool, NeedMore> {
        if self.appended.next() != Some(limit) || self.appended.confirmed == Some(limit) {
            return Ok(false);
        }
        let end = if window.eof { window.end() } else { u64::MAX };
        let next = self.appended.candidates.get(1).map_or(end, |next| end.min(*next));
        // An offset at the end of the file is valid too. The specification tells a writer to store
        // the offset before the data is appended, so the appended data may be empty.
        if limit == end || self.validator(window, next).starts(limit)? {
            self.appended.confirmed = Some(limit);
            return Ok(false);
        }
        self.appended.candidates.remove(0);
        self.appended.ignore(limit, &mut self.diagnostics);
        Ok(true)
    }

    /// Calls `sink` for consecutive ordinary rows, until a message needs the full checks of
    /// [`step`](scan::Scan::step).
    ///
    /// A row is passed to `sink` only if another ordinary row follows, which is decision 1 of the
    /// module documentation. This loop scans most of a log, so its state is kept in local
    /// variables.
    #[inline]
    pub(crate) fn rows(&mut self, window: Window<'_>, mut sink: impl FnMut(&Definitions, PlainRow)) {
        if self.position.damage.is_some() || !self.clock.is_plain() {
            return;
        }
        let limit = self.limit(&window).min(window.end()).min(self.boundaries.next_at());
        let Ok(len) = usize::try_from(limit.saturating_sub(window.base)) else { return };
        let data = &window.data[..len];
        let Ok(mut at) = usize::try_from(self.position.at - window.base) else { return };
        let shapes = &self.definitions.shapes;
        let Some((mut shape, mut end)) = plain_row(shapes, data, at) else { return };
        let (mut now, data_end) = (self.clock.now, self.clock.data_end);
        let mut last = None;
        let mut prefetched = 0_u8;
        while let Some((next_shape, next_end)) = plain_row(shapes, data, end)
            && let Some(micros) = plain_time(shape, data, at)
        {
            // Reading one byte loads its cache line in advance. `black_box` below prevents the
            // compiler from removing this read.
            prefetched ^= data.get(at + PREFETCH_DISTANCE).copied().unwrap_or(0);
            let before = now;
            if micros <= data_end {
                now = now.max(micros);
            }
            let (series, len) = (shape.series, end - at - ROW_AT);
            sink(
                &self.definitions,
                PlainRow {
                    at: window.base + at as u64,
                    series,
                    len,
                    micros,
                    before,
                    #[cfg(feature = "arrow")]
                    now,
                },
            );
            last = Some((at, end, series));
            (at, shape, end) = (end, next_shape, next_end);
        }
        std::hint::black_box(prefetched);
        self.clock.now = now;
        if let Some((at, end, series)) = last {
            self.position.pass_row(window.base + at as u64, window.base + end as u64, series);
        }
    }

    /// Returns the next row if both this row and the row after it are ordinary. Otherwise returns
    /// `None`, and the caller performs the full checks.
    #[inline]
    fn plain_step(&mut self, window: Window<'_>) -> Option<Step> {
        // If appended data or another recording could start here, `step` must handle it.
        let may_start = self.appended.next().is_some() || self.boundaries.next_at() < u64::MAX;
        if may_start || !self.clock.is_plain() {
            return None;
        }
        let start = usize::try_from(self.position.at - window.base).ok()?;
        let shapes = &self.definitions.shapes;
        let (shape, end) = plain_row(shapes, window.data, start)?;
        let micros = plain_time(shape, window.data, start)?;
        plain_row(shapes, window.data, end)?;
        let (shape, at, before) = (*shape, self.position.at, self.clock.now);
        if micros <= self.clock.data_end {
            self.clock.now = before.max(micros);
        }
        let end = window.base + end as u64;
        self.position.pass_row(at, end, shape.series);
        Some(Step::Row { at, end, shape, time: RowMicros::At(micros), before })
    }

    /// Starts another log in the same file, whose header is at the offset `at`. Formats, message
    /// ids and information of the previous log do not apply to the new log (rule D41 of
    /// docs/formats/ulog.md).
    fn start_second_log(&mut self, at: u64, header: FileHeader) -> Step {
        let end = at + FLAG_BITS_AT;
        (self.position.at, self.appended.flag_bits_at) = (end, end);
        self.definitions.restart(at);
        self.deviations.restart();
        if self.boundaries.list.is_empty() {
            self.clock.restart(header.timestamp.get(), 0);
        }
        Step::SecondHeader { at, end, header }
    }

    /// Returns the type and the content of the message between the offsets `at` and `end`. The
    /// message must have been validated.
    fn view(window: Window<'_>, at: u64, end: u64) -> (u8, Message<'_>) {
        let bytes = window.slice(at, end).ok().flatten().expect("validated as whole");
        let (header, payload) = MessageHeader::split(bytes).expect("validated as whole");
        (header.msg_type, Message::parse(header.msg_type, payload).expect("validated"))
    }

    /// Accepts the fitting message at the position, which ends at `end`, or reports it as lost. This
    /// is decision 1 or 2 of the module documentation. Returns `None` if the bytes at the position
    /// must be validated again with the next limit.
    #[inline]
    fn try_accept(&mut self, window: Window<'_>, limit: u64, end: u64) -> Result<Option<Step>, NeedMore> {
        let at = self.position.at;
        let (msg_type, message) = Self::view(window, at, end);
        // The layout is computed and stored here once. Lookahead cannot store layouts, so it would
        // parse the definitions again for each row.
        if let Message::Subscription(subscription) = message
            && let Some(name) = subscription.name()
        {
            self.definitions.prepare(name);
        }
        let validator = self.validator(window, limit);
        let followed = validator.followed(end, &message)?;
        let (crossed, lookahead_bytes) = (validator.crossed(), validator.lookahead_bytes());
        if !followed && crossed && self.remove_false_limit(window, limit)? {
            self.lookahead.parsed_bytes += lookahead_bytes;
            return Ok(None);
        }
        let validator = self.validator(window, limit);
        // If three messages inside this message agree with their types, the length of this message
        // is wrong.
        let found = if followed { None } else { validator.scan(&mut Scan::from(at + 1), end)? };
        self.lookahead.parsed_bytes += lookahead_bytes + validator.lookahead_bytes();
        Ok(Some(match found {
            Some(found) => self.report_loss(at, found, &rules::LOST),
            None => self.accept(at, end, msg_type, &message),
        }))
    }

    /// Skips the unverifiable message at the position, which ends at `end`, or treats it as damage.
    /// This is decision 3 of the module documentation. Returns `None` if the scan must search for
    /// the end of the damage, or if the bytes at the position must be validated again with the next
    /// limit.
    fn try_skip(&mut self, window: Window<'_>, limit: u64, end: u64) -> Result<Option<Step>, NeedMore> {
        let at = self.position.at;
        let (msg_type, message) = Self::view(window, at, end);
        let validator = self.validator(window, limit);
        // The previous lookahead may have examined this message together with others. Then it is not
        // examined again.
        let skippable = match self.lookahead.skippable {
            known if end <= known => Some(known),
            _ => validator.skippable(end, &message)?,
        };
        let crossed = validator.crossed();
        // If an unknown message contains valid messages, its header is damaged. Skipping the unknown
        // message would hide these messages.
        let swallowed = match message {
            Message::Unknown { .. } if skippable.is_some() => validator.scan(&mut Scan::from(at + 1), end)?,
            _ => None,
        };
        self.lookahead.parsed_bytes += validator.lookahead_bytes();
        if let Some(found) = swallowed {
            return Ok(Some(self.report_loss(at, found, &rules::LOST)));
        }
        if let Some(until) = skippable {
            self.lookahead.skippable = until;
            return Ok(Some(self.skip(at, end, msg_type, &message)));
        }
        if !crossed || !self.remove_false_limit(window, limit)? {
            self.start_damage(Some(InvalidMessage { msg_type, end, why: None }));
        }
        Ok(None)
    }

    /// Treats the bytes at the position as damage, or removes a false `limit`. `claimed` is the end
    /// of the invalid message according to its header.
    fn reject(&mut self, window: Window<'_>, limit: u64, claimed: Option<u64>) -> Result<(), NeedMore> {
        if claimed.is_none_or(|end| end > limit) && self.remove_false_limit(window, limit)? {
            return Ok(());
        }
        let at = self.position.at;
        let msg_type = window.byte(at + TYPE_AT).ok().flatten();
        self.start_damage(msg_type.zip(claimed).map(|(msg_type, end)| {
            let why = why_no_format(window, at, msg_type, end);
            InvalidMessage { msg_type, end, why }
        }));
        Ok(())
    }

    /// Records that damage starts at the current position. The next step searches for its end.
    fn start_damage(&mut self, invalid: Option<InvalidMessage>) {
        let start = self.position.at;
        self.position.damage = Some(Damage { start, invalid, scan: Scan::from(start + 1) });
    }

    /// Searches for the end of the damage, which is decision 4 in the documentation of this module.
    fn search(&mut self, window: Window<'_>) -> Result<Step, NeedMore> {
        loop {
            let damage = self.position.damage.as_ref().expect("only called with damage");
            let (mut scan, claimed) = (damage.scan, damage.invalid.as_ref().map(|invalid| invalid.end));
            let limit = self.limit(&window);
            let validator = self.validator(window, limit);
            let found = validator.scan(&mut scan, limit);
            let lookahead_bytes = validator.lookahead_bytes();
            // The progress is stored even if the window is too short. Otherwise, the next call
            // would search the same bytes again, and reading a pipe would take quadratic time.
            if let Some(damage) = &mut self.position.damage {
                damage.scan = scan;
            }
            self.lookahead.parsed_bytes += lookahead_bytes;
            let (end, rule) = match found? {
                // Valid messages start exactly where the damaged message ends according to its
                // header, so only the payload is damaged.
                Some(end) if claimed == Some(end) => (end, &rules::BAD_MESSAGE),
                Some(end) => (end, &rules::LOST),
                None => {
                    if self.remove_false_limit(window, limit)? {
                        continue;
                    }
                    // If the message ends after the limit according to its header, it was cut
                    // there. If it ends before the limit, all of its bytes are present, but they
                    // are damaged.
                    let is_cut = claimed.is_none_or(|claimed| claimed > limit);
                    (limit, if is_cut { &rules::CUT } else { &rules::LOST })
                }
            };
            let damage = self.position.damage.take().expect("only called with damage");
            return Ok(self.report_damage(damage.start, end, rule, damage.invalid));
        }
    }

    /// Reports a lost range of bytes that does not start with an invalid message.
    fn report_loss(&mut self, at: u64, end: u64, rule: &'static Rule) -> Step {
        self.report_damage(at, end, rule, None)
    }

    /// Reports that the bytes from `at` to `end` are lost, and continues the scan at `end`.
    fn report_damage(
        &mut self,
        at: u64,
        end: u64,
        rule: &'static Rule,
        invalid: Option<InvalidMessage>,
    ) -> Step {
        let last_row = self.position.last_row.filter(|row| row.end == at);
        let topics = &self.definitions.topics;
        // Bytes next to a range that was not fetched may belong to a message that starts or ends in
        // this range. They are reported as unread, not as damaged.
        self.position.at = end;
        if self.position.part.touches_unread(at, end) {
            return Step::Unread { at, end };
        }
        self.diagnostics.push(rule, at..end, || match invalid {
            Some(InvalidMessage { why: Some(why), .. }) => why,
            Some(InvalidMessage { msg_type, .. }) if rule == &rules::BAD_MESSAGE => {
                let letter = msg_type.escape_ascii();
                format!("a '{letter}' message is lost, because its payload is not valid for this type")
            }
            Some(InvalidMessage { msg_type, end: claimed, .. }) if rule == &rules::CUT => format!(
                "a '{}' message of {} is lost, because it is truncated {} before its end",
                msg_type.escape_ascii(),
                count(claimed - at, "byte"),
                count(claimed - end, "byte"),
            ),
            None if rule == &rules::CUT => "a message is lost, because it ends inside its header".to_owned(),
            _ => {
                let mixture = last_row.map(|row| {
                    format!(
                        "; the record of {} directly before, at byte {}, may be corrupt",
                        topics[row.series as usize].name, row.at
                    )
                });
                format!("these bytes contain no valid message and are lost{}", mixture.unwrap_or_default())
            }
        });
        Step::Lost { at, end, rule }
    }
}

impl scan::Scan for Scanner {
    type Step = Step;

    /// Returns the next step of the scan. Every byte after the file header belongs to exactly one
    /// step.
    ///
    /// # Errors
    /// Returns an error if the window is too short to determine the step. The scan does not advance
    /// in this case, and the caller repeats the call with a longer window.
    fn step(&mut self, window: Window<'_>) -> Result<Step, NeedMore> {
        loop {
            if self.position.damage.is_some() {
                return self.search(window);
            }
            self.boundaries.enter(self.position.at, &mut self.clock);
            if let Some(row) = self.plain_step(window) {
                return Ok(row);
            }
            let at = self.position.at;
            // If bytes precede the header, the scan starts at 0, and these bytes are lost as one
            // range.
            if at < self.start.first {
                let step = self.report_loss(at, self.start.at, &rules::LOST);
                self.position.at = self.start.first;
                return Ok(step);
            }
            self.appended.reach(at, &mut self.diagnostics);
            if self.position.part.ends_before_unread(at) {
                return Ok(Step::End);
            }
            if window.eof && at == window.end() {
                self.appended.finish(&mut self.diagnostics);
                self.deviations.finish(&mut self.definitions, &mut self.diagnostics);
                return Ok(Step::End);
            }
            if let Some(header) = header_at(window, at)? {
                return Ok(self.start_second_log(at, header));
            }
            let limit = self.limit(&window);
            let step = match self.validator(window, limit).validate_expected(at)? {
                Verdict::Fits { end, .. } => self.try_accept(window, limit, end)?,
                Verdict::Unverifiable { end } => self.try_skip(window, limit, end)?,
                Verdict::No { claimed } => self.reject(window, limit, claimed).map(|()| None)?,
            };
            if let Some(step) = step {
                return Ok(step);
            }
        }
    }

    fn needed_from(&self) -> u64 {
        self.position.damage.as_ref().map_or(self.position.at, |damage| damage.scan.next)
    }
}

/// Returns the reason why a format definition cannot be read, if all of its bytes are present.
///
/// Returns `None` for a definition without a name, because the bytes may not be a definition at
/// all.
fn why_no_format(window: Window<'_>, at: u64, msg_type: u8, end: u64) -> Option<String> {
    let payload = window.slice(at + HEADER_LEN, end).ok()??;
    match FormatText::parse_or_explain(payload) {
        Err(bad @ BadFormat::Field { .. }) if msg_type == kind::FORMAT => Some(bad.to_string()),
        _ => None,
    }
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
