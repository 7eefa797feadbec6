//! Check of the index of a log against its messages. Section 3.3 of the VEL specification describes
//! the index.

use rovelog_core::internal::text::count;

use crate::locate::LogStart;
use crate::message::Message;

/// The time from which the index of a log counts seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexOrigin {
    /// The index counts from the time of the first message.
    FirstMessage,
    /// The index counts from the start of the recording program.
    ProgramStart,
}

/// Result of comparing the index of a log with its messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexState {
    /// The index has no entries.
    Absent,
    /// Every entry of the index has the offset of the right message.
    Good(IndexOrigin),
    /// The index was not checked, because only some byte ranges of the log were fetched.
    NotChecked,
    /// The index is wrong, for the given reason. A new index was built by scanning the messages.
    Rebuilt(String),
}

impl IndexState {
    /// Returns the name of the state in text output and JSON.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Good(_) => "used",
            Self::NotChecked => "not_checked",
            Self::Rebuilt(_) => "rebuilt",
        }
    }
}

// Example: messages at 0.8 s, 1.0 s and 2.5 s are stored at the offsets 100, 200 and 300. The
// messages end at offset 400. Depending on the origin, a correct index has these entries:
//
//     origin           second 0    second 1    second 2
//     first message    100         300         400 (no message at 2.8 s or later)
//     program start    100         200         300
//
// The file does not state the origin, so the index is compared with both.

/// Compares the index of a log with its messages.
#[derive(Clone, Debug)]
pub(crate) struct IndexCheck {
    /// Comparison of the index for each possible origin.
    origins: Vec<OriginCheck>,
    claimed: u32,
    behind: bool,
    /// Offset of the end of the last message.
    end: u64,
}

#[derive(Clone, Debug)]
struct OriginCheck {
    origin: IndexOrigin,
    /// Time of the first message in milliseconds, for the origin that it determines.
    start_ms: Option<f64>,
    next: usize,
    /// Number of the first wrong entry, and the correct value of this entry.
    wrong: Option<(usize, u64)>,
}

impl IndexCheck {
    pub(crate) fn new(start: &LogStart) -> Self {
        let check = |origin| OriginCheck { origin, start_ms: None, next: 0, wrong: None };
        Self {
            origins: vec![check(IndexOrigin::FirstMessage), check(IndexOrigin::ProgramStart)],
            claimed: start.claimed,
            behind: start.found == crate::locate::LocatedBy::AfterIndex
                && start.entries.len() == start.claimed as usize,
            end: start.first,
        }
    }

    /// Compares the index entries for the next message in file order.
    #[inline]
    pub(crate) fn message(&mut self, entries: &[i64], message: &Message<'_>) {
        let (at, millis) = (message.offset, message.header.timestamp.get());
        self.end = at + message.wire_len();
        self.origins[0].start_ms.get_or_insert(if millis.is_finite() { millis } else { 0.0 });
        // A message without a finite time is ignored, because no index entry can refer to it.
        if !millis.is_finite() {
            return;
        }
        for check in &mut self.origins {
            let start_ms = check.start_ms.unwrap_or(0.0);
            while check.wrong.is_none()
                && check.next < entries.len()
                && millis >= start_ms + 1000.0 * check.next as f64
            {
                if u64::try_from(entries[check.next]) != Ok(at) {
                    check.wrong = Some((check.next, at));
                }
                check.next += 1;
            }
        }
    }

    /// Returns the result of the comparison.
    pub(crate) fn finish(&self, entries: &[i64]) -> IndexState {
        if self.claimed == 0 {
            return IndexState::Absent;
        }
        if !self.behind {
            let claimed = count(self.claimed, "entry");
            return IndexState::Rebuilt(format!(
                "no message starts directly after the index, which states {claimed}"
            ));
        }
        // Entries for seconds after the last message must have the offset at which the messages
        // end.
        let rest = |check: &OriginCheck| {
            let found = entries[check.next..].iter().position(|entry| u64::try_from(*entry) != Ok(self.end));
            found.map(|i| (check.next + i, self.end))
        };
        let verdicts = self.origins.iter().map(|check| (check.origin, check.wrong.or_else(|| rest(check))));
        let mut wrong = Vec::new();
        for (origin, verdict) in verdicts {
            match verdict {
                None => return IndexState::Good(origin),
                Some(place) => wrong.push(place),
            }
        }
        let (entry, should) = wrong.into_iter().max().unwrap_or_default();
        let found = entries.get(entry).copied().unwrap_or_default();
        IndexState::Rebuilt(format!(
            "entry {entry} of the index is {found}, but second {entry} starts at byte {should}"
        ))
    }
}
