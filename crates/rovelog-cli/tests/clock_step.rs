//! RocketLogger logs whose UTC clock was set during the recording (docs/formats/rld.md, section 3).
//! Durations, integrals, windows and slices follow the monotonic clock, and each row keeps its own
//! UTC.

mod common;

use std::fs;
use std::io::Cursor;

use common::Place;
use rovelog::rld_format::unit::Unit;
use rovelog::rld_format::wire::BlockTimes;
use rovelog::rld_format::{ChannelSpec, LogSpec, RldWriter, encode_row};
use serde_json::Value;

const SECOND: i128 = 1_000_000_000;
/// 2016-06-15T22:13:11Z in seconds of Unix time.
const START: i128 = 1_466_028_791 * SECOND;
/// Duration in nanoseconds of a block of 100 rows. The rate is nominally 100 rows per second, but
/// the interval between two rows is 10.0352 ms.
const BLOCK: i128 = 1_003_520_000;
const BLOCKS: i128 = 60;
const SIX_YEARS: i128 = 195_526_720 * SECOND;

/// Returns a log of 60 s with a constant voltage of 3.3 V and a constant current of 1 uA. After 20
/// blocks, the UTC clock is set by `step`.
fn log(step: i128) -> Vec<u8> {
    let channels = vec![
        ChannelSpec::range("I1L_valid"),
        ChannelSpec::analog("V1", Unit::Volt, -8),
        ChannelSpec::analog("I1L", Unit::Ampere, -11).valid_if("I1L_valid"),
        ChannelSpec::analog("I1H", Unit::Ampere, -9),
    ];
    let spec =
        LogSpec { channels, block_rows: 100, start: i64::try_from(START).unwrap(), ..LogSpec::new(100) };
    let mut log = RldWriter::new(Cursor::new(Vec::new()), spec.header().unwrap()).unwrap();
    let mut rows = Vec::new();
    for _ in 0..100 {
        encode_row(log.layout(), &[1], &[330_000_000, 100_000, 1_000], &mut rows).unwrap();
    }
    for block in 0..BLOCKS {
        let since = block * BLOCK;
        let set = if block < 20 { 0 } else { step };
        let times = BlockTimes::new(START + since + set, 5 * SECOND + since).unwrap();
        log.block(&times, &rows).unwrap();
    }
    log.finish_in_place().unwrap().0.into_inner()
}

/// Returns a folder with four logs. In the first log, the UTC clock is never set. In the others, it
/// is set forward by years, set forward by 5 s, and set back by 2 s.
fn place() -> Place {
    let place = Place::new("rld", &[]);
    for (name, step) in [("none", 0), ("years", SIX_YEARS), ("ahead", 5 * SECOND), ("back", -2 * SECOND)] {
        fs::write(place.path(&format!("{name}.rld")), log(step)).unwrap();
    }
    place
}

const LOGS: [&str; 4] = ["none.rld", "years.rld", "ahead.rld", "back.rld"];

fn stdout(place: &Place, line: &str) -> String {
    let output = place.run(line);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{line}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn durations_rates_and_sums_do_not_depend_on_a_clock_that_was_set() {
    let place = place();
    for log in LOGS {
        let info = stdout(&place, &format!("info {log}"));
        // The log has 6000 rows at intervals of 10.0352 ms. There are 5999 intervals from the first
        // row to the last row.
        assert!(info.contains("duration:    1m 0.2011648s"), "{info}");
        assert!(info.contains("gaps:        none") && info.contains("99.65"), "{info}");
        // The power is constantly 3.3 uW. The integral covers the 60.2011648 s from the first row
        // to the last. The option `--energy` counts 10.0352 ms for each of the 6000 rows, which is
        // 60.2112 s.
        let integral = stdout(&place, &format!("stats {log} --exact --fields 'E=integral(V1*I1)'"));
        assert!(integral.contains("0.0001986638"), "{log}: {integral}");
        let energy = stdout(&place, &format!("stats {log} --exact --energy"));
        assert!(energy.contains("0.000198697"), "{log}: {energy}");
        let slope = stdout(&place, &format!("stats {log} --fields 'D=derivative(V1)' -f csv"));
        assert!(!slope.to_lowercase().contains("inf"), "{log}: {slope}");
        let check = stdout(&place, &format!("check {log}"));
        assert!(!check.contains("missing"), "{log}: {check}");
        assert_eq!(check.contains("W-RLD-121"), log != "none.rld", "{log}: {check}");
        let held = stdout(&place, &format!("events {log} 'I1 > 1e-7 for 5s' -f ndjson"));
        assert_eq!(held.lines().count(), 1, "{log}: {held}");
    }
    let check = stdout(&place, "check years.rld");
    assert!(
        check.contains("the UTC clock of the logger was changed by 195526720.0 s before row 2000"),
        "{check}"
    );
}

#[test]
fn windows_slices_and_regular_rows_follow_the_monotonic_clock() {
    let place = place();
    for log in LOGS {
        // A time window of 20 s contains 1993 rows at intervals of 10.0352 ms.
        stdout(&place, &format!("slice {log} -S +10s -E +30s -o part.rld --force"));
        let part: Value = serde_json::from_str(&stdout(&place, "info part.rld -f json")).unwrap();
        assert_eq!(part["records"].to_string().trim_matches('"'), "1993", "{log}");
        let rows = stdout(&place, &format!("export {log} --every 1s --to csv"));
        assert_eq!(rows.lines().count(), 1 + 61, "{log}");
        let windows = stdout(&place, &format!("stats {log} --window 5s --fields V1 -f csv"));
        // There are 12 complete time windows and an incomplete one.
        assert_eq!(windows.lines().count(), 1 + 13, "{log}: {windows}");
    }
    // In the new file, the UTC clock is set in the middle of a block.
    let said = place.run("slice ahead.rld -S +10s -E +30s -o part.rld --force");
    let said = format!("{}{}", String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&said.stderr));
    assert!(said.contains("97 rows recorded after the clock was set have UTC times from before"), "{said}");
}

#[test]
fn each_row_has_its_own_utc_and_boot_shows_the_monotonic_clock() {
    let place = place();
    let cells = |line: &str, row: usize| {
        let csv = stdout(&place, line);
        csv.lines().nth(1 + row).unwrap().split(',').take(2).collect::<Vec<_>>().join(" ")
    };
    // Row 2000 is 2000 intervals of 10.0352 ms, that is 20.0704 s, after the start.
    for (log, utc) in [
        ("none.rld", "2016-06-15T22:13:31.070400000Z"),
        ("years.rld", "2022-08-26T23:12:11.070400000Z"),
        ("ahead.rld", "2016-06-15T22:13:36.070400000Z"),
        ("back.rld", "2016-06-15T22:13:29.070400000Z"),
    ] {
        for command in [format!("cat {log} -f csv"), format!("export {log} --to csv")] {
            assert!(cells(&command, 2000).starts_with(utc), "{command}: {}", cells(&command, 2000));
            assert!(cells(&command, 0).starts_with("2016-06-15T22:13:11.000000000Z"), "{command}");
        }
        let boot = cells(&format!("cat {log} --time-base boot -f csv"), 2000);
        assert_eq!(boot, format!("{utc} 25070400000"), "{log}");
        let relative = cells(&format!("cat {log} --time-base relative -f csv"), 2000);
        assert_eq!(relative, format!("{utc} 20070400000"), "{log}");
        let text = stdout(&place, &format!("cat {log} --time-base boot"));
        assert!(text.lines().nth(2000).unwrap().trim_start().starts_with("25.070400"), "{log}");
    }
    // The same rows are selected by UTC, by the time base, and from a pipe.
    let after = stdout(&place, "cat years.rld -S 2022-08-26T00:00:00Z");
    assert_eq!(after.lines().count(), 4000);
    let before = stdout(&place, "cat years.rld -E 2022-08-26T00:00:00Z");
    assert_eq!(before.lines().count(), 2000);
    // The second from 22:13:30 occurs twice, and both occurrences are printed.
    let twice = stdout(&place, "cat back.rld -S 2016-06-15T22:13:30Z -E 2016-06-15T22:13:31Z");
    assert_eq!(twice.lines().count(), 299);
    let piped = common::run_in("rld", "cat - --time-base boot", &log(SIX_YEARS));
    let piped = String::from_utf8(piped.stdout).unwrap();
    assert!(piped.lines().nth(2000).unwrap().trim_start().starts_with("25.070400"));
    let refused = common::shown_in("rosbag", "cat recorded.bag --time-base boot", b"");
    assert!(refused.contains("the log has only UTC") && refused.contains("[exit 2]"), "{refused}");
}

/// A log with clock steps may cover years of UTC, although its records cover a minute.
#[test]
fn rows_at_regular_times_are_not_many_more_than_records() {
    let place = place();
    let line = "export years.rld --every 1us --to csv";
    let output = place.run(&format!("{line} -o rows.csv"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("which has only 6000 records") && said.contains("--force"), "{said}");
    assert!(!place.path("rows.csv").exists());
    // The export works with a narrower window, with longer steps, and with --force.
    stdout(&place, &format!("{line} -S +1s -E +1.01s -o rows.csv"));
    stdout(&place, "export years.rld --every 1ms -S +1s -E +11s -o rows.csv --force");
    stdout(&place, "export years.rld --every 100us -S +1s -E +11s -o rows.csv --force");
}
