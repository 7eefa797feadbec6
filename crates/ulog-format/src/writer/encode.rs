//! Encoding of messages, and of the values of information messages and parameters.

use std::borrow::Cow;

use rovelog_core::Value;
use rovelog_core::internal::layout::{encode_scalar, scalar_of};
use rovelog_core::internal::wire::{U16Le, U64Le};
use zerocopy::IntoBytes;

use crate::error::UlogError;
use crate::layout::{Layout, TimeWidth};
use crate::row::Number;
use crate::schema::{Basic, TypeName, split_key};
use crate::wire::{self, Info, Message, MessageHeader};

/// Maximum size in bytes of the payload of a message.
pub(super) const MAX_PAYLOAD: usize = u16::MAX as usize;

/// Maximum size in bytes of the key of an information message.
pub(super) const MAX_KEY: usize = u8::MAX as usize;

pub(super) fn bad_key(name: &str, why: &'static str) -> UlogError {
    UlogError::BadKey { name: name.to_owned(), why }
}

pub(super) fn bad_value(field: &str, why: impl Into<String>) -> UlogError {
    UlogError::BadValue { field: field.to_owned(), why: why.into() }
}

/// Returns an error if `len` exceeds `max`. `what` describes the item in the error message.
pub(super) fn fits(what: &str, len: usize, max: usize) -> Result<(), UlogError> {
    if len <= max { Ok(()) } else { Err(UlogError::TooLong { what: what.to_owned(), len, max }) }
}

/// Returns the key of an information message or a parameter, in the form `type name`.
pub(super) fn key(ty: &str, name: &str) -> Result<String, UlogError> {
    let key = format!("{ty} {name}");
    if split_key(key.as_bytes()).is_none_or(|key| !key.is_usual()) {
        return Err(bad_key(name, "a name must consist of printable characters without spaces"));
    }
    fits(&format!("the key of {name}"), key.len(), MAX_KEY)?;
    Ok(key)
}

pub(super) fn part<'a>(key: &'a str, value: &'a [u8]) -> Info<'a> {
    Info { key: key.as_bytes(), value }
}

/// An encoded value of an information message. Only the implementations of [`InfoValue`] in this
/// module can create it.
#[derive(Clone, Debug)]
pub struct Encoded<'a> {
    /// Type of the value. For an array, this is the type of its elements.
    ty: Basic,
    /// True if the value is an array. A text is an array of `char`.
    array: bool,
    pub(super) bytes: Cow<'a, [u8]>,
}

impl<'a> Encoded<'a> {
    pub(super) fn type_name(&self) -> String {
        let len = self.array.then(|| (self.bytes.len() / self.ty.size()) as u64);
        TypeName { base: self.ty.name(), len }.to_string()
    }

    /// Divides the value into parts of at most `max` bytes. If the value is empty, the result is
    /// one empty part.
    pub(super) fn split(&'a self, max: usize) -> impl Iterator<Item = Encoded<'a>> {
        let mut rest = Some(&*self.bytes);
        std::iter::from_fn(move || {
            let bytes = rest?;
            let mut len = bytes.len().min(max / self.ty.size() * self.ty.size());
            if self.ty == Basic::Char && len < bytes.len() {
                // A part of a text must end between two characters, so that each part is valid
                // UTF-8. A character has at most 4 bytes, and all bytes after the first have the
                // form 10xxxxxx.
                len = (len.saturating_sub(3)..=len).rev().find(|at| bytes[*at] & 0xc0 != 0x80).unwrap_or(len);
            }
            let (part, more) = bytes.split_at(len);
            rest = Some(more).filter(|more| !more.is_empty());
            Some(Encoded { ty: self.ty, array: self.array, bytes: Cow::Borrowed(part) })
        })
    }
}

/// A value that can be stored in an information message.
///
/// This trait is implemented for texts, numbers, arrays and slices of numbers, and for [`Value`]s
/// of these kinds.
pub trait InfoValue {
    /// Encodes the value of the information message with the given name.
    ///
    /// # Errors
    /// Returns an error that contains `name` if ULog has no type for the value.
    #[doc(hidden)]
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
            || bad_key(name, "a value must be a text, a number, bytes, or a list of numbers of one type");
        let elements = match self {
            Value::Text(text) => return text.encode(name),
            Value::Bytes(bytes) => {
                return bytes.as_slice().encode(name).map(|e| Encoded { bytes: bytes.into(), ..e });
            }
            Value::List(elements) => elements.as_slice(),
            scalar => std::slice::from_ref(scalar),
        };
        let ty = elements.first().and_then(scalar_of).ok_or_else(no_type)?;
        let mut bytes = Vec::with_capacity(elements.len() * ty.size());
        for element in elements {
            if scalar_of(element) != Some(ty) {
                return Err(no_type());
            }
            encode_scalar(ty, element, &mut bytes).ok_or_else(no_type)?;
        }
        let array = matches!(self, Value::List(_));
        Ok(Encoded { ty: Basic::Scalar(ty), array, bytes: bytes.into() })
    }
}

/// The value of a parameter. Specification: "The data type is restricted to `int32_t`, `float`."
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

// A message of the maximum size must have space for the longest key and a part of a value.
const _: () = assert!(MAX_KEY < MAX_PAYLOAD / 2);

/// Returns the header of a message with a payload of `len` bytes.
#[inline]
pub(super) fn header(msg_type: u8, len: usize) -> Result<MessageHeader, UlogError> {
    let Ok(msg_size) = u16::try_from(len) else {
        let what = format!("the payload of a '{}' message", msg_type.escape_ascii());
        return Err(UlogError::TooLong { what, len, max: MAX_PAYLOAD });
    };
    Ok(MessageHeader { msg_size: U16Le::new(msg_size), msg_type })
}

/// Encodes a message with its header.
pub(crate) fn encoded(message: &Message<'_>) -> Result<Vec<u8>, UlogError> {
    let msg_type = message.msg_type();
    let why = "its key is longer than 255 bytes";
    let payload = message.payload().map_err(|_| UlogError::BadMessage { letter: msg_type.into(), why })?;
    Ok([header(msg_type, payload.len())?.as_bytes(), &payload].concat())
}

/// Returns `level` if it is at most 7, otherwise an error.
pub(super) fn checked_level(level: u8) -> Result<u8, UlogError> {
    if level > 7 {
        let why = format!("the level is {level}, but must be 0 (emergency) to 7 (debug)");
        return Err(UlogError::BadValue { field: "level".into(), why });
    }
    Ok(level)
}

/// Returns the timestamp of a row in microseconds, or `None` if its format has no 64-bit timestamp.
#[inline]
pub(super) fn timestamp(layout: &Layout, row: &[u8]) -> Option<u64> {
    let field = layout.timestamp.filter(|field| field.width == TimeWidth::U64Micros)?;
    wire::number::<U64Le>(row, field.offset).map(U64Le::get)
}
