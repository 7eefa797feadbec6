//! Reading single fields of a record without decoding the other fields.
//!
//! [`Layout::place`] resolves a flat name to an offset and a type. For example, `points` is an
//! array of structs at offset 31, each struct has 6 bytes, and the field `b` of the struct is at
//! offset 3. The name `points[2].b` then has the offset 31 + 2 * 6 + 3 = 46. [`Row::read`] reads
//! the field of any record at this offset.

use super::scalar::{Number, scalar_value};
use super::types::{Element, Layout, Len};
use crate::internal::text::up_to_nul;
use crate::{Scalar, Value};

/// The bytes of a record together with their layout.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// Layout of the record.
    layout: &'a Layout,
    /// Bytes of the record.
    bytes: &'a [u8],
}

/// The position and type of a field. A caller looks them up once and uses them for all records of
/// the topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Offset of the field's first byte in a record.
    offset: usize,
    /// Type of an element, or `None` if the field is a text.
    scalar: Option<Scalar>,
    /// Number of elements in an array, or number of bytes in a text. `None` if the field is a
    /// single element.
    len: Option<usize>,
}

impl Place {
    /// Returns whether the field is a single value of type `scalar`.
    pub fn is_scalar(&self, scalar: Scalar) -> bool {
        self.scalar == Some(scalar) && self.len.is_none()
    }

    /// Returns the offset of the field's first byte in a record.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Returns the type of an element, or `None` if the field is a text.
    pub fn scalar(&self) -> Option<Scalar> {
        self.scalar
    }

    /// Returns the number of elements in an array, or the number of bytes in a text. Returns `None`
    /// if the field is a single element.
    pub fn elements(&self) -> Option<usize> {
        self.len
    }
}

impl Layout {
    /// Finds a field by its flat name, such as `x`, `q` (the whole array), `q[2]`, `esc[3].esc_rpm`
    /// or `pos.x`.
    ///
    /// Returns `None` if the name denotes a whole struct, or a field after a field of variable
    /// size.
    pub fn place(&self, path: &str) -> Option<Place> {
        self.locate(path).map(|(place, _)| place)
    }

    /// Returns the position of a field and the type of its elements.
    fn locate(&self, path: &str) -> Option<(Place, &Element)> {
        let (mut layout, mut base, mut rest) = (self, 0, path);
        // Each iteration goes one level deeper, so the number of iterations is limited by the
        // nesting depth of the layout.
        loop {
            let named = |name: &str| layout.schema.fields.iter().position(|field| *field.name == *name);
            // The name of a field may look like a path, such as `x.y` or `x[1]`.
            let (field, index, tail) = if let Some(field) = named(rest) {
                (field, None, None)
            } else {
                let (step, tail) = match rest.split_once('.') {
                    Some((step, tail)) => (step, Some(tail)),
                    None => (rest, None),
                };
                let (name, index) = match step.split_once('[') {
                    Some((name, index)) => (name, Some(index.strip_suffix(']')?.parse::<usize>().ok()?)),
                    None => (step, None),
                };
                (named(name)?, index, tail)
            };
            let slot = &layout.slots[field];
            let mut offset = base + slot.offset?;
            let mut len = match slot.len {
                Len::One => None,
                Len::Fixed(len) => Some(usize::try_from(len).ok()?),
                Len::Counted | Len::Field(_) => return None,
            };
            if let Some(index) = index {
                // A single byte of a text is not a field.
                if index >= len? || matches!(slot.element, Element::Char(_)) {
                    return None;
                }
                offset += index * usize::try_from(slot.element.size()?).ok()?;
                len = None;
            }
            let scalar = match (&slot.element, tail) {
                (Element::Struct(inner), Some(tail)) if len.is_none() => {
                    (layout, base, rest) = (inner, offset, tail);
                    continue;
                }
                (Element::Scalar(scalar), None) => Some(*scalar),
                (Element::Byte, None) => Some(Scalar::UInt8),
                (Element::Char(_), None) => None,
                _ => return None,
            };
            return Some((Place { offset, scalar, len }, &slot.element));
        }
    }
}

impl<'a> Row<'a> {
    /// Creates a row. `bytes` must match the layout.
    pub fn new(layout: &'a Layout, bytes: &'a [u8]) -> Self {
        Self { layout, bytes }
    }

    /// Returns the layout of the record.
    pub fn layout(&self) -> &'a Layout {
        self.layout
    }

    /// Returns the bytes of the record, including padding.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Reads a single number or Boolean. Returns `None` if the field is an array, or if its type is
    /// not `T`.
    #[inline]
    pub fn read<T: Number>(&self, place: Place) -> Option<T> {
        if place.scalar != Some(T::SCALAR) || place.len.is_some() {
            return None;
        }
        T::from_wire(self.bytes.get(place.offset..)?)
    }

    /// Reads the elements of an array. Returns `None` if the field is not an array, or if its
    /// elements do not have the type `T`.
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

    /// Returns the bytes of a text before the first NUL. Returns `None` if the field is not a text.
    pub fn text_bytes(&self, place: Place) -> Option<&'a [u8]> {
        if place.scalar.is_some() {
            return None;
        }
        let bytes = self.bytes.get(place.offset..place.offset + place.len.unwrap_or(1))?;
        Some(up_to_nul(bytes))
    }

    /// Finds a field by its flat name and returns its value. The value can be a struct or an array.
    ///
    /// To read the same field of many records, find the field once with [`Layout::place`] and use
    /// [`read`](Self::read).
    pub fn get(&self, name: &str) -> Option<Value> {
        if let Some((place, element)) = self.layout.locate(name) {
            let at = self.bytes.get(place.offset..)?;
            let one = |scalar: Scalar, bytes: &[u8]| scalar_value(scalar, bytes);
            if let Element::Char(text) = element {
                let bytes = up_to_nul(at.get(..place.len.unwrap_or(1))?);
                return Some(Value::Text(text.decode(bytes).into_owned()));
            }
            let scalar = place.scalar?;
            return Some(match place.len {
                None => one(scalar, at.get(..scalar.size())?),
                Some(len) => {
                    let bytes = at.get(..len * scalar.size())?;
                    Value::List(bytes.chunks(scalar.size()).map(|bytes| one(scalar, bytes)).collect())
                }
            });
        }
        // The field has no fixed offset or is a struct, so it is decoded to a value.
        let field = self.layout.schema.fields.iter().position(|field| *field.name == *name)?;
        self.layout.field_value(field, self.bytes).ok()
    }

    /// Decodes all fields to a [`Value::Struct`]. Returns [`Value::Null`] if the record ends before
    /// its last field.
    pub fn value(&self) -> Value {
        self.layout.value(self.bytes).map_or(Value::Null, |(value, _)| value)
    }

    /// Returns the record as JSON on one line. See [`Value`] for the representation of numbers.
    pub fn to_json(&self) -> String {
        self.value().to_json()
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{point, point_of, record};
    use super::super::{Element, Layout, Len, Row, TextDecoder};
    use crate::{Scalar, Value};

    /// Returns a layout that has the fields of the sample record, with other fields before them.
    /// Some field names look like paths.
    fn layout() -> Layout {
        let mut builder = Layout::builder("row");
        let float = Element::Scalar(Scalar::Float32);
        let points = Element::Struct(point());
        for (name, element, len) in [
            ("t", Element::Scalar(Scalar::UInt64), Len::One),
            ("q", float.clone(), Len::Fixed(4)),
            ("label", Element::Char(TextDecoder::UTF8), Len::Fixed(4)),
            ("letter", Element::Char(TextDecoder::UTF8), Len::One),
            ("raw", Element::Byte, Len::Fixed(2)),
            ("points", points.clone(), Len::Fixed(3)),
            ("point", points, Len::One),
            ("q[9]", Element::Byte, Len::One),
            ("a.b", Element::Byte, Len::One),
            ("a", Element::Byte, Len::One),
            ("time", Element::Time, Len::One),
            ("list", float.clone(), Len::Counted),
            ("behind", float, Len::One),
        ] {
            builder.field(name, element, len, String::new());
        }
        builder.finish()
    }

    #[test]
    fn a_field_is_found_by_its_flat_name() {
        let layout = layout();
        let place = |name: &str| {
            let place = layout.place(name)?;
            Some((place.offset(), place.scalar(), place.elements()))
        };
        let float = Some(Scalar::Float32);
        let byte = Some(Scalar::UInt8);
        for (name, wanted) in [
            ("t", (0, Some(Scalar::UInt64), None)),
            ("q", (8, float, Some(4))),
            ("q[0]", (8, float, None)),
            ("q[3]", (20, float, None)),
            ("label", (24, None, Some(4))),
            ("letter", (28, None, None)),
            ("raw", (29, byte, Some(2))),
            ("raw[1]", (30, byte, None)),
            ("points[0].a", (31, Some(Scalar::UInt16), None)),
            ("points[2].b", (31 + 2 * 6 + 3, Some(Scalar::Bool), None)),
            ("point.b", (31 + 3 * 6 + 3, Some(Scalar::Bool), None)),
            ("q[9]", (55, byte, None)),
            ("a.b", (56, byte, None)),
            ("a", (57, byte, None)),
        ] {
            assert_eq!(place(name), Some(wanted), "{name}");
        }
        for name in [
            "",
            "x",
            "q[4]",
            "q[",
            "q[x]",
            "t[0]",
            "label[0]",
            "points",
            "points.a",
            "points[3].a",
            "point",
            "point.c",
            "t.a",
            "a.c",
            "time",
            "time.sec",
            "list",
            "list[0]",
            "behind",
        ] {
            assert_eq!(place(name), None, "{name}");
        }
        let q = layout.place("q[0]").unwrap();
        assert!(q.is_scalar(Scalar::Float32) && !q.is_scalar(Scalar::Int32));
        assert!(!layout.place("q").unwrap().is_scalar(Scalar::Float32));
    }

    #[test]
    fn fields_are_read_in_place() {
        let layout = layout();
        let value = Value::record([
            ("t", Value::UInt(1 << 40, 64)),
            ("q", Value::List([1.0, 2.0, 3.0, 4.5].map(Value::F32).into())),
            ("label", Value::Text("ab".into())),
            ("letter", Value::Text("z".into())),
            ("raw", Value::Bytes(vec![7, 8])),
            ("points", Value::List([1, 2, 3].map(point_of).into())),
            ("point", point_of(9)),
            ("q[9]", Value::UInt(99, 8)),
            ("a.b", Value::UInt(12, 8)),
            ("a", Value::UInt(11, 8)),
            ("time", Value::record([("sec", Value::UInt(5, 32)), ("nsec", Value::UInt(6, 32))])),
            ("list", Value::List([8.0, 9.0].map(Value::F32).into())),
            ("behind", Value::F32(10.0)),
        ]);
        let bytes = record(&layout, &value);
        let row = Row::new(&layout, &bytes);
        assert_eq!((row.bytes(), row.value()), (&bytes[..], value.clone()));
        assert_eq!(row.to_json(), value.to_json());
        assert_eq!(Row::new(&layout, &bytes[..bytes.len() - 1]).value(), Value::Null);
        let place = |name: &str| layout.place(name).unwrap();
        assert_eq!(row.read::<u64>(place("t")), Some(1 << 40));
        assert_eq!((row.read::<i64>(place("t")), row.read::<f32>(place("q"))), (None, None));
        assert_eq!(row.read::<f32>(place("q[3]")), Some(4.5));
        let q: Option<Vec<f32>> = row.read_array(place("q")).map(Iterator::collect);
        assert_eq!(q, Some(vec![1.0, 2.0, 3.0, 4.5]));
        assert!(row.read_array::<i32>(place("q")).is_none() && row.read_array::<u64>(place("t")).is_none());
        assert_eq!(row.text_bytes(place("label")), Some(&b"ab"[..]));
        assert_eq!((row.text_bytes(place("letter")), row.text_bytes(place("t"))), (Some(&b"z"[..]), None));
        for (name, of) in
            [("q[9]", "q[9]"), ("letter", "letter"), ("q", "q"), ("time", "time"), ("list", "list")]
        {
            assert_eq!(row.get(name).as_ref(), value.get(of), "{name}");
        }
        assert_eq!(row.get("label"), Some(Value::Text("ab".into())));
        assert_eq!(row.get("raw"), Some(Value::List([7, 8].map(|byte| Value::UInt(byte, 8)).into())));
        assert_eq!(row.get("points[1].a"), Some(Value::UInt(2, 16)));
        assert_eq!(
            (row.get("point").as_ref(), row.get("behind")),
            (value.get("point"), Some(Value::F32(10.0)))
        );
        assert_eq!((row.get("none"), Row::new(&layout, &bytes[..9]).get("q")), (None, None));
    }
}
