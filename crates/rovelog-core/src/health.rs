//! Health of the times of a log: gaps, jitter, times that fall or repeat, and topics that stop.
//!
//! All of it is about the intervals from one record of a topic to the next one in the file. The
//! intervals of a topic are counted by their length, so that their median and deviation are exact
//! without keeping all of them.

use std::collections::HashMap;

use crate::text::count;
use crate::{LogInfo, Topic, TopicId};

/// The most different lengths of intervals that are counted of one topic; past it, they are rounded
/// down to a multiple of a power of two, a doubled one each time, but never to 0.
const MOST_LENGTHS: usize = 1 << 16;

/// The most gaps that are kept of one topic.
const MOST_GAPS: usize = 16;

/// The fewest intervals that tell a rate.
const FEWEST: u64 = 10;

/// A gap is longer than this many periods.
const GAP: i64 = 3;

/// The lengths of intervals that are counted without a lookup: those of a steady topic are few.
const USUAL: usize = 8;

/// A topic that stops for this long before the end of the log, and for ten periods.
const STOPPED: i64 = 1_000_000_000;

/// The times of one topic, as they come in the file.
#[derive(Clone, Debug, Default)]
pub struct Pace {
    count: u64,
    first: i64,
    last: i64,
    latest: i64,
    falling: u64,
    first_fall: Option<i64>,
    repeated: u64,
    /// Number of intervals above zero by their length, divided by 2 to the power of `coarse`.
    lengths: HashMap<i64, u64>,
    coarse: u32,
    /// Numbers that are still to be added to `lengths`, each at a place that its length gives.
    usual: [(i64, u64); USUAL],
    /// The longest intervals, longest first: length and start.
    longest: Vec<(i64, i64)>,
}

impl Pace {
    /// Takes the time of the next record.
    #[inline]
    pub fn push(&mut self, nanos: i64) {
        self.count += 1;
        if self.count == 1 {
            (self.first, self.latest) = (nanos, nanos);
        } else {
            self.interval(nanos);
        }
        self.last = nanos;
        self.latest = self.latest.max(nanos);
    }

    fn interval(&mut self, nanos: i64) {
        let length = nanos.saturating_sub(self.last);
        if length <= 0 {
            if length == 0 {
                self.repeated += 1;
            } else {
                self.falling += 1;
                self.first_fall.get_or_insert(nanos);
            }
            return;
        }
        let counted = length >> self.coarse;
        let usual = &mut self.usual[usize::try_from(counted).unwrap_or_default() % USUAL];
        if usual.0 == counted {
            usual.1 += 1;
        } else {
            let (before, count) = std::mem::replace(usual, (counted, 1));
            self.count_lengths(before, count);
        }
        if self.longest.len() < MOST_GAPS || self.longest.last().is_some_and(|last| length > last.0) {
            // Equally long ones stay in the order of the file.
            let place = self.longest.partition_point(|longer| longer.0 >= length);
            self.longest.insert(place, (length, self.last));
            self.longest.truncate(MOST_GAPS);
        }
    }

    /// Adds intervals of one length, as it is counted.
    fn count_lengths(&mut self, length: i64, count: u64) {
        if count == 0 {
            return;
        }
        *self.lengths.entry(length).or_default() += count;
        if self.lengths.len() > MOST_LENGTHS {
            self.coarse += 1;
            let usual = std::mem::take(&mut self.usual).into_iter().filter(|usual| usual.1 > 0);
            let finer = std::mem::take(&mut self.lengths);
            for (length, count) in finer.into_iter().chain(usual) {
                *self.lengths.entry(length >> 1).or_default() += count;
            }
        }
    }

    /// Returns the lengths of the intervals with their numbers, shortest first.
    fn sorted_lengths(&self) -> Vec<(i64, u64)> {
        let mut lengths = self.lengths.clone();
        for (length, count) in self.usual.iter().filter(|usual| usual.1 > 0) {
            *lengths.entry(*length).or_default() += count;
        }
        // A length that was rounded down to nothing is above zero all the same.
        let lengths = lengths.into_iter().map(|(length, count)| ((length << self.coarse).max(1), count));
        let mut lengths: Vec<_> = lengths.collect();
        lengths.sort_unstable();
        lengths
    }

    /// Returns the health of a topic whose log's data ends at `end`.
    fn health(&self, topic: TopicId, end: Option<i64>) -> TopicHealth {
        let lengths = self.sorted_lengths();
        let intervals: u64 = lengths.iter().map(|length| length.1).sum();
        let mut before = 0;
        let median = lengths.iter().find(|(_, count)| {
            before += count;
            before > intervals.saturating_sub(1) / 2
        });
        let period = median.map(|median| median.0);
        let limit = period.map_or(i64::MAX, |period| period.saturating_mul(GAP));
        let near =
            |period: i64, length: i64| length >= period / 2 && length <= period.saturating_add(period / 2);
        let regular: u64 = lengths
            .iter()
            .filter(|(length, _)| period.is_some_and(|period| near(period, *length)))
            .map(|length| length.1)
            .sum();
        let steady = intervals >= FEWEST && regular * 5 >= intervals * 4;
        let (gaps, others): (Vec<_>, Vec<_>) =
            lengths.iter().copied().partition(|(length, _)| steady && *length > limit);
        let missing = |period: i64, (length, count): &(i64, u64)| {
            u64::try_from(length.saturating_add(period / 2) / period - 1)
                .unwrap_or_default()
                .saturating_mul(*count)
        };
        let mut longest = self.longest.clone();
        longest.retain(|(length, _)| steady && *length > limit);
        let silence =
            end.zip(period).filter(|_| steady).map(|(end, period)| (end.saturating_sub(self.latest), period));
        TopicHealth {
            topic,
            count: self.count,
            first: (self.count > 0).then_some(self.first),
            latest: (self.count > 0).then_some(self.latest),
            period,
            steady,
            shortest: lengths.first().map(|length| length.0),
            longest: self.longest.first().map(|longest| longest.0),
            jitter: deviation(&others),
            gaps: gaps.iter().map(|gap| gap.1).sum(),
            missing: period
                .map_or(0, |period| gaps.iter().map(|gap| missing(period, gap)).fold(0, u64::saturating_add)),
            longest_gaps: longest.into_iter().map(|(length, start)| Gap { start, length }).collect(),
            falling: self.falling,
            first_fall: self.first_fall,
            repeated: self.repeated,
            silent: silence
                .filter(|(silent, period)| *silent > STOPPED.max(period.saturating_mul(10)))
                .map(|(silent, _)| silent),
            is_stuck: self.count >= FEWEST && self.repeated + 1 == self.count,
        }
    }
}

/// Returns the standard deviation of lengths with their numbers, in nanoseconds.
fn deviation(lengths: &[(i64, u64)]) -> Option<f64> {
    let number: u64 = lengths.iter().map(|length| length.1).sum();
    if number == 0 {
        return None;
    }
    let sum: f64 = lengths.iter().map(|(length, count)| *length as f64 * *count as f64).sum();
    let mean = sum / number as f64;
    let squares: f64 =
        lengths.iter().map(|(length, count)| (*length as f64 - mean).powi(2) * *count as f64).sum();
    Some((squares / number as f64).sqrt())
}

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
    /// Whether the topic has a rate: at least ten intervals above zero, and four of five between
    /// half and one and a half of the period. Only such a topic has gaps.
    pub steady: bool,
    /// The shortest interval above zero.
    pub shortest: Option<i64>,
    /// The longest interval.
    pub longest: Option<i64>,
    /// The standard deviation of the intervals above zero without the gaps.
    pub jitter: Option<f64>,
    /// The number of gaps: intervals longer than three periods.
    pub gaps: u64,
    /// The records that would fill the gaps.
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
    /// Returns the health of a log by the times of its topics, in the order of the topics.
    pub fn new(paces: &[Pace], info: &LogInfo) -> Self {
        let end = info.span().map(|span| span.1.nanos);
        Self::until(paces, end)
    }

    /// Returns the health of a part of a log that ends at `end`.
    pub fn until(paces: &[Pace], end: Option<i64>) -> Self {
        let timed = paces.iter().enumerate().filter(|(_, pace)| pace.count > 0);
        let id = |index: usize| TopicId(u32::try_from(index).unwrap_or(u32::MAX));
        Self { topics: timed.map(|(index, pace)| pace.health(id(index), end)).collect() }
    }

    /// Returns the health of a topic.
    pub fn of(&self, topic: &Topic) -> Option<&TopicHealth> {
        let place = self.topics.binary_search_by_key(&topic.id, |health| health.topic).ok()?;
        Some(&self.topics[place])
    }

    /// Returns the topics with gaps, the one with the longest gap first.
    fn with_gaps(&self) -> Vec<&TopicHealth> {
        let mut found: Vec<_> = self.topics.iter().filter(|topic| topic.gaps > 0).collect();
        found.sort_by_key(|topic| std::cmp::Reverse(topic.longest));
        found
    }

    /// Returns the health in one sentence: `2 of 14 steady topics have gaps (longest 0.566 s, in
    /// imu/0); 1 topic stops before the end`.
    pub fn sentence<'a>(&self, name: &dyn Fn(TopicId) -> &'a str) -> String {
        let seconds = |nanos: i64| format!("{:.3} s", nanos as f64 / 1e9);
        let number = |is: fn(&TopicHealth) -> bool| self.topics.iter().filter(|topic| is(topic)).count();
        let steady = number(|topic| topic.steady);
        let mut said = Vec::new();
        let gaps = self.with_gaps();
        if let Some(worst) = gaps.first() {
            let (have, longest) = (if gaps.len() == 1 { "has" } else { "have" }, worst.longest.unwrap_or(0));
            said.push(format!(
                "{} of {} {have} gaps (longest {}, in {})",
                gaps.len(),
                count(steady, "steady topic"),
                seconds(longest),
                name(worst.topic)
            ));
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

/// Returns the times of the selected records of a log, by topic, in the order of the file; of
/// records that cannot be decoded, in time order.
///
/// # Errors
/// Returns an error if the log cannot be read.
#[cfg(feature = "arrow")]
pub fn paces(log: &dyn crate::LogReader, select: &crate::Select) -> crate::Result<Vec<Pace>> {
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
        for record in log.records(&select) {
            let record = record?;
            if let Some(time) = record.time {
                paces[record.topic.id.index()].push(time.nanos);
            }
        }
    }
    Ok(paces)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn health(times: impl IntoIterator<Item = i64>, end: i64) -> TopicHealth {
        let mut pace = Pace::default();
        times.into_iter().for_each(|nanos| pace.push(nanos));
        pace.health(TopicId(0), Some(end))
    }

    const MS: i64 = 1_000_000;

    #[test]
    fn times_at_the_ends_of_the_range_do_no_harm() {
        let found = health([i64::MIN, i64::MAX, 0, i64::MAX, i64::MIN], i64::MAX);
        assert_eq!((found.count, found.period, found.steady), (5, Some(i64::MAX), false));
        let steady = health((0..20).chain([i64::MAX - 1]), i64::MIN);
        assert!(steady.steady && steady.gaps == 1 && steady.silent.is_none());
    }

    #[test]
    fn a_gap_is_longer_than_three_periods_of_a_steady_topic() {
        let times = (0..20).chain(23..40).chain(44..60).map(|i| i * 10 * MS);
        let found = health(times, 600 * MS);
        assert_eq!((found.period, found.steady, found.gaps, found.missing), (Some(10 * MS), true, 2, 7));
        let gaps: Vec<_> = found.longest_gaps.iter().map(|gap| (gap.start, gap.length)).collect();
        assert_eq!(gaps, [(390 * MS, 50 * MS), (190 * MS, 40 * MS)]);
        assert_eq!((found.jitter, found.silent), (Some(0.0), None));
        // Two lost records are no gap yet.
        assert_eq!(health((0..20).chain(22..40).map(|i| i * 10 * MS), 0).gaps, 0);
    }

    #[test]
    fn a_topic_without_a_rate_has_no_gaps() {
        let found = health((0..12).map(|i| i * i * i * MS), 0);
        assert_eq!((found.steady, found.gaps, found.nominal_hz()), (false, 0, None));
        assert!(!health((0..10).map(|i| i * MS), 0).steady, "nine intervals are too few");
    }

    #[test]
    fn times_fall_repeat_and_stop() {
        let found = health((0..20).chain([18, 18, 18]).chain(19..30).map(|i| i * 10 * MS), 2_000 * MS);
        assert_eq!((found.falling, found.first_fall, found.repeated), (1, Some(180 * MS), 2));
        assert_eq!(found.silent, Some(1_710 * MS));
        assert!(health(std::iter::repeat_n(5, 10), 5).is_stuck && !health([5; 9], 5).is_stuck);
    }

    #[test]
    fn memory_is_bounded_by_rounding_and_the_order_does_not_matter() {
        let mut time = 0;
        let found = health(
            (0..200_000).map(|i| {
                time += 1_000_000 + i;
                time
            }),
            0,
        );
        let period = found.period.unwrap();
        assert!((period - 1_100_000).abs() <= 8, "{period}");
    }

    #[test]
    fn intervals_that_are_rounded_down_to_nothing_are_above_zero() {
        let mut time = 0;
        let mut pass = |length: i64| {
            time += length;
            time
        };
        let times = (2..66_002).flat_map(|length| [length, 1, 1, 1, 1, 1]).map(&mut pass).collect::<Vec<_>>();
        let found = health(times, 0);
        assert_eq!((found.period, found.shortest, found.steady), (Some(1), Some(1), true));
        assert_eq!(found.nominal_hz(), Some(1e9));
        assert!(found.gaps > 65_000 && found.missing > found.gaps, "{found:?}");
    }

    #[test]
    fn the_sentence_names_the_worst() {
        let mut paces = vec![Pace::default(); 2];
        (0..40).for_each(|i| paces[0].push(i * MS));
        (0..20).chain(30..40).for_each(|i| paces[1].push(i * MS));
        let topics = ["a", "b"].map(|name| Topic::new(TopicId(0), name.to_owned(), String::new(), None));
        let health = Health::until(&paces, Some(39 * MS));
        assert_eq!(
            health.sentence(&|id| &topics[id.index()].name),
            "1 of 2 steady topics has gaps (longest 0.011 s, in b)"
        );
        assert_eq!(health.of(&topics[0]).unwrap().count, 40);
        let none = Health::until(&[], None);
        assert_eq!(none.sentence(&|_| ""), "no topic has a steady rate");
    }
}
