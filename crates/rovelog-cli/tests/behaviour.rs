//! Properties that every command must have for every log of the corpus, such as exit codes, the
//! reaction to closed pipes, and valid JSON.

mod common;

use std::io::Read as _;
use std::process::Stdio;

use common::{Place, code, corpus, run, run_in, run_with, stdout};
use serde_json::Value;

/// Returns the logs of the corpus with their expected results.
fn cases() -> Vec<(String, Value)> {
    let mut cases: Vec<_> = std::fs::read_dir(corpus())
        .unwrap()
        .map(|entry| {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let expected = corpus().join("../expected/ulog").join(name.replace(".ulg", ".json"));
            (name, serde_json::from_slice(&std::fs::read(expected).unwrap()).unwrap())
        })
        .collect();
    cases.sort_by(|a, b| a.0.cmp(&b.0));
    assert!(cases.len() > 40, "{} cases", cases.len());
    cases
}

fn json(line: &str) -> Value {
    serde_json::from_str(&stdout(line)).unwrap_or_else(|error| panic!("{line}: {error}"))
}

#[test]
fn exit_codes_report_damage_and_losses() {
    for (name, expected) in cases() {
        let (info, data, check) = match (expected["open"].as_str(), expected["state"].as_str()) {
            (Some("ok"), Some("complete")) => (0, 0, 0),
            (Some("ok"), _) => (0, 3, 1),
            _ => (1, 1, 1),
        };
        for command in ["info", "topics", "schema", "info -f json", "topics -f csv"] {
            assert_eq!(code(&format!("{command} {name}")), info, "{command} {name}");
        }
        for command in ["cat", "cat -f ndjson", "messages", "params"] {
            let output = run(&format!("{command} {name}"));
            assert_eq!(output.status.code(), Some(data), "{command} {name}");
            let said = String::from_utf8(output.stderr).unwrap();
            let lines = if data == 1 { 2 } else { usize::from(data == 3) };
            // Escaped texts are reported by a warning, but nothing is lost.
            let said: Vec<_> = said.lines().filter(|line| !line.contains("--text-encoding")).collect();
            assert_eq!(said.len(), lines, "{command} {name}: {said:?}");
        }
        assert_eq!(code(&format!("check {name}")), check, "check {name}");
        let strict = i32::from(info == 1 || data == 3);
        assert_eq!(code(&format!("cat --strict {name}")), strict, "--strict {name}");
    }
}

/// An option that has no effect on the output is an error.
#[test]
fn options_without_effect_are_refused() {
    for (line, option) in [
        ("plot ../ulog/one-topic.ulg t.x -o /dev/null --to html --width 300", "--width"),
        ("plot ../ulog/one-topic.ulg t.x -o /dev/null --to html --height 300", "--height"),
        ("plot ../ulog/one-topic.ulg t.x --to svg --dpi 192", "--dpi"),
        ("plot ../ulog/one-topic.ulg t.x --theme dark", "--theme"),
        ("track ../ulog/utc-gps-int32.ulg --to gpx --altitude absolute", "--altitude"),
        ("track ../ulog/utc-gps-int32.ulg -f csv --altitude clamp", "--altitude"),
        ("stats ../ulog/one-topic.ulg --timing --fields x", "--timing"),
        ("stats ../rld/v4.rld --timing --energy", "--timing"),
        ("extract ../vel/all-kinds.vel -o none --only images --model VLP-16", "--model"),
        ("extract ../vel/velodyne-vlp16.vel -o none --only packets --cloud ply", "--cloud"),
        ("extract ../vel/velodyne-vlp16.vel -o none --only packets --calibration x.xml", "--calibration"),
        ("extract ../rosbag/console.bag -o none --plain-offsets", "--plain-offsets"),
    ] {
        let output = run(line);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && said.contains(option), "{line}: {said}");
        assert!(output.stdout.is_empty(), "{line}");
    }
}

#[test]
fn info_and_cat_agree_with_the_expected_records() {
    for (name, expected) in cases().into_iter().filter(|(_, expected)| expected["open"] == "ok") {
        let info = json(&format!("info -f json {name}"));
        assert_eq!(info["schema"], "rovelog.info/2");
        assert_eq!(info["state"], expected["state"], "{name}");
        let records = info["records"].as_u64().unwrap();
        let lines = run(&format!("cat -f ndjson {name}")).stdout;
        let lines: Vec<Value> =
            serde_json::Deserializer::from_slice(&lines).into_iter().map(Result::unwrap).collect();
        assert_eq!(lines.len() as u64, records, "{name}");
        for topic in info["topics"].as_array().unwrap() {
            let of_topic = lines.iter().filter(|line| line["topic"] == topic["name"]).count();
            assert_eq!(topic["count"], of_topic, "{name}");
        }
        let text = String::from_utf8(run(&format!("cat {name}")).stdout).unwrap();
        assert_eq!(text.lines().count() as u64, records, "{name}");
    }
}

#[test]
fn a_pipe_gives_the_same_records_as_the_file() {
    for (name, _) in cases().into_iter().filter(|(_, expected)| expected["open"] == "ok") {
        let log = std::fs::read(corpus().join(&name)).unwrap();
        // The UTC of a log may be unknown when it is read from a pipe, so the times of the log's
        // clock are compared.
        let sorted = |output: std::process::Output| {
            let text = String::from_utf8(output.stdout).unwrap();
            let mut lines: Vec<_> =
                text.lines().map(|line| line.split_once("\"t_ns\"").unwrap().1.to_owned()).collect();
            lines.sort();
            (lines, output.status.code())
        };
        let file = sorted(run(&format!("cat -f ndjson {name}")));
        assert_eq!(sorted(run_with("cat -f ndjson -", &log)), file, "{name}");
    }
}

#[test]
fn statistics_do_not_depend_on_the_number_of_threads() {
    for (format, real) in [("ulog", "ulog"), ("rld", "rld"), ("rosbag", "rosbag12"), ("vel", "vel")] {
        let real =
            rovelog_testing::real(real).map_or_else(String::new, |folder| folder.display().to_string());
        let stats = |jobs| run_in(format, &format!("stats . {real} -q -f ndjson --jobs {jobs}"), b"").stdout;
        let one = stats(1);
        assert!(one.len() > 10_000, "{format}: {} bytes of statistics", one.len());
        assert!(one == stats(3), "{format}");
    }
}

#[test]
fn every_json_document_parses_and_names_its_schema() {
    for (line, schema) in [
        ("info -f json", "rovelog.info/2"),
        ("topics -f json", "rovelog.topics/2"),
        ("schema -f json", "rovelog.schema/1"),
        ("cat -f json", "rovelog.cat/1"),
        ("messages -f json", "rovelog.messages/1"),
        ("params -f json", "rovelog.params/1"),
        ("check -f json", "rovelog.check/2"),
    ] {
        for log in
            ["texts-control-characters.ulg", "float-specials.ulg", "header-only.ulg", "nested-types.ulg"]
        {
            assert_eq!(json(&format!("{line} {log}"))["schema"], schema, "{line} {log}");
        }
    }
    assert_eq!(json("info -f json one-topic.ulg header-only.ulg").as_array().unwrap().len(), 2);
}

/// After a failure, the JSON contains the records before it, the reason, and the records of the
/// next log.
#[test]
fn a_failure_in_the_middle_leaves_valid_json() {
    let bags = "../rosbag/payload-short.bag ../rosbag/recorded.bag";
    let output = run(&format!("cat --strict -f json {bags}"));
    assert_eq!(output.status.code(), Some(1));
    let documents: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(documents[0]["records"].as_array().unwrap().len(), 2);
    assert!(documents[0]["error"].as_str().unwrap().contains("cannot be decoded"), "{documents}");
    assert!(documents[1]["records"].as_array().unwrap().len() > 2 && documents[1]["error"].is_null());
    let bag = std::fs::read(corpus().join("../rosbag/payload-short.bag")).unwrap();
    let output = run_with("cat --strict -f json -", &bag);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["records"].as_array().unwrap().len(), 2);
    assert!(document["error"].as_str().unwrap().contains("cannot be decoded"), "{document}");
}

const ROWS: usize = 100_000;

/// Returns a log of more than 1 MiB. Smaller logs are read into memory and not memory-mapped.
fn large_log(folder: &tempfile::TempDir) -> std::path::PathBuf {
    let mut log = std::fs::read(corpus().join("one-topic.ulg")).unwrap();
    // The last row is repeated. It has 17 bytes with its message header.
    let row = log[log.len() - 17..].to_vec();
    log.extend(row.repeat(ROWS));
    let path = folder.path().join("large.ulg");
    std::fs::write(&path, log).unwrap();
    path
}

/// Starts `rovelog cat`, which blocks until its output is read.
fn cat(path: &std::path::Path, format: &str) -> std::process::Child {
    std::process::Command::new(assert_cmd::cargo::cargo_bin!("rovelog"))
        .args(["cat", "--format", format])
        .arg(path)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// If the reader takes the first line and closes the pipe, the command ends without an error.
#[test]
fn a_closed_pipe_is_not_a_failure() {
    let folder = tempfile::tempdir().unwrap();
    let large = large_log(&folder);
    for format in ["text", "json", "ndjson", "csv"] {
        let mut child = cat(&large, format);
        let mut first = [0; 10];
        child.stdout.take().unwrap().read_exact(&mut first).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{format}");
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "", "{format}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_a_failure() {
    for line in ["info one-topic.ulg", "cat one-topic.ulg -f csv", "topics one-topic.ulg -f json"] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = std::process::Command::new(assert_cmd::cargo::cargo_bin!("rovelog"))
            .args(line.split(' '))
            .current_dir(corpus())
            .stdout(full)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1), "{line}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.starts_with("error: cannot write the results"), "{line}: {said}");
    }
}

#[test]
fn a_pipe_gets_no_colors_no_borders_and_no_progress_bar() {
    for line in [
        "info one-topic.ulg",
        "topics one-topic.ulg",
        "check cut-in-payload.ulg",
        "messages texts-of-all-levels.ulg",
    ] {
        let output = run(line);
        for text in [output.stdout, output.stderr] {
            let text = String::from_utf8(text).unwrap();
            assert!(!text.contains('\x1b') && !text.contains('│'), "{line}: {text}");
        }
    }
    assert!(stdout("info one-topic.ulg --color always").contains("\x1b[1mfile:\x1b[0m"));
    let error = String::from_utf8(run("info none.ulg -c always").stderr).unwrap();
    assert!(error.contains("\x1b[1m\x1b[31merror:\x1b[0m"), "{error}");
}

#[test]
fn several_logs_continue_after_a_failure_and_the_worst_exit_code_is_returned() {
    let output = run("info none.ulg one-topic.ulg");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stdout).unwrap().contains("one-topic.ulg"));
    assert_eq!(code("params cut-in-payload.ulg one-topic.ulg"), 3);
    assert_eq!(code("params one-topic.ulg cut-in-payload.ulg"), 3);
    assert_eq!(code("check cut-in-payload.ulg one-topic.ulg"), 1);
}

#[test]
fn a_named_format_opens_logs_that_detection_does_not_recognize() {
    let log = std::fs::read(corpus().join("one-topic.ulg")).unwrap();
    assert_eq!(run_with("info - --input-format ulog", &log).status.code(), Some(0));
    // Detection looks for definitions in the first 64 KiB.
    let log = [vec![0xA5; 70_000], log].concat();
    assert_eq!(run_with("info - --input-format ulog", &log).status.code(), Some(0));
    let unknown = String::from_utf8(run_with("info -", &log).stderr).unwrap();
    assert!(unknown.contains("--input-format"), "{unknown}");
}

/// An expression needs all rows of a topic, and a pipe has them only at its end.
#[test]
fn a_pipe_refuses_expressions_before_it_prints() {
    let log = std::fs::read(corpus().join("one-topic.ulg")).unwrap();
    for fields in ["x,norm(x)", "x + 1"] {
        let output = run_with(&format!("cat - -f csv --fields '{fields}'"), &log);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{fields}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("needs a file, because it is computed from a whole topic"), "{said}");
    }
}

#[cfg(unix)]
#[test]
fn a_log_that_is_truncated_while_it_is_read_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = large_log(&folder);
    let mut child = cat(&path, "ndjson");
    // After the first line, the command blocks until the test reads more of its output.
    let mut out = child.stdout.take().unwrap();
    out.read_exact(&mut [0; 64]).unwrap();
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(4096).unwrap();
    std::io::copy(&mut out, &mut std::io::sink()).unwrap();
    let ended = child.wait_with_output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(said.contains("shortened"), "{said}");
}

#[test]
fn a_log_that_grows_is_read_up_to_its_initial_length() {
    use std::io::Write as _;
    let folder = tempfile::tempdir().unwrap();
    let path = large_log(&folder);
    let mut child = cat(&path, "ndjson");
    let mut out = child.stdout.take().unwrap();
    let mut text = vec![0; 64];
    out.read_exact(&mut text).unwrap();
    std::fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(&[0xFF; 9000]).unwrap();
    out.read_to_end(&mut text).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(String::from_utf8(text).unwrap().lines().count() > ROWS);
}

#[cfg(unix)]
#[test]
fn unusual_file_names_and_links_work() {
    let folder = tempfile::tempdir().unwrap();
    let name = "-\u{1b}[31m name\n.ulg";
    let path = folder.path().join(name);
    let log = cases().into_iter().find(|(_, expected)| expected["state"] == "complete").unwrap().0;
    std::fs::copy(corpus().join(log), &path).unwrap();
    let linked = folder.path().join("linked");
    std::os::unix::fs::symlink(&path, &linked).unwrap();
    for path in [&path, &linked] {
        let output = common::rovelog().arg("info").arg(path).output().unwrap();
        assert!(output.status.success());
        assert!(!output.stdout.contains(&0x1b), "the name controls the terminal");
    }
    std::fs::write(&path, "no log").unwrap();
    let output = common::rovelog().arg("info").arg(&path).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(!output.stderr.contains(&0x1b), "the name controls the terminal");
}

/// A folder or a pattern stands for its logs, in the order of their paths.
#[test]
fn folders_and_patterns_stand_for_their_logs() {
    let place = Place::new("ulog", &["one-topic.ulg", "arrays-of-all-basic-types.ulg"]);
    std::fs::write(place.path("notes.txt"), "no log").unwrap();
    let names = |line: &str| {
        let output = place.run(line);
        assert_eq!(output.status.code(), Some(0), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        let documents: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let documents = documents.as_array().unwrap().clone();
        documents.iter().map(|log| log["file"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let both = names("info . -f json");
    assert_eq!(both.len(), 2, "{both:?}");
    assert!(both[0].ends_with("arrays-of-all-basic-types.ulg") && both[1].ends_with("one-topic.ulg"));
    assert_eq!(names("info '*.ulg' -f json").len(), 2);
    assert_eq!(place.run("check .").status.code(), Some(0));
    let none = place.run("info '*.bag'");
    assert_eq!(none.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&none.stderr).contains("no such file, folder or pattern"));
}
