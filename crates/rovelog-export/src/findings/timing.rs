//! Finds bytes that could not be read, topics that stall, and problems of clocks.

use std::cmp::Ordering;
use std::fmt::Write as _;
use std::ops::Range;

use arrow_array::cast::AsArray as _;
use arrow_array::types::Int64Type;
use rovelog::core::health::TopicHealth;
use rovelog::core::internal::text::count;
use rovelog::{AnyLog, FieldType, Select, Topic};

use super::scan::Scan;
use super::watch::{Holds, Span};
use super::{Evidence, Finding, Kind, Severity, digits};
use crate::ExportError;

/// Maximum number of topics or byte ranges that are listed as evidence of a finding.
pub(super) const MAX_EVIDENCE: usize = 16;

/// Length in nanoseconds above which a pause of a topic can be a stall. The pause must also be
/// longer than [`MIN_STALL_PERIODS`] periods.
const MIN_STALL: i64 = 1_000_000_000;

/// Number of periods above which a pause of a topic can be a stall. The pause must also be longer
/// than [`MIN_STALL`]. [`rovelog::core::health`] uses the same limits for topics that stop.
const MIN_STALL_PERIODS: i64 = 10;

/// Length in seconds from which the pause of a single topic has the severity medium.
const LONG_STALL: f64 = 10.0;

/// Delay in nanoseconds, in addition to the normal delay, above which a message is late. After a
/// second, the measured state of a robot is out of date.
const LATE: f64 = 1e9;

/// Normal delay in nanoseconds from which the two times are considered to come from different
/// clocks, so that their difference has no meaning. For example, a simulation has its own clock.
const OTHER_CLOCK: f64 = 86_400e9;

/// Number of messages at the start of a topic that define its normal delay.
const BASELINE_MESSAGES: u64 = 10;

/// Adds a finding if bytes of the file could not be read.
pub(super) fn lost_bytes(log: &AnyLog, found: &mut Vec<Finding>) -> Result<(), ExportError> {
    let (lost, info) = (log.diagnostics().ledger(), log.info());
    if lost.is_empty() {
        return Ok(());
    }
    // If nothing of the log is left, it has no time span.
    let start = info.start.map_or(0, |start| start.nanos);
    let (start, end) = info.span().map_or((start, start), |(start, end)| (start.nanos, end.nanos));
    let ranges = lost.ranges.iter().take(MAX_EVIDENCE);
    let evidence = ranges.map(|range| Ok(Evidence::bytes("file", time_of(log, range)?, range.clone())));
    let evidence = evidence.collect::<Result<Vec<_>, ExportError>>()?;
    let latest = lost.ranges.last().map(|range| time_of(log, range)).transpose()?.flatten();
    let times = || evidence.iter().filter_map(|evidence| evidence.time).chain(latest);
    let (start, end) = (times().min().unwrap_or(start), times().max().unwrap_or(end));
    found.push(Finding::new(Kind::LostBytes, Severity::Medium, start..end, format!("{lost}."), evidence));
    Ok(())
}

/// Returns the earliest time of the blocks that start in a byte range. Returns `None` if no block
/// with a time starts there. [`Select::blocks`] explains blocks.
pub(super) fn time_of(log: &AnyLog, bytes: &Range<u64>) -> Result<Option<i64>, ExportError> {
    let mut select = Select::all().without_fields();
    select.blocks = Some(bytes.start..bytes.end.max(bytes.start + 1));
    let mut earliest: Option<i64> = None;
    for batch in log.batches(&select) {
        let (_, batch) = batch?;
        let times = batch.column(0).as_primitive::<Int64Type>();
        earliest = earliest.into_iter().chain(times.iter().flatten()).min();
    }
    Ok(earliest)
}

/// Adds findings about topics that pause or stop, and about times that go back or are all equal.
pub(super) fn topics(log: &AnyLog, found: &mut Vec<Finding>) -> Result<(), ExportError> {
    let health = rovelog::health(log, &Select::all())?.topics;
    let name = |health: &TopicHealth| log.topics()[health.topic.index()].name.clone();
    let pause = |topic, start, length: i64| Evidence::value(name(topic), start, length as f64 / 1e9);
    let stops = health.iter().filter_map(|topic| Some(pause(topic, topic.latest?, topic.silent?)));
    found.extend(stall(stops.collect(), "stopped before the end of the log, which ends"));
    let pauses = health.iter().filter_map(|topic| {
        let gap = topic.longest_confirmed.or_else(|| topic.longest_gaps.first().copied())?;
        let is_long = gap.length > topic.period?.saturating_mul(MIN_STALL_PERIODS) && gap.length > MIN_STALL;
        is_long.then(|| pause(topic, gap.start, gap.length))
    });
    found.extend(stall(pauses.collect(), "paused: the next message came"));
    let timed = health.iter().filter(|topic| topic.count > 1).count();
    let falling: Vec<_> = health.iter().filter(|topic| topic.falling > 0).collect();
    if let Some(first) = falling.iter().filter_map(|topic| topic.first_fall).min() {
        let records: u64 = falling.iter().map(|topic| topic.falling).sum();
        let (of_records, of_topics) = (count(records, "time"), count(timed, "topic"));
        let sentence = format!("The time goes back {of_records} in {} of {of_topics}.", falling.len());
        // If the clock was set, the times of most topics go back. If the times of only a few topics
        // go back, single messages were late.
        let is_clock = falling.len() * 2 > timed;
        let (kind, severity) =
            if is_clock { (Kind::ClockJump, Severity::Medium) } else { (Kind::LateMessages, Severity::Low) };
        let evidence = falling.iter().take(MAX_EVIDENCE);
        let evidence = evidence
            .filter_map(|topic| Some(Evidence::value(name(topic), topic.first_fall?, topic.falling as f64)));
        found.push(Finding::new(kind, severity, first..first, sentence, evidence.collect()));
    }
    for topic in health.iter().filter(|topic| topic.is_stuck) {
        let (Some(time), name) = (topic.first, name(topic)) else { continue };
        let sentence = format!("All {} of topic {name} have the same time.", count(topic.count, "record"));
        let evidence = vec![Evidence::value(name, time, topic.count as f64)];
        found.push(Finding::new(Kind::ClockJump, Severity::Medium, time..time, sentence, evidence));
    }
    Ok(())
}

/// Returns one finding for the pauses of all topics, or `None` if there are no pauses. The value of
/// each pause is its length in seconds. `what` is the verb of the sentence.
fn stall(mut pauses: Vec<Evidence>, what: &str) -> Option<Finding> {
    pauses.sort_by(|a, b| b.value.partial_cmp(&a.value).unwrap_or(Ordering::Equal));
    let longest = pauses.first()?;
    let (start, length) = (longest.time?, longest.value?);
    let mut sentence = format!("Topic {} {what} {} s later", longest.signal, digits(length));
    if pauses.len() > 1 {
        let others = count(pauses.len() - 1, "other topic");
        let _ = write!(sentence, "; so did {others}");
    }
    sentence.push('.');
    #[expect(clippy::cast_possible_truncation, reason = "the cast saturates")]
    let end = start.saturating_add((length * 1e9) as i64);
    // A short pause of a single topic is usually harmless. For example, a topic of commands pauses
    // while no command is sent.
    let is_problem = pauses.len() > 1 || length >= LONG_STALL;
    let severity = if is_problem { Severity::Medium } else { Severity::Low };
    pauses.truncate(MAX_EVIDENCE);
    Some(Finding::new(Kind::TopicStall, severity, start..end, sentence, pauses))
}

/// Adds findings about messages of ROS bags that arrived late. The delay of a message is the time
/// from its measurement (`header.stamp`) until it was received (time of the record).
pub(super) fn delays(log: &AnyLog, found: &mut Vec<Finding>) -> Result<(), ExportError> {
    let mut scan = Scan::default();
    for topic in log.topics().iter().filter(|topic| topic.count > BASELINE_MESSAGES && has_stamp(topic)) {
        // The normal delay is the shortest delay of the first messages, in nanoseconds.
        let (mut messages, mut normal, mut last) = (0, f64::INFINITY, f64::NAN);
        let test = move |time: i64, row: &[f64]| {
            let delay = time as f64 - row[0];
            // A message that is sent again, such as a map, keeps its old time.
            #[expect(clippy::float_cmp, reason = "the same time")]
            let is_repeated = std::mem::replace(&mut last, row[0]) == row[0];
            messages += 1;
            if messages <= BASELINE_MESSAGES {
                normal = normal.min(delay);
            }
            let is_late = normal.abs() < OTHER_CLOCK && delay - normal > LATE && row[0] > 0.0;
            (messages > BASELINE_MESSAGES && is_late && !is_repeated).then_some((delay - normal) / 1e9)
        };
        scan.check(topic, ["header.stamp"], Holds::above(0), test, |topic: &str, span: &Span| {
            let late = digits(span.worst.value);
            let sentence = format!("Messages of {topic} arrived up to {late} s later than usual.");
            let signal = format!("{topic}.header.stamp");
            span.finding(Kind::LateMessages, Severity::Medium, sentence, signal, LATE / 1e9)
        });
    }
    scan.run(&**log, found)
}

/// Returns whether the messages of a topic have the field `header.stamp`.
fn has_stamp(topic: &Topic) -> bool {
    let Some(schema) = topic.schema.as_deref() else { return false };
    let header = schema.fields.iter().find(|field| &*field.name == "header");
    let Some(FieldType::Struct(header)) = header.map(|field| &field.ty) else { return false };
    header.fields.iter().any(|field| &*field.name == "stamp" && field.ty == FieldType::Time)
}
