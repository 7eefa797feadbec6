//! Structures of V2.0 in the order of the specification ("Bags/Format/2.0" in the ROS wiki).
//! Records and their fields are encoded as in [V1.2](crate::wire).

use rovelog_core::internal::wire::{U32Le, U64Le, whole};
use rovelog_core::structure;

use std::fmt;
use std::io::Cursor;

use binrw::{BinRead, BinWrite};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::headers::{Fields, Name, fields, headers};
use crate::wire::{Field, RecordHead, fields_of, head_of, padded};

/// Version line at the start of a V2.0 bag, as defined in section "Format" of the specification.
pub const VERSION_LINE: &[u8; 13] = b"#ROSBAG V2.0\n";

/// Version number of index data records and chunk info records.
pub(crate) const VER: u32 = 1;

headers! {
    /// Header of a V2.0 record.
    Header;

    /// Header of a message record, whose data are a serialized message. Message records occur only
    /// inside chunks.
    2 Message "Message data" {
        /// Id of the connection on which the message arrived.
        conn: &'a U32Le = Conn,
        /// Time at which the message was received.
        time: &'a Stamp = Time,
    }

    /// Header of the bag header record, which describes the entire file.
    3 BagHeader "Bag header" {
        /// Offset of the first record after the chunk section. The value is 0 until the bag is
        /// closed.
        index_pos: &'a U64Le = IndexPos,
        /// Number of unique connections in the file.
        conn_count: &'a U32Le = ConnCount,
        /// Number of chunk records in the file.
        chunk_count: &'a U32Le = ChunkCount,
        /// Name of the encryption plugin. Recorders have used this field since 2018, but the
        /// specification does not define it.
        encryptor: Option<&'a [u8]> = Encryptor,
        /// GPG user for whom the encryption key is encrypted. The specification does not define
        /// this field.
        gpg_user: Option<&'a [u8]> = GpgUser,
    }

    /// Header of an index data record, which lists the messages of one connection in the preceding
    /// chunk. The data of the record are [`IndexEntry`] structures.
    4 IndexData "Index data" {
        /// Version of the index data record.
        ver: &'a U32Le = Ver,
        /// Id of the connection whose messages are listed.
        conn: &'a U32Le = Conn,
        /// Number of messages of the connection in the preceding chunk.
        count: &'a U32Le = Count,
    }

    /// Header of a chunk record, whose data are connection and message records. The data may be
    /// compressed.
    5 Chunk "Chunk" {
        /// Compression type of the chunk data: `none`, `bz2`, or (since 2014) `lz4`.
        compression: &'a [u8] = Compression,
        /// Size in bytes of the uncompressed chunk data.
        size: &'a U32Le = Size,
    }

    /// Header of a chunk info record, which describes one chunk. The data of the record are
    /// [`ConnectionCount`] structures.
    6 ChunkInfo "Chunk info" {
        /// Version of the chunk info record.
        ver: &'a U32Le = Ver,
        /// Offset of the chunk record that the chunk info describes.
        chunk_pos: &'a U64Le = ChunkPos,
        /// Time of the earliest message in the chunk.
        start_time: &'a Stamp = StartTime,
        /// Time of the latest message in the chunk.
        end_time: &'a Stamp = EndTime,
        /// Number of connections that have messages in the chunk.
        count: &'a U32Le = Count,
    }

    /// Header of a connection record, which declares the topic and type of a connection. The data
    /// of the record are a [`ConnectionHeader`].
    7 Connection "Connection" {
        /// Unique id of the connection.
        conn: &'a U32Le = Conn,
        /// Topic on which the messages of the connection are stored.
        topic: &'a [u8] = Topic,
    }
}

impl Header<'_> {
    /// Returns the encoded fields of the header `stored` whose names do not occur in this header.
    pub(crate) fn others(&self, stored: &[u8]) -> Vec<u8> {
        let mut others = Cursor::new(Vec::new());
        self.write(|own| {
            let is_other = |field: &Field<'_>| own.iter().all(|known| known.name != field.name);
            fields_of(stored).filter(is_other).try_for_each(|field| field.write(&mut others))
        })
        .expect("memory takes all");
        others.into_inner()
    }

    /// Returns the head of a record: this header, extended by the encoded fields `others`, and both
    /// length fields.
    ///
    /// # Panics
    /// Panics in the cases listed at [`head_of`].
    pub(crate) fn head_with(&self, others: &[u8], data_len: u32) -> Vec<u8> {
        // Fast path for records without additional fields. Hardly any record has them.
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
    /// Data of a connection record. The fields are encoded in the same way as the fields of a
    /// record header.
    #[derive(Default)]
    ConnectionHeader {
        /// Topic under which the publisher advertised the messages.
        topic: Option<&'a [u8]> = Topic,
        /// Name of the message type.
        ty: Option<&'a [u8]> = Type,
        /// md5 sum of the message type.
        md5sum: Option<&'a [u8]> = Md5Sum,
        /// Full text of the message definition.
        message_definition: Option<&'a [u8]> = MessageDefinition,
        /// Name of the node that published the messages.
        callerid: Option<&'a [u8]> = CallerId,
        /// `1` if the publisher is latching, that is, if its last message is also sent to later
        /// subscribers.
        latching: Option<&'a [u8]> = Latching,
    }
}

impl<'a> ConnectionHeader<'a> {
    /// Reads the data of a connection record. Returns `None` if the data are not a list of fields.
    pub fn read(data: &'a [u8]) -> Option<Self> {
        Self::from_fields(&Fields::read(data)?)
    }

    /// Returns the data of a connection of which only the topic is known. The md5 sum `*` matches
    /// any message type. Readers have no class for the type name, so they do not try to decode the
    /// messages.
    pub(crate) fn unknown(topic: &'a [u8]) -> Self {
        Self {
            topic: Some(topic),
            ty: Some(b"unknown/Unknown"),
            md5sum: Some(b"*"),
            message_definition: Some(b""),
            ..Self::default()
        }
    }

    /// Returns whether the connection data have all fields that other readers require.
    pub(crate) fn is_complete(&self) -> bool {
        self.ty.is_some() && self.md5sum.is_some() && self.message_definition.is_some()
    }

    /// Returns the encoded connection data. Fields are sorted by name.
    ///
    /// # Panics
    /// Panics in the cases listed at [`head_of`].
    pub fn to_data(&self) -> Vec<u8> {
        let mut fields: Vec<_> = self.stored_fields().collect();
        fields.sort_by_key(|field| field.name);
        let mut head = head_of(&fields, 0);
        // Remove the two length fields. They belong to the head of a record, not to the connection
        // data.
        head.truncate(head.len() - size_of::<U32Le>());
        head.split_off(size_of::<U32Le>())
    }
}

/// A value of the type "time" in the specification: seconds and nanoseconds since the Unix epoch.
#[derive(BinRead, BinWrite, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[derive(Clone, Copy, PartialEq, Eq)]
#[brw(little)]
#[repr(C)]
pub struct Stamp {
    /// Seconds since the Unix epoch.
    pub sec: U32Le,
    /// Nanoseconds within the second.
    pub nsec: U32Le,
}

const _: () = assert!(size_of::<Stamp>() == 8);

structure!(Stamp, "Headers", { sec, nsec });

/// Entry in the data of an index data record: the time and offset of one message.
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

structure!(IndexEntry, "Index data", { time, offset });

/// Entry in the data of a chunk info record: the number of messages of one connection.
#[derive(BinRead, BinWrite, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[brw(little)]
#[repr(C)]
pub struct ConnectionCount {
    /// Id of the connection.
    pub conn: U32Le,
    /// Number of messages of this connection in the chunk.
    pub count: U32Le,
}

const _: () = assert!(size_of::<ConnectionCount>() == 8);

structure!(ConnectionCount, "Chunk info", { conn, count });

impl fmt::Debug for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} s {:?} ns", self.sec, self.nsec)
    }
}

impl Stamp {
    /// Creates a time from seconds and nanoseconds.
    pub fn new(sec: u32, nsec: u32) -> Self {
        Self { sec: U32Le::new(sec), nsec: U32Le::new(nsec) }
    }

    /// Returns the time in nanoseconds since the Unix epoch. A nanosecond value of one second or
    /// more is added in full.
    pub(crate) fn nanos(self) -> i64 {
        crate::message::nanos(self.sec.get(), self.nsec.get())
    }
}

impl IndexEntry {
    /// Returns the entries of an index data record. An incomplete entry at the end is ignored.
    pub(crate) fn all_of(data: &[u8]) -> &[Self] {
        whole(data)
    }
}

impl ConnectionCount {
    /// Returns the entries of a chunk info record. An incomplete entry at the end is ignored.
    pub(crate) fn all_of(data: &[u8]) -> &[Self] {
        whole(data)
    }
}

/// Returns a bag header record that is padded with spaces, as in bags from recorders.
pub(crate) fn bag_header_record(index_pos: u64, conn_count: u32, chunk_count: u32) -> Vec<u8> {
    let (index_pos, conn_count, chunk_count) =
        (U64Le::new(index_pos), U32Le::new(conn_count), U32Le::new(chunk_count));
    let (index_pos, conn_count, chunk_count) = (&index_pos, &conn_count, &chunk_count);
    let header = BagHeader { index_pos, conn_count, chunk_count, encryptor: None, gpg_user: None };
    padded(|data_len| Header::BagHeader(header).to_head(data_len))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_match_those_of_the_recorder() {
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
