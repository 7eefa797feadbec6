//! The scanner, which finds the messages of a log. The reader, the stream and recovery share it.
//!
//! [`Scanner`] does no I/O. It gets a [`Window`] of the file, and returns the next part of the log
//! or requests more bytes. Every byte after the index belongs to exactly one [`Step`].

use rovelog_core::internal::text::count;
use std::sync::Arc;

use rovelog_core::internal::layout::Fit;
use rovelog_core::internal::partial::PartBounds;
use rovelog_core::internal::scan::{NeedMore, Scan, Window};
use rovelog_core::{Diagnostics, ReadOptions, Rule, field_range};
use zerocopy::FromBytes as _;

use crate::declared::Types;
use crate::diagnostics as rules;
use crate::locate::{LogStart, StartError, locate};
use crate::message::{Message, SizeRule, nanos};
use crate::validate::{MessageAt, Seen, Validator};
use crate::wire::{
    FileHeader, HEADER_LEN, INDEX_AT, MAGIC, MARKER_INVALID, MessageHeader, TERMINATOR_LEN, entries_len,
};

/// The next part of a log that the scanner finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A valid message. `fit` is `Short` if the data is too short for the fields of the message
    /// type.
    Message { at: u64, end: u64, nanos: i64, fit: Option<Fit> },
    /// A message after an end mark. Readers leave out such messages. `short` is true if the data is
    /// too short for the fields of the message type.
    AfterEnd { at: u64, end: u64, short: bool },
    /// A message that the recording program marked as invalid.
    Invalid { at: u64, end: u64 },
    /// Bytes in which no message can be read. `rule` is the diagnostic that reports them.
    Lost { at: u64, end: u64, rule: &'static Rule },
    /// Bytes of a message that continues in a range that was not fetched.
    Unread { at: u64, end: u64 },
    /// The header and the index of another log that was appended to the file.
    Joined { at: u64, end: u64 },
    /// An end mark, after which readers return no messages.
    Terminator { at: u64 },
    /// Bytes from the last end mark to the end of the file, in which no message was found.
    Tail { at: u64, end: u64 },
    /// The end of the file.
    End,
}

/// Options for scanning a log.
#[derive(Clone, Debug, Default)]
pub(crate) struct ScanOptions {
    pub(crate) options: ReadOptions,
    pub(crate) types: Arc<Types>,
    /// True to scan the file as a VEL log even if its magic number is wrong.
    pub(crate) salvage: bool,
}

/// State of a search for messages after an end mark.
#[derive(Clone, Copy, Debug)]
struct TailSearch {
    mark: u64,
    next: u64,
    /// True if a complete search has found no message after the end mark.
    noise: bool,
}

/// Messages that follow the first end mark. They are counted, but not returned.
#[derive(Clone, Copy, Debug)]
struct AfterEnd {
    mark: u64,
    /// Offset of the end of the last message after the end mark.
    end: u64,
    messages: u64,
}

/// State of a search for the end of a damaged range.
#[derive(Clone, Copy, Debug)]
struct DamageSearch {
    start: u64,
    next: u64,
    /// True if the message at offset `start` would extend beyond the end of the file.
    cut: bool,
}

/// The next action of a scanner.
#[derive(Clone, Copy, Debug)]
enum Task {
    /// Reads the next message.
    Read,
    /// Searches for a message after damage.
    SearchAfterDamage(DamageSearch),
    /// Searches for a message after an end mark.
    SearchAfterEndMark(TailSearch),
    /// Returns [`Step::End`], because the scan has ended.
    End,
}

/// Scans the messages of a log in file order, and reports diagnostics about them.
#[derive(Debug)]
pub(crate) struct Scanner {
    pub(crate) start: LogStart,
    pub(crate) diagnostics: Diagnostics,
    pub(crate) types: Arc<Types>,
    at: u64,
    task: Task,
    seen: Seen,
    /// Time of the last message that was found, in nanoseconds.
    now: i64,
    /// Messages that follow the first end mark. `None` before the first end mark.
    after_end: Option<AfterEnd>,
    /// Edges of the byte range that is scanned, if only some ranges of the log were fetched.
    part_bounds: PartBounds,
}

impl Scan for Scanner {
    type Step = Step;

    // Each byte of the file after the index is returned in exactly one step.
    fn step(&mut self, window: Window<'_>) -> Result<Step, NeedMore> {
        match self.task {
            Task::End => return Ok(Step::End),
            Task::SearchAfterEndMark(tail) => return self.scan_tail(window, tail),
            _ if self.at < self.start.first => {
                let (at, end) = (self.at, self.start.first);
                return Ok(self.report_loss(at, end, &rules::LOST));
            }
            Task::SearchAfterDamage(damage) => return self.search(window, damage),
            Task::Read => {}
        }
        let at = self.at;
        if self.part_bounds.ends_before_unread(at) {
            return Ok(Step::End);
        }
        let validator = self.validator(window);
        let cut = match validator.message_at(at)? {
            MessageAt::Whole { end, header, data } => {
                let fit = validator.fit(header, data);
                if validator.fits_exactly(header, data) || validator.may_end(end, header, false)? {
                    return Ok(self.accept(at, end, *header, fit));
                }
                false
            }
            MessageAt::Cut => true,
            MessageAt::Remainder => {
                if !window.has(at)? {
                    return Ok(self.finish(Step::End));
                }
                if validator.is_terminator(at)? {
                    return self.terminate(window, at);
                }
                // If fewer bytes remain than a message header has, they cannot contain a message.
                return Ok(self.report_loss(at, window.end(), &rules::CUT));
            }
            MessageAt::Invalid => {
                if validator.is_terminator(at)? {
                    return self.terminate(window, at);
                }
                if let Some(end) = self.joined(window, at)? {
                    return Ok(self.report_joined(at, end));
                }
                false
            }
        };
        self.search(window, DamageSearch { start: at, next: at, cut })
    }

    fn needed_from(&self) -> u64 {
        match self.task {
            Task::SearchAfterDamage(DamageSearch { next, .. })
            | Task::SearchAfterEndMark(TailSearch { next, .. }) => next,
            Task::Read | Task::End => self.at,
        }
    }
}

impl Scanner {
    /// Creates a scanner at the start of a log. `window` must begin at offset 0 of the file.
    pub(crate) fn start(window: Window<'_>, rules: &ScanOptions) -> Result<Self, StartError> {
        let start = locate(window, &rules.types, rules.salvage)?;
        let mut scanner = Self {
            diagnostics: rules.options.diagnostics(),
            types: Arc::clone(&rules.types),
            at: start.index_end,
            task: Task::Read,
            seen: Seen::new(),
            now: 0,
            after_end: None,
            part_bounds: PartBounds::default(),
            start,
        };
        scanner.note_start();
        Ok(scanner)
    }

    /// Continues the scan at the start of another fetched range. If the bytes before the range were
    /// not fetched, the first valid message in the range is searched for.
    pub(crate) fn enter_range(&mut self, part_bounds: PartBounds) {
        // The range may start within a message. So its first bytes are searched in the same way as
        // a damaged range.
        self.part_bounds = part_bounds;
        let Some(at) = part_bounds.start else { return };
        self.at = at;
        self.task = Task::SearchAfterDamage(DamageSearch { start: at, next: at, cut: false });
    }

    /// Returns the meaning of the size fields in this log.
    pub(crate) fn rule(&self) -> SizeRule {
        self.start.evidence.rule
    }

    fn note_start(&mut self) {
        let header = self.start.header;
        if !self.start.magic {
            self.diagnostics.push(&rules::BAD_MAGIC, field_range!(0, FileHeader, magic), || {
                format!(
                    "the file starts with {:02x?} instead of a4 56 45 4c; it is read as VEL on request",
                    header.magic
                )
            });
        }
        let (major, minor) = (header.major.get(), header.minor.get());
        if (major, minor) != (1, 1) {
            let text =
                || format!("the file has the unknown version {major}.{minor} and is read as version 1.1");
            self.diagnostics.push(&rules::UNKNOWN_VERSION, field_range!(0, FileHeader, major..=minor), text);
        }
        // It is unusual that size fields count only the data. So a diagnostic explains why this was
        // inferred.
        if self.rule() == SizeRule::DataOnly {
            let (at, exact) = (self.start.first, self.start.evidence.exact);
            self.diagnostics.push(&rules::DATA_ONLY_SIZES, field_range!(at, MessageHeader, size), || {
                format!(
                    "message sizes do not include the header, because only then they fit the content of {}; \
                     all messages are read",
                    count(exact, "message")
                )
            });
        }
    }

    fn validator<'w>(&'w self, window: Window<'w>) -> Validator<'w> {
        Validator { window, rule: self.rule(), types: &self.types, seen: &self.seen }
    }

    fn terminate(&mut self, window: Window<'_>, mark: u64) -> Result<Step, NeedMore> {
        self.after_end.get_or_insert(AfterEnd { mark, end: mark, messages: 0 });
        self.scan_tail(window, TailSearch { mark, next: mark + TERMINATOR_LEN, noise: false })
    }

    fn report_joined(&mut self, at: u64, end: u64) -> Step {
        self.at = end;
        self.diagnostics.push(&rules::JOINED, at..end, || {
            format!(
                "another log with its own header starts at byte {at}; its messages are read as part of \
                 this log"
            )
        });
        Step::Joined { at, end }
    }

    /// Ends the scan. If messages follow the first end mark, reports their number.
    fn finish(&mut self, step: Step) -> Step {
        self.task = Task::End;
        if let Some(AfterEnd { mark, end, messages }) = self.after_end.filter(|state| state.messages > 0) {
            self.diagnostics.push(&rules::MESSAGES_BEHIND_END, mark..end, || {
                let (are, them) = if messages == 1 { ("is", "it") } else { ("are", "them") };
                let messages = count(messages, "message");
                format!("{messages} after the end mark {are} not read; `rovelog recover` keeps {them}")
            });
            self.diagnostics.count_left_out(messages);
        }
        step
    }

    /// If the header of another log is stored at offset `at`, returns the offset of the messages of
    /// that log.
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
        Ok((!window.has(end)? || validator.is_terminator(end)? || validator.starts_at(end)?).then_some(end))
    }

    /// Searches for the next valid message after a damaged range.
    fn search(&mut self, window: Window<'_>, mut damage: DamageSearch) -> Result<Step, NeedMore> {
        let found = self.validator(window).find_next(&mut damage.next, u64::MAX);
        self.task = Task::SearchAfterDamage(damage);
        let found = found?;
        self.task = Task::Read;
        let (end, rule) = match found {
            Some(found) => (found, &rules::LOST),
            None => (window.end(), if damage.cut { &rules::CUT } else { &rules::LOST }),
        };
        Ok(self.report_loss(damage.start, end, rule))
    }

    fn report_loss(&mut self, at: u64, end: u64, rule: &'static Rule) -> Step {
        self.at = end;
        // If the bytes are at the edge of a fetched range, they belong to a message that continues
        // in bytes that were not fetched. So nothing is lost.
        if self.part_bounds.touches_unread(at, end) {
            return Step::Unread { at, end };
        }
        self.diagnostics.push(rule, at..end, || {
            if rule == &rules::CUT {
                format!("the message at byte {at} is lost, because the file ends inside it at byte {end}")
            } else {
                format!("no valid message was found in {}, so this data is lost", count(end - at, "byte"))
            }
        });
        Step::Lost { at, end, rule }
    }

    /// Determines whether an end mark ends the log or is a damaged size field. To find out,
    /// messages are searched for after the end mark.
    // Examples for an end mark at offset 500:
    //
    //     500 end mark, 504 message               The log ends at 500. The scan continues at 504, but
    //                                             its messages are only counted.
    //     500 end mark, 504 noise, 600 message    The end mark is a damaged size field. The bytes from
    //                                             500 to 600 are lost.
    //     500 end mark, 504 noise, end of file    The log ends at 500. The noise is kept as its tail.
    //
    // A size of 0xFFFFFFFF would be 4 GiB, so no valid message starts with the bytes of an end
    // mark.
    fn scan_tail(&mut self, window: Window<'_>, tail: TailSearch) -> Result<Step, NeedMore> {
        self.task = Task::SearchAfterEndMark(tail);
        let TailSearch { mark, mut next, noise } = tail;
        let start = mark + TERMINATOR_LEN;
        if noise {
            let end = window.end();
            self.at = end;
            self.diagnostics.push(&rules::TAIL, start..end, || {
                let bytes = count(end - start, "byte");
                format!("the end mark is followed by {bytes} of data that is not a message and is not read")
            });
            return Ok(self.finish(Step::Tail { at: start, end }));
        }
        if next == start && (!window.has(start)? || self.continues_at(window, start)?) {
            (self.at, self.task) = (start, Task::Read);
            return Ok(Step::Terminator { at: mark });
        }
        let found = self.validator(window).find_next(&mut next, u64::MAX);
        self.task = Task::SearchAfterEndMark(TailSearch { next, ..tail });
        if let Some(found) = found? {
            self.task = Task::Read;
            return Ok(self.report_loss(mark, found, &rules::LOST));
        }
        self.task = Task::SearchAfterEndMark(TailSearch { noise: true, ..tail });
        Ok(Step::Terminator { at: mark })
    }

    /// Returns whether a message, or the header of another log, is stored at offset `at`.
    fn continues_at(&self, window: Window<'_>, at: u64) -> Result<bool, NeedMore> {
        let validator = self.validator(window);
        if let MessageAt::Whole { end, header, data } = validator.message_at(at)? {
            return Ok(validator.fits_exactly(header, data) || validator.may_end(end, header, false)?);
        }
        Ok(self.joined(window, at)?.is_some())
    }

    fn accept(&mut self, at: u64, end: u64, header: MessageHeader, fit: Option<Fit>) -> Step {
        self.at = end;
        if header.marker == MARKER_INVALID {
            self.diagnostics.push(&rules::INVALID_MESSAGE, at..end, || {
                "a message is skipped, because its writer marked it as invalid (0x30)".to_owned()
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
                        format!(
                            "the timestamp of {millis} ms is beyond 292 years, the limit of 64-bit \
                             nanoseconds, and is set to this limit"
                        )
                    });
                }
            }
            None => self.diagnostics.push(&rules::TIMESTAMP_NOT_FINITE, place(), || {
                format!(
                    "the timestamp {millis} is not a finite number, so its message gets the time of the \
                     previous message"
                )
            }),
        }
        match fit {
            Some(Fit::Exact) => {}
            Some(Fit::Surplus(more)) => self.diagnostics.push(&rules::TRAILING_DATA, end - more..end, || {
                let (name, bytes) = (crate::schema::type_name(id), count(more, "byte"));
                format!("the {name} message has {bytes} after its last field; its fields are read")
            }),
            Some(Fit::Short(_)) => self.diagnostics.push(&rules::BAD_PAYLOAD, at..end, || {
                let (name, bytes) = (crate::schema::type_name(id), count(end - at - HEADER_LEN, "byte"));
                format!(
                    "the {name} message is lost, because it has only {bytes} of data, which is too short for \
                     its fields"
                )
            }),
            None => {
                if self.seen.insert((id, version)) {
                    self.diagnostics.push(&rules::UNKNOWN_TYPE, at..end, || unknown(id, version));
                }
            }
        }
        let short = matches!(fit, Some(Fit::Short(_)));
        match &mut self.after_end {
            Some(after_end) => {
                after_end.messages += u64::from(!short);
                after_end.end = end;
                Step::AfterEnd { at, end, short }
            }
            None => Step::Message { at, end, nanos: self.now, fit },
        }
    }
}

fn unknown(id: u32, version: i32) -> String {
    match (crate::hash::published(id), crate::hash::suggest(id)) {
        (Some(name), _) => {
            format!("version {version} of {name} is unknown, so its messages are returned as raw bytes")
        }
        (None, Some(name)) => {
            format!(
                "messages of the unknown type 0x{id:08X} (perhaps {name}), version {version}, are returned \
                 as raw bytes"
            )
        }
        (None, None) => {
            format!("messages of the unknown type 0x{id:08X}, version {version}, are returned as raw bytes")
        }
    }
}

/// Returns the message in the byte range `at..end`. The scanner must have found this range to be a
/// valid message.
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

    /// Returns a log of two messages, and the offset of the first message.
    fn log() -> (Vec<u8>, u64) {
        let speed = |millis| NewMessage::raw(0x0001_4043, 100, millis, vec![0; 28]);
        let mut out = Vec::new();
        write_log(&[speed(1.0), speed(2.0)], &WriteOptions::default(), &mut out).unwrap();
        let first = out.len() as u64 - 2 * (HEADER_LEN + 28);
        (out, first)
    }

    fn scanner_for(bytes: &[u8]) -> Scanner {
        Scanner::start(Window::whole(bytes), &ScanOptions::default()).unwrap()
    }

    /// Returns a window with `bytes` for a stream whose end has not been reached.
    fn unfinished(bytes: &[u8]) -> Window<'_> {
        Window { eof: false, ..Window::whole(bytes) }
    }

    #[test]
    fn streams_keep_only_the_bytes_still_needed() {
        let (mut bytes, first) = log();
        let end = bytes.len() as u64;
        for mark in [&[][..], &[0xFF; 4]] {
            bytes.truncate(usize::try_from(end).unwrap());
            bytes.extend(mark);
            bytes.extend([7; 300]);
            let mut scanner = scanner_for(&bytes);
            assert_eq!(scanner.needed_from(), first);
            for at in [first, first + HEADER_LEN + 28] {
                assert!(
                    matches!(scanner.step(unfinished(&bytes)), Ok(Step::Message { at: got, .. }) if got == at)
                );
            }
            assert_eq!(scanner.needed_from(), end);
            assert!(scanner.step(unfinished(&bytes)).is_err(), "a message may follow");
            assert_eq!(scanner.needed_from(), bytes.len() as u64 - 4, "with mark {mark:?}");
        }
    }

    /// If an index declares too many entries, it is rejected at once. A stream must not buffer
    /// bytes for such an index.
    #[test]
    fn the_index_of_a_joined_log_is_limited() {
        let (mut bytes, _) = log();
        let scanner = scanner_for(&bytes);
        let at = bytes.len() as u64;
        let mut joined = |count: u64| {
            bytes.truncate(usize::try_from(at).unwrap());
            bytes.extend_from_slice(&MAGIC);
            bytes.extend([1, 0, 1, 0]);
            bytes.extend(u32::try_from(count).unwrap().to_le_bytes());
            scanner.joined(unfinished(&bytes), at)
        };
        assert_eq!(joined(MAX_ENTRIES), Err(NeedMore(at + INDEX_AT + 8 * MAX_ENTRIES)));
        assert_eq!((joined(MAX_ENTRIES + 1), joined(MAX_ENTRIES + 9)), (Ok(None), Ok(None)));
    }
}
