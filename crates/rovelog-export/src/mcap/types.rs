//! Converts the schemas of a log to protobuf types.
//!
//! - The number of a field is its position in the schema, counted from 1.
//! - Integers with less than 32 bits become 32-bit integers.
//! - Texts become strings.
//! - Arrays and lists become repeated fields. Numbers are packed.
//! - Nested types become separate message types.

use std::collections::{BTreeMap, BTreeSet};

use prost::Message as _;
use prost_types::field_descriptor_proto::Type;
use prost_types::source_code_info::Location;
use prost_types::{DescriptorProto, FileDescriptorProto, FileDescriptorSet, SourceCodeInfo};
use rovelog::{FieldType, Scalar, Schema};

use super::proto::{field as field_type, file, google, message_type, repeated};
use crate::leaf::free_name;

/// A protobuf type, as stored in the schema record of a channel.
pub(super) struct Compiled {
    /// Full name of the type, such as `px4.vehicle_attitude`.
    pub(super) name: String,
    /// Encoded `FileDescriptorSet` that contains the type and all types that it uses.
    pub(super) descriptor: Vec<u8>,
}

/// Maximum nesting depth of a type. Most protobuf readers reject messages with more than 100
/// levels.
const MAX_DEPTH: usize = 90;

/// Returns the protobuf type for records with `schema`. Returns `None` if the schema is nested too
/// deeply. `package` is the protobuf package of the type.
pub(super) fn compile(package: &str, schema: &Schema) -> Option<Compiled> {
    let mut types = Types { package, ..Types::default() };
    let name = types.add(schema, 0)?;
    let mut files: Vec<_> = types.google.iter().map(|name| google(name)).collect();
    let ours = file(format!("{package}/{name}.proto"), package, &files, types.messages);
    let comments = (!types.comments.is_empty()).then_some(SourceCodeInfo { location: types.comments });
    files.push(FileDescriptorProto { source_code_info: comments, ..ours });
    let descriptor = FileDescriptorSet { file: files }.encode_to_vec();
    Some(Compiled { name: format!("{package}.{name}"), descriptor })
}

/// Protobuf types that are being built.
#[derive(Default)]
struct Types<'a> {
    package: &'a str,
    messages: Vec<DescriptorProto>,
    /// Comments on fields, which contain the units of the fields. Protobuf stores a source text
    /// position for each comment. The positions are 0, because the types have no source text.
    comments: Vec<Location>,
    /// Protobuf name of each type in the log, by the name in the log.
    names: BTreeMap<String, String>,
    /// Protobuf names that are in use.
    taken: BTreeSet<String>,
    /// Names of the types in the package `google.protobuf` that the fields use.
    google: BTreeSet<&'static str>,
}

/// Returns `name`, or `name` with a number if the JSON name of another field is the same. Protobuf
/// refuses a message with such fields, for example `x1` and `x_1`.
fn free_field_name(taken: &mut BTreeSet<String>, name: &str) -> String {
    let numbered = (2..).map(|number| format!("{name}_{number}"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    names.find(|name| taken.insert(json_name(name))).expect("there are more numbers than fields")
}

/// Returns the JSON name of a protobuf field, in which a capital letter replaces each underscore and
/// the letter after it.
fn json_name(name: &str) -> String {
    let mut json = String::new();
    let mut is_after_underscore = false;
    for letter in name.chars() {
        if letter != '_' {
            json.push(if is_after_underscore { letter.to_ascii_uppercase() } else { letter });
        }
        is_after_underscore = letter == '_';
    }
    json
}

impl Types<'_> {
    /// Adds a type and its nested types. Returns the protobuf name of the type. Returns `None` if
    /// the type is nested too deeply.
    fn add(&mut self, schema: &Schema, depth: usize) -> Option<String> {
        if let Some(name) = self.names.get(&schema.name) {
            return Some(name.clone());
        }
        // In a malicious log, types may be nested without end.
        if depth > MAX_DEPTH {
            return None;
        }
        let mut fields = Vec::new();
        let mut taken = BTreeSet::new();
        let mut comments = Vec::new();
        for (number, field) in (1..).zip(&schema.fields) {
            let Shape { ty, repeated: many, inner, well_known } = shape(&field.ty);
            let name = free_field_name(&mut taken, &identifier(&field.name));
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
        let name = free_name(&mut self.taken, &identifier(&schema.name));
        self.names.insert(schema.name.clone(), name.clone());
        // The path to a field consists of field numbers and indices: field 4 of the file descriptor
        // has the messages, and field 2 of a message descriptor has the fields.
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

/// Converts a name to a valid protobuf identifier.
fn identifier(name: &str) -> String {
    let mut text: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect();
    if !text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        text.insert(0, '_');
    }
    text
}

/// Protobuf type of a field.
struct Shape<'a> {
    ty: Type,
    repeated: bool,
    /// Schema of a nested type.
    inner: Option<&'a Schema>,
    /// Name of a type in the package `google.protobuf`, if the field has such a type.
    well_known: Option<&'static str>,
}

/// Returns the protobuf type for the type of a field.
fn shape(ty: &FieldType) -> Shape<'_> {
    let plain = |ty| Shape { ty, repeated: false, inner: None, well_known: None };
    match ty {
        FieldType::Scalar(scalar) => plain(scalar_type(*scalar)),
        FieldType::Struct(schema) => Shape { inner: Some(schema), ..plain(Type::Message) },
        FieldType::Array(element, _) | FieldType::List(element) => Shape { repeated: true, ..shape(element) },
        FieldType::Text => plain(Type::String),
        // The protobuf types `Timestamp` and `Duration` have the fields seconds and nanoseconds, as
        // times in the log have.
        FieldType::Time => Shape { well_known: Some("Timestamp"), ..plain(Type::Message) },
        FieldType::Duration => Shape { well_known: Some("Duration"), ..plain(Type::Message) },
        // `FieldType` is non-exhaustive. A type that a later version adds is written as JSON in
        // bytes.
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rovelog::Field;

    use super::*;

    #[test]
    fn units_are_comments_of_the_schema() {
        let number = FieldType::Scalar(Scalar::Float32);
        let fields = vec![
            Field::new("load", number.clone(), "float"),
            Field::new("voltage", number, "float").with_unit("V"),
        ];
        let compiled = compile("px4", &Schema { name: "battery".to_owned(), fields }).unwrap();
        // The expected bytes are a `source_code_info` (field 9 of a file descriptor) with a single
        // comment. Its path is `message_type[0].field[1]`.
        let info = b"\x4a\x12\x0a\x10\x0a\x04\x04\0\x02\x01\x12\x03\0\0\0\x22\x03 V\n";
        assert!(
            compiled.descriptor.windows(info.len()).any(|part| part == info),
            "{:x?}",
            compiled.descriptor
        );
    }

    #[test]
    fn no_two_fields_have_the_same_json_name() {
        let mut taken = BTreeSet::new();
        let mut name = |name| free_field_name(&mut taken, name);
        assert_eq!(
            ["x1", "x_1", "aB", "a_b", "_x", "X"].map(&mut name),
            ["x1", "x_1_2", "aB", "a_b_2", "_x", "X_2"]
        );
        assert_eq!(["x1", "x1"].map(name), ["x1_3", "x1_4"]);
    }

    #[test]
    fn names_are_identifiers_and_types_are_written_once() {
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
