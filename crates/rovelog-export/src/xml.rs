//! XML text.

use std::borrow::Cow;
use std::fmt::Write as _;

use rovelog::core::text::steers;

/// Escapes `text` for content or attributes of XML 1.0. Characters that XML cannot hold are left
/// out. Marks that change the direction of writing are shown as `\u{202e}`, as in a terminal,
/// because they let a name look like another one.
pub(crate) fn escape(text: &str) -> Cow<'_, str> {
    let plain = |c: char| !matches!(c, '&' | '<' | '>' | '"' | '\'' | '\t') && valid(c) && !steers(c);
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
            c if valid(c) && steers(c) => {
                let _ = write!(escaped, "\\u{{{:x}}}", u32::from(c));
            }
            c if valid(c) => escaped.push(c),
            _ => {}
        }
    }
    Cow::Owned(escaped)
}

/// Returns whether `c` is a `Char` of XML 1.0, without the discouraged control characters.
fn valid(c: char) -> bool {
    !c.is_control() && !matches!(c, '\u{fffe}' | '\u{ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_xml_cannot_hold_is_left_out() {
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
