//! Findings: problems of a flight or a recording, with their cause, time and evidence.
//!
//! A finding names a cause, such as `battery-brownout`, and states how severe it is, when it
//! happened, and which values show it. `docs/reference/findings.md` describes all kinds.
//!
//! Most rules are watches (`watch`), which are state machines that examine the rows of one topic.
//! All watches of a scan run in one pass over the log's columns (`scan`). A watch stores only a few
//! time spans, so a scan needs little memory for logs of any size.
//!
//! # Example
//!
//! The battery of a vehicle has four cells. While it is armed, the voltage falls from 14.8 V to
//! 12.1 V at 40 s, and stays there until the log ends at 43 s. The limit is 4 * 3.3 V = 13.2 V. The
//! result is a finding of the kind `battery-brownout` from 40 s to 43 s. Its evidence is the signal
//! `battery_status/0.voltage_v` with the value 12.1 V and the limit 13.2 V.

mod kind;
mod px4;
mod rld;
pub(crate) mod scan;
mod timing;
mod vel;
mod watch;

use std::ops::Range;

use rovelog::AnyLog;

use crate::ExportError;
use crate::plot::significant;

pub use kind::Kind;
pub(crate) use px4::{MEAN_LIMIT, recordings, time_in_air};

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// A fact that explains other findings. It is usually harmless.
    Low,
    /// A problem that should be examined before the next flight or measurement.
    Medium,
    /// A failure, or a state in which the vehicle or the data cannot be trusted.
    High,
}

impl Severity {
    /// Returns the name of the severity: `low`, `medium` or `high`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// A value or a byte range that shows a problem.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Evidence {
    /// Name of the signal, such as `battery_status/0.voltage_v`. Evidence without a signal has the
    /// name of its source instead, such as `dropout`.
    pub signal: String,
    /// Time of the value in nanoseconds of the log's clock.
    pub time: Option<i64>,
    /// The value, in the unit of the signal.
    pub value: Option<f64>,
    /// Limit that the value exceeds or falls below, in the unit of the value.
    pub limit: Option<f64>,
    /// Byte range in the file.
    pub bytes: Option<Range<u64>>,
}

impl Evidence {
    /// Creates evidence from a value of a signal.
    fn value(signal: impl Into<String>, time: i64, value: f64) -> Self {
        Self { signal: signal.into(), time: Some(time), value: Some(value), ..Self::default() }
    }

    /// Returns the same evidence with a limit.
    fn with_limit(self, limit: f64) -> Self {
        Self { limit: Some(limit), ..self }
    }

    /// Creates evidence from a byte range of the file.
    fn bytes(source: &str, time: Option<i64>, bytes: Range<u64>) -> Self {
        Self { signal: source.to_owned(), time, bytes: Some(bytes), ..Self::default() }
    }
}

/// A problem of a flight or a recording.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Finding {
    /// The cause.
    pub kind: Kind,
    /// Severity of this finding. Findings of the same kind can have different severities.
    pub severity: Severity,
    /// Start of the problem in nanoseconds of the log's clock.
    pub start: i64,
    /// End of the problem in nanoseconds of the log's clock. For most kinds, it is the time of the
    /// last row that shows the problem.
    pub end: i64,
    /// A sentence that describes the problem to people, with numbers and units.
    pub sentence: String,
    /// Values and byte ranges that show the problem. The first is the most important.
    pub evidence: Vec<Evidence>,
}

impl Finding {
    fn new(
        kind: Kind,
        severity: Severity,
        span: Range<i64>,
        sentence: String,
        evidence: Vec<Evidence>,
    ) -> Self {
        Self { kind, severity, start: span.start, end: span.end, sentence, evidence }
    }
}

/// Returns the findings of a log, sorted by their start. Findings with the same start are sorted by
/// descending severity.
///
/// # Errors
/// Returns an error if the log cannot be read.
pub fn findings(log: &AnyLog) -> Result<Vec<Finding>, ExportError> {
    let mut found = Vec::new();
    timing::lost_bytes(log, &mut found)?;
    match log {
        AnyLog::Ulog(reader) => px4::findings(reader, &mut found)?,
        AnyLog::Rld(reader) => rld::findings(log, reader, &mut found)?,
        AnyLog::Rosbag(_) => {
            timing::topics(log, &mut found)?;
            timing::delays(log, &mut found)?;
        }
        AnyLog::Vel(reader) => {
            timing::topics(log, &mut found)?;
            vel::findings(reader, &mut found)?;
        }
        // `AnyLog` may get further formats, for which there are no rules yet.
        _ => {}
    }
    found.sort_by_key(|finding| (finding.start, std::cmp::Reverse(finding.severity), finding.kind.id()));
    Ok(found)
}

/// Formats nanoseconds as seconds, such as `2.19 s`. They are rounded as in [`digits`].
fn seconds(nanos: i64) -> String {
    format!("{} s", digits(nanos as f64 / 1e9))
}

/// Formats a number with three significant digits and without trailing zeros, such as `0.0583`,
/// `13.2` or `4290000`. The integer part is never rounded.
fn digits(value: f64) -> String {
    let text = significant(value, 3);
    if !text.contains('.') {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
