//! Owned values: any field of any record, without knowing its type beforehand.

use std::fmt::Write as _;
use std::sync::Arc;

use base64::Engine as _;
use serde_core::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

/// The value of a field, or of a whole record (a [`Struct`](Self::Struct)).
///
/// Its JSON form loses nothing: integers of 64 bits become strings, `NaN` and the infinities the
/// strings `"NaN"`, `"inf"` and `"-inf"`, bytes base64.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// Nothing: the log has no value here.
    Null,
    /// A truth value.
    Bool(bool),
    /// A signed integer and its width in bits.
    Int(i64, u8),
    /// An unsigned integer and its width in bits.
    UInt(u64, u8),
    /// A number of 32 bits, kept apart so that its shortest digits can be written.
    F32(f32),
    /// A number of 64 bits.
    F64(f64),
    /// Text.
    Text(String),
    /// Bytes without a text form.
    Bytes(Vec<u8>),
    /// The elements of an array.
    List(Vec<Value>),
    /// Named values in the order of the schema.
    Struct(Vec<(Arc<str>, Value)>),
}

impl Value {
    /// Returns the value under `name` in a struct.
    pub fn get(&self, name: &str) -> Option<&Value> {
        match self {
            Self::Struct(fields) => fields.iter().find(|(field, _)| &**field == name).map(|(_, value)| value),
            _ => None,
        }
    }

    /// Returns a struct from pairs.
    pub fn record<N: Into<Arc<str>>>(fields: impl IntoIterator<Item = (N, Value)>) -> Self {
        Self::Struct(fields.into_iter().map(|(name, value)| (name.into(), value)).collect())
    }

    /// Returns a list of structs that all have these names, from the values of each: a list may be as
    /// long as a log, so they share the names.
    pub fn table<const N: usize>(names: [&str; N], rows: impl IntoIterator<Item = [Value; N]>) -> Self {
        let names = names.map(Arc::<str>::from);
        Self::List(rows.into_iter().map(|row| Self::record(names.iter().cloned().zip(row))).collect())
    }

    /// Returns a count or an offset: 64 bits whatever its size, so that its JSON type does not
    /// change with the log.
    pub const fn count(n: u64) -> Self {
        Self::UInt(n, 64)
    }

    /// Returns a number as `f64`, rounded as by a cast; `None` for any other value.
    pub fn as_f64(&self) -> Option<f64> {
        match *self {
            Self::Int(v, _) => Some(v as f64),
            Self::UInt(v, _) => Some(v as f64),
            Self::F32(v) => Some(f64::from(v)),
            Self::F64(v) => Some(v),
            _ => None,
        }
    }

    /// Returns the text of a text value.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns one line of compact JSON.
    #[expect(clippy::missing_panics_doc, reason = "map keys are strings, so a value is always JSON")]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("map keys are strings")
    }

    /// Calls `visit` with the flat name and value of every leaf: `pos.x`, `q[0]`, `esc[3].esc_rpm`.
    pub fn flatten(&self, visit: &mut dyn FnMut(&str, &Value)) {
        self.flatten_under(&mut String::new(), visit);
    }

    fn flatten_under(&self, path: &mut String, visit: &mut dyn FnMut(&str, &Value)) {
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

/// Returns a float as JSON: a number, or the string `"NaN"`, `"inf"`, `"-inf"`.
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
    fn json_loses_nothing() {
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
    fn flat_names_are_those_of_pyulog() {
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
