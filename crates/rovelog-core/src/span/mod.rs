//! The time span of a log's data, and the outliers, which are records far away from this time span.
//!
//! A single record with a wrong timestamp can be years away from all other records. Such a record
//! must not extend the log, because plots, time windows and rates are based on the time span.
//!
//! The time span is computed in four steps:
//!
//! 1. During the scan, the [`Spread`] of each topic collects the times of the topic in at most 16
//!    intervals.
//! 2. Topics that are stuck are ignored. All records of a stuck topic have the same time.
//! 3. The intervals of all other topics are combined into clusters. Between two clusters, there is
//!    a pause of more than 10 s.
//! 4. The body of the log starts with the largest cluster. It is extended by adjacent clusters
//!    until the records after the next pause are stale, that is, until they come from another time
//!    or clock. The time span is that of the body, and all other records are outside.
//!
//! For example, a log has two topics. The first topic has 650 records from 20.00 s to 26.49 s. The
//! second topic has records at 20 s, 1194 s and 21 s. Its intervals are 20 s to 21 s with 2
//! records, and 1194 s with 1 record. There are two clusters: 20.00 s to 26.49 s with 652 records,
//! and 1194 s with 1 record. The pause of 1167 s between them is longer than the body, and 1 record
//! is less than 1 % of all records. The record is therefore stale, and the time span is 20.00 s to
//! 26.49 s.

#[cfg(test)]
mod tests;

use std::mem;
use std::ops::Range;

use crate::internal::topic::Interval;
use crate::{Clock, Diagnostics, Rule, Severity, Timestamp, Topic, TopicId};

/// Maximum distance in nanoseconds between an interval of a topic and a time that is added to this
/// interval.
const MAX_INTERVAL_PAUSE: i64 = 1_000_000_000;

/// Maximum distance in nanoseconds between the data of a log and records that still belong to the
/// data.
const MAX_CLUSTER_PAUSE: i64 = 10_000_000_000;

/// A year in nanoseconds. No recording pauses for a year, so times that are more than a year away
/// come from another clock.
const YEAR: i64 = 365 * 86_400 * 1_000_000_000;

/// Maximum number of intervals that are stored for a topic.
const MAX_INTERVALS: usize = 16;

/// Minimum number of records with the same time for a topic to count as stuck.
const MIN_STUCK_RECORDS: u64 = 10;

/// Rule for diagnostics about records outside of the time span of the data. All formats use this
/// rule.
pub static STALE_TIMES: Rule = Rule {
    code: "W-LOG-101",
    name: "stale_times",
    severity: Severity::Note,
    meaning: "the times of some records are far outside the time range of all other records; the time \
              range of the log excludes them",
};

impl Interval {
    /// An interval without records.
    const EMPTY: Self = Self { first: i64::MAX, last: i64::MIN, count: 0, offset: u64::MAX };

    /// Adds the records of `other` to this interval.
    fn join(&mut self, other: &Self) {
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
        self.count += other.count;
        self.offset = self.offset.min(other.offset);
    }

    /// Returns whether a record at `nanos` belongs to this interval.
    fn is_near(&self, nanos: i64) -> bool {
        nanos >= self.first.saturating_sub(MAX_INTERVAL_PAUSE)
            && nanos <= self.last.saturating_add(MAX_INTERVAL_PAUSE)
    }
}

/// The times of one topic, stored as at most 16 intervals. The memory does not depend on the number
/// or the order of the records.
#[derive(Clone, Debug)]
pub struct Spread {
    /// Interval that contains the record that was added last.
    current: Interval,
    /// All intervals except for `current`, in no particular order.
    others: Vec<Interval>,
    /// True if a record was earlier than the record before it.
    has_decreased: bool,
}

impl Default for Spread {
    fn default() -> Self {
        Self { current: Interval::EMPTY, others: Vec::new(), has_decreased: false }
    }
}

impl Spread {
    /// Adds a record with its time and the offset of its first byte.
    #[inline]
    pub fn push(&mut self, nanos: i64, offset: u64) {
        let current = &mut self.current;
        // As long as times ascend, the end of the current interval is the time of the previous
        // record.
        self.has_decreased |= nanos < current.last;
        if nanos >= current.first && nanos.saturating_sub(current.last) <= MAX_INTERVAL_PAUSE {
            current.last = current.last.max(nanos);
            current.count += 1;
        } else {
            self.push_elsewhere(nanos, offset);
        }
    }

    /// Adds a record that is too far away from the end of the current interval to extend it.
    #[cold]
    fn push_elsewhere(&mut self, nanos: i64, offset: u64) {
        let record = Interval { first: nanos, last: nanos, count: 1, offset };
        if self.current.count == 0 || self.current.is_near(nanos) {
            self.current.join(&record);
            return;
        }
        if let Some(known) = self.others.iter_mut().find(|other| other.is_near(nanos)) {
            known.join(&record);
            // The next records are probably near this record, so its interval becomes the current
            // interval.
            mem::swap(known, &mut self.current);
            return;
        }
        self.others.push(mem::replace(&mut self.current, record));
        if self.others.len() >= MAX_INTERVALS {
            self.join_nearest();
        }
    }

    /// If there are too many intervals, joins the two intervals with the smallest distance.
    fn join_nearest(&mut self) {
        let now = self.current.first;
        let mut all = self.intervals();
        let distance = |pair: &[Interval]| pair[1].first.saturating_sub(pair[0].last);
        let nearest = all.windows(2).enumerate().min_by_key(|(_, pair)| distance(pair)).map(|(i, _)| i);
        if let (Some(i), true) = (nearest, all.len() >= MAX_INTERVALS) {
            let first = all.remove(i);
            all[i].join(&first);
        }
        // The current interval may have been joined with another interval, so it is searched by its
        // start time.
        let current = all.iter().position(|interval| interval.first <= now && now <= interval.last);
        self.current = all.swap_remove(current.unwrap_or(0));
        self.others = all;
    }

    /// Returns whether no record was earlier than the record before it in the file.
    pub fn is_ascending(&self) -> bool {
        !self.has_decreased
    }

    /// Returns the intervals in ascending order. They do not overlap.
    pub fn intervals(&self) -> Vec<Interval> {
        let mut all = self.others.clone();
        if self.current.count > 0 {
            all.push(self.current);
        }
        all.sort_unstable_by_key(|interval| (interval.first, interval.last));
        // Intervals can grow towards each other, so some of them may now overlap.
        all.dedup_by(|next, before| {
            let joined = next.first.saturating_sub(before.last) <= MAX_INTERVAL_PAUSE;
            if joined {
                before.join(next);
            }
            joined
        });
        all
    }
}

/// The time span of a log's data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataSpan {
    /// Start time of the data.
    pub start: Timestamp,
    /// End time of the data, which is the time of the last record in the time span.
    pub end: Timestamp,
    /// Records outside of the time span, grouped by topic.
    pub outside: Vec<Outside>,
}

/// Records of a topic that are far away from the log's data. All of them are before the data, or
/// all of them are after the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outside {
    /// Topic of the records.
    pub topic: TopicId,
    /// Number of the records.
    pub count: u64,
    /// Earliest time of the records.
    pub first: Timestamp,
    /// Latest time of the records.
    pub last: Timestamp,
    /// Distance in nanoseconds from the data to the nearest of the records. Negative if the records
    /// are before the data.
    pub distance: i64,
    /// Offset in the file of the first byte of one of the records.
    pub offset: u64,
}

impl Outside {
    /// Describes the records, for example `1 record of mission/0 is 1167 s after all others`.
    pub fn sentence(&self, topic: &str) -> String {
        let (records, are) = if self.count == 1 { ("record", "is") } else { ("records", "are") };
        let side = if self.distance.is_negative() { "before" } else { "after" };
        let one = if self.count > 1 && self.first == self.last { ", all at the same time" } else { "" };
        let distance = rough(self.distance.unsigned_abs());
        format!("{} {records} of {topic} {are} {distance} {side} all other records{one}", self.count)
    }
}

/// Formats a duration with about three digits, such as `12.3 s` or `400 days`.
fn rough(nanos: u64) -> String {
    let seconds = nanos / 1_000_000_000;
    match seconds {
        0..100 => format!("{}.{} s", seconds, nanos / 100_000_000 % 10),
        100..172_800 => format!("{seconds} s"),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// A group of intervals of several topics. The pauses between these intervals are at most 10 s
/// long.
#[derive(Clone, Copy, Debug)]
struct Cluster {
    /// Earliest time in nanoseconds.
    first: i64,
    /// Latest time in nanoseconds.
    last: i64,
    /// Number of records in the cluster.
    count: u64,
    /// True if each interval in the cluster has only a single time.
    has_only_points: bool,
}

impl DataSpan {
    /// Computes the time span of the data from the intervals of each topic, in the order of the
    /// topics' indices.
    ///
    /// `start` is the start time that the log itself states. Records before this time are values
    /// that were published earlier, so they do not count as outside, unless their topic is stuck.
    pub fn of(spreads: &[Vec<Interval>], start: Option<i64>, clock: Clock) -> Option<Self> {
        let records = |spread: &[Interval]| spread.iter().map(|interval| interval.count).sum::<u64>();
        let total: u64 = spreads.iter().map(|spread| records(spread)).sum();
        let is_stuck = |spread: &[Interval]| matches!(spread, [only] if only.first == only.last && only.count >= MIN_STUCK_RECORDS);
        let stuck: u64 = spreads.iter().filter(|s| is_stuck(s)).map(|s| records(s)).sum();
        // If most records belong to stuck topics, the single time of these records is not wrong. It
        // is the time of the log.
        let ignore_stuck = stuck * 2 <= total;
        let moving = spreads.iter().filter(|spread| !(ignore_stuck && is_stuck(spread)));
        let clusters = clusters(moving.flatten());
        let (low, high) = body(&clusters)?;
        let (mut first, mut last) = (clusters[low].first, clusters[high].last);
        let is_before =
            |interval: &Interval, first: i64| first.saturating_sub(interval.last) > MAX_CLUSTER_PAUSE;
        let is_after =
            |interval: &Interval, last: i64| interval.first.saturating_sub(last) > MAX_CLUSTER_PAUSE;
        // Stuck topics were ignored when the body, the main part of the log, was computed. If the
        // time of a stuck topic is near the body, it belongs to the data and extends the time span.
        let (from, to) = (first, last);
        let is_near = |interval: &&Interval| !is_before(interval, from) && !is_after(interval, to);
        for interval in spreads.iter().flatten().filter(is_near) {
            (first, last) = (first.min(interval.first), last.max(interval.last));
        }
        // If the start time that the log states is after the data, or more than a year before it,
        // it is wrong.
        let declared = start.filter(|start| *start <= last && first.saturating_sub(*start) <= YEAR);
        let begin = declared.unwrap_or(first);
        let at = |nanos| Timestamp::new(nanos, clock);
        let mut outside = Vec::new();
        for (topic, spread) in (0..).map(TopicId).zip(spreads) {
            let is_ignored = ignore_stuck && is_stuck(spread);
            let is_outside = is_ignored || declared.is_none();
            let before = spread.iter().filter(|interval| is_outside && is_before(interval, begin));
            let after = spread.iter().filter(|interval| is_after(interval, last));
            let group = |records: Interval, distance: i64| {
                let Interval { count, offset, .. } = records;
                Outside { topic, count, first: at(records.first), last: at(records.last), distance, offset }
            };
            let before = before.copied().reduce(joined);
            outside.extend(before.map(|records| group(records, records.last.saturating_sub(begin))));
            let after = after.copied().reduce(joined);
            outside.extend(after.map(|records| group(records, records.first.saturating_sub(last))));
        }
        Some(Self { start: at(begin), end: at(last), outside })
    }

    /// Returns whether a time is in the time span of the data.
    pub fn holds(&self, nanos: i64) -> bool {
        (self.start.nanos..=self.end.nanos).contains(&nanos)
    }

    /// Sets the [`in_data`](Topic::in_data) intervals of the topics. Also adds a diagnostic for
    /// each group of records outside of the time span.
    pub fn apply_to(&self, spreads: &[Vec<Interval>], topics: &mut [Topic], diagnostics: &mut Diagnostics) {
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

/// Returns an interval that contains the records of both intervals.
fn joined(mut one: Interval, other: Interval) -> Interval {
    one.join(&other);
    one
}

/// Combines the intervals of all topics into clusters, in ascending order. Between two clusters,
/// there is a pause of more than [`MAX_CLUSTER_PAUSE`].
fn clusters<'a>(intervals: impl Iterator<Item = &'a Interval>) -> Vec<Cluster> {
    let mut all: Vec<_> = intervals.collect();
    all.sort_unstable_by_key(|interval| interval.first);
    let mut clusters: Vec<Cluster> = Vec::new();
    for interval in all {
        let is_point = interval.first == interval.last;
        match clusters.last_mut() {
            Some(last) if interval.first.saturating_sub(last.last) <= MAX_CLUSTER_PAUSE => {
                last.last = last.last.max(interval.last);
                last.count += interval.count;
                last.has_only_points &= is_point;
            }
            _ => clusters.push(Cluster {
                first: interval.first,
                last: interval.last,
                count: interval.count,
                has_only_points: is_point,
            }),
        }
    }
    clusters
}

/// Returns the indices of the first and the last cluster that belong to the body of the log.
///
/// The body starts as the cluster with most records. It is extended by adjacent clusters, unless
/// the records beyond the next pause are stale. These records are stale if the pause is longer than
/// the body, and one of two conditions holds:
///
/// - Each of their intervals is a single time, and they are at most 1 % of all records.
/// - The pause is longer than a year, and they are fewer than half of all records.
fn body(clusters: &[Cluster]) -> Option<(usize, usize)> {
    // `max_by_key` returns the last maximum. If several clusters have most records, the reverse
    // order selects the earliest of them.
    let heaviest = (0..clusters.len()).rev().max_by_key(|i| clusters[*i].count)?;
    // For each cluster, the number of records before it, and the number of clusters before it that
    // have an interval longer than a single time. The sums for any range of clusters are
    // differences of these numbers.
    let (mut records_before, mut long_before) = (vec![0u64], vec![0usize]);
    for (i, cluster) in clusters.iter().enumerate() {
        records_before.push(records_before[i] + cluster.count);
        long_before.push(long_before[i] + usize::from(!cluster.has_only_points));
    }
    let total = records_before[clusters.len()];
    let is_stale = |rest: Range<usize>, pause: i64, length: i64| {
        let records = records_before[rest.end] - records_before[rest.start];
        let has_only_points = long_before[rest.end] == long_before[rest.start];
        let is_few = has_only_points && records.saturating_mul(100) <= total;
        let is_other_clock = pause > YEAR && records.saturating_mul(2) < total;
        pause > length && (is_few || is_other_clock)
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
