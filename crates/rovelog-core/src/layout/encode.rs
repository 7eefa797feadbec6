//! Values into the bytes of a record.

use super::scalar::{Number as _, encode_scalar};
use super::types::{Element, Layout, Len};
use super::value::length;
use crate::text::count;
use crate::{Scalar, Value};

/// A value that a field cannot hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {why}")]
pub struct Misfit {
    /// The field: `esc[3].esc_rpm`.
    pub path: String,
    /// What is wrong, in words.
    pub why: String,
}

impl Misfit {
    fn new(why: impl Into<String>) -> Self {
        Self { path: String::new(), why: why.into() }
    }

    /// Returns the same under `outer`: the path grows on the way out.
    fn within(mut self, outer: &str) -> Self {
        let dot = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = format!("{outer}{dot}{}", self.path);
        self
    }
}

impl Layout {
    /// Adds the bytes of a record with these values to `out`; padding is zeros, and none behind the
    /// last field.
    ///
    /// # Errors
    /// Returns an error if a field has no value, or one of another type or length.
    pub fn encode(&self, record: &Value, out: &mut Vec<u8>) -> Result<(), Misfit> {
        let named = |why: &str| Misfit { path: self.schema.name.clone(), why: why.to_owned() };
        let Value::Struct(values) = record else {
            return Err(named("its value is a struct with its fields"));
        };
        for (i, (field, slot)) in self.fields().enumerate() {
            // In the order of the layout they are found at once.
            let value = match values.get(i) {
                Some((known, value)) if *known == field.name => Some(value),
                _ => record.get(&field.name),
            };
            let value = value.ok_or_else(|| Misfit::new("it has no value").within(&field.name))?;
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
            let source = field.source_type.split('[').next().unwrap_or_default();
            encode_field(&slot.element, wanted, value, source, out).map_err(|why| why.within(&field.name))?;
        }
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

/// Returns the elements of a list, or of bytes.
fn elements(element: &Element, value: &Value) -> u64 {
    match value {
        Value::List(values) => values.len() as u64,
        Value::Bytes(bytes) => bytes.len() as u64 / element.size().unwrap_or(1).max(1),
        _ => 0,
    }
}

fn encode_field(
    element: &Element,
    len: Option<u64>,
    value: &Value,
    source: &str,
    out: &mut Vec<u8>,
) -> Result<(), Misfit> {
    if *element == Element::Char {
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
            Err(Misfit::new(format!("{} given for {len}", count(values.len(), "element"))))
        }
        other => Err(misfit(other, "a list")),
    }
}

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
        Element::Char => None,
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

fn encode_pair(scalar: Scalar, value: &Value, out: &mut Vec<u8>) -> Option<()> {
    encode_scalar(scalar, value.get("sec")?, out)?;
    encode_scalar(scalar, value.get("nsec")?, out)
}

fn text_bytes(value: &Value) -> Option<&[u8]> {
    match value {
        Value::Text(text) => Some(text.as_bytes()),
        Value::Bytes(bytes) => Some(bytes),
        _ => None,
    }
}

fn misfit(value: &Value, wanted: &str) -> Misfit {
    let mut json = value.to_json();
    if json.len() > 40 {
        json.truncate((0..=40).rev().find(|at| json.is_char_boundary(*at)).unwrap_or(0));
        json.push_str("...");
    }
    Misfit::new(format!("{json} is no value for {wanted}"))
}
