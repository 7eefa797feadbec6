//! Messages, output files and invalid arguments of the commands that write logs.

mod common;

use std::fs;

use common::{Place, corpus, run, run_with, snapshot};

fn corpus_logs() -> Vec<String> {
    let names = fs::read_dir(corpus()).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

/// These runs had defects that the other tests did not find.
#[test]
fn nothing_is_lost_without_a_word() {
    let place =
        Place::new("rosbag", &["v2.0+lz4-checksum.bag", "v2.0+connection-without-messages.bag", "v1.0.bag"]);
    for (log, name) in [
        ("rld/v4.rld", "power.rld"),
        ("rld/ambient.rld", "power-ambient.rld"),
        ("rld/gap.rld", "gap.rld"),
        ("vel/invalid-message.vel", "invalid-message.vel"),
        ("ulog/no-timestamp.ulg", "no-timestamp.ulg"),
        ("ulog/parameters+changes.ulg", "changes.ulg"),
        ("ulog/same-topic+new-id.ulg", "series.ulg"),
        ("ulog/utc-gps-double.ulg", "receivers.ulg"),
    ] {
        fs::copy(corpus().join("..").join(log), place.path(name)).unwrap();
    }
    let runs = [
        "recover v2.0+lz4-checksum.bag -o sums.bag",
        "slice v2.0+connection-without-messages.bag -o connections.bag",
        "topics connections.bag",
        "slice v1.0.bag -o times.bag",
        "slice invalid-message.vel -o valid.vel",
        "export no-timestamp.ulg -o joined.csv --on t/0",
        "export changes.ulg -o late.mcap -S +10ms",
        "slice changes.ulg -o late.ulg.gz",
        "slice series.ulg --topics t -o first-series.ulg",
        "export series.ulg --topics t -o first-series.csv",
        "slice receivers.ulg --topics sensor_gps/2 -o other-receiver.ulg",
        "slice receivers.ulg --topics sensor_gps/0 -o no-receiver.ulg",
        "split power.rld -o power --every 4ms",
        "split gap.rld -o gap --every 3ms",
        "export v2.0+connection-without-messages.bag -o tables --to parquet --profile spark --time-unit ns",
    ];
    snapshot!("nothing_is_lost_without_a_word", runs.map(|line| place.shown(line)).join("\n"));
}

#[test]
fn recover() {
    let place =
        Place::new("ulog", &["one-topic.ulg", "damaged+three-places+sync+cut.ulg", "cut-in-payload.ulg"]);
    let runs = [
        "recover one-topic.ulg -o copy.ulg",
        "recover damaged+three-places+sync+cut.ulg -o fixed.ulg",
        "recover cut-in-payload.ulg -o cut.ulg --drop-stale -q",
        "recover cut-in-payload.ulg -o report.ulg -f json",
        "recover cut-in-payload.ulg -o cut.ulg",
        "recover cut-in-payload.ulg -o cut-in-payload.ulg --force",
        "recover cut-in-payload.ulg -o cut.ulg -f csv",
        "recover cut-in-payload.ulg -f json",
        "recover cut-in-payload.ulg -o strict.ulg --strict",
        "recover none.ulg -o none.ulg",
        "check cut.ulg fixed.ulg",
    ];
    let runs = runs.map(|line| place.shown(line)).join("\n");
    snapshot!("recover", runs);
    assert_eq!(place.read("copy.ulg"), place.read("one-topic.ulg"));
    assert!(!place.path("strict.ulg").exists());
}

/// A recovered log is valid, and recovering it again changes nothing. The exit code reports whether
/// data was lost.
#[test]
fn recovered_logs_are_valid() {
    for name in corpus_logs() {
        let output = run(&format!("recover {name}"));
        let lost = match output.status.code().unwrap() {
            1 => {
                assert_eq!(run(&format!("info {name}")).status.code(), Some(1), "{name}");
                continue;
            }
            code => code == 3,
        };
        let before = fs::read(corpus().join(&name)).unwrap();
        // A ULog that was cut before data was appended is copied unchanged, and `check` still
        // reports the cut.
        let cut = name.starts_with("appended") && output.stdout == before;
        let checked = run_with("check -q -", &output.stdout).status.code();
        assert!(checked == Some(0) || cut, "{name}: {checked:?}");
        assert_eq!(lost, output.stdout.len() < before.len(), "{name}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.lines().last().unwrap().starts_with("kept "), "{name}: {said}");
        let again = run_with("recover -", &output.stdout);
        assert_eq!((again.status.code(), again.stdout == output.stdout), (Some(0), true), "{name}");
    }
}

#[test]
fn slice() {
    let rich = "one-topic+multi-id+sync+dropout+texts+appended.ulg";
    let place = Place::new("ulog", &[rich, "one-topic.ulg", "parameters+changes.ulg", "cut-in-payload.ulg"]);
    fs::rename(place.path(rich), place.path("rich.ulg")).unwrap();
    let runs = [
        "slice rich.ulg -o all.ulg",
        "slice rich.ulg -o t.ulg --topics t/1,u -S +20ms -E +50ms",
        "cat t.ulg",
        "messages t.ulg",
        "slice rich.ulg -o latched.ulg -S 1.03s -l t/.*",
        "cat latched.ulg",
        "filter rich.ulg -o not-t.ulg -n t/.* -f json",
        "slice parameters+changes.ulg -o late.ulg -S 1.04s",
        "params late.ulg",
        "slice cut-in-payload.ulg -o cut.ulg",
        "check all.ulg t.ulg not-t.ulg late.ulg cut.ulg",
        "slice rich.ulg -o all.ulg",
        "slice rich.ulg -o rich.ulg --force",
        "slice rich.ulg -o none.ulg --topics w",
        "slice rich.ulg -o none.ulg -S 5s",
        "slice rich.ulg -f json",
    ];
    let runs = runs.map(|line| place.shown(line)).join("\n");
    snapshot!("slice", runs);
    assert!(!place.path("none.ulg").exists() && !place.path("none.ulg.partial").exists());
    let piped = place.run("slice one-topic.ulg").stdout;
    assert_eq!(piped, place.read("one-topic.ulg"));
}

#[test]
fn merge() {
    let place = Place::new(
        "ulog",
        &["one-topic.ulg", "utc-gps-int32.ulg", "cut-in-payload.ulg", "format-redefined.ulg"],
    );
    let runs = [
        "split one-topic.ulg -o parts --every 20ms",
        "merge parts/one-topic_1.ulg parts/one-topic_2.ulg -o whole.ulg",
        "merge parts/one-topic_1.ulg parts/one-topic_2.ulg -o whole.ulg --time-base boot",
        "diff whole.ulg one-topic.ulg",
        "merge utc-gps-int32.ulg utc-gps-int32.ulg -o twice.ulg --time-base utc -f json",
        "topics twice.ulg",
        "merge utc-gps-int32.ulg one-topic.ulg -o both.ulg",
        "merge one-topic.ulg cut-in-payload.ulg -o both.ulg --time-base boot",
        "merge format-redefined.ulg -o redefined.ulg",
        "merge one-topic.ulg -o one-topic.ulg --force",
        "merge -o none.ulg",
        "merge one-topic.ulg -o one.ulg --time-base relative",
    ];
    let runs = runs.map(|line| place.shown(line)).join("\n");
    snapshot!("merge", runs);
    assert!(!place.path("none.ulg").exists());
}

#[test]
fn diff() {
    let runs = [
        "diff one-topic.ulg one-topic.ulg --exit-code",
        "diff one-topic.ulg one-topic+multi-id.ulg --exit-code",
        "diff one-topic.ulg one-topic+multi-id.ulg -f json",
        "diff nested-types.ulg nested-timestamp.ulg",
        "diff format-redefined.ulg format-repeated.ulg --ignore-counts",
        "diff parameters+changes.ulg default-parameters.ulg",
        "diff parameters+changes.ulg default-parameters.ulg -f json",
        "diff one-topic.ulg cut-in-payload.ulg",
        "diff - -",
        "diff one-topic.ulg",
        "diff one-topic.ulg none.ulg",
        "diff one-topic.ulg one-topic.ulg -f csv",
    ];
    snapshot!("diff", runs.map(common::shown).join("\n"));
}

/// Comparing a log with itself finds no difference, and comparing a hostile log ends.
#[test]
fn a_log_does_not_differ_from_itself() {
    for name in corpus_logs() {
        let output = run(&format!("diff {name} {name} --exit-code"));
        let opens = run(&format!("info {name}")).status.success();
        assert!(!opens || output.stdout == b"no differences\n", "{name}");
    }
}

#[test]
fn split() {
    let rich = "one-topic+multi-id+sync+dropout+texts+appended.ulg";
    let place = Place::new("ulog", &[rich, "name-with-slash-and-dash.ulg", "cut-in-payload.ulg"]);
    fs::rename(place.path(rich), place.path("rich.ulg")).unwrap();
    let runs = [
        "split rich.ulg -o parts --every 50ms",
        "info parts/rich_1.ulg parts/rich_2.ulg parts/rich_3.ulg --get records",
        "split rich.ulg -o topics --by-topic -f json",
        "split name-with-slash-and-dash.ulg -o topics --by-topic",
        "split cut-in-payload.ulg -o parts --every 1h",
        "split rich.ulg -o parts --every 50ms",
        "split rich.ulg -o parts --every 50ms --force -q",
        "split rich.ulg -o small --size 450 -f json",
        "split rich.ulg -o whole --size 1kB",
        "split rich.ulg -o other --size 100",
        "split rich.ulg -o other --size much",
        "split rich.ulg -o other --every 1us",
        "split rich.ulg -o other --every 0s",
        "split rich.ulg -o other",
        "split rich.ulg -o rich.ulg --by-topic",
    ];
    let runs = runs.map(|line| place.shown(line)).join("\n");
    snapshot!("split", runs);
    assert!(!place.path("other").exists());
}
