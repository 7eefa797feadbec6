//! Deserialization of records to structs of the caller, with serde.
//!
//! A struct that derives `Deserialize` passes the names of its fields as a static list. At the
//! first record of a topic, this list is mapped to the fields of the layout. All later records use
//! this map, so no names are compared. Fields of the layout that the struct does not have are not
//! decoded.
//!
//! For example, a topic has the fields `timestamp: u64`, `q: f32[4]` and `delta: f32[4]`, and the
//! struct has the fields `q` and `timestamp`. The map is `[(slot 0, field 1), (slot 1, field 0)]`,
//! in the order of the bytes. For each record, serde receives field 1 from offset 0, then field 0
//! from offset 8.

use std::fmt::{self, Display};
use std::sync::Arc;

use serde_core::de::value::{MapDeserializer, StrDeserializer, U64Deserializer, UnitDeserializer};
use serde_core::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor,
};
use serde_core::forward_to_deserialize_any;

use super::scalar::Number;
use super::text::TextDecoder;
use super::types::{Element, Layout, Len};
use super::visit::MAX_VALUES;
use crate::internal::text::up_to_nul;
use crate::internal::wire::U32Le;
use crate::{Record, Scalar};

/// Reason why a record cannot be deserialized to a struct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypedError {
    /// Path of the field, such as `esc[2].rpm`, and the type of the field in the log. `None` if the
    /// error concerns the whole record.
    field: Option<(String, String)>,
    /// Description of the problem.
    why: String,
}

impl Display for TypedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.field {
            Some((path, ty)) => write!(f, "field `{path}`, which is `{ty}` in the log: {}", self.why),
            None => f.write_str(&self.why),
        }
    }
}

impl std::error::Error for TypedError {}

impl serde_core::de::Error for TypedError {
    fn custom<T: Display>(why: T) -> Self {
        Self { field: None, why: why.to_string() }
    }
}

impl TypedError {
    /// Creates an error for a record that ends inside the field that starts at offset `at`.
    fn short(at: u64) -> Self {
        Self::custom(format_args!("the payload ends inside the field at byte {at}"))
    }

    /// Prepends the field in which the error occurred to the path. Inner fields are prepended
    /// before outer fields.
    fn within(mut self, name: &str, ty: &str) -> Self {
        self.field = Some(match self.field {
            None => (name.to_owned(), ty.to_owned()),
            Some((path, ty)) if path.starts_with('[') => (format!("{name}{path}"), ty),
            Some((path, ty)) => (format!("{name}.{path}"), ty),
        });
        self
    }

    /// Prepends the index of the list element in which the error occurred to the path.
    fn within_element(mut self, index: u64) -> Self {
        if let Some((path, _)) = &mut self.field {
            *path = format!("[{index}].{path}");
        }
        self
    }
}

/// Map from the fields of a layout to the fields of the struct that a record is deserialized to.
#[derive(Debug)]
pub(super) struct FieldMap {
    /// Layout of the records.
    layout: Arc<Layout>,
    /// Names of the struct's fields. `None` if the target has no fixed fields, as for a map. All
    /// fields of the layout are then passed to the target.
    names: Option<&'static [&'static str]>,
    /// Fields that both the layout and the struct have, in the order of their bytes.
    wanted: Vec<Wanted>,
}

/// A field that both the layout and the struct have.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    /// Index of the field in the layout.
    slot: usize,
    /// Index of the field in the struct.
    field: usize,
}

impl FieldMap {
    /// Maps each field of a layout to the field of the struct with the same name.
    fn new(layout: &Arc<Layout>, names: Option<&'static [&'static str]>) -> Self {
        let field = |(slot, name): (usize, &str)| {
            let field = names.map_or(Some(slot), |names| names.iter().position(|wanted| *wanted == name))?;
            Some(Wanted { slot, field })
        };
        let slots = layout.schema().fields.iter().map(|field| &*field.name).enumerate();
        Self { layout: Arc::clone(layout), names, wanted: slots.filter_map(field).collect() }
    }
}

/// Deserializes the records of a topic. The reader stores the field maps of the topic's type and of
/// all nested types.
#[derive(Debug, Default)]
pub struct TypedReader {
    /// Field maps that have been created. There are only a few, so they are searched linearly.
    maps: Vec<FieldMap>,
}

impl TypedReader {
    /// Deserializes a record.
    ///
    /// # Errors
    /// Returns an error if a field is missing that is not an `Option`, if the type of a field does
    /// not fit the struct, or if the record ends before its last field.
    pub fn read<T: DeserializeOwned>(&mut self, record: &Record<'_>) -> Result<T, TypedError> {
        let fields = record.fields().map_err(TypedError::custom)?;
        T::deserialize(FieldReader {
            maps: &mut self.maps,
            element: Content::Struct(fields.layout),
            count: None,
            bytes: &fields.bytes,
        })
    }
}

/// Type of the elements in a field that is being deserialized.
#[derive(Clone, Copy)]
pub(super) enum Content<'l> {
    /// A struct with this layout.
    Struct(&'l Arc<Layout>),
    /// An element that is not a struct.
    Other(&'l Element),
}

impl<'l> From<&'l Element> for Content<'l> {
    fn from(element: &'l Element) -> Self {
        match element {
            Element::Struct(layout) => Self::Struct(layout),
            other => Self::Other(other),
        }
    }
}

/// Deserializer for a field, or for a whole record.
pub(super) struct FieldReader<'m, 'l, 'de> {
    /// Field maps of the topic's type and of all nested types.
    pub(super) maps: &'m mut Vec<FieldMap>,
    /// Type of an element in the field.
    pub(super) element: Content<'l>,
    /// Number of elements in the field, or `None` if the field is a single element.
    pub(super) count: Option<u64>,
    /// Bytes of the record from the start of the field. They may extend beyond the end of the
    /// field.
    pub(super) bytes: &'de [u8],
}

impl<'l, 'de> FieldReader<'_, 'l, 'de> {
    /// Returns the first `len` bytes of the field.
    fn take(&self, len: u64) -> Result<&'de [u8], TypedError> {
        let len = usize::try_from(len).ok();
        len.and_then(|len| self.bytes.get(..len)).ok_or_else(|| TypedError::short(0))
    }

    /// Returns the bytes of a text or of a list of bytes. Returns `None` if the field is neither.
    fn flat_bytes(&self) -> Option<Result<&'de [u8], TypedError>> {
        let Content::Other(element) = self.element else { return None };
        Some(match (element, self.count) {
            (Element::Char(_), count) => self.take(count.unwrap_or(1)).map(up_to_nul),
            (Element::Byte, Some(count)) => self.take(count),
            (Element::Packed(size), count) => self.take(u64::from(*size).saturating_mul(count.unwrap_or(1))),
            (Element::Text(_), None) => {
                let len = U32Le::first(self.bytes).ok_or_else(|| TypedError::short(0));
                len.and_then(|len| Ok(&self.take(4 + u64::from(len.get()))?[4..]))
            }
            _ => return None,
        })
    }

    /// Returns the decoder of a text field. Returns `None` if the field is not a text.
    fn text(&self) -> Option<&'l TextDecoder> {
        match (self.element, self.count) {
            (Content::Other(Element::Text(text)), None) | (Content::Other(Element::Char(text)), _) => {
                Some(text)
            }
            _ => None,
        }
    }

    /// Returns the seconds and nanoseconds of a time or duration. Returns `None` if the field is
    /// neither.
    fn time(&self) -> Result<Option<[i64; 2]>, TypedError> {
        let (Content::Other(element), None) = (self.element, self.count) else { return Ok(None) };
        let word = |bytes: &[u8]| match element {
            Element::Time => u32::from_wire(bytes).map(i64::from),
            _ => i32::from_wire(bytes).map(i64::from),
        };
        if !matches!(element, Element::Time | Element::Duration) {
            return Ok(None);
        }
        let bytes = self.take(8)?;
        Ok(word(bytes).zip(word(&bytes[4..])).map(|(sec, nsec)| [sec, nsec]))
    }

    /// Returns the type of a single number. Returns `None` if the field is not a single number.
    fn scalar(&self) -> Option<Scalar> {
        match (self.element, self.count) {
            (Content::Other(Element::Scalar(scalar) | Element::Optional(scalar)), None) => Some(*scalar),
            (Content::Other(Element::Byte), None) => Some(Scalar::UInt8),
            _ => None,
        }
    }

    /// Deserializes a struct. `names` is the static list of the target's field names, if the target
    /// has one.
    fn visit_struct<V: Visitor<'de>>(
        self,
        layout: &Arc<Layout>,
        names: Option<&'static [&'static str]>,
        visitor: V,
    ) -> Result<V::Value, TypedError> {
        let is_known = |map: &FieldMap| Arc::ptr_eq(&map.layout, layout) && map.names == names;
        let map = self.maps.iter().position(is_known).unwrap_or_else(|| {
            self.maps.push(FieldMap::new(layout, names));
            self.maps.len() - 1
        });
        visitor.visit_map(StructFields {
            maps: self.maps,
            map,
            layout,
            bytes: self.bytes,
            next: 0,
            at: 0,
            lengths: Vec::new(),
        })
    }

    /// Deserializes a list that has `count` elements.
    fn visit_list<V: Visitor<'de>>(self, count: u64, visitor: V) -> Result<V::Value, TypedError> {
        // A damaged record can have any count, so the count is checked before memory is allocated.
        let min_size = match self.element {
            Content::Struct(layout) => layout.min_size(),
            Content::Other(element) => element.min_size(),
        };
        if min_size.saturating_mul(count) > self.bytes.len() as u64 {
            return Err(TypedError::short(0));
        }
        if min_size == 0 && count > MAX_VALUES {
            return Err(TypedError::custom(format_args!(
                "a list of {count} empty elements is not plausible"
            )));
        }
        visitor.visit_seq(Elements {
            maps: self.maps,
            element: self.element,
            bytes: self.bytes,
            next: 0,
            count,
        })
    }
}

/// Returns whether a float with `mantissa` mantissa bits can represent all numbers of a scalar type
/// exactly.
fn is_exact(scalar: Scalar, mantissa: usize) -> bool {
    match scalar {
        Scalar::Bool => false,
        Scalar::Float32 => true,
        Scalar::Float64 => mantissa >= 53,
        integer => integer.size() * 8 <= mantissa,
    }
}

/// Creates an error for a field whose type does not fit the struct.
fn mismatch(found: impl Display, wanted: &str) -> TypedError {
    TypedError::custom(format_args!("invalid type: {found}, expected {wanted}"))
}

impl<'de> Deserializer<'de> for FieldReader<'_, '_, 'de> {
    type Error = TypedError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypedError> {
        if let Some(scalar) = self.scalar() {
            let bytes = self.take(scalar.size() as u64)?;
            macro_rules! visit {
                ($ty:ty, $visit:ident) => {
                    visitor.$visit(<$ty>::from_wire(bytes).ok_or_else(|| TypedError::short(0))?)
                };
            }
            return match scalar {
                Scalar::Bool => visit!(bool, visit_bool),
                Scalar::Int8 => visit!(i8, visit_i8),
                Scalar::UInt8 => visit!(u8, visit_u8),
                Scalar::Int16 => visit!(i16, visit_i16),
                Scalar::UInt16 => visit!(u16, visit_u16),
                Scalar::Int32 => visit!(i32, visit_i32),
                Scalar::UInt32 => visit!(u32, visit_u32),
                Scalar::Int64 => visit!(i64, visit_i64),
                Scalar::UInt64 => visit!(u64, visit_u64),
                Scalar::Float32 => visit!(f32, visit_f32),
                Scalar::Float64 => visit!(f64, visit_f64),
            };
        }
        if let Some([sec, nsec]) = self.time()? {
            return visitor.visit_map(MapDeserializer::new([("sec", sec), ("nsec", nsec)].into_iter()));
        }
        if let (Some(text), Some(bytes)) = (self.text(), self.flat_bytes()) {
            return visitor.visit_str(&text.decode(bytes?));
        }
        match (self.element, self.count) {
            (Content::Other(Element::WideBool), None) => visitor.visit_bool(self.take(4)? != [0; 4]),
            (Content::Struct(layout), None) => self.visit_struct(layout, None, visitor),
            (_, count) => match self.flat_bytes() {
                Some(bytes) => visitor.visit_bytes(bytes?),
                None => self.visit_list(count.unwrap_or(1), visitor),
            },
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, TypedError> {
        match (self.element, self.count) {
            (Content::Struct(layout), None) => self.visit_struct(layout, Some(fields), visitor),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypedError> {
        match (self.element, self.count) {
            (Content::Other(Element::Byte), Some(count)) => self.visit_list(count, visitor),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, TypedError> {
        match self.count {
            Some(count) if count != len as u64 => {
                Err(TypedError::custom(format_args!("invalid length {count}, expected {len} elements")))
            }
            _ => self.deserialize_seq(visitor),
        }
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypedError> {
        match self.flat_bytes() {
            Some(bytes) => visitor.visit_bytes(bytes?),
            None => self.deserialize_any(visitor),
        }
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypedError> {
        self.deserialize_bytes(visitor)
    }

    /// A time can also be deserialized as an integer number of nanoseconds.
    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypedError> {
        match self.time()? {
            Some([sec, nsec]) => visitor.visit_i64(sec * 1_000_000_000 + nsec),
            None => self.deserialize_any(visitor),
        }
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypedError> {
        self.deserialize_i64(visitor)
    }

    /// Integers and doubles that `f32` may not represent exactly are rejected. serde would round
    /// them without an error.
    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypedError> {
        match self.scalar() {
            Some(scalar) if !is_exact(scalar, 24) => Err(mismatch(scalar.name(), "f32")),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypedError> {
        match self.scalar() {
            Some(scalar) if !is_exact(scalar, 53) => Err(mismatch(scalar.name(), "f64")),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypedError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, TypedError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypedError> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i128 u8 u16 u32 u128 char str string unit unit_struct tuple_struct map enum identifier
    }
}

/// Map access to the fields of a struct, in the order of their bytes.
struct StructFields<'m, 'l, 'de> {
    /// Field maps of the topic's type and of all nested types.
    maps: &'m mut Vec<FieldMap>,
    /// Index of the struct's field map in `maps`.
    map: usize,
    /// Layout of the struct.
    layout: &'l Arc<Layout>,
    /// Bytes of the record from the start of the struct.
    bytes: &'de [u8],
    /// Index of the next field in the field map.
    next: usize,
    /// Offset of the end of the last field whose size has been determined.
    at: u64,
    /// Integer values of the fields up to offset `at`. The value of such a field may be the number
    /// of elements of a later field.
    lengths: Vec<u64>,
}

impl StructFields<'_, '_, '_> {
    /// Returns the offset of a field in the struct. `slot` is the index of the field in the layout.
    /// If earlier fields have variable sizes, their sizes are determined first.
    fn start(&mut self, slot: usize) -> Result<u64, TypedError> {
        // In a linked layout, the number of elements of a field can be the value of an earlier
        // field, so all earlier fields are read.
        if let (Some(offset), false) = (self.layout.slots()[slot].offset, self.layout.is_linked()) {
            return Ok(offset as u64);
        }
        for passed in &self.layout.slots()[self.lengths.len()..slot] {
            self.at = passed.end(self.bytes, self.at, &mut self.lengths).map_err(TypedError::short)?;
        }
        Ok(self.at + self.layout.slots()[slot].padding as u64)
    }
}

impl<'de> MapAccess<'de> for StructFields<'_, '_, 'de> {
    type Error = TypedError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, TypedError> {
        let map = &self.maps[self.map];
        let Some(wanted) = map.wanted.get(self.next) else { return Ok(None) };
        // A struct that derives `Deserialize` accepts the index of a field instead of its name.
        // With the index, no names are compared.
        if map.names.is_some() {
            return seed.deserialize(U64Deserializer::new(wanted.field as u64)).map(Some);
        }
        seed.deserialize(StrDeserializer::new(&self.layout.schema().fields[wanted.slot].name)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, TypedError> {
        let wanted = self.maps[self.map].wanted[self.next];
        self.next += 1;
        let at = self.start(wanted.slot)?;
        let slot = &self.layout.slots()[wanted.slot];
        let bytes = usize::try_from(at).ok().and_then(|at| self.bytes.get(at..));
        let mut bytes = bytes.ok_or_else(|| TypedError::short(at))?;
        let count = match slot.len {
            Len::One => None,
            Len::Fixed(count) => Some(count.into()),
            Len::Field(field) => Some(self.lengths.get(field).copied().unwrap_or(0)),
            Len::Counted => {
                let count = U32Le::first(bytes).ok_or_else(|| TypedError::short(at))?;
                bytes = &bytes[4..];
                Some(count.get().into())
            }
        };
        if let Element::Optional(_) = slot.element {
            let Some((is_present, number)) = bytes.split_first() else { return Err(TypedError::short(at)) };
            if *is_present == 0 {
                return seed.deserialize(UnitDeserializer::new());
            }
            bytes = number;
        }
        let reader = FieldReader { maps: self.maps, element: (&slot.element).into(), count, bytes };
        let field = &self.layout.schema().fields[wanted.slot];
        seed.deserialize(reader).map_err(|error| error.within(&field.name, &field.source_type))
    }
}

/// Sequence access to the elements of a list.
struct Elements<'m, 'l, 'de> {
    /// Field maps of the topic's type and of all nested types.
    maps: &'m mut Vec<FieldMap>,
    /// Type of an element in the list.
    element: Content<'l>,
    /// Bytes of the record from the start of the next element.
    bytes: &'de [u8],
    /// Index of the next element in the list.
    next: u64,
    /// Number of elements in the list.
    count: u64,
}

impl<'de> SeqAccess<'de> for Elements<'_, '_, 'de> {
    type Error = TypedError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, TypedError> {
        if self.next == self.count {
            return Ok(None);
        }
        let size = match self.element {
            Content::Struct(layout) => layout.full_end(self.bytes),
            Content::Other(element) => element.end(self.bytes),
        };
        let size = size.map_err(TypedError::short)?;
        let (bytes, rest) = self.bytes.split_at(usize::try_from(size).unwrap_or(usize::MAX));
        let reader = FieldReader { maps: self.maps, element: self.element, count: None, bytes };
        let value = seed.deserialize(reader).map_err(|error| error.within_element(self.next))?;
        self.bytes = rest;
        self.next += 1;
        Ok(Some(value))
    }

    fn size_hint(&self) -> Option<usize> {
        usize::try_from(self.count - self.next).ok()
    }
}
