//! Selection of the topics, fields and times that a reader returns.

use std::collections::BTreeSet;
use std::ops::Bound::{Included, Unbounded};
use std::ops::Range;
use std::sync::Arc;

use crate::Topic;
use crate::internal::topic::short;

/// A set of names. Clones share the same memory, because a selection is cloned for each topic of a
/// log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names(Arc<BTreeSet<String>>);

impl Names {
    /// Returns the names in sorted order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Returns whether the set contains a name that selects `topic`. See [`Topic::answers_to`].
    pub fn topic(&self, topic: &Topic) -> bool {
        // The name without the instance number also selects the topic, so that `a` selects `a/0`.
        self.0.contains(&topic.name) || self.0.contains(short(&topic.name))
    }

    /// Returns whether the set selects the field at `path`. The set may contain the name of this
    /// field, of a field that contains it, or of a field inside it. For example, `pos.x` is
    /// selected by `pos.x`, `pos` and `pos.x.y`.
    pub fn field(&self, path: &str) -> bool {
        let around = path.match_indices('.').any(|(end, _)| self.0.contains(&path[..end]));
        // Names of fields inside `pos` start with `pos.`. In sorted order, these names directly
        // follow the text `pos.`.
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

/// The topics, fields and times to read. The default selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Select {
    /// Names of the selected topics, or `None` for all topics.
    pub topics: Option<Names>,
    /// Names of the selected fields, or `None` for all fields. The name `pos` also selects `pos.x`.
    /// Only the fields of columns are restricted. Records always have all fields.
    pub fields: Option<Names>,
    /// Start of the time window in nanoseconds of the log's clock, inclusive.
    pub start: Option<i64>,
    /// End of the time window in nanoseconds of the log's clock, exclusive.
    pub end: Option<i64>,
    /// True to also select the last record of each topic before `start`. These records show the
    /// state at the start of the time window.
    pub last_before: bool,
    /// Names of the topics to which `last_before` applies, or `None` for all topics.
    pub last_before_topics: Option<Names>,
    /// True to also select the last message before `start` of each latching publisher. A latching
    /// publisher sends its last message to new subscribers, and the log marks it. Only slices of
    /// bags use this option.
    pub latched: bool,
    /// True to read columns of a ULog file in the same way as pyulog. Booleans are then signed
    /// bytes, because some programs store values other than 0 and 1. Padding inside nested types
    /// becomes a field such as `previous._padding0`.
    pub like_pyulog: bool,
    /// Byte range of the log in which the selected blocks start, or `None` for all blocks.
    ///
    /// With this option, parts of a log can be read separately. If the ranges of the parts cover
    /// the whole log, each record is read exactly once. Depending on the format, a block is a block
    /// of an index (4 MiB), a chunk of a bag, a block of an RLD file or a message of a VEL log.
    /// Only columns are restricted.
    pub blocks: Option<Range<u64>>,
}

impl Select {
    /// Returns a selection of everything.
    pub fn all() -> Self {
        Self::default()
    }

    /// Returns a selection of one topic. The instance number `/0` can be omitted from its name.
    pub fn topic(name: impl Into<String>) -> Self {
        Self::topics([name])
    }

    /// Returns a selection of several topics.
    pub fn topics<N: Into<String>>(names: impl IntoIterator<Item = N>) -> Self {
        Self { topics: Some(Names::from_iter(names)), ..Self::default() }
    }

    /// Returns the same selection with the time window `start..end`, in nanoseconds of the log's
    /// clock. If `start` is `None`, the window starts with the first record. If `end` is `None`, it
    /// ends after the last record.
    #[must_use]
    pub fn between(mut self, start: Option<i64>, end: Option<i64>) -> Self {
        (self.start, self.end) = (start, end);
        self
    }

    /// Returns the same selection, and also selects the last record of each topic before the time
    /// window.
    #[must_use]
    pub fn with_last_before(mut self) -> Self {
        self.last_before = true;
        self
    }

    /// Returns the same selection, and also selects the last record of these topics before the time
    /// window.
    #[must_use]
    pub fn with_last_before_of<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.last_before = true;
        self.last_before_topics = Some(Names::from_iter(names));
        self
    }

    /// Returns the same selection, and also selects the last message of each latching publisher
    /// before the time window. A latching publisher sends its last message to new subscribers.
    #[must_use]
    pub fn with_latched(mut self) -> Self {
        self.latched = true;
        self
    }

    /// Returns whether the last record of `topic` before the time window is selected.
    pub fn keeps_last_before(&self, topic: &Topic) -> bool {
        self.last_before
            && self.keeps_topic(topic)
            && self.last_before_topics.as_ref().is_none_or(|names| names.topic(topic))
    }

    /// Returns the same selection, restricted to the fields with these names. Only the columns that
    /// are read are restricted. Records always have all fields.
    #[must_use]
    pub fn with_fields<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.fields = Some(Names::from_iter(names));
        self
    }

    /// Returns the same selection without fields. Its columns contain only the time.
    #[doc(hidden)]
    #[must_use]
    pub fn without_fields(self) -> Self {
        self.with_fields(Vec::<String>::new())
    }

    /// Returns whether the block that starts at offset `start` is selected.
    pub fn keeps_block(&self, start: u64) -> bool {
        self.blocks.as_ref().is_none_or(|blocks| blocks.contains(&start))
    }

    /// Returns whether the field at `path`, or a field inside it, is selected.
    pub fn keeps_field(&self, path: &str) -> bool {
        self.fields.as_ref().is_none_or(|names| names.field(path))
    }

    /// Returns whether `topic` is selected.
    pub fn keeps_topic(&self, topic: &Topic) -> bool {
        self.topics.as_ref().is_none_or(|names| names.topic(topic))
    }

    /// Returns whether the time window overlaps the time span from `first` to `last`.
    pub fn keeps_span(&self, first: i64, last: i64) -> bool {
        self.start.is_none_or(|start| last >= start) && self.end.is_none_or(|end| first < end)
    }

    /// Returns whether `nanos` is in the time window.
    pub fn keeps_time(&self, nanos: i64) -> bool {
        self.start.is_none_or(|start| nanos >= start) && self.end.is_none_or(|end| nanos < end)
    }
}

/// Removes the array indices from a flat name. For example, `esc[3].rpm` becomes `esc.rpm`, which
/// is the name of this field in a selection.
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

    /// For every subset of `names`, the set must give the same result as comparing each name
    /// separately.
    #[test]
    fn a_set_of_names_matches_like_its_names() {
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
