//! Schemas of logs as protobuf types, and their records as messages.
//!
//! A field's number is its position in the schema, counted from 1. Integers below 64 bits widen to
//! 32, text is a string, arrays are repeated (packed for numbers), and nested types are separate
//! messages.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use prost::Message as _;
use prost_types::field_descriptor_proto::Type;
use prost_types::source_code_info::Location;
use prost_types::{DescriptorProto, FileDescriptorProto, FileDescriptorSet, SourceCodeInfo};
use rovelog::{FieldType, Scalar, Schema, Value};

use super::proto::{element, field as field_type, file, google, message_type, repeated, varint};

/// A type as a channel needs it.
pub(super) struct Compiled {
    /// Full name: `px4.vehicle_attitude`.
    pub(super) name: String,
    /// The serialised `FileDescriptorSet`.
    pub(super) descriptor: Vec<u8>,
}

/// Maximum nesting depth; protobuf readers allow a hundred levels.
const DEPTH: usize = 90;

/// Returns the type of records with `schema` in `package`; `None` if it is nested deeper than
/// readers allow.
pub(super) fn compile(package: &str, schema: &Schema) -> Option<Compiled> {
    let mut types = Types {
        package,
        messages: Vec::new(),
        comments: Vec::new(),
        names: BTreeMap::new(),
        taken: HashSet::new(),
        google: BTreeSet::new(),
    };
    let name = types.add(schema, 0)?;
    let mut files: Vec<_> = types.google.iter().map(|name| google(name)).collect();
    let ours = file(format!("{package}/{name}.proto"), package, &files, types.messages);
    let comments = (!types.comments.is_empty()).then_some(SourceCodeInfo { location: types.comments });
    files.push(FileDescriptorProto { source_code_info: comments, ..ours });
    let descriptor = FileDescriptorSet { file: files }.encode_to_vec();
    Some(Compiled { name: format!("{package}.{name}"), descriptor })
}

struct Types<'a> {
    package: &'a str,
    messages: Vec<DescriptorProto>,
    /// Comments on fields. Positions in the source text are all 0, because there is no source text.
    comments: Vec<Location>,
    /// Protobuf name by name in the log, so that each type is written once.
    names: BTreeMap<String, String>,
    taken: HashSet<String>,
    /// Well-known types in use.
    google: BTreeSet<&'static str>,
}

impl Types<'_> {
    /// Adds a type after its nested types. Returns its name.
    fn add(&mut self, schema: &Schema, depth: usize) -> Option<String> {
        if let Some(name) = self.names.get(&schema.name) {
            return Some(name.clone());
        }
        if depth > DEPTH {
            return None;
        }
        let mut fields = Vec::new();
        let mut taken = HashSet::new();
        let mut comments = Vec::new();
        for (number, field) in (1..).zip(&schema.fields) {
            let Shape { ty, repeated: many, inner, well_known } = shape(&field.ty);
            let name = unique(identifier(&field.name), &mut taken);
            let mut proto = field_type(name, number, ty);
            if many {
                proto = repeated(proto);
            }
            if let Some(unit) = field.unit.as_ref().filter(|unit| !unit.is_empty()) {
                comments.push((number - 1, format!(" {unit}\n")));
            }
            if let Some(name) = well_known {
                self.google.insert(name);
                proto.type_name = Some(format!(".google.protobuf.{name}"));
            }
            if let Some(inner) = inner {
                let name = self.add(inner, depth + 1)?;
                proto.type_name = Some(format!(".{}.{name}", self.package));
            }
            fields.push(proto);
        }
        let name = unique(identifier(&schema.name), &mut self.taken);
        self.names.insert(schema.name.clone(), name.clone());
        // The path of the field: field numbers in the descriptors of the file and the message.
        let message = i32::try_from(self.messages.len()).ok()?;
        self.comments.extend(comments.into_iter().map(|(field, comment)| Location {
            path: vec![4, message, 2, field],
            span: vec![0; 3],
            trailing_comments: Some(comment),
            ..Location::default()
        }));
        self.messages.push(message_type(name.clone(), fields));
        Some(name)
    }
}

/// Returns a name as a valid protobuf identifier.
fn identifier(name: &str) -> String {
    let mut text: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect();
    if !text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        text.insert(0, '_');
    }
    text
}

fn unique(mut name: String, taken: &mut HashSet<String>) -> String {
    while !taken.insert(name.clone()) {
        name.push('_');
    }
    name
}

/// Protobuf form of a field.
struct Shape<'a> {
    ty: Type,
    repeated: bool,
    /// Nested type of the log.
    inner: Option<&'a Schema>,
    well_known: Option<&'static str>,
}

fn shape(ty: &FieldType) -> Shape<'_> {
    let plain = |ty| Shape { ty, repeated: false, inner: None, well_known: None };
    match ty {
        FieldType::Scalar(scalar) => plain(scalar_type(*scalar)),
        FieldType::Struct(schema) => Shape { inner: Some(schema), ..plain(Type::Message) },
        FieldType::Array(element, _) | FieldType::List(element) => Shape { repeated: true, ..shape(element) },
        FieldType::Text => plain(Type::String),
        // Both have seconds and nanoseconds as their first two fields, as the value has.
        FieldType::Time => Shape { well_known: Some("Timestamp"), ..plain(Type::Message) },
        FieldType::Duration => Shape { well_known: Some("Duration"), ..plain(Type::Message) },
        // Types that a later version adds are carried as the bytes of their JSON.
        _ => plain(Type::Bytes),
    }
}

fn scalar_type(scalar: Scalar) -> Type {
    match scalar {
        Scalar::Bool => Type::Bool,
        Scalar::Int8 | Scalar::Int16 | Scalar::Int32 => Type::Int32,
        Scalar::UInt8 | Scalar::UInt16 | Scalar::UInt32 => Type::Uint32,
        Scalar::Int64 => Type::Int64,
        Scalar::UInt64 => Type::Uint64,
        Scalar::Float32 => Type::Float,
        Scalar::Float64 => Type::Double,
    }
}

/// Writes a record as a message, with its fields in the order of the schema.
pub(super) fn encode(value: &Value, out: &mut Vec<u8>) {
    let Value::Struct(fields) = value else { return };
    for (number, (_, value)) in (1..).zip(fields) {
        field(number, value, out);
    }
}

fn field(number: u32, value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => {}
        Value::Bool(value) => super::proto::uint(number, u64::from(*value), out),
        Value::Int(value, _) => super::proto::int(number, *value, out),
        Value::UInt(value, _) => super::proto::uint(number, *value, out),
        Value::F32(value) => super::proto::float(number, *value, out),
        Value::F64(value) => super::proto::double(number, *value, out),
        Value::Text(text) => super::proto::bytes(number, text.as_bytes(), out),
        Value::Bytes(bytes) => super::proto::bytes(number, bytes, out),
        Value::Struct(_) => super::proto::message(number, out, |out| encode(value, out)),
        Value::List(items) => list(number, items, out),
        other => super::proto::bytes(number, other.to_json().as_bytes(), out),
    }
}

/// Writes a list: numbers packed in one field, other elements one by one.
fn list(number: u32, items: &[Value], out: &mut Vec<u8>) {
    let mut packed = Vec::new();
    for item in items {
        match item {
            Value::Bool(value) => varint(u64::from(*value), &mut packed),
            Value::Int(value, _) => varint(value.cast_unsigned(), &mut packed),
            Value::UInt(value, _) => varint(*value, &mut packed),
            Value::F32(value) => packed.extend_from_slice(&value.to_le_bytes()),
            Value::F64(value) => packed.extend_from_slice(&value.to_le_bytes()),
            Value::Text(text) => element(number, text.as_bytes(), out),
            Value::Bytes(bytes) => element(number, bytes, out),
            Value::Struct(_) => super::proto::message(number, out, |out| encode(item, out)),
            Value::List(items) => list(number, items, out),
            _ => {}
        }
    }
    super::proto::bytes(number, &packed, out);
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rovelog::Field;

    use super::*;

    #[test]
    fn messages_are_those_of_protoc() {
        let value = Value::record([
            ("a", Value::UInt(150, 32)),
            ("b", Value::Int(-1, 8)),
            ("c", Value::List(vec![Value::UInt(3, 8), Value::UInt(270, 16)])),
            ("d", Value::Text("testing".to_owned())),
            ("e", Value::F32(1.0)),
            ("f", Value::Bool(false)),
            ("g", Value::record([("a", Value::UInt(150, 32))])),
        ]);
        let mut out = Vec::new();
        encode(&value, &mut out);
        let mut want = vec![0x08, 0x96, 0x01, 0x10];
        want.extend([0xff; 9]);
        want.push(0x01);
        want.extend([0x1a, 3, 3, 0x8e, 0x02, 0x22, 7]);
        want.extend(b"testing");
        want.extend([0x2d, 0, 0, 0x80, 0x3f, 0x3a, 3, 0x08, 0x96, 0x01]);
        assert_eq!(out, want);
    }

    #[test]
    fn units_are_comments_of_the_schema() {
        let number = FieldType::Scalar(Scalar::Float32);
        let fields = vec![
            Field::new("load", number.clone(), "float"),
            Field::new("voltage", number, "float").with_unit("V"),
        ];
        let compiled = compile("px4", &Schema { name: "battery".to_owned(), fields }).unwrap();
        // The only comment of the file's field 9, at `message_type[0].field[1]`.
        let info = b"\x4a\x12\x0a\x10\x0a\x04\x04\0\x02\x01\x12\x03\0\0\0\x22\x03 V\n";
        assert!(
            compiled.descriptor.windows(info.len()).any(|part| part == info),
            "{:x?}",
            compiled.descriptor
        );
    }

    #[test]
    fn names_are_identifiers_and_types_are_there_once() {
        let number = FieldType::Scalar(Scalar::UInt8);
        let inner = Arc::new(Schema {
            name: "esc-report".to_owned(),
            fields: vec![Field::new("x", number.clone(), "uint8_t"), Field::new("x", number, "uint8_t")],
        });
        let schema = Schema {
            name: "esc_report".to_owned(),
            fields: vec![
                Field::new("a", FieldType::Struct(Arc::clone(&inner)), "esc-report"),
                Field::new("b", FieldType::Array(Box::new(FieldType::Struct(inner)), 2), "esc-report[2]"),
            ],
        };
        let compiled = compile("px4", &schema).unwrap();
        assert_eq!(compiled.name, "px4.esc_report_");
        let text = String::from_utf8_lossy(&compiled.descriptor).into_owned();
        assert_eq!(text.matches(".px4.esc_report").count(), 2);
        assert!(text.contains("x_") && !text.contains("esc-report\n"));
    }
}
