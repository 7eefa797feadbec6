//! Further fields of records: signals that are computed of the fields of their topic.

use std::collections::HashMap;
use std::sync::Arc;

use rovelog::{LogReader, Record, Select, Topic, TopicId, Value};
use rovelog_export::signal::{Signal, Stream};

use crate::failure::Failure;

/// The further fields of all topics.
#[derive(Default)]
pub(crate) struct Derived<'a>(HashMap<TopicId, OfTopic<'a>>);

/// The further fields of a topic: its rows come in the order of its records.
struct OfTopic<'a> {
    names: Vec<Arc<str>>,
    stream: Stream<'a>,
    times: Vec<i64>,
    values: Vec<Vec<f64>>,
    next: usize,
}

impl<'a> Derived<'a> {
    pub(crate) fn new(
        log: &'a dyn LogReader,
        topics: &[&Topic],
        signals: &[Signal],
        select: &Select,
    ) -> Result<Self, Failure> {
        let mut select = select.clone();
        select.last_before = false;
        let mut all = HashMap::new();
        for topic in topics {
            let mine: Vec<&Signal> =
                signals.iter().filter(|signal| signal.topics() == [&*topic.name]).collect();
            if mine.is_empty() {
                continue;
            }
            let stream = Stream::new(log, &mine, &select)?;
            let names = mine.iter().map(|signal| signal.name_in(&topic.name).into()).collect();
            all.insert(topic.id, OfTopic { names, stream, times: Vec::new(), values: Vec::new(), next: 0 });
        }
        Ok(Self(all))
    }

    /// Returns the names of the further fields of a topic.
    pub(crate) fn names(&self, topic: TopicId) -> &[Arc<str>] {
        self.0.get(&topic).map_or(&[], |found| &found.names)
    }

    /// Returns the number of further fields of each topic that has some.
    pub(super) fn counts(&self) -> HashMap<TopicId, usize> {
        self.0.iter().map(|(topic, found)| (*topic, found.names.len())).collect()
    }

    /// Returns the further fields of a record; null where there is no value.
    pub(super) fn of(&mut self, record: &Record<'_>) -> Result<Vec<(Arc<str>, Value)>, Failure> {
        let Some(found) = self.0.get_mut(&record.topic.id) else { return Ok(Vec::new()) };
        let row = match record.time {
            Some(time) => found.row(time.nanos)?,
            None => None,
        };
        let values = |i: usize| row.map(|row| found.values[i][row]).filter(|value| !value.is_nan());
        let field =
            |(i, name): (usize, &Arc<str>)| (Arc::clone(name), values(i).map_or(Value::Null, Value::F64));
        Ok(found.names.iter().enumerate().map(field).collect())
    }
}

impl OfTopic<'_> {
    /// Returns the row of the next record, if it has this time; records before the window have none.
    fn row(&mut self, time: i64) -> Result<Option<usize>, Failure> {
        loop {
            match self.times.get(self.next) {
                Some(next) if *next < time => self.next += 1,
                Some(next) if *next == time => {
                    self.next += 1;
                    return Ok(Some(self.next - 1));
                }
                Some(_) => return Ok(None),
                None => {
                    let Some(item) = self.stream.next() else { return Ok(None) };
                    (self.times, self.values) = item?;
                    self.next = 0;
                }
            }
        }
    }
}
