//! The bytes of a bag, declared in the order of the specification ("Bags/Format/1.2" of the ROS
//! wiki).
//!
//! A record is a [`RecordHead`], whose header is a sequence of [`Field`]s, and the data behind it.
//! [`Header`] says what the fields of each kind of record mean. Everything is read in place,
//! without a copy, and written by the same declarations.

use std::io::Cursor;

use binrw::{BinRead, BinWrite, binrw};
use rovelog_core::wire::{U32Le, U64Le, counted, whole};
use rovelog_core::{FormatInfo, Signature};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

pub use crate::headers::Field;
use crate::headers::{Fields, Name, headers};
pub(crate) use crate::headers::{MAX_FIELDS, fields_of, is_name};

/// The format's constants.
pub(crate) const INFO: FormatInfo = FormatInfo {
    id: "rosbag",
    name: "ROS bag",
    about: "ROS 1 bag, all versions",
    extensions: &["bag"],
    signatures: &[
        Signature(b"#ROSBAG V2."),
        Signature(b"#ROSRECORD V1."),
        Signature(b"#ROSLOG V1."),
        Signature(b"#ROSBAG V1."),
    ],
    recognizes: None,
    files: None,
};

/// "Format": the version line of the bags that this crate writes.
pub const VERSION_LINE: &[u8; 16] = b"#ROSRECORD V1.2\n";

/// Bytes of header and data of the bag header together, so that the next record starts at 4120.
/// "The bag header record is padded out by filling data with ASCII space characters".
pub const BAG_HEADER_SIZE: u32 = 4096;

/// `<header_len><header><data_len>`; the data follow.
#[binrw]
#[brw(little)]
#[br(import(all: &'a [u8]))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHead<'a> {
    #[br(temp)]
    #[bw(try_calc = u32::try_from(header.len()))]
    header_len: u32,
    /// [`Field`]s that fill it.
    #[br(parse_with = counted, args(all, header_len.into()))]
    pub header: &'a [u8],
    /// Length of the data that follow.
    pub data_len: u32,
}

impl<'a> RecordHead<'a> {
    /// Reads the head of the record at the start of `bytes`; `None` if they end before it does.
    #[inline]
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        Self::read_args(&mut Cursor::new(bytes), (bytes,)).ok()
    }

    /// Returns its length in bytes.
    #[inline]
    pub fn size(&self) -> usize {
        2 * size_of::<U32Le>() + self.header.len()
    }
}

/// Returns the head of a record with these fields, as it is stored.
///
/// # Panics
/// Panics if a field or all of them together have 4 GiB or more.
pub fn head_of(fields: &[Field<'_>], data_len: u32) -> Vec<u8> {
    let mut header = Cursor::new(Vec::new());
    let mut head = Cursor::new(Vec::new());
    let written = fields.iter().try_for_each(|field| field.write(&mut header));
    let written = written.and_then(|()| RecordHead { header: header.get_ref(), data_len }.write(&mut head));
    written.expect("lengths have 32 bits");
    head.into_inner()
}

headers! {
    /// What a header says, by its op.
    Header;

    /// "Includes full text of message definition and is not followed by actual message data".
    1 Definition {
        /// Topic on which the message arrived.
        topic: &'a [u8] = Topic,
        /// md5 sum of the message type: 32 characters, or `*`.
        md5: &'a [u8] = Md5,
        /// Message type.
        ty: &'a [u8] = Type,
        /// Full text of the message definition, produced by gendeps.
        def: &'a [u8] = Def,
    }

    /// "Followed by actual message data (which can be zero-length)".
    2 Data {
        /// Topic on which the message arrived.
        topic: &'a [u8] = Topic,
        /// md5 sum of the message type.
        md5: &'a [u8] = Md5,
        /// Message type.
        ty: &'a [u8] = Type,
        /// Time at which the message was received, seconds.
        sec: &'a U32Le = Sec,
        /// The same, nanoseconds.
        nsec: &'a U32Le = Nsec,
        /// Not in the specification: `1` on messages of a latching publisher since January 2010.
        latching: Option<&'a [u8]> = Latching,
        /// Not in the specification: the node that published a latched message.
        callerid: Option<&'a [u8]> = CallerId,
    }

    /// "Stores information about the entire file"; ROS 0.11 and later.
    3 BagHeader {
        /// Offset of the first index data record, from the start of the section.
        index_pos: &'a U64Le = IndexPos,
    }

    /// "Version 0 of the bag index stores one index data record per topic"; ROS 0.11 and later.
    /// [`IndexEntry`]s follow.
    4 Index {
        /// Topic on which the messages arrived.
        topic: &'a [u8] = Topic,
        /// Message type; recorders of December 2009 left it out.
        ty: Option<&'a [u8]> = Type,
        /// Index data version: 0.
        ver: &'a U32Le = Ver,
        /// Number of messages on the topic in the bag file.
        count: &'a U32Le = Count,
    }
}

impl<'a> Header<'a> {
    /// Returns the topic that it names.
    pub(crate) fn topic(&self) -> Option<&'a [u8]> {
        match self {
            Self::Definition(Definition { topic, .. })
            | Self::Data(Data { topic, .. })
            | Self::Index(Index { topic, .. }) => Some(topic),
            Self::BagHeader(_) | Self::Unknown(_) => None,
        }
    }
}

/// A whole record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record<'a> {
    pub(crate) header: Header<'a>,
    pub(crate) data: &'a [u8],
}

impl<'a> Record<'a> {
    /// Reads the record at the start of `bytes`; `None` if none is there, or not all of it.
    pub(crate) fn read(bytes: &'a [u8]) -> Option<Self> {
        let head = RecordHead::read(bytes)?;
        let data = bytes.get(head.size()..)?.get(..head.data_len as usize)?;
        Some(Self { header: Header::meant(&Fields::read(head.header)?)?.0, data })
    }
}

/// Returns where the op of a record is, and which one is meant, if it is damaged.
pub(crate) fn damaged_op(record: &[u8]) -> Option<(usize, u8)> {
    let fields = Fields::read(RecordHead::read(record)?.header)?;
    let (_, meant) = Header::meant(&fields)?;
    let op = fields.get::<&u8>(Name::Op)?;
    Some((std::ptr::from_ref(op) as usize - record.as_ptr() as usize, meant?))
}

/// "count repeating occurrences of timestamps and offsets".
#[derive(BinRead, BinWrite, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[brw(little)]
#[repr(C)]
pub struct IndexEntry {
    /// Time at which the message was received, seconds.
    pub sec: U32Le,
    /// The same, nanoseconds.
    pub nsec: U32Le,
    /// Offset of the record, from the start of the section. The topic's first entry points at
    /// its definition.
    pub pos: U64Le,
}

const _: () = assert!(size_of::<IndexEntry>() == 16);

/// V1.1 and before: what is between the lines of text in front of a message and its data.
#[derive(BinRead, BinWrite, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[brw(little)]
#[repr(C)]
pub struct OldStamp {
    /// Time at which the message was received, seconds.
    pub sec: U32Le,
    /// The same, nanoseconds.
    pub nsec: U32Le,
    /// Length of the data that follow.
    pub data_len: U32Le,
}

const _: () = assert!(size_of::<OldStamp>() == 12);

/// What the head of a record starts with.
#[derive(BinRead, BinWrite, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[brw(little)]
#[repr(C)]
pub struct RecordStart {
    /// Length of the header.
    pub header_len: U32Le,
    /// Length of its first field.
    pub field_len: U32Le,
}

const _: () = assert!(size_of::<RecordStart>() == 8);

impl IndexEntry {
    /// Returns the entries of an index record; what is left over at the end is none.
    pub(crate) fn all_of(data: &[u8]) -> &[Self] {
        whole(data)
    }
}

/// Returns the bytes of a list of `count` entries: of 64 bits, because those of a wrong count may be
/// more than a 32-bit machine can address.
#[inline]
pub(crate) fn list_len<T>(count: u32) -> u64 {
    u64::from(count) * size_of::<T>() as u64
}

/// Returns whether data are exactly `count` entries.
pub(crate) fn is_list_of<T>(data: &[u8], count: u32) -> bool {
    data.len() as u64 == list_len::<T>(count)
}

/// Returns the bag header record as recorders wrote it: padded with spaces.
pub(crate) fn bag_header_record(index_pos: u64) -> Vec<u8> {
    let index_pos = U64Le::new(index_pos);
    padded(|data_len| Header::BagHeader(BagHeader { index_pos: &index_pos }).to_head(data_len))
}

/// Returns the record of a head whose data are spaces: together they have [`BAG_HEADER_SIZE`].
pub(crate) fn padded(to_head: impl Fn(u32) -> Vec<u8>) -> Vec<u8> {
    let len = u32::try_from(to_head(0).len() - 2 * size_of::<U32Le>()).unwrap_or(BAG_HEADER_SIZE);
    let padding = BAG_HEADER_SIZE - len;
    let mut record = to_head(padding);
    record.resize(record.len() + padding as usize, b' ');
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
    fn a_header_is_read_as_it_was_written() {
        let data = Header::Data(Data {
            topic: b"/t",
            md5: b"*",
            ty: b"a/B",
            sec: &U32Le::new(1),
            nsec: &U32Le::new(2),
            latching: Some(b"1"),
            callerid: Some(b"/n"),
        });
        let bytes = data.to_head(7);
        let head = RecordHead::read(&bytes).unwrap();
        assert_eq!((Header::read(head.header), head.data_len, head.size()), (Some(data), 7, bytes.len()));
        let names: Vec<_> = fields_of(head.header).map(|field| String::from_utf8_lossy(field.name)).collect();
        assert_eq!(names, ["callerid", "latching", "md5", "nsec", "op", "sec", "topic", "type"]);
        let fields = Fields::read(head.header).unwrap();
        assert_eq!((fields.repeated, fields.unknown), (0, 0));
    }

    #[test]
    fn a_damaged_op_is_told_by_the_other_fields() {
        let pos = U64Le::new(7);
        let mut head = Header::BagHeader(BagHeader { index_pos: &pos }).to_head(0);
        assert_eq!((damaged_op(&head), head[33]), (None, 3));
        for other in [0, 1, 2, 4, 0x83] {
            head[33] = other;
            assert_eq!(damaged_op(&head), Some((33, 3)));
        }
        let meant = |op| {
            let head = head_of(&[Field { name: b"op", value: &[op] }], 0);
            let (header, meant) = Header::meant(&Fields::read(RecordHead::read(&head)?.header)?)?;
            Some((header.op(), meant))
        };
        assert_eq!((meant(9), meant(3)), (Some((9, None)), None));
    }

    #[test]
    fn fields_must_fill_the_header() {
        let header = |bytes| RecordHead::read(bytes).and_then(|head| Header::read(head.header));
        assert_eq!(header(b"\x09\0\0\0\x04\0\0\0op=\x02!\0\0\0\0"), None);
        assert_eq!(header(b"\xff\xff\xff\xff\x04\0\0\0op=\x02"), None);
        assert_eq!(header(b"\x08\0\0\0\xff\xff\xff\xffop=\x02\0\0\0\0"), None);
        assert_eq!(header(b"\x08\0\0\0\x04\0\0\0op=\x02\0\0\0\0"), None);
        assert_eq!(header(b"\x08\0\0\0\x04\0\0\0op=\x09\0\0\0\0"), Some(Header::Unknown(9)));
    }

    #[test]
    fn of_repeated_fields_the_last_one_counts_and_there_are_not_too_many() {
        let op = |op| Field { name: b"op", value: op };
        let other = Field { name: b"x", value: b"" };
        let bytes = head_of(&[op(&[7]), other, other, op(&[9])], 0);
        let header = RecordHead::read(&bytes).unwrap().header;
        let fields = Fields::read(header).unwrap();
        assert_eq!((Header::read(header), fields.repeated, fields.unknown), (Some(Header::Unknown(9)), 1, 2));
        for (count, is_read) in [(255, true), (256, false)] {
            let mut fields = vec![other; count];
            fields.push(op(&[9]));
            let bytes = head_of(&fields, 0);
            assert_eq!(Header::read(RecordHead::read(&bytes).unwrap().header).is_some(), is_read);
        }
    }
}
