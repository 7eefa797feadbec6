//! Decoding of records to values.

use std::sync::{Arc, LazyLock};

use super::scalar::{Number as _, scalar_value, with_scalar};
use super::types::{Layout, Len};
use super::visit::{At, DecodeError, FieldKeys, Leaf, Visit, Walk};
use crate::{Field, Scalar, Value};

/// Names of the two fields of a time. All decoded times share them.
static SEC: LazyLock<Arc<str>> = LazyLock::new(|| "sec".into());
static NSEC: LazyLock<Arc<str>> = LazyLock::new(|| "nsec".into());

impl Layout {
    /// Decodes the fields of a record. Also returns the number of bytes that the fields occupy.
    ///
    /// # Errors
    /// Returns an error in two cases: the record ends before its last field, or a list claims too
    /// many elements that have no bytes, such as structs without fields.
    pub fn value(&self, record: &[u8]) -> Result<(Value, usize), DecodeError> {
        let mut values = Values::of(self.slots.len());
        let end = self.visit(record, &FieldKeys, &mut values)?;
        Ok((Value::Struct(values.fields), end))
    }

    /// Decodes the field with the index `field`.
    ///
    /// # Errors
    /// Returns the same errors as [`value`](Self::value). If a field of variable size precedes this
    /// field, all fields are decoded.
    pub fn field_value(&self, field: usize, record: &[u8]) -> Result<Value, DecodeError> {
        let slot = &self.slots[field];
        if let (Some(at), Len::One | Len::Fixed(_) | Len::Counted) = (slot.offset, slot.len) {
            return self.value_at(field, record, at);
        }
        let mut values = Values::of(1);
        self.visit(record, &FieldKeys, &mut values)?;
        Ok(values.fields.swap_remove(field).1)
    }

    /// Decodes the field with the index `field`, which starts at offset `at` of the record. The
    /// number of elements must not be the value of another field.
    pub(crate) fn value_at(&self, field: usize, record: &[u8], at: usize) -> Result<Value, DecodeError> {
        let (slot, key, mut values) = (&self.slots[field], &self.schema.fields[field], Values::of(1));
        Walk::new(record, at).field(slot, key, &FieldKeys, 0, &mut values)?;
        Ok(values.fields.swap_remove(0).1)
    }
}

/// Builds a [`Value`] from the visited fields.
#[derive(Default)]
pub struct Values {
    /// Fields of the innermost struct that is being built.
    fields: Vec<(Arc<str>, Value)>,
    /// Fields of the structs that contain the innermost struct, starting with the outermost struct.
    outer: Vec<Vec<(Arc<str>, Value)>>,
    /// Elements of the lists that are not complete yet, starting with the outermost list.
    lists: Vec<Vec<Value>>,
}

impl Values {
    /// Returns a builder for a struct that has `len` fields. No field has been visited yet.
    fn of(len: usize) -> Self {
        Self { fields: Vec::with_capacity(len), outer: Vec::new(), lists: Vec::new() }
    }

    /// Takes the value of the first field that was visited.
    pub fn take_first(&mut self) -> Option<Value> {
        self.fields.drain(..).next().map(|(_, value)| value)
    }

    #[inline]
    fn put(&mut self, field: &Field, at: At, value: Value) {
        match (at, self.lists.last_mut()) {
            (At::First | At::Next, Some(list)) => list.push(value),
            _ => self.fields.push((Arc::clone(&field.name), value)),
        }
    }
}

impl Visit<Field> for Values {
    #[inline]
    fn scalar(&mut self, field: &Field, scalar: Scalar, bytes: &[u8]) {
        // The value is created in its final location in `fields`. Moving it there would take longer
        // than decoding it.
        with_scalar(scalar, bytes, |value| self.fields.push((Arc::clone(&field.name), value)));
    }

    /// Floats are handled separately. They are the most common numbers, and a constant size makes
    /// the loop faster.
    fn scalars(&mut self, field: &Field, scalar: Scalar, bytes: &[u8]) {
        let sized = |size| bytes.chunks_exact(size);
        let values = match scalar {
            Scalar::Float32 => sized(4).filter_map(f32::from_wire).map(Value::F32).collect(),
            Scalar::Float64 => sized(8).filter_map(f64::from_wire).map(Value::F64).collect(),
            _ => sized(scalar.size()).map(|bytes| scalar_value(scalar, bytes)).collect(),
        };
        self.fields.push((Arc::clone(&field.name), Value::List(values)));
    }

    fn leaf(&mut self, field: &Field, at: At, leaf: Leaf<'_>) {
        self.put(field, at, leaf.into());
    }

    fn open(&mut self, field: &Field, _: At) {
        let len = field.ty.nested().map_or(0, |schema| schema.fields.len());
        self.outer.push(std::mem::replace(&mut self.fields, Vec::with_capacity(len)));
    }

    fn close(&mut self, field: &Field, at: At) {
        let outer = self.outer.pop().unwrap_or_default();
        let value = Value::Struct(std::mem::replace(&mut self.fields, outer));
        self.put(field, at, value);
    }

    fn list(&mut self, _: &Field, len: usize) {
        self.lists.push(Vec::with_capacity(len));
    }

    fn end_list(&mut self, field: &Field) {
        let items = self.lists.pop().unwrap_or_default();
        self.fields.push((Arc::clone(&field.name), Value::List(items)));
    }
}

impl From<Leaf<'_>> for Value {
    fn from(leaf: Leaf<'_>) -> Self {
        match leaf {
            Leaf::Text(text) => Self::Text(text.into_owned()),
            Leaf::Bytes(bytes) => Self::Bytes(bytes.to_vec()),
            Leaf::Null => Self::Null,
            Leaf::Pair(scalar, bytes) => {
                let part = |at: usize| scalar_value(scalar, &bytes[at..]);
                Self::Struct(vec![(Arc::clone(&SEC), part(0)), (Arc::clone(&NSEC), part(4))])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{fixed, record, type_of, variable};
    use super::super::{Element, MAX_VALUES, TextDecoder};
    use super::*;

    #[test]
    fn decoding_returns_the_encoded_values() {
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
    fn values_are_little_endian_without_padding() {
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

    /// If the elements of a list do not fit into the record, no memory must be allocated for the
    /// list.
    #[test]
    fn a_list_that_does_not_fit_the_record_is_rejected() {
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
        // The maximum is `MAX_VALUES` plus two for each byte of the record, which has 4 bytes.
        let most = MAX_VALUES + 8;
        let Ok((value, 4)) = layout.value(&list(most)) else { panic!("a list of empty elements") };
        let Some(Value::List(items)) = value.get("list") else { panic!("a list") };
        assert_eq!(items.len() as u64, most);
        assert_eq!(layout.value(&list(most + 1)), Err(DecodeError::TooMany(4)));
    }
}
