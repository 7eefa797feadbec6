//! Lakes under the same faults. A lake must be valid after each fault, and the next run must
//! complete it.

use std::fs;
use std::process::Command;

use rovelog_testing::Random;

use crate::common::Place;
use crate::{full, has};

const INGEST: &str = "ingest one-topic.ulg utc-gps-int32.ulg late.ulg -o lake --jobs 1 --pack-size 1";

fn place() -> Place {
    let place = Place::new("ulog", &["one-topic.ulg", "utc-gps-int32.ulg"]);
    fs::copy(rovelog_testing::root().join("corpus/ulog/late-subscription.ulg"), place.path("late.ulg"))
        .unwrap();
    place
}

/// Runs `ingest`, started by the program `wrapper`.
fn ingest(place: &Place, wrapper: &[&str]) -> Command {
    let mut command = Command::new(wrapper[0]);
    command.args(&wrapper[1..]).arg(assert_cmd::cargo::cargo_bin!("rovelog"));
    command.args(INGEST.split(' ')).current_dir(place.path("."));
    command
}

/// Checks the lake after a fault, and that the next run completes it.
fn check(place: &Place, fault: &str) {
    if place.path("lake").exists() {
        let output = place.run("lake check lake");
        let found = [output.stdout, output.stderr].concat();
        let found = String::from_utf8_lossy(&found).into_owned();
        // A failed `ingest` may leave files that do not belong to a log yet, like a killed
        // `ingest`. If it ended before the first log was added, the folder exists but is not a lake
        // yet.
        let empty = found.contains("it has no table _logs");
        let left = found.lines().filter(|line| line.ends_with(" was left by a run that was killed")).count();
        assert_eq!(output.status.code(), Some(i32::from(left > 0 || empty)), "{fault}: {found}");
        assert!(!found.contains("ERROR"), "{fault}: {found}");
    }
    let again = place.run(INGEST);
    let said = String::from_utf8_lossy(&again.stderr).into_owned();
    assert_eq!(again.status.code(), Some(0), "{fault}, again: {said}");
    let output = place.run("lake check lake");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.code() == Some(0) && said.contains('3'), "{fault}, after: {said}");
    fs::remove_dir_all(place.path("lake")).unwrap();
}

#[test]
fn a_lake_is_valid_after_a_failed_write() {
    if !has("prlimit", &["--version"]) {
        return rovelog_testing::skipped("the program prlimit is not there");
    }
    let place = place();
    let limits: &[u64] = if full().is_some() {
        &[0, 1, 64, 100, 200, 400, 800, 1000, 1500, 2000, 2500, 3000, 4000, 5000, 6000, 8000]
    } else {
        &[0, 2000]
    };
    let mut failed = 0;
    for limit in limits {
        let output = ingest(&place, &["prlimit", &format!("--fsize={limit}:{limit}")]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!said.contains("panicked"), "{limit}: {said}");
        if output.status.code() != Some(0) {
            failed += 1;
            assert_eq!(output.status.code(), Some(1), "{limit}: {said}");
            assert!(said.contains("File too large") && said.contains("lake"), "{limit}: {said}");
        }
        check(&place, &format!("a limit of {limit} bytes"));
    }
    assert!(failed > 0, "no run failed");
    if let Some(folder) = full() {
        let row = format!(
            "| `ingest` with a limit of file sizes | {} | {failed} | {} | 0 |\n",
            limits.len(),
            limits.len() - failed
        );
        fs::write(folder.join("4-lake"), row).unwrap();
    }
}

#[test]
fn a_lake_is_valid_after_a_kill() {
    let place = place();
    let start = std::time::Instant::now();
    assert_eq!(place.run(INGEST).status.code(), Some(0));
    let most = usize::try_from(start.elapsed().as_micros()).unwrap();
    fs::remove_dir_all(place.path("lake")).unwrap();
    let mut random = Random(2);
    let kills = if full().is_some() { 200 } else { 3 };
    for number in 0..kills {
        let mut child = ingest(&place, &["env"]).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_micros(random.below(most) as u64));
        child.kill().unwrap();
        child.wait().unwrap();
        check(&place, &format!("kill {number}"));
    }
}
