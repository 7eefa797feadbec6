//! Derived fields and expressions that `--fields` adds to the records of their topic.

use std::collections::HashMap;
use std::sync::Arc;

use rovelog::{LogReader, Record, Select, Topic, TopicId, Value};
use rovelog_export::signal::{Signal, Stream};

use crate::failure::Failure;

/// The added fields of all topics, by topic.
#[derive(Default)]
pub(crate) struct Derived<'a>(HashMap<TopicId, TopicFields<'a>>);

/// Added fields of one topic. They are computed in batches of rows, which are in the same order as
/// the records.
struct TopicFields<'a> {
    /// Names of the added fields.
    names: Vec<Arc<str>>,
    /// Stream that computes the next batch of rows.
    stream: Stream<'a>,
    /// Time of each row in the current batch.
    times: Vec<i64>,
    /// For each added field, its values in the current batch.
    values: Vec<Vec<f64>>,
    /// Index in the current batch of the row for the next record.
    next: usize,
}

impl<'a> Derived<'a> {
    pub(crate) fn new(
        log: &'a dyn LogReader,
        topics: &[&Topic],
        signals: &[Signal],
        select: &Select,
    ) -> Result<Self, Failure> {
        // Added fields are not computed for the last records before the time window, although these
        // records are printed.
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
            all.insert(
                topic.id,
                TopicFields { names, stream, times: Vec::new(), values: Vec::new(), next: 0 },
            );
        }
        Ok(Self(all))
    }

    /// Returns the names of the fields that are added to a topic.
    pub(crate) fn names(&self, topic: TopicId) -> &[Arc<str>] {
        self.0.get(&topic).map_or(&[], |found| &found.names)
    }

    /// Returns the number of added fields for each topic with added fields.
    pub(super) fn counts(&self) -> HashMap<TopicId, usize> {
        self.0.iter().map(|(topic, found)| (*topic, found.names.len())).collect()
    }

    /// Returns the added fields of a record. If a field has no value for this record, it is null.
    pub(super) fn values(&mut self, record: &Record<'_>) -> Result<Vec<(Arc<str>, Value)>, Failure> {
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

impl TopicFields<'_> {
    /// Returns the index of the row for the next record. Returns `None` if no row has the time of
    /// the record, as for a record before the time window.
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
