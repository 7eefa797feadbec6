//! Functions that return facts about logs: topics, problems, messages, parameters, events and
//! findings. The columns have the same names as in a lake and in the JSON output.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray, TimestampNanosecondArray,
    UInt64Array,
};
use arrow_schema::SchemaRef;
use rovelog::{AnyLog, Select, Value};
use rovelog_export::findings::findings;
use rovelog_export::text::cell;
use rovelog_export::{Loss, TimeBase};
use rovelog_scale::lake::{events, line_schema, texts};
use rovelog_scale::split_instance;

/// A log whose facts are requested.
pub(crate) struct Source<'a> {
    /// Path of the log, which is the value of the column `log`.
    pub(crate) uri: &'a str,
    /// The log, or the reason why it cannot be opened.
    pub(crate) log: Result<&'a AnyLog, &'a str>,
}

/// A table function that returns facts about logs.
pub(crate) struct Facts {
    pub(crate) name: &'static str,
    /// True if the function also has rows for logs that cannot be opened.
    pub(crate) includes_unreadable: bool,
    pub(crate) batches: fn(&Source<'_>) -> Result<Vec<RecordBatch>, String>,
}

/// All functions that return facts about logs.
pub(crate) static FACTS: [Facts; 6] = [
    Facts { name: "log_topics", includes_unreadable: false, batches: topics },
    Facts { name: "log_problems", includes_unreadable: true, batches: problems },
    Facts { name: "log_messages", includes_unreadable: false, batches: messages },
    Facts { name: "log_events", includes_unreadable: false, batches: log_events },
    Facts { name: "log_params", includes_unreadable: false, batches: params },
    Facts { name: "log_findings", includes_unreadable: false, batches: log_findings },
];

impl Facts {
    /// Returns the columns of the function.
    pub(crate) fn schema(&self) -> Result<SchemaRef, String> {
        let batches = (self.batches)(&Source { uri: "", log: Err("") })?;
        batches.first().map(RecordBatch::schema).ok_or_else(|| format!("{} has no columns", self.name))
    }
}

/// Returns a table with a row for each item. Its first column is `log`.
fn table<const N: usize>(
    source: &Source<'_>,
    rows: usize,
    columns: [(&str, ArrayRef); N],
) -> Result<Vec<RecordBatch>, String> {
    let log: ArrayRef = Arc::new(StringArray::from_iter_values((0..rows).map(|_| source.uri)));
    let all = std::iter::once(("log", log)).chain(columns).map(|(name, array)| (name, array, true));
    RecordBatch::try_from_iter_with_nullable(all).map(|batch| vec![batch]).map_err(|error| error.to_string())
}

/// Returns a column of texts.
fn text<'a, T>(rows: &'a [T], of: impl Fn(&'a T) -> Option<&'a str>) -> ArrayRef {
    Arc::new(rows.iter().map(of).collect::<StringArray>())
}

/// Returns a column of integers.
fn integer<T>(rows: &[T], of: impl Fn(&T) -> Option<i64>) -> ArrayRef {
    Arc::new(rows.iter().map(of).collect::<Int64Array>())
}

/// Returns a column of counts, sizes or offsets.
fn count<T>(rows: &[T], of: impl Fn(&T) -> Option<u64>) -> ArrayRef {
    Arc::new(rows.iter().map(of).collect::<UInt64Array>())
}

/// Returns a column of times in UTC. `of` returns the time on the clock of the log in nanoseconds.
/// If the log has no UTC, all times are null.
fn time<T>(source: &Source<'_>, rows: &[T], of: impl Fn(&T) -> Option<i64>) -> ArrayRef {
    let base = source.log.ok().map(|log| TimeBase::of(&**log));
    let utc = |nanos| base.as_ref().filter(|base| matches!(base, TimeBase::Utc(_)))?.place(nanos);
    Arc::new(rows.iter().map(|row| utc(of(row)?)).collect::<TimestampNanosecondArray>().with_timezone("UTC"))
}

fn topics(source: &Source<'_>) -> Result<Vec<RecordBatch>, String> {
    let topics = source.log.map_or(&[][..], |log| log.topics());
    let names: Vec<_> = topics.iter().map(|topic| split_instance(&topic.name)).collect();
    let instances: Int32Array = names.iter().map(|(_, instance)| *instance).collect();
    let rates: Float64Array = topics.iter().map(rovelog::Topic::rate_hz).collect();
    let columns = [
        ("topic", text(&names, |(name, _)| Some(name))),
        ("instance", Arc::new(instances)),
        ("type", text(topics, |topic| Some(&topic.type_name))),
        ("count", count(topics, |topic| Some(topic.count))),
        ("bytes", count(topics, |topic| topic.bytes_known.then_some(topic.bytes))),
        ("first_ns", integer(topics, |topic| topic.first.map(|time| time.nanos))),
        ("last_ns", integer(topics, |topic| topic.last.map(|time| time.nanos))),
        ("rate_hz", Arc::new(rates)),
    ];
    table(source, topics.len(), columns)
}

/// A row of `log_problems`.
#[derive(Default)]
struct Problem {
    code: Option<&'static str>,
    name: &'static str,
    severity: &'static str,
    first_byte: Option<u64>,
    bytes: Option<u64>,
    message: String,
}

/// Returns the diagnostics of a log, and the records that have no row in any table. A log that
/// cannot be opened has one problem.
fn problems(source: &Source<'_>) -> Result<Vec<RecordBatch>, String> {
    let mut rows = Vec::new();
    match source.log {
        Ok(log) => {
            let found = log.diagnostics();
            rows.extend(found.list().iter().map(|found| Problem {
                code: Some(found.rule.code),
                name: found.rule.name,
                severity: found.rule.severity.name(),
                first_byte: Some(found.range.start),
                bytes: Some(found.range.end.saturating_sub(found.range.start)),
                message: found.message.clone(),
            }));
            for (code, total) in found.counts() {
                let same = || found.list().iter().filter(|found| found.rule.code == *code);
                let more = total.saturating_sub(same().count() as u64);
                if let Some(first) = same().next().filter(|_| more > 0) {
                    let message = format!("{more} more problems of this kind");
                    let (name, severity) = (first.rule.name, first.rule.severity.name());
                    rows.push(Problem { code: Some(code), name, severity, message, ..Problem::default() });
                }
            }
            let (name, found) = match undecodable(log) {
                Ok(found) => ("undecodable", found),
                Err(why) => ("unreadable", vec![why]),
            };
            let severity = "data_lost";
            rows.extend(found.into_iter().map(|message| Problem {
                name,
                severity,
                message,
                ..Problem::default()
            }));
        }
        Err(why) => rows.push(Problem {
            name: "unreadable",
            severity: "data_lost",
            message: why.to_owned(),
            ..Problem::default()
        }),
    }
    let columns = [
        ("code", text(&rows, |row| row.code)),
        ("name", text(&rows, |row| Some(row.name))),
        ("severity", text(&rows, |row| Some(row.severity))),
        ("first_byte", count(&rows, |row| row.first_byte)),
        ("bytes", count(&rows, |row| row.bytes)),
        ("message", text(&rows, |row| Some(&row.message))),
    ];
    table(source, rows.len(), columns)
}

/// Returns a sentence for each topic with records that have no row, because they cannot be decoded.
fn undecodable(log: &AnyLog) -> Result<Vec<String>, String> {
    // Only bags can have such records, and they are known only after all columns have been read.
    if matches!(log, AnyLog::Rosbag(_)) {
        for batch in log.batches(&Select::all()) {
            batch.map_err(|error| error.to_string())?;
        }
    }
    let without_columns = log.topics().iter().filter(|topic| topic.schema.is_none() && topic.count > 0);
    let losses = without_columns.map(|topic| Loss::undecodable(topic, topic.count));
    let losses = losses.chain(Loss::of_columns(&**log, &Select::all()));
    Ok(losses.map(|loss| format!("{}: {}", loss.topic, loss.why)).collect())
}

fn messages(source: &Source<'_>) -> Result<Vec<RecordBatch>, String> {
    let mut batches = vec![RecordBatch::new_empty(line_schema())];
    if let Ok(log) = source.log {
        let mut add = |batch: &RecordBatch| {
            batches.push(batch.clone());
            Ok(())
        };
        texts(log, source.uri, &mut add).map_err(|error| error.to_string())?;
    }
    Ok(batches)
}

fn log_events(source: &Source<'_>) -> Result<Vec<RecordBatch>, String> {
    let found = source.log.map_or(Ok(None), |log| events(log, source.uri));
    let found = found.map_err(|error| error.to_string())?;
    Ok(vec![found.unwrap_or_else(|| RecordBatch::new_empty(line_schema()))])
}

/// A row of `log_params`: the value of a parameter at the start of the log, or a change of it.
struct Parameter {
    name: String,
    /// Time of the change on the clock of the log. `None` for the value at the start.
    t_ns: Option<i64>,
    value: Value,
    system_default: Option<Value>,
    setup_default: Option<Value>,
}

fn params(source: &Source<'_>) -> Result<Vec<RecordBatch>, String> {
    let mut rows = Vec::new();
    if let Ok(AnyLog::Ulog(log)) = source.log {
        let mut found = log.parameters();
        for (name, value) in found.initial {
            let (system_default, setup_default) =
                (found.system_defaults.remove(&name), found.setup_defaults.remove(&name));
            rows.push(Parameter { name, t_ns: None, value, system_default, setup_default });
        }
        rows.extend(found.changed.into_iter().map(|change| Parameter {
            name: change.name,
            t_ns: change.time.map(|time| time.nanos),
            value: change.value,
            system_default: None,
            setup_default: None,
        }));
    }
    let numbers = |of: &dyn Fn(&Parameter) -> Option<f64>| -> ArrayRef {
        Arc::new(rows.iter().map(of).collect::<Float64Array>())
    };
    let texts = |of: &dyn Fn(&Parameter) -> String| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(rows.iter().map(of)))
    };
    // A parameter has at most 32 bits, so a 64-bit float represents its value exactly.
    let columns = [
        ("name", text(&rows, |row| Some(&row.name))),
        ("value", numbers(&|row| row.value.as_f64())),
        ("text", texts(&|row| shown(&row.value))),
        ("t_ns", integer(&rows, |row| row.t_ns)),
        ("time", time(source, &rows, |row| row.t_ns)),
        ("system_default", numbers(&|row| row.system_default.as_ref()?.as_f64())),
        ("setup_default", numbers(&|row| row.setup_default.as_ref()?.as_f64())),
    ];
    table(source, rows.len(), columns)
}

/// Returns a value as text, with the fewest digits that convert back to the same value.
fn shown(value: &Value) -> String {
    let mut text = String::new();
    cell(value, &mut text);
    text
}

fn log_findings(source: &Source<'_>) -> Result<Vec<RecordBatch>, String> {
    let found = source.log.map_or(Ok(Vec::new()), findings);
    let found = found.map_err(|error| format!("{}: {error}", source.uri))?;
    let columns = [
        ("kind", text(&found, |row| Some(row.kind.id()))),
        ("severity", text(&found, |row| Some(row.severity.name()))),
        ("t_ns", integer(&found, |row| Some(row.start))),
        ("end_t_ns", integer(&found, |row| Some(row.end))),
        ("time", time(source, &found, |row| Some(row.start))),
        ("sentence", text(&found, |row| Some(&row.sentence))),
    ];
    table(source, found.len(), columns)
}
