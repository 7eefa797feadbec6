//! Shapes of rows and values that fill them.
//!
//! A shape yields the text of its `F` message and the fields expected of a reader; a row of
//! values yields its bytes and the data expected. Both come from here, so that a recipe says
//! each thing once.

use serde_json::{Map, Value as Json, json};

/// How deep `fields` are listed in the truth: JSON readers commonly stop at 128 levels, and
/// each nested type takes two.
const LISTED_DEPTH: usize = 32;

/// The type of a field.
#[derive(Clone, Debug)]
pub(crate) enum Type {
    /// A basic type: its name in the format text, and the word for it in the truth.
    Basic(&'static str, &'static str),
    /// `char[n]`.
    Text(usize),
    /// An array of anything but `char`.
    Array(Box<Type>, usize),
    /// Another format.
    Struct(Shape),
}

pub(crate) const BOOL: Type = Type::Basic("bool", "bool");
pub(crate) const CHAR: Type = Type::Basic("char", "text");
pub(crate) const I8: Type = Type::Basic("int8_t", "int8");
pub(crate) const U8: Type = Type::Basic("uint8_t", "uint8");
pub(crate) const I16: Type = Type::Basic("int16_t", "int16");
pub(crate) const U16: Type = Type::Basic("uint16_t", "uint16");
pub(crate) const I32: Type = Type::Basic("int32_t", "int32");
pub(crate) const U32: Type = Type::Basic("uint32_t", "uint32");
pub(crate) const I64: Type = Type::Basic("int64_t", "int64");
pub(crate) const U64: Type = Type::Basic("uint64_t", "uint64");
pub(crate) const F32: Type = Type::Basic("float", "float32");
pub(crate) const F64: Type = Type::Basic("double", "float64");

/// `type[n]`.
pub(crate) fn array(item: Type, len: usize) -> Type {
    Type::Array(Box::new(item), len)
}

/// A field whose type is another format.
pub(crate) fn nested(shape: &Shape) -> Type {
    Type::Struct(shape.clone())
}

impl Type {
    /// As the format text writes it.
    fn text(&self) -> String {
        match self {
            Self::Basic(name, _) => (*name).to_owned(),
            Self::Text(len) => format!("char[{len}]"),
            Self::Array(item, len) => format!("{}[{len}]", item.text()),
            Self::Struct(shape) => shape.name.clone(),
        }
    }

    /// As the truth writes it.
    fn word(&self) -> String {
        match self {
            Self::Basic(_, word) => (*word).to_owned(),
            Self::Text(_) => "text".to_owned(),
            Self::Array(item, len) => format!("{}[{len}]", item.word()),
            Self::Struct(shape) => format!("struct {}", shape.name),
        }
    }

    /// The format inside, if any.
    fn inner(&self) -> Option<&Shape> {
        match self {
            Self::Basic(..) | Self::Text(_) => None,
            Self::Array(item, _) => item.inner(),
            Self::Struct(shape) => Some(shape),
        }
    }
}

/// A format: a name and fields in order, padding included.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) name: String,
    fields: Vec<Field>,
}

#[derive(Clone, Debug)]
struct Field {
    /// As the format text has it.
    written: String,
    /// As a reader names it: differs when a name occurs twice.
    shown: String,
    kind: Type,
}

impl Field {
    fn is_padding(&self) -> bool {
        self.written.starts_with("_padding")
    }
}

impl Shape {
    /// A format without fields yet.
    pub(crate) fn new(name: &str) -> Self {
        let name = name.to_owned();
        Self { name, fields: Vec::new() }
    }

    /// One more field.
    pub(crate) fn with(self, name: &str, kind: Type) -> Self {
        self.with_shown(name, name, kind)
    }

    /// One more field, which a reader must show under another name.
    pub(crate) fn with_shown(mut self, written: &str, shown: &str, kind: Type) -> Self {
        let (written, shown) = (written.to_owned(), shown.to_owned());
        self.fields.push(Field { written, shown, kind });
        self
    }

    /// The text of the `F` message.
    pub(crate) fn text(&self) -> String {
        let name = format!("{}:", self.name);
        self.fields.iter().fold(name, |text, field| text + &field.kind.text() + " " + &field.written + ";")
    }

    /// `fields` of the truth: padding left out.
    pub(crate) fn fields_json(&self) -> Json {
        self.fields_to_depth(LISTED_DEPTH)
    }

    fn fields_to_depth(&self, depth: usize) -> Json {
        let entry = |field: &Field| {
            let mut entry = Map::new();
            entry.insert("name".to_owned(), json!(field.shown));
            entry.insert("type".to_owned(), json!(field.kind.word()));
            if let Some(shape) = field.kind.inner().filter(|_| depth > 0) {
                entry.insert("fields".to_owned(), shape.fields_to_depth(depth - 1));
            }
            Json::Object(entry)
        };
        let visible = self.fields.iter().filter(|f| !f.is_padding());
        Json::Array(visible.map(entry).collect())
    }

    /// How many fields are left when the padding at the end is not logged.
    fn trimmed_len(&self) -> usize {
        let last = self.fields.iter().rposition(|f| !f.is_padding());
        last.map_or(0, |i| i + 1)
    }

    /// The bytes of a row without the padding at its end, as PX4 writes it.
    pub(crate) fn trimmed_bytes(&self, values: &[Value]) -> Vec<u8> {
        self.first_bytes(values, self.trimmed_len())
    }

    /// The bytes of a row with all its fields.
    pub(crate) fn full_bytes(&self, values: &[Value]) -> Vec<u8> {
        self.first_bytes(values, self.fields.len())
    }

    /// The bytes of the first `count` fields.
    pub(crate) fn first_bytes(&self, values: &[Value], count: usize) -> Vec<u8> {
        assert_eq!(values.len(), self.fields.len(), "values of {} do not match its fields", self.name);
        let mut out = Vec::new();
        for (field, value) in self.fields.iter().zip(values).take(count) {
            value.lay(&field.kind, &mut out);
        }
        out
    }

    /// `data` of the truth: padding left out.
    pub(crate) fn data_json(&self, values: &[Value]) -> Json {
        let pairs = self.fields.iter().zip(values);
        let visible = pairs.filter(|(field, _)| !field.is_padding());
        let entries = visible.map(|(f, value)| (f.shown.clone(), value.json(&f.kind)));
        Json::Object(entries.collect())
    }

    /// The value of the top-level field `timestamp`.
    pub(crate) fn timestamp<'v>(&self, values: &'v [Value]) -> Option<&'v Value> {
        let at = self.fields.iter().position(|f| f.written == "timestamp")?;
        values.get(at)
    }
}

/// A value with its width.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// A bool's byte: any but 0 is true.
    Bool(u8),
    /// One `char`.
    Char(u8),
    /// The bytes of a `char[n]`, all of them.
    Text(Vec<u8>),
    I8(i8),
    U8(u8),
    I16(i16),
    U16(u16),
    I32(i32),
    U32(u32),
    I64(i64),
    U64(u64),
    F32(f32),
    F64(f64),
    /// The items of an array.
    List(Vec<Value>),
    /// The fields of a nested type, padding included.
    Struct(Vec<Value>),
}

impl Value {
    /// A text that fills `char[n]` with NUL bytes after it.
    pub(crate) fn text(text: &[u8], n: usize) -> Self {
        let mut bytes = text.to_vec();
        bytes.resize(n, 0);
        Self::Text(bytes)
    }

    /// The same value `n` times.
    pub(crate) fn repeated(value: impl Into<Value>, n: usize) -> Self {
        Self::List(vec![value.into(); n])
    }

    /// An array of these.
    pub(crate) fn list<T: Into<Value>>(items: impl IntoIterator<Item = T>) -> Self {
        Self::List(items.into_iter().map(Into::into).collect())
    }

    fn lay(&self, kind: &Type, out: &mut Vec<u8>) {
        match (self, kind) {
            (Self::Text(bytes), Type::Text(len)) if bytes.len() == *len => out.extend(bytes),
            (Self::List(items), Type::Array(item, len)) if items.len() == *len => {
                for value in items {
                    value.lay(item, out);
                }
            }
            (Self::Struct(values), Type::Struct(shape)) => out.extend(shape.full_bytes(values)),
            (_, Type::Basic(name, _)) => self.lay_basic(name, out),
            _ => panic!("{self:?} is not a {}", kind.text()),
        }
    }

    fn lay_basic(&self, name: &str, out: &mut Vec<u8>) {
        match (self, name) {
            (Self::Bool(v), "bool") | (Self::Char(v), "char") | (Self::U8(v), "uint8_t") => {
                out.push(*v);
            }
            (Self::I8(v), "int8_t") => out.extend(v.to_le_bytes()),
            (Self::I16(v), "int16_t") => out.extend(v.to_le_bytes()),
            (Self::U16(v), "uint16_t") => out.extend(v.to_le_bytes()),
            (Self::I32(v), "int32_t") => out.extend(v.to_le_bytes()),
            (Self::U32(v), "uint32_t") => out.extend(v.to_le_bytes()),
            (Self::I64(v), "int64_t") => out.extend(v.to_le_bytes()),
            (Self::U64(v), "uint64_t") => out.extend(v.to_le_bytes()),
            (Self::F32(v), "float") => out.extend(v.to_le_bytes()),
            (Self::F64(v), "double") => out.extend(v.to_le_bytes()),
            _ => panic!("{self:?} is not a {name}"),
        }
    }

    /// As the truth writes it.
    pub(crate) fn json(&self, kind: &Type) -> Json {
        match (self, kind) {
            (Self::Bool(v), _) => json!(*v != 0),
            (Self::Char(v), _) => json!(text_before_nul(&[*v])),
            (Self::Text(v), _) => json!(text_before_nul(v)),
            (Self::I8(v), _) => json!(v),
            (Self::U8(v), _) => json!(v),
            (Self::I16(v), _) => json!(v),
            (Self::U16(v), _) => json!(v),
            (Self::I32(v), _) => json!(v),
            (Self::U32(v), _) => json!(v),
            (Self::I64(v), _) => json!(v.to_string()),
            (Self::U64(v), _) => json!(v.to_string()),
            (Self::F32(v), _) if v.is_finite() => shortest_json(*v),
            (Self::F32(v), _) => float_json(f64::from(*v)),
            (Self::F64(v), _) => float_json(*v),
            (Self::List(items), Type::Array(item, _)) => {
                Json::Array(items.iter().map(|v| v.json(item)).collect())
            }
            (Self::Struct(values), Type::Struct(shape)) => shape.data_json(values),
            _ => panic!("{self:?} is not a {}", kind.text()),
        }
    }
}

/// JSON has no words for the values that are not numbers.
pub(crate) fn float_json(value: f64) -> Json {
    if value.is_nan() {
        json!("NaN")
    } else if value.is_infinite() {
        json!(if value > 0.0 { "inf" } else { "-inf" })
    } else {
        json!(value)
    }
}

/// A float of 32 bits by its own shortest digits: 0.1, not 0.10000000149011612.
fn shortest_json(value: f32) -> Json {
    json!(value.to_string().parse::<f64>().expect("a finite float is a number"))
}

fn text_before_nul(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

macro_rules! value_from {
    ($($variant:ident($kind:ty)),* $(,)?) => {
        $(impl From<$kind> for Value {
            fn from(value: $kind) -> Self {
                Self::$variant(value)
            }
        })*
    };
}
value_from!(I8(i8), U8(u8), I16(i16), U16(u16), I32(i32), U32(u32), I64(i64), U64(u64), F32(f32), F64(f64),);

/// The values of a row, each with the width its literal says.
macro_rules! values {
    ($($value:expr),* $(,)?) => {
        Vec::from([$($crate::corpus::ulog::shape::Value::from($value)),*])
    };
}
pub(crate) use values;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_padding_at_the_end_of_the_top_is_trimmed() {
        let inner = Shape::new("e").with("v", U8).with("_padding0", U8);
        let shape = Shape::new("t").with("_padding0", U16).with("e", nested(&inner)).with("_padding1", U32);
        let values = values![7u16, Value::Struct(values![1u8, 2u8]), 9u32];
        assert_eq!(shape.trimmed_bytes(&values), [7, 0, 1, 2]);
        assert_eq!(shape.full_bytes(&values), [7, 0, 1, 2, 9, 0, 0, 0]);
        assert_eq!(shape.data_json(&values), json!({"e": {"v": 1}}));
        assert_eq!(shape.text(), "t:uint16_t _padding0;e e;uint32_t _padding1;");
    }
}
