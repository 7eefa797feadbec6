//! `cargo xtask test`: all checks, the fastest first.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::process::{self, blessing, run, shown};
use crate::targets::FORMATS;
use crate::{browser, corpus, first, package, place, tidy};

/// A name and a function.
type Stage = (&'static str, fn() -> Result<()>);

/// The stages. Tests come last, so that their result lines are printed last.
const STAGES: &[Stage] = &[
    ("format", || cargo(&["fmt", "--all", "--", "--check"])),
    ("tidy", tidy::check),
    ("corpus", gen_corpus),
    ("clippy", clippy),
    ("doc", doc),
    ("features", features),
    ("packages", packages),
    ("lock file", lock_of_fuzz),
    ("doctests", || cargo(&["test", "--workspace", "--doc"])),
    ("first command", first::check),
    ("release tests", release_tests),
    ("python", package::check),
    ("browser", browser::check),
];

/// Formats for which the facade must compile alone.
const ALONE: [&str; 2] = ["ulog", "rld"];

/// Crates that are also tested without overflow checks, as users run them.
const RELEASE: [&str; 2] = ["ulog-format", "rld-format"];

/// Runs the subcommand.
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
    println!("  {:<14} {:>7.1} s\n\n--- tests", "together", total.as_secs_f64());
    if let Some(folder) = place::real() {
        println!("with the real logs of {}", folder.display());
    }
    // Tests print when they skip, but a runner hides the output of a passing test.
    let list = place::target().join("skipped-tests.txt");
    let _ = fs::remove_file(&list);
    tests(&list).context("stage `tests` failed")
}

/// Prints the skipped tests by reason, from lines of a reason, a tab and a test.
fn print_skipped(list: &str) {
    let mut skipped: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (why, test) in list.lines().filter_map(|line| line.split_once('\t')) {
        skipped.entry(why).or_default().insert(test);
    }
    for (why, tests) in skipped {
        let tests: Vec<_> = tests.into_iter().collect();
        println!("\nSKIPPED {} tests, {why}:\n  {}", tests.len(), tests.join("\n  "));
    }
}

fn gen_corpus() -> Result<()> {
    if blessing() { corpus::write() } else { corpus::check() }
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
    for format in FORMATS {
        check(&["-p", format])?;
        check(&["-p", format, "--all-features"])?;
    }
    for format in ALONE {
        check(&["-p", "rovelog", "--no-default-features", "--features", format])?;
    }
    Ok(())
}

/// Packages the crates as for publishing. Cargo warns of each test that is left out, so its output
/// is shown only when it fails.
fn packages() -> Result<()> {
    let mut package = cargo_command(&["package", "--workspace", "--no-verify", "--allow-dirty", "--quiet"]);
    let output = package.output().with_context(|| format!("starting {}", shown(&package)))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`{}` ended with {}:\n{errors}", shown(&package), output.status);
    Ok(())
}

/// Compares the lock file of the fuzz targets with what they need: it is not that of the workspace,
/// and nothing else in CI builds by it.
fn lock_of_fuzz() -> Result<()> {
    cargo(&["update", "--workspace", "--locked", "--manifest-path", "fuzz/Cargo.toml"])
}

fn release_tests() -> Result<()> {
    // Together, so that what they share is compiled once.
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
    // The runner's own result lines come last: they are held back until hidden output is printed.
    let mut result = Vec::new();
    let lines = runner.stderr.take().context("the runner's output is piped")?;
    for line in BufReader::new(lines).lines() {
        let line = line?;
        if !result.is_empty() || line.trim_start().starts_with("Summary [") {
            result.push(line);
        } else {
            eprintln!("{line}");
        }
    }
    let status = runner.wait()?;
    print_skipped(&fs::read_to_string(skipped).unwrap_or_default());
    for line in &result {
        eprintln!("{line}");
    }
    if status.success() { Ok(()) } else { bail!("`{tests:?}` ended with {status}") }
}

fn cargo(args: &[&str]) -> Result<()> {
    run(&mut cargo_command(args))
}

fn cargo_command(args: &[&str]) -> Command {
    let mut command = process::cargo(args);
    // Snapshots are rewritten only on request.
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
