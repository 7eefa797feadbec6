//! The texts of event definitions: mark-up taken off, arguments found, values printed.
//!
//! A text may hold `{2:.1m/s}` (argument 2 with one decimal and a unit), `<a href="..">`,
//! `<param>`, `<profile name="..">`, and a backslash before any character that is meant as it is.

use std::fmt::Write as _;

/// The audience: PX4's ground stations and log tools show what is meant for developers.
const PROFILE: &str = "dev";

/// The most decimals that are printed.
const MAX_DECIMALS: usize = 20;

/// The units that an argument may name, and how they are shown.
const UNITS: [(&str, &str); 5] = [("m_v", "m"), ("m/s", "m/s"), ("m^2", "m^2"), ("m", "m"), ("C", "C")];

/// A part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// Words.
    Text(&'a str),
    /// The place of an argument.
    Argument {
        /// Its number, from 0.
        number: usize,
        decimals: Option<usize>,
        unit: Option<&'static str>,
        /// What is in the definition.
        source: &'a str,
    },
}

/// Returns the longest beginning of `text` of at most `len` bytes.
pub(super) fn head(text: &str, len: usize) -> &str {
    &text[..text.floor_char_boundary(len)]
}

/// Returns the parts of a text.
pub(super) fn parse(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    // The closing tags of what is kept, to be passed by.
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
                    // The character behind it starts the next words, whatever it is.
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
                    // Another profile's words, or a tag of the future.
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
            // Just a character; only its first byte can be one of those above.
            None => at += 1,
        }
    }
    push(&mut pieces, &text[words..]);
    pieces
}

fn push<'a>(pieces: &mut Vec<Piece<'a>>, words: &'a str) {
    if !words.is_empty() {
        pieces.push(Piece::Text(words));
    }
}

/// Returns whether the words of a profile are for us; `!name` is for all others.
fn keeps(profile: Option<&str>) -> bool {
    match profile.unwrap_or_default().strip_prefix('!') {
        Some(others) => others != PROFILE,
        None => profile == Some(PROFILE),
    }
}

struct Tag<'a> {
    name: &'a str,
    attribute: Option<&'a str>,
    content: std::ops::Range<usize>,
    end: usize,
}

/// Returns the tag that opens at `at`, with its content: `<name>`, or `<name key="value">`.
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

/// Returns the argument that opens at `at`: `{NUMBER[:[.DECIMALS]][UNIT]}`, counted from 1.
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

/// The value of an argument.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value {
    Int(i64),
    UInt(u64),
    Float(f32),
}

impl Value {
    /// Returns the value of type `ty` at the start of `bytes`, and what is behind it.
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

    /// Returns the bits of a whole number.
    pub(super) fn bits(self) -> Option<u64> {
        match self {
            Self::Int(value) => Some(value.cast_unsigned()),
            Self::UInt(value) => Some(value),
            Self::Float(_) => None,
        }
    }

    /// Prints it: with so many decimals, or the shortest digits that mean the same number.
    pub(super) fn push(self, decimals: Option<usize>, text: &mut String) {
        let _ = match (self, decimals) {
            (Self::Int(value), None) => write!(text, "{value}"),
            (Self::UInt(value), None) => write!(text, "{value}"),
            (Self::Float(value), None) => write!(text, "{value}"),
            (Self::Int(value), Some(decimals)) => write!(text, "{:.decimals$}", value as f64),
            (Self::UInt(value), Some(decimals)) => write!(text, "{:.decimals$}", value as f64),
            // The decimals of the value itself: 32 bits are a number of 64 bits exactly.
            (Self::Float(value), Some(decimals)) => write!(text, "{:.decimals$}", f64::from(value)),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the text with its arguments shown as they were understood.
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
    fn marks_are_taken_off() {
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
    fn values_print_as_people_write_them() {
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
