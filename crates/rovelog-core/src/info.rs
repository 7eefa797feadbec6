//! The summary of a log, as shown by `rovelog info`.

use crate::internal::packed;
use crate::{Clock, DataSpan, Diagnostics, Ledger, Outside, Rule, Timestamp, UtcOffset, Value};

/// State of a log: whether the whole log could be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum State {
    /// Every byte of the log was read.
    #[default]
    Complete,
    /// Parts of a remote file were not read. The parts that were read are intact.
    NotChecked,
    /// The end of the recording is missing. Everything before the missing end was read.
    Truncated,
    /// Some bytes inside the log could not be read.
    Damaged,
}

impl State {
    /// Returns the name of the state as used in text and JSON output, such as `not_checked`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::NotChecked => "not_checked",
            Self::Truncated => "truncated",
            Self::Damaged => "damaged",
        }
    }
}

/// The summary of a log, with the same fields for every format. Information that exists in only one
/// format is in [`details`](Self::details).
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct LogInfo {
    /// Version of the log's format in the notation of the format, such as `1`.
    pub version: String,
    /// Name of the software that wrote the log, such as `px4`. `None` if the log does not identify
    /// it.
    pub dialect: Option<&'static str>,
    /// Size of the file in bytes.
    pub size: u64,
    /// State of the log: whether the whole log could be read.
    pub state: State,
    /// Start of the recording on the log's clock.
    pub start: Option<Timestamp>,
    /// The last time in the log, even if its record is an outlier, far away from all other records.
    pub end: Option<Timestamp>,
    /// Time span of the data without outliers, and the list of the outliers. An outlier is a record
    /// far away from all other records. `None` if the data spans exactly `start` to `end`, or
    /// before a stream has ended.
    pub data: Option<DataSpan>,
    /// Offset from the log's clock to the Unix clock, or `None` if the log does not contain one.
    pub utc: Option<UtcOffset>,
    /// Number of records in all topics.
    pub records: u64,
    /// Number of bytes of a remote file that were not read.
    pub unread: u64,
    /// True if record counts and times are only lower bounds, because they do not cover the parts
    /// of a remote file that were not read. False if an index contains the counts and times of
    /// these parts.
    pub at_least: bool,
    /// Number of diagnostics of all severities.
    pub problems: u64,
    /// The data that could not be read.
    pub lost: Ledger,
    /// Information that exists only in the format of this log, in display order.
    pub details: Vec<Detail>,
}

impl LogInfo {
    /// Returns the summary of an empty log of `size` bytes.
    pub fn new(version: impl Into<String>, size: u64) -> Self {
        Self { version: version.into(), size, ..Self::default() }
    }

    /// Sets the state, the number of problems and the lost bytes from the diagnostics of the log.
    ///
    /// `cut` is the rule for a recording whose end is missing. The log is truncated if nothing else
    /// is lost than the end of the log, or the end of the compressed file that contains the log.
    /// With any other loss, the log is damaged.
    pub fn set_state(&mut self, diagnostics: &Diagnostics, cut: &Rule) {
        self.lost = diagnostics.ledger().clone();
        self.problems = diagnostics.total();
        let cuts =
            diagnostics.counts().get(cut.code).copied().unwrap_or_default() + packed::cuts(diagnostics);
        self.unread = diagnostics.unread();
        // If bytes are lost and others are unread, the state describes the loss, because it is
        // certain.
        self.state = match self.lost.losses {
            0 if self.unread > 0 => State::NotChecked,
            0 => State::Complete,
            losses if losses == cuts => State::Truncated,
            _ => State::Damaged,
        };
    }

    /// Sets the offset to the Unix clock from a start time that the user specified
    /// ([`ReadOptions::utc_start`](crate::ReadOptions::utc_start)).
    ///
    /// `given` is the Unix time in nanoseconds at which the data starts. It is ignored if the log's
    /// clock is already the Unix clock.
    pub fn set_utc_start(&mut self, given: Option<i64>) {
        // The start time that the user specified applies to the data. It does not apply to outliers
        // long before the data.
        let start = self.data_start().filter(|start| start.clock != Clock::Unix);
        let nanos = given.zip(start).and_then(|(given, start)| given.checked_sub(start.nanos));
        if let Some(nanos) = nanos {
            self.utc = Some(UtcOffset::new(nanos, "utc_start", "the time of the start was given"));
        }
    }

    /// Returns the duration from `start` to `end` in nanoseconds. Outliers, which are records far
    /// away from all other records, are included.
    pub fn duration(&self) -> Option<i64> {
        self.end?.nanos.checked_sub(self.start?.nanos)
    }

    /// Returns the start and the end of the data. Outliers, which are records far away from all
    /// other records, are ignored.
    pub fn span(&self) -> Option<(Timestamp, Timestamp)> {
        match &self.data {
            Some(data) => Some((data.start, data.end)),
            None => Some((self.start?, self.end?)),
        }
    }

    /// Returns the start of the data, or else the start of the log.
    #[doc(hidden)]
    pub fn data_start(&self) -> Option<Timestamp> {
        self.span().map(|(start, _)| start).or(self.start)
    }

    /// Returns the end of the data, or else the end of the log.
    #[doc(hidden)]
    pub fn data_end(&self) -> Option<Timestamp> {
        self.span().map(|(_, end)| end).or(self.end)
    }

    /// Returns the duration of the data in nanoseconds. Outliers, which are records far away from
    /// all other records, are ignored.
    pub fn data_duration(&self) -> Option<i64> {
        let (start, end) = self.span()?;
        end.nanos.checked_sub(start.nanos)
    }

    /// Returns the outliers of each topic, which are records far away from all other records.
    pub fn outside(&self) -> &[Outside] {
        self.data.as_ref().map_or(&[], |data| &data.outside)
    }
}

/// An item of a summary that exists only in one log format, with a line of text and a JSON value.
#[derive(Clone, Debug, PartialEq)]
pub struct Detail {
    /// JSON key of the item in `snake_case`.
    pub key: &'static str,
    /// Text for people. If it is `None`, the item is shown only in JSON and by `info -v`.
    pub text: Option<String>,
    /// JSON value of the item.
    pub value: Value,
}

impl Detail {
    /// Creates an item that has a line of text for people.
    pub fn new(key: &'static str, text: impl Into<String>, value: Value) -> Self {
        Self { key, text: Some(text.into()), value }
    }

    /// Creates an item that has no text for people. It is shown only in JSON and by `info -v`.
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
    fn the_state_depends_on_all_losses_even_if_not_stored() {
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
