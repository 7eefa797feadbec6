//! Health of the timestamps in a log: gaps, jitter, decreasing or repeated times, and topics that
//! stop early.
//!
//! All results are based on the intervals between consecutive records of a topic. The intervals are
//! counted by their length, so that the median and the deviation need little memory.
//!
//! For example, a topic has a record every 10 ms from 0 ms to 190 ms, and every 10 ms from 230 ms
//! on. The median of the intervals is 10 ms, which is the period. The interval of 40 ms is longer
//! than three periods, so it is a gap in which 3 records may be missing.
//!
//! A gap in a single topic does not prove that records are missing, because many programs publish a
//! topic only in some modes. A gap is confirmed by an interruption of the log, such as a dropout or
//! lost bytes, or by gaps in most other topics at the same time.

mod pace;
#[cfg(test)]
mod tests;
mod witness;

use std::ops::Range;

pub use pace::Pace;

use crate::internal::text::count;
use crate::{Topic, TopicId};

/// A gap between two records of a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Time of the record before the gap in nanoseconds.
    pub start: i64,
    /// Nanoseconds from the record before the gap to the record after the gap.
    pub length: i64,
}

/// Health of the timestamps of a topic. An interval is the time in nanoseconds between a record and
/// the next record of the topic in the file.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TopicHealth {
    /// Index of the topic.
    pub topic: TopicId,
    /// Number of records that have a time.
    pub count: u64,
    /// Time of the first record in the file.
    pub first: Option<i64>,
    /// Latest time of any record.
    pub latest: Option<i64>,
    /// Median of the positive intervals between consecutive records, in nanoseconds. If the number
    /// of intervals is even, it is the lower of the two intervals in the middle.
    pub period: Option<i64>,
    /// True if the topic has a steady rate. Only such a topic can have gaps.
    ///
    /// An interval between two records is regular if it is 0.5 to 1.5 times as long as the median
    /// interval. The rate is steady if the topic has at least ten positive intervals, at least 80 %
    /// of them are regular, and the regular intervals cover at least half of the total time.
    pub steady: bool,
    /// Shortest positive interval between consecutive records, in nanoseconds.
    pub shortest: Option<i64>,
    /// Longest interval between consecutive records, in nanoseconds.
    pub longest: Option<i64>,
    /// Standard deviation of the positive intervals between consecutive records, in nanoseconds.
    /// Gaps are excluded.
    pub jitter: Option<f64>,
    /// Number of gaps. A gap is an interval between two records that is longer than three median
    /// intervals.
    pub gaps: u64,
    /// Number of gaps that are confirmed by a dropout, by lost bytes, or by gaps in other topics.
    pub confirmed: u64,
    /// Longest gap that is confirmed.
    pub longest_confirmed: Option<Gap>,
    /// Estimated number of records that are missing in all confirmed gaps.
    pub missing: u64,
    /// The longest gaps, at most 16, in descending order of length.
    pub longest_gaps: Vec<Gap>,
    /// Number of records that are earlier than the previous record of the topic in the file.
    pub falling: u64,
    /// Time of the first record that is earlier than the previous record in the file.
    pub first_fall: Option<i64>,
    /// Number of records with the same time as the previous record of the topic in the file.
    pub repeated: u64,
    /// Nanoseconds from the last record to the end of the log's data, if a steady topic stops
    /// early. `None` if this time is at most one second, or at most ten median intervals.
    pub silent: Option<i64>,
    /// True if the topic has at least ten records and all of them have the same time.
    pub is_stuck: bool,
}

impl TopicHealth {
    /// Returns the rate of the topic in Hz, computed from its period. Returns `None` if the rate is
    /// not steady.
    pub fn nominal_hz(&self) -> Option<f64> {
        self.period.filter(|_| self.steady).map(|period| 1e9 / period as f64)
    }

    /// Returns whether the timestamps of the topic have a problem that should be reported.
    pub fn is_remarkable(&self) -> bool {
        self.gaps > 0 || self.falling > 0 || self.is_stuck || self.silent.is_some()
    }
}

/// Health of the timestamps in a log.
#[derive(Clone, Debug)]
pub struct Health {
    /// Health of each topic that has records with a time, in the order of the topics' indices.
    pub topics: Vec<TopicHealth>,
}

impl Health {
    /// Computes the health of the timestamps in a log or in a part of it.
    ///
    /// - `paces` has the times of each topic, in the order of the topics' indices.
    /// - `end` is the time at which the log's data ends.
    /// - `interruptions` are time spans in which records are missing according to the log itself.
    pub fn new(paces: Vec<Pace>, end: Option<i64>, interruptions: &[Range<i64>]) -> Self {
        let timed = paces.into_iter().enumerate().filter(|(_, pace)| pace.count > 0);
        let id = |index: usize| TopicId(u32::try_from(index).unwrap_or(u32::MAX));
        let mut topics: Vec<_> = timed.map(|(index, pace)| pace.evaluate(id(index), end)).collect();
        witness::confirm(&mut topics, interruptions);
        Self { topics: topics.into_iter().map(|result| result.health).collect() }
    }

    /// Returns the health of a topic, or `None` if none of its records has a time.
    pub fn of(&self, topic: &Topic) -> Option<&TopicHealth> {
        let index = self.topics.binary_search_by_key(&topic.id, |health| health.topic).ok()?;
        Some(&self.topics[index])
    }

    /// Returns a summary such as `2 of 14 steady topics lack records; the longest gap is 0.566 s in
    /// imu/0; 1 topic stops before the end`. `name` returns the name of a topic.
    pub fn sentence<'a>(&self, name: &dyn Fn(TopicId) -> &'a str) -> String {
        let seconds = |nanos: i64| format!("{:.3} s", nanos as f64 / 1e9);
        let number = |is: fn(&TopicHealth) -> bool| self.topics.iter().filter(|topic| is(topic)).count();
        let steady = number(|topic| topic.steady);
        let mut parts = Vec::new();
        let lacking = number(|topic| topic.confirmed > 0);
        let longest = |topic: &TopicHealth| topic.longest_confirmed.map(|gap| (gap.length, topic.topic));
        // `max_by_key` returns the last maximum. If several topics have the longest gap, the
        // reverse order selects the first of these topics.
        let longest = self.topics.iter().rev().filter_map(longest).max_by_key(|(length, _)| *length);
        if let Some((length, topic)) = longest {
            let lack = if lacking == 1 { "lacks" } else { "lack" };
            parts.push(format!(
                "{lacking} of {} {lack} records; the longest gap is {} in {}",
                count(steady, "steady topic"),
                seconds(length),
                name(topic)
            ));
        } else if number(|topic| topic.gaps > 0) > 0 {
            parts.push(format!("no confirmed gaps in {}", count(steady, "steady topic")));
        } else if steady > 0 {
            parts.push(format!("no gaps in {}", count(steady, "steady topic")));
        } else {
            parts.push("no topic has a steady rate".to_owned());
        }
        let of = |number: usize, verb: [&str; 2], rest: &str| {
            let verb = verb[usize::from(number != 1)];
            (number > 0).then(|| format!("{} {verb} {rest}", count(number, "topic")))
        };
        parts.extend(of(number(|topic| topic.silent.is_some()), ["stops", "stop"], "before the end"));
        parts.extend(of(number(|topic| topic.falling > 0), ["has", "have"], "times that go back"));
        parts.extend(of(number(|topic| topic.is_stuck), ["has", "have"], "the same time in all records"));
        parts.join("; ")
    }
}

/// Computes the health of the timestamps of the selected records. `dropouts` are the time spans in
/// which the recorder could not write, according to the log.
///
/// `known` has the times of the topics that the caller has already read, by the index of the topic.
/// It is empty, or has an entry for each topic.
///
/// # Errors
/// Returns an error if the log cannot be read.
#[cfg(feature = "arrow")]
pub fn of(
    log: &dyn crate::LogReader,
    select: &crate::Select,
    mut dropouts: Vec<Range<i64>>,
    known: Vec<Option<Pace>>,
) -> crate::Result<Health> {
    let paces = paces(log, select, known)?;
    dropouts.extend(witness::lost_spans(log, select)?);
    let end = log.info().span().map(|span| span.1.nanos);
    let end = end.map(|end| select.end.map_or(end, |window| end.min(window)));
    Ok(Health::new(paces, end, &dropouts))
}

/// Collects the times of the selected records by topic, except for topics whose times are known.
/// The times of each topic are in file order, or in time order if some of its records cannot be
/// decoded.
///
/// # Errors
/// Returns an error if the log cannot be read.
#[cfg(feature = "arrow")]
fn paces(
    log: &dyn crate::LogReader,
    select: &crate::Select,
    mut known: Vec<Option<Pace>>,
) -> crate::Result<Vec<Pace>> {
    use arrow_array::cast::AsArray as _;
    use arrow_array::types::Int64Type;

    use crate::{Error, ErrorKind, Select};

    known.resize(log.topics().len(), None);
    // If records cannot be decoded, their times were not read. In a time window, fewer times than
    // records are normal.
    let has_no_window = select.start.is_none() && select.end.is_none();
    for (pace, topic) in known.iter_mut().zip(log.topics()) {
        pace.take_if(|pace| has_no_window && pace.count != topic.count);
    }
    let is_unread: Vec<bool> = known.iter().map(Option::is_none).collect();
    let mut paces: Vec<_> = known.into_iter().map(Option::unwrap_or_default).collect();
    let unread = log.topics().iter().filter(|topic| is_unread[topic.id.index()] && topic.count > 0);
    let names: Vec<_> = unread.filter(|topic| select.keeps_topic(topic)).map(|topic| &*topic.name).collect();
    if names.is_empty() {
        return Ok(paces);
    }
    let mut columns = select.clone().without_fields();
    if is_unread.contains(&false) {
        columns.topics = Select::topics(names).topics;
    }
    for batch in log.batches(&columns) {
        let failed = |error: String| Error::new(log.format().id, ErrorKind::Malformed, None, error);
        let (topic, batch) = batch.map_err(|error| failed(error.to_string()))?;
        if !is_unread[topic.index()] {
            continue;
        }
        let pace = &mut paces[topic.index()];
        let times = batch.column_by_name(crate::internal::columns::TIME_COLUMN);
        let times = times.ok_or_else(|| failed("a batch without times".to_owned()))?;
        times.as_primitive::<Int64Type>().iter().flatten().for_each(|nanos| pace.push(nanos));
    }
    // The records of some topics must be read instead of their columns: topics without columns,
    // topics with several rows per record, and topics with records that cannot be decoded. Topics
    // of the last kind have fewer rows than records.
    let is_incomplete = |topic: &&crate::Topic| {
        let rows = paces[topic.id.index()].count;
        let is_wrong = rows == 0 || rows > topic.count || (has_no_window && rows < topic.count);
        is_unread[topic.id.index()] && topic.count > 0 && is_wrong && select.keeps_topic(topic)
    };
    let incomplete: Vec<_> = log.topics().iter().filter(is_incomplete).collect();
    if !incomplete.is_empty() {
        read_record_times(log, &incomplete, select, &mut paces)?;
    }
    Ok(paces)
}

/// Replaces the times of `topics` in `paces` by the times of the selected records.
#[cfg(feature = "arrow")]
fn read_record_times(
    log: &dyn crate::LogReader,
    topics: &[&Topic],
    select: &crate::Select,
    paces: &mut [Pace],
) -> crate::Result<()> {
    use crate::Select;

    for topic in topics {
        paces[topic.id.index()] = Pace::default();
    }
    // Each name in a selection has to be looked up. If all topics are selected, a selection without
    // names is faster.
    let selects_all_topics = topics.len() == log.topics().len();
    let names = topics.iter().map(|topic| &*topic.name);
    let topics = if selects_all_topics { Select::all() } else { Select::topics(names) };
    for record in log.intact_records(&topics.between(select.start, select.end)) {
        let record = record?;
        if let Some(time) = record.time {
            paces[record.topic.id.index()].push(time.nanos);
        }
    }
    Ok(())
}
