//! Recovered logs must open without loss and contain every intact row. Slices and copies must
//! contain the selected rows.

mod support;

use rld_format::RldReader;
use rovelog_core::{LogReader, RecoverOptions, Select, State};
use support::{LOGS, open, readable, try_open};

fn recovered(log: &RldReader) -> (RldReader, rovelog_core::Recovery) {
    let mut out = Vec::new();
    let report = log.recover(&mut out, &RecoverOptions::default()).expect("memory takes it");
    (open(&out.into()), report)
}

/// Returns the analog values of a row.
fn values(log: &RldReader, row: u64) -> Vec<Option<i64>> {
    let row = log.row(row).expect("a row");
    (0..log.channels().len()).map(|channel| row.raw(channel)).collect()
}

#[test]
fn recovered_logs_are_undamaged_and_have_every_row() {
    for log in LOGS.corpus() {
        let Some(reader) = try_open(&log.bytes) else { continue };
        let (again, report) = recovered(&reader);
        assert_eq!(report.kept_bytes + report.lost_bytes(), log.bytes.len() as u64, "{}", log.name);
        assert_eq!(again.info().state, State::Complete, "{}: {:?}", log.name, again.diagnostics().list());
        assert_eq!(again.rows(), report.records, "{}", log.name);
        assert!(report.records >= reader.rows(), "{}", log.name);
        // Recovery drops exactly the bytes that reading reports as lost.
        assert_eq!(report.lost_bytes(), reader.info().lost.bytes, "{}", log.name);
        for row in 0..reader.rows() {
            assert_eq!(values(&again, row), values(&reader, row), "{} row {row}", log.name);
        }
        // If a recovered log is recovered again, it does not change.
        let (_, second) = recovered(&again);
        assert!(second.unchanged, "{}", log.name);
    }
}

#[test]
fn rows_after_the_counts_are_recovered() {
    let (again, report) = recovered(&open(&LOGS.case("header-behind").bytes));
    assert_eq!((again.rows(), report.lost_bytes()), (15, 0));
    let (again, report) = recovered(&open(&LOGS.case("header-behind+cut").bytes));
    assert_eq!((again.rows(), report.lost_bytes()), (13, 3));
}

#[test]
fn bytes_without_valid_block_times_are_not_rows() {
    let mut bytes = LOGS.case("header-behind").bytes.to_vec();
    let from = bytes.len() - 132;
    bytes[from..].iter_mut().for_each(|byte| *byte ^= 0x5a);
    let (again, report) = recovered(&open(&bytes.into()));
    assert_eq!((again.rows(), report.lost_bytes()), (10, 132));
}

#[test]
fn a_slice_has_the_rows_of_its_window() {
    for (log, reader) in readable() {
        let jumps = ["block_length", "gap", "clock_backwards", "clock_step", "stamps_implausible"];
        if reader.rows() < 4 || reader.diagnostics().list().iter().any(|d| jumps.contains(&d.rule.name)) {
            continue;
        }
        let times: Vec<Option<i64>> =
            reader.records_in_file_order().map(|record| record.time.map(|time| time.nanos)).collect();
        let (from, to) = (times.len() / 3, times.len() * 2 / 3 + 1);
        let (Some(start), Some(end)) = (times[from], times[to]) else { continue };
        let mut out = Vec::new();
        let sliced = reader.slice(&Select::all().between(Some(start), Some(end)), &mut out).expect("memory");
        let part = open(&out.into());
        assert_eq!((part.rows(), sliced.records), ((to - from) as u64, (to - from) as u64), "{}", log.name);
        assert_eq!(part.info().state, State::Complete, "{}", log.name);
        for row in 0..part.rows() {
            assert_eq!(values(&part, row), values(&reader, from as u64 + row), "{}", log.name);
        }
        // The times of rows in the log and in the slice differ by at most the delay of block times.
        let first = part.records_in_file_order().next().and_then(|r| r.time).expect("a time").nanos;
        let slack = if reader.clock_report().mismatch { 15_000_000 } else { 600_000 };
        assert!((first - start).abs() <= slack, "{}: {} ns", log.name, first - start);
    }
}

#[test]
fn a_split_recording_joins_to_one_file() {
    let Some(folder) = LOGS.folder() else { return };
    let file = |name: &str| std::fs::read(folder.join(name)).expect("a real log").into();
    let parts = ["v4_split.rld", "v4_split_p1.rld", "v4_split_p2.rld"].map(file).to_vec();
    let log = RldReader::join(parts, &rovelog_core::ReadOptions::default()).expect("parts");
    let (joined, report) = recovered(&log);
    assert_eq!((joined.rows(), report.lost_bytes()), (2800, 0));
    let block_times =
        |log: &RldReader| log.block_times().map(|(row, block_times)| (row, *block_times)).collect::<Vec<_>>();
    assert_eq!(block_times(&joined), block_times(&log));
    assert!(
        (0..2800).all(|row| joined.row(row).expect("a row").bytes() == log.row(row).expect("a row").bytes())
    );
}
