//! What is read of logs: topics, times, fields.

use rovelog::core::topic::instance;
use rovelog::{LogReader, Select, Topic};
use rovelog_export::TimeBase;
use serde::{Deserialize, Serialize};

/// A selection over many logs. The default is everything but raw bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Wanted {
    /// Paths of the logs; `None` for all.
    #[serde(skip_serializing)]
    pub logs: Option<Vec<String>>,
    /// Topics: `vehicle_attitude` for all instances, `vehicle_attitude/1` for one; `None` for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topics: Option<Vec<String>>,
    /// Fields: `q`, `pos.x`; `None` for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fields: Option<Vec<String>>,
    /// First time on the log's clock, nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_ns: Option<i64>,
    /// First time on the log's clock that is left out again, nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_ns: Option<i64>,
    /// First time in UTC, microseconds since 1970. Rows without UTC are left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_us: Option<i64>,
    /// First time in UTC that is left out again, microseconds since 1970. Rows without UTC are left
    /// out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_us: Option<i64>,
    /// Also fields of raw bytes.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub blobs: bool,
}

/// Splits the name of a topic: `battery_status/1` is the instance 1 of `battery_status`. A second
/// series of it, `battery_status/1#2`, is instance 1 of `battery_status#2`.
pub(crate) fn named(topic: &str) -> (String, Option<i32>) {
    match instance(topic) {
        Some((name, number, mark)) => (format!("{name}{mark}"), Some(number.into())),
        None => (topic.to_owned(), None),
    }
}

/// Times on the clock of one log, nanoseconds: inclusive start, exclusive end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    start: i128,
    end: i128,
}

impl Window {
    /// Returns whether every time is inside.
    pub(crate) fn is_open(self) -> bool {
        self.start <= i128::from(i64::MIN) && self.end > i128::from(i64::MAX)
    }

    /// Returns whether a time is inside.
    pub(crate) fn keeps(self, nanos: i64) -> bool {
        (self.start..self.end).contains(&i128::from(nanos))
    }

    /// Returns whether a time between these may be inside.
    fn keeps_span(self, first: i64, last: i64) -> bool {
        i128::from(last) >= self.start && i128::from(first) < self.end
    }
}

impl Wanted {
    /// Returns whether the log at a path is selected.
    pub(crate) fn keeps_log(&self, uri: &str) -> bool {
        self.logs.as_ref().is_none_or(|logs| logs.iter().any(|log| log == uri))
    }

    /// Returns whether a topic is selected: by its name, or its name without the instance.
    pub(crate) fn keeps_topic(&self, topic: &Topic) -> bool {
        let means = |name: &String| topic.answers_to(name) || named(&topic.name).0 == *name;
        self.topics.as_ref().is_none_or(|names| names.iter().any(means))
    }

    /// Returns the selected times on the clock of a log; `None` if no row can be inside.
    pub(crate) fn window(&self, log: &dyn LogReader) -> Option<Window> {
        let wide = |time: Option<i64>, open: i128| time.map_or(open, i128::from);
        let mut window = Window { start: wide(self.start_ns, i128::MIN), end: wide(self.end_ns, i128::MAX) };
        if self.start_us.is_some() || self.end_us.is_some() {
            let TimeBase::Utc(offset) = TimeBase::of(log) else { return None };
            // `time` is the time in nanoseconds, rounded down to microseconds.
            let own = |micros: Option<i64>| micros.map(|us| i128::from(us) * 1000 - i128::from(offset));
            window.start = own(self.start_us).map_or(window.start, |start| start.max(window.start));
            window.end = own(self.end_us).map_or(window.end, |end| end.min(window.end));
        }
        Some(window)
    }

    /// Returns whether a topic may have rows inside a window, as far as that is known without
    /// reading it.
    pub(crate) fn may_have_rows(topic: &Topic, window: Window) -> bool {
        let in_order = topic.in_order && topic.timed == topic.count;
        match topic.first.zip(topic.last).filter(|_| in_order) {
            Some((first, last)) => window.keeps_span(first.nanos, last.nanos),
            None => true,
        }
    }

    /// Returns the selection of a reader: fields and blocks. Times are compared later, because rows
    /// are numbered before.
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
    use super::named;

    #[test]
    fn a_topic_is_a_name_and_an_instance() {
        assert_eq!(named("imu/10"), ("imu".to_owned(), Some(10)));
        assert_eq!(named("imu/0#2"), ("imu#2".to_owned(), Some(0)));
        assert_eq!(named("/camera/image"), ("/camera/image".to_owned(), None));
    }
}
