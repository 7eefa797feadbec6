//! Real logs are compared with the results of an independent parser. The tests are skipped if there
//! are no real logs.

mod support;

use rld_format::RldReader;
use rovelog_core::{LogReader, ReadOptions, State};
use rovelog_testing::{hex, read_json, sha256};
use serde_json::Value as Json;
use support::{LOGS, int, open};

fn check_header(what: &str, log: &RldReader, want: &Json) {
    let (lead_in, header) = (&want["lead_in"], log.header());
    let own = &header.lead_in;
    assert_eq!(lead_in["magic_ascii"], String::from_utf8_lossy(&own.magic).as_ref(), "{what}");
    let fields: [(&str, i128); 9] = [
        ("file_version", own.file_version.get().into()),
        ("header_length", own.header_length.get().into()),
        ("data_block_size", own.data_block_size.get().into()),
        ("data_block_count", own.data_block_count.get().into()),
        ("sample_count", own.sample_count.get().into()),
        ("sample_rate", own.sample_rate.get().into()),
        ("comment_length", own.comment_length.get().into()),
        ("channel_bin_count", own.binary_count.get().into()),
        ("channel_analog_count", own.analog_count.get().into()),
    ];
    for (name, got) in fields {
        assert_eq!(int(&lead_in[name]), got, "{what} {name}");
    }
    assert_eq!(lead_in["mac"], own.mac_text(), "{what}");
    assert_eq!(int(&lead_in["start_time"][0]), i128::from(own.start_sec.get()), "{what}");
    assert_eq!(int(&lead_in["start_time"][1]), i128::from(own.start_nsec.get()), "{what}");
    assert_eq!(want["comment"]["text"], header.comment_text(), "{what}");
    assert_eq!(want["comment"]["hex"], hex(&header.comment), "{what}");
    let channels = want["channels"].as_array().expect("channels");
    assert_eq!(channels.len(), log.channels().len(), "{what}");
    for ((want, record), channel) in channels.iter().zip(&header.channels).zip(log.channels()) {
        assert_eq!(want["name"], &*channel.name, "{what}");
        assert_eq!(want["name_hex"], hex(&record.name), "{what}");
        assert_eq!(want["kind"] == "binary", channel.is_binary, "{what}");
        assert_eq!(int(&want["unit"]), i128::from(record.unit.get()), "{what}");
        assert_eq!(int(&want["scale"]), i128::from(record.scale.get()), "{what}");
        assert_eq!(int(&want["data_size"]), i128::from(record.data_size.get()), "{what}");
        assert_eq!(int(&want["valid_link_raw"]), i128::from(record.valid_link.get()), "{what}");
        assert_eq!(want["valid_link"].as_u64(), channel.valid.map(|bit| bit as u64), "{what}");
    }
    let (layout, want) = (log.layout().expect("rows"), &want["layout"]);
    assert_eq!(int(&want["binary_words"]), layout.words as i128, "{what}");
    assert_eq!(int(&want["row_bytes"]), layout.row as i128, "{what}");
    assert_eq!(int(&want["block_bytes"]), i128::from(layout.block), "{what}");
}

fn check_time(what: &str, log: &RldReader, want: &Json) {
    let blocks = want["blocks"].as_array().expect("blocks");
    assert_eq!(blocks.len(), log.block_times().count(), "{what}");
    let mut row = 0;
    for (want, (first, block_times)) in blocks.iter().zip(log.block_times()) {
        let got = [
            block_times.realtime_sec,
            block_times.realtime_nsec,
            block_times.monotonic_sec,
            block_times.monotonic_nsec,
        ];
        for (want, got) in want.as_array().expect("five numbers").iter().zip(got) {
            assert_eq!(int(want), i128::from(got.get()), "{what} block at row {first}");
        }
        assert_eq!(i128::from(first), row, "{what}");
        row += int(&want[4]);
    }
    let clock = &want["clock"];
    if clock.is_object() {
        let report = log.clock_report();
        let ppm = report.slope_ppm.expect("several blocks");
        let want_ppm = clock["theil_sen_ppm"].as_f64().expect("a number");
        assert!((ppm - want_ppm).abs() < 1e-3, "{what}: {ppm} ppm, wanted {want_ppm}");
        if !report.mismatch {
            let want = clock["fixed_period_offset_ns"].as_f64().expect("a number");
            let got = report.offset.expect("block times") as f64;
            assert!((got - want).abs() <= 0.5, "{what}: offset {got}, wanted {want}");
            let residuals = report.residuals.expect("block times");
            for (got, key) in [(residuals.min, "residual_min_ns"), (residuals.max, "residual_max_ns")] {
                let want = clock[key].as_f64().expect("a number");
                assert!((got as f64 - want).abs() <= 1.0, "{what}: {key} {got}, wanted {want}");
            }
        }
    }
    let drift = want["realtime_minus_monotonic_drift_ns"].as_i64();
    if let (Some(drift), Some((_, first)), Some((_, last))) =
        (drift, log.block_times().next(), log.block_times().last())
    {
        let apart = |s: &rld_format::wire::BlockTimes| s.realtime() - s.monotonic();
        assert_eq!(i128::from(drift), apart(last) - apart(first), "{what}");
    }
}

fn check_values(what: &str, log: &RldReader, want: &Json) {
    let rows = || (0..log.rows()).map(|row| log.row(row).expect("a row"));
    let binary = log.channels().iter().filter(|channel| channel.is_binary).count();
    for (i, want) in want["binary"].as_array().into_iter().flatten().enumerate() {
        let bits: Vec<u8> = rows().map(|row| u8::from(row.bit(i).expect("a bit"))).collect();
        assert_eq!(want["sha256_u8"], sha256(&bits), "{what} {}", want["name"]);
        assert_eq!(int(&want["ones"]), bits.iter().map(|bit| i128::from(*bit)).sum(), "{what}");
        let toggles = bits.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert_eq!(int(&want["toggles"]), toggles as i128, "{what} {}", want["name"]);
    }
    let mut words = vec![0u32; log.layout().expect("rows").words];
    for row in rows() {
        words.iter_mut().enumerate().for_each(|(i, or)| *or |= row.word(i).expect("a word"));
    }
    let ors: Vec<String> = words.iter().map(|or| format!("{or:#010x}")).collect();
    if want["binary_words_or"].is_array() {
        assert_eq!(want["binary_words_or"], Json::from(ors), "{what}");
    }
    for (i, want) in want["analog"].as_array().expect("analog").iter().enumerate() {
        let values: Vec<i64> = rows().map(|row| row.raw(binary + i).expect("a value")).collect();
        let mut column = Vec::new();
        for value in &values {
            column.extend(i32::try_from(*value).expect("32 bits").to_le_bytes());
        }
        assert_eq!(want["sha256_i32le"], sha256(&column), "{what} {}", want["name"]);
        assert_eq!(int(&want["sum"]), values.iter().map(|v| i128::from(*v)).sum(), "{what}");
        assert_eq!(int(&want["sum_sq"]), values.iter().map(|v| i128::from(*v).pow(2)).sum(), "{what}");
        assert_eq!(int(&want["count"]), values.len() as i128, "{what}");
    }
}

#[test]
fn every_real_log_equals_its_expected_result() {
    let Some(folder) = LOGS.folder() else { return };
    for log in LOGS.real() {
        let want = read_json(&folder.join(format!("expected/{}.rld.json", log.name)));
        let reader = open(&log.bytes);
        let what = &log.name;
        check_header(what, &reader, &want);
        assert_eq!(int(&want["rows"]["recovered"]), i128::from(reader.rows()), "{what}");
        check_time(what, &reader, &want);
        check_values(what, &reader, &want);
    }
}

/// The Python package `rocketlogger` returns 4000 rows of this log in its recovery mode. Without
/// this mode, it fails.
#[test]
fn rows_before_a_cut_are_all_read() {
    let Some(log) = LOGS.real_log("test_truncated") else { return };
    let reader = open(&log.bytes);
    assert_eq!(reader.rows(), 4999);
    assert_eq!(reader.info().state, State::Truncated);
    assert_eq!(reader.info().lost.bytes, 0);
    assert_eq!(reader.diagnostics().list()[0].rule.name, "rows_missing");
}

#[test]
fn a_split_recording_is_one_log_without_a_gap() {
    let Some(folder) = LOGS.folder() else { return };
    let file = |name: &str| std::fs::read(folder.join(name)).expect("a real log").into();
    let parts = ["v4_split.rld", "v4_split_p1.rld", "v4_split_p2.rld"].map(file).to_vec();
    let log = RldReader::join(parts, &ReadOptions::default()).expect("three parts");
    assert_eq!((log.rows(), log.parts().count()), (2800, 3));
    assert!(log.clock_report().gaps.is_empty());
    let single = open(&file("v4_split_p1.rld"));
    assert_eq!(log.row(1400).expect("a row").bytes(), single.row(400).expect("a row").bytes());

    // If the second part is missing, there is a gap of five blocks.
    let parts = ["v4_split.rld", "v4_split_p2.rld"].map(file).to_vec();
    let log = RldReader::join(parts, &ReadOptions::default()).expect("two parts");
    let gaps = &log.clock_report().gaps;
    assert_eq!((gaps.len(), gaps[0].row, gaps[0].blocks), (1, 1000, 5));
}
