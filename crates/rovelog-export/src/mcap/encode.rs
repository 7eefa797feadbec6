//! Records as protobuf messages, straight from their bytes.

use rovelog::core::layout::{At, Leaf, Visit};
use rovelog::{Field, FieldType, Scalar};

use super::proto::{self, varint};

/// The tag of a field: its number and its wire type.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tag {
    bytes: [u8; 5],
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

/// Returns the tag of a field by its position in its type, from 0.
pub(super) fn tag(position: usize, field: &Field) -> Tag {
    let wire_type = match &field.ty {
        FieldType::Scalar(Scalar::Float32) => 5,
        FieldType::Scalar(Scalar::Float64) => 1,
        FieldType::Scalar(_) => 0,
        _ => 2,
    };
    Tag::new(u32::try_from(position + 1).unwrap_or(u32::MAX), wire_type)
}

/// A message in the making.
pub(super) struct Message<'a> {
    pub(super) out: &'a mut Vec<u8>,
    /// Where the lengths of the open fields are.
    open: Vec<usize>,
}

impl<'a> Message<'a> {
    pub(super) fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out, open: Vec::new() }
    }

    /// Starts a field whose length is not known yet.
    fn start(&mut self, tag: Tag) {
        tag.put(self.out);
        self.open.push(proto::start(self.out));
    }

    fn end(&mut self) {
        if let Some(at) = self.open.pop() {
            proto::end(at, self.out);
        }
    }

    fn bytes(&mut self, tag: Tag, bytes: &[u8]) {
        tag.put(self.out);
        varint(bytes.len() as u64, self.out);
        self.out.extend_from_slice(bytes);
    }
}

/// Returns an integer or a truth value as the number that its varint has.
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
    /// proto3 leaves zeros out; not -0.
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

    /// Numbers are packed in one field.
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
            Leaf::Pair(scalar, bytes) => {
                self.start(*tag);
                let (sec, nsec) = bytes.split_at(4);
                self.scalar(&Tag::new(1, 0), *scalar, sec);
                self.scalar(&Tag::new(2, 0), *scalar, nsec);
                return self.end();
            }
        };
        if at != At::Field || !bytes.is_empty() {
            self.bytes(*tag, bytes);
        }
    }

    fn open(&mut self, tag: &Tag, _: At) {
        self.start(*tag);
    }

    fn close(&mut self) {
        self.end();
    }

    /// Elements are fields of their own.
    fn list(&mut self, _: &Tag) {}

    fn end_list(&mut self) {}
}

#[cfg(test)]
mod tests {
    use rovelog::core::layout::Plans;
    use rovelog::{ReadOptions, Select};
    use rovelog_testing::{Logs, ROSBAG, ULOG, VEL};

    use super::*;
    use crate::mcap::types;

    /// Straight from the bytes or by way of a value: the same message.
    #[test]
    fn messages_are_those_of_the_values() {
        let mut compared = 0;
        for file in [ULOG, ROSBAG, VEL].iter().flat_map(Logs::all) {
            let Ok(log) = rovelog::from_bytes(file.bytes, &ReadOptions::default()) else { continue };
            let mut plans = Plans::default();
            for record in log.records(&Select::all()).flatten().step_by(3) {
                let mut message = Vec::new();
                let mut out = Message::new(&mut message);
                let topic = record.topic.id;
                if !plans.run(topic, record.layout(), &record.payload, &mut tag, &mut out) {
                    continue;
                }
                let mut want = Vec::new();
                types::encode(&record.value().unwrap(), &mut want);
                assert_eq!(message, want, "{}: {record:?}", file.name);
                compared += 1;
            }
        }
        assert!(compared > 1000, "{compared}");
    }
}
