//! The span of time that a log's data fills, and the records that lie far outside of it.
//!
//! One record with a stale timestamp can lie minutes or years away from all others. It must not
//! lengthen a log: plots, windows and rates work on the span that the data fills. A scan feeds the
//! time of each record to the [`Spread`] of its topic, and at its end [`DataSpan::of`] finds the
//! main body of all times and what is outside of it.

use std::mem;
use std::ops::Range;

use crate::topic::Interval;
use crate::{Clock, Diagnostics, Rule, Severity, Timestamp, Topic, TopicId};

/// Times of one topic that are no further apart than this are one interval.
const NEAR: i64 = 1_000_000_000;

/// Nothing nearer to the data than this is outside of it.
const FAR: i64 = 10_000_000_000;

/// No recording pauses for a year: what is further away was timed by another clock.
const YEAR: i64 = 365 * 86_400 * 1_000_000_000;

/// The most intervals that are kept of a topic.
const MOST: usize = 16;

/// The fewest records at one single time that make a topic count as stuck.
const STUCK: u64 = 10;

/// The rule of records outside of the data: the same in every format.
pub static STALE_TIMES: Rule = Rule {
    code: "W-LOG-101",
    name: "stale_times",
    severity: Severity::Note,
    meaning: "records of a topic with times far outside the time range of all others; the log's time range excludes them",
};

impl Interval {
    const EMPTY: Self = Self { first: i64::MAX, last: i64::MIN, count: 0, offset: u64::MAX };

    /// Takes over the records of `other`.
    fn join(&mut self, other: &Self) {
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
        self.count += other.count;
        self.offset = self.offset.min(other.offset);
    }

    fn is_near(&self, nanos: i64) -> bool {
        nanos >= self.first.saturating_sub(NEAR) && nanos <= self.last.saturating_add(NEAR)
    }
}

/// How the times of one topic spread: up to 16 intervals, whatever the number and the order of the
/// records.
#[derive(Clone, Debug)]
pub struct Spread {
    current: Interval,
    others: Vec<Interval>,
    falls: bool,
}

impl Default for Spread {
    fn default() -> Self {
        Self { current: Interval::EMPTY, others: Vec::new(), falls: false }
    }
}

impl Spread {
    /// Takes the time of a record, whose first byte is at `offset`.
    #[inline]
    pub fn push(&mut self, nanos: i64, offset: u64) {
        let current = &mut self.current;
        // As long as times ascend, the last record's is the latest of all.
        self.falls |= nanos < current.last;
        if nanos >= current.first && nanos.saturating_sub(current.last) <= NEAR {
            current.last = current.last.max(nanos);
            current.count += 1;
        } else {
            self.push_elsewhere(nanos, offset);
        }
    }

    #[cold]
    fn push_elsewhere(&mut self, nanos: i64, offset: u64) {
        let record = Interval { first: nanos, last: nanos, count: 1, offset };
        if self.current.count == 0 || self.current.is_near(nanos) {
            self.current.join(&record);
            return;
        }
        if let Some(known) = self.others.iter_mut().find(|other| other.is_near(nanos)) {
            known.join(&record);
            mem::swap(known, &mut self.current);
            return;
        }
        self.others.push(mem::replace(&mut self.current, record));
        if self.others.len() >= MOST {
            self.join_nearest();
        }
    }

    /// Joins the two intervals with the smallest distance between them.
    fn join_nearest(&mut self) {
        let now = self.current.first;
        let mut all = self.intervals();
        let distance = |pair: &[Interval]| pair[1].first.saturating_sub(pair[0].last);
        let nearest = all.windows(2).enumerate().min_by_key(|(_, pair)| distance(pair)).map(|(i, _)| i);
        if let (Some(i), true) = (nearest, all.len() >= MOST) {
            let first = all.remove(i);
            all[i].join(&first);
        }
        let current = all.iter().position(|interval| interval.first <= now && now <= interval.last);
        self.current = all.swap_remove(current.unwrap_or(0));
        self.others = all;
    }

    /// Returns whether no time was earlier than the one before it.
    pub fn is_ascending(&self) -> bool {
        !self.falls
    }

    /// Returns the disjoint intervals, by time.
    pub fn intervals(&self) -> Vec<Interval> {
        let mut all = self.others.clone();
        if self.current.count > 0 {
            all.push(self.current);
        }
        all.sort_unstable_by_key(|interval| (interval.first, interval.last));
        all.dedup_by(|next, before| {
            let joined = next.first.saturating_sub(before.last) <= NEAR;
            if joined {
                before.join(next);
            }
            joined
        });
        all
    }
}

/// The span of time that the data of a log fills.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataSpan {
    /// Where the data starts.
    pub start: Timestamp,
    /// The time of its last record.
    pub end: Timestamp,
    /// What is far outside, by topic.
    pub outside: Vec<Outside>,
}

/// Records of a topic whose times lie far outside of the log's data, all before it or all after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outside {
    /// The topic.
    pub topic: TopicId,
    /// Their number.
    pub count: u64,
    /// The first of their times.
    pub first: Timestamp,
    /// The last of their times.
    pub last: Timestamp,
    /// Nanoseconds from the data to the nearest of them; negative before the data.
    pub distance: i64,
    /// Offset of the first byte of one of them.
    pub offset: u64,
}

impl Outside {
    /// Says it in words: `1 record of mission/0 is 1167 s after all others`.
    pub fn sentence(&self, topic: &str) -> String {
        let (records, are) = if self.count == 1 { ("record", "is") } else { ("records", "are") };
        let side = if self.distance.is_negative() { "before" } else { "after" };
        let one = if self.count > 1 && self.first == self.last { ", all at the same time" } else { "" };
        let distance = rough(self.distance.unsigned_abs());
        format!("{} {records} of {topic} {are} {distance} {side} all others{one}", self.count)
    }
}

/// Returns a length of time in three or four digits, for people.
fn rough(nanos: u64) -> String {
    let seconds = nanos / 1_000_000_000;
    match seconds {
        0..100 => format!("{}.{} s", seconds, nanos / 100_000_000 % 10),
        100..172_800 => format!("{seconds} s"),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// Times of several topics that are close to each other.
#[derive(Clone, Copy, Debug)]
struct Cluster {
    first: i64,
    last: i64,
    count: u64,
    /// Whether each topic in it has a single time there.
    points: bool,
}

impl DataSpan {
    /// Finds the main body of the times of all topics, in the order of their ids. `start` is where
    /// the log itself says that it starts: what is before that is older values, and only a topic
    /// that is stuck there is outside.
    pub fn of(spreads: &[Vec<Interval>], start: Option<i64>, clock: Clock) -> Option<Self> {
        let records = |spread: &[Interval]| spread.iter().map(|interval| interval.count).sum::<u64>();
        let total: u64 = spreads.iter().map(|spread| records(spread)).sum();
        let is_stuck =
            |spread: &[Interval]| matches!(spread, [only] if only.first == only.last && only.count >= STUCK);
        let stuck: u64 = spreads.iter().filter(|s| is_stuck(s)).map(|s| records(s)).sum();
        let ignore_stuck = stuck * 2 <= total;
        let moving = spreads.iter().filter(|spread| !(ignore_stuck && is_stuck(spread)));
        let clusters = clusters(moving.flatten());
        let (low, high) = body(&clusters)?;
        let (mut first, mut last) = (clusters[low].first, clusters[high].last);
        let is_before = |interval: &Interval, first: i64| first.saturating_sub(interval.last) > FAR;
        let is_after = |interval: &Interval, last: i64| interval.first.saturating_sub(last) > FAR;
        // A topic with a single time that is near belongs to the data.
        let (from, to) = (first, last);
        let is_near = |interval: &&Interval| !is_before(interval, from) && !is_after(interval, to);
        for interval in spreads.iter().flatten().filter(is_near) {
            (first, last) = (first.min(interval.first), last.max(interval.last));
        }
        let declared = start.filter(|start| *start <= last && first.saturating_sub(*start) <= YEAR);
        let begin = declared.unwrap_or(first);
        let at = |nanos| Timestamp::new(nanos, clock);
        let mut outside = Vec::new();
        for (topic, spread) in (0..).map(TopicId).zip(spreads) {
            let told = ignore_stuck && is_stuck(spread);
            let is_outside = told || declared.is_none();
            let before = spread.iter().filter(|interval| is_outside && is_before(interval, begin));
            let after = spread.iter().filter(|interval| is_after(interval, last));
            for (side, earlier) in
                [(before.copied().reduce(joined), true), (after.copied().reduce(joined), false)]
            {
                outside.extend(side.map(|side| Outside {
                    topic,
                    count: side.count,
                    first: at(side.first),
                    last: at(side.last),
                    distance: if earlier {
                        side.last.saturating_sub(begin)
                    } else {
                        side.first.saturating_sub(last)
                    },
                    offset: side.offset,
                }));
            }
        }
        Some(Self { start: at(begin), end: at(last), outside })
    }

    /// Returns whether a time is in the span.
    pub fn holds(&self, nanos: i64) -> bool {
        (self.start.nanos..=self.end.nanos).contains(&nanos)
    }

    /// Completes what is known of each topic with its records within the span, and takes note of
    /// those outside.
    pub fn settle(&self, spreads: &[Vec<Interval>], topics: &mut [Topic], diagnostics: &mut Diagnostics) {
        for (topic, spread) in topics.iter_mut().zip(spreads) {
            let inside =
                spread.iter().filter(|at| at.last >= self.start.nanos && at.first <= self.end.nanos).copied();
            topic.in_data = Some(inside.reduce(joined).unwrap_or(Interval::EMPTY));
        }
        for outside in &self.outside {
            let name = topics.get(outside.topic.index()).map_or("", |topic| topic.name.as_str());
            let range = outside.offset..outside.offset.saturating_add(1);
            diagnostics.push(&STALE_TIMES, range, || outside.sentence(name));
        }
    }
}

fn joined(mut one: Interval, other: Interval) -> Interval {
    one.join(&other);
    one
}

/// Returns the intervals of all topics as clusters with more than [`FAR`] between them, by time.
fn clusters<'a>(intervals: impl Iterator<Item = &'a Interval>) -> Vec<Cluster> {
    let mut all: Vec<_> = intervals.collect();
    all.sort_unstable_by_key(|interval| interval.first);
    let mut clusters: Vec<Cluster> = Vec::new();
    for interval in all {
        let points = interval.first == interval.last;
        match clusters.last_mut() {
            Some(last) if interval.first.saturating_sub(last.last) <= FAR => {
                last.last = last.last.max(interval.last);
                last.count += interval.count;
                last.points &= points;
            }
            _ => clusters.push(Cluster {
                first: interval.first,
                last: interval.last,
                count: interval.count,
                points,
            }),
        }
    }
    clusters
}

/// Returns the first and the last cluster of the main body. It grows from the heaviest cluster over
/// its neighbours, as long as the records beyond a pause are not stale. They are stale if the pause is
/// longer than the body, and they are either single times of at most 1 % of all records, or more than
/// a year away and fewer than the other records.
fn body(clusters: &[Cluster]) -> Option<(usize, usize)> {
    let heaviest = (0..clusters.len()).rev().max_by_key(|i| clusters[*i].count)?;
    // Before each cluster: the records, and the clusters that are not single times.
    let mut before = vec![(0u64, 0usize)];
    for cluster in clusters {
        let (records, lengths) = before[before.len() - 1];
        before.push((records + cluster.count, lengths + usize::from(!cluster.points)));
    }
    let total = before[clusters.len()].0;
    let is_stale = |rest: Range<usize>, pause: i64, length: i64| {
        let (from, to) = (before[rest.start], before[rest.end]);
        let (records, points) = (to.0 - from.0, to.1 == from.1);
        let few = points && records.saturating_mul(100) <= total;
        let other_clock = pause > YEAR && records.saturating_mul(2) < total;
        pause > length && (few || other_clock)
    };
    let (mut low, mut high) = (heaviest, heaviest);
    loop {
        let length = clusters[high].last.saturating_sub(clusters[low].first);
        if let Some(next) = clusters.get(high + 1)
            && !is_stale(high + 1..clusters.len(), next.first.saturating_sub(clusters[high].last), length)
        {
            high += 1;
        } else if low > 0
            && !is_stale(0..low, clusters[low].first.saturating_sub(clusters[low - 1].last), length)
        {
            low -= 1;
        } else {
            return Some((low, high));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limits;

    const S: i64 = 1_000_000_000;

    fn times(times: impl IntoIterator<Item = i64>) -> Spread {
        let mut spread = Spread::default();
        for (time, offset) in times.into_iter().zip(100..) {
            spread.push(time, offset);
        }
        spread
    }

    fn span(spreads: &[Spread], start: Option<i64>) -> DataSpan {
        let spreads: Vec<_> = spreads.iter().map(Spread::intervals).collect();
        DataSpan::of(&spreads, start, Clock::Boot).unwrap()
    }

    fn seconds(data: &DataSpan) -> (i64, i64) {
        (data.start.nanos / S, data.end.nanos / S)
    }

    #[test]
    fn one_record_far_behind_all_others_does_not_stretch_a_log() {
        let steady = times((0..650).map(|i| 20 * S + i * S / 100));
        let stale = times([20 * S, 1194 * S, 21 * S]);
        let data = span(&[steady, stale], Some(20 * S));
        assert_eq!(seconds(&data), (20, 26));
        let [outside] = data.outside.as_slice() else { panic!("{data:?}") };
        assert_eq!((outside.topic, outside.count, outside.offset), (TopicId(1), 1, 101));
        assert_eq!(outside.sentence("mission/0"), "1 record of mission/0 is 1167 s after all others");
        let topic = |id, name: &str| Topic::new(TopicId(id), name.to_owned(), name.to_owned(), None);
        let mut topics = [topic(0, "steady"), topic(1, "mission")];
        let mut diagnostics = Diagnostics::new(&Limits::default());
        let spreads = [times((0..650).map(|i| 20 * S + i * S / 100)), times([20 * S, 1194 * S, 21 * S])];
        let spreads: Vec<_> = spreads.iter().map(Spread::intervals).collect();
        data.settle(&spreads, &mut topics, &mut diagnostics);
        assert_eq!(topics[0].rate_hz(), Some(100.0));
        assert_eq!(topics[1].rate_hz(), Some(1.0));
        assert_eq!(diagnostics.list()[0].range, 101..102);
    }

    #[test]
    fn a_topic_that_is_stuck_lies_outside_whatever_its_number_of_records() {
        let steady = times((0..2000).map(|i| 112 * S + i * S / 20));
        let stuck = times(std::iter::repeat_n(2 * S, 900));
        let early = times([3 * S, 150 * S]);
        let data = span(&[steady, stuck, early], Some(112 * S));
        assert_eq!(seconds(&data), (112, 211));
        let told: Vec<_> = data.outside.iter().map(|outside| (outside.topic.0, outside.count)).collect();
        assert_eq!(told, [(1, 900)]);
        assert_eq!(
            data.outside[0].sentence("commander_state/0"),
            "900 records of commander_state/0 are 110 s before all others, all at the same time"
        );
        // Stuck near the data, it belongs to it.
        let near = span(&[times((0..2000).map(|i| 9 * S + i)), times(std::iter::repeat_n(0, 900))], None);
        assert_eq!((seconds(&near), near.outside.len()), ((0, 9), 0));
        // Where most records have one time, that is the log's time.
        let most = span(&[times((0..20).map(|i| 90 * S + i * S)), times(std::iter::repeat_n(0, 900))], None);
        assert_eq!((seconds(&most), most.outside.len()), ((0, 109), 0));
    }

    #[test]
    fn a_log_that_pauses_is_one_log() {
        // Two sessions a day apart, the second one short.
        let second = (0..5).map(|i| 86_400 * S + i * S / 10);
        let sessions = times((0..1000).map(|i| i * S / 100).chain(second));
        assert_eq!(seconds(&span(&[sessions], None)), (0, 86_400));
        // Slow sensors.
        let slow = times((0..300).map(|i| i * 60 * S));
        let data = span(&[slow, times([0, 600 * S])], None);
        assert_eq!((seconds(&data), data.outside.len()), ((0, 299 * 60), 0));
        // A few records with a pause before the last.
        assert_eq!(seconds(&span(&[times([0, S, 2 * S, 500 * S])], None)), (0, 500));
    }

    #[test]
    fn times_of_another_clock_do_not_stretch_a_log() {
        let unix = 1_700_000_000 * S;
        let steady = times((0..10_000).map(|i| unix + i * S / 100));
        let simulated = times((0..50).map(|i| i * S / 10));
        let data = span(&[steady, simulated], None);
        assert_eq!((seconds(&data), data.outside.len()), ((1_700_000_000, 1_700_000_099), 1));
        assert_eq!(data.outside[0].count, 50);
        assert!(data.outside[0].sentence("sim").ends_with("19675 days before all others"));
        // One record of a small log, and a few that are no single time.
        let few = || (0..20).map(|i| unix + i * S / 10);
        let data = span(&[times(few().chain([5 * S]))], None);
        assert_eq!((seconds(&data), data.outside.len()), ((1_700_000_000, 1_700_000_001), 1));
        let data = span(&[times((0..19).map(|i| i * S / 10).chain(few()))], None);
        assert_eq!((seconds(&data), data.outside[0].count), ((1_700_000_000, 1_700_000_001), 19));
        // As many records as the others: no clock is the wrong one.
        let data = span(&[times((0..20).map(|i| i * S / 10).chain(few()))], None);
        assert_eq!((seconds(&data), data.outside.len()), ((0, 1_700_000_001), 0));
    }

    #[test]
    fn what_is_ten_seconds_from_the_data_belongs_to_it() {
        let steady = || times((0..1000).map(|i| 100 * S + i * S / 100));
        let last = 109 * S + 990_000_000;
        for (stuck, near) in [
            (90 * S, (90 * S, last)),
            (90 * S - 1, (100 * S, last)),
            (last + 10 * S, (100 * S, last + 10 * S)),
            (last + 10 * S + 1, (100 * S, last)),
        ] {
            let data = span(&[steady(), times(std::iter::repeat_n(stuck, 20))], None);
            assert_eq!((data.start.nanos, data.end.nanos), near, "stuck at {stuck}");
            assert_eq!(data.outside.is_empty(), data.holds(stuck), "stuck at {stuck}");
        }
        // Before the declared start, and near it.
        let data = span(&[steady(), times(std::iter::repeat_n(95 * S, 20))], Some(100 * S));
        assert_eq!((seconds(&data), data.outside.len()), ((100, 109), 0));
        assert!(data.holds(data.start.nanos) && data.holds(data.end.nanos) && !data.holds(95 * S));
    }

    #[test]
    fn a_log_starts_where_it_says_if_that_is_possible() {
        let steady = || times((0..1000).map(|i| 2 * YEAR + i * S / 100));
        let start = |start| span(&[steady()], Some(start)).start.nanos;
        assert_eq!(start(2 * YEAR - 5 * S), 2 * YEAR - 5 * S);
        assert_eq!((start(YEAR), start(YEAR - 1)), (YEAR, 2 * YEAR));
        let last = 2 * YEAR + 9 * S + 990_000_000;
        assert_eq!((start(last), start(last + 1)), (last, 2 * YEAR));
    }

    #[test]
    fn what_is_outside_is_before_or_after() {
        let steady = times((0..1000).map(|i| 100 * S + i * S / 100));
        let data = span(&[steady, times([S, 500 * S, 600 * S])], None);
        assert_eq!(seconds(&data), (100, 109));
        let [before, after] = data.outside.as_slice() else { panic!("{data:?}") };
        assert_eq!((before.count, before.distance, before.offset), (1, -99 * S, 100));
        assert_eq!((before.first.nanos, before.last.nanos), (S, S));
        assert_eq!((after.count, after.distance, after.offset), (2, 390 * S + 10_000_000, 101));
        assert_eq!((after.first.nanos, after.last.nanos), (500 * S, 600 * S));
        assert_eq!(after.sentence("a"), "2 records of a are 390 s after all others");
    }

    /// Most of a log is its body, wherever it is; 1 % with a length of its own is another session.
    #[test]
    fn a_body_grows_over_what_is_not_stale() {
        // A first part that is lighter than the second one.
        let parts = (0..100).map(|i| i * S / 10).chain((0..1000).map(|i| 100 * S + i * S / 100));
        assert_eq!(seconds(&span(&[times(parts)], None)), (0, 109));
        // A single time as far away as the body is long.
        let steady = |last: i64| times((0..1000).map(|i| i * S / 10).chain([last]));
        let length = 99 * S + 900_000_000;
        assert_eq!(seconds(&span(&[steady(2 * length)], None)), (0, 199));
        assert_eq!(seconds(&span(&[steady(2 * length + 1)], None)), (0, 99));
        // A single time of one topic with some times of another: a session, up to a year away.
        let session = |pause: i64| {
            let second = length + pause;
            [steady(second), times((0..3).map(|i| second + 2 * S + i * S / 10))]
        };
        assert_eq!(seconds(&span(&session(1000 * S), None)), (0, 1102));
        assert_eq!(span(&session(YEAR), None).end.nanos, length + YEAR + 2 * S + 200_000_000);
        assert_eq!(span(&session(YEAR + 1), None).end.nanos, length);
    }

    #[test]
    fn single_times_ten_seconds_apart_are_one_part_of_a_log() {
        let then = |count: i64, last: [i64; 2]| times((0..count).map(|i| i * S / 1000).chain(last));
        // Each is near the one before it.
        let data = span(&[then(1000, [6 * S, 15 * S])], None);
        assert_eq!((seconds(&data), data.outside.len()), ((0, 15), 0));
        // Two records are more than 1 % of 150, and one is not.
        assert_eq!(seconds(&span(&[then(150, [100 * S, 105 * S])], None)), (0, 105));
        assert_eq!(seconds(&span(&[then(150, [0, 105 * S])], None)), (0, 0));
    }

    #[test]
    fn lengths_of_time_have_three_or_four_digits() {
        let words = [0, 12_345_678_900, 99_999_999_999, 100 * 1_000_000_000].map(rough);
        assert_eq!(words, ["0.0 s", "12.3 s", "99.9 s", "100 s"]);
        let words = [172_799, 172_800, 400 * 86_400].map(|seconds| rough(seconds * 1_000_000_000));
        assert_eq!(words, ["172799 s", "2 days", "400 days"]);
    }

    #[test]
    fn a_topic_is_ascending_if_no_time_is_earlier_than_the_one_before() {
        for (list, ascending) in
            [(vec![], true), (vec![5, 5, 7, 20 * S], true), (vec![5, 4], false), (vec![5, 4, 6], false)]
        {
            assert_eq!(times(list.clone()).is_ascending(), ascending, "{list:?}");
        }
        // As many intervals as are kept, and one more, which is joined with the one before it.
        let mut spread = times((0..16).map(|i| 10 * i * S));
        assert_eq!(spread.intervals().len(), MOST);
        let mut near = spread.clone();
        near.push(20 * S + 1, 7);
        assert_eq!((near.intervals().len(), near.intervals()[2].count), (MOST, 2));
        spread.push(155 * S, 7);
        let intervals = spread.intervals();
        assert_eq!((intervals.len(), spread.is_ascending()), (MOST, true));
        assert_eq!(intervals[15], Interval { first: 150 * S, last: 155 * S, count: 2, offset: 7 });
        spread.push(152 * S, 8);
        assert!(!spread.is_ascending());
    }

    #[test]
    fn times_of_a_topic_up_to_a_second_apart_are_one_interval() {
        assert_eq!(Spread::default().intervals(), []);
        let ends = |list: &[i64]| -> Vec<_> {
            let intervals = times(list.iter().copied()).intervals();
            intervals.iter().map(|interval| (interval.first, interval.last, interval.count)).collect()
        };
        assert_eq!(ends(&[5 * S, 6 * S, 4 * S]), [(4 * S, 6 * S, 3)]);
        assert_eq!(ends(&[5 * S, 6 * S + 1]), [(5 * S, 5 * S, 1), (6 * S + 1, 6 * S + 1, 1)]);
        assert_eq!(ends(&[5 * S, 4 * S - 1]), [(4 * S - 1, 4 * S - 1, 1), (5 * S, 5 * S, 1)]);
        // What is near two of them joins them.
        assert_eq!(ends(&[5 * S, 7 * S, 6 * S]), [(5 * S, 7 * S, 3)]);
    }

    /// Any order and any number of intervals: the count is exact, and the extremes stay.
    #[test]
    fn a_spread_loses_no_record() {
        let mut state = 1u64;
        let mut random = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33).cast_signed()
        };
        for range in [S, 20 * S, 2000 * S] {
            let all: Vec<i64> = (0..5000).map(|_| random() * 1_000_003 % range).collect();
            let intervals = times(all.iter().copied()).intervals();
            assert!(intervals.len() <= MOST, "{intervals:?}");
            assert_eq!(intervals.iter().map(|interval| interval.count).sum::<u64>(), 5000);
            assert_eq!(intervals.first().map(|first| first.first), all.iter().min().copied());
            assert_eq!(intervals.last().map(|last| last.last), all.iter().max().copied());
            assert!(intervals.windows(2).all(|pair| pair[0].last < pair[1].first), "{intervals:?}");
        }
        let extremes = times([i64::MIN, 0, i64::MAX, i64::MIN]).intervals();
        assert_eq!(extremes.iter().map(|interval| interval.count).collect::<Vec<_>>(), [2, 1, 1]);
    }
}
