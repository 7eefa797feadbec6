//! Words of messages, text in fields of fixed size, and text of logs for a terminal.

use std::borrow::Cow;
use std::fmt::{Display, Write as _};

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

/// Returns the text before the first NUL; bytes that are not UTF-8 are escaped.
pub fn padded(bytes: &[u8]) -> String {
    escape_bytes(up_to_nul(bytes))
}

/// Returns bytes as text. Bytes that are not UTF-8 are written as `\xcf`. In a text with such bytes
/// a backslash is doubled, so that the bytes can be restored; other texts stay as they are.
pub fn escape_bytes(bytes: &[u8]) -> String {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return text.to_owned();
    }
    let mut text = String::with_capacity(bytes.len() + 16);
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c == '\\' {
                text.push(c);
            }
            text.push(c);
        }
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// Escapes control characters in `text`, so that a log cannot control the terminal. Marks that
/// change the direction of writing are escaped too; a tab is not.
pub fn escape(text: &str) -> Cow<'_, str> {
    let plain = |byte: u8| matches!(byte, b' '..=b'~' | b'\t');
    if text.bytes().all(plain) || !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '\n' => escaped.push_str("\\n"),
            '\r' => escaped.push_str("\\r"),
            c if steers(c) && u32::from(c) < 0x100 => {
                let _ = write!(escaped, "\\x{:02x}", u32::from(c));
            }
            c if steers(c) => {
                let _ = write!(escaped, "\\u{{{:x}}}", u32::from(c));
            }
            c => escaped.push(c),
        }
    }
    Cow::Owned(escaped)
}

/// Returns whether a character controls a terminal or changes the direction of writing.
pub fn steers(c: char) -> bool {
    (c.is_control() && c != '\t') || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_cannot_steer_the_terminal() {
        assert_eq!(escape("plain\ttab, größe"), "plain\ttab, größe");
        assert_eq!(escape("\x1b[2J\x07\r\n\u{9b}1m\u{202e}"), "\\x1b[2J\\x07\\r\\n\\x9b1m\\u{202e}");
    }
}
