//! The file itself: its records behind one another, and the summary at its end.

use std::collections::{BTreeMap, HashMap};
use std::io::{Cursor, Write};

use ::mcap::records::{
    Channel, ChunkIndex, DataEnd, Footer, Header, Metadata, MetadataIndex, SchemaHeader, Statistics,
    SummaryOffset, op,
};
use binrw::{BinWrite, Endian};
use rovelog::TopicId;

use super::chunk::{Batch, Buffers, Indexed, Packed, Tally};
use crate::ExportError;

/// A piece of the file, in its order.
pub(super) enum Part<'a> {
    Metadata(Metadata),
    Chunk(Batch<'a>),
}

/// A piece of the file as it is written.
pub(super) enum Written {
    Metadata(Metadata),
    Chunk(Packed),
}

/// Collects messages of a log (`'a`) to chunks, which `push` hands on.
pub(super) struct Messages<'p, 'a> {
    push: &'p mut (dyn FnMut(Part<'a>) -> Result<(), ExportError> + 'p),
    batch: Batch<'a>,
    buffers: &'p Buffers<'a>,
    summary: Summary,
    schemas: HashMap<(String, &'static str, Vec<u8>), u16>,
    channels: HashMap<(u16, String, String, BTreeMap<String, String>), u16>,
}

/// What the end of the file says about schemas and channels.
#[derive(Default)]
pub(super) struct Summary {
    /// Their records.
    schemas: Vec<u8>,
    channels: Vec<u8>,
    schema_count: u16,
    channel_count: u32,
}

impl<'p, 'a> Messages<'p, 'a> {
    pub(super) fn new(
        buffers: &'p Buffers<'a>,
        push: &'p mut (dyn FnMut(Part<'a>) -> Result<(), ExportError> + 'p),
    ) -> Self {
        Self {
            push,
            batch: buffers.batches.take(),
            buffers,
            summary: Summary::default(),
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
        let start = self.summary.schemas.len();
        put(op::SCHEMA, &body, &mut self.summary.schemas);
        self.batch.definition(&self.summary.schemas[start..]);
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
        let start = self.summary.channels.len();
        put(op::CHANNEL, &body, &mut self.summary.channels);
        self.batch.definition(&self.summary.channels[start..]);
        self.summary.channel_count += 1;
        self.channels.insert(key, id);
        Ok(id)
    }

    /// Returns the batch to which the next message belongs.
    pub(super) fn batch(&mut self) -> Result<&mut Batch<'a>, ExportError> {
        if self.batch.is_full() {
            self.end_chunk()?;
        }
        Ok(&mut self.batch)
    }

    fn end_chunk(&mut self) -> Result<(), ExportError> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let next = self.buffers.batches.take();
        (self.push)(Part::Chunk(std::mem::replace(&mut self.batch, next)))
    }

    /// Hands on the last chunk. Returns what is known of schemas and channels.
    pub(super) fn finish(mut self) -> Result<Summary, ExportError> {
        self.end_chunk()?;
        Ok(self.summary)
    }
}

/// The output, and what its end says about its parts.
pub(super) struct Output<'p, 'a> {
    out: &'p mut dyn Write,
    buffers: &'p Buffers<'a>,
    at: u64,
    crc: crc32fast::Hasher,
    chunks: Vec<ChunkIndex>,
    metadata: Vec<MetadataIndex>,
    /// Number of messages by channel.
    counts: BTreeMap<u16, u64>,
    times: Option<(u64, u64)>,
    tallies: BTreeMap<TopicId, Tally>,
}

impl<'p, 'a> Output<'p, 'a> {
    pub(super) fn new(
        profile: &str,
        buffers: &'p Buffers<'a>,
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
            tallies: BTreeMap::new(),
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

    /// Writes the next part.
    pub(super) fn part(&mut self, part: Written) -> Result<(), ExportError> {
        let offset = self.at;
        let Packed { header, data, index, channels, tallies } = match part {
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
        for (topic, Tally { undecodable, nulls }) in tallies {
            let all = self.tallies.entry(topic).or_default();
            all.undecodable += undecodable;
            all.nulls += nulls;
        }
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
        for Indexed { channel, at, messages } in channels {
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

    /// Writes the end of the file. Returns the number of messages, and what became of the records of
    /// topics, where it is not a message.
    pub(super) fn finish(self, summary: &Summary) -> Result<(u64, BTreeMap<TopicId, Tally>), ExportError> {
        let Self { out, at, crc, chunks, metadata, counts, times, tallies, .. } = self;
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
        out.flush()?;
        Ok((messages, tallies))
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
