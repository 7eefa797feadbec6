//! Binary responses, which consist of a JSON header followed by arrays of 64-bit floats.

use serde_json::Value;

/// Encodes a response from a header and arrays. The response consists of these parts:
///
/// 1. the size of the header in bytes, as a 32-bit number
/// 2. the header as JSON
/// 3. the arrays one after the other, with the lengths that the header states
///
/// Numbers are little endian. The arrays start at a multiple of 8 bytes, so that the script in the
/// browser can use them as a `Float64Array` without copying.
pub(crate) fn packed<'a>(header: &Value, arrays: impl IntoIterator<Item = &'a [f64]>) -> Vec<u8> {
    let mut bytes = head(header, 0);
    arrays.into_iter().flatten().for_each(|number| bytes.extend(number.to_le_bytes()));
    bytes
}

/// Encodes the size of a header as a 32-bit number, and the header as JSON. The header is padded with
/// spaces, so that the result has a multiple of 8 bytes. The result has space for `more` bytes.
#[expect(clippy::cast_possible_truncation, reason = "a header of 4 GB does not fit into a browser")]
pub fn head(header: &Value, more: usize) -> Vec<u8> {
    let mut text = header.to_string();
    // Spaces after a JSON value are valid JSON.
    while !(4 + text.len()).is_multiple_of(8) {
        text.push(' ');
    }
    let mut bytes = Vec::with_capacity(4 + text.len() + more);
    bytes.extend((text.len() as u32).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_start_at_a_multiple_of_eight() {
        for name in ["", "a", "ab", "äöü", "1234567"] {
            let bytes = packed(&Value::from(name), [&[1.5, 2.5][..], &[3.5]]);
            let header = 4 + u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
            assert_eq!((header % 8, bytes.len()), (0, header + 24));
            assert_eq!(bytes[header + 16..], 3.5_f64.to_le_bytes());
        }
    }
}
