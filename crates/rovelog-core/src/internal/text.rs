//! Formats counts with nouns, reads NUL-terminated texts, and escapes text for terminals.

use std::borrow::Cow;
use std::fmt::{Display, Write as _};

/// Returns a number with its noun in the singular or plural, such as `1 byte` or `2 entries`.
///
/// ```
/// use rovelog_core::internal::text::count;
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

/// Returns bytes in hexadecimal, with the text `between` between two bytes.
pub fn hex(bytes: &[u8], between: &str) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(between)
}

/// Returns the bytes before the first NUL, or all bytes if there is no NUL.
pub fn up_to_nul(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len())]
}

/// Returns the bytes before the first NUL as text. Bytes that are not UTF-8 are escaped by
/// [`escape_bytes`].
pub fn padded(bytes: &[u8]) -> String {
    escape_bytes(up_to_nul(bytes))
}

/// Converts bytes to text. Bytes that are not UTF-8 are escaped, for example as `\xcf`.
///
/// If any byte is escaped, each backslash is doubled, so that the bytes can be restored from the
/// text. Valid UTF-8 is returned unchanged.
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

/// Escapes characters that control a terminal, so that text from a log cannot change the terminal.
///
/// This function escapes all control characters except the tab. It also escapes characters that
/// change the writing direction, because such a character can make a file name look like another
/// name.
pub fn escape(text: &str) -> Cow<'_, str> {
    let plain = |byte: u8| matches!(byte, b' '..=b'~' | b'\t');
    // Almost all texts are ASCII. Checking the bytes of such a text is faster than decoding its
    // characters.
    if text.bytes().all(plain) || !text.contains(is_terminal_control) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '\n' => escaped.push_str("\\n"),
            '\r' => escaped.push_str("\\r"),
            // This also escapes the control characters from 0x80 to 0x9f. For example, 0x9b starts
            // an escape sequence.
            c if is_terminal_control(c) && u32::from(c) < 0x100 => {
                let _ = write!(escaped, "\\x{:02x}", u32::from(c));
            }
            c if is_terminal_control(c) => {
                let _ = write!(escaped, "\\u{{{:x}}}", u32::from(c));
            }
            c => escaped.push(c),
        }
    }
    Cow::Owned(escaped)
}

/// Returns whether a character controls a terminal or changes the writing direction.
pub fn is_terminal_control(c: char) -> bool {
    (c.is_control() && c != '\t') || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(escape("plain\ttab, größe"), "plain\ttab, größe");
        assert_eq!(escape("\x1b[2J\x07\r\n\u{9b}1m\u{202e}"), "\\x1b[2J\\x07\\r\\n\\x9b1m\\u{202e}");
    }
}
