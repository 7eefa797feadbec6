//! New bags of V2.0, as the recorder writes them: chunks of messages with the index of each, then
//! all connections and a summary of each chunk. The output need not seek, and the bag header at the
//! start has totals of what comes: a bag is held until it is complete, or laid twice if it is large.

use std::collections::HashMap;
use std::io::{self, Write};

use rovelog_core::output::FailFast;
use rovelog_core::wire::{U32Le, U64Le};
use zerocopy::IntoBytes;

use super::unpack::Compression;
use super::wire::{
    Chunk, ChunkInfo, Connection, ConnectionCount, Header, IndexData, IndexEntry, Message, Stamp, VER,
    VERSION_LINE, bag_header_record,
};
use crate::error::BagError;

/// Bytes of messages from which on a chunk is closed, as ROS closes them.
const CHUNK_SIZE: usize = 768 << 10;

/// Bytes that a chunk may have: its messages are found by offsets of 32 bits.
const MAX_CHUNK: usize = u32::MAX as usize;

/// A bag of more bytes is not held.
const HELD: usize = 64 << 20;

/// What the bag header says of the whole file.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    index_pos: u64,
    connections: u32,
    chunks: u32,
    /// Bytes of the file.
    bytes: u64,
}

/// Writes a bag of what `lay` puts into it, and returns that with the number of bytes. `lay` may be
/// called twice, and must do the same each time.
///
/// # Errors
/// Returns an error if the output refuses, or `lay` does.
pub fn write<T, E: From<BagError>>(
    out: &mut dyn Write,
    compression: Compression,
    lay: impl FnMut(&mut Writer<'_>) -> Result<T, E>,
) -> Result<(T, u64), E> {
    write_held(HELD, out, compression, lay)
}

fn write_held<T, E: From<BagError>>(
    most: usize,
    out: &mut dyn Write,
    compression: Compression,
    mut lay: impl FnMut(&mut Writer<'_>) -> Result<T, E>,
) -> Result<(T, u64), E> {
    let mut held = Held { most, bytes: Some(Vec::new()) };
    let mut writer = Writer::new(&mut held, compression, Totals::default())?;
    let mut laid = lay(&mut writer)?;
    let totals = writer.finish()?;
    if let Some(body) = held.all() {
        let mut writer = Writer::new(out, compression, totals)?;
        writer.put(body)?;
        writer.out.flush().map_err(BagError::from)?;
    } else {
        let mut writer = Writer::new(out, compression, totals)?;
        laid = lay(&mut writer)?;
        writer.finish()?;
    }
    Ok((laid, totals.bytes))
}

/// Messages of one topic, type and publisher.
#[derive(Debug)]
struct Declared {
    record: Vec<u8>,
    /// Its entries in the index of the chunk at hand.
    entries: Vec<IndexEntry>,
}

/// The topic, the data and the other fields of the record of a connection.
type Key = (Vec<u8>, Vec<u8>, Vec<u8>);

/// A summary of a chunk.
#[derive(Debug)]
struct Summary {
    at: u64,
    span: (Stamp, Stamp),
    counts: Vec<ConnectionCount>,
}

/// A bag of V2.0 that is [written](write()). One type for all outputs, so that writing is compiled
/// once.
pub struct Writer<'a> {
    out: FailFast<&'a mut dyn Write>,
    at: u64,
    compression: Compression,
    connections: Vec<Declared>,
    numbers: HashMap<Key, u32>,
    /// The bytes of the chunk at hand, and the times in it.
    chunk: Vec<u8>,
    span: Option<(Stamp, Stamp)>,
    /// Whether it has records of unknown kinds.
    has_others: bool,
    chunks: Vec<Summary>,
}

impl<'a> Writer<'a> {
    /// Starts a bag; `totals` are those that [`finish`](Self::finish) returned for the same
    /// messages.
    fn new(out: &'a mut dyn Write, compression: Compression, totals: Totals) -> Result<Self, BagError> {
        let mut writer = Self {
            out: FailFast::new(out),
            at: 0,
            compression,
            connections: Vec::new(),
            numbers: HashMap::new(),
            chunk: Vec::new(),
            span: None,
            has_others: false,
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

    /// Starts a connection, whose record is in the chunk before its first message. `data` are those
    /// of a [`ConnectionHeader`](super::wire::ConnectionHeader). Equal ones are the same
    /// connection.
    ///
    /// # Errors
    /// Returns an error if there are too many.
    pub fn connect(&mut self, topic: &[u8], data: &[u8]) -> Result<u32, BagError> {
        self.connect_with(topic, data, &[])
    }

    /// Starts a connection whose record has these [`others`](Header::others) in its header.
    pub(crate) fn connect_with(&mut self, topic: &[u8], data: &[u8], others: &[u8]) -> Result<u32, BagError> {
        let refuse = |why| BagError::BadRecord { what: "a connection".to_owned(), why };
        let key = (topic.to_vec(), data.to_vec(), others.to_vec());
        if let Some(number) = self.numbers.get(&key) {
            return Ok(*number);
        }
        let number = u32::try_from(self.connections.len()).map_err(|_| refuse("there are too many"))?;
        let len = u32::try_from(data.len()).map_err(|_| refuse("its data have 4 GiB or more"))?;
        let conn = U32Le::new(number);
        let mut record = Header::Connection(Connection { conn: &conn, topic }).head_with(others, len);
        record.extend_from_slice(data);
        self.chunk.extend_from_slice(&record);
        self.numbers.insert(key, number);
        self.connections.push(Declared { record, entries: Vec::new() });
        Ok(number)
    }

    /// Writes a message received at `sec` seconds and `nsec` nanoseconds. Returns false, and writes
    /// nothing, if it is too large for a chunk.
    ///
    /// # Errors
    /// Returns an error if the output refuses.
    ///
    /// # Panics
    /// Panics if the connection is not one of this writer.
    pub fn message(&mut self, id: u32, (sec, nsec): (u32, u32), payload: &[u8]) -> Result<bool, BagError> {
        self.message_with(id, Stamp::new(sec, nsec), &[], payload)
    }

    /// Writes a message that has these [`others`](Header::others) in its header.
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

    /// Writes a record of an unknown kind, as it is, into the chunk at hand. Returns false, and writes
    /// nothing, if it is too large for a chunk.
    pub(crate) fn other(&mut self, record: &[u8]) -> Result<bool, BagError> {
        let is_written = self.add(record, &[])?.is_some();
        self.has_others |= is_written;
        self.close_full_chunk()?;
        Ok(is_written)
    }

    /// Writes a record of an unknown kind, as it is, between two chunks.
    pub(crate) fn other_between(&mut self, record: &[u8]) -> Result<(), BagError> {
        self.close_chunk()?;
        self.put(record)
    }

    /// Adds a record to the chunk at hand, or to the next one if that is full: where it starts;
    /// `None` if it fits none.
    fn add(&mut self, head: &[u8], data: &[u8]) -> Result<Option<u32>, BagError> {
        let fits = |chunk: usize| data.len() <= MAX_CHUNK.saturating_sub(chunk + head.len());
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

    /// Writes the chunk at hand, if it has more than connections, and the index of its messages.
    fn close_chunk(&mut self) -> Result<(), BagError> {
        // Without messages it has no times of its own, and must not widen those of the bag.
        let end = || self.chunks.last().map_or(Stamp::new(0, 0), |chunk| chunk.span.1);
        let without_messages = self.has_others.then(|| (end(), end()));
        let Some(span) = self.span.take().or(without_messages) else { return Ok(()) };
        self.has_others = false;
        let at = self.at;
        let mut chunk = std::mem::take(&mut self.chunk);
        // Not more than `MAX_CHUNK`.
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
            // By time, as recorders have them.
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
        self.chunks.push(Summary { at, span, counts });
        Ok(())
    }

    /// Writes what is left, and returns the totals for the bag header.
    fn finish(mut self) -> Result<Totals, BagError> {
        self.close_chunk()?;
        let index_pos = self.at;
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let connections = std::mem::take(&mut self.connections);
        for connection in &connections {
            self.put(&connection.record)?;
        }
        let chunks = std::mem::take(&mut self.chunks);
        for Summary { at, span: (start_time, end_time), counts } in &chunks {
            let (ver, chunk_pos, count) =
                (U32Le::new(VER), U64Le::new(*at), U32Le::new(number(counts.len())));
            let (ver, chunk_pos, count) = (&ver, &chunk_pos, &count);
            let info = ChunkInfo { ver, chunk_pos, start_time, end_time, count };
            let bytes = counts.as_bytes();
            self.put(&Header::ChunkInfo(info).to_head(number(bytes.len())))?;
            self.put(bytes)?;
        }
        self.out.flush()?;
        Ok(Totals {
            index_pos,
            connections: number(connections.len()),
            chunks: number(chunks.len()),
            bytes: self.at,
        })
    }
}

/// A bag that is held until it is complete, if it is small.
struct Held {
    most: usize,
    /// `None` of one that is larger.
    bytes: Option<Vec<u8>>,
}

impl Held {
    /// Returns all behind the bag header, which has the wrong totals.
    fn all(&self) -> Option<&[u8]> {
        let start = VERSION_LINE.len() + bag_header_record(0, 0, 0).len();
        self.bytes.as_ref().map(|bytes| &bytes[start..])
    }
}

impl Write for Held {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes = self.bytes.take().filter(|held| held.len() + bytes.len() <= self.most);
        if let Some(held) = &mut self.bytes {
            held.extend_from_slice(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the data of a chunk, compressed; `None` if they stay as they are.
#[cfg_attr(not(feature = "compressed"), expect(unused_variables, reason = "nothing is packed then"))]
fn pack(compression: Compression, data: &[u8]) -> Result<Option<Vec<u8>>, BagError> {
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
            // ROS reads no other frames than these.
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
            why: "built without feature `compressed`",
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message in each of three chunks.
    fn written(most: usize) -> (Vec<u8>, usize) {
        let (mut out, mut times) = (Vec::new(), 0);
        let laid = write_held(most, &mut out, Compression::None, |writer| {
            times += 1;
            let id = writer.connect(b"/a", b"")?;
            (0..3).try_for_each(|sec| writer.message(id, (sec, 0), &vec![7; CHUNK_SIZE]).map(|_| ()))?;
            Ok::<_, BagError>("laid")
        });
        assert_eq!(laid.unwrap(), ("laid", out.len() as u64));
        (out, times)
    }

    #[test]
    fn a_bag_is_the_same_held_and_laid_twice() {
        let (bag, times) = written(usize::MAX);
        assert_eq!(times, 1);
        assert_eq!(written(bag.len()), (bag.clone(), 1));
        assert_eq!(written(bag.len() - 1), (bag.clone(), 2));
        assert_eq!(written(0), (bag, 2));
    }
}
