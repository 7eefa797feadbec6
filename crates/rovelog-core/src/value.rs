//! Owned values that can hold any field of any record.

use std::fmt::Write as _;
use std::sync::Arc;

use base64::Engine as _;
use serde_core::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

/// The value of a field. The value of a whole record is a [`Struct`](Self::Struct).
///
/// Every value is represented exactly in JSON. Many programs read JSON numbers as doubles, so
/// 64-bit integers become strings. JSON has no NaN and no infinities, so they become the strings
/// `"NaN"`, `"inf"` and `"-inf"`. Bytes become base64 strings.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// No value, because the record has no value for this field.
    Null,
    /// A Boolean.
    Bool(bool),
    /// A signed integer, and the width of the field's type in bits.
    Int(i64, u8),
    /// An unsigned integer, and the width of the field's type in bits.
    UInt(u64, u8),
    /// A single-precision float. If it were stored as `f64`, 0.1 would be printed as
    /// 0.10000000149011612.
    F32(f32),
    /// A double-precision float.
    F64(f64),
    /// A text.
    Text(String),
    /// Bytes without further structure.
    Bytes(Vec<u8>),
    /// The elements of an array or list.
    List(Vec<Value>),
    /// The fields of a struct with their names, in the order of the schema.
    Struct(Vec<(Arc<str>, Value)>),
}

impl Value {
    /// Returns the field with this name. Returns `None` if the value is not a struct or has no such
    /// field.
    pub fn get(&self, name: &str) -> Option<&Value> {
        match self {
            Self::Struct(fields) => fields.iter().find(|(field, _)| &**field == name).map(|(_, value)| value),
            _ => None,
        }
    }

    /// Creates a struct from pairs of a field name and a value.
    pub fn record<N: Into<Arc<str>>>(fields: impl IntoIterator<Item = (N, Value)>) -> Self {
        Self::Struct(fields.into_iter().map(|(name, value)| (name.into(), value)).collect())
    }

    /// Creates a list of structs. The fields of each struct have the names `names`.
    ///
    /// The structs share the memory of the names, because the list may have as many rows as the log
    /// has records.
    pub fn table<const N: usize>(names: [&str; N], rows: impl IntoIterator<Item = [Value; N]>) -> Self {
        let names = names.map(Arc::<str>::from);
        Self::List(rows.into_iter().map(|row| Self::record(names.iter().cloned().zip(row))).collect())
    }

    /// Creates an integer for a count or an offset.
    ///
    /// The integer always has 64 bits, so that its JSON type is the same for small and for large
    /// logs.
    pub const fn count(n: u64) -> Self {
        Self::UInt(n, 64)
    }

    /// Returns a number as `f64`, rounded as by an `as` cast. Returns `None` if the value is not a
    /// number.
    pub fn as_f64(&self) -> Option<f64> {
        match *self {
            Self::Int(v, _) => Some(v as f64),
            Self::UInt(v, _) => Some(v as f64),
            Self::F32(v) => Some(f64::from(v)),
            Self::F64(v) => Some(v),
            _ => None,
        }
    }

    /// Returns the text, or `None` if the value is not a text.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the value as compact JSON on one line.
    #[expect(clippy::missing_panics_doc, reason = "map keys are strings, so a value is always JSON")]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("map keys are strings")
    }

    /// Calls `visit` with the flat name and the value of each leaf. A leaf is a value that is
    /// neither a struct nor a list. Examples of flat names are `pos.x`, `q[0]` and
    /// `esc[3].esc_rpm`.
    pub fn flatten(&self, visit: &mut dyn FnMut(&str, &Value)) {
        self.flatten_under(&mut String::new(), visit);
    }

    /// Implements [`flatten`](Self::flatten). `path` is the flat name of the value.
    fn flatten_under(&self, path: &mut String, visit: &mut dyn FnMut(&str, &Value)) {
        // The names of all leaves are built in the same buffer.
        let len = path.len();
        match self {
            Self::Struct(fields) => {
                for (name, value) in fields {
                    if len > 0 {
                        path.push('.');
                    }
                    path.push_str(name);
                    value.flatten_under(path, visit);
                    path.truncate(len);
                }
            }
            Self::List(items) => {
                for (i, value) in items.iter().enumerate() {
                    let _ = write!(path, "[{i}]");
                    value.flatten_under(path, visit);
                    path.truncate(len);
                }
            }
            leaf => visit(path, leaf),
        }
    }
}

/// Serializes a float. `finite` serializes it as a number if it is finite. Otherwise, it becomes
/// the string `"NaN"`, `"inf"` or `"-inf"`.
fn float<S: Serializer>(
    value: f64,
    finite: impl FnOnce(S) -> Result<S::Ok, S::Error>,
    out: S,
) -> Result<S::Ok, S::Error> {
    if value.is_nan() {
        out.serialize_str("NaN")
    } else if value.is_infinite() {
        out.serialize_str(if value > 0.0 { "inf" } else { "-inf" })
    } else {
        finite(out)
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => out.serialize_unit(),
            Self::Bool(v) => out.serialize_bool(*v),
            // The JSON type depends on the width of the field's type and not on the value, so that
            // a field has the same JSON type in all records.
            Self::Int(v, 64) => out.collect_str(v),
            Self::UInt(v, 64) => out.collect_str(v),
            Self::Int(v, _) => out.serialize_i64(*v),
            Self::UInt(v, _) => out.serialize_u64(*v),
            Self::F32(v) => float(f64::from(*v), |out| out.serialize_f32(*v), out),
            Self::F64(v) => float(*v, |out| out.serialize_f64(*v), out),
            Self::Text(v) => out.serialize_str(v),
            Self::Bytes(v) => out.serialize_str(&base64::engine::general_purpose::STANDARD.encode(v)),
            Self::List(items) => {
                let mut seq = out.serialize_seq(Some(items.len()))?;
                for item in items {
                    seq.serialize_element(item)?;
                }
                seq.end()
            }
            Self::Struct(fields) => {
                let mut map = out.serialize_map(Some(fields.len()))?;
                for (name, value) in fields {
                    map.serialize_entry(&**name, value)?;
                }
                map.end()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_represents_every_value_exactly() {
        let value = Value::record([
            ("big", Value::UInt(u64::MAX, 64)),
            ("small", Value::Int(-7, 8)),
            ("x", Value::F32(0.1)),
            ("y", Value::F64(f64::NEG_INFINITY)),
            ("z", Value::F32(f32::NAN)),
            ("raw", Value::Bytes(vec![0, 255])),
            ("q", Value::List(vec![Value::Null, Value::Bool(true)])),
        ]);
        assert_eq!(
            value.to_json(),
            r#"{"big":"18446744073709551615","small":-7,"x":0.1,"y":"-inf","z":"NaN","raw":"AP8=","q":[null,true]}"#
        );
    }

    #[test]
    fn flat_names_equal_those_of_pyulog() {
        let esc = Value::record([("rpm", Value::Int(3, 32))]);
        let value = Value::record([
            ("esc", Value::List(vec![esc])),
            ("q", Value::List(vec![Value::F32(1.0), Value::F32(2.0)])),
        ]);
        let mut names = Vec::new();
        value.flatten(&mut |name, _| names.push(name.to_owned()));
        assert_eq!(names, ["esc[0].rpm", "q[0]", "q[1]"]);
    }
}
