//! Schemas: the fields of a topic and their types, independent of the log format.

use std::fmt::{self, Write as _};
use std::sync::Arc;

/// The fields of a record type, in the order in which they are declared.
#[derive(Clone, Debug, PartialEq)]
pub struct Schema {
    /// Name of the record type.
    pub name: String,
    /// Fields of the record type. Padding is not included.
    pub fields: Vec<Field>,
}

impl Schema {
    /// Calls `visit` with the flat name and the type of each leaf, in the order of a record's
    /// values. A leaf is a value that is neither a struct nor an array of fixed length. Examples of
    /// flat names are `pos.x` and `q[0]`.
    pub fn for_each_leaf(&self, visit: &mut dyn FnMut(&str, &FieldType)) {
        for field in &self.fields {
            field.ty.for_each_leaf(&mut field.name.to_string(), visit);
        }
    }

    /// Returns whether every record has the same number of values. This is the case if there is no
    /// list of variable length, neither as a field nor inside a field.
    pub fn is_fixed(&self) -> bool {
        self.fields.iter().all(|field| field.ty.is_fixed())
    }
}

/// A field of a [`Schema`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Field {
    /// Name of the field. The name is shared, because every decoded record contains it.
    pub name: Arc<str>,
    /// Type of the field.
    pub ty: FieldType,
    /// Type of the field as spelled in the log, such as `float[4]`.
    pub source_type: String,
    /// Unit of the field's values, such as `us` or `V`, if the format states a unit.
    pub unit: Option<String>,
    /// Names of the field's values, if the values are states. For example, the value 5 of
    /// `nav_state` has the name `Return`.
    pub names: Option<ValueNames>,
}

/// Pairs of a value and its name, sorted by value.
pub type ValueNames = &'static [(i64, &'static str)];

impl Field {
    /// Creates a field without a unit.
    pub fn new(name: impl Into<Arc<str>>, ty: FieldType, source_type: impl Into<String>) -> Self {
        Self { name: name.into(), ty, source_type: source_type.into(), unit: None, names: None }
    }

    /// Sets the unit of the field.
    #[must_use]
    pub fn with_unit(mut self, unit: impl Into<String>) -> Self {
        self.unit = Some(unit.into());
        self
    }

    /// Returns the name of a value, if it has one.
    pub fn name_of(&self, value: i64) -> Option<&'static str> {
        let names = self.names?;
        let index = names.binary_search_by_key(&value, |(known, _)| *known).ok()?;
        Some(names[index].1)
    }
}

/// Type of a number or Boolean with a fixed width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum Scalar {
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
}

impl Scalar {
    /// Returns the size in bytes of an encoded value.
    pub const fn size(self) -> usize {
        match self {
            Self::Bool | Self::Int8 | Self::UInt8 => 1,
            Self::Int16 | Self::UInt16 => 2,
            Self::Int32 | Self::UInt32 | Self::Float32 => 4,
            Self::Int64 | Self::UInt64 | Self::Float64 => 8,
        }
    }

    /// Returns the name of the type in text and JSON. The names are the same as in Arrow, such as
    /// `uint64` or `float32`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Int8 => "int8",
            Self::UInt8 => "uint8",
            Self::Int16 => "int16",
            Self::UInt16 => "uint16",
            Self::Int32 => "int32",
            Self::UInt32 => "uint32",
            Self::Int64 => "int64",
            Self::UInt64 => "uint64",
            Self::Float32 => "float32",
            Self::Float64 => "float64",
        }
    }
}

/// The type of a [`Field`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum FieldType {
    /// A number or Boolean.
    Scalar(Scalar),
    /// A text. If the format stores a fixed number of bytes, the text ends at the first NUL.
    Text,
    /// A struct with the fields of another type.
    Struct(Arc<Schema>),
    /// Bytes without further structure, such as an image or a network packet.
    Bytes,
    /// A point in time on the Unix clock, in unsigned seconds and nanoseconds. Its
    /// [`Value`](crate::Value) is a struct with the fields `sec` and `nsec`.
    Time,
    /// A duration in signed seconds and nanoseconds. Its [`Value`](crate::Value) is a struct with
    /// the fields `sec` and `nsec`.
    Duration,
    /// An array with a fixed number of elements.
    Array(Box<FieldType>, usize),
    /// A list whose number of elements differs between records.
    List(Box<FieldType>),
}

impl FieldType {
    fn for_each_leaf(&self, path: &mut String, visit: &mut dyn FnMut(&str, &Self)) {
        let len = path.len();
        match self {
            Self::Struct(schema) => {
                for field in &schema.fields {
                    path.push('.');
                    path.push_str(&field.name);
                    field.ty.for_each_leaf(path, visit);
                    path.truncate(len);
                }
            }
            Self::Array(element, count) => {
                for i in 0..*count {
                    let _ = write!(path, "[{i}]");
                    element.for_each_leaf(path, visit);
                    path.truncate(len);
                }
            }
            leaf => visit(path, leaf),
        }
    }

    /// Returns the schema of a struct, or the schema of the structs in an array or list.
    pub fn nested(&self) -> Option<&Arc<Schema>> {
        match self {
            Self::Struct(schema) => Some(schema),
            Self::Array(element, _) | Self::List(element) => element.nested(),
            _ => None,
        }
    }

    /// Returns whether a field of this type has the same number of values in every record.
    pub fn is_fixed(&self) -> bool {
        match self {
            Self::Struct(schema) => schema.is_fixed(),
            Self::Array(element, _) => element.is_fixed(),
            Self::List(_) => false,
            _ => true,
        }
    }
}

impl fmt::Display for FieldType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scalar(scalar) => f.write_str(scalar.name()),
            Self::Text => f.write_str("text"),
            Self::Struct(schema) => write!(f, "struct {}", schema.name),
            Self::Bytes => f.write_str("bytes"),
            Self::Time => f.write_str("time"),
            Self::Duration => f.write_str("duration"),
            Self::Array(element, len) => write!(f, "{element}[{len}]"),
            Self::List(element) => write!(f, "{element}[]"),
        }
    }
}
