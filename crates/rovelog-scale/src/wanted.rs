//! Selections over many logs: topics, times and fields.

use rovelog::core::topic::instance;
use rovelog::{LogReader, Select, Topic};
use rovelog_export::TimeBase;
use serde::{Deserialize, Serialize};

/// A selection over many logs. The default selects everything but fields of raw bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Wanted {
    /// Paths of the logs; `None` selects all.
    #[serde(skip_serializing)]
    pub logs: Option<Vec<String>>,
    /// Names of topics; `None` selects all. `vehicle_attitude` selects all instances,
    /// `vehicle_attitude/1` selects one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topics: Option<Vec<String>>,
    /// Names of fields, for example `q` or `pos.x`; `None` selects all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fields: Option<Vec<String>>,
    /// Start of the window on the clock of the log, in nanoseconds, inclusive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_ns: Option<i64>,
    /// End of the window on the clock of the log, in nanoseconds, exclusive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_ns: Option<i64>,
    /// Start of the window in UTC, in microseconds since 1970, inclusive. Rows without UTC are not
    /// selected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_us: Option<i64>,
    /// End of the window in UTC, in microseconds since 1970, exclusive. Rows without UTC are not
    /// selected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_us: Option<i64>,
    /// True to select fields of raw bytes, too.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub blobs: bool,
}

/// Splits the name of a topic into the name without the instance and the instance.
/// `battery_status/1` is instance 1 of `battery_status`. `battery_status/1#2`, a second series of
/// it, is instance 1 of `battery_status#2`.
pub(crate) fn split_instance(topic: &str) -> (String, Option<i32>) {
    match instance(topic) {
        Some((name, number, mark)) => (format!("{name}{mark}"), Some(number.into())),
        None => (topic.to_owned(), None),
    }
}

/// A time window on the clock of a log, in nanoseconds. The start is inclusive, the end exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    start: i128,
    end: i128,
}

impl Window {
    /// Returns whether the window contains all times.
    pub(crate) fn is_open(self) -> bool {
        self.start <= i128::from(i64::MIN) && self.end > i128::from(i64::MAX)
    }

    /// Returns whether the window contains a time.
    pub(crate) fn keeps(self, nanos: i64) -> bool {
        (self.start..self.end).contains(&i128::from(nanos))
    }

    /// Returns whether the window overlaps the times from `first` to `last`.
    fn keeps_span(self, first: i64, last: i64) -> bool {
        i128::from(last) >= self.start && i128::from(first) < self.end
    }
}

impl Wanted {
    /// Returns whether the log at a path is selected.
    pub(crate) fn keeps_log(&self, uri: &str) -> bool {
        self.logs.as_ref().is_none_or(|logs| logs.iter().any(|log| log == uri))
    }

    /// Returns whether a topic is selected by its name, or by its name without the instance.
    pub(crate) fn keeps_topic(&self, topic: &Topic) -> bool {
        let means = |name: &String| topic.answers_to(name) || split_instance(&topic.name).0 == *name;
        self.topics.as_ref().is_none_or(|names| names.iter().any(means))
    }

    /// Returns the time window on the clock of a log; `None` if it cannot contain any row.
    pub(crate) fn window(&self, log: &dyn LogReader) -> Option<Window> {
        let wide = |time: Option<i64>, open: i128| time.map_or(open, i128::from);
        let mut window = Window { start: wide(self.start_ns, i128::MIN), end: wide(self.end_ns, i128::MAX) };
        if self.start_us.is_some() || self.end_us.is_some() {
            let TimeBase::Utc(utc) = TimeBase::of(log) else { return None };
            // The column `time` has the time rounded down to microseconds.
            let nanos = |us: i64| us.saturating_mul(1000);
            let start = self.start_us.and_then(|us| utc.first_log_time(nanos(us)));
            let end = self.end_us.and_then(|us| utc.last_log_time(nanos(us)));
            window.start = start.map_or(window.start, |start| window.start.max(start.into()));
            window.end = end.map_or(window.end, |end| window.end.min(end.into()));
        }
        Some(window)
    }

    /// Returns whether a topic may have rows inside a window, as far as its summary shows.
    pub(crate) fn may_have_rows(topic: &Topic, window: Window) -> bool {
        let in_order = topic.in_order && topic.timed == topic.count;
        match topic.first.zip(topic.last).filter(|_| in_order) {
            Some((first, last)) => window.keeps_span(first.nanos, last.nanos),
            None => true,
        }
    }

    /// Returns the selection for a reader, which has fields and blocks. The time window is applied
    /// later, after all rows were numbered.
    pub(crate) fn select(&self, blocks: Option<&std::ops::Range<u64>>) -> Select {
        let mut select = Select::all();
        if let Some(fields) = &self.fields {
            select = select.with_fields(fields.iter().cloned());
        }
        select.blocks = blocks.cloned();
        select
    }
}

#[cfg(test)]
mod tests {
    use super::split_instance;

    #[test]
    fn topic_names_are_split_into_name_and_instance() {
        assert_eq!(split_instance("imu/10"), ("imu".to_owned(), Some(10)));
        assert_eq!(split_instance("imu/0#2"), ("imu#2".to_owned(), Some(0)));
        assert_eq!(split_instance("/camera/image"), ("/camera/image".to_owned(), None));
    }
}
