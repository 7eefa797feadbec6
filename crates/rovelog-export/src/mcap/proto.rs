//! Protobuf by hand: the wire form of messages, and of the descriptors that say what is in them.
//!
//! Only what MCAP needs: proto3, one file per type with the types inside it, no options.

/// Wire types.
const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const LEN: u64 = 2;
const FIXED32: u64 = 5;

/// `FieldDescriptorProto.Type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Double = 1,
    Float = 2,
    Int64 = 3,
    UInt64 = 4,
    Int32 = 5,
    Fixed32 = 7,
    Bool = 8,
    String = 9,
    Message = 11,
    Bytes = 12,
    UInt32 = 13,
    Enum = 14,
}

pub(super) fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        #[expect(clippy::cast_possible_truncation, reason = "seven bits at a time")]
        out.push((value as u8) | 0x80);
        value >>= 7;
    }
    #[expect(clippy::cast_possible_truncation, reason = "less than 128")]
    out.push(value as u8);
}

fn key(field: u32, wire: u64, out: &mut Vec<u8>) {
    varint(u64::from(field) << 3 | wire, out);
}

/// A varint field; proto3 leaves zeros out.
pub(super) fn uint(field: u32, value: u64, out: &mut Vec<u8>) {
    if value != 0 {
        key(field, VARINT, out);
        varint(value, out);
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
        key(field, FIXED32, out);
        out.extend_from_slice(&value.to_le_bytes());
    }
}

/// A double that is there even where it is 0.
pub(super) fn present(field: u32, value: f64, out: &mut Vec<u8>) {
    key(field, FIXED64, out);
    out.extend_from_slice(&value.to_le_bytes());
}

/// Doubles, packed.
pub(super) fn doubles(field: u32, values: impl ExactSizeIterator<Item = f64>, out: &mut Vec<u8>) {
    if values.len() > 0 {
        key(field, LEN, out);
        varint(8 * values.len() as u64, out);
        values.for_each(|value| out.extend_from_slice(&value.to_le_bytes()));
    }
}

/// A fixed32 field.
pub(super) fn fixed32(field: u32, value: u32, out: &mut Vec<u8>) {
    if value != 0 {
        key(field, FIXED32, out);
        out.extend_from_slice(&value.to_le_bytes());
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
    key(field, LEN, out);
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
#[derive(Clone, Debug)]
pub(super) struct FieldProto {
    pub(super) name: String,
    pub(super) number: u32,
    pub(super) ty: Type,
    pub(super) repeated: bool,
    /// Whether a message tells 0 from a value that is not there.
    pub(super) optional: bool,
    /// The full name of a message or an enum, with its leading point.
    pub(super) type_name: Option<String>,
    /// What a reader of the schema is told beside it.
    pub(super) comment: Option<String>,
}

impl FieldProto {
    pub(super) fn new(name: impl Into<String>, number: u32, ty: Type) -> Self {
        Self {
            name: name.into(),
            number,
            ty,
            repeated: false,
            optional: false,
            type_name: None,
            comment: None,
        }
    }

    pub(super) fn repeated(mut self) -> Self {
        self.repeated = true;
        self
    }

    pub(super) fn optional(mut self) -> Self {
        self.optional = true;
        self
    }

    pub(super) fn of(mut self, type_name: impl Into<String>) -> Self {
        self.type_name = Some(type_name.into());
        self
    }
}

/// A message type.
#[derive(Clone, Debug)]
pub(super) struct MessageProto {
    pub(super) name: String,
    pub(super) fields: Vec<FieldProto>,
    /// Enums inside it: names and values.
    pub(super) enums: Vec<(&'static str, &'static [&'static str])>,
}

impl MessageProto {
    pub(super) fn new(name: impl Into<String>, fields: Vec<FieldProto>) -> Self {
        Self { name: name.into(), fields, enums: Vec::new() }
    }

    fn write(&self, out: &mut Vec<u8>) {
        bytes(1, self.name.as_bytes(), out);
        let mut choices = Vec::new();
        for field in &self.fields {
            message(2, out, |out| {
                bytes(1, field.name.as_bytes(), out);
                uint(3, u64::from(field.number), out);
                uint(4, if field.repeated { 3 } else { 1 }, out);
                uint(5, field.ty as u64, out);
                bytes(6, field.type_name.as_deref().unwrap_or_default().as_bytes(), out);
                if field.optional {
                    // As protoc has it: a choice of its own, even where its number is 0.
                    key(9, VARINT, out);
                    varint(choices.len() as u64, out);
                    uint(17, 1, out);
                    choices.push(format!("_{}", field.name));
                }
            });
        }
        for (name, values) in &self.enums {
            message(4, out, |out| {
                bytes(1, name.as_bytes(), out);
                for (number, value) in (0..).zip(*values) {
                    message(2, out, |out| {
                        bytes(1, value.as_bytes(), out);
                        uint(2, number, out);
                    });
                }
            });
        }
        for choice in &choices {
            message(8, out, |out| bytes(1, choice.as_bytes(), out));
        }
    }
}

/// A file of a `FileDescriptorSet`.
pub(super) struct FileProto<'a> {
    pub(super) name: &'a str,
    pub(super) package: &'a str,
    pub(super) dependencies: &'a [&'a str],
    pub(super) messages: &'a [MessageProto],
}

/// The `SourceCodeInfo` with what is said of fields; places in a text that never was are all 0.
fn comments(messages: &[MessageProto], out: &mut Vec<u8>) {
    let mut info = Vec::new();
    for (of_type, message_type) in (0..).zip(messages) {
        for (of_field, field) in (0..).zip(&message_type.fields) {
            let Some(comment) = &field.comment else { continue };
            message(1, &mut info, |out| {
                // The field in its message in its file, by the numbers of those in their descriptors.
                message(1, out, |out| {
                    for part in [4, of_type, 2, of_field] {
                        varint(part, out);
                    }
                });
                element(2, &[0; 3], out);
                bytes(4, comment.as_bytes(), out);
            });
        }
    }
    bytes(9, &info, out);
}

/// A `FileDescriptorSet`: a file that others depend on comes before them.
pub(super) fn descriptor_set(files: &[FileProto<'_>]) -> Vec<u8> {
    let mut set = Vec::new();
    for file in files {
        message(1, &mut set, |out| {
            bytes(1, file.name.as_bytes(), out);
            bytes(2, file.package.as_bytes(), out);
            for dependency in file.dependencies {
                bytes(3, dependency.as_bytes(), out);
            }
            for message_type in file.messages {
                message(4, out, |out| message_type.write(out));
            }
            comments(file.messages, out);
            bytes(12, b"proto3", out);
        });
    }
    set
}
