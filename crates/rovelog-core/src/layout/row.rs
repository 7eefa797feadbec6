//! Single fields of a record, read in place.

use super::scalar::{Number, scalar_value};
use super::types::{Element, Layout, Len};
use crate::text::up_to_nul;
use crate::{Scalar, Value};

/// One record's bytes with their layout.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    layout: &'a Layout,
    bytes: &'a [u8],
}

/// The place of a field, looked up once and used for every record of its topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    offset: usize,
    /// `None` for text.
    scalar: Option<Scalar>,
    len: Option<usize>,
}

impl Place {
    /// Returns whether the field is one value of type `scalar`.
    pub fn is_scalar(&self, scalar: Scalar) -> bool {
        self.scalar == Some(scalar) && self.len.is_none()
    }

    /// Returns the offset of its first byte in a record.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Returns the type of one element; `None` for text.
    pub fn scalar(&self) -> Option<Scalar> {
        self.scalar
    }

    /// Returns how many elements it has, or bytes of text; `None` for one.
    pub fn elements(&self) -> Option<usize> {
        self.len
    }
}

impl Layout {
    /// Finds a field by its flat name: `x`, `q` (the whole array), `q[2]`, `esc[3].esc_rpm`,
    /// `pos.x`. A struct as a whole has no place, its fields do; nor has what is behind a field of
    /// variable length.
    pub fn place(&self, path: &str) -> Option<Place> {
        let (mut layout, mut base, mut rest) = (self, 0, path);
        // Bounded by the nesting of the layout.
        loop {
            let named = |name: &str| layout.schema.fields.iter().position(|field| *field.name == *name);
            let (step, tail) = match rest.split_once('.') {
                Some((step, tail)) => (step, Some(tail)),
                None => (rest, None),
            };
            // A log may have a field `x.y` or `x[1]`.
            let whole = if step.len() < rest.len() || step.contains('[') { named(rest) } else { None };
            let (step, tail) = if whole.is_some() { (rest, None) } else { (step, tail) };
            let (name, index) = match step.split_once('[').filter(|_| whole.is_none()) {
                Some((name, index)) => (name, Some(index.strip_suffix(']')?.parse::<usize>().ok()?)),
                None => (step, None),
            };
            let slot = &layout.slots[whole.or_else(|| named(name))?];
            let mut offset = base + slot.offset?;
            let mut len = match slot.len {
                Len::One => None,
                Len::Fixed(len) => Some(usize::try_from(len).ok()?),
                Len::Counted | Len::Field(_) => return None,
            };
            if let Some(index) = index {
                if index >= len? || slot.element == Element::Char {
                    return None;
                }
                offset += index * usize::try_from(slot.element.size()?).ok()?;
                len = None;
            }
            match (&slot.element, tail) {
                (Element::Struct(inner), Some(tail)) if len.is_none() => {
                    (layout, base, rest) = (inner, offset, tail);
                }
                (Element::Scalar(scalar), None) => {
                    return Some(Place { offset, scalar: Some(*scalar), len });
                }
                (Element::Byte, None) => return Some(Place { offset, scalar: Some(Scalar::UInt8), len }),
                (Element::Char, None) => return Some(Place { offset, scalar: None, len }),
                _ => return None,
            }
        }
    }
}

impl<'a> Row<'a> {
    /// Returns a record, which has the bytes that the layout asks for.
    pub fn new(layout: &'a Layout, bytes: &'a [u8]) -> Self {
        Self { layout, bytes }
    }

    /// Returns the layout of the record.
    pub fn layout(&self) -> &'a Layout {
        self.layout
    }

    /// Returns the bytes of the record, padding included.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Reads a scalar; `None` where the field is not of type `T` or is an array.
    #[inline]
    pub fn read<T: Number>(&self, place: Place) -> Option<T> {
        if place.scalar != Some(T::SCALAR) || place.len.is_some() {
            return None;
        }
        T::from_wire(self.bytes.get(place.offset..)?)
    }

    /// Reads the elements of an array; `None` where the field is not an array of type `T`.
    #[expect(clippy::missing_panics_doc, reason = "a chunk has the size of one element")]
    pub fn read_array<T: Number>(
        &self,
        place: Place,
    ) -> Option<impl ExactSizeIterator<Item = T> + use<'a, T>> {
        if place.scalar != Some(T::SCALAR) {
            return None;
        }
        let size = T::SCALAR.size();
        let bytes = self.bytes.get(place.offset..place.offset + place.len? * size)?;
        Some(bytes.chunks_exact(size).map(|chunk| T::from_wire(chunk).expect("a chunk is one element")))
    }

    /// Returns the bytes of a text field up to the first NUL; `None` where it is not text.
    pub fn text_bytes(&self, place: Place) -> Option<&'a [u8]> {
        if place.scalar.is_some() {
            return None;
        }
        let bytes = self.bytes.get(place.offset..place.offset + place.len.unwrap_or(1))?;
        Some(up_to_nul(bytes))
    }

    /// Looks a field up by its flat name and gives its value; structs and arrays included.
    ///
    /// For many records, look the field up once with [`Layout::place`] and use
    /// [`read`](Self::read).
    pub fn get(&self, name: &str) -> Option<Value> {
        if let Some(place) = self.layout.place(name) {
            let at = self.bytes.get(place.offset..)?;
            let one = |scalar: Scalar, bytes: &[u8]| scalar_value(scalar, bytes);
            return Some(match (place.scalar, place.len) {
                (Some(scalar), None) => one(scalar, at.get(..scalar.size())?),
                (Some(scalar), Some(len)) => {
                    let bytes = at.get(..len * scalar.size())?;
                    Value::List(bytes.chunks(scalar.size()).map(|bytes| one(scalar, bytes)).collect())
                }
                (None, len) => {
                    let text = up_to_nul(at.get(..len.unwrap_or(1))?);
                    Value::Text(String::from_utf8_lossy(text).into_owned())
                }
            });
        }
        let field = self.layout.schema.fields.iter().position(|field| *field.name == *name)?;
        self.layout.field_value(field, self.bytes).ok()
    }

    /// Returns all fields, as a [`Value::Struct`]; [`Value::Null`] where the record ends before its
    /// fields do.
    pub fn value(&self) -> Value {
        self.layout.value(self.bytes).map_or(Value::Null, |(value, _)| value)
    }

    /// Returns one line of JSON: 64-bit integers as strings, NaN and infinities as strings.
    pub fn to_json(&self) -> String {
        self.value().to_json()
    }
}
