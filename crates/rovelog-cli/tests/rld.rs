//! The command line on RocketLogger logs.

mod common;

use std::fs;

use common::{Place, assert_reported_by_all, run_in, runs, shown_in, snapshot};
use serde_json::Value;

runs! {
    in "rld";
    rld_info:
        "info v4.rld",
        "info v1.rld",
        "info gap.rld",
        "info cut-in-row.rld",
        "info block-size-0.rld",
        "info ambient.rld -f json";
    rld_tables:
        "topics v4.rld",
        "schema v4.rld",
        "cat range-switches.rld",
        "cat v4.rld -f ndjson --topics samples",
        "check dirty-bits.rld",
        "check header-behind.rld -f json",
        "check header-behind+cut.rld",
        "cat header-behind.rld --topics samples -f csv -q";
    rld_csv_times:
        "export v4.rld --to csv --topics samples --time-base relative",
        "export v4.rld --to csv --topics samples --time-base boot",
        "export v4.rld --to parquet --time-base relative -o x.parquet",
        "export v4.rld --to csv --dialect rocketlogger --time-base relative";
    rld_faults:
        "check current-wraps.rld",
        "check means-of-negatives.rld",
        "check validity-untrusted.rld",
        "stats validity-untrusted.rld --energy --settle 0 --fields I1",
        "stats validity-untrusted.rld --energy --settle 0 --fields I1 --ranges values";
    rld_stats:
        "stats range-switches.rld --energy --power V1*I1",
        "stats range-switches.rld --energy --settle 0 --by I1L_valid --fields I1",
        "stats v4.rld --window 10ms --fields V1,DI1 -f csv",
        "stats v4.rld --energy",
        "stats v4.rld --energy --exact",
        "stats v4.rld --above V1=0.00001021 --fields V1",
        "stats v4.rld --power V9*I1",
        "stats v4.rld --fields V9",
        "stats v4.rld --topics sample",
        "stats ../ulog/one-topic.ulg",
        "stats ../ulog/one-topic.ulg --energy";
}

/// The header of an RLD log counts its rows. Every command reports rows that are missing, and rows
/// beyond the count.
#[test]
fn missing_rows_are_reported_by_every_command() {
    let commands = [
        "cat LOG",
        "cat LOG -f csv --topics samples",
        "stats LOG",
        "stats LOG --energy",
        "messages LOG",
        "slice LOG -S +1ms",
        "export LOG --to csv",
        "export LOG --to csv --dialect rocketlogger",
        "plot LOG samples",
        "rld csv LOG",
        "diff LOG v4.rld",
    ];
    let missing = "2 records counted by the log are missing from the file";
    assert_reported_by_all("rld", "cut-between-rows.rld", &commands, missing);
    assert_reported_by_all("rld", "header-behind.rld", &commands, "5 records are left out");
    assert_reported_by_all(
        "rld",
        "cut-in-row.rld",
        &commands,
        "1 record counted by the log is missing from the file",
    );
    assert_eq!(run_in("rld", "recover cut-between-rows.rld", b"").status.code(), Some(3));
    assert_eq!(run_in("rld", "recover header-behind.rld", b"").status.code(), Some(0));
}

/// The rows of the ambient sensors are a topic like any other, although a separate function
/// computes the statistics of the main rows.
#[test]
fn stats_show_the_ambient_file_too() {
    let place = Place::new("rld", &["v4.rld", "ambient.rld"]);
    fs::rename(place.path("ambient.rld"), place.path("v4-ambient.rld")).expect("a writable folder");
    // The two flags state whether the run prints the measured rows and the ambient rows.
    let topics = |line: &str| {
        let output = place.run(line);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).expect("text");
        ["samples", "ambient"].map(|topic| text.contains(&format!("\"topic\":\"{topic}\"")))
    };
    assert_eq!(topics("stats v4.rld -f ndjson"), [true, true]);
    assert_eq!(topics("stats v4.rld -f ndjson --topics ambient"), [false, true]);
    assert_eq!(topics("stats v4.rld -f ndjson --topics samples"), [true, false]);
    // The window starts after the last measured row.
    assert_eq!(topics("stats v4.rld -f ndjson -S +100ms"), [false, true]);
    let output = place.run("stats v4.rld --topics ambient --energy");
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A threshold that is equal to a printed value is reached by this value. In this log, V1 rises and
/// V2 falls.
#[test]
fn a_threshold_is_reached_by_its_value() {
    let json = |line: &str| -> Vec<Value> {
        let output = run_in("rld", line, b"").stdout;
        let text = String::from_utf8(output).expect("text");
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    };
    for (channel, rises) in [("V1", true), ("V2", false)] {
        let rows = json(&format!("cat v4.rld -f ndjson --topics samples --fields {channel}"));
        let values: Vec<&Value> = rows.iter().map(|row| &row["data"][channel]).collect();
        assert!(values.len() > 10, "{values:?}");
        for (at, value) in values.iter().enumerate() {
            let events = json(&format!("stats v4.rld --above {channel}={value} --fields {channel} -f json"));
            let [event] = events[0]["sections"].as_array().expect("a list").as_slice() else {
                panic!("{value}: {events:?}")
            };
            let rows = if rises { values.len() - at } else { at + 1 };
            assert_eq!((&event["fields"][0]["min"], &event["rows"]), (*value, &rows.into()));
        }
    }
    for refused in ["V1=nan", "V1=inf", "V1=1,nan"] {
        assert_eq!(run_in("rld", &format!("stats v4.rld --above {refused}"), b"").status.code(), Some(2));
    }
}

/// A truncated ambient file is reported together with its log.
#[test]
fn a_truncated_ambient_file_is_reported() {
    let place = Place::new("rld", &["v4.rld", "ambient.rld"]);
    let mut ambient = place.read("ambient.rld");
    ambient.truncate(ambient.len() - 32 - 20);
    fs::write(place.path("v4-ambient.rld"), ambient).expect("a writable folder");
    let output = place.run("cat v4.rld");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert_eq!(place.run("cat v4.rld --strict").status.code(), Some(1));
}

/// The envelope is mentioned in a note and is not a loss.
#[test]
fn export_mcap() {
    let place =
        Place::new("rld", &["rate-64000.rld", "range-switches.rld", "cut-in-row.rld", "no-times-at-all.rld"]);
    let runs = [
        "export rate-64000.rld -o envelope.mcap",
        "export rate-64000.rld -o full.mcap --full",
        "export range-switches.rld -o ranges.mcap",
        "export cut-in-row.rld -o cut.mcap",
        "export no-times-at-all.rld -o times.mcap",
        "export range-switches.rld -o none.mcap --raw",
    ];
    snapshot!("rld_export_mcap", runs.map(|line| place.shown(line)).join("\n"));
}

/// Returns the standard output of a run that must end with the exit code `code`.
fn bytes(line: &str, stdin: &[u8], code: i32) -> Vec<u8> {
    let output = run_in("rld", line, stdin);
    assert_eq!(output.status.code(), Some(code), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

#[test]
fn recovered_logs_are_valid() {
    for log in ["header-behind.rld", "cut-in-row.rld", "extra-word.rld", "counts-disagree+cut.rld"] {
        let lost = i32::from(log.contains("cut")) * 3;
        let fixed = bytes(&format!("recover {log}"), b"", lost);
        let checked = String::from_utf8(bytes("check -", &fixed, 0)).unwrap();
        assert!(checked.contains("\n-: valid, "), "{log}: {checked}");
    }
}

#[test]
fn a_slice_contains_the_selected_rows() {
    let part = bytes("slice v4.rld -S +4ms -E +9ms", b"", 0);
    let count = bytes("info - --get records", &part, 0);
    assert_eq!(String::from_utf8_lossy(&count).trim(), "5");
}

#[test]
fn scrubbing_keeps_the_rows() {
    let scrubbed = bytes("scrub v4.rld -q", b"", 0);
    let device = bytes("info - --get details.device", &scrubbed, 0);
    assert_eq!(String::from_utf8_lossy(&device).trim(), "00:00:00:00:00:00");
    // The logs are read from files, because the drift of the clocks is known only after the last
    // block.
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("scrubbed.rld");
    fs::write(&path, &scrubbed).expect("a writable folder");
    let rows = |log: &str| bytes(&format!("cat {log} -f csv --topics samples"), b"", 0);
    assert_eq!(rows(&path.to_string_lossy()), rows("v4.rld"));
}

#[test]
fn csv_of_the_logger_can_be_imported() {
    let csv = bytes("rld csv v4.rld", b"", 0);
    let log = fs::read(rovelog_testing::root().join("corpus/rld/v4.rld")).expect("a log");
    assert!(bytes("rld csv -", &log, 0) == csv, "from a pipe");
    assert!(csv.starts_with(b"RocketLogger CSV File\nFile Version,4\n"));
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("log.csv");
    fs::write(&path, &csv).expect("a writable folder");
    let log = bytes(&format!("rld import {} -q", path.display()), b"", 0);
    assert!(bytes("rld import -q", &csv, 0) == log, "from a pipe");
    let back = folder.path().join("back.rld");
    fs::write(&back, &log).expect("a writable folder");
    assert_eq!(bytes(&format!("rld csv {}", back.display()), b"", 0), csv);
}

/// The RocketLogger dialect gives the same output as `rld csv`, and losses are reported.
#[test]
fn export_as_the_logger() {
    let plain = bytes("export v4.rld --to csv --dialect rocketlogger -q", b"", 0);
    assert!(plain == bytes("rld csv v4.rld", b"", 0));
    let runs = [
        "export v4.rld --to csv --dialect rocketlogger",
        "export v2.rld --to csv --dialect rocketlogger-v2",
        "export units.rld --to csv --dialect rocketlogger",
        "export cut-in-row.rld --to csv --dialect rocketlogger",
        "export v4.rld --to csv --dialect rocketlogger --delimiter ;",
        "export v4.rld --to csv --dialect rocketlogger --topics samples",
        "export v4.rld --to csv --dialect rocketlogger -S +1ms",
        "export v4.rld --to parquet --dialect rocketlogger",
        "export v4.rld -o folder/ --to csv --dialect rocketlogger",
        "export ../ulog/one-topic.ulg --to csv --dialect rocketlogger",
    ];
    let shown = runs.map(|line| shown_in("rld", line, b"")).join("\n");
    snapshot!("rld_export_logger_csv", shown);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x.csv");
    let line = format!("export v4.rld -o {} --dialect rocketlogger -f json", path.display());
    let said: serde_json::Value = serde_json::from_slice(&bytes(&line, b"", 0)).expect("JSON");
    assert_eq!((&said["kind"], &said["files"][0]["rows"]), (&"csv".into(), &15.into()));
    assert!(fs::read(&path).expect("a file") == plain);
}

#[test]
fn parts_are_merged_to_one_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let status = run_in("rld", &format!("split v4.rld --every 6ms -o {}", folder.path().display()), b"");
    assert_eq!(status.status.code(), Some(0), "{}", String::from_utf8_lossy(&status.stderr));
    let parts: Vec<_> = String::from_utf8_lossy(&status.stdout).lines().map(str::to_owned).collect();
    assert_eq!(parts.len(), 3, "{parts:?}");
    let merged = bytes(&format!("merge {}", parts.join(" ")), b"", 0);
    assert_eq!(String::from_utf8_lossy(&bytes("info - --get records", &merged, 0)).trim(), "15");
}

#[test]
fn parts_have_the_names_of_the_logger_and_open_as_one_log() {
    // The second log has a gap of 15 ms. Parts without rows are not written, and the numbers have
    // no gap.
    for (log, every, rows, names) in [
        ("v4", "6ms", "15", vec!["v4.rld", "v4_p1.rld", "v4_p2.rld"]),
        ("gap", "5020us", "20", vec!["gap.rld", "gap_p1.rld", "gap_p2.rld", "gap_p3.rld", "gap_p4.rld"]),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let line = format!("split {log}.rld --every {every} -o {}", folder.path().display());
        let written = String::from_utf8(bytes(&line, b"", 0)).expect("paths");
        let found: Vec<_> = written.lines().filter_map(|path| path.rsplit('/').next()).collect();
        assert_eq!(found, names);
        let first = folder.path().join(names[0]);
        let get = |what: &str| {
            let said = bytes(&format!("info {} --get {what}", first.display()), b"", 0);
            String::from_utf8_lossy(&said).trim().to_owned()
        };
        assert_eq!((get("records"), get("details.parts")), (rows.to_owned(), names.len().to_string()));
        let values = |path: &str| {
            let csv = String::from_utf8(bytes(&format!("rld csv {path} -q"), b"", 0)).expect("text");
            let (_, rows) = csv.split_once("\n,").expect("channels");
            let row = |row: &str| row.split_once(',').map(|(_, values)| values.to_owned());
            rows.lines().filter_map(row).collect::<Vec<_>>()
        };
        // The parts are merged first, because the logger's CSV is made from a single file.
        let whole = tempfile::NamedTempFile::new().expect("a writable folder");
        fs::write(whole.path(), bytes(&format!("recover {}", first.display()), b"", 0)).expect("a file");
        assert_eq!(values(&whole.path().display().to_string()), values(&format!("{log}.rld")), "{log}");

        // The output must not overwrite the input, and must not get a name that makes it a part of
        // the recording.
        assert_eq!(run_in("rld", &line, b"").status.code(), Some(2));
        let stray = folder.path().join(format!("{log}_p{}.rld", names.len()));
        fs::copy(&first, &stray).expect("a writable folder");
        fs::write(&first, b"old").expect("a file");
        let again = run_in("rld", &format!("{line} --force"), b"");
        assert_eq!(again.status.code(), Some(2), "{}", String::from_utf8_lossy(&again.stderr));
        // Parts without records are not written. If all planned parts are written, nothing changes.
        if log == "v4" {
            assert_eq!(fs::read(&first).expect("a file"), b"old", "no part was replaced");
        }
    }
}
