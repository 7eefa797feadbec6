//! The grammar of definitions: format texts, keys and type names. "'F': format definition"

use rovelog_core::Scalar;

use crate::wire::{Info, Subscription};

/// A basic type of the specification's table "Data types".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Basic {
    /// A number or truth value.
    Scalar(Scalar),
    /// One byte of text.
    Char,
}

impl Basic {
    /// Returns the basic type of a name: `uint64_t`, `float`, `char`.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Some(Self::Scalar(match name {
            "int8_t" => Scalar::Int8,
            "uint8_t" => Scalar::UInt8,
            "int16_t" => Scalar::Int16,
            "uint16_t" => Scalar::UInt16,
            "int32_t" => Scalar::Int32,
            "uint32_t" => Scalar::UInt32,
            "int64_t" => Scalar::Int64,
            "uint64_t" => Scalar::UInt64,
            "float" => Scalar::Float32,
            "double" => Scalar::Float64,
            "bool" => Scalar::Bool,
            "char" => return Some(Self::Char),
            _ => return None,
        }))
    }

    /// Returns the name in definitions: the inverse of [`parse`](Self::parse).
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Scalar(Scalar::Int8) => "int8_t",
            Self::Scalar(Scalar::UInt8) => "uint8_t",
            Self::Scalar(Scalar::Int16) => "int16_t",
            Self::Scalar(Scalar::UInt16) => "uint16_t",
            Self::Scalar(Scalar::Int32) => "int32_t",
            Self::Scalar(Scalar::UInt32) => "uint32_t",
            Self::Scalar(Scalar::Int64) => "int64_t",
            Self::Scalar(Scalar::UInt64) => "uint64_t",
            Self::Scalar(Scalar::Float32) => "float",
            Self::Scalar(Scalar::Float64) => "double",
            Self::Scalar(Scalar::Bool) => "bool",
            Self::Char => "char",
        }
    }

    /// Returns bytes on the wire.
    pub(crate) const fn size(self) -> usize {
        match self {
            Self::Scalar(scalar) => scalar.size(),
            Self::Char => 1,
        }
    }
}

/// `type` or `type[n]`, borrowed from the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TypeName<'a> {
    /// The name before any bracket.
    pub(crate) base: &'a str,
    /// The length of an array; as long as `u64::MAX` where the file claims more.
    pub(crate) len: Option<u64>,
}

impl<'a> TypeName<'a> {
    /// Parses `text`; `None` where it is neither form.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let (base, len) = match text.split_once('[') {
            None => (text, None),
            Some((base, rest)) => {
                let digits = rest.strip_suffix(']')?;
                if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
                    return None;
                }
                (base, Some(digits.parse().unwrap_or(u64::MAX)))
            }
        };
        can_name_format(base).then_some(Self { base, len })
    }

    /// Returns whether a value of `bytes` bytes can be of this type; `None` where the type is not
    /// basic.
    pub(crate) fn fits_value(&self, bytes: usize) -> Option<bool> {
        let element = Basic::parse(self.base)?.size() as u64;
        Some(self.len.unwrap_or(1).checked_mul(element) == Some(bytes as u64))
    }
}

impl std::fmt::Display for TypeName<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.len {
            Some(len) => write!(f, "{}[{len}]", self.base),
            None => f.write_str(self.base),
        }
    }
}

/// The key of an information message or a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key<'a> {
    /// The type, as spelled.
    pub(crate) ty: &'a str,
    /// The name.
    pub(crate) name: &'a str,
}

impl<'a> Key<'a> {
    /// Returns the type, where it has the form of one.
    pub(crate) fn type_name(&self) -> Option<TypeName<'a>> {
        TypeName::parse(self.ty)
    }

    /// Returns whether type and name are of ASCII letters, digits and signs, as PX4 writes them.
    pub(crate) fn is_usual(&self) -> bool {
        self.ty.bytes().chain(self.name.bytes()).all(|b| b.is_ascii_graphic())
    }

    /// Returns the basic type, where it is one and no array.
    pub(crate) fn scalar(&self) -> Option<Scalar> {
        match (self.type_name()?.len, Basic::parse(self.ty)?) {
            (None, Basic::Scalar(scalar)) => Some(scalar),
            _ => None,
        }
    }
}

impl<'a> Info<'a> {
    /// Returns the key's type and name; `None` if it is not printable `type name`.
    pub(crate) fn parse_key(&self) -> Option<Key<'a>> {
        split_key(self.key)
    }

    /// Returns whether the value is as long as the type in the key says.
    pub(crate) fn confirms_length(&self) -> bool {
        let ty = self.parse_key().and_then(|key| key.type_name());
        ty.and_then(|ty| ty.fits_value(self.value.len())) == Some(true)
    }
}

/// Splits `type name` at the first space: everything behind it is the name, further spaces too.
/// "`key` is a plain string": UTF-8 without control characters.
pub(crate) fn split_key(key: &[u8]) -> Option<Key<'_>> {
    let text = std::str::from_utf8(key).ok()?;
    let (ty, name) = text.split_once(' ')?;
    (is_printable(ty) && is_printable(name) && !name.trim().is_empty()).then_some(Key { ty, name })
}

/// Returns whether `name` is a format's name as PX4 writes them: letters, digits, `_`, `/`, `-`.
pub(crate) fn is_type_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_/-".contains(&b))
}

/// Returns whether `name` is a field's name as PX4 writes them: letters, digits, `_`.
pub(crate) fn is_field_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Returns whether `name` can name a format at all: the specification sets no limit, the grammar
/// does.
pub(crate) fn can_name_format(name: &str) -> bool {
    is_type_name(name) || (is_printable(name) && name.trim() == name && !name.contains([':', ';', '[', ']']))
}

/// Returns whether `name` can name a field at all.
pub(crate) fn can_name_field(name: &str) -> bool {
    is_field_name(name) || (is_printable(name) && !name.contains([' ', ':', ';']))
}

fn is_printable(text: &str) -> bool {
    let printable = |b: u8| b.is_ascii_graphic();
    !text.is_empty() && (text.bytes().all(printable) || !text.contains(char::is_control))
}

/// Returns whether a field is padding: hidden everywhere, but on the wire.
pub(crate) fn is_padding(field: &str) -> bool {
    field.starts_with("_padding")
}

impl<'a> Subscription<'a> {
    /// Returns the name of the format without blanks and NULs around it (D39); `None` if it is not
    /// UTF-8.
    pub(crate) fn name(&self) -> Option<&'a str> {
        let name = std::str::from_utf8(self.message_name).ok()?;
        Some(name.trim_end_matches('\0').trim_matches(BLANKS))
    }
}

/// Characters that some writers put between the parts of a format.
const BLANKS: [char; 4] = [' ', '\t', '\r', '\n'];

/// A format definition, borrowed from the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FormatText<'a> {
    /// The format's name.
    pub(crate) name: &'a str,
    fields: &'a str,
    /// Whether blanks or NULs surround its name or follow its last field.
    is_padded: bool,
}

impl<'a> FormatText<'a> {
    /// Parses the payload of an 'F' message; `None` where it breaks the grammar. Blanks around names
    /// and NULs at the end do not (D39).
    ///
    /// Whether the types exist is not looked at here: a type may be used before it is defined.
    pub(crate) fn parse(text: &'a [u8]) -> Option<Self> {
        Self::explained(text).ok()
    }

    /// Parses the payload of an 'F' message, or returns why it breaks the grammar.
    pub(crate) fn explained(text: &'a [u8]) -> Result<Self, BadFormat<'a>> {
        let text = std::str::from_utf8(text).map_err(|_| BadFormat::NotText)?;
        let (as_written, fields) = text.split_once(':').ok_or(BadFormat::NoName)?;
        let name = as_written.trim_matches(BLANKS);
        let stripped = fields.trim_end_matches('\0').trim_end_matches(BLANKS);
        if !can_name_format(name) || Basic::parse(name).is_some() {
            return Err(BadFormat::NoName);
        }
        let is_padded = name != as_written || stripped != fields;
        // The last semicolon may be missing.
        let format = Self { name, fields: stripped.strip_suffix(';').unwrap_or(stripped), is_padded };
        let bad = format.declarations().find(|declaration| field(declaration).is_none());
        bad.map_or(Ok(format), |declaration| Err(BadFormat::Field { name, declaration }))
    }

    /// Returns the fields in order: type and name.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (TypeName<'a>, &'a str)> + use<'a> {
        self.declarations().filter_map(field)
    }

    fn declarations(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.fields.split(';')
    }

    /// Returns whether the text has no blanks or NULs beyond those of the grammar.
    pub(crate) fn is_tight(&self) -> bool {
        !self.is_padded && self.blank_fields().next().is_none()
    }

    /// Returns the names of the fields that are declared with more blanks than the one between type
    /// and name.
    pub(crate) fn blank_fields(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.declarations().filter_map(|declaration| {
            let (_, name) = field(declaration)?;
            let is_tight = !declaration.starts_with(BLANKS)
                && declaration.split_once(' ').is_some_and(|(_, rest)| rest == name);
            (!is_tight).then_some(name)
        })
    }

    /// Names in it that PX4 would not write: its own, and those of types and fields.
    pub(crate) fn unusual_names(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let of_fields = self.fields().flat_map(|(ty, name)| {
            let ty = Some(ty.base).filter(|ty| !is_type_name(ty));
            ty.into_iter().chain(Some(name).filter(|name| !is_field_name(name)))
        });
        Some(self.name).filter(|name| !is_type_name(name)).into_iter().chain(of_fields)
    }
}

/// Returns the type and the name in the declaration of a field.
fn field(declaration: &str) -> Option<(TypeName<'_>, &str)> {
    let (ty, name) = declaration.trim_matches(BLANKS).split_once(BLANKS)?;
    let name = name.trim_start_matches(BLANKS);
    Some((TypeName::parse(ty).filter(|_| can_name_field(name))?, name))
}

/// Why a format definition cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadFormat<'a> {
    /// It is not UTF-8.
    NotText,
    /// It does not start with a name and a colon.
    NoName,
    /// A field is not declared as `type name` or `type[n] name`.
    Field {
        /// The format.
        name: &'a str,
        /// The text of the field.
        declaration: &'a str,
    },
}

impl std::fmt::Display for BadFormat<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotText => f.write_str("the format definition is not UTF-8 text"),
            Self::NoName => f.write_str("the format definition does not start with `name:`"),
            Self::Field { name, declaration } if declaration.trim_matches(BLANKS).is_empty() => {
                write!(f, "format {name} has a field without text between two semicolons")
            }
            Self::Field { name, declaration } => {
                let short: String = declaration.chars().take(80).collect();
                write!(
                    f,
                    "format {name} has a field \"{}\", which is not `type name` or `type[n] name`",
                    short.escape_debug()
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_follow_the_grammar() {
        let format = FormatText::parse(b"ns/t-1:uint64_t timestamp;float[4] q;e[2] _padding0").unwrap();
        assert_eq!(format.name, "ns/t-1");
        let fields: Vec<_> = format.fields().map(|(ty, name)| (ty.base, ty.len, name)).collect();
        let want = [("uint64_t", None, "timestamp"), ("float", Some(4), "q"), ("e", Some(2), "_padding0")];
        assert_eq!(fields, want);
    }

    #[test]
    fn what_breaks_the_grammar_is_no_format() {
        for text in [
            "",
            "t",
            "t:",
            "t:;",
            ":float x;",
            "float:float x;",
            "t:float;",
            "t:float[] x;",
            "t:float[-1] x;",
            "t:float[4 x;",
            "t:float x;;",
            "t:float x y;",
            "t:float x:y;",
            "t:float x\u{7};",
            "t[2]:float x;",
            "t:float x\0;",
            "t\0:float x;",
        ] {
            assert_eq!(FormatText::parse(text.as_bytes()), None, "{text:?}");
        }
        assert_eq!(FormatText::parse(b"t:float h\xf6he;"), None, "not UTF-8");
    }

    #[test]
    fn blanks_and_nuls_around_names_are_left_out() {
        for (text, blank) in [
            (" t : uint64_t timestamp; float[4]  q ; \0\0", &["timestamp", "q"][..]),
            ("t:uint64_t timestamp;\r\n\tfloat[4]\tq;\n", &["q"]),
            ("t:uint64_t timestamp;float[4] q\0", &[]),
        ] {
            let format = FormatText::parse(text.as_bytes()).unwrap();
            let fields: Vec<_> = format.fields().map(|(ty, name)| (ty.base, ty.len, name)).collect();
            assert_eq!(format.name, "t");
            assert_eq!(fields, [("uint64_t", None, "timestamp"), ("float", Some(4), "q")], "{text:?}");
            assert_eq!(format.blank_fields().collect::<Vec<_>>(), blank, "{text:?}");
            assert!(!format.is_tight());
        }
        assert!(FormatText::parse(b"t:uint64_t timestamp;float x").unwrap().is_tight());
        let name = |message_name| Subscription { multi_id: 0, msg_id: 0, message_name }.name();
        assert_eq!((name(b"t\0"), name(b" t "), name(b"\xff")), (Some("t"), Some("t"), None));
    }

    #[test]
    fn a_format_that_cannot_be_read_says_why() {
        let why = |text: &[u8]| FormatText::explained(text).unwrap_err().to_string();
        let field = "format t has a field \"float x y\", which is not `type name` or `type[n] name`";
        assert_eq!(why(b"t:uint64_t timestamp;float x y;"), field);
        assert_eq!(why(b"t:float x;;"), "format t has a field without text between two semicolons");
        assert_eq!(why(b"t"), "the format definition does not start with `name:`");
        assert_eq!(why(b"t:float \xff;"), "the format definition is not UTF-8 text");
    }

    #[test]
    fn names_that_px4_would_not_write_are_names() {
        let text = "a b.c:uint64_t timestamp;float x-y;h\u{f6}he[2] x[1];float x.y;";
        let format = FormatText::parse(text.as_bytes()).unwrap();
        let fields: Vec<_> = format.fields().map(|(ty, name)| (ty.base, ty.len, name)).collect();
        let want = [("uint64_t", None, "timestamp"), ("float", None, "x-y")];
        assert_eq!(fields[..2], want);
        assert_eq!(fields[2..], [("h\u{f6}he", Some(2), "x[1]"), ("float", None, "x.y")]);
        let unusual: Vec<_> = format.unusual_names().collect();
        assert_eq!(unusual, ["a b.c", "x-y", "h\u{f6}he", "x[1]", "x.y"]);
    }

    #[test]
    fn keys_are_a_type_and_a_name() {
        let key = split_key(b"char[5] perf_counter_preflight-00").unwrap();
        assert_eq!((key.ty, key.name), ("char[5]", "perf_counter_preflight-00"));
        assert_eq!(key.type_name().unwrap().fits_value(5), Some(true));
        assert_eq!(split_key(b"int32_t MAV_TYPE").unwrap().scalar(), Some(Scalar::Int32));
        for (text, name, usual) in [
            ("char[11] Build Date", "Build Date", false),
            ("char[3] h\u{f6}he", "h\u{f6}he", false),
            ("char[3]  two", " two", false),
            ("float b", "b", true),
        ] {
            let key = split_key(text.as_bytes()).unwrap();
            assert_eq!((key.name, key.is_usual()), (name, usual), "{text}");
        }
        for bad in [&b"nospace"[..], b" x", b"x ", b"x   ", b"a\tb c", b"a b\0", b"\xff b", b""] {
            assert_eq!(split_key(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_length_beyond_any_file_saturates() {
        let ty = TypeName::parse("float[99999999999999999999999]").unwrap();
        assert_eq!(ty.len, Some(u64::MAX));
        assert_eq!(ty.fits_value(8), Some(false));
    }
}
