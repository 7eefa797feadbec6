//! Selections: the topics, the fields and the time window that a reader returns.

use std::collections::BTreeSet;
use std::ops::Bound::{Included, Unbounded};
use std::ops::Range;
use std::sync::Arc;

use crate::Topic;
use crate::topic::short;

/// Names that are looked up, not searched. Clones share them: a selection is cloned for each topic
/// of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names(Arc<BTreeSet<String>>);

impl Names {
    /// Returns the names, sorted.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Returns whether one of them means `topic`, as [`Topic::answers_to`] says.
    pub fn topic(&self, topic: &Topic) -> bool {
        self.0.contains(&topic.name) || self.0.contains(short(&topic.name))
    }

    /// Returns whether one of them is the field at `path`, is around it or inside it.
    pub fn field(&self, path: &str) -> bool {
        let around = path.match_indices('.').any(|(end, _)| self.0.contains(&path[..end]));
        let within = format!("{path}.");
        let inside = || self.0.range::<str, _>((Included(&*within), Unbounded)).next();
        around || self.0.contains(path) || inside().is_some_and(|name| name.starts_with(&within))
    }
}

impl<N: Into<String>> FromIterator<N> for Names {
    fn from_iter<I: IntoIterator<Item = N>>(names: I) -> Self {
        Self(Arc::new(names.into_iter().map(Into::into).collect()))
    }
}

/// Topics and a time window. The default keeps everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Select {
    /// Names of topics to keep; `None` keeps all.
    pub topics: Option<Names>,
    /// Names of fields to keep: `q`, `pos.x`, or `pos` for all of it; `None` keeps all. Columns
    /// only.
    pub fields: Option<Names>,
    /// First time to keep, nanoseconds of the log's clock, inclusive.
    pub start: Option<i64>,
    /// End of the window, nanoseconds of the log's clock, exclusive.
    pub end: Option<i64>,
    /// Also keep each topic's last record before `start`: the state that held when the window
    /// opens.
    pub last_before: bool,
    /// Topics whose last record `last_before` keeps, by name; `None` keeps that of all topics.
    pub last_before_topics: Option<Names>,
    /// Also keep the last message before `start` of each publisher that the log marks as latching.
    /// Slices of bags only.
    pub latched: bool,
    /// Read columns of a ULog as pyulog does: truth values as signed bytes, because some writers
    /// store others than 0 and 1, and padding inside nested types as fields (`previous._padding0`).
    pub like_pyulog: bool,
    /// Only the blocks that start in this range of bytes of the log: parts of a log that are read
    /// separately. Ranges that together cover a log select each of its records once. A block is 4
    /// MiB of an index, a chunk, a block of an RLD, or a message of a VEL log. Columns only.
    pub blocks: Option<Range<u64>>,
}

impl Select {
    /// Selects everything.
    pub fn all() -> Self {
        Self::default()
    }

    /// Selects one topic, by its name; the instance `/0` can be omitted.
    pub fn topic(name: impl Into<String>) -> Self {
        Self::topics([name])
    }

    /// Selects several topics, by name.
    pub fn topics<N: Into<String>>(names: impl IntoIterator<Item = N>) -> Self {
        Self { topics: Some(Names::from_iter(names)), ..Self::default() }
    }

    /// Returns the same topics within `start..end`, nanoseconds of the log's clock; `None` leaves a
    /// side open.
    #[must_use]
    pub fn between(mut self, start: Option<i64>, end: Option<i64>) -> Self {
        (self.start, self.end) = (start, end);
        self
    }

    /// Returns the same selection with the last record before its start, for each topic.
    #[must_use]
    pub fn with_last_before(mut self) -> Self {
        self.last_before = true;
        self
    }

    /// Returns the same selection with the last record before its start, for these topics.
    #[must_use]
    pub fn with_last_before_of<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.last_before = true;
        self.last_before_topics = Some(Names::from_iter(names));
        self
    }

    /// Returns the same selection with the last message before its start, for each latching publisher.
    #[must_use]
    pub fn with_latched(mut self) -> Self {
        self.latched = true;
        self
    }

    /// Returns whether the last record of `topic` before the start is kept.
    pub fn keeps_last_before(&self, topic: &Topic) -> bool {
        self.last_before
            && self.keeps_topic(topic)
            && self.last_before_topics.as_ref().is_none_or(|names| names.topic(topic))
    }

    /// Returns the same selection with only these fields in columns.
    #[must_use]
    pub fn with_fields<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.fields = Some(Names::from_iter(names));
        self
    }

    /// Returns whether the block that starts at this offset is selected.
    pub fn keeps_block(&self, start: u64) -> bool {
        self.blocks.as_ref().is_none_or(|blocks| blocks.contains(&start))
    }

    /// Returns whether the selection wants the field at `path`, or something inside it.
    pub fn keeps_field(&self, path: &str) -> bool {
        self.fields.as_ref().is_none_or(|names| names.field(path))
    }

    /// Returns whether the selection names `topic`.
    pub fn keeps_topic(&self, topic: &Topic) -> bool {
        self.topics.as_ref().is_none_or(|names| names.topic(topic))
    }

    /// Returns whether a record between these times can be in the window.
    pub fn keeps_span(&self, first: i64, last: i64) -> bool {
        self.start.is_none_or(|start| last >= start) && self.end.is_none_or(|end| first < end)
    }

    /// Returns whether `nanos` is in the window.
    pub fn keeps_time(&self, nanos: i64) -> bool {
        self.start.is_none_or(|start| nanos >= start) && self.end.is_none_or(|end| nanos < end)
    }
}

/// Returns the path by which columns are selected of a field's flat name: `esc.rpm` of
/// `esc[3].rpm`.
pub fn field_path(flat_name: &str) -> String {
    let mut parts = flat_name.split('[');
    let mut path = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        path.push_str(part.split_once(']').map_or("", |(_, rest)| rest));
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TopicId;

    /// A set of names answers as a search through all of them does.
    #[test]
    fn a_set_of_names_means_what_its_names_mean() {
        let names = ["a", "a/0", "b/0", "/b", "c", "a.x", "pos", "pos.x", "pos.xy", "q.w.e", "q-1", "q/1"];
        let inside = |outer: &str, inner: &str| {
            inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        for chosen in 0..1_u32 << names.len() {
            let chosen: Vec<&str> =
                (0..names.len()).filter(|i| chosen >> i & 1 == 1).map(|i| names[i]).collect();
            let select = Select::topics(chosen.iter().copied()).with_fields(chosen.iter().copied());
            for name in names.into_iter().chain(["", "q", "q.w", "pos.x.y", "b", "/b/0", "c/0", "d/0"]) {
                let topic = Topic::new(TopicId(0), name.to_owned(), String::new(), None);
                let expected = chosen.iter().any(|chosen| topic.answers_to(chosen));
                assert_eq!(select.keeps_topic(&topic), expected, "topic {name} of {chosen:?}");
                let expected = chosen.iter().any(|chosen| inside(chosen, name) || inside(name, chosen));
                assert_eq!(select.keeps_field(name), expected, "field {name} of {chosen:?}");
            }
        }
    }
}
