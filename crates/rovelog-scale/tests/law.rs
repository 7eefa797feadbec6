//! The splits of a log must contain each of its records exactly once. This is checked for splits of
//! any size and for any damage.

use std::cell::Cell;
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use arrow_select::concat::concat_batches;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use rovelog::{ReadOptions, Select};
use rovelog_scale::{LogFile, Part, Split, Wanted, divide, find, read, schema};
use rovelog_testing::{Log, Logs, RLD, ROSBAG, ULOG, VEL};

/// Returns all rows of a split.
fn rows(split: &Split, columns: &SchemaRef) -> RecordBatch {
    // A worker only gets the JSON form of the split.
    let split = Split::from_json(&split.to_json()).expect("it was written as JSON");
    let batches = read(split, Arc::clone(columns)).map(|batch| batch.expect("a log that opens can be read"));
    concat_batches(columns, &batches.collect::<Vec<_>>()).expect("one schema")
}

/// Compares the splits of a log with the whole log, for every `step`-th topic. Returns the number
/// of splits that contain rows, and the number of rows.
fn check(path: &Path, target: u64, step: usize) -> (usize, usize) {
    let logs = find(&[path.to_string_lossy()]).expect("the file is there");
    let Ok(log) = rovelog::open_with(path, &ReadOptions::default()) else { return (0, 0) };
    let (mut filled, mut all) = (0, 0);
    let topics = log.topics().iter().filter(|topic| topic.count > 0 && topic.schema.is_some());
    for topic in topics.step_by(step) {
        // The name `t` selects all instances, so a single instance such as `t/1` is selected by its
        // full name.
        let wanted = Wanted { topics: Some(vec![topic.name.clone()]), ..Wanted::default() };
        let Ok(columns) = schema(&logs, &wanted) else { continue };
        let whole = Part { log: logs[0].clone(), blocks: None };
        let whole = rows(&Split { ordinal: 0, parts: vec![whole], wanted: wanted.clone() }, &columns);
        let splits = divide(logs.clone(), &wanted, target);
        let splits: Vec<_> = splits.iter().map(|split| rows(split, &columns)).collect();
        filled += splits.iter().filter(|rows| rows.num_rows() > 0).count();
        let together = concat_batches(&columns, &splits).expect("one schema");
        assert_eq!(whole.num_rows(), together.num_rows(), "{}: {} by {target}", path.display(), topic.name);
        assert!(whole == together, "{}: {} by {target}", path.display(), topic.name);
        all += whole.num_rows();
    }
    (filled, all)
}

/// Checks every corpus log and every real log of a format, with small splits.
fn check_all(logs: Logs) {
    let mut rows = 0;
    for log in logs.all() {
        let size = log.bytes.len() as u64;
        for target in [1 << 12, size.div_ceil(3)] {
            rows += check(&log.path, target.max(size / 16), 5).1;
        }
    }
    assert!(rows > 1000, "{rows} rows");
}

#[test]
fn every_ulog() {
    check_all(ULOG);
}

#[test]
fn every_rld() {
    check_all(RLD);
}

#[test]
fn every_bag() {
    check_all(ROSBAG);
}

#[test]
fn every_vel() {
    check_all(VEL);
}

/// Creates a log of at least `size` bytes by repeating the records of `log`. Then damages bytes of
/// the new log, and truncates it.
fn large(log: &Log, size: usize, damage: &[(u32, u8)]) -> Vec<u8> {
    let reader = rovelog::from_bytes(log.bytes.clone(), &ReadOptions::default()).expect("it opens");
    let records = reader.records(&Select::all()).filter_map(Result::ok);
    let first =
        records.map(|record| record.offset).min().and_then(|at| usize::try_from(at).ok()).unwrap_or(0);
    let (start, rest) = log.bytes.split_at(first.min(log.bytes.len() - 1));
    let mut bytes = [start, rest].concat();
    while bytes.len() < size {
        bytes.extend_from_slice(rest);
    }
    for (at, value) in damage {
        let at = *at as usize % bytes.len();
        bytes[at] = *value;
    }
    bytes.truncate(bytes.len() - damage.len() % 97);
    bytes
}

/// Checks logs that are damaged at random, with splits of random sizes. If a format has large
/// blocks, large logs are created for the check.
fn check_damaged(logs: Logs, size: usize, targets: Range<u64>) {
    let usable = |log: &Log| {
        let open = rovelog::from_bytes(log.bytes.clone(), &ReadOptions::default());
        open.is_ok_and(|open| open.info().records > 20)
    };
    let cases: Vec<Log> = logs.corpus().into_iter().filter(usable).collect();
    let folder = tempfile::tempdir().expect("a folder");
    let filled = Cell::new(0);
    let cases_tried = if size > 0 { 12 } else { 200 };
    let mut runner =
        TestRunner::new(Config { cases: cases_tried, failure_persistence: None, ..Config::default() });
    let damage = proptest::collection::vec((any::<u32>(), any::<u8>()), 0..40);
    runner
        .run(&(0..cases.len(), targets, damage), |(case, target, damage)| {
            let path = folder.path().join(cases[case].path.file_name().expect("a file"));
            fs::write(&path, large(&cases[case], size, &damage)).expect("space");
            let (parts, _) = check(&path, target, 4);
            filled.set(filled.get() + parts);
            fs::remove_file(&path).expect("it is there");
            Ok(())
        })
        .unwrap();
    let filled = filled.get();
    assert!(filled > 24, "{filled} parts with rows: the logs are really divided");
}

#[test]
fn damaged_ulogs_of_many_blocks() {
    check_damaged(ULOG, 13 << 20, 900_000..6_000_000);
}

#[test]
fn damaged_rlds() {
    check_damaged(RLD, 0, 400..3000);
}

#[test]
fn damaged_bags_of_many_blocks() {
    check_damaged(ROSBAG, 13 << 20, 900_000..6_000_000);
}

#[test]
fn damaged_vels() {
    check_damaged(VEL, 0, 400..3000);
}

/// If another program changes a log after it was planned, reading the log must return an error.
#[test]
fn a_changed_log_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.ulg");
    let log = ULOG.corpus().into_iter().find(|log| log.bytes.len() > 2000).expect("a log");
    fs::write(&path, &log.bytes).expect("space");
    let planned = LogFile::at(&path).expect("it is there");
    fs::write(&path, [&log.bytes[..], b"more"].concat()).expect("space");
    let error = planned.open().expect_err("it has changed").to_string();
    assert!(error.ends_with("has changed since the splits were planned; plan the splits again"), "{error}");
}
