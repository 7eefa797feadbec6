//! Output of every command for small logs of the corpus, as text and in machine-readable formats.
//!
//! `INSTA_UPDATE=always cargo nextest run -p rovelog-cli --features full` rewrites the snapshots.

mod common;

use common::{runs, shown_with, snapshot};

const RICH: &str = "one-topic+multi-id+sync+dropout+texts+appended.ulg";

runs! {
    in "ulog";
    info_text:
        "info one-topic+multi-id+sync+dropout+texts+appended.ulg",
        "info utc-gps-int32.ulg",
        "info utc-boot-time.ulg -v",
        "info utc-clock-is-unix.ulg",
        "info cut-in-payload.ulg",
        "info damaged+three-places+sync+cut.ulg",
        "info header-only.ulg",
        "info same-topic+new-id.ulg no-timestamp.ulg";
    info_json:
        "info one-topic+multi-id+sync+dropout+texts+appended.ulg -f json",
        "info utc-gps-int32.ulg -f json",
        "info damaged+three-places+sync+cut.ulg -f json",
        "info header-only.ulg no-timestamp.ulg -f json";
    info_get:
        "info utc-gps-int32.ulg --get start",
        "info utc-gps-int32.ulg --get clock.utc_rule",
        "info one-topic.ulg utc-gps-int32.ulg --get duration_ns",
        "info one-topic.ulg --get topics.t/0.count",
        "info one-topic.ulg --get topics.0.rate_hz",
        "info one-topic.ulg --get details.params",
        "info one-topic.ulg --get params",
        "info one-topic.ulg --get end",
        "info cut-in-payload.ulg --get problems.E-ULOG-002.name",
        "info one-topic.ulg --get stat";
    topics:
        "topics one-topic+multi-id+sync+dropout+texts+appended.ulg",
        "ls one-topic+multi-id+sync+dropout+texts+appended.ulg --sort bytes -y t",
        "list one-topic+multi-id+sync+dropout+texts+appended.ulg -n 't/.*' -f csv",
        "topics one-topic+multi-id+sync+dropout+texts+appended.ulg --topics u,t/1 -f ndjson",
        "topics no-timestamp.ulg -f json",
        "topics header-only.ulg",
        "topics damaged+three-places+sync+cut.ulg";
    schema:
        "schema nested-types.ulg",
        "schema nested-types.ulg tree --raw",
        "schema nested-types.ulg -f csv",
        "schema one-topic+multi-id.ulg -f json",
        "schema one-topic+multi-id.ulg -f ndjson",
        "schema format-redefined+after-subscription.ulg",
        "schema hostile+circular-subscribed.ulg",
        "schema one-topic.ulg atttitude";
    cat_text:
        "cat one-topic+multi-id+sync+dropout+texts+appended.ulg",
        "cat utc-gps-int32.ulg --fields lat,time_utc_usec -S -0.02s",
        "cat nested-types.ulg -E +0.005s",
        "cat float-specials.ulg",
        "cat no-timestamp.ulg",
        "cat char-arrays.ulg",
        "cat damaged+three-places+sync+cut.ulg -S 1.97s",
        "cat header-only.ulg";
    cat_machine:
        "cat one-topic.ulg -f ndjson",
        "cat one-topic.ulg -f json -E 1.02s",
        "cat one-topic.ulg -f csv",
        "cat utc-gps-int32.ulg -f csv --fields lat -S -0.02s",
        "cat utc-gps-int32.ulg -f ndjson --fields lat -S -0.02s",
        "cat nested-types.ulg -f csv --fields one.id,many[1].leaves -E +0.005s",
        "cat nested-types.ulg -f ndjson --fields one.id,many[1].leaves[0],timestamp -E +0.005s",
        "cat float-specials.ulg -f ndjson",
        "cat char-arrays.ulg -f csv",
        "cat no-timestamp.ulg -f ndjson",
        "cat damaged+three-places+sync+cut.ulg -f ndjson -S 1.97s",
        "cat header-only.ulg -f json";
    cat_times:
        "cat utc-gps-int32.ulg --fields lat -S -0.01s --time-format seconds",
        "cat utc-gps-int32.ulg --fields lat -S -0.01s --time-format nanoseconds --time-base boot",
        "cat utc-gps-int32.ulg --fields lat -S -0.01s --time-base relative",
        "cat utc-gps-int32.ulg --fields lat -S -0.01s -f ndjson --time-base relative --time-format seconds",
        "cat one-topic.ulg -S 1.08s --time-format rfc3339",
        "cat one-topic.ulg -S 1080000000",
        "cat one-topic.ulg -S 20000000 -E 30000000 --time-base relative",
        "cat one-topic+multi-id+sync+dropout+texts+appended.ulg -S -0.01s -l t/.*";
    messages:
        "messages texts-of-all-levels.ulg",
        "messages texts-of-all-levels.ulg --level warn -g 'LEVEL|chec'",
        "messages texts-tagged.ulg -f ndjson",
        "messages texts-tagged.ulg",
        "messages texts-control-characters.ulg",
        "messages texts-control-characters.ulg -f json",
        "messages texts-latin-1.ulg -f csv",
        "messages texts-of-all-levels.ulg -S +30ms --time-format nanoseconds",
        "messages header-only.ulg",
        "messages cut-in-payload.ulg";
    params:
        "params parameters+changes.ulg",
        "params default-parameters.ulg",
        "params default-parameters.ulg --changed",
        "params parameters+changes.ulg -f csv",
        "params parameters+changes.ulg -f json",
        "params default-parameters.ulg -f ndjson",
        "params parameters+changes.ulg default-parameters.ulg",
        "params parameters+changes.ulg default-parameters.ulg -f json",
        "params parameters+changes.ulg default-parameters.ulg -f csv",
        "params parameters+changes.ulg --at 1.03s",
        "params parameters+changes.ulg --at +1ms -f csv",
        "params parameters+changes.ulg default-parameters.ulg --at +10s",
        "params parameters+changes.ulg --at +1h -f qgc",
        "params parameter-of-other-types.ulg -f qgc",
        "params parameters+changes.ulg -f octave",
        "params parameters+changes.ulg default-parameters.ulg -f qgc",
        "info parameters+changes.ulg -f qgc",
        "params header-only.ulg",
        "params cut-in-payload.ulg";
    check:
        "check one-topic.ulg",
        "check damaged+three-places+sync+cut.ulg",
        "check damaged+three-places+sync+cut.ulg -f json",
        "doctor unknown-messages.ulg -v",
        "check one-topic.ulg cut-in-payload.ulg",
        "check one-topic.ulg cut-in-payload.ulg -q",
        "check one-topic.ulg cut-in-payload.ulg -f json";
    many_logs:
        "info one-topic.ulg cut-in-payload.ulg --brief",
        "info one-topic.ulg cut-in-payload.ulg -f csv",
        "info one-topic.ulg cut-in-payload.ulg -f ndjson",
        "info one-topic.ulg -f csv",
        "check one-topic.ulg cut-in-payload.ulg -f ndjson",
        "topics one-topic.ulg utc-gps-int32.ulg",
        "topics one-topic.ulg utc-gps-int32.ulg -f csv",
        "topics one-topic.ulg utc-gps-int32.ulg -f ndjson",
        "topics one-topic.ulg utc-gps-int32.ulg -f json",
        "topics none.ulg one-topic.ulg -f json",
        "topics one-topic.ulg utc-gps-int32.ulg --topics t",
        "cat one-topic.ulg one-topic+multi-id.ulg --topics t -E +5ms",
        "cat one-topic.ulg one-topic+multi-id.ulg --topics t -E +15ms -f csv",
        "cat one-topic.ulg one-topic+multi-id.ulg --topics t -E +15ms -f ndjson",
        "cat one-topic.ulg one-topic+multi-id.ulg --topics t -E +15ms -f json",
        "cat one-topic.ulg nested-types.ulg -E +15ms -f csv",
        "schema one-topic.ulg one-topic+multi-id.ulg t -f csv",
        "schema one-topic.ulg missing.ulg",
        "messages one-topic.ulg texts-tagged.ulg -f ndjson",
        "du one-topic.ulg utc-gps-int32.ulg -f csv",
        "stats one-topic.ulg one-topic+multi-id.ulg -f ndjson",
        "params parameters+changes.ulg default-parameters.ulg one-topic.ulg",
        "params 'MC*' parameters+changes.ulg default-parameters.ulg",
        "params '*' parameters+changes.ulg default-parameters.ulg -f csv",
        "params '*' parameters+changes.ulg default-parameters.ulg -f json",
        "params '*' parameters+changes.ulg -f csv",
        "params parameters+changes.ulg none.ulg one-topic.ulg -f qgc";
    health:
        "stats one-topic.ulg --timing",
        "stats one-topic+multi-id.ulg --timing -f csv",
        "stats one-topic.ulg --timing -f ndjson",
        "stats one-topic.ulg --timing -f json",
        "stats float-specials.ulg",
        "check one-topic+multi-id.ulg -S +20ms",
        "check one-topic.ulg -f ndjson",
        "check gaps+dropout.ulg",
        "stats gaps+dropout.ulg --timing",
        "diff one-topic.ulg one-topic+multi-id.ulg --stats",
        "diff one-topic.ulg one-topic+multi-id.ulg --stats -f json",
        "diff one-topic.ulg one-topic+multi-id.ulg --stats --topics t --fields x";
    utc_start:
        "info one-topic.ulg --utc-start 2026-05-20T12:00:00Z",
        "cat one-topic.ulg -E +15ms --utc-start 2026-05-20T12:00:00Z -f ndjson",
        "cat utc-gps-int32.ulg -S -10ms --fields lat --utc-start 2026-05-20T12:00:00Z",
        "info utc-clock-is-unix.ulg --utc-start 2026-05-20T12:00:00Z",
        "info one-topic.ulg --utc-start +10s";
    help:
        "",
        "--version",
        "info --help",
        "topics --help",
        "schema --help",
        "cat --help",
        "messages --help",
        "params --help",
        "events --help",
        "findings --help",
        "track --help",
        "check --help",
        "recover --help",
        "slice --help",
        "split --help",
        "diff --help",
        "dump --help";
    errors:
        "info none.ulg",
        "info ../manifest.toml",
        "info encrypted-container.ulg",
        "info unknown-incompat-bit-1-of-byte-0.ulg",
        "info cut-in-file-header.ulg",
        "info one-topic.ulg -f octave",
        "info one-topic.ulg --input-format sonar",
        "cat one-topic.ulg --topics tt",
        "cat one-topic.ulg -y 'x.*'",
        "cat one-topic.ulg --topics 't*'",
        "cat nested-types.ulg -y tre",
        "cat one-topic.ulg -y '('",
        "cat one-topic.ulg -y t -n u",
        "cat one-topic.ulg --fields timestmp",
        "cat one-topic.ulg -S 2026-05-20T12:00:00Z",
        "cat one-topic.ulg -S 12:00:00",
        "cat one-topic.ulg -S 2s",
        "cat one-topic.ulg -S +50ms -E +20ms",
        "cat one-topic.ulg -S -30",
        "cat one-topic.ulg --time-base utc",
        "cat one-topic+multi-id.ulg -f csv",
        "cat cut-in-payload.ulg --strict",
        "messages one-topic.ulg --level loud",
        "params one-topic.ulg none.ulg",
        "schema one-topic.ulg -S 1s",
        "frobnicate";
}

/// `help COMMAND` and `COMMAND --help` print the same text.
#[test]
fn help_is_a_command_too() {
    let text = |line| String::from_utf8(common::run(line).stdout).unwrap();
    assert_eq!(text("help info"), text("info --help"));
    assert_eq!(text("rld help csv"), text("rld csv --help"));
}

/// Prose is wrapped at 100 columns, or at the width of a narrower terminal.
#[test]
fn help_is_wrapped_once() {
    let names = text_of(None, 100);
    let names =
        names.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names: Vec<_> = names
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .map(str::to_owned)
        .collect();
    assert!(names.len() > 20, "{names:?}");
    for (name, columns) in names.iter().flat_map(|name| [(name, 80), (name, 100)]) {
        let help = text_of(Some(name), columns);
        // clap does not wrap the usage line.
        let fits = |line: &str| line.starts_with("Usage:") || line.chars().count() <= columns;
        assert!(help.lines().all(fits), "{name}: {help}");
        let prose = help.split("\n\n").filter(|part| !part.starts_with([' ', '-']) && !part.contains("\n "));
        for part in prose {
            let lines: Vec<_> = part.lines().collect();
            for pair in lines.windows(2) {
                let next = pair[1].split(' ').next().unwrap();
                let fits = pair[0].chars().count() + 1 + next.chars().count() <= columns;
                assert!(!fits, "{name} at {columns} columns: {:?} could follow {:?}", pair[1], pair[0]);
            }
        }
    }
}

fn text_of(name: Option<&str>, columns: usize) -> String {
    let output = common::rovelog().args(name).arg("--help").env("COLUMNS", columns.to_string()).output();
    String::from_utf8(output.unwrap().stdout).unwrap()
}

/// The name of a log may contain control characters, which are escaped.
#[test]
fn names_are_escaped() {
    let output = common::run("info '\u{1b}[31m.ulg'");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("error: no such file: \\x1b[31m.ulg\n"), "{said}");
}

/// From a pipe, the summary is unknown in advance, and records are printed in file order.
#[test]
fn from_a_pipe() {
    let log = std::fs::read(common::corpus().join(RICH)).unwrap();
    let lines = [
        "info -",
        "topics",
        "cat - -f ndjson",
        "cat -f csv --topics u",
        "cat - -f csv",
        "cat - --topics missing",
        "cat - -S -1s",
        "cat - -S +0.1s",
        "messages -",
        "params",
        "schema - u",
        "check -",
    ];
    let runs = lines.map(|line| shown_with(line, &log)).join("\n");
    snapshot!("from_a_pipe", runs);
}
