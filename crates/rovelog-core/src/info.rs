//! The summary of a log, which `rovelog info` shows.

use crate::packed;
use crate::{Clock, DataSpan, Diagnostics, Ledger, Outside, Rule, Timestamp, UtcOffset, Value};

/// Whether all of a log could be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Every byte was read.
    Complete,
    /// Parts of a remote file were not read; nothing is wrong with the others.
    NotChecked,
    /// The recording breaks off; everything before the cut was read.
    Truncated,
    /// Something inside could not be read.
    Damaged,
}

impl State {
    /// Returns the word used in text and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::NotChecked => "not_checked",
            Self::Truncated => "truncated",
            Self::Damaged => "damaged",
        }
    }
}

/// The summary of a log, the same for every format. What only one format has is in
/// [`details`](Self::details).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LogInfo {
    /// The version of the format, as users write it: `1`.
    pub version: String,
    /// The ecosystem that wrote it, where that is evident: `px4`.
    pub dialect: Option<&'static str>,
    /// The size of the file in bytes.
    pub size: u64,
    /// Whether all of it could be read.
    pub state: State,
    /// Where the recording starts, on the log's clock.
    pub start: Option<Timestamp>,
    /// The last time in it, on the log's clock, even if it is far outside of all others.
    pub end: Option<Timestamp>,
    /// The span of time that the data fills, and the records far outside of it; `None` before the
    /// end of a stream, and where it is `start` to `end`.
    pub data: Option<DataSpan>,
    /// How the log's clock is placed on the Unix clock; `None` where nothing in the log tells.
    pub utc: Option<UtcOffset>,
    /// The number of records on all topics.
    pub records: u64,
    /// The bytes of a remote file that were not read.
    pub unread: u64,
    /// Whether counts and times are those of the parts that were read: the log has at least these
    /// records. False where an index tells of the others.
    pub at_least: bool,
    /// The number of diagnostics of all kinds.
    pub problems: u64,
    /// The bytes that could not be read.
    pub lost: Ledger,
    /// What only this format has, in the order in which it is shown.
    pub details: Vec<Detail>,
}

impl LogInfo {
    /// Returns the summary of an empty log.
    pub fn new(version: impl Into<String>, size: u64) -> Self {
        Self {
            version: version.into(),
            dialect: None,
            size,
            state: State::Complete,
            start: None,
            end: None,
            data: None,
            utc: None,
            records: 0,
            unread: 0,
            at_least: false,
            problems: 0,
            lost: Ledger::default(),
            details: Vec::new(),
        }
    }

    /// Takes over what was noticed: state, problems and the bytes lost. `cut` is the rule of a
    /// recording that breaks off: where all losses are of it, or say that the compressed file is cut,
    /// the log is truncated, else damaged.
    pub fn set_state(&mut self, diagnostics: &Diagnostics, cut: &Rule) {
        self.lost = diagnostics.ledger().clone();
        self.problems = diagnostics.total();
        let cuts =
            diagnostics.counts().get(cut.code).copied().unwrap_or_default() + packed::cuts(diagnostics);
        self.unread = diagnostics.unread();
        self.state = match self.lost.losses {
            0 if self.unread > 0 => State::NotChecked,
            0 => State::Complete,
            losses if losses == cuts => State::Truncated,
            _ => State::Damaged,
        };
    }

    /// Places the log's clock on the Unix clock by the Unix time of the start of its data, if one was
    /// given ([`ReadOptions::utc_start`](crate::ReadOptions::utc_start)) and the log has another
    /// clock.
    pub fn set_utc_start(&mut self, given: Option<i64>) {
        let start = self.span().map(|span| span.0).or(self.start);
        let start = start.filter(|start| start.clock != Clock::Unix);
        let nanos = given.zip(start).and_then(|(given, start)| given.checked_sub(start.nanos));
        if let Some(nanos) = nanos {
            self.utc = Some(UtcOffset::new(nanos, "utc_start", "the time of the start was given"));
        }
    }

    /// Returns the time from start to end in nanoseconds, including records far outside of all
    /// others.
    pub fn duration(&self) -> Option<i64> {
        self.end?.nanos.checked_sub(self.start?.nanos)
    }

    /// Returns the start and the end of the data, without records far outside of all others.
    pub fn span(&self) -> Option<(Timestamp, Timestamp)> {
        match &self.data {
            Some(data) => Some((data.start, data.end)),
            None => Some((self.start?, self.end?)),
        }
    }

    /// Returns the length of the data, nanoseconds.
    pub fn data_duration(&self) -> Option<i64> {
        let (start, end) = self.span()?;
        end.nanos.checked_sub(start.nanos)
    }

    /// Returns the records far outside of all others, by topic.
    pub fn outside(&self) -> &[Outside] {
        self.data.as_ref().map_or(&[], |data| &data.outside)
    }
}

/// One fact that only one format has: a line of text and a JSON value under one key.
#[derive(Clone, Debug, PartialEq)]
pub struct Detail {
    /// The key, `snake_case`.
    pub key: &'static str,
    /// The line for people; `None` keeps the fact to JSON and `info -v`.
    pub text: Option<String>,
    /// The value for machines.
    pub value: Value,
}

impl Detail {
    /// Returns a fact with a line of text.
    pub fn new(key: &'static str, text: impl Into<String>, value: Value) -> Self {
        Self { key, text: Some(text.into()), value }
    }

    /// Returns a fact for machines only.
    pub fn hidden(key: &'static str, value: Value) -> Self {
        Self { key, text: None, value }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Limits, Severity};

    static CUT: Rule = Rule { code: "E-T-1", name: "cut", severity: Severity::DataLost, meaning: "cut" };
    static LOST: Rule = Rule { code: "E-T-2", name: "lost", severity: Severity::DataLost, meaning: "lost" };
    static NOTE: Rule = Rule { code: "W-T-1", name: "note", severity: Severity::Note, meaning: "note" };

    #[test]
    fn the_state_is_told_by_all_losses_those_not_kept_included() {
        let state = |rules: &[&'static Rule]| {
            let limits = Limits { diagnostics_per_kind: 0, ..Limits::default() };
            let mut diagnostics = Diagnostics::new(&limits);
            for rule in rules {
                diagnostics.push(rule, 0..1, String::new);
            }
            let mut info = LogInfo::new("1", 1);
            info.set_state(&diagnostics, &CUT);
            (info.state, info.problems)
        };
        assert_eq!(state(&[&NOTE]), (State::Complete, 1));
        assert_eq!(state(&[&CUT, &NOTE, &CUT]), (State::Truncated, 3));
        assert_eq!(state(&[&CUT, &LOST]), (State::Damaged, 2));
        assert_eq!(state(&[&LOST]), (State::Damaged, 1));
    }
}
