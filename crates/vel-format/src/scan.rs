//! The scanner of the messages of a log, shared by reader, stream and recovery.
//!
//! [`Scanner`] does no I/O. It looks at a [`Window`] of the file and returns the next part; if the
//! window ends too early, it requests more. Every byte of a file is part of exactly one [`Step`].

use rovelog_core::text::count;
use std::sync::Arc;

use rovelog_core::layout::Fit;
use rovelog_core::partial::Seams;
use rovelog_core::scan::{NeedMore, Scan, Window};
use rovelog_core::{Diagnostics, ReadOptions, Rule, field_range};
use zerocopy::FromBytes as _;

use crate::declared::Types;
use crate::diagnostics as rules;
use crate::locate::{Located, NoStart, locate};
use crate::message::{Message, SizeRule, nanos};
use crate::validate::{Look, Seen, Validator};
use crate::wire::{
    FileHeader, HEADER_LEN, INDEX_AT, MAGIC, MARKER_INVALID, MessageHeader, TERMINATOR_LEN, entries_len,
};

/// The next part of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A valid message; `fit` is `Short` if its payload is too short.
    Message { at: u64, end: u64, nanos: i64, fit: Option<Fit> },
    /// A message after an end mark, where reading ends; `short` as in `Fit::Short`.
    Behind { at: u64, end: u64, short: bool },
    /// A message that its writer marked as invalid.
    Invalid { at: u64, end: u64 },
    /// Bytes that cannot be read.
    Lost { at: u64, end: u64, rule: &'static Rule },
    /// Bytes of a message that is in part in bytes that were not read.
    Unread { at: u64, end: u64 },
    /// The header and index of another log in the same file.
    Joined { at: u64, end: u64 },
    /// The end mark.
    Terminator { at: u64 },
    /// Bytes after the end mark, up to the end of the file, without a message.
    Tail { at: u64, end: u64 },
    /// The end of the file.
    End,
}

/// Options of the scanner.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    pub(crate) options: ReadOptions,
    pub(crate) types: Arc<Types>,
    /// True to read a file as a VEL log regardless of its first bytes.
    pub(crate) salvage: bool,
}

/// An end mark during the search for a message after it.
#[derive(Clone, Copy, Debug)]
struct Tail {
    mark: u64,
    next: u64,
    /// True if there is none.
    noise: bool,
}

/// State after the first end mark.
#[derive(Clone, Copy, Debug)]
struct Behind {
    mark: u64,
    /// Offset of the end of the last message.
    end: u64,
    messages: u64,
}

/// A damaged range during the search for its end.
#[derive(Clone, Copy, Debug)]
struct Damage {
    start: u64,
    next: u64,
    /// True if the expected message exceeds the end of the file.
    cut: bool,
}

/// The scanner: its position, and what it has found so far.
#[derive(Debug)]
pub(crate) struct Scanner {
    pub(crate) start: Located,
    pub(crate) rule: SizeRule,
    pub(crate) diagnostics: Diagnostics,
    pub(crate) types: Arc<Types>,
    /// The Unix time of the start of the data, if it was given.
    pub(crate) utc_start: Option<i64>,
    at: u64,
    seen: Seen,
    damage: Option<Damage>,
    /// Time of the last message.
    now: i64,
    /// Set at an end mark.
    tail: Option<Tail>,
    /// Set after an end mark.
    behind: Option<Behind>,
    done: bool,
    /// The ends of the part that is scanned, of a log of which parts are read.
    seams: Seams,
}

impl Scan for Scanner {
    type Step = Step;

    // Every byte of the file after the index is part of exactly one step.
    fn step(&mut self, window: Window<'_>) -> Result<Step, NeedMore> {
        if self.done {
            return Ok(Step::End);
        }
        if let Some(tail) = self.tail {
            return self.pass_tail(window, tail);
        }
        if self.at < self.start.first {
            let (at, end) = (self.at, self.start.first);
            return Ok(self.lose(at, end, &rules::LOST));
        }
        if self.damage.is_some() {
            return self.search(window);
        }
        let at = self.at;
        if self.seams.is_pause(at) {
            return Ok(Step::End);
        }
        let validator = self.validator(window);
        let cut = match validator.look(at)? {
            Look::Whole { end, header, data } => {
                let fit = validator.fit(header, data);
                if validator.is_sure(header, data) || validator.follows(end, header, false)? {
                    return Ok(self.take(at, end, *header, fit));
                }
                false
            }
            Look::Cut => true,
            Look::Tail => {
                if !window.has(at)? {
                    return Ok(self.finish(Step::End));
                }
                if validator.is_terminator(at)? {
                    return self.terminate(window, at);
                }
                // Not even a header: there is nothing to search.
                return Ok(self.lose(at, window.end(), &rules::CUT));
            }
            Look::No => {
                if validator.is_terminator(at)? {
                    return self.terminate(window, at);
                }
                if let Some(end) = self.joined(window, at)? {
                    return Ok(self.join(at, end));
                }
                false
            }
        };
        self.damage = Some(Damage { start: at, next: at, cut });
        self.search(window)
    }

    fn needed_from(&self) -> u64 {
        let looked_for = self.damage.map(|damage| damage.next).or(self.tail.map(|tail| tail.next));
        looked_for.unwrap_or(self.at)
    }
}

impl Scanner {
    /// Finds the start of the log; `window` starts with the file.
    pub(crate) fn start(window: Window<'_>, rules: &Rules) -> Result<Self, NoStart> {
        let start = locate(window, &rules.types, rules.salvage)?;
        let mut scanner = Self {
            rule: start.evidence.rule,
            diagnostics: rules.options.diagnostics(),
            utc_start: rules.options.utc_start,
            types: Arc::clone(&rules.types),
            at: start.index_end,
            seen: Seen::new(),
            damage: None,
            now: 0,
            tail: None,
            behind: None,
            done: false,
            seams: Seams::default(),
            start,
        };
        scanner.note_start();
        Ok(scanner)
    }

    /// Enters a part of the log. Behind bytes that were not read, the scan goes on with the first
    /// valid message.
    pub(crate) fn enter(&mut self, seams: Seams) {
        self.seams = seams;
        let Some(at) = seams.start else { return };
        (self.at, self.done, self.tail) = (at, false, None);
        self.damage = Some(Damage { start: at, next: at, cut: false });
    }

    fn note_start(&mut self) {
        let header = self.start.header;
        if !self.start.magic {
            self.diagnostics.push(&rules::BAD_MAGIC, field_range!(0, FileHeader, magic), || {
                format!("the file starts with {:02x?} instead of a4 56 45 4c", header.magic)
            });
        }
        let (major, minor) = (header.major.get(), header.minor.get());
        if (major, minor) != (1, 1) {
            self.diagnostics.push(
                &rules::UNKNOWN_VERSION,
                field_range!(0, FileHeader, major..=minor),
                || format!("file version {major}.{minor} is read as version 1.1"),
            );
        }
        if self.rule == SizeRule::DataOnly {
            let (at, exact) = (self.start.first, self.start.evidence.exact);
            self.diagnostics.push(&rules::DATA_ONLY_SIZES, field_range!(at, MessageHeader, size), || {
                format!(
                    "message sizes exclude the header: then the length fits the content of {}",
                    count(exact, "message")
                )
            });
        }
    }

    fn validator<'w>(&'w self, window: Window<'w>) -> Validator<'w> {
        Validator { window, rule: self.rule, types: &self.types, seen: &self.seen }
    }

    fn terminate(&mut self, window: Window<'_>, mark: u64) -> Result<Step, NeedMore> {
        let tail = Tail { mark, next: mark + TERMINATOR_LEN, noise: false };
        self.tail = Some(tail);
        self.behind.get_or_insert(Behind { mark, end: mark, messages: 0 });
        self.pass_tail(window, tail)
    }

    fn join(&mut self, at: u64, end: u64) -> Step {
        self.at = end;
        self.diagnostics.push(&rules::JOINED, at..end, || {
            format!("a second file header at byte {at}: its messages are read as part of this log")
        });
        Step::Joined { at, end }
    }

    /// Reports at the end of the file how many messages were left out.
    fn finish(&mut self, step: Step) -> Step {
        self.done = true;
        if let Some(Behind { mark, end, messages }) = self.behind.filter(|behind| behind.messages > 0) {
            self.diagnostics.push(&rules::MESSAGES_BEHIND_END, mark..end, || {
                let (are, them) = if messages == 1 { ("is", "it") } else { ("are", "them") };
                let messages = count(messages, "message");
                format!("{messages} after an end mark {are} left out; `rovelog recover` keeps {them}")
            });
            self.diagnostics.count_left_out(messages);
        }
        step
    }

    /// Returns the start of the messages of a second log, if one is stored at `at`.
    fn joined(&self, window: Window<'_>, at: u64) -> Result<Option<u64>, NeedMore> {
        if window.slice(at, at + MAGIC.len() as u64)? != Some(&MAGIC) {
            return Ok(None);
        }
        let Some(count) = window.u32(at + size_of::<FileHeader>() as u64)? else { return Ok(None) };
        let count = u64::from(count);
        let end = at + INDEX_AT + entries_len(count);
        if count > crate::locate::MAX_ENTRIES || window.slice(at, end)?.is_none() {
            return Ok(None);
        }
        let validator = self.validator(window);
        Ok((!window.has(end)? || validator.is_terminator(end)? || validator.starts(end)?).then_some(end))
    }

    /// Searches for the end of the damage.
    fn search(&mut self, window: Window<'_>) -> Result<Step, NeedMore> {
        let mut damage = self.damage.expect("only called with damage");
        let found = self.validator(window).scan(&mut damage.next, u64::MAX);
        self.damage = Some(damage);
        let found = found?;
        self.damage = None;
        Ok(match found {
            Some(found) => self.lose(damage.start, found, &rules::LOST),
            None => {
                self.lose(damage.start, window.end(), if damage.cut { &rules::CUT } else { &rules::LOST })
            }
        })
    }

    fn lose(&mut self, at: u64, end: u64, rule: &'static Rule) -> Step {
        self.at = end;
        if self.seams.touch(at, end) {
            return Step::Unread { at, end };
        }
        self.diagnostics.push(rule, at..end, || {
            if rule == &rules::CUT {
                format!("the message at byte {at} is cut by the end of the file, byte {end}")
            } else {
                format!("no valid message in {}", count(end - at, "byte"))
            }
        });
        Step::Lost { at, end, rule }
    }

    /// Searches for messages after an end mark. If there are any, the scan continues there and
    /// leaves them out; otherwise the log ends. An end mark and noise before a message are a
    /// damaged message.
    fn pass_tail(&mut self, window: Window<'_>, tail: Tail) -> Result<Step, NeedMore> {
        let Tail { mark, mut next, noise } = tail;
        let start = mark + TERMINATOR_LEN;
        if noise {
            let end = window.end();
            self.at = end;
            self.diagnostics.push(&rules::TAIL, start..end, || {
                format!("{} after the end mark, not a message: kept", count(end - start, "byte"))
            });
            return Ok(self.finish(Step::Tail { at: start, end }));
        }
        if next == start && (!window.has(start)? || self.goes_on(window, start)?) {
            (self.at, self.tail) = (start, None);
            return Ok(Step::Terminator { at: mark });
        }
        let found = self.validator(window).scan(&mut next, u64::MAX);
        self.tail = Some(Tail { next, ..tail });
        if let Some(found) = found? {
            self.tail = None;
            return Ok(self.lose(mark, found, &rules::LOST));
        }
        self.tail = Some(Tail { noise: true, ..tail });
        Ok(Step::Terminator { at: mark })
    }

    /// Returns whether a message, or the header of another log, is stored at `at`.
    fn goes_on(&self, window: Window<'_>, at: u64) -> Result<bool, NeedMore> {
        let validator = self.validator(window);
        if let Look::Whole { end, header, data } = validator.look(at)? {
            return Ok(validator.is_sure(header, data) || validator.follows(end, header, false)?);
        }
        Ok(self.joined(window, at)?.is_some())
    }

    fn take(&mut self, at: u64, end: u64, header: MessageHeader, fit: Option<Fit>) -> Step {
        self.at = end;
        if header.marker == MARKER_INVALID {
            self.diagnostics.push(&rules::INVALID_MESSAGE, at..end, || {
                "a message that is marked as invalid (0x30)".to_owned()
            });
            return Step::Invalid { at, end };
        }
        let (id, version) = (header.type_id.get(), header.version.get());
        let millis = header.timestamp.get();
        let place = || field_range!(at, MessageHeader, timestamp);
        match nanos(millis) {
            Some(time) => {
                self.now = time;
                if time == i64::MAX || time == i64::MIN {
                    self.diagnostics.push(&rules::TIMESTAMP_OUT_OF_RANGE, place(), || {
                        format!("a timestamp of {millis} ms")
                    });
                }
            }
            None => self.diagnostics.push(&rules::TIMESTAMP_NOT_FINITE, place(), || {
                format!("a timestamp of {millis} ms: the message takes the time of the one before")
            }),
        }
        match fit {
            Some(Fit::Exact) => {}
            Some(Fit::Surplus(more)) => self.diagnostics.push(&rules::TRAILING_DATA, end - more..end, || {
                format!("{} after the content of a {}", count(more, "byte"), crate::schema::type_name(id))
            }),
            Some(Fit::Short(_)) => self.diagnostics.push(&rules::BAD_PAYLOAD, at..end, || {
                let len = end - at - HEADER_LEN;
                format!("{} of data, too few for this {}", count(len, "byte"), crate::schema::type_name(id))
            }),
            None => {
                if self.seen.insert((id, version)) {
                    self.diagnostics.push(&rules::UNKNOWN_TYPE, at..end, || unknown(id, version));
                }
            }
        }
        let short = matches!(fit, Some(Fit::Short(_)));
        match &mut self.behind {
            Some(behind) => {
                behind.messages += u64::from(!short);
                behind.end = end;
                Step::Behind { at, end, short }
            }
            None => Step::Message { at, end, nanos: self.now, fit },
        }
    }
}

fn unknown(id: u32, version: i32) -> String {
    match (crate::hash::published(id), crate::hash::suggest(id)) {
        (Some(name), _) => format!("unknown version {version} of {name}: kept as bytes"),
        (None, Some(name)) => {
            format!("messages of type 0x{id:08X}, version {version}, perhaps {name}: kept as bytes")
        }
        (None, None) => format!("messages of type 0x{id:08X}, version {version}: kept as bytes"),
    }
}

/// Returns the message at `at..end`, which the scanner found valid.
pub(crate) fn view(window: Window<'_>, at: u64, end: u64, nanos: i64) -> Message<'_> {
    let bytes = window.slice(at, end).ok().flatten().expect("the scanner has read these bytes");
    let (header, data) = MessageHeader::ref_from_prefix(bytes).expect("a whole header");
    Message { offset: at, header, nanos, data }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locate::MAX_ENTRIES;
    use crate::writer::{NewMessage, WriteOptions, write_log};

    /// Returns a log of two messages, and the offset of the first one.
    fn log() -> (Vec<u8>, u64) {
        let speed = |millis| NewMessage::raw(0x0001_4043, 100, millis, vec![0; 28]);
        let mut out = Vec::new();
        write_log(&[speed(1.0), speed(2.0)], &WriteOptions::default(), &mut out).unwrap();
        let first = out.len() as u64 - 2 * (HEADER_LEN + 28);
        (out, first)
    }

    fn started(bytes: &[u8]) -> Scanner {
        Scanner::start(Window::whole(bytes), &Rules::default()).unwrap()
    }

    /// Returns the window of a pipe that goes on.
    fn part(bytes: &[u8]) -> Window<'_> {
        Window { eof: false, ..Window::whole(bytes) }
    }

    #[test]
    fn a_pipe_keeps_only_what_is_still_searched() {
        let (mut bytes, first) = log();
        let end = bytes.len() as u64;
        for mark in [&[][..], &[0xFF; 4]] {
            bytes.truncate(usize::try_from(end).unwrap());
            bytes.extend(mark);
            bytes.extend([7; 300]);
            let mut scanner = started(&bytes);
            assert_eq!(scanner.needed_from(), first);
            for at in [first, first + HEADER_LEN + 28] {
                assert!(matches!(scanner.step(part(&bytes)), Ok(Step::Message { at: got, .. }) if got == at));
            }
            assert_eq!(scanner.needed_from(), end);
            assert!(scanner.step(part(&bytes)).is_err(), "a message may follow");
            assert_eq!(scanner.needed_from(), bytes.len() as u64 - 4, "with mark {mark:?}");
        }
    }

    /// An index is not waited for if it has more entries than any log.
    #[test]
    fn an_index_of_a_joined_log_has_a_limit() {
        let (mut bytes, _) = log();
        let scanner = started(&bytes);
        let at = bytes.len() as u64;
        let mut joined = |count: u64| {
            bytes.truncate(usize::try_from(at).unwrap());
            bytes.extend_from_slice(&MAGIC);
            bytes.extend([1, 0, 1, 0]);
            bytes.extend(u32::try_from(count).unwrap().to_le_bytes());
            scanner.joined(part(&bytes), at)
        };
        assert_eq!(joined(MAX_ENTRIES), Err(NeedMore(at + INDEX_AT + 8 * MAX_ENTRIES)));
        assert_eq!((joined(MAX_ENTRIES + 1), joined(MAX_ENTRIES + 9)), (Ok(None), Ok(None)));
    }
}
