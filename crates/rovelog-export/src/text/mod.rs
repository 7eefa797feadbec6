//! Records as text for people, and cells of CSV: `time=1 q=[1.0, 0.0] nav_state=Return`.
//!
//! A record has leaves: its numbers and texts, by flat names (`pos.x`, `q[0]`); a [`Keep`] says which
//! of them are shown.

mod keep;
mod leaves;
mod plain;
mod row;

use std::io;
use std::sync::Arc;

use rovelog::{Field, Schema, Value};

pub use keep::Keep;
pub use leaves::{columns, count, names};
use leaves::{flatten, flatten_under};
use plain::entry;
pub use plain::{cell, plain};
pub use row::row;

/// Returns the name of a field's value, if it has one.
fn state(field: &Field, value: &Value) -> Option<&'static str> {
    field.names?;
    match value {
        Value::Int(value, _) => field.name_of(*value),
        Value::UInt(value, _) => field.name_of(i64::try_from(*value).ok()?),
        _ => None,
    }
}

/// Writes `time=1 q=[1.0, 0.0] nav_state=Return pos={x=1.0}`, or single leaves by their flat names if
/// only some are selected.
pub fn fields(value: &Value, schema: Option<&Schema>, keep: &Keep, line: &mut String) {
    let start = line.len();
    if *keep == Keep::All {
        let Value::Struct(fields) = value else { return plain(value, line) };
        for (number, (name, value)) in fields.iter().enumerate() {
            let field = schema.and_then(|schema| schema.fields.get(number));
            let before = if line.len() > start { " " } else { "" };
            entry(before, name, value, field.and_then(|field| state(field, value)), line);
        }
        return;
    }
    let mut place = 0;
    flatten(value, schema, &mut |name, value| {
        if keep.leaf(place) {
            let field = schema.and_then(|schema| schema.fields.iter().find(|field| *field.name == *name));
            let before = if line.len() > start { " " } else { "" };
            entry(before, name, value, field.and_then(|field| state(field, value)), line);
        }
        place += 1;
    });
}

/// Writes the selected fields as JSON: whole fields unchanged, single leaves of others by their flat
/// names.
///
/// # Errors
/// Returns an error if JSON cannot express a value.
pub fn some_fields(
    fields: &[(Arc<str>, Value)],
    schema: Option<&Schema>,
    keep: &Keep,
    line: &mut Vec<u8>,
) -> io::Result<()> {
    let mut place = 0;
    let mut separator = b'{';
    let mut entry = |name: &str, value: &Value| -> io::Result<()> {
        line.push(separator);
        separator = b',';
        serde_json::to_writer(&mut *line, name)?;
        line.push(b':');
        Ok(serde_json::to_writer(&mut *line, value)?)
    };
    for (number, (name, value)) in fields.iter().enumerate() {
        let ty = schema.and_then(|schema| schema.fields.get(number)).map(|field| &field.ty);
        let mut leaves = Vec::new();
        flatten_under(&mut name.to_string(), value, ty, &mut |name, value| {
            leaves.push((name.to_owned(), value.clone()));
        });
        let inside = place..place + leaves.len();
        place = inside.end;
        if !inside.is_empty() && inside.clone().all(|place| keep.leaf(place)) {
            entry(name, value)?;
            continue;
        }
        for (place, (name, value)) in inside.zip(&leaves) {
            if keep.leaf(place) {
                entry(name, value)?;
            }
        }
    }
    line.extend_from_slice(if separator == b'{' { b"{}" } else { b"}" });
    Ok(())
}
