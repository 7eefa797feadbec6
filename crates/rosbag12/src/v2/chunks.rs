//! Scans chunks of a bag in any order. Each chunk is decompressed once, and its messages are
//! visited in file order.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use rovelog_core::internal::index::Span;
use rovelog_core::internal::scan::{Scan as _, Window};
use rovelog_core::internal::usage::UsageTally;
use rovelog_core::{LogReader as _, Payload, Record, Select, Timestamp, Topic, TopicId};

use super::buffer::DataStatus;
use super::compression::DecompressionLimit;
use super::content::{Chunk, ChunkMessages, ConnectionKey, MessageCount};
use super::loader::{LoadResult, LoadedChunk, Loader};
use super::probe::{Probe, probe};
use super::records::{ChunkItem, ChunkRecords, Hints};
use super::scan::{LengthSource, Step, TopScan};
use super::template::Template;
use super::wire::Header;
use crate::message::{MessageRef, usize_of};
use crate::reader::BagReader;

/// Kind of the header of a chunk that is divided into its records.
pub(super) const CHUNK_HEADER: &str = "chunk header";

/// Returns the kind of the record at offset `at` in the file.
pub(super) fn kind(window: Window<'_>, at: u64) -> &'static str {
    match probe(window, at) {
        Ok(Probe::Good(found)) => match found.header {
            Header::BagHeader(_) => "bag header",
            Header::IndexData(_) => "index data",
            Header::Connection(_) => "connection",
            Header::ChunkInfo(_) => "chunk info",
            _ => "other record",
        },
        _ => "other record",
    }
}

impl LoadedChunk {
    /// Returns the decompressed data of the chunk.
    pub(crate) fn data<'a>(&'a self, reader: &'a BagReader) -> &'a [u8] {
        self.data_in(reader.scanner.content.chunks[self.number].data(&reader.bytes))
    }

    /// Returns the decompressed data of the chunk. `file` is the stored data, which are returned if
    /// the chunk is uncompressed.
    pub(super) fn data_in<'a>(&'a self, file: &'a [u8]) -> &'a [u8] {
        match &self.block {
            Some(block) => &block[..self.result.len],
            None => &file[..self.result.len],
        }
    }

    /// Copies the records of `messages` into a new buffer, and changes the offsets in `messages` to
    /// offsets in this buffer. Records of an uncompressed chunk are not copied, because they are in
    /// the file.
    pub(super) fn copy_of(&self, messages: &mut [MessageRef]) -> Self {
        let block = self.block.as_ref().map(|block| {
            let mut copy = Vec::new();
            for message in messages {
                let record = usize_of(message.at)..usize_of(message.end());
                message.at = copy.len() as u64;
                copy.extend_from_slice(&block[record]);
            }
            Arc::new(copy)
        });
        let len = block.as_ref().map_or(self.result.len, |block| block.len());
        Self { block, result: LoadResult { len, ..self.result }, ..*self }
    }

    /// Returns the offset of a message in the file. A message in a compressed chunk has no offset
    /// in the file, so the offset of the chunk is returned.
    pub(crate) fn offset(&self, chunk: &Chunk, at: u64) -> u64 {
        if self.block.is_some() { chunk.extent.at } else { chunk.extent.data_at + at }
    }

    /// Returns a message as a record. If `with_head` is true, the payload is preceded by the head
    /// of the message record, that is, by its header and length fields.
    pub(crate) fn record<'a>(
        &self,
        reader: &'a BagReader,
        message: &MessageRef,
        with_head: bool,
    ) -> Record<'a> {
        let chunk = &reader.scanner.content.chunks[self.number];
        let start = if with_head { message.at } else { message.payload_at() };
        let range = usize_of(start)..usize_of(message.end());
        let payload = match &self.block {
            Some(block) => Payload::shared(block, range),
            None => Payload::from(&chunk.data(&reader.bytes)[range]),
        };
        let offset = self.offset(chunk, message.at);
        let tables = &reader.scanner.tables;
        let topic = &tables.topics[message.connection as usize];
        let time = Timestamp::new(message.time(), tables.clock);
        Record::new(topic, Some(time), offset, message.seq, payload, tables).with_origin(message.origin + 1)
    }
}

impl Chunk {
    /// Returns an iterator over the records in the decompressed `data` of this chunk.
    pub(super) fn records<'a>(
        &self,
        data: &'a [u8],
        status: DataStatus,
        hints: Hints<'a>,
        template: Option<Template>,
    ) -> ChunkRecords<'a> {
        let extent = &self.extent;
        let declared_len = match extent.length {
            LengthSource::Unclosed => 0,
            LengthSource::Cut if extent.is_plain() => extent.data_len.into(),
            _ if status == DataStatus::Intact => data.len() as u64,
            _ => extent.size.into(),
        };
        ChunkRecords::new(data, hints, declared_len, template)
    }
}

/// State that a scan of several chunks carries from one chunk to the next.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChunkScan {
    /// Template of the header that the latest messages share.
    template: Option<Template>,
    /// By index of the connection, the sequence number of the next message in the current chunk.
    /// All numbers are 0 between chunks.
    seqs: Vec<u64>,
    /// Indices of the connections whose number in `seqs` must be reset to 0 after the current
    /// chunk.
    used_seqs: Vec<u32>,
    /// Ranges of the records in the latest chunk whose op (record type) is unknown.
    pub(super) unknown_records: Vec<Range<usize>>,
    /// True if any chunk so far does not match the index.
    pub(super) has_mismatch: bool,
}

impl ChunkScan {
    /// Calls `sink` for each message of a chunk, in file order.
    ///
    /// Connection ids in messages are replaced by origins, that is, by indices of distinct
    /// connection records. The origin of each id at the start of the chunk is known from opening
    /// the bag. A connection record inside the chunk may change the origin of an id for the
    /// messages after the record. If the bag was opened by its index, the chunk is also compared
    /// with the index.
    #[inline]
    pub(crate) fn visit(
        &mut self,
        reader: &BagReader,
        loaded: &LoadedChunk,
        mut sink: impl FnMut(MessageRef),
    ) {
        let content = &reader.scanner.content;
        let chunk = &content.chunks[loaded.number];
        // Connection ids that a connection record in this chunk has redeclared. The value is the
        // index of the new origin (connection record) of the id.
        let mut redeclared: HashMap<u32, u32> = HashMap::new();
        let first = &content.ids.first[chunk.section as usize];
        let is_unchanged = content.ids.changes.is_empty();
        let origin_of = |redeclared: &HashMap<u32, u32>, conn: u32| {
            // Fast path for chunks without redeclared ids. Bags hardly ever redeclare an id.
            if is_unchanged && redeclared.is_empty() {
                return first.get(conn);
            }
            redeclared.get(&conn).copied().or_else(|| content.origin_at(loaded.number, conn))
        };
        self.begin(chunk, reader.topics().len());
        let Self { template, seqs, used_seqs, unknown_records, has_mismatch } = self;
        let (mut count, mut span) = (0, Span::default());
        let mut is_as_indexed = loaded.result.status == DataStatus::Intact;
        let data = loaded.data(reader);
        let hints = Hints::new(&chunk.index.ranges, &reader.bytes, chunk.extent.declared_len());
        let mut records = chunk.records(data, loaded.result.status, hints, *template);
        // If the bag was scanned at opening, the losses in this chunk are known, so the slow search
        // for records after damage is not repeated. If the bag was opened by its index, this chunk
        // has not been searched yet.
        if !content.is_by_index {
            records = records.with_known_lost(&chunk.lost_ranges);
        }
        // Consecutive messages mostly have the same connection id, so the result of the last lookup
        // is reused.
        let (mut last_id, mut origin, mut connection) = (None, 0, 0);
        // Passes a message to `sink`. Returns false if its connection id is unknown. Before this
        // call, the field `origin` of the message contains the connection id.
        let mut resolve_and_pass = |mut message: MessageRef, redeclared: &HashMap<u32, u32>| {
            // The last lookup is not reused after an id was redeclared, because the id may have a
            // new origin.
            if last_id != Some(message.origin) || !redeclared.is_empty() {
                let Some(found) = origin_of(redeclared, message.origin) else { return false };
                (last_id, origin) = (Some(message.origin), found);
                connection = content.origins[found as usize].connection;
                if seqs[connection as usize] == 0 {
                    used_seqs.push(connection);
                }
            }
            let seq = &mut seqs[connection as usize];
            (message.origin, message.connection, message.seq) = (origin, connection, *seq);
            *seq += 1;
            count += 1;
            span.add(message.time());
            sink(message);
            true
        };
        loop {
            records.messages(|message| is_as_indexed &= resolve_and_pass(message, &redeclared));
            let item = records.next();
            is_as_indexed &= records.corrected_op().is_none();
            match item {
                None => break,
                Some(ChunkItem::Message(message)) => is_as_indexed &= resolve_and_pass(message, &redeclared),
                Some(ChunkItem::Connection { record, .. }) => {
                    // A scan at opening has added all connection records. A record can be unknown
                    // only if the bag was opened by its index.
                    let key = ConnectionKey::new(chunk.section, &record);
                    let origin = content.ids.by_record.get(&key).copied();
                    is_as_indexed &= origin.is_some();
                    if let Some(origin) = origin.filter(|_| origin_of(&redeclared, record.conn) != origin) {
                        redeclared.insert(record.conn, origin);
                        // The index alone does not show that an id is redeclared, so the message
                        // counts of the index may be wrong.
                        is_as_indexed &= !content.is_by_index;
                    }
                }
                Some(ChunkItem::Other { at, end, .. }) => unknown_records.push(at..end),
                Some(_) => is_as_indexed = false,
            }
        }
        *template = records.template();
        if content.is_by_index && !(is_as_indexed && chunk.messages.agree_with(count, span, seqs)) {
            reader.comparison.report_mismatch();
            *has_mismatch = true;
        }
        // Reset only the sequence numbers that this chunk has used. A bag may have 65 536
        // connections, but a chunk may have only a few messages.
        for connection in used_seqs.drain(..) {
            seqs[connection as usize] = 0;
        }
    }

    /// Sets the sequence numbers at the start of a chunk. The bag has `topic_count` topics.
    fn begin(&mut self, chunk: &Chunk, topic_count: usize) {
        self.unknown_records.clear();
        self.seqs.resize(topic_count, 0);
        for messages in &chunk.messages.by_connection {
            self.seqs[messages.connection as usize] = messages.before;
            self.used_seqs.push(messages.connection);
        }
    }
}

impl ChunkMessages {
    /// Compares the number of messages and their time span in the index with those that a scan of the
    /// chunk has found. `seqs` contains the next sequence number of each connection after the chunk.
    fn agree_with(&self, count: u64, span: Span, seqs: &[u64]) -> bool {
        let is_counted =
            |counted: &MessageCount| seqs[counted.connection as usize] == counted.before + counted.count;
        self.by_connection.iter().all(is_counted)
            && (self.count == 0 || span == self.span)
            && count == self.count
    }
}

impl BagReader {
    /// Returns a loader that loads the chunks whose indices are in `plan`, in this order.
    pub(crate) fn loader(&self, plan: Vec<usize>) -> Loader {
        let cap = DecompressionLimit::of(&self.options.read.limits);
        Loader::new(self.bytes.clone(), &self.scanner.content.chunks, plan, cap)
    }

    /// Returns the indices of the chunks that have messages of wanted connections in the selected
    /// time window, in file order.
    pub(super) fn selected_chunks(&self, wanted: &[bool], select: &Select) -> Vec<usize> {
        let chunks = &self.scanner.content.chunks;
        let is_wanted = |chunk: &Chunk| {
            select.keeps_block(chunk.extent.at)
                && chunk.has_any(wanted)
                && chunk.messages.count > 0
                && select.keeps_span(chunk.messages.span.first, chunk.messages.span.last)
        };
        (0..chunks.len()).filter(|number| is_wanted(&chunks[*number])).collect()
    }

    /// Calls `visit` for every message in file order, with the offset, topic, time in nanoseconds
    /// and payload of the message.
    pub(crate) fn visit_messages(&self, mut visit: impl FnMut(u64, &Topic, i64, &[u8])) {
        let (topics, chunks) = (&self.scanner.tables.topics, &self.scanner.content.chunks);
        let mut pass = ChunkPass::new(self, &vec![true; topics.len()], &Select::all());
        while pass.chunk(|loaded, message, payload| {
            let at = loaded.offset(&chunks[loaded.number], message.at);
            visit(at, &topics[message.connection as usize], message.time(), payload);
        }) {}
    }

    /// Returns the number of messages in a chunk, by connection id and time.
    pub(crate) fn messages_of(&self, number: usize) -> HashMap<(u32, i64), u64> {
        let mut found = HashMap::new();
        let content = &self.scanner.content;
        if let Some(loaded) = self.loader(vec![number]).load() {
            ChunkScan::default().visit(self, &loaded, |message| {
                *found.entry((content.origins[message.origin as usize].id, message.time())).or_default() += 1;
            });
        }
        found
    }
}

/// A pass over the selected chunks in file order.
pub(crate) struct ChunkPass<'a> {
    reader: &'a BagReader,
    loader: Loader,
    scan: ChunkScan,
}

impl<'a> ChunkPass<'a> {
    /// Creates a pass over the chunks that have messages of wanted connections in the selected time
    /// window.
    pub(crate) fn new(reader: &'a BagReader, wanted: &[bool], select: &Select) -> Self {
        let plan = reader.selected_chunks(wanted, select);
        Self { reader, loader: reader.loader(plan), scan: ChunkScan::default() }
    }

    /// Calls `sink` for each message of the next chunk, with the payload of the message. Returns
    /// false if no chunk is left.
    pub(crate) fn chunk(&mut self, mut sink: impl FnMut(&LoadedChunk, MessageRef, &[u8])) -> bool {
        let reader = self.reader;
        let Some(loaded) = self.loader.load() else { return false };
        let data = loaded.data(reader);
        self.scan.visit(reader, &loaded, |message| {
            sink(&loaded, message, message.payload(data));
        });
        self.loader.recycle(loaded);
        true
    }
}

impl BagReader {
    /// Returns the parts of the file outside of chunks, and the chunks, in file order.
    pub(super) fn steps(&self) -> impl Iterator<Item = Step> + '_ {
        let window = Window::whole(&self.bytes);
        let mut scan = TopScan::new(self.scanner.line.len, DecompressionLimit::of(&self.options.read.limits));
        // The window is the whole file, so a scan step never needs more bytes.
        std::iter::from_fn(move || match scan.step(window).expect("the window reaches the end of the file") {
            Step::End => None,
            step => Some(step),
        })
    }

    /// Adds the sizes of all records to `tally`, by type of record and by topic.
    ///
    /// Messages in a compressed chunk have no separate bytes in the file. The compressed size of
    /// the chunk is divided among its topics in proportion to their decompressed sizes.
    pub(crate) fn chunk_usage(&self, tally: &mut UsageTally) {
        let window = Window::whole(&self.bytes);
        for step in self.steps() {
            match step {
                Step::Line { at, end } => tally.add("version line", None, end - at),
                Step::Record { at, end } => tally.add(kind(window, at), None, end - at),
                Step::Chunk(extent) => tally.add(CHUNK_HEADER, None, extent.data_at - extent.at),
                Step::Lost { .. } | Step::End => {}
            }
        }
        let chunks = &self.scanner.content.chunks;
        let mut loader = self.loader((0..chunks.len()).collect());
        let mut scan = ChunkScan::default();
        while let Some(loaded) = loader.load() {
            let chunk = &chunks[loaded.number];
            let is_plain = chunk.extent.is_plain();
            // Lost ranges are offsets in the decompressed data, so only those of an uncompressed
            // chunk are sizes in the file. The end of a compressed chunk may be unreadable.
            let lost =
                if is_plain { chunk.lost_ranges.iter().map(|lost| lost.end - lost.start).sum() } else { 0 };
            let end = match chunk.status {
                DataStatus::Cut | DataStatus::Broken | DataStatus::Limit if !is_plain => {
                    chunk.extent.kept_to(chunk.status, loaded.result.used, chunk.messages.count)
                }
                _ => chunk.extent.end,
            };
            let stored = (end - chunk.extent.data_at).saturating_sub(lost);
            let mut messages: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
            scan.visit(self, &loaded, |message| {
                let (count, bytes) = messages.entry(message.connection).or_default();
                *count += 1;
                *bytes += message.end() - message.at;
            });
            let kind = if is_plain { "message" } else { "compressed message" };
            let unpacked = if is_plain { stored } else { loaded.result.len as u64 };
            let mut left = stored;
            for (connection, (count, bytes)) in messages {
                // Example: a topic has 300 of 1000 decompressed bytes in the chunk, and the chunk
                // has 400 compressed bytes. The share of the topic is 300 * 400 / 1000 = 120 bytes.
                let share = u128::from(bytes) * u128::from(stored) / u128::from(unpacked.max(1));
                let share = u64::try_from(share).unwrap_or(u64::MAX).min(left);
                tally.add_all(kind, Some(TopicId(connection)), count, share);
                left -= share;
            }
            tally.add("connection", None, left);
            loader.recycle(loaded);
        }
    }
}
