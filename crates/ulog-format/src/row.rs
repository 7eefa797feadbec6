//! Decoding of the values of information messages.

use rovelog_core::Value;
pub use rovelog_core::internal::layout::{Number, Place, Row};
use rovelog_core::internal::layout::{TextDecoding, scalar_value};

use crate::layout::Layout;
use crate::schema::{Basic, TypeName};

/// Decodes an information value whose type is a format of the log, or an array of such a format.
///
/// `len` is the declared array length, or `None` if the type is not an array. Returns `None` if the
/// size of the value contradicts the type.
pub(crate) fn nested_value(layout: &Layout, len: Option<u64>, bytes: &[u8]) -> Option<Value> {
    let value = |bytes| Row::new(&layout.record, bytes).value();
    let Some(len) = len else {
        return [layout.full_len, layout.trimmed_len].contains(&bytes.len()).then(|| value(bytes));
    };
    // If an element has no bytes, any number of elements has the same size. Such a value is
    // rejected, because its size cannot confirm the declared length.
    let fits = layout.full_len > 0 && (layout.full_len as u64).checked_mul(len) == Some(bytes.len() as u64);
    fits.then(|| Value::List(bytes.chunks(layout.full_len).map(value).collect()))
}

/// Decodes an information value of a basic type into a number, a text or a list of numbers.
///
/// Returns the bytes of the value if `ty` is not a basic type, or if the size of the value
/// contradicts the type.
pub(crate) fn info_value(ty: &str, bytes: &[u8], decoding: &TextDecoding) -> Value {
    let parsed = TypeName::parse(ty);
    match parsed.and_then(|ty| Some((Basic::parse(ty.base)?, ty))) {
        // Some writers store a wrong length `n` in `char[n]`, so all bytes of the value are decoded
        // as text (rule D26 of docs/formats/ulog.md).
        Some((Basic::Char, _)) => Value::Text(decoding.decode_uncounted(bytes).into_owned()),
        Some((Basic::Scalar(scalar), ty)) if ty.fits_value(bytes.len()) == Some(true) => match ty.len {
            None => scalar_value(scalar, bytes),
            Some(_) => {
                Value::List(bytes.chunks(scalar.size()).map(|bytes| scalar_value(scalar, bytes)).collect())
            }
        },
        _ => Value::Bytes(bytes.to_vec()),
    }
}
