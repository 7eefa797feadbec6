//! The bytes of a V2.0 bag ("Bags/Format/2.0" of the ROS wiki): a header, chunks of messages with the index of
//! each, then all connections and a summary of each chunk. Header fields stand in the byte order of their names.

use std::io::Write;

use bzip2::write::BzEncoder;
use rovelog::rosbag12::Publisher;
use rovelog::rosbag12::wire::{BAG_HEADER_SIZE, Field, head_of};

use crate::ExportError;
use crate::ros::Line;

/// How chunks of messages are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// As they are.
    #[default]
    None,
    /// With bzip2.
    Bz2,
}

const VERSION_LINE: &[u8] = b"#ROSBAG V2.0\n";

/// What kind of record it is.
mod op {
    pub(super) const MESSAGE: u8 = 2;
    pub(super) const BAG_HEADER: u8 = 3;
    pub(super) const INDEX: u8 = 4;
    pub(super) const CHUNK: u8 = 5;
    pub(super) const CHUNK_INFO: u8 = 6;
    pub(super) const CONNECTION: u8 = 7;
}

/// Bytes of messages from which on a chunk is closed, as ROS closes them.
const CHUNK_SIZE: usize = 768 << 10;

/// Bytes that a chunk may have: its messages are found by offsets of 32 bits.
const MAX_CHUNK: usize = u32::MAX as usize;

/// Seconds and nanoseconds.
type Stamp = (u32, u32);

/// What the first record says of the whole file.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    index_pos: u64,
    connections: u32,
    chunks: u32,
}

/// Messages of one topic, type and publisher.
struct Connection<'a> {
    line: &'a Line<'a>,
    publisher: Publisher,
    /// The head of its messages; their time and length are the last 12 bytes.
    head: Vec<u8>,
    /// Its entries in the index of the chunk at hand.
    entries: Vec<u8>,
}

/// A summary of a chunk.
struct Chunk {
    at: u64,
    span: (Stamp, Stamp),
    /// How many messages of which connection.
    counts: Vec<(u32, u32)>,
}

/// One type for all outputs, so that writing is compiled once.
pub(super) struct Writer<'a> {
    out: &'a mut dyn Write,
    at: u64,
    compression: Compression,
    connections: Vec<Connection<'a>>,
    /// The bytes of the chunk at hand, and the times in it.
    chunk: Vec<u8>,
    span: Option<(Stamp, Stamp)>,
    chunks: Vec<Chunk>,
}

impl<'a> Writer<'a> {
    /// Begins a bag; the totals are those that an earlier [`finish`](Self::finish) of the same gave.
    pub(super) fn new(
        out: &'a mut dyn Write,
        compression: Compression,
        totals: Totals,
    ) -> Result<Self, ExportError> {
        let chunk = Vec::with_capacity(CHUNK_SIZE);
        let mut writer =
            Self { out, at: 0, compression, connections: Vec::new(), chunk, span: None, chunks: Vec::new() };
        writer.put(VERSION_LINE)?;
        let fields = [
            ("chunk_count", &totals.chunks.to_le_bytes()[..]),
            ("conn_count", &totals.connections.to_le_bytes()),
            ("index_pos", &totals.index_pos.to_le_bytes()),
            ("op", &[op::BAG_HEADER]),
        ];
        // Header and data without their lengths.
        let padding = BAG_HEADER_SIZE as usize - (head(&fields, 0).len() - 8);
        writer.put(&record(&fields, &vec![b' '; padding]))?;
        Ok(writer)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), ExportError> {
        self.out.write_all(bytes)?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    /// Begins a connection, which stands in the chunk before its first message.
    pub(super) fn connect(&mut self, line: &'a Line<'a>, publisher: Publisher) -> Result<u32, ExportError> {
        let too_many = || ExportError::Format("more connections than a bag can store".to_owned());
        let id = u32::try_from(self.connections.len()).map_err(|_| too_many())?;
        let fields = [("conn", &id.to_le_bytes()[..]), ("op", &[op::MESSAGE]), ("time", &[0; 8])];
        let head = record(&fields, b"");
        let connection = Connection { line, publisher, head, entries: Vec::new() };
        self.chunk.extend(connection_record(id, &connection));
        self.connections.push(connection);
        Ok(id)
    }

    /// Writes a message; whether it is one that a bag can hold.
    pub(super) fn message(&mut self, id: u32, stamp: Stamp, payload: &[u8]) -> Result<bool, ExportError> {
        let head_len = self.connections[id as usize].head.len();
        let fits = |chunk: usize| payload.len() <= MAX_CHUNK.saturating_sub(chunk + head_len);
        if !fits(self.chunk.len()) {
            self.close_chunk()?;
        }
        let (true, Ok(len), Ok(offset)) =
            (fits(self.chunk.len()), u32::try_from(payload.len()), u32::try_from(self.chunk.len()))
        else {
            return Ok(false);
        };
        let time = time(stamp);
        let Connection { head, entries, .. } = &mut self.connections[id as usize];
        head[head_len - 12..head_len - 4].copy_from_slice(&time);
        head[head_len - 4..].copy_from_slice(&len.to_le_bytes());
        entries.extend_from_slice(&time);
        entries.extend_from_slice(&offset.to_le_bytes());
        self.chunk.extend_from_slice(head);
        self.chunk.extend_from_slice(payload);
        let (first, last) = self.span.unwrap_or((stamp, stamp));
        self.span = Some((first.min(stamp), last.max(stamp)));
        if self.chunk.len() >= CHUNK_SIZE {
            self.close_chunk()?;
        }
        Ok(true)
    }

    /// Writes the chunk at hand, if it has messages, and their index.
    fn close_chunk(&mut self) -> Result<(), ExportError> {
        let Some(span) = self.span.take() else { return Ok(()) };
        let at = self.at;
        let mut chunk = std::mem::take(&mut self.chunk);
        // Not more than `MAX_CHUNK`.
        let size = u32::try_from(chunk.len()).unwrap_or(u32::MAX).to_le_bytes();
        let fields = |compression: &'static str| {
            [("compression", compression.as_bytes()), ("op", &[op::CHUNK]), ("size", &size)]
        };
        match self.compression {
            Compression::None => {
                self.put(&head(&fields("none"), chunk.len()))?;
                self.put(&chunk)?;
            }
            Compression::Bz2 => {
                let mut encoder = BzEncoder::new(Vec::new(), bzip2::Compression::best());
                encoder.write_all(&chunk)?;
                let packed = encoder.finish()?;
                self.put(&head(&fields("bz2"), packed.len()))?;
                self.put(&packed)?;
            }
        }
        chunk.clear();
        self.chunk = chunk;
        let mut counts = Vec::new();
        for id in 0..self.connections.len() {
            let entries = std::mem::take(&mut self.connections[id].entries);
            // Fewer than the bytes of the chunk.
            let count = u32::try_from(entries.len() / 12).unwrap_or(u32::MAX);
            let id = u32::try_from(id).unwrap_or(u32::MAX);
            if count > 0 {
                counts.push((id, count));
                let (id, count) = (id.to_le_bytes(), count.to_le_bytes());
                let version = 1u32.to_le_bytes();
                let fields = [("conn", &id[..]), ("count", &count), ("op", &[op::INDEX]), ("ver", &version)];
                self.put(&record(&fields, &entries))?;
            }
        }
        self.chunks.push(Chunk { at, span, counts });
        Ok(())
    }

    /// Writes what is left, and what the first record should have said.
    pub(super) fn finish(mut self) -> Result<Totals, ExportError> {
        self.close_chunk()?;
        let index_pos = self.at;
        // Never more than there are bytes in a file of chunks.
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let connections = std::mem::take(&mut self.connections);
        for (id, connection) in (0..).zip(&connections) {
            self.put(&connection_record(id, connection))?;
        }
        let chunks = std::mem::take(&mut self.chunks);
        for chunk in &chunks {
            let (count, version) = (number(chunk.counts.len()).to_le_bytes(), 1u32.to_le_bytes());
            let (at, start, end) = (chunk.at.to_le_bytes(), time(chunk.span.0), time(chunk.span.1));
            let fields = [
                ("chunk_pos", &at[..]),
                ("count", &count),
                ("end_time", &end),
                ("op", &[op::CHUNK_INFO]),
                ("start_time", &start),
                ("ver", &version),
            ];
            let counts = chunk.counts.iter().flat_map(|(id, count)| [id.to_le_bytes(), count.to_le_bytes()]);
            self.put(&record(&fields, counts.collect::<Vec<_>>().as_flattened()))?;
        }
        let totals =
            Totals { index_pos, connections: number(connections.len()), chunks: number(chunks.len()) };
        self.out.flush()?;
        Ok(totals)
    }
}

/// A stamp as it stands in the file.
fn time(stamp: Stamp) -> [u8; 8] {
    let mut time = [0; 8];
    time[..4].copy_from_slice(&stamp.0.to_le_bytes());
    time[4..].copy_from_slice(&stamp.1.to_le_bytes());
    time
}

/// A header and the length of the data that follow.
fn head<'a>(fields: &[(&'static str, &'a [u8])], data_len: usize) -> Vec<u8> {
    let field = |(name, value): &(&'static str, &'a [u8])| Field { name: name.as_bytes(), value };
    let fields: Vec<_> = fields.iter().map(field).collect();
    head_of(&fields, u32::try_from(data_len).unwrap_or(u32::MAX))
}

/// A record with data that are less than 4 GiB.
fn record(fields: &[(&'static str, &[u8])], data: &[u8]) -> Vec<u8> {
    let mut record = head(fields, data.len());
    record.extend_from_slice(data);
    record
}

/// What was said when the publisher connected; its data are header fields, too.
fn connection_record(id: u32, connection: &Connection<'_>) -> Vec<u8> {
    let Connection { line, publisher, .. } = connection;
    let text = line.text();
    let mut said = Vec::new();
    said.extend(publisher.callerid.as_ref().map(|name| ("callerid", name.as_bytes())));
    said.extend(publisher.latching.then_some(("latching", &b"1"[..])));
    said.extend([
        ("md5sum", line.sum.as_bytes()),
        ("message_definition", text.as_bytes()),
        ("topic", line.topic.as_bytes()),
        ("type", line.type_name.as_bytes()),
    ]);
    let said = head(&said, 0);
    let fields =
        [("conn", &id.to_le_bytes()[..]), ("op", &[op::CONNECTION]), ("topic", line.topic.as_bytes())];
    record(&fields, &said[4..said.len() - 4])
}
