//! Layouts of rows, and values for them.
//!
//! A shape is parsed from a format's own definition language; a row is a list of values. Both
//! together give the bytes of the row, and the fields and data of the expected result, so that a
//! recipe says each thing once.

use serde_json::{Map, Value as Json, json};

use super::lay::{Laid, base64, escaped};

/// Maximum nesting depth of `fields` in expected results: JSON readers commonly stop at 128 levels,
/// and each nested type takes two.
const LISTED_DEPTH: usize = 32;

/// Definition language.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Words {
    /// `uint8_t`; `char[n]` is a text that ends at its first NUL.
    Ulog,
    /// `uint8`; arrays of it are bytes; lists and texts start with their length.
    Ros,
}

/// Type of a field.
#[derive(Clone, Debug)]
pub(crate) enum Type {
    /// Of this many bytes; any number but 0 is true.
    Bool(usize),
    Int {
        signed: bool,
        bytes: usize,
    },
    Float(usize),
    /// `char[n]` of `ULog`.
    Text(usize),
    /// A text with a length prefix.
    String,
    /// Bytes: this many, or with a length prefix.
    Blob(Option<usize>),
    /// Seconds and nanoseconds; signed for a duration.
    Time {
        signed: bool,
    },
    /// This many items, or items with a count prefix.
    Array(Box<Type>, Option<usize>),
    Struct(Shape),
}

impl Type {
    /// Parses a type; `known` finds the shapes that it may name.
    pub(crate) fn parse(text: &str, words: Words, known: &dyn Fn(&str) -> Shape) -> Self {
        if let Some((item, len)) = text.strip_suffix(']').and_then(|text| text.rsplit_once('[')) {
            let len = (!len.is_empty()).then(|| len.parse().expect("a length"));
            return match (words, item, len) {
                (Words::Ulog, "char", Some(len)) => Self::Text(len),
                (Words::Ros, "uint8" | "char", len) => Self::Blob(len),
                _ => Self::Array(Box::new(Self::parse(item, words, known)), len),
            };
        }
        let bytes = |bits: &str| bits.parse().ok().map(|bits: usize| bits / 8);
        let word = if words == Words::Ulog { text.trim_end_matches("_t") } else { text };
        match word {
            "bool" => Self::Bool(1),
            "bool32" => Self::Bool(4),
            "char" if words == Words::Ulog => Self::Text(1),
            "char" => Self::Int { signed: false, bytes: 1 },
            "byte" => Self::Int { signed: true, bytes: 1 },
            "float" | "float32" => Self::Float(4),
            "double" | "float64" => Self::Float(8),
            "string" => Self::String,
            "time" => Self::Time { signed: false },
            "duration" => Self::Time { signed: true },
            _ => {
                match (word.strip_prefix("int").and_then(bytes), word.strip_prefix("uint").and_then(bytes)) {
                    (Some(bytes), _) => Self::Int { signed: true, bytes },
                    (_, Some(bytes)) => Self::Int { signed: false, bytes },
                    _ => Self::Struct(known(text)),
                }
            }
        }
    }

    /// Returns the type's name in expected results.
    fn word(&self) -> String {
        match self {
            Self::Bool(_) => "bool".to_owned(),
            Self::Int { signed, bytes } => format!("{}int{}", if *signed { "" } else { "u" }, 8 * bytes),
            Self::Float(bytes) => format!("float{}", 8 * bytes),
            Self::Text(_) | Self::String => "text".to_owned(),
            Self::Blob(_) => "bytes".to_owned(),
            Self::Time { signed } => if *signed { "duration" } else { "time" }.to_owned(),
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

    /// Returns the size of a value in bytes, for types of fixed size.
    fn size(&self) -> usize {
        match self {
            Self::Bool(bytes) | Self::Int { bytes, .. } | Self::Float(bytes) | Self::Text(bytes) => *bytes,
            Self::Array(item, Some(len)) => len * item.size(),
            Self::Struct(shape) => shape.fields.iter().map(|field| field.kind.size()).sum(),
            other => panic!("{} has no size", other.word()),
        }
    }
}

/// A name, and fields in order.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) name: String,
    fields: Vec<Field>,
}

#[derive(Clone, Debug)]
struct Field {
    /// The name that a reader gives: the second `x` is `x#2`.
    name: String,
    kind: Type,
}

impl Field {
    /// Returns whether the field is padding, which `ULog` marks by its name.
    fn is_padding(&self) -> bool {
        self.name.starts_with("_padding")
    }
}

impl Shape {
    /// Parses fields of the form `type name`, separated by `;` or line ends; `known` finds the
    /// shapes that they name.
    pub(crate) fn parse(name: &str, text: &str, words: Words, known: &dyn Fn(&str) -> Shape) -> Self {
        let mut fields: Vec<Field> = Vec::new();
        for field in text.split([';', '\n']).map(str::trim_start).filter(|field| !field.is_empty()) {
            let (kind, name) = field.split_once(' ').expect("a type and a name");
            let earlier = fields.iter().filter(|field| field.name.split('#').next() == Some(name)).count();
            let name = if earlier > 0 { format!("{name}#{}", earlier + 1) } else { name.to_owned() };
            fields.push(Field { name, kind: Type::parse(kind, words, known) });
        }
        Self { name: name.to_owned(), fields }
    }

    /// Returns `fields` of the expected result, without padding.
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

    /// Returns the number of fields without the padding at the end.
    fn trimmed_len(&self) -> usize {
        self.fields.iter().rposition(|field| !field.is_padding()).map_or(0, |i| i + 1)
    }

    /// Returns the bytes of a row without the padding at its end, as PX4 writes it.
    pub(crate) fn trimmed(&self, values: &[Value]) -> Vec<u8> {
        self.first(values, self.trimmed_len())
    }

    /// Returns the size of a row without the padding at its end.
    pub(crate) fn trimmed_size(&self) -> usize {
        self.fields[..self.trimmed_len()].iter().map(|field| field.kind.size()).sum()
    }

    /// Returns the offset in a row and the size of the field with this name.
    pub(crate) fn place(&self, name: &str) -> Option<(usize, usize)> {
        let at = self.position(name)?;
        let size = |field: &Field| field.kind.size();
        Some((self.fields[..at].iter().map(size).sum(), size(&self.fields[at])))
    }

    /// Returns the index of the field with this name.
    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.name == name)
    }

    /// Returns the bytes of a row with all its fields.
    pub(crate) fn full(&self, values: &[Value]) -> Vec<u8> {
        self.first(values, self.fields.len())
    }

    /// Returns the bytes of the first `count` fields.
    pub(crate) fn first(&self, values: &[Value], count: usize) -> Vec<u8> {
        assert_eq!(values.len(), self.fields.len(), "values of {} do not match its fields", self.name);
        let mut out = Vec::new();
        for (field, value) in self.fields.iter().zip(values).take(count) {
            value.lay(&field.kind, &mut out);
        }
        out
    }

    /// Returns `data` of the expected result, without padding.
    pub(crate) fn data(&self, values: &[Value]) -> Json {
        let pairs = self.fields.iter().zip(values).filter(|(field, _)| !field.is_padding());
        Json::Object(
            pairs.map(|(field, value)| (field.name.clone(), value.json(&field.kind))).collect::<Map<_, _>>(),
        )
    }
}

/// A value; the type of its field determines its encoding.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// Integer or bool.
    Int(i128),
    Float(f64),
    /// Text, padded with NUL, or bytes.
    Bytes(Vec<u8>),
    /// Items of an array; fields of a nested type, with padding; seconds and nanoseconds.
    List(Vec<Value>),
    /// These bytes for any type, with the expected JSON.
    As(Vec<u8>, Json),
}

impl Value {
    /// Returns the value of a type that readers do not know and keep as bytes.
    pub(crate) fn opaque(type_name: &str, bytes: &[u8]) -> Self {
        Self::As(bytes.to_vec(), json!({"type": type_name, "hex": super::lay::hex(bytes)}))
    }

    /// Appends the value's bytes.
    pub(crate) fn lay(&self, kind: &Type, out: &mut Vec<u8>) {
        let len = |items: usize| u32::try_from(items).expect("small").to_le_bytes();
        match (self, kind) {
            (Self::As(bytes, _), _) => out.extend(bytes),
            (Self::Int(value), Type::Bool(bytes) | Type::Int { bytes, .. }) => {
                let whole = value.to_le_bytes();
                let (kept, rest) = whole.split_at(*bytes);
                assert!(
                    rest.iter().all(|b| *b == 0) || rest.iter().all(|b| *b == 0xFF),
                    "{value} of {kind:?}"
                );
                out.extend(kept);
            }
            #[expect(clippy::cast_possible_truncation, reason = "made of 32 bits, or meant to be")]
            (Self::Float(value), Type::Float(4)) => (*value as f32).lay(out),
            (Self::Float(value), Type::Float(8)) => value.lay(out),
            (Self::Bytes(bytes), Type::Text(len)) if bytes.len() <= *len => {
                out.extend(bytes);
                out.resize(out.len() + len - bytes.len(), 0);
            }
            (Self::Bytes(bytes), Type::String | Type::Blob(None)) => {
                out.extend(len(bytes.len()));
                out.extend(bytes);
            }
            (Self::Bytes(bytes), Type::Blob(Some(len))) if bytes.len() == *len => out.extend(bytes),
            (Self::List(items), Type::Time { signed }) => {
                for item in items {
                    item.lay(&Type::Int { signed: *signed, bytes: 4 }, out);
                }
            }
            (Self::List(items), Type::Array(item, fixed)) if fixed.is_none_or(|len| len == items.len()) => {
                if fixed.is_none() {
                    out.extend(len(items.len()));
                }
                for value in items {
                    value.lay(item, out);
                }
            }
            (Self::List(values), Type::Struct(shape)) => out.extend(shape.full(values)),
            _ => panic!("{self:?} is no {kind:?}"),
        }
    }

    /// Returns the value in the form of the expected results.
    pub(crate) fn json(&self, kind: &Type) -> Json {
        match (self, kind) {
            (Self::As(_, json), _) => json.clone(),
            (Self::Int(value), Type::Bool(_)) => json!(*value != 0),
            (Self::Int(value), Type::Int { bytes: 8, .. }) => json!(value.to_string()),
            (Self::Int(value), Type::Int { .. }) => json!(i64::try_from(*value).expect("32 bits")),
            (Self::Float(value), Type::Float(bytes)) => float(*value, *bytes),
            (Self::Bytes(bytes), Type::Text(_)) => {
                json!(escaped(bytes.split(|b| *b == 0).next().unwrap_or_default()))
            }
            (Self::Bytes(bytes), Type::String) => json!(escaped(bytes)),
            (Self::Bytes(bytes), Type::Blob(_)) => json!(base64(bytes)),
            (Self::List(time), Type::Time { signed }) => {
                let part = |i: usize| time[i].json(&Type::Int { signed: *signed, bytes: 4 });
                json!({"sec": part(0), "nsec": part(1)})
            }
            (Self::List(items), Type::Array(item, _)) => items.iter().map(|value| value.json(item)).collect(),
            (Self::List(values), Type::Struct(shape)) => shape.data(values),
            _ => panic!("{self:?} is no {kind:?}"),
        }
    }
}

/// Returns a float in JSON, which has no words for NaN and the infinities. A 32-bit float has its
/// own shortest digits: 0.1, not 0.10000000149011612.
pub(crate) fn float(value: f64, bytes: usize) -> Json {
    if value.is_nan() {
        json!("NaN")
    } else if value.is_infinite() {
        json!(if value > 0.0 { "inf" } else { "-inf" })
    } else if bytes == 4 {
        #[expect(clippy::cast_possible_truncation, reason = "stored in 32 bits")]
        let narrow = value as f32;
        json!(narrow.to_string().parse::<f64>().expect("a finite float is a number"))
    } else {
        json!(value)
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

/// Lists the values of a row.
macro_rules! values {
    ($($value:expr),* $(,)?) => {
        Vec::<$crate::shape::Value>::from([$($crate::shape::Value::from($value)),*])
    };
}
pub(crate) use values;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_padding_at_the_end_of_the_top_is_trimmed() {
        let known = |name: &str| {
            Shape::parse(name, "uint8_t v;uint8_t _padding0;", Words::Ulog, &|_| panic!("no further type"))
        };
        let shape = Shape::parse("t", "uint16_t _padding0;e e;uint32_t _padding1;", Words::Ulog, &known);
        let values = values![7, values![1, 2], 9];
        assert_eq!(shape.trimmed(&values), [7, 0, 1, 2]);
        assert_eq!(shape.full(&values), [7, 0, 1, 2, 9, 0, 0, 0]);
        assert_eq!(shape.data(&values), json!({"e": {"v": 1}}));
        assert_eq!(shape.trimmed_size(), 4);
    }
}
