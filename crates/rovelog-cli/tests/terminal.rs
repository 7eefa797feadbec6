//! Output on a terminal. A log cannot control the terminal, and a progress bar is shown for a long
//! command. The script `terminal.py` runs the commands on a pseudo-terminal.
#![cfg(unix)]

mod common;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

/// Runs command lines on a pseudo-terminal. Returns the exit codes and the bytes sent to the
/// terminal.
fn on_terminal(folder: &Path, runs: &[Value]) -> Vec<(i64, Vec<u8>)> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/terminal.py");
    let mut python = Command::new("python3")
        .arg(script)
        .current_dir(folder)
        .env_remove("NO_COLOR")
        .env("TERM", "xterm")
        .env("COLUMNS", "100")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3");
    let mut stdin = python.stdin.take().unwrap();
    let lines = runs.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    let feeder = std::thread::spawn(move || stdin.write_all(lines.as_bytes()));
    let output = python.wait_with_output().unwrap();
    feeder.join().unwrap().unwrap();
    let results: Vec<Value> =
        serde_json::Deserializer::from_slice(&output.stdout).into_iter().map(Result::unwrap).collect();
    assert_eq!(results.len(), runs.len());
    let latin_1 = |text: &str| text.chars().map(|c| u8::try_from(c).unwrap()).collect();
    let read =
        |result: &Value| (result["code"].as_i64().unwrap(), latin_1(result["output"].as_str().unwrap()));
    results.iter().map(read).collect()
}

fn argv(line: &str) -> Vec<String> {
    let binary = assert_cmd::cargo::cargo_bin!("rovelog").to_str().unwrap().to_owned();
    std::iter::once(binary).chain(line.split(' ').map(str::to_owned)).collect()
}

/// Control sequences that are short enough to replace a name: an operating system command that sets
/// the title, a color, a carriage return, and a character that changes the direction of writing.
const HOSTILE: &[u8] = b"\x1b]0;x\x07\x1b[31m\r\xe2\x80\xae\xc2\x9b2J\x7f";

/// Returns a log of the corpus with `name` replaced everywhere.
fn hostile(place: &common::Place, log: &str, names: &[&str]) -> PathBuf {
    let mut bytes = place.read(log);
    for name in names {
        let name = name.as_bytes();
        let evil: Vec<u8> = HOSTILE.iter().copied().cycle().take(name.len()).collect();
        let mut found = 0;
        for at in 0..bytes.len().saturating_sub(name.len()) {
            if bytes[at..].starts_with(name) {
                bytes[at..at + name.len()].copy_from_slice(&evil);
                found += 1;
            }
        }
        assert!(found > 0, "{log} has no {}", String::from_utf8_lossy(name));
    }
    let path = place.path(log);
    std::fs::write(&path, bytes).unwrap();
    path
}

/// Removes the allowed control characters, which are line ends and, if requested, colors. Returns
/// the first other control character.
fn first_control_character(output: &[u8], colors: bool) -> Option<String> {
    let text = String::from_utf8_lossy(output).replace("\r\n", "\n");
    let mut text = text.replace('\u{fffd}', "");
    if colors {
        for code in ["0", "1", "2", "31", "32", "33", "34", "35", "36"] {
            text = text.replace(&format!("\x1b[{code}m"), "");
        }
    }
    let steers = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.find(steers).map(|at| {
        let end = text.len().min(at + 60);
        let start = (0..=at.saturating_sub(60)).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0);
        let end = (end..=text.len()).find(|i| text.is_char_boundary(*i)).unwrap_or(text.len());
        format!("{:?}", &text[start..end])
    })
}

const COMMANDS: &str = "\
info LOG
info LOG -v --explain
info LOG -f json
topics LOG
topics LOG -f csv
schema LOG
schema LOG --raw
schema LOG -f json
cat LOG
cat LOG -f json
cat LOG -f ndjson
messages LOG
messages LOG -f csv
params LOG
params LOG -f json
params LOG -f qgc
params LOG -f octave
events LOG
findings LOG
findings LOG -f json
stats LOG
stats LOG -f csv
du LOG
dump LOG --at 100
diff LOG OTHER
diff OTHER LOG -f json
check LOG -v
check LOG OTHER
recover LOG -o OUT.1
slice LOG -o OUT.2
scrub LOG -o OUT.4
slice LOG -o OUT.3 --topics none
split LOG -o parts --by-topic
merge LOG LOG -o OUT.4 --time-base boot
export LOG --to ndjson
export LOG -o OUT.5 --to mcap
export LOG -o tables --to csv
extract LOG -o images
track LOG --to gpx
track LOG -f csv
plot LOG --all
plot LOG none
report LOG -o OUT.html
rld csv LOG
ulog infos LOG
ulog dropouts LOG
cat LOG --topics \u{1b}[2J
cat LOG --\u{1b}[2J";

fn assert_no_control(format: &str, log: &str, other: &str, names: &[&str], topics: &[&str]) {
    let place = common::Place::new(format, &[log, other]);
    let path = hostile(&place, log, names);
    let mut lines: Vec<String> = COMMANDS.lines().map(str::to_owned).collect();
    for topic in topics {
        lines.push(format!("export LOG --to csv --topics {topic}"));
        lines.push(format!("cat LOG -f csv --topics {topic}"));
        lines.push(format!("plot LOG {topic}"));
    }
    let (name, other) = (path.to_str().unwrap(), place.path(other));
    let fill = |line: &str| line.replace("LOG", name).replace("OTHER", other.to_str().unwrap());
    let runs = lines.iter().map(|line| json!({"argv": argv(&format!("{} -q", fill(line)))}));
    let colored = lines.iter().map(|line| json!({"argv": argv(&fill(line))}));
    let runs: Vec<_> = runs.chain(colored).collect();
    let results = on_terminal(&place.path("."), &runs);
    let mut done = 0;
    for (run, (code, output)) in runs.iter().zip(&results) {
        assert!((0..4).contains(code), "{run}: {code}");
        done += usize::from(*code == 0 || *code == 3);
        if let Some(found) = first_control_character(output, true) {
            panic!("{run} steers the terminal: {found}");
        }
    }
    assert!(done > lines.len() / 2, "{done} of {} runs did something", runs.len());
}

#[test]
fn a_ulog_cannot_control_the_terminal() {
    let log = "one-topic+multi-id+sync+dropout+texts+appended.ulg";
    let names = ["[commander] Takeoff detected", "from seven", "r0: 0x00000000", "PX4"];
    assert_no_control("ulog", log, "one-topic.ulg", &names, &["t/0", "u"]);
    assert_no_control("ulog", "texts-control-characters.ulg", "one-topic.ulg", &[], &["t"]);
}

#[test]
fn an_rld_log_cannot_control_the_terminal() {
    assert_no_control("rld", "v4.rld", "v3.rld", &["corpus", "V1"], &["samples"]);
}

#[test]
fn a_bag_cannot_control_the_terminal() {
    assert_no_control("rosbag", "console.bag", "recorded.bag", &["/rosout"], &[]);
    assert_no_control("rosbag", "recorded.bag", "console.bag", &["/chatter"], &[]);
}

#[test]
fn a_vel_log_cannot_control_the_terminal() {
    assert_no_control(
        "vel",
        "laser-utm.vel",
        "gps-degrees.vel",
        &["Hokuyo_UTM-30LX"],
        &["LaserScannerM/front"],
    );
}

#[test]
fn a_bar_shows_the_progress_of_a_long_command() {
    let place = common::Place::new("ulog", &["one-topic.ulg"]);
    let mut log = place.read("one-topic.ulg");
    let row = log[log.len() - 17..].to_vec();
    log.extend(row.repeat(100_000));
    std::fs::write(place.path("large.ulg"), log).unwrap();
    assert!(Command::new("mkfifo").arg(place.path("pipe")).status().unwrap().success());
    // The output is read after a delay, so most of the work is still to be done when the bar
    // appears.
    let export = argv("export large.ulg -o pipe --to ndjson").join(" ");
    let run = |quiet: &str| {
        let line = format!("(exec 3<pipe; sleep 2; cat <&3 >/dev/null) & {export} {quiet}");
        json!({"argv": ["sh", "-c", line]})
    };
    let results = on_terminal(&place.path("."), &[run(""), run("-q")]);
    let [(0, shown), (0, quiet)] = &results[..] else { panic!("{results:?}") };
    let text = String::from_utf8_lossy(shown);
    assert!(text.contains(" kB of 1.70 MB, ") && text.contains(" left"), "{text}");
    // The bar is removed at the end.
    assert!(text.rsplit("\x1b[2K").next().is_some_and(|last| !last.contains(" left")), "{text:?}");
    assert!(text.contains("wrote 100010 records to pipe"), "{text:?}");
    assert_eq!(String::from_utf8_lossy(quiet), "");
}

/// Every command shows that it is running, even if the amount of work is unknown. Here the input
/// has not arrived yet.
#[test]
fn every_command_shows_that_it_is_running() {
    let place = common::Place::new("ulog", &["one-topic.ulg"]);
    let lines = [
        "info -",
        "check -",
        "recover - -o fixed.ulg",
        "report - -o page.html",
        "plot - t",
        "diff - one-topic.ulg",
    ];
    let run = |line: &&str| json!({"argv": argv(line), "stdin": "one-topic.ulg", "hold": 1.5});
    let runs: Vec<_> = lines.iter().map(run).collect();
    for (line, (code, output)) in lines.iter().zip(on_terminal(&place.path("."), &runs)) {
        let text = String::from_utf8_lossy(&output);
        assert_eq!(code, 0, "{line}: {text}");
        assert!(text.contains("\r\x1b[2K") && text.contains(" 1s"), "{line}: {text:?}");
        let (bar, result) = text.rsplit_once("\r\x1b[2K").unwrap();
        assert!(bar.contains("1s") && !result.contains("1s"), "{line}: {text:?}");
    }
    let quiet = json!({"argv": argv("info - -q"), "stdin": "one-topic.ulg", "hold": 1.5});
    let output = on_terminal(&place.path("."), &[quiet]).remove(0).1;
    assert!(!String::from_utf8_lossy(&output).contains("\x1b[2K"), "{output:?}");
}

#[test]
fn binary_output_to_a_terminal_is_refused() {
    let place = common::Place::new("rld", &["v4.rld"]);
    let names = [
        ("scrub v4.rld", "-o v4.public.rld,"),
        ("rld csv v4.rld", "-o log.csv,"),
        ("rld import v4.csv", "-o log.rld,"),
    ];
    let runs: Vec<_> = names.iter().map(|(line, _)| json!({"argv": argv(line)})).collect();
    for ((line, name), (code, output)) in names.iter().zip(on_terminal(&place.path("."), &runs)) {
        let said = String::from_utf8_lossy(&output);
        assert!(code == 2 && said.contains(name), "{line}: {said}");
    }
}
