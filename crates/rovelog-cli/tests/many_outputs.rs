//! Commands that write one output for each of several logs, into a folder and named after the logs.

mod common;

use common::{Place, run_in, snapshot};

/// Returns a folder with logs of two formats, one of them twice, and a file that is not a log.
fn place() -> Place {
    let place = Place::new("ulog", &["one-topic.ulg", "utc-gps-int32.ulg"]);
    std::fs::create_dir_all(place.path("logs/second")).unwrap();
    for (from, to) in [
        ("one-topic.ulg", "logs/one-topic.ulg"),
        ("one-topic.ulg", "logs/second/one-topic.ulg"),
        ("utc-gps-int32.ulg", "logs/gps.ulg"),
    ] {
        std::fs::copy(place.path(from), place.path(to)).unwrap();
    }
    std::fs::write(place.path("logs/broken.ulg"), b"no log").unwrap();
    place
}

#[test]
fn several_logs_make_several_files() {
    let place = place();
    let lines = [
        "plot logs/ timestamp -o plots/ --to svg",
        "plot one-topic.ulg utc-gps-int32.ulg timestamp --height 4 --width 40",
        "plot logs/ t.x -o one.svg",
        "plot logs/ t.x --to svg",
        "plot logs/ --all t.x",
        "report logs/ -o reports/",
        "report logs/",
        "report one-topic.ulg one-topic.ulg -o double/",
        "track logs/ -o tracks/ --to gpx",
        "track logs/ --to gpx",
        "track utc-gps-int32.ulg one-topic.ulg -f csv",
        "export logs/ -o tables/ --to csv",
        "export logs/ -o joined/ --to csv --every 20ms",
        "export logs/ -o lines --to ndjson -f json",
        "export logs/ -o all.ndjson",
        "export logs/ --to csv",
        "export one-topic.ulg utc-gps-int32.ulg -o one-topic.ulg --to ndjson",
        "check logs/ -f csv",
    ];
    let mut shown = lines.map(|line| place.shown(line)).join("\n");
    for folder in ["plots", "reports", "tracks", "tables", "tables/logs_one-topic", "joined", "lines"] {
        shown.push_str(&["\n", folder, ": ", &place.names(folder).join(", "), "\n"].concat());
    }
    snapshot!("several_outputs", shown);
}

/// A run without any output leaves no folder.
#[test]
fn a_folder_without_outputs_is_not_created() {
    let place = place();
    let output = place.run("track one-topic.ulg logs/one-topic.ulg -o tracks/ --to kml");
    assert_eq!(output.status.code(), Some(1));
    assert!(!place.path("tracks").exists());
}

/// With several logs, each output is the same as for a single log.
#[test]
fn outputs_equal_those_of_single_logs() {
    let place = place();
    assert_eq!(place.run("report one-topic.ulg utc-gps-int32.ulg -o all/").status.code(), Some(0));
    assert_eq!(place.run("report utc-gps-int32.ulg -o one.html").status.code(), Some(0));
    assert_eq!(place.read("all/utc-gps-int32.html"), place.read("one.html"));
    // An existing output is a failure of its log, and the other outputs are written.
    std::fs::remove_file(place.path("all/one-topic.html")).unwrap();
    assert_eq!(place.run("report one-topic.ulg utc-gps-int32.ulg -o all/").status.code(), Some(1));
    assert!(place.path("all/one-topic.html").exists());
    assert_eq!(place.run("report one-topic.ulg utc-gps-int32.ulg -o all/ --force").status.code(), Some(0));
}

/// Logs are read in parallel, but outputs and errors keep the order of the logs.
#[test]
fn nothing_depends_on_the_number_of_threads() {
    let place = place();
    for format in ["rld", "rosbag", "ulog", "vel"] {
        for command in ["info", "info -f csv", "info --brief", "check", "check -f json", "check -f csv -q"] {
            let run = |jobs| {
                let run = run_in(format, &format!("{command} . --jobs {jobs}"), b"");
                (run.status.code(), run.stdout, run.stderr)
            };
            let one = run(1);
            assert!(one.1.len() > 2000, "{command} of {format}");
            assert!(one == run(3), "{command} of {format}");
        }
        let report = |jobs| {
            let folder = format!("{format}-{jobs}");
            let place = place.path(&folder).display().to_string();
            let run = run_in(format, &format!("report . -o {place} --jobs {jobs}"), b"");
            let said = String::from_utf8(run.stderr).unwrap().replace(&place, "");
            (run.status.code(), run.stdout, said)
        };
        assert!(report(1) == report(3), "reports of {format}");
        let [one, three] = ["1", "3"].map(|jobs| format!("{format}-{jobs}"));
        let names = place.names(&one);
        assert!(names.len() > 10 && names == place.names(&three), "reports of {format}");
        for name in names {
            let [one, three] = [&one, &three].map(|folder| place.read(&format!("{folder}/{name}")));
            assert!(one == three, "{name}");
        }
    }
}
