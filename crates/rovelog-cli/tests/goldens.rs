//! Snapshots of every reading command for one intact and one damaged log of each format, as text
//! and as JSON. There is one snapshot for each command. Other test files cover the remaining
//! options.

mod common;

use common::{run_in, shown_in, snapshot};
use serde_json::Value;

/// Folder in the corpus, intact log, damaged log and a signal to plot, for each format.
const LOGS: [(&str, &str, &str, &str); 4] = [
    ("ulog", "one-topic.ulg", "cut-in-payload.ulg", "t.x"),
    ("rld", "v4.rld", "cut-in-row.rld", "samples.V1"),
    ("rosbag", "recorded.bag", "cut-in-payload.bag", "/chatter.data"),
    ("vel", "gps-degrees.vel", "cut-in-data.vel", "GPSDataM.latitude"),
];

/// Returns the outputs of a command for the intact and the damaged log of every format.
fn golden(command: &str) -> String {
    let mut all = Vec::new();
    for (format, intact, damaged, signal) in LOGS {
        for log in [intact, damaged] {
            let line = match command {
                "diff" => format!("diff {intact} {log}"),
                "plot" => format!("plot {log} {signal}"),
                _ => format!("{command} {log}"),
            };
            all.push(shown_in(format, &line, b""));
            // A plot has no JSON output.
            if command != "plot" {
                all.push(shown_in(format, &format!("{line} -f json"), b""));
            }
        }
    }
    all.join("\n")
}

macro_rules! goldens {
    ($($name:ident)*) => { $(
        #[test]
        fn $name() {
            snapshot!(concat!("golden_", stringify!($name)), golden(stringify!($name)));
        }
    )* };
}

goldens! { info topics schema cat messages params events stats check diff plot }

/// Removes from an output everything that is unknown while reading a pipe: the offset to UTC, the
/// drift of time stamps, and the hint to read the file again.
fn of_one_pass(output: Vec<u8>, log: &str, utc_at_end: bool) -> String {
    let text = String::from_utf8(output).unwrap().replace(&format!(" (rovelog check {log})"), "");
    let text = text.replace(log, "-");
    let Ok(mut json) = serde_json::from_str::<Value>(&text) else {
        // The end of the log also determines the width of the column of times.
        let of_whole_log = |line: &&str| line.starts_with("timing:") || line.starts_with("findings:");
        let lines = text.lines().map(str::trim_start).filter(|line| !of_whole_log(line));
        return lines.collect::<Vec<_>>().join("\n");
    };
    if let Some(details) = json["details"].as_object_mut() {
        details.remove("timing");
    }
    for record in json["records"].as_array_mut().into_iter().flatten().filter(|_| utc_at_end) {
        record.as_object_mut().unwrap().remove("time");
    }
    json.to_string()
}

/// A log from a pipe gives the same output as a log from a file.
#[test]
fn a_pipe_gives_the_same_output() {
    let commands = ["info", "topics", "schema", "cat", "messages", "params", "events", "stats", "check"];
    for (format, intact, damaged, _) in LOGS {
        // ULogs get their UTC from GPS positions, which come late. The clocks of the other formats
        // are UTC.
        let utc_at_end = matches!(format, "ulog" | "vel");
        for log in [intact, damaged] {
            let bytes = std::fs::read(rovelog_testing::root().join("corpus").join(format).join(log)).unwrap();
            for (command, output) in commands.into_iter().flat_map(|name| [(name, "text"), (name, "json")]) {
                // In text, times without UTC also have a different width.
                if command == "cat" && output == "text" && format == "vel" {
                    continue;
                }
                let what = format!("{command} {log} -f {output}");
                let file = run_in(format, &what, b"");
                let pipe = run_in(format, &format!("{command} - -f {output}"), &bytes);
                assert_eq!(pipe.status.code(), file.status.code(), "{what}");
                let [pipe, file] = [pipe, file].map(|run| of_one_pass(run.stdout, log, utc_at_end));
                assert_eq!(pipe, file, "{what}");
            }
        }
    }
}
