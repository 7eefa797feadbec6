//! Tests of gaps, of their confirmation, and of the summary.

#![allow(
    clippy::single_range_in_vec_init,
    clippy::cloned_ref_to_slice_refs,
    reason = "a list of gaps that has one"
)]

use super::*;
use crate::Topic;

fn health(times: impl IntoIterator<Item = i64>, end: i64) -> TopicHealth {
    let mut pace = Pace::default();
    times.into_iter().for_each(|nanos| pace.push(nanos));
    pace.evaluate(TopicId(0), Some(end)).health
}

const MS: i64 = 1_000_000;

#[test]
fn extreme_times_do_not_overflow() {
    let found = health([i64::MIN, i64::MAX, 0, i64::MAX, i64::MIN], i64::MAX);
    assert_eq!((found.count, found.period, found.steady), (5, Some(i64::MAX), false));
    let far = health((0..20).chain([i64::MAX - 1]), i64::MIN);
    assert!(!far.steady && far.gaps == 0 && far.silent.is_none());
}

#[test]
fn a_gap_is_longer_than_three_periods_of_a_steady_topic() {
    let times = (0..20).chain(23..40).chain(44..60).map(|i| i * 10 * MS);
    let found = health(times, 600 * MS);
    assert_eq!((found.period, found.steady, found.gaps, found.missing), (Some(10 * MS), true, 2, 0));
    let gaps: Vec<_> = found.longest_gaps.iter().map(|gap| (gap.start, gap.length)).collect();
    assert_eq!(gaps, [(390 * MS, 50 * MS), (190 * MS, 40 * MS)]);
    assert_eq!((found.jitter, found.silent), (Some(0.0), None));
    // If two records are missing, the interval is exactly three periods, which is not a gap.
    assert_eq!(health((0..20).chain(22..40).map(|i| i * 10 * MS), 0).gaps, 0);
}

#[test]
fn a_topic_without_a_rate_has_no_gaps() {
    let found = health((0..12).map(|i| i * i * i * MS), 0);
    assert_eq!((found.steady, found.gaps, found.nominal_hz()), (false, 0, None));
    assert!(!health((0..10).map(|i| i * MS), 0).steady, "nine intervals are too few");
}

#[test]
fn a_topic_with_bursts_has_no_gaps() {
    // Each burst has eleven records at regular intervals of 10 ms, followed by a pause. In the
    // first log, the bursts cover at least half of the total time, so the rate is steady. In the
    // second log, they cover less.
    let bursts =
        |silence: i64| (0..4).flat_map(move |burst| (0..11).map(move |i| burst * (10 + silence) + i));
    let found = health(bursts(13).map(|i| i * 10 * MS), 0);
    assert_eq!((found.steady, found.gaps), (true, 3));
    let found = health(bursts(14).map(|i| i * 10 * MS), 0);
    assert_eq!((found.steady, found.gaps, found.silent), (false, 0, None));
}

#[test]
fn decreasing_repeated_and_missing_times_are_counted() {
    let found = health((0..20).chain([18, 18, 18]).chain(19..30).map(|i| i * 10 * MS), 2_000 * MS);
    assert_eq!((found.falling, found.first_fall, found.repeated), (1, Some(180 * MS), 2));
    assert_eq!(found.silent, Some(1_710 * MS));
    assert!(health(std::iter::repeat_n(5, 10), 5).is_stuck && !health([5; 9], 5).is_stuck);
}

#[test]
fn many_different_intervals_are_rounded() {
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
fn rounded_intervals_stay_positive() {
    let mut time = 0;
    let mut pass = |length: i64| {
        time += length;
        time
    };
    let times = (2..66_002).flat_map(|length| [length, 1, 1, 1, 1, 1]).map(&mut pass).collect::<Vec<_>>();
    let found = health(times, 0);
    assert_eq!((found.period, found.shortest, found.steady), (Some(1), Some(1), false));
}

/// Returns the times of a topic with a period of `period` ms and with these gaps.
fn pace(period: i64, gaps: &[Range<i64>]) -> Pace {
    let mut pace = Pace::default();
    let times = (0..=3_000 / period).map(|i| i * period);
    times.filter(|time| !gaps.iter().any(|gap| gap.contains(time))).for_each(|time| pace.push(time * MS));
    pace
}

/// For each topic, returns the numbers of gaps, of confirmed gaps and of missing records.
fn confirmed(paces: &[Pace], interruptions: &[Range<i64>]) -> Vec<(u64, u64, u64)> {
    let interruptions: Vec<_> = interruptions.iter().map(|span| span.start * MS..span.end * MS).collect();
    let health = Health::new(paces.to_vec(), Some(3_000 * MS), &interruptions);
    health.topics.iter().map(|topic| (topic.gaps, topic.confirmed, topic.missing)).collect()
}

#[test]
fn a_gap_of_a_single_topic_is_not_confirmed() {
    let paces = [pace(10, &[1_000..1_200]), pace(10, &[]), pace(20, &[])];
    assert_eq!(confirmed(&paces, &[]), [(1, 0, 0), (0, 0, 0), (0, 0, 0)]);
    let health = Health::new(paces.to_vec(), None, &[]);
    assert_eq!(health.sentence(&|_| "a"), "no confirmed gaps in 3 steady topics");
    assert_eq!(confirmed(&paces[..1], &[]), [(1, 0, 0)]);
}

#[test]
fn a_dropout_confirms_the_gap_that_it_explains() {
    // The last record before the gap is at 990 ms, and the next record is at 1200 ms.
    let paces = [pace(10, &[1_000..1_200]), pace(10, &[])];
    assert_eq!(confirmed(&paces, &[1_000..1_190]), [(1, 1, 20), (0, 0, 0)]);
    assert_eq!(confirmed(&paces, &[1_010..1_190]), [(1, 1, 20), (0, 0, 0)], "three periods are no gap");
    assert_eq!(confirmed(&paces, &[1_011..1_190]), [(1, 0, 0), (0, 0, 0)]);
    // Two dropouts overlap each other in the gap, and a third dropout is at another time.
    assert_eq!(confirmed(&paces, &[1_090..1_190, 500..600, 1_010..1_100]), [(1, 1, 20), (0, 0, 0)]);
    assert_eq!(confirmed(&paces, &[500..600]), [(1, 0, 0), (0, 0, 0)]);
}

#[test]
fn a_gap_of_most_topics_is_confirmed() {
    let gap = 1_000..1_200;
    let two = [pace(10, &[gap.clone()]), pace(20, &[gap.clone()])];
    assert_eq!(confirmed(&two, &[]), [(1, 1, 20), (1, 1, 10)]);
    // Two of four topics have the gap. They are not a majority, so the gap is not confirmed.
    let four = [pace(10, &[gap.clone()]), pace(20, &[gap.clone()]), pace(10, &[]), pace(20, &[])];
    assert!(confirmed(&four, &[]).iter().all(|topic| topic.1 == 0));
    // A topic is not considered if its period is too long for such a gap, or if it ends earlier.
    let mut ended = Pace::default();
    (0..50).for_each(|i| ended.push(i * 10 * MS));
    let others = [pace(10, &[gap.clone()]), pace(20, &[gap.clone()]), pace(100, &[]), ended];
    assert_eq!(confirmed(&others, &[])[..2], [(1, 1, 20), (1, 1, 10)]);
    // A short gap that most topics have does not confirm a long gap that contains it.
    let long = [pace(10, &[500..1_500]), pace(10, &[gap.clone()]), pace(10, &[gap])];
    assert_eq!(confirmed(&long, &[]), [(1, 0, 0), (1, 1, 20), (1, 1, 20)]);
}

#[test]
fn the_summary_has_the_longest_confirmed_gap() {
    let paces = [pace(10, &[500..600]), pace(10, &[500..600]), pace(10, &[500..600, 1_000..2_000])];
    let topics = ["a", "b", "c"].map(|name| Topic::new(TopicId(0), name.to_owned(), String::new(), None));
    let name = |id: TopicId| topics[id.index()].name.as_str();
    let health = Health::new(paces.to_vec(), Some(3_000 * MS), &[]);
    assert_eq!(health.sentence(&name), "3 of 3 steady topics lack records; the longest gap is 0.110 s in a");
    assert_eq!(health.of(&topics[0]).unwrap().count, 291);
    let longest = health.topics[2].longest_confirmed.unwrap();
    assert_eq!((longest.start, longest.length), (490 * MS, 110 * MS));
    assert_eq!(health.topics[2].longest_gaps.len(), 2);
    assert_eq!(Health::new(Vec::new(), None, &[]).sentence(&|_| ""), "no topic has a steady rate");
}

#[test]
fn the_longest_of_many_gaps_are_stored() {
    let mut times = Vec::new();
    let mut time = 0;
    for i in 0..3_000 {
        (0..10).for_each(|_| {
            time += 10;
            times.push(time);
        });
        time += 40 + i % 7;
    }
    let found = health(times, time);
    assert_eq!((found.steady, found.gaps, found.longest_gaps.len()), (true, 2_999, 16));
    // All of the longest gaps have the same length, so they are listed in file order.
    assert!(found.longest_gaps.iter().all(|gap| gap.length == 56));
    assert!(found.longest_gaps.is_sorted_by_key(|gap| gap.start));
    assert_eq!(found.longest_gaps[0].start, 955);
}
