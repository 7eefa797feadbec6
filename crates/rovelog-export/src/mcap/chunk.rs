//! Chunks: messages are collected in one buffer, which is compressed at once, by any thread.

use std::io::Write as _;

use ::mcap::records::{ChunkHeader, MessageHeader, MessageIndexEntry, op};
use rovelog::core::parallel;
use zstd::bulk::Compressor;

use super::options::McapCompression;
use crate::ExportError;

/// Size of the messages from which on a chunk is complete.
pub(super) const FULL: usize = 1 << 20;

/// Schemas, channels and messages that are compressed together.
#[derive(Default)]
pub(super) struct Chunk {
    /// Records, one behind the other.
    pub(super) records: Vec<u8>,
    /// First and last time of the messages.
    pub(super) times: Option<(u64, u64)>,
    /// By channel: time and offset of each message.
    index: Vec<Vec<MessageIndexEntry>>,
}

impl Chunk {
    /// Adds a message.
    pub(super) fn message(&mut self, header: MessageHeader, data: &[u8]) {
        let MessageHeader { channel_id, sequence, log_time, publish_time } = header;
        let channel = usize::from(channel_id);
        if self.index.len() <= channel {
            self.index.resize_with(channel + 1, Vec::new);
        }
        self.index[channel].push(MessageIndexEntry { log_time, offset: self.records.len() as u64 });
        let (first, last) = self.times.unwrap_or((log_time, log_time));
        self.times = Some((first.min(log_time), last.max(log_time)));
        // One write for the fields of fixed size: operation, length, channel, sequence, times.
        let mut head = [0; 31];
        head[0] = op::MESSAGE;
        head[1..9].copy_from_slice(&(22 + data.len() as u64).to_le_bytes());
        head[9..11].copy_from_slice(&channel_id.to_le_bytes());
        head[11..15].copy_from_slice(&sequence.to_le_bytes());
        head[15..23].copy_from_slice(&log_time.to_le_bytes());
        head[23..].copy_from_slice(&publish_time.to_le_bytes());
        self.records.extend_from_slice(&head);
        self.records.extend_from_slice(data);
    }
}

/// Chunks and buffers that were used before.
#[derive(Default)]
pub(super) struct Spare {
    pub(super) chunks: parallel::Spare<Chunk>,
    buffers: parallel::Spare<Vec<u8>>,
}

impl Spare {
    fn keep_chunk(&self, mut chunk: Chunk) {
        chunk.records.clear();
        chunk.times = None;
        chunk.index.iter_mut().for_each(Vec::clear);
        self.chunks.keep(chunk);
    }

    /// Keeps a buffer for another chunk.
    pub(super) fn keep(&self, mut buffer: Vec<u8>) {
        buffer.clear();
        self.buffers.keep(buffer);
    }
}

/// Compresses chunks; one for each thread.
pub(super) enum Packer {
    None,
    Lz4,
    Zstd(Compressor<'static>),
}

/// A chunk as it is in the file.
pub(super) struct Packed {
    pub(super) header: ChunkHeader,
    pub(super) data: Vec<u8>,
    /// Message index records, and where each channel's starts in them.
    pub(super) index: Vec<u8>,
    pub(super) index_offsets: Vec<(u16, u64)>,
}

impl Packer {
    pub(super) fn new(compression: McapCompression) -> Result<Self, ExportError> {
        Ok(match compression {
            McapCompression::None => Self::None,
            McapCompression::Lz4 => Self::Lz4,
            McapCompression::Zstd(level) => Self::Zstd(Compressor::new(level)?),
        })
    }

    pub(super) fn pack(&mut self, mut chunk: Chunk, spare: &Spare) -> Result<Packed, ExportError> {
        let (message_start_time, message_end_time) = chunk.times.unwrap_or((0, 0));
        let records = &mut chunk.records;
        let uncompressed_size = records.len() as u64;
        let uncompressed_crc = crc32fast::hash(records);
        let (compression, data) = match self {
            Self::None => ("", std::mem::replace(records, spare.buffers.take())),
            Self::Lz4 => ("lz4", lz4(records, spare.buffers.take())?),
            Self::Zstd(compressor) => {
                let mut data = spare.buffers.take();
                data.reserve(zstd::zstd_safe::compress_bound(records.len()));
                compressor.compress_to_buffer(records, &mut data)?;
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
        let (index, index_offsets) = message_index(&chunk.index, spare.buffers.take());
        spare.keep_chunk(chunk);
        Ok(Packed { header, data, index, index_offsets })
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
fn message_index(index: &[Vec<MessageIndexEntry>], mut records: Vec<u8>) -> (Vec<u8>, Vec<(u16, u64)>) {
    let mut offsets = Vec::new();
    records.reserve(index.iter().map(|entries| 16 * entries.len() + 15).sum());
    for (channel, entries) in (0u16..).zip(index).filter(|(_, entries)| !entries.is_empty()) {
        offsets.push((channel, records.len() as u64));
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
    (records, offsets)
}
