//! Selections: which topics and which span of time a reader should hand out.

use crate::Topic;

/// Topics and a time window. The default keeps everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Select {
    /// Names of topics to keep; `None` keeps all.
    pub topics: Option<Vec<String>>,
    /// Names of fields to keep: `q`, `pos.x`, or `pos` for all of it; `None` keeps all. Columns only.
    pub fields: Option<Vec<String>>,
    /// First time to keep, nanoseconds of the log's clock, inclusive.
    pub start: Option<i64>,
    /// First time to leave out again, nanoseconds of the log's clock.
    pub end: Option<i64>,
    /// Also keep each topic's last record before `start`: the state that held when the window opens.
    pub latched: bool,
    /// Of which topics `latched` keeps it, by name; `None`: of all that are kept.
    pub latched_topics: Option<Vec<String>>,
}

impl Select {
    /// Everything.
    pub fn all() -> Self {
        Self::default()
    }

    /// One topic, by its name; the instance `/0` may be left out.
    pub fn topic(name: impl Into<String>) -> Self {
        Self::topics([name])
    }

    /// Several topics, by name.
    pub fn topics<N: Into<String>>(names: impl IntoIterator<Item = N>) -> Self {
        Self { topics: Some(names.into_iter().map(Into::into).collect()), ..Self::default() }
    }

    /// The same topics within `start..end`, nanoseconds of the log's clock; `None` leaves a side open.
    #[must_use]
    pub fn between(mut self, start: Option<i64>, end: Option<i64>) -> Self {
        (self.start, self.end) = (start, end);
        self
    }

    /// The same selection with the last record before its start, for each topic.
    #[must_use]
    pub fn with_latched(mut self) -> Self {
        self.latched = true;
        self
    }

    /// The same selection with the last record before its start, for these topics.
    #[must_use]
    pub fn with_latched_topics<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.latched = true;
        self.latched_topics = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Whether the last record of `topic` before the start is kept.
    pub fn keeps_latched(&self, topic: &Topic) -> bool {
        let named = |names: &Vec<String>| names.iter().any(|name| topic.answers_to(name));
        self.latched && self.keeps_topic(topic) && self.latched_topics.as_ref().is_none_or(named)
    }

    /// The same selection with only these fields in columns.
    #[must_use]
    pub fn with_fields<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.fields = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Whether the selection wants the field at `path`, or something inside it.
    pub fn keeps_field(&self, path: &str) -> bool {
        let inside = |outer: &str, inner: &str| {
            inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        self.fields.as_ref().is_none_or(|names| names.iter().any(|n| inside(n, path) || inside(path, n)))
    }

    /// Whether the selection names `topic`.
    pub fn keeps_topic(&self, topic: &Topic) -> bool {
        self.topics.as_ref().is_none_or(|names| names.iter().any(|name| topic.answers_to(name)))
    }

    /// Whether something between these times may lie in the window.
    pub fn keeps_span(&self, first: i64, last: i64) -> bool {
        self.start.is_none_or(|start| last >= start) && self.end.is_none_or(|end| first < end)
    }

    /// Whether `nanos` lies in the window.
    pub fn keeps_time(&self, nanos: i64) -> bool {
        self.start.is_none_or(|start| nanos >= start) && self.end.is_none_or(|end| nanos < end)
    }
}

/// The path by which columns are selected of a field's flat name: `esc.rpm` of `esc[3].rpm`.
pub fn field_path(flat_name: &str) -> String {
    let mut parts = flat_name.split('[');
    let mut path = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        path.push_str(part.split_once(']').map_or("", |(_, rest)| rest));
    }
    path
}
