//! Programs in C and C++ read all logs of the corpus. Their results must equal those of the Rust
//! interface.
#![cfg(target_os = "linux")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use arrow_array::cast::AsArray as _;
use arrow_array::types::Int64Type;
use rovelog::{AnyLog, ReadOptions, Select, Topic};
use rovelog_ffi::RovelogStatus;
use rovelog_testing::{Logs, RLD, ROSBAG, ULOG, VEL, root, skipped};

/// Returns the paths of all logs of the corpus, damaged logs included.
fn logs() -> Vec<PathBuf> {
    let all = [ULOG, RLD, ROSBAG, VEL];
    let logs = all.iter().flat_map(|logs| [Logs::corpus(logs), Logs::compressed(logs)]).flatten();
    logs.map(|log| log.path).collect()
}

/// Compiles a program in `tests/` and links it with the library. Returns `None` if the compiler is
/// not installed.
fn compile(compiler: &str, source: &str, options: &[&str]) -> Option<Command> {
    let crate_folder = root().join("crates/rovelog-ffi");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(source);
    fs::create_dir_all(&folder).expect("the target folder is writable");
    let test = std::env::current_exe().expect("the test is a file");
    // Cargo writes the library to the folder of the tests.
    let built = test.with_file_name("librovelog_ffi.so");
    for name in ["librovelog.so", "librovelog.so.0"] {
        let _ = fs::remove_file(folder.join(name));
        std::os::unix::fs::symlink(&built, folder.join(name)).expect("the target folder is writable");
    }
    let program = folder.join("program");
    let mut compile = Command::new(compiler);
    compile.args(options).args(["-O1", "-Wall", "-Wextra", "-Werror", "-pedantic", "-o"]).arg(&program);
    compile.arg("-I").arg(crate_folder.join("include")).arg(crate_folder.join("tests").join(source));
    let Ok(status) = compile.arg("-L").arg(&folder).arg("-lrovelog").status() else {
        skipped(&format!("{compiler} is not installed"));
        return None;
    };
    assert!(status.success(), "{source} does not compile");
    let mut run = Command::new(program);
    run.env("LD_LIBRARY_PATH", folder);
    Some(run)
}

/// Returns the lines that the programs must print for a topic.
fn describe_topic(log: &AnyLog, topic: &Topic, lines: &mut String) {
    write!(lines, "{} ({}) {} records,", topic.name, topic.type_name, topic.count).expect("memory");
    let batches = match log.own(topic).and_then(|topic| topic.columns(&Select::all())) {
        Ok(batches) => batches,
        Err(error) => {
            return writeln!(lines, " error {}", RovelogStatus::from(error.kind) as u8).expect("memory");
        }
    };
    let (columns, mut rows, mut sum) = (batches.schema().fields().len(), 0, 0_u64);
    for batch in batches {
        let batch = batch.expect("the log was read completely");
        let times = batch.column(0).as_primitive::<Int64Type>().values();
        sum = times.iter().fold(sum, |sum, time| sum.wrapping_add(time.cast_unsigned()));
        rows += batch.num_rows();
    }
    // Each record that can be decoded is a row, but a row of a Velodyne topic is a point.
    let undecodable = log.undecodable(&Select::all());
    let undecodable = undecodable.iter().find(|(id, _)| *id == topic.id).map_or(0, |(_, count)| *count);
    assert!(rows as u64 + undecodable == topic.count || topic.name.contains("Velodyne"), "{}", topic.name);
    writeln!(lines, " {rows} rows, {columns} columns, times {sum}").expect("memory");
}

/// Returns the lines that the programs must print for a log.
fn describe(path: &Path) -> String {
    let mut options = ReadOptions::default();
    options.read_all = true;
    let log = match rovelog::open_with(path, &options) {
        Ok(log) => log,
        Err(error) => return format!("error {}\n", RovelogStatus::from(error.kind) as u8),
    };
    let problems = log.diagnostics().list();
    let (topic_count, problem_count) = (log.topics().len(), problems.len());
    let mut lines = format!("{} {topic_count} topics, {problem_count} problems\n", log.format().id);
    for topic in log.topics() {
        describe_topic(&log, topic, &mut lines);
    }
    for problem in problems {
        let (rule, range, message) = (problem.rule, &problem.range, &problem.message);
        let (severity, code) = (rule.severity as u8, rule.code);
        writeln!(lines, "{code} severity {severity} at {}..{}: {message}", range.start, range.end)
            .expect("memory");
    }
    lines.replace('\0', "\\0")
}

fn check(compiler: &str, source: &str, options: &[&str]) {
    let Some(mut program) = compile(compiler, source, options) else { return };
    let logs = logs();
    let output = program.args(&logs).output().expect("the program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let expected: String = logs.iter().map(|path| describe(path)).collect();
    let found = String::from_utf8(output.stdout).expect("the texts are UTF-8");
    for (found, expected) in found.lines().zip(expected.lines()) {
        assert_eq!(found, expected, "{source}");
    }
    assert_eq!(found.lines().count(), expected.lines().count(), "{source}");
    assert!(expected.lines().count() > 2 * logs.len(), "{} lines", expected.lines().count());
}

#[test]
fn a_c_program_reads_what_rust_reads() {
    check("cc", "read.c", &["-std=c99"]);
}

#[test]
fn a_cpp_program_reads_what_rust_reads() {
    check("c++", "read.cpp", &["-std=c++17"]);
}
