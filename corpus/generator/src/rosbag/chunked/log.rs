//! The steps that build a bag of version 2.0 according to the specification "Bags/Format/2.0".

use std::collections::BTreeMap;
use std::io::Write as _;
use std::ops::Range;

use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};

use crate::log::{Log, increment};
use crate::rosbag::prelude::*;

/// A bag that is being built.
pub(super) type Bag = Log<Own<Index>>;

/// The version line.
pub(super) const VERSION_LINE: &[u8] = b"#ROSBAG V2.0\n";

/// Size in bytes of the header and data of the bag header record together.
pub(super) const BAG_HEADER_SIZE: usize = 4096;

/// Size in bytes of a message record before its payload.
const MESSAGE_HEAD: usize = 46;

/// Content of the index section.
#[derive(Default)]
pub(super) struct Index {
    pub(super) connections: BTreeMap<u32, Conn>,
    pub(super) infos: Vec<Info>,
}

/// A chunk info record.
#[derive(Clone)]
pub(super) struct Info {
    pub(super) pos: u64,
    pub(super) span: (Stamp, Stamp),
    pub(super) counts: Vec<(u32, u32)>,
}

impl Info {
    /// Returns the record.
    pub(super) fn record(&self) -> Vec<u8> {
        let fields: &Fields<'_> = &[
            ("chunk_pos", &self.pos),
            ("count", &u32_of(self.counts.len())),
            ("end_time", &self.span.1),
            ("op", &6_u8),
            ("start_time", &self.span.0),
            ("ver", &1_u32),
        ];
        record(fields, lay![self.counts])
    }
}

/// Name of the publishing node, and true if it latches.
type Publisher = Option<(&'static str, bool)>;

/// A connection.
#[derive(Clone)]
pub(super) struct Conn {
    pub(super) id: u32,
    pub(super) topic: Topic,
    publisher: Publisher,
    /// Connection record.
    pub(super) record: Vec<u8>,
}

impl Conn {
    /// Creates a connection without a publisher, as the Python library writes it.
    pub(super) fn of(id: u32, topic: &Topic) -> Self {
        Self::with(id, topic, None, &topic.name, &[])
    }

    /// Creates a connection with a publisher, which the C++ recorder always writes. `named` is the
    /// topic in the data of the record, which starts with the additional fields `more`. The other
    /// fields have the same order as in the C++ recorder.
    pub(super) fn with(id: u32, topic: &Topic, publisher: Publisher, named: &str, more: &Fields<'_>) -> Self {
        let mut data = more.to_vec();
        if let Some((node, latching)) = &publisher {
            data.extend([("callerid", node as &dyn Laid), ("latching", if *latching { b"1" } else { b"0" })]);
        }
        let Topic { name, ty, md5, def, .. } = topic;
        let own: &Fields<'_> =
            &[("md5sum", md5), ("message_definition", def), ("topic", &named), ("type", ty)];
        let data = fields(&[&data, own].concat());
        let record = record(&[("conn", &id), ("op", &7_u8), ("topic", name)], data);
        Self { id, topic: topic.clone(), publisher, record }
    }

    /// Creates a connection whose record has other bytes than those of recorders.
    pub(super) fn written(id: u32, topic: &Topic, record: Vec<u8>) -> Self {
        Self { id, topic: topic.clone(), publisher: None, record }
    }

    /// Returns the record of a message.
    pub(super) fn message(&self, stamp: Stamp, payload: impl AsRef<[u8]>) -> Vec<u8> {
        record(&[("conn", &self.id), ("op", &2_u8), ("time", &stamp)], payload)
    }

    /// Returns the record of a message of a text.
    pub(super) fn said(&self, i: u32) -> Vec<u8> {
        self.message(stamp(i), text(format!("m{i}")))
    }
}

/// A record that a reader finds in a chunk.
struct Found {
    /// Offset in the decompressed chunk.
    offset: usize,
    op: u8,
    /// Connection, time and expected data of a message. `None` for other records.
    message: Option<(Conn, Stamp, Json)>,
}

/// Uncompressed records of a chunk, and their expected result.
pub(super) type Content = Log<Records>;

/// Parts that only records of a chunk have.
#[derive(Default)]
pub(super) struct Records {
    found: Vec<Found>,
    /// Time and offset of the messages of each connection.
    entries: BTreeMap<u32, Vec<(Stamp, u32)>>,
    connections: Vec<Conn>,
}

impl Content {
    pub(super) fn new() -> Self {
        Self::of(Vec::new(), Records::default())
    }

    /// Adds the record of a connection.
    pub(super) fn connect(mut self, conn: &Conn) -> Self {
        self.own.connections.push(conn.clone());
        self.other(7, &conn.record)
    }

    /// Adds an intact record that is not a message.
    pub(super) fn other(mut self, op: u8, bytes: impl AsRef<[u8]>) -> Self {
        self.own.found.push(Found { offset: self.bytes.len(), op, message: None });
        self.lay(bytes)
    }

    /// Adds a message whose record has the bytes `bytes`. `data` is the expected result.
    pub(super) fn message_as(mut self, conn: &Conn, stamp: Stamp, bytes: Vec<u8>, data: Json) -> Self {
        let message = Some((conn.clone(), stamp, data));
        self.own.found.push(Found { offset: self.bytes.len(), op: 2, message });
        self.name(conn, stamp).lay(bytes)
    }

    /// Adds a message with this payload in the form of recorders.
    pub(super) fn message(self, conn: &Conn, stamp: Stamp, payload: impl AsRef<[u8]>, data: Json) -> Self {
        self.message_as(conn, stamp, conn.message(stamp, payload), data)
    }

    /// Adds an entry for the next bytes to the index data.
    pub(super) fn name(mut self, conn: &Conn, stamp: Stamp) -> Self {
        let offset = u32_of(self.at());
        self.own.entries.entry(conn.id).or_default().push((stamp, offset));
        self
    }

    /// Adds a message of `std_msgs/String`.
    pub(super) fn say(self, conn: &Conn, stamp: Stamp, said: &str) -> Self {
        self.message(conn, stamp, text(said), conn.topic.value(&values![said]))
    }

    /// Adds a message that readers return as bytes.
    pub(super) fn raw(self, conn: &Conn, stamp: Stamp, payload: &[u8]) -> Self {
        self.message(conn, stamp, payload, json!({"raw": base64(payload)}))
    }

    /// Adds messages of a connection whose messages are texts.
    pub(super) fn talk(self, conn: &Conn, numbers: Range<u32>) -> Self {
        self.each(numbers, |content, i| content.say(conn, stamp(i), &format!("m{i}")))
    }

    /// Expects a note about the payload of the next message. `at` is an offset in the payload.
    pub(super) fn note_payload(self, at: usize, code: &'static str) -> Self {
        let at = self.at() + MESSAGE_HEAD + at;
        self.note_at(at, code)
    }

    /// Returns a closed bag with the records as its only chunk, which is not compressed.
    pub(super) fn closed(self) -> Bag {
        Bag::with([self]).close()
    }

    /// Returns an uncompressed chunk.
    pub(super) fn plain(self) -> Chunk {
        self.stored("none", Vec::clone)
    }

    /// Returns a chunk that is compressed with LZ4 in the same way as by the recorder.
    pub(super) fn lz4(self) -> Chunk {
        self.stored("lz4", |bytes| lz4(bytes))
    }

    /// Returns a chunk that is compressed with bzip2.
    pub(super) fn bz2(self) -> Chunk {
        self.stored("bz2", |bytes| bz2(bytes))
    }

    /// Returns a chunk. `compression` is the name in its header. `pack` compresses the records.
    pub(super) fn stored(self, compression: &'static str, pack: impl FnOnce(&Vec<u8>) -> Vec<u8>) -> Chunk {
        let data = pack(&self.bytes);
        Chunk {
            compression,
            size: u32_of(self.at()),
            data_len: u32_of(data.len()),
            data,
            state: "whole",
            kept: self.own.found.len(),
            lost: Vec::new(),
            note: None,
            index: self.own.entries.iter().map(|(id, entries)| index_data(*id, entries)).collect(),
            content: self,
        }
    }
}

/// Returns the connection of most test bags.
pub(super) fn talker() -> Conn {
    by(0, "/talker", false)
}

/// Returns a connection of the usual topic with a publisher, which is latching or not.
pub(super) fn by(id: u32, node: &'static str, latching: bool) -> Conn {
    Conn::with(id, &chatter(), Some((node, latching)), "/chatter", &[])
}

/// Returns messages of the usual connection. The connection record is added before message 0.
pub(super) fn talk(numbers: Range<u32>) -> Content {
    let content = Content::new().when(numbers.start == 0, |content| content.connect(&talker()));
    content.talk(&talker(), numbers)
}

/// Returns a bag with two chunks. The first has the messages 0 to 2.
pub(super) fn with_second(chunk: impl Into<Chunk>) -> Bag {
    Bag::with([talk(0..3)]).put(chunk)
}

/// Returns an index data record.
pub(super) fn index_data(id: u32, entries: &[(Stamp, u32)]) -> Vec<u8> {
    // Recorders sort the entries by time. Entries with the same time remain in file order.
    let mut entries = entries.to_vec();
    entries.sort_by_key(|(stamp, _)| *stamp);
    index_data_with(id, u32_of(entries.len()), &lay![entries])
}

/// Returns an index data record with this count and these entries.
pub(super) fn index_data_with(id: u32, count: u32, entries: &[u8]) -> Vec<u8> {
    record(&[("conn", &id), ("count", &count), ("op", &4_u8), ("ver", &1_u32)], entries)
}

/// A chunk record, and the index data records after it.
pub(super) struct Chunk {
    content: Content,
    compression: &'static str,
    /// Uncompressed size in the header.
    pub(super) size: u32,
    pub(super) data: Vec<u8>,
    /// Size in bytes of the data in the header.
    pub(super) data_len: u32,
    state: &'static str,
    /// Number of records that a reader finds in the chunk.
    kept: usize,
    lost: Vec<(&'static str, Range<usize>)>,
    /// Code of a note about the chunk header.
    note: Option<&'static str>,
    /// Index data records.
    pub(super) index: Vec<Vec<u8>>,
}

impl From<Content> for Chunk {
    fn from(content: Content) -> Self {
        content.plain()
    }
}

impl Chunk {
    /// Sets the lengths that a recorder writes when it starts a chunk.
    pub(super) fn open(self) -> Self {
        self.with(|chunk| (chunk.size, chunk.data_len) = (0, 0)).state("unterminated", "chunk_open")
    }

    /// Sets the length of the data in the header, which is `missing` bytes more than there are.
    /// Also sets the uncompressed size if the chunk is not compressed.
    pub(super) fn cut(self, missing: usize) -> Self {
        let len = u32_of(self.data.len() + missing);
        let size = if self.compression == "none" { len } else { self.size };
        self.with(|chunk| (chunk.size, chunk.data_len) = (size, len)).state("cut", None).unindexed()
    }

    /// Sets the expected state. Optionally expects a note about the chunk header.
    pub(super) fn state(self, state: &'static str, note: impl Into<Option<&'static str>>) -> Self {
        Self { state, note: note.into(), ..self }
    }

    /// Expects that only the first `records` records are found, and that the data from the offset
    /// `from` is lost.
    pub(super) fn keep(self, records: usize, code: &'static str, from: usize) -> Self {
        Self { kept: records, ..self }.lose(code, from)
    }

    /// Expects that the data from the offset `from` is lost.
    pub(super) fn lose(mut self, code: &'static str, from: usize) -> Self {
        self.lost.push((code, from..self.data.len()));
        self
    }

    /// Removes the index data.
    pub(super) fn unindexed(self) -> Self {
        self.with(|chunk| chunk.index.clear())
    }

    /// Returns the header of the chunk record.
    pub(super) fn head(&self) -> Vec<u8> {
        let head = fields(&[("compression", &self.compression), ("op", &5_u8), ("size", &self.size)]);
        lay![text(head), self.data_len]
    }
}

/// Returns a bag header record with `padding` bytes of padding and the additional fields `more`.
pub(super) fn header(padding: usize, more: &Fields<'_>) -> Vec<u8> {
    let mut fields: Vec<(&str, &dyn Laid)> = vec![("chunk_count", &0_u32), ("conn_count", &0_u32)];
    fields.extend(more);
    fields.extend([("index_pos", &0_u64 as &dyn Laid), ("op", &3_u8)]);
    record(&fields, vec![b' '; padding])
}

impl Bag {
    /// Creates a bag that starts with a version line and a bag header, as those of recorders.
    pub(super) fn recorder() -> Self {
        Self::with_header(VERSION_LINE, BAG_HEADER_SIZE - 69, &[])
    }

    /// Creates a bag as those of recorders with these chunks.
    pub(super) fn with(chunks: impl IntoIterator<Item: Into<Chunk>>) -> Self {
        Self::recorder().each(chunks, Self::put)
    }

    /// Creates a bag with the version line `line`. Its bag header has `padding` bytes of padding
    /// and additional fields.
    pub(super) fn with_header(line: &[u8], padding: usize, more: &Fields<'_>) -> Self {
        Self::starting(line, "2.0").header(header(padding, more))
    }

    /// Sets the index position, the number of connections and the number of chunks in the bag
    /// header.
    pub(super) fn set_counts(self, index_pos: u64, connections: u32, chunks: u32) -> Self {
        let bag = self.set_header("index_pos", index_pos);
        bag.set_header("conn_count", connections).set_header("chunk_count", chunks)
    }

    /// Adds a chunk and its index data.
    pub(super) fn put(mut self, chunk: impl Into<Chunk>) -> Self {
        let chunk = chunk.into();
        let entries = &chunk.content.own.entries;
        let stamps = || entries.values().flatten().map(|(stamp, _)| *stamp);
        let span = stamps().min().zip(stamps().max()).unwrap_or_default();
        let counts = entries.iter().map(|(id, entries)| (*id, u32_of(entries.len()))).collect();
        let info = Info { pos: self.pos(), span, counts };
        self.own.index.infos.push(info);
        self.count(5);
        let at = self.at();
        let bag = chunk.note.into_iter().fold(self, Self::note);
        bag.lay(chunk.head()).put_content(at, chunk)
    }

    /// Appends the data of a chunk whose record starts at the offset `at`, and its index data.
    fn put_content(mut self, at: usize, chunk: Chunk) -> Self {
        increment(&mut self.expected["rosbag"]["chunks"][chunk.state]);
        let (data_at, is_plain) = (self.at(), chunk.compression == "none");
        let Log { own: records, notes, lost, .. } = chunk.content;
        for conn in records.connections {
            self.own.index.connections.entry(conn.id).or_insert(conn);
        }
        // Readers report the offset of the chunk for messages in a compressed chunk.
        let message_at = |offset: usize| if is_plain { data_at + offset } else { at };
        for Found { offset, op, message } in records.found.into_iter().take(chunk.kept) {
            self.count(op);
            if let Some((conn, stamp, data)) = message {
                if let Some((node, latching)) = conn.publisher {
                    self.publish(&conn.topic, node, latching);
                }
                self.found(message_at(offset), &conn.topic, stamp, &data);
            }
        }
        let notes = notes.into_iter().map(|(offset, code)| (if is_plain { offset } else { 0 }, code));
        self.each(notes, |bag, (offset, code)| bag.note_at(data_at + offset, code))
            .each(lost.into_iter().chain(chunk.lost), |bag, (code, range)| {
                bag.lose_range(code, data_at + range.start..data_at + range.end)
            })
            .lay(&chunk.data)
            .others(4, chunk.index)
    }

    /// Appends the records of a chunk without a chunk header.
    pub(super) fn headless(self, content: Content) -> Self {
        let at = self.at();
        self.note("chunk_headless").put_content(at, content.plain())
    }

    /// Changes the index section before it is written.
    pub(super) fn change(mut self, change: impl FnOnce(&mut Index)) -> Self {
        change(&mut self.own.index);
        self
    }

    /// Writes the index section.
    pub(super) fn index_section(mut self) -> Self {
        let Index { connections, infos } = std::mem::take(&mut self.own.index);
        self.each(connections.into_values(), |bag, conn| bag.declare(&conn.topic).other(7, conn.record))
            .others(6, infos.iter().map(Info::record))
    }

    /// Writes the index section and the bag header, as a recorder does when it is stopped.
    pub(super) fn close(self) -> Self {
        self.close_as("exact")
    }

    /// Closes the bag, and expects that its index differs from the messages.
    pub(super) fn close_differing(self) -> Self {
        self.note("index_differs").close_as("differs")
    }

    /// Closes the bag. `state` is the expected state of the index.
    pub(super) fn close_as(self, state: &str) -> Self {
        let pos = self.pos();
        let Index { connections, infos } = &self.own.index;
        let (connections, chunks) = (u32_of(connections.len()), u32_of(infos.len()));
        self.index_section().set_counts(pos, connections, chunks).section(pos, state)
    }
}

/// Compresses bytes as an LZ4 frame with the same options as recorders.
pub(super) fn lz4(bytes: &[u8]) -> Vec<u8> {
    let info = FrameInfo::new().block_mode(BlockMode::Independent).block_size(BlockSize::Max1MB);
    frame(info.content_checksum(true), bytes)
}

/// Compresses bytes with bzip2.
pub(in crate::rosbag) fn bz2(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

/// Compresses bytes as an LZ4 frame with linked blocks. The frame states its uncompressed size and
/// has no checksum.
pub(super) fn linked(bytes: &[u8]) -> Vec<u8> {
    let info = FrameInfo::new().block_mode(BlockMode::Linked).block_size(BlockSize::Max64KB);
    frame(info.content_size(Some(bytes.len() as u64)), bytes)
}

fn frame(info: FrameInfo, bytes: &[u8]) -> Vec<u8> {
    let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}
