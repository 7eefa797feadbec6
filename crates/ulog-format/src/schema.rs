//! Parser for definitions, which are format texts, keys and type names. See "'F': format
//! definition" in the specification.

use rovelog_core::Scalar;

use crate::wire::{Info, Subscription};

/// A basic type of the specification. See "Data types" there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Basic {
    /// A number or a Boolean value.
    Scalar(Scalar),
    /// One byte of a text.
    Char,
}

/// The basic types and their names in the specification. See "Data types" there.
const NAMES: [(&str, Basic); 12] = [
    ("int8_t", Basic::Scalar(Scalar::Int8)),
    ("uint8_t", Basic::Scalar(Scalar::UInt8)),
    ("int16_t", Basic::Scalar(Scalar::Int16)),
    ("uint16_t", Basic::Scalar(Scalar::UInt16)),
    ("int32_t", Basic::Scalar(Scalar::Int32)),
    ("uint32_t", Basic::Scalar(Scalar::UInt32)),
    ("int64_t", Basic::Scalar(Scalar::Int64)),
    ("uint64_t", Basic::Scalar(Scalar::UInt64)),
    ("float", Basic::Scalar(Scalar::Float32)),
    ("double", Basic::Scalar(Scalar::Float64)),
    ("bool", Basic::Scalar(Scalar::Bool)),
    ("char", Basic::Char),
];

impl Basic {
    /// Parses the name of a basic type, such as `uint64_t` or `char`.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        NAMES.iter().find(|(known, _)| *known == name).map(|(_, basic)| *basic)
    }

    /// Returns the name by which definitions refer to the type.
    pub(crate) fn name(self) -> &'static str {
        NAMES.iter().find(|(_, basic)| *basic == self).expect("every basic type has a name").0
    }

    /// Returns the size in bytes of a value of this type in a row.
    pub(crate) const fn size(self) -> usize {
        match self {
            Self::Scalar(scalar) => scalar.size(),
            Self::Char => 1,
        }
    }
}

/// Name of a type of the form `type` or `type[n]`, borrowed from the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TypeName<'a> {
    /// Name of the type without brackets.
    pub(crate) base: &'a str,
    /// Number of array elements, or `None` if the type is not an array. A number that exceeds
    /// `u64::MAX` is stored as `u64::MAX`.
    pub(crate) len: Option<u64>,
}

impl<'a> TypeName<'a> {
    /// Parses a type name of the form `type` or `type[n]`. Returns `None` for any other text.
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

    /// Returns `true` if an encoded value of this type takes `bytes` bytes. Returns `None` if the
    /// type is not basic.
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

/// Key of an information message or a parameter, which consists of a type and a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key<'a> {
    /// Type of the value, as written in the file.
    pub(crate) ty: &'a str,
    pub(crate) name: &'a str,
}

impl<'a> Key<'a> {
    /// Parses the type in the key. Returns `None` if the type is not of the form `type` or
    /// `type[n]`.
    pub(crate) fn type_name(&self) -> Option<TypeName<'a>> {
        TypeName::parse(self.ty)
    }

    /// Returns `true` if the type and the name consist of visible ASCII characters, as in all keys
    /// that PX4 writes.
    pub(crate) fn is_usual(&self) -> bool {
        self.ty.bytes().chain(self.name.bytes()).all(|b| b.is_ascii_graphic())
    }

    /// Returns the type in the key if it is a single number or Boolean, otherwise `None`.
    pub(crate) fn scalar(&self) -> Option<Scalar> {
        match (self.type_name()?.len, Basic::parse(self.ty)?) {
            (None, Basic::Scalar(scalar)) => Some(scalar),
            _ => None,
        }
    }
}

impl<'a> Info<'a> {
    /// Parses the key of the message. Returns `None` if the key is not printable text of the form
    /// `type name`.
    pub(crate) fn parse_key(&self) -> Option<Key<'a>> {
        split_key(self.key)
    }

    /// Returns `true` if the size of the value matches the type in the key. The content then
    /// confirms the length of the message.
    pub(crate) fn confirms_length(&self) -> bool {
        let ty = self.parse_key().and_then(|key| key.type_name());
        ty.and_then(|ty| ty.fits_value(self.value.len())) == Some(true)
    }
}

/// Splits a key of the form `type name` at the first space. The name may contain more spaces,
/// because some writers use keys such as `char[11] Build Date` (rule D35 of docs/formats/ulog.md).
///
/// The specification calls the key "a plain string". This function accepts UTF-8 without control
/// characters, and returns `None` for anything else.
pub(crate) fn split_key(key: &[u8]) -> Option<Key<'_>> {
    let text = std::str::from_utf8(key).ok()?;
    let (ty, name) = text.split_once(' ')?;
    (is_printable(ty) && is_printable(name) && !name.trim().is_empty()).then_some(Key { ty, name })
}

/// Returns `true` if `name` consists only of characters that PX4 uses in format names. These are
/// ASCII letters, digits, `_`, `/` and `-`.
pub(crate) fn is_type_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_/-".contains(&b))
}

/// Returns `true` if `name` consists only of characters that PX4 uses in field names. These are
/// ASCII letters, digits and `_`.
pub(crate) fn is_field_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Returns `true` if `name` is a valid format name. The specification allows any text, so only
/// unprintable names and characters with a meaning in definitions are excluded (rule D36 of
/// docs/formats/ulog.md).
pub(crate) fn can_name_format(name: &str) -> bool {
    is_type_name(name) || (is_printable(name) && name.trim() == name && !name.contains([':', ';', '[', ']']))
}

/// Returns `true` if `name` is a valid field name (rule D36 of docs/formats/ulog.md).
pub(crate) fn can_name_field(name: &str) -> bool {
    is_field_name(name) || (is_printable(name) && !name.contains([' ', ':', ';']))
}

fn is_printable(text: &str) -> bool {
    // Nearly all names are ASCII, so the bytes are checked first. This is faster than decoding
    // characters.
    let printable = |b: u8| b.is_ascii_graphic();
    !text.is_empty() && (text.bytes().all(printable) || !text.contains(char::is_control))
}

/// Returns `true` if the field with the name `field` is padding. Specification: "Field names that
/// start with `_padding` should not be displayed and their data must be ignored by a reader."
pub(crate) fn is_padding(field: &str) -> bool {
    field.starts_with("_padding")
}

impl<'a> Subscription<'a> {
    /// Returns the name of the subscribed format, without the blanks and NUL bytes that some
    /// writers add (rule D39 of docs/formats/ulog.md). Returns `None` if the name is not UTF-8.
    pub(crate) fn name(&self) -> Option<&'a str> {
        let name = std::str::from_utf8(self.message_name).ok()?;
        Some(name.trim_end_matches('\0').trim_matches(BLANKS))
    }
}

/// Characters that some writers put around the names in a format definition.
const BLANKS: [char; 4] = [' ', '\t', '\r', '\n'];

/// A format definition, borrowed from the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FormatText<'a> {
    /// Name of the defined format.
    pub(crate) name: &'a str,
    /// Declarations of the fields, separated by semicolons.
    fields: &'a str,
    /// True if there are blanks around the format name, or blanks or NUL bytes after the last
    /// field.
    is_padded: bool,
}

impl<'a> FormatText<'a> {
    /// Parses the payload of an 'F' message. Returns `None` if the payload violates the grammar of
    /// the specification. Blanks around names and NUL bytes at the end are accepted (rule D39 of
    /// docs/formats/ulog.md).
    ///
    /// This function does not check whether the types of the fields are defined, because "a type
    /// can be used before it's defined".
    pub(crate) fn parse(text: &'a [u8]) -> Option<Self> {
        Self::parse_or_explain(text).ok()
    }

    /// Parses the payload of an 'F' message. Returns the reason if the payload violates the grammar
    /// of the specification.
    pub(crate) fn parse_or_explain(text: &'a [u8]) -> Result<Self, BadFormat<'a>> {
        let text = std::str::from_utf8(text).map_err(|_| BadFormat::NotText)?;
        let (as_written, fields) = text.split_once(':').ok_or(BadFormat::NoName)?;
        let name = as_written.trim_matches(BLANKS);
        let stripped = fields.trim_end_matches('\0').trim_end_matches(BLANKS);
        if !can_name_format(name) || Basic::parse(name).is_some() {
            return Err(BadFormat::NoName);
        }
        let is_padded = name != as_written || stripped != fields;
        // The specification requires a semicolon after the last field, but some writers omit it.
        let format = Self { name, fields: stripped.strip_suffix(';').unwrap_or(stripped), is_padded };
        let bad = format.declarations().find(|declaration| field(declaration).is_none());
        bad.map_or(Ok(format), |declaration| Err(BadFormat::Field { name, declaration }))
    }

    /// Returns the type and the name of each field, in file order.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (TypeName<'a>, &'a str)> + use<'a> {
        self.declarations().filter_map(field)
    }

    fn declarations(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.fields.split(';')
    }

    /// Returns `true` if the definition contains no NUL bytes, and no blanks except the blank
    /// between the type and the name of each field.
    pub(crate) fn has_canonical_blanks(&self) -> bool {
        !self.is_padded && self.blank_fields().next().is_none()
    }

    /// Returns the names of the fields whose declarations contain more blanks than the single blank
    /// between the type and the name.
    pub(crate) fn blank_fields(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.declarations().filter_map(|declaration| {
            let (_, name) = field(declaration)?;
            let is_canonical = !declaration.starts_with(BLANKS)
                && declaration.split_once(' ').is_some_and(|(_, rest)| rest == name);
            (!is_canonical).then_some(name)
        })
    }

    /// Returns the names with characters that PX4 does not use. These can be names of the format,
    /// of its fields and of their types.
    pub(crate) fn unusual_names(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let of_fields = self.fields().flat_map(|(ty, name)| {
            let ty = Some(ty.base).filter(|ty| !is_type_name(ty));
            ty.into_iter().chain(Some(name).filter(|name| !is_field_name(name)))
        });
        Some(self.name).filter(|name| !is_type_name(name)).into_iter().chain(of_fields)
    }
}

/// Parses the declaration of a field. Returns the type and the name of the field.
fn field(declaration: &str) -> Option<(TypeName<'_>, &str)> {
    let (ty, name) = declaration.trim_matches(BLANKS).split_once(BLANKS)?;
    let name = name.trim_start_matches(BLANKS);
    Some((TypeName::parse(ty).filter(|_| can_name_field(name))?, name))
}

/// Reason why a format definition cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadFormat<'a> {
    /// The definition is not UTF-8.
    NotText,
    /// The definition does not start with a name and a colon.
    NoName,
    /// The declaration of a field is not of the form `type name` or `type[n] name`.
    Field {
        /// Name of the format that contains the field.
        name: &'a str,
        /// Declaration of the field, as written in the file.
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
                // The declaration in a damaged format can have 64 KiB, so only its first 80
                // characters are shown.
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
    fn texts_that_violate_the_grammar_are_rejected() {
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
    fn blanks_and_nuls_around_names_are_ignored() {
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
            assert!(!format.has_canonical_blanks());
        }
        assert!(FormatText::parse(b"t:uint64_t timestamp;float x").unwrap().has_canonical_blanks());
        let name = |message_name| Subscription { multi_id: 0, msg_id: 0, message_name }.name();
        assert_eq!((name(b"t\0"), name(b" t "), name(b"\xff")), (Some("t"), Some("t"), None));
    }

    #[test]
    fn an_invalid_format_is_explained() {
        let why = |text: &[u8]| FormatText::parse_or_explain(text).unwrap_err().to_string();
        let field = "format t has a field \"float x y\", which is not `type name` or `type[n] name`";
        assert_eq!(why(b"t:uint64_t timestamp;float x y;"), field);
        assert_eq!(why(b"t:float x;;"), "format t has a field without text between two semicolons");
        assert_eq!(why(b"t"), "the format definition does not start with `name:`");
        assert_eq!(why(b"t:float \xff;"), "the format definition is not UTF-8 text");
    }

    #[test]
    fn names_with_unusual_characters_are_accepted() {
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
    fn keys_consist_of_a_type_and_a_name() {
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
