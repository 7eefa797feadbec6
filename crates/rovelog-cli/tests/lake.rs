//! Lakes: their content, and their consistency after a process is killed at any time.
#![cfg(unix)]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rovelog_testing::{root, sha256};
use serde_json::Value as Json;
use tempfile::TempDir;

const ROVELOG: &str = env!("CARGO_BIN_EXE_rovelog");

/// A temporary folder with logs and lakes.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self { folder: tempfile::tempdir().expect("a folder") };
        let logs = place.logs();
        fs::create_dir(&logs).expect("a folder");
        let mut names: Vec<_> = ["ulog", "rld"]
            .iter()
            .flat_map(|format| fs::read_dir(root().join("corpus").join(format)).expect("the corpus"))
            .map(|entry| entry.expect("a file").path())
            .collect();
        names.sort();
        // These bags contain messages that have no rows.
        let bags = ["payload-short.bag", "definition-missing.bag"];
        let bags = bags.map(|name| root().join("corpus/rosbag").join(name));
        for path in names.iter().step_by(4).chain(&bags) {
            fs::copy(path, logs.join(path.file_name().expect("a file"))).expect("space");
        }
        place
    }

    fn logs(&self) -> PathBuf {
        self.folder.path().join("logs")
    }

    fn lake(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a program that replaces the worker and runs `script` in a shell. In the script,
    /// `"$ROVELOG" "$@"` is the real worker, and the file `$TASK` contains its input.
    fn worker(&self, name: &str, script: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        let folder = self.folder.path().display();
        // The input must stay open, because a worker ends when the program that started it ends.
        let input = "read -r TASK\nmkfifo \"$DIR/$$\"\nexec 3<>\"$DIR/$$\"\necho \"$TASK\" >&3";
        let script = format!("#!/bin/sh\nROVELOG='{ROVELOG}'\nDIR='{folder}'\n{input}\n{script}\n");
        fs::write(&path, script).expect("space");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("our own file");
        path
    }

    fn ingest(&self, lake: &Path, options: &[&str]) -> Command {
        let mut command = Command::new(ROVELOG);
        command
            .arg("ingest")
            .arg(self.logs())
            .arg("-o")
            .arg(lake)
            .args(["--pack-size", "400kB"])
            .args(options);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn add(&self, lake: &Path, options: &[&str]) -> Output {
        self.ingest(lake, options).output().expect("it starts")
    }
}

/// Returns the files of a lake with hashes of their content. Properties that differ in each run,
/// such as times, are ignored.
fn content(lake: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![lake.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("a file").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "parquet") {
                let name = path.strip_prefix(lake).expect("inside").to_owned();
                found.insert(name, sha256(&fs::read(&path).expect("a file")));
            }
        }
    }
    found
}

fn checked(lake: &Path) -> Json {
    let output =
        Command::new(ROVELOG).args(["lake", "check", "-f", "json"]).arg(lake).output().expect("it starts");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Asserts that a lake has the same content as another lake.
fn assert_same(lake: &Path, whole: &Path) {
    let report = checked(lake);
    assert_eq!(report["problems"], Json::Array(vec![]), "{report}");
    assert_eq!(report["unnamed"], Json::Array(vec![]), "{report}");
    assert_eq!(content(lake), content(whole));
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_second_run_writes_nothing_and_reports_it() {
    let place = Place::new();
    let lake = place.lake("lake");
    let first = place.add(&lake, &["-f", "ndjson"]);
    assert_eq!(first.status.code(), Some(3), "some logs are damaged: {}", text(&first));
    let lines = String::from_utf8(first.stdout).expect("text");
    let rows: Vec<Json> = lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(rows.len(), fs::read_dir(place.logs()).unwrap().count());
    let before = content(&lake);
    let second = place.add(&lake, &[]);
    assert_eq!(second.status.code(), Some(0), "{}", text(&second));
    assert!(text(&second).contains("nothing to do: "), "{}", text(&second));
    assert_eq!(content(&lake), before);
    // A copy under another name has the same content, so it is not added again.
    fs::copy(place.logs().join(name_of(&rows, "ok")), place.logs().join("copy.ulg")).expect("space");
    let third = place.add(&lake, &[]);
    assert!(text(&third).contains("1 with the same content as another log"), "{}", text(&third));
    assert_eq!(content(&lake), before);
}

/// The column `V1` is an integer in one log and a float in others. The table has floats, so that the
/// files of both get the same columns, but they must not get the same name.
#[test]
fn widened_files_do_not_replace_each_other() {
    let lake = tempfile::tempdir().unwrap();
    let logs = rovelog_testing::root().join("corpus/rld");
    let ingest = || {
        let mut command = Command::new(ROVELOG);
        command.arg("ingest").args(["scale-refused.rld", "extremes.rld"].map(|name| logs.join(name)));
        command.arg(logs.join("analog-only.rld")).arg("-o").arg(lake.path()).output().unwrap()
    };
    let first = ingest();
    assert!(text(&first).contains("3 added"), "{}", text(&first));
    let second = ingest();
    assert!(text(&second).contains("nothing to do: 3 already"), "{}", text(&second));
}

/// If the columns of a table have become wider, a repaired file has another name. The old file must
/// not stay beside it.
#[test]
fn a_repaired_pack_has_no_old_files() {
    let lake = tempfile::tempdir().unwrap();
    let logs = rovelog_testing::root().join("corpus/rld");
    let ingest = |names: &[&str]| {
        let mut command = Command::new(ROVELOG);
        command.arg("ingest").args(names.iter().map(|name| logs.join(name))).arg("-o").arg(lake.path());
        text(&command.output().unwrap())
    };
    ingest(&["scale-refused.rld"]);
    let texts: Vec<_> = content(lake.path()).into_keys().filter(|path| path.starts_with("_text")).collect();
    ingest(&["extremes.rld", "analog-only.rld"]);
    let before = checked(lake.path());
    fs::remove_file(lake.path().join(texts.first().expect("a file of texts"))).unwrap();
    let repaired = ingest(&["scale-refused.rld"]);
    let report = checked(lake.path());
    assert_eq!(report["rows"], before["rows"], "{repaired}: {report}");
    assert_eq!(report["unnamed"], Json::Array(vec![]), "{repaired}: {report}");
}

/// Returns the file name of the first log with a status.
fn name_of(rows: &[Json], status: &str) -> PathBuf {
    let row = rows.iter().find(|row| row["status"] == status).expect("such a log");
    PathBuf::from(row["uri"].as_str().expect("a path")).file_name().expect("a file").into()
}

/// The losses in the lake equal the losses that `check` reports. Messages that cannot be decoded
/// are an exception, because `check` does not count them.
#[test]
fn losses_equal_those_of_check() {
    let place = Place::new();
    let output = place.add(&place.lake("lake"), &["-f", "ndjson", "-q"]);
    let mut partial = 0;
    for line in String::from_utf8(output.stdout).expect("text").lines() {
        let row: Json = serde_json::from_str(line).expect("JSON");
        let uri = row["uri"].as_str().expect("a path");
        let check = Command::new(ROVELOG).args(["check", "-f", "json", uri]).output().expect("it starts");
        let Ok(document) = serde_json::from_slice::<Json>(&check.stdout) else {
            assert_eq!(row["status"], "failed", "{uri}");
            continue;
        };
        assert_eq!(document["lost"]["bytes"], row["lost_bytes"], "{uri}");
        let is_lossy = document["sound"] == false || row["lost_values"] != 0 || row["lost_records"] != 0;
        assert_eq!(is_lossy, row["status"] == "partial", "{uri}");
        partial += u32::from(row["status"] == "partial");
        let undecodable = uri.ends_with("payload-short.bag") || uri.ends_with("definition-missing.bag");
        assert_eq!(row["lost_records"] != 0, undecodable, "{row}");
    }
    assert!(partial > 5, "{partial} damaged logs");
}

/// One worker is killed before it reads, and another when its files are complete.
#[test]
fn a_killed_worker_is_started_again() {
    let place = Place::new();
    let whole = place.lake("whole");
    place.add(&whole, &[]);
    // A second kill could hit the same logs, which would then be quarantined.
    let once = "if mkdir \"$DIR/once\" 2>/dev/null";
    let scripts = [
        ("before", format!("{once}; then kill -9 $$; fi\n\"$ROVELOG\" \"$@\" <&3")),
        (
            "after",
            format!(
                "\"$ROVELOG\" \"$@\" <&3 > \"$DIR/answer-$$\"\n{once}; then kill -9 $$; fi\ncat \"$DIR/answer-$$\""
            ),
        ),
    ];
    for (name, script) in scripts {
        let worker = place.worker(name, &script);
        let lake = place.lake(&format!("lake-{name}"));
        let output = place.add(&lake, &["--jobs", "2", "--worker", worker.to_str().expect("a path")]);
        assert_eq!(output.status.code(), Some(3), "{}", text(&output));
        assert!(
            text(&output).contains("a worker process ended (signal: 9 (SIGKILL))"),
            "{name}: {}",
            text(&output)
        );
        assert_same(&lake, &whole);
        fs::remove_dir(place.folder.path().join("once")).expect("the kill happened");
    }
}

/// The main process is killed after the files of a pack of logs are complete, and at random times.
#[test]
fn a_killed_run_is_completed_by_the_next_run() {
    let place = Place::new();
    let whole = place.lake("whole");
    place.add(&whole, &[]);
    let lake = place.lake("lake");
    let script = "\"$ROVELOG\" \"$@\" <&3 > \"$DIR/answer-$$\"\nkill -9 $PPID";
    let worker = place.worker("deadly", script);
    let killed = place.add(&lake, &["--jobs", "1", "--worker", worker.to_str().expect("a path")]);
    assert_eq!(killed.status.code(), None, "the program was killed: {}", text(&killed));
    let mut delay = Duration::from_millis(5);
    let started = Instant::now();
    loop {
        let mut run = place.ingest(&lake, &[]).spawn().expect("it starts");
        std::thread::sleep(delay);
        // A process that has ended by itself cannot be killed.
        let _ = run.kill();
        let ended = run.wait_with_output().expect("it ended");
        if let Some(code) = ended.status.code() {
            assert!([0, 3].contains(&code), "{code}: {}", text(&ended));
            break;
        }
        delay += delay / 2;
        assert!(started.elapsed() < Duration::from_mins(1), "it never ends");
    }
    // A run that was killed while it added a pack may have widened the columns of a table already.
    // Then the files of this pack get other types and names, so only the rows are compared.
    let [lake, whole] = [&lake, &whole].map(|lake| checked(lake));
    for key in ["logs", "failed", "rows", "problems", "unnamed"] {
        assert_eq!(lake[key], whole[key], "{key}: {lake}");
    }
}

/// The `ingest` fails after the files of the tables were written and before the file of the table
/// `_logs` is written.
#[test]
fn files_without_a_row_in_logs_are_not_in_the_lake() {
    let place = Place::new();
    let whole = place.lake("whole");
    place.add(&whole, &[]);
    let lake = place.lake("lake");
    let packs = fs::read_dir(whole.join("_logs")).unwrap().map(|entry| entry.unwrap().file_name());
    let mut last: Vec<_> = packs.collect();
    last.sort();
    let last = last.last().expect("several packs").to_string_lossy().into_owned();
    let obstacle = lake.join(format!("_logs/{last}.part"));
    fs::create_dir_all(&obstacle).expect("a folder");
    let failed = place.add(&lake, &[]);
    assert_eq!(failed.status.code(), Some(1), "{}", text(&failed));
    let report = checked(&lake);
    assert_ne!(report["unnamed"], Json::Array(vec![]), "{report}");
    fs::remove_dir(&obstacle).expect("ours");
    // Files of other programs are kept, even if they are reached through a link.
    let (outside, month) = (place.lake("outside"), lake.join("month=2020-01"));
    let foreign = [outside.join("a.parquet"), lake.join("mine.parquet"), month.join("part-0.parquet")];
    for file in &foreign {
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        fs::write(file, "PAR1").expect("a file");
    }
    #[cfg(unix)]
    std::os::unix::fs::symlink(&outside, lake.join("link")).expect("a link");
    let cleaned = Command::new(ROVELOG).args(["lake", "clean"]).arg(&lake).output().expect("it starts");
    assert!(String::from_utf8_lossy(&cleaned.stdout).starts_with("removed "), "{}", text(&cleaned));
    let report = checked(&lake);
    assert_eq!(report["unnamed"], Json::Array(vec![]), "{report}");
    assert_eq!(report["problems"].as_array().map(Vec::len), Some(2), "{report}");
    place.add(&lake, &[]);
    assert!(foreign.iter().all(|file| file.exists()));
    for file in &foreign[1..] {
        fs::remove_file(file).expect("ours");
    }
    fs::remove_dir(&month).expect("empty");
    #[cfg(unix)]
    fs::remove_file(lake.join("link")).expect("ours");
    assert_same(&lake, &whole);
}

#[test]
fn two_simultaneous_runs_add_each_log_once() {
    let place = Place::new();
    let whole = place.lake("whole");
    place.add(&whole, &[]);
    let lake = place.lake("lake");
    let runs: Vec<Child> = (0..2).map(|_| place.ingest(&lake, &[]).spawn().expect("it starts")).collect();
    let outputs: Vec<Output> = runs.into_iter().map(|run| run.wait_with_output().expect("it ends")).collect();
    let codes: Vec<_> = outputs.iter().map(|output| output.status.code()).collect();
    assert!(codes.iter().all(|code| matches!(code, Some(0 | 3))), "{codes:?}");
    assert_same(&lake, &whole);
}

#[test]
fn a_log_whose_worker_ends_twice_is_quarantined() {
    let place = Place::new();
    // The worker ends at a valid log, but only once.
    let name = "one-topic+multi-id+sync+dropout+texts+appended.ulg";
    let _ = fs::remove_file(place.logs().join(name));
    let poison = place.logs().join("zz-poison.ulg");
    fs::copy(root().join("corpus/ulog").join(name), &poison).expect("space");
    let logs = fs::read_dir(place.logs()).unwrap().collect::<Vec<_>>();
    let script = "case \"$TASK\" in *zz-poison*) kill -9 $$;; esac\n\"$ROVELOG\" \"$@\" <&3";
    let worker = place.worker("weak", script);
    let worker = worker.to_str().expect("a path");
    let lake = place.lake("lake");
    let first = place.add(&lake, &["--worker", worker]);
    assert_eq!(first.status.code(), Some(3), "{}", text(&first));
    let said = text(&first);
    assert!(said.contains("not added: the worker ended 2 times: signal: 9 (SIGKILL)"), "{said}");
    assert_eq!(fs::read_dir(lake.join("_rovelog/quarantine")).unwrap().count(), 1);
    let report = checked(&lake);
    assert_eq!(report["logs"], logs.len(), "the others are in the lake: {report}");
    let second = place.add(&lake, &["--worker", worker]);
    assert!(text(&second).contains("nothing to do"), "{}", text(&second));
    let third = place.add(&lake, &["--retry-quarantined"]);
    assert!(text(&third).contains("1 added"), "{}", text(&third));
    assert_eq!(checked(&lake)["logs"], logs.len());
    assert_eq!(fs::read_dir(lake.join("_rovelog/quarantine")).unwrap().count(), 0);
}

/// If a quarantined log is tried again and cannot be read, it is in a pack with other logs. Trying
/// it once more must not remove them.
#[test]
fn logs_next_to_a_quarantined_log_stay() {
    let topic = |name: &str| ulog(&[name.to_owned()], "float");
    let (place, lake) = crafted(&[("zz-poison.ulg", vec![7; 3000])]);
    let worker = place.worker("weak", "kill -9 $$");
    place.add(&lake, &["--worker", worker.to_str().expect("a path")]);
    assert_eq!(fs::read_dir(lake.join("_rovelog/quarantine")).unwrap().count(), 1);
    for name in ["a", "b"] {
        fs::write(place.logs().join(format!("{name}.ulg")), topic(name)).expect("space");
    }
    for _ in 0..3 {
        place.add(&lake, &["--retry-quarantined"]);
        let report = checked(&lake);
        assert_eq!((&report["logs"], &report["rows"]), (&3.into(), &2.into()), "{report}");
    }
}

#[test]
fn a_folder_that_is_not_a_lake_is_refused() {
    let place = Place::new();
    for command in ["check", "clean"] {
        let output =
            Command::new(ROVELOG).args(["lake", command]).arg(place.logs()).output().expect("it starts");
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output).contains("the folder is not a lake"), "{}", text(&output));
    }
}

/// A file that does not exist is a failure and not an invalid argument, as for every command.
#[test]
fn a_source_without_logs_is_a_failure() {
    let place = Place::new();
    for nothing in ["nowhere/", "nowhere/*.ulg", "nowhere.ulg"] {
        let ingest = place.add(&place.lake("lake"), &[nothing]);
        let info = Command::new(ROVELOG).args(["info", nothing]).output().expect("it starts");
        for output in [ingest, info] {
            assert_eq!(output.status.code(), Some(1), "{nothing}: {}", text(&output));
            assert!(text(&output).contains("no such file"), "{nothing}: {}", text(&output));
        }
    }
}

#[test]
fn a_folder_with_other_files_does_not_become_a_lake() {
    let place = Place::new();
    let before = fs::read_dir(place.logs()).expect("a folder").count();
    let output = place.add(&place.logs(), &[]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(text(&output).contains("is not empty, but is not a lake"), "{}", text(&output));
    assert_eq!(fs::read_dir(place.logs()).expect("a folder").count(), before);
    // An empty folder becomes a lake.
    let lake = place.lake("lake");
    fs::create_dir(&lake).expect("a folder");
    assert_eq!(place.add(&lake, &[]).status.code(), Some(3));
}

/// The logs of a lake are always read in the same way, so options that change it are an error.
#[test]
fn options_for_reading_are_refused() {
    let place = Place::new();
    let lake = place.lake("lake");
    let logs = place.logs();
    let folder = logs.to_str().expect("text");
    let types = format!("{folder}/types.txt");
    fs::write(&types, "").expect("a writable folder");
    fs::create_dir_all(logs.join("p/msg")).expect("a writable folder");
    fs::write(logs.join("p/msg/A.msg"), "bool b\n").expect("a writable folder");
    for option in [
        &["--strict"][..],
        &["--input-format", "ulog"],
        &["--types", &types],
        &["--msgs", folder],
        &["--utc-start", "2024-01-01T00:00:00Z"],
        &["--max-unpacked", "1MB"],
    ] {
        let output = place.add(&lake, option);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output));
        assert!(
            text(&output).contains(&format!("{} does not apply to ingest", option[0])),
            "{}",
            text(&output)
        );
    }
    assert!(!lake.exists());
}

/// If the workers fail for a temporary reason, the logs are not marked as failed, and the next run
/// adds them.
#[test]
fn logs_are_added_later_after_a_temporary_failure() {
    let place = Place::new();
    let whole = place.lake("whole");
    place.add(&whole, &[]);
    let away = "mv \"$DIR/logs\" \"$DIR/away\"\n\"$ROVELOG\" \"$@\" <&3\nmv \"$DIR/away\" \"$DIR/logs\"";
    let full = "ulimit -f 0\nexec \"$ROVELOG\" \"$@\" <&3";
    for (script, code, says) in
        [(away, 3, "No such file"), (full, 1, "a worker process failed"), ("", 1, "a worker process failed")]
    {
        let lake = place.lake("lake");
        let worker = match script {
            "" => place.lake("nowhere"),
            script => place.worker("worker", script),
        };
        let output = place.add(&lake, &["--jobs", "1", "--worker", &worker.display().to_string()]);
        assert_eq!(output.status.code(), Some(code), "{}", text(&output));
        assert!(text(&output).contains(says), "{says}: {}", text(&output));
        assert_eq!(place.add(&lake, &[]).status.code(), Some(3), "{says}");
        assert_same(&lake, &whole);
        fs::remove_dir_all(&lake).expect("our own folder");
    }
}

/// Returns a ULog with a row of each topic: a timestamp and one field.
fn ulog(topics: &[String], field: &str) -> Vec<u8> {
    let mut log = b"ULog\x01\x12\x35\x01\0\0\0\0\0\0\0\0".to_vec();
    let mut message = |kind: u8, payload: &[u8]| {
        log.extend(u16::try_from(payload.len()).expect("a short message").to_le_bytes());
        log.push(kind);
        log.extend(payload);
    };
    for name in topics {
        message(b'F', format!("{name}:uint64_t timestamp;{field} value;").as_bytes());
    }
    for (id, name) in (0_u16..).zip(topics) {
        message(b'A', &[&[0][..], &id.to_le_bytes(), name.as_bytes()].concat());
    }
    let len = match field {
        "uint8_t" => 1,
        "double" => 8,
        _ => 4,
    };
    for id in (0_u16..).take(topics.len()) {
        message(b'D', &[&id.to_le_bytes()[..], &1000_u64.to_le_bytes(), &[0; 8][..len]].concat());
    }
    log
}

/// Returns a folder with these logs, and a path for their lake.
fn crafted(logs: &[(&str, Vec<u8>)]) -> (Place, PathBuf) {
    let place = Place { folder: tempfile::tempdir().expect("a folder") };
    fs::create_dir(place.logs()).expect("a folder");
    for (name, bytes) in logs {
        fs::write(place.logs().join(name), bytes).expect("space");
    }
    let lake = place.lake("lake");
    (place, lake)
}

#[test]
fn a_log_may_have_more_topics_than_a_process_may_open_files() {
    let topics: Vec<_> = (0..300).map(|number| format!("topic_{number}")).collect();
    let (place, lake) = crafted(&[("many.ulg", ulog(&topics, "float"))]);
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -n 128; exec \"$@\"", "sh", ROVELOG, "ingest"]);
    let output = limited.arg(place.logs()).arg("-o").arg(&lake).output().expect("it starts");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let report = checked(&lake);
    assert_eq!((&report["files"], &report["rows"]), (&300.into(), &300.into()), "{report}");
}

#[test]
fn long_and_reserved_topic_names_do_not_stop_a_run() {
    let long = vec!["n".repeat(255), format!("{}m", "n".repeat(254)), "CON".to_owned(), "con".to_owned()];
    let logs = [("long.ulg", ulog(&long, "float")), ("short.ulg", ulog(&["t".to_owned()], "float"))];
    let (place, lake) = crafted(&logs);
    let output = place.add(&lake, &[]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let report = checked(&lake);
    assert_eq!((&report["logs"], &report["rows"]), (&2.into(), &5.into()), "{report}");
}

#[test]
fn a_topic_has_a_single_table_if_one_type_can_hold_all_values() {
    let topics = ["t".to_owned()];
    let logs = [("a.ulg", ulog(&topics, "uint8_t")), ("b.ulg", ulog(&topics, "int32_t"))];
    let (place, lake) = crafted(&logs);
    place.add(&lake, &[]);
    for (name, field) in [("c.ulg", "float"), ("d.ulg", "double")] {
        fs::write(place.logs().join(name), ulog(&topics, field)).expect("space");
        let output = place.add(&lake, &[]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    }
    let tables: Vec<_> = fs::read_dir(lake.join("ulog")).expect("tables").collect();
    assert_eq!(tables.len(), 1, "{tables:?}");
    let report = checked(&lake);
    assert_eq!(report["rows"], 4, "{report}");
    assert_eq!(report["problems"], Json::Array(vec![]), "{report}");
}

#[test]
fn a_missing_or_changed_file_is_found_and_repaired() {
    let (place, lake) = crafted(&[("a.ulg", ulog(&["t".to_owned()], "float"))]);
    place.add(&lake, &[]);
    let whole = content(&lake);
    let month = fs::read_dir(lake.join("ulog/t")).expect("a table").next().expect("a month");
    let file = fs::read_dir(month.expect("a folder").path()).expect("a month").next().expect("a file");
    let file = file.expect("a file").path();
    let mut bytes = fs::read(&file).expect("ours");
    bytes[8] ^= 1;
    fs::write(&file, bytes).expect("space");
    let check = |options: &[&str]| {
        let mut command = Command::new(ROVELOG);
        command.args(["lake", "check"]).arg(&lake).args(options).output().expect("it starts")
    };
    assert_eq!(check(&[]).status.code(), Some(0), "without the option the content is not read");
    let found = check(&["--content"]);
    assert_eq!(found.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&found.stdout).contains("the content has changed"));
    fs::remove_file(&file).expect("ours");
    assert_eq!(place.add(&lake, &[]).status.code(), Some(0));
    assert_eq!(check(&["--content"]).status.code(), Some(0));
    assert_eq!(content(&lake), whole);
    fs::remove_file(&file).expect("ours");
    fs::write(place.logs().join("a.ulg"), ulog(&["u".to_owned()], "float")).expect("space");
    let output = place.add(&lake, &[]);
    assert!(text(&output).contains("cannot be repaired"), "{}", text(&output));
    assert!(text(&output).contains("a.ulg was added before with other content"), "{}", text(&output));
    assert_eq!(output.status.code(), Some(3), "{}", text(&output));
}

#[test]
fn a_log_that_still_cannot_be_read_is_reported_again() {
    let (place, lake) = crafted(&[("a.ulg", ulog(&["t".to_owned()], "float"))]);
    std::os::unix::fs::symlink("nowhere.ulg", place.logs().join("b.ulg")).expect("a link");
    for _ in 0..2 {
        let output = place.add(&lake, &[]);
        assert_eq!(output.status.code(), Some(3), "{}", text(&output));
        assert!(text(&output).contains("1 not added"), "{}", text(&output));
    }
    // The log can now be read, but has the content of another log.
    fs::copy(place.logs().join("a.ulg"), place.logs().join("nowhere.ulg")).expect("space");
    place.add(&lake, &[]);
    let report = checked(&lake);
    assert_eq!((&report["logs"], &report["failed"]), (&1.into(), &0.into()), "{report}");
}
