//! Encodes records as protobuf messages directly from their bytes, without decoding them to values.

use rovelog::core::internal::layout::{At, Leaf, Visit};
use rovelog::{Field, FieldType, Scalar};

use super::proto::{self, varint};

/// Encoded tag of a protobuf field. The tag consists of the field number and the wire type.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tag {
    bytes: [u8; 5],
    /// Number of bytes of the tag that are in use.
    len: u8,
}

impl Tag {
    fn new(number: u32, wire_type: u32) -> Self {
        let mut tag = Vec::with_capacity(5);
        varint(u64::from(number << 3 | wire_type), &mut tag);
        let mut bytes = [0; 5];
        bytes[..tag.len()].copy_from_slice(&tag);
        Self { bytes, len: u8::try_from(tag.len()).unwrap_or(5) }
    }

    #[inline]
    fn put(self, out: &mut Vec<u8>) {
        if self.len == 1 {
            return out.push(self.bytes[0]);
        }
        out.extend_from_slice(&self.bytes[..usize::from(self.len)]);
    }
}

/// Returns the tag of a field. `position` is the index of the field in its type.
pub(super) fn tag(position: usize, field: &Field) -> Tag {
    // The wire types of protobuf are 0 for a varint, 1 for 64 bits, 2 for a field with a length,
    // and 5 for 32 bits.
    let wire_type = match &field.ty {
        FieldType::Scalar(Scalar::Float32) => 5,
        FieldType::Scalar(Scalar::Float64) => 1,
        FieldType::Scalar(_) => 0,
        _ => 2,
    };
    Tag::new(u32::try_from(position + 1).unwrap_or(u32::MAX), wire_type)
}

/// A protobuf message that is being encoded.
pub(super) struct Message<'a> {
    pub(super) out: &'a mut Vec<u8>,
    /// Offsets in `out` of the lengths of fields that are not complete yet.
    open: Vec<usize>,
    /// Number of missing values. Protobuf cannot distinguish a missing number from 0.
    pub(super) nulls: u64,
}

impl<'a> Message<'a> {
    pub(super) fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out, open: Vec::new(), nulls: 0 }
    }

    /// Starts a field whose length is unknown until its content is encoded.
    fn start(&mut self, tag: Tag) {
        tag.put(self.out);
        self.open.push(proto::start(self.out));
    }

    fn end(&mut self) {
        if let Some(at) = self.open.pop() {
            proto::end(at, self.out);
        }
    }

    /// Writes a field whose content has a length prefix.
    fn bytes(&mut self, tag: Tag, bytes: &[u8]) {
        tag.put(self.out);
        varint(bytes.len() as u64, self.out);
        self.out.extend_from_slice(bytes);
    }
}

/// Returns the number that is encoded as a varint for an integer or Boolean. Negative integers are
/// extended to 64 bits, as protobuf requires. For a float, returns its bits.
#[inline]
fn number(scalar: Scalar, bytes: &[u8]) -> u64 {
    macro_rules! read {
        ($ty:ty) => {
            <$ty>::from_le_bytes(*bytes.first_chunk().expect("as many bytes as a scalar has"))
        };
    }
    match scalar {
        Scalar::Bool => u64::from(bytes[0] != 0),
        Scalar::UInt8 => bytes[0].into(),
        Scalar::UInt16 => read!(u16).into(),
        Scalar::UInt32 | Scalar::Float32 => read!(u32).into(),
        Scalar::UInt64 | Scalar::Float64 => read!(u64),
        Scalar::Int8 => i64::from(read!(i8)).cast_unsigned(),
        Scalar::Int16 => i64::from(read!(i16)).cast_unsigned(),
        Scalar::Int32 => i64::from(read!(i32)).cast_unsigned(),
        Scalar::Int64 => read!(i64).cast_unsigned(),
    }
}

impl Visit<Tag> for Message<'_> {
    /// Writes a scalar field. In proto3, a field with the value 0 is omitted. The float -0 is
    /// written, because its bits are not 0.
    #[inline]
    fn scalar(&mut self, tag: &Tag, scalar: Scalar, bytes: &[u8]) {
        let number = number(scalar, bytes);
        if number == 0 {
            return;
        }
        tag.put(self.out);
        match scalar {
            Scalar::Float32 | Scalar::Float64 => self.out.extend_from_slice(bytes),
            _ if number < 128 => self.out.push(number.to_le_bytes()[0]),
            _ => varint(number, self.out),
        }
    }

    /// Writes the numbers of an array as one packed field.
    fn scalars(&mut self, tag: &Tag, scalar: Scalar, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        if matches!(scalar, Scalar::Float32 | Scalar::Float64) {
            return self.bytes(*tag, bytes);
        }
        self.start(*tag);
        for bytes in bytes.chunks_exact(scalar.size()) {
            varint(number(scalar, bytes), self.out);
        }
        self.end();
    }

    fn leaf(&mut self, tag: &Tag, at: At, leaf: Leaf<'_>) {
        let bytes = match &leaf {
            Leaf::Text(text) => text.as_bytes(),
            Leaf::Bytes(bytes) => bytes,
            Leaf::Null => {
                self.nulls += 1;
                return;
            }
            Leaf::Pair(scalar, bytes) => {
                self.start(*tag);
                let (sec, nsec) = bytes.split_at(4);
                self.scalar(&Tag::new(1, 0), *scalar, sec);
                self.scalar(&Tag::new(2, 0), *scalar, nsec);
                return self.end();
            }
        };
        // A field without content is omitted, but an element of a list must be written even if it
        // has no content.
        if at != At::Field || !bytes.is_empty() {
            self.bytes(*tag, bytes);
        }
    }

    fn open(&mut self, tag: &Tag, _: At) {
        self.start(*tag);
    }

    fn close(&mut self, _: &Tag, _: At) {
        self.end();
    }

    /// Nothing is written at the start of a list, because each element is a separate field with the
    /// same number.
    fn list(&mut self, _: &Tag, _: usize) {}

    fn end_list(&mut self, _: &Tag) {}
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rovelog::Value;
    use rovelog::core::internal::layout::{Element, KeyTable, Layout, Len, TextDecoder};

    use super::*;

    #[test]
    fn messages_are_those_of_protoc() {
        let layout_of = |fields: Vec<(&'static str, Element, Len)>| {
            let mut builder = Layout::builder("t");
            for (name, element, len) in fields {
                builder.field(name, element, len, String::new());
            }
            Arc::new(builder.finish())
        };
        let number = |scalar| (Element::Scalar(scalar), Len::One);
        let inner = layout_of(vec![("a", Element::Scalar(Scalar::UInt32), Len::One)]);
        let fields = [
            ("a", number(Scalar::UInt32)),
            ("b", number(Scalar::Int8)),
            ("c", (Element::Scalar(Scalar::UInt16), Len::Counted)),
            ("d", (Element::Text(TextDecoder::UTF8), Len::One)),
            ("e", number(Scalar::Float32)),
            ("f", number(Scalar::Bool)),
            ("g", (Element::Struct(inner), Len::One)),
        ];
        let layout = layout_of(fields.map(|(name, (element, len))| (name, element, len)).into());
        let value = Value::record([
            ("a", Value::UInt(150, 32)),
            ("b", Value::Int(-1, 8)),
            ("c", Value::List(vec![Value::UInt(3, 16), Value::UInt(270, 16)])),
            ("d", Value::Text("testing".to_owned())),
            ("e", Value::F32(1.0)),
            ("f", Value::Bool(false)),
            ("g", Value::record([("a", Value::UInt(150, 32))])),
        ]);
        let (mut record, mut out) = (Vec::new(), Vec::new());
        layout.encode(&value, &mut record).unwrap();
        let mut message = Message::new(&mut out);
        layout.visit(&record, &*KeyTable::new(&layout, &mut tag), &mut message).unwrap();
        let mut want = vec![0x08, 0x96, 0x01, 0x10];
        want.extend([0xff; 9]);
        want.push(0x01);
        want.extend([0x1a, 3, 3, 0x8e, 0x02, 0x22, 7]);
        want.extend(b"testing");
        want.extend([0x2d, 0, 0, 0x80, 0x3f, 0x3a, 3, 0x08, 0x96, 0x01]);
        assert_eq!(out, want);
    }
}
