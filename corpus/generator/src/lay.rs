//! Writes bytes as the specification describes them.
//!
//! Nothing here knows what a reader does: the corpus must not be able to agree with a mistake of
//! ours, so neither our crates nor any other library of these formats may be used below this
//! folder.

use base64::Engine as _;

/// A value that can be written: numbers little endian, all else byte by byte.
pub(crate) trait Laid {
    /// Appends the bytes.
    fn lay(&self, out: &mut Vec<u8>);
}

macro_rules! numbers {
    ($($kind:ty)*) => {
        $(impl Laid for $kind {
            fn lay(&self, out: &mut Vec<u8>) {
                out.extend(self.to_le_bytes());
            }
        })*
    };
}
numbers! { u8 i8 u16 i16 u32 i32 u64 i64 f32 f64 }

impl<T: Laid> Laid for [T] {
    fn lay(&self, out: &mut Vec<u8>) {
        for item in self {
            item.lay(out);
        }
    }
}

impl<T: Laid, const N: usize> Laid for [T; N] {
    fn lay(&self, out: &mut Vec<u8>) {
        self.as_slice().lay(out);
    }
}

impl<T: Laid> Laid for Vec<T> {
    fn lay(&self, out: &mut Vec<u8>) {
        self.as_slice().lay(out);
    }
}

impl Laid for str {
    fn lay(&self, out: &mut Vec<u8>) {
        self.as_bytes().lay(out);
    }
}

impl<A: Laid, B: Laid> Laid for (A, B) {
    fn lay(&self, out: &mut Vec<u8>) {
        self.0.lay(out);
        self.1.lay(out);
    }
}

impl<T: Laid + ?Sized> Laid for &T {
    fn lay(&self, out: &mut Vec<u8>) {
        (*self).lay(out);
    }
}

/// Concatenates the bytes of values.
macro_rules! lay {
    ($($thing:expr),* $(,)?) => {{
        let mut bytes: Vec<u8> = Vec::new();
        $($crate::lay::Laid::lay(&$thing, &mut bytes);)*
        bytes
    }};
}
pub(crate) use lay;

/// Returns two lower-case digits for each byte.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(value.into(), 16);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).flatten().collect()
}

/// Returns bytes as text, with those that are not UTF-8 as `\xcf`. In a text with such bytes, a
/// backslash is doubled.
pub(crate) fn escaped(bytes: &[u8]) -> String {
    let is_utf8 = std::str::from_utf8(bytes).is_ok();
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        text += &if is_utf8 { chunk.valid().to_owned() } else { chunk.valid().replace('\\', r"\\") };
        text.extend(chunk.invalid().iter().map(|byte| format!(r"\x{byte:02x}")));
    }
    text
}

/// Returns bytes in base64, as in the expected results.
pub(crate) fn base64(bytes: &[u8]) -> String {
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// Returns pseudorandom bytes without repetition (a linear congruential generator, high bits).
pub(crate) fn noise(len: usize) -> Vec<u8> {
    let mut state: u32 = 2_463_534_242;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    };
    std::iter::repeat_with(next).take(len).collect()
}
