//! Every command that reads, on one sound and one damaged log of every format, as text and as JSON (drawings as
//! text): one snapshot for each command. What a command can do beyond that is in the other files.

mod common;

use common::{run_in, shown_in, snapshot};
use serde_json::Value;

/// The folder of the corpus, a small log, one with damage, and a signal to draw.
const LOGS: [(&str, &str, &str, &str); 4] = [
    ("ulog", "one-topic.ulg", "cut-in-payload.ulg", "t.x"),
    ("rld", "v4.rld", "cut-in-row.rld", "samples.V1"),
    ("rosbag", "recorded.bag", "cut-in-payload.bag", "/chatter.data"),
    ("vel", "gps-degrees.vel", "cut-in-data.vel", "GPSDataM.latitude"),
];

/// What a command shows of both logs of every format.
fn golden(command: &str) -> String {
    let mut all = Vec::new();
    for (format, sound, damaged, signal) in LOGS {
        for log in [sound, damaged] {
            let line = match command {
                "diff" => format!("diff {sound} {log}"),
                "plot" => format!("plot {log} {signal}"),
                _ => format!("{command} {log}"),
            };
            all.push(shown_in(format, &line, b""));
            // A drawing is for eyes.
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

/// Output without what one pass cannot know: how the log's clock stands to UTC, how stamps drift, where to look again.
fn of_one_pass(output: Vec<u8>, log: &str, utc_at_end: bool) -> String {
    let text = String::from_utf8(output).unwrap().replace(&format!(" (rovelog check {log})"), "");
    let text = text.replace(log, "-");
    let Ok(mut json) = serde_json::from_str::<Value>(&text) else {
        // The end of the log, too, says how wide a column of times is.
        let lines = text.lines().map(str::trim_start).filter(|line| !line.starts_with("timing:"));
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

/// A pipe shows what the file shows.
#[test]
fn a_pipe_shows_the_same() {
    let commands = ["info", "topics", "schema", "cat", "messages", "params", "events", "stats", "check"];
    for (format, sound, damaged, _) in LOGS {
        // Positions tell UTC; the clocks of the others are UTC as they stand.
        let utc_at_end = matches!(format, "ulog" | "vel");
        for log in [sound, damaged] {
            let bytes = std::fs::read(rovelog_testing::root().join("corpus").join(format).join(log)).unwrap();
            for (command, output) in commands.into_iter().flat_map(|name| [(name, "text"), (name, "json")]) {
                // In text, times without UTC are of another width too.
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
