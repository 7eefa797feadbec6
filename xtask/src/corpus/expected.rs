//! The truth beside each file: what a right reader must say about it.
//!
//! The model is described for its readers in `corpus/README.md`. Integers of 64 bits, times and
//! offsets are texts, because many JSON readers would round them.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

/// Everything expected of a log that opens.
#[derive(Debug, Serialize)]
pub(crate) struct Expected<Own> {
    pub(crate) format: FormatId,
    pub(crate) open: &'static str,
    pub(crate) state: &'static str,
    pub(crate) clock: &'static str,
    pub(crate) utc: Option<Utc>,
    pub(crate) start_ns: String,
    pub(crate) end_ns: String,
    /// Where the data starts and ends, in cases with times that lie far outside of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) data_ns: Option<[String; 2]>,
    pub(crate) topics: Vec<Topic>,
    pub(crate) records: Vec<Record>,
    pub(crate) texts: Vec<Text>,
    /// What only this format has, under its own keys.
    #[serde(flatten)]
    pub(crate) own: Own,
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
pub(crate) fn refused(format: &str, version: &str, kind: &str, contains: &str) -> Value {
    json!({
        "format": {"id": format, "version": version},
        "open": "refused",
        "error": {"kind": kind, "contains": contains},
    })
}

/// A field of a topic that holds no others.
pub(crate) fn field(name: &str, ty: &str) -> Value {
    json!({"name": name, "type": ty})
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
