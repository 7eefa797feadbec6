//! Words of messages.

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
