//! The text of message definitions: the sections of a full text, and the lines of each.

use std::borrow::Cow;

/// The parts of a full text, as "gendeps" writes it (section 6.1): the root's own text, then the
/// texts of all types that it needs, each under a line of `=` and a line `MSG: pkg/Type`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FullText<'a> {
    /// The text of the type itself.
    pub root: &'a [u8],
    /// Name and text of each type it needs, in the order of the full text.
    pub sections: Vec<(Cow<'a, str>, &'a [u8])>,
}

impl<'a> FullText<'a> {
    /// Splits a full text. Three `=` do where 80 are usual, and lines may end in CR LF.
    pub fn split(text: &'a [u8]) -> Self {
        let mut root = None;
        let mut sections: Vec<(Cow<'a, str>, &'a [u8])> = Vec::new();
        // The section that is open: its name and where its text starts.
        let mut open: Option<Cow<'a, str>> = None;
        let (mut from, mut at) = (0, 0);
        while at < text.len() {
            let end = line_end(text, at);
            if let Some((name, behind)) = separator(text, at, end) {
                // The LF before the line of `=` belongs to it.
                let before = text.get(from..at.saturating_sub(1)).unwrap_or_default();
                match open.replace(name) {
                    None => root = Some(before),
                    Some(name) => sections.push((name, before)),
                }
                (from, at) = (behind, behind);
                continue;
            }
            at = end + 1;
        }
        let rest = text.get(from..).unwrap_or_default();
        match open {
            None => root = Some(rest),
            Some(name) => sections.push((name, rest)),
        }
        Self { root: root.unwrap_or_default(), sections }
    }

    /// Returns the text of a type by its full name.
    pub fn section(&self, name: &str) -> Option<&'a [u8]> {
        self.sections.iter().find(|(known, _)| known == name).map(|(_, text)| *text)
    }
}

/// Returns the offset of the LF that ends the line at `at`, or of the end of the text.
fn line_end(text: &[u8], at: usize) -> usize {
    text[at..].iter().position(|byte| *byte == b'\n').map_or(text.len(), |len| at + len)
}

/// Returns whether a line of `=` and a line `MSG: name` are at `at`; the name, and where the text
/// behind starts.
fn separator(text: &[u8], at: usize, end: usize) -> Option<(Cow<'_, str>, usize)> {
    let line = text[at..end].trim_ascii();
    if line.len() < 3 || line.iter().any(|byte| *byte != b'=') || end >= text.len() {
        return None;
    }
    let name_end = line_end(text, end + 1);
    let name = text[end + 1..name_end].trim_ascii().strip_prefix(b"MSG:")?;
    Some((String::from_utf8_lossy(name.trim_ascii()), (name_end + 1).min(text.len())))
}

/// A type that needs no definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Primitive {
    Bool,
    Int8,
    UInt8,
    Int16,
    UInt16,
    Int32,
    UInt32,
    Int64,
    UInt64,
    Float32,
    Float64,
    /// Unsigned seconds and nanoseconds, 32 bits each.
    Time,
    /// Signed seconds and nanoseconds, 32 bits each.
    Duration,
    /// 32 bits of length, then bytes.
    String,
}

impl Primitive {
    /// Returns the type that a word means; `byte` is a signed byte and `char` an unsigned one
    /// (section 6.3).
    pub fn named(word: &str) -> Option<Self> {
        Some(match word {
            "bool" => Self::Bool,
            "int8" | "byte" => Self::Int8,
            "uint8" | "char" => Self::UInt8,
            "int16" => Self::Int16,
            "uint16" => Self::UInt16,
            "int32" => Self::Int32,
            "uint32" => Self::UInt32,
            "int64" => Self::Int64,
            "uint64" => Self::UInt64,
            "float32" => Self::Float32,
            "float64" => Self::Float64,
            "time" => Self::Time,
            "duration" => Self::Duration,
            "string" => Self::String,
            _ => return None,
        })
    }
}

/// How many of a field there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Array {
    /// Just one.
    One,
    /// `[n]`: n on the wire, without a count.
    Fixed(u32),
    /// `[]`: a count of 32 bits, then as many.
    Any,
}

/// A field as the text has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldText {
    /// The type without its array: `float32`, `Header`, `geometry_msgs/Pose`.
    pub ty: String,
    /// Its array.
    pub array: Array,
    /// The name.
    pub name: String,
}

impl FieldText {
    /// Returns the type with its array, as it is written.
    pub fn spelled(&self) -> String {
        match self.array {
            Array::One => self.ty.clone(),
            Array::Fixed(len) => format!("{}[{len}]", self.ty),
            Array::Any => format!("{}[]", self.ty),
        }
    }
}

/// A constant as the text has it. Constants are not on the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constant {
    /// Its type.
    pub ty: String,
    /// Its name.
    pub name: String,
    /// Its value as it is spelled.
    pub value: String,
}

/// The lines of one message's text (section 6.2).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageText {
    /// The fields in the order of the wire.
    pub fields: Vec<FieldText>,
    /// The constants in the order of the text.
    pub constants: Vec<Constant>,
}

/// A line that is neither field, constant, comment nor blank.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} is no field and no constant: {text:?}")]
pub struct SyntaxError {
    /// The number of the line within its text, from 1.
    pub line: usize,
    /// The line, at most 80 characters of it.
    pub text: String,
}

impl MessageText {
    /// Parses the text of one message.
    ///
    /// # Errors
    /// Returns an error if a line is none of those that section 6.2 knows.
    pub fn parse(text: &[u8]) -> Result<Self, SyntaxError> {
        let text = String::from_utf8_lossy(text);
        let mut message = Self::default();
        for (line, whole) in (1..).zip(text.lines()) {
            let cut = whole.split('#').next().unwrap_or_default().trim();
            if cut.is_empty() {
                continue;
            }
            let taken = if cut.contains('=') {
                constant(whole, cut).map(|constant| message.constants.push(constant))
            } else {
                field(cut).map(|field| message.fields.push(field))
            };
            taken.ok_or_else(|| SyntaxError { line, text: whole.trim().chars().take(80).collect() })?;
        }
        Ok(message)
    }
}

fn constant(whole: &str, cut: &str) -> Option<Constant> {
    let (ty, rest) = cut.split_once(char::is_whitespace)?;
    let primitive = Primitive::named(ty)?;
    if matches!(primitive, Primitive::Time | Primitive::Duration) {
        return None;
    }
    let (name, value) = rest.split_once('=')?;
    let name = name.trim();
    if name.is_empty() || name.contains(char::is_whitespace) {
        return None;
    }
    // A text may hold `#`: all of the line is its value.
    let value = if primitive == Primitive::String { whole.split_once('=')?.1 } else { value };
    Some(Constant { ty: ty.to_owned(), name: name.to_owned(), value: value.trim().to_owned() })
}

fn field(cut: &str) -> Option<FieldText> {
    let (spelled, name) = cut.rsplit_once(char::is_whitespace)?;
    let spelled: String = spelled.split_whitespace().collect();
    let (ty, array) = match spelled.strip_suffix(']') {
        None => (spelled.as_str(), Array::One),
        Some(inner) => match inner.split_once('[')? {
            (ty, "") => (ty, Array::Any),
            (ty, len) => (ty, Array::Fixed(len.parse().ok()?)),
        },
    };
    let of_name = |c: char| c.is_alphanumeric() || c == '_';
    let is_name = |word: &str| !word.is_empty() && word.chars().all(of_name);
    (ty.split('/').count() <= 2 && ty.split('/').all(is_name) && is_name(name)).then(|| FieldText {
        ty: ty.to_owned(),
        array,
        name: name.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_text_is_split_at_its_separators() {
        let line = "=".repeat(80);
        let text = format!(
            "Header header\nInner x\n\n{line}\nMSG: a/Header\nuint32 seq\n\n===\r\nMSG: a/Inner\r\nint8 a"
        );
        let full = FullText::split(text.as_bytes());
        assert_eq!(full.root, b"Header header\nInner x\n");
        assert_eq!(full.section("a/Header"), Some(&b"uint32 seq\n"[..]));
        assert_eq!(full.section("a/Inner"), Some(&b"int8 a"[..]));
        assert_eq!(FullText::split(b"").root, b"");
        assert_eq!(FullText::split(b"====\nMSG: a/B\n").sections.len(), 1);
        // A line of `=` alone separates nothing.
        assert_eq!(FullText::split(b"int8 a\n====\nint8 b").sections.len(), 0);
    }

    #[test]
    fn lines_are_fields_constants_or_nothing() {
        let message = MessageText::parse(
            b"# nothing\n\tfloat32 [ 3 ]\tx # three\nHeader  h\npkg/T[] list\nint32 A=-1 # less\nstring S= a # b = c \nstring E=\nbool B = True",
        )
        .unwrap();
        let fields: Vec<_> = message.fields.iter().map(|f| (f.spelled(), f.name.as_str())).collect();
        assert_eq!(
            fields,
            [("float32[3]".to_owned(), "x"), ("Header".to_owned(), "h"), ("pkg/T[]".to_owned(), "list")]
        );
        let constants: Vec<_> = message.constants.iter().map(|c| (&*c.name, &*c.value)).collect();
        assert_eq!(constants, [("A", "-1"), ("S", "a # b = c"), ("E", ""), ("B", "True")]);
    }

    #[test]
    fn other_lines_are_refused() {
        for line in
            ["int32", "int32[ x", "int32[-1] x", "a/b/c x", "time T=3", "int32[99999999999] x", "int8 x!"]
        {
            assert!(MessageText::parse(line.as_bytes()).is_err(), "{line}");
        }
    }
}
