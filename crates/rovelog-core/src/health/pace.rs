//! The times of one topic: intervals counted by length, and the longest ones with their places.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::{Gap, TopicHealth};
use crate::TopicId;

/// The most different lengths of intervals that are counted of one topic; past it, they are rounded
/// down to a multiple of a power of two, a doubled one each time, but never to 0.
const MOST_LENGTHS: usize = 1 << 16;

/// Maximum number of gaps of a topic that are kept with their places. Further ones are shorter, and
/// are only counted.
const MOST_GAPS: usize = 1024;

/// Maximum number of gaps in [`TopicHealth::longest_gaps`].
const LISTED_GAPS: usize = 16;

/// The fewest intervals that tell a rate.
const FEWEST: u64 = 10;

/// A gap is longer than this many periods.
pub(super) const GAP: i64 = 3;

/// The lengths of intervals that are counted without a lookup: those of a steady topic are few.
const USUAL: usize = 8;

/// A topic that stops for this long before the end of the log, and for ten periods.
const STOPPED: i64 = 1_000_000_000;

/// The times of one topic, as they come in the file.
#[derive(Clone, Debug, Default)]
pub struct Pace {
    pub(super) count: u64,
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
    /// The longest intervals; sorted and cut to [`MOST_GAPS`] whenever there are twice as many.
    longest: Vec<Gap>,
    /// Length up to which further intervals are not among the longest.
    too_short: i64,
}

/// The health of a topic, and its gaps.
pub(super) struct Judged {
    pub(super) health: TopicHealth,
    /// Longest first; at most [`MOST_GAPS`].
    pub(super) gaps: Vec<Gap>,
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
        if length > self.too_short {
            self.longest.push(Gap { start: self.last, length });
            if self.longest.len() == 2 * MOST_GAPS {
                sort_longest(&mut self.longest);
                self.too_short = self.longest.last().map_or(0, |shortest| shortest.length);
            }
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

    /// Returns the health of a topic whose log's data ends at `end`. No gap is confirmed yet.
    pub(super) fn judge(&self, topic: TopicId, end: Option<i64>) -> Judged {
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
        let regular: Vec<_> = lengths
            .iter()
            .copied()
            .filter(|(length, _)| period.is_some_and(|period| near(period, *length)))
            .collect();
        let regular_count: u64 = regular.iter().map(|length| length.1).sum();
        // A topic that is published on demand comes in bursts: most of its intervals are regular, but
        // they cover little of its time.
        let steady = intervals >= FEWEST
            && regular_count * 5 >= intervals * 4
            && total_time(&regular) * 2 >= total_time(&lengths);
        let (gaps, others): (Vec<_>, Vec<_>) =
            lengths.iter().copied().partition(|(length, _)| steady && *length > limit);
        let mut longest = self.longest.clone();
        sort_longest(&mut longest);
        let longest_interval = longest.first().map(|interval| interval.length);
        longest.retain(|gap| steady && gap.length > limit);
        let silence =
            end.zip(period).filter(|_| steady).map(|(end, period)| (end.saturating_sub(self.latest), period));
        let health = TopicHealth {
            topic,
            count: self.count,
            first: (self.count > 0).then_some(self.first),
            latest: (self.count > 0).then_some(self.latest),
            period,
            steady,
            shortest: lengths.first().map(|length| length.0),
            longest: longest_interval,
            jitter: deviation(&others),
            gaps: gaps.iter().map(|gap| gap.1).sum(),
            confirmed: 0,
            longest_confirmed: None,
            missing: 0,
            longest_gaps: longest.iter().take(LISTED_GAPS).copied().collect(),
            falling: self.falling,
            first_fall: self.first_fall,
            repeated: self.repeated,
            silent: silence
                .filter(|(silent, period)| *silent > STOPPED.max(period.saturating_mul(10)))
                .map(|(silent, _)| silent),
            is_stuck: self.count >= FEWEST && self.repeated + 1 == self.count,
        };
        Judged { health, gaps: longest }
    }
}

/// Sorts intervals, the longest first and equally long ones in file order, and cuts them to
/// [`MOST_GAPS`].
fn sort_longest(intervals: &mut Vec<Gap>) {
    intervals.sort_by_key(|interval| Reverse(interval.length));
    intervals.truncate(MOST_GAPS);
}

/// Returns the time that intervals cover together, in nanoseconds.
fn total_time(lengths: &[(i64, u64)]) -> i128 {
    lengths.iter().map(|(length, count)| i128::from(*length) * i128::from(*count)).sum()
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
