//! Rows: typed access to the fields of one data message, in place.

use std::sync::Arc;

use rovelog_core::{Scalar, Value};

use crate::layout::{Layout, Slot, SlotKind};

/// One data message's fields, borrowed from the log.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    layout: &'a Layout,
    bytes: &'a [u8],
}

/// The place of a field, looked up once and used for every row of its topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub(crate) offset: usize,
    /// `None` for text.
    pub(crate) scalar: Option<Scalar>,
    pub(crate) len: Option<usize>,
}

impl Place {
    /// Whether the field is one value of type `scalar`.
    pub fn is_scalar(&self, scalar: Scalar) -> bool {
        self.scalar == Some(scalar) && self.len.is_none()
    }
}

/// A Rust type that a field of the same width can be read as.
pub trait Number: Copy {
    /// The field type that it stands for.
    const SCALAR: Scalar;
    /// Reads a value from the first bytes of `bytes`.
    fn from_wire(bytes: &[u8]) -> Option<Self>;
    /// Adds the value's bytes to `out`.
    fn to_wire(self, out: &mut Vec<u8>);
}

macro_rules! numbers {
    ($($ty:ty: $scalar:ident),* $(,)?) => { $(
        impl Number for $ty {
            const SCALAR: Scalar = Scalar::$scalar;
            #[inline]
            fn from_wire(bytes: &[u8]) -> Option<Self> {
                Some(<$ty>::from_le_bytes(*bytes.first_chunk()?))
            }
            #[inline]
            fn to_wire(self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
        }
    )* };
}

numbers! {
    i8: Int8, u8: UInt8, i16: Int16, u16: UInt16, i32: Int32, u32: UInt32, i64: Int64, u64: UInt64,
    f32: Float32, f64: Float64,
}

impl Number for bool {
    const SCALAR: Scalar = Scalar::Bool;
    /// Any byte but 0 is true: real logs hold others than 1.
    #[inline]
    fn from_wire(bytes: &[u8]) -> Option<Self> {
        Some(*bytes.first()? != 0)
    }
    #[inline]
    fn to_wire(self, out: &mut Vec<u8>) {
        out.push(self.into());
    }
}

impl Layout {
    /// Finds a field by its flat name: `x`, `q` (the whole array), `q[2]`, `esc[3].esc_rpm`, `pos.x`.
    /// A struct as a whole has no place; its fields do.
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
            let field = whole.or_else(|| named(name))?;
            let slot = &layout.slots[field];
            let mut offset = base + slot.offset;
            let mut len = slot.len;
            if let Some(index) = index {
                if index >= len? || slot.kind == SlotKind::Char {
                    return None;
                }
                offset += index * slot.kind.size();
                len = None;
            }
            match (&slot.kind, tail) {
                (SlotKind::Nested(inner), Some(tail)) if len.is_none() => {
                    (layout, base, rest) = (inner, offset, tail);
                }
                (SlotKind::Scalar(scalar), None) => {
                    return Some(Place { offset, scalar: Some(*scalar), len });
                }
                (SlotKind::Char, None) => return Some(Place { offset, scalar: None, len }),
                _ => return None,
            }
        }
    }
}

impl<'a> Row<'a> {
    pub(crate) fn new(layout: &'a Layout, bytes: &'a [u8]) -> Self {
        Self { layout, bytes }
    }

    /// The layout of the row.
    pub fn layout(&self) -> &'a Layout {
        self.layout
    }

    /// The bytes of the row, padding included.
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

    /// The bytes of a text field up to the first NUL; `None` where it is not text.
    pub fn text_bytes(&self, place: Place) -> Option<&'a [u8]> {
        if place.scalar.is_some() {
            return None;
        }
        let bytes = self.bytes.get(place.offset..place.offset + place.len.unwrap_or(1))?;
        Some(up_to_nul(bytes))
    }

    /// Looks a field up by its flat name and gives its value; structs and arrays included.
    ///
    /// For many rows, look the field up once with [`Layout::place`] and use [`read`](Self::read).
    pub fn get(&self, name: &str) -> Option<Value> {
        if let Some(place) = self.layout.place(name) {
            let at = &self.bytes[place.offset..];
            return Some(match (place.scalar, place.len) {
                (Some(scalar), None) => scalar_value(scalar, at),
                (Some(scalar), Some(len)) => array_value(scalar, at, len),
                (None, len) => text_value(&at[..len.unwrap_or(1)]),
            });
        }
        let field = self.layout.schema.fields.iter().position(|field| *field.name == *name)?;
        Some(slot_value(&self.layout.slots[field], self.bytes))
    }

    /// All fields, as a [`Value::Struct`].
    pub fn value(&self) -> Value {
        struct_value(self.layout, self.bytes)
    }

    /// One line of JSON: 64-bit integers as strings, NaN and infinities as strings.
    pub fn to_json(&self) -> String {
        self.value().to_json()
    }
}

fn up_to_nul(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len())]
}

/// The recursion follows the layout, whose depth is limited.
fn struct_value(layout: &Layout, bytes: &[u8]) -> Value {
    let fields = layout.schema.fields.iter().zip(&layout.slots);
    Value::Struct(fields.map(|(field, slot)| (Arc::clone(&field.name), slot_value(slot, bytes))).collect())
}

fn slot_value(slot: &Slot, bytes: &[u8]) -> Value {
    let at = &bytes[slot.offset..];
    match (&slot.kind, slot.len) {
        (SlotKind::Scalar(scalar), None) => scalar_value(*scalar, at),
        (SlotKind::Scalar(scalar), Some(len)) => array_value(*scalar, at, len),
        (SlotKind::Char, len) => text_value(&at[..len.unwrap_or(1)]),
        (SlotKind::Nested(inner), None) => struct_value(inner, at),
        (SlotKind::Nested(inner), Some(len)) => {
            Value::List((0..len).map(|i| struct_value(inner, &at[i * inner.full..])).collect())
        }
    }
}

fn array_value(scalar: Scalar, bytes: &[u8], len: usize) -> Value {
    Value::List(bytes.chunks(scalar.size()).take(len).map(|chunk| scalar_value(scalar, chunk)).collect())
}

/// D12, D25: text ends at the first NUL; what is not UTF-8 is replaced.
fn text_value(bytes: &[u8]) -> Value {
    Value::Text(String::from_utf8_lossy(up_to_nul(bytes)).into_owned())
}

/// The value of a scalar at the start of `bytes`.
pub(crate) fn scalar_value(scalar: Scalar, bytes: &[u8]) -> Value {
    macro_rules! read {
        ($ty:ty) => {
            <$ty>::from_wire(bytes).expect("a row has the size of its layout")
        };
    }
    match scalar {
        Scalar::Bool => Value::Bool(read!(bool)),
        Scalar::Int8 => Value::Int(read!(i8).into(), 8),
        Scalar::UInt8 => Value::UInt(read!(u8).into(), 8),
        Scalar::Int16 => Value::Int(read!(i16).into(), 16),
        Scalar::UInt16 => Value::UInt(read!(u16).into(), 16),
        Scalar::Int32 => Value::Int(read!(i32).into(), 32),
        Scalar::UInt32 => Value::UInt(read!(u32).into(), 32),
        Scalar::Int64 => Value::Int(read!(i64), 64),
        Scalar::UInt64 => Value::UInt(read!(u64), 64),
        Scalar::Float32 => Value::F32(read!(f32)),
        Scalar::Float64 => Value::F64(read!(f64)),
    }
}

/// The value of an information message whose type is a format, or an array of one; `None` where the size disagrees.
pub(crate) fn nested_value(layout: &Layout, len: Option<u64>, bytes: &[u8]) -> Option<Value> {
    let Some(len) = len else {
        return [layout.full, layout.trimmed].contains(&bytes.len()).then(|| struct_value(layout, bytes));
    };
    // Elements without a size could be any number.
    let fits = layout.full > 0 && (layout.full as u64).checked_mul(len) == Some(bytes.len() as u64);
    fits.then(|| Value::List(bytes.chunks(layout.full).map(|bytes| struct_value(layout, bytes)).collect()))
}

/// The value of an information message of the given type: a number, a text, or a list of numbers.
/// Where type and size disagree, or the type is not basic, its bytes.
pub(crate) fn info_value(ty: &str, bytes: &[u8]) -> Value {
    use crate::schema::{Basic, TypeName};
    let parsed = TypeName::parse(ty);
    match parsed.and_then(|ty| Some((Basic::parse(ty.base)?, ty))) {
        // A text's length comes from the message (D26).
        Some((Basic::Char, _)) => Value::Text(String::from_utf8_lossy(bytes).into_owned()),
        Some((Basic::Scalar(scalar), ty)) if ty.fits_value(bytes.len()) == Some(true) => match ty.len {
            None => scalar_value(scalar, bytes),
            Some(_) => array_value(scalar, bytes, bytes.len() / scalar.size()),
        },
        _ => Value::Bytes(bytes.to_vec()),
    }
}
