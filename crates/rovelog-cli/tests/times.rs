//! Stale times do not extend a log, and a time that selects nothing is an error.

mod common;

use common::{Place, code, run_in, runs, stdout};

runs! {
    in "ulog";
    times_stale:
        "info timestamps-stale.ulg",
        "info timestamps-stale.ulg --get data_end_ns",
        "check timestamps-stale.ulg",
        "topics timestamps-stale.ulg",
        "ulog dropouts timestamps-stale.ulg",
        "plot timestamps-stale.ulg mission.n --height 4",
        "params timestamps-stale.ulg",
        "cat timestamps-stale.ulg --topics mission",
        "cat timestamps-stale.ulg -S -10ms",
        "cat timestamps-stale.ulg -S +1180ms -E +2s",
        "cat timestamps-stale.ulg -S 1190s",
        "cat timestamps-zero+equal+falling.ulg -S -10ms",
        "topics timestamps-zero+equal+falling.ulg -f json";
    times_refused:
        "cat one-topic.ulg -S 10ms",
        "cat one-topic.ulg -S 90",
        "cat one-topic.ulg -E 1h",
        "cat one-topic.ulg -S +1m30s -E +1m",
        "cat one-topic.ulg -S '+10 s'",
        "cat one-topic.ulg -S 50%",
        "messages one-topic.ulg -S 90",
        "cat ../rosbag/recorded.bag -S 10s",
        "cat ../rosbag/recorded.bag -S 1262304000";
    times_stats:
        "stats one-topic.ulg -S +10ms -E +30ms",
        "stats one-topic.ulg --fields timestamp -f json",
        "stats one-topic.ulg --fields timestamp -f csv",
        "stats ../rld/v4.rld --energy --fields V1 -S +2ms -E +6ms",
        "stats ../rld/v4.rld --window 4ms --fields V1 -S +2ms -E +6ms",
        "stats ../rld/v4.rld --above V1=1000",
        "stats ../rld/v4.rld --energy --window 5ms --fields V1 -f csv";
    times_every:
        "export timestamps-stale.ulg --to csv --every 250ms --join t",
        "export ../rosbag/stamp-of-another-clock.bag --to csv --every 1s -E 2100-01-01T00:00:00Z";
}

/// All records of a log are printed in time order, even if some times are far outside the time
/// range of the other records. A time window contains only records with times inside.
#[test]
fn records_come_in_time_order_and_within_the_window() {
    for (log, window) in [
        ("timestamps-stale.ulg", ""),
        ("timestamps-stale.ulg", "-S -500ms"),
        ("timestamps-zero+equal+falling.ulg", ""),
        ("timestamps-zero+equal+falling.ulg", "-S -15ms -E +25ms"),
    ] {
        let times: Vec<i64> = stdout(&format!("cat {log} {window} -f ndjson"))
            .lines()
            .map(|line| {
                serde_json::from_str::<serde_json::Value>(line).unwrap()["t_ns"]
                    .as_str()
                    .unwrap()
                    .parse()
                    .unwrap()
            })
            .collect();
        assert!(times.is_sorted() && !times.is_empty(), "{log} {window}: {times:?}");
        if !window.is_empty() {
            assert!(times.iter().all(|time| *time > 1_000_000_000), "{log} {window}: {times:?}");
        }
    }
}

/// A plot starts with the first record, even if its time is 0. Times of VEL logs start at 0.
#[test]
fn time_zero_is_a_valid_time() {
    let output = run_in("vel", "plot gps-degrees.vel --all", b"");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let place = Place::new("vel", &["gps-degrees.vel"]);
    assert_eq!(place.run("report gps-degrees.vel -o r.html").status.code(), Some(0));
    let page = String::from_utf8(place.read("r.html")).unwrap();
    assert!(page.contains("data-panel=\"0\""), "the report has plots");
    let first = r#""name":"t/0","type":"t""#;
    let topics = stdout("topics timestamps-zero+equal+falling.ulg -f json");
    assert!(topics.contains(first), "{topics}");
    assert_eq!(code("cat timestamps-stale.ulg -S 10s"), 2);
}

/// The log in the README has one record that is 1167 s after 6.5 s of data.
#[test]
fn the_log_in_the_readme_has_a_duration_of_six_seconds() {
    let Some(log) = rovelog_testing::real("ulog").map(|folder| folder.join("sample_log_small.ulg")) else {
        return;
    };
    let log = log.display();
    let info = stdout(&format!("info {log}"));
    assert!(info.contains("duration:     6.516648s"), "{info}");
    let stale = "1 record of mission/0 is 1167 s after all other records: at 2021-04-21T06:50:32.508971Z, byte 63709 \
                 (19m 34.058246s with it)";
    assert!(info.contains(stale), "{info}");
    let dropouts = stdout(&format!("ulog dropouts {log}"));
    assert!(dropouts.starts_with("2021-04-21T06:30:58.470794Z  30 ms"), "{dropouts}");
    let last = stdout(&format!("cat {log} -S -1s -E -500ms"));
    assert!(last.lines().count() > 500 && !last.contains("test_motor"), "{}", last.lines().count());
    let stats = stdout(&format!("stats {log} --topics cpuload --fields timestamp"));
    assert!(stats.contains("19984817"), "{stats}");
}
