//! Layouts of rows, and values for them.
//!
//! A [`Shape`] is parsed from a definition in the language of the log format, and a row is a list
//! of [`Value`]s. The bytes of the row and the expected result are both computed from them, so that
//! a recipe states each value only once.

use serde_json::{Value as Json, json};

use super::lay::{With as _, base64, escaped, hex, lay, u32_of};

/// Maximum nesting depth of `fields` in expected results. Many JSON readers support at most 128
/// levels, and each nested type needs two.
const LISTED_DEPTH: usize = 32;

/// Language of a definition.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Words {
    /// Definitions of `ULog`, with types such as `uint8_t`. An array `char[n]` is a text that ends
    /// at its first NUL.
    Ulog,
    /// Definitions of ROS, with types such as `uint8`. An array of `uint8` is raw bytes. Lists and
    /// texts start with their length.
    Ros,
}

/// Type of a field.
#[derive(Clone, Debug)]
pub(crate) enum Type {
    /// A boolean with this size in bytes. Any number other than 0 is true.
    Bool(usize),
    Int {
        signed: bool,
        bytes: usize,
    },
    Float(usize),
    /// A text. If the length is `None`, the text starts with its length. Otherwise, it ends at its
    /// first NUL.
    Text(Option<usize>),
    /// Raw bytes. If the length is `None`, the bytes start with their length.
    Blob(Option<usize>),
    /// A time or duration, which has the fields of this shape.
    Time(Shape),
    /// An array. If the number of items is `None`, the items start with their number.
    Array(Box<Type>, Option<usize>),
    Struct(Shape),
}

impl Type {
    /// Parses a type. `known` is called to look up the shape of a nested type.
    pub(crate) fn parse(text: &str, words: Words, known: &dyn Fn(&str) -> Shape) -> Self {
        if let Some((item, len)) = text.strip_suffix(']').and_then(|text| text.rsplit_once('[')) {
            let len = (!len.is_empty()).then(|| len.parse().expect("a length"));
            return match (words, item, len) {
                (Words::Ulog, "char", len) => Self::Text(len),
                (Words::Ros, "uint8" | "char", len) => Self::Blob(len),
                _ => Self::Array(Box::new(Self::parse(item, words, known)), len),
            };
        }
        let bytes = |bits: &str| bits.parse().ok().map(|bits: usize| bits / 8);
        let word = if words == Words::Ulog { text.trim_end_matches("_t") } else { text };
        match word {
            "bool" => Self::Bool(1),
            "bool32" => Self::Bool(4),
            "char" if words == Words::Ulog => Self::Text(Some(1)),
            "char" => Self::Int { signed: false, bytes: 1 },
            "byte" => Self::Int { signed: true, bytes: 1 },
            "float" | "float32" => Self::Float(4),
            "double" | "float64" => Self::Float(8),
            "string" => Self::Text(None),
            "time" => Self::Time(Shape::parse(word, "uint32 sec;uint32 nsec", words, known)),
            "duration" => Self::Time(Shape::parse(word, "int32 sec;int32 nsec", words, known)),
            _ => {
                match (word.strip_prefix("int").and_then(bytes), word.strip_prefix("uint").and_then(bytes)) {
                    (Some(bytes), _) => Self::Int { signed: true, bytes },
                    (_, Some(bytes)) => Self::Int { signed: false, bytes },
                    _ => Self::Struct(known(text)),
                }
            }
        }
    }

    /// Returns the name of the type in expected results.
    fn word(&self) -> String {
        match self {
            Self::Bool(_) => "bool".to_owned(),
            Self::Int { signed, bytes } => format!("{}int{}", if *signed { "" } else { "u" }, 8 * bytes),
            Self::Float(bytes) => format!("float{}", 8 * bytes),
            Self::Text(_) => "text".to_owned(),
            Self::Blob(_) => "bytes".to_owned(),
            Self::Time(shape) => shape.name.clone(),
            Self::Array(item, Some(len)) => format!("{}[{len}]", item.word()),
            Self::Array(item, None) => format!("{}[]", item.word()),
            Self::Struct(shape) => format!("struct {}", shape.name),
        }
    }

    /// Returns the nested shape, if any.
    fn inner(&self) -> Option<&Shape> {
        match self {
            Self::Array(item, _) => item.inner(),
            Self::Struct(shape) => Some(shape),
            _ => None,
        }
    }

    /// Returns the size in bytes of a value. The type must have a fixed size.
    fn size(&self) -> usize {
        match self {
            Self::Bool(bytes) | Self::Int { bytes, .. } | Self::Float(bytes) => *bytes,
            Self::Text(Some(len)) => *len,
            Self::Array(item, Some(len)) => len * item.size(),
            Self::Struct(shape) => shape.size(0..shape.fields.len()),
            other => panic!("{} has no size", other.word()),
        }
    }
}

/// Returns the name that readers show, which is `x#2` for a second `x`.
pub(crate) fn numbered<'a>(name: &str, known: impl Iterator<Item = &'a String>) -> String {
    match known.filter(|known| known.split('#').next() == Some(name)).count() {
        0 => name.to_owned(),
        n => format!("{name}#{}", n + 1),
    }
}

/// Layout of a row.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) name: String,
    fields: Vec<Field>,
}

#[derive(Clone, Debug)]
struct Field {
    /// Name of the field in readers, which call a second field `x` `x#2`.
    name: String,
    kind: Type,
}

impl Field {
    /// Returns whether the field is padding. In `ULog`, padding fields have names such as
    /// `_padding0`.
    fn is_padding(&self) -> bool {
        self.name.starts_with("_padding")
    }
}

impl Shape {
    /// Parses fields of the form `type name`, which are separated by `;` or line ends. `known` is
    /// called to look up the shape of a nested type.
    pub(crate) fn parse(name: &str, text: &str, words: Words, known: &dyn Fn(&str) -> Shape) -> Self {
        let mut fields: Vec<Field> = Vec::new();
        for field in text.split([';', '\n']).map(str::trim_start).filter(|field| !field.is_empty()) {
            let (kind, name) = field.split_once(' ').expect("a type and a name");
            let name = numbered(name, fields.iter().map(|field| &field.name));
            fields.push(Field { name, kind: Type::parse(kind, words, known) });
        }
        Self { name: name.to_owned(), fields }
    }

    /// Returns the member `fields` of the expected result. Padding is omitted.
    pub(crate) fn fields(&self) -> Json {
        self.fields_to_depth(LISTED_DEPTH)
    }

    fn fields_to_depth(&self, depth: usize) -> Json {
        let entry = |field: &Field| {
            let mut entry = json!({"name": field.name, "type": field.kind.word()});
            if let Some(shape) = field.kind.inner().filter(|_| depth > 0) {
                entry["fields"] = shape.fields_to_depth(depth - 1);
            }
            entry
        };
        self.fields.iter().filter(|field| !field.is_padding()).map(entry).collect()
    }

    /// Returns the number of fields before the padding at the end.
    fn trimmed_len(&self) -> usize {
        self.fields.iter().rposition(|field| !field.is_padding()).map_or(0, |i| i + 1)
    }

    /// Returns the bytes of a row without the padding at its end, which PX4 does not write.
    pub(crate) fn trimmed(&self, values: &[Value]) -> Vec<u8> {
        self.first(values, self.trimmed_len())
    }

    fn size(&self, fields: std::ops::Range<usize>) -> usize {
        self.fields[fields].iter().map(|field| field.kind.size()).sum()
    }

    /// Returns the size in bytes of a row without the padding at its end.
    pub(crate) fn trimmed_size(&self) -> usize {
        self.size(0..self.trimmed_len())
    }

    /// Returns the offset in a row and the size in bytes of the field with this name.
    pub(crate) fn place(&self, name: &str) -> Option<(usize, usize)> {
        let at = self.position(name)?;
        Some((self.size(0..at), self.size(at..at + 1)))
    }

    /// Returns the index of the field with this name.
    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.name == name)
    }

    /// Returns the bytes of a row, including the padding at its end.
    pub(crate) fn full(&self, values: &[Value]) -> Vec<u8> {
        self.first(values, self.fields.len())
    }

    /// Returns the bytes of the first `count` fields of a row.
    pub(crate) fn first(&self, values: &[Value], count: usize) -> Vec<u8> {
        assert_eq!(values.len(), self.fields.len(), "values of {} do not match its fields", self.name);
        let first = self.fields.iter().zip(values).take(count);
        first.flat_map(|(field, value)| value.bytes(&field.kind)).collect()
    }

    /// Returns the member `data` of the expected result. Padding is omitted.
    pub(crate) fn data(&self, values: &[Value]) -> Json {
        let shown = self.fields.iter().zip(values).filter(|(field, _)| !field.is_padding());
        shown.map(|(field, value)| (field.name.clone(), value.json(&field.kind))).collect()
    }
}

/// A value of a field. The type of the field determines how the value is encoded.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// An integer or boolean.
    Int(i128),
    Float(f64),
    /// A text, which is padded with NUL, or raw bytes.
    Bytes(Vec<u8>),
    /// The items of an array, the fields of a nested type including padding, or the seconds and
    /// nanoseconds of a time.
    List(Vec<Value>),
    /// Bytes that are written regardless of the type, and the expected JSON.
    As(Vec<u8>, Json),
}

impl Value {
    /// Returns a value of a type that is unknown to readers, which return its bytes.
    pub(crate) fn opaque(type_name: &str, bytes: &[u8]) -> Self {
        Self::As(bytes.to_vec(), json!({"type": type_name, "hex": hex(bytes)}))
    }

    /// Returns the bytes of a value of this type.
    pub(crate) fn bytes(&self, kind: &Type) -> Vec<u8> {
        match (self, kind) {
            (Self::As(bytes, _), _) => bytes.clone(),
            (Self::Int(value), Type::Bool(bytes) | Type::Int { bytes, .. }) => {
                assert!([0, -1].contains(&(value >> (8 * bytes))), "{value} of {kind:?}");
                value.to_le_bytes()[..*bytes].to_vec()
            }
            #[expect(clippy::cast_possible_truncation, reason = "made of 32 bits, or meant to be")]
            (Self::Float(value), Type::Float(4)) => lay![*value as f32],
            (Self::Float(value), Type::Float(8)) => lay![value],
            (Self::Bytes(bytes), Type::Text(None) | Type::Blob(None)) => lay![u32_of(bytes.len()), bytes],
            (Self::Bytes(bytes), Type::Text(Some(len)) | Type::Blob(Some(len))) if bytes.len() <= *len => {
                bytes.clone().with(|bytes| bytes.resize(*len, 0))
            }
            (Self::List(items), Type::Array(item, len)) if len.is_none_or(|len| len == items.len()) => {
                let count = len.is_none().then(|| u32_of(items.len()));
                let items: Vec<_> = items.iter().map(|value| value.bytes(item)).collect();
                lay![Vec::from_iter(count), items]
            }
            (Self::List(values), Type::Struct(shape) | Type::Time(shape)) => shape.full(values),
            _ => panic!("{self:?} is no {kind:?}"),
        }
    }

    /// Returns the value as JSON for the expected result.
    pub(crate) fn json(&self, kind: &Type) -> Json {
        match (self, kind) {
            (Self::As(_, json), _) => json.clone(),
            (Self::Int(value), Type::Bool(_)) => json!(*value != 0),
            (Self::Int(value), Type::Int { bytes: 8, .. }) => json!(value.to_string()),
            (Self::Int(value), Type::Int { .. }) => json!(i64::try_from(*value).expect("32 bits")),
            (Self::Float(value), Type::Float(bytes)) => float(*value, *bytes),
            (Self::Bytes(bytes), Type::Text(None)) => json!(escaped(bytes)),
            (Self::Bytes(bytes), Type::Text(_)) => json!(bytes.split(|byte| *byte == 0).next().map(escaped)),
            (Self::Bytes(bytes), Type::Blob(_)) => json!(base64(bytes)),
            (Self::List(items), Type::Array(item, _)) => items.iter().map(|value| value.json(item)).collect(),
            (Self::List(values), Type::Struct(shape) | Type::Time(shape)) => shape.data(values),
            _ => panic!("{self:?} is no {kind:?}"),
        }
    }
}

/// Returns a float as JSON. NaN and infinities become strings, because JSON cannot represent them.
/// A 32-bit float is written with the digits it needs, that is, as 0.1 and not as
/// 0.10000000149011612.
fn float(value: f64, bytes: usize) -> Json {
    #[expect(clippy::cast_possible_truncation, reason = "stored in 32 bits")]
    let text = if bytes == 4 { (value as f32).to_string() } else { value.to_string() };
    if value.is_finite() {
        json!(text.parse::<f64>().expect("a finite float is a number"))
    } else {
        json!(text)
    }
}

macro_rules! value_from {
    ($($variant:ident: $($kind:ty)*;)*) => {
        $($(impl From<$kind> for Value {
            fn from(value: $kind) -> Self {
                Self::$variant(value.into())
            }
        })*)*
    };
}
value_from! { Int: bool i8 u8 i16 u16 i32 u32 i64 u64; Float: f32 f64; Bytes: &[u8] &str String; }

impl<const N: usize> From<&[u8; N]> for Value {
    fn from(bytes: &[u8; N]) -> Self {
        Self::Bytes(bytes.to_vec())
    }
}

impl<T: Into<Value>, const N: usize> From<[T; N]> for Value {
    fn from(items: [T; N]) -> Self {
        Self::List(items.map(Into::into).into())
    }
}

impl<T: Into<Value>> From<Vec<T>> for Value {
    fn from(items: Vec<T>) -> Self {
        Self::List(items.into_iter().map(Into::into).collect())
    }
}

/// Creates the values of a row.
macro_rules! values {
    ($($value:expr),* $(,)?) => {
        Vec::<$crate::shape::Value>::from([$($crate::shape::Value::from($value)),*])
    };
}
pub(crate) use values;
