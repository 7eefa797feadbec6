//! Laying bytes down, straight from the specification's words.
//!
//! Nothing here knows what a reader does: the corpus must not be able to agree with a mistake
//! of ours, so neither our crates nor any other library of these formats may be used below this folder.

/// Bytes in the order they will stand in the file, little endian.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lay(Vec<u8>);

impl Lay {
    /// Nothing yet.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Bytes as they are.
    pub(crate) fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    /// One byte.
    pub(crate) fn u8(self, value: u8) -> Self {
        self.bytes(&[value])
    }

    /// Two bytes.
    pub(crate) fn u16(self, value: u16) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    /// Four bytes.
    pub(crate) fn u32(self, value: u32) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    /// Four bytes, signed.
    pub(crate) fn i32(self, value: i32) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    /// Four bytes, IEEE 754.
    pub(crate) fn f32(self, value: f32) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    /// Eight bytes, IEEE 754.
    pub(crate) fn f64(self, value: f64) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    /// Eight bytes.
    pub(crate) fn u64(self, value: u64) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    /// What was laid down.
    pub(crate) fn done(self) -> Vec<u8> {
        self.0
    }
}

/// Two lower-case digits for each byte.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(u32::from(value), 16);
    let digits = bytes.iter().flat_map(|&b| [digit(b >> 4), digit(b & 15)]);
    digits.flatten().collect()
}

/// Base64, as bytes are written in JSON.
pub(crate) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0_usize, |word, byte| word << 8 | usize::from(*byte))
            << (8 * (3 - chunk.len()));
        for i in 0..4 {
            let digit = DIGITS[word >> (18 - 6 * i) & 63];
            text.push(if i <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_rfc() {
        for (bytes, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }
}
