//! State of a scan of a V2.0 bag, in addition to topics and definitions: connections by their
//! numbers, chunks, and the content of the index.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use rovelog_core::text::count;
use rovelog_core::{Detail, Value};

use super::buffer::Ending;
use super::scan::{Extent, Length};
use super::unpack::Compression;
use super::wire::{ConnectionHeader, IndexEntry, Stamp};
use crate::tables::{Publisher, Tally, usize_of};
use crate::validate::are_damaged;

/// Numbers of connections below this, or below so many times the number of connections, have a place in
/// a list; others are in a map.
const DENSE: usize = 64;
const DENSE_RATIO: usize = 8;

/// The class of a chunk that was not read.
const NOT_READ: &str = "not read";

/// An origin by the number of its connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ids {
    /// One more than the origin; 0 for none that is not in the map.
    dense: Vec<u32>,
    sparse: HashMap<u32, u32>,
    count: usize,
}

impl Ids {
    #[inline]
    pub(crate) fn get(&self, id: u32) -> Option<u32> {
        match self.dense.get(id as usize) {
            Some(origin) if *origin > 0 => Some(origin - 1),
            _ => self.of_map(id),
        }
    }

    /// Kept out of the loops over messages.
    #[inline(never)]
    fn of_map(&self, id: u32) -> Option<u32> {
        self.sparse.get(&id).copied()
    }

    pub(crate) fn set(&mut self, id: u32, origin: u32) {
        let place = id as usize;
        self.count += usize::from(self.get(id).is_none());
        if place < DENSE.max(DENSE_RATIO * self.count) {
            if self.dense.len() <= place {
                self.dense.resize(place + 1, 0);
            }
            self.dense[place] = origin + 1;
        } else {
            self.sparse.insert(id, origin);
        }
    }
}

/// A connection of the file: many of them may be one [`Connection`](crate::Connection), of other
/// publishers.
#[derive(Debug)]
pub(crate) struct Origin {
    /// The bag of the file that it is of, and its number there.
    pub(crate) section: u32,
    pub(crate) id: u32,
    /// The connection by topic, type and md5 sum.
    pub(crate) connection: u32,
    pub(crate) publisher: Publisher,
    /// Its topic by the record, and the data of the record; empty where no record says what it is.
    pub(crate) topic: Arc<[u8]>,
    pub(crate) data: Box<[u8]>,
    /// Fields of the header of the record that have no meaning.
    pub(crate) others: Box<[u8]>,
    /// Whether a record says what it is.
    pub(crate) is_known: bool,
    /// Offset of the first such record.
    pub(crate) at: u64,
    /// Messages, and entries of index data.
    pub(crate) count: u64,
    pub(crate) named: u64,
    /// Whether the index data of a chunk name others than it has.
    pub(crate) differs: bool,
    /// Whether its record contradicts itself nowhere, once that was asked.
    pub(crate) is_right: OnceLock<bool>,
}

impl Origin {
    /// Returns whether its data are what other readers accept.
    pub(crate) fn is_whole(&self) -> bool {
        ConnectionHeader::read(&self.data).is_some_and(|said| said.is_whole())
    }
}

/// The index data of one connection behind a chunk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexRange {
    pub(crate) conn: u32,
    pub(crate) data_at: u64,
    pub(crate) end: u64,
}

/// A place beyond so many times the bytes of a chunk is none; a nearer one may be of a chunk that had
/// more bytes, or of another one.
const BEYOND: u64 = 16;

impl IndexRange {
    /// Returns the entries, for a chunk whose records have or had `len` bytes; none where they are
    /// damaged.
    pub(crate) fn entries<'a>(&self, file: &'a [u8], len: u64) -> &'a [IndexEntry] {
        let entries = IndexEntry::all_of(&file[usize_of(self.data_at)..usize_of(self.end)]);
        let places = entries.iter().map(|entry| entry.offset.get().into());
        // Behind a byte that is missing or was added, all entries are bytes of two.
        if are_damaged(places, |place| place / BEYOND >= len) { &[] } else { entries }
    }
}

/// How the index agrees with a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Agrees {
    Exact,
    Differs,
    Absent,
}

/// A chunk, and what was found in it.
#[derive(Debug)]
pub(crate) struct Chunk {
    pub(crate) extent: Extent,
    pub(crate) section: u32,
    pub(crate) index: Vec<IndexRange>,
    pub(crate) ending: Ending,
    /// Bytes of its records.
    pub(crate) unpacked: u64,
    /// Lowest and highest time.
    pub(crate) span: Option<(i64, i64)>,
    pub(crate) messages: u64,
    /// What its messages and its index data add up to, by number of the connection.
    pub(crate) found: Vec<(u32, Tally)>,
    pub(crate) named: BTreeMap<u32, Tally>,
    /// The connections with messages in it, ascending: messages before it, and in it.
    pub(crate) counts: Vec<(u32, u64, u64)>,
    pub(crate) index_agrees: Agrees,
    pub(crate) info_agrees: Agrees,
    /// Bytes of its records that cannot be read, by place in the unpacked data.
    pub(crate) lost: Vec<(u64, u64)>,
    /// Whether only its chunk info was read.
    pub(crate) is_unread: bool,
    /// Whether it has records of unknown kinds, as far as it was read.
    pub(crate) has_others: bool,
}

impl Chunk {
    /// Returns the class by which it is told.
    pub(crate) fn state(&self) -> &'static str {
        let is_plain = self.extent.compression == Some(Compression::None);
        match (self.ending, self.extent.length) {
            _ if self.is_unread => NOT_READ,
            (Ending::Whole | Ending::Cut, Length::Unterminated) => "unterminated",
            (Ending::Whole, Length::Found) if !self.extent.headless => "data_len wrong",
            (Ending::Whole, Length::Cut) => "cut",
            (Ending::Whole, Length::Stored) if u64::from(self.extent.size) != self.unpacked => "size wrong",
            (Ending::Cut, _) if is_plain => "cut",
            (ending, _) => ending.name(),
        }
    }

    pub(crate) fn new(extent: Extent, section: u32) -> Self {
        Self {
            extent,
            section,
            index: Vec::new(),
            ending: Ending::Whole,
            unpacked: 0,
            span: None,
            messages: 0,
            found: Vec::new(),
            named: BTreeMap::new(),
            counts: Vec::new(),
            index_agrees: Agrees::Absent,
            info_agrees: Agrees::Absent,
            lost: Vec::new(),
            is_unread: false,
            has_others: false,
        }
    }

    /// Returns the entries of its index data that are not damaged, each with the number of its connection.
    pub(crate) fn entries<'a>(&'a self, file: &'a [u8]) -> impl Iterator<Item = (u32, &'a IndexEntry)> {
        let len = self.unpacked.max(self.extent.claimed().into());
        self.index
            .iter()
            .flat_map(move |range| range.entries(file, len).iter().map(|entry| (range.conn, entry)))
    }

    /// Returns its data in the file.
    pub(crate) fn data<'a>(&self, file: &'a [u8]) -> &'a [u8] {
        &file[usize_of(self.extent.data_at)..usize_of(self.extent.end)]
    }

    /// Returns whether any of the marked connections has messages in it.
    pub(crate) fn has_any(&self, wanted: &[bool]) -> bool {
        self.counts.iter().any(|(connection, ..)| wanted[*connection as usize])
    }
}

/// What a connection record says: bag of the file, number, topic and data.
pub(crate) type Declaration = (u32, u32, Box<[u8]>, Box<[u8]>);

/// A chunk info record.
#[derive(Clone, Debug)]
pub(crate) struct Info {
    pub(crate) section: u32,
    pub(crate) chunk_pos: u64,
    pub(crate) start: Stamp,
    pub(crate) end: Stamp,
    /// By number of the connection, ascending.
    pub(crate) counts: Vec<(u32, u64)>,
}

/// What a bag header says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Header {
    pub(crate) conn_count: u32,
    pub(crate) chunk_count: u32,
    /// What encrypts the bag, and for whom.
    pub(crate) encryption: Option<(String, String)>,
}

/// The state of the scan.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) origins: Vec<Origin>,
    pub(crate) by_record: HashMap<Declaration, u32>,
    /// The first origin that a record declares for a number, by bag of the file and number.
    pub(crate) declared: HashMap<(u32, u32), u32>,
    /// What a number means at the start of each bag of the file: by the index, else by the first
    /// record.
    pub(crate) ids: Vec<Ids>,
    /// What it means where the scan is.
    pub(crate) now: Ids,
    /// Where a number came to mean something else within a bag, by bag of the file and number: from
    /// the start of a chunk on, ascending, an origin.
    pub(crate) changes: HashMap<(u32, u32), Vec<(usize, u32)>>,
    pub(crate) section: u32,
    pub(crate) header: Option<Header>,
    pub(crate) chunks: Vec<Chunk>,
    /// The chunk that is being read.
    pub(crate) at_hand: usize,
    pub(crate) infos: Vec<Info>,
    /// Which of them is of the chunk at a position of a bag.
    pub(crate) infos_at: BTreeMap<(u32, u64), usize>,
    /// The connections of the index sections: section and number.
    pub(crate) indexed: BTreeSet<(u32, u32)>,
    /// Numbers that were met before any record said what they are.
    pub(crate) early: Vec<(u32, u32)>,
    /// What is counted of the chunk at hand, by origin; those with messages in it; their times.
    pub(crate) tallies: Vec<Tally>,
    pub(crate) in_chunk: Vec<u32>,
    pub(crate) span: Option<(i64, i64)>,
    /// Records of unknown kinds outside of chunks.
    pub(crate) others: Vec<Range<u64>>,
    /// Records in chunks that are no messages, by op.
    pub(crate) records: Ops,
    /// Whether the index alone was read.
    pub(crate) is_by_index: bool,
    /// The span of the chunks that were not read, by the index.
    pub(crate) unread_span: Option<(i64, i64)>,
}

/// Counts by op.
#[derive(Debug)]
pub(crate) struct Ops(Box<[u64; 256]>);

impl Default for Ops {
    fn default() -> Self {
        Self(Box::new([0; 256]))
    }
}

impl Ops {
    pub(crate) fn add(&mut self, op: u8) {
        self.0[usize::from(op)] += 1;
    }

    pub(crate) fn all(&self) -> [u64; 256] {
        *self.0
    }
}

impl State {
    /// Returns the lines of `info` that only bags of V2.0 have.
    pub(crate) fn details(&self) -> Vec<Detail> {
        let mut details = Vec::new();
        if let Some((encryptor, user)) = self.header.as_ref().and_then(|header| header.encryption.as_ref()) {
            let text = format!(
                "by {encryptor} for {user}: only with that user's key it can be read (rosbag decrypt)"
            );
            details.push(Detail::new("encryption", text, Value::Text(encryptor.clone())));
        }
        let mut kinds: BTreeMap<&str, (u64, u64, u64)> = BTreeMap::new();
        for chunk in &self.chunks {
            let known = chunk.extent.compression.map_or("unknown", Compression::name);
            let name = if chunk.is_unread { NOT_READ } else { known };
            let kind = kinds.entry(name).or_default();
            kind.0 += 1;
            kind.1 += chunk.extent.end - chunk.extent.data_at;
            kind.2 += chunk.unpacked;
        }
        let text: Vec<_> = kinds
            .iter()
            .map(|(name, (chunks, packed, unpacked))| match *name {
                "none" => format!("{}, uncompressed", count(*chunks, "chunk")),
                NOT_READ => format!("{}, not read", count(*chunks, "chunk")),
                name => format!("{}, {name}: {packed} bytes hold {unpacked}", count(*chunks, "chunk")),
            })
            .collect();
        let mut states: BTreeMap<&str, u64> = BTreeMap::new();
        for chunk in &self.chunks {
            *states.entry(chunk.state()).or_default() += 1;
        }
        let value = Value::record([
            ("count", Value::count(self.chunks.len() as u64)),
            ("compression", Value::record(kinds.iter().map(|(name, kind)| (*name, Value::count(kind.0))))),
            ("packed", Value::count(kinds.values().map(|kind| kind.1).sum())),
            ("unpacked", Value::count(kinds.values().map(|kind| kind.2).sum())),
            ("states", Value::record(states.into_iter().map(|(name, n)| (name, Value::count(n))))),
        ]);
        if !self.chunks.is_empty() {
            details.push(Detail::new("chunks", text.join("\n"), value));
        }
        details
    }

    /// Returns what it costs to read all chunks, in bytes that need no unpacking.
    pub(crate) fn cost(&self) -> u64 {
        let cost = |chunk: &Chunk| {
            let size = u64::from(chunk.extent.size);
            match chunk.extent.compression {
                Some(Compression::Bz2) => 64 * size,
                Some(Compression::Lz4) => 4 * size,
                _ => size,
            }
        };
        self.chunks.iter().map(cost).sum()
    }

    /// Returns what the number of a connection means at the start of a chunk.
    #[inline(never)]
    pub(crate) fn origin_at(&self, chunk: usize, conn: u32) -> Option<u32> {
        let section = self.chunks[chunk].section;
        self.changed(chunk, (section, conn)).or_else(|| self.ids[section as usize].get(conn))
    }

    fn changed(&self, chunk: usize, id: (u32, u32)) -> Option<u32> {
        let changes = self.changes.get(&id)?;
        let behind = changes.partition_point(|(from, _)| *from <= chunk);
        Some(changes[behind.checked_sub(1)?].1)
    }

    /// Notes what a number means behind the chunk at hand.
    pub(crate) fn change(&mut self, conn: u32, origin: u32) {
        let (id, from) = ((self.section, conn), self.at_hand + 1);
        let first = self.ids[self.section as usize].get(conn);
        if self.changed(from, id).or(first) == Some(origin) {
            return;
        }
        let changes = self.changes.entry(id).or_default();
        match changes.last_mut() {
            Some(last) if last.0 == from => last.1 = origin,
            _ => changes.push((from, origin)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Ids;

    #[test]
    fn few_numbers_take_little_space_however_large_they_are() {
        let mut ids = Ids::default();
        let numbers = [65_535, 0, 63, 64, u32::MAX, 300].into_iter().chain(100..800);
        let all: Vec<(u32, u32)> = numbers.zip(0..).collect();
        for (number, (id, origin)) in all.iter().enumerate() {
            ids.set(*id, *origin);
            assert!(ids.dense.len() <= 64.max(8 * (number + 1)));
        }
        // Of a number that is there twice, the later one counts.
        let last = |id: u32| all.iter().rfind(|(known, _)| *known == id).map(|(_, origin)| *origin);
        assert!(all.iter().all(|(id, _)| ids.get(*id) == last(*id)));
        assert_eq!((ids.get(1), ids.get(90), ids.get(70_000)), (None, None, None));
    }
}
