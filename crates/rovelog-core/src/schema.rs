//! Schemas: the fields of a topic and their types, in the words of no particular format.

use std::fmt;
use std::sync::Arc;

/// The fields of one type of record, in the order in which they were declared.
#[derive(Clone, Debug, PartialEq)]
pub struct Schema {
    /// The type's name.
    pub name: String,
    /// The fields; padding is left out.
    pub fields: Vec<Field>,
}

impl Schema {
    /// Returns whether every record has the same number of leaves: no field is a list of any
    /// length.
    pub fn is_fixed(&self) -> bool {
        self.fields.iter().all(|field| field.ty.is_fixed())
    }
}

/// One field of a [`Schema`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Field {
    /// The field's name; shared, because every decoded record names its fields.
    pub name: Arc<str>,
    /// Its type.
    pub ty: FieldType,
    /// The type as the log spells it: `float[4]`.
    pub source_type: String,
    /// Its unit, where the format gives one: `us`, `V`.
    pub unit: Option<String>,
    /// The names of its values, where they are states: of `nav_state`, 5 is `Return`.
    pub names: Option<ValueNames>,
}

/// Names by value, in the order of the values.
pub type ValueNames = &'static [(i64, &'static str)];

impl Field {
    /// Returns a field without a unit.
    pub fn new(name: impl Into<Arc<str>>, ty: FieldType, source_type: impl Into<String>) -> Self {
        Self { name: name.into(), ty, source_type: source_type.into(), unit: None, names: None }
    }

    /// Returns the same field with its unit.
    #[must_use]
    pub fn with_unit(mut self, unit: impl Into<String>) -> Self {
        self.unit = Some(unit.into());
        self
    }

    /// Returns the name of a value of the field.
    pub fn name_of(&self, value: i64) -> Option<&'static str> {
        let names = self.names?;
        let place = names.binary_search_by_key(&value, |(known, _)| *known).ok()?;
        Some(names[place].1)
    }
}

/// A number or a truth value of fixed width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
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
    /// Returns bytes on the wire.
    pub const fn size(self) -> usize {
        match self {
            Self::Bool | Self::Int8 | Self::UInt8 => 1,
            Self::Int16 | Self::UInt16 => 2,
            Self::Int32 | Self::UInt32 | Self::Float32 => 4,
            Self::Int64 | Self::UInt64 | Self::Float64 => 8,
        }
    }

    /// Returns the word used in text and JSON, Arrow's spelling: `uint64`, `float32`.
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
    /// A number or truth value.
    Scalar(Scalar),
    /// Text; ends at the first NUL where the format stores a fixed number of bytes.
    Text,
    /// The fields of another type.
    Struct(Arc<Schema>),
    /// Bytes without fields of their own: a picture, a packet.
    Bytes,
    /// A point in time: unsigned seconds and nanoseconds of the Unix clock, `{sec, nsec}` as a
    /// value.
    Time,
    /// A span of time: signed seconds and nanoseconds, `{sec, nsec}` as a value.
    Duration,
    /// A fixed number of elements.
    Array(Box<FieldType>, usize),
    /// As many elements as each record says.
    List(Box<FieldType>),
}

impl FieldType {
    /// Returns the fields inside: those of a struct, or of an array's struct.
    pub fn nested(&self) -> Option<&Arc<Schema>> {
        match self {
            Self::Struct(schema) => Some(schema),
            Self::Array(element, _) | Self::List(element) => element.nested(),
            _ => None,
        }
    }

    /// Returns whether every record has the same number of leaves below a field of this type.
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
