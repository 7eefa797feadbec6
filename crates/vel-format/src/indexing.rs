//! The file's own index (section 3.3), which is checked against the messages.

use crate::locate::Located;
use rovelog_core::text::count;

/// The origin of the seconds of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexOrigin {
    /// The time of the first message.
    FirstMessage,
    /// The start of the recording program.
    ProgramStart,
}

/// The state of the file's own index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexState {
    /// It has no entries.
    Absent,
    /// Every entry names the right message.
    Good(IndexOrigin),
    /// Not compared: parts of the log were not read.
    NotChecked,
    /// Rebuilt by scanning the messages, for the given reason.
    Rebuilt(String),
}

impl IndexState {
    /// Returns the word used in text and JSON.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Good(_) => "used",
            Self::NotChecked => "not_checked",
            Self::Rebuilt(_) => "rebuilt",
        }
    }
}

/// Compares the index with the messages.
#[derive(Clone, Debug)]
pub(crate) struct Check {
    /// One comparison per origin.
    runs: Vec<Run>,
    claimed: u32,
    behind: bool,
    started: bool,
}

#[derive(Clone, Debug)]
struct Run {
    origin: IndexOrigin,
    start_ms: f64,
    next: usize,
    /// The first wrong entry, and its right value.
    wrong: Option<(usize, u64)>,
}

impl Check {
    pub(crate) fn new(start: &Located) -> Self {
        let run = |origin| Run { origin, start_ms: 0.0, next: 0, wrong: None };
        Self {
            runs: vec![run(IndexOrigin::FirstMessage), run(IndexOrigin::ProgramStart)],
            claimed: start.claimed,
            behind: start.found == crate::locate::Found::BehindIndex
                && start.entries.len() == start.claimed as usize,
            started: false,
        }
    }

    /// Adds a message in file order.
    #[inline]
    pub(crate) fn message(&mut self, entries: &[i64], at: u64, millis: f64) {
        if !self.started {
            self.started = true;
            self.runs[0].start_ms = if millis.is_finite() { millis } else { 0.0 };
        }
        // A time that is not finite starts no second.
        if !millis.is_finite() {
            return;
        }
        for run in &mut self.runs {
            while run.wrong.is_none()
                && run.next < entries.len()
                && millis >= run.start_ms + 1000.0 * run.next as f64
            {
                if u64::try_from(entries[run.next]) != Ok(at) {
                    run.wrong = Some((run.next, at));
                }
                run.next += 1;
            }
        }
    }

    /// Returns the result, if the messages end at `end`.
    pub(crate) fn finish(&self, entries: &[i64], end: u64) -> IndexState {
        if self.claimed == 0 {
            return IndexState::Absent;
        }
        if !self.behind {
            let claimed = count(self.claimed, "entry");
            return IndexState::Rebuilt(format!("no message starts after the {claimed} that it claims"));
        }
        // Entries after the last message mean "nothing more".
        let rest = |run: &Run| {
            let found = entries[run.next..].iter().position(|entry| u64::try_from(*entry) != Ok(end));
            found.map(|i| (run.next + i, end))
        };
        let verdicts = self.runs.iter().map(|run| (run.origin, run.wrong.or_else(|| rest(run))));
        let mut wrong = Vec::new();
        for (origin, verdict) in verdicts {
            match verdict {
                None => return IndexState::Good(origin),
                Some(place) => wrong.push(place),
            }
        }
        let (entry, should) = wrong.into_iter().max().unwrap_or_default();
        let found = entries.get(entry).copied().unwrap_or_default();
        IndexState::Rebuilt(format!("entry {entry} is {found}, but second {entry} starts at byte {should}"))
    }
}
