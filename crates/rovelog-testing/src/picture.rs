//! The picture of a log, which is a JSON object in the form of the expected results. See
//! `corpus/README.md`. It is created only with the traits of `rovelog-core`, so that it works for
//! all formats.

use rovelog_core::{Detail, Diagnostics, Field, LogInfo, Record, Severity, Timestamp, Topic, Value};
use serde_json::{Value as Json, json};

/// Facts about a log that the reader and the stream of every format provide.
#[derive(Clone, Copy)]
pub struct Overview<'a> {
    /// Identifier of the format.
    pub format: &'a str,
    /// Name of the clock that is used if the log has no times.
    pub clock: &'a str,
    /// Summary of the log.
    pub info: &'a LogInfo,
    /// Topics of the log.
    pub topics: &'a [Topic],
    /// Diagnostics of the log.
    pub diagnostics: &'a Diagnostics,
}

impl Overview<'_> {
    /// Returns the picture of a log, which is compared with the expected result. `records` contains
    /// all records in file order, as returned by [`record_json`]. The caller adds format-specific
    /// parts.
    pub fn picture(&self, records: &[Json]) -> Json {
        let info = self.info;
        let utc = info.utc.as_ref();
        json!({
            "format": {"id": self.format, "version": info.version},
            "open": "ok",
            "state": info.state.name(),
            "clock": info.start.or(info.end).map_or(self.clock, |time| time.clock.name()),
            "utc": utc.map_or(Json::Null, |utc| json!({"rule": utc.rule, "offset_ns": utc.nanos.to_string()})),
            "start_ns": nanos(info.start),
            "end_ns": nanos(info.end),
            "data_ns": info.span().map(|(start, end)| [nanos(Some(start)), nanos(Some(end))]),
            "topics": topics(self.topics),
            "records": records,
            "lost": lost(self.diagnostics),
            "notes": notes(self.diagnostics),
        })
    }
}

/// Converts a value to JSON.
pub fn json_of(value: &Value) -> Json {
    // The conversion goes through text, so that a 32-bit float keeps its shortest digits.
    serde_json::from_str(&value.to_json()).expect("a value is JSON")
}

/// Returns a time in nanoseconds as a JSON string, or null if there is no time.
pub fn nanos(time: Option<Timestamp>) -> Json {
    time.map_or(Json::Null, |time| time.nanos.to_string().into())
}

/// Returns a record with its decoded fields as JSON.
pub fn record_json(record: &Record<'_>) -> Json {
    record_with(record, &json_of(&record.value().expect("a valid record decodes")))
}

/// Returns a record as JSON, with `data` as its fields.
pub fn record_with(record: &Record<'_>, data: &Json) -> Json {
    json!({
        "topic": record.topic.name,
        "t_ns": nanos(record.time),
        "offset": record.offset.to_string(),
        "seq": record.seq,
        "data": data,
    })
}

/// The content of a record, which does not depend on its position: topic name, time and payload.
pub type Content = (String, Option<i64>, Vec<u8>);

/// Returns the topic name, time and payload of a record.
pub fn content(record: &Record<'_>) -> Content {
    (record.topic.name.clone(), record.time.map(|time| time.nanos), record.payload.to_vec())
}

/// Returns the value of the detail with this key.
pub fn detail<'a>(details: &'a [Detail], key: &str) -> Option<&'a Value> {
    details.iter().find(|detail| detail.key == key).map(|detail| &detail.value)
}

/// Sorts the diagnostics in `picture` that have the same offset by their codes, as in expected
/// results.
pub fn sort_notes(picture: &mut Json) {
    let key = |note: &Json| {
        let text = |key: &str| note[key].as_str().expect("a text").to_owned();
        (text("offset").parse::<u64>().expect("a number"), text("code"))
    };
    picture["notes"].as_array_mut().expect("notes").sort_by_key(key);
}

/// Checks that `got` contains every key of `want` with an equal value. `what` describes the log in
/// the message of the panic.
pub fn assert_alike(what: &str, want: &Json, got: &Json) {
    let wrong = differences(what, want, got);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns a description of each key of `want` whose value is different in `got`.
pub fn differences(name: &str, want: &Json, got: &Json) -> Vec<String> {
    let keys = want.as_object().expect("an object").iter().filter(|(key, want)| got[*key] != **want);
    keys.map(|(key, want)| format!("{name} {key}\n  want {want}\n  got  {}", got[key])).collect()
}

/// Maximum nesting depth of fields in expected results. It is limited because JSON parsers limit
/// the depth.
const LISTED_DEPTH: usize = 32;

/// Returns the fields of a schema with their types and nested fields.
fn fields(fields: &[Field], depth: usize) -> Json {
    let field = |field: &Field| {
        let mut json = json!({"name": &*field.name, "type": field.ty.to_string()});
        if let Some(nested) = field.ty.nested().filter(|_| depth < LISTED_DEPTH) {
            json["fields"] = self::fields(&nested.fields, depth + 1);
        }
        json
    };
    fields.iter().map(field).collect()
}

/// Returns the topics with their types, counts and fields.
fn topics(topics: &[Topic]) -> Json {
    let topic = |topic: &Topic| {
        json!({
            "name": topic.name,
            "type": topic.type_name,
            "count": topic.count.to_string(),
            "fields": topic.schema.as_ref().map_or(Json::Null, |schema| fields(&schema.fields, 0)),
        })
    };
    topics.iter().map(topic).collect()
}

/// Returns the diagnostics about lost data.
fn lost(diagnostics: &Diagnostics) -> Json {
    let lost = diagnostics.list().iter().filter(|d| d.rule.severity == Severity::DataLost);
    lost.map(
        |d| json!({"code": d.rule.name, "start": d.range.start.to_string(), "end": d.range.end.to_string()}),
    )
    .collect()
}

/// Returns the diagnostics that are not about lost data.
fn notes(diagnostics: &Diagnostics) -> Json {
    let notes = diagnostics.list().iter().filter(|d| d.rule.severity != Severity::DataLost);
    notes
        .map(|d| {
            assert!(d.range.start <= d.range.end, "{d:?}: the range ends before it starts");
            json!({"code": d.rule.name, "offset": d.range.start.to_string()})
        })
        .collect()
}
