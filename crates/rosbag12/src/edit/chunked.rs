//! Bags of V2.0 made of bags of V2.0: messages are copied byte for byte into new chunks, with the
//! records of their connections.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

use rovelog_core::text::count;
use rovelog_core::{Detail, LogReader, Merged, Record, Recovery, Select, Sliced, Value};

use super::latched_detail;
use super::lost::{LostMessage, named};
use crate::diagnostics as rules;
use crate::error::BagError;
use crate::reader::BagReader;
use crate::sections::IndexState;
use crate::tables::usize_of;
use crate::v2::wire::ConnectionHeader;
use crate::v2::{self, Compression, Heads, InTime, Origin, Writer};
use crate::version::Version;

/// What is copied.
enum Part<'a> {
    /// A message of one of the bags, whose payload is the whole record.
    Message(usize, &'a Record<'a>),
    /// A record of an unknown kind of a chunk.
    Other(&'a [u8]),
    /// The same between chunks.
    Between(&'a [u8]),
}

/// Takes what is to be copied.
type Sink<'a> = dyn FnMut(Part<'_>) -> Result<(), BagError> + 'a;

/// Hands out what is to be copied.
type Each<'a> = dyn Fn(&mut Sink<'_>) -> Result<(), BagError> + 'a;

/// Topic and data of the record of a connection, and the fields of its header that have no meaning.
type Declared<'a> = (Vec<u8>, Vec<u8>, &'a [u8]);

/// What was written.
struct Written {
    records: u64,
    topics: usize,
    bytes: u64,
    too_large: u64,
}

impl Written {
    /// Says how many records fit no chunk, if any.
    fn left_out(&self) -> Option<String> {
        (self.too_large > 0).then(|| count(self.too_large, "record") + " too large for a chunk")
    }

    fn left_out_detail(&self) -> Option<Detail> {
        self.left_out().map(|text| Detail::new("too_large", text, Value::count(self.too_large)))
    }
}

/// Writes the messages that `each` hands out, of these bags, and the connections `unused`, which
/// have none: maybe twice.
fn write(
    logs: &[&BagReader],
    unused: &[Declared<'_>],
    out: &mut dyn Write,
    each: &Each<'_>,
) -> Result<Written, BagError> {
    let compression = logs.first().map_or(Compression::None, |log| log.compression());
    let (written, bytes) = v2::write(out, compression, |writer| lay(logs, unused, writer, each))?;
    Ok(Written { bytes, ..written })
}

fn lay(
    logs: &[&BagReader],
    unused: &[Declared<'_>],
    writer: &mut Writer<'_>,
    each: &Each<'_>,
) -> Result<Written, BagError> {
    let mut ids: HashMap<(usize, u32), u32> = HashMap::new();
    let mut topics: std::collections::BTreeSet<Vec<u8>> = std::collections::BTreeSet::new();
    let mut written = Written { records: 0, topics: 0, bytes: 0, too_large: 0 };
    let mut heads = Heads::default();
    each(&mut |part| {
        let is_written = match part {
            Part::Message(source, record) => {
                let key = (source, record.origin());
                let id = if let Some(id) = ids.get(&key) {
                    *id
                } else {
                    let (topic, data, others) = logs[source].declaration(record);
                    let id = writer.connect_with(&topic, &data, others)?;
                    topics.insert(topic);
                    ids.insert(key, id);
                    id
                };
                // It was read before, so that it is a message.
                let Some((time, payload_at)) = heads.read(&record.payload) else { return Ok(()) };
                let payload = &record.payload[payload_at..];
                let is_written = writer.message_with(id, time, heads.others(), payload)?;
                written.records += u64::from(is_written);
                is_written
            }
            Part::Other(record) => writer.other(record)?,
            Part::Between(record) => writer.other_between(record).map(|()| true)?,
        };
        written.too_large += u64::from(!is_written);
        Ok(())
    })?;
    for (topic, data, others) in unused {
        writer.connect_with(topic, data, others)?;
    }
    written.topics = topics.len();
    Ok(written)
}

/// Hands out these records of a bag with all of unknown kinds that are in their chunks or between
/// chunks, in file order.
fn copy(bag: &BagReader, mut records: InTime<'_>, sink: &mut Sink<'_>) -> Result<(), BagError> {
    let mut between = bag.between().peekable();
    loop {
        let record = records.next();
        let at = record.as_ref().map_or(u64::MAX, |record| record.offset);
        while let Some((_, other)) = between.next_if(|(start, _)| *start < at) {
            sink(Part::Between(other))?;
        }
        for other in records.take_others() {
            sink(Part::Other(&other))?;
        }
        let Some(record) = record else { return Ok(()) };
        sink(Part::Message(0, &record))?;
    }
}

/// Returns what the record of a connection says.
fn declared(origin: &Origin) -> Declared<'_> {
    (origin.topic.to_vec(), data_of(origin), &origin.others)
}

/// Returns the data of a connection; where they are damaged, what can be read of them, so that
/// other readers do not refuse the bag.
fn data_of(origin: &Origin) -> Vec<u8> {
    if origin.is_whole() {
        return origin.data.to_vec();
    }
    let unknown = ConnectionHeader::unknown(&origin.topic);
    let Some(said) = ConnectionHeader::read(&origin.data) else { return unknown.to_data() };
    let missing = ConnectionHeader {
        ty: unknown.ty.filter(|_| said.ty.is_none()),
        md5sum: unknown.md5sum.filter(|_| said.md5sum.is_none()),
        message_definition: unknown.message_definition.filter(|_| said.message_definition.is_none()),
        ..ConnectionHeader::default()
    };
    [&*origin.data, &missing.to_data()].concat()
}

impl BagReader {
    /// Sets the compression of the chunks that recovery, slicing, merging and reindexing of a V2.0
    /// bag write. By default it is that of the first chunk; merging follows the first bag.
    pub fn set_compression(&mut self, compression: Compression) {
        self.compression = Some(compression);
        if let Some(whole) = self.comparison.whole.get_mut() {
            whole.compression = Some(compression);
        }
    }

    /// Returns whether chunks are to be compressed in another way than they are.
    pub(super) fn recompresses(&self) -> bool {
        let Some(state) = &self.scanner.v2 else { return false };
        let others = |wanted| state.chunks.iter().any(|chunk| chunk.extent.compression != Some(wanted));
        self.compression.is_some_and(others)
    }

    /// Returns the compression of the chunks that are made of this bag.
    fn compression(&self) -> Compression {
        let stored = || self.scanner.chunked().chunks.first().and_then(|chunk| chunk.extent.compression);
        self.compression.or_else(stored).unwrap_or_default()
    }

    /// Returns the records of unknown kinds outside of chunks, with their offsets.
    fn between(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let others = self.scanner.chunked().others.iter();
        others.map(|range| (range.start, &self.bytes[usize_of(range.start)..usize_of(range.end)]))
    }

    /// Returns what the record of the connection says that a message came on.
    fn declaration(&self, record: &Record<'_>) -> Declared<'_> {
        let origin = (record.origin() as usize).checked_sub(1);
        match origin.and_then(|number| self.scanner.chunked().origins.get(number)) {
            Some(origin) if origin.is_known => declared(origin),
            _ => {
                let topic = record.topic.name.as_bytes();
                (topic.to_vec(), ConnectionHeader::unknown(topic).to_data(), &[])
            }
        }
    }

    /// Returns whether a bag of V2.0 is as a recorder leaves it.
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
        let counts = self.diagnostics().counts();
        self.info().lost.losses == 0
            && self.scanner.line.text == "#ROSBAG V2.0"
            && !self.scanner.line.crlf
            && wrong.iter().all(|rule| !counts.contains_key(rule.code))
            && matches!(self.sections(), [section]
                if matches!(section.index, IndexState::Exact | IndexState::Empty) && section.index_pos.is_some())
    }

    /// Writes all messages as an indexed bag of V2.0.
    pub(super) fn reindex_chunked(&self, out: &mut dyn Write) -> Result<u64, BagError> {
        Ok(self.rechunked(out)?.bytes)
    }

    fn rechunked(&self, out: &mut dyn Write) -> Result<Written, BagError> {
        let origins = &self.scanner.chunked().origins;
        let unused = origins.iter().filter(|origin| origin.is_known && origin.count == 0);
        let unused: Vec<Declared<'_>> = unused.map(declared).collect();
        write(&[self], &unused, out, &|sink| copy(self, self.whole_records(&Select::all(), true), sink))
    }

    /// Returns what recovery says of chunks: what is in each, and the messages that their index
    /// data name and that are gone.
    fn chunk_details(&self) -> Vec<Detail> {
        let state = self.scanner.chunked();
        let chunks = state.chunks.iter().map(|chunk| {
            let lost = chunk.lost.iter().map(|(from, to)| [Value::count(*from), Value::count(*to)]);
            [
                Value::count(chunk.extent.at),
                Value::count(chunk.extent.end),
                Value::Text(chunk.state().to_owned()),
                Value::count(chunk.unpacked),
                Value::count(chunk.messages),
                Value::table(["start", "end"], lost),
            ]
        });
        let chunks = Value::table(["offset", "end", "state", "unpacked", "messages", "lost"], chunks);
        let mut details = vec![Detail::hidden("chunks", chunks)];
        let gone = self.gone();
        if !gone.is_empty() {
            let text = format!("{} gone that the index names", count(gone.len(), "message"));
            details.push(Detail::new("lost_messages", text, named(&gone)));
        }
        details
    }

    /// Returns the messages that index data name and that are gone; as offsets those of their chunks.
    fn gone(&self) -> Vec<LostMessage> {
        let state = self.scanner.chunked();
        let mut gone = Vec::new();
        for (number, chunk) in state.chunks.iter().enumerate() {
            let named: u64 = chunk.named.values().map(|tally| tally.count).sum();
            if named <= chunk.messages {
                continue;
            }
            // Behind bytes that are missing or were added, messages have other places than are named.
            let mut found = self.messages_of(number);
            for (conn, entry) in chunk.entries(&self.bytes) {
                let left = found.get_mut(&(conn, entry.time.nanos())).filter(|left| **left > 0);
                if let Some(left) = left {
                    *left -= 1;
                } else {
                    let origin = state.origin_at(number, conn).map(|origin| &state.origins[origin as usize]);
                    let topic = origin.map_or_else(
                        || format!("conn {conn}").into_bytes().into(),
                        |origin| Arc::clone(&origin.topic),
                    );
                    gone.push(LostMessage { topic, nanos: entry.time.nanos(), offset: chunk.extent.at });
                }
            }
        }
        gone
    }
}

/// Writes what a bag of V2.0 still holds, of which the ranges `lost` are lost.
pub(super) fn recover(
    bag: &BagReader,
    lost: Vec<Range<u64>>,
    out: &mut dyn Write,
) -> Result<Recovery, BagError> {
    let written = bag.rechunked(out)?;
    let size = bag.bytes.len() as u64;
    let mut details = bag.chunk_details();
    details.push(bag.ledger_detail());
    details.extend(written.left_out_detail());
    let missing_records = bag.info().lost.missing_records;
    Ok(Recovery { records: written.records, missing_records, details, ..Recovery::of(size, lost, &[]) })
}

pub(super) fn slice(bag: &BagReader, select: &Select, out: &mut dyn Write) -> Result<Sliced, BagError> {
    let (before, latched) = bag.whole_before(select);
    let written = write(&[bag], &[], out, &|sink| {
        before.iter().try_for_each(|record| sink(Part::Message(0, record)))?;
        copy(bag, bag.whole_records(select, true), sink)
    })?;
    let details = written.left_out_detail().into_iter().chain(latched_detail(latched)).collect();
    let (records, topics, bytes) = (written.records, written.topics, written.bytes);
    Ok(Sliced { records, topics, bytes, details, ..Sliced::default() })
}

pub(super) fn merge(logs: &[&BagReader], out: &mut dyn Write) -> Result<Merged, BagError> {
    if logs.iter().any(|log| log.version() != Version::V2_0) {
        return Err(BagError::MixedVersions);
    }
    let written = write(logs, &[], out, &|sink| {
        let mut orders: Vec<_> = logs.iter().map(|log| log.whole_records(&Select::all(), false)).collect();
        logs.iter().flat_map(|log| log.between()).try_for_each(|(_, other)| sink(Part::Between(other)))?;
        let mut next: Vec<Option<Record<'_>>> = vec![None; logs.len()];
        let mut heap = BinaryHeap::new();
        let nanos = |record: &Record<'_>| record.time.map_or(0, |time| time.nanos);
        for (source, order) in orders.iter_mut().enumerate() {
            next[source] = order.next();
            heap.extend(next[source].as_ref().map(|record| Reverse((nanos(record), source))));
        }
        while let Some(Reverse((_, source))) = heap.pop() {
            let Some(record) = std::mem::replace(&mut next[source], orders[source].next()) else { continue };
            for other in orders[source].take_others() {
                sink(Part::Other(&other))?;
            }
            sink(Part::Message(source, &record))?;
            heap.extend(next[source].as_ref().map(|record| Reverse((nanos(record), source))));
        }
        let mut others = orders.iter_mut().flat_map(InTime::take_others);
        others.try_for_each(|other| sink(Part::Other(&other)))
    })?;
    let (records, topics, bytes) = (written.records, written.topics, written.bytes);
    let left_out = written.left_out().into_iter().collect();
    Ok(Merged { records, topics, bytes, left_out, ..Merged::default() })
}
