//! Content of a V2.0 bag, in addition to the topics and definitions that all versions share:
//! connections by id, chunks, and the index section.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use rovelog_core::internal::index::Span;
use rovelog_core::internal::text::count;
use rovelog_core::{Detail, Value};

use super::buffer::DataStatus;
use super::compression::Compression;
use super::scan::{ChunkExtent, LengthSource};
use super::wire::{ConnectionHeader, IndexEntry};
use crate::message::{Publisher, usize_of};
use crate::tables::{Connection, MAX_CONNECTIONS, Tallies, Tally};
use crate::validate::are_damaged;

/// Connection ids below this value are always stored in a list. Larger ids are stored in the list
/// only if they are below [`DENSE_RATIO`] times the number of ids. All other ids are stored in a
/// hash map, so that a single id of `u32::MAX` does not allocate 16 GiB.
const MIN_DENSE: usize = 64;
const DENSE_RATIO: usize = 8;

/// Map from each connection id of a section to the index of its [`Origin`], that is, of its
/// distinct connection record.
#[derive(Clone, Debug, Default)]
pub(crate) struct OriginIds {
    /// By connection id, the index of the origin plus 1. The value 0 means that this list has no
    /// origin for the id.
    dense: Vec<u32>,
    /// By connection id, the index of the origin. Contains only the ids that are too large for the
    /// list `dense`.
    sparse: HashMap<u32, u32>,
    /// Number of connection ids that have an origin.
    count: usize,
}

impl OriginIds {
    #[inline]
    pub(crate) fn get(&self, id: u32) -> Option<u32> {
        match self.dense.get(id as usize) {
            Some(origin) if *origin > 0 => Some(origin - 1),
            _ => self.get_sparse(id),
        }
    }

    /// Looks up a connection id in the hash map. This function is not inlined, so that loops over
    /// messages stay small.
    #[inline(never)]
    fn get_sparse(&self, id: u32) -> Option<u32> {
        self.sparse.get(&id).copied()
    }

    pub(crate) fn set(&mut self, id: u32, origin: u32) {
        let place = id as usize;
        self.count += usize::from(self.get(id).is_none());
        // Recorders count connection ids up from 0, so nearly all ids are in the list.
        if place < MIN_DENSE.max(DENSE_RATIO * self.count) {
            if self.dense.len() <= place {
                self.dense.resize(place + 1, 0);
            }
            self.dense[place] = origin + 1;
        } else {
            self.sparse.insert(id, origin);
        }
    }
}

/// State that is shown for a chunk whose data were not fetched.
const NOT_READ: &str = "not read";

/// A connection of the file, that is, one distinct connection record.
///
/// Several origins share one [`Connection`](crate::Connection) if they agree in topic, type and md5
/// sum, for example when several nodes publish the same topic.
#[derive(Debug, Default)]
pub(crate) struct Origin {
    /// Index of the section, that is, of the bag within the file.
    pub(crate) section: u32,
    /// Connection id within the section.
    pub(crate) id: u32,
    /// Index of the [`Connection`](crate::Connection) that has the topic, type and md5 sum.
    pub(crate) connection: u32,
    /// Publisher that is named in the connection data.
    pub(crate) publisher: Publisher,
    /// Content of the connection record. `None` if the file has messages with this connection id
    /// but no connection record.
    pub(crate) record: Option<OriginRecord>,
    /// Number of messages of this origin.
    pub(crate) count: u64,
    /// Number of index entries for messages of this origin.
    pub(crate) index_count: u64,
    /// True if, for at least one chunk, the index data do not match the messages.
    pub(crate) index_differs: bool,
}

/// Content of a connection record.
#[derive(Debug)]
pub(crate) struct OriginRecord {
    /// Topic in the header of the connection record.
    pub(crate) topic: Arc<[u8]>,
    /// Data of the connection record.
    pub(crate) data: Box<[u8]>,
    /// Fields in the header of the connection record that the specification does not define.
    pub(crate) other_fields: Box<[u8]>,
    /// Offset of the first connection record with this content.
    pub(crate) at: u64,
    /// True if the topic, type, md5 sum and definition in the connection record agree. Computed on
    /// first use.
    pub(crate) is_consistent: OnceLock<bool>,
}

impl OriginRecord {
    /// Returns whether the connection data have all fields that other readers require.
    pub(crate) fn is_complete(&self) -> bool {
        ConnectionHeader::read(&self.data).is_some_and(|header| header.is_complete())
    }
}

/// A connection record whose fields refer to the input.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionRecord<'a> {
    /// Connection id.
    pub(crate) conn: u32,
    /// Topic in the header of the connection record.
    pub(crate) topic: &'a [u8],
    /// Data of the connection record.
    pub(crate) data: &'a [u8],
    /// Header of the connection record with its length fields. The header may contain fields that
    /// the specification does not define.
    pub(crate) head: &'a [u8],
}

/// Content that identifies a connection record. Connection records with equal keys declare the same
/// origin.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ConnectionKey {
    /// Index of the section, that is, of the bag within the file.
    pub(crate) section: u32,
    conn: u32,
    topic: Box<[u8]>,
    data: Box<[u8]>,
}

impl ConnectionKey {
    pub(crate) fn new(section: u32, record: &ConnectionRecord<'_>) -> Self {
        Self { section, conn: record.conn, topic: record.topic.into(), data: record.data.into() }
    }

    /// Returns the connection record with this key, without fields that the specification does not
    /// define.
    pub(crate) fn record(&self) -> ConnectionRecord<'_> {
        ConnectionRecord { conn: self.conn, topic: &self.topic, data: &self.data, head: &[] }
    }
}

/// Index data record, which lists the messages of one connection in one chunk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexRange {
    /// Id of the indexed connection.
    pub(crate) conn: u32,
    /// Offset in the file of the first index entry.
    pub(crate) data_at: u64,
    /// Offset in the file of the end of the index entries.
    pub(crate) end: u64,
}

/// Index data are considered damaged if their message offsets exceed this multiple of the chunk
/// size. Smaller offsets may belong to a chunk that lost bytes, or to another chunk, so they are
/// still compared.
const MAX_OFFSET_RATIO: u64 = 16;

impl IndexRange {
    /// Returns the index entries, or an empty slice if they are damaged. `len` is the original size
    /// in bytes of the records in the chunk. It may be larger than the current size, because damage
    /// may have removed bytes.
    pub(crate) fn entries<'a>(&self, file: &'a [u8], len: u64) -> &'a [IndexEntry] {
        let entries = IndexEntry::all_of(&file[usize_of(self.data_at)..usize_of(self.end)]);
        let places = entries.iter().map(|entry| entry.offset.get().into());
        // If a byte of the index data was added or removed, every later entry mixes bytes of two
        // entries, so its offset is random.
        if are_damaged(places, |place| place / MAX_OFFSET_RATIO >= len) { &[] } else { entries }
    }
}

/// Result of comparing the index with the messages of a chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum IndexMatch {
    Exact,
    Differs,
    #[default]
    Absent,
}

/// A chunk and the results of scanning the chunk.
#[derive(Debug, Default)]
pub(crate) struct Chunk {
    /// Location and header of the chunk.
    pub(crate) extent: ChunkExtent,
    /// Index of the section, that is, of the bag within the file.
    pub(crate) section: u32,
    /// Status of the chunk data after decompression.
    pub(crate) status: DataStatus,
    /// Size in bytes of the decompressed chunk data.
    pub(crate) decompressed_len: u64,
    /// Statistics of the messages in the chunk.
    pub(crate) messages: ChunkMessages,
    /// Index data records that follow the chunk.
    pub(crate) index: ChunkIndex,
    /// Ranges of the decompressed chunk data that cannot be read as records.
    pub(crate) lost_ranges: Vec<Range<u64>>,
    /// True if only the chunk info was read, because the data of the chunk were not fetched.
    pub(crate) is_unread: bool,
    /// True if the chunk contains records with an unknown op (record type).
    pub(crate) has_unknown_records: bool,
}

/// Statistics of the messages in a chunk.
#[derive(Debug, Default)]
pub(crate) struct ChunkMessages {
    /// Number of messages.
    pub(crate) count: u64,
    /// Lowest and highest message time in nanoseconds.
    pub(crate) span: Span,
    /// For each connection with messages in the chunk, the numbers of messages, sorted by
    /// connection.
    pub(crate) by_connection: Vec<MessageCount>,
    /// For each connection id with messages in the chunk, the count and checksum of the messages,
    /// for comparison with the index data. Sorted by id.
    pub(crate) tallies: Vec<(u32, Tally)>,
}

impl ChunkMessages {
    /// Returns whether any message in the chunk is earlier than `time`.
    pub(super) fn start_before(&self, time: i64) -> bool {
        self.count > 0 && self.span.first < time
    }

    /// Sets the numbers of messages by connection. The messages must have been added to the
    /// statistics of `connections` before.
    pub(super) fn set_counts(&mut self, counts: BTreeMap<u32, u64>, connections: &[Connection]) {
        self.count = counts.values().sum();
        let by_connection = counts.into_iter().map(|(connection, count)| {
            let before = connections[connection as usize].stats.count - count;
            MessageCount { connection, before, count }
        });
        self.by_connection = by_connection.collect();
    }
}

/// Numbers of messages of one connection, in one chunk and before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MessageCount {
    /// Index of the connection.
    pub(crate) connection: u32,
    /// Number of messages of the connection in earlier chunks.
    pub(crate) before: u64,
    /// Number of messages of the connection in this chunk.
    pub(crate) count: u64,
}

/// Index of a chunk, and the results of comparing it with the messages.
#[derive(Debug, Default)]
pub(crate) struct ChunkIndex {
    /// Index data records of the chunk.
    pub(crate) ranges: Vec<IndexRange>,
    /// For each connection id, the count and checksum of the index entries, for comparison with the
    /// messages.
    pub(crate) tallies: BTreeMap<u32, Tally>,
    /// True if index data has another version or length than it states, so that its entries are not
    /// counted to find missing messages.
    pub(crate) is_odd: bool,
    /// Result of comparing the index data with the messages.
    pub(crate) data_match: IndexMatch,
    /// Result of comparing the chunk info with the messages.
    pub(crate) info_match: IndexMatch,
}

impl Chunk {
    /// Returns the state of the chunk as text, for `info` and for the report of a recovery.
    pub(crate) fn state(&self) -> &'static str {
        let extent = &self.extent;
        match (self.status, extent.length) {
            _ if self.is_unread => NOT_READ,
            (DataStatus::Intact | DataStatus::Cut, LengthSource::Unclosed) => "unterminated",
            (DataStatus::Intact, LengthSource::Data) if !extent.headless => "data_len wrong",
            (DataStatus::Intact, LengthSource::Cut) => "cut",
            (DataStatus::Intact, LengthSource::Header) if u64::from(extent.size) != self.decompressed_len => {
                "size wrong"
            }
            (DataStatus::Cut, _) if extent.is_plain() => "cut",
            (status, _) => status.name(),
        }
    }

    /// Returns the undamaged entries of the index data with the connection id of each entry.
    pub(crate) fn entries<'a>(&'a self, file: &'a [u8]) -> impl Iterator<Item = (u32, &'a IndexEntry)> {
        let len = self.decompressed_len.max(self.extent.declared_len().into());
        let ranges = self.index.ranges.iter();
        ranges.flat_map(move |range| range.entries(file, len).iter().map(|entry| (range.conn, entry)))
    }

    /// Returns the stored data of the chunk. The data may be compressed.
    pub(crate) fn data<'a>(&self, file: &'a [u8]) -> &'a [u8] {
        &file[usize_of(self.extent.data_at)..usize_of(self.extent.end)]
    }

    /// Returns whether the chunk has messages of any connection for which `wanted` is true.
    pub(crate) fn has_any(&self, wanted: &[bool]) -> bool {
        self.messages.by_connection.iter().any(|messages| wanted[messages.connection as usize])
    }
}

/// Content of a chunk info record, which describes one chunk in the index section.
#[derive(Clone, Debug)]
pub(crate) struct Info {
    /// Index of the section, that is, of the bag within the file.
    pub(crate) section: u32,
    /// Lowest and highest message time in the chunk, in nanoseconds.
    pub(crate) span: Span,
    /// For each connection id with messages in the chunk, the number of messages. Sorted by id.
    pub(crate) counts: Vec<(u32, u64)>,
}

/// Content of a bag header record.
#[derive(Clone, Debug, Default)]
pub(crate) struct Header {
    /// Number of connections in the section.
    pub(crate) conn_count: u32,
    /// Number of chunks in the section.
    pub(crate) chunk_count: u32,
}

/// A connection id and the section in which it applies. If a file consists of several bags, each
/// bag numbers its own connections, so one id can mean a different connection in each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ScopedConn {
    /// Index of the section, that is, of the bag within the file.
    pub(crate) section: u32,
    /// Connection id within the section.
    pub(crate) conn: u32,
}

/// A new origin (connection record) of a connection id that a chunk declares again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OriginChange {
    /// Index of the chunk at whose start the id has the new origin.
    from_chunk: usize,
    /// New origin, that is, the index of a distinct connection record.
    origin: u32,
}

/// Connection ids and their origins. An origin is a distinct connection record. A connection id is
/// unique only within its section, that is, within one bag of the file.
#[derive(Debug, Default)]
pub(crate) struct IdTable {
    /// By section, the origin of each connection id at the start of the section. The index declares
    /// this origin. If the index does not declare the id, the first connection record in a chunk
    /// does.
    pub(crate) first: Vec<OriginIds>,
    /// Origin of each connection id at the current offset of the scan. An origin is a distinct
    /// connection record.
    pub(crate) current: OriginIds,
    /// By connection id, the chunks at whose start the id has a new origin (connection record). The
    /// chunks are in ascending order.
    ///
    /// Example: chunk 3 declares id 0 again, with origin 5. The change then starts at chunk 4,
    /// because messages in chunk 3 before the new record still have the old origin.
    pub(crate) changes: HashMap<ScopedConn, Vec<OriginChange>>,
    /// By connection id, the first origin (connection record) that was declared for the id.
    pub(crate) declared: HashMap<ScopedConn, u32>,
    /// By content of a connection record, the index of its origin.
    pub(crate) by_record: HashMap<ConnectionKey, u32>,
    /// Connection ids of the connection records in index sections.
    pub(crate) indexed: BTreeSet<ScopedConn>,
    /// Connection ids of messages that came before any connection record with this id.
    pub(crate) undeclared: Vec<ScopedConn>,
}

/// Current position of a scan, and counts and checksums for the current chunk.
#[derive(Debug, Default)]
pub(crate) struct Position {
    /// Index of the current section, that is, of the current bag within the file.
    pub(crate) section: u32,
    /// Index of the current chunk.
    pub(crate) chunk: usize,
    /// By index of the origin, the count and checksum of the messages in the current chunk, for
    /// comparison with the index data.
    pub(crate) tallies: Tallies,
    /// Lowest and highest message time in the current chunk.
    pub(crate) span: Span,
}

/// Content of a V2.0 bag. Bags of other versions leave this struct empty.
#[derive(Debug, Default)]
pub(crate) struct Content {
    /// All distinct connection records of the file.
    pub(crate) origins: Vec<Origin>,
    /// Connection ids and the connection records that declare them.
    pub(crate) ids: IdTable,
    /// Content of the last bag header record.
    pub(crate) header: Option<Header>,
    /// For each encrypted section, the name of the encryption plugin, and the GPG user for whom the
    /// key is encrypted.
    pub(crate) encryption: BTreeMap<u32, (String, String)>,
    /// All chunks in file order.
    pub(crate) chunks: Vec<Chunk>,
    /// Content of all chunk info records, in file order.
    pub(crate) infos: Vec<Info>,
    /// By section and chunk offset within the section, the index in `infos` of the chunk info.
    pub(crate) info_at_offset: BTreeMap<(u32, u64), usize>,
    /// Ranges between chunks that contain records with an unknown op (record type).
    pub(crate) unknown_records: Vec<Range<u64>>,
    /// True if the bag was opened by reading only its index.
    pub(crate) is_by_index: bool,
    /// Current position of the scan.
    pub(crate) position: Position,
}

impl Content {
    /// Returns the details that `info` shows only for V2.0 bags.
    pub(crate) fn details(&self) -> Vec<Detail> {
        let mut details = Vec::new();
        if let Some((encryptor, user)) = self.encryption.values().next() {
            let text =
                format!("by {encryptor} for {user}; decrypt it with the key of this user: rosbag decrypt");
            details.push(Detail::new("encryption", text, Value::Text(encryptor.clone())));
        }
        // Numbers of chunks, of stored bytes and of decompressed bytes, by compression.
        let mut totals: BTreeMap<&str, [u64; 3]> = BTreeMap::new();
        for chunk in &self.chunks {
            let known = chunk.extent.compression.map_or("unknown", Compression::name);
            let name = if chunk.is_unread { NOT_READ } else { known };
            let [chunks, packed, unpacked] = totals.entry(name).or_default();
            *chunks += 1;
            *packed += chunk.extent.end - chunk.extent.data_at;
            *unpacked += chunk.decompressed_len;
        }
        let text = |(name, [chunks, packed, unpacked]): (&&str, &[u64; 3])| match *name {
            "none" => format!("{}, uncompressed", count(*chunks, "chunk")),
            NOT_READ => format!("{}, not read", count(*chunks, "chunk")),
            name => format!("{}, {name}: {packed} bytes hold {unpacked}", count(*chunks, "chunk")),
        };
        let text: Vec<_> = totals.iter().map(text).collect();
        let mut states: BTreeMap<&str, u64> = BTreeMap::new();
        for chunk in &self.chunks {
            *states.entry(chunk.state()).or_default() += 1;
        }
        let value = Value::record([
            ("count", Value::count(self.chunks.len() as u64)),
            ("compression", Value::record(totals.iter().map(|(name, [n, ..])| (*name, Value::count(*n))))),
            ("packed", Value::count(totals.values().map(|[_, packed, _]| packed).sum())),
            ("unpacked", Value::count(totals.values().map(|[.., unpacked]| unpacked).sum())),
            ("states", Value::record(states.into_iter().map(|(name, n)| (name, Value::count(n))))),
        ]);
        if !self.chunks.is_empty() {
            details.push(Detail::new("chunks", text.join("\n"), value));
        }
        details
    }

    /// Estimates the cost of reading all chunks, in bytes of uncompressed data. Decompressing takes
    /// time, so a byte of lz4 output counts as 4 bytes and a byte of bz2 output as 64 bytes.
    pub(crate) fn cost(&self) -> u64 {
        let cost = |chunk: &Chunk| {
            let size = u64::from(chunk.extent.size);
            match chunk.extent.compression {
                Some(Compression::Bz2) => 64 * size,
                Some(Compression::Lz4) => 4 * size,
                _ => size,
            }
        };
        self.chunks.iter().map(cost).sum()
    }

    /// Starts the next section, that is, the next bag in the file. Each section has its own
    /// connection ids.
    pub(super) fn begin_section(&mut self) {
        self.position.section = u32::try_from(self.ids.first.len()).unwrap_or(u32::MAX);
        self.ids.first.push(OriginIds::default());
        self.ids.current = OriginIds::default();
    }

    /// Adds an origin (a distinct connection record) and returns its index. Returns `None` if there
    /// are too many origins.
    pub(super) fn add_origin(
        &mut self,
        id: u32,
        connection: u32,
        publisher: Publisher,
        record: Option<OriginRecord>,
    ) -> Option<u32> {
        let number = u32::try_from(self.origins.len()).ok()?;
        if self.origins.len() >= MAX_CONNECTIONS {
            return None;
        }
        let section = self.position.section;
        self.origins.push(Origin { section, id, connection, publisher, record, ..Origin::default() });
        Some(number)
    }

    /// Returns whether a section is encrypted.
    pub(crate) fn is_encrypted(&self, section: u32) -> bool {
        self.encryption.contains_key(&section)
    }

    /// Returns the chunk info of the chunk at offset `pos` in a section.
    pub(super) fn info(&self, section: u32, pos: u64) -> Option<&Info> {
        self.infos.get(*self.info_at_offset.get(&(section, pos))?)
    }

    /// Returns the lowest and highest message time of the chunks that were not fetched, according
    /// to their chunk infos.
    pub(crate) fn unread_span(&self) -> Option<Span> {
        let unread = self.chunks.iter().filter(|chunk| chunk.is_unread && chunk.messages.count > 0);
        unread.map(|chunk| chunk.messages.span).reduce(Span::joined)
    }

    /// Returns the origin (connection record) that a connection id refers to at the start of a
    /// chunk.
    #[inline(never)]
    pub(crate) fn origin_at(&self, chunk: usize, conn: u32) -> Option<u32> {
        self.ids.origin_at(chunk, ScopedConn { section: self.chunks[chunk].section, conn })
    }

    /// Records that a connection id has a new origin (connection record) from the next chunk on.
    pub(crate) fn change(&mut self, conn: u32, origin: u32) {
        let id = ScopedConn { section: self.position.section, conn };
        let from_chunk = self.position.chunk + 1;
        // The id already has this origin at the start of the next chunk.
        if self.ids.origin_at(from_chunk, id) == Some(origin) {
            return;
        }
        let changes = self.ids.changes.entry(id).or_default();
        match changes.last_mut() {
            Some(last) if last.from_chunk == from_chunk => last.origin = origin,
            _ => changes.push(OriginChange { from_chunk, origin }),
        }
    }

    /// Returns the connection records that came after the first message with their connection id,
    /// for example because a recorder repeats the connection records only in later chunks.
    pub(super) fn late_connections(&self) -> impl Iterator<Item = ConnectionKey> {
        self.ids.undeclared.iter().filter_map(|id| {
            let origin = &self.origins[*self.ids.declared.get(id)? as usize];
            let OriginRecord { topic, data, .. } = origin.record.as_ref()?;
            let record = ConnectionRecord { conn: id.conn, topic, data, head: &[] };
            Some(ConnectionKey::new(id.section, &record))
        })
    }
}

impl IdTable {
    /// Returns the origin (connection record) that a connection id refers to at the start of a
    /// chunk.
    fn origin_at(&self, chunk: usize, id: ScopedConn) -> Option<u32> {
        let changes = self.changes.get(&id).map_or(&[][..], Vec::as_slice);
        let change_count = changes.partition_point(|change| change.from_chunk <= chunk);
        match changes[..change_count].last() {
            Some(change) => Some(change.origin),
            None => self.first[id.section as usize].get(id.conn),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::OriginIds;

    #[test]
    fn large_ids_take_little_space() {
        let mut ids = OriginIds::default();
        let numbers = [65_535, 0, 63, 64, u32::MAX, 300].into_iter().chain(100..800);
        let all: Vec<(u32, u32)> = numbers.zip(0..).collect();
        for (number, (id, origin)) in all.iter().enumerate() {
            ids.set(*id, *origin);
            assert!(ids.dense.len() <= 64.max(8 * (number + 1)));
        }
        // If an origin was set twice for an id, the later origin is returned.
        let last = |id: u32| all.iter().rfind(|(known, _)| *known == id).map(|(_, origin)| *origin);
        assert!(all.iter().all(|(id, _)| ids.get(*id) == last(*id)));
        assert_eq!((ids.get(1), ids.get(90), ids.get(70_000)), (None, None, None));
    }
}
