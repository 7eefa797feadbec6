//! Structures of V1.2 in the order of the specification ("Bags/Format/1.2" in the ROS wiki).
//!
//! A record is a [`RecordHead`] and its data. The header in the head is a sequence of [`Field`]s,
//! and [`Header`] declares the fields of each record type. The same declarations are used for
//! reading and writing. Reading does not copy.

use std::io::Cursor;

use binrw::{BinRead, BinWrite, binrw};
use rovelog_core::internal::wire::{U32Le, U64Le, counted, whole};
use rovelog_core::{FormatInfo, Signature, structure};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

pub use crate::headers::Field;
use crate::headers::{Fields, Name, headers};
pub(crate) use crate::headers::{MAX_FIELDS, fields_of, is_name};

/// Properties of the bag format that are shown to users.
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

/// Version line of the V1.2 bags that this crate writes, as defined in section "Format" of the
/// specification.
pub const VERSION_LINE: &[u8; 16] = b"#ROSRECORD V1.2\n";

/// Total size in bytes of the header and the data of a bag header record. Recorders fill the data
/// with spaces up to this size, so the next record starts at offset 4120.
pub const BAG_HEADER_SIZE: u32 = 4096;

/// Head of a record, encoded as `<header_len><header><data_len>`. The data of the record follow
/// after the head.
#[binrw]
#[brw(little)]
#[br(import(all: &'a [u8]))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHead<'a> {
    #[br(temp)]
    #[bw(try_calc = u32::try_from(header.len()))]
    header_len: u32,
    /// Record header, which consists of [`Field`]s.
    #[br(parse_with = counted, args(all, header_len.into()))]
    pub header: &'a [u8],
    /// Size in bytes of the record data after the head.
    pub data_len: u32,
}

impl<'a> RecordHead<'a> {
    /// Reads the head of the record at the start of `bytes`. Returns `None` if `bytes` does not
    /// contain the complete head.
    #[inline]
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        Self::read_args(&mut Cursor::new(bytes), (bytes,)).ok()
    }

    /// Returns the size in bytes of the head, including both length fields.
    #[inline]
    pub fn size(&self) -> usize {
        2 * size_of::<U32Le>() + self.header.len()
    }
}

/// Returns the encoded head of a record whose header has the fields `fields`.
///
/// # Panics
/// Panics if the encoded fields have 4 GiB or more.
pub fn head_of(fields: &[Field<'_>], data_len: u32) -> Vec<u8> {
    let mut header = Cursor::new(Vec::new());
    let mut head = Cursor::new(Vec::new());
    let written = fields.iter().try_for_each(|field| field.write(&mut header));
    let written = written.and_then(|()| RecordHead { header: header.get_ref(), data_len }.write(&mut head));
    written.expect("lengths have 32 bits");
    head.into_inner()
}

headers! {
    /// Header of a V1.2 record.
    Header;

    /// Header of a definition record, which contains the full text of a message definition. No
    /// message data follow the header.
    1 Definition "Message definition" {
        /// Topic whose messages are described by the definition.
        topic: &'a [u8] = Topic,
        /// md5 sum of the message type: 32 characters, or `*`.
        md5: &'a [u8] = Md5,
        /// Name of the message type.
        ty: &'a [u8] = Type,
        /// Full text of the message definition, produced by the ROS tool "gendeps".
        def: &'a [u8] = Def,
    }

    /// Header of a message record. The record data are the serialized message, which may have a
    /// length of 0.
    2 Data "Message data" {
        /// Topic on which the message arrived.
        topic: &'a [u8] = Topic,
        /// md5 sum of the message type.
        md5: &'a [u8] = Md5,
        /// Name of the message type.
        ty: &'a [u8] = Type,
        /// Seconds part of the time at which the message was received.
        sec: &'a U32Le = Sec,
        /// Nanoseconds part of the time at which the message was received.
        nsec: &'a U32Le = Nsec,
        /// `1` if the publisher is latching, that is, if it sends its last message to every new
        /// subscriber. Recorders have used this field since January 2010, but the specification
        /// does not define it.
        latching: Option<&'a [u8]> = Latching,
        /// Name of the node that published a latched message. The specification does not define
        /// this field.
        callerid: Option<&'a [u8]> = CallerId,
    }

    /// Header of the bag header record, which describes the entire file. Written by ROS 0.11 and
    /// later.
    3 BagHeader "Bag header" {
        /// Offset of the first index data record, relative to the start of the section (the bag
        /// within the file).
        index_pos: &'a U64Le = IndexPos,
    }

    /// Header of an index data record, which lists all messages of one topic. The record data are
    /// [`IndexEntry`] structures. Written by ROS 0.11 and later.
    4 Index "Index data" {
        /// Topic whose messages are listed.
        topic: &'a [u8] = Topic,
        /// Name of the message type. Recorders of December 2009 did not write this field.
        ty: Option<&'a [u8]> = Type,
        /// Version of the index data, always 0.
        ver: &'a U32Le = Ver,
        /// Number of messages of the topic in the bag.
        count: &'a U32Le = Count,
    }
}

impl<'a> Header<'a> {
    /// Returns the topic in the header. Returns `None` if headers of this record type have no
    /// topic.
    pub(crate) fn topic(&self) -> Option<&'a [u8]> {
        match self {
            Self::Definition(Definition { topic, .. })
            | Self::Data(Data { topic, .. })
            | Self::Index(Index { topic, .. }) => Some(topic),
            Self::BagHeader(_) | Self::Unknown(_) => None,
        }
    }
}

/// A complete record with header and data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record<'a> {
    /// Header of the record.
    pub(crate) header: Header<'a>,
    /// Data of the record.
    pub(crate) data: &'a [u8],
}

impl<'a> Record<'a> {
    /// Reads the record at the start of `bytes`. Returns `None` if the record is invalid, or if
    /// `bytes` does not contain the whole record.
    pub(crate) fn read(bytes: &'a [u8]) -> Option<Self> {
        let head = RecordHead::read(bytes)?;
        let data = bytes.get(head.size()..)?.get(..head.data_len as usize)?;
        Some(Self { header: Header::interpret(&Fields::read(head.header)?)?.0, data })
    }
}

/// If the op (record type) of a record is damaged, returns the offset of the op in the record and
/// the right op.
pub(crate) fn damaged_op(record: &[u8]) -> Option<(usize, u8)> {
    let fields = Fields::read(RecordHead::read(record)?.header)?;
    let (_, meant) = Header::interpret(&fields)?;
    let op = fields.get::<&u8>(Name::Op)?;
    Some((std::ptr::from_ref(op) as usize - record.as_ptr() as usize, meant?))
}

/// Entry in the data of an index data record: the time and position of one message.
#[derive(BinRead, BinWrite, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[brw(little)]
#[repr(C)]
pub struct IndexEntry {
    /// Seconds part of the time at which the message was received.
    pub sec: U32Le,
    /// Nanoseconds part of the time at which the message was received.
    pub nsec: U32Le,
    /// Offset of the message record, relative to the start of the section (the bag within the
    /// file). In the first entry of a topic, this is the offset of the definition record instead.
    pub pos: U64Le,
}

const _: () = assert!(size_of::<IndexEntry>() == 16);

structure!(IndexEntry, "Index Data", { sec, nsec, pos });

/// Bytes between the text lines and the data of a message, in V1.1 and earlier versions.
#[derive(BinRead, BinWrite, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[brw(little)]
#[repr(C)]
pub struct OldStamp {
    /// Seconds part of the time at which the message was received.
    pub sec: U32Le,
    /// Nanoseconds part of the time at which the message was received.
    pub nsec: U32Le,
    /// Size in bytes of the message data.
    pub data_len: U32Le,
}

const _: () = assert!(size_of::<OldStamp>() == 12);

structure!(OldStamp, "Version 1.1", { sec, nsec, data_len });

/// First two length fields of a record.
#[derive(BinRead, BinWrite, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[brw(little)]
#[repr(C)]
pub struct RecordStart {
    /// Size in bytes of the record header.
    pub header_len: U32Le,
    /// Size in bytes of the first field of the record header.
    pub field_len: U32Le,
}

const _: () = assert!(size_of::<RecordStart>() == 8);

impl IndexEntry {
    /// Returns the entries of an index data record. An incomplete entry at the end is ignored.
    pub(crate) fn all_of(data: &[u8]) -> &[Self] {
        whole(data)
    }
}

/// Returns the size in bytes of `count` entries of type `T`. The result has 64 bits, because a
/// damaged count may exceed the address space of a 32-bit machine.
#[inline]
pub(crate) fn list_len<T>(count: u32) -> u64 {
    u64::from(count) * size_of::<T>() as u64
}

/// Returns whether `data` has exactly the size of `count` entries of type `T`.
pub(crate) fn is_list_of<T>(data: &[u8], count: u32) -> bool {
    data.len() as u64 == list_len::<T>(count)
}

/// Returns a bag header record that is padded with spaces, as in bags from recorders.
pub(crate) fn bag_header_record(index_pos: u64) -> Vec<u8> {
    let index_pos = U64Le::new(index_pos);
    padded(|data_len| Header::BagHeader(BagHeader { index_pos: &index_pos }).to_head(data_len))
}

/// Returns a record that is padded with spaces to a total of [`BAG_HEADER_SIZE`] bytes of header
/// and data. `to_head` returns the head of the record for a given size of the data.
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
    fn the_bag_header_matches_that_of_the_recorder() {
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
        assert_eq!((fields.duplicates, fields.unknown), (0, 0));
    }

    #[test]
    fn a_damaged_op_is_derived_from_the_other_fields() {
        let pos = U64Le::new(7);
        let mut head = Header::BagHeader(BagHeader { index_pos: &pos }).to_head(0);
        assert_eq!((damaged_op(&head), head[33]), (None, 3));
        for other in [0, 1, 2, 4, 0x83] {
            head[33] = other;
            assert_eq!(damaged_op(&head), Some((33, 3)));
        }
        let meant = |op| {
            let head = head_of(&[Field { name: b"op", value: &[op] }], 0);
            let (header, meant) = Header::interpret(&Fields::read(RecordHead::read(&head)?.header)?)?;
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
    fn the_last_duplicate_field_counts_and_fields_are_limited() {
        let op = |op| Field { name: b"op", value: op };
        let other = Field { name: b"x", value: b"" };
        let bytes = head_of(&[op(&[7]), other, other, op(&[9])], 0);
        let header = RecordHead::read(&bytes).unwrap().header;
        let fields = Fields::read(header).unwrap();
        assert_eq!(
            (Header::read(header), fields.duplicates, fields.unknown),
            (Some(Header::Unknown(9)), 1, 2)
        );
        for (count, is_read) in [(255, true), (256, false)] {
            let mut fields = vec![other; count];
            fields.push(op(&[9]));
            let bytes = head_of(&fields, 0);
            assert_eq!(Header::read(RecordHead::read(&bytes).unwrap().header).is_some(), is_read);
        }
    }
}
