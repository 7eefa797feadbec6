//! The summary of a log as JSON. The keys have the same meaning as in `rovelog info -f json`.

use rovelog::{AnyLog, Clock, Ledger, Timestamp, Topic};
use serde_json::{Map, Value, json};

/// Returns the summary of a log as JSON.
pub(crate) fn json(log: &AnyLog) -> String {
    let (info, format) = (log.info(), log.format());
    let (start, end) = info.span().unzip();
    let utc = info.utc.as_ref();
    let details = info.details.iter();
    let details: Map<String, Value> =
        details.map(|detail| (detail.key.to_owned(), json!(detail.value))).collect();
    let document = json!({
        "format": {
            "id": format.id, "name": format.name, "version": info.version, "dialect": info.dialect,
        },
        "size": count(info.size),
        "state": info.state.name(),
        "clock": {
            // A log without times could only have times since boot.
            "base": info.start.or(info.end).map_or(Clock::Boot, |time| time.clock).name(),
            "utc_rule": utc.map(|utc| utc.rule),
            "utc_offset_ns": utc.map(|utc| utc.nanos.to_string()),
            "utc_evidence": utc.map(|utc| &utc.evidence),
        },
        "start_ns": nanos(info.start),
        "end_ns": nanos(info.end),
        "data_start_ns": nanos(start),
        "data_end_ns": nanos(end),
        "records": count(info.records),
        "topics": log.topics().iter().map(topic).collect::<Vec<_>>(),
        // Includes the losses that were found while records were read.
        "lost": lost(log.losses()),
        "problem_count": count(info.problems),
        "details": details,
    });
    document.to_string()
}

fn topic(topic: &Topic) -> Value {
    json!({
        "name": topic.name,
        "type": topic.type_name,
        "count": count(topic.count),
        "first_ns": nanos(topic.first),
        "last_ns": nanos(topic.last),
        "rate_hz": topic.rate_hz(),
    })
}

fn lost(lost: &Ledger) -> Value {
    json!({
        "bytes": count(lost.bytes),
        "losses": count(lost.losses),
        "ranges": lost.ranges.iter().map(|range| [count(range.start), count(range.end)]).collect::<Vec<_>>(),
        "missing_records": count(lost.missing_records),
        "left_out_records": count(lost.left_out_records),
    })
}

/// Returns a time as text, because many JSON parsers round large numbers.
fn nanos(time: Option<Timestamp>) -> Option<String> {
    time.map(|time| time.nanos.to_string())
}

/// Returns a count, a size or an offset. It is a number up to 2^53, and a text above.
fn count(n: u64) -> Value {
    if n <= 1 << 53 { n.into() } else { n.to_string().into() }
}
