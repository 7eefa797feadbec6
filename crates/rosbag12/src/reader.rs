//! The random-access reader: a bag in memory or in a mapped file.

use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};
#[cfg(feature = "arrow")]
use std::sync::atomic::AtomicBool;

use rovelog_core::error::changed;
use rovelog_core::layout::Layout;
use rovelog_core::order::{self, Blocks, Place};
use rovelog_core::scan::{Scan as _, Window};
use rovelog_core::text::escape_bytes;
use rovelog_core::{Bytes, LogInfo, Record, Select, Timestamp, Topic};

use crate::error::BagError;
use crate::index::{Cursor, Index, Message, Record as Met, payload};
use crate::options::BagOptions;
use crate::scan::{Scanner, Step};
use crate::sections::{Differences, Section, differences};
use crate::shapes::Head;
use crate::tables::{Connection, Publisher, Tables, usize_of};
use crate::v2::{Comparison, Compression};
use crate::version::Version;
use crate::wire::{self, Header, IndexEntry};

/// A bag, opened. Opening scans over the record headers once; messages are decoded when asked for.
#[derive(Debug)]
pub struct BagReader {
    pub(crate) bytes: Bytes,
    pub(crate) scanner: Scanner,
    pub(crate) index: Index,
    pub(crate) info: LogInfo,
    pub(crate) options: BagOptions,
    /// Of the chunks that are made of this bag, if set.
    pub(crate) compression: Option<Compression>,
    pub(crate) comparison: Comparison,
    /// Whether columns had to leave out a message that cannot be decoded.
    #[cfg(feature = "arrow")]
    pub(crate) has_undecodable: AtomicBool,
}

impl BagReader {
    /// Opens the bag that `bytes` holds.
    ///
    /// # Errors
    /// Returns an error if the bytes are no ROS 1 bag. Damage is
    /// no error: it is in [`diagnostics`](rovelog_core::LogReader::diagnostics).
    #[expect(clippy::missing_panics_doc, reason = "the window is the whole file")]
    pub fn new(bytes: Bytes, options: &BagOptions) -> Result<Self, BagError> {
        let head = &bytes[..bytes.len().min(Scanner::START)];
        let mut scanner = Scanner::start(head, options)?;
        if scanner.version == Version::V2_0 {
            return Self::chunked(bytes, scanner, options);
        }
        if !options.read.unread.is_empty() {
            return Err(BagError::PartlyRead);
        }
        let mut index = Index::default();
        let window = Window::whole(&bytes);
        let take = |index: &mut Index, met: crate::scan::Met, tables: &mut Tables| {
            let stats = &mut tables.connections[met.connection as usize].stats;
            index.message(met.at, met.connection, met.time, stats);
        };
        loop {
            scanner.messages(&bytes, |met, tables| take(&mut index, met, tables));
            // The window is the whole file, so there is never more to ask for.
            match scanner.step(window).expect("the window reaches the end of the file") {
                Step::Message(met) => take(&mut index, met, &mut scanner.tables),
                Step::Record { .. } => {}
                Step::Passed { at, end } => index.skip(at..end),
                Step::Lost { at, end, .. } => index.lose(at..end),
                Step::End => break,
            }
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

    /// Opens a bag of V2.0, of which `scanner` has read the version line.
    fn chunked(bytes: Bytes, mut scanner: Scanner, options: &BagOptions) -> Result<Self, BagError> {
        let begin = || Scanner::start(&bytes[..bytes.len().min(Scanner::START)], options);
        let mut index = Index::default();
        let unread = &options.read.unread;
        let by_index = !options.read.read_all
            && options.read.packing.is_none()
            && scanner.read_index(&bytes, unread).is_some()
            && (scanner.chunked().cost() >= options.indexed_from || !unread.is_empty());
        if !unread.is_empty() && !by_index {
            return Err(BagError::PartlyRead);
        }
        if by_index {
            scanner.believe_index();
        } else {
            scanner = begin()?;
            let late = scanner.read_all(&bytes, &mut index, options, &[]);
            if !late.is_empty() {
                (scanner, index) = (begin()?, Index::default());
                scanner.read_all(&bytes, &mut index, options, &late);
            }
        }
        for chunk in &scanner.chunked().chunks {
            chunk.extent.check_built_in()?;
        }
        index.blocks.finish(bytes.len() as u64);
        Ok(Self::of(bytes, scanner, index, options))
    }

    /// Opens a bag of before V1.0, which has no version line: on request only, because anything
    /// could be one.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn open_v0(bytes: Bytes, options: &BagOptions) -> Result<Self, BagError> {
        Self::new(bytes, &options.clone().as_version_0())
    }

    /// Returns the version of the bag.
    pub fn version(&self) -> Version {
        self.scanner.version
    }

    /// Returns the version line without its end.
    pub fn version_line(&self) -> &str {
        &self.scanner.line.text
    }

    /// Returns the connections; each has the same index as its topic.
    pub fn connections(&self) -> &[Connection] {
        &self.scanner.tables.connections
    }

    /// Returns the bags in this file, with the state of their indices.
    pub fn sections(&self) -> &[Section] {
        &self.scanner.sections
    }

    /// Returns how the index of a topic differs from its messages in a section, entry by entry;
    /// before V2.0 only.
    pub fn index_differences(&self, section: &Section, topic: &[u8]) -> Differences {
        if self.scanner.v2.is_some() {
            return Differences::default();
        }
        let end =
            self.sections().iter().map(|s| s.offset).find(|at| *at > section.offset).unwrap_or(u64::MAX);
        let (mut index, mut scan) = (Vec::new(), Vec::new());
        for record in self.cursor().filter(|record| (section.offset..end).contains(&record.at)) {
            if let Some(message) = &record.message {
                if self.connections()[message.connection as usize].topic == topic {
                    scan.push((message.sec, message.nsec, record.at - section.offset));
                }
            } else if let Some(wire::Record { header: Header::Index(header), data }) =
                self.wire_record(&record)
                && header.topic == topic
            {
                let entries = IndexEntry::all_of(data).iter();
                index.extend(entries.map(|e| (e.sec.get(), e.nsec.get(), section.meant(e.pos.get()))));
            }
        }
        differences(index, scan)
    }

    /// Returns the number of valid records with this op.
    pub fn records_of(&self, op: u8) -> u64 {
        self.scanner.ops[usize::from(op)]
    }

    /// Returns the number of messages whose stamp is lower than that of the message before.
    pub fn times_going_back(&self) -> u64 {
        self.scanner.going_back
    }

    /// Returns how many latched messages of a topic each publisher sent, by the name of its node.
    pub fn callerids(&self, topic: &Topic) -> BTreeMap<String, u64> {
        let tables = &self.scanner.tables;
        let mut found = BTreeMap::new();
        if !topic.is_of(&tables.topics) {
            return found;
        }
        if let Some(state) = &self.scanner.v2 {
            for origin in state.origins.iter().filter(|o| o.connection == topic.id.0 && o.count > 0) {
                if let Some(name) = &origin.publisher.callerid {
                    *found.entry(name.clone()).or_default() += origin.count;
                }
            }
        }
        for shape in tables.shapes.list.iter().filter(|shape| shape.connection == topic.id.0) {
            if let Some(name) = shape.callerid.and_then(|id| tables.callerids.get(id as usize)) {
                *found.entry(escape_bytes(name)).or_default() += shape.count;
            }
        }
        found
    }

    /// Returns all messages in file order, as records.
    pub fn records_in_file_order(&self) -> Box<dyn Iterator<Item = Record<'_>> + Send + '_> {
        self.as_stored(&Select::all())
    }

    /// Returns the messages of the selected topics in file order; before V2.0 those of all.
    pub(crate) fn as_stored<'a>(
        &'a self,
        select: &Select,
    ) -> Box<dyn Iterator<Item = Record<'a>> + Send + 'a> {
        if self.scanner.v2.is_some() {
            return Box::new(self.chunked_as_stored(select));
        }
        let mut counts = vec![0; self.scanner.tables.topics.len()];
        Box::new(self.cursor().filter_map(move |record| {
            let message = record.message?;
            let seq = counts[message.connection as usize];
            counts[message.connection as usize] += 1;
            Some(self.record(&message, record.at, seq))
        }))
    }

    /// Hands every message in file order to `visit`: offset, topic, stamp in nanoseconds, payload.
    /// The fastest way through a bag.
    pub fn scan(&self, mut visit: impl FnMut(u64, &Topic, i64, &[u8])) {
        if self.scanner.v2.is_some() {
            return self.scan_chunks(visit);
        }
        self.cursor().messages(u64::MAX, |at, message| {
            let topic = &self.scanner.tables.topics[message.connection as usize];
            visit(
                at,
                topic,
                message.time(),
                &self.bytes[message.payload_at..message.payload_at + message.len],
            );
        });
    }

    /// Returns the fields of a record, and how many bytes its payload has behind them.
    ///
    /// # Errors
    /// Returns an error if the payload is too short for its definition, or the record is one of
    /// another bag.
    pub fn decode(&self, record: &Record<'_>) -> Result<(rovelog_core::Value, usize), BagError> {
        self.own(record.topic)?;
        self.scanner.tables.decode(record.topic.id.index(), &record.payload)
    }

    /// Returns the layout by which a payload of a topic decodes, for decoders into types of one's
    /// own; none where [`decode`](Self::decode) gives the bytes, because no definition is sure to
    /// fit.
    ///
    /// # Errors
    /// Returns an error if the payload is too short for its definition, or the topic is one of
    /// another bag.
    pub fn layout(&self, topic: &Topic, payload: &[u8]) -> Result<Option<&Layout>, BagError> {
        self.own(topic)?;
        Ok(self.scanner.tables.layout(topic.id.index(), payload)?.map(|layout| &**layout))
    }

    fn own(&self, topic: &Topic) -> Result<(), BagError> {
        let is_own = topic.is_of(&self.scanner.tables.topics);
        is_own.then_some(()).ok_or_else(|| BagError::NoSuchTopic { topic: topic.name.clone() })
    }

    /// Returns the publisher of a message; empty for most messages, because only those of latching
    /// publishers name it.
    pub fn publisher(&self, record: &Record<'_>) -> Publisher {
        if let (Some(state), Ok(())) = (&self.scanner.v2, self.own(record.topic)) {
            let origin =
                (record.origin() as usize).checked_sub(1).and_then(|number| state.origins.get(number));
            return origin.map(|origin| origin.publisher.clone()).unwrap_or_default();
        }
        let is_own = self.own(record.topic).is_ok();
        is_own.then(|| self.publisher_at(record.offset)).flatten().unwrap_or_default()
    }

    /// Returns the publisher of the message at an offset; `None` before V1.2, and in V2.0, where
    /// connections name it.
    pub(crate) fn publisher_at(&self, offset: u64) -> Option<Publisher> {
        if self.scanner.version != Version::V1_2 {
            return None;
        }
        let (_, data) = Head::of(self.bytes.get(usize::try_from(offset).ok()?..)?)?;
        Some(Publisher { latching: data.latching == Some(b"1"), callerid: data.callerid.map(escape_bytes) })
    }

    /// Returns a record that the first scanner has found.
    pub(crate) fn wire_record(&self, record: &Met) -> Option<wire::Record<'_>> {
        wire::Record::read(self.bytes_of(&(record.at..record.end))?)
    }

    pub(crate) fn bytes_of(&self, range: &Range<u64>) -> Option<&[u8]> {
        self.bytes.get(usize_of(range.start)..usize_of(range.end))
    }

    pub(crate) fn cursor(&self) -> Cursor<'_> {
        Cursor::all(&self.bytes, &self.index, &self.scanner.tables, self.scanner.version)
    }

    pub(crate) fn record(&self, message: &Message, at: u64, seq: u64) -> Record<'_> {
        let place = Place { time: message.time(), offset: at, topic: message.connection, seq };
        self.record_of(place, message.payload_at, message.len)
    }

    fn record_of(&self, place: Place, payload_at: usize, len: usize) -> Record<'_> {
        let Place { time, offset, topic, seq } = place;
        let tables = &self.scanner.tables;
        let payload = &self.bytes[payload_at..payload_at + len];
        let time = Timestamp::new(time, tables.clock);
        Record::new(&tables.topics[topic as usize], Some(time), offset, seq, payload, tables)
    }

    /// Returns the places of the selected messages, in time order.
    pub(crate) fn places<'a>(&'a self, select: &Select) -> impl Iterator<Item = Place> + Send + use<'a> {
        order::selected(&self.scanner.tables.topics, select, |wanted| MessagesOf { reader: self, wanted })
    }

    /// Returns the message at a place that [`places`](Self::places) handed out.
    pub(crate) fn message_at(&self, offset: u64) -> Result<(Met, Message), BagError> {
        let found =
            Cursor::message_at(&self.bytes, &self.index, &self.scanner.tables, self.scanner.version, offset);
        Ok(found.ok_or_else(|| changed(offset))?)
    }

    pub(crate) fn record_at(&self, place: Place) -> Result<Record<'_>, BagError> {
        let of = &self.connections()[place.topic as usize];
        let payload = payload(&self.bytes, place.offset, self.scanner.version, of);
        let (payload_at, len) = payload.ok_or_else(|| changed(place.offset))?;
        Ok(self.record_of(place, payload_at, len))
    }
}

/// The messages of some topics, block by block.
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
        let scanner = &reader.scanner;
        let mut cursor = Cursor::block(&reader.bytes, &reader.index, &scanner.tables, scanner.version, block);
        cursor.messages(u64::MAX, |offset, message| {
            let connection = message.connection as usize;
            if self.wanted[connection] {
                let seq = counts[connection];
                visit(Place { time: message.time(), offset, topic: message.connection, seq });
            }
            counts[connection] += 1;
        });
    }
}
