//! Values into bytes.

use rovelog_core::text::count;
use std::borrow::Cow;

use rovelog_core::{Scalar, Value};

use crate::error::UlogError;
use crate::layout::{Layout, Slot, SlotKind};
use crate::message::KeyValue;
use crate::row::Number;
use crate::schema::{Basic, TypeName, split_key};

/// The longest payload of a message.
pub(super) const MAX_PAYLOAD: usize = u16::MAX as usize;

/// The longest key of an information message.
pub(super) const MAX_KEY: usize = u8::MAX as usize;

pub(super) fn bad_key(name: &str, why: &'static str) -> UlogError {
    UlogError::BadKey { name: name.to_owned(), why }
}

pub(super) fn bad_value(field: &str, why: impl Into<String>) -> UlogError {
    UlogError::BadValue { field: field.to_owned(), why: why.into() }
}

/// Refuses what is longer than its room.
pub(super) fn room(what: &str, len: usize, max: usize) -> Result<(), UlogError> {
    if len <= max { Ok(()) } else { Err(UlogError::TooLong { what: what.to_owned(), len, max }) }
}

/// The key `type name`.
pub(super) fn key(ty: &str, name: &str) -> Result<String, UlogError> {
    let key = format!("{ty} {name}");
    if split_key(key.as_bytes()).is_none_or(|key| !key.is_usual()) {
        return Err(bad_key(name, "a name consists of printable characters without spaces"));
    }
    room(&format!("the key of {name}"), key.len(), MAX_KEY)?;
    Ok(key)
}

pub(super) fn part<'a>(key: &'a str, value: &'a [u8]) -> KeyValue<'a> {
    KeyValue { key: key.as_bytes(), value }
}

/// A value of an information message: its bytes, and what they are. Only the implementations here make one.
#[derive(Clone, Debug)]
pub struct Encoded<'a> {
    ty: Basic,
    /// Whether it is an array; texts are.
    array: bool,
    pub(super) bytes: Cow<'a, [u8]>,
}

impl<'a> Encoded<'a> {
    pub(super) fn type_name(&self) -> String {
        let len = self.array.then(|| (self.bytes.len() / self.ty.size()) as u64);
        TypeName { base: self.ty.name(), len }.to_string()
    }

    /// The value in parts of at most `room` bytes, at least one.
    pub(super) fn split(&'a self, room: usize) -> impl Iterator<Item = Encoded<'a>> {
        let mut rest = Some(&*self.bytes);
        std::iter::from_fn(move || {
            let bytes = rest?;
            let mut len = bytes.len().min(room / self.ty.size() * self.ty.size());
            if self.ty == Basic::Char && len < bytes.len() {
                // Between characters of UTF-8, if it is that.
                len = (len.saturating_sub(3)..=len).rev().find(|at| bytes[*at] & 0xc0 != 0x80).unwrap_or(len);
            }
            let (part, more) = bytes.split_at(len);
            rest = Some(more).filter(|more| !more.is_empty());
            Some(Encoded { ty: self.ty, array: self.array, bytes: Cow::Borrowed(part) })
        })
    }
}

/// What can be the value of an information message: text, numbers, slices and arrays of numbers, and
/// [`Value`]s of these.
pub trait InfoValue {
    /// The value's bytes and type.
    ///
    /// # Errors
    /// Where the value has no type in ULog; `name` is for the message.
    fn encode(&self, name: &str) -> Result<Encoded<'_>, UlogError>;
}

impl<V: InfoValue + ?Sized> InfoValue for &V {
    fn encode(&self, name: &str) -> Result<Encoded<'_>, UlogError> {
        (**self).encode(name)
    }
}

impl InfoValue for str {
    fn encode(&self, _: &str) -> Result<Encoded<'_>, UlogError> {
        Ok(Encoded { ty: Basic::Char, array: true, bytes: self.as_bytes().into() })
    }
}

impl InfoValue for String {
    fn encode(&self, name: &str) -> Result<Encoded<'_>, UlogError> {
        self.as_str().encode(name)
    }
}

impl<T: Number> InfoValue for [T] {
    fn encode(&self, _: &str) -> Result<Encoded<'_>, UlogError> {
        let mut bytes = Vec::with_capacity(size_of_val(self));
        for value in self {
            value.to_wire(&mut bytes);
        }
        Ok(Encoded { ty: Basic::Scalar(T::SCALAR), array: true, bytes: bytes.into() })
    }
}

impl<T: Number, const N: usize> InfoValue for [T; N] {
    fn encode(&self, name: &str) -> Result<Encoded<'_>, UlogError> {
        self.as_slice()
            .encode(name)
            .map(|encoded| Encoded { bytes: encoded.bytes.into_owned().into(), ..encoded })
    }
}

impl<T: Number> InfoValue for Vec<T> {
    fn encode(&self, name: &str) -> Result<Encoded<'_>, UlogError> {
        self.as_slice().encode(name)
    }
}

macro_rules! numbers {
    ($($ty:ty),*) => { $(
        impl InfoValue for $ty {
            fn encode(&self, name: &str) -> Result<Encoded<'_>, UlogError> {
                let encoded = std::slice::from_ref(self).encode(name)?;
                Ok(Encoded { array: false, ..encoded })
            }
        }
    )* };
}

numbers!(i8, u8, i16, u16, i32, u32, i64, u64, f32, f64, bool);

impl InfoValue for Value {
    fn encode(&self, name: &str) -> Result<Encoded<'_>, UlogError> {
        let no_type =
            || bad_key(name, "only texts, numbers, bytes and lists of one kind of number have a type");
        let elements = match self {
            Value::Text(text) => return text.encode(name),
            Value::Bytes(bytes) => {
                return bytes.as_slice().encode(name).map(|e| Encoded { bytes: bytes.into(), ..e });
            }
            Value::List(elements) => elements.as_slice(),
            scalar => std::slice::from_ref(scalar),
        };
        let ty = elements.first().and_then(scalar_of).ok_or_else(no_type)?;
        let mut bytes = vec![0; elements.len() * ty.size()];
        for (element, bytes) in elements.iter().zip(bytes.chunks_mut(ty.size())) {
            if scalar_of(element) != Some(ty) {
                return Err(no_type());
            }
            scalar(ty, element, bytes)?;
        }
        let array = matches!(self, Value::List(_));
        Ok(Encoded { ty: Basic::Scalar(ty), array, bytes: bytes.into() })
    }
}

/// The scalar that a value is by its own width.
fn scalar_of(value: &Value) -> Option<Scalar> {
    Some(match value {
        Value::Bool(_) => Scalar::Bool,
        Value::Int(_, 8) => Scalar::Int8,
        Value::Int(_, 16) => Scalar::Int16,
        Value::Int(_, 32) => Scalar::Int32,
        Value::Int(_, 64) => Scalar::Int64,
        Value::UInt(_, 8) => Scalar::UInt8,
        Value::UInt(_, 16) => Scalar::UInt16,
        Value::UInt(_, 32) => Scalar::UInt32,
        Value::UInt(_, 64) => Scalar::UInt64,
        Value::F32(_) => Scalar::Float32,
        Value::F64(_) => Scalar::Float64,
        _ => return None,
    })
}

/// The value of a parameter: `int32_t` or `float`, nothing else.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum ParameterValue {
    Int32(i32),
    Float(f32),
}

impl ParameterValue {
    pub(super) fn type_name(self) -> &'static str {
        match self {
            Self::Int32(_) => "int32_t",
            Self::Float(_) => "float",
        }
    }

    pub(super) fn to_bytes(self) -> [u8; 4] {
        match self {
            Self::Int32(value) => value.to_le_bytes(),
            Self::Float(value) => value.to_le_bytes(),
        }
    }
}

impl From<i32> for ParameterValue {
    fn from(value: i32) -> Self {
        Self::Int32(value)
    }
}

impl From<f32> for ParameterValue {
    fn from(value: f32) -> Self {
        Self::Float(value)
    }
}

/// Writes the fields of `row` to `out`, which is zeroed and as long as the layout, trimmed or full.
pub(super) fn row(layout: &Layout, row: &Value, out: &mut [u8]) -> Result<(), UlogError> {
    fields(layout, row, out).map_err(|(path, why)| UlogError::BadValue { field: path, why })
}

/// What does not fit, with the path to it, which grows on the way out.
type Misfit = (String, String);

/// The recursion follows the layout, whose depth is limited.
fn fields(layout: &Layout, value: &Value, out: &mut [u8]) -> Result<(), Misfit> {
    let name = || layout.schema.name.clone();
    let Value::Struct(values) = value else {
        return Err((name(), "its value is a struct with its fields".into()));
    };
    for (i, (field, slot)) in layout.schema.fields.iter().zip(&layout.slots).enumerate() {
        // In the order of the format they are found at once.
        let value = match values.get(i) {
            Some((known, value)) if *known == field.name => value,
            _ => value
                .get(&field.name)
                .ok_or_else(|| (field.name.to_string(), "it has no value".to_owned()))?,
        };
        let at = &mut out[slot.offset..];
        self::slot(slot, value, at).map_err(|(path, why)| {
            let dot = if path.is_empty() || path.starts_with('[') { "" } else { "." };
            (format!("{}{dot}{path}", field.name), why)
        })?;
    }
    if values.len() > layout.slots.len() {
        let unknown =
            values.iter().find(|(name, _)| layout.schema.fields.iter().all(|field| field.name != *name));
        let field = unknown.map_or_else(name, |(name, _)| name.to_string());
        return Err((field, format!("{} has no such field, or it is given twice", layout.schema.name)));
    }
    Ok(())
}

fn slot(slot: &Slot, value: &Value, out: &mut [u8]) -> Result<(), Misfit> {
    if slot.kind == SlotKind::Char {
        let bytes = match value {
            Value::Text(text) => text.as_bytes(),
            Value::Bytes(bytes) => bytes,
            other => return misfit(other, "text"),
        };
        let len = slot.len.unwrap_or(1);
        if bytes.len() > len {
            return Err((
                String::new(),
                format!("char[{len}] is too short for {} of text", count(bytes.len(), "byte")),
            ));
        }
        out[..bytes.len()].copy_from_slice(bytes);
        return Ok(());
    }
    let Some(len) = slot.len else { return element(&slot.kind, value, out) };
    match value {
        Value::List(values) if values.len() == len => {
            let size = slot.kind.size();
            for (i, value) in values.iter().enumerate() {
                element(&slot.kind, value, &mut out[i * size..]).map_err(|(path, why)| {
                    let dot = if path.is_empty() { "" } else { "." };
                    (format!("[{i}]{dot}{path}"), why)
                })?;
            }
            Ok(())
        }
        Value::Bytes(bytes) if bytes.len() == len && slot.kind == SlotKind::Scalar(Scalar::UInt8) => {
            out[..len].copy_from_slice(bytes);
            Ok(())
        }
        Value::List(values) => {
            Err((String::new(), format!("{} given for {len}", count(values.len(), "element"))))
        }
        other => misfit(other, "a list"),
    }
}

fn element(kind: &SlotKind, value: &Value, out: &mut [u8]) -> Result<(), Misfit> {
    match kind {
        SlotKind::Nested(layout) => fields(layout, value, out),
        SlotKind::Scalar(ty) => {
            scalar(*ty, value, out).or_else(|_: UlogError| misfit(value, Basic::Scalar(*ty).name()))
        }
        SlotKind::Char => misfit(value, "text"),
    }
}

fn misfit(value: &Value, want: &str) -> Result<(), Misfit> {
    let mut json = value.to_json();
    if json.len() > 40 {
        json.truncate((0..=40).rev().find(|at| json.is_char_boundary(*at)).unwrap_or(0));
        json.push_str("...");
    }
    Err((String::new(), format!("{json} is no value for {want}")))
}

/// Writes a number without losing anything of it: integers of any width that fit, floats as they are.
fn scalar(ty: Scalar, value: &Value, out: &mut [u8]) -> Result<(), UlogError> {
    let no = || bad_value("", "");
    let integer = match *value {
        Value::Int(v, _) => Some(i128::from(v)),
        Value::UInt(v, _) => Some(i128::from(v)),
        // D13: the byte of a truth value is kept where there is one.
        Value::Bool(v) if ty == Scalar::Bool => Some(v.into()),
        _ => None,
    };
    macro_rules! put {
        ($ty:ty) => {{
            let value = integer.and_then(|v| <$ty>::try_from(v).ok()).ok_or_else(no)?;
            out[..size_of::<$ty>()].copy_from_slice(&value.to_le_bytes());
        }};
    }
    match ty {
        Scalar::Bool | Scalar::UInt8 => put!(u8),
        Scalar::Int8 => put!(i8),
        Scalar::Int16 => put!(i16),
        Scalar::UInt16 => put!(u16),
        Scalar::Int32 => put!(i32),
        Scalar::UInt32 => put!(u32),
        Scalar::Int64 => put!(i64),
        Scalar::UInt64 => put!(u64),
        Scalar::Float32 => match value {
            Value::F32(v) => out[..4].copy_from_slice(&v.to_le_bytes()),
            _ => return Err(no()),
        },
        Scalar::Float64 => match *value {
            Value::F64(v) => out[..8].copy_from_slice(&v.to_le_bytes()),
            Value::F32(v) => out[..8].copy_from_slice(&f64::from(v).to_le_bytes()),
            _ => return Err(no()),
        },
    }
    Ok(())
}

/// Every key and every part fits a message.
const _: () = assert!(MAX_KEY < MAX_PAYLOAD / 2);
