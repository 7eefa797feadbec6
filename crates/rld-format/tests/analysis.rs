//! Sums, merged currents and powers are compared with those of an independent parser. Windows,
//! events, states and levels are compared with direct passes over the rows.

mod support;

use rld_format::analysis::{
    Current, Events, Levels, MARGIN_SETTLED, Phase, Source, StateRuns, Stats, StatsOptions, Threshold,
    Windows, currents,
};
use rld_format::clock::{TRUE_SECOND, TimeOptions};
use std::io::Cursor;

use rld_format::unit::Unit;
use rld_format::wire::BlockTimes;
use rld_format::{ChannelSpec, LogSpec, RldError, RldReader, RldWriter, encode_row};
use rovelog_core::internal::parallel::Jobs;
use rovelog_testing::{Log, read_json, sha256};
use serde_json::Value as Json;
use support::{LOGS, int, open};

fn expected(name: &str) -> Json {
    read_json(&LOGS.folder().expect("a folder").join(format!("expected/{name}.rld.json")))
}

fn log(name: &str) -> Option<RldReader> {
    LOGS.real_log(name).map(|log| open(&log.bytes))
}

fn check_sums(log: &Log) {
    let want = expected(&log.name);
    let reader = open(&log.bytes);
    let mut sums = reader.accumulator(&StatsOptions::default().over_all()).expect("rows");
    let stats = sums.stats(0..reader.rows());
    for jobs in [1, 3] {
        let jobs = Jobs::from(std::num::NonZero::new(jobs).expect("not 0"));
        assert_eq!(sums.stats_on(jobs, 0..reader.rows()), stats, "{}: {jobs:?}", log.name);
    }
    for (sums, want) in stats.channels.iter().zip(want["analog"].as_array().expect("analog")) {
        let what = format!("{} {}", log.name, want["name"]);
        assert_eq!(int(&want["sum"]), sums.sum, "{what}");
        assert_eq!(int(&want["sum_sq"]), sums.sum_sq.cast_signed(), "{what}");
        assert_eq!((int(&want["min"]), int(&want["max"])), (sums.min, sums.max), "{what}");
        assert_eq!(int(&want["count"]), i128::from(sums.count), "{what}");
    }
    for (ones, want) in stats.ones.iter().zip(want["binary"].as_array().into_iter().flatten()) {
        assert_eq!(int(&want["ones"]), i128::from(*ones), "{} {}", log.name, want["name"]);
    }
}

#[test]
fn sums_equal_those_of_an_independent_parser() {
    LOGS.real().iter().for_each(check_sums);
}

#[test]
fn merged_currents_and_powers_equal_those_of_an_independent_parser() {
    let mut checked = 0;
    for log in LOGS.real() {
        let want = expected(&log.name);
        let Some(merged) = want["merged"].as_object() else { continue };
        let reader = open(&log.bytes);
        let list = currents(reader.channels());
        for (name, want) in merged {
            let margin = if name.ends_with("_margin5") { MARGIN_SETTLED } else { 0 };
            let stem = name.trim_end_matches("_margin5");
            let number = list.iter().position(|current| current.name == stem).expect("a current");
            let values = reader.merged(&list[number], margin, 0..reader.rows());
            let mut column = Vec::new();
            for (_, value) in &values {
                column.extend(value.to_le_bytes());
            }
            assert_eq!(want["sha256_i64le"], sha256(&column), "{} {name}", log.name);
            assert_eq!(int(&want["scale"]), i128::from(list[number].scale));
            let low = values.iter().filter(|(source, _)| *source == Source::Low).count();
            assert_eq!(int(&want["rows_from_low"]), low as i128, "{} {name}", log.name);

            let power = &want["power_sum"];
            let mut options = StatsOptions::default().with_margin(margin);
            if power.is_object() {
                options =
                    options.with_powers([format!("{}*{stem}", power["with"].as_str().expect("a name"))]);
            }
            let mut sums = reader.accumulator(&options).expect("rows");
            let stats = sums.stats(0..reader.rows());
            let current = &stats.currents[number];
            assert_eq!(int(&want["sum"]), current.sum, "{} {name}", log.name);
            assert_eq!(
                (int(&want["min"]), int(&want["max"])),
                (current.min, current.max),
                "{} {name}",
                log.name
            );
            assert_eq!(low as u64, stats.from_low[number], "{} {name}", log.name);
            if power.is_object() {
                assert_eq!(int(&power["sum"]), stats.powers[0].sum, "{} {name}", log.name);
                assert_eq!(int(&power["scale"]), i128::from(sums.powers()[0].scale), "{} {name}", log.name);
            }
            checked += 1;
        }
    }
    assert!(checked > 20 || LOGS.folder().is_none(), "only {checked} currents");
}

#[test]
fn a_power_can_be_named_in_either_order() {
    let log = LOGS.corpus().into_iter().find(|log| log.name == "range-switches").expect("a case");
    let reader = open(&log.bytes);
    let sums = |power: &str| -> Result<_, RldError> {
        let options = StatsOptions::default().with_powers([power]);
        Ok(reader.accumulator(&options)?.stats(0..reader.rows()).powers)
    };
    let want = sums("V1*I1").expect("a power");
    for power in ["I1*V1", "I1 * V1", "I1*(V1)"] {
        assert_eq!(sums(power).expect("a power"), want, "{power}");
    }
    let error = rovelog_core::Error::from(sums("P1").expect_err("no power"));
    assert!(error.to_string().contains("is not a voltage times a current"), "{error}");
    assert!(error.next.is_some());
}

/// If a log is divided into ranges of rows, the merged sums of the ranges are the sums over the
/// whole log.
#[test]
fn sums_do_not_depend_on_the_parts() {
    let Some(reader) = log("test_unsupported") else { return };
    let options = StatsOptions::default().with_powers(["V1*I1", "(V1-V2)*I2"]);
    let mut sums = reader.accumulator(&options).expect("rows");
    let want = sums.stats(0..reader.rows());
    assert!(want.from_low[1] > 0 && want.from_low[1] < reader.rows());
    for step in [1009, 7919, 50_000] {
        let mut total = Stats::default();
        let mut at = 0;
        while at < reader.rows() {
            total.merge(&sums.stats(at..at + step));
            at += step;
        }
        assert_eq!(total.currents, want.currents, "{step}");
        assert_eq!(total, want, "{step}");
    }
    // If the sums of channels are not requested, the sums of currents and powers are the same.
    let mut currents = reader.accumulator(&options.only_currents()).expect("rows");
    let got = currents.stats(0..reader.rows());
    assert!(got.channels.iter().all(|sums| sums.count == 0));
    assert_eq!(Stats { channels: want.channels.clone(), ..got }, want);
}

#[test]
fn windows_contain_the_rows_that_start_in_them() {
    let Some(reader) = log("test_full") else { return };
    let times = reader.times(TimeOptions::default());
    let mut sums = reader.accumulator(&StatsOptions::default()).expect("rows");
    let whole = sums.stats(0..reader.rows());
    let second = 1_000_000_000;
    let windows: Vec<_> = Windows::new(second, Phase::Start, &times, (reader.rows(), 1000)).collect();
    let mut total = Stats::default();
    let mut next = 0;
    for window in &windows {
        assert_eq!(window.rows.start, next);
        next = window.rows.end;
        // Row r starts r * 1 003 520 ns after the first row.
        let starts = |row: u64| i128::from(row) * i128::from(TRUE_SECOND) / 1000;
        assert_eq!(starts(window.rows.start) / i128::from(second), i128::from(window.number));
        total.merge(&sums.stats(window.rows.clone()));
    }
    assert_eq!((next, &total), (reader.rows(), &whole));
    assert_eq!(
        windows.iter().map(|window| window.partial).collect::<Vec<_>>(),
        [false, false, false, false, false, true]
    );
    let clocked: Vec<_> = Windows::new(second, Phase::Clock, &times, (reader.rows(), 1000)).collect();
    assert!(clocked[0].partial && clocked[0].rows.end < 997);
    let first = times.time(clocked[1].rows.start).expect("a time");
    assert!(first.rem_euclid(second) < 1_003_520, "{first}");
}

/// Events are joined if there are fewer rows between them than requested. Rows between joined
/// events belong to the joined event.
#[test]
fn events_are_joined_across_fewer_rows_than_requested() {
    let channels = vec![ChannelSpec::analog("V1", Unit::Volt, -8)];
    let header = LogSpec { block_rows: 20, channels, ..LogSpec::new(1000) }.header().expect("valid");
    let mut writer = RldWriter::new(Cursor::new(Vec::new()), header).expect("memory");
    let (layout, mut rows) = (writer.layout().clone(), Vec::new());
    for value in [0, 5, 0, 5, 5, 0, 0, 5, 0, 0, 0, 5] {
        encode_row(&layout, &[], &[value], &mut rows).expect("it fits");
    }
    writer.block(&BlockTimes::new(1, 1).expect("block times"), &rows).expect("memory");
    let reader = open(&writer.finish_in_place().expect("memory").0.into_inner().into());
    let events = |join: u64| {
        let threshold = Threshold::new(3, 3).joined_within(join);
        Events::of_channel(&reader, 0, threshold).collect::<Vec<_>>()
    };
    assert_eq!(events(0), [1..2, 3..5, 7..8, 11..12]);
    assert_eq!(events(1), events(0));
    assert_eq!(events(2), [1..5, 7..8, 11..12]);
    assert_eq!(events(3), [1..8, 11..12]);
    assert_eq!(events(4).first(), Some(&(1..12)));
}

/// The times of rows, not their numbers, decide to which window they belong. So windows within a
/// gap are skipped.
#[test]
fn windows_within_a_gap_are_skipped() {
    const BLOCK: i128 = 20 * 1_003_520;
    let channels = vec![ChannelSpec::analog("V1", Unit::Volt, -8)];
    let header = LogSpec { block_rows: 20, channels, ..LogSpec::new(1000) }.header().expect("valid");
    let mut writer = RldWriter::new(Cursor::new(Vec::new()), header).expect("memory");
    let rows = vec![0; 20 * writer.layout().row];
    // After three regular blocks, two blocks are much later. Then the clocks go back, and the last
    // block is regular again.
    for block in [0, 1, 2, 500_000_000, 500_000_001, 5] {
        let at = block * BLOCK;
        let times = BlockTimes::new(1_700_000_000_000_000_000 + at, 987_000 + at).expect("in range");
        writer.block(&times, &rows).expect("memory");
    }
    let reader = open(&writer.finish_in_place().expect("memory").0.into_inner().into());
    let times = reader.times(TimeOptions::default());
    let window = i64::try_from(2 * BLOCK).expect("small");
    let windows = Windows::new(window, Phase::Start, &times, (reader.rows(), 1000));
    let found: Vec<_> = windows.map(|window| (window.number, window.rows, window.partial)).collect();
    let far = 250_000_000;
    assert_eq!(found, [(0, 0..40, false), (1, 40..60, false), (far, 60..120, true)]);
}

#[test]
fn states_and_events_are_those_of_a_plain_scan() {
    let Some(reader) = log("test_unsupported") else { return };
    let bit = reader.channel("I2L_valid").expect("a channel");
    let mut sums = reader.accumulator(&StatsOptions::default()).expect("rows");
    let whole = sums.stats(0..reader.rows());
    let runs: Vec<_> = StateRuns::new(&reader, &[bit]).collect();
    assert!(runs.len() > 50, "{} runs", runs.len());
    let mut total = Stats::default();
    for run in &runs {
        assert!(
            run.rows
                .clone()
                .all(|row| u64::from(reader.row(row).and_then(|r| r.bit(bit)).expect("a bit")) == run.state)
        );
        total.merge(&sums.stats(run.rows.clone()));
    }
    assert_eq!(total, whole);

    let v1 = reader.channel("V1").expect("a channel");
    let value = |row: u64| reader.row(row).and_then(|row| row.raw(v1)).expect("a value");
    let mean = i64::try_from(whole.channels[v1 - 8].sum / i128::from(whole.rows)).expect("small");
    let threshold = Threshold::new(mean, mean);
    let events: Vec<_> = Events::of_channel(&reader, v1, threshold).collect();
    let above: u64 = events.iter().map(|rows| rows.end - rows.start).sum();
    assert_eq!(above, (0..reader.rows()).filter(|row| value(*row) >= mean).count() as u64);
    assert!(events.windows(2).all(|pair| pair[0].end < pair[1].start));

    // If events are joined and have a minimum length, there are fewer events, and only short events
    // are dropped.
    let threshold = Threshold::new(mean, mean).joined_within(50).at_least(20);
    let joined: Vec<_> = Events::of_channel(&reader, v1, threshold).collect();
    assert!(joined.len() < events.len());
    assert!(joined.iter().all(|rows| rows.end - rows.start >= 20));
    assert!(joined.windows(2).all(|pair| pair[1].start - pair[0].end >= 50));
}

#[test]
fn levels_equal_direct_passes_over_any_rows() {
    let Some(reader) = log("test_unsupported") else { return };
    let options = StatsOptions::default().with_powers(["V1*I1"]);
    let mut sums = reader.accumulator(&options).expect("rows");
    let levels = Levels::build(&mut sums, reader.rows(), 256).expect("a base in range");
    assert_eq!(levels.depth(), 4);
    let ranges = [
        0..131_000,
        0..1,
        5..6,
        255..257,
        1..131_000,
        2048..4096,
        777..99_999,
        130_999..131_000,
        500..400_000,
    ];
    for rows in ranges {
        let want = sums.stats(rows.start..rows.end.min(reader.rows()));
        assert_eq!(levels.stats(&mut sums, rows.clone()), want, "{rows:?}");
    }
    let plot = levels.plot(&mut sums, 1000..120_000, 100);
    assert!((60..=140).contains(&plot.len()), "{} points", plot.len());
    let mut total = Stats::default();
    for (_, stats) in &plot {
        total.merge(stats);
    }
    assert_eq!(total, sums.stats(1000..120_000));
    assert!(Levels::build(&mut sums, 10, 63).is_err());
}

/// In logs of the releases 1.1 to 1.1.2, range bits stay 1 if digital inputs are off.
#[test]
fn ranges_are_derived_if_bits_are_unreliable() {
    let reader = open(&LOGS.case("validity-untrusted").bytes);
    let list = currents(reader.channels());
    let sources = |current: &Current| {
        let values = reader.merged(current, 0, 0..reader.rows());
        values.into_iter().map(|(source, _)| source).collect::<Vec<_>>()
    };
    assert_eq!(sources(&list[0]), [Source::Low; 10]);
    let mut want = vec![Source::Low; 6];
    want.extend([Source::High; 4]);
    assert_eq!(sources(&list[0].clone().deriving()), want);
    assert_eq!(sources(&list[1].clone().deriving()), [Source::Low; 10]);

    // Sums use the same ranges as merged values.
    for margin in [0, 2] {
        let options = StatsOptions::default().with_margin(margin).deriving_ranges();
        let mut sums = reader.accumulator(&options).expect("rows");
        let current = sums.currents()[0].clone();
        let merged = reader.merged(&current, margin, 0..reader.rows());
        let stats = sums.stats(0..reader.rows());
        assert_eq!(stats.currents[0].sum, merged.iter().map(|(_, value)| i128::from(*value)).sum());
        assert_eq!(stats.from_low[0], 6 - margin);
    }
}

/// If range bits are reliable, ranges that are inferred from values are the same, except near
/// changes of range. In one log, 48 of 131 000 rows differ. In the other logs, no row differs.
#[test]
fn derived_ranges_agree_with_reliable_bits() {
    // Synthetic logs are skipped, because their two ranges are independent of each other.
    for log in LOGS.real().iter().filter(|log| log.name.starts_with("test_")) {
        let reader = open(&log.bytes);
        let both = |current: &Current| current.valid.is_some() && current.high.is_some();
        for current in currents(reader.channels()).into_iter().filter(both) {
            let by_bit = reader.merged(&current, 0, 0..reader.rows());
            let derived = reader.merged(&current.clone().deriving(), 0, 0..reader.rows());
            let differ = by_bit.iter().zip(&derived).filter(|(a, b)| a.0 != b.0).count();
            assert!(differ * 2000 <= by_bit.len(), "{} {}: {differ} rows differ", log.name, current.name);
        }
    }
}
