//! Messages and events of a log in time order, findings, and problems of the file.

use rovelog::ulog_format::px4;
use rovelog::{AnyLog, Diagnostic};
use rovelog_export::findings;
use serde_json::{Value, json};

use crate::Explore;

/// Maximum number of messages and events that are sent.
const MAX_LINES: usize = 20_000;

/// Returns the messages and events of a log, and the number of those that were omitted.
///
/// Each message or event is an array of the time in seconds, the level from 0 (emergency) to 7
/// (debug), the kind, and the text.
pub(crate) fn list(explore: &Explore) -> Value {
    let seconds = |nanos: i64| explore.seconds(nanos);
    let mut lines: Vec<(f64, u8, String, String)> = Vec::new();
    let mut left_out = 0_usize;
    for text in explore.log.texts().into_iter().flatten() {
        let Some(time) = text.time else { continue };
        // Above the limit, messages are only counted, because a log can have millions of them. A log
        // has few events, so they are limited after sorting.
        if lines.len() < MAX_LINES {
            lines.push((seconds(time.nanos), text.level, text.source.unwrap_or_default(), text.text));
        } else {
            left_out += 1;
        }
    }
    if let AnyLog::Ulog(reader) = &explore.log {
        let events = px4::events(reader).list.into_iter().filter(px4::Event::is_message);
        lines.extend(px4::timeline(reader, events).into_iter().map(|entry| {
            let (time, entry) = (entry.time, entry.value);
            let text = entry.text().into_owned();
            (seconds(time.nanos), entry.level(), entry.kind_name().to_owned(), text)
        }));
    }
    lines.sort_by(|a, b| a.0.total_cmp(&b.0));
    left_out += lines.len().saturating_sub(MAX_LINES);
    lines.truncate(MAX_LINES);
    let lines: Vec<Value> =
        lines.into_iter().map(|(time, level, kind, text)| json!([time, level, kind, text])).collect();
    json!({ "lines": lines, "left_out": left_out })
}

/// Returns the findings of a log. Each finding is an array of its start and end in seconds, its
/// severity, the name of its kind, and the sentence that describes it.
pub(crate) fn findings(explore: &Explore) -> Result<Value, String> {
    let found = findings::findings(&explore.log).map_err(|error| error.to_string())?;
    let line = |finding: &findings::Finding| {
        let (start, end) = (explore.seconds(finding.start), explore.seconds(finding.end));
        json!([start, end, finding.severity.name(), finding.kind.id(), finding.sentence])
    };
    Ok(found.iter().map(line).collect())
}

/// Returns the problems of the file that were found when the log was opened, in file order. At most
/// a thousand problems of each kind are listed.
pub(crate) fn problems(explore: &Explore) -> Value {
    let line = |problem: &Diagnostic| {
        json!({
            "code": problem.rule.code,
            "name": problem.rule.name,
            "severity": problem.rule.severity.name(),
            "start": problem.range.start,
            "end": problem.range.end,
            "message": problem.message,
        })
    };
    explore.log.diagnostics().list().iter().map(line).collect()
}
