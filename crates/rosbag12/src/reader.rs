//! Random-access reader of a bag in memory or in a mapped file.

use std::collections::{BTreeMap, HashMap};
use std::ops::{Range, RangeInclusive};
#[cfg(feature = "arrow")]
use std::sync::atomic::AtomicBool;

use rovelog_core::error::changed;
use rovelog_core::internal::layout::Layout;
use rovelog_core::internal::order::{self, Blocks, Place};
use rovelog_core::internal::scan::{Scan as _, Window};
use rovelog_core::{Bytes, LogInfo, Record, Select, Timestamp, Topic};

use crate::error::BagError;
use crate::index::{Cursor, Index, RecordRef, payload};
use crate::message::{MessageRef, Publisher, usize_of};
use crate::options::BagOptions;
use crate::scan::{Scanner, Step};
use crate::sections::{Differences, Section};
use crate::shapes::Head;
use crate::tables::{Connection, Tables};
use crate::v2::{Comparison, Compression, MergeForm, MessageMerge};
use crate::version::Version;
use crate::wire::{self, Header, IndexEntry};

/// An opened bag. Opening scans all records once. Messages are decoded on request.
#[derive(Debug)]
pub struct BagReader {
    /// Bytes of the bag.
    pub(crate) bytes: Bytes,
    /// Tables and diagnostics that the scan at opening has filled.
    pub(crate) scanner: Scanner,
    /// Index of the records in a bag before V2.0. Built by the scan at opening.
    pub(crate) index: Index,
    /// Summary of the bag for `info`.
    pub(crate) info: LogInfo,
    /// Options with which the bag was opened.
    pub(crate) options: BagOptions,
    /// Compression of chunks in bags that are written from this bag. `None` if the caller has set
    /// no compression.
    pub(crate) compression: Option<Compression>,
    /// Results of comparing the chunks of a V2.0 bag with its index.
    pub(crate) comparison: Comparison,
    /// True if an export to columns has omitted a message, because the message cannot be decoded.
    #[cfg(feature = "arrow")]
    pub(crate) has_undecodable: AtomicBool,
}

impl BagReader {
    /// Opens the bag in `bytes`.
    ///
    /// # Errors
    /// Returns an error if the bytes are not a ROS 1 bag. Damage is not an error.
    /// [`diagnostics`](rovelog_core::LogReader::diagnostics) lists it.
    #[expect(clippy::missing_panics_doc, reason = "the window is the whole file")]
    pub fn new(bytes: Bytes, options: &BagOptions) -> Result<Self, BagError> {
        let mut scanner = Scanner::start(&bytes, options)?;
        if scanner.line.version == Version::V2_0 {
            return Self::chunked(bytes, scanner, options);
        }
        if !options.read.unread.is_empty() {
            return Err(BagError::PartlyRead);
        }
        let mut index = Index::default();
        let window = Window::whole(&bytes);
        let take = |index: &mut Index, message: MessageRef, tables: &mut Tables| {
            let stats = &mut tables.connections[message.connection as usize].stats;
            index.add_message(&message, stats);
        };
        loop {
            scanner.messages(&bytes, |message, tables| take(&mut index, message, tables));
            // The window is the whole file, so a scan step never needs more bytes.
            match scanner.step(window).expect("the window reaches the end of the file") {
                Step::Message(message) => take(&mut index, message, &mut scanner.tables),
                Step::Record { .. } => {}
                Step::Skipped { at, end } => index.add_skipped(at..end),
                Step::Lost { at, end, .. } => index.add_lost(at..end),
                Step::End => break,
            }
        }
        let mut offsets = scanner.sections.iter().filter_map(|section| section.records.offsets.as_ref());
        if offsets.any(|offsets| offsets.lacks_memory) {
            return Err(std::io::Error::from(std::io::ErrorKind::OutOfMemory).into());
        }
        index.blocks.finish(bytes.len() as u64);
        Ok(Self::of(bytes, scanner, index, options))
    }

    fn of(bytes: Bytes, scanner: Scanner, index: Index, options: &BagOptions) -> Self {
        let info = scanner.info(bytes.len() as u64);
        let options = options.clone();
        Self {
            bytes,
            scanner,
            index,
            info,
            options,
            compression: None,
            comparison: Comparison::default(),
            #[cfg(feature = "arrow")]
            has_undecodable: AtomicBool::new(false),
        }
    }

    /// Opens a V2.0 bag. A large bag with a consistent index is opened by its index. `scanner` has
    /// read the version line before.
    fn chunked(bytes: Bytes, mut scanner: Scanner, options: &BagOptions) -> Result<Self, BagError> {
        let mut index = Index::default();
        let unread = &options.read.unread;
        // A small bag is always scanned, because scanning it is fast and finds damage.
        let by_index = !options.read.read_all
            && options.read.packing.is_none()
            && scanner.read_index(&bytes, unread).is_some()
            && (scanner.content.cost() >= options.indexed_from || !unread.is_empty());
        if !unread.is_empty() && !by_index {
            return Err(BagError::PartlyRead);
        }
        if by_index {
            scanner.report_connections();
            scanner.finish_topics();
        } else {
            scanner = Scanner::start(&bytes, options)?;
            let late = scanner.read_all(&bytes, &mut index, options, &[])?;
            // Some messages came before the connection record with their connection id. Scan the
            // bag again with these connection records known from the start.
            if !late.is_empty() {
                (scanner, index) = (Scanner::start(&bytes, options)?, Index::default());
                scanner.read_all(&bytes, &mut index, options, &late)?;
            }
        }
        for chunk in &scanner.content.chunks {
            // If the crate feature for compressed chunks is disabled, return an error. Without this
            // check, every compressed chunk would be reported as damaged.
            chunk.extent.check_built_in()?;
        }
        index.blocks.finish(bytes.len() as u64);
        Ok(Self::of(bytes, scanner, index, options))
    }

    /// Opens a bag before V1.0. Such a bag has no version line, so any file could be such a bag.
    /// The caller must therefore request this version explicitly.
    ///
    /// # Errors
    /// Returns an error in the same cases as [`new`](Self::new).
    pub fn open_v0(bytes: Bytes, options: &BagOptions) -> Result<Self, BagError> {
        Self::new(bytes, &options.clone().as_version_0())
    }

    /// Returns the version of the bag.
    pub fn version(&self) -> Version {
        self.scanner.line.version
    }

    /// Returns whether this is a V2.0 bag, whose messages are in chunks.
    pub(crate) fn is_chunked(&self) -> bool {
        self.scanner.line.version == Version::V2_0
    }

    /// Returns the version line without its line end.
    pub fn version_line(&self) -> &str {
        &self.scanner.line.text
    }

    /// Returns the connections. The connection and the topic with the same index belong together.
    pub fn connections(&self) -> &[Connection] {
        &self.scanner.tables.connections
    }

    /// Returns the sections, that is, the bags within this file, with the state of their indices.
    pub fn sections(&self) -> &[Section] {
        &self.scanner.sections
    }

    /// Compares the index entries of a topic in a section with the messages of the topic, entry by
    /// entry. For V2.0 bags, the result is always zero.
    pub fn index_differences(&self, section: &Section, topic: &[u8]) -> Differences {
        if self.is_chunked() {
            return Differences::default();
        }
        let end =
            self.sections().iter().map(|s| s.offset).find(|at| *at > section.offset).unwrap_or(u64::MAX);
        // Map from seconds, nanoseconds and position to the number of index entries minus the
        // number of messages.
        let mut counts: HashMap<(u32, u32, u64), i64> = HashMap::new();
        for record in self.full_cursor().filter(|record| (section.offset..end).contains(&record.at)) {
            if let Some(message) = &record.message {
                if self.connections()[message.connection as usize].topic == topic {
                    let key = (message.sec, message.nsec, message.at - section.offset);
                    *counts.entry(key).or_default() -= 1;
                }
            } else if let Some(wire::Record { header: Header::Index(header), data }) =
                self.wire_record(&record)
                && header.topic == topic
            {
                for entry in IndexEntry::all_of(data) {
                    let pos = section.records.message_offset(entry.pos.get());
                    *counts.entry((entry.sec.get(), entry.nsec.get(), pos)).or_default() += 1;
                }
            }
        }
        let mut differences = Differences::default();
        for surplus in counts.into_values() {
            let side =
                if surplus > 0 { &mut differences.not_in_scan } else { &mut differences.missing_in_index };
            *side += surplus.unsigned_abs();
        }
        differences
    }

    /// Returns the number of valid records with the op (record type) `op`.
    pub fn records_of(&self, op: u8) -> u64 {
        self.scanner.ops[usize::from(op)]
    }

    /// Returns the number of messages whose time is earlier than the time of the previous message.
    pub fn times_going_back(&self) -> u64 {
        self.scanner.order.backward
    }

    /// Returns the number of messages of a topic by publisher. Publishers are identified by their
    /// node name. Before V2.0, only messages of latching publishers have a node name. A latching
    /// publisher sends its last message to every new subscriber.
    pub fn callerids(&self, topic: &Topic) -> BTreeMap<String, u64> {
        if !topic.is_element_of(&self.scanner.tables.topics) {
            return BTreeMap::new();
        }
        let mut publishers = self.scanner.publishers(|connection| connection == topic.id.0);
        publishers.remove(&topic.id.0).map(|publishers| publishers.by_name).unwrap_or_default()
    }

    /// Returns all messages in file order.
    pub fn records_in_file_order(&self) -> Box<dyn Iterator<Item = Record<'_>> + Send + '_> {
        self.in_file_order(&Select::all())
    }

    /// Returns messages in file order. For a V2.0 bag, only messages of the selected topics are
    /// returned. For older bags, all messages are returned.
    pub(crate) fn in_file_order<'a>(
        &'a self,
        select: &Select,
    ) -> Box<dyn Iterator<Item = Record<'a>> + Send + 'a> {
        if self.is_chunked() {
            let form = MergeForm { in_file_order: true, with_head: false };
            return Box::new(MessageMerge::new(self, select, form));
        }
        let mut counts = vec![0; self.scanner.tables.topics.len()];
        Box::new(self.full_cursor().filter_map(move |record| {
            let message = record.message?;
            let count = &mut counts[message.connection as usize];
            *count += 1;
            let (time, seq) = (message.time(), *count - 1);
            let place = Place { time, offset: message.at, topic: message.connection, seq };
            Some(self.record_of(place, message.payload(&self.bytes)))
        }))
    }

    /// Calls `visit` for every message in file order, with the offset, topic, time in nanoseconds
    /// and payload of the message. This is the fastest way to read a bag.
    pub fn scan(&self, mut visit: impl FnMut(u64, &Topic, i64, &[u8])) {
        if self.is_chunked() {
            return self.visit_messages(visit);
        }
        self.full_cursor().messages(u64::MAX, |message| {
            let topic = &self.scanner.tables.topics[message.connection as usize];
            visit(message.at, topic, message.time(), message.payload(&self.bytes));
        });
    }

    /// Decodes a record. Returns the value of the record, and the number of payload bytes after the
    /// last field.
    ///
    /// # Errors
    /// Returns an error if the payload is too short for its definition, or if the record belongs to
    /// another bag.
    pub fn decode(&self, record: &Record<'_>) -> Result<(rovelog_core::Value, usize), BagError> {
        self.check_topic(record.topic)?;
        let (tables, number) = (&self.scanner.tables, record.topic.id.index());
        let fields = tables.fields(number, &record.payload)?;
        let value = fields.layout.value(&fields.bytes);
        let (value, used) = value.map_err(|error| tables.undecodable(number, &record.payload, &error))?;
        Ok((value, fields.bytes.len() - used))
    }

    /// Returns the layout that decodes a payload of a topic, for custom decoders. Returns `None` if
    /// it is not certain that a definition matches. In this case, [`decode`](Self::decode) returns
    /// the raw bytes.
    ///
    /// # Errors
    /// Returns an error if the payload is too short for its definition, or if the topic belongs to
    /// another bag.
    pub fn layout(&self, topic: &Topic, payload: &[u8]) -> Result<Option<&Layout>, BagError> {
        self.check_topic(topic)?;
        Ok(self.scanner.tables.layout(topic.id.index(), payload)?.map(|layout| &**layout))
    }

    /// Returns an error if a topic belongs to another bag.
    fn check_topic(&self, topic: &Topic) -> Result<(), BagError> {
        if topic.is_element_of(&self.scanner.tables.topics) {
            return Ok(());
        }
        Err(BagError::NoSuchTopic { topic: topic.name.clone() })
    }

    /// Returns the publisher of a message. Before V2.0, only messages of latching publishers name
    /// their publisher, so the result is empty for most messages. A latching publisher sends its
    /// last message to every new subscriber.
    pub fn publisher(&self, record: &Record<'_>) -> Publisher {
        // A record stores the index of its origin (connection record) plus 1. The value 0 is
        // reserved for formats without origins.
        if self.check_topic(record.topic).is_err() {
            return Publisher::default();
        }
        let origin = (record.origin() as usize).checked_sub(1);
        match origin.and_then(|number| self.scanner.content.origins.get(number)) {
            Some(origin) => origin.publisher.clone(),
            None => self.publisher_at(record.offset).unwrap_or_default(),
        }
    }

    /// Returns the publisher that the message at `offset` names. Returns `None` for all versions
    /// except V1.2.
    pub(crate) fn publisher_at(&self, offset: u64) -> Option<Publisher> {
        if self.scanner.line.version != Version::V1_2 {
            return None;
        }
        let (_, data) = Head::of(self.bytes.get(usize::try_from(offset).ok()?..)?)?;
        Some(Publisher::of_fields(data.latching, data.callerid))
    }

    /// Reads a complete record that the scan at opening has found.
    pub(crate) fn wire_record(&self, record: &RecordRef) -> Option<wire::Record<'_>> {
        wire::Record::read(self.bytes_of(&(record.at..record.end))?)
    }

    pub(crate) fn bytes_of(&self, range: &Range<u64>) -> Option<&[u8]> {
        self.bytes.get(usize_of(range.start)..usize_of(range.end))
    }

    /// Returns a cursor over the records in a range of the file. The range must start and end
    /// between two records.
    pub(crate) fn cursor(&self, range: Range<u64>) -> Cursor<'_> {
        Cursor::new(self.version(), &self.scanner.tables.shapes, &self.bytes, &self.index, range)
    }

    /// Returns a cursor over all records of the file.
    pub(crate) fn full_cursor(&self) -> Cursor<'_> {
        self.cursor(0..self.index.blocks.end())
    }

    fn record_of<'a>(&'a self, place: Place, payload: &'a [u8]) -> Record<'a> {
        let Place { time, offset, topic, seq } = place;
        let tables = &self.scanner.tables;
        let time = Timestamp::new(time, tables.clock);
        Record::new(&tables.topics[topic as usize], Some(time), offset, seq, payload, tables)
    }

    /// Returns the positions of the selected messages in time order.
    pub(crate) fn places<'a>(&'a self, select: &Select) -> impl Iterator<Item = Place> + Send + use<'a> {
        order::selected(&self.scanner.tables.topics, select, |wanted| MessagesOf { reader: self, wanted })
    }

    /// Returns the message at a file offset.
    pub(crate) fn message_at(&self, offset: u64) -> Result<MessageRef, BagError> {
        let record = self.cursor(offset..self.index.blocks.end()).record();
        Ok(record.and_then(|record| record.message).ok_or_else(|| changed(offset))?)
    }

    pub(crate) fn record_at(&self, place: Place) -> Result<Record<'_>, BagError> {
        let of = &self.connections()[place.topic as usize];
        let range = payload(&self.bytes, place.offset, self.scanner.line.version, of);
        Ok(self.record_of(place, &self.bytes[range.ok_or_else(|| changed(place.offset))?]))
    }
}

/// Reads the messages of the wanted topics block by block.
struct MessagesOf<'a> {
    reader: &'a BagReader,
    wanted: Vec<bool>,
}

impl Blocks for MessagesOf<'_> {
    fn span(&self, block: usize) -> Option<RangeInclusive<i64>> {
        self.reader.index.blocks.blocks()[block].mark.range()
    }

    fn count(&self) -> usize {
        self.reader.index.blocks.blocks().len()
    }

    fn visit(&self, block: usize, mut visit: impl FnMut(Place)) {
        let reader = self.reader;
        if !reader.index.blocks.has_any(block, &self.wanted) {
            return;
        }
        let mut counts = vec![0; self.wanted.len()];
        for (connection, before) in reader.index.blocks.before(block) {
            counts[*connection as usize] = *before;
        }
        reader.cursor(reader.index.blocks.bytes_of(block)).messages(u64::MAX, |message| {
            let (topic, time, offset) = (message.connection, message.time(), message.at);
            let count = &mut counts[topic as usize];
            if self.wanted[topic as usize] {
                visit(Place { time, offset, topic, seq: *count });
            }
            *count += 1;
        });
    }
}
