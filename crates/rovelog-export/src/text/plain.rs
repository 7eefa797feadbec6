//! Formats values as text for people.

use std::fmt::Write as _;

use rovelog::Value;
use rovelog::core::internal::text::{count, escape};

/// Writes `name=value` after the text `before`. If `state` is given, it is the name of the value
/// and is written instead of the value.
pub(super) fn entry(before: &str, name: &str, value: &Value, state: Option<&str>, line: &mut String) {
    line.push_str(before);
    line.push_str(&escape(name));
    line.push('=');
    match state {
        Some(state) if state.contains(' ') => {
            let _ = write!(line, "\"{state}\"");
        }
        Some(state) => line.push_str(state),
        None => plain(value, line),
    }
}

/// Writes a value as text for people. Texts are quoted.
pub fn plain(value: &Value, line: &mut String) {
    match value {
        Value::Text(text) => {
            let _ = write!(line, "\"{}\"", escape(text).replace('"', "\\\""));
        }
        Value::List(items) => {
            for (i, item) in items.iter().enumerate() {
                line.push_str(if i == 0 { "[" } else { ", " });
                plain(item, line);
            }
            line.push_str(if items.is_empty() { "[]" } else { "]" });
        }
        Value::Struct(fields) => {
            for (i, (name, value)) in fields.iter().enumerate() {
                entry(if i == 0 { "{" } else { " " }, name, value, None, line);
            }
            line.push_str(if fields.is_empty() { "{}" } else { "}" });
        }
        Value::Null => line.push_str("null"),
        leaf => {
            cell(leaf, line);
        }
    }
}

/// Writes a leaf without quotes, as in CSV. Returns false if the leaf cannot be represented as
/// text.
pub fn cell(value: &Value, line: &mut String) -> bool {
    let _ = match value {
        Value::Null => Ok(()),
        Value::Bool(v) => write!(line, "{v}"),
        Value::Int(v, _) => write!(line, "{v}"),
        Value::UInt(v, _) => write!(line, "{v}"),
        Value::F32(v) if v.is_finite() => float(v, line),
        Value::F64(v) if v.is_finite() => float(v, line),
        Value::F32(v) => write!(line, "{v}"),
        Value::F64(v) => write!(line, "{v}"),
        Value::Text(v) => write!(line, "{v}"),
        Value::Bytes(v) => {
            let _ = write!(line, "<{}>", count(v.len(), "byte"));
            return false;
        }
        _ => return false,
    };
    true
}

/// Writes a finite float with the fewest digits that convert back to the same value. The JSON
/// library formats floats several times as fast as the standard library.
fn float(value: &impl serde::Serialize, line: &mut String) -> std::fmt::Result {
    let mut digits = [0; 32];
    let mut unused = digits.as_mut_slice();
    serde_json::to_writer(&mut unused, value).map_err(|_| std::fmt::Error)?;
    let len = 32 - unused.len();
    line.push_str(std::str::from_utf8(&digits[..len]).map_err(|_| std::fmt::Error)?);
    Ok(())
}
