//! Tests of [`DataSpan`] and [`Spread`].

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
fn one_stale_record_does_not_extend_the_span() {
    let steady = times((0..650).map(|i| 20 * S + i * S / 100));
    let stale = times([20 * S, 1194 * S, 21 * S]);
    let data = span(&[steady, stale], Some(20 * S));
    assert_eq!(seconds(&data), (20, 26));
    let [outside] = data.outside.as_slice() else { panic!("{data:?}") };
    assert_eq!((outside.topic, outside.count, outside.offset), (TopicId(1), 1, 101));
    assert_eq!(outside.sentence("mission/0"), "1 record of mission/0 is 1167 s after all other records");
    let topic = |id, name: &str| Topic::new(TopicId(id), name.to_owned(), name.to_owned(), None);
    let mut topics = [topic(0, "steady"), topic(1, "mission")];
    let mut diagnostics = Diagnostics::new(&Limits::default());
    let spreads = [times((0..650).map(|i| 20 * S + i * S / 100)), times([20 * S, 1194 * S, 21 * S])];
    let spreads: Vec<_> = spreads.iter().map(Spread::intervals).collect();
    data.apply_to(&spreads, &mut topics, &mut diagnostics);
    assert_eq!(topics[0].rate_hz(), Some(100.0));
    assert_eq!(topics[1].rate_hz(), Some(1.0));
    assert_eq!(diagnostics.list()[0].range, 101..102);
}

#[test]
fn a_stuck_topic_is_outside_of_the_span() {
    let steady = times((0..2000).map(|i| 112 * S + i * S / 20));
    let stuck = times(std::iter::repeat_n(2 * S, 900));
    let early = times([3 * S, 150 * S]);
    let data = span(&[steady, stuck, early], Some(112 * S));
    assert_eq!(seconds(&data), (112, 211));
    let counts: Vec<_> = data.outside.iter().map(|outside| (outside.topic.0, outside.count)).collect();
    assert_eq!(counts, [(1, 900)]);
    assert_eq!(
        data.outside[0].sentence("commander_state/0"),
        "900 records of commander_state/0 are 110 s before all other records, all at the same time"
    );
    // The second topic is stuck at a time near the data of the first topic, so its records belong
    // to the data.
    let near = span(&[times((0..2000).map(|i| 9 * S + i)), times(std::iter::repeat_n(0, 900))], None);
    assert_eq!((seconds(&near), near.outside.len()), ((0, 9), 0));
    // If most records have the same time because their topic is stuck, that time belongs to the
    // log.
    let most = span(&[times((0..20).map(|i| 90 * S + i * S)), times(std::iter::repeat_n(0, 900))], None);
    assert_eq!((seconds(&most), most.outside.len()), ((0, 109), 0));
}

#[test]
fn a_log_with_pauses_has_one_span() {
    // The log has two sessions a day apart, and the second session is short.
    let second = (0..5).map(|i| 86_400 * S + i * S / 10);
    let sessions = times((0..1000).map(|i| i * S / 100).chain(second));
    assert_eq!(seconds(&span(&[sessions], None)), (0, 86_400));
    // A slow sensor has a minute between two records.
    let slow = times((0..300).map(|i| i * 60 * S));
    let data = span(&[slow, times([0, 600 * S])], None);
    assert_eq!((seconds(&data), data.outside.len()), ((0, 299 * 60), 0));
    // A small log may have a long pause before its last record.
    assert_eq!(seconds(&span(&[times([0, S, 2 * S, 500 * S])], None)), (0, 500));
}

#[test]
fn times_of_another_clock_do_not_extend_the_span() {
    let unix = 1_700_000_000 * S;
    let steady = times((0..10_000).map(|i| unix + i * S / 100));
    let simulated = times((0..50).map(|i| i * S / 10));
    let data = span(&[steady, simulated], None);
    assert_eq!((seconds(&data), data.outside.len()), ((1_700_000_000, 1_700_000_099), 1));
    assert_eq!(data.outside[0].count, 50);
    assert!(data.outside[0].sentence("sim").ends_with("19675 days before all other records"));
    // A small log has one record of another clock. Another small log has 19 such records with
    // different times.
    let few = || (0..20).map(|i| unix + i * S / 10);
    let data = span(&[times(few().chain([5 * S]))], None);
    assert_eq!((seconds(&data), data.outside.len()), ((1_700_000_000, 1_700_000_001), 1));
    let data = span(&[times((0..19).map(|i| i * S / 10).chain(few()))], None);
    assert_eq!((seconds(&data), data.outside[0].count), ((1_700_000_000, 1_700_000_001), 19));
    // If both clocks have the same number of records, neither of them is known to be wrong.
    let data = span(&[times((0..20).map(|i| i * S / 10).chain(few()))], None);
    assert_eq!((seconds(&data), data.outside.len()), ((0, 1_700_000_001), 0));
}

#[test]
fn records_within_ten_seconds_belong_to_the_data() {
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
    // The topic is stuck at 95 s. This is shortly before the start time of 100 s that the log
    // states.
    let data = span(&[steady(), times(std::iter::repeat_n(95 * S, 20))], Some(100 * S));
    assert_eq!((seconds(&data), data.outside.len()), ((100, 109), 0));
    assert!(data.holds(data.start.nanos) && data.holds(data.end.nanos) && !data.holds(95 * S));
}

#[test]
fn a_plausible_stated_start_is_used() {
    let steady = || times((0..1000).map(|i| 2 * YEAR + i * S / 100));
    let start = |start| span(&[steady()], Some(start)).start.nanos;
    assert_eq!(start(2 * YEAR - 5 * S), 2 * YEAR - 5 * S);
    assert_eq!((start(YEAR), start(YEAR - 1)), (YEAR, 2 * YEAR));
    let last = 2 * YEAR + 9 * S + 990_000_000;
    assert_eq!((start(last), start(last + 1)), (last, 2 * YEAR));
}

#[test]
fn records_outside_are_grouped_by_side() {
    let steady = times((0..1000).map(|i| 100 * S + i * S / 100));
    let data = span(&[steady, times([S, 500 * S, 600 * S])], None);
    assert_eq!(seconds(&data), (100, 109));
    let [before, after] = data.outside.as_slice() else { panic!("{data:?}") };
    assert_eq!((before.count, before.distance, before.offset), (1, -99 * S, 100));
    assert_eq!((before.first.nanos, before.last.nanos), (S, S));
    assert_eq!((after.count, after.distance, after.offset), (2, 390 * S + 10_000_000, 101));
    assert_eq!((after.first.nanos, after.last.nanos), (500 * S, 600 * S));
    assert_eq!(after.sentence("a"), "2 records of a are 390 s after all other records");
}

/// The body of a log starts as the cluster with most records. Records after a long pause also
/// belong to the body if they follow each other closely, even if they are few.
#[test]
fn the_body_grows_over_records_that_are_not_stale() {
    // The first cluster has fewer records than the second cluster, but belongs to the body as well.
    let parts = (0..100).map(|i| i * S / 10).chain((0..1000).map(|i| 100 * S + i * S / 100));
    assert_eq!(seconds(&span(&[times(parts)], None)), (0, 109));
    // In the first log, the pause before the last record is as long as the body. In the second log,
    // the pause is longer, so the last record does not belong to the body.
    let steady = |last: i64| times((0..1000).map(|i| i * S / 10).chain([last]));
    let length = 99 * S + 900_000_000;
    assert_eq!(seconds(&span(&[steady(2 * length)], None)), (0, 199));
    assert_eq!(seconds(&span(&[steady(2 * length + 1)], None)), (0, 99));
    // A single record of one topic and several records of another topic are a session. Such a
    // session belongs to the body if it is at most a year away.
    let session = |pause: i64| {
        let second = length + pause;
        [steady(second), times((0..3).map(|i| second + 2 * S + i * S / 10))]
    };
    assert_eq!(seconds(&span(&session(1000 * S), None)), (0, 1102));
    assert_eq!(span(&session(YEAR), None).end.nanos, length + YEAR + 2 * S + 200_000_000);
    assert_eq!(span(&session(YEAR + 1), None).end.nanos, length);
}

#[test]
fn single_times_ten_seconds_apart_are_one_cluster() {
    let then = |count: i64, last: [i64; 2]| times((0..count).map(|i| i * S / 1000).chain(last));
    // Each of the last two records is at most ten seconds after the record before it, so both of
    // them belong to the data.
    let data = span(&[then(1000, [6 * S, 15 * S])], None);
    assert_eq!((seconds(&data), data.outside.len()), ((0, 15), 0));
    // After a long pause, records with single times are outliers if they are at most 1 % of all
    // records. Two of 152 records are more than 1 %. One of 152 records is less than 1 %.
    assert_eq!(seconds(&span(&[then(150, [100 * S, 105 * S])], None)), (0, 105));
    assert_eq!(seconds(&span(&[then(150, [0, 105 * S])], None)), (0, 0));
}

#[test]
fn durations_have_few_digits() {
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
    // If there is one interval more than the maximum, the two nearest intervals are joined.
    let mut spread = times((0..16).map(|i| 10 * i * S));
    assert_eq!(spread.intervals().len(), MAX_INTERVALS);
    let mut near = spread.clone();
    near.push(20 * S + 1, 7);
    assert_eq!((near.intervals().len(), near.intervals()[2].count), (MAX_INTERVALS, 2));
    spread.push(155 * S, 7);
    let intervals = spread.intervals();
    assert_eq!((intervals.len(), spread.is_ascending()), (MAX_INTERVALS, true));
    assert_eq!(intervals[15], Interval { first: 150 * S, last: 155 * S, count: 2, offset: 7 });
    spread.push(152 * S, 8);
    assert!(!spread.is_ascending());
}

#[test]
fn times_up_to_a_second_apart_are_one_interval() {
    assert_eq!(Spread::default().intervals(), []);
    let ends = |list: &[i64]| -> Vec<_> {
        let intervals = times(list.iter().copied()).intervals();
        intervals.iter().map(|interval| (interval.first, interval.last, interval.count)).collect()
    };
    assert_eq!(ends(&[5 * S, 6 * S, 4 * S]), [(4 * S, 6 * S, 3)]);
    assert_eq!(ends(&[5 * S, 6 * S + 1]), [(5 * S, 5 * S, 1), (6 * S + 1, 6 * S + 1, 1)]);
    assert_eq!(ends(&[5 * S, 4 * S - 1]), [(4 * S - 1, 4 * S - 1, 1), (5 * S, 5 * S, 1)]);
    // A time between two intervals joins these intervals.
    assert_eq!(ends(&[5 * S, 7 * S, 6 * S]), [(5 * S, 7 * S, 3)]);
}

/// For any order and any number of intervals, the number of records and the earliest and latest
/// time must be exact.
#[test]
fn intervals_count_every_record() {
    let mut state = 1u64;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33).cast_signed()
    };
    for range in [S, 20 * S, 2000 * S] {
        let all: Vec<i64> = (0..5000).map(|_| random() * 1_000_003 % range).collect();
        let intervals = times(all.iter().copied()).intervals();
        assert!(intervals.len() <= MAX_INTERVALS, "{intervals:?}");
        assert_eq!(intervals.iter().map(|interval| interval.count).sum::<u64>(), 5000);
        assert_eq!(intervals.first().map(|first| first.first), all.iter().min().copied());
        assert_eq!(intervals.last().map(|last| last.last), all.iter().max().copied());
        assert!(intervals.windows(2).all(|pair| pair[0].last < pair[1].first), "{intervals:?}");
    }
    let extremes = times([i64::MIN, 0, i64::MAX, i64::MIN]).intervals();
    assert_eq!(extremes.iter().map(|interval| interval.count).collect::<Vec<_>>(), [2, 1, 1]);
}
