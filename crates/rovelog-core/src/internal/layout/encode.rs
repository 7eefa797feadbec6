//! Encoding of values to the bytes of a record.
//!
//! Encoding is the inverse of decoding. For example, the layout has the fields `uint16 n`, one byte
//! of padding and `string name`. The value `{"n":5,"name":"ab"}` becomes
//! `05 00 | 00 | 02 00 00 00 61 62`.

use super::scalar::{Number as _, encode_scalar, length};
use super::types::{Element, Layout, Len};
use crate::internal::text::count;
use crate::{Scalar, Value};

/// Error for a value that the type of a field cannot represent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {why}")]
pub struct Misfit {
    /// Path of the field, such as `esc[3].esc_rpm`.
    pub path: String,
    /// Reason why the field cannot represent the value.
    pub why: String,
}

impl Misfit {
    /// Creates an error without a path. The path is added later by [`within`](Self::within).
    fn new(why: impl Into<String>) -> Self {
        Self { path: String::new(), why: why.into() }
    }

    /// Prepends `outer` to the path of the field. Each level of nesting adds its name when it
    /// returns the error.
    fn within(mut self, outer: &str) -> Self {
        let dot = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = format!("{outer}{dot}{}", self.path);
        self
    }
}

impl Layout {
    /// Encodes a record with this value and appends its bytes to `out`. Padding bytes are zero.
    /// There is no padding after the last field.
    ///
    /// # Errors
    /// Returns an error if a field has no value, or if a value has the wrong type or length.
    pub fn encode(&self, record: &Value, out: &mut Vec<u8>) -> Result<(), Misfit> {
        let named = |why: &str| Misfit { path: self.schema.name.clone(), why: why.to_owned() };
        let Value::Struct(values) = record else {
            return Err(named("it must be a struct with its fields"));
        };
        for (i, (field, slot)) in self.fields().enumerate() {
            // Values are usually in the order of the layout, so a value rarely has to be searched
            // by its name.
            let value = match values.get(i) {
                Some((known, value)) if *known == field.name => Some(value),
                _ => record.get(&field.name),
            };
            let value = value.ok_or_else(|| Misfit::new("the value is missing").within(&field.name))?;
            let wanted = match slot.len {
                Len::One => None,
                Len::Fixed(len) => Some(u64::from(len)),
                Len::Counted => Some(elements(&slot.element, value)),
                Len::Field(other) => record.get(&self.schema.fields[other].name).map(length).or(Some(0)),
            };
            out.resize(out.len() + slot.padding, 0);
            if slot.len == Len::Counted {
                let len = u32::try_from(elements(&slot.element, value));
                let len = len.map_err(|_| Misfit::new("it has 4294967296 elements or more"))?;
                len.to_wire(out);
            }
            // The source type of an array includes its length, as in `float[4]`. The source type of
            // an element is then `float`.
            let source = field.source_type.split('[').next().unwrap_or_default();
            encode_field(&slot.element, wanted, value, source, out).map_err(|why| why.within(&field.name))?;
        }
        // All fields of the layout were found. If there are more values, one is unknown or a
        // duplicate.
        if values.len() > self.slots.len() {
            let is_known = |name: &str| self.schema.fields.iter().any(|field| *field.name == *name);
            let unknown = values.iter().find(|(name, _)| !is_known(name));
            let path = unknown.map_or_else(|| self.schema.name.clone(), |(name, _)| name.to_string());
            let why = format!("{} has no such field, or the field is given twice", self.schema.name);
            return Err(Misfit { path, why });
        }
        Ok(())
    }
}

/// Returns the number of elements in a list value or a bytes value.
fn elements(element: &Element, value: &Value) -> u64 {
    match value {
        Value::List(values) => values.len() as u64,
        Value::Bytes(bytes) => bytes.len() as u64 / element.size().unwrap_or(1).max(1),
        _ => 0,
    }
}

/// Appends the bytes of a field. `len` is the number of elements, or `None` if the field is a
/// single element.
fn encode_field(
    element: &Element,
    len: Option<u64>,
    value: &Value,
    source: &str,
    out: &mut Vec<u8>,
) -> Result<(), Misfit> {
    if let Element::Char(_) = element {
        return encode_chars(len.unwrap_or(1), value, out);
    }
    let Some(len) = len else { return encode_one(element, value, source, out) };
    let is_bytes = matches!(element, Element::Byte | Element::Packed(_) | Element::Scalar(Scalar::UInt8));
    let size = element.size().unwrap_or(0).saturating_mul(len);
    match value {
        Value::List(values) if values.len() as u64 == len => {
            for (i, value) in values.iter().enumerate() {
                encode_one(element, value, source, out).map_err(|why| why.within(&format!("[{i}]")))?;
            }
            Ok(())
        }
        Value::Bytes(bytes) if is_bytes && bytes.len() as u64 == size => {
            out.extend_from_slice(bytes);
            Ok(())
        }
        Value::List(values) => {
            Err(Misfit::new(format!("it has {}, but {len} are needed", count(values.len(), "element"))))
        }
        other => Err(misfit(other, "a list")),
    }
}

/// Appends the bytes of a text in a field of fixed size. The rest of the field is filled with NUL.
fn encode_chars(len: u64, value: &Value, out: &mut Vec<u8>) -> Result<(), Misfit> {
    let Some(bytes) = text_bytes(value) else { return Err(misfit(value, "text")) };
    let space = usize::try_from(len).ok().and_then(|len| len.checked_sub(bytes.len()));
    let Some(space) = space else {
        let bytes = count(bytes.len(), "byte");
        return Err(Misfit::new(format!("char[{len}] is too short for {bytes} of text")));
    };
    out.extend_from_slice(bytes);
    out.resize(out.len() + space, 0);
    Ok(())
}

/// Appends the bytes of a single element.
fn encode_one(element: &Element, value: &Value, source: &str, out: &mut Vec<u8>) -> Result<(), Misfit> {
    let done = match element {
        Element::Scalar(scalar) => encode_scalar(*scalar, value, out),
        Element::Byte => encode_scalar(Scalar::UInt8, value, out),
        Element::WideBool => match value {
            Value::Bool(value) => encode_scalar(Scalar::UInt32, &Value::UInt((*value).into(), 32), out),
            _ => None,
        },
        Element::Packed(size) => match value {
            Value::Bytes(bytes) if bytes.len() as u64 == u64::from(*size) => {
                out.extend_from_slice(bytes);
                Some(())
            }
            _ => None,
        },
        Element::Char(_) => None,
        Element::Optional(scalar) => {
            out.push(u8::from(value != &Value::Null));
            if value == &Value::Null {
                out.resize(out.len() + scalar.size(), 0);
                return Ok(());
            }
            encode_scalar(*scalar, value, out)
        }
        Element::Time => encode_pair(Scalar::UInt32, value, out),
        Element::Duration => encode_pair(Scalar::Int32, value, out),
        Element::Text(_) => text_bytes(value).and_then(|bytes| {
            u32::try_from(bytes.len()).ok()?.to_wire(out);
            out.extend_from_slice(bytes);
            Some(())
        }),
        Element::Struct(layout) => {
            layout.encode(value, out)?;
            out.resize(out.len() + usize::try_from(layout.tail).unwrap_or(0), 0);
            Some(())
        }
    };
    done.ok_or_else(|| misfit(value, source))
}

/// Appends the bytes of a time or duration: seconds and nanoseconds.
fn encode_pair(scalar: Scalar, value: &Value, out: &mut Vec<u8>) -> Option<()> {
    encode_scalar(scalar, value.get("sec")?, out)?;
    encode_scalar(scalar, value.get("nsec")?, out)
}

/// Returns the bytes of a text. A bytes value is accepted, too, because a text may not be UTF-8.
fn text_bytes(value: &Value) -> Option<&[u8]> {
    match value {
        Value::Text(text) => Some(text.as_bytes()),
        Value::Bytes(bytes) => Some(bytes),
        _ => None,
    }
}

/// Creates an error for a value of the wrong type. A long value is truncated in the message.
fn misfit(value: &Value, wanted: &str) -> Misfit {
    let mut json = value.to_json();
    if json.len() > 40 {
        json.truncate((0..=40).rev().find(|at| json.is_char_boundary(*at)).unwrap_or(0));
        json.push_str("...");
    }
    Misfit::new(format!("{json} is not a valid value for {wanted}"))
}

#[cfg(test)]
mod tests {
    use super::super::TextDecoder;
    use super::super::samples::{named, point, type_of};
    use super::*;

    /// Returns the error message for a field that cannot represent a value.
    fn error(element: Element, len: Len, value: Value) -> String {
        let layout = type_of(&[("field", element, len)]);
        layout.encode(&Value::record([("field", value)]), &mut Vec::new()).unwrap_err().to_string()
    }

    fn bytes(layout: &Layout, value: &Value) -> Vec<u8> {
        // Encoding must not change bytes that are already in the output.
        let mut out = vec![99];
        layout.encode(value, &mut out).unwrap();
        assert_eq!(out.remove(0), 99);
        out
    }

    fn text(text: &str) -> Value {
        Value::Text(text.to_owned())
    }

    #[test]
    fn padding_is_zero_and_omitted_after_the_last_field() {
        let point_of = |a| Value::record([("a", Value::UInt(a, 16)), ("b", Value::Bool(true))]);
        assert_eq!(bytes(&point(), &point_of(0x201)), [1, 2, 0, 1]);
        let points = type_of(&[("points", Element::Struct(point()), Len::Fixed(2))]);
        let value = Value::record([("points", Value::List(vec![point_of(3), point_of(4)]))]);
        assert_eq!(bytes(&points, &value), [3, 0, 0, 1, 0, 0, 4, 0, 0, 1, 0, 0]);
        let value = Value::record([("name", text("ab")), ("n", Value::UInt(7, 8))]);
        assert_eq!(bytes(&named(), &value), [2, 0, 0, 0, b'a', b'b', 0, 7]);
    }

    #[test]
    fn values_are_found_in_any_order() {
        let layout = type_of(&[("a", Element::Byte, Len::One), ("b", Element::Byte, Len::One)]);
        let value = Value::record([("b", Value::UInt(2, 8)), ("a", Value::UInt(1, 8))]);
        assert_eq!(bytes(&layout, &value), [1, 2]);
    }

    #[test]
    fn lists_and_texts_start_with_their_lengths() {
        let layout = type_of(&[
            ("chunks", Element::Packed(2), Len::Counted),
            ("list", Element::Scalar(Scalar::Int16), Len::Counted),
            ("label", Element::Char(TextDecoder::UTF8), Len::Fixed(3)),
            ("wide", Element::WideBool, Len::One),
        ]);
        let value = Value::record([
            ("chunks", Value::Bytes(vec![1, 2, 3, 4, 5, 6])),
            ("list", Value::List(vec![Value::Int(-2, 16)])),
            ("label", Value::Bytes(b"ab".to_vec())),
            ("wide", Value::Bool(true)),
        ]);
        let expected = [&[3, 0, 0, 0, 1, 2, 3, 4, 5, 6][..], &[1, 0, 0, 0, 254, 255], b"ab\0", &[1, 0, 0, 0]];
        assert_eq!(bytes(&layout, &value), expected.concat());
    }

    #[test]
    fn a_value_that_does_not_fit_is_rejected() {
        let short = Element::Scalar(Scalar::Int16);
        let list = |len| Value::List(vec![Value::Int(1, 16); len]);
        assert_eq!(
            error(short.clone(), Len::Fixed(2), list(3)),
            "field: it has 3 elements, but 2 are needed"
        );
        assert_eq!(error(short.clone(), Len::Fixed(2), list(1)), "field: it has 1 element, but 2 are needed");
        let bytes = |len| Value::Bytes(vec![0; len]);
        // A bytes value must be accepted only for a field of bytes or text.
        assert_eq!(
            error(short.clone(), Len::Fixed(2), bytes(4)),
            r#"field: "AAAAAA==" is not a valid value for a list"#
        );
        assert_eq!(
            error(Element::Byte, Len::Fixed(2), bytes(3)),
            r#"field: "AAAA" is not a valid value for a list"#
        );
        assert_eq!(
            error(Element::Packed(2), Len::One, bytes(3)),
            r#"field: "AAAA" is not a valid value for type"#
        );
        assert_eq!(
            error(Element::Packed(2), Len::One, Value::Null),
            "field: null is not a valid value for type"
        );
        assert_eq!(
            error(Element::WideBool, Len::One, Value::UInt(1, 8)),
            "field: 1 is not a valid value for type"
        );
        assert_eq!(
            error(Element::Char(TextDecoder::UTF8), Len::Fixed(2), text("abc")),
            "field: char[2] is too short for 3 bytes of text"
        );
        assert_eq!(
            error(Element::Char(TextDecoder::UTF8), Len::Fixed(2), Value::Null),
            "field: null is not a valid value for text"
        );
        assert_eq!(error(Element::Time, Len::One, Value::Null), "field: null is not a valid value for type");
        let half = Value::record([("sec", Value::UInt(1, 32))]);
        assert_eq!(
            error(Element::Duration, Len::One, half),
            r#"field: {"sec":1} is not a valid value for type"#
        );
        assert_eq!(
            error(short, Len::One, Value::Int(40_000, 32)),
            "field: 40000 is not a valid value for type"
        );
    }

    #[test]
    fn an_error_has_the_path_of_the_nested_field() {
        let point_of = |b| Value::record([("a", Value::UInt(1, 16)), ("b", b)]);
        let points = Value::List(vec![point_of(Value::Bool(true)), point_of(Value::Null)]);
        let element = Element::Struct(point());
        assert_eq!(
            error(element.clone(), Len::Fixed(2), points),
            "field[1].b: null is not a valid value for type"
        );
        assert_eq!(
            error(element.clone(), Len::One, point_of(Value::Null)),
            "field.b: null is not a valid value for type"
        );
        let half = Value::record([("a", Value::UInt(1, 16))]);
        assert_eq!(error(element, Len::One, half), "field.b: the value is missing");
        let layout = point();
        let error = |value: Value| layout.encode(&value, &mut Vec::new()).unwrap_err().to_string();
        assert_eq!(error(Value::Null), "point: it must be a struct with its fields");
        let with =
            |name| Value::record([("a", Value::UInt(1, 16)), ("b", Value::Bool(true)), (name, Value::Null)]);
        let unknown = "point has no such field, or the field is given twice";
        assert_eq!(error(with("c")), format!("c: {unknown}"));
        assert_eq!(error(with("b")), format!("point: {unknown}"));
    }

    #[test]
    fn a_long_value_is_cut_in_an_error() {
        let message = |value: String| error(Element::Byte, Len::One, Value::Text(value));
        let x = |n: usize| "x".repeat(n);
        assert_eq!(message(x(38)), format!(r#"field: "{}" is not a valid value for type"#, x(38)));
        assert_eq!(message(x(39)), format!(r#"field: "{}... is not a valid value for type"#, x(39)));
        // The message must not truncate the text inside a character.
        assert_eq!(message(x(38) + "ü"), format!(r#"field: "{}... is not a valid value for type"#, x(38)));
    }
}
