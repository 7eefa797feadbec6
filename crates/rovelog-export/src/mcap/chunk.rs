//! Collects messages in chunks, and compresses the chunks of an MCAP file.
//!
//! The main thread encodes the messages of a [`Chunk`]. When the chunk is full, a worker thread
//! builds its message index and compresses it. The main thread writes the [`Packed`] chunks in their
//! order, so the file does not depend on the number of threads.

use std::io::Write as _;

use ::mcap::records::{ChunkHeader, MessageHeader, op};
use rovelog::core::internal::parallel::BufferPool;
#[cfg(feature = "zstd")]
use zstd::bulk::Compressor;

use super::options::McapCompression;
use crate::ExportError;
use crate::error::check_memory;

/// Size in bytes of the messages at which a chunk is full. A chunk of about 1 MB compresses well.
/// Larger chunks would make seeking slower, because viewers have to decompress whole chunks.
const CHUNK_BYTES: usize = 1 << 20;

/// Size in bytes of a message record without its content: opcode (1), record length (8), channel
/// (2), sequence number (4), log time (8) and publish time (8).
const MESSAGE_OVERHEAD: usize = 31;

/// A chunk that is not compressed yet.
pub(super) struct Chunk {
    /// Encoded records of MCAP: schemas, channels and messages.
    records: Vec<u8>,
    /// Size in bytes of the messages. For a record of the log, this is its size before it is
    /// encoded.
    size: usize,
}

impl Chunk {
    /// Creates an empty chunk.
    pub(super) fn new(buffers: &Buffers) -> Self {
        Self { records: buffers.take(), size: 0 }
    }

    /// Adds a complete schema or channel record of MCAP.
    pub(super) fn definition(&mut self, record: &[u8]) {
        self.records.extend_from_slice(record);
    }

    /// Adds a message whose content is already encoded.
    pub(super) fn message(&mut self, header: &MessageHeader, data: &[u8]) {
        self.message_of(header, data.len(), |out| {
            out.extend_from_slice(data);
            true
        });
    }

    /// Adds a message. `fill` is called to write the content of the message. If `fill` returns
    /// false, no message is added. `len` is the size of the content before it is encoded.
    #[inline]
    pub(super) fn message_of(
        &mut self,
        header: &MessageHeader,
        len: usize,
        fill: impl FnOnce(&mut Vec<u8>) -> bool,
    ) {
        let MessageHeader { channel_id, sequence, log_time, publish_time } = *header;
        self.size += MESSAGE_OVERHEAD + len;
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
    }

    pub(super) fn is_full(&self) -> bool {
        self.size > CHUNK_BYTES
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty() && self.size == 0
    }
}

/// Buffers that are used again for later chunks.
#[derive(Default)]
pub(super) struct Buffers(BufferPool<Vec<u8>>);

impl Buffers {
    fn take(&self) -> Vec<u8> {
        self.0.take()
    }

    /// Makes a buffer available for later chunks.
    pub(super) fn keep(&self, mut buffer: Vec<u8>) {
        buffer.clear();
        self.0.put(buffer);
    }
}

/// Compresses chunks. Each thread has its own packer.
pub(super) enum Packer {
    None,
    Lz4,
    #[cfg(feature = "zstd")]
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
        Ok(match compression {
            McapCompression::None => Self::None,
            McapCompression::Lz4 => Self::Lz4,
            #[cfg(feature = "zstd")]
            McapCompression::Zstd(level) => Self::Zstd(Compressor::new(level)?),
            #[cfg(not(feature = "zstd"))]
            McapCompression::Zstd(_) => {
                return Err(ExportError::NotBuiltIn { what: "zstd", feature: "zstd" });
            }
        })
    }

    /// Compresses a chunk.
    pub(super) fn pack(&mut self, chunk: Chunk, buffers: &Buffers) -> Result<Packed, ExportError> {
        let records = chunk.records;
        // The index, the compressed records, and the state of the compressor.
        check_memory(3 * records.len())?;
        let MessageIndex { data: index, channels, times } = message_index(&records, buffers.take());
        let (message_start_time, message_end_time) = times.unwrap_or((0, 0));
        let uncompressed_size = records.len() as u64;
        let uncompressed_crc = crc32fast::hash(&records);
        let (compression, data) = match self {
            Self::None => ("", records),
            Self::Lz4 => {
                let data = lz4(&records, buffers.take())?;
                buffers.keep(records);
                ("lz4", data)
            }
            #[cfg(feature = "zstd")]
            Self::Zstd(compressor) => {
                let mut data = buffers.take();
                // The compressor does not enlarge the buffer itself.
                data.reserve(zstd::zstd_safe::compress_bound(records.len()));
                compressor.compress_to_buffer(&records, &mut data)?;
                buffers.keep(records);
                ("zstd", data)
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
        Ok(Packed { header, data, index, channels })
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

/// Message index of a chunk.
struct MessageIndex {
    /// Message index records of MCAP, one for each channel that has messages.
    data: Vec<u8>,
    /// The channels that have messages, in the order of `data`.
    channels: Vec<IndexedChannel>,
    /// Minimum and maximum log time of the messages.
    times: Option<(u64, u64)>,
}

/// A message in the message index.
struct IndexedMessage {
    channel: u16,
    log_time: u64,
    /// Offset of the message from the start of the chunk.
    at: u64,
}

/// Returns the messages of a chunk. `records` are its encoded records.
fn messages(records: &[u8]) -> impl Iterator<Item = IndexedMessage> {
    let number = |at: usize| records.get(at..).and_then(<[u8]>::first_chunk).copied().map(u64::from_le_bytes);
    let mut next = 0;
    std::iter::from_fn(move || {
        loop {
            let at = next;
            next += 9 + usize::try_from(number(at + 1)?).ok()?;
            if records[at] == op::MESSAGE {
                let channel = u16::from_le_bytes([records[at + 9], records[at + 10]]);
                return Some(IndexedMessage { channel, log_time: number(at + 15)?, at: at as u64 });
            }
        }
    })
}

/// Returns the message index of a chunk. `data` is an empty buffer.
fn message_index(records: &[u8], mut data: Vec<u8>) -> MessageIndex {
    let mut counts: Vec<u32> = Vec::new();
    let mut times = None;
    for message in messages(records) {
        let channel = usize::from(message.channel);
        if counts.len() <= channel {
            counts.resize(channel + 1, 0);
        }
        counts[channel] += 1;
        let (first, last) = times.unwrap_or((message.log_time, message.log_time));
        times = Some((first.min(message.log_time), last.max(message.log_time)));
    }
    let mut channels = Vec::new();
    // For each channel, the offset in `data` of the entry for its next message.
    let mut entries = vec![0; counts.len()];
    for ((channel, count), entry) in (0..).zip(counts).zip(&mut entries).filter(|((_, count), _)| *count > 0)
    {
        channels.push(IndexedChannel { channel, at: data.len() as u64, messages: count.into() });
        let bytes = 16 * count;
        data.push(op::MESSAGE_INDEX);
        data.extend_from_slice(&(6 + u64::from(bytes)).to_le_bytes());
        data.extend_from_slice(&channel.to_le_bytes());
        data.extend_from_slice(&bytes.to_le_bytes());
        *entry = data.len();
        data.resize(data.len() + bytes as usize, 0);
    }
    for IndexedMessage { channel, log_time, at } in messages(records) {
        let entry = &mut entries[usize::from(channel)];
        data[*entry..*entry + 8].copy_from_slice(&log_time.to_le_bytes());
        data[*entry + 8..*entry + 16].copy_from_slice(&at.to_le_bytes());
        *entry += 16;
    }
    MessageIndex { data, channels, times }
}
