//! Encodes records as protobuf messages directly from their bytes, without decoding them to values.

use rovelog::core::internal::layout::{At, KeyCache, Leaf, Visit};
use rovelog::{Field, FieldType, Record, Scalar};

use super::proto::{self, varint};

/// Encoded tag of a protobuf field. The tag consists of the field number and the wire type.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tag {
    /// Bytes of the tag, as a little-endian number.
    bytes: u64,
    /// Number of bytes of the tag.
    len: u32,
}

impl Tag {
    /// No tag, for the elements of a list.
    const NONE: Self = Self { bytes: 0, len: 0 };

    fn new(number: u32, wire_type: u32) -> Self {
        let varint = Varint::new(u64::from(number << 3 | wire_type));
        Self { bytes: varint.bytes, len: varint.len }
    }

    #[inline]
    fn put(self, out: &mut Vec<u8>) {
        put(self.bytes.into(), self.len, out);
    }

    /// Writes the tag and a value of `len` bytes, which are the lowest bytes of `value`.
    #[inline]
    fn put_with(self, value: u64, len: u32, out: &mut Vec<u8>) {
        put(u128::from(self.bytes) | u128::from(value) << (8 * self.len), self.len + len, out);
    }

    /// Writes the tag and a number as a varint.
    #[inline]
    fn put_varint(self, number: u64, out: &mut Vec<u8>) {
        if number < 1 << Varint::BITS {
            let Varint { bytes, len } = Varint::new(number);
            self.put_with(bytes, len, out);
        } else {
            self.put(out);
            varint(number, out);
        }
    }
}

/// Writes the lowest `len` bytes of a number. All 16 bytes are written and the surplus is removed,
/// because a copy of a constant size is faster.
#[inline]
fn put(bytes: u128, len: u32, out: &mut Vec<u8>) {
    let end = out.len() + len as usize;
    out.extend_from_slice(&bytes.to_le_bytes());
    out.truncate(end);
}

/// A number of at most 56 bits as a protobuf varint, which has 7 bits in each byte.
struct Varint {
    /// Bytes of the varint, as a little-endian number.
    bytes: u64,
    /// Number of bytes of the varint.
    len: u32,
}

impl Varint {
    /// Largest number of bits that a varint of 8 bytes can have.
    const BITS: u32 = 56;

    /// Moves the bits of a number apart: first groups of 28 bits, then of 14 and 7 bits. For
    /// example, 0x96 becomes 0x0116. All bytes except the last get the bit that announces another
    /// byte, so the varint is 0x0196.
    #[inline]
    const fn new(number: u64) -> Self {
        let number = (number & 0x00ff_ffff_f000_0000) << 4 | number & 0x0fff_ffff;
        let number = (number & 0x0fff_c000_0fff_c000) << 2 | number & 0x0000_3fff_0000_3fff;
        let number = (number & 0x3f80_3f80_3f80_3f80) << 1 | number & 0x007f_007f_007f_007f;
        let len = (71 - (number | 1).leading_zeros()) / 8;
        let more = 0x8080_8080_8080_8080 & ((1 << (8 * (len - 1))) - 1);
        Self { bytes: number | more, len }
    }
}

/// Returns the tag of a field. `position` is the index of the field in its type.
fn tag(position: usize, field: &Field) -> Tag {
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

/// Encodes records as protobuf messages.
#[derive(Default)]
pub(super) struct Encoder {
    /// For each record layout, the tags of its fields.
    tags: KeyCache<Tag>,
}

/// Result of encoding a record.
pub(super) struct Encoded {
    /// False if the record cannot be decoded.
    pub(super) is_complete: bool,
    /// Number of missing values. Protobuf cannot distinguish a missing number from 0.
    pub(super) nulls: u64,
}

impl Encoder {
    /// Writes a record as a message of its topic's type. If the record cannot be decoded, the
    /// output is incomplete.
    pub(super) fn encode(&mut self, record: &Record<'_>, out: &mut Vec<u8>) -> Encoded {
        let mut message = Message::new(out);
        let visited = record
            .fields()
            .and_then(|fields| self.tags.visit(record.topic.id, &fields, &mut tag, &mut message));
        Encoded { is_complete: visited.is_ok(), nulls: message.nulls }
    }
}

/// A protobuf message that is being encoded.
struct Message<'a> {
    out: &'a mut Vec<u8>,
    /// Offsets in `out` of the lengths of fields that are not complete yet.
    open: Vec<usize>,
    /// Number of missing values.
    nulls: u64,
}

impl<'a> Message<'a> {
    fn new(out: &'a mut Vec<u8>) -> Self {
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
        tag.put_varint(bytes.len() as u64, self.out);
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
        match scalar {
            Scalar::Float32 => tag.put_with(number, 4, self.out),
            Scalar::Float64 => tag.put_with(number, 8, self.out),
            _ => tag.put_varint(number, self.out),
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
            Tag::NONE.put_varint(number(scalar, bytes), self.out);
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
