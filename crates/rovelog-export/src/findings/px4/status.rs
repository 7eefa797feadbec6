//! Finds failsafes, kills and terminations, and their causes.

use std::fmt::Write as _;

use rovelog::ulog_format::UlogReader;
use rovelog::ulog_format::px4::{Entry, Mode, events, status_changes};
use rovelog::{LogReader as _, Topic};

use super::flight::Flight;
use super::{SECOND, recordings};
use crate::ExportError;
use crate::findings::scan::{Scan, WHOLE_LOG, each_row};
use crate::findings::watch::{Holds, Sample, Span};
use crate::findings::{Evidence, Finding, Kind, Severity, seconds};
use crate::signal::numeric_fields;

/// Maximum time in nanoseconds from a cause to the start of the finding.
const CAUSE_BEFORE: i64 = 2 * SECOND;

/// Maximum time in nanoseconds by which a cause is logged after the start of the finding. PX4 logs
/// the state of the vehicle twice per second, so the cause may be logged later than its effect.
const CAUSE_AFTER: i64 = SECOND / 2;

/// Highest level of a warning, as in syslog. Errors have lower levels.
const WARNING: u8 = 4;

/// Fields of `actuator_armed` that stop the motors, with the kind of the finding. Each kind has two
/// fields, because PX4 1.16 renamed them.
const STOPS: [(&str, Kind); 4] = [
    ("manual_lockdown", Kind::Kill),
    ("kill", Kind::Kill),
    ("force_failsafe", Kind::Termination),
    ("termination", Kind::Termination),
];

/// Maximum number of flags that are named as causes. Later flags are usually effects of the first
/// ones.
const MAX_CAUSES: usize = 4;

/// Topics with flags for the causes of failsafes. PX4 has the first topic since version 1.14. The
/// topics are tried in this order until one has a flag that was set during the log.
const FLAGS: [&str; 3] = ["failsafe_flags", "vehicle_status_flags", "vehicle_status"];

/// Adds the checks of kills and terminations.
pub(super) fn add<'a>(log: &UlogReader, flight: &'a Flight, scan: &mut Scan<'a>) {
    let armed = recordings(log, "actuator_armed").into_iter();
    for (topic, (field, kind)) in armed.flat_map(|topic| STOPS.map(|stop| (topic, stop))) {
        // PX4 disarms when it stops the motors, so the row before the stop shows whether the
        // vehicle was flying.
        let mut last: Option<Sample> = None;
        let test = move |time, row: &[f64]| {
            let last = last.replace(Sample { time, value: row[0] });
            let is_stop = |last: Sample| last.value == 0.0 && row[0] > 0.0 && flight.is_flying(last.time);
            last.is_some_and(is_stop).then_some(row[0])
        };
        scan.check(topic, [field], Holds::above(0), test, move |topic: &str, span: &Span| {
            let sentence = match kind {
                Kind::Kill => "The kill switch stopped the motors in flight",
                _ => "PX4 terminated the flight by stopping the motors",
            };
            span.finding(kind, Severity::High, sentence.to_owned(), format!("{topic}.{field}"), 0.0)
        });
    }
}

/// Adds the failsafes that started while armed. Their sentences lack the cause, which
/// [`add_causes`] appends.
pub(super) fn failsafes(log: &UlogReader, flight: &Flight, found: &mut Vec<Finding>) {
    let end = log.info().span().map_or(i64::MAX, |span| span.1.nanos);
    let mut modes: Vec<(i64, Mode)> = Vec::new();
    let mut start: Option<i64> = None;
    let mut spans = Vec::new();
    for change in status_changes(log) {
        match change.value {
            Entry::Failsafe(true) => start = Some(change.time.nanos),
            Entry::Failsafe(false) => spans.extend(start.take().map(|start| start..change.time.nanos)),
            Entry::Mode(mode) => modes.push((change.time.nanos, mode)),
            _ => {}
        }
    }
    spans.extend(start.map(|start| start..end));
    for span in spans.into_iter().filter(|span| flight.is_armed(span.start)) {
        let until_start = &modes[..modes.partition_point(|(time, _)| *time <= span.start)];
        let change = match until_start {
            [.., (_, from), (time, to)] if *time == span.start => {
                format!(" and changed the mode from {from} to {to}")
            }
            _ => String::new(),
        };
        let length = seconds(span.end.saturating_sub(span.start));
        let sentence = format!("A failsafe was active for {length}{change}");
        let evidence = Evidence::value("vehicle_status/0.failsafe", span.start, 1.0);
        found.push(Finding::new(Kind::Failsafe, Severity::Medium, span, sentence, vec![evidence]));
    }
}

/// Completes the sentences of all failsafes, kills and terminations with their causes.
pub(super) fn add_causes(log: &UlogReader, found: &mut [Finding]) -> Result<(), ExportError> {
    let has_cause = |kind| matches!(kind, Kind::Failsafe | Kind::Kill | Kind::Termination);
    if !found.iter().any(|finding| has_cause(finding.kind)) {
        return Ok(());
    }
    let flags = rising_flags(log)?;
    let messages = messages(log);
    for finding in found.iter_mut().filter(|finding| has_cause(finding.kind)) {
        let start = finding.start;
        let window = start.saturating_sub(CAUSE_BEFORE)..=start.saturating_add(CAUSE_AFTER);
        let mut names = Vec::new();
        for (time, signal) in flags.iter().filter(|(time, _)| window.contains(time)).take(MAX_CAUSES) {
            names.push(signal.rsplit('.').next().unwrap_or_default().replace('_', " "));
            finding.evidence.push(Evidence::value(signal, *time, 1.0));
        }
        // If there are several messages, the last one is usually the most specific.
        let message = messages.iter().rev().find(|(time, _)| window.contains(time));
        names.extend(message.map(|(_, text)| format!("\"{text}\"")));
        let cause = if names.is_empty() { "not in the log".to_owned() } else { names.join(", ") };
        let _ = write!(finding.sentence, "; cause: {cause}.");
    }
    Ok(())
}

/// Maximum number of times at which flags were set that are stored.
const MAX_FLAGS: usize = 4096;

/// Returns the times at which flags for failures were set, with the names of the signals.
fn rising_flags(log: &UlogReader) -> Result<Vec<(i64, String)>, ExportError> {
    let mut rising = Vec::new();
    for name in FLAGS {
        for topic in recordings(log, name) {
            add_rising(log, topic, &mut rising)?;
        }
        if !rising.is_empty() {
            break;
        }
    }
    Ok(rising)
}

/// Adds the times at which flags of a topic were set.
fn add_rising(log: &UlogReader, topic: &Topic, rising: &mut Vec<(i64, String)>) -> Result<(), ExportError> {
    let fields: Vec<String> =
        numeric_fields(log, topic)?.into_iter().filter(|field| is_cause(topic, field)).collect();
    let names: Vec<&str> = fields.iter().map(String::as_str).collect();
    // Flags that are set at the start are considered normal for this vehicle.
    let mut was = vec![true; fields.len()];
    each_row(log, &topic.name, &names, WHOLE_LOG, |time, row| {
        for ((field, value), was) in fields.iter().zip(row).zip(&mut was) {
            if *value > 0.0 && !*was && rising.len() < MAX_FLAGS {
                rising.push((time, format!("{}.{field}", topic.name)));
            }
            *was = *value > 0.0;
        }
    })
}

/// Returns whether a field is a flag for a failure.
fn is_cause(topic: &Topic, field: &str) -> bool {
    if topic.type_name == FLAGS[0] {
        return !field.starts_with("mode_req") && !field.starts_with("timestamp");
    }
    ["_lost", "_failure", "_violated", "_invalid"].iter().any(|end| field.ends_with(end))
}

/// Returns the warnings and errors among PX4's events, in time order. If there are none, returns
/// those of the log's text messages.
fn messages(log: &UlogReader) -> Vec<(i64, String)> {
    let events = events(log).list.into_iter().filter(|event| event.is_message() && event.level <= WARNING);
    let mut messages: Vec<_> = events.map(|event| (event.time.nanos, event.message())).collect();
    if messages.is_empty() {
        let lines = log.texts().into_iter().flatten().filter(|line| line.level <= WARNING);
        messages.extend(lines.filter_map(|line| Some((line.time?.nanos, line.text))));
    }
    messages.sort_by_key(|(time, _)| *time);
    messages
}
