//! Writes bytes as the specifications describe them.
//!
//! The recipes in this folder must not use our own crates or other libraries for these formats.
//! Otherwise, a mistake in a library could be in a test log and its expected result, and no test
//! would find it.

use base64::Engine as _;

/// A value that can be written. Numbers are little endian.
pub(crate) trait Laid {
    /// Appends the bytes of the value to `out`.
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

impl Laid for String {
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

/// Steps for all values.
pub(crate) trait With: Sized {
    /// Changes the value, for example to write damaged bytes.
    fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// Calls `step` with the value if the condition is true.
    fn when(self, condition: bool, step: impl FnOnce(Self) -> Self) -> Self {
        if condition { step(self) } else { self }
    }
}

impl<T> With for T {}

/// Converts a number that is known to be small, such as a length.
pub(crate) fn u32_of(number: impl TryInto<u32>) -> u32 {
    number.try_into().ok().expect("less than 2^32")
}

/// Returns two lowercase hexadecimal digits for each byte.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat()
}

/// Converts bytes to text. A byte that is not valid UTF-8 is written as an escape sequence such as
/// `\xcf`. If there is such a byte, backslashes are doubled, so that the text is unambiguous.
pub(crate) fn escaped(bytes: &[u8]) -> String {
    let is_utf8 = std::str::from_utf8(bytes).is_ok();
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        text += &if is_utf8 { chunk.valid().to_owned() } else { chunk.valid().replace('\\', r"\\") };
        text.extend(chunk.invalid().iter().map(|byte| format!(r"\x{byte:02x}")));
    }
    text
}

/// Encodes bytes as base64, the form of bytes in expected results.
pub(crate) fn base64(bytes: &[u8]) -> String {
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// Returns pseudorandom bytes, the same on every machine. They are the high bits of a linear
/// congruential generator, because its low bits repeat after a few numbers.
pub(crate) fn random_bytes(mut state: u32) -> impl Iterator<Item = u8> {
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    })
}

/// Returns pseudorandom bytes, the same on every machine.
pub(crate) fn noise(len: usize) -> Vec<u8> {
    random_bytes(2_463_534_242).take(len).collect()
}

/// Returns pseudorandom numbers, the same on every machine. Only their high bits are random.
pub(crate) fn random_numbers() -> impl Iterator<Item = u64> {
    let next = |state: &u64| {
        Some(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407))
    };
    std::iter::successors(Some(1), next).skip(1)
}
