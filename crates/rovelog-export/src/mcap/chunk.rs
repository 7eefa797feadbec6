//! Chunks: messages are collected in batches, which any thread encodes and compresses.

use std::io::Write as _;

use ::mcap::records::{ChunkHeader, MessageHeader, MessageIndexEntry, op};
use rovelog::core::layout::Plans;
use rovelog::core::parallel::Spare;
use rovelog::{Payload, Record, TopicId, Value};
use zstd::bulk::Compressor;

use super::encode::{Message, Tag, tag};
use super::options::McapCompression;
use super::types;
use crate::ExportError;

/// Size of the messages from which on a batch is complete.
const FULL: usize = 1 << 20;

/// Bytes of a message in addition to its content: operation, length, channel, sequence, times.
const HEAD: usize = 31;

/// Records of a chunk, in order.
#[derive(Default)]
pub(super) struct Batch<'a> {
    items: Vec<Item<'a>>,
    /// The bytes of all [`Content::Here`], one behind the other.
    bytes: Vec<u8>,
    /// Size of its messages, by the bytes that they have now.
    size: usize,
}

enum Item<'a> {
    /// A whole record of a schema or a channel.
    Definition(usize),
    Message(MessageHeader, Content<'a>),
}

/// Content of a message.
enum Content<'a> {
    /// So many bytes of the batch.
    Here(usize),
    /// The bytes of a record as they are.
    Payload(Payload<'a>),
    /// A record that is still to be encoded.
    Record(Record<'a>),
}

impl<'a> Batch<'a> {
    /// Adds a record of a schema or a channel.
    pub(super) fn definition(&mut self, record: &[u8]) {
        self.bytes.extend_from_slice(record);
        self.items.push(Item::Definition(record.len()));
    }

    /// Adds a message with this content.
    pub(super) fn message(&mut self, header: MessageHeader, data: &[u8]) {
        self.bytes.extend_from_slice(data);
        self.push(header, data.len(), Content::Here(data.len()));
    }

    /// Adds a message with the bytes of a record.
    pub(super) fn payload(&mut self, header: MessageHeader, payload: Payload<'a>) {
        self.push(header, payload.len(), Content::Payload(payload));
    }

    /// Adds a message with the encoded record.
    pub(super) fn record(&mut self, header: MessageHeader, record: Record<'a>) {
        self.push(header, record.payload.len(), Content::Record(record));
    }

    fn push(&mut self, header: MessageHeader, len: usize, content: Content<'a>) {
        self.size += HEAD + len;
        self.items.push(Item::Message(header, content));
    }

    pub(super) fn is_full(&self) -> bool {
        self.size > FULL
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

/// Records of a topic that could not be written, and values that are not as they were.
#[derive(Clone, Copy, Default)]
pub(super) struct Tally {
    pub(super) undecodable: u64,
    pub(super) nulls: u64,
}

/// Buffers that were used before.
#[derive(Default)]
pub(super) struct Buffers<'a> {
    pub(super) batches: Spare<Batch<'a>>,
    bytes: Spare<Vec<u8>>,
}

impl Buffers<'_> {
    /// Keeps a buffer for another chunk.
    pub(super) fn keep(&self, mut buffer: Vec<u8>) {
        buffer.clear();
        self.bytes.keep(buffer);
    }
}

/// Schemas, channels and messages that are compressed together.
#[derive(Default)]
struct Chunk {
    /// Records, one behind the other.
    records: Vec<u8>,
    /// First and last time of the messages.
    times: Option<(u64, u64)>,
    /// By channel: time and offset of each message.
    index: Vec<Vec<MessageIndexEntry>>,
}

impl Chunk {
    /// Adds a message whose content `fill` writes; none if that is not possible.
    #[inline]
    fn message(&mut self, header: &MessageHeader, fill: impl FnOnce(&mut Vec<u8>) -> bool) {
        let MessageHeader { channel_id, sequence, log_time, publish_time } = *header;
        // One write for the fields of fixed size: operation, length, channel, sequence, times.
        let mut head = [0; HEAD];
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

/// Encodes the records of topics.
#[derive(Default)]
struct Encoder {
    plans: Plans<Tag>,
    tallies: Vec<(TopicId, Tally)>,
}

impl Encoder {
    /// Writes a record as a message of its topic's type. Returns whether it can be decoded.
    fn encode(&mut self, record: &Record<'_>, out: &mut Vec<u8>) -> bool {
        let at = out.len();
        let topic = record.topic.id;
        let mut message = Message::new(out);
        if self.plans.run(topic, record.layout(), &record.payload, &mut tag, &mut message) {
            return true;
        }
        out.truncate(at);
        let value = record.value();
        let tally = match &value {
            Ok(value) => Tally { nulls: nulls(value), undecodable: 0 },
            Err(_) => Tally { nulls: 0, undecodable: 1 },
        };
        match self.tallies.last_mut().filter(|(last, _)| *last == topic) {
            Some((_, known)) => {
                known.nulls += tally.nulls;
                known.undecodable += tally.undecodable;
            }
            None => self.tallies.push((topic, tally)),
        }
        value.is_ok_and(|value| {
            types::encode(&value, out);
            true
        })
    }
}

/// Counts the missing values of a record: protobuf cannot express them.
fn nulls(value: &Value) -> u64 {
    match value {
        Value::Null => 1,
        Value::List(items) => items.iter().map(nulls).sum(),
        Value::Struct(fields) => fields.iter().map(|(_, value)| nulls(value)).sum(),
        _ => 0,
    }
}

/// Encodes and compresses batches; one for each thread.
pub(super) struct Packer {
    compression: Compression,
    encoder: Encoder,
    chunk: Chunk,
}

enum Compression {
    None,
    Lz4,
    Zstd(Compressor<'static>),
}

/// A chunk as it is in the file.
pub(super) struct Packed {
    pub(super) header: ChunkHeader,
    pub(super) data: Vec<u8>,
    /// Message index records, one for each channel with messages.
    pub(super) index: Vec<u8>,
    pub(super) channels: Vec<Indexed>,
    /// What became of the records of topics, where it is not the message.
    pub(super) tallies: Vec<(TopicId, Tally)>,
}

/// A channel in the index of a chunk.
pub(super) struct Indexed {
    pub(super) channel: u16,
    /// Where its record starts in the index.
    pub(super) at: u64,
    /// Number of its messages.
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
                    Content::Here(len) => out.extend_from_slice(take(*len)),
                    Content::Payload(payload) => out.extend_from_slice(payload),
                    Content::Record(record) => return encoder.encode(record, out),
                }
                true
            });
        }
        batch.clear();
        buffers.batches.keep(batch);
        let (message_start_time, message_end_time) = chunk.times.unwrap_or((0, 0));
        let uncompressed_size = chunk.records.len() as u64;
        let uncompressed_crc = crc32fast::hash(&chunk.records);
        let mut data = buffers.bytes.take();
        let compression = match compression {
            Compression::None => {
                std::mem::swap(&mut chunk.records, &mut data);
                ""
            }
            Compression::Lz4 => {
                data = lz4(&chunk.records, data)?;
                "lz4"
            }
            Compression::Zstd(compressor) => {
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

/// Returns a frame of LZ4.
fn lz4(records: &[u8], out: Vec<u8>) -> Result<Vec<u8>, ExportError> {
    use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
    let info = FrameInfo::new().block_size(BlockSize::Max1MB).block_mode(BlockMode::Independent);
    let mut encoder = FrameEncoder::with_frame_info(info, out);
    encoder.write_all(records)?;
    encoder.finish().map_err(|error| ExportError::Format(error.to_string()))
}

/// Returns a record for each channel with messages.
fn message_index(index: &[Vec<MessageIndexEntry>], mut records: Vec<u8>) -> (Vec<u8>, Vec<Indexed>) {
    let mut channels = Vec::new();
    records.reserve(index.iter().map(|entries| 16 * entries.len() + 15).sum());
    for (channel, entries) in (0u16..).zip(index).filter(|(_, entries)| !entries.is_empty()) {
        channels.push(Indexed { channel, at: records.len() as u64, messages: entries.len() as u64 });
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
