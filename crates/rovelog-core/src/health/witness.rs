//! Confirmation of gaps by interruptions of the log and by gaps of other topics.
//!
//! A time span explains a gap if the rest of the gap, outside of the span, is at most three periods
//! long. For example, a topic with a period of 10 ms has a gap from 990 ms to 1200 ms. A dropout
//! from 1010 ms to 1190 ms leaves 20 ms before and 10 ms after it. That is three periods, so the
//! dropout explains the gap, and the gap is confirmed.

use std::ops::Range;

use super::Gap;
use super::pace::{GAP_PERIODS, TopicResult};

/// Maximum number of topics that can confirm gaps of other topics. The steady topics with the
/// shortest periods are used.
const WITNESSES: usize = 32;

/// Time spans in ascending order. No two of them overlap.
#[derive(Default)]
struct Spans {
    /// The time spans.
    spans: Vec<Range<i64>>,
    /// For each time span, the total length of the time spans before it.
    before: Vec<i128>,
}

impl Spans {
    /// Sorts time spans and joins those that overlap.
    fn new(mut spans: Vec<Range<i64>>) -> Self {
        spans.retain(|span| span.start < span.end);
        spans.sort_unstable_by_key(|span| span.start);
        spans.dedup_by(|next, last| {
            let overlaps = next.start <= last.end;
            if overlaps {
                last.end = last.end.max(next.end);
            }
            overlaps
        });
        let mut sum = 0;
        let before = spans.iter().map(|span| {
            let before = sum;
            sum += length(span);
            before
        });
        Self { before: before.collect(), spans }
    }

    /// Returns the total length of the time spans before `time`.
    fn covered_before(&self, time: i64) -> i128 {
        let next = self.spans.partition_point(|span| span.start < time);
        let Some(last) = next.checked_sub(1) else { return 0 };
        let span = &self.spans[last];
        self.before[last] + length(&(span.start..span.end.min(time)))
    }

    /// Returns whether the time spans explain a gap. This is the case if the rest of the gap,
    /// outside of the time spans, is too short for a gap.
    fn explain(&self, gap: &Range<i64>, period: i64) -> bool {
        let covered = self.covered_before(gap.end) - self.covered_before(gap.start);
        covered > 0 && length(gap) - covered <= i128::from(period.saturating_mul(GAP_PERIODS))
    }
}

/// Returns the length of a time span, which may exceed 64 bits.
fn length(span: &Range<i64>) -> i128 {
    i128::from(span.end) - i128::from(span.start)
}

/// Returns the time span of a gap.
fn span_of(gap: &Gap) -> Range<i64> {
    gap.start..gap.start.saturating_add(gap.length)
}

/// A steady topic that can confirm gaps of other topics.
struct Witness {
    /// Index of the topic in the list of topics.
    index: usize,
    /// Period of the topic in nanoseconds.
    period: i64,
    /// Time span from the first to the last record of the topic.
    data: Range<i64>,
    /// Time spans of the topic's gaps.
    gaps: Spans,
}

impl Witness {
    /// Supposes that no topic was recorded during `gap`, and returns whether this topic would then
    /// have a gap.
    fn would_show(&self, gap: &Range<i64>) -> bool {
        length(gap) > i128::from(self.period.saturating_mul(GAP_PERIODS))
            && self.data.start <= gap.start
            && self.data.end >= gap.end
    }
}

/// Confirms gaps that interruptions explain, and gaps that most topics have at the same time.
///
/// The topics that are compared are the topic with the gap, and the steady topics whose period is
/// short enough for such a gap. The gap is confirmed if more than half of these topics have a gap
/// at the same time.
///
/// For example, a setpoint with a period of 20 ms is published only in one flight mode, so it has a
/// gap of 60 s. The gyroscope and the attitude have no gap at that time, so no record is missing.
/// If all three topics have a gap of 200 ms, the records of that time are missing.
pub(super) fn confirm(topics: &mut [TopicResult], interruptions: &[Range<i64>]) {
    let interruptions = Spans::new(interruptions.to_vec());
    let witnesses = witnesses(topics);
    for (index, topic) in topics.iter_mut().enumerate() {
        let Some(period) = topic.health.period else { continue };
        for gap in &topic.gaps {
            let span = span_of(gap);
            if interruptions.explain(&span, period) || is_common(&span, index, period, &witnesses) {
                // The number of periods in the gap is rounded. The record at the end of the gap is
                // not missing.
                let missing = gap.length.saturating_add(period / 2) / period - 1;
                let health = &mut topic.health;
                health.confirmed += 1;
                health.longest_confirmed.get_or_insert(*gap);
                health.missing = health.missing.saturating_add(u64::try_from(missing).unwrap_or_default());
            }
        }
    }
}

/// Selects the steady topics with the shortest periods, which can confirm gaps of other topics.
fn witnesses(topics: &[TopicResult]) -> Vec<Witness> {
    let mut fastest: Vec<_> = topics
        .iter()
        .enumerate()
        .filter(|(_, topic)| topic.health.steady)
        .filter_map(|(index, topic)| Some((topic.health.period?, index)))
        .collect();
    fastest.sort_unstable();
    // A topic with a short period has gaps even for short interruptions, so it can best confirm
    // gaps.
    fastest.truncate(WITNESSES);
    let witness = |(period, index): (i64, usize)| {
        let TopicResult { health, gaps } = &topics[index];
        let gaps = Spans::new(gaps.iter().map(span_of).collect());
        Some(Witness { index, period, data: health.first?..health.latest?, gaps })
    };
    fastest.into_iter().filter_map(witness).collect()
}

/// Returns whether most topics have a gap at the time of `gap`. Only topics that were recorded
/// around this time and whose period is short enough for such a gap are considered.
fn is_common(gap: &Range<i64>, index: usize, period: i64, witnesses: &[Witness]) -> bool {
    let others = witnesses.iter().filter(|other| other.index != index && other.would_show(gap));
    let (mut witness_count, mut sharing_count) = (0, 0);
    for other in others {
        witness_count += 1;
        sharing_count += usize::from(other.gaps.explain(gap, period));
    }
    // The topic that has `gap` is counted as well, both as a topic and as a topic with a gap.
    sharing_count > 0 && (sharing_count + 1) * 2 > witness_count + 1
}

/// Returns the time spans in which bytes were lost. For each lost byte range, the time span is from
/// the last record before the range to the first record after it. Records are read only if a range
/// was lost.
#[cfg(feature = "arrow")]
pub(super) fn lost_spans(
    log: &dyn crate::LogReader,
    select: &crate::Select,
) -> crate::Result<Vec<Range<i64>>> {
    /// Offset and time of a record that was found.
    #[derive(Clone, Copy)]
    struct Found {
        offset: u64,
        nanos: i64,
    }

    let lost = &log.losses().ranges;
    if lost.is_empty() {
        return Ok(Vec::new());
    }
    // The lost byte ranges divide the file into parts. The two lists have the first and the last
    // record of each part.
    let mut earliest: Vec<Option<Found>> = vec![None; lost.len() + 1];
    let mut latest = earliest.clone();
    for record in log.intact_records(select) {
        let record = record?;
        let Some(time) = record.time else { continue };
        let found = Found { offset: record.offset, nanos: time.nanos };
        let part = lost.partition_point(|range| range.start <= found.offset);
        if earliest[part].is_none_or(|known| found.offset < known.offset) {
            earliest[part] = Some(found);
        }
        if latest[part].is_none_or(|known| found.offset >= known.offset) {
            latest[part] = Some(found);
        }
    }
    let span = |number: usize| {
        let before = latest[..=number].iter().rev().find_map(|found| *found)?;
        let behind = earliest[number + 1..].iter().find_map(|found| *found)?;
        Some(before.nanos..behind.nanos)
    };
    Ok((0..lost.len()).filter_map(span).collect())
}
