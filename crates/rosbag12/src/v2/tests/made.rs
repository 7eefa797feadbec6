//! Functions that build V2.0 records and bags for the tests.

use rovelog_core::internal::wire::{U32Le, U64Le};
use zerocopy::IntoBytes as _;

use crate::v2::wire::{
    self, ChunkInfo, ConnectionCount, ConnectionHeader, Header, IndexData, IndexEntry, Stamp, VER,
    VERSION_LINE,
};
use crate::wire::{Field, RecordHead, head_of};

fn len(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).expect("a short record")
}

pub(super) fn record(header: &Header<'_>, data: &[u8]) -> Vec<u8> {
    [header.to_head(len(data)), data.to_vec()].concat()
}

pub(super) fn message(conn: u32, sec: u32, payload: &[u8]) -> Vec<u8> {
    let (conn, time) = (U32Le::new(conn), Stamp::new(sec, 0));
    record(&Header::Message(wire::Message { conn: &conn, time: &time }), payload)
}

pub(super) fn connection(conn: u32, topic: &str) -> Vec<u8> {
    connection_of(conn, topic, topic, &format!("/node{conn}"))
}

/// Returns a connection record with the topic `shown` in its header and the topic `said` in its
/// data.
pub(super) fn connection_of(conn: u32, shown: &str, said: &str, callerid: &str) -> Vec<u8> {
    let said = ConnectionHeader {
        topic: Some(said.as_bytes()),
        ty: Some(b"t/T"),
        md5sum: Some(b"*"),
        message_definition: Some(b"uint8[] x\n"),
        callerid: Some(callerid.as_bytes()),
        latching: Some(if shown.starts_with("/latched") { b"1" } else { b"0" }),
    };
    let (conn, topic) = (U32Le::new(conn), shown.as_bytes());
    record(&Header::Connection(wire::Connection { conn: &conn, topic }), &said.to_data())
}

/// Returns the size in bytes of the data of a V2.0 record.
pub(super) fn data_len_of(record: &[u8]) -> usize {
    RecordHead::read(record).expect("a record").data_len as usize
}

/// Returns a record whose op (record type) the specification does not define.
pub(super) fn unknown(op: u8, data: &[u8]) -> Vec<u8> {
    let fields = [Field { name: b"op", value: &[op] }, Field { name: b"x", value: b"1" }];
    [head_of(&fields, len(data)), data.to_vec()].concat()
}

pub(super) fn chunk(compression: &str, size: u32, data: &[u8]) -> Vec<u8> {
    let (compression, size) = (compression.as_bytes(), U32Le::new(size));
    record(&Header::Chunk(wire::Chunk { compression, size: &size }), data)
}

/// Returns an index data record. Each entry is a time in seconds and an offset in the chunk.
pub(super) fn index_data(conn: u32, entries: &[(u32, u32)]) -> Vec<u8> {
    let (conn, ver) = (U32Le::new(conn), U32Le::new(VER));
    let count = U32Le::new(u32::try_from(entries.len()).expect("few entries"));
    record(&Header::IndexData(IndexData { ver: &ver, conn: &conn, count: &count }), &entries_of(entries))
}

pub(super) fn entries_of(entries: &[(u32, u32)]) -> Vec<u8> {
    let entry = |(sec, at): &(u32, u32)| IndexEntry { time: Stamp::new(*sec, 0), offset: U32Le::new(*at) };
    entries.iter().map(entry).flat_map(|entry| entry.as_bytes().to_vec()).collect()
}

pub(super) fn chunk_info(at: u64, span: (u32, u32), counts: &[(u32, u32)]) -> Vec<u8> {
    let (ver, chunk_pos) = (U32Le::new(VER), U64Le::new(at));
    let (start_time, end_time) = (Stamp::new(span.0, 0), Stamp::new(span.1, 0));
    let count = U32Le::new(u32::try_from(counts.len()).expect("few connections"));
    let entry = |(conn, n): &(u32, u32)| ConnectionCount { conn: U32Le::new(*conn), count: U32Le::new(*n) };
    let data: Vec<u8> = counts.iter().map(entry).flat_map(|entry| entry.as_bytes().to_vec()).collect();
    let header = ChunkInfo {
        ver: &ver,
        chunk_pos: &chunk_pos,
        start_time: &start_time,
        end_time: &end_time,
        count: &count,
    };
    record(&Header::ChunkInfo(header), &data)
}

/// Entries of an index record: times and offsets, or connection ids and message counts.
type Pairs = Vec<(u32, u32)>;

/// A chunk with its index data and its chunk info.
#[derive(Clone)]
pub(super) struct Part {
    pub(super) chunk: Vec<u8>,
    pub(super) index: Vec<(u32, Pairs)>,
    /// Time span and message counts of the chunk info. `None` if the bag has no chunk info for the
    /// chunk.
    pub(super) info: Option<((u32, u32), Pairs)>,
}

impl Part {
    /// Returns a chunk with messages. Each message is given by its connection id, its time in
    /// seconds, and its payload size.
    pub(super) fn of(messages: &[(u32, u32, usize)]) -> Self {
        let (mut data, mut index) = (Vec::new(), std::collections::BTreeMap::<u32, Vec<_>>::new());
        for (conn, sec, len) in messages {
            index.entry(*conn).or_default().push((*sec, self::len(&data)));
            data.extend(message(*conn, *sec, &vec![b'x'; *len]));
        }
        let times = messages.iter().map(|(_, sec, _)| *sec);
        let span = (times.clone().min().unwrap_or_default(), times.max().unwrap_or_default());
        let counts = index.iter().map(|(conn, entries)| (*conn, u32::try_from(entries.len()).unwrap()));
        let info = Some((span, counts.collect()));
        Self { chunk: chunk("none", len(&data), &data), index: index.into_iter().collect(), info }
    }
}

/// A V2.0 bag to encode. Tests change the fields before they encode the bag.
#[derive(Clone)]
pub(super) struct Bag {
    pub(super) line: &'static [u8],
    pub(super) connections: Vec<(u32, &'static str)>,
    pub(super) parts: Vec<Part>,
    /// Bytes that follow the index section.
    pub(super) behind: Vec<u8>,
    /// Wrong index position for the bag header. `None` for the right position.
    pub(super) index_pos: Option<u64>,
    /// Wrong numbers of connections and chunks for the bag header. `None` for the right numbers.
    pub(super) counts: Option<(u32, u32)>,
}

impl Bag {
    pub(super) fn of(connections: &[(u32, &'static str)], parts: Vec<Part>) -> Self {
        let (line, connections) = (&VERSION_LINE[..], connections.to_vec());
        Self { line, connections, parts, behind: Vec::new(), index_pos: None, counts: None }
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let lay = |index_pos| {
            let number = |n: usize| u32::try_from(n).expect("few");
            let counts = self.counts.unwrap_or((number(self.connections.len()), number(self.parts.len())));
            let header = wire::bag_header_record(index_pos, counts.0, counts.1);
            let (mut bytes, mut infos) = ([self.line, &header].concat(), Vec::new());
            for Part { chunk, index, info } in &self.parts {
                let info = info.as_ref().map(|(span, counts)| chunk_info(bytes.len() as u64, *span, counts));
                infos.extend(info);
                bytes.extend(chunk);
                bytes.extend(index.iter().flat_map(|(conn, entries)| index_data(*conn, entries)));
            }
            let index_pos = bytes.len() as u64;
            bytes.extend(self.connections.iter().flat_map(|(conn, topic)| connection(*conn, topic)));
            bytes.extend(infos.concat());
            bytes.extend(&self.behind);
            (bytes, index_pos)
        };
        let (_, index_pos) = lay(0);
        lay(self.index_pos.unwrap_or(index_pos)).0
    }
}
