//! The grammar of definitions: format texts, keys and type names. "'F': format definition"

use rovelog_core::Scalar;

/// A basic type of the specification's table "Data types".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basic {
    /// A number or truth value.
    Scalar(Scalar),
    /// One byte of text.
    Char,
}

impl Basic {
    /// The basic type of a name: `uint64_t`, `float`, `char`.
    pub fn parse(name: &str) -> Option<Self> {
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

    /// The name in definitions: the inverse of [`parse`](Self::parse).
    pub const fn name(self) -> &'static str {
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

    /// Bytes on the wire.
    pub const fn size(self) -> usize {
        match self {
            Self::Scalar(scalar) => scalar.size(),
            Self::Char => 1,
        }
    }
}

/// `type` or `type[n]`, borrowed from the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeName<'a> {
    /// The name before any bracket.
    pub base: &'a str,
    /// The length of an array; as long as `u64::MAX` where the file claims more.
    pub len: Option<u64>,
}

impl<'a> TypeName<'a> {
    /// Parses `text`; `None` where it is neither form.
    pub fn parse(text: &'a str) -> Option<Self> {
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
        is_type_name(base).then_some(Self { base, len })
    }

    /// Whether a value of `bytes` bytes can be of this type; `None` where the type is not basic.
    pub fn fits_value(&self, bytes: usize) -> Option<bool> {
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
pub struct Key<'a> {
    /// The type, as spelled.
    pub ty: &'a str,
    /// The name.
    pub name: &'a str,
}

impl<'a> Key<'a> {
    /// The type, where it has the form of one.
    pub fn type_name(&self) -> Option<TypeName<'a>> {
        TypeName::parse(self.ty)
    }

    /// The basic type, where it is one and no array.
    pub fn scalar(&self) -> Option<Scalar> {
        match (self.type_name()?.len, Basic::parse(self.ty)?) {
            (None, Basic::Scalar(scalar)) => Some(scalar),
            _ => None,
        }
    }
}

/// Splits `type name`: two printable words and one space between them, nothing else.
pub fn split_key(key: &[u8]) -> Option<Key<'_>> {
    let text = std::str::from_utf8(key).ok()?;
    let (ty, name) = text.split_once(' ')?;
    let word = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_graphic());
    (word(ty) && word(name)).then_some(Key { ty, name })
}

/// Whether `name` can name a format: letters, digits, `_`, `/`, `-`.
pub fn is_type_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_/-".contains(&b))
}

/// Whether `name` can name a field: letters, digits, `_`.
pub fn is_field_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Whether a field is padding: hidden everywhere, but on the wire.
pub fn is_padding(field: &str) -> bool {
    field.starts_with("_padding")
}

/// A format definition, borrowed from the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormatText<'a> {
    /// The format's name.
    pub name: &'a str,
    fields: &'a str,
}

impl<'a> FormatText<'a> {
    /// Parses the payload of an 'F' message; `None` where it breaks the grammar.
    ///
    /// Whether the types exist is not looked at here: a type may be used before it is defined.
    pub fn parse(text: &'a [u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let (name, fields) = text.split_once(':')?;
        // The last semicolon may be missing.
        let format = Self { name, fields: fields.strip_suffix(';').unwrap_or(fields) };
        let sound = is_type_name(name) && Basic::parse(name).is_none();
        (sound && format.fields_checked().all(|field| field.is_some())).then_some(format)
    }

    /// The fields in order: type and name.
    pub fn fields(&self) -> impl Iterator<Item = (TypeName<'a>, &'a str)> + use<'a> {
        self.fields_checked().flatten()
    }

    fn fields_checked(&self) -> impl Iterator<Item = Option<(TypeName<'a>, &'a str)>> + use<'a> {
        self.fields.split(';').map(|field| {
            let (ty, name) = field.split_once(' ')?;
            Some((TypeName::parse(ty).filter(|_| is_field_name(name))?, name))
        })
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
            "t:float  x;",
            "t:float x ;",
            "t:float[] x;",
            "t:float[-1] x;",
            "t:float[4 x;",
            "t:float x;;",
            "t:flo\u{e9}t x;",
            "t u:float x;",
        ] {
            assert_eq!(FormatText::parse(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn keys_are_two_words() {
        let key = split_key(b"char[5] perf_counter_preflight-00").unwrap();
        assert_eq!((key.ty, key.name), ("char[5]", "perf_counter_preflight-00"));
        assert_eq!(key.type_name().unwrap().fits_value(5), Some(true));
        assert_eq!(split_key(b"int32_t MAV_TYPE").unwrap().scalar(), Some(Scalar::Int32));
        for bad in [&b"nospace"[..], b" x", b"x ", b"a b c", b"a\tb c", b"\xff b", b""] {
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
