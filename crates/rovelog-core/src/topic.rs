//! Topics: the named streams of a log.

use std::sync::Arc;

use crate::{Schema, Timestamp};

/// A topic's index within its log, dense from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicId(pub u32);

impl TopicId {
    /// Returns the index into [`LogReader::topics`](crate::LogReader::topics).
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Records with times close to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// The first time, nanoseconds.
    pub first: i64,
    /// The last time, nanoseconds.
    pub last: i64,
    /// The number of records.
    pub count: u64,
    /// Offset of the first byte of one of its records, the first one in the file.
    pub offset: u64,
}

/// One named stream of records, with what a scan of the log learned about it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Topic {
    /// The topic's index.
    pub id: TopicId,
    /// The name, unique in the log: `vehicle_attitude/0`.
    pub name: String,
    /// The name of the type of its records: `vehicle_attitude`.
    pub type_name: String,
    /// The fields; `None` where the log's own definitions do not allow decoding.
    pub schema: Option<Arc<Schema>>,
    /// The number of records.
    pub count: u64,
    /// The bytes of their payloads.
    pub bytes: u64,
    /// Whether `bytes` is known: the index of a log, by which it may have been opened, need not say.
    pub bytes_known: bool,
    /// The records that carry a time.
    pub timed: u64,
    /// The time of the first timed record in file order.
    pub first: Option<Timestamp>,
    /// The time of the last timed record in file order.
    pub last: Option<Timestamp>,
    /// Whether no record's time is earlier than the one before it in the file.
    pub in_order: bool,
    /// The records within the span of the log's data; `None` where that was not looked at, as
    /// before the end of a stream.
    pub in_data: Option<Interval>,
}

impl Topic {
    /// Returns a topic without records yet.
    pub fn new(id: TopicId, name: String, type_name: String, schema: Option<Arc<Schema>>) -> Self {
        Self {
            id,
            name,
            type_name,
            schema,
            count: 0,
            bytes: 0,
            bytes_known: true,
            timed: 0,
            first: None,
            last: None,
            in_order: true,
            in_data: None,
        }
    }

    /// Returns whether it is one of `topics` itself, and not a topic of another log or a copy.
    pub fn is_of(&self, topics: &[Self]) -> bool {
        topics.get(self.id.index()).is_some_and(|own| std::ptr::eq(own, self))
    }

    /// Returns the mean rate in Hz: `(n - 1) / d` over the records with a time within the log's data;
    /// `None` if there are fewer than two, or if they have no duration.
    pub fn rate_hz(&self) -> Option<f64> {
        let (count, first, last) = match &self.in_data {
            Some(within) => (within.count, within.first, within.last),
            None => (self.timed, self.first?.nanos, self.last?.nanos),
        };
        let nanos = last.checked_sub(first).filter(|n| *n > 0)?;
        (count > 1).then(|| (count - 1) as f64 / (nanos as f64 / 1e9))
    }

    /// Returns whether `name` means this topic: its whole name, or the name without the instance 0.
    pub fn answers_to(&self, name: &str) -> bool {
        self.name == name || short(&self.name) == name
    }
}

/// Splits the name of a topic into name, instance and mark: `battery_status/1` is the instance 1 of
/// `battery_status`, and `battery_status/1#2` a second series of it. Names that start with a slash
/// are paths, as in ROS: `/imu/0` is no instance of `/imu`, which may be a topic too.
#[doc(hidden)]
pub fn instance(name: &str) -> Option<(&str, u16, &str)> {
    let (base, instance) = name.rsplit_once('/').filter(|_| !name.starts_with('/'))?;
    let (number, mark) = instance.split_at(instance.find('#').unwrap_or(instance.len()));
    // There is one way to write a number, so that no two names have the same parts.
    let is_plain = number == "0" || number.starts_with(|c: char| ('1'..='9').contains(&c));
    Some((base, number.parse().ok().filter(|_| is_plain)?, mark))
}

/// Returns the name of a topic without the instance 0.
#[doc(hidden)]
pub fn short(name: &str) -> &str {
    match instance(name) {
        Some((base, 0, "")) => base,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_an_instance_unless_it_is_a_path() {
        assert_eq!(instance("imu/10"), Some(("imu", 10, "")));
        assert_eq!(instance("a/b/0#2"), Some(("a/b", 0, "#2")));
        for name in ["imu", "imu/3dm", "imu/", "imu/00", "imu/+1", "imu/65536", "/imu/0", "/0", ""] {
            assert_eq!(instance(name), None, "{name}");
        }
        assert_eq!(["imu/0", "imu/1", "imu/0#2", "/x/0"].map(short), ["imu", "imu/1", "imu/0#2", "/x/0"]);
    }
}
