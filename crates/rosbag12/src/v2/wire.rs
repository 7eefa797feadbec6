//! The bytes of a bag of V2.0, declared in the order of the specification ("Bags/Format/2.0" of the
//! ROS wiki). Records, fields and their lengths are those of [V1.2](crate::wire).

use rovelog_core::wire::{U32Le, U64Le, whole};

use std::io::Cursor;

use binrw::{BinRead, BinWrite};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::headers::{Fields, Name, fields, headers};
use crate::wire::{Field, fields_of, head_of, padded};

/// "Format": the version line.
pub const VERSION_LINE: &[u8; 13] = b"#ROSBAG V2.0\n";

/// "index data version", "chunk info record version": both are 1.
pub(crate) const VER: u32 = 1;

headers! {
    /// What a header of V2.0 says, by its op.
    Header;

    /// "Followed by actual message data"; in chunks only.
    2 Message {
        /// ID for connection on which message arrived.
        conn: &'a U32Le = Conn,
        /// Time at which the message was received.
        time: &'a Stamp = Time,
    }

    /// "Stores information about the entire file".
    3 BagHeader {
        /// Offset of first record after the chunk section; 0 until the bag is closed.
        index_pos: &'a U64Le = IndexPos,
        /// Number of unique connections in the file.
        conn_count: &'a U32Le = ConnCount,
        /// Number of chunk records in the file.
        chunk_count: &'a U32Le = ChunkCount,
        /// Not in the specification: what encrypts the bag, since 2018.
        encryptor: Option<&'a [u8]> = Encryptor,
        /// Not in the specification: for whom the key is encrypted.
        gpg_user: Option<&'a [u8]> = GpgUser,
    }

    /// "Stores the uncompressed byte offset of message records" of the chunk in front.
    /// [`IndexEntry`]s follow.
    4 IndexData {
        /// Index data record version.
        ver: &'a U32Le = Ver,
        /// Connection ID.
        conn: &'a U32Le = Conn,
        /// Number of messages on the connection in the preceding chunk.
        count: &'a U32Le = Count,
    }

    /// "Stores connection and message data, which may be compressed".
    5 Chunk {
        /// Compression type for the data: `none`, `bz2`, and `lz4` since 2014.
        compression: &'a [u8] = Compression,
        /// Size in bytes of the uncompressed chunk.
        size: &'a U32Le = Size,
    }

    /// "Stores information about each chunk". [`ConnectionCount`]s follow.
    6 ChunkInfo {
        /// Chunk info record version.
        ver: &'a U32Le = Ver,
        /// Offset of the chunk record.
        chunk_pos: &'a U64Le = ChunkPos,
        /// Timestamp of earliest message in the chunk.
        start_time: &'a Stamp = StartTime,
        /// Timestamp of latest message in the chunk.
        end_time: &'a Stamp = EndTime,
        /// Number of connections in the chunk.
        count: &'a U32Le = Count,
    }

    /// "The topic and type information for a connection". A [`ConnectionHeader`] follows.
    7 Connection {
        /// Unique connection ID.
        conn: &'a U32Le = Conn,
        /// Topic on which the messages are stored.
        topic: &'a [u8] = Topic,
    }
}

impl Header<'_> {
    /// Returns the fields of a stored header that these do not replace, as they are stored.
    pub(crate) fn others(&self, stored: &[u8]) -> Vec<u8> {
        let mut others = Cursor::new(Vec::new());
        self.write(|own| {
            let is_other = |field: &Field<'_>| own.iter().all(|known| known.name != field.name);
            fields_of(stored).filter(is_other).try_for_each(|field| field.write(&mut others))
        })
        .expect("memory takes all");
        others.into_inner()
    }

    /// Returns the head of a record with this header and [`others`](Self::others).
    ///
    /// # Panics
    /// As [`head_of`].
    pub(crate) fn head_with(&self, others: &[u8], data_len: u32) -> Vec<u8> {
        // Hardly any record has others, and messages are many.
        if others.is_empty() {
            return self.to_head(data_len);
        }
        self.write(|own| {
            let mut fields = own.to_vec();
            fields.extend(fields_of(others));
            fields.sort_by_key(|field| field.name);
            head_of(&fields, data_len)
        })
    }
}

fields! {
    /// The data of a connection record: fields like those of a header, without its length.
    #[derive(Default)]
    ConnectionHeader {
        /// The topic as the publisher named it.
        topic: Option<&'a [u8]> = Topic,
        /// Message type.
        ty: Option<&'a [u8]> = Type,
        /// md5 sum of the message type.
        md5sum: Option<&'a [u8]> = Md5Sum,
        /// Full text of the message definition.
        message_definition: Option<&'a [u8]> = MessageDefinition,
        /// Name of the node sending data.
        callerid: Option<&'a [u8]> = CallerId,
        /// `1` of a latching publisher.
        latching: Option<&'a [u8]> = Latching,
    }
}

impl<'a> ConnectionHeader<'a> {
    /// Reads the data of a connection record; `None` if they are no fields.
    pub fn read(data: &'a [u8]) -> Option<Self> {
        Self::from_fields(&Fields::read(data)?)
    }

    /// Returns the header of a connection of which no more is known than its topic: `*` is any md5 sum,
    /// but no reader can make a class of a type of that name.
    pub(crate) fn unknown(topic: &'a [u8]) -> Self {
        Self {
            topic: Some(topic),
            ty: Some(b"unknown/Unknown"),
            md5sum: Some(b"*"),
            message_definition: Some(b""),
            ..Self::default()
        }
    }

    /// Returns whether it has the fields without which other readers refuse a bag.
    pub(crate) fn is_whole(&self) -> bool {
        self.ty.is_some() && self.md5sum.is_some() && self.message_definition.is_some()
    }

    /// Returns the data as they are stored, fields in the byte order of their names.
    ///
    /// # Panics
    /// As [`head_of`].
    pub fn to_data(&self) -> Vec<u8> {
        let mut fields: Vec<_> = self.stored_fields().collect();
        fields.sort_by_key(|field| field.name);
        let mut head = head_of(&fields, 0);
        // Its length and that of the data are those of the record.
        head.truncate(head.len() - size_of::<U32Le>());
        head.split_off(size_of::<U32Le>())
    }
}

/// A time of the specification's type "time": seconds and nanoseconds of the Unix clock.
#[derive(BinRead, BinWrite, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[brw(little)]
#[repr(C)]
pub struct Stamp {
    /// Seconds.
    pub sec: U32Le,
    /// Nanoseconds.
    pub nsec: U32Le,
}

const _: () = assert!(size_of::<Stamp>() == 8);

/// "Occurrences of timestamps, chunk record offsets and message offsets".
#[derive(BinRead, BinWrite, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[brw(little)]
#[repr(C)]
pub struct IndexEntry {
    /// Time at which the message was received.
    pub time: Stamp,
    /// Offset of the message record in the uncompressed chunk.
    pub offset: U32Le,
}

const _: () = assert!(size_of::<IndexEntry>() == 12);

/// "Occurrences of conn and count" in a chunk info record.
#[derive(BinRead, BinWrite, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[brw(little)]
#[repr(C)]
pub struct ConnectionCount {
    /// Connection ID.
    pub conn: U32Le,
    /// Number of messages that arrived on this connection in the chunk.
    pub count: U32Le,
}

const _: () = assert!(size_of::<ConnectionCount>() == 8);

impl Stamp {
    /// Makes a time of seconds and nanoseconds.
    pub fn new(sec: u32, nsec: u32) -> Self {
        Self { sec: U32Le::new(sec), nsec: U32Le::new(nsec) }
    }

    /// Returns the time in nanoseconds; a second or more of nanoseconds is carried.
    pub(crate) fn nanos(self) -> i64 {
        crate::tables::nanos(self.sec.get(), self.nsec.get())
    }
}

impl IndexEntry {
    /// Returns the entries of an index data record; what is left over at the end is none.
    pub(crate) fn all_of(data: &[u8]) -> &[Self] {
        whole(data)
    }
}

impl ConnectionCount {
    /// Returns the entries of a chunk info record; what is left over at the end is none.
    pub(crate) fn all_of(data: &[u8]) -> &[Self] {
        whole(data)
    }
}

/// Returns the bag header record as recorders wrote it: padded with spaces.
pub(crate) fn bag_header_record(index_pos: u64, conn_count: u32, chunk_count: u32) -> Vec<u8> {
    let (index_pos, conn_count, chunk_count) =
        (U64Le::new(index_pos), U32Le::new(conn_count), U32Le::new(chunk_count));
    let header = Header::BagHeader(BagHeader {
        index_pos: &index_pos,
        conn_count: &conn_count,
        chunk_count: &chunk_count,
        encryptor: None,
        gpg_user: None,
    });
    padded(|data_len| header.to_head(data_len))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::RecordHead;

    #[test]
    fn headers_are_those_of_the_recorder() {
        let record = bag_header_record(7, 1, 2);
        assert_eq!((record.len(), &record[..4]), (4104, &[69, 0, 0, 0][..]));
        let (conn, time) = (U32Le::new(3), Stamp::new(1, 2));
        let header = Header::Message(Message { conn: &conn, time: &time });
        let head = header.to_head(5);
        assert_eq!((head.len(), head[0]), (46, 38));
        assert_eq!(Header::read(RecordHead::read(&head).unwrap().header), Some(header));
        let said =
            ConnectionHeader { topic: Some(b"/t"), latching: Some(b"1"), ..ConnectionHeader::default() };
        assert_eq!(ConnectionHeader::read(&said.to_data()), Some(said));
    }
}
