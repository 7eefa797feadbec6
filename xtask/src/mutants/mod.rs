//! `cargo xtask mutants FILE... [--only TEXT]...`: changes the code of files, one place at a time, and
//! runs the tests of their crate after each change. A change that no test notices is a line without a
//! test.
//!
//! cargo-mutants says what to change. All changes are compiled once, as branches that a number turns
//! on; to build the tests after each change takes days. Changes that cannot make a difference, or only
//! one of speed, are in `.cargo/mutants.toml` with the reason.

mod run;
mod source;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;
use serde_json::Value as Json;

use crate::process::{cargo, files_below};
use crate::root;
use crate::targets::FORMATS;
use crate::tools::{self, MUTANTS};

/// A change, as cargo-mutants lists it.
#[derive(Debug, Deserialize)]
struct Change {
    package: String,
    file: String,
    genre: Genre,
    name: String,
    replacement: String,
    span: Span,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
enum Genre {
    BinaryOperator,
    UnaryOperator,
    FnValue,
    MatchArm,
    MatchArmGuard,
    StructField,
}

#[derive(Debug, Deserialize)]
struct Span {
    start: Place,
    end: Place,
}

#[derive(Debug, Deserialize)]
struct Place {
    line: usize,
    column: usize,
}

/// A program of tests.
#[derive(Clone, Debug)]
struct Tests {
    /// The folder of its crate, in which it runs.
    folder: PathBuf,
    name: String,
    program: PathBuf,
}

/// What came of a change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Noticed,
    TooSlow,
    NotCompiled,
    /// In a constant, which has one value in a program.
    NotTried,
    Missed,
}

/// Runs the subcommand: `FILE... [--only TEXT]...`, changes whose names contain one of the texts.
pub(crate) fn command(args: &[String]) -> Result<()> {
    let (mut files, mut only) = (Vec::new(), Vec::new());
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--only" => only.push(args.next().context("--only TEXT")?.as_str()),
            file => files.push(file),
        }
    }
    ensure!(!files.is_empty(), "usage: mutants FILE... [--only TEXT]...");
    for file in &files {
        ensure!(root().join(file).is_file(), "there is no file {file}");
    }
    let mut changes = list(&files)?;
    changes.retain(|change| only.is_empty() || only.iter().any(|text| change.name.contains(text)));
    ensure!(!changes.is_empty(), "nothing to change");
    let mut packages: Vec<&str> = changes.iter().map(|change| change.package.as_str()).collect();
    if packages.contains(&"rovelog-core") {
        // Their tests are those of core, which has few of its own.
        packages.extend(FORMATS);
    }
    packages.sort_unstable();
    packages.dedup();
    let tree = copy()?;
    let (tests, mut outcomes) = build(&tree, &changes, &packages)?;
    run::all(&changes, &tests, &mut outcomes)?;
    report(&changes, &outcomes)
}

fn folder() -> PathBuf {
    root().join("target/mutants")
}

/// Returns the changes that cargo-mutants makes in these files.
fn list(files: &[&str]) -> Result<Vec<Change>> {
    let mut mutants = Command::new(tools::installed(MUTANTS)?);
    mutants.args(["mutants", "--workspace", "--all-features", "--list", "--json"]).current_dir(root());
    mutants.args(files.iter().flat_map(|file| ["--file", file]));
    let output = mutants.output().context("starting cargo-mutants")?;
    ensure!(output.status.success(), "cargo-mutants: {}", String::from_utf8_lossy(&output.stderr));
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Copies the sources to where they can be changed.
fn copy() -> Result<PathBuf> {
    let tree = folder().join("tree");
    for file in files_below(&root())? {
        let (from, to) = (root().join(&file), tree.join(&file));
        fs::create_dir_all(to.parent().context("a folder")?)?;
        // What is as it was keeps its time, so that it is not built again.
        let content = fs::read(&from).with_context(|| format!("reading {}", from.display()))?;
        if fs::read(&to).ok().as_ref() != Some(&content) {
            fs::write(&to, content)?;
        }
    }
    Ok(tree)
}

/// Builds the tests with all changes that compile; the outcomes are those of the others.
fn build(
    tree: &Path,
    changes: &[Change],
    packages: &[&str],
) -> Result<(Vec<Tests>, BTreeMap<usize, Outcome>)> {
    let mut outcomes = BTreeMap::new();
    loop {
        for file in by_file(changes).keys() {
            let own: Vec<_> = changes.iter().enumerate().filter(|(_, change)| change.file == *file).collect();
            let tried: Vec<_> =
                own.into_iter().filter(|(number, _)| !outcomes.contains_key(number)).collect();
            let (text, left) = source::with_changes(&fs::read_to_string(root().join(file))?, &tried)?;
            fs::write(tree.join(file), text)?;
            outcomes.extend(left.into_iter().map(|number| (number, Outcome::NotTried)));
        }
        for package in packages {
            let file = Path::new("crates").join(package).join("src/lib.rs");
            let text = fs::read_to_string(root().join(&file))?;
            fs::write(tree.join(&file), text + source::SWITCH)?;
        }
        let mut build = cargo(&["build", "--keep-going", "--tests", "--message-format=json"]);
        build.args(packages.iter().flat_map(|package| ["-p", package])).current_dir(tree);
        build.env("CARGO_TARGET_DIR", folder().join("build")).env("CARGO_PROFILE_DEV_DEBUG", "0");
        let output = build.output().context("starting cargo")?;
        let messages: Vec<Json> = output
            .stdout
            .split(|byte| *byte == b'\n')
            .filter_map(|line| serde_json::from_slice(line).ok())
            .collect();
        if output.status.success() {
            return Ok((messages.iter().filter_map(tests).collect(), outcomes));
        }
        let mut wrong = Vec::new();
        for message in messages.iter().filter(|message| message["message"]["level"] == "error") {
            wrong.extend(culprits(tree, &message["message"]["spans"])?);
        }
        if wrong.is_empty() {
            bail!("the tests cannot be built:\n{}", String::from_utf8_lossy(&output.stderr));
        }
        println!("{} changes do not compile", wrong.len());
        outcomes.extend(wrong.into_iter().map(|number| (number, Outcome::NotCompiled)));
    }
}

fn by_file(changes: &[Change]) -> BTreeMap<&str, Vec<usize>> {
    let mut files = BTreeMap::<_, Vec<_>>::new();
    for (number, change) in changes.iter().enumerate() {
        files.entry(change.file.as_str()).or_default().push(number);
    }
    files
}

/// Returns a program of tests that cargo has built.
fn tests(message: &Json) -> Option<Tests> {
    let program = message["executable"].as_str()?;
    (message["profile"]["test"] == true).then_some(())?;
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
    Some(Tests { folder, name: message["target"]["name"].as_str()?.to_owned(), program: program.into() })
}

/// Returns the changes whose branches have an error.
fn culprits(tree: &Path, spans: &Json) -> Result<Vec<usize>> {
    let mut spans: Vec<&Json> = spans.as_array().into_iter().flatten().collect();
    spans.sort_by_key(|span| span["is_primary"] != true);
    for span in spans {
        let text = fs::read_to_string(tree.join(span["file_name"].as_str().unwrap_or_default()));
        let Ok(text) = text else { continue };
        let at = |key: &str| span[key].as_u64().and_then(|at| usize::try_from(at).ok()).unwrap_or(0);
        let (start, end) = (at("byte_start"), at("byte_end"));
        let mut found = Vec::new();
        for (open, _) in text[..start.min(text.len())].match_indices("/*<") {
            let Some(number) = text[open + 3..].split("*/").next() else { continue };
            let close = text[open..].find(&format!("/*{number}>*/")).map(|at| open + at);
            if close.is_some_and(|close| end <= close + number.len() + 5) {
                found.push(number.parse()?);
            }
        }
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Ok(Vec::new())
}

/// Prints a line for each file, and the changes that no test noticed.
fn report(changes: &[Change], outcomes: &BTreeMap<usize, Outcome>) -> Result<()> {
    println!("| file | changes | noticed | too slow | do not compile | in constants | not noticed |");
    println!("|---|---|---|---|---|---|---|");
    for (file, numbers) in by_file(changes) {
        let count = |outcome| numbers.iter().filter(|number| outcomes.get(number) == Some(&outcome)).count();
        let [noticed, slow, unbuilt, untried, missed] =
            [Outcome::Noticed, Outcome::TooSlow, Outcome::NotCompiled, Outcome::NotTried, Outcome::Missed]
                .map(count);
        println!("| `{file}` | {} | {noticed} | {slow} | {unbuilt} | {untried} | {missed} |", numbers.len());
    }
    let missed: Vec<_> = outcomes.iter().filter(|(_, outcome)| **outcome == Outcome::Missed).collect();
    let names: Vec<_> = missed.iter().map(|(number, _)| changes[**number].name.as_str()).collect();
    ensure!(names.is_empty(), "changes that no test notices:\n{}", names.join("\n"));
    Ok(())
}
