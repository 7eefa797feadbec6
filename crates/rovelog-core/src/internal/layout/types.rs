//! Layouts of record types, and the builder that creates a layout.

use std::sync::Arc;

use super::text::{TextDecoder, TextDecoding};
use crate::schema::ValueNames;
use crate::{Field, FieldType, Scalar, Schema};

/// The fields of a record type, with the positions of their bytes in a record.
#[derive(Debug, PartialEq)]
pub struct Layout {
    /// Names and types of the fields.
    pub(super) schema: Arc<Schema>,
    /// Positions and elements of the fields, in the order of `schema`.
    pub(super) slots: Vec<Slot>,
    /// Steps that find the end of a record without decoding it.
    pub(super) steps: Vec<Step>,
    /// Size in bytes of the smallest record, without the padding after the last field.
    pub(super) min_size: u64,
    /// True if all records have the size `min_size`.
    pub(super) is_fixed: bool,
    /// Number of bytes of padding after the last field. A nested struct contains this padding, but
    /// a record does not.
    pub(super) tail: u64,
    /// Number of values in a record if all of its lists are empty.
    pub(super) values: u64,
    /// True if the type has lists whose elements have no bytes, such as structs without fields. The
    /// size of a record does not limit the number of elements in such a list.
    pub(super) is_hollow: bool,
    /// True if the value of a field is the number of elements of another field.
    pub(super) is_linked: bool,
}

/// Position of a field in a record, and the type of its elements.
#[derive(Debug, PartialEq)]
#[non_exhaustive]
pub struct Slot {
    /// Number of bytes of padding before the field.
    pub padding: usize,
    /// Offset of the field's first byte in the record. `None` if a field of variable size comes
    /// before this field.
    pub offset: Option<usize>,
    /// Type of one element of the field.
    pub element: Element,
    /// Number of elements in the field.
    pub len: Len,
    /// True if the value of this field is the number of elements of a later field.
    pub(super) is_length: bool,
}

/// Number of elements in a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Len {
    /// A single element. The field is not an array.
    One,
    /// An array with this number of elements in every record.
    Fixed(u32),
    /// A list whose number of elements is stored as 32 bits before its first element.
    Counted,
    /// A list whose number of elements is the value of an earlier integer field. The argument is
    /// the index of this earlier field in the layout.
    Field(usize),
}

/// Type of one element of a field. All numbers are little-endian.
#[derive(Clone, Debug, PartialEq)]
pub enum Element {
    /// A number, or a Boolean of one byte. In a Boolean, any byte other than 0 is true.
    Scalar(Scalar),
    /// A Boolean of four bytes. Any number other than 0 is true.
    WideBool,
    /// A number that may be missing. A byte precedes the number and is 0 if the number is missing.
    /// This type is only for single fields of records that a format computes. Such records have no
    /// Arrow columns.
    #[doc(hidden)]
    Optional(Scalar),
    /// An unsigned 8-bit integer. An array of such integers is a value of the type bytes.
    Byte,
    /// A group of bytes without further structure. The argument is the number of bytes. An array of
    /// such groups is a value of the type bytes.
    Packed(u32),
    /// A byte of a text. An array of such bytes is a text, which ends at the first NUL.
    Char(TextDecoder),
    /// A point in time on the Unix clock, as unsigned seconds and nanoseconds of 32 bits each.
    Time,
    /// A duration, as signed seconds and nanoseconds of 32 bits each.
    Duration,
    /// A text. Its length is stored as 32 bits before the text.
    Text(TextDecoder),
    /// A struct with the fields of another type.
    Struct(Arc<Layout>),
}

/// A Rust type that can be the type of a field in a declared structure.
pub trait Declared {
    /// Type of one element of the field.
    const ELEMENT: Element;
    /// Number of elements of the field.
    const LEN: Len;
}

/// Lists the fields of a declared structure for a [`Layout`], in order, with the units that the
/// specification states. If a field of the structure is missing in the list, the code does not
/// compile.
///
/// ```
/// use rovelog_core::internal::layout::DeclaredField;
/// use rovelog_core::internal::wire::{F32Le, U16Le};
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
        &[$($crate::internal::layout::DeclaredField::of(stringify!($field), concat!($($unit)?), |all: &$name| &all.$field)),*]
    }};
}

/// Description of a field in a declared structure, from which a layout is created.
#[derive(Debug)]
pub struct DeclaredField {
    /// Name of the field.
    name: &'static str,
    /// Type of one element of the field.
    element: Element,
    /// Number of elements in the field.
    len: Len,
    /// Unit of the field's values. Empty if they have no unit.
    unit: &'static str,
}

impl DeclaredField {
    /// Creates a field of the Rust type `T`. The unit may be empty.
    pub const fn new<T: Declared>(name: &'static str, unit: &'static str) -> Self {
        Self { name, element: T::ELEMENT, len: T::LEN, unit }
    }

    /// Creates a field of the structure `S`. The function argument selects the field, which
    /// determines its type. The function is not called.
    #[doc(hidden)]
    pub const fn of<S, T: Declared>(name: &'static str, unit: &'static str, _: fn(&S) -> &T) -> Self {
        Self::new::<T>(name, unit)
    }

    /// Makes the field a list. Its number of elements is the value of an earlier field, whose index
    /// is `field`.
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

/// A step of the search for the end of a record. Adjacent fields of fixed size share one step.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// Skip this number of bytes.
    Skip(u64),
    /// Read a 32-bit count, then skip this number of bytes for each element.
    Counted(u64),
    /// Skip several texts, each of which stores its length. If the number of texts is `None`, it is
    /// read from the record.
    Texts(Option<u32>),
    /// Skip several structs of variable size. If the number of structs is `None`, it is read from
    /// the record.
    Structs(Option<u32>, Arc<Layout>),
}

impl Element {
    /// Returns the size of an element in bytes. Returns `None` if elements have different sizes.
    pub fn size(&self) -> Option<u64> {
        match self {
            Self::Scalar(scalar) => Some(scalar.size() as u64),
            Self::Byte | Self::Char(_) => Some(1),
            Self::Packed(bytes) => Some((*bytes).into()),
            Self::WideBool => Some(4),
            Self::Optional(scalar) => Some(1 + scalar.size() as u64),
            Self::Time | Self::Duration => Some(8),
            Self::Text(_) => None,
            Self::Struct(layout) => layout.full_size(),
        }
    }

    /// Returns the size in bytes of the smallest possible element.
    pub(super) fn min_size(&self) -> u64 {
        match self {
            Self::Text(_) => 4,
            Self::Struct(layout) => layout.min_size.saturating_add(layout.tail),
            other => other.size().unwrap_or(0),
        }
    }

    /// Returns the number of values in an element if all of its lists are empty.
    pub(super) fn values(&self) -> u64 {
        if let Self::Struct(layout) = self { layout.values.saturating_add(1) } else { 1 }
    }

    /// Returns the schema type of a field whose elements have this type. `len` is the number of
    /// elements.
    fn field_type(&self, len: Len) -> FieldType {
        let one = match self {
            Self::Char(_) => return FieldType::Text,
            Self::Byte if len != Len::One => return FieldType::Bytes,
            Self::Packed(_) => return FieldType::Bytes,
            Self::Byte => FieldType::Scalar(Scalar::UInt8),
            Self::Scalar(scalar) | Self::Optional(scalar) => FieldType::Scalar(*scalar),
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
    /// Creates a builder for a record type. `name` is the name of the type.
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

    /// Returns a layout for records that cannot be decoded. Its single field has the name `name`
    /// and contains the bytes of the record.
    pub fn of_bytes(name: &str) -> Arc<Self> {
        let mut builder = Self::builder(name);
        builder.field(name, Element::Byte, Len::Counted, String::new());
        Arc::new(builder.finish())
    }

    /// Returns the names and types of the fields.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// Returns the positions of the fields, in the order of the schema.
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// Returns the fields of the schema, each with its position.
    #[inline]
    pub fn fields(&self) -> impl Iterator<Item = (&Field, &Slot)> {
        self.schema.fields.iter().zip(&self.slots)
    }

    /// Returns the size of a record in bytes, without padding after the last field. Returns `None`
    /// if records have different sizes.
    pub fn size(&self) -> Option<u64> {
        self.is_fixed.then_some(self.min_size)
    }

    /// Returns the size in bytes of a nested struct, including all padding. Returns `None` if
    /// structs of this type have different sizes.
    pub(crate) fn full_size(&self) -> Option<u64> {
        self.size().map(|size| size.saturating_add(self.tail))
    }

    /// Returns the number of bytes of padding after the last field of a nested struct.
    #[cfg(feature = "arrow")]
    pub(crate) fn tail(&self) -> usize {
        usize::try_from(self.tail).unwrap_or(usize::MAX)
    }

    /// Returns whether the value of a field is the number of elements of another field.
    pub(crate) fn is_linked(&self) -> bool {
        self.is_linked
    }

    /// Returns the size in bytes of the smallest possible record.
    pub fn min_size(&self) -> u64 {
        self.min_size
    }

    /// Returns the number of values in a record if all of its lists are empty.
    pub fn values(&self) -> u64 {
        self.values
    }
}

/// Builder of a [`Layout`]. Fields are added in the order of their bytes.
#[derive(Debug)]
pub struct Builder {
    /// Fields that have been added.
    fields: Vec<Field>,
    /// Text decoding for all fields. If it is `None`, each element uses its own decoder.
    decoding: Option<TextDecoding>,
    /// Layout of the fields that have been added. Its schema is empty until
    /// [`finish`](Self::finish).
    layout: Layout,
}

impl Builder {
    /// Sets the text decoding for all fields. It also counts texts with escaped bytes.
    #[must_use]
    pub fn with_text_decoding(mut self, decoding: &TextDecoding) -> Self {
        self.decoding = Some(decoding.clone());
        self
    }

    /// Adds `bytes` bytes of padding, which belong to no field.
    pub fn padding(&mut self, bytes: u64) {
        self.layout.tail = self.layout.tail.saturating_add(bytes);
    }

    /// Adds the fields of a declared structure. `spelled` returns the type of a field as a log
    /// would spell it.
    pub fn declared(&mut self, fields: &[DeclaredField], spelled: impl Fn(&Element, Len) -> String) {
        for DeclaredField { name, element, len, unit } in fields {
            self.field(*name, element.clone(), *len, spelled(element, *len));
            if !unit.is_empty() {
                self.unit(*unit);
            }
        }
    }

    /// Adds a field. `source_type` is the type of the field as spelled in the log. If `len` is
    /// [`Len::Field`], its number is the index of an earlier field.
    pub fn field(&mut self, name: impl Into<Arc<str>>, mut element: Element, len: Len, source_type: String) {
        let name: Arc<str> = name.into();
        if let (Some(decoding), Element::Text(decoder) | Element::Char(decoder)) =
            (&self.decoding, &mut element)
        {
            *decoder = decoding.decoder(&self.layout.schema.name, &name);
        }
        self.fields.push(Field::new(name, element.field_type(len), source_type));
        let layout = &mut self.layout;
        // Padding after the last field becomes padding before the new field.
        let padding = std::mem::take(&mut layout.tail);
        layout.skip(padding);
        // Definitions in a log can describe types of any size, so all additions saturate.
        layout.min_size = layout.min_size.saturating_add(padding);
        let index = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
        // After a field of variable size, the offset of a field differs between records.
        let offset = layout.size().map(index);
        if let Len::Field(length) = len
            && let Some(length) = layout.slots.get_mut(length)
        {
            length.is_length = true;
        }
        layout.take(Slot { padding: index(padding), offset, element, len, is_length: false });
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

    /// Returns the positions of the fields that have been added.
    pub fn slots(&self) -> &[Slot] {
        &self.layout.slots
    }

    /// Returns the index of the field with the name `name`.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| *field.name == *name)
    }

    /// Returns the layout of all fields that have been added.
    pub fn finish(self) -> Layout {
        let Self { mut fields, mut layout, .. } = self;
        // A log may have thousands of small layouts, which are kept as long as the log is open.
        fields.shrink_to_fit();
        layout.slots.shrink_to_fit();
        layout.steps.shrink_to_fit();
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
        // An array of bytes or characters is a single value.
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
    fn padding_precedes_a_field_or_ends_the_struct() {
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
    fn layouts_report_trailing_padding_and_linked_lengths() {
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
    fn units_and_names_apply_to_the_last_field() {
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
