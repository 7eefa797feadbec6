//! Helpers that run the command line in a folder of the corpus, so that paths in outputs are short.
// Each test file is a separate crate, which uses only some of these helpers.
#![allow(dead_code, unused_imports, unused_macros)]

// With fewer features, the generated pages and snapshots would lack the missing commands.
#[cfg(not(feature = "full"))]
compile_error!("the tests of the command line need all features: -p rovelog-cli --features full");

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use assert_cmd::Command;

/// Folder of PX4 logs in the corpus.
const ULOG: &str = "ulog";

/// Returns the folder of the corpus with the logs of a format.
fn folder(format: &str) -> PathBuf {
    rovelog_testing::root().join("corpus").join(format)
}

pub(crate) fn corpus() -> PathBuf {
    folder(ULOG)
}

/// Returns the command line in a folder. The settings of the tester's terminal do not affect it.
fn rovelog_at(folder: &Path) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("rovelog"));
    command.current_dir(folder).env_remove("NO_COLOR").env("COLUMNS", "100");
    command
}

pub(crate) fn rovelog() -> Command {
    rovelog_at(&corpus())
}

/// Runs a command line, whose arguments are separated by spaces. A part in single quotes is one
/// argument.
fn run_at(folder: &Path, line: &str, stdin: &[u8]) -> Output {
    let arguments = line.split('\'').enumerate().flat_map(|(i, part)| {
        let blank = |c: char| i % 2 == 0 && c == ' ';
        part.split(blank).filter(|part| !part.is_empty()).map(str::to_owned).collect::<Vec<_>>()
    });
    rovelog_at(folder).args(arguments).write_stdin(stdin).output().unwrap()
}

/// Returns the command line, its standard output, its standard error and its exit code as one text.
/// Binary output is omitted.
fn shown_at(folder: &Path, line: &str, stdin: &[u8]) -> String {
    let output = run_at(folder, line, stdin);
    let text = String::from_utf8(output.stdout).unwrap_or_else(|_| "[binary]\n".to_owned());
    let said = String::from_utf8(output.stderr).unwrap();
    let errors = if said.is_empty() { "" } else { "[stderr]\n" };
    format!("$ rovelog {line}\n{text}{errors}{said}[exit {}]\n", output.status.code().unwrap())
}

/// Runs a command line in the corpus folder of a log format.
pub(crate) fn run_in(format: &str, line: &str, stdin: &[u8]) -> Output {
    run_at(&folder(format), line, stdin)
}

/// Runs a command line in a folder of the corpus. Returns the command line, its outputs and its
/// exit code as one text.
pub(crate) fn shown_in(format: &str, line: &str, stdin: &[u8]) -> String {
    shown_at(&folder(format), line, stdin)
}

pub(crate) fn run(line: &str) -> Output {
    run_with(line, b"")
}

pub(crate) fn run_with(line: &str, stdin: &[u8]) -> Output {
    run_in(ULOG, line, stdin)
}

pub(crate) fn shown(line: &str) -> String {
    shown_with(line, b"")
}

pub(crate) fn shown_with(line: &str, stdin: &[u8]) -> String {
    shown_in(ULOG, line, stdin)
}

/// Returns the standard output of a command line, which must succeed.
pub(crate) fn stdout(line: &str) -> String {
    let output = run(line);
    assert_eq!(output.status.code(), Some(0), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the exit code of a command line.
pub(crate) fn code(line: &str) -> i32 {
    run(line).status.code().unwrap()
}

/// A temporary folder with some logs of the corpus, for runs that write files.
pub(crate) struct Place(tempfile::TempDir);

impl Place {
    pub(crate) fn new(format: &str, logs: &[&str]) -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        for log in logs {
            fs::copy(folder(format).join(log), place.path(log)).unwrap();
        }
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn run(&self, line: &str) -> Output {
        run_at(self.0.path(), line, b"")
    }

    pub(crate) fn shown(&self, line: &str) -> String {
        shown_at(self.0.path(), line, b"")
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Returns the sorted file names in a folder.
    pub(crate) fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(folder)).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// Checks that every command prints `words` about a log with lost data and ends with exit code 3.
/// With `--strict`, the command must fail. `LOG` in `commands` is replaced by the name of the log.
pub(crate) fn assert_reported_by_all(format: &str, log: &str, commands: &[&str], words: &str) {
    for command in commands {
        let line = command.replace("LOG", log);
        let output = run_in(format, &line, b"");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{line}: {said}");
        assert!(said.contains(words), "{line}: {said}");
        let output = run_in(format, &format!("{line} --strict"), b"");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{line} --strict: {said}");
        assert!(output.stdout.is_empty() && said.contains("error:"), "{line} --strict: {said}");
    }
    // The log is also read from a pipe.
    let bytes = fs::read(folder(format).join(log)).unwrap();
    let output = run_in(format, "cat -", &bytes);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "cat - < {log}: {said}");
    assert!(said.contains(words), "cat - < {log}: {said}");
    assert_eq!(run_in(format, "cat - --strict -f json", &bytes).status.code(), Some(1), "{log}");
    for line in [format!("check {log}"), format!("check {log} -f json")] {
        let output = run_in(format, &line, b"");
        assert_eq!(output.status.code(), Some(1), "{line}");
    }
    let info = run_in(format, &format!("info {log}"), b"");
    let info = String::from_utf8_lossy(&info.stdout).into_owned();
    let state = info.lines().find(|line| line.trim_start().starts_with("state")).unwrap_or_default();
    assert!(["missing", "left out", "not readable"].iter().any(|word| state.contains(word)), "{state}");
}

/// Compares a text with the stored snapshot `$name`.
macro_rules! snapshot {
    ($name:expr, $runs:expr) => {
        insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!($name, $runs);
        });
    };
}
pub(crate) use snapshot;

/// Defines a test that runs several command lines. Their outputs and exit codes are compared with
/// one snapshot.
macro_rules! runs {
    (in $format:literal; $($name:ident: $($line:literal),+ $(,)?;)*) => { $(
        #[test]
        fn $name() {
            let runs = [$($line),+].map(|line| $crate::common::shown_in($format, line, b"")).join("\n");
            $crate::common::snapshot!(stringify!($name), runs);
        }
    )* };
}
pub(crate) use runs;
