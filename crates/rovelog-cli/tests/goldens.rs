//! Every command that reads, on one sound and one damaged log of every format, as text and as JSON (drawings as
//! text): one snapshot for each command. What a command can do beyond that is in the other files.

mod common;

use common::{run_in, shown_in};

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
            insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
                insta::assert_snapshot!(concat!("golden_", stringify!($name)), golden(stringify!($name)));
            });
        }
    )* };
}

goldens! { info topics schema cat messages params events stats check diff plot }

/// A pipe shows what the file shows.
#[test]
fn a_pipe_shows_the_same() {
    for (format, sound, damaged, _) in LOGS {
        for log in [sound, damaged] {
            let bytes = std::fs::read(rovelog_testing::root().join("corpus").join(format).join(log)).unwrap();
            for command in
                ["info", "topics", "schema", "cat", "messages", "params", "events", "stats", "check"]
            {
                for output in ["text", "json"] {
                    let file = run_in(format, &format!("{command} {log} -f {output}"), b"");
                    let pipe = run_in(format, &format!("{command} - -f {output}"), &bytes);
                    let what = format!("{command} {log} -f {output}");
                    assert_eq!(pipe.status.code(), file.status.code(), "{what}");
                    // A pipe cannot be checked a second time, so nobody is told to.
                    let hint = format!(" (rovelog check {log})");
                    let named = String::from_utf8(file.stdout).unwrap().replace(&hint, "").replace(log, "-");
                    assert_eq!(String::from_utf8(pipe.stdout).unwrap(), named, "{what}");
                }
            }
        }
    }
}
