//! Writes V2.0 bags from V2.0 bags. Messages and connection records are copied byte for byte into
//! new chunks.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io::{Cursor, Write};
use std::ops::Range;
use std::sync::Arc;

use binrw::BinWrite;
use rovelog_core::internal::text::count;
use rovelog_core::{Detail, LogReader, Merged, Record, Recovery, Select, Sliced, Value};

use super::latched_detail;
use super::lost::{self, LostMessage};
use crate::diagnostics as rules;
use crate::error::BagError;
use crate::headers::{Field, Name, fields_of};
use crate::message::usize_of;
use crate::reader::BagReader;
use crate::v2::wire::ConnectionHeader;
use crate::v2::{
    self, Compression, HeadReader, MergeForm, MessageMerge, NewConnection, Origin, OriginRecord, Writer,
};
use crate::version::Version;

/// A record that is copied to the new bag.
enum Part<'a> {
    /// A message, and the index of the bag that contains the message. The payload of the record is
    /// the whole message record.
    Message(usize, &'a Record<'a>),
    /// A record inside a chunk whose op (record type) is undefined.
    Other(&'a [u8]),
    /// A record between chunks whose op (record type) is undefined.
    Between(&'a [u8]),
}

/// Callback that receives the records to copy.
type Sink<'a> = dyn FnMut(Part<'_>) -> Result<(), BagError> + 'a;

/// Function that passes all records to a callback, in the order of the new bag.
type Each<'a> = dyn Fn(&mut Sink<'_>) -> Result<(), BagError> + 'a;

/// Totals of a V2.0 bag that was written.
pub(super) struct Written {
    /// Number of messages in the new bag.
    records: u64,
    /// Number of topics that have messages in the new bag.
    topics: usize,
    /// Size in bytes of the new bag.
    pub(super) bytes: u64,
    /// Number of records that were not copied, because they are too large for a chunk.
    too_large: u64,
}

impl Written {
    /// Describes the records that were not copied because they are too large for a chunk. Returns
    /// `None` if there are no such records.
    fn left_out(&self) -> Option<String> {
        (self.too_large > 0).then(|| count(self.too_large, "record") + " that are too large for a chunk")
    }

    fn left_out_detail(&self) -> Option<Detail> {
        self.left_out().map(|text| Detail::new("too_large", text, Value::count(self.too_large)))
    }
}

/// Writes a bag with the records that `each` provides, and with all connections of the topics for
/// which `keeps` returns true. Topics are given by their index. `each` may be called twice.
fn write(
    logs: &[&BagReader],
    keeps: &dyn Fn(u32) -> bool,
    out: &mut dyn Write,
    each: &Each<'_>,
) -> Result<Written, BagError> {
    let compression = logs.first().map_or(Compression::None, |log| log.compression());
    let (written, bytes) = v2::write(out, compression, |writer| lay(logs, keeps, writer, each))?;
    Ok(Written { bytes, ..written })
}

fn lay(
    logs: &[&BagReader],
    keeps: &dyn Fn(u32) -> bool,
    writer: &mut Writer<'_>,
    each: &Each<'_>,
) -> Result<Written, BagError> {
    let mut ids: HashMap<(usize, u32), u32> = HashMap::new();
    let mut topics: std::collections::BTreeSet<Vec<u8>> = std::collections::BTreeSet::new();
    let mut written = Written { records: 0, topics: 0, bytes: 0, too_large: 0 };
    let mut heads = HeadReader::default();
    each(&mut |part| {
        let is_written = match part {
            Part::Message(source, record) => {
                let key = (source, record.origin());
                let id = if let Some(id) = ids.get(&key) {
                    *id
                } else {
                    let connection = logs[source].declaration(record);
                    topics.insert(connection.topic.clone());
                    let id = writer.connect_with(connection)?;
                    ids.insert(key, id);
                    id
                };
                // The reader has found a message at this offset, so reading its head succeeds.
                let Some((time, payload_at)) = heads.read(&record.payload) else { return Ok(()) };
                let payload = &record.payload[payload_at..];
                let is_written = writer.message_with(id, time, heads.other_fields(), payload)?;
                written.records += u64::from(is_written);
                is_written
            }
            Part::Other(record) => writer.other(record)?,
            Part::Between(record) => writer.other_between(record).map(|()| true)?,
        };
        written.too_large += u64::from(!is_written);
        Ok(())
    })?;
    for (source, log) in logs.iter().enumerate() {
        for (number, origin) in (1..).zip(&log.scanner.content.origins) {
            let is_unused = !ids.contains_key(&(source, number)) && keeps(origin.connection);
            if let Some(connection) = declared(log, origin).filter(|_| is_unused) {
                writer.connect_with(connection)?;
            }
        }
    }
    written.topics = topics.len();
    Ok(written)
}

/// Passes the selected records to `sink` in file order. Also passes the records whose op (record type)
/// is unknown, from the same chunks and from between the chunks.
fn copy(bag: &BagReader, select: &Select, sink: &mut Sink<'_>) -> Result<(), BagError> {
    let mut records = MessageMerge::new(bag, select, MergeForm { in_file_order: true, with_head: true });
    let mut between = bag.between().peekable();
    loop {
        let record = records.next();
        let at = record.as_ref().map_or(u64::MAX, |record| record.offset);
        while let Some((_, other)) = between.next_if(|(start, _)| *start < at) {
            sink(Part::Between(other))?;
        }
        for other in records.take_unknown() {
            sink(Part::Other(&other))?;
        }
        let Some(record) = record else { return Ok(()) };
        sink(Part::Message(0, &record))?;
    }
}

/// Returns the connection record that declares `origin` in the new bag. Returns `None` if the
/// original bag does not declare it.
fn declared(bag: &BagReader, origin: &Origin) -> Option<NewConnection> {
    let record = origin.record.as_ref()?;
    let mut data = data_of(record);
    if let Some(text) = bag.connections()[origin.connection as usize].borrowed_definition() {
        data = with_definition(&data, text);
    }
    let (topic, other_fields) = (record.topic.to_vec(), record.other_fields.to_vec());
    Some(NewConnection { topic, data, other_fields })
}

/// Returns the data of a connection, in which `text` replaces the message definition.
fn with_definition(data: &[u8], text: &[u8]) -> Vec<u8> {
    let mut changed = Cursor::new(Vec::new());
    for Field { name, value } in fields_of(data) {
        let value = if name == Name::MessageDefinition.text() { text } else { value };
        Field { name, value }.write(&mut changed).expect("memory takes all");
    }
    changed.into_inner()
}

/// Returns the data of a connection for the new bag. If required fields are missing or damaged,
/// placeholders are added, because other readers refuse a bag without these fields.
fn data_of(record: &OriginRecord) -> Vec<u8> {
    if record.is_complete() {
        return record.data.to_vec();
    }
    let unknown = ConnectionHeader::unknown(&record.topic);
    let Some(stated) = ConnectionHeader::read(&record.data) else { return unknown.to_data() };
    let missing = ConnectionHeader {
        ty: unknown.ty.filter(|_| stated.ty.is_none()),
        md5sum: unknown.md5sum.filter(|_| stated.md5sum.is_none()),
        message_definition: unknown.message_definition.filter(|_| stated.message_definition.is_none()),
        ..ConnectionHeader::default()
    };
    [&*record.data, &missing.to_data()].concat()
}

impl BagReader {
    /// Sets the compression of chunks in V2.0 bags that are written by recovery, slicing, merging
    /// and reindexing. By default, the compression of the first chunk is used. A merge uses the
    /// compression of the first bag.
    pub fn set_compression(&mut self, compression: Compression) {
        self.compression = Some(compression);
    }

    /// Returns whether a compression was set and at least one stored chunk has another compression.
    pub(super) fn recompresses(&self) -> bool {
        let others =
            |wanted| self.scanner.content.chunks.iter().any(|chunk| chunk.extent.compression != Some(wanted));
        self.compression.is_some_and(others)
    }

    /// Returns the compression of chunks in new bags.
    fn compression(&self) -> Compression {
        let stored = || self.scanner.content.chunks.first().and_then(|chunk| chunk.extent.compression);
        self.compression.or_else(stored).unwrap_or_default()
    }

    /// Returns the records between chunks whose op (record type) is undefined, each with its
    /// offset.
    fn between(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let others = self.scanner.content.unknown_records.iter();
        others.map(|range| (range.start, &self.bytes[usize_of(range.start)..usize_of(range.end)]))
    }

    /// Returns the content of the connection record to which a message belongs.
    fn declaration(&self, record: &Record<'_>) -> NewConnection {
        let origin = (record.origin() as usize).checked_sub(1);
        let origin = origin.and_then(|number| self.scanner.content.origins.get(number));
        if let Some(connection) = origin.and_then(|origin| declared(self, origin)) {
            return connection;
        }
        let topic = record.topic.name.as_bytes();
        let data = ConnectionHeader::unknown(topic).to_data();
        NewConnection { topic: topic.to_vec(), data, other_fields: Vec::new() }
    }

    /// Returns whether the bag has the form in which a recorder leaves a closed bag.
    pub(super) fn is_closed(&self) -> bool {
        let wrong = [
            &rules::CHUNK_OPEN,
            &rules::CHUNK_LENGTH,
            &rules::CHUNK_SIZE,
            &rules::CHUNK_HEADLESS,
            &rules::OP_DAMAGED,
            &rules::OLD_INDEX,
            &rules::INDEX_LENGTH,
            &rules::INDEX_POS_WRONG,
            &rules::CONNECTION_DAMAGED,
            &rules::ZEROS_BEFORE_INDEX,
        ];
        self.is_as_recorded("#ROSBAG V2.0", &wrong)
    }

    /// Writes all messages of the bag to a V2.0 bag with an index.
    pub(super) fn reindex_chunked(&self, out: &mut dyn Write) -> Result<Written, BagError> {
        write(&[self], &|_| true, out, &|sink| copy(self, &Select::all(), sink))
    }

    /// Returns details about chunks for the report of a recovery: the state of each chunk, and the
    /// lost messages that the index data list.
    fn chunk_details(&self) -> Vec<Detail> {
        let content = &self.scanner.content;
        let chunks = content.chunks.iter().map(|chunk| {
            let lost =
                chunk.lost_ranges.iter().map(|lost| [Value::count(lost.start), Value::count(lost.end)]);
            [
                Value::count(chunk.extent.at),
                Value::count(chunk.extent.end),
                Value::Text(chunk.state().to_owned()),
                Value::count(chunk.decompressed_len),
                Value::count(chunk.messages.count),
                Value::table(["start", "end"], lost),
            ]
        });
        let chunks = Value::table(["offset", "end", "state", "unpacked", "messages", "lost"], chunks);
        let mut details = vec![Detail::hidden("chunks", chunks)];
        details.extend(lost::detail(&self.lost_in_chunks()));
        details
    }

    /// Returns the lost messages that the index data list. The offset of such a message is the
    /// offset of its chunk.
    fn lost_in_chunks(&self) -> Vec<LostMessage> {
        let content = &self.scanner.content;
        let mut lost_messages = Vec::new();
        for (number, chunk) in content.chunks.iter().enumerate() {
            let indexed_count: u64 = chunk.index.tallies.values().map(|tally| tally.count).sum();
            // No message of the chunk is lost if the chunk has at least as many messages as its
            // index data list.
            if indexed_count <= chunk.messages.count {
                continue;
            }
            // Messages are compared with index entries by time, because missing or added bytes may
            // have changed their offsets.
            let mut found = self.messages_of(number);
            for (conn, entry) in chunk.entries(&self.bytes) {
                // Each message in the chunk matches at most one index entry.
                let left = found.get_mut(&(conn, entry.time.nanos())).filter(|left| **left > 0);
                if let Some(left) = left {
                    *left -= 1;
                } else {
                    let topic = match content.origin_at(number, conn) {
                        None => format!("conn {conn}").into_bytes().into(),
                        Some(origin) => {
                            let record = content.origins[origin as usize].record.as_ref();
                            record.map_or_else(Arc::default, |record| Arc::clone(&record.topic))
                        }
                    };
                    let (nanos, offset) = (entry.time.nanos(), chunk.extent.at);
                    lost_messages.push(LostMessage { topic, nanos, offset });
                }
            }
        }
        lost_messages
    }
}

/// Writes all readable records of a V2.0 bag to `out`. `lost` are the unreadable ranges of the bag.
pub(super) fn recover(
    bag: &BagReader,
    lost: Vec<Range<u64>>,
    out: &mut dyn Write,
) -> Result<Recovery, BagError> {
    let written = bag.reindex_chunked(out)?;
    let size = bag.bytes.len() as u64;
    // The new chunks get new checksums, so the report lists the original chunks whose checksum was
    // wrong.
    let wrong = bag.diagnostics().list().iter().filter(|found| found.rule == &rules::CHUNK_CHECKSUM);
    let lost = lost.into_iter().chain(wrong.map(|found| found.range.clone())).collect();
    let mut details = bag.chunk_details();
    details.push(bag.ledger_detail());
    details.extend(written.left_out_detail());
    let missing_records = bag.info().lost.missing_records;
    Ok(Recovery { records: written.records, missing_records, details, ..Recovery::of(size, lost, &[]) })
}

pub(super) fn slice(bag: &BagReader, select: &Select, out: &mut dyn Write) -> Result<Sliced, BagError> {
    let (before, latched) = bag.records_before(select);
    let kept: Vec<bool> = bag.topics().iter().map(|topic| select.keeps_topic(topic)).collect();
    let written = write(&[bag], &|topic| kept[topic as usize], out, &|sink| {
        before.iter().try_for_each(|record| sink(Part::Message(0, record)))?;
        copy(bag, select, sink)
    })?;
    let details = written.left_out_detail().into_iter().chain(latched_detail(latched)).collect();
    let (records, topics, bytes) = (written.records, written.topics, written.bytes);
    Ok(Sliced { records, topics, bytes, details, ..Sliced::default() })
}

pub(super) fn merge(logs: &[&BagReader], out: &mut dyn Write) -> Result<Merged, BagError> {
    if logs.iter().any(|log| log.version() != Version::V2_0) {
        return Err(BagError::MixedVersions);
    }
    let written = write(logs, &|_| true, out, &|sink| {
        let by_time = MergeForm { in_file_order: false, with_head: true };
        let mut orders: Vec<_> =
            logs.iter().map(|log| MessageMerge::new(log, &Select::all(), by_time)).collect();
        logs.iter().flat_map(|log| log.between()).try_for_each(|(_, other)| sink(Part::Between(other)))?;
        let mut next: Vec<Option<Record<'_>>> = vec![None; logs.len()];
        let mut heap = BinaryHeap::new();
        let nanos = |record: &Record<'_>| record.time.map_or(0, |time| time.nanos);
        for (source, order) in orders.iter_mut().enumerate() {
            next[source] = order.next();
            heap.extend(next[source].as_ref().map(|record| Reverse((nanos(record), source))));
        }
        while let Some(Reverse((_, source))) = heap.pop() {
            // Load the next message of the same bag first. This may load chunks, and the records of
            // undefined op (record type) in these chunks are copied before the message.
            let Some(record) = std::mem::replace(&mut next[source], orders[source].next()) else { continue };
            for other in orders[source].take_unknown() {
                sink(Part::Other(&other))?;
            }
            sink(Part::Message(source, &record))?;
            heap.extend(next[source].as_ref().map(|record| Reverse((nanos(record), source))));
        }
        let mut others = orders.iter_mut().flat_map(MessageMerge::take_unknown);
        others.try_for_each(|other| sink(Part::Other(&other)))
    })?;
    let (records, topics, bytes) = (written.records, written.topics, written.bytes);
    let left_out = written.left_out().into_iter().collect();
    Ok(Merged { records, topics, bytes, left_out, ..Merged::default() })
}
