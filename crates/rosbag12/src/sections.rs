//! Sections of a file, and the comparison of their indices with their messages (sections 3 and 5 of
//! docs/formats/rosbag.md). A section is one bag. A file that was concatenated from several bags
//! has several sections.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use rovelog_core::Diagnostics;

use crate::diagnostics as rules;
use crate::index_offsets::IndexOffsets;
use crate::tables::Tally;
use crate::wire::IndexEntry;

/// Maximum number of sections (bags) in a file.
pub(crate) const MAX_SECTIONS: usize = 65_536;

/// Result of comparing the index of a section (a bag within the file) with its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexState {
    /// The index lists exactly the messages of the section.
    Exact,
    /// The index does not list exactly the messages of the section.
    Differs,
    /// The section has messages but no index.
    Absent,
    /// The section has neither messages nor an index.
    Empty,
    /// The bag is encrypted, so its index cannot be compared. Occurs only in V2.0.
    Encrypted,
    /// The index is consistent, but was not compared with the messages. Occurs only in V2.0.
    Believed,
}

impl IndexState {
    /// Returns the name of this result in text and JSON output.
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

/// Result of comparing the index of one topic with the messages of the topic.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexTopic {
    /// Topic name as stored in the bag.
    pub topic: Vec<u8>,
    /// Number of index entries of the topic.
    pub entries: u64,
    /// Number of messages of the topic in the section.
    pub in_scan: u64,
    /// True if the index lists exactly the messages of the topic.
    pub exact: bool,
}

/// A bag within a file. Most files consist of one bag, so they have one section.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Section {
    /// Offset in the file of the version line. Positions that are stored in the section are
    /// relative to this offset.
    pub offset: u64,
    /// Offset in the file of the first record.
    pub first_record: u64,
    /// Position of the index as stated in the bag header.
    pub index_pos: Option<u64>,
    /// Number of padding bytes (spaces) that follow the bag header and belong to no record.
    pub raw_padding: Option<u64>,
    /// Result of comparing the index with the messages. Set when the scan reaches the end of the
    /// section.
    pub index: IndexState,
    /// Result of comparing the index with the messages, by topic name in ascending order. Empty if
    /// the section has no index.
    pub index_topics: Vec<IndexTopic>,
    /// Byte range of the header of the bag header record.
    pub(crate) bag_header_at: Option<Range<u64>>,
    /// Index records of the section.
    pub(crate) records: IndexRecords,
}

/// Index records of a section (a bag within the file).
#[derive(Clone, Debug, Default)]
pub(crate) struct IndexRecords {
    /// Offset in the file of the first index record.
    pub(crate) first_at: Option<u64>,
    /// True if an index record is invalid, or if another index precedes the index of the section.
    pub(crate) is_unusable: bool,
    /// Map from a topic name to the count and checksum of its index entries. Used before V2.0, until
    /// the index is compared with the messages.
    by_topic: BTreeMap<Vec<u8>, Tally>,
    /// Map from the position of a definition record to the position of the message that directly
    /// follows the definition.
    pub(crate) message_after_definition: HashMap<u64, u64>,
    /// Message offsets that the index lists. They are read only if the section is damaged.
    pub(crate) offsets: Option<Box<IndexOffsets>>,
}

impl IndexRecords {
    /// Returns the position of the message to which an index entry with position `pos` refers. The
    /// first entry of a topic refers to the definition record, so the position of the message after
    /// the definition is returned.
    pub(crate) fn message_offset(&self, pos: u64) -> u64 {
        self.message_after_definition.get(&pos).copied().unwrap_or(pos)
    }

    /// Adds an index record, which is compared with the messages at the end of the section.
    pub(crate) fn add(&mut self, at: u64, topic: &[u8], data: &[u8]) {
        self.first_at.get_or_insert(at);
        let mut entries = Tally::default();
        for entry in IndexEntry::all_of(data) {
            entries.add(entry.sec.get(), entry.nsec.get(), self.message_offset(entry.pos.get()));
        }
        self.by_topic.entry(topic.to_vec()).or_default().join(entries);
    }
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
            records: IndexRecords::default(),
        }
    }

    /// Stores the content of the bag header `record`, whose header fields end at `data_at`.
    pub(crate) fn set_bag_header(
        &mut self,
        record: Range<u64>,
        data_at: u64,
        index_pos: u64,
        diagnostics: &mut Diagnostics,
    ) {
        if record.start != self.first_record {
            diagnostics.push(&rules::BAG_HEADER_LATE, record.clone(), || {
                format!(
                    "the bag header follows the record at byte {} instead of being the first record; it is \
                     read, but the ROS tools do not find it",
                    self.first_record
                )
            });
        }
        self.index_pos = Some(index_pos);
        self.bag_header_at = Some(record.start..data_at);
    }

    /// Compares the index with the messages, by topic. `messages` has the count and checksum of the
    /// messages of each topic.
    pub(crate) fn compare_index(&mut self, messages: &BTreeMap<&[u8], Tally>) {
        let any = messages.values().any(|tally| tally.count > 0);
        // The map is taken out of the section to free its memory, because a file may have many
        // sections.
        let mut indexed = std::mem::take(&mut self.records.by_topic);
        if indexed.is_empty() {
            self.index = if any { IndexState::Absent } else { IndexState::Empty };
            return;
        }
        let mut exact = !self.records.is_unusable;
        // A topic that has messages but no index record must be reported too.
        for topic in messages.iter().filter(|(_, tally)| tally.count > 0).map(|(topic, _)| topic) {
            indexed.entry(topic.to_vec()).or_default();
        }
        for (topic, entries) in indexed {
            let in_scan = messages.get(&*topic).copied().unwrap_or_default();
            let same = entries == in_scan;
            exact &= same;
            let (entries, in_scan) = (entries.count, in_scan.count);
            self.index_topics.push(IndexTopic { topic, entries, in_scan, exact: same });
        }
        self.index = if exact { IndexState::Exact } else { IndexState::Differs };
    }

    /// Returns the number of messages that the index lists in addition to those of the section. The
    /// result is 0 if the index is unusable.
    ///
    /// Topics are not compared, because a damaged name is not a missing message.
    pub(crate) fn missing_messages(&self) -> u64 {
        let topics = || self.index_topics.iter().filter(|_| !self.records.is_unusable);
        let listed: u64 = topics().map(|topic| topic.entries).sum();
        listed.saturating_sub(topics().map(|topic| topic.in_scan).sum())
    }
}

/// Numbers of differences between an index and the messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Differences {
    /// Number of messages that the index does not list.
    pub missing_in_index: u64,
    /// Number of index entries for which no message was found.
    pub not_in_scan: u64,
}

#[cfg(test)]
mod tests {
    use rovelog_core::LogReader as _;

    use rovelog_core::internal::wire::U32Le;

    use super::*;
    use crate::diagnostics as rules;
    use crate::v2::wire::{self, Chunk, Header, Message, Stamp};
    use crate::{BagOptions, BagReader};

    /// The file consists of version lines only. The number of stored sections and the number of
    /// diagnostics are both limited.
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
        assert!(
            message.contains("more than 65536 bags, so the index of the bag at byte 1048576"),
            "{message}"
        );
        let text: usize =
            bag.info().details.iter().filter_map(|detail| detail.text.as_ref()).map(String::len).sum();
        assert!(text < 1000, "{text} characters");
        let json: usize = bag.info().details.iter().map(|detail| detail.value.to_json().len()).sum();
        assert!(json < 200_000, "{json} characters");
    }

    /// The V2.0 file has one chunk in each section. The time of the test must not grow with the
    /// product of the numbers of chunks and sections.
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
