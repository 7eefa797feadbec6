//! Formats records as text such as `time=1 q=[1.0, 0.0] nav_state=Return`, and as cells of CSV.
//!
//! The leaves of a record are its numbers and texts. Each leaf has a flat name, such as `pos.x` or
//! `q[0]`. [`Keep`] selects the leaves that are shown.

mod cells;
mod keep;
mod leaves;
mod plain;

use rovelog::{Field, Value};

pub use cells::CsvRows;
pub use keep::Keep;
pub use leaves::{Selected, columns, names};
use plain::entry;
pub use plain::{cell, plain};

/// Returns the name of a value, if the value has one. For example, the value 5 of `nav_state` has
/// the name `Return`.
fn state(field: &Field, value: &Value) -> Option<&'static str> {
    field.names?;
    match value {
        Value::Int(value, _) => field.name_of(*value),
        Value::UInt(value, _) => field.name_of(i64::try_from(*value).ok()?),
        _ => None,
    }
}

/// Writes the fields of a record as text, such as `time=1 q=[1.0, 0.0] nav_state=Return
/// pos={x=1.0}`. If not all leaves are selected, each selected leaf is written with its flat name.
pub fn fields(record: &Selected<'_>, line: &mut String) {
    let start = line.len();
    record.entries(false, &mut |name, value, field| {
        let before = if line.len() > start { " " } else { "" };
        entry(before, name, value, field.and_then(|field| state(field, value)), line);
    });
}

/// Writes the selected leaves as a JSON object. If all leaves of a field are selected, the field is
/// written as a whole. Otherwise, each selected leaf is written with its flat name.
pub fn json(record: &Selected<'_>, line: &mut Vec<u8>) {
    let mut separator = b'{';
    record.entries(true, &mut |name, value, _| {
        line.push(separator);
        separator = b',';
        line.extend_from_slice(serde_json::Value::from(name).to_string().as_bytes());
        line.push(b':');
        line.extend_from_slice(value.to_json().as_bytes());
    });
    line.extend_from_slice(if separator == b'{' { b"{}" } else { b"}" });
}
