//! Selections over many logs by topic, time and field.

use rovelog::core::internal::topic::instance;
use rovelog::{LogReader, Select, Topic};
use rovelog_export::TimeBase;
use serde::{Deserialize, Serialize};

use crate::types::Rules;
use crate::union::same_name;

/// A selection over many logs. By default, everything is selected except fields with raw bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Wanted {
    /// Paths or URLs of the selected logs. `None` selects all logs.
    #[serde(skip_serializing)]
    pub logs: Option<Vec<String>>,
    /// Names of the selected topics. `None` selects all topics. For example, `vehicle_attitude`
    /// selects all instances of this topic, and `vehicle_attitude/1` selects one instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topics: Option<Vec<String>>,
    /// Names of the selected fields, for example `q` or `pos.x`. `None` selects all fields.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fields: Option<Vec<String>>,
    /// Start of the time window on the clock of the log, in nanoseconds. It is inclusive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_ns: Option<i64>,
    /// End of the time window on the clock of the log, in nanoseconds. It is exclusive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_ns: Option<i64>,
    /// Start of the time window in UTC, in microseconds since 1970. It is inclusive. If it is set,
    /// rows without UTC are not selected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_us: Option<i64>,
    /// End of the time window in UTC, in microseconds since 1970. It is exclusive. If it is set,
    /// rows without UTC are not selected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_us: Option<i64>,
    /// True to select fields with raw bytes, too.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub blobs: bool,
    /// True if columns keep the types that the log has: unsigned integers, nanoseconds and arrays
    /// of fixed length. Otherwise, they get types that every query engine has.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub native: bool,
}

/// Splits the name of a topic into the name without the instance, and the number of the instance.
/// For example, `battery_status/1` is instance 1 of `battery_status`. If a log has a second topic
/// with the name `battery_status/1`, it is called `battery_status/1#2` and is instance 1 of
/// `battery_status#2`.
pub fn split_instance(topic: &str) -> (String, Option<i32>) {
    match instance(topic) {
        Some((name, number, mark)) => (format!("{name}{mark}"), Some(number.into())),
        None => (topic.to_owned(), None),
    }
}

/// A time window on the clock of a log, in nanoseconds. The start is inclusive, and the end is
/// exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    start: i128,
    end: i128,
}

impl Window {
    /// Returns `true` if the time window contains all times.
    pub(crate) fn is_open(self) -> bool {
        self.start <= i128::from(i64::MIN) && self.end > i128::from(i64::MAX)
    }

    /// Returns `true` if the time window contains the time `nanos`.
    pub(crate) fn keeps(self, nanos: i64) -> bool {
        (self.start..self.end).contains(&i128::from(nanos))
    }

    /// Returns `select` with this time window.
    pub(crate) fn limit(self, select: Select) -> Select {
        let start = i64::try_from(self.start).ok().filter(|_| self.start > i64::MIN.into());
        // A window that ends after all times has no end. A window that starts after all times is
        // not limited here, because the rows are compared with the window later.
        select.between(start, i64::try_from(self.end).ok())
    }

    /// Returns `true` if the time window overlaps the times from `first` to `last`.
    fn keeps_span(self, first: i64, last: i64) -> bool {
        i128::from(last) >= self.start && i128::from(first) < self.end
    }
}

impl Wanted {
    /// Returns the rules for the columns of a table.
    pub(crate) fn rules(&self) -> Rules {
        Rules { blobs: self.blobs, native: self.native }
    }

    /// Returns `true` if the log at the path or URL `uri` is selected.
    pub(crate) fn keeps_log(&self, uri: &str) -> bool {
        self.logs.as_ref().is_none_or(|logs| logs.iter().any(|log| log == uri))
    }

    /// Returns `true` if a topic is selected by its full name, or by its name without the instance.
    pub(crate) fn keeps_topic(&self, topic: &Topic) -> bool {
        let means = |name: &String| topic.answers_to(name) || split_instance(&topic.name).0 == *name;
        self.topics.as_ref().is_none_or(|names| names.iter().any(means))
    }

    /// Returns the time window on the clock of a log. Returns `None` if the window cannot contain
    /// any row.
    pub(crate) fn window(&self, log: &dyn LogReader) -> Option<Window> {
        let wide = |time: Option<i64>, open: i128| time.map_or(open, i128::from);
        let mut window = Window { start: wide(self.start_ns, i128::MIN), end: wide(self.end_ns, i128::MAX) };
        if self.start_us.is_some() || self.end_us.is_some() {
            let TimeBase::Utc(utc) = TimeBase::of(log) else { return None };
            // The column `time` of a lake contains times rounded down to microseconds. A start of
            // 5 µs selects rows from 5000 ns on, and an end of 6 µs excludes rows from 6000 ns on.
            // So whole microseconds can be compared with the exact times.
            let nanos = |us: i64| us.saturating_mul(1000);
            // A time that the clock of the log cannot represent is before or after all rows.
            let beyond = |us: i64| if us < 0 { i128::MIN } else { i128::MAX };
            if let Some(us) = self.start_us {
                let start = utc.first_log_time(nanos(us)).map_or(beyond(us), i128::from);
                window.start = window.start.max(start);
            }
            if let Some(us) = self.end_us {
                let end = utc.last_log_time(nanos(us)).map_or(beyond(us), i128::from);
                window.end = window.end.min(end);
            }
        }
        Some(window)
    }

    /// Returns `false` if the summary of a topic shows that the topic has no rows in the time
    /// window.
    pub(crate) fn may_have_rows(topic: &Topic, window: Window) -> bool {
        // The first and the last row have the smallest and the largest time only if all rows have
        // times, and the times are in ascending order.
        let in_order = topic.in_order && topic.timed == topic.count;
        match topic.first.zip(topic.last).filter(|_| in_order) {
            Some((first, last)) => window.keeps_span(first.nanos, last.nanos),
            None => true,
        }
    }

    /// Returns the selection of fields and blocks that is passed to a reader.
    ///
    /// It does not include the time window, because rows are numbered before the window is applied.
    /// A row then has the same number in every selection.
    pub(crate) fn select(&self, topic: &Topic, blocks: Option<&std::ops::Range<u64>>) -> Select {
        let mut select = Select::all();
        if let Some(fields) = &self.fields {
            // The names of other logs can differ in case.
            let own = || topic.schema.iter().flat_map(|schema| &schema.fields).map(|field| &*field.name);
            let missing: Vec<_> = fields.iter().filter(|name| own().all(|own| own != **name)).collect();
            let similar = own().filter(|own| missing.iter().any(|name| same_name(own, name)));
            select = select.with_fields(fields.iter().map(String::as_str).chain(similar));
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
