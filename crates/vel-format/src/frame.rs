//! Framing: one walk over the messages of a log, for the reader, the stream and recovery alike.
//!
//! [`Walk`] does no input or output. It looks at a [`Window`] of the file and says what comes next; where
//! the window ends too early it asks for more. Every byte of a file is part of exactly one [`Step`].

use std::sync::Arc;

use rovelog_core::window::{NeedMore, Window};
use rovelog_core::{Diagnostics, Limits, Rule};

use crate::declared::Types;
use crate::diagnostics as rules;
use crate::locate::{Begin, INDEX_AT, Located, locate};
use crate::message::{Fit, Message, SizeRule, nanos};
use crate::plausible::{Judge, Look, Seen};
use crate::wire::{FileHeader, HEADER_LEN, MAGIC, MARKER_INVALID, MessageHeader};

/// What comes next in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A sound message; `fit` is `Short` where its payload is not.
    Message { at: u64, end: u64, nanos: i64, fit: Fit },
    /// A message that its writer declared invalid.
    Invalid { at: u64, end: u64 },
    /// Bytes that cannot be read.
    Lost { at: u64, end: u64, rule: &'static Rule },
    /// The header and index of another log in the same file.
    Joined { at: u64, end: u64 },
    /// The end mark.
    Terminator { at: u64 },
    /// Bytes behind the end mark.
    Tail { at: u64, end: u64 },
    /// The end of the file.
    End,
}

/// How to walk.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    pub(crate) limits: Limits,
    pub(crate) types: Arc<Types>,
    /// Take the file for a VEL log whatever its first bytes are.
    pub(crate) salvage: bool,
    /// Look for messages behind an end mark too.
    pub(crate) beyond_end: bool,
}

/// A stretch of damage whose end is being looked for.
#[derive(Clone, Copy, Debug)]
struct Gap {
    start: u64,
    next: u64,
    /// Whether the message that was due passes the end of the file.
    cut: bool,
}

/// The walk over a log: where it stands, what it learned, what it noticed.
#[derive(Debug)]
pub(crate) struct Walk {
    pub(crate) start: Located,
    pub(crate) rule: SizeRule,
    pub(crate) diagnostics: Diagnostics,
    pub(crate) types: Arc<Types>,
    beyond_end: bool,
    at: u64,
    seen: Seen,
    gap: Option<Gap>,
    /// The time of the last message.
    now: i64,
    /// Behind an end mark.
    tail: Option<u64>,
    done: bool,
}

impl Walk {
    /// Finds the start of the log; `window` begins with the file.
    pub(crate) fn start(window: Window<'_>, rules: &Rules) -> Result<Self, Begin> {
        let start = locate(window, &rules.types, rules.salvage)?;
        let mut walk = Self {
            rule: start.evidence.rule,
            diagnostics: Diagnostics::new(&rules.limits),
            types: Arc::clone(&rules.types),
            beyond_end: rules.beyond_end,
            at: start.index_end,
            seen: Seen::new(),
            gap: None,
            now: 0,
            tail: None,
            done: false,
            start,
        };
        walk.note_start();
        Ok(walk)
    }

    fn note_start(&mut self) {
        let header = self.start.header;
        if !self.start.magic {
            self.diagnostics.push(&rules::BAD_MAGIC, 0..4, || {
                format!("the file begins with {:02x?} instead of a4 56 45 4c", header.magic)
            });
        }
        let (major, minor) = (header.major.get(), header.minor.get());
        if (major, minor) != (1, 1) {
            self.diagnostics.push(&rules::UNKNOWN_VERSION, 4..8, || {
                format!("file version {major}.{minor} is read as version 1.1")
            });
        }
        if self.rule == SizeRule::DataOnly && self.start.evidence.walked > 0 {
            let (at, exact) = (self.start.first, self.start.evidence.exact);
            self.diagnostics.push(&rules::DATA_ONLY_SIZES, at..at + 4, || {
                format!("sizes count the data alone: so {exact} messages have the length of their content")
            });
        }
    }

    /// Bytes before this offset are not needed any more.
    pub(crate) fn needed_from(&self) -> u64 {
        self.gap.map_or(self.at, |gap| gap.next)
    }

    fn judge<'w>(&'w self, window: Window<'w>) -> Judge<'w> {
        Judge { window, rule: self.rule, types: &self.types, seen: &self.seen }
    }

    /// What comes next. Every byte of the file behind the index is part of exactly one step.
    ///
    /// # Errors
    /// Where the window ends before that can be said; the walk has not moved then.
    pub(crate) fn step(&mut self, window: Window<'_>) -> Result<Step, NeedMore> {
        if self.done {
            return Ok(Step::End);
        }
        if let Some(from) = self.tail {
            return self.pass_tail(window, from);
        }
        if self.at < self.start.first {
            let (at, end) = (self.at, self.start.first);
            return Ok(self.lose(at, end, &rules::GAP));
        }
        if self.gap.is_some() {
            return self.search(window);
        }
        let at = self.at;
        let judge = self.judge(window);
        let cut = match judge.look(at)? {
            Look::Whole { end, header, data } => {
                let fit = judge.fit(header, data);
                let sure = fit == Fit::Exact && header.marker != MARKER_INVALID;
                if sure || judge.follows(end, header, false)? {
                    return Ok(self.take(at, end, *header, fit));
                }
                false
            }
            Look::Cut => true,
            Look::Tail => {
                if !window.has(at)? {
                    self.done = true;
                    return Ok(Step::End);
                }
                if judge.is_terminator(at)? {
                    return Ok(self.terminate(at));
                }
                // Not even a header: there is nothing to look for.
                return Ok(self.lose(at, window.end(), &rules::CUT));
            }
            Look::No => {
                if judge.is_terminator(at)? {
                    return Ok(self.terminate(at));
                }
                if let Some(end) = self.joined(window, at)? {
                    self.at = end;
                    self.diagnostics.push(&rules::JOINED, at..end, || {
                        format!(
                            "a second file header at byte {at}: its messages are read as part of this log"
                        )
                    });
                    return Ok(Step::Joined { at, end });
                }
                false
            }
        };
        self.gap = Some(Gap { start: at, next: at + 1, cut });
        self.search(window)
    }

    fn terminate(&mut self, at: u64) -> Step {
        self.at = at + 4;
        if !self.beyond_end {
            self.tail = Some(self.at);
        }
        Step::Terminator { at }
    }

    /// Where the messages of a second log begin, if one stands at `at`.
    fn joined(&self, window: Window<'_>, at: u64) -> Result<Option<u64>, NeedMore> {
        if window.slice(at, at + 4)? != Some(&MAGIC) {
            return Ok(None);
        }
        let count_at = at + size_of::<FileHeader>() as u64;
        let Some(count) = window.slice(count_at, at + INDEX_AT)? else { return Ok(None) };
        let count = u64::from(u32::from_le_bytes(count.try_into().expect("four bytes")));
        let end = at + INDEX_AT + 8 * count;
        if count > crate::locate::MAX_ENTRIES || window.slice(at, end)?.is_none() {
            return Ok(None);
        }
        let judge = self.judge(window);
        Ok((!window.has(end)? || judge.is_terminator(end)? || judge.begins(end)?).then_some(end))
    }

    /// Looks for the end of the damage.
    fn search(&mut self, window: Window<'_>) -> Result<Step, NeedMore> {
        let mut gap = self.gap.expect("only called with a gap");
        let found = self.judge(window).scan(&mut gap.next, u64::MAX);
        self.gap = Some(gap);
        let found = found?;
        self.gap = None;
        Ok(match found {
            Some(found) => self.lose(gap.start, found, &rules::GAP),
            None => self.lose(gap.start, window.end(), if gap.cut { &rules::CUT } else { &rules::GAP }),
        })
    }

    fn lose(&mut self, at: u64, end: u64, rule: &'static Rule) -> Step {
        self.at = end;
        self.diagnostics.push(rule, at..end, || {
            if rule == &rules::CUT {
                format!("the last message begins at byte {at} and passes the end of the file, byte {end}")
            } else {
                format!("{} bytes in which no message was recognised", end - at)
            }
        });
        Step::Lost { at, end, rule }
    }

    fn pass_tail(&mut self, window: Window<'_>, from: u64) -> Result<Step, NeedMore> {
        if !window.eof {
            // What is behind the mark is not looked at: let go of it.
            self.at = window.end();
            return Err(NeedMore(window.end() + 1));
        }
        let end = window.end();
        (self.at, self.done) = (end, true);
        if from == end {
            return Ok(Step::End);
        }
        self.diagnostics.push(&rules::TAIL, from..end, || {
            format!(
                "{} bytes behind the end mark are kept and not read; `recover` looks into them",
                end - from
            )
        });
        Ok(Step::Tail { at: from, end })
    }

    fn take(&mut self, at: u64, end: u64, header: MessageHeader, fit: Fit) -> Step {
        self.at = end;
        if header.marker == MARKER_INVALID {
            self.diagnostics.push(&rules::INVALID_MESSAGE, at..end, || {
                "a message that is marked as not valid (0x30)".to_owned()
            });
            return Step::Invalid { at, end };
        }
        let (id, version) = (header.type_id.get(), header.version.get());
        let millis = header.timestamp.get();
        match nanos(millis) {
            Some(time) => {
                self.now = time;
                if time == i64::MAX || time == i64::MIN {
                    self.diagnostics.push(&rules::TIMESTAMP_OUT_OF_RANGE, at + 13..at + 21, || {
                        format!("a timestamp of {millis} ms")
                    });
                }
            }
            None => self.diagnostics.push(&rules::TIMESTAMP_NOT_FINITE, at + 13..at + 21, || {
                format!("a timestamp of {millis} ms: the message takes the time of the one before")
            }),
        }
        match fit {
            Fit::Exact => {}
            Fit::Longer(more) => self.diagnostics.push(&rules::TRAILING_DATA, end - more..end, || {
                format!("{more} bytes behind the content of a {}", crate::schema::type_name(id))
            }),
            Fit::Short => self.diagnostics.push(&rules::BAD_PAYLOAD, at..end, || {
                let len = end - at - HEADER_LEN;
                format!(
                    "{len} bytes of data are too few for the content of this {}",
                    crate::schema::type_name(id)
                )
            }),
            Fit::Unknown => {
                if self.seen.insert((id, version)) {
                    self.diagnostics.push(&rules::UNKNOWN_TYPE, at..end, || unknown(id, version));
                }
            }
        }
        Step::Message { at, end, nanos: self.now, fit }
    }
}

fn unknown(id: u32, version: i32) -> String {
    match (crate::hash::published(id), crate::hash::suggest(id)) {
        (Some(name), _) => format!("version {version} of {name} is not described: its data is kept as bytes"),
        (None, Some(name)) => {
            format!("messages of type 0x{id:08X}, version {version}, perhaps {name}: kept as bytes")
        }
        (None, None) => format!("messages of type 0x{id:08X}, version {version}: kept as bytes"),
    }
}

/// The message at `at..end`, which the walk found sound.
pub(crate) fn view(window: Window<'_>, at: u64, end: u64, nanos: i64) -> Message<'_> {
    let bytes = window.slice(at, end).ok().flatten().expect("the walk has seen these bytes");
    let (header, data) = zerocopy::Ref::<_, MessageHeader>::from_prefix(bytes).expect("a whole header");
    Message { offset: at, header: zerocopy::Ref::into_ref(header), nanos, data }
}
