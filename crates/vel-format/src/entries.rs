//! The valid messages of a log, with their orders by time and by topic.

use std::collections::BTreeMap;
use std::ops::Deref;

/// Offset, time and topic of a valid message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) at: u64,
    pub(crate) nanos: i64,
    pub(crate) topic: u32,
    /// Number of the message within its topic.
    pub(crate) seq: u32,
}

/// The valid messages of a log in file order.
#[derive(Debug)]
pub(crate) struct Entries {
    list: Vec<Entry>,
    /// Indices of the messages in time order. `None` if the messages are in time order in the file.
    by_time: Option<Vec<u32>>,
    /// For each topic, the indices of its messages in file order, which are used for columns.
    #[cfg(feature = "arrow")]
    by_topic: std::sync::OnceLock<Vec<Vec<u32>>>,
}

impl Deref for Entries {
    type Target = [Entry];

    fn deref(&self) -> &[Entry] {
        &self.list
    }
}

impl Entries {
    pub(crate) fn new(list: Vec<Entry>) -> Self {
        let is_sorted = list.is_sorted_by_key(|entry| entry.nanos);
        Self {
            by_time: (!is_sorted).then(|| in_time_order(&list)),
            #[cfg(feature = "arrow")]
            by_topic: std::sync::OnceLock::new(),
            list,
        }
    }

    /// Returns the index of the message with the number `i` in time order.
    pub(crate) fn place(&self, i: usize) -> usize {
        self.by_time.as_ref().map_or(i, |order| order[i] as usize)
    }

    /// Returns the number of messages in time order that are before the time `nanos`.
    pub(crate) fn first_at(&self, nanos: i64) -> usize {
        match &self.by_time {
            None => self.partition_point(|entry| entry.nanos < nanos),
            Some(order) => order.partition_point(|i| self[*i as usize].nanos < nanos),
        }
    }

    /// Returns the indices of all messages of a topic, in file order. `topics` is the number of
    /// topics.
    #[cfg(feature = "arrow")]
    pub(crate) fn of_topic(&self, topic: u32, topics: usize) -> &[u32] {
        let by_topic = self.by_topic.get_or_init(|| {
            let mut places = vec![Vec::new(); topics];
            for (place, entry) in (0..).zip(&self.list) {
                if let Some(places) = places.get_mut(entry.topic as usize) {
                    places.push(place);
                }
            }
            places
        });
        by_topic.get(topic as usize).map_or(&[], Vec::as_slice)
    }

    /// Returns the index of the last message before the time `start` for each wanted topic. The
    /// indices are in time order.
    pub(crate) fn last_before(&self, start: i64, wanted: &[bool]) -> Vec<usize> {
        let mut last: BTreeMap<u32, usize> = BTreeMap::new();
        for i in 0..self.first_at(start) {
            let place = self.place(i);
            let topic = self[place].topic;
            if wanted.get(topic as usize).copied().unwrap_or(false) {
                last.insert(topic, place);
            }
        }
        let mut places: Vec<_> = last.into_values().collect();
        places.sort_unstable_by_key(|place| (self[*place].nanos, *place));
        places
    }
}

/// Returns the indices of the messages, sorted by time. The sort is stable, so messages with equal
/// times keep the order of the file.
fn in_time_order(entries: &[Entry]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..u32::try_from(entries.len()).unwrap_or(u32::MAX)).collect();
    order.sort_by_key(|i| entries[*i as usize].nanos);
    order
}
