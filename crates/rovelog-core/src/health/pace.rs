//! Statistics of the times of one topic, with bounded memory.
//!
//! [`Pace`] counts the intervals by their length, so that the median and the deviation can be
//! computed at the end. For example, a topic has the times 0, 10, 20, 30, 70 and 80 ms. The counts
//! are 4 intervals of 10 ms and 1 interval of 40 ms. The median, which is the period, is 10 ms.
//!
//! A topic with jitter may have millions of different lengths. If more than 65536 lengths are
//! counted, all lengths are divided by 2, and lengths that are now equal are merged. For example,
//! the lengths 1001 ns and 1000 ns are both counted as 500, which stands for 1000 ns.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::{Gap, TopicHealth};
use crate::TopicId;

/// Maximum number of different interval lengths that are counted. If there are more lengths, all of
/// them are rounded to multiples of the next power of two. A positive length is never rounded to 0.
const MAX_LENGTHS: usize = 1 << 16;

/// Maximum number of gaps of a topic that are stored. Shorter gaps are only counted.
const MAX_GAPS: usize = 1024;

/// Maximum number of gaps in [`TopicHealth::longest_gaps`].
const LISTED_GAPS: usize = 16;

/// Minimum number of positive intervals for a steady rate.
const MIN_INTERVALS: u64 = 10;

/// An interval between two records is a gap if it is longer than this number of periods. The period
/// is the median interval.
pub(super) const GAP_PERIODS: i64 = 3;

/// Number of interval lengths in the cache of [`Pace`]. A steady topic has few different lengths,
/// so the cache avoids most lookups in the hash map.
const CACHE_LEN: usize = 8;

/// Minimum time in nanoseconds between the last record of a topic and the end of the log for which
/// the topic counts as stopped. The time must also be longer than ten periods.
const MIN_SILENCE: i64 = 1_000_000_000;

/// Statistics of the times of a topic. Times are added in file order.
#[derive(Clone, Debug, Default)]
pub struct Pace {
    /// Number of records whose times were added.
    pub(super) count: u64,
    /// Time of the first record that was added.
    first: i64,
    /// Time of the last record that was added.
    last: i64,
    /// Latest time of all records.
    latest: i64,
    /// Number of records that are earlier than the previous record.
    falling: u64,
    /// Time of the first record that is earlier than the previous record.
    first_fall: Option<i64>,
    /// Number of records with the same time as the previous record.
    repeated: u64,
    /// For each interval length, the number of intervals between records that have this length.
    /// Only positive intervals are counted. The lengths are in units of 2 to the power of `shift`
    /// nanoseconds.
    lengths: HashMap<i64, u64>,
    /// Number of times that all interval lengths were divided by 2, to reduce the number of
    /// different lengths.
    shift: u32,
    /// Cache of interval lengths, each with a count that has not been added to `lengths` yet. The
    /// index of a length in the cache is the remainder of the length divided by the size of the
    /// cache.
    cached: [LengthCount; CACHE_LEN],
    /// Longest intervals between records. When the list has twice [`MAX_GAPS`] intervals, it is
    /// sorted and cut to [`MAX_GAPS`].
    longest: Vec<Gap>,
    /// Length that an interval must exceed to be added to `longest`.
    min_length: i64,
}

/// Number of intervals that have the same length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct LengthCount {
    length: i64,
    count: u64,
}

/// Health of the timestamps of a topic, and the gaps of the topic.
pub(super) struct TopicResult {
    /// Results that are returned to the caller.
    pub(super) health: TopicHealth,
    /// Gaps in descending order of length, at most [`MAX_GAPS`].
    pub(super) gaps: Vec<Gap>,
}

impl Pace {
    /// Adds the time of the next record in the file.
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

    /// Adds the interval between the previous record and a record at `nanos`.
    fn interval(&mut self, nanos: i64) {
        let length = nanos.saturating_sub(self.last);
        // An interval of 0 or less says nothing about the rate of the topic, so it is only counted.
        if length <= 0 {
            if length == 0 {
                self.repeated += 1;
            } else {
                self.falling += 1;
                self.first_fall.get_or_insert(nanos);
            }
            return;
        }
        let counted = length >> self.shift;
        let cached = &mut self.cached[usize::try_from(counted).unwrap_or_default() % CACHE_LEN];
        if cached.length == counted {
            cached.count += 1;
        } else {
            let replaced = std::mem::replace(cached, LengthCount { length: counted, count: 1 });
            self.count_lengths(replaced);
        }
        // The list of the longest intervals is only sorted when it is full, so the cost for each
        // interval is small.
        if length > self.min_length {
            self.longest.push(Gap { start: self.last, length });
            if self.longest.len() == 2 * MAX_GAPS {
                sort_longest(&mut self.longest);
                self.min_length = self.longest.last().map_or(0, |shortest| shortest.length);
            }
        }
    }

    /// Adds intervals whose length is already divided by 2 to the power of `shift`.
    fn count_lengths(&mut self, LengthCount { length, count }: LengthCount) {
        if count == 0 {
            return;
        }
        *self.lengths.entry(length).or_default() += count;
        if self.lengths.len() > MAX_LENGTHS {
            self.count_cached();
            self.shift += 1;
            for (length, count) in std::mem::take(&mut self.lengths) {
                *self.lengths.entry(length >> 1).or_default() += count;
            }
        }
    }

    /// Moves the counts in the cache to `lengths`.
    fn count_cached(&mut self) {
        let cached = std::mem::take(&mut self.cached);
        for LengthCount { length, count } in cached.into_iter().filter(|cached| cached.count > 0) {
            *self.lengths.entry(length).or_default() += count;
        }
    }

    /// Takes the lengths of the positive intervals with their counts, in ascending order.
    fn sorted_lengths(&mut self) -> Vec<LengthCount> {
        self.count_cached();
        // A positive length may have become 0 by division. It is counted as 1, because it must stay
        // positive.
        let restored = |length: i64| (length << self.shift).max(1);
        let lengths = std::mem::take(&mut self.lengths).into_iter();
        let mut lengths: Vec<_> =
            lengths.map(|(length, count)| LengthCount { length: restored(length), count }).collect();
        lengths.sort_unstable();
        lengths
    }

    /// Computes the health of the topic. `end` is the time at which the log's data ends. The gaps
    /// are not confirmed yet, because this needs the results of all topics.
    pub(super) fn evaluate(mut self, topic: TopicId, end: Option<i64>) -> TopicResult {
        let lengths = self.sorted_lengths();
        let period = median(&lengths);
        let steady = period.is_some_and(|period| is_steady(&lengths, period));
        let limit = period.map_or(i64::MAX, |period| period.saturating_mul(GAP_PERIODS));
        // Gaps are not jitter, so they are excluded from the standard deviation.
        let gaps_from = lengths.partition_point(|interval| !steady || interval.length <= limit);
        let (others, gaps) = lengths.split_at(gaps_from);
        let mut longest = self.longest;
        sort_longest(&mut longest);
        let longest_interval = longest.first().map(|interval| interval.length);
        longest.retain(|gap| steady && gap.length > limit);
        longest.shrink_to_fit();
        let silence = end.filter(|_| steady).map(|end| end.saturating_sub(self.latest));
        let min_silence = MIN_SILENCE.max(period.unwrap_or(0).saturating_mul(10));
        let health = TopicHealth {
            topic,
            count: self.count,
            first: (self.count > 0).then_some(self.first),
            latest: (self.count > 0).then_some(self.latest),
            period,
            steady,
            shortest: lengths.first().map(|shortest| shortest.length),
            longest: longest_interval,
            jitter: deviation(others),
            gaps: total_count(gaps),
            confirmed: 0,
            longest_confirmed: None,
            missing: 0,
            longest_gaps: longest.iter().take(LISTED_GAPS).copied().collect(),
            falling: self.falling,
            first_fall: self.first_fall,
            repeated: self.repeated,
            silent: silence.filter(|silence| *silence > min_silence),
            is_stuck: self.count >= MIN_INTERVALS && self.repeated + 1 == self.count,
        };
        TopicResult { health, gaps: longest }
    }
}

/// Sorts intervals by descending length, and cuts the list to [`MAX_GAPS`]. Intervals of the same
/// length stay in file order.
fn sort_longest(intervals: &mut Vec<Gap>) {
    intervals.sort_by_key(|interval| Reverse(interval.length));
    intervals.truncate(MAX_GAPS);
}

/// Returns the median of the intervals, which are sorted by length. If their number is even, the
/// median is the lower of the two intervals in the middle.
fn median(lengths: &[LengthCount]) -> Option<i64> {
    let middle = total_count(lengths).saturating_sub(1) / 2;
    let mut counted = 0;
    let median = lengths.iter().find(|interval| {
        counted += interval.count;
        counted > middle
    });
    median.map(|interval| interval.length)
}

/// Returns whether the rate is steady, see [`TopicHealth::steady`].
fn is_steady(lengths: &[LengthCount], period: i64) -> bool {
    let regular = period / 2..=period.saturating_add(period / 2);
    let regular: Vec<_> = lengths.iter().copied().filter(|at| regular.contains(&at.length)).collect();
    // A topic that is published on demand has bursts of records. Most of its intervals are regular,
    // but the pauses between bursts take most of the time. These pauses are not gaps.
    total_count(lengths) >= MIN_INTERVALS
        && total_count(&regular) * 5 >= total_count(lengths) * 4
        && total_time(&regular) * 2 >= total_time(lengths)
}

fn total_count(lengths: &[LengthCount]) -> u64 {
    lengths.iter().map(|interval| interval.count).sum()
}

/// Returns the total time of all intervals in nanoseconds.
fn total_time(lengths: &[LengthCount]) -> i128 {
    lengths.iter().map(|interval| i128::from(interval.length) * i128::from(interval.count)).sum()
}

/// Returns the standard deviation of the intervals in nanoseconds.
fn deviation(lengths: &[LengthCount]) -> Option<f64> {
    let number = total_count(lengths) as f64;
    if lengths.is_empty() {
        return None;
    }
    let weighted = |value: &dyn Fn(f64) -> f64| -> f64 {
        lengths.iter().map(|interval| value(interval.length as f64) * interval.count as f64).sum()
    };
    let mean = weighted(&|length| length) / number;
    Some((weighted(&|length| (length - mean).powi(2)) / number).sqrt())
}
