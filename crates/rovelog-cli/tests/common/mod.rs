//! Runs the command line on the corpus, where every path is short.
// Each test file is a crate of its own and uses its part.
#![allow(dead_code)]

use std::path::PathBuf;
use std::process::Output;

use assert_cmd::Command;

/// The logs of PX4 in the corpus.
const ULOG: &str = "ulog";

/// The folder of the corpus with the logs of a format.
fn folder(format: &str) -> PathBuf {
    rovelog_testing::root().join("corpus").join(format)
}

pub(crate) fn corpus() -> PathBuf {
    folder(ULOG)
}

/// The command line, in the corpus of a format, with nothing of the tester's terminal.
fn rovelog_in(format: &str) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("rovelog"));
    command.current_dir(folder(format)).env_remove("NO_COLOR").env("COLUMNS", "100");
    command
}

pub(crate) fn rovelog() -> Command {
    rovelog_in(ULOG)
}

/// Runs a line as a shell would split it at blanks; a part in quotes holds together.
pub(crate) fn run_in(format: &str, line: &str, stdin: &[u8]) -> Output {
    let arguments = line.split('\'').enumerate().flat_map(|(i, part)| {
        let blank = |c: char| i % 2 == 0 && c == ' ';
        part.split(blank).filter(|part| !part.is_empty()).map(str::to_owned).collect::<Vec<_>>()
    });
    rovelog_in(format).args(arguments).write_stdin(stdin).output().unwrap()
}

pub(crate) fn run(line: &str) -> Output {
    run_with(line, b"")
}

pub(crate) fn run_with(line: &str, stdin: &[u8]) -> Output {
    run_in(ULOG, line, stdin)
}

/// What a run looked like: the line, both outputs, the exit code.
pub(crate) fn shown_in(format: &str, line: &str, stdin: &[u8]) -> String {
    let output = run_in(format, line, stdin);
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let errors = if output.stderr.is_empty() { "" } else { "[stderr]\n" };
    let (out, said, code) = (text(&output.stdout), text(&output.stderr), output.status.code().unwrap());
    format!("$ rovelog {line}\n{out}{errors}{said}[exit {code}]\n")
}

pub(crate) fn shown(line: &str) -> String {
    shown_with(line, b"")
}

pub(crate) fn shown_with(line: &str, stdin: &[u8]) -> String {
    shown_in(ULOG, line, stdin)
}

/// Standard output of a run that succeeds.
pub(crate) fn stdout(line: &str) -> String {
    let output = run(line);
    assert_eq!(output.status.code(), Some(0), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The exit code of a run.
pub(crate) fn code(line: &str) -> i32 {
    run(line).status.code().unwrap()
}
