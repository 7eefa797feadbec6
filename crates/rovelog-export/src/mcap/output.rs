//! Writes the records of an MCAP file and the summary at the end of the file.
//!
//! An MCAP file consists of records, each with an opcode, a length and content. The chunks with
//! messages come first. The summary at the end repeats all schemas and channels. It also has an
//! index of the chunks, so that readers can seek without reading the whole file.

use std::collections::{BTreeMap, HashMap};
use std::io::{Cursor, Write};

use ::mcap::records::{
    Channel, ChunkIndex, DataEnd, Footer, Header, Metadata, MetadataIndex, SchemaHeader, Statistics,
    SummaryOffset, op,
};
use binrw::{BinWrite, Endian};

use super::chunk::{Buffers, Chunk, IndexedChannel, Packed};
use crate::ExportError;
use crate::error::check_memory;

/// Size in bytes of the memory that is checked before a chunk is filled.
const NEXT_CHUNK_BYTES: usize = 4 << 20;

/// A part of the MCAP file that has not been compressed yet.
pub(super) enum Part {
    Metadata(Metadata),
    Chunk(Chunk),
}

/// A part of the MCAP file that is ready to be written.
pub(super) enum Written {
    Metadata(Metadata),
    Chunk(Packed),
}

/// Collects the messages of a log in chunks.
pub(super) struct Messages<'p> {
    /// Called with each part of the file, in order.
    push: &'p mut (dyn FnMut(Part) -> Result<(), ExportError> + 'p),
    chunk: Chunk,
    buffers: &'p Buffers,
    summary: Summary,
    /// Number of each schema, by its name, encoding and data.
    schemas: HashMap<(String, &'static str, Vec<u8>), u16>,
    /// Number of each channel, by its schema, topic, encoding and metadata.
    channels: HashMap<(u16, String, String, BTreeMap<String, String>), u16>,
}

/// Schemas and channels for the summary at the end of the file.
#[derive(Default)]
pub(super) struct Summary {
    /// Encoded schema records.
    schemas: Vec<u8>,
    /// Encoded channel records.
    channels: Vec<u8>,
    schema_count: u16,
    channel_count: u32,
}

impl<'p> Messages<'p> {
    pub(super) fn new(
        buffers: &'p Buffers,
        push: &'p mut (dyn FnMut(Part) -> Result<(), ExportError> + 'p),
    ) -> Self {
        Self {
            push,
            chunk: Chunk::new(buffers),
            buffers,
            summary: Summary::default(),
            schemas: HashMap::new(),
            channels: HashMap::new(),
        }
    }

    /// Adds a metadata record. MCAP does not allow metadata within a chunk, so the current chunk
    /// ends.
    pub(super) fn metadata(
        &mut self,
        name: &str,
        metadata: BTreeMap<String, String>,
    ) -> Result<(), ExportError> {
        self.end_chunk()?;
        (self.push)(Part::Metadata(Metadata { name: name.to_owned(), metadata }))
    }

    /// Returns the number of a schema. If the schema is new, it is added.
    pub(super) fn add_schema(
        &mut self,
        name: &str,
        encoding: &'static str,
        data: &[u8],
    ) -> Result<u16, ExportError> {
        let key = (name.to_owned(), encoding, data.to_owned());
        if let Some(id) = self.schemas.get(&key) {
            return Ok(*id);
        }
        let id = next_id(self.schemas.len(), "schemas")?;
        let header = SchemaHeader { id, name: name.to_owned(), encoding: encoding.to_owned() };
        let mut body = bytes(&header)?;
        body.extend_from_slice(&length(data.len())?.to_le_bytes());
        body.extend_from_slice(data);
        // A schema record is written twice. The record in the chunk is for readers that read the
        // file from its start. The record in the summary is for readers that start with any chunk.
        let start = self.summary.schemas.len();
        put(op::SCHEMA, &body, &mut self.summary.schemas);
        self.chunk.definition(&self.summary.schemas[start..]);
        self.summary.schema_count += 1;
        self.schemas.insert(key, id);
        Ok(id)
    }

    /// Returns the number of a channel. If the channel is new, it is added. The schema number 0
    /// means that the channel has no schema.
    pub(super) fn add_channel(
        &mut self,
        schema_id: u16,
        topic: &str,
        encoding: &str,
        metadata: &BTreeMap<String, String>,
    ) -> Result<u16, ExportError> {
        let key = (schema_id, topic.to_owned(), encoding.to_owned(), metadata.clone());
        if let Some(id) = self.channels.get(&key) {
            return Ok(*id);
        }
        let id = next_id(self.channels.len(), "channels")?;
        let (schema_id, topic, message_encoding, metadata) = key.clone();
        let body = bytes(&Channel { id, schema_id, topic, message_encoding, metadata })?;
        let start = self.summary.channels.len();
        put(op::CHANNEL, &body, &mut self.summary.channels);
        self.chunk.definition(&self.summary.channels[start..]);
        self.summary.channel_count += 1;
        self.channels.insert(key, id);
        Ok(id)
    }

    /// Returns the chunk to which the next message must be added.
    #[inline]
    pub(super) fn chunk(&mut self) -> Result<&mut Chunk, ExportError> {
        if self.chunk.is_full() {
            self.end_chunk()?;
        }
        Ok(&mut self.chunk)
    }

    fn end_chunk(&mut self) -> Result<(), ExportError> {
        // The buffer of a chunk grows without an error while messages are encoded, so memory for the
        // next chunk is checked before.
        check_memory(NEXT_CHUNK_BYTES)?;
        if self.chunk.is_empty() {
            return Ok(());
        }
        let next = Chunk::new(self.buffers);
        (self.push)(Part::Chunk(std::mem::replace(&mut self.chunk, next)))
    }

    /// Ends the last chunk. Returns the schemas and channels for the summary.
    pub(super) fn finish(mut self) -> Result<Summary, ExportError> {
        self.end_chunk()?;
        Ok(self.summary)
    }
}

/// The output of an MCAP file, with the data for the summary at its end.
pub(super) struct Output<'p> {
    out: &'p mut dyn Write,
    buffers: &'p Buffers,
    /// Number of bytes that have been written.
    at: u64,
    /// CRC-32 of all bytes that have been written.
    crc: crc32fast::Hasher,
    /// Index entries of the chunks that have been written.
    chunks: Vec<ChunkIndex>,
    /// Index entries of the metadata records that have been written.
    metadata: Vec<MetadataIndex>,
    /// Number of messages of each channel.
    counts: BTreeMap<u16, u64>,
    /// Minimum and maximum log time of all messages.
    times: Option<(u64, u64)>,
}

impl<'p> Output<'p> {
    pub(super) fn new(
        profile: &str,
        buffers: &'p Buffers,
        out: &'p mut dyn Write,
    ) -> Result<Self, ExportError> {
        let mut output = Self {
            out,
            buffers,
            at: 0,
            crc: crc32fast::Hasher::new(),
            chunks: Vec::new(),
            metadata: Vec::new(),
            counts: BTreeMap::new(),
            times: None,
        };
        let library = concat!("rovelog ", env!("CARGO_PKG_VERSION")).to_owned();
        let mut start = ::mcap::MAGIC.to_vec();
        put(op::HEADER, &bytes(&Header { profile: profile.to_owned(), library })?, &mut start);
        output.write(&start)?;
        Ok(output)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), ExportError> {
        self.crc.update(bytes);
        self.at += bytes.len() as u64;
        Ok(self.out.write_all(bytes)?)
    }

    /// Writes the next part of the file.
    pub(super) fn part(&mut self, part: Written) -> Result<(), ExportError> {
        let offset = self.at;
        let Packed { header, data, index, channels } = match part {
            Written::Chunk(chunk) => chunk,
            Written::Metadata(metadata) => {
                let mut record = Vec::new();
                put(op::METADATA, &bytes(&metadata)?, &mut record);
                self.write(&record)?;
                let length = record.len() as u64;
                self.metadata.push(MetadataIndex { offset, length, name: metadata.name });
                return Ok(());
            }
        };
        // A chunk without messages has the times 0 and 0. They must not extend the time range of
        // the file.
        if !channels.is_empty() {
            let (first, last) = (header.message_start_time, header.message_end_time);
            let (start, end) = self.times.unwrap_or((first, last));
            self.times = Some((start.min(first), end.max(last)));
        }
        let head = bytes(&header)?;
        let mut start = vec![op::CHUNK];
        start.extend_from_slice(&((head.len() + data.len()) as u64).to_le_bytes());
        start.extend_from_slice(&head);
        self.write(&start)?;
        self.write(&data)?;
        let chunk_length = self.at - offset;
        let index_start = self.at;
        self.write(&index)?;
        let mut message_index_offsets = BTreeMap::new();
        for IndexedChannel { channel, at, messages } in channels {
            message_index_offsets.insert(channel, index_start + at);
            *self.counts.entry(channel).or_default() += messages;
        }
        self.chunks.push(ChunkIndex {
            message_start_time: header.message_start_time,
            message_end_time: header.message_end_time,
            chunk_start_offset: offset,
            chunk_length,
            message_index_offsets,
            message_index_length: index.len() as u64,
            compression: header.compression,
            compressed_size: header.compressed_size,
            uncompressed_size: header.uncompressed_size,
        });
        self.buffers.keep(data);
        self.buffers.keep(index);
        Ok(())
    }

    /// Writes the summary and the footer. Returns the number of messages.
    pub(super) fn finish(self, summary: &Summary) -> Result<u64, ExportError> {
        let Self { out, at, crc, chunks, metadata, counts, times, .. } = self;
        let mut end = Vec::new();
        put(op::DATA_END, &bytes(&DataEnd { data_section_crc: crc.finalize() })?, &mut end);
        let data_end = end.len();
        let summary_start = at + data_end as u64;
        let (start, last) = times.unwrap_or((0, 0));
        let messages = counts.values().sum();
        let statistics = Statistics {
            message_count: messages,
            schema_count: summary.schema_count,
            channel_count: summary.channel_count,
            attachment_count: 0,
            metadata_count: length(metadata.len())?,
            chunk_count: length(chunks.len())?,
            message_start_time: start,
            message_end_time: last,
            channel_message_counts: counts,
        };
        let mut offsets = Vec::new();
        let mut group = |group_opcode: u8, records: &[u8], end: &mut Vec<u8>| {
            if !records.is_empty() {
                let group_start = at + end.len() as u64;
                offsets.push(SummaryOffset { group_opcode, group_start, group_length: records.len() as u64 });
                end.extend_from_slice(records);
            }
        };
        // The specification requires that records with the same opcode are adjacent.
        group(op::SCHEMA, &summary.schemas, &mut end);
        group(op::CHANNEL, &summary.channels, &mut end);
        group(op::STATISTICS, &all(op::STATISTICS, &[statistics])?, &mut end);
        group(op::CHUNK_INDEX, &all(op::CHUNK_INDEX, &chunks)?, &mut end);
        group(op::METADATA_INDEX, &all(op::METADATA_INDEX, &metadata)?, &mut end);
        let summary_offset_start = at + end.len() as u64;
        end.extend(all(op::SUMMARY_OFFSET, &offsets)?);
        let footer = bytes(&Footer { summary_start, summary_offset_start, summary_crc: 0 })?;
        put(op::FOOTER, &footer, &mut end);
        // The checksum is the last field of the footer. It covers the summary and all other fields
        // of the footer.
        let sum_at = end.len() - 4;
        let sum = crc32fast::hash(&end[data_end..sum_at]);
        end[sum_at..].copy_from_slice(&sum.to_le_bytes());
        end.extend_from_slice(::mcap::MAGIC);
        out.write_all(&end)?;
        out.flush()?;
        Ok(messages)
    }
}

/// Returns the number for the next schema or channel. `known` is the number of schemas or channels
/// that exist. Numbers start at 1, because the schema number 0 means that a channel has no schema.
fn next_id(known: usize, what: &str) -> Result<u16, ExportError> {
    let id = u16::try_from(known + 1);
    id.map_err(|_| ExportError::Format(format!("an MCAP file can have at most {} {what}", u16::MAX)))
}

/// Converts a length to 32 bits.
fn length(len: usize) -> Result<u32, ExportError> {
    u32::try_from(len).map_err(|_| ExportError::Format("a record has more than 4 GiB".to_owned()))
}

/// Encodes the content of an MCAP record.
fn bytes<R>(record: &R) -> Result<Vec<u8>, ExportError>
where
    R: for<'a> BinWrite<Args<'a> = ()>,
{
    let mut out = Cursor::new(Vec::new());
    record
        .write_options(&mut out, Endian::Little, ())
        .map_err(|error| ExportError::Format(error.to_string()))?;
    Ok(out.into_inner())
}

/// Writes an MCAP record with the opcode `op` and the content `body`.
fn put(op: u8, body: &[u8], out: &mut Vec<u8>) {
    out.push(op);
    out.extend_from_slice(&(body.len() as u64).to_le_bytes());
    out.extend_from_slice(body);
}

/// Encodes several MCAP records that have the opcode `op`.
fn all<R>(op: u8, records: &[R]) -> Result<Vec<u8>, ExportError>
where
    R: for<'a> BinWrite<Args<'a> = ()>,
{
    let mut out = Vec::new();
    for record in records {
        put(op, &bytes(record)?, &mut out);
    }
    Ok(out)
}
