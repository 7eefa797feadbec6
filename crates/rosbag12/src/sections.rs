//! Sections of a file, and the comparison of their indices with their messages (sections 3 and 5 of
//! docs/formats/rosbag.md).

use std::collections::{BTreeMap, HashMap};

use crate::named::Named;
use crate::tables::Tally;
use crate::wire::IndexEntry;

/// Maximum number of sections of a file.
pub(crate) const MAX_SECTIONS: usize = 65_536;

/// Says of the version line at `at` that it is beyond the limit.
pub(crate) fn beyond_limit(at: u64) -> String {
    format!("another bag starts at byte {at}, beyond the limit of {MAX_SECTIONS}; its index is not used")
}

/// Result of comparing the index of a section with its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexState {
    /// It names every message with its stamp and place.
    Exact,
    /// It names other messages.
    Differs,
    /// There is none.
    Absent,
    /// There are no messages and no index.
    Empty,
    /// The bag is encrypted: V2.0 only.
    Encrypted,
    /// It agrees with itself, and messages were not compared with it: V2.0 only.
    Believed,
}

impl IndexState {
    /// Returns the word used in text and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Differs => "differs",
            Self::Absent => "absent",
            Self::Empty => "empty",
            Self::Encrypted => "encrypted",
            Self::Believed => "believed",
        }
    }
}

/// The index of one topic next to its messages.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexTopic {
    /// The topic's name as it is in the bag.
    pub topic: Vec<u8>,
    /// Entries of the index.
    pub entries: u64,
    /// Messages in the section.
    pub in_scan: u64,
    /// Whether both are the same.
    pub exact: bool,
}

/// A bag within a file; nearly always there is one.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Section {
    /// Where its version line starts: positions in it count from here.
    pub offset: u64,
    /// Where its records begin.
    pub first_record: u64,
    /// What its bag header says, if it has one.
    pub index_pos: Option<u64>,
    /// Bytes of spaces behind the bag header that belong to no record.
    pub raw_padding: Option<u64>,
    /// How its index agrees with its messages; resolved at its end.
    pub index: IndexState,
    /// The index by topic, ascending; empty without index.
    pub index_topics: Vec<IndexTopic>,
    pub(crate) bag_header_at: Option<(u64, u64)>,
    pub(crate) first_index_at: Option<u64>,
    /// The message right behind a definition: positions of both.
    pub(crate) behind_definition: HashMap<u64, u64>,
    records: Vec<IndexRecord>,
    pub(crate) unusable: bool,
    /// What of the index is wrong, in words; V2.0 only.
    pub(crate) why: Vec<String>,
    /// What the index names, once damage asked for it.
    pub(crate) named: Option<Box<Named>>,
}

#[derive(Clone, Debug)]
struct IndexRecord {
    topic: Vec<u8>,
    entries: Tally,
}

impl Section {
    pub(crate) fn new(offset: u64, first_record: u64) -> Self {
        Self {
            offset,
            first_record,
            index_pos: None,
            raw_padding: None,
            index: IndexState::Absent,
            index_topics: Vec::new(),
            bag_header_at: None,
            first_index_at: None,
            behind_definition: HashMap::new(),
            records: Vec::new(),
            unusable: false,
            why: Vec::new(),
            named: None,
        }
    }

    /// Returns the place that an index entry means: that of the message where it points at its
    /// definition.
    pub(crate) fn meant(&self, pos: u64) -> u64 {
        self.behind_definition.get(&pos).copied().unwrap_or(pos)
    }

    /// Takes an index record.
    pub(crate) fn index_record(&mut self, at: u64, topic: &[u8], data: &[u8]) {
        self.first_index_at.get_or_insert(at);
        let mut entries = Tally::default();
        for entry in IndexEntry::all_of(data) {
            entries.add(entry.sec.get(), entry.nsec.get(), self.meant(entry.pos.get()));
        }
        self.records.push(IndexRecord { topic: topic.to_vec(), entries });
    }

    /// Compares the index with what the messages of each topic add up to.
    pub(crate) fn settle(&mut self, messages: &BTreeMap<&[u8], Tally>) {
        let any = messages.values().any(|tally| tally.count > 0);
        if self.records.is_empty() {
            self.index = if any { IndexState::Absent } else { IndexState::Empty };
            return;
        }
        let mut indexed: BTreeMap<&[u8], Tally> = BTreeMap::new();
        for record in &self.records {
            indexed.entry(&record.topic).or_default().join(record.entries);
        }
        let mut exact = !self.unusable;
        for topic in messages.iter().filter(|(_, tally)| tally.count > 0).map(|(topic, _)| topic) {
            indexed.entry(topic).or_default();
        }
        for (topic, entries) in &indexed {
            let in_scan = messages.get(topic).copied().unwrap_or_default();
            let same = *entries == in_scan;
            exact &= same;
            self.index_topics.push(IndexTopic {
                topic: topic.to_vec(),
                entries: entries.count,
                in_scan: in_scan.count,
                exact: same,
            });
        }
        self.index = if exact { IndexState::Exact } else { IndexState::Differs };
        self.records = Vec::new();
    }
}

/// What is in only one of an index and the messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Differences {
    /// Messages that the index does not name.
    pub missing_in_index: u64,
    /// Entries of the index without a message.
    pub not_in_scan: u64,
}

/// Compares entries and messages, each a stamp and a place.
pub(crate) fn differences(mut index: Vec<(u32, u32, u64)>, mut scan: Vec<(u32, u32, u64)>) -> Differences {
    index.sort_unstable();
    scan.sort_unstable();
    let (mut a, mut b) = (index.iter().peekable(), scan.iter().peekable());
    let mut found = Differences::default();
    loop {
        match (a.peek(), b.peek()) {
            (Some(x), Some(y)) if x == y => {
                a.next();
                b.next();
            }
            (Some(x), Some(y)) if x < y => {
                a.next();
                found.not_in_scan += 1;
            }
            (Some(_), None) => {
                a.next();
                found.not_in_scan += 1;
            }
            (_, Some(_)) => {
                b.next();
                found.missing_in_index += 1;
            }
            (None, None) => return found,
        }
    }
}

#[cfg(test)]
mod tests {
    use rovelog_core::LogReader as _;

    use rovelog_core::wire::U32Le;

    use super::*;
    use crate::diagnostics as rules;
    use crate::v2::wire::{self, Chunk, Header, Message, Stamp};
    use crate::{BagOptions, BagReader};

    /// A file of nothing but version lines: what is kept of each is limited, and so is what is said
    /// of them.
    #[test]
    fn sections_are_limited() {
        let lines = b"#ROSRECORD V1.2\n".repeat(MAX_SECTIONS + 1000);
        let bag = BagReader::new(lines.into(), &BagOptions::default()).unwrap();
        assert_eq!(bag.sections().len(), MAX_SECTIONS);
        assert_eq!(bag.diagnostics().counts().get(rules::TOO_MANY_SECTIONS.code), Some(&1000));
        assert_eq!(bag.info().lost.bytes, 16_000);
        let noticed =
            bag.diagnostics().list().iter().find(|noticed| noticed.rule == &rules::TOO_MANY_SECTIONS);
        let message = &noticed.unwrap().message;
        assert!(message.contains("byte 1048576, beyond the limit of 65536"), "{message}");
        let text: usize =
            bag.info().details.iter().filter_map(|detail| detail.text.as_ref()).map(String::len).sum();
        assert!(text < 1000, "{text} characters");
        let json: usize = bag.info().details.iter().map(|detail| detail.value.to_json().len()).sum();
        assert!(json < 200_000, "{json} characters");
    }

    /// The same for V2.0, with a chunk in each bag: the work is not the product of both numbers.
    #[test]
    fn sections_of_chunks_are_limited() {
        let (conn, time) = (U32Le::new(0), Stamp::new(1, 2));
        let message = Header::Message(Message { conn: &conn, time: &time }).to_head(0);
        let len = u32::try_from(message.len()).unwrap();
        let chunk = Header::Chunk(Chunk { compression: b"none", size: &U32Le::new(len) }).to_head(len);
        let bytes = [wire::VERSION_LINE, &*chunk, &message].concat().repeat(MAX_SECTIONS + 100);
        let bag = BagReader::new(bytes.into(), &BagOptions::default()).unwrap();
        assert_eq!(bag.sections().len(), MAX_SECTIONS);
        assert_eq!(bag.info().records, MAX_SECTIONS as u64 + 100);
        assert_eq!(bag.diagnostics().counts().get(rules::TOO_MANY_SECTIONS.code), Some(&100));
        assert_eq!(bag.info().lost.bytes, 100 * wire::VERSION_LINE.len() as u64);
    }
}
