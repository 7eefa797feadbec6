//! Encodes protobuf fields, and builds descriptors of message types. The types are only known at
//! run time, so no code can be generated from `.proto` files.

use prost::encoding::{self, WireType};
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{
    DescriptorProto, EnumDescriptorProto, EnumValueDescriptorProto, FieldDescriptorProto, FileDescriptorProto,
};

pub(super) use prost::encoding::encode_varint as varint;

/// Writes an unsigned integer field. In proto3, a field with the value 0 is omitted.
pub(super) fn uint(field: u32, value: u64, out: &mut Vec<u8>) {
    if value != 0 {
        encoding::uint64::encode(field, &value, out);
    }
}

/// Writes a signed integer field. A negative number takes ten bytes.
pub(super) fn int(field: u32, value: i64, out: &mut Vec<u8>) {
    uint(field, value.cast_unsigned(), out);
}

/// Writes a 64-bit float field unless its value is 0. The value -0 is written, as in other
/// implementations of proto3.
pub(super) fn double(field: u32, value: f64, out: &mut Vec<u8>) {
    if value.to_bits() != 0 {
        present(field, value, out);
    }
}

/// Writes a 32-bit float field unless its value is 0.
pub(super) fn float(field: u32, value: f32, out: &mut Vec<u8>) {
    if value.to_bits() != 0 {
        encoding::float::encode(field, &value, out);
    }
}

/// Writes a 64-bit float field, even if its value is 0.
pub(super) fn present(field: u32, value: f64, out: &mut Vec<u8>) {
    encoding::double::encode(field, &value, out);
}

/// Writes a field of the type `fixed32` unless its value is 0.
pub(super) fn fixed32(field: u32, value: u32, out: &mut Vec<u8>) {
    if value != 0 {
        encoding::fixed32::encode(field, &value, out);
    }
}

/// Writes a text or bytes field unless it is empty.
pub(super) fn bytes(field: u32, value: impl AsRef<[u8]>, out: &mut Vec<u8>) {
    if !value.as_ref().is_empty() {
        element(field, value.as_ref(), out);
    }
}

/// Writes a field with a length prefix, such as a text or a message, even if it is empty. An empty
/// element of a repeated field must be written. Otherwise, the number of elements would be wrong.
pub(super) fn element(field: u32, value: &[u8], out: &mut Vec<u8>) {
    encoding::encode_key(field, WireType::LengthDelimited, out);
    varint(value.len() as u64, out);
    out.extend_from_slice(value);
}

/// Writes a field that contains a message. `fill` is called to write the content of the message.
pub(super) fn message(field: u32, out: &mut Vec<u8>, fill: impl FnOnce(&mut Vec<u8>)) {
    encoding::encode_key(field, WireType::LengthDelimited, out);
    let at = start(out);
    fill(out);
    end(at, out);
}

/// Reserves one byte for the length of a field, and returns the offset of this byte. One byte
/// suffices for most fields, because they are shorter than 128 bytes.
#[inline]
pub(super) fn start(out: &mut Vec<u8>) -> usize {
    out.push(0);
    out.len() - 1
}

/// Writes the length of a field. `at` is the offset that [`start`] returned. If the length needs
/// more than one byte, the content after it is moved.
#[inline]
pub(super) fn end(at: usize, out: &mut Vec<u8>) {
    let len = out.len() - at - 1;
    if let Ok(len @ 0..128) = u8::try_from(len) {
        out[at] = len;
        return;
    }
    let mut bytes = Vec::with_capacity(5);
    varint(len as u64, &mut bytes);
    out.splice(at..=at, bytes);
}

/// Describes a field of a message type.
pub(super) fn field(name: impl Into<String>, number: i32, ty: Type) -> FieldDescriptorProto {
    FieldDescriptorProto {
        name: Some(name.into()),
        number: Some(number),
        label: Some(Label::Optional.into()),
        r#type: Some(ty.into()),
        ..FieldDescriptorProto::default()
    }
}

/// Describes a field whose type is a message or an enum. `type_name` is the full name of this type,
/// with a leading dot.
pub(super) fn field_of(name: &str, number: i32, ty: Type, type_name: String) -> FieldDescriptorProto {
    FieldDescriptorProto { type_name: Some(type_name), ..field(name, number, ty) }
}

/// Changes the description of a field to that of a repeated field.
pub(super) fn repeated(field: FieldDescriptorProto) -> FieldDescriptorProto {
    FieldDescriptorProto { label: Some(Label::Repeated.into()), ..field }
}

/// Describes a message type.
pub(super) fn message_type(name: impl Into<String>, field: Vec<FieldDescriptorProto>) -> DescriptorProto {
    DescriptorProto { name: Some(name.into()), field, ..DescriptorProto::default() }
}

/// Describes an enum whose values have the numbers 0, 1, 2 and so on.
pub(super) fn enum_type(name: &str, values: &[&str]) -> EnumDescriptorProto {
    let value = |(number, name): (i32, &&str)| EnumValueDescriptorProto {
        name: Some((*name).to_owned()),
        number: Some(number),
        options: None,
    };
    let value = (0..).zip(values).map(value).collect();
    EnumDescriptorProto { name: Some(name.to_owned()), value, ..EnumDescriptorProto::default() }
}

/// Describes a `.proto` file that contains message types. `before` are the names of the files that
/// it imports.
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

/// Describes the `.proto` file that defines `google.protobuf.Timestamp` or
/// `google.protobuf.Duration`.
pub(super) fn google(name: &str) -> FileDescriptorProto {
    let fields = vec![field("seconds", 1, Type::Int64), field("nanos", 2, Type::Int32)];
    let file_name = format!("google/protobuf/{}.proto", name.to_lowercase());
    file(file_name, "google.protobuf", &[], vec![message_type(name, fields)])
}
