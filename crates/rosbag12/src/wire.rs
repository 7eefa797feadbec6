//! The bytes of a V1.2 bag, declared in the specification's order ("Bags/Format/1.2" of the ROS wiki).
//!
//! Everything here reads and writes through `binrw`. Payloads are no fields: they lie beside their record.
//! [`crate::header`] has the same header as a borrowed view; a test holds the two to each other.

use std::io::Cursor;

use binrw::{BinRead, BinResult, BinWrite, Endian, binrw};
use rovelog_core::wire::{U32Le, U64Le};
use rovelog_core::{FormatInfo, Signature};
use zerocopy::FromBytes;

/// The format, as the version lines tell it from others.
pub(crate) const INFO: FormatInfo = FormatInfo {
    id: "rosbag",
    name: "ROS bag",
    about: "ROS bag of V1.2 and before",
    extensions: &["bag"],
    signatures: &[Signature(b"#ROSRECORD V1."), Signature(b"#ROSLOG V1."), Signature(b"#ROSBAG V1.")],
};

/// "Format": the version line of the bags that this crate writes.
pub const VERSION_LINE: &[u8; 16] = b"#ROSRECORD V1.2\n";

/// "Header format": the field that says what kind of record it is.
pub mod op {
    /// Message definition.
    pub const DEFINITION: u8 = 1;
    /// Message data.
    pub const DATA: u8 = 2;
    /// Bag header, ROS 0.11 and later.
    pub const BAG_HEADER: u8 = 3;
    /// Index data, ROS 0.11 and later.
    pub const INDEX: u8 = 4;
}

/// The names of the header fields.
pub mod name {
    #![expect(missing_docs, reason = "the names say it")]
    pub const OP: &str = "op";
    pub const TOPIC: &str = "topic";
    pub const MD5: &str = "md5";
    pub const TYPE: &str = "type";
    pub const DEF: &str = "def";
    pub const SEC: &str = "sec";
    pub const NSEC: &str = "nsec";
    /// Not in the specification: `1` on messages of a latching publisher, with `callerid`.
    pub const LATCHING: &str = "latching";
    pub const CALLERID: &str = "callerid";
    pub const INDEX_POS: &str = "index_pos";
    pub const VER: &str = "ver";
    pub const COUNT: &str = "count";
}

/// "The bag header record is padded out by filling data with ASCII space characters": header and data
/// together have so many bytes, so that the first record behind it begins at 4120.
pub const BAG_HEADER_SIZE: u32 = 4096;

/// `<field_len><field_name>=<field_value>`.
#[binrw]
#[brw(little)]
#[br(import(left: u64))]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderField {
    /// Length of name, `=` and value.
    #[br(temp, assert(u64::from(len) <= left.saturating_sub(4), "a field of {len} bytes where {left} are left"))]
    #[bw(calc = u32::try_from(text.len()).unwrap_or(u32::MAX))]
    len: u32,
    /// Name, `=`, value.
    #[br(count = len, assert(is_named(&text), "a field without a printable name"))]
    pub text: Vec<u8>,
}

/// "Field names can contain any printable ASCII character (0x20 - 0x7e), except = (0x3d)."
pub(crate) fn is_named(text: &[u8]) -> bool {
    let name = text.iter().position(|byte| *byte == b'=').map_or(&[][..], |end| &text[..end]);
    !name.is_empty() && name.iter().all(|byte| (0x20..=0x7e).contains(byte))
}

impl HeaderField {
    /// A field.
    pub fn new(name: &str, value: &[u8]) -> Self {
        Self { text: [name.as_bytes(), b"=", value].concat() }
    }

    /// Its name, up to the first `=`.
    pub fn name(&self) -> &[u8] {
        self.text.split(|byte| *byte == b'=').next().unwrap_or_default()
    }

    /// Its value, behind the first `=`.
    pub fn value(&self) -> &[u8] {
        self.text.get(self.name().len() + 1..).unwrap_or_default()
    }
}

/// `<header_len><header><data_len>`; the data follows.
#[binrw]
#[brw(little)]
#[br(import(left: u64))]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordHead {
    #[br(temp, assert(u64::from(header_len) <= left.saturating_sub(8), "a header of {header_len} bytes"))]
    #[bw(calc = fields.iter().map(|field| 4 + u32::try_from(field.text.len()).unwrap_or(u32::MAX - 4)).sum())]
    header_len: u32,
    /// "Header fields may appear in any order."
    #[br(parse_with = tiled, args(header_len))]
    pub fields: Vec<HeaderField>,
    /// Length of the data that follows.
    pub data_len: u32,
}

/// Fields that fill the header exactly.
#[binrw::parser(reader, endian)]
fn tiled(header_len: u32) -> BinResult<Vec<HeaderField>> {
    let mut left = u64::from(header_len);
    let mut fields = Vec::new();
    while left > 0 {
        let field = HeaderField::read_options(reader, endian, (left,))?;
        left -= 4 + field.text.len() as u64;
        fields.push(field);
    }
    Ok(fields)
}

impl RecordHead {
    /// Reads the head of the record that begins at the start of `bytes`.
    ///
    /// # Errors
    /// Where it is cut or its fields do not fill its header.
    pub fn from_bytes(bytes: &[u8]) -> BinResult<Self> {
        Self::read_args(&mut Cursor::new(bytes), (bytes.len() as u64,))
    }

    /// Its bytes.
    #[expect(clippy::missing_panics_doc, reason = "a vector takes all bytes")]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Cursor::new(Vec::new());
        self.write(&mut out).expect("a vector takes all bytes");
        out.into_inner()
    }

    /// The value of a field; the last one where it is there twice.
    pub fn value(&self, name: &str) -> Option<&[u8]> {
        self.fields.iter().rev().find(|field| field.name() == name.as_bytes()).map(HeaderField::value)
    }

    /// What the header means; `None` where a required field is missing or of another width.
    pub fn typed(&self) -> Option<Header> {
        let text = |name| self.value(name).map(<[u8]>::to_vec);
        let number = |name| fixed::<U32Le>(self.value(name)?).map(U32Le::get);
        let [op] = *self.value(name::OP)? else { return None };
        Some(match op {
            op::DEFINITION => Header::Definition(Definition {
                topic: text(name::TOPIC)?,
                md5: text(name::MD5)?,
                ty: text(name::TYPE)?,
                def: text(name::DEF)?,
            }),
            op::DATA => Header::Data(Data {
                topic: text(name::TOPIC)?,
                md5: text(name::MD5)?,
                ty: text(name::TYPE)?,
                sec: number(name::SEC)?,
                nsec: number(name::NSEC)?,
                latching: text(name::LATCHING),
                callerid: text(name::CALLERID),
            }),
            op::BAG_HEADER => Header::BagHeader(BagHeader {
                index_pos: fixed::<U64Le>(self.value(name::INDEX_POS)?)?.get(),
            }),
            op::INDEX => Header::Index(Index {
                topic: text(name::TOPIC)?,
                ty: text(name::TYPE),
                ver: number(name::VER)?,
                count: number(name::COUNT)?,
            }),
            op => Header::Unknown(op),
        })
    }
}

/// A value of fixed width.
fn fixed<T: for<'a> BinRead<Args<'a> = ()>>(value: &[u8]) -> Option<T> {
    let mut cursor = Cursor::new(value);
    let read = T::read_options(&mut cursor, Endian::Little, ()).ok()?;
    (cursor.position() == value.len() as u64).then_some(read)
}

/// What a header says, by its op.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Header {
    /// op 1.
    Definition(Definition),
    /// op 2.
    Data(Data),
    /// op 3.
    BagHeader(BagHeader),
    /// op 4.
    Index(Index),
    /// Any other op.
    Unknown(u8),
}

/// op 1: "Includes full text of message definition and is not followed by actual message data".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// Topic on which the message arrived.
    pub topic: Vec<u8>,
    /// md5 sum of the message type: 32 characters, or `*`.
    pub md5: Vec<u8>,
    /// Message type.
    pub ty: Vec<u8>,
    /// Full text of the message definition, produced by gendeps.
    pub def: Vec<u8>,
}

/// op 2: "followed by actual message data (which can be zero-length)".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Data {
    /// Topic on which the message arrived.
    pub topic: Vec<u8>,
    /// md5 sum of the message type.
    pub md5: Vec<u8>,
    /// Message type.
    pub ty: Vec<u8>,
    /// Time at which the message was received, seconds.
    pub sec: u32,
    /// The same, nanoseconds.
    pub nsec: u32,
    /// `1` on messages of a latching publisher since January 2010.
    pub latching: Option<Vec<u8>>,
    /// The node that published a latched message.
    pub callerid: Option<Vec<u8>>,
}

/// op 3: "Stores information about the entire file".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BagHeader {
    /// Offset of the first index data record, from the start of the section.
    pub index_pos: u64,
}

/// op 4: "Version 0 of the bag index stores one index data record per topic."
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    /// Topic on which the messages arrived.
    pub topic: Vec<u8>,
    /// Message type; recorders of December 2009 left it out.
    pub ty: Option<Vec<u8>>,
    /// Index data version: 0.
    pub ver: u32,
    /// Number of messages on the topic in the bag file.
    pub count: u32,
}

rovelog_core::fixed! {
    /// "count repeating occurrences of timestamps and offsets".
    pub struct IndexEntry[16] {
        /// Time at which the message was received, seconds.
        pub sec: U32Le,
        /// The same, nanoseconds.
        pub nsec: U32Le,
        /// Offset of the record, from the start of the section. The topic's first entry points at its definition.
        pub pos: U64Le,
    }
}

/// The entries of an index record; what is left over at the end is none.
pub(crate) fn index_entries(data: &[u8]) -> &[IndexEntry] {
    let whole = data.len() - data.len() % size_of::<IndexEntry>();
    <[IndexEntry]>::ref_from_bytes(&data[..whole]).unwrap_or_default()
}

impl Header {
    /// The head of a record with this header: fields in the byte order of their names, as recorders wrote them.
    pub fn to_head(&self, data_len: u32) -> RecordHead {
        let mut fields: Vec<(&str, Vec<u8>)> = Vec::new();
        match self {
            Self::Definition(d) => fields.extend([
                (name::OP, vec![op::DEFINITION]),
                (name::TOPIC, d.topic.clone()),
                (name::MD5, d.md5.clone()),
                (name::TYPE, d.ty.clone()),
                (name::DEF, d.def.clone()),
            ]),
            Self::Data(d) => {
                fields.extend([
                    (name::OP, vec![op::DATA]),
                    (name::TOPIC, d.topic.clone()),
                    (name::MD5, d.md5.clone()),
                    (name::TYPE, d.ty.clone()),
                    (name::SEC, d.sec.to_le_bytes().to_vec()),
                    (name::NSEC, d.nsec.to_le_bytes().to_vec()),
                ]);
                fields.extend(d.latching.iter().map(|value| (name::LATCHING, value.clone())));
                fields.extend(d.callerid.iter().map(|value| (name::CALLERID, value.clone())));
            }
            Self::BagHeader(b) => fields.extend([
                (name::OP, vec![op::BAG_HEADER]),
                (name::INDEX_POS, b.index_pos.to_le_bytes().to_vec()),
            ]),
            Self::Index(i) => {
                fields.extend([
                    (name::OP, vec![op::INDEX]),
                    (name::TOPIC, i.topic.clone()),
                    (name::VER, i.ver.to_le_bytes().to_vec()),
                    (name::COUNT, i.count.to_le_bytes().to_vec()),
                ]);
                fields.extend(i.ty.iter().map(|value| (name::TYPE, value.clone())));
            }
            Self::Unknown(op) => fields.push((name::OP, vec![*op])),
        }
        fields.sort_by_key(|(name, _)| *name);
        let fields = fields.iter().map(|(name, value)| HeaderField::new(name, value)).collect();
        RecordHead { fields, data_len }
    }
}

/// The bag header record as recorders wrote it: padded with spaces.
pub fn bag_header_record(index_pos: u64) -> Vec<u8> {
    let mut head = Header::BagHeader(BagHeader { index_pos }).to_head(0);
    let header_len: usize = head.fields.iter().map(|field| 4 + field.text.len()).sum();
    head.data_len = BAG_HEADER_SIZE - u32::try_from(header_len).unwrap_or(BAG_HEADER_SIZE);
    let mut record = head.to_bytes();
    record.resize(record.len() + head.data_len as usize, b' ');
    record
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bag_header_is_the_recorders() {
        let record = bag_header_record(0x04_48bb);
        assert_eq!(record.len(), 4104);
        assert_eq!(record[..4], [0x1e, 0, 0, 0]);
        assert_eq!(&record[4..26], b"\x12\0\0\0index_pos=\xbb\x48\x04\0\0\0\0\0");
        assert_eq!(&record[26..38], b"\x04\0\0\0op=\x03\xe2\x0f\0\0");
        assert!(record[38..].iter().all(|byte| *byte == b' '));
    }

    #[test]
    fn a_header_is_typed_and_back() {
        let data = Header::Data(Data {
            topic: b"/t".to_vec(),
            md5: b"*".to_vec(),
            ty: b"a/B".to_vec(),
            sec: 1,
            nsec: 2,
            latching: Some(b"1".to_vec()),
            callerid: Some(b"/n".to_vec()),
        });
        let head = data.to_head(7);
        let names: Vec<_> =
            head.fields.iter().map(|f| String::from_utf8_lossy(f.name()).into_owned()).collect();
        assert_eq!(names, ["callerid", "latching", "md5", "nsec", "op", "sec", "topic", "type"]);
        let again = RecordHead::from_bytes(&head.to_bytes()).unwrap();
        assert_eq!((again.typed(), again.data_len), (Some(data), 7));
    }

    #[test]
    fn fields_must_fill_the_header() {
        assert!(RecordHead::from_bytes(b"\x09\0\0\0\x04\0\0\0op=\x02!\0\0\0\0").is_err());
        assert!(RecordHead::from_bytes(b"\xff\xff\xff\xff\x04\0\0\0op=\x02").is_err());
        assert!(RecordHead::from_bytes(b"\x08\0\0\0\xff\xff\xff\xffop=\x02\0\0\0\0").is_err());
        assert!(RecordHead::from_bytes(b"\x08\0\0\0\x04\0\0\0op=\x02\0\0\0\0").is_ok());
    }
}
