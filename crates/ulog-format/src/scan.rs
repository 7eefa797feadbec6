//! The scanner of the messages of a log, shared by reader, stream and recovery.
//!
//! [`Scanner`] does no I/O. It looks at a [`Window`] of the file and returns the next [`Step`]; if the
//! window ends too early, it requests more. Every byte of the file is part of exactly one step.

use std::collections::HashSet;
use std::ops::Range;

use rovelog_core::layout::TextDecoding;
use rovelog_core::partial::Seams;
use rovelog_core::scan::{self, NeedMore, Window};
use rovelog_core::text::count;
use rovelog_core::{Diagnostics, ReadOptions, Rule, field_range};
use zerocopy::FromBytes;

use crate::breaches::Breaches;
use crate::clock::{LogClock, RowMicros};
use crate::definitions::{Definitions, RowShape};
use crate::diagnostics as rules;
use crate::error::UlogError;
use crate::locate::{Search, Start, locate};
use crate::schema::Key;
use crate::sessions::{Boundary, header_at};
pub(crate) use crate::step::{MetRow, PlainRow, ROW_AT, Step, plain_row, plain_time};
use crate::validate::{FREE_DEFINITIONS, Scan, TYPE_AT, Validator, Verdict, why_no_format};
use crate::wire::{
    DefaultParameter, FLAG_BITS_AT, FileHeader, FlagBits, FlagBitsMessage, HEADER_LEN, LoggedString, Message,
    MessageHeader, MultiInfo, TaggedString, kind,
};

/// How many bytes ahead are prefetched: without this, the scan waits for memory at most rows.
pub(crate) const AHEAD: usize = 4096;

/// Length in bytes of a flag bits message of an edition without further fields.
pub(crate) const FLAGS_LEN: u64 = HEADER_LEN + size_of::<FlagBits>() as u64;

/// Further ones for each byte of the log before that place, so that the work stays linear.
const DEFINITIONS_PER_BYTE: u64 = 16;

/// A lost range whose end is being looked for.
#[derive(Clone, Debug)]
struct Damage {
    start: u64,
    /// The message that was due, where its header is whole.
    due: Option<Due>,
    scan: Scan,
}

/// A message that was due and is not valid.
#[derive(Clone, Debug)]
struct Due {
    msg_type: u8,
    /// Where it ends, as its header says.
    end: u64,
    /// Why it cannot be read, where that is known.
    why: Option<String>,
}

/// Scans a log: where it is, what it learned, what it noticed.
#[derive(Debug)]
pub(crate) struct Scanner {
    pub(crate) header: FileHeader,
    /// Offset of the header, or of the first message if there is none: the bytes before it are lost.
    pub(crate) header_at: u64,
    /// Offset of the first message.
    pub(crate) first: u64,
    /// Whether the file starts with its header.
    pub(crate) is_intact: bool,
    /// Whether it is behind the header of another log in the file.
    pub(crate) is_joined: bool,
    pub(crate) flags: Option<FlagBits>,
    pub(crate) definitions: Definitions,
    pub(crate) diagnostics: Diagnostics,
    pub(crate) clock: LogClock,
    /// Where appended data started, as far as met.
    pub(crate) appended: Vec<u64>,
    at: u64,
    /// Offsets of appended data still to be met, ascending.
    pub(crate) candidates: Vec<u64>,
    /// The one of them at which messages were found to start.
    found_at: Option<u64>,
    damage: Option<Damage>,
    /// The last row taken: damage right behind it may have eaten into it.
    last_row: Option<(u64, u64, u32)>,
    /// Unverifiable messages up to here were found to lead on to what can be validated.
    passable: u64,
    /// Names of multi information messages met.
    multi_names: HashSet<Box<str>>,
    breaches: Breaches,
    /// The Unix time of the start of the data, if it was given.
    pub(crate) utc_start: Option<i64>,
    /// Bytes of definitions parsed only to look ahead.
    used: u64,
    /// The ends of the part that is scanned, of a log of which parts are read.
    seams: Seams,
    /// Where sessions start, if an earlier scan has found several, and how many have started.
    pub(crate) boundaries: Vec<Boundary>,
    entered: usize,
}

impl Scanner {
    /// Reads the header and the flag bits; `window` starts with the file.
    pub(crate) fn start(
        window: Window<'_>,
        options: &ReadOptions,
        search: Search,
    ) -> Result<Result<Self, UlogError>, NeedMore> {
        let Start { header, at, first, damage } = match locate(window, search)? {
            Ok(start) => start,
            Err(error) => return Ok(Err(error)),
        };
        let mut scanner = Self {
            header,
            header_at: at,
            first,
            is_intact: damage.is_none(),
            is_joined: false,
            flags: None,
            definitions: Definitions::new(&options.limits, TextDecoding::new(options.text_encoding)),
            diagnostics: options.diagnostics(),
            utc_start: options.utc_start,
            clock: LogClock::new(header.timestamp.get()),
            appended: Vec::new(),
            at: if at > 0 { 0 } else { first },
            candidates: Vec::new(),
            found_at: None,
            damage: None,
            last_row: None,
            passable: 0,
            multi_names: HashSet::new(),
            breaches: Breaches::default(),
            used: 0,
            seams: Seams::default(),
            boundaries: Vec::new(),
            entered: 0,
        };
        if let Some(damage) = damage {
            scanner.diagnostics.push(&rules::DAMAGED_HEADER, at..first.max(at + 1), || damage);
        } else if header.version > 1 {
            scanner.diagnostics.push(&rules::UNKNOWN_VERSION, field_range!(0, FileHeader, version), || {
                format!("file version {} is read as version 1", header.version)
            });
        }
        let head = window.upto(first, FLAGS_LEN)?;
        if let Ok((message, rest)) = MessageHeader::ref_from_prefix(head) {
            let long_enough = usize::from(message.msg_size.get()) >= size_of::<FlagBits>();
            if let (kind::FLAG_BITS, true, Ok((flags, _))) =
                (message.msg_type, long_enough, FlagBits::ref_from_prefix(rest))
                && let Err(error) = scanner.take_flags(flags)
            {
                return Ok(Err(error));
            }
        }
        Ok(Ok(scanner))
    }

    /// Enters a part of the log. Behind bytes that were not read, the scan goes on with the first
    /// valid message.
    pub(crate) fn enter(&mut self, seams: Seams) {
        self.seams = seams;
        let Some(at) = seams.start else { return };
        self.candidates.retain(|candidate| *candidate > at);
        (self.at, self.last_row) = (at, None);
        self.damage = Some(Damage { start: at, due: None, scan: Scan::from(at) });
    }

    /// Returns where no message may pass: the next appended data, or the end of the file.
    fn limit(&self, window: &Window<'_>) -> u64 {
        let end = if window.eof { window.end() } else { u64::MAX };
        self.candidates.first().map_or(end, |candidate| end.min(*candidate))
    }

    fn validator<'w>(&'w self, window: Window<'w>, limit: u64) -> Validator<'w> {
        let budget = (FREE_DEFINITIONS + DEFINITIONS_PER_BYTE * self.at).saturating_sub(self.used);
        Validator::new(window, &self.definitions, limit, budget).with_flag_bits(self.first..self.first + 1)
    }

    /// Returns whether the limit is an offset at which no data is appended: then it is none, and
    /// the offset is ignored.
    fn drops_limit(&mut self, window: Window<'_>, limit: u64) -> Result<bool, NeedMore> {
        if self.candidates.first() != Some(&limit) || self.found_at == Some(limit) {
            return Ok(false);
        }
        let end = if window.eof { window.end() } else { u64::MAX };
        let next = self.candidates.get(1).map_or(end, |next| end.min(*next));
        // Appended data may be nothing yet.
        if limit == end || self.validator(window, next).starts(limit)? {
            self.found_at = Some(limit);
            return Ok(false);
        }
        self.candidates.remove(0);
        self.ignore_offset(limit);
        Ok(true)
    }

    /// Hands plain rows to `sink` as long as nothing needs a closer look: each fits, and so does
    /// the next. What is left is for [`step`](Self::step).
    #[inline]
    pub(crate) fn rows(&mut self, window: Window<'_>, mut sink: impl FnMut(&Definitions, PlainRow)) {
        if self.damage.is_some() || !self.clock.is_plain() {
            return;
        }
        let next = self.boundaries.get(self.entered).map_or(u64::MAX, |next| next.at);
        let limit = self.limit(&window).min(window.end()).min(next);
        let Ok(len) = usize::try_from(limit.saturating_sub(window.base)) else { return };
        let data = &window.data[..len];
        let Ok(mut at) = usize::try_from(self.at - window.base) else { return };
        let shapes = &self.definitions.shapes;
        let Some((mut shape, mut end)) = plain_row(shapes, data, at) else { return };
        let (mut now, data_end) = (self.clock.now, self.clock.data_end);
        let mut last = None;
        let mut touched = 0_u8;
        while let Some((next_shape, next_end)) = plain_row(shapes, data, end)
            && let Some(micros) = plain_time(shape, data, at)
        {
            touched ^= data.get(at + AHEAD).copied().unwrap_or(0);
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
        std::hint::black_box(touched);
        self.clock.now = now;
        if let Some((at, end, series)) = last {
            self.last_row = Some((window.base + at as u64, window.base + end as u64, series));
        }
        self.at = window.base + at as u64;
    }

    /// Returns the row at the place, where it and the next one need no closer look: most steps of
    /// most logs.
    #[inline]
    fn plain_step(&mut self, window: Window<'_>) -> Option<Step> {
        if !self.candidates.is_empty() || !self.clock.is_plain() || self.entered < self.boundaries.len() {
            return None;
        }
        let start = usize::try_from(self.at - window.base).ok()?;
        let shapes = &self.definitions.shapes;
        let (shape, end) = plain_row(shapes, window.data, start)?;
        let micros = plain_time(shape, window.data, start)?;
        plain_row(shapes, window.data, end)?;
        let (shape, at, before) = (*shape, self.at, self.clock.now);
        if micros <= self.clock.data_end {
            self.clock.now = before.max(micros);
        }
        self.at = window.base + end as u64;
        self.last_row = Some((at, self.at, shape.series));
        Some(Step::Row { at, end: self.at, shape, time: RowMicros::At(micros), before })
    }

    /// Enters the sessions that start at the place.
    fn enter_sessions(&mut self) {
        while let Some(next) = self.boundaries.get(self.entered).filter(|next| next.at <= self.at) {
            next.enter(&mut self.clock);
            self.entered += 1;
        }
    }

    /// Starts another log in the same file.
    fn join(&mut self, at: u64, header: FileHeader) -> Step {
        let end = at + FLAG_BITS_AT;
        (self.at, self.first) = (end, end);
        self.is_joined = true;
        self.definitions.restart(at);
        self.multi_names.clear();
        self.breaches.restart();
        if self.boundaries.is_empty() {
            self.clock.restart(header.timestamp.get(), 0);
        }
        Step::Joined { at, end, header }
    }

    /// Returns the message at `at`, which was validated whole.
    fn view(window: Window<'_>, at: u64, end: u64) -> (u8, Message<'_>) {
        let bytes = window.slice(at, end).ok().flatten().expect("validated as whole");
        let (header, payload) = MessageHeader::split(bytes).expect("validated as whole");
        (header.msg_type, Message::parse(header.msg_type, payload).expect("validated"))
    }

    /// Rule 4 of section 5: looks for the end of the damage.
    fn search(&mut self, window: Window<'_>) -> Result<Step, NeedMore> {
        loop {
            let damage = self.damage.as_ref().expect("only called with damage");
            let (mut scan, claimed) = (damage.scan, damage.due.as_ref().map(|due| due.end));
            let limit = self.limit(&window);
            let validator = self.validator(window, limit);
            let found = validator.scan(&mut scan, limit);
            let used = validator.used();
            // What was searched is searched, whatever is missing now.
            if let Some(damage) = &mut self.damage {
                damage.scan = scan;
            }
            self.used += used;
            let (end, rule) = match found? {
                Some(end) if claimed == Some(end) => (end, &rules::BAD_MESSAGE),
                Some(end) => (end, &rules::LOST),
                None => {
                    if self.drops_limit(window, limit)? {
                        continue;
                    }
                    let is_cut = claimed.is_none_or(|claimed| claimed > limit);
                    (limit, if is_cut { &rules::CUT } else { &rules::LOST })
                }
            };
            let damage = self.damage.take().expect("only called with damage");
            return Ok(self.lose_due(damage.start, end, rule, damage.due));
        }
    }

    fn lose(&mut self, at: u64, end: u64, rule: &'static Rule) -> Step {
        self.lose_due(at, end, rule, None)
    }

    fn lose_due(&mut self, at: u64, end: u64, rule: &'static Rule, due: Option<Due>) -> Step {
        let last_row = self.last_row.filter(|(_, end, _)| *end == at);
        let topics = &self.definitions.topics;
        if self.seams.touch(at, end) {
            self.at = end;
            return Step::Unread { at, end };
        }
        self.diagnostics.push(rule, at..end, || match due {
            Some(Due { why: Some(why), .. }) => why,
            Some(Due { msg_type, .. }) if rule == &rules::BAD_MESSAGE => {
                format!("the payload of this '{}' message contradicts its type", msg_type.escape_ascii())
            }
            Some(Due { msg_type, end: claimed, .. }) if rule == &rules::CUT => format!(
                "a '{}' message of {} is cut {} before its end",
                msg_type.escape_ascii(),
                count(claimed - at, "byte"),
                count(claimed - end, "byte"),
            ),
            None if rule == &rules::CUT => "a message is cut within its header".to_owned(),
            _ => {
                let mixture = last_row.map(|(row, _, series)| {
                    format!(
                        "; the row of {} at byte {row} right before may be corrupt",
                        topics[series as usize].name
                    )
                });
                format!("no valid message in these bytes{}", mixture.unwrap_or_default())
            }
        });
        self.at = end;
        Step::Lost { at, end, rule }
    }

    /// Takes a valid message.
    fn take(&mut self, at: u64, end: u64, msg_type: u8, message: &Message<'_>) -> Step {
        self.at = end;
        self.definitions.apply(at, end, message, &mut self.diagnostics);
        match *message {
            Message::Data(data) => {
                let msg_id = data.msg_id;
                let shape = self.definitions.shapes.get(msg_id);
                if shape.flags & RowShape::NOTE != 0 {
                    self.definitions.note_row(at, msg_id, &mut self.diagnostics);
                }
                let before = self.clock.now;
                let time = self.clock.row(shape, data.row);
                if time == RowMicros::OutOfRange {
                    self.definitions.note_range(at, shape.series, &mut self.diagnostics);
                }
                self.last_row = Some((at, end, shape.series));
                return Step::Row { at, end, shape, time, before };
            }
            Message::Dropout(dropout) => self.clock.dropout(dropout.duration),
            Message::FlagBits(FlagBitsMessage { flags, .. }) if self.is_joined => {
                self.take_appended(&flags);
            }
            Message::LoggedString(LoggedString { log_level: level, .. })
            | Message::TaggedString(TaggedString { log_level: level, .. })
                if !level.is_ascii_digit() =>
            {
                self.diagnostics.push(&rules::LEVEL_NOT_A_DIGIT, at..end, || {
                    format!("the level is the number {level}, not an ASCII digit")
                });
            }
            Message::Parameter(parameter)
            | Message::DefaultParameter(DefaultParameter { info: parameter, .. }) => {
                if let Some(key) = parameter.parse_key() {
                    if !matches!(key.ty, "int32_t" | "float") {
                        self.diagnostics.push(&rules::PARAMETER_TYPE, at..end, || {
                            format!("parameter {} is of type {}", key.name, key.ty)
                        });
                    }
                    self.note_key(at..end, key);
                }
            }
            Message::Info(part) => {
                if let Some(key) = part.parse_key() {
                    self.breaches.info(at..end, key, part);
                    self.note_key(at..end, key);
                }
            }
            Message::MultiInfo(MultiInfo { is_continued, info: part }) => {
                let Some(key) = part.parse_key() else { return Step::Message { at, end, msg_type } };
                self.breaches.value(at..end, key, part);
                if !self.multi_names.contains(key.name) {
                    self.multi_names.insert(key.name.into());
                    self.note_key(at..end, key);
                    if is_continued != 0 {
                        self.diagnostics.push(&rules::CONTINUED_WITHOUT_FIRST, at..end, || {
                            format!("{} is continued without a first part", key.name)
                        });
                    }
                }
            }
            _ => {}
        }
        Step::Message { at, end, msg_type }
    }

    fn note_key(&mut self, range: Range<u64>, key: Key<'_>) {
        if !key.is_usual() {
            self.diagnostics.push(&rules::UNUSUAL_KEY, range, || {
                format!("the key \"{} {}\" contains a space or a non-ASCII character", key.ty, key.name)
            });
        }
    }

    /// Passes a whole message of which nothing more can be said.
    fn pass(&mut self, at: u64, end: u64, msg_type: u8, message: &Message<'_>) -> Step {
        self.at = end;
        self.definitions.apply(at, end, message, &mut self.diagnostics);
        match *message {
            Message::Data(data) => {
                let msg_id = data.msg_id;
                let shape = self.definitions.shapes.get(msg_id);
                let rule = if shape.flags & RowShape::UNKNOWN != 0 {
                    &rules::UNKNOWN_ID
                } else {
                    &rules::UNDECODABLE
                };
                let topics = &self.definitions.topics;
                self.diagnostics.push(rule, at..end, || {
                    if rule == &rules::UNKNOWN_ID {
                        format!("data of id {msg_id}, which is not subscribed here")
                    } else {
                        format!("data of {}, which cannot be decoded", topics[shape.series as usize].name)
                    }
                });
                Step::Lost { at, end, rule }
            }
            Message::Unknown { .. } => {
                self.diagnostics.push(&rules::UNKNOWN_MESSAGE, at..end, || {
                    format!("message type '{}' is not in the specification", msg_type.escape_ascii())
                });
                Step::Message { at, end, msg_type }
            }
            _ => Step::Message { at, end, msg_type },
        }
    }
}

impl scan::Scan for Scanner {
    type Step = Step;

    /// Returns what comes next. Every byte outside of the header is part of exactly one step.
    ///
    /// # Errors
    /// Returns an error if the window ends before that can be said; the scan has not moved then.
    fn step(&mut self, window: Window<'_>) -> Result<Step, NeedMore> {
        loop {
            if self.damage.is_some() {
                return self.search(window);
            }
            self.enter_sessions();
            if let Some(row) = self.plain_step(window) {
                return Ok(row);
            }
            let at = self.at;
            if at < self.first {
                let step = self.lose(at, self.header_at, &rules::LOST);
                self.at = self.first;
                return Ok(step);
            }
            while self.candidates.first().is_some_and(|candidate| *candidate <= at) {
                let candidate = self.candidates.remove(0);
                if candidate == at { self.appended.push(at) } else { self.ignore_offset(candidate) }
            }
            if self.seams.is_pause(at) {
                return Ok(Step::End);
            }
            if window.eof && at == window.end() {
                for candidate in std::mem::take(&mut self.candidates) {
                    self.ignore_offset(candidate);
                }
                self.breaches.finish(&mut self.definitions, &mut self.diagnostics);
                return Ok(Step::End);
            }
            if let Some(header) = header_at(window, at)? {
                return Ok(self.join(at, header));
            }
            let limit = self.limit(&window);
            match self.validator(window, limit).due(at)? {
                Verdict::Fits { end, .. } => {
                    let (msg_type, message) = Self::view(window, at, end);
                    if let Message::Subscription(subscription) = message
                        && let Some(name) = subscription.name()
                    {
                        self.definitions.prepare(name);
                    }
                    let validator = self.validator(window, limit);
                    let followed = validator.followed(end, &message)?;
                    let (crossed, used) = (validator.crossed(), validator.used());
                    if !followed && crossed && self.drops_limit(window, limit)? {
                        self.used += used;
                        continue;
                    }
                    let validator = self.validator(window, limit);
                    let found = if followed { None } else { validator.scan(&mut Scan::from(at + 1), end)? };
                    self.used += used + validator.used();
                    return Ok(match found {
                        Some(found) => self.lose(at, found, &rules::LOST),
                        None => self.take(at, end, msg_type, &message),
                    });
                }
                Verdict::Unverifiable { end } => {
                    let (msg_type, message) = Self::view(window, at, end);
                    let validator = self.validator(window, limit);
                    let passable = if end <= self.passable {
                        Some(self.passable)
                    } else {
                        validator.passable(end, &message)?
                    };
                    let crossed = validator.crossed();
                    // An unknown message with messages in it is a damaged header that has swallowed them.
                    let swallowed = match message {
                        Message::Unknown { .. } if passable.is_some() => {
                            validator.scan(&mut Scan::from(at + 1), end)?
                        }
                        _ => None,
                    };
                    let used = validator.used();
                    self.used += used;
                    if let Some(found) = swallowed {
                        return Ok(self.lose(at, found, &rules::LOST));
                    }
                    if let Some(until) = passable {
                        self.passable = until;
                        return Ok(self.pass(at, end, msg_type, &message));
                    }
                    if crossed && self.drops_limit(window, limit)? {
                        continue;
                    }
                    let due = Some(Due { msg_type, end, why: None });
                    self.damage = Some(Damage { start: at, due, scan: Scan::from(at + 1) });
                }
                Verdict::No { claimed } => {
                    if claimed.is_none_or(|end| end > limit) && self.drops_limit(window, limit)? {
                        continue;
                    }
                    let msg_type = window.byte(at + TYPE_AT).ok().flatten();
                    let due = msg_type.zip(claimed).map(|(msg_type, end)| Due {
                        msg_type,
                        end,
                        why: why_no_format(window, at, msg_type, end),
                    });
                    self.damage = Some(Damage { start: at, due, scan: Scan::from(at + 1) });
                }
            }
        }
    }

    fn needed_from(&self) -> u64 {
        self.damage.as_ref().map_or(self.at, |damage| damage.scan.next)
    }
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
