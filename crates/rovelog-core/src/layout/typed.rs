//! Records as structs of the caller, through serde.
//!
//! A derived `Deserialize` names the fields that it wants as a static list. The first record of a
//! topic maps this list to the fields of the layout; all further records use the map, so no name
//! is compared per record. Fields that the struct does not name are not decoded.
//!
//! Example: a topic has the fields `timestamp: u64`, `q: f32[4]`, `delta: f32[4]`, and the struct
//! wants `q` and `timestamp`. The map is `[(slot 0, field 1), (slot 1, field 0)]`, in the order of
//! the bytes. For each record serde is given field 1 from byte 0, then field 0 from byte 8.

use std::fmt::{self, Display};
use std::sync::Arc;

use serde_core::de::value::{MapDeserializer, SeqDeserializer, StrDeserializer, U64Deserializer};
use serde_core::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor,
};
use serde_core::forward_to_deserialize_any;

use super::scalar::Number;
use super::text::TextDecoder;
use super::types::{Element, Layout, Len};
use super::value::MAX_VALUES;
use crate::text::up_to_nul;
use crate::wire::U32Le;
use crate::{Record, Scalar, Value};

/// Why a record cannot be read as a struct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypedError {
    /// Path of the field, such as `esc[2].rpm`, with its type in the log; empty for the record.
    field: Option<(String, String)>,
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
    /// The record ends inside a field that starts at this byte of it.
    fn short(at: u64) -> Self {
        Self::custom(format_args!("the payload ends inside the field at byte {at}"))
    }

    /// Adds the field in which the error occurred; outer fields are added after inner ones.
    fn within(mut self, name: &str, ty: &str) -> Self {
        self.field = Some(match self.field {
            None => (name.to_owned(), ty.to_owned()),
            Some((path, ty)) if path.starts_with('[') => (format!("{name}{path}"), ty),
            Some((path, ty)) => (format!("{name}.{path}"), ty),
        });
        self
    }

    /// Adds the number of the list element in which the error occurred.
    fn within_element(mut self, index: u64) -> Self {
        if let Some((path, _)) = &mut self.field {
            *path = format!("[{index}].{path}");
        }
        self
    }
}

/// Fields that a struct wants from a layout.
#[derive(Debug)]
pub(super) struct FieldMap {
    layout: Arc<Layout>,
    /// The static list of a derived `Deserialize`; `None` for a map, which takes all fields.
    names: Option<&'static [&'static str]>,
    wanted: Vec<Wanted>,
}

#[derive(Clone, Copy, Debug)]
struct Wanted {
    slot: usize,
    /// Position in the list of names.
    field: usize,
}

impl FieldMap {
    fn new(layout: &Arc<Layout>, names: Option<&'static [&'static str]>) -> Self {
        let field = |(slot, name): (usize, &str)| {
            let field = names.map_or(Some(slot), |names| names.iter().position(|wanted| *wanted == name))?;
            Some(Wanted { slot, field })
        };
        let slots = layout.schema().fields.iter().map(|field| &*field.name).enumerate();
        Self { layout: Arc::clone(layout), names, wanted: slots.filter_map(field).collect() }
    }
}

/// Reads records of one topic as structs. It keeps the field maps of all nested types.
#[derive(Debug, Default)]
pub struct TypedReader {
    maps: Vec<FieldMap>,
}

impl TypedReader {
    /// Reads a record.
    ///
    /// # Errors
    /// Returns an error if a field has a type that does not fit the struct, a field that is no
    /// `Option` is missing, or the payload ends before its fields do.
    pub fn read<T: DeserializeOwned>(&mut self, record: &Record<'_>) -> Result<T, TypedError> {
        let Some(layout) = record.layout() else {
            // Formats such as RLD compute their values, so there are no bytes to read in place.
            let value = record.value().map_err(TypedError::custom)?;
            return T::deserialize(ValueReader(&value));
        };
        T::deserialize(FieldReader {
            maps: &mut self.maps,
            element: Content::Struct(layout),
            count: None,
            bytes: &record.payload,
        })
    }
}

/// Type of one element of a field.
#[derive(Clone, Copy)]
pub(super) enum Content<'l> {
    Struct(&'l Arc<Layout>),
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

/// Deserializer for one field, or for the record itself.
pub(super) struct FieldReader<'m, 'l, 'de> {
    pub(super) maps: &'m mut Vec<FieldMap>,
    pub(super) element: Content<'l>,
    /// Number of elements; `None` if the field is no list.
    pub(super) count: Option<u64>,
    /// The field's bytes, and possibly more.
    pub(super) bytes: &'de [u8],
}

impl<'l, 'de> FieldReader<'_, 'l, 'de> {
    fn take(&self, len: u64) -> Result<&'de [u8], TypedError> {
        let len = usize::try_from(len).ok();
        len.and_then(|len| self.bytes.get(..len)).ok_or_else(|| TypedError::short(0))
    }

    /// Returns the bytes of a text or of a list of bytes; `None` for any other field.
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

    /// Returns the decoder of a text; `None` for any other field.
    fn text(&self) -> Option<&'l TextDecoder> {
        match (self.element, self.count) {
            (Content::Other(Element::Text(text)), None) | (Content::Other(Element::Char(text)), _) => {
                Some(text)
            }
            _ => None,
        }
    }

    /// Returns seconds and nanoseconds; `None` if the field is neither a time nor a duration.
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

    /// Returns the type of a field that is a single number.
    fn scalar(&self) -> Option<Scalar> {
        match (self.element, self.count) {
            (Content::Other(Element::Scalar(scalar)), None) => Some(*scalar),
            (Content::Other(Element::Byte), None) => Some(Scalar::UInt8),
            _ => None,
        }
    }

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
            position: Position::default(),
        })
    }

    fn visit_list<V: Visitor<'de>>(self, count: u64, visitor: V) -> Result<V::Value, TypedError> {
        // A count is checked before its elements are read: a damaged record can claim any number.
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

/// Reports whether a number of this type is exact as a float with this many bits of mantissa.
fn is_exact(scalar: Scalar, mantissa: usize) -> bool {
    match scalar {
        Scalar::Bool => false,
        Scalar::Float32 => true,
        Scalar::Float64 => mantissa >= 53,
        integer => integer.size() * 8 <= mantissa,
    }
}

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

    /// A time is also an integer: its nanoseconds.
    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypedError> {
        match self.time()? {
            Some([sec, nsec]) => visitor.visit_i64(sec * 1_000_000_000 + nsec),
            None => self.deserialize_any(visitor),
        }
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypedError> {
        self.deserialize_i64(visitor)
    }

    /// serde rounds a wider number without an error, so only numbers that stay exact are accepted.
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

/// Place in a struct while its fields are read in the order of their bytes.
#[derive(Default)]
struct Position {
    /// Offset behind the fields passed so far.
    at: u64,
    /// Value of each field passed so far, which may be the length of a later one.
    lengths: Vec<u64>,
}

/// Fields of a struct as a map, in the order of their bytes.
struct StructFields<'m, 'l, 'de> {
    maps: &'m mut Vec<FieldMap>,
    map: usize,
    layout: &'l Arc<Layout>,
    bytes: &'de [u8],
    /// Position in the list of wanted fields.
    next: usize,
    position: Position,
}

impl StructFields<'_, '_, '_> {
    /// Returns the offset of a slot. Fields before it are measured where their sizes differ from
    /// record to record.
    fn start(&mut self, slot: usize) -> Result<u64, TypedError> {
        if let (Some(offset), false) = (self.layout.slots()[slot].offset, self.layout.is_linked()) {
            return Ok(offset as u64);
        }
        let Position { at, lengths } = &mut self.position;
        for passed in &self.layout.slots()[lengths.len()..slot] {
            *at = passed.end(self.bytes, *at, lengths).map_err(TypedError::short)?;
        }
        Ok(*at + self.layout.slots()[slot].padding as u64)
    }
}

impl<'de> MapAccess<'de> for StructFields<'_, '_, 'de> {
    type Error = TypedError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, TypedError> {
        let map = &self.maps[self.map];
        let Some(wanted) = map.wanted.get(self.next) else { return Ok(None) };
        // A derived struct accepts the position of a field in place of its name.
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
            Len::Field(field) => Some(self.position.lengths.get(field).copied().unwrap_or(0)),
            Len::Counted => {
                let count = U32Le::first(bytes).ok_or_else(|| TypedError::short(at))?;
                bytes = &bytes[4..];
                Some(count.get().into())
            }
        };
        let reader = FieldReader { maps: self.maps, element: (&slot.element).into(), count, bytes };
        let field = &self.layout.schema().fields[wanted.slot];
        seed.deserialize(reader).map_err(|error| error.within(&field.name, &field.source_type))
    }
}

/// Elements of a list.
struct Elements<'m, 'l, 'de> {
    maps: &'m mut Vec<FieldMap>,
    element: Content<'l>,
    bytes: &'de [u8],
    next: u64,
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

/// Deserializer for a value that was decoded.
pub(super) struct ValueReader<'a>(pub(super) &'a Value);

impl<'de> Deserializer<'de> for ValueReader<'_> {
    type Error = TypedError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypedError> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Int(value, _) => visitor.visit_i64(*value),
            Value::UInt(value, _) => visitor.visit_u64(*value),
            Value::F32(value) => visitor.visit_f32(*value),
            Value::F64(value) => visitor.visit_f64(*value),
            Value::Text(text) => visitor.visit_str(text),
            Value::Bytes(bytes) => visitor.visit_bytes(bytes),
            Value::List(items) => visitor.visit_seq(SeqDeserializer::new(items.iter().map(ValueReader))),
            Value::Struct(fields) => {
                let fields = fields.iter().map(|(name, value)| (&**name, ValueReader(value)));
                visitor.visit_map(MapDeserializer::new(fields))
            }
        }
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypedError> {
        match self.0 {
            Value::F64(_) => Err(mismatch("float64", "f32")),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypedError> {
        if self.0 == &Value::Null { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f64 char str string bytes byte_buf unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl serde_core::de::IntoDeserializer<'_, TypedError> for ValueReader<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}
