//! Which command is for which format: the table in README.md is what the command line does.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::run_in;

const FORMATS: [(&str, &str, &str); 4] = [
    ("ulog", "ulog", "ULog"),
    ("rld", "rld", "RLD"),
    ("rosbag", "rosbag12", "ROS bag"),
    ("vel", "vel", "VEL"),
];

/// Commands with what they need beside a log: `IN` is the log, `OUT` a place to write to.
const VERBS: [(&str, &str); 21] = [
    ("info", "IN"),
    ("topics", "IN"),
    ("schema", "IN"),
    ("cat", "IN"),
    ("messages", "IN"),
    ("params", "IN"),
    ("events", "IN"),
    ("stats", "IN"),
    ("du", "IN"),
    ("diff", "IN IN"),
    ("check", "IN"),
    ("recover", "IN -o OUT/recovered"),
    ("slice", "IN -o OUT/slice -S +0s"),
    ("split", "IN -o OUT/split --size 100MB"),
    ("merge", "IN -o OUT/merged"),
    ("export", "IN -o OUT/log.mcap"),
    ("extract", "IN -o OUT/extracted"),
    ("track", "IN -o OUT/track.gpx"),
    ("plot", "IN --all -o OUT/plot.svg"),
    ("report", "IN -o OUT/report.html"),
    ("export --to csv", "IN -o OUT/csv/"),
];

/// None of the real bags has a position on earth.
const NO_REAL_LOG: (&str, &str) = ("track", "rosbag");

fn logs(folder: &Path) -> Vec<PathBuf> {
    let mut logs: Vec<_> =
        fs::read_dir(folder).expect("a folder of logs").map(|entry| entry.unwrap().path()).collect();
    logs.retain(|path| {
        path.is_file() && path.extension().is_some_and(|found| found != "md" && found != "json")
    });
    // Small ones first: many a log will do.
    logs.sort_by_key(|path| (fs::metadata(path).unwrap().len(), path.clone()));
    logs
}

/// Whether the command takes some log of the folder, to the end.
fn takes(format: &str, verb: &str, arguments: &str, folder: &Path) -> bool {
    logs(folder).iter().any(|log| {
        let out = tempfile::tempdir().expect("a folder");
        let arguments = arguments.replace("OUT", &out.path().display().to_string());
        let line = format!("{verb} {} -q", arguments.replace("IN", &format!("'{}'", log.display())));
        run_in(format, &line, b"").status.code() == Some(0)
    })
}

#[test]
fn readme_says_which_command_is_for_which_format() {
    let root = rovelog_testing::root();
    let mut table = String::from("| command | ULog | RLD | ROS bag | VEL |\n|---|---|---|---|---|\n");
    for (verb, arguments) in VERBS {
        let mut cells = Vec::new();
        for (format, real, name) in FORMATS {
            let takes_corpus = takes(format, verb, arguments, &root.join("corpus").join(format));
            if takes_corpus && let Some(real) = rovelog_testing::real(real) {
                // The exception goes once there is such a log.
                let expected = (verb, format) != NO_REAL_LOG;
                assert_eq!(takes(format, verb, arguments, &real), expected, "{verb} of real {name} logs");
            }
            cells.push(if takes_corpus { "yes" } else { "-" });
        }
        table += &["| `", verb, "` | ", &cells.join(" | "), " |\n"].concat();
    }
    let readme = root.join("README.md");
    let text = fs::read_to_string(&readme).unwrap();
    let (begin, end) = ("<!-- commands by format -->\n", "<!-- end -->");
    let (before, rest) = text.split_once(begin).expect("the mark before the table");
    let (found, after) = rest.split_once(end).expect("the mark behind the table");
    if std::env::var_os("BLESS").is_some_and(|bless| bless == "1") {
        fs::write(&readme, format!("{before}{begin}{table}{end}{after}")).unwrap();
    } else {
        assert_eq!(found, table, "README.md: BLESS=1 cargo nextest run --test verbs writes the table again");
    }
}
