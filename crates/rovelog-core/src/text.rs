//! Words of messages, and text in fields of fixed size.

use std::fmt::Display;

/// Returns a count with its noun: `1 byte`, `2 bytes`, `2 entries`.
///
/// ```
/// use rovelog_core::text::count;
///
/// assert_eq!(count(1_u64, "message"), "1 message");
/// assert_eq!(count(0_usize, "entry"), "0 entries");
/// ```
pub fn count<N: Copy + Display + PartialEq + From<u8>>(n: N, noun: &str) -> String {
    match noun.strip_suffix('y') {
        _ if n == N::from(1) => format!("{n} {noun}"),
        Some(stem) => format!("{n} {stem}ies"),
        None => format!("{n} {noun}s"),
    }
}

/// Returns the bytes before the first NUL.
pub fn up_to_nul(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len())]
}

/// Returns the text before the first NUL; what is not UTF-8 is replaced.
pub fn padded(bytes: &[u8]) -> String {
    String::from_utf8_lossy(up_to_nul(bytes)).into_owned()
}
