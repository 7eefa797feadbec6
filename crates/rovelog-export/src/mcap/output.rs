//! The file itself: its records behind one another, and the summary at its end.

use std::collections::{BTreeMap, HashMap};
use std::io::{Cursor, Write};

use ::mcap::records::{
    Channel, ChunkIndex, DataEnd, Footer, Header, MessageHeader, Metadata, MetadataIndex, SchemaHeader,
    Statistics, SummaryOffset, op,
};
use binrw::{BinWrite, Endian};

use super::chunk::{Chunk, FULL, Packed, Spare};
use crate::ExportError;

/// A piece of the file, in its order.
pub(super) enum Part {
    Metadata(Metadata),
    Chunk(Chunk),
}

/// A piece of the file as it is written.
pub(super) enum Written {
    Metadata(Metadata),
    Chunk(Packed),
}

/// Collects messages to chunks, which `push` hands on.
pub(super) struct Messages<'a> {
    push: &'a mut (dyn FnMut(Part) -> Result<(), ExportError> + 'a),
    chunk: Chunk,
    spare: &'a Spare,
    summary: Summary,
    schemas: HashMap<(String, &'static str, Vec<u8>), u16>,
    channels: HashMap<(u16, String, String, BTreeMap<String, String>), u16>,
}

/// What the end of the file says about its messages.
#[derive(Default)]
pub(super) struct Summary {
    /// Records of schemas and channels.
    schemas: Vec<u8>,
    channels: Vec<u8>,
    /// Number of messages by channel; that of channel 0, which there is not, is 0.
    counts: Vec<u64>,
    schema_count: u16,
    times: Option<(u64, u64)>,
}

impl<'a> Messages<'a> {
    pub(super) fn new(
        spare: &'a Spare,
        push: &'a mut (dyn FnMut(Part) -> Result<(), ExportError> + 'a),
    ) -> Self {
        Self {
            push,
            chunk: spare.chunks.take(),
            spare,
            summary: Summary { counts: vec![0], ..Summary::default() },
            schemas: HashMap::new(),
            channels: HashMap::new(),
        }
    }

    pub(super) fn metadata(
        &mut self,
        name: &str,
        metadata: BTreeMap<String, String>,
    ) -> Result<(), ExportError> {
        self.end_chunk()?;
        (self.push)(Part::Metadata(Metadata { name: name.to_owned(), metadata }))
    }

    /// Returns the number of a schema, which is added if it is new.
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
        for out in [&mut self.chunk.records, &mut self.summary.schemas] {
            put(op::SCHEMA, &body, out);
        }
        self.summary.schema_count += 1;
        self.schemas.insert(key, id);
        Ok(id)
    }

    /// Returns the number of a channel, which is added if it is new; schema 0 is none.
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
        for out in [&mut self.chunk.records, &mut self.summary.channels] {
            put(op::CHANNEL, &body, out);
        }
        self.summary.counts.push(0);
        self.channels.insert(key, id);
        Ok(id)
    }

    pub(super) fn write(&mut self, header: MessageHeader, data: &[u8]) -> Result<(), ExportError> {
        if self.chunk.records.len() > FULL {
            self.end_chunk()?;
        }
        let (first, last) = self.summary.times.unwrap_or((header.log_time, header.log_time));
        self.summary.times = Some((first.min(header.log_time), last.max(header.log_time)));
        self.summary.counts[usize::from(header.channel_id)] += 1;
        self.chunk.message(header, data);
        Ok(())
    }

    fn end_chunk(&mut self) -> Result<(), ExportError> {
        if self.chunk.records.is_empty() {
            return Ok(());
        }
        let next = self.spare.chunks.take();
        (self.push)(Part::Chunk(std::mem::replace(&mut self.chunk, next)))
    }

    /// Hands on the last chunk. Returns what is known of all messages.
    pub(super) fn finish(mut self) -> Result<Summary, ExportError> {
        self.end_chunk()?;
        Ok(self.summary)
    }
}

/// The output, and what its end says about its parts.
pub(super) struct Output<'a> {
    out: &'a mut dyn Write,
    spare: &'a Spare,
    at: u64,
    crc: crc32fast::Hasher,
    chunks: Vec<ChunkIndex>,
    metadata: Vec<MetadataIndex>,
}

impl<'a> Output<'a> {
    pub(super) fn new(profile: &str, spare: &'a Spare, out: &'a mut dyn Write) -> Result<Self, ExportError> {
        let crc = crc32fast::Hasher::new();
        let mut output = Self { out, spare, at: 0, crc, chunks: Vec::new(), metadata: Vec::new() };
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

    /// Writes the next part.
    pub(super) fn part(&mut self, part: Written) -> Result<(), ExportError> {
        let offset = self.at;
        let Packed { header, data, index, index_offsets } = match part {
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
        let head = bytes(&header)?;
        let mut start = vec![op::CHUNK];
        start.extend_from_slice(&((head.len() + data.len()) as u64).to_le_bytes());
        start.extend_from_slice(&head);
        self.write(&start)?;
        self.write(&data)?;
        let chunk_length = self.at - offset;
        let index_start = self.at;
        self.write(&index)?;
        let placed = index_offsets.into_iter().map(|(channel, at)| (channel, index_start + at));
        self.chunks.push(ChunkIndex {
            message_start_time: header.message_start_time,
            message_end_time: header.message_end_time,
            chunk_start_offset: offset,
            chunk_length,
            message_index_offsets: placed.collect(),
            message_index_length: index.len() as u64,
            compression: header.compression,
            compressed_size: header.compressed_size,
            uncompressed_size: header.uncompressed_size,
        });
        self.spare.keep(data);
        self.spare.keep(index);
        Ok(())
    }

    /// Writes the end of the file.
    pub(super) fn finish(self, summary: &Summary) -> Result<(), ExportError> {
        let Self { out, at, crc, chunks, metadata, .. } = self;
        let mut end = Vec::new();
        put(op::DATA_END, &bytes(&DataEnd { data_section_crc: crc.finalize() })?, &mut end);
        let data_end = end.len();
        let summary_start = at + data_end as u64;
        let (start, last) = summary.times.unwrap_or((0, 0));
        let counts = (0..).zip(&summary.counts).filter(|(_, count)| **count > 0);
        let statistics = Statistics {
            message_count: summary.counts.iter().sum(),
            schema_count: summary.schema_count,
            channel_count: length(summary.counts.len() - 1)?,
            attachment_count: 0,
            metadata_count: length(metadata.len())?,
            chunk_count: length(chunks.len())?,
            message_start_time: start,
            message_end_time: last,
            channel_message_counts: counts.map(|(channel, count)| (channel, *count)).collect(),
        };
        let mut offsets = Vec::new();
        let mut group = |group_opcode: u8, records: &[u8], end: &mut Vec<u8>| {
            if !records.is_empty() {
                let group_start = at + end.len() as u64;
                offsets.push(SummaryOffset { group_opcode, group_start, group_length: records.len() as u64 });
                end.extend_from_slice(records);
            }
        };
        group(op::SCHEMA, &summary.schemas, &mut end);
        group(op::CHANNEL, &summary.channels, &mut end);
        group(op::STATISTICS, &all(op::STATISTICS, &[statistics])?, &mut end);
        group(op::CHUNK_INDEX, &all(op::CHUNK_INDEX, &chunks)?, &mut end);
        group(op::METADATA_INDEX, &all(op::METADATA_INDEX, &metadata)?, &mut end);
        let summary_offset_start = at + end.len() as u64;
        end.extend(all(op::SUMMARY_OFFSET, &offsets)?);
        let footer = bytes(&Footer { summary_start, summary_offset_start, summary_crc: 0 })?;
        put(op::FOOTER, &footer, &mut end);
        // The sum is the last field of the footer, and of everything before it in the summary.
        let sum_at = end.len() - 4;
        let sum = crc32fast::hash(&end[data_end..sum_at]);
        end[sum_at..].copy_from_slice(&sum.to_le_bytes());
        end.extend_from_slice(::mcap::MAGIC);
        out.write_all(&end)?;
        Ok(out.flush()?)
    }
}

/// Returns the next number; they start at 1.
fn next_id(known: usize, what: &str) -> Result<u16, ExportError> {
    let id = u16::try_from(known + 1);
    id.map_err(|_| ExportError::Format(format!("an MCAP file has at most {} {what}", u16::MAX)))
}

fn length(len: usize) -> Result<u32, ExportError> {
    u32::try_from(len).map_err(|_| ExportError::Format("a record of more than 4 GiB".to_owned()))
}

/// Returns the content of a record.
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

/// Writes a record with this content.
fn put(op: u8, body: &[u8], out: &mut Vec<u8>) {
    out.push(op);
    out.extend_from_slice(&(body.len() as u64).to_le_bytes());
    out.extend_from_slice(body);
}

/// Returns records of one kind.
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
