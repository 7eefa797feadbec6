//! `cargo xtask test`: runs all tests and checks, the fastest checks first.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::process::{self, blessing, cargo_package, run, shown};
use crate::{FORMAT_CRATES, browser, first_command, package, place, tidy};

/// Name and function of a stage.
type Stage = (&'static str, fn() -> Result<()>);

/// Stages that run before the tests of the workspace. The tests come last, so that their results
/// are at the end of the output.
const STAGES: &[Stage] = &[
    ("format", || cargo(&["fmt", "--all", "--", "--check"])),
    ("tidy", tidy::check),
    ("corpus", gen_corpus),
    ("clippy", clippy),
    ("doc", doc),
    ("features", features),
    ("packages", packages),
    ("lock file", fuzz_lock_file),
    ("doctests", || cargo(&["test", "--workspace", "--doc"])),
    ("first command", first_command::check),
    ("release tests", release_tests),
    ("python", package::check),
    ("browser", browser::check),
];

/// Log formats with which the crate `rovelog` must compile alone. All other formats are built in
/// the same way.
const ALONE: [&str; 2] = ["ulog", "rld"];

/// Crates whose tests also run without overflow checks, as in release builds.
const RELEASE: [&str; 2] = ["ulog-format", "rld-format"];

/// Runs the subcommand `cargo xtask test`.
pub(crate) fn command(args: &[String]) -> Result<()> {
    ensure!(args.is_empty(), "test takes no options; BLESS=1 is a variable");
    let mut times: Vec<(&str, Duration)> = Vec::new();
    for (name, run) in STAGES {
        println!("--- {name}");
        let start = Instant::now();
        run().with_context(|| format!("stage `{name}` failed"))?;
        times.push((name, start.elapsed()));
        println!("--- {name}: {:.1} s\n", start.elapsed().as_secs_f64());
    }
    println!("stages passed:");
    for (name, time) in &times {
        println!("  {name:<14} {:>7.1} s", time.as_secs_f64());
    }
    let total: Duration = times.iter().map(|stage| stage.1).sum();
    println!("  {:<14} {:>7.1} s\n\n--- tests", "total", total.as_secs_f64());
    if let Some(folder) = corpus_generator::real() {
        println!("with the real logs of {}", folder.display());
    }
    // A test that is skipped prints the reason, but a test runner hides the output of tests that
    // pass. So tests also write the reason to this file.
    let skipped = place::target().join("skipped-tests.txt");
    let _ = fs::remove_file(&skipped);
    tests(&skipped).context("stage `tests` failed")
}

/// Prints the skipped tests, grouped by reason. Each line of `list` contains a reason, a tab and
/// the name of a test.
fn print_skipped(list: &str) {
    let mut skipped: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (reason, test) in list.lines().filter_map(|line| line.split_once('\t')) {
        skipped.entry(reason).or_default().insert(test);
    }
    for (reason, tests) in skipped {
        let tests: Vec<_> = tests.into_iter().collect();
        println!("\nSKIPPED {} tests, {reason}:\n  {}", tests.len(), tests.join("\n  "));
    }
}

fn gen_corpus() -> Result<()> {
    if blessing() { corpus_generator::write() } else { corpus_generator::check() }
}

fn clippy() -> Result<()> {
    cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])
}

fn doc() -> Result<()> {
    let mut doc = cargo_command(&["doc", "--workspace", "--no-deps"]);
    run(doc.env("RUSTDOCFLAGS", "-Dwarnings"))
}

fn features() -> Result<()> {
    let check = |options: &[&str]| {
        println!("cargo check {}", options.join(" "));
        cargo(&[&["check"], options].concat())
    };
    for format in FORMAT_CRATES {
        check(&["-p", format])?;
        check(&["-p", format, "--all-features"])?;
    }
    // A build without decompression must refuse bags with compressed chunks.
    cargo(&["test", "--quiet", "-p", "rosbag12", "--no-default-features", "--test", "compressed"])?;
    for format in ALONE {
        check(&["-p", "rovelog", "--no-default-features", "--features", format])?;
    }
    Ok(())
}

/// Packages the crates as for publishing. Cargo warns about each test file that a package does not
/// include. So its output is only shown if packaging fails.
fn packages() -> Result<()> {
    let mut package = cargo_package();
    let output = package.output().with_context(|| format!("starting {}", shown(&package)))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`{}` ended with {}:\n{errors}", shown(&package), output.status);
    Ok(())
}

/// Checks that the lock file of the fuzz targets is up to date. The fuzz targets are in a separate
/// workspace, which no other stage builds.
fn fuzz_lock_file() -> Result<()> {
    cargo(&["update", "--workspace", "--locked", "--manifest-path", "fuzz/Cargo.toml"])
}

fn release_tests() -> Result<()> {
    // A single command tests all crates, so that shared dependencies are compiled only once.
    let packages = RELEASE.iter().flat_map(|package| ["-p", package]);
    let args: Vec<_> = ["test", "--release"].into_iter().chain(packages).collect();
    cargo(&args)
}

fn tests(skipped: &Path) -> Result<()> {
    let nextest = Command::new("cargo-nextest")
        .args(["nextest", "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !nextest {
        return cargo(&["test", "--workspace", "--all-targets"]);
    }
    let mut tests = cargo_command(&["nextest", "run", "--workspace", "--no-fail-fast"]);
    let mut runner = tests.env("ROVELOG_SKIPPED", skipped).stderr(Stdio::piped()).spawn()?;
    // The summary of the test runner is printed after the list of skipped tests, so that it is at
    // the end of the output.
    let mut summary = Vec::new();
    let lines = runner.stderr.take().context("standard error is piped")?;
    for line in BufReader::new(lines).lines() {
        let line = line?;
        if !summary.is_empty() || line.trim_start().starts_with("Summary [") {
            summary.push(line);
        } else {
            eprintln!("{line}");
        }
    }
    let status = runner.wait()?;
    print_skipped(&fs::read_to_string(skipped).unwrap_or_default());
    for line in &summary {
        eprintln!("{line}");
    }
    if status.success() { Ok(()) } else { bail!("`{tests:?}` ended with {status}") }
}

fn cargo(args: &[&str]) -> Result<()> {
    run(&mut cargo_command(args))
}

fn cargo_command(args: &[&str]) -> Command {
    let mut command = process::cargo(args);
    // Snapshots are only rewritten if the user requests it.
    let update = if blessing() { "always" } else { "no" };
    command.env("INSTA_UPDATE", update);
    if std::env::var_os("CARGO_TERM_PROGRESS_WHEN").is_none() {
        command.env("CARGO_TERM_PROGRESS_WHEN", "never");
    }
    if std::env::var_os("NO_COLOR").is_some() {
        command.env("CARGO_TERM_COLOR", "never");
    }
    command
}
