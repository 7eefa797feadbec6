//! The steps that build a bag of V2.0, from the specification "Bags/Format/2.0".

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::{Value as Json, json};

use super::super::log::{Publishers, Stamp, Topic, chatter, fields, record, text, u32_of};
use super::super::stamp;
use super::pack::{bz2, lz4};
use crate::Made;
use crate::lay::{base64, lay};
use crate::shape::values;

/// A bag during construction.
pub(super) type Bag = crate::log::Log<Own>;

/// The version line.
pub(super) const VERSION_LINE: &[u8] = b"#ROSBAG V2.0\n";

/// Bytes of the header and the data of a bag header.
pub(super) const BAG_HEADER_SIZE: usize = 4096;

/// Bytes of a message record before its payload.
pub(super) const MESSAGE_HEAD: usize = 46;

/// Parts that only bags of V2.0 have.
#[derive(Default)]
pub(super) struct Own {
    topics: Vec<(Topic, Publishers)>,
    times: Vec<i64>,
    ops: BTreeMap<String, u64>,
    sections: Vec<Json>,
    /// Chunks by state.
    states: BTreeMap<&'static str, u64>,
    /// The connections of the index section.
    pub(super) connections: BTreeMap<u32, Conn>,
    /// The chunk infos of the index section.
    pub(super) infos: Vec<Info>,
    section_at: usize,
    line: &'static [u8],
    /// Further fields of the bag header.
    more: Vec<(&'static str, &'static [u8])>,
    padding: usize,
}

/// A chunk info record.
#[derive(Clone)]
pub(super) struct Info {
    pub(super) pos: u64,
    pub(super) span: (Stamp, Stamp),
    pub(super) counts: Vec<(u32, u32)>,
}

impl Info {
    /// Returns its record.
    pub(super) fn record(&self) -> Vec<u8> {
        let (pos, count) = (self.pos.to_le_bytes(), u32_of(self.counts.len()).to_le_bytes());
        let (start, end) = (lay![self.span.0], lay![self.span.1]);
        let fields: [(&str, &[u8]); 6] = [
            ("chunk_pos", &pos),
            ("count", &count),
            ("end_time", &end),
            ("op", &[6]),
            ("start_time", &start),
            ("ver", &[1, 0, 0, 0]),
        ];
        record(&fields, &lay![self.counts])
    }
}

/// A connection: its id, topic, and what its record says of the publisher.
#[derive(Clone)]
pub(super) struct Conn {
    pub(super) id: u32,
    pub(super) topic: Topic,
    /// Name of the node, and whether it latches.
    publisher: Option<(&'static str, bool)>,
    /// The topic in the data, if it differs from that of the record.
    named: Option<&'static str>,
    /// Its record, if that has another order of fields.
    written: Option<Vec<u8>>,
    more: Vec<(&'static str, &'static [u8])>,
}

impl Conn {
    /// Returns a connection without a publisher, as Python writes it.
    pub(super) fn of(id: u32, topic: &Topic) -> Self {
        Self { id, topic: topic.clone(), publisher: None, named: None, written: None, more: Vec::new() }
    }

    /// Sets the publisher, which the C++ recorder always writes.
    pub(super) fn by(mut self, node: &'static str, latching: bool) -> Self {
        self.publisher = Some((node, latching));
        self
    }

    /// Sets the topic in the data.
    pub(super) fn named(mut self, topic: &'static str) -> Self {
        self.named = Some(topic);
        self
    }

    /// Adds a field to the data.
    pub(super) fn with(mut self, name: &'static str, value: &'static [u8]) -> Self {
        self.more.push((name, value));
        self
    }

    /// Sets the bytes of its record.
    pub(super) fn written(mut self, record: Vec<u8>) -> Self {
        self.written = Some(record);
        self
    }

    /// Returns its record, with the fields in the order of the C++ recorder.
    pub(super) fn record(&self) -> Vec<u8> {
        if let Some(written) = &self.written {
            return written.clone();
        }
        let topic = &self.topic;
        let latching = self.publisher.map(|(_, latching)| if latching { b"1" } else { b"0" });
        let mut data: Vec<(&str, &[u8])> = self.more.clone();
        data.extend(self.publisher.map(|(node, _)| ("callerid", node.as_bytes())));
        data.extend(latching.map(|latching| ("latching", &latching[..])));
        data.extend([("md5sum", topic.md5.as_bytes()), ("message_definition", topic.def.as_bytes())]);
        data.extend([("topic", self.named.unwrap_or(&topic.name).as_bytes()), ("type", topic.ty.as_bytes())]);
        let id = self.id.to_le_bytes();
        record(&[("conn", &id), ("op", &[7]), ("topic", topic.name.as_bytes())], &fields(&data))
    }

    /// Returns the record of a message.
    pub(super) fn message(&self, stamp: Stamp, payload: &[u8]) -> Vec<u8> {
        let (id, time) = (self.id.to_le_bytes(), lay![stamp]);
        record(&[("conn", &id), ("op", &[2]), ("time", &time)], payload)
    }

    /// Returns the record of a message of a text.
    pub(super) fn said(&self, i: u32) -> Vec<u8> {
        self.message(stamp(i), &text(format!("m{i}")))
    }
}

/// What a reader finds in a chunk.
#[derive(Clone)]
enum Found {
    /// A record of this op that is not a message.
    Other(u8),
    Message(Box<Conn>, Stamp, Json),
}

/// The records of a chunk, uncompressed, and what a reader finds in them.
#[derive(Clone, Default)]
pub(super) struct Content {
    pub(super) bytes: Vec<u8>,
    found: Vec<(usize, Found)>,
    entries: BTreeMap<u32, Vec<(Stamp, u32)>>,
    connections: Vec<Conn>,
    notes: Vec<(usize, &'static str)>,
    lost: Vec<(&'static str, Range<usize>)>,
}

impl Content {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Adds bytes that the expected result does not mention.
    pub(super) fn lay(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.bytes.extend_from_slice(bytes.as_ref());
        self
    }

    /// Adds the record of a connection.
    pub(super) fn connect(mut self, conn: &Conn) -> Self {
        self.connections.push(conn.clone());
        self.other(7, conn.record())
    }

    /// Adds an intact record that is not a message.
    pub(super) fn other(mut self, op: u8, bytes: impl AsRef<[u8]>) -> Self {
        self.found.push((self.bytes.len(), Found::Other(op)));
        self.lay(bytes)
    }

    /// Adds a message with these bytes of its record, and its expected data.
    pub(super) fn message_as(
        mut self,
        conn: &Conn,
        stamp: Stamp,
        bytes: impl AsRef<[u8]>,
        data: Json,
    ) -> Self {
        self.found.push((self.bytes.len(), Found::Message(Box::new(conn.clone()), stamp, data)));
        self.name(conn, stamp).lay(bytes)
    }

    /// Names the next bytes in the index data.
    pub(super) fn name(mut self, conn: &Conn, stamp: Stamp) -> Self {
        let offset = u32_of(self.bytes.len());
        self.entries.entry(conn.id).or_default().push((stamp, offset));
        self
    }

    /// Adds a message of `std_msgs/String`.
    pub(super) fn say(self, conn: &Conn, stamp: Stamp, said: &str) -> Self {
        let data = conn.topic.value(&values![said]);
        self.message_as(conn, stamp, conn.message(stamp, &text(said)), data)
    }

    /// Adds a message of which readers return only the bytes.
    pub(super) fn raw(self, conn: &Conn, stamp: Stamp, payload: &[u8]) -> Self {
        let data = json!({"raw": base64(payload)});
        self.message_as(conn, stamp, conn.message(stamp, payload), data)
    }

    /// Adds messages of a connection of texts.
    pub(super) fn talk(self, conn: &Conn, numbers: Range<u32>) -> Self {
        numbers.fold(self, |content, i| content.say(conn, stamp(i), &format!("m{i}")))
    }

    /// Adds a note about the next bytes.
    pub(super) fn note(mut self, code: &'static str) -> Self {
        self.notes.push((self.bytes.len(), code));
        self
    }

    /// Adds a note about the payload of the next message.
    pub(super) fn note_payload(mut self, at: usize, code: &'static str) -> Self {
        self.notes.push((self.bytes.len() + MESSAGE_HEAD + at, code));
        self
    }

    /// Adds bytes that are lost, as one range.
    pub(super) fn lose(mut self, code: &'static str, bytes: impl AsRef<[u8]>) -> Self {
        let start = self.bytes.len();
        self = self.lay(bytes);
        self.lost.push((code, start..self.bytes.len()));
        self
    }

    /// Returns the times of the messages, and their number by connection.
    fn summary(&self) -> ((Stamp, Stamp), Vec<(u32, u32)>) {
        let stamps = || self.entries.values().flatten().map(|(stamp, _)| *stamp);
        let span = stamps().min().zip(stamps().max()).unwrap_or_default();
        (span, self.entries.iter().map(|(id, entries)| (*id, u32_of(entries.len()))).collect())
    }

    /// Returns an uncompressed chunk.
    pub(super) fn plain(self) -> Chunk {
        self.stored("none", Vec::clone)
    }

    /// Returns a chunk compressed with lz4, as the recorder writes it.
    pub(super) fn lz4(self) -> Chunk {
        self.stored("lz4", |bytes| lz4(bytes))
    }

    /// Returns a chunk compressed with bzip2.
    pub(super) fn bz2(self) -> Chunk {
        self.stored("bz2", |bytes| bz2(bytes))
    }

    /// Returns a chunk with data made of the records by `pack`.
    pub(super) fn stored(self, compression: &'static str, pack: impl FnOnce(&Vec<u8>) -> Vec<u8>) -> Chunk {
        let index = self.entries.iter().map(|(id, entries)| index_data(*id, entries)).collect();
        Chunk {
            compression,
            size: u32_of(self.bytes.len()),
            data: pack(&self.bytes),
            data_len: None,
            state: "whole",
            kept: self.found.len(),
            lost: Vec::new(),
            notes: Vec::new(),
            index,
            content: self,
        }
    }
}

/// Returns the connection of most bags here.
pub(super) fn talker() -> Conn {
    Conn::of(0, &chatter()).by("/talker", false)
}

/// Returns messages of that connection, after its record if they are the first.
pub(super) fn talk(numbers: Range<u32>) -> Content {
    let content = Content::new();
    let content = if numbers.start == 0 { content.connect(&talker()) } else { content };
    content.talk(&talker(), numbers)
}

/// Returns an index data record.
pub(super) fn index_data(id: u32, entries: &[(Stamp, u32)]) -> Vec<u8> {
    let (id, count) = (id.to_le_bytes(), u32_of(entries.len()).to_le_bytes());
    let fields: [(&str, &[u8]); 4] = [("conn", &id), ("count", &count), ("op", &[4]), ("ver", &[1, 0, 0, 0])];
    // By time; equal times stay in their order.
    let mut entries = entries.to_vec();
    entries.sort_by_key(|(stamp, _)| *stamp);
    record(&fields, &lay![entries])
}

/// A chunk record with the index data after it.
#[derive(Clone)]
pub(super) struct Chunk {
    content: Content,
    compression: &'static str,
    size: u32,
    pub(super) data: Vec<u8>,
    data_len: Option<u32>,
    state: &'static str,
    /// Number of records that a reader finds in it.
    kept: usize,
    lost: Vec<(&'static str, Range<usize>)>,
    notes: Vec<&'static str>,
    index: Vec<Vec<u8>>,
}

impl Chunk {
    /// Replaces the uncompressed size in the header.
    pub(super) fn size(mut self, size: u32) -> Self {
        self.size = size;
        self
    }

    /// Replaces the length of the data in the header.
    pub(super) fn data_len(mut self, len: u32) -> Self {
        self.data_len = Some(len);
        self
    }

    /// Replaces the data.
    pub(super) fn data(mut self, change: impl FnOnce(&mut Vec<u8>)) -> Self {
        change(&mut self.data);
        self
    }

    /// Expects this state, and a note about the header if there is one.
    pub(super) fn state(mut self, state: &'static str, note: impl Into<Option<&'static str>>) -> Self {
        self.state = state;
        self.notes.extend(note.into());
        self
    }

    /// Expects only the first records; the data from `from` on are lost.
    pub(super) fn keep(mut self, records: usize, code: &'static str, from: usize) -> Self {
        self.kept = records;
        self.lose(code, from)
    }

    /// Expects the data from `from` on to be lost.
    pub(super) fn lose(mut self, code: &'static str, from: usize) -> Self {
        self.lost.push((code, from..self.data.len()));
        self
    }

    /// Expects bytes that hold no record after the records, in the same compressed stream.
    pub(super) fn zeros(self) -> Self {
        self.lose_at(0..0)
    }

    fn lose_at(mut self, range: Range<usize>) -> Self {
        self.lost.push(("lost_in_chunk", range));
        self
    }

    /// Changes the index data.
    pub(super) fn index(mut self, change: impl FnOnce(&mut Vec<Vec<u8>>)) -> Self {
        change(&mut self.index);
        self
    }

    /// Removes the index data.
    pub(super) fn unindexed(self) -> Self {
        self.index(Vec::clear)
    }

    /// Returns the header of its record.
    pub(super) fn head(&self) -> Vec<u8> {
        let fields: [(&str, &[u8]); 3] =
            [("compression", self.compression.as_bytes()), ("op", &[5]), ("size", &self.size.to_le_bytes())];
        let mut head = record(&fields, b"");
        head.truncate(head.len() - 4);
        lay![head, self.data_len.unwrap_or(u32_of(self.data.len()))]
    }
}

impl Bag {
    /// Returns a bag with version line and bag header, as recorders start it.
    pub(super) fn recorder() -> Self {
        Self::starting(VERSION_LINE, BAG_HEADER_SIZE - 69, &[])
    }

    /// Returns a bag with this version line, whose bag header has this padding and these further
    /// fields.
    pub(super) fn starting(
        line: &'static [u8],
        padding: usize,
        more: &[(&'static str, &'static [u8])],
    ) -> Self {
        let own = Own { line, padding, more: more.to_vec(), ..Own::default() };
        Self::of(line.to_vec(), own).begin_records()
    }

    fn begin_records(self) -> Self {
        let header = self.bag_header(0, 0, 0);
        self.other(3, header)
    }

    /// Returns the bag header record.
    fn bag_header(&self, index_pos: u64, connections: u32, chunks: u32) -> Vec<u8> {
        let (pos, connections, chunks) =
            (index_pos.to_le_bytes(), connections.to_le_bytes(), chunks.to_le_bytes());
        let mut fields: Vec<(&str, &[u8])> = vec![("chunk_count", &chunks), ("conn_count", &connections)];
        fields.extend(&self.own.more);
        fields.extend([("index_pos", &pos[..]), ("op", &[3])]);
        record(&fields, &vec![b' '; self.own.padding])
    }

    /// Returns the offset of the bag header.
    pub(super) fn header_at(&self) -> usize {
        self.own.section_at + self.own.line.len()
    }

    /// Replaces the bag header.
    pub(super) fn set_header(self, index_pos: u64, connections: u32, chunks: u32) -> Self {
        let header = self.bag_header(index_pos, connections, chunks);
        let at = self.header_at();
        self.set(at, header)
    }

    fn count(&mut self, op: u8) {
        *self.own.ops.entry(op.to_string()).or_default() += 1;
    }

    /// Adds an intact record that is not a chunk.
    pub(super) fn other(mut self, op: u8, bytes: impl AsRef<[u8]>) -> Self {
        self.count(op);
        self.lay(bytes)
    }

    fn known(&mut self, topic: &Topic) -> usize {
        self.own.topics.iter().position(|(known, _)| known.is(topic)).unwrap_or_else(|| {
            self.own.topics.push((topic.clone(), Publishers::default()));
            self.add_topic(topic.shown_name(), &topic.ty, topic.fields())
        })
    }

    /// Adds a chunk and its index data.
    pub(super) fn put(mut self, chunk: Chunk) -> Self {
        let pos = (self.at() - self.own.section_at) as u64;
        let (span, counts) = chunk.content.summary();
        self.own.infos.push(Info { pos, span, counts });
        self.count(5);
        let (at, head) = (self.at(), chunk.head());
        for note in &chunk.notes {
            self = self.note(note);
        }
        self = self.lay(&head).put_content(at, &chunk);
        chunk.index.into_iter().fold(self, |bag, record| bag.other(4, record))
    }

    /// Adds the data of a chunk whose record starts at `at`.
    fn put_content(mut self, at: usize, chunk: &Chunk) -> Self {
        *self.own.states.entry(chunk.state).or_default() += 1;
        let (data_at, is_plain) = (self.at(), chunk.compression == "none");
        for conn in &chunk.content.connections {
            self.own.connections.entry(conn.id).or_insert_with(|| conn.clone());
        }
        for (offset, found) in chunk.content.found.iter().take(chunk.kept) {
            match found {
                Found::Other(op) => self.count(*op),
                Found::Message(conn, stamp, data) => {
                    self.count(2);
                    // A record of a compressed chunk has the offset of the chunk.
                    let offset = if is_plain { data_at + offset } else { at };
                    self.found(offset, conn, *stamp, data);
                }
            }
        }
        for (offset, code) in &chunk.content.notes {
            self = self.note_at(data_at + if is_plain { *offset } else { 0 }, code);
        }
        for (code, range) in chunk.content.lost.iter().chain(&chunk.lost) {
            self = self.lose_range(code, data_at + range.start..data_at + range.end);
        }
        self.lay(&chunk.data)
    }

    /// Adds an expected message.
    fn found(&mut self, offset: usize, conn: &Conn, stamp: Stamp, data: &Json) {
        let number = self.known(&conn.topic);
        if let Some((node, latching)) = conn.publisher {
            let publishers = &mut self.own.topics[number].1;
            publishers.latched += u64::from(latching);
            *publishers.callerids.entry(node.to_owned()).or_default() += 1;
        }
        let nanos = i64::from(stamp.0) * 1_000_000_000 + i64::from(stamp.1);
        self.own.times.push(nanos);
        self.record_at(offset, number, Some(nanos.into()), data);
    }

    /// Adds records of a chunk without the header of the chunk.
    pub(super) fn headless(self, content: Content) -> Self {
        let at = self.at();
        let chunk = content.plain();
        let bag = self.note_at(at, "chunk_headless").put_content(at, &chunk);
        chunk.index.iter().fold(bag, |bag, record| bag.other(4, record))
    }

    /// Changes the index section before it is written.
    pub(super) fn change(mut self, change: impl FnOnce(&mut Own)) -> Self {
        change(&mut self.own);
        self
    }

    /// Writes the index section.
    pub(super) fn index_section(mut self) -> Self {
        for conn in std::mem::take(&mut self.own.connections).into_values() {
            self.known(&conn.topic);
            self = self.other(7, conn.record());
        }
        std::mem::take(&mut self.own.infos).iter().fold(self, |bag, info| bag.other(6, info.record()))
    }

    /// Writes the index section and the bag header, as a recorder does when it is stopped.
    pub(super) fn close(self) -> Self {
        self.close_as("exact")
    }

    /// Closes the bag with an index that differs from the messages.
    pub(super) fn close_differing(self) -> Self {
        self.note("index_differs").close_as("differs")
    }

    /// Closes the bag; a reader finds its index in this state.
    pub(super) fn close_as(self, state: &str) -> Self {
        let pos = (self.at() - self.own.section_at) as u64;
        let counts = (u32_of(self.own.connections.len()), u32_of(self.own.infos.len()));
        self.index_section().set_header(pos, counts.0, counts.1).section(pos, state)
    }

    /// Ends the bag without an index, like a recorder that was killed.
    pub(super) fn unindexed(self) -> Self {
        self.unindexed_at(0)
    }

    /// Ends the bag without an index; the bag header has this position.
    pub(super) fn unindexed_at(self, pos: u64) -> Self {
        let at = self.header_at();
        self.note_at(at, "unindexed").section(pos, "absent")
    }

    /// Ends a section: the position in its bag header, and the state of its index.
    pub(super) fn section(mut self, index_pos: u64, state: &str) -> Self {
        let at = self.own.section_at;
        self.own.sections.push(json!({
            "offset": at, "index_pos": index_pos, "raw_padding": null, "index": state,
        }));
        self
    }

    /// Starts another bag in the same file.
    pub(super) fn begin_section(mut self) -> Self {
        self.own.section_at = self.at();
        let line = self.own.line;
        self.note("appended_section").lay(line).begin_records()
    }
}

impl From<Bag> for Made {
    fn from(mut bag: Bag) -> Self {
        let own = std::mem::take(&mut bag.own);
        let end = own.times.iter().max();
        let start = own.times.iter().filter(|time| **time > 0).min().or(end);
        let mut rosbag = json!({
            "records": own.ops,
            "sections": own.sections,
            "connections":
                own.topics.iter().map(|(topic, publishers)| topic.connection(publishers)).collect::<Json>(),
        });
        if !own.states.is_empty() {
            rosbag["chunks"] = json!(own.states);
        }
        let head = json!({
            "format": {"id": "rosbag", "version": "2.0"},
            "clock": "unix",
            "start_ns": start.map(ToString::to_string),
            "end_ns": end.map(ToString::to_string),
            "texts": [],
            "rosbag": rosbag,
        });
        bag.made(head)
    }
}
