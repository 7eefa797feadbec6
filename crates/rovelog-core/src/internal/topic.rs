//! Topics: named streams of records in a log.

use std::sync::Arc;

use crate::{Schema, Timestamp};

/// Index of a topic within its log, starting with 0. Indices have no gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicId(pub u32);

impl TopicId {
    /// Returns the index of the topic in [`LogReader::topics`](crate::LogReader::topics).
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A time interval that contains records of a topic whose times are close to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Earliest time of the records in nanoseconds.
    pub first: i64,
    /// Latest time of the records in nanoseconds.
    pub last: i64,
    /// Number of records in the interval.
    pub count: u64,
    /// Offset in the file of the first record in the interval.
    pub offset: u64,
}

/// A named stream of records, with properties that the first scan of the log has found.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Topic {
    /// Index of the topic within its log.
    pub id: TopicId,
    /// Name of the topic, such as `vehicle_attitude/0`. The name is unique in the log.
    pub name: String,
    /// Name of the type of the records, such as `vehicle_attitude`.
    pub type_name: String,
    /// Fields of the records, or `None` if the definitions in the log are not sufficient to decode
    /// them.
    pub schema: Option<Arc<Schema>>,
    /// Number of records of the topic.
    pub count: u64,
    /// Size in bytes of the payloads of all records.
    pub bytes: u64,
    /// True if `bytes` is known. It may be unknown if the log was opened by an index without sizes.
    pub bytes_known: bool,
    /// Number of records that have a time.
    pub timed: u64,
    /// Time of the first record in file order that has a time.
    pub first: Option<Timestamp>,
    /// Time of the last record in file order that has a time.
    pub last: Option<Timestamp>,
    /// True if no record has an earlier time than the record before it in the file.
    pub in_order: bool,
    /// Records of the topic within the time span of the log's data. `None` if the time span has not
    /// been computed, for example before a stream has ended.
    pub in_data: Option<Interval>,
}

impl Topic {
    /// Creates a topic without records.
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

    /// Returns whether this topic is an element of `topics`. A copy of an element, or a topic of
    /// another log, is not an element.
    pub fn is_element_of(&self, topics: &[Self]) -> bool {
        topics.get(self.id.index()).is_some_and(|own| std::ptr::eq(own, self))
    }

    /// Returns the mean rate in Hz of the records within the time span of the log's data. It is
    /// `(n - 1) / d` for `n` records with the duration `d`. Returns `None` if there are fewer than
    /// two records, or if the duration is 0.
    pub fn rate_hz(&self) -> Option<f64> {
        let (count, first, last) = match &self.in_data {
            Some(within) => (within.count, within.first, within.last),
            None => (self.timed, self.first?.nanos, self.last?.nanos),
        };
        // Times can be wrong by any amount, so the subtraction can overflow.
        let nanos = last.checked_sub(first).filter(|n| *n > 0)?;
        (count > 1).then(|| (count - 1) as f64 / (nanos as f64 / 1e9))
    }

    /// Returns whether `name` is a name of this topic. The instance number `/0` can be omitted.
    pub fn answers_to(&self, name: &str) -> bool {
        self.name == name || short(&self.name) == name
    }
}

/// Splits the name of a topic into the base name, the instance number and the suffix.
///
/// `battery_status/1` is the instance 1 of `battery_status`. In `battery_status/1#2`, the suffix
/// `#2` marks a second topic with the same name. A name that starts with a slash is a path, as in
/// ROS: `/imu/0` is not an instance of `/imu`, because both names can be separate topics.
#[doc(hidden)]
pub fn instance(name: &str) -> Option<(&str, u16, &str)> {
    let (base, instance) = name.rsplit_once('/').filter(|_| !name.starts_with('/'))?;
    let (number, mark) = instance.split_at(instance.find('#').unwrap_or(instance.len()));
    // Numbers such as `00` and `+1` can also be parsed. They are rejected, so that two different
    // names never have the same base name, instance number and suffix.
    let is_plain = number == "0" || number.starts_with(|c: char| ('1'..='9').contains(&c));
    Some((base, number.parse().ok().filter(|_| is_plain)?, mark))
}

/// Returns the name of a topic without its instance number, if the instance number is 0.
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
