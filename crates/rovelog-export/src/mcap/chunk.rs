//! Encodes and compresses the chunks of an MCAP file.
//!
//! The main thread collects messages in a [`Batch`] without encoding them. When the batch is full,
//! a worker thread encodes the records in it, builds the chunk with its message index, and
//! compresses the chunk. The main thread writes the [`Packed`] chunks in their order, so the file
//! does not depend on the number of threads.

use std::io::Write as _;

use ::mcap::records::{ChunkHeader, MessageHeader, MessageIndexEntry, op};
use rovelog::core::internal::layout::KeyCache;
use rovelog::core::internal::parallel::BufferPool;
use rovelog::{Payload, Record, TopicId};
use zstd::bulk::Compressor;

use super::encode::{Message, Tag, tag};
use super::options::McapCompression;
use crate::ExportError;

/// Size in bytes of the messages at which a batch is full. A chunk of about 1 MB compresses well.
/// Larger chunks would make seeking slower, because viewers have to decompress whole chunks.
const BATCH_BYTES: usize = 1 << 20;

/// Size in bytes of a message record without its content: opcode (1), record length (8), channel
/// (2), sequence number (4), log time (8) and publish time (8).
const MESSAGE_OVERHEAD: usize = 31;

/// Records of a chunk that have not been encoded yet, in their order in the chunk.
#[derive(Default)]
pub(super) struct Batch<'a> {
    items: Vec<Item<'a>>,
    /// Bytes of all items that are already encoded, in the order of the items.
    bytes: Vec<u8>,
    /// Size in bytes of the messages. For a record of the log, this is its size before it is
    /// encoded.
    size: usize,
}

/// A record of a chunk that has not been written yet.
enum Item<'a> {
    /// A complete schema or channel record of MCAP. The number is its size in `Batch::bytes`.
    Definition(usize),
    /// A message.
    Message(MessageHeader, Content<'a>),
}

/// Content of a message.
enum Content<'a> {
    /// Bytes that are already encoded. The number is their size in `Batch::bytes`.
    Copied(usize),
    /// The unchanged payload of a record of the log.
    Payload(Payload<'a>),
    /// A record of the log that still has to be encoded.
    Record(Record<'a>),
}

impl<'a> Batch<'a> {
    /// Adds a complete schema or channel record of MCAP.
    pub(super) fn definition(&mut self, record: &[u8]) {
        self.bytes.extend_from_slice(record);
        self.items.push(Item::Definition(record.len()));
    }

    /// Adds a message whose content is already encoded.
    pub(super) fn message(&mut self, header: MessageHeader, data: &[u8]) {
        self.bytes.extend_from_slice(data);
        self.push(header, data.len(), Content::Copied(data.len()));
    }

    /// Adds a message whose content is the unchanged payload of a record.
    pub(super) fn payload(&mut self, header: MessageHeader, payload: Payload<'a>) {
        self.push(header, payload.len(), Content::Payload(payload));
    }

    /// Adds a message for a record of the log. A worker thread encodes the record later.
    pub(super) fn record(&mut self, header: MessageHeader, record: Record<'a>) {
        self.push(header, record.payload.len(), Content::Record(record));
    }

    fn push(&mut self, header: MessageHeader, len: usize, content: Content<'a>) {
        self.size += MESSAGE_OVERHEAD + len;
        self.items.push(Item::Message(header, content));
    }

    pub(super) fn is_full(&self) -> bool {
        self.size > BATCH_BYTES
    }

    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    fn clear(&mut self) {
        self.items.clear();
        self.bytes.clear();
        self.size = 0;
    }
}

/// Losses of a topic that are found while its records are encoded.
#[derive(Clone, Copy, Default)]
pub(super) struct Tally {
    /// Number of records that cannot be decoded.
    pub(super) undecodable: u64,
    /// Number of missing values, which protobuf cannot distinguish from 0.
    pub(super) nulls: u64,
}

/// Buffers that are used again for later chunks.
#[derive(Default)]
pub(super) struct Buffers<'a> {
    pub(super) batches: BufferPool<Batch<'a>>,
    bytes: BufferPool<Vec<u8>>,
}

impl Buffers<'_> {
    /// Makes a buffer available for later chunks.
    pub(super) fn keep(&self, mut buffer: Vec<u8>) {
        buffer.clear();
        self.bytes.put(buffer);
    }
}

/// A chunk of encoded records that is not compressed yet.
#[derive(Default)]
struct Chunk {
    /// Encoded records.
    records: Vec<u8>,
    /// Minimum and maximum log time of the messages.
    times: Option<(u64, u64)>,
    /// Log time and offset of each message, for each channel.
    index: Vec<Vec<MessageIndexEntry>>,
}

impl Chunk {
    /// Adds a message. `fill` is called to write the content of the message. If `fill` returns
    /// false, no message is added.
    #[inline]
    fn message(&mut self, header: &MessageHeader, fill: impl FnOnce(&mut Vec<u8>) -> bool) {
        let MessageHeader { channel_id, sequence, log_time, publish_time } = *header;
        // The fields of fixed size are written at once, which is faster than writing each field
        // separately. The record length is filled in when the size of the content is known.
        let mut head = [0; MESSAGE_OVERHEAD];
        head[0] = op::MESSAGE;
        head[9..11].copy_from_slice(&channel_id.to_le_bytes());
        head[11..15].copy_from_slice(&sequence.to_le_bytes());
        head[15..23].copy_from_slice(&log_time.to_le_bytes());
        head[23..].copy_from_slice(&publish_time.to_le_bytes());
        let at = self.records.len();
        self.records.extend_from_slice(&head);
        if !fill(&mut self.records) {
            self.records.truncate(at);
            return;
        }
        let length = (self.records.len() - at - 9) as u64;
        self.records[at + 1..at + 9].copy_from_slice(&length.to_le_bytes());
        let channel = usize::from(channel_id);
        if self.index.len() <= channel {
            self.index.resize_with(channel + 1, Vec::new);
        }
        self.index[channel].push(MessageIndexEntry { log_time, offset: at as u64 });
        let (first, last) = self.times.unwrap_or((log_time, log_time));
        self.times = Some((first.min(log_time), last.max(log_time)));
    }

    fn clear(&mut self) {
        self.records.clear();
        self.times = None;
        self.index.iter_mut().for_each(Vec::clear);
    }
}

/// Encodes records as protobuf messages.
#[derive(Default)]
struct Encoder {
    /// For each record layout, the tags of its fields.
    keys: KeyCache<Tag>,
    /// Losses of each topic in the current chunk.
    tallies: Vec<(TopicId, Tally)>,
}

impl Encoder {
    /// Writes a record as a message of its topic's type. Returns false if the record cannot be
    /// decoded.
    fn encode(&mut self, record: &Record<'_>, out: &mut Vec<u8>) -> bool {
        let (at, topic) = (out.len(), record.topic.id);
        let mut message = Message::new(out);
        let visited =
            record.fields().and_then(|fields| self.keys.visit(topic, &fields, &mut tag, &mut message));
        let tally = Tally { undecodable: u64::from(visited.is_err()), nulls: message.nulls };
        if visited.is_err() {
            out.truncate(at);
        }
        if tally.undecodable + tally.nulls > 0 {
            match self.tallies.last_mut().filter(|(last, _)| *last == topic) {
                Some((_, known)) => {
                    known.nulls += tally.nulls;
                    known.undecodable += tally.undecodable;
                }
                None => self.tallies.push((topic, tally)),
            }
        }
        visited.is_ok()
    }
}

/// Encodes and compresses batches. Each thread has its own packer.
pub(super) struct Packer {
    compression: Compression,
    encoder: Encoder,
    chunk: Chunk,
}

/// Compression of a packer.
enum Compression {
    None,
    Lz4,
    Zstd(Compressor<'static>),
}

/// A chunk that is ready to be written.
pub(super) struct Packed {
    pub(super) header: ChunkHeader,
    /// Compressed records.
    pub(super) data: Vec<u8>,
    /// Message index records of MCAP, one for each channel that has messages in the chunk.
    pub(super) index: Vec<u8>,
    /// The channels that have messages in the chunk, in the order of `index`.
    pub(super) channels: Vec<IndexedChannel>,
    /// Losses of topics with records in the chunk.
    pub(super) tallies: Vec<(TopicId, Tally)>,
}

/// A channel in the message index of a chunk.
pub(super) struct IndexedChannel {
    pub(super) channel: u16,
    /// Offset of the channel's index record from the start of `index`.
    pub(super) at: u64,
    /// Number of messages of the channel in the chunk.
    pub(super) messages: u64,
}

impl Packer {
    pub(super) fn new(compression: McapCompression) -> Result<Self, ExportError> {
        let compression = match compression {
            McapCompression::None => Compression::None,
            McapCompression::Lz4 => Compression::Lz4,
            McapCompression::Zstd(level) => Compression::Zstd(Compressor::new(level)?),
        };
        Ok(Self { compression, encoder: Encoder::default(), chunk: Chunk::default() })
    }

    /// Encodes and compresses a batch.
    pub(super) fn pack<'a>(
        &mut self,
        mut batch: Batch<'a>,
        buffers: &Buffers<'a>,
    ) -> Result<Packed, ExportError> {
        let Self { compression, encoder, chunk } = self;
        chunk.clear();
        let mut bytes = &batch.bytes[..];
        let mut take = |len| {
            let (taken, rest) = bytes.split_at(len);
            bytes = rest;
            taken
        };
        for item in &batch.items {
            let (header, content) = match item {
                Item::Definition(len) => {
                    chunk.records.extend_from_slice(take(*len));
                    continue;
                }
                Item::Message(header, content) => (header, content),
            };
            chunk.message(header, |out| {
                match content {
                    Content::Copied(len) => out.extend_from_slice(take(*len)),
                    Content::Payload(payload) => out.extend_from_slice(payload),
                    Content::Record(record) => return encoder.encode(record, out),
                }
                true
            });
        }
        batch.clear();
        buffers.batches.put(batch);
        let (message_start_time, message_end_time) = chunk.times.unwrap_or((0, 0));
        let uncompressed_size = chunk.records.len() as u64;
        let uncompressed_crc = crc32fast::hash(&chunk.records);
        let mut data = buffers.bytes.take();
        let compression = match compression {
            Compression::None => {
                // The records are not compressed. Swapping the buffers avoids copying the records.
                std::mem::swap(&mut chunk.records, &mut data);
                ""
            }
            Compression::Lz4 => {
                data = lz4(&chunk.records, data)?;
                "lz4"
            }
            Compression::Zstd(compressor) => {
                // The compressor does not enlarge the buffer itself.
                data.reserve(zstd::zstd_safe::compress_bound(chunk.records.len()));
                compressor.compress_to_buffer(&chunk.records, &mut data)?;
                "zstd"
            }
        };
        let header = ChunkHeader {
            message_start_time,
            message_end_time,
            uncompressed_size,
            uncompressed_crc,
            compression: compression.to_owned(),
            compressed_size: data.len() as u64,
        };
        let (index, channels) = message_index(&chunk.index, buffers.bytes.take());
        Ok(Packed { header, data, index, channels, tallies: std::mem::take(&mut encoder.tallies) })
    }
}

/// Compresses records as an LZ4 frame, as the MCAP specification requires. `out` is an empty
/// buffer.
fn lz4(records: &[u8], out: Vec<u8>) -> Result<Vec<u8>, ExportError> {
    use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
    let info = FrameInfo::new().block_size(BlockSize::Max1MB).block_mode(BlockMode::Independent);
    let mut encoder = FrameEncoder::with_frame_info(info, out);
    encoder.write_all(records)?;
    encoder.finish().map_err(|error| ExportError::Format(error.to_string()))
}

/// Returns the message index records, one for each channel that has messages.
fn message_index(index: &[Vec<MessageIndexEntry>], mut records: Vec<u8>) -> (Vec<u8>, Vec<IndexedChannel>) {
    let mut channels = Vec::new();
    records.reserve(index.iter().map(|entries| 16 * entries.len() + 15).sum());
    for (channel, entries) in (0u16..).zip(index).filter(|(_, entries)| !entries.is_empty()) {
        channels.push(IndexedChannel { channel, at: records.len() as u64, messages: entries.len() as u64 });
        let bytes = 16 * entries.len();
        records.push(op::MESSAGE_INDEX);
        records.extend_from_slice(&(6 + bytes as u64).to_le_bytes());
        records.extend_from_slice(&channel.to_le_bytes());
        records.extend_from_slice(&u32::try_from(bytes).unwrap_or(u32::MAX).to_le_bytes());
        for MessageIndexEntry { log_time, offset } in entries {
            records.extend_from_slice(&log_time.to_le_bytes());
            records.extend_from_slice(&offset.to_le_bytes());
        }
    }
    (records, channels)
}
