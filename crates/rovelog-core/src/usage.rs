//! Size of a log by content.

use std::collections::HashMap;

use crate::TopicId;

/// Bytes of one kind, of a topic where they belong to one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// What is in these bytes, in the format's own words: `data`, `parameter`, `index`.
    pub kind: &'static str,
    /// The topic they belong to.
    pub topic: Option<TopicId>,
    /// How many such things.
    pub count: u64,
    /// Their bytes, with all that frames them.
    pub bytes: u64,
}

impl Usage {
    /// The kind of bytes that belong to nothing that could be read.
    pub const UNREADABLE: &'static str = "not readable";
}

/// Adds up bytes by kind and topic, in the order in which they are met.
#[derive(Debug, Default)]
pub struct UsageTally {
    list: Vec<Usage>,
    /// Where in the list a kind of a topic is: a hostile log has as many topics as records.
    places: HashMap<(&'static str, Option<TopicId>), usize>,
    total: u64,
}

impl UsageTally {
    /// Counts one thing of so many bytes.
    pub fn add(&mut self, kind: &'static str, topic: Option<TopicId>, bytes: u64) {
        self.add_all(kind, topic, 1, bytes);
    }

    /// Counts `count` things that have so many bytes together; nothing where there is none.
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

    /// Returns the list for a log of `size` bytes: what was not counted could not be read.
    pub fn finish(mut self, size: u64) -> Vec<Usage> {
        let rest = size.saturating_sub(self.total);
        self.add_all(Usage::UNREADABLE, None, u64::from(rest > 0), rest);
        self.list
    }
}
