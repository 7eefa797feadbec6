//! The description itself: fields, what they consist of, and how they are put together.

use std::sync::Arc;

use super::text::{TextDecoder, TextDecoding};
use crate::schema::ValueNames;
use crate::{Field, FieldType, Scalar, Schema};

/// The fields of one type of record, and where their bytes are.
#[derive(Debug, PartialEq)]
pub struct Layout {
    pub(super) schema: Arc<Schema>,
    pub(super) slots: Vec<Slot>,
    /// How to pass a record without decoding it.
    pub(super) steps: Vec<Step>,
    /// Bytes of the smallest record, without [`tail`](Self::tail).
    pub(super) min_size: u64,
    /// Whether all records are that long.
    pub(super) is_fixed: bool,
    /// Bytes of padding behind the last field: part of a struct that is a field, not of a record.
    pub(super) tail: u64,
    /// Values in a record whose lists are empty.
    pub(super) values: u64,
    /// Whether there are lists of values without bytes: their counts are bounded by nothing in the
    /// record.
    pub(super) is_hollow: bool,
    /// Whether the number of elements of some field is in another field.
    pub(super) is_linked: bool,
}

/// Where one field is, and what it consists of.
#[derive(Debug, PartialEq)]
#[non_exhaustive]
pub struct Slot {
    /// Bytes of padding before it.
    pub padding: usize,
    /// The offset of its first byte in the record; `None` behind a field of variable length.
    pub offset: Option<usize>,
    /// What one element is.
    pub element: Element,
    /// How many elements there are.
    pub len: Len,
}

/// How many elements a field has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Len {
    /// One: no array.
    One,
    /// So many, in every record.
    Fixed(u32),
    /// As many as the 32 bits before the first one say.
    Counted,
    /// As many as an earlier field of integers says, by its number.
    Field(usize),
}

/// What one element of a field is. All numbers are little-endian.
#[derive(Clone, Debug, PartialEq)]
pub enum Element {
    /// A number, or a truth value of one byte: any but 0 is true.
    Scalar(Scalar),
    /// A truth value of four bytes: any number but 0 is true.
    WideBool,
    /// An unsigned number of 8 bits; an array of these are bytes without fields of their own.
    Byte,
    /// So many bytes that are not taken apart; all of the field are bytes.
    Packed(u32),
    /// A byte of text; all of the field are one text, which ends at the first NUL.
    Char(TextDecoder),
    /// Seconds and nanoseconds of the Unix clock, each 32 bits without sign.
    Time,
    /// Seconds and nanoseconds, each 32 bits with sign.
    Duration,
    /// A length of 32 bits and as many bytes of text.
    Text(TextDecoder),
    /// The fields of another type.
    Struct(Arc<Layout>),
}

/// Type of a field of a declared structure, as a field of a layout.
pub trait Declared {
    /// Type of one element.
    const ELEMENT: Element;
    /// Number of elements.
    const LEN: Len;
}

/// Lists the fields of a declared structure for a [`Layout`], in order, with the units that the
/// specification names. The list is checked: a field that is missing does not compile.
///
/// ```
/// use rovelog_core::layout::DeclaredField;
/// use rovelog_core::wire::{F32Le, U16Le};
///
/// struct Engine {
///     rpm: U16Le,
///     throttle: F32Le,
/// }
///
/// const FIELDS: &[DeclaredField] = rovelog_core::declared_fields!(Engine { rpm: "1/min", throttle });
/// ```
#[macro_export]
macro_rules! declared_fields {
    ($name:ident { $($field:ident $(: $unit:literal)?),* $(,)? }) => {{
        const _: fn(&$name) = |all| {
            let $name { $($field: _),* } = all;
        };
        &[$($crate::layout::DeclaredField::of(stringify!($field), concat!($($unit)?), |all: &$name| &all.$field)),*]
    }};
}

/// A field of a declared structure.
#[derive(Debug)]
pub struct DeclaredField {
    name: &'static str,
    element: Element,
    len: Len,
    unit: &'static str,
}

impl DeclaredField {
    /// Returns a field of type `T`; its unit may be empty.
    pub const fn new<T: Declared>(name: &'static str, unit: &'static str) -> Self {
        Self { name, element: T::ELEMENT, len: T::LEN, unit }
    }

    /// Returns the field of structure `S` that the function selects.
    #[doc(hidden)]
    pub const fn of<S, T: Declared>(name: &'static str, unit: &'static str, _: fn(&S) -> &T) -> Self {
        Self::new::<T>(name, unit)
    }

    /// Returns a list whose number of elements is in an earlier field, given by its position.
    #[must_use]
    pub const fn counted_by(mut self, field: usize) -> Self {
        self.len = Len::Field(field);
        self
    }
}

impl Declared for u8 {
    const ELEMENT: Element = Element::Byte;
    const LEN: Len = Len::One;
}

impl<T: Declared, const N: usize> Declared for [T; N] {
    const ELEMENT: Element = T::ELEMENT;
    #[expect(clippy::cast_possible_truncation, reason = "no structure of a specification is that long")]
    const LEN: Len = Len::Fixed(N as u32);
}

/// How to pass a field without decoding it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// So many bytes.
    Pass(u64),
    /// A count, then so many bytes for each.
    Counted(u64),
    /// Texts: as many, or as many as the count says.
    Texts(Option<u32>),
    /// Values of another type, likewise.
    Each(Option<u32>, Arc<Layout>),
}

impl Element {
    /// Returns the number of bytes of one element; `None` where they differ.
    pub fn size(&self) -> Option<u64> {
        match self {
            Self::Scalar(scalar) => Some(scalar.size() as u64),
            Self::Byte | Self::Char(_) => Some(1),
            Self::Packed(bytes) => Some((*bytes).into()),
            Self::WideBool => Some(4),
            Self::Time | Self::Duration => Some(8),
            Self::Text(_) => None,
            Self::Struct(layout) => layout.full_size(),
        }
    }

    /// Returns the number of bytes of the smallest element.
    pub(super) fn min_size(&self) -> u64 {
        match self {
            Self::Text(_) => 4,
            Self::Struct(layout) => layout.min_size.saturating_add(layout.tail),
            other => other.size().unwrap_or(0),
        }
    }

    /// Values that one element is made of, lists being empty.
    pub(super) fn values(&self) -> u64 {
        if let Self::Struct(layout) = self { layout.values.saturating_add(1) } else { 1 }
    }

    /// Returns the type of a field of so many elements.
    fn field_type(&self, len: Len) -> FieldType {
        let one = match self {
            Self::Char(_) => return FieldType::Text,
            Self::Byte if len != Len::One => return FieldType::Bytes,
            Self::Packed(_) => return FieldType::Bytes,
            Self::Byte => FieldType::Scalar(Scalar::UInt8),
            Self::Scalar(scalar) => FieldType::Scalar(*scalar),
            Self::WideBool => FieldType::Scalar(Scalar::Bool),
            Self::Time => FieldType::Time,
            Self::Duration => FieldType::Duration,
            Self::Text(_) => FieldType::Text,
            Self::Struct(layout) => FieldType::Struct(Arc::clone(&layout.schema)),
        };
        match len {
            Len::One => one,
            Len::Fixed(len) => FieldType::Array(Box::new(one), usize::try_from(len).unwrap_or(usize::MAX)),
            Len::Counted | Len::Field(_) => FieldType::List(Box::new(one)),
        }
    }
}

impl Layout {
    /// Returns a layout whose type has this name, without fields yet.
    pub fn builder(name: impl Into<String>) -> Builder {
        let schema = Schema { name: name.into(), fields: Vec::new() };
        Builder {
            fields: Vec::new(),
            decoding: None,
            layout: Self {
                schema: Arc::new(schema),
                slots: Vec::new(),
                steps: Vec::new(),
                min_size: 0,
                is_fixed: true,
                tail: 0,
                values: 0,
                is_hollow: false,
                is_linked: false,
            },
        }
    }

    /// Returns the fields, in the words of all formats.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// Returns the fields with their places, in the order of their bytes: that of the schema.
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// Returns the fields of the schema, each with its place.
    pub fn fields(&self) -> impl Iterator<Item = (&Field, &Slot)> {
        self.schema.fields.iter().zip(&self.slots)
    }

    /// Returns the number of bytes of every record, padding behind the last field left out; `None`
    /// where they differ.
    pub fn size(&self) -> Option<u64> {
        self.is_fixed.then_some(self.min_size)
    }

    /// Returns the number of bytes of a struct that is a field, all padding included; `None` where
    /// they differ.
    pub(crate) fn full_size(&self) -> Option<u64> {
        self.size().map(|size| size.saturating_add(self.tail))
    }

    /// Returns the number of bytes of padding behind the last field of a struct that is a field.
    #[cfg(feature = "arrow")]
    pub(crate) fn tail(&self) -> usize {
        usize::try_from(self.tail).unwrap_or(usize::MAX)
    }

    /// Returns whether the number of elements of some field is in another field.
    pub(crate) fn is_linked(&self) -> bool {
        self.is_linked
    }

    /// Returns the number of bytes of the smallest record.
    pub fn min_size(&self) -> u64 {
        self.min_size
    }

    /// Returns the number of values in a record whose lists are empty.
    pub fn values(&self) -> u64 {
        self.values
    }
}

/// A [`Layout`] in the making: fields in the order of their bytes.
#[derive(Debug)]
pub struct Builder {
    fields: Vec<Field>,
    /// How texts are decoded; `None` leaves it to their elements.
    decoding: Option<TextDecoding>,
    layout: Layout,
}

impl Builder {
    /// Decodes the texts of all fields by `decoding`, which counts those that are escaped.
    #[must_use]
    pub fn with_text_decoding(mut self, decoding: &TextDecoding) -> Self {
        self.decoding = Some(decoding.clone());
        self
    }

    /// Adds bytes that belong to no field.
    pub fn padding(&mut self, bytes: u64) {
        self.layout.tail = self.layout.tail.saturating_add(bytes);
    }

    /// Adds the fields of a declared structure; `spelled` gives their types as the log spells them.
    pub fn declared(&mut self, fields: &[DeclaredField], spelled: impl Fn(&Element, Len) -> String) {
        for DeclaredField { name, element, len, unit } in fields {
            self.field(*name, element.clone(), *len, spelled(element, *len));
            if !unit.is_empty() {
                self.unit(*unit);
            }
        }
    }

    /// Adds a field; `source_type` is its type as the log spells it. A length in an earlier field
    /// is the number of that field.
    pub fn field(&mut self, name: impl Into<Arc<str>>, mut element: Element, len: Len, source_type: String) {
        let name: Arc<str> = name.into();
        if let (Some(decoding), Element::Text(decoder) | Element::Char(decoder)) =
            (&self.decoding, &mut element)
        {
            *decoder = decoding.decoder(&self.layout.schema.name, &name);
        }
        self.fields.push(Field::new(name, element.field_type(len), source_type));
        let layout = &mut self.layout;
        let padding = std::mem::take(&mut layout.tail);
        layout.pass(padding);
        layout.min_size = layout.min_size.saturating_add(padding);
        let index = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
        let offset = layout.size().map(index);
        layout.take(Slot { padding: index(padding), offset, element, len });
    }

    /// Sets the unit of the field that was added last.
    pub fn unit(&mut self, unit: impl Into<String>) {
        if let Some(field) = self.fields.last_mut() {
            field.unit = Some(unit.into());
        }
    }

    /// Sets the names of the values of the field that was added last.
    pub fn names(&mut self, names: ValueNames) {
        if let Some(field) = self.fields.last_mut() {
            field.names = Some(names);
        }
    }

    /// Returns the fields so far, with their places.
    pub fn slots(&self) -> &[Slot] {
        &self.layout.slots
    }

    /// Returns the number of a field by its name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| *field.name == *name)
    }

    /// Returns the layout.
    pub fn finish(self) -> Layout {
        let Self { fields, mut layout, .. } = self;
        layout.schema = Arc::new(Schema { name: layout.schema.name.clone(), fields });
        layout
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{fixed, named, point, type_of};
    use super::*;

    #[test]
    fn an_element_has_a_type_and_a_size() {
        let (point, named) = (point(), named());
        let scalar = FieldType::Scalar;
        let schema = |layout: &Arc<Layout>| FieldType::Struct(Arc::clone(&layout.schema));
        let (point_type, named_type) = (schema(&point), schema(&named));
        for (element, one, size, min_size) in [
            (Element::Scalar(Scalar::Int16), scalar(Scalar::Int16), Some(2), 2),
            (Element::WideBool, scalar(Scalar::Bool), Some(4), 4),
            (Element::Time, FieldType::Time, Some(8), 8),
            (Element::Duration, FieldType::Duration, Some(8), 8),
            (Element::Text(TextDecoder::UTF8), FieldType::Text, None, 4),
            (Element::Struct(point), point_type, Some(6), 6),
            (Element::Struct(named), named_type, None, 7),
        ] {
            assert_eq!((element.size(), element.min_size()), (size, min_size), "{element:?}");
            assert_eq!(element.field_type(Len::One), one);
            assert_eq!(element.field_type(Len::Fixed(3)), FieldType::Array(Box::new(one.clone()), 3));
            for len in [Len::Counted, Len::Field(0)] {
                assert_eq!(element.field_type(len), FieldType::List(Box::new(one.clone())));
            }
        }
        // Arrays of these are one value.
        for len in [Len::Fixed(3), Len::Counted, Len::Field(0)] {
            let types = [Element::Byte, Element::Packed(5), Element::Char(TextDecoder::UTF8)]
                .map(|one| one.field_type(len));
            assert_eq!(types, [FieldType::Bytes, FieldType::Bytes, FieldType::Text]);
        }
        let types = [Element::Byte, Element::Packed(5), Element::Char(TextDecoder::UTF8)]
            .map(|one| one.field_type(Len::One));
        assert_eq!(types, [scalar(Scalar::UInt8), FieldType::Bytes, FieldType::Text]);
        let sizes =
            [Element::Byte, Element::Packed(5), Element::Char(TextDecoder::UTF8)].map(|one| one.size());
        assert_eq!(sizes, [Some(1), Some(5), Some(1)]);
    }

    #[test]
    fn padding_is_before_a_field_or_behind_all() {
        let layout = point();
        let places: Vec<_> =
            layout.fields().map(|(field, slot)| (&*field.name, slot.padding, slot.offset)).collect();
        assert_eq!(places, [("a", 0, Some(0)), ("b", 1, Some(3))]);
        assert_eq!((layout.size(), layout.full_size(), layout.min_size()), (Some(4), Some(6), 4));
        assert_eq!((layout.values(), layout.schema().name.as_str()), (2, "point"));
        let offsets: Vec<_> = named().slots().iter().map(|slot| slot.offset).collect();
        assert_eq!((offsets, named().size(), named().full_size()), (vec![Some(0), None], None, None));
        let outer = type_of(&[("p", Element::Struct(layout), Len::Fixed(2)), ("n", Element::Byte, Len::One)]);
        assert_eq!((outer.slots()[1].offset, outer.size(), outer.values()), (Some(12), Some(13), 8));
    }

    #[cfg(feature = "arrow")]
    #[test]
    fn columns_know_padding_and_lengths_in_other_fields() {
        assert_eq!((point().tail(), type_of(&[]).tail()), (2, 0));
        let number = || Element::Scalar(Scalar::UInt16);
        assert!(type_of(&[("n", number(), Len::One), ("list", number(), Len::Field(0))]).is_linked());
        assert!(!point().is_linked());
    }

    #[test]
    fn a_declared_structure_has_its_units_and_lengths() {
        let fields = [
            DeclaredField::new::<u8>("count", ""),
            DeclaredField::new::<[u8; 3]>("bytes", "m"),
            DeclaredField::new::<u8>("more", "").counted_by(0),
        ];
        let mut builder = Layout::builder("declared");
        builder.declared(&fields, |element, len| format!("{element:?} {len:?}"));
        let layout = builder.finish();
        let fields: Vec<_> = layout
            .fields()
            .map(|(field, slot)| (&*field.name, field.source_type.as_str(), field.unit.as_deref(), slot.len))
            .collect();
        let expected = [
            ("count", "Byte One", None, Len::One),
            ("bytes", "Byte Fixed(3)", Some("m"), Len::Fixed(3)),
            ("more", "Byte Field(0)", None, Len::Field(0)),
        ];
        assert_eq!(fields, expected);
    }

    #[test]
    fn units_and_names_are_those_of_the_last_field() {
        let (mut builder, values) = fixed();
        builder.unit("m");
        builder.names(&[(1, "one")]);
        assert_eq!((builder.find("n"), builder.find("x"), builder.find("none")), (Some(0), Some(11), None));
        assert_eq!(builder.slots().len(), values.len());
        assert_eq!((builder.slots()[1].padding, builder.slots()[1].offset), (3, Some(5)));
        let layout = builder.finish();
        let last = layout.schema().fields.last().unwrap();
        assert_eq!((last.unit.as_deref(), last.name_of(1)), (Some("m"), Some("one")));
        assert_eq!(
            (layout.schema().fields[0].unit.as_ref(), layout.schema().fields.len()),
            (None, values.len())
        );
    }
}
