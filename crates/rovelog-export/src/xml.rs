//! Escapes text for XML and HTML.

use std::borrow::Cow;
use std::fmt::Write as _;

use rovelog::core::internal::text::is_terminal_control;

/// Escapes `text` for the content or attributes of XML 1.0. Characters that XML does not allow are
/// omitted.
///
/// Characters that change the writing direction are written as escape sequences such as `\u{202e}`.
/// With such a character, the file name `exe.gpj` could be displayed as `jpg.exe`.
pub(crate) fn escape(text: &str) -> Cow<'_, str> {
    let plain =
        |c: char| !matches!(c, '&' | '<' | '>' | '"' | '\'' | '\t') && valid(c) && !is_terminal_control(c);
    if text.chars().all(plain) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&apos;"),
            '\t' | '\n' | '\r' => escaped.push(' '),
            c if valid(c) && is_terminal_control(c) => {
                let _ = write!(escaped, "\\u{{{:x}}}", u32::from(c));
            }
            c if valid(c) => escaped.push(c),
            _ => {}
        }
    }
    Cow::Owned(escaped)
}

/// Returns whether a character is written to XML. XML 1.0 forbids or discourages control
/// characters, so all of them are excluded.
fn valid(c: char) -> bool {
    !c.is_control() && !matches!(c, '\u{fffe}' | '\u{ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_characters_are_omitted() {
        assert_eq!(escape("Größe 3"), "Größe 3");
        assert_eq!(escape("<a b=\"'&\">"), "&lt;a b=&quot;&apos;&amp;&quot;&gt;");
        assert_eq!(escape("a\0\x1b\u{7f}\u{85}\u{ffff}b\nc"), "ab c");
    }

    #[test]
    fn marks_of_direction_are_shown() {
        assert_eq!(escape("flight\u{202e}gpj.ulg"), "flight\\u{202e}gpj.ulg");
        assert_eq!(escape("\u{2066}a\u{2069} \u{5e9}"), "\\u{2066}a\\u{2069} \u{5e9}");
    }
}
