//! Computes the derived fields and expressions that `--fields` adds to records. The added fields
//! belong to the topic of the record.

use std::collections::HashMap;
use std::sync::Arc;

use rovelog::{LogReader, Record, Select, Topic, TopicId, Value};
use rovelog_export::signal::{Signal, Stream};

use crate::failure::Failure;

/// The fields that are added to records, by topic.
#[derive(Default)]
pub(crate) struct Derived<'a>(HashMap<TopicId, TopicFields<'a>>);

/// The fields that are added to the records of one topic. They are computed in batches of rows,
/// which are in the same order as the records.
struct TopicFields<'a> {
    /// Names of the fields that are added to the records.
    names: Vec<Arc<str>>,
    /// Stream that computes the added fields for the next batch of rows.
    stream: Stream<'a>,
    /// Time of each row in the current batch of rows.
    times: Vec<i64>,
    /// Values of each added field in the current batch of rows.
    values: Vec<Vec<f64>>,
    /// Index of the row in the current batch that belongs to the next record.
    next: usize,
}

impl<'a> Derived<'a> {
    pub(crate) fn new(
        log: &'a dyn LogReader,
        topics: &[&Topic],
        signals: &[Signal],
        select: &Select,
    ) -> Result<Self, Failure> {
        // With `last_before`, some records before the time window are printed, too. No fields are
        // added to these records.
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

    /// For each topic to which fields are added, returns the number of these fields.
    pub(super) fn counts(&self) -> HashMap<TopicId, usize> {
        self.0.iter().map(|(topic, found)| (*topic, found.names.len())).collect()
    }

    /// Returns the derived fields and expressions that are added to a record. If one of them has no
    /// value for this record, it is null.
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
    /// Returns the index of the row with the added fields of the next record. Returns `None` if no
    /// row has the time of the record, for example because the record is before the time window.
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
