//! Sizes of the content of a log, summed by kind, such as records, definitions and indexes.

use std::collections::HashMap;

use crate::TopicId;

/// Number and size of the entries of a log that have the same kind and belong to the same topic.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// Kind of the entries, in the terms of the log format, such as `data`, `parameter` or `index`.
    pub kind: &'static str,
    /// Topic to which the entries belong, or `None` if they belong to no topic.
    pub topic: Option<TopicId>,
    /// Number of entries that have this kind and belong to this topic.
    pub count: u64,
    /// Size in bytes of these entries of the log, including their headers.
    pub bytes: u64,
}

impl Usage {
    /// Kind of the bytes that could not be read.
    pub const UNREADABLE: &'static str = "not readable";
}

/// Sums the sizes of the entries of a log by kind and topic. The result lists kinds and topics in
/// the order in which they were first added.
#[derive(Debug, Default)]
pub struct UsageTally {
    /// The sums, in the order in which their kind and topic were first added.
    list: Vec<Usage>,
    /// For each kind and topic, the index in `list`. A linear search would take quadratic time in
    /// total, because a malicious log can have as many topics as records.
    places: HashMap<(&'static str, Option<TopicId>), usize>,
    /// Sum of all sizes that have been added, in bytes.
    total: u64,
}

impl UsageTally {
    /// Adds an entry of the log, such as a record, that has `bytes` bytes.
    pub fn add(&mut self, kind: &'static str, topic: Option<TopicId>, bytes: u64) {
        self.add_all(kind, topic, 1, bytes);
    }

    /// Adds `count` entries of the log. Together, they have `bytes` bytes. Does nothing if `count`
    /// is 0.
    pub fn add_all(&mut self, kind: &'static str, topic: Option<TopicId>, count: u64, bytes: u64) {
        if count == 0 {
            return;
        }
        self.total += bytes;
        let place = *self.places.entry((kind, topic)).or_insert(self.list.len());
        match self.list.get_mut(place) {
            Some(usage) => {
                usage.count += count;
                usage.bytes += bytes;
            }
            None => self.list.push(Usage { kind, topic, count, bytes }),
        }
    }

    /// Returns the sums for a log of `size` bytes. Bytes that belong to no added entry count as
    /// unreadable.
    pub fn finish(mut self, size: u64) -> Vec<Usage> {
        let rest = size.saturating_sub(self.total);
        self.add_all(Usage::UNREADABLE, None, u64::from(rest > 0), rest);
        self.list
    }
}
