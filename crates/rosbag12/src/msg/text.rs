//! Parses the text of message definitions. Splits a full text into the texts of its types, and each
//! text into lines.

use std::borrow::Cow;

use rovelog_core::Scalar;

/// The full text of a message definition, as the ROS tool "gendeps" writes it (section 6.1 of
/// docs/formats/rosbag.md). The full text is the text of the root type, followed by the texts of
/// all types that the root type needs. The text of each needed type comes after a line of `=` and a
/// line `MSG: pkg/Type`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FullText<'a> {
    /// Text of the root type.
    pub root: &'a [u8],
    /// Name and text of each needed type, in the order of the full text.
    pub sections: Vec<(Cow<'a, str>, &'a [u8])>,
}

impl<'a> FullText<'a> {
    /// Splits a full text at its separator lines. A separator line has 80 `=`, but three are
    /// enough. Lines may end in CR LF.
    pub fn split(text: &'a [u8]) -> Self {
        let mut root = None;
        let mut sections: Vec<(Cow<'a, str>, &'a [u8])> = Vec::new();
        // Name of the type whose text is being read. `None` for the root type.
        let mut open: Option<Cow<'a, str>> = None;
        let (mut from, mut at) = (0, 0);
        while at < text.len() {
            let end = line_end(text, at);
            if let Some((name, behind)) = separator(text, at, end) {
                // The LF before a separator line belongs to the separator, not to the text of the
                // type.
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

    /// Returns the text of a needed type by the full name of the type.
    pub fn section(&self, name: &str) -> Option<&'a [u8]> {
        self.sections.iter().find(|(known, _)| known == name).map(|(_, text)| *text)
    }
}

/// Returns the offset of the LF that ends the line at offset `at`. Returns the length of the text
/// if no LF follows.
fn line_end(text: &[u8], at: usize) -> usize {
    text[at..].iter().position(|byte| *byte == b'\n').map_or(text.len(), |len| at + len)
}

/// If the line `at..end` starts a separator, returns the name of the next type and the offset of
/// its text.
fn separator(text: &[u8], at: usize, end: usize) -> Option<(Cow<'_, str>, usize)> {
    let line = text[at..end].trim_ascii();
    if line.len() < 3 || line.iter().any(|byte| *byte != b'=') || end >= text.len() {
        return None;
    }
    let name_end = line_end(text, end + 1);
    let name = text[end + 1..name_end].trim_ascii().strip_prefix(b"MSG:")?;
    Some((String::from_utf8_lossy(name.trim_ascii()), (name_end + 1).min(text.len())))
}

/// A built-in type of ROS message definitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Primitive {
    /// A number or Boolean.
    Scalar(Scalar),
    /// A time: unsigned seconds and unsigned nanoseconds with 32 bits each.
    Time,
    /// A duration: signed seconds and signed nanoseconds with 32 bits each.
    Duration,
    /// A string: a 32-bit length, then as many bytes.
    String,
}

impl Primitive {
    /// Returns the built-in type with this name. `byte` is a signed 8-bit number, and `char` is an
    /// unsigned 8-bit number (section 6.3 of docs/formats/rosbag.md).
    pub fn named(word: &str) -> Option<Self> {
        Some(Self::Scalar(match word {
            "bool" => Scalar::Bool,
            "int8" | "byte" => Scalar::Int8,
            "uint8" | "char" => Scalar::UInt8,
            "int16" => Scalar::Int16,
            "uint16" => Scalar::UInt16,
            "int32" => Scalar::Int32,
            "uint32" => Scalar::UInt32,
            "int64" => Scalar::Int64,
            "uint64" => Scalar::UInt64,
            "float32" => Scalar::Float32,
            "float64" => Scalar::Float64,
            "time" => return Some(Self::Time),
            "duration" => return Some(Self::Duration),
            "string" => return Some(Self::String),
            _ => return None,
        }))
    }
}

/// Number of elements of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Array {
    /// A single element, without array brackets.
    One,
    /// Array `[n]` with n elements. The number of elements is not stored in messages.
    Fixed(u32),
    /// Array `[]`. A message stores the number of elements with 32 bits, then the elements.
    Any,
}

/// A field in the text of a message definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldText {
    /// Type of the field without array brackets, such as `float32`, `Header` or
    /// `geometry_msgs/Pose`.
    pub ty: String,
    /// Number of elements of the field.
    pub array: Array,
    /// Name of the field.
    pub name: String,
}

impl FieldText {
    /// Returns the type of the field with array brackets, as in the text of the definition.
    pub fn spelled(&self) -> String {
        match self.array {
            Array::One => self.ty.clone(),
            Array::Fixed(len) => format!("{}[{len}]", self.ty),
            Array::Any => format!("{}[]", self.ty),
        }
    }
}

/// A constant in the text of a message definition. Constants are not stored in messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constant {
    /// Type of the constant.
    pub ty: String,
    /// Name of the constant.
    pub name: String,
    /// Value of the constant, as in the text of the definition.
    pub value: String,
}

/// Fields and constants of one message type, parsed from the text of its definition (section 6.2 of
/// docs/formats/rosbag.md).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageText {
    /// Fields in the order in which messages store them.
    pub fields: Vec<FieldText>,
    /// Constants in the order of the text.
    pub constants: Vec<Constant>,
}

/// A line in a message definition that is not a field, a constant, a comment or a blank line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} is neither a field nor a constant: {text:?}")]
pub struct SyntaxError {
    /// Number of the line in the text. The first line is line 1.
    pub line: usize,
    /// Content of the line, shortened to 80 characters.
    pub text: String,
}

impl MessageText {
    /// Parses the text of one message type.
    ///
    /// # Errors
    /// Returns an error if a line has none of the forms in section 6.2 of docs/formats/rosbag.md.
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
    // A string constant may contain `#`, so the whole rest of the line is the value.
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
    let is_valid = ty.split('/').count() <= 2 && ty.split('/').all(is_name) && is_name(name);
    is_valid.then(|| FieldText { ty: ty.to_owned(), array, name: name.to_owned() })
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
        // A line of `=` that is not followed by a `MSG:` line is not a separator.
        assert_eq!(FullText::split(b"int8 a\n====\nint8 b").sections.len(), 0);
    }

    #[test]
    fn fields_constants_and_comments_are_parsed() {
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
    fn invalid_lines_are_rejected() {
        for line in
            ["int32", "int32[ x", "int32[-1] x", "a/b/c x", "time T=3", "int32[99999999999] x", "int8 x!"]
        {
            assert!(MessageText::parse(line.as_bytes()).is_err(), "{line}");
        }
    }
}
