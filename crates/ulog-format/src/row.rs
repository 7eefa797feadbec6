//! The values of information messages, and what reads the fields of rows.

use rovelog_core::Value;
pub use rovelog_core::layout::{Number, Place, Row};
use rovelog_core::layout::{TextDecoding, scalar_value};

use crate::layout::Layout;
use crate::schema::{Basic, TypeName};

/// Returns the value of an information message whose type is a format, or an array of one; `None`
/// where the size disagrees.
pub(crate) fn nested_value(layout: &Layout, len: Option<u64>, bytes: &[u8]) -> Option<Value> {
    let value = |bytes| Row::new(&layout.record, bytes).value();
    let Some(len) = len else {
        return [layout.full, layout.trimmed].contains(&bytes.len()).then(|| value(bytes));
    };
    // Elements without a size could be any number.
    let fits = layout.full > 0 && (layout.full as u64).checked_mul(len) == Some(bytes.len() as u64);
    fits.then(|| Value::List(bytes.chunks(layout.full).map(value).collect()))
}

/// Returns the value of an information message of the given type: a number, a text, or a list of
/// numbers. Where type and size disagree, or the type is not basic, its bytes.
pub(crate) fn info_value(ty: &str, bytes: &[u8], decoding: &TextDecoding) -> Value {
    let parsed = TypeName::parse(ty);
    match parsed.and_then(|ty| Some((Basic::parse(ty.base)?, ty))) {
        // A text's length comes from the message (D26).
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
