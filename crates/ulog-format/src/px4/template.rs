//! Parser for the texts of event definitions.
//!
//! A text can contain:
//!
//! - placeholders such as `{2:.1m/s}`, which is argument 2 with one decimal and a unit
//! - the tags `<a href="..">`, `<param>` and `<profile name="..">`
//! - a backslash before a character that has no special meaning
//!
//! # Example
//!
//! The text `Set <param>MIS_ALT</param> to {1:.0m}<profile name="normal">!</profile>` has the
//! pieces `Set `, `MIS_ALT`, ` to ` and the first argument with 0 decimals and the unit `m`. The
//! last tag is left out, because its text is for another profile.

use std::fmt::Write as _;

/// Name of the profile whose texts are shown. PX4's ground stations and log tools show the texts
/// for developers, which are in the profile `dev`.
const PROFILE: &str = "dev";

/// Maximum number of decimals in a placeholder.
const MAX_DECIMALS: usize = 20;

/// Units that a placeholder can contain, each with the text that is shown for it.
const UNITS: [(&str, &str); 5] = [("m_v", "m"), ("m/s", "m/s"), ("m^2", "m^2"), ("m", "m"), ("C", "C")];

/// A literal text or a placeholder in the text of an event definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// A text that is shown without changes.
    Text(&'a str),
    /// A placeholder for an argument of the event.
    Argument {
        /// Index of the argument in the event, counted from 0.
        number: usize,
        decimals: Option<usize>,
        unit: Option<&'static str>,
        /// The text of the placeholder, as written in the event definition.
        source: &'a str,
    },
}

/// Returns the longest prefix of `text` that has at most `len` bytes and does not end inside a
/// character.
pub(super) fn head(text: &str, len: usize) -> &str {
    &text[..text.floor_char_boundary(len)]
}

/// Divides the text of an event definition into literal texts and placeholders.
pub(super) fn parse(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    // Start and end offsets of closing `</profile>` tags whose text is shown. The tags themselves
    // are skipped.
    let mut closing: Vec<(usize, usize)> = Vec::new();
    let (mut at, mut words) = (0, 0);
    while let Some(byte) = text.as_bytes().get(at) {
        let end_of_words = at;
        let mut piece = None;
        let next = if let Some((_, end)) = closing.iter().find(|(start, _)| *start == at) {
            Some(*end)
        } else {
            match byte {
                b'\\' => {
                    // The character after a backslash is literal, even if it is a brace or another
                    // backslash.
                    let width = text[at + 1..].chars().next().map_or(0, char::len_utf8);
                    push(&mut pieces, &text[words..at]);
                    words = at + 1;
                    at += 1 + width;
                    continue;
                }
                b'<' => tag(text, at).map(|tag| match tag.name {
                    "profile" if keeps(tag.attribute) => {
                        closing.push((tag.content.end, tag.end));
                        tag.content.start
                    }
                    "a" | "param" => {
                        piece = Some(Piece::Text(&text[tag.content.clone()]));
                        tag.end
                    }
                    // The tag and its text are skipped, because the text is for another profile or
                    // the tag is unknown.
                    _ => tag.end,
                }),
                b'{' => argument(text, at).map(|(argument, end)| {
                    piece = Some(argument);
                    end
                }),
                _ => None,
            }
        };
        match next {
            Some(next) => {
                push(&mut pieces, &text[words..end_of_words]);
                pieces.extend(piece);
                (at, words) = (next, next);
            }
            // This byte is part of a literal character. Bytes within a multi-byte UTF-8 character
            // never equal the ASCII characters above.
            None => at += 1,
        }
    }
    push(&mut pieces, &text[words..]);
    pieces
}

/// Appends a literal text to `pieces`, unless the text is empty.
fn push<'a>(pieces: &mut Vec<Piece<'a>>, words: &'a str) {
    if !words.is_empty() {
        pieces.push(Piece::Text(words));
    }
}

/// Returns `true` if texts for a profile are shown. The profile `!name` means all profiles except
/// `name`.
fn keeps(profile: Option<&str>) -> bool {
    match profile.unwrap_or_default().strip_prefix('!') {
        Some(others) => others != PROFILE,
        None => profile == Some(PROFILE),
    }
}

/// An opening tag, with the text up to its closing tag.
struct Tag<'a> {
    name: &'a str,
    /// Value of the attribute, or `None` if the tag has no attribute.
    attribute: Option<&'a str>,
    /// Byte range of the text between the opening and the closing tag.
    content: std::ops::Range<usize>,
    /// Offset of the end of the closing tag.
    end: usize,
}

/// Parses a tag of the form `<name>` or `<name key="value">` at the offset `at`. Returns `None` if
/// the bytes are not a tag, or if the closing tag is missing.
fn tag(text: &str, at: usize) -> Option<Tag<'_>> {
    let word = |from: usize| {
        let len = text[from..].bytes().take_while(u8::is_ascii_lowercase).count();
        (len > 0).then_some(from + len)
    };
    let name_end = word(at + 1)?;
    let name = &text[at + 1..name_end];
    let (attribute, open_end) = if text[name_end..].starts_with(' ') {
        let value = text[word(name_end + 1)?..].strip_prefix("=\"")?;
        let (value, rest) = value.split_once('"')?;
        (Some(value), text.len() - rest.len())
    } else {
        (None, name_end)
    };
    let content = text[open_end..].strip_prefix('>')?;
    let start = text.len() - content.len();
    let close = format!("</{name}>");
    let end = start + content.find(&close)?;
    Some(Tag { name, attribute, content: start..end, end: end + close.len() })
}

/// Parses a placeholder of the form `{NUMBER[:[.DECIMALS]][UNIT]}` at the offset `at`. Returns the
/// placeholder and the offset of its end. In the text, arguments are counted from 1.
fn argument(text: &str, at: usize) -> Option<(Piece<'_>, usize)> {
    let inner = text[at + 1..].split_once('}')?.0;
    let end = at + 1 + inner.len() + 1;
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, mut rest) = inner.split_at(digits(inner));
    let number = number.parse::<usize>().ok()?.checked_sub(1)?;
    let mut decimals = None;
    if let Some(format) = rest.strip_prefix(':') {
        rest = format;
        if let Some(format) = format.strip_prefix('.') {
            let (count, unit) = format.split_at(digits(format));
            decimals = Some(count.parse::<usize>().ok()?.min(MAX_DECIMALS));
            rest = unit;
        }
    }
    let unit = match rest {
        "" => None,
        rest => Some(UNITS.iter().find(|(name, _)| *name == rest)?.1),
    };
    Some((Piece::Argument { number, decimals, unit, source: &text[at..end] }, end))
}

/// The value of an event argument.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value {
    Int(i64),
    UInt(u64),
    Float(f32),
}

impl Value {
    /// Decodes a value of the type `ty` from the start of `bytes`. Returns the value, and the bytes
    /// after it.
    pub(super) fn split<'a>(ty: &str, bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        macro_rules! read {
            ($ty:ty, $variant:ident) => {{
                let (head, rest) = bytes.split_first_chunk()?;
                (Self::$variant(<$ty>::from_le_bytes(*head).into()), rest)
            }};
        }
        Some(match ty {
            "uint8_t" => read!(u8, UInt),
            "int8_t" => read!(i8, Int),
            "uint16_t" => read!(u16, UInt),
            "int16_t" => read!(i16, Int),
            "uint32_t" => read!(u32, UInt),
            "int32_t" => read!(i32, Int),
            "uint64_t" => read!(u64, UInt),
            "int64_t" => read!(i64, Int),
            "float" => read!(f32, Float),
            _ => return None,
        })
    }

    /// Returns the value of an integer as 64 bits, or `None` for a floating-point number.
    pub(super) fn bits(self) -> Option<u64> {
        match self {
            Self::Int(value) => Some(value.cast_unsigned()),
            Self::UInt(value) => Some(value),
            Self::Float(_) => None,
        }
    }

    /// Appends the value to `text`. If `decimals` is `None`, a floating-point number gets the
    /// fewest digits that identify it.
    pub(super) fn push(self, decimals: Option<usize>, text: &mut String) {
        let _ = match (self, decimals) {
            (Self::Int(value), None) => write!(text, "{value}"),
            (Self::UInt(value), None) => write!(text, "{value}"),
            (Self::Float(value), None) => write!(text, "{value}"),
            (Self::Int(value), Some(decimals)) => write!(text, "{:.decimals$}", value as f64),
            (Self::UInt(value), Some(decimals)) => write!(text, "{:.decimals$}", value as f64),
            // The conversion of a 32-bit float to 64 bits is exact, so the digits are those of the
            // stored value.
            (Self::Float(value), Some(decimals)) => write!(text, "{:.decimals$}", f64::from(value)),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses a text, and returns it with each placeholder replaced by its parsed properties.
    fn shown(text: &str) -> String {
        let mut shown = String::new();
        for piece in parse(text) {
            match piece {
                Piece::Text(words) => shown.push_str(words),
                Piece::Argument { number, decimals, unit, .. } => {
                    let _ = write!(shown, "[{number} {decimals:?} {unit:?}]");
                }
            }
        }
        shown
    }

    #[test]
    fn arguments_have_decimals_and_units() {
        assert_eq!(shown("at {1}"), "at [0 None None]");
        assert_eq!(shown("{3:.1m/s}!"), "[2 Some(1) Some(\"m/s\")]!");
        assert_eq!(shown("{2m_v}{1:}"), "[1 None Some(\"m\")][0 None None]");
        assert_eq!(shown("{1:.0m^2}"), "[0 Some(0) Some(\"m^2\")]");
        assert_eq!(shown("{1:.999999999}"), "[0 Some(20) None]");
        for literal in ["{0}", "{x}", "{}", "{1", "{1:.}", "{1km}", "{99999999999999999999999}", "{-1}"] {
            assert_eq!(shown(literal), literal);
        }
    }

    #[test]
    fn markup_is_removed() {
        assert_eq!(shown(r"max \< 5 and \{1} \\"), r"max < 5 and {1} \");
        assert_eq!(shown("see <a>https://px4.io</a>."), "see https://px4.io.");
        assert_eq!(shown("see <a href=\"https://px4.io\">the {1} guide</a>."), "see the {1} guide.");
        assert_eq!(shown("set <param>SYS_AUTOSTART</param>"), "set SYS_AUTOSTART");
        assert_eq!(shown("a<profile name=\"dev\">b{1}c</profile>d"), "ab[0 None None]cd");
        assert_eq!(shown("a<profile name=\"normal\">b</profile>d"), "ad");
        assert_eq!(shown("a<profile name=\"!dev\">b</profile>d"), "ad");
        assert_eq!(shown("a<profile name=\"!normal\">b</profile>d"), "abd");
        assert_eq!(shown("a<profile>b</profile>d"), "ad");
        assert_eq!(shown("a<future>b</future>d"), "ad");
        for literal in ["a < b", "<a", "<a>b", "<A>b</A>", "<a href=x>b</a>", "</a>", "é<ü>"] {
            assert_eq!(shown(literal), literal);
        }
        assert_eq!(shown("é\\é<param>é</param>\\"), "ééé");
    }

    #[test]
    fn values_are_printed_in_short_decimal_form() {
        let print = |value: Value, decimals| {
            let mut text = String::new();
            value.push(decimals, &mut text);
            text
        };
        assert_eq!(print(Value::Float(0.1), None), "0.1");
        assert_eq!(print(Value::Float(0.1), Some(9)), "0.100000001");
        assert_eq!(print(Value::Float(2.5), Some(0)), "2", "a tie goes to the even digit");
        assert_eq!(print(Value::Int(-3), Some(1)), "-3.0");
        assert_eq!(print(Value::UInt(u64::MAX), None), "18446744073709551615");
        assert_eq!(print(Value::Float(f32::NAN), Some(1)), "NaN");
        assert_eq!(Value::split("int16_t", &[0xfe, 0xff, 9]), Some((Value::Int(-2), &[9][..])));
        assert_eq!(Value::split("int16_t", &[1]), None);
        assert_eq!(Value::split("string", &[1]), None);
    }
}
