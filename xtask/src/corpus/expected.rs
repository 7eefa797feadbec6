//! The truth beside each file: what a right reader must say about it.
//!
//! The model is described for its readers in `corpus/README.md`. Integers of 64 bits, times and
//! offsets are texts, because many JSON readers would round them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

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
