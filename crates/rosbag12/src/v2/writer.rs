//! Writes V2.0 bags with the layout of the ROS recorder. The layout is a sequence of chunks, each
//! followed by its index data, then all connections, then a chunk info for each chunk.
//!
//! The bag header at the start contains totals that are known only at the end. The output need not
//! support seeking, so the bag header cannot be written later. A small bag is therefore buffered in
//! memory until it is complete, and a large bag is generated twice.

use std::collections::HashMap;
use std::io::{self, Write};

use rovelog_core::internal::output::FailFast;
use rovelog_core::internal::wire::{U32Le, U64Le};
use zerocopy::IntoBytes;

use super::compression::Compression;
use super::wire::{
    Chunk, ChunkInfo, Connection, ConnectionCount, Header, IndexData, IndexEntry, Message, Stamp, VER,
    VERSION_LINE, bag_header_record,
};
use crate::error::BagError;

/// Size in bytes at which a chunk is closed. The ROS recorder uses the same value.
const CHUNK_SIZE: usize = 768 << 10;

/// Maximum size in bytes of a chunk. Larger chunks are not possible, because index data contain
/// 32-bit offsets.
const MAX_CHUNK: usize = u32::MAX as usize;

/// Maximum size in bytes of a bag that is buffered in memory until it is complete.
const MAX_BUFFERED: usize = 64 << 20;

/// Totals of a bag, which are written to the bag header.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    /// Offset of the index section.
    index_pos: u64,
    /// Number of connections in the bag.
    connections: u32,
    /// Number of chunks in the bag.
    chunks: u32,
    /// Size in bytes of the bag.
    bytes: u64,
}

/// Writes a bag with the records that `write_records` adds. Returns the result of `write_records`
/// and the size of the bag in bytes.
///
/// For a large bag, `write_records` is called twice, and must add the same records in both calls.
///
/// # Errors
/// Returns an error if the output or `write_records` returns an error.
pub fn write<T, E: From<BagError>>(
    out: &mut dyn Write,
    compression: Compression,
    write_records: impl FnMut(&mut Writer<'_>) -> Result<T, E>,
) -> Result<(T, u64), E> {
    write_held(MAX_BUFFERED, out, compression, write_records)
}

fn write_held<T, E: From<BagError>>(
    max_len: usize,
    out: &mut dyn Write,
    compression: Compression,
    mut write_records: impl FnMut(&mut Writer<'_>) -> Result<T, E>,
) -> Result<(T, u64), E> {
    let mut buffer = MemoryBuffer { max_len, bytes: Some(Vec::new()) };
    let mut writer = Writer::new(&mut buffer, compression, Totals::default())?;
    let mut result = write_records(&mut writer)?;
    let totals = writer.finish()?;
    let mut writer = Writer::new(out, compression, totals)?;
    if let Some(body) = buffer.all() {
        writer.put(body)?;
        writer.out.flush().map_err(BagError::from)?;
    } else {
        result = write_records(&mut writer)?;
        writer.finish()?;
    }
    Ok((result, totals.bytes))
}

/// A connection of the bag that is written.
#[derive(Debug)]
struct WriterConnection {
    /// Encoded connection record. The record is repeated in the index section.
    record: Vec<u8>,
    /// Index entries for the messages of the connection in the current chunk.
    entries: Vec<IndexEntry>,
}

/// Content of a connection record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NewConnection {
    /// Topic in the header of the connection record.
    pub(crate) topic: Vec<u8>,
    /// Data of the connection record.
    pub(crate) data: Vec<u8>,
    /// Encoded header fields that the specification does not define.
    pub(crate) other_fields: Vec<u8>,
}

/// Content of a chunk info record, which describes one chunk in the index section.
#[derive(Debug)]
struct ChunkSummary {
    /// Offset of the chunk record.
    at: u64,
    /// Lowest and highest message time in the chunk.
    span: (Stamp, Stamp),
    /// For each connection with messages in the chunk, the number of messages.
    counts: Vec<ConnectionCount>,
}

/// Writer of a V2.0 bag, see [`write`](write()).
pub struct Writer<'a> {
    /// Destination of the bag. The type is a trait object, so that the writer is compiled only
    /// once.
    out: FailFast<&'a mut dyn Write>,
    /// Offset of the next byte in the output.
    at: u64,
    /// Compression of new chunks.
    compression: Compression,
    /// All connections of the bag. The index of a connection is its id.
    connections: Vec<WriterConnection>,
    /// Map from the content of a connection record to the id of the connection.
    numbers: HashMap<NewConnection, u32>,
    /// Encoded records of the current chunk, uncompressed.
    chunk: Vec<u8>,
    /// Lowest and highest message time in the current chunk.
    span: Option<(Stamp, Stamp)>,
    /// True if the current chunk has records with an unknown op (record type).
    has_unknown_records: bool,
    /// Content of the chunk info for each chunk written so far.
    chunks: Vec<ChunkSummary>,
}

impl<'a> Writer<'a> {
    /// Starts a bag, and writes `totals` to the bag header. The totals were returned by
    /// [`finish`](Self::finish) of an earlier writer with the same messages.
    fn new(out: &'a mut dyn Write, compression: Compression, totals: Totals) -> Result<Self, BagError> {
        let mut writer = Self {
            out: FailFast::new(out),
            at: 0,
            compression,
            connections: Vec::new(),
            numbers: HashMap::new(),
            chunk: Vec::new(),
            span: None,
            has_unknown_records: false,
            chunks: Vec::new(),
        };
        writer.put(VERSION_LINE)?;
        writer.put(&bag_header_record(totals.index_pos, totals.connections, totals.chunks))?;
        Ok(writer)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), BagError> {
        self.out.write_all(bytes)?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    /// Adds a connection and returns its id. The connection record is written to the current chunk.
    /// `data` is an encoded [`ConnectionHeader`](super::wire::ConnectionHeader). Another call with
    /// the same arguments returns the same id.
    ///
    /// # Errors
    /// Returns an error if there are too many connections.
    pub fn connect(&mut self, topic: &[u8], data: &[u8]) -> Result<u32, BagError> {
        let (topic, data) = (topic.to_vec(), data.to_vec());
        self.connect_with(NewConnection { topic, data, other_fields: Vec::new() })
    }

    /// Adds a connection with additional header fields, and returns the id of the connection.
    pub(crate) fn connect_with(&mut self, new: NewConnection) -> Result<u32, BagError> {
        let refuse = |why| BagError::BadRecord { what: "a connection".to_owned(), why };
        let NewConnection { topic, data, other_fields } = &new;
        // Publishers with equal connection records share one connection.
        if let Some(number) = self.numbers.get(&new) {
            return Ok(*number);
        }
        let number =
            u32::try_from(self.connections.len()).map_err(|_| refuse("the bag has too many connections"))?;
        let len = u32::try_from(data.len()).map_err(|_| refuse("its data has 4 GiB or more"))?;
        let conn = U32Le::new(number);
        let mut record = Header::Connection(Connection { conn: &conn, topic }).head_with(other_fields, len);
        record.extend_from_slice(data);
        // The connection record is written before the first message, so that readers of a truncated
        // bag find it.
        self.chunk.extend_from_slice(&record);
        self.numbers.insert(new, number);
        self.connections.push(WriterConnection { record, entries: Vec::new() });
        Ok(number)
    }

    /// Writes a message that was received at `sec` seconds and `nsec` nanoseconds. If the message
    /// is too large for a chunk, writes nothing and returns false.
    ///
    /// # Errors
    /// Returns an error if the output returns an error.
    ///
    /// # Panics
    /// Panics if `id` was not returned by this writer.
    pub fn message(&mut self, id: u32, (sec, nsec): (u32, u32), payload: &[u8]) -> Result<bool, BagError> {
        self.message_with(id, Stamp::new(sec, nsec), &[], payload)
    }

    /// Writes a message whose header has the additional encoded fields `others`.
    pub(crate) fn message_with(
        &mut self,
        id: u32,
        time: Stamp,
        others: &[u8],
        payload: &[u8],
    ) -> Result<bool, BagError> {
        let conn = U32Le::new(id);
        let Ok(len) = u32::try_from(payload.len()) else { return Ok(false) };
        let head = Header::Message(Message { conn: &conn, time: &time }).head_with(others, len);
        let Some(offset) = self.add(&head, payload)? else { return Ok(false) };
        let entry = IndexEntry { time, offset: U32Le::new(offset) };
        self.connections[id as usize].entries.push(entry);
        let (first, last) = self.span.unwrap_or((time, time));
        let by_time = |time: &Stamp| time.nanos();
        self.span =
            Some((std::cmp::min_by_key(first, time, by_time), std::cmp::max_by_key(last, time, by_time)));
        self.close_full_chunk()?;
        Ok(true)
    }

    /// Adds an encoded record with an unknown op (record type) to the current chunk. If the record
    /// is too large for a chunk, adds nothing and returns false.
    pub(crate) fn other(&mut self, record: &[u8]) -> Result<bool, BagError> {
        let is_written = self.add(record, &[])?.is_some();
        self.has_unknown_records |= is_written;
        self.close_full_chunk()?;
        Ok(is_written)
    }

    /// Writes an encoded record with an unknown op (record type) between two chunks.
    pub(crate) fn other_between(&mut self, record: &[u8]) -> Result<(), BagError> {
        self.close_chunk()?;
        self.put(record)
    }

    /// Adds a record to the current chunk. If the current chunk is full, starts a new chunk.
    /// Returns the offset of the record in the chunk. Returns `None` if the record is too large for
    /// any chunk.
    fn add(&mut self, head: &[u8], data: &[u8]) -> Result<Option<u32>, BagError> {
        let fits = |chunk: usize| data.len() <= MAX_CHUNK.saturating_sub(chunk + head.len());
        // Start a new chunk if the record does not fit into the rest of the current chunk.
        if !fits(self.chunk.len()) {
            self.close_chunk()?;
        }
        let place = u32::try_from(self.chunk.len()).ok().filter(|_| fits(self.chunk.len()));
        if place.is_some() {
            self.chunk.extend_from_slice(head);
            self.chunk.extend_from_slice(data);
        }
        Ok(place)
    }

    fn close_full_chunk(&mut self) -> Result<(), BagError> {
        if self.chunk.len() >= CHUNK_SIZE { self.close_chunk() } else { Ok(()) }
    }

    /// Writes the current chunk and its index data. A chunk that contains only connection records
    /// is kept until it has other records.
    fn close_chunk(&mut self) -> Result<(), BagError> {
        // The chunk info of a chunk without messages needs a time span too. The end of the previous
        // chunk is used, which does not change the time span of the bag.
        let end = || self.chunks.last().map_or(Stamp::new(0, 0), |chunk| chunk.span.1);
        let without_messages = self.has_unknown_records.then(|| (end(), end()));
        let Some(span) = self.span.take().or(without_messages) else { return Ok(()) };
        self.has_unknown_records = false;
        let at = self.at;
        let mut chunk = std::mem::take(&mut self.chunk);
        // The chunk has at most `MAX_CHUNK` bytes, so the conversion to 32 bits never fails.
        let size = U32Le::new(u32::try_from(chunk.len()).unwrap_or(u32::MAX));
        let packed = pack(self.compression, &chunk)?;
        let data = packed.as_ref().unwrap_or(&chunk);
        let compression = self.compression.name().as_bytes();
        let len = u32::try_from(data.len())
            .map_err(|_| BagError::BadRecord { what: "a chunk".to_owned(), why: "it has 4 GiB or more" })?;
        let head = Header::Chunk(Chunk { compression, size: &size }).to_head(len);
        self.put(&head)?;
        self.out.write_all(data)?;
        self.at += data.len() as u64;
        chunk.clear();
        self.chunk = chunk;
        let mut counts = Vec::new();
        for number in 0..self.connections.len() {
            let mut entries = std::mem::take(&mut self.connections[number].entries);
            if entries.is_empty() {
                continue;
            }
            // Recorders sort the index entries by time.
            entries.sort_by_key(|entry| entry.time.nanos());
            let whole = |n: usize| U32Le::new(u32::try_from(n).unwrap_or(u32::MAX));
            let (conn, count, ver) = (whole(number), whole(entries.len()), U32Le::new(VER));
            let bytes = entries.as_bytes();
            let record = Header::IndexData(IndexData { ver: &ver, conn: &conn, count: &count });
            self.put(&record.to_head(whole(bytes.len()).get()))?;
            self.put(bytes)?;
            counts.push(ConnectionCount { conn, count });
            entries.clear();
            self.connections[number].entries = entries;
        }
        self.chunks.push(ChunkSummary { at, span, counts });
        Ok(())
    }

    /// Writes the last chunk and the index section. Returns the totals for the bag header.
    fn finish(mut self) -> Result<Totals, BagError> {
        self.close_chunk()?;
        let index_pos = self.at;
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let connections = std::mem::take(&mut self.connections);
        for connection in &connections {
            self.put(&connection.record)?;
        }
        let chunks = std::mem::take(&mut self.chunks);
        for ChunkSummary { at, span: (start_time, end_time), counts } in &chunks {
            let (ver, chunk_pos, count) =
                (U32Le::new(VER), U64Le::new(*at), U32Le::new(number(counts.len())));
            let (ver, chunk_pos, count) = (&ver, &chunk_pos, &count);
            let info = ChunkInfo { ver, chunk_pos, start_time, end_time, count };
            let bytes = counts.as_bytes();
            self.put(&Header::ChunkInfo(info).to_head(number(bytes.len())))?;
            self.put(bytes)?;
        }
        self.out.flush()?;
        let (connections, chunks) = (number(connections.len()), number(chunks.len()));
        Ok(Totals { index_pos, connections, chunks, bytes: self.at })
    }
}

/// Buffer for a bag that is kept in memory until it is complete.
struct MemoryBuffer {
    /// Maximum size in bytes of the bag.
    max_len: usize,
    /// Bytes of the bag written so far. `None` after the bag exceeded `max_len`.
    bytes: Option<Vec<u8>>,
}

impl MemoryBuffer {
    /// Returns all bytes after the bag header. The bag header is left out because its totals are
    /// not right yet.
    fn all(&self) -> Option<&[u8]> {
        let start = VERSION_LINE.len() + bag_header_record(0, 0, 0).len();
        self.bytes.as_ref().map(|bytes| &bytes[start..])
    }
}

impl Write for MemoryBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes = self.bytes.take().filter(|buffer| buffer.len() + bytes.len() <= self.max_len);
        if let Some(buffer) = &mut self.bytes {
            buffer.try_reserve(bytes.len())?;
            buffer.extend_from_slice(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Compresses the data of a chunk. Returns `None` if the data stay uncompressed.
#[cfg_attr(not(feature = "compressed"), expect(unused_variables, reason = "nothing is packed then"))]
pub(super) fn pack(compression: Compression, data: &[u8]) -> Result<Option<Vec<u8>>, BagError> {
    match compression {
        Compression::None => Ok(None),
        #[cfg(feature = "compressed")]
        Compression::Bz2 => {
            let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
            encoder.write_all(data)?;
            Ok(Some(encoder.finish()?))
        }
        #[cfg(feature = "compressed")]
        Compression::Lz4 => {
            use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
            // The bag reader of ROS accepts only LZ4 frames with these settings.
            let frame = FrameInfo::new()
                .block_mode(BlockMode::Independent)
                .block_size(BlockSize::Max1MB)
                .content_checksum(true);
            let mut encoder = FrameEncoder::with_frame_info(frame, Vec::new());
            encoder.write_all(data)?;
            Ok(Some(encoder.finish().map_err(std::io::Error::other)?))
        }
        #[cfg(not(feature = "compressed"))]
        _ => Err(BagError::BadRecord {
            what: format!("a chunk compressed with {}", compression.name()),
            why: "this build lacks the feature `compressed`",
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a bag with one message in each of three chunks. Returns the bag and the number of
    /// times that the records were written.
    fn written(max_len: usize) -> (Vec<u8>, usize) {
        let (mut out, mut times) = (Vec::new(), 0);
        let result = write_held(max_len, &mut out, Compression::None, |writer| {
            times += 1;
            let id = writer.connect(b"/a", b"")?;
            (0..3).try_for_each(|sec| writer.message(id, (sec, 0), &vec![7; CHUNK_SIZE]).map(|_| ()))?;
            Ok::<_, BagError>("laid")
        });
        assert_eq!(result.unwrap(), ("laid", out.len() as u64));
        (out, times)
    }

    #[test]
    fn a_buffered_bag_equals_one_generated_twice() {
        let (bag, times) = written(usize::MAX);
        assert_eq!(times, 1);
        assert_eq!(written(bag.len()), (bag.clone(), 1));
        assert_eq!(written(bag.len() - 1), (bag.clone(), 2));
        assert_eq!(written(0), (bag, 2));
    }
}
