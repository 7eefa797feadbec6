//! Protobuf: fields that are written as they come, and the descriptors that say what is in a message.

use prost::encoding::{self, WireType};
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{
    DescriptorProto, EnumDescriptorProto, EnumValueDescriptorProto, FieldDescriptorProto, FileDescriptorProto,
};

pub(super) use prost::encoding::encode_varint as varint;

/// A varint field; proto3 leaves zeros out.
pub(super) fn uint(field: u32, value: u64, out: &mut Vec<u8>) {
    if value != 0 {
        encoding::uint64::encode(field, &value, out);
    }
}

/// A signed varint field: negative numbers take ten bytes.
pub(super) fn int(field: u32, value: i64, out: &mut Vec<u8>) {
    uint(field, value.cast_unsigned(), out);
}

/// A double; only +0 is left out, so that -0 stays.
pub(super) fn double(field: u32, value: f64, out: &mut Vec<u8>) {
    if value.to_bits() != 0 {
        present(field, value, out);
    }
}

pub(super) fn float(field: u32, value: f32, out: &mut Vec<u8>) {
    if value.to_bits() != 0 {
        encoding::float::encode(field, &value, out);
    }
}

/// A double that is there even where it is 0.
pub(super) fn present(field: u32, value: f64, out: &mut Vec<u8>) {
    encoding::double::encode(field, &value, out);
}

/// A fixed32 field.
pub(super) fn fixed32(field: u32, value: u32, out: &mut Vec<u8>) {
    if value != 0 {
        encoding::fixed32::encode(field, &value, out);
    }
}

/// Text or bytes; left out where empty.
pub(super) fn bytes(field: u32, value: &[u8], out: &mut Vec<u8>) {
    if !value.is_empty() {
        element(field, value, out);
    }
}

/// A length-delimited field that is there even when empty: an element, or a message.
pub(super) fn element(field: u32, value: &[u8], out: &mut Vec<u8>) {
    encoding::encode_key(field, WireType::LengthDelimited, out);
    varint(value.len() as u64, out);
    out.extend_from_slice(value);
}

/// A message field that `fill` writes.
pub(super) fn message(field: u32, out: &mut Vec<u8>, fill: impl FnOnce(&mut Vec<u8>)) {
    let mut inner = Vec::new();
    fill(&mut inner);
    element(field, &inner, out);
}

/// A field of a message type.
pub(super) fn field(name: impl Into<String>, number: i32, ty: Type) -> FieldDescriptorProto {
    FieldDescriptorProto {
        name: Some(name.into()),
        number: Some(number),
        label: Some(Label::Optional.into()),
        r#type: Some(ty.into()),
        ..FieldDescriptorProto::default()
    }
}

/// A field of a message or an enum with this full name, with its leading point.
pub(super) fn field_of(name: &str, number: i32, ty: Type, type_name: String) -> FieldDescriptorProto {
    FieldDescriptorProto { type_name: Some(type_name), ..field(name, number, ty) }
}

/// The same field, any number of times.
pub(super) fn repeated(field: FieldDescriptorProto) -> FieldDescriptorProto {
    FieldDescriptorProto { label: Some(Label::Repeated.into()), ..field }
}

/// A message type.
pub(super) fn message_type(name: impl Into<String>, field: Vec<FieldDescriptorProto>) -> DescriptorProto {
    DescriptorProto { name: Some(name.into()), field, ..DescriptorProto::default() }
}

/// An enum with the numbers from 0.
pub(super) fn enum_type(name: &str, values: &[&str]) -> EnumDescriptorProto {
    let value = |(number, name): (i32, &&str)| EnumValueDescriptorProto {
        name: Some((*name).to_owned()),
        number: Some(number),
        options: None,
    };
    let value = (0..).zip(values).map(value).collect();
    EnumDescriptorProto { name: Some(name.to_owned()), value, ..EnumDescriptorProto::default() }
}

/// A file of message types, which needs the files before it.
pub(super) fn file(
    name: String,
    package: &str,
    before: &[FileDescriptorProto],
    message_type: Vec<DescriptorProto>,
) -> FileDescriptorProto {
    FileDescriptorProto {
        name: Some(name),
        package: Some(package.to_owned()),
        dependency: before.iter().filter_map(|file| file.name.clone()).collect(),
        message_type,
        syntax: Some("proto3".to_owned()),
        ..FileDescriptorProto::default()
    }
}

/// The file of `google.protobuf.Timestamp` or `Duration`.
pub(super) fn google(name: &str) -> FileDescriptorProto {
    let fields = vec![field("seconds", 1, Type::Int64), field("nanos", 2, Type::Int32)];
    let file_name = format!("google/protobuf/{}.proto", name.to_lowercase());
    file(file_name, "google.protobuf", &[], vec![message_type(name, fields)])
}
