//! Payloads as values.

use std::sync::{Arc, LazyLock};

use rovelog_core::{Scalar, Value};

use super::plan::{Kind, MAX_NODES, Plan};
use super::text::Array;

/// The names in a time.
static SEC: LazyLock<Arc<str>> = LazyLock::new(|| "sec".into());
static NSEC: LazyLock<Arc<str>> = LazyLock::new(|| "nsec".into());

/// Why a payload cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DecodeError {
    /// It ends inside a field.
    #[error("the payload ends inside a field that begins at byte {0} of it")]
    Short(u64),
    /// It claims more elements than bytes could be for.
    #[error("at byte {0} of the payload, an array claims more empty elements than are sensible")]
    TooMany(u64),
}

/// A place in a payload.
struct Cursor<'a> {
    payload: &'a [u8],
    at: usize,
    /// Values that may still be made.
    budget: u64,
}

impl Plan {
    /// The fields of a payload, and how many of its bytes they are.
    pub(crate) fn value(&self, payload: &[u8]) -> Result<(Value, usize), DecodeError> {
        let budget = MAX_NODES + 2 * payload.len() as u64;
        let mut cursor = Cursor { payload, at: 0, budget };
        Ok((cursor.message(self)?, cursor.at))
    }
}

impl<'a> Cursor<'a> {
    #[inline]
    fn take(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        let bytes = self.payload.get(self.at..).and_then(|rest| rest.get(..len));
        let bytes = bytes.ok_or(DecodeError::Short(self.at as u64))?;
        self.at += len;
        Ok(bytes)
    }

    #[inline]
    fn chunk<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let rest = self.payload.get(self.at..).unwrap_or_default();
        let bytes = rest.first_chunk().ok_or(DecodeError::Short(self.at as u64))?;
        self.at += N;
        Ok(*bytes)
    }

    #[inline]
    fn len(&mut self) -> Result<usize, DecodeError> {
        Ok(u32::from_le_bytes(self.chunk()?) as usize)
    }

    fn message(&mut self, plan: &Plan) -> Result<Value, DecodeError> {
        let mut fields = Vec::with_capacity(plan.fields.len());
        for slot in &plan.fields {
            let value = match slot.array {
                Array::One => self.one(&slot.kind)?,
                Array::Fixed(len) => self.many(&slot.kind, len as usize)?,
                Array::Any => {
                    let len = self.len()?;
                    self.many(&slot.kind, len)?
                }
            };
            fields.push((Arc::clone(&slot.name), value));
        }
        Ok(Value::Struct(fields))
    }

    #[inline]
    fn one(&mut self, kind: &Kind) -> Result<Value, DecodeError> {
        Ok(match kind {
            Kind::Scalar(scalar) => {
                let bytes = self.take(scalar.size())?;
                scalar_value(*scalar, bytes)
            }
            Kind::Byte => Value::UInt(u8::from_le_bytes(self.chunk()?).into(), 8),
            Kind::Time => {
                let (sec, nsec) = (u32::from_le_bytes(self.chunk()?), u32::from_le_bytes(self.chunk()?));
                pair(Value::UInt(sec.into(), 32), Value::UInt(nsec.into(), 32))
            }
            Kind::Duration => {
                let (sec, nsec) = (i32::from_le_bytes(self.chunk()?), i32::from_le_bytes(self.chunk()?));
                pair(Value::Int(sec.into(), 32), Value::Int(nsec.into(), 32))
            }
            Kind::Text => {
                let start = self.at;
                let len = self.len()?;
                let bytes = self.take(len).map_err(|_| DecodeError::Short(start as u64))?;
                match std::str::from_utf8(bytes) {
                    Ok(text) => Value::Text(text.to_owned()),
                    Err(_) => Value::Bytes(bytes.to_vec()),
                }
            }
            Kind::Nested(plan) => self.message(plan)?,
        })
    }

    fn many(&mut self, kind: &Kind, len: usize) -> Result<Value, DecodeError> {
        let left = self.payload.len() - self.at;
        // Nothing is reserved for elements that the payload has no bytes for.
        if kind.min_size().saturating_mul(len as u64) > left as u64 {
            return Err(DecodeError::Short(self.at as u64));
        }
        match kind {
            Kind::Byte => return Ok(Value::Bytes(self.take(len)?.to_vec())),
            Kind::Scalar(scalar) => {
                let bytes = self.take(len * scalar.size())?;
                return Ok(Value::List(scalars(*scalar, bytes)));
            }
            Kind::Nested(plan) => {
                let nodes = plan.nodes.saturating_add(1).saturating_mul(len as u64);
                self.budget = self.budget.checked_sub(nodes).ok_or(DecodeError::TooMany(self.at as u64))?;
            }
            _ => {}
        }
        let mut items = Vec::with_capacity(len);
        for _ in 0..len {
            items.push(self.one(kind)?);
        }
        Ok(Value::List(items))
    }
}

fn pair(sec: Value, nsec: Value) -> Value {
    Value::Struct(vec![(Arc::clone(&SEC), sec), (Arc::clone(&NSEC), nsec)])
}

macro_rules! number {
    ($int:ty, $bytes:expr) => {
        <$int>::from_le_bytes($bytes.try_into().expect("a scalar's own size"))
    };
}

/// A scalar from exactly its bytes.
#[inline]
fn scalar_value(scalar: Scalar, bytes: &[u8]) -> Value {
    match scalar {
        Scalar::Bool => Value::Bool(bytes[0] != 0),
        Scalar::Int8 => Value::Int(number!(i8, bytes).into(), 8),
        Scalar::UInt8 => Value::UInt(bytes[0].into(), 8),
        Scalar::Int16 => Value::Int(number!(i16, bytes).into(), 16),
        Scalar::UInt16 => Value::UInt(number!(u16, bytes).into(), 16),
        Scalar::Int32 => Value::Int(number!(i32, bytes).into(), 32),
        Scalar::UInt32 => Value::UInt(number!(u32, bytes).into(), 32),
        Scalar::Int64 => Value::Int(number!(i64, bytes), 64),
        Scalar::UInt64 => Value::UInt(number!(u64, bytes), 64),
        Scalar::Float32 => Value::F32(number!(f32, bytes)),
        Scalar::Float64 => Value::F64(number!(f64, bytes)),
    }
}

/// Scalars one behind the other. The widths known to the compiler are single moves.
fn scalars(scalar: Scalar, bytes: &[u8]) -> Vec<Value> {
    match scalar {
        Scalar::Float32 => {
            bytes.as_chunks::<4>().0.iter().map(|b| Value::F32(f32::from_le_bytes(*b))).collect()
        }
        Scalar::Float64 => {
            bytes.as_chunks::<8>().0.iter().map(|b| Value::F64(f64::from_le_bytes(*b))).collect()
        }
        _ => bytes.chunks_exact(scalar.size()).map(|bytes| scalar_value(scalar, bytes)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::msg::Types;

    fn plan(text: &str) -> Arc<Plan> {
        Plan::new(&Types::resolve("a/A", text.as_bytes(), 64, &|_| None).unwrap()).unwrap()
    }

    fn json(text: &str, payload: &[u8]) -> String {
        let (value, used) = plan(text).value(payload).unwrap();
        assert_eq!(used, payload.len());
        value.to_json()
    }

    #[test]
    fn every_primitive_is_decoded() {
        assert_eq!(
            json(
                "byte by\nchar ch\nbool b\nint64 i\nfloat32 f\ntime t\nduration d\nstring s",
                b"\xff\xff\x02\xff\xff\xff\xff\xff\xff\xff\xff\0\0\xc0\x7f\x01\0\0\0\x02\0\0\0\xff\xff\xff\xff\x03\0\0\0\x02\0\0\0hi",
            ),
            r#"{"by":-1,"ch":255,"b":true,"i":"-1","f":"NaN","t":{"sec":1,"nsec":2},"d":{"sec":-1,"nsec":3},"s":"hi"}"#
        );
        assert_eq!(
            json(
                "uint8[] a\nint8[2] b\nuint16[] c\nstring[1] s\nB[] e\n===\nMSG: a/B\nbool x",
                b"\x02\0\0\0\x01\x02\xff\x01\x01\0\0\0\x05\0\x01\0\0\0\xff\x01\0\0\0\x01"
            ),
            r#"{"a":"AQI=","b":[-1,1],"c":[5],"s":["/w=="],"e":[{"x":true}]}"#
        );
    }

    #[test]
    fn counts_are_not_believed() {
        let list = plan("float64[] f");
        assert_eq!(list.value(b"\xff\xff\xff\xff\0").unwrap_err(), DecodeError::Short(4));
        let empty = plan("B[] b\n===\nMSG: a/B\n");
        assert_eq!(empty.value(b"\xff\xff\xff\xff").unwrap_err(), DecodeError::TooMany(4));
        assert!(empty.value(b"\x03\0\0\0").is_ok());
    }
}
