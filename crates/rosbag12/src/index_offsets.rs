//! Offsets of messages in the index of a section (a bag within the file). After damage, these
//! offsets distinguish the records of the bag from records inside payloads (rule D5 in
//! docs/formats/rosbag.md).

use std::collections::HashMap;

use rovelog_core::internal::scan::Window;

use crate::validate::{Probe, ProbedRecord, Search, are_damaged, probe};
use crate::wire::{Data, Header, IndexEntry};

/// First index entry of a topic, which describes the first message of the topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FirstEntry {
    /// Offset in the entry. It usually refers to the definition record before the first message.
    offset: u64,
    /// Seconds part of the time of the first message.
    sec: u32,
    /// Nanoseconds part of the time of the first message.
    nsec: u32,
}

/// Offsets that the index of a section (a bag within the file) lists.
#[derive(Clone, Debug, Default)]
pub(crate) struct IndexOffsets {
    /// All offsets in the index, and the offset of the index itself, in ascending order.
    sorted: Vec<u64>,
    /// Map from a topic to its first index entry. The offset of this entry usually refers to a
    /// definition record, so the message after the definition can be found only by its time.
    firsts: HashMap<Box<[u8]>, FirstEntry>,
    /// Offsets in the first index entries of all topics, in ascending order.
    first_offsets: Vec<u64>,
    /// Start offset and result of the last search for a valid record at an indexed offset.
    last: Option<(u64, u64)>,
    /// True if memory was not sufficient for the offsets. The bag must then not be opened, because
    /// records inside payloads could be taken for records of the bag.
    pub(crate) lacks_memory: bool,
}

impl IndexOffsets {
    /// Reads the index of the section that starts at `offset`. `index_pos` is the position of the
    /// index, relative to `offset`.
    ///
    /// The result is empty if the index records do not reach exactly to the end of the file, or if
    /// their offsets are damaged. Damaged offsets must not be used, because intact messages would
    /// be skipped.
    pub(crate) fn of(window: Window<'_>, offset: u64, first_record: u64, index_pos: Option<u64>) -> Self {
        Self::read(window, offset, first_record, index_pos).unwrap_or_default()
    }

    fn read(window: Window<'_>, offset: u64, first_record: u64, index_pos: Option<u64>) -> Option<Self> {
        let start = index_pos.filter(|pos| *pos > 0)?.checked_add(offset)?;
        let mut found = Self { sorted: vec![start], ..Self::default() };
        let (mut at, end) = (start, window.end());
        let is_outside = |indexed: u64| indexed < first_record || indexed >= start;
        while at < end {
            let Ok(Probe::Good(ProbedRecord { header, data_at, end: record_end, .. })) = probe(window, at)
            else {
                return None;
            };
            let Header::Index(index) = header else { return None };
            let entries = IndexEntry::all_of(window.slice(data_at, record_end).ok().flatten()?);
            if found.sorted.try_reserve(entries.len()).is_err() {
                return Some(Self { lacks_memory: true, ..Self::default() });
            }
            let offset_of = |entry: &IndexEntry| offset.saturating_add(entry.pos.get());
            let indexed = entries.iter().map(offset_of);
            // One damaged entry is tolerated. Two damaged entries in a row mean that bytes of the
            // index are missing.
            if are_damaged(indexed.clone(), is_outside) {
                return None;
            }
            found.sorted.extend(indexed.filter(|indexed| *indexed < end));
            if let Some(entry) = entries.first() {
                let (offset, sec, nsec) = (offset_of(entry), entry.sec.get(), entry.nsec.get());
                found.first_offsets.push(offset);
                found.firsts.insert(index.topic.into(), FirstEntry { offset, sec, nsec });
            }
            at = record_end;
        }
        found.sorted.sort_unstable();
        found.first_offsets.sort_unstable();
        Some(found)
    }

    /// Returns the offset of the first intact record after damage that starts at offset `start`.
    /// This is a valid record at the next indexed offset, or an earlier message for which the index
    /// lists the offset of the definition record.
    pub(crate) fn next(&mut self, window: Window<'_>, start: u64) -> Option<u64> {
        let next = self.next_indexed(window, start)?;
        // The last indexed offset before the damage may refer to a definition record whose message
        // is inside the damage.
        let before = self.sorted.partition_point(|indexed| *indexed <= start).checked_sub(1);
        let from = before.map_or(start, |before| self.sorted[before]);
        let first = self.first_offsets.partition_point(|indexed| *indexed < from);
        if self.first_offsets.get(first).is_none_or(|indexed| *indexed >= next) {
            return Some(next);
        }
        // If the first message of a topic comes before `next`, the index lists the offset of its
        // definition instead of the offset of the message.
        let mut search = Search::from(start + 1);
        // The window is the whole file, so the search never needs more bytes.
        while let Some(found) = search.run(window, next).ok().flatten() {
            if self.is_first(window, found, from) {
                return Some(found);
            }
            search.next = found + 1;
        }
        Some(next)
    }

    /// Returns whether the message at offset `at` is the first message of its topic. This is the
    /// case if the first index entry of the topic has the time of the message, and an offset in
    /// `from..at`.
    fn is_first(&self, window: Window<'_>, at: u64, from: u64) -> bool {
        let Ok(Probe::Good(ProbedRecord { header: Header::Data(Data { topic, sec, nsec, .. }), .. })) =
            probe(window, at)
        else {
            return false;
        };
        self.firsts.get(topic).is_some_and(|first| {
            (first.sec, first.nsec) == (sec.get(), nsec.get()) && (from..at).contains(&first.offset)
        })
    }

    /// Returns the first indexed offset after `start` at which a valid record starts.
    fn next_indexed(&mut self, window: Window<'_>, start: u64) -> Option<u64> {
        if let Some((from, found)) = self.last
            && (from..found).contains(&start)
        {
            return Some(found);
        }
        let is_valid = |at: u64| match probe(window, at) {
            Ok(Probe::Good(found)) => !matches!(found.header, Header::Unknown(_)),
            _ => false,
        };
        let after = &self.sorted[self.sorted.partition_point(|indexed| *indexed <= start)..];
        let found = after.iter().copied().find(|indexed| is_valid(*indexed))?;
        self.last = Some((start, found));
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use rovelog_core::internal::wire::{U32Le, U64Le};
    use zerocopy::IntoBytes as _;

    use super::*;
    use crate::wire::{Index, VERSION_LINE};

    /// Reads an index at offset 1000 whose entries have these message offsets. Returns false if the
    /// index counts as damaged.
    fn is_used(offsets: [u64; 3]) -> bool {
        let entry = |pos: u64| IndexEntry { sec: U32Le::new(0), nsec: U32Le::new(0), pos: U64Le::new(pos) };
        let data = offsets.map(entry);
        let (ver, count) = (U32Le::new(0), U32Le::new(3));
        let index = Index { topic: b"/a", ty: None, ver: &ver, count: &count };
        let head = Header::Index(index).to_head(u32::try_from(data.as_bytes().len()).unwrap());
        let bytes = [&[0; 1000][..], &head, data.as_bytes()].concat();
        let found = IndexOffsets::of(Window::whole(&bytes), 0, VERSION_LINE.len() as u64, Some(1000));
        !found.sorted.is_empty()
    }

    #[test]
    fn an_index_with_two_offsets_outside_of_the_bag_is_damaged() {
        assert!(is_used([100, 500, 900]));
        assert!(is_used([100, 500, 1000]), "one offset may be wrong");
        assert!(is_used([500, 2000, 900]));
        assert!(!is_used([500, 1000, 2000]));
        assert!(!is_used([2000, 3000, 900]));
    }
}
