//! The truth beside each file: what a right reader must say about it.
//!
//! The model is described for its readers in `corpus/README.md`. Integers of 64 bits, times and
//! offsets are texts, because many JSON readers would round them.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

/// Everything expected of a log that opens.
#[derive(Debug, Serialize)]
pub(crate) struct Expected {
    pub(crate) format: FormatId,
    pub(crate) open: &'static str,
    pub(crate) state: &'static str,
    pub(crate) clock: &'static str,
    pub(crate) utc: Option<Utc>,
    pub(crate) start_ns: String,
    pub(crate) end_ns: String,
    pub(crate) topics: Vec<Topic>,
    pub(crate) records: Vec<Record>,
    pub(crate) texts: Vec<Text>,
    pub(crate) ulog: Ulog,
    pub(crate) lost: Vec<Lost>,
    pub(crate) notes: Vec<Note>,
}

/// Which format, and which version of it the header claims.
#[derive(Debug, Serialize)]
pub(crate) struct FormatId {
    pub(crate) id: &'static str,
    pub(crate) version: String,
}

/// How log time becomes UTC: by which rule, and what to add.
#[derive(Debug, Serialize)]
pub(crate) struct Utc {
    pub(crate) rule: &'static str,
    pub(crate) offset_ns: String,
}

/// One named stream; `fields` is missing when its rows cannot be decoded.
#[derive(Debug, Serialize)]
pub(crate) struct Topic {
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) type_name: String,
    pub(crate) count: String,
    pub(crate) fields: Option<Value>,
}

/// One row, at its place in the file.
#[derive(Debug, Serialize)]
pub(crate) struct Record {
    pub(crate) topic: String,
    pub(crate) t_ns: Option<String>,
    pub(crate) offset: String,
    pub(crate) seq: usize,
    pub(crate) data: Value,
}

/// One logged text, tagged or not.
#[derive(Debug, Serialize)]
pub(crate) struct Text {
    pub(crate) t_ns: String,
    pub(crate) level: &'static str,
    pub(crate) tag: Option<u16>,
    #[serde(rename = "text")]
    pub(crate) words: String,
}

/// What only a `ULog` has.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Ulog {
    pub(crate) info: BTreeMap<String, Value>,
    pub(crate) info_multi: BTreeMap<String, Vec<Vec<Value>>>,
    pub(crate) parameters: Parameters,
    pub(crate) dropouts: Vec<Dropout>,
    pub(crate) messages: BTreeMap<String, u64>,
    pub(crate) appended_offsets: Vec<String>,
}

/// Parameters: values at the start, changes, and both tables of defaults.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Parameters {
    pub(crate) initial: BTreeMap<String, Value>,
    pub(crate) changed: Vec<Changed>,
    pub(crate) default_system: BTreeMap<String, Value>,
    pub(crate) default_setup: BTreeMap<String, Value>,
}

/// A parameter that changed while the log ran.
#[derive(Debug, Serialize)]
pub(crate) struct Changed {
    pub(crate) t_ns: String,
    pub(crate) name: String,
    pub(crate) value: Value,
}

/// A time in which nothing was logged.
#[derive(Debug, Serialize)]
pub(crate) struct Dropout {
    pub(crate) t_ns: String,
    pub(crate) ms: u16,
}

/// Bytes that are not data, and why.
#[derive(Debug, Serialize)]
pub(crate) struct Lost {
    pub(crate) code: &'static str,
    pub(crate) start: String,
    pub(crate) end: String,
}

/// Something worth knowing, with nothing lost.
#[derive(Debug, Serialize)]
pub(crate) struct Note {
    pub(crate) code: &'static str,
    pub(crate) offset: String,
}

/// Expected of a file that must not be read: the kind of the error, and words its message has.
pub(crate) fn refused(version: &str, kind: &str, contains: &str) -> Value {
    json!({
        "format": {"id": "ulog", "version": version},
        "open": "refused",
        "error": {"kind": kind, "contains": contains},
    })
}

/// Nanoseconds of microseconds, as written in the truth.
pub(crate) fn ns(us: u64) -> String {
    (u128::from(us) * 1000).to_string()
}

/// The text of the JSON file: sorted keys, two spaces, a newline at the end.
pub(crate) fn to_text(value: &Value) -> String {
    let mut text = serde_json::to_string_pretty(&sorted(value)).expect("JSON values print");
    text.push('\n');
    text
}

/// The same value with sorted keys, whatever order `serde_json` was built to keep.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let map: BTreeMap<_, _> = map.iter().collect();
            let entries = map.into_iter().map(|(key, v)| (key.clone(), sorted(v)));
            Value::Object(entries.collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        other => other.clone(),
    }
}
