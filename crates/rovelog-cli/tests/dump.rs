//! Output of `rovelog dump`, and runs of it on every log of the corpus and on real logs.

mod common;

use std::path::Path;

use common::{rovelog, run_in, runs, shown_in};
use rovelog_testing::{Log, RLD, ROSBAG, ULOG, VEL, logs_in, real};
use serde_json::Value as Json;

runs! {
    in "ulog";
    dump_ulog:
        "dump one-topic.ulg",
        "dump one-topic.ulg --at 0x12c",
        "dump info-of-all-types.ulg --at 100 --context 0",
        "dump nested-types.ulg --at 480 --context 1",
        "dump damaged+three-places+sync+cut.ulg --at 480",
        "dump damaged+zero-fill-to-the-end.ulg --at 400 --context 1",
        "dump header-damaged.ulg --context 1",
        "dump one-topic.ulg --at 300 --context 1 -f json";
}

runs! {
    in "rld";
    dump_rld:
        "dump v4.rld --at 70",
        "dump v4.rld --at 300",
        "dump byte-lost.rld --at 400",
        "dump byte-lost.rld --at 0x190 --context 1 -f json";
}

runs! {
    in "rosbag";
    dump_rosbag:
        "dump recorded.bag",
        "dump recorded.bag --at 4300",
        "dump damaged-field-length.bag --at 4400 --context 1",
        "dump v1.1.bag --at 100",
        "dump v2.0.bag --at 4500",
        "dump v2.0.bag --at 4700 --context 1",
        "dump v2.0+lz4.bag --at 4200",
        "dump v2.0+damaged-bytes-in-a-chunk.bag --at 4800 -f json";
}

runs! {
    in "vel";
    dump_vel:
        "dump all-kinds.vel --at 300",
        "dump velodyne-vlp16.vel --at 3000",
        "dump damaged+garbage.vel --at 220",
        "dump damaged+garbage.vel --at 220 --context 0 -f json";
}

runs! {
    in "ulog";
    dump_errors:
        "dump one-topic.ulg --at 351",
        "dump one-topic.ulg --at 0xFFFFFFFFFFFFFFFF",
        "dump one-topic.ulg --at 18446744073709551616",
        "dump one-topic.ulg --at 0xg",
        "dump one-topic.ulg --at -1",
        "dump one-topic.ulg -f csv",
        "dump cut-in-file-header.ulg",
        "dump none.ulg";
}

/// The hexadecimal and the decimal form of an offset must be the same offset.
#[test]
fn an_offset_may_be_hexadecimal() {
    let text = |offset: &str| {
        let output = run_in("ulog", &format!("dump one-topic.ulg --at {offset}"), b"");
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(text("300"), text("0x12c"));
    assert_eq!(text("300"), text("0X12C"));
}

#[test]
fn a_log_from_stdin_is_dumped() {
    let bytes = ULOG.case("one-topic").bytes;
    let of_file = run_in("ulog", "dump one-topic.ulg --at 300", b"");
    assert_eq!(run_in("ulog", "dump - --at 300", &bytes).stdout, of_file.stdout);
}

/// The command that `check` suggests must show the first damaged byte.
#[test]
fn check_names_the_first_damaged_byte() {
    for (format, log) in [
        ("ulog", "damaged+garbage.ulg"),
        ("rld", "byte-lost.rld"),
        ("rosbag", "damaged-zeros.bag"),
        ("vel", "damaged+garbage.vel"),
    ] {
        let checked = shown_in(format, &format!("check {log}"), b"");
        let hint =
            checked.lines().find_map(|line| line.strip_prefix("look at the first damaged byte: rovelog "));
        let dump = shown_in(format, hint.unwrap_or_else(|| panic!("{checked}")), b"");
        assert!(dump.contains("is in: not readable") && dump.contains("\nERROR  E-"), "{dump}");
    }
    let cut = shown_in("rld", "check 'cut-to-header.rld'", b"");
    assert!(!cut.contains("look at"), "only the end of the file is missing: {cut}");
}

fn dump(path: &Path, at: u64) -> Option<Json> {
    let output =
        rovelog().arg("dump").arg(path).args(["--at", &at.to_string(), "-f", "json"]).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    let code = output.status.code();
    assert!(
        code == Some(0) || (code == Some(1) && errors.contains("error: ")),
        "{}: {errors}",
        path.display()
    );
    (code == Some(0)).then(|| serde_json::from_slice(&output.stdout).unwrap())
}

fn number(document: &Json, key: &str) -> u64 {
    document[key].as_u64().unwrap()
}

/// Checks the first byte, the middle and the last byte. Returns false if the log cannot be opened.
fn assert_dumped(log: &Log) -> bool {
    let Some(first) = dump(&log.path, 0) else { return false };
    let size = number(&first, "size");
    for at in [size / 2, size - 1] {
        let document = dump(&log.path, at).expect("opened before");
        let list = |key: &str| document[key].as_array().unwrap().clone();
        let here: Vec<_> =
            list("regions").into_iter().filter(|region| region["contains_byte"] == true).collect();
        let [region] = &here[..] else { panic!("{} at {at}: {here:?}", log.path.display()) };
        let start = number(region, "offset");
        assert!((start..start + number(region, "length")).contains(&at), "{} at {at}", log.path.display());
        let fields = list("fields").into_iter().filter(|field| field["contains_byte"] == true).count();
        assert_eq!(fields, 1, "{} at {at}", log.path.display());
        let is_named = region["kind"] != "not readable" || !list("problems").is_empty();
        assert!(is_named, "{} at {at}: {region}", log.path.display());
    }
    true
}

#[test]
fn every_corpus_log_is_dumped() {
    let logs =
        [ULOG, RLD, ROSBAG, VEL].into_iter().flat_map(|logs| [logs.corpus(), logs.compressed()].concat());
    let dumped = logs.filter(assert_dumped).count();
    assert!(dumped > 450, "{dumped}");
}

#[test]
fn real_logs_are_dumped() {
    for (folder, extension) in
        [("ulog", "ulg"), ("rld", "rld"), ("rosbag12", "bag"), ("rosbag20", "bag"), ("vel", "vel")]
    {
        if let Some(folder) = real(folder) {
            assert!(logs_in(&folder, extension).iter().filter(|log| assert_dumped(log)).count() > 5);
        }
    }
}
