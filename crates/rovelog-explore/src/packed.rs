//! Binary responses, which consist of a JSON header followed by arrays of 64-bit floats.

use serde_json::Value;

/// Encodes a response from a header and arrays. The response consists of these parts:
///
/// 1. the size of the header in bytes, as a 32-bit number
/// 2. the header as JSON
/// 3. the arrays one after the other, with the lengths that the header states
///
/// Numbers are little endian. The header is padded with spaces so that the arrays start at a
/// multiple of 8 bytes. This allows the script in the browser to use them as a `Float64Array`
/// without copying.
pub(crate) fn packed<'a>(header: &Value, arrays: impl IntoIterator<Item = &'a [f64]>) -> Vec<u8> {
    let mut text = header.to_string();
    // The header is padded with spaces so that the arrays after it are aligned to 8 bytes. Spaces
    // after a JSON value are valid JSON.
    while !(4 + text.len()).is_multiple_of(8) {
        text.push(' ');
    }
    let mut bytes = u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes().to_vec();
    bytes.extend(text.as_bytes());
    arrays.into_iter().flatten().for_each(|number| bytes.extend(number.to_le_bytes()));
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
