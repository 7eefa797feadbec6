//! Summary of a log for the page: facts, topics with their fields, and the initial plots.

use std::path::Path;

use rovelog::{AnyLog, Error, Timestamp, Topic};
use rovelog_export::report;
use rovelog_export::signal::{derived_fields, measured_fields, numeric_fields};
use serde_json::{Value, json};

use crate::logs::{Listed, Logs, Opened};

/// Maximum number of fields listed for a topic, and for all topics.
const MOST_OF_TOPIC: usize = 500;
const MOST_FIELDS: usize = 100_000;

/// Maximum number of signals in an initial plot.
const LINES: usize = 4;

/// Initial plots for PX4 logs: a topic with its signals for each plot.
const PX4: &[(&str, &[&str])] = &[
    ("vehicle_attitude", &["q.roll", "q.pitch"]),
    ("vehicle_local_position", &["z"]),
    ("battery_status", &["voltage_v"]),
];

/// Returns the row of a log in the list of logs.
pub(crate) fn row(logs: &Logs, number: usize) -> String {
    let Some(listed) = logs.list().get(number) else { return Value::Null.to_string() };
    listed.summary.get_or_init(|| facts(logs, number, listed).to_string().into()).to_string()
}

fn facts(logs: &Logs, number: usize, listed: &Listed) -> Value {
    let opened = match logs.open_for_row(number) {
        Ok(opened) => opened,
        Err(error) => return json!({ "error": error, "file": listed.name }),
    };
    let info = opened.log.info();
    let start = info.span().map(|span| span.0).or(info.start);
    let utc = start.and_then(|start| start.to_unix(info.utc.as_ref())).and_then(Timestamp::rfc3339);
    json!({
        "format": opened.log.format().name,
        "version": info.version,
        "state": info.state.name(),
        "records": info.records,
        "seconds": info.data_duration().map(|nanos| nanos as f64 / 1e9),
        "utc": utc,
        "lost": info.lost.bytes,
    })
}

/// Returns the summary that the page needs to show a log.
pub(crate) fn log(listed: &Listed, opened: &Opened) -> Result<Value, Error> {
    let log = &opened.log;
    let info = log.info();
    let mut free = MOST_FIELDS;
    let topics = log.topics().iter().filter(|topic| topic.count > 0);
    let topics: Vec<Value> =
        topics.map(|topic| described(log, topic, &mut free)).collect::<Result<_, Error>>()?;
    let bands = report::bands(log, opened.span);
    let mut names: Vec<&str> = Vec::new();
    for band in &bands {
        if !names.contains(&&*band.name) {
            names.push(&band.name);
        }
    }
    let number = |name: &str| names.iter().position(|known| *known == name);
    let shown: Vec<_> =
        bands.iter().map(|band| json!([band.span.0, band.span.1, number(&band.name), band.name])).collect();
    let file = Path::new(&listed.file.uri);
    Ok(json!({
        "name": listed.name,
        "path": std::path::absolute(file).unwrap_or_else(|_| file.to_owned()).to_string_lossy(),
        "format": log.format().name,
        "id": log.format().id,
        "version": info.version,
        "size": info.size,
        "state": info.state.name(),
        "lost": if log.losses().is_empty() { Value::Null } else { log.losses().to_string().into() },
        "records": info.records,
        "seconds": opened.seconds(opened.span.1).max(1e-9),
        "unix_ms": opened.unix_ms(),
        "bands": shown,
        "topics": topics,
        "start": start(log)?,
    }))
}

/// Describes a topic: name, type, number of records, rate, fields, derived signals, and the number
/// of fields that are not listed. `free` is the number of fields that may still be listed.
fn described(log: &AnyLog, topic: &Topic, free: &mut usize) -> Result<Value, Error> {
    // Reading the fields is skipped if no more can be listed.
    let mut fields = if *free > 0 { numeric_fields(&**log, topic)? } else { Vec::new() };
    let mut derived = if *free > 0 { derived_fields(&**log, topic)? } else { Vec::new() };
    let all = fields.len();
    fields.truncate(MOST_OF_TOPIC.min(*free));
    derived.truncate(MOST_OF_TOPIC);
    *free -= fields.len();
    let more = all - fields.len();
    Ok(json!([topic.name, topic.type_name, topic.count, topic.rate_hz(), fields, derived, more]))
}

/// Returns the initial plots, as topic and field of each signal.
fn start(log: &AnyLog) -> Result<Vec<Vec<[String; 2]>>, Error> {
    let plot = |topic: &Topic, fields: &[String]| -> Vec<[String; 2]> {
        fields.iter().map(|field| [topic.name.clone(), field.clone()]).collect()
    };
    if let AnyLog::Ulog(_) = log {
        let mut there = Vec::new();
        for (name, wanted) in PX4 {
            let Some(topic) = log.topic(name).filter(|topic| topic.count > 0) else { continue };
            let mut fields = numeric_fields(&**log, topic.get())?;
            fields.extend(derived_fields(&**log, topic.get())?);
            let wanted: Vec<String> = wanted.iter().map(|field| (*field).to_owned()).collect();
            if wanted.iter().all(|field| fields.contains(field)) {
                there.push(plot(topic.get(), &wanted));
            }
        }
        if !there.is_empty() {
            return Ok(there);
        }
    }
    let mut topics: Vec<&Topic> = log.topics().iter().filter(|topic| topic.count > 1).collect();
    topics.sort_by_key(|topic| (std::cmp::Reverse(topic.count), topic.id));
    if let (AnyLog::Rld(_), Some(topic)) = (log, topics.first()) {
        let fields = numeric_fields(&**log, topic)?;
        let mut currents = derived_fields(&**log, topic)?;
        currents.truncate(LINES);
        let volts: Vec<_> = fields.iter().filter(|name| name.starts_with('V')).take(LINES).cloned().collect();
        let both: Vec<_> = [currents, volts].into_iter().filter(|fields| !fields.is_empty()).collect();
        if !both.is_empty() {
            return Ok(both.iter().map(|fields| plot(topic, fields)).collect());
        }
    }
    let mut plots = Vec::new();
    for topic in topics {
        let mut fields = measured_fields(&**log, topic)?;
        fields.truncate(LINES);
        if !fields.is_empty() {
            plots.push(plot(topic, &fields));
        }
        if plots.len() == 2 {
            break;
        }
    }
    Ok(plots)
}
