//! Encodes records as protobuf messages directly from their bytes, without decoding them to values.

use rovelog::core::internal::layout::{At, KeyCache, Leaf, Visit};
use rovelog::{Field, FieldType, Record, Scalar};

use super::proto;

/// A number of at most 56 bits as a protobuf varint, which has 7 bits in each byte.
#[derive(Clone, Copy, Debug)]
struct Varint {
    /// Bytes of the varint, as a little-endian number.
    bytes: u64,
    /// Number of bytes of the varint.
    len: u32,
}

impl Varint {
    /// The missing tag of an element of a list. Nothing is written.
    const NONE: Self = Self { bytes: 0, len: 0 };
    /// Largest number with a varint of 8 bytes.
    const MAX: u64 = (1 << 56) - 1;
    /// Bits that announce another byte, for 8 bytes.
    const MORE: u64 = 0x8080_8080_8080_8080;

    /// Moves the bits of a number apart: first groups of 28 bits, then of 14 and 7 bits. For
    /// example, 0x96 becomes 0x0116. All bytes except the last get the bit that announces another
    /// byte, so the varint is 0x0196.
    #[inline]
    const fn new(number: u64) -> Self {
        let number = (number & 0x00ff_ffff_f000_0000) << 4 | number & 0x0fff_ffff;
        let number = (number & 0x0fff_c000_0fff_c000) << 2 | number & 0x0000_3fff_0000_3fff;
        let number = (number & 0x3f80_3f80_3f80_3f80) << 1 | number & 0x007f_007f_007f_007f;
        let len = (71 - (number | 1).leading_zeros()) / 8;
        let more = Self::MORE & ((1 << (8 * (len - 1))) - 1);
        Self { bytes: number | more, len }
    }
}

/// Encoded tag of a protobuf field. The tag consists of the field number and the wire type.
type Tag = Varint;

fn encoded_tag(number: u32, wire_type: u32) -> Tag {
    Varint::new(u64::from(number << 3 | wire_type))
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
    encoded_tag(u32::try_from(position + 1).unwrap_or(u32::MAX), wire_type)
}

/// Encodes records as protobuf messages.
#[derive(Default)]
pub(super) struct Encoder {
    /// For each record layout, the tags of its fields.
    tags: KeyCache<Tag>,
    scratch: Scratch,
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
        let mut message = Message { out, scratch: &mut self.scratch, open: Vec::new(), nulls: 0 };
        let visited = record
            .fields()
            .and_then(|fields| self.tags.visit(record.topic.id, &fields, &mut tag, &mut message));
        message.flush();
        Encoded { is_complete: visited.is_ok(), nulls: message.nulls }
    }
}

/// Fields that are moved to the output together. A field is written to the buffer with a single
/// copy of 16 bytes, of which the surplus is overwritten by the next field. Appending each field to
/// a `Vec` would take twice as long.
struct Scratch {
    bytes: [u8; 256],
    /// Number of bytes in use.
    len: usize,
}

impl Default for Scratch {
    fn default() -> Self {
        Self { bytes: [0; 256], len: 0 }
    }
}

/// A protobuf message that is being encoded.
struct Message<'a> {
    out: &'a mut Vec<u8>,
    /// The end of the message, which is not in `out` yet.
    scratch: &'a mut Scratch,
    /// Offsets in `out` of the lengths of fields that are not complete yet.
    open: Vec<usize>,
    /// Number of missing values.
    nulls: u64,
}

impl Message<'_> {
    /// Moves the end of the message to `out`.
    #[inline]
    fn flush(&mut self) {
        let Scratch { bytes, len } = self.scratch;
        self.out.extend_from_slice(&bytes[..*len]);
        *len = 0;
    }

    /// Writes a tag and a value of `len` bytes, which are the lowest bytes of `value`.
    #[inline]
    fn put(&mut self, tag: Tag, value: u64, len: usize) {
        if self.scratch.len > 240 {
            self.flush();
        }
        let field = u128::from(tag.bytes) | u128::from(value) << (8 * tag.len);
        let Scratch { bytes, len: end } = self.scratch;
        if let Some(free) = bytes[*end..].first_chunk_mut() {
            *free = field.to_le_bytes();
        }
        *end += tag.len as usize + len;
    }

    /// Writes a tag and a number as a varint.
    #[inline]
    fn varint(&mut self, tag: Tag, number: u64) {
        let Varint { bytes, len } = Varint::new(number & Varint::MAX);
        if number > Varint::MAX {
            self.put(tag, bytes | Varint::MORE, 8);
            self.varint(Tag::NONE, number >> 56);
        } else {
            self.put(tag, bytes, len as usize);
        }
    }

    /// Starts a field whose length is unknown until its content is encoded.
    fn start(&mut self, tag: Tag) {
        self.put(tag, 0, 0);
        self.flush();
        self.open.push(proto::start(self.out));
    }

    fn end(&mut self) {
        self.flush();
        if let Some(at) = self.open.pop() {
            proto::end(at, self.out);
        }
    }

    /// Writes a field whose content has a length prefix.
    fn bytes(&mut self, tag: Tag, bytes: &[u8]) {
        self.varint(tag, bytes.len() as u64);
        self.flush();
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

/// Nothing is written at the start of a list, because each element is a separate field with the same
/// number.
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
            Scalar::Float32 => self.put(*tag, number, 4),
            Scalar::Float64 => self.put(*tag, number, 8),
            _ => self.varint(*tag, number),
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
            self.varint(Tag::NONE, number(scalar, bytes));
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
                self.scalar(&encoded_tag(1, 0), *scalar, sec);
                self.scalar(&encoded_tag(2, 0), *scalar, nsec);
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
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rovelog::Value;
    use rovelog::core::internal::layout::{Element, KeyTable, Layout, Len, TextDecoder};

    use super::*;

    #[test]
    fn varints_are_those_of_prost() {
        for number in (0..64).flat_map(|bits| [1u64 << bits, (1 << bits) - 1]).chain([u64::MAX]) {
            let (mut out, mut want) = (Vec::new(), Vec::new());
            let scratch = &mut Scratch::default();
            let mut message = Message { out: &mut out, scratch, open: Vec::new(), nulls: 0 };
            message.varint(encoded_tag(2000, 0), number);
            message.flush();
            proto::varint(2000 << 3, &mut want);
            proto::varint(number, &mut want);
            assert_eq!(out, want, "{number}");
        }
    }

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
        let scratch = &mut Scratch::default();
        let mut message = Message { out: &mut out, scratch, open: Vec::new(), nulls: 0 };
        layout.visit(&record, &*KeyTable::new(&layout, &mut tag), &mut message).unwrap();
        message.flush();
        let mut want = vec![0x08, 0x96, 0x01, 0x10];
        want.extend([0xff; 9]);
        want.push(0x01);
        want.extend([0x1a, 3, 3, 0x8e, 0x02, 0x22, 7]);
        want.extend(b"testing");
        want.extend([0x2d, 0, 0, 0x80, 0x3f, 0x3a, 3, 0x08, 0x96, 0x01]);
        assert_eq!(out, want);
    }
}
