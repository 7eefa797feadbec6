//! Health of the times of a log: gaps, jitter, times that fall or repeat, and topics that stop.
//!
//! All of it is about the intervals from one record of a topic to the next one in the file. The
//! intervals of a topic are counted by their length, so that their median and deviation are exact
//! without keeping all of them.
//!
//! A gap of one topic alone is no sign of lost records: many programs publish a topic only in some
//! modes. A gap is confirmed by an interruption, which is a dropout or a range of lost bytes, or by
//! other topics that have a gap at the same time.

mod pace;
#[cfg(test)]
mod tests;
mod witness;

use std::ops::Range;

pub use pace::Pace;

use crate::text::count;
use crate::{Topic, TopicId};

/// A gap between two records of a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The time of the record before it, nanoseconds.
    pub start: i64,
    /// Nanoseconds to the next record.
    pub length: i64,
}

/// The times of a topic: intervals are those from one record to the next in the file, nanoseconds.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TopicHealth {
    /// The topic.
    pub topic: TopicId,
    /// The number of records with a time.
    pub count: u64,
    /// The time of the first of them in the file.
    pub first: Option<i64>,
    /// The latest time.
    pub latest: Option<i64>,
    /// The median of the intervals above zero; of an even number, the lower one of the middle two.
    pub period: Option<i64>,
    /// Whether the topic has a rate: at least ten intervals above zero, of which four of five are
    /// between half and one and a half of the period, and these cover at least half of the time of
    /// all. Only such a topic has gaps.
    pub steady: bool,
    /// The shortest interval above zero.
    pub shortest: Option<i64>,
    /// The longest interval.
    pub longest: Option<i64>,
    /// The standard deviation of the intervals above zero without the gaps.
    pub jitter: Option<f64>,
    /// The number of gaps: intervals longer than three periods.
    pub gaps: u64,
    /// Number of gaps that are confirmed by a dropout, by lost bytes, or by gaps of other topics.
    pub confirmed: u64,
    /// The longest confirmed gap.
    pub longest_confirmed: Option<Gap>,
    /// Number of records that would fill the confirmed gaps.
    pub missing: u64,
    /// The longest gaps, up to 16, longest first.
    pub longest_gaps: Vec<Gap>,
    /// The number of records that are earlier than the one before.
    pub falling: u64,
    /// The time of the first of them.
    pub first_fall: Option<i64>,
    /// The number of records with the time of the one before.
    pub repeated: u64,
    /// The time from the last record to the end of the log's data, if a steady topic stops: more
    /// than a second, and than ten periods.
    pub silent: Option<i64>,
    /// Whether ten records or more all have one time.
    pub is_stuck: bool,
}

impl TopicHealth {
    /// Returns the rate in Hz that the period means, of a steady topic.
    pub fn nominal_hz(&self) -> Option<f64> {
        self.period.filter(|_| self.steady).map(|period| 1e9 / period as f64)
    }

    /// Returns whether something is to be said about the topic.
    pub fn is_remarkable(&self) -> bool {
        self.gaps > 0 || self.falling > 0 || self.is_stuck || self.silent.is_some()
    }
}

/// The health of a log's times, topic by topic.
#[derive(Clone, Debug)]
pub struct Health {
    /// The topics that have records with a time, in the order of the log.
    pub topics: Vec<TopicHealth>,
}

impl Health {
    /// Returns the health of a log, or of a part of a log, whose data ends at `end`. `paces` are the
    /// times of its topics, in the order of the topics. `interruptions` are spans of time from which
    /// the log itself says that it lacks records.
    pub fn new(paces: &[Pace], end: Option<i64>, interruptions: &[Range<i64>]) -> Self {
        let timed = paces.iter().enumerate().filter(|(_, pace)| pace.count > 0);
        let id = |index: usize| TopicId(u32::try_from(index).unwrap_or(u32::MAX));
        let mut topics: Vec<_> = timed.map(|(index, pace)| pace.judge(id(index), end)).collect();
        witness::confirm(&mut topics, interruptions);
        Self { topics: topics.into_iter().map(|judged| judged.health).collect() }
    }

    /// Returns the health of a topic.
    pub fn of(&self, topic: &Topic) -> Option<&TopicHealth> {
        let place = self.topics.binary_search_by_key(&topic.id, |health| health.topic).ok()?;
        Some(&self.topics[place])
    }

    /// Returns the health in one sentence: `2 of 14 steady topics lack records (longest gap 0.566 s,
    /// in imu/0); 1 topic stops before the end`.
    pub fn sentence<'a>(&self, name: &dyn Fn(TopicId) -> &'a str) -> String {
        let seconds = |nanos: i64| format!("{:.3} s", nanos as f64 / 1e9);
        let number = |is: fn(&TopicHealth) -> bool| self.topics.iter().filter(|topic| is(topic)).count();
        let steady = number(|topic| topic.steady);
        let mut said = Vec::new();
        let lacking = number(|topic| topic.confirmed > 0);
        let longest = |topic: &TopicHealth| topic.longest_confirmed.map(|gap| (gap.length, topic.topic));
        // Of equally long gaps, the one of the first topic.
        if let Some((length, topic)) = self.topics.iter().rev().filter_map(longest).max_by_key(|gap| gap.0) {
            let lack = if lacking == 1 { "lacks" } else { "lack" };
            said.push(format!(
                "{lacking} of {} {lack} records (longest gap {}, in {})",
                count(steady, "steady topic"),
                seconds(length),
                name(topic)
            ));
        } else if number(|topic| topic.gaps > 0) > 0 {
            said.push(format!("no common gaps in {}", count(steady, "steady topic")));
        } else if steady > 0 {
            said.push(format!("no gaps in {}", count(steady, "steady topic")));
        } else {
            said.push("no topic has a steady rate".to_owned());
        }
        let of = |number: usize, verb: [&str; 2], rest: &str| {
            let verb = verb[usize::from(number != 1)];
            (number > 0).then(|| format!("{} {verb} {rest}", count(number, "topic")))
        };
        said.extend(of(number(|topic| topic.silent.is_some()), ["stops", "stop"], "before the end"));
        said.extend(of(number(|topic| topic.falling > 0), ["has", "have"], "times that fall"));
        said.extend(of(number(|topic| topic.is_stuck), ["has", "have"], "one time in all records"));
        said.join("; ")
    }
}

/// Returns the health of the selected records of a log. `dropouts` are the spans of time in which the
/// log says that its recorder could not write.
///
/// # Errors
/// Returns an error if the log cannot be read.
#[cfg(feature = "arrow")]
pub fn of(
    log: &dyn crate::LogReader,
    select: &crate::Select,
    mut dropouts: Vec<Range<i64>>,
) -> crate::Result<Health> {
    let paces = paces(log, select)?;
    dropouts.extend(witness::lost_spans(log, select)?);
    let end = log.info().span().map(|span| span.1.nanos);
    let end = end.map(|end| select.end.map_or(end, |window| end.min(window)));
    Ok(Health::new(&paces, end, &dropouts))
}

/// Returns the times of the selected records of a log, by topic, in the order of the file; of
/// records that cannot be decoded, in time order.
///
/// # Errors
/// Returns an error if the log cannot be read.
#[cfg(feature = "arrow")]
fn paces(log: &dyn crate::LogReader, select: &crate::Select) -> crate::Result<Vec<Pace>> {
    use arrow_array::cast::AsArray as _;
    use arrow_array::types::Int64Type;

    use crate::{Error, ErrorKind, Select};

    let mut paces = vec![Pace::default(); log.topics().len()];
    let columns = select.clone().with_fields([""]);
    for batch in log.batches(&columns) {
        let failed = |error: String| Error::new(log.format().id, ErrorKind::Malformed, None, error);
        let (topic, batch) = batch.map_err(|error| failed(error.to_string()))?;
        let pace = &mut paces[topic.index()];
        let times = batch.column_by_name(crate::columns::TIME_COLUMN);
        let times = times.ok_or_else(|| failed("a batch without times".to_owned()))?;
        times.as_primitive::<Int64Type>().iter().flatten().for_each(|nanos| pace.push(nanos));
    }
    // Topics without columns, those whose records have several rows, and those with records that
    // cannot be decoded, which have none. A window may have fewer rows than its topic.
    let is_all = select.start.is_none() && select.end.is_none();
    let rest = log.topics().iter().filter(|topic| {
        let rows = paces[topic.id.index()].count;
        topic.count > 0 && (rows == 0 || rows > topic.count || is_all && rows < topic.count)
    });
    let rest: Vec<_> =
        rest.filter(|topic| select.keeps_topic(topic)).map(|topic| (topic.id, topic.name.clone())).collect();
    if !rest.is_empty() {
        for (id, _) in &rest {
            paces[id.index()] = Pace::default();
        }
        // Names are looked up one by one.
        let is_all = rest.len() == log.topics().len();
        let names = rest.into_iter().map(|(_, name)| name);
        let topics = if is_all { Select::all() } else { Select::topics(names) };
        let select = topics.between(select.start, select.end);
        for record in log.intact_records(&select) {
            let record = record?;
            if let Some(time) = record.time {
                paces[record.topic.id.index()].push(time.nanos);
            }
        }
    }
    Ok(paces)
}
