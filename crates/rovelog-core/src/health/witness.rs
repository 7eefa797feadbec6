//! Witnesses of lost records: which gaps are confirmed by something else than the topic itself.

use std::ops::Range;

use super::Gap;
use super::pace::{GAP, Judged};

/// Number of steady topics, those of the shortest periods, whose gaps confirm those of others.
const WITNESSES: usize = 32;

/// Spans of time that do not overlap, ascending.
#[derive(Default)]
struct Spans {
    spans: Vec<Range<i64>>,
    /// For each span, the time that the spans before it cover together.
    before: Vec<i128>,
}

impl Spans {
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

    /// Returns how much of the time before `time` the spans cover.
    fn covered_before(&self, time: i64) -> i128 {
        let next = self.spans.partition_point(|span| span.start < time);
        let Some(last) = next.checked_sub(1) else { return 0 };
        let span = &self.spans[last];
        self.before[last] + length(&(span.start..span.end.min(time)))
    }

    /// Returns whether a gap would be none without the time that these spans cover.
    fn explain(&self, gap: &Range<i64>, period: i64) -> bool {
        let covered = self.covered_before(gap.end) - self.covered_before(gap.start);
        covered > 0 && length(gap) - covered <= i128::from(period.saturating_mul(GAP))
    }
}

fn length(span: &Range<i64>) -> i128 {
    i128::from(span.end) - i128::from(span.start)
}

fn span_of(gap: &Gap) -> Range<i64> {
    gap.start..gap.start.saturating_add(gap.length)
}

/// A steady topic whose gaps confirm those of others.
struct Witness {
    place: usize,
    period: i64,
    data: Range<i64>,
    gaps: Spans,
}

impl Witness {
    /// Returns whether the topic would have a gap, too, if no topic was recorded in this span.
    fn would_show(&self, gap: &Range<i64>) -> bool {
        length(gap) > i128::from(self.period.saturating_mul(GAP))
            && self.data.start <= gap.start
            && self.data.end >= gap.end
    }
}

/// Confirms the gaps that an interruption explains, and those that most other topics have too: of
/// the fastest steady topics that would show the gap, together with the topic itself, more than half
/// have one at the same time.
///
/// A setpoint that is published every 20 ms in one flight mode alone has a gap of 60 s. The gyroscope
/// and the attitude go on, so nothing is missing. If all three have a gap of 200 ms, records of that
/// time are missing.
pub(super) fn confirm(topics: &mut [Judged], interruptions: &[Range<i64>]) {
    let interruptions = Spans::new(interruptions.to_vec());
    let witnesses = witnesses(topics);
    for (place, topic) in topics.iter_mut().enumerate() {
        let Some(period) = topic.health.period else { continue };
        for gap in &topic.gaps {
            let span = span_of(gap);
            if interruptions.explain(&span, period) || is_common(&span, place, period, &witnesses) {
                let missing = gap.length.saturating_add(period / 2) / period - 1;
                let health = &mut topic.health;
                health.confirmed += 1;
                health.longest_confirmed.get_or_insert(*gap);
                health.missing = health.missing.saturating_add(u64::try_from(missing).unwrap_or_default());
            }
        }
    }
}

fn witnesses(topics: &[Judged]) -> Vec<Witness> {
    let mut fastest: Vec<_> = topics
        .iter()
        .enumerate()
        .filter(|(_, topic)| topic.health.steady)
        .filter_map(|(place, topic)| Some((topic.health.period?, place)))
        .collect();
    fastest.sort_unstable();
    fastest.truncate(WITNESSES);
    let witness = |(period, place): (i64, usize)| {
        let Judged { health, gaps } = &topics[place];
        let gaps = Spans::new(gaps.iter().map(span_of).collect());
        Some(Witness { place, period, data: health.first?..health.latest?, gaps })
    };
    fastest.into_iter().filter_map(witness).collect()
}

fn is_common(gap: &Range<i64>, place: usize, period: i64, witnesses: &[Witness]) -> bool {
    let others = witnesses.iter().filter(|other| other.place != place && other.would_show(gap));
    let (mut asked, mut sharing) = (0, 0);
    for other in others {
        asked += 1;
        sharing += usize::from(other.gaps.explain(gap, period));
    }
    sharing > 0 && (sharing + 1) * 2 > asked + 1
}

/// Returns the spans of time from which the log lost bytes: for each range of lost bytes, from the
/// last record before to the first record behind. Records are read only if there is such a range.
#[cfg(feature = "arrow")]
pub(super) fn lost_spans(
    log: &dyn crate::LogReader,
    select: &crate::Select,
) -> crate::Result<Vec<Range<i64>>> {
    /// Offset and time of a record.
    #[derive(Clone, Copy)]
    struct Found {
        offset: u64,
        nanos: i64,
    }

    let lost = &log.losses().ranges;
    if lost.is_empty() {
        return Ok(Vec::new());
    }
    // Of the records between two lost ranges: the first and the last of the file.
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
