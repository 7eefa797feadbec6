//! Every command that writes a file, with its inputs and expected outputs.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::common::Place;

/// Number of rows in the long ULog of a short run. The full plan uses ten times as many.
const ROWS: u64 = 6_000;

/// A command that writes files: the folder in the corpus, its logs, and the command line.
pub(crate) struct Job {
    pub(crate) format: &'static str,
    logs: &'static [&'static str],
    pub(crate) line: &'static str,
}

const fn job(format: &'static str, logs: &'static [&'static str], line: &'static str) -> Job {
    Job { format, logs, line }
}

/// Name of a long log with one topic, which [`Site::new`] writes.
const LONG: &[&str] = &["one-topic.ulg"];
const FIX: &[&str] = &["utc-gps-int32.ulg"];
const V4: &[&str] = &["v4.rld"];
const BAG: &[&str] = &["v2.0+several-chunks.bag", "v2.0.bag"];
const OLD: &[&str] = &["recorded+two-topics.bag"];
const VEL: &[&str] = &["all-kinds.vel", "velodyne-vlp16.vel"];

/// All commands that write files. Their output is called `out`.
pub(crate) const JOBS: &[Job] = &[
    job("ulog", LONG, "recover long.ulg -o out.ulg"),
    job("ulog", LONG, "slice long.ulg -o out.ulg"),
    job("ulog", LONG, "merge long.ulg one-topic.ulg -o out.ulg --time-base boot"),
    job("ulog", LONG, "split long.ulg -o out --every 2s"),
    job("ulog", LONG, "export long.ulg -o out.csv --topics t"),
    job("ulog", LONG, "export long.ulg -o out --to csv"),
    job("ulog", LONG, "export long.ulg -o out --to csv --dialect pyulog"),
    job("ulog", LONG, "export long.ulg -o out.parquet --topics t"),
    job("ulog", LONG, "export long.ulg -o out --to parquet"),
    job("ulog", LONG, "export long.ulg -o out.arrow --topics t"),
    job("ulog", LONG, "export long.ulg -o out.ndjson"),
    job("ulog", LONG, "export long.ulg -o out.mcap"),
    job("ulog", LONG, "export long.ulg -o out.csv --every 1s"),
    job("ulog", LONG, "plot long.ulg t -o out.svg"),
    job("ulog", LONG, "plot long.ulg t -o out.png"),
    job("ulog", LONG, "plot long.ulg t -o out.pdf"),
    job("ulog", LONG, "plot long.ulg t -o out.html"),
    job("ulog", LONG, "report long.ulg -o out.html"),
    job("ulog", FIX, "track utc-gps-int32.ulg -o out.kml"),
    job("ulog", FIX, "track utc-gps-int32.ulg -o out.gpx"),
    job("ulog", FIX, "track utc-gps-int32.ulg -o out.geojson"),
    job("ulog", LONG, "ulog gps-dump dump.ulg -o out.ubx"),
    job("rld", V4, "recover v4.rld -o out.rld"),
    job("rld", V4, "slice v4.rld -o out.rld"),
    job("rld", V4, "merge v4.rld -o out.rld"),
    job("rld", V4, "split v4.rld -o out --every 5ms"),
    job("rld", V4, "scrub v4.rld -o out.rld"),
    job("rld", V4, "rld csv v4.rld -o out.csv"),
    job("rld", V4, "rld import v4.csv -o out.rld"),
    job("rld", V4, "export v4.rld -o out.mcap"),
    job("rld", V4, "export v4.rld -o out --to parquet"),
    job("rosbag", BAG, "recover v2.0+several-chunks.bag -o out.bag"),
    job("rosbag", BAG, "slice v2.0+several-chunks.bag -o out.bag --compression lz4"),
    job("rosbag", BAG, "scrub v2.0+several-chunks.bag -o out.bag"),
    job("rosbag", BAG, "merge v2.0.bag v2.0+several-chunks.bag -o out.bag"),
    job("rosbag", BAG, "split v2.0+several-chunks.bag -o out --by-topic"),
    job("rosbag", BAG, "bag reindex v2.0+several-chunks.bag -o out.bag"),
    job("rosbag", BAG, "export v2.0+several-chunks.bag -o out.mcap --ros2"),
    job("rosbag", OLD, "export recorded+two-topics.bag -o out.bag --compression bz2"),
    job("rosbag", OLD, "bag reindex recorded+two-topics.bag -o out.bag"),
    job("vel", VEL, "recover all-kinds.vel -o out.vel"),
    job("vel", VEL, "slice all-kinds.vel -o out.vel"),
    job("vel", VEL, "merge all-kinds.vel -o out.vel"),
    job("vel", VEL, "split all-kinds.vel -o out --by-topic"),
    job("vel", VEL, "extract all-kinds.vel -o out"),
    job("vel", VEL, "extract velodyne-vlp16.vel -o out --cloud las"),
    job("vel", VEL, "extract velodyne-vlp16.vel -o out --cloud npz"),
    job("vel", VEL, "extract velodyne-vlp16.vel -o out --only packets"),
    job("vel", VEL, "export velodyne-vlp16.vel -o out.mcap"),
    job("vel", VEL, "export all-kinds.vel -o out --to csv"),
];

/// Content of all files by path. Folders have no content.
pub(crate) type Tree = BTreeMap<String, Option<Vec<u8>>>;

/// A folder in which a job is run, with the expected result.
pub(crate) struct Site {
    pub(crate) job: &'static Job,
    place: Place,
    /// Content of the folder before a run.
    pub(crate) before: Tree,
    /// Files that a run without faults writes, by their paths in the folder.
    pub(crate) whole: Tree,
    /// Exit code of a run without faults. It is 0, or 3 for a log that was damaged before.
    pub(crate) code: Option<i32>,
}

impl Site {
    /// Creates the folder and runs the job once without faults.
    pub(crate) fn new(job: &'static Job) -> Self {
        let place = Place::new(job.format, job.logs);
        match job.format {
            "ulog" => {
                let rows = if crate::full().is_some() { 10 * ROWS } else { ROWS };
                fs::write(place.path("long.ulg"), long_log(&place.read(job.logs[0]), rows)).unwrap();
                fs::write(place.path("dump.ulg"), gps_dump()).unwrap();
            }
            "rld" => assert_eq!(place.run("rld csv v4.rld -o v4.csv").status.code(), Some(0)),
            _ => {}
        }
        let mut site = Self { job, place, before: Tree::new(), whole: Tree::new(), code: None };
        site.before = site.tree();
        let output = site.run(&[], job.line);
        let said = String::from_utf8_lossy(&output.stderr);
        site.code = output.status.code();
        assert!(matches!(site.code, Some(0 | 3)), "{}: {said}", job.line);
        let mut after = site.tree();
        after.retain(|path, _| !site.before.contains_key(path));
        assert!(after.values().any(Option::is_some), "{} writes nothing", job.line);
        site.whole = after;
        site.clear();
        site
    }

    pub(crate) fn folder(&self) -> PathBuf {
        self.place.path(".").canonicalize().unwrap()
    }

    /// Runs a command line in the folder, started by the program `wrapper`.
    pub(crate) fn run(&self, wrapper: &[&str], line: &str) -> Output {
        self.command(wrapper, line).output().unwrap()
    }

    /// Returns the command that runs a command line in the folder, started by the program
    /// `wrapper`.
    pub(crate) fn command(&self, wrapper: &[&str], line: &str) -> Command {
        let binary = assert_cmd::cargo::cargo_bin!("rovelog");
        let mut command = match wrapper {
            [] => Command::new(binary),
            [first, rest @ ..] => {
                let mut command = Command::new(first);
                command.args(rest).arg(binary);
                command
            }
        };
        command.args(line.split(' ')).current_dir(self.folder());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Returns the content of the folder.
    pub(crate) fn tree(&self) -> Tree {
        tree(&self.folder())
    }

    /// Removes everything that a run has written.
    pub(crate) fn clear(&self) {
        for (path, bytes) in self.tree().into_iter().rev() {
            let there = self.folder().join(&path);
            if self.before.contains_key(&path) {
                continue;
            }
            if bytes.is_some() { fs::remove_file(there).unwrap() } else { fs::remove_dir(there).unwrap() }
        }
    }

    /// Returns the size of the largest file that a run without faults writes.
    pub(crate) fn largest(&self) -> u64 {
        self.whole.values().flatten().map(|bytes| bytes.len() as u64).max().unwrap_or(0)
    }

    /// Checks a run that must fail: its exit code, its message and the remaining files. The message
    /// must contain the text `cause`.
    pub(crate) fn failed_well(&self, output: &Output, cause: &str) -> Result<(), String> {
        let said = String::from_utf8_lossy(&output.stderr);
        check_failure(output, cause, "next: ", ": out")?;
        let after = self.tree();
        let left: Vec<_> = after.keys().filter(|path| !self.before.contains_key(*path)).collect();
        if !left.is_empty() {
            return Err(format!("left {left:?}: {said}"));
        }
        if after == self.before { Ok(()) } else { Err(format!("an input has changed: {said}")) }
    }

    /// Checks a run that must succeed.
    pub(crate) fn succeeded(&self, output: &Output) -> Result<(), String> {
        let said = String::from_utf8_lossy(&output.stderr);
        if output.status.code() != self.code {
            return Err(format!("ended with {}: {said}", output.status));
        }
        let mut after = self.tree();
        after.retain(|path, _| !self.before.contains_key(path));
        if after == self.whole { Ok(()) } else { Err(format!("another output: {said}")) }
    }
}

/// Checks the exit code and the message of a run that must fail.
pub(crate) fn check_failure(output: &Output, cause: &str, next: &str, path: &str) -> Result<(), String> {
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.code() != Some(1) {
        return Err(format!("ended with {}: {said}", output.status));
    }
    if said.contains("panicked") || !said.contains("error: ") {
        return Err(format!("a panic, or no error: {said}"));
    }
    for part in [cause, next, path] {
        if !said.contains(part) {
            return Err(format!("the message does not have `{part}`: {said}"));
        }
    }
    Ok(())
}

/// Returns the content of a folder and its subfolders.
fn tree(folder: &Path) -> Tree {
    let mut found = Tree::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(inner) = folders.pop() {
        for entry in fs::read_dir(folder.join(&inner)).unwrap() {
            let entry = entry.unwrap();
            let path = inner.join(entry.file_name());
            let bytes = if entry.file_type().unwrap().is_dir() {
                folders.push(path.clone());
                None
            } else {
                Some(fs::read(entry.path()).unwrap())
            };
            found.insert(path.to_str().unwrap().to_owned(), bytes);
        }
    }
    found
}

/// Returns a log whose last row is repeated every millisecond.
fn long_log(one: &[u8], rows: u64) -> Vec<u8> {
    let row = &one[one.len() - 17..];
    let last = u64::from_le_bytes(row[5..13].try_into().unwrap());
    let mut long = one.to_vec();
    for number in 1..=rows {
        long.extend(&row[..5]);
        long.extend((last + number * 1000).to_le_bytes());
        long.extend(u32::try_from(number).unwrap().to_le_bytes());
    }
    assert_eq!(row.len(), 17);
    long
}

/// Returns a log with raw data of a GPS receiver.
fn gps_dump() -> Vec<u8> {
    let mut log = b"ULog\x01\x12\x35\x01\0\0\0\0\0\0\0\0".to_vec();
    let mut message = |kind: u8, payload: &[u8]| {
        log.extend(u16::try_from(payload.len()).unwrap().to_le_bytes());
        log.push(kind);
        log.extend(payload);
    };
    message(b'B', &[0; 40]);
    message(b'F', b"gps_dump:uint64_t timestamp;uint8_t instance;uint8_t len;uint8_t[79] data;");
    message(b'A', b"\0\0\0gps_dump");
    for number in 0..2_000u64 {
        let mut row = vec![0, 0];
        row.extend((number * 1000).to_le_bytes());
        row.extend([0, 79]);
        row.extend([b'x'; 79]);
        message(b'D', &row);
    }
    log
}
