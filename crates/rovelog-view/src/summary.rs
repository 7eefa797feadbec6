//! The summary of a log for the page in the browser. It contains general information, the topics,
//! and the plots that are shown first.

use std::path::Path;

use rovelog::{AnyLog, Error, Timestamp, Topic};
use rovelog_export::report;
use rovelog_export::signal::{derived_fields, measured_fields, numeric_fields};
use serde_json::{Value, json};

use crate::logs::{ListedLog, Logs, Opened};

/// Maximum number of fields that are listed for a topic.
const MAX_TOPIC_FIELDS: usize = 500;

/// Maximum number of fields that are listed for all topics of a log.
const MAX_FIELDS: usize = 100_000;

/// Maximum number of signals in a plot that is shown first.
const MAX_PLOT_SIGNALS: usize = 4;

/// Plots that are shown first for PX4 logs. Each entry has the topic and the signals of a plot.
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

/// Returns the row of a log in the list of logs, as JSON. If the log cannot be opened, the row
/// contains the error.
fn facts(logs: &Logs, number: usize, listed: &ListedLog) -> Value {
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
pub(crate) fn log(listed: &ListedLog, opened: &Opened) -> Result<Value, Error> {
    let log = &opened.log;
    let info = log.info();
    let mut free = MAX_FIELDS;
    let topics = log.topics().iter().filter(|topic| topic.count > 0);
    let topics: Vec<Value> =
        topics.map(|topic| describe_topic(log, topic, &mut free)).collect::<Result<_, Error>>()?;
    let bands = report::bands(log, opened.span);
    // The page assigns a color to each distinct name, in the order in which the names first occur.
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
        "start": initial_plots(log)?,
    }))
}

/// Describes a topic as an array. The elements are the name, type, number of records, rate, fields,
/// derived signals, and the number of fields that are not listed.
///
/// `free` is the number of fields that may still be listed for the log.
fn describe_topic(log: &AnyLog, topic: &Topic, free: &mut usize) -> Result<Value, Error> {
    // If the limit of listed fields is reached, the fields need not be read.
    let mut fields = if *free > 0 { numeric_fields(&**log, topic)? } else { Vec::new() };
    let mut derived = if *free > 0 { derived_fields(&**log, topic)? } else { Vec::new() };
    let all = fields.len();
    fields.truncate(MAX_TOPIC_FIELDS.min(*free));
    derived.truncate(MAX_TOPIC_FIELDS);
    *free -= fields.len();
    let more = all - fields.len();
    Ok(json!([topic.name, topic.type_name, topic.count, topic.rate_hz(), fields, derived, more]))
}

/// Returns the plots that are shown first. Each signal in a plot is a topic and a field.
///
/// For a PX4 log, these plots show attitude, altitude and battery voltage, if the log has them. For
/// an RLD log, they show currents and voltages. For any other log, they show the two topics that
/// have the most records. Topics without measured values, such as counters, are not considered.
fn initial_plots(log: &AnyLog) -> Result<Vec<Vec<[String; 2]>>, Error> {
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
            // A field may not exist in other releases of PX4. A plot with a missing signal would
            // confuse the user.
            if wanted.iter().all(|field| fields.contains(field)) {
                there.push(plot(topic.get(), &wanted));
            }
        }
        if !there.is_empty() {
            return Ok(there);
        }
    }
    let mut topics: Vec<&Topic> = log.topics().iter().filter(|topic| topic.count > 1).collect();
    // Topics with many records usually contain measurements.
    topics.sort_by_key(|topic| (std::cmp::Reverse(topic.count), topic.id));
    if let (AnyLog::Rld(_), Some(topic)) = (log, topics.first()) {
        let fields = numeric_fields(&**log, topic)?;
        let mut currents = derived_fields(&**log, topic)?;
        currents.truncate(MAX_PLOT_SIGNALS);
        let volts: Vec<_> =
            fields.iter().filter(|name| name.starts_with('V')).take(MAX_PLOT_SIGNALS).cloned().collect();
        let both: Vec<_> = [currents, volts].into_iter().filter(|fields| !fields.is_empty()).collect();
        if !both.is_empty() {
            return Ok(both.iter().map(|fields| plot(topic, fields)).collect());
        }
    }
    let mut plots = Vec::new();
    for topic in topics {
        let mut fields = measured_fields(&**log, topic)?;
        fields.truncate(MAX_PLOT_SIGNALS);
        if !fields.is_empty() {
            plots.push(plot(topic, &fields));
        }
        if plots.len() == 2 {
            break;
        }
    }
    Ok(plots)
}
