//! Conversion of numbers between bytes and values.

use crate::{Scalar, Value};

/// A Rust type that represents numbers of a scalar type.
pub trait Number: Copy {
    /// Scalar type that the Rust type represents.
    const SCALAR: Scalar;
    /// Reads a number from the start of `bytes`. Returns `None` if there are too few bytes.
    fn from_wire(bytes: &[u8]) -> Option<Self>;
    /// Appends the bytes of the number to `out`.
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
    /// Any byte other than 0 is true, because real logs contain Booleans other than 0 and 1.
    #[inline]
    fn from_wire(bytes: &[u8]) -> Option<Self> {
        Some(*bytes.first()? != 0)
    }
    #[inline]
    fn to_wire(self, out: &mut Vec<u8>) {
        out.push(self.into());
    }
}

/// Decodes a number or Boolean at the start of `bytes`.
///
/// # Panics
/// Panics if `bytes` is shorter than the scalar.
#[inline]
pub fn scalar_value(scalar: Scalar, bytes: &[u8]) -> Value {
    with_scalar(scalar, bytes, |value| value)
}

/// Decodes a number or Boolean and passes its value to `take`. The function is inlined, so `take`
/// is compiled separately for each type. No [`Value`] has to be created only to be matched again.
#[inline(always)]
pub(super) fn with_scalar<T>(scalar: Scalar, bytes: &[u8], take: impl FnOnce(Value) -> T) -> T {
    macro_rules! read {
        ($ty:ty) => {
            <$ty>::from_wire(bytes).expect("as many bytes as a scalar has")
        };
    }
    match scalar {
        Scalar::Bool => take(Value::Bool(read!(bool))),
        Scalar::Int8 => take(Value::Int(read!(i8).into(), 8)),
        Scalar::UInt8 => take(Value::UInt(read!(u8).into(), 8)),
        Scalar::Int16 => take(Value::Int(read!(i16).into(), 16)),
        Scalar::UInt16 => take(Value::UInt(read!(u16).into(), 16)),
        Scalar::Int32 => take(Value::Int(read!(i32).into(), 32)),
        Scalar::UInt32 => take(Value::UInt(read!(u32).into(), 32)),
        Scalar::Int64 => take(Value::Int(read!(i64), 64)),
        Scalar::UInt64 => take(Value::UInt(read!(u64), 64)),
        Scalar::Float32 => take(Value::F32(read!(f32))),
        Scalar::Float64 => take(Value::F64(read!(f64))),
    }
}

/// Returns the scalar type with the type and width of `value`. Returns `None` if the value is not a
/// number or Boolean.
pub fn scalar_of(value: &Value) -> Option<Scalar> {
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

/// Appends the bytes of a number to `out` if the type `scalar` represents the number exactly.
///
/// An integer of any width is accepted if it fits. A Boolean is written as one byte. Returns `None`
/// if the value cannot be represented.
pub fn encode_scalar(scalar: Scalar, value: &Value, out: &mut Vec<u8>) -> Option<()> {
    let integer = match *value {
        Value::Int(v, _) => Some(i128::from(v)),
        Value::UInt(v, _) => Some(i128::from(v)),
        // An integer is also accepted for a Boolean field, because real logs have Booleans other
        // than 0 and 1.
        Value::Bool(v) if scalar == Scalar::Bool => Some(v.into()),
        _ => None,
    };
    macro_rules! put {
        ($ty:ty) => {
            <$ty>::try_from(integer?).ok()?.to_wire(out)
        };
    }
    match scalar {
        Scalar::Bool | Scalar::UInt8 => put!(u8),
        Scalar::Int8 => put!(i8),
        Scalar::Int16 => put!(i16),
        Scalar::UInt16 => put!(u16),
        Scalar::Int32 => put!(i32),
        Scalar::UInt32 => put!(u32),
        Scalar::Int64 => put!(i64),
        Scalar::UInt64 => put!(u64),
        Scalar::Float32 => match value {
            Value::F32(v) => v.to_wire(out),
            _ => return None,
        },
        Scalar::Float64 => match *value {
            Value::F64(v) => v.to_wire(out),
            // A double can represent every single-precision float.
            Value::F32(v) => f64::from(v).to_wire(out),
            _ => return None,
        },
    }
    Some(())
}

/// Converts the value of a field to the number of elements of another field. A negative value
/// becomes the largest `u64`, which is more than any record can have. A value that is not an
/// integer becomes 0.
pub(super) fn length(value: &Value) -> u64 {
    match value {
        Value::UInt(n, _) => *n,
        Value::Int(n, _) => u64::try_from(*n).unwrap_or(u64::MAX),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns values of each scalar type with their bytes.
    fn values() -> Vec<(Scalar, Value, Vec<u8>)> {
        vec![
            (Scalar::Bool, Value::Bool(true), vec![1]),
            (Scalar::Bool, Value::Bool(false), vec![0]),
            (Scalar::Int8, Value::Int(-2, 8), vec![254]),
            (Scalar::UInt8, Value::UInt(255, 8), vec![255]),
            (Scalar::Int16, Value::Int(-2, 16), vec![254, 255]),
            (Scalar::UInt16, Value::UInt(0x102, 16), vec![2, 1]),
            (Scalar::Int32, Value::Int(i64::from(i32::MIN), 32), vec![0, 0, 0, 128]),
            (Scalar::UInt32, Value::UInt(7, 32), vec![7, 0, 0, 0]),
            (Scalar::Int64, Value::Int(-1, 64), vec![255; 8]),
            (Scalar::UInt64, Value::UInt(u64::MAX, 64), vec![255; 8]),
            (Scalar::Float32, Value::F32(1.5), 1.5_f32.to_le_bytes().to_vec()),
            (Scalar::Float64, Value::F64(-2.5), (-2.5_f64).to_le_bytes().to_vec()),
        ]
    }

    #[test]
    fn a_scalar_is_read_and_written_without_loss() {
        for (scalar, value, bytes) in values() {
            assert_eq!(scalar_of(&value), Some(scalar));
            assert_eq!(scalar_value(scalar, &bytes), value);
            let mut out = Vec::new();
            assert_eq!((encode_scalar(scalar, &value, &mut out), out), (Some(()), bytes));
        }
        assert_eq!((scalar_of(&Value::Null), scalar_of(&Value::Int(1, 24))), (None, None));
        // Real logs have Booleans other than 0 and 1.
        assert_eq!((bool::from_wire(&[2]), bool::from_wire(&[])), (Some(true), None));
        let mut out = Vec::new();
        true.to_wire(&mut out);
        assert_eq!(out, [1]);
    }

    #[test]
    fn a_number_is_written_only_if_it_fits() {
        let written = |scalar, value| {
            let mut out = Vec::new();
            encode_scalar(scalar, &value, &mut out).map(|()| out)
        };
        assert_eq!(written(Scalar::Int16, Value::UInt(7, 64)), Some(vec![7, 0]));
        assert_eq!(written(Scalar::UInt16, Value::Int(7, 64)), Some(vec![7, 0]));
        assert_eq!(written(Scalar::Bool, Value::UInt(2, 8)), Some(vec![2]));
        assert_eq!(written(Scalar::Float64, Value::F32(1.5)), Some(1.5_f64.to_le_bytes().to_vec()));
        for (scalar, value) in [
            (Scalar::UInt8, Value::Int(-1, 8)),
            (Scalar::Int8, Value::UInt(128, 8)),
            (Scalar::UInt8, Value::Bool(true)),
            (Scalar::Float32, Value::F64(1.5)),
            (Scalar::Float32, Value::UInt(1, 8)),
            (Scalar::Float64, Value::Int(1, 8)),
            (Scalar::Int32, Value::F32(1.0)),
        ] {
            assert_eq!(written(scalar, value.clone()), None, "{value:?} as {scalar:?}");
        }
    }

    #[test]
    fn only_integers_count_as_lengths() {
        let lengths = [Value::UInt(7, 8), Value::Int(7, 8), Value::F32(7.0), Value::Null].map(|n| length(&n));
        assert_eq!(lengths, [7, 7, 0, 0]);
        assert_eq!(length(&Value::Int(-1, 8)), u64::MAX);
    }
}
