//! Records as values.

use std::sync::{Arc, LazyLock};

use super::scalar::{Number as _, scalar_value, with_scalar};
use super::types::{Element, Layout, Len};
use crate::text::up_to_nul;
use crate::wire::U32Le;
use crate::{Scalar, Value};

/// Values that a record may have without any byte for them: fields of types without fields.
pub const MAX_VALUES: u64 = 1 << 20;

/// The names in a time.
static SEC: LazyLock<Arc<str>> = LazyLock::new(|| "sec".into());
static NSEC: LazyLock<Arc<str>> = LazyLock::new(|| "nsec".into());

/// Why a record cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// It ends inside a field.
    #[error("the payload ends inside the field at byte {0}")]
    Short(u64),
    /// It claims more elements than bytes could be for.
    #[error("at byte {0} of the payload, an array claims more empty elements than are sensible")]
    TooMany(u64),
}

/// A place in a record.
pub(super) struct Cursor<'a> {
    pub(super) record: &'a [u8],
    pub(super) at: usize,
    /// Values that may still be made.
    budget: u64,
}

impl Layout {
    /// Returns the fields of a record, and how many of its bytes they are.
    ///
    /// # Errors
    /// Returns an error if it ends before they do, or has lists of more empty elements than are
    /// sensible.
    pub fn value(&self, record: &[u8]) -> Result<(Value, usize), DecodeError> {
        let mut cursor = Cursor::new(record, 0);
        Ok((cursor.fields(self)?, cursor.at))
    }

    /// Returns the value of field number `field` of a record.
    ///
    /// # Errors
    /// As [`value`](Self::value). Where fields of variable length are before it, all of them are
    /// decoded.
    pub fn field_value(&self, field: usize, record: &[u8]) -> Result<Value, DecodeError> {
        let slot = &self.slots[field];
        if let (Some(at), Len::One | Len::Fixed(_) | Len::Counted) = (slot.offset, slot.len) {
            return Cursor::new(record, at).field(&slot.element, slot.len, &[]);
        }
        match self.value(record)?.0 {
            Value::Struct(mut fields) => Ok(fields.swap_remove(field).1),
            other => Ok(other),
        }
    }
}

impl<'a> Cursor<'a> {
    pub(super) fn new(record: &'a [u8], at: usize) -> Self {
        Self { record, at, budget: MAX_VALUES + 2 * record.len() as u64 }
    }

    #[inline]
    pub(super) fn take(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        let bytes = self.record.get(self.at..).and_then(|rest| rest.get(..len));
        let bytes = bytes.ok_or(DecodeError::Short(self.at as u64))?;
        self.at += len;
        Ok(bytes)
    }

    /// Returns the length that is written before a list or text.
    #[inline]
    pub(super) fn len(&mut self) -> Result<usize, DecodeError> {
        let at = self.at as u64;
        let len = U32Le::first(self.take(4)?).ok_or(DecodeError::Short(at))?;
        Ok(len.get() as usize)
    }

    /// The recursion follows the layout, whose depth is limited.
    fn fields(&mut self, layout: &Layout) -> Result<Value, DecodeError> {
        let mut fields = Vec::with_capacity(layout.slots.len());
        for (field, slot) in layout.fields() {
            if slot.padding > 0 {
                self.take(slot.padding)?;
            }
            let name = Arc::clone(&field.name);
            if let (Element::Scalar(scalar), Len::One) = (&slot.element, slot.len) {
                // Made where it is kept: a value that is moved there costs more than it takes to read it.
                with_scalar(*scalar, self.take(scalar.size())?, |value| fields.push((name, value)));
                continue;
            }
            let value = self.field(&slot.element, slot.len, &fields)?;
            fields.push((name, value));
        }
        Ok(Value::Struct(fields))
    }

    #[inline]
    fn field(
        &mut self,
        element: &Element,
        len: Len,
        before: &[(Arc<str>, Value)],
    ) -> Result<Value, DecodeError> {
        match (element, len) {
            (Element::Char(text), _) => {
                let len = if let Len::Fixed(len) = len { len as usize } else { 1 };
                Ok(Value::Text(text.decode(up_to_nul(self.take(len)?)).into_owned()))
            }
            (_, Len::One) => self.one(element),
            (_, Len::Fixed(len)) => self.many(element, u64::from(len)),
            (_, Len::Counted) => {
                let len = self.len()?;
                self.many(element, len as u64)
            }
            (_, Len::Field(field)) => self.many(element, before.get(field).map_or(0, |(_, n)| length(n))),
        }
    }

    #[inline]
    fn one(&mut self, element: &Element) -> Result<Value, DecodeError> {
        Ok(match element {
            Element::Scalar(scalar) => scalar_value(*scalar, self.take(scalar.size())?),
            Element::Byte => scalar_value(Scalar::UInt8, self.take(1)?),
            Element::WideBool => Value::Bool(self.take(4)?.iter().any(|byte| *byte != 0)),
            Element::Packed(bytes) => Value::Bytes(self.take(*bytes as usize)?.to_vec()),
            Element::Char(text) => Value::Text(text.decode(up_to_nul(self.take(1)?)).into_owned()),
            Element::Time => self.pair(Scalar::UInt32)?,
            Element::Duration => self.pair(Scalar::Int32)?,
            Element::Text(text) => {
                let start = self.at;
                let len = self.len()?;
                let bytes = self.take(len).map_err(|_| DecodeError::Short(start as u64))?;
                Value::Text(text.decode(bytes).into_owned())
            }
            Element::Struct(layout) => {
                let value = self.fields(layout)?;
                self.take(usize::try_from(layout.tail).unwrap_or(usize::MAX))?;
                value
            }
        })
    }

    /// Returns the length of a list, if the record has bytes for so many elements of this size, and
    /// may have so many of so many values each: nothing is reserved for others.
    pub(super) fn granted(&mut self, len: u64, min_size: u64, values: u64) -> Result<usize, DecodeError> {
        let left = (self.record.len() - self.at) as u64;
        let short = DecodeError::Short(self.at as u64);
        if min_size.saturating_mul(len) > left {
            return Err(short);
        }
        let values = values.saturating_mul(len);
        self.budget = self.budget.checked_sub(values).ok_or(DecodeError::TooMany(self.at as u64))?;
        usize::try_from(len).map_err(|_| short)
    }

    fn many(&mut self, element: &Element, len: u64) -> Result<Value, DecodeError> {
        let values = if let Element::Struct(_) = element { element.values() } else { 0 };
        let len = self.granted(len, element.min_size(), values)?;
        match element {
            Element::Byte => return Ok(Value::Bytes(self.take(len)?.to_vec())),
            Element::Packed(bytes) => return Ok(Value::Bytes(self.take(len * *bytes as usize)?.to_vec())),
            Element::Scalar(scalar) => {
                return Ok(Value::List(scalars(*scalar, self.take(len * scalar.size())?)));
            }
            _ => {}
        }
        let mut items = Vec::with_capacity(len);
        for _ in 0..len {
            items.push(self.one(element)?);
        }
        Ok(Value::List(items))
    }

    fn pair(&mut self, scalar: Scalar) -> Result<Value, DecodeError> {
        let sec = scalar_value(scalar, self.take(4)?);
        let nsec = scalar_value(scalar, self.take(4)?);
        Ok(Value::Struct(vec![(Arc::clone(&SEC), sec), (Arc::clone(&NSEC), nsec)]))
    }
}

/// Returns a length as a field has it: more than there can be where it is negative, 0 where it is
/// none.
pub(super) fn length(value: &Value) -> u64 {
    match value {
        Value::UInt(n, _) => *n,
        Value::Int(n, _) => u64::try_from(*n).unwrap_or(u64::MAX),
        _ => 0,
    }
}

/// Scalars one behind the other. The widths known to the compiler are single moves.
fn scalars(scalar: Scalar, bytes: &[u8]) -> Vec<Value> {
    let sized = |size| bytes.chunks_exact(size);
    match scalar {
        Scalar::Float32 => sized(4).filter_map(f32::from_wire).map(Value::F32).collect(),
        Scalar::Float64 => sized(8).filter_map(f64::from_wire).map(Value::F64).collect(),
        _ => sized(scalar.size()).map(|bytes| scalar_value(scalar, bytes)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::TextDecoder;
    use super::super::samples::{fixed, record, type_of, variable};
    use super::*;

    #[test]
    fn a_record_has_the_values_that_were_encoded() {
        let (builder, values) = fixed();
        let mut types = vec![(Arc::new(builder.finish()), Value::record(values))];
        types.extend([variable(false), variable(true)]);
        for (layout, value) in types {
            let mut bytes = record(&layout, &value);
            assert_eq!(layout.value(&bytes), Ok((value.clone(), bytes.len())));
            for len in 0..bytes.len() {
                assert!(layout.value(&bytes[..len]).is_err(), "{len} of {} bytes", bytes.len());
            }
            bytes.push(1);
            assert_eq!(layout.value(&bytes), Ok((value.clone(), bytes.len() - 1)));
            for (field, wanted) in layout.schema.fields.iter().zip(0..) {
                assert_eq!(layout.field_value(wanted, &bytes).as_ref().ok(), value.get(&field.name));
            }
        }
    }

    #[test]
    fn values_are_little_endian_and_padding_is_left_out() {
        let mut builder = Layout::builder("t");
        builder.field("a", Element::Scalar(Scalar::UInt16), Len::One, String::new());
        builder.padding(2);
        builder.field("wide", Element::WideBool, Len::One, String::new());
        builder.field("list", Element::Scalar(Scalar::Int8), Len::Counted, String::new());
        let layout = builder.finish();
        let bytes = [1, 2, 9, 9, 0, 0, 1, 0, 2, 0, 0, 0, 255, 3];
        let list = Value::List(vec![Value::Int(-1, 8), Value::Int(3, 8)]);
        let value =
            Value::record([("a", Value::UInt(0x201, 16)), ("wide", Value::Bool(true)), ("list", list)]);
        assert_eq!(layout.value(&bytes), Ok((value, 14)));
        let short = |len: usize| layout.value(&bytes[..len]).map_err(|error| error.to_string());
        assert_eq!(short(7), Err("the payload ends inside the field at byte 4".to_owned()));
        assert_eq!(layout.value(&bytes[..13]), Err(DecodeError::Short(12)));
    }

    #[test]
    fn text_that_is_not_utf_8_is_escaped_or_latin_1() {
        let bytes = [2, 0, 0, 0, 0xe9, b'x'];
        let value = |decoder| {
            let layout = type_of(&[("text", Element::Text(decoder), Len::One)]);
            layout.field_value(0, &bytes)
        };
        assert_eq!(value(TextDecoder::UTF8), Ok(Value::Text("\\xe9x".to_owned())));
        assert_eq!(value(TextDecoder::LATIN1), Ok(Value::Text("\u{e9}x".to_owned())));
    }

    /// Nothing is reserved for a list that cannot be there.
    #[test]
    fn a_list_is_refused_at_its_start_if_its_elements_have_no_space() {
        let layout = type_of(&[("texts", Element::Text(TextDecoder::UTF8), Len::Counted)]);
        let record = |count| [&[count, 0, 0, 0][..], &[0; 8]].concat();
        assert!(layout.value(&record(2)).is_ok());
        assert_eq!(layout.value(&record(3)), Err(DecodeError::Short(4)));
    }

    #[test]
    fn empty_elements_are_limited() {
        let empty = type_of(&[]);
        let layout = type_of(&[("list", Element::Struct(empty), Len::Counted)]);
        let list = |count: u64| u32::try_from(count).unwrap().to_le_bytes();
        // Two more for each byte of the record.
        let most = MAX_VALUES + 8;
        let Ok((value, 4)) = layout.value(&list(most)) else { panic!("a list of empty elements") };
        let Some(Value::List(items)) = value.get("list") else { panic!("a list") };
        assert_eq!(items.len() as u64, most);
        assert_eq!(layout.value(&list(most + 1)), Err(DecodeError::TooMany(4)));
    }

    #[test]
    fn a_length_is_an_integer_that_is_not_negative() {
        let lengths = [Value::UInt(7, 8), Value::Int(7, 8), Value::F32(7.0), Value::Null].map(|n| length(&n));
        assert_eq!(lengths, [7, 7, 0, 0]);
        assert_eq!(length(&Value::Int(-1, 8)), u64::MAX);
    }
}
