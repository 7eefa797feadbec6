//! JSON objects that are parts of the JSON output of several commands. Counts, sizes and offsets are
//! numbers. Times in nanoseconds are strings, because many JSON parsers round numbers above 2^53.

use std::fmt;

use rovelog::core::Outside;
use rovelog::{Detail, Diagnostic, FormatInfo, Ledger, LogInfo, Topic};
use serde::{Serialize, Serializer};

use crate::times::Times;

/// A count, a size or an offset. It is a JSON number up to 2^53. A larger value is a string,
/// because many JSON parsers would round it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count(pub(crate) u64);

impl Serialize for Count {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        if self.0 <= 1 << 53 { out.serialize_u64(self.0) } else { out.collect_str(&self.0) }
    }
}

impl fmt::Display for Count {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

/// Format of a log, as shown by `info` and `check`.
#[derive(Serialize)]
pub(crate) struct FormatDoc<'a> {
    id: &'static str,
    name: &'static str,
    version: &'a str,
    dialect: Option<&'static str>,
}

impl<'a> FormatDoc<'a> {
    pub(crate) fn new(format: &FormatInfo, info: &'a LogInfo) -> Self {
        Self { id: format.id, name: format.name, version: &info.version, dialect: info.dialect }
    }
}

/// Clock of a log and the offset of this clock to Unix time.
#[derive(Serialize)]
pub(crate) struct ClockDoc<'a> {
    base: &'static str,
    utc_rule: Option<&'static str>,
    utc_offset_ns: Option<String>,
    utc_evidence: Option<&'a str>,
}

impl<'a> ClockDoc<'a> {
    pub(crate) fn new(info: &'a LogInfo, times: &Times) -> Self {
        let utc = info.utc.as_ref();
        Self {
            base: times.clock.name(),
            utc_rule: utc.map(|utc| utc.rule),
            utc_offset_ns: utc.map(|utc| utc.nanos.to_string()),
            utc_evidence: utc.map(|utc| utc.evidence.as_str()),
        }
    }
}

/// A topic of a log.
#[derive(Serialize)]
pub(crate) struct TopicDoc<'a> {
    pub(crate) name: &'a str,
    #[serde(rename = "type")]
    pub(crate) type_name: &'a str,
    pub(crate) count: Count,
    /// Size in bytes of all records of the topic. `None` if the size is unknown, because the log
    /// was read from an index without sizes.
    pub(crate) bytes: Option<Count>,
    pub(crate) first_ns: Option<String>,
    pub(crate) last_ns: Option<String>,
    pub(crate) rate_hz: Option<f64>,
}

impl<'a> TopicDoc<'a> {
    pub(crate) fn new(topic: &'a Topic) -> Self {
        Self {
            name: &topic.name,
            type_name: &topic.type_name,
            count: Count(topic.count),
            bytes: topic.bytes_known.then_some(Count(topic.bytes)),
            first_ns: topic.first.map(|time| time.nanos.to_string()),
            last_ns: topic.last.map(|time| time.nanos.to_string()),
            rate_hz: topic.rate_hz(),
        }
    }
}

/// Records of one topic whose times are far outside the time range of all other records.
#[derive(Serialize)]
pub(crate) struct OutsideDoc<'a> {
    topic: &'a str,
    count: Count,
    first_ns: String,
    last_ns: String,
    distance_ns: String,
    offset: Count,
}

impl<'a> OutsideDoc<'a> {
    pub(crate) fn new((topic, outside): (&'a str, &Outside)) -> Self {
        Self {
            topic,
            count: Count(outside.count),
            first_ns: outside.first.nanos.to_string(),
            last_ns: outside.last.nanos.to_string(),
            distance_ns: outside.distance.to_string(),
            offset: Count(outside.offset),
        }
    }
}

/// Amount of data that could not be read.
#[derive(Serialize)]
pub(crate) struct LostDoc {
    bytes: Count,
    losses: Count,
    ranges: Vec<[Count; 2]>,
    missing_records: Count,
    left_out_records: Count,
}

impl LostDoc {
    pub(crate) fn new(lost: &Ledger) -> Self {
        Self {
            bytes: Count(lost.bytes),
            losses: Count(lost.losses),
            ranges: lost.ranges.iter().map(|range| [Count(range.start), Count(range.end)]).collect(),
            missing_records: Count(lost.missing_records),
            left_out_records: Count(lost.left_out_records),
        }
    }
}

/// A problem of a log, with its byte range.
#[derive(Serialize)]
pub(crate) struct ProblemDoc<'a> {
    code: &'static str,
    name: &'static str,
    severity: &'static str,
    start: Count,
    end: Count,
    message: &'a str,
}

impl<'a> ProblemDoc<'a> {
    pub(crate) fn new(problem: &'a Diagnostic) -> Self {
        Self {
            code: problem.rule.code,
            name: problem.rule.name,
            severity: problem.rule.severity.name(),
            start: Count(problem.range.start),
            end: Count(problem.range.end),
            message: &problem.message,
        }
    }
}

/// Properties that only logs of one format have, as a JSON object. The keys keep their order.
pub(crate) struct DetailsDoc<'a>(pub(crate) &'a [Detail]);

impl Serialize for DetailsDoc<'_> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_map(self.0.iter().map(|detail| (detail.key, &detail.value)))
    }
}
