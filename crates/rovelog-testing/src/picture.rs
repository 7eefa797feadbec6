//! Picture of a log in the form of the expected results (`corpus/README.md`), made through the
//! traits alone.

use rovelog_core::{Detail, Diagnostics, Field, LogInfo, Record, Severity, Timestamp, Topic, Value};
use serde_json::{Value as Json, json};

/// The facts that every reader and stream gives about a log.
#[derive(Clone, Copy)]
pub struct Overview<'a> {
    /// The format's id.
    pub format: &'a str,
    /// Clock of a log without any time.
    pub clock: &'a str,
    /// The summary.
    pub info: &'a LogInfo,
    /// The topics.
    pub topics: &'a [Topic],
    /// The diagnostics.
    pub diagnostics: &'a Diagnostics,
}

impl Overview<'_> {
    /// Returns the picture of a log with these records in file order (see [`record_json`]). The
    /// caller adds format-specific parts.
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

/// Returns a value as JSON.
pub fn json_of(value: &Value) -> Json {
    // Via text: a 32-bit float must keep its own shortest digits.
    serde_json::from_str(&value.to_json()).expect("a value is JSON")
}

/// Returns a time as text, or null.
pub fn nanos(time: Option<Timestamp>) -> Json {
    time.map_or(Json::Null, |time| time.nanos.to_string().into())
}

/// Returns a record with its decoded fields.
pub fn record_json(record: &Record<'_>) -> Json {
    record_with(record, &json_of(&record.value().expect("a valid record decodes")))
}

/// Returns a record with `data` as its fields.
pub fn record_with(record: &Record<'_>, data: &Json) -> Json {
    json!({
        "topic": record.topic.name,
        "t_ns": nanos(record.time),
        "offset": record.offset.to_string(),
        "seq": record.seq,
        "data": data,
    })
}

/// Content of a record, independent of its position: topic, time, bytes.
pub type Content = (String, Option<i64>, Vec<u8>);

/// Returns the content of a record.
pub fn content(record: &Record<'_>) -> Content {
    (record.topic.name.clone(), record.time.map(|time| time.nanos), record.payload.to_vec())
}

/// Returns the fact with this key.
pub fn detail<'a>(details: &'a [Detail], key: &str) -> Option<&'a Value> {
    details.iter().find(|detail| detail.key == key).map(|detail| &detail.value)
}

/// Sorts the notes of a picture about the same place by code, as in expected results.
pub fn sort_notes(picture: &mut Json) {
    let key = |note: &Json| {
        let text = |key: &str| note[key].as_str().expect("a text").to_owned();
        (text("offset").parse::<u64>().expect("a number"), text("code"))
    };
    picture["notes"].as_array_mut().expect("notes").sort_by_key(key);
}

/// Checks that `got` contains every key of `want` with the same value.
pub fn assert_alike(what: &str, want: &Json, got: &Json) {
    let wrong = differences(what, want, got);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns the keys of `want` whose values differ in `got`, one text each.
pub fn differences(name: &str, want: &Json, got: &Json) -> Vec<String> {
    let keys = want.as_object().expect("an object").iter().filter(|(key, want)| got[*key] != **want);
    keys.map(|(key, want)| format!("{name} {key}\n  want {want}\n  got  {}", got[key])).collect()
}

/// Maximum nesting depth of fields in the expected results, as JSON readers limit depth.
const LISTED_DEPTH: usize = 32;

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

fn lost(diagnostics: &Diagnostics) -> Json {
    let lost = diagnostics.list().iter().filter(|d| d.rule.severity == Severity::DataLost);
    lost.map(
        |d| json!({"code": d.rule.name, "start": d.range.start.to_string(), "end": d.range.end.to_string()}),
    )
    .collect()
}

fn notes(diagnostics: &Diagnostics) -> Json {
    let notes = diagnostics.list().iter().filter(|d| d.rule.severity != Severity::DataLost);
    notes
        .map(|d| {
            assert!(d.range.start <= d.range.end, "{d:?}: the range ends before it starts");
            json!({"code": d.rule.name, "offset": d.range.start.to_string()})
        })
        .collect()
}
