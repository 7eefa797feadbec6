//! `cargo xtask tidy`: rules of ARCHITECTURE.md that no compiler checks.

mod dependencies;
pub(crate) mod documents;
mod published;
pub(crate) mod structure;
pub(crate) mod words;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::process::{cargo, files_below};
use crate::targets::FORMATS;
use crate::{corpus, root};

/// Allowed dependencies among our own crates; all others are forbidden.
///
/// `*` on the left stands for every format crate. Format crates depend on the core and on none of
/// our other crates: neither on each other nor on the facade. `rovelog-testing` is for tests.
const ALLOWED: &[(&str, &[&str])] = &[
    ("rovelog-core", &["rovelog-testing"]),
    ("rovelog-testing", &["rovelog-core"]),
    ("*", &["rovelog-core", "rovelog-testing"]),
    ("rovelog", &["rovelog-core", "rovelog-testing", "*"]),
    ("rovelog-export", &["rovelog-core", "rovelog-testing", "*", "rovelog"]),
    ("rovelog-remote", &["rovelog-core", "rovelog-testing"]),
    (
        "rovelog-scale",
        &["rovelog-core", "rovelog-testing", "*", "rovelog", "rovelog-export", "rovelog-remote"],
    ),
    ("rovelog-view", &["rovelog-core", "rovelog-testing", "*", "rovelog", "rovelog-export", "rovelog-scale"]),
    (
        "rovelog-cli",
        &[
            "rovelog-core",
            "rovelog-testing",
            "*",
            "rovelog",
            "rovelog-export",
            "rovelog-remote",
            "rovelog-scale",
            "rovelog-view",
        ],
    ),
    (
        "rovelog-python",
        &["rovelog-core", "*", "rovelog", "rovelog-export", "rovelog-remote", "rovelog-scale", "rovelog-cli"],
    ),
    ("fuzz-bodies", &["rovelog", "rovelog-export"]),
    // A generator that uses our readers could share their mistakes.
    ("xtask", &[]),
];

/// Maximum lines of a source file; a longer one does more than one job.
const LINE_LIMIT: usize = 600;

/// Runs the subcommand.
pub(crate) fn command(args: &[String]) -> Result<()> {
    ensure!(args.is_empty(), "tidy takes no options");
    check()
}

/// Runs all checks; every finding is printed, not only the first.
pub(crate) fn check() -> Result<()> {
    let root = root();
    let metadata = metadata(&root)?;
    let (ours, all) = split(&metadata);
    let packages = packages(&ours);
    let files = source_files(&root)?;

    let mut found = edges(&packages);
    found.extend(dependencies::check(&all));
    let reasons = fs::read_to_string(root.join("docs/internals/dependencies.md"))?;
    found.extend(dependencies::without_reason(&reasons, &ours));
    found.extend(published::check(&root, &ours)?);
    found.extend(lengths(&root, &files)?);
    found.extend(local_paths(&root, &files));
    found.extend(undocumented_words(&root)?);
    found.extend(documents::check(&root, &files)?);
    found.extend(words::check(&root, &files)?);
    found.extend(structure::check(&ours)?);
    ensure!(found.is_empty(), "not tidy:\n  {}", found.join("\n  "));
    println!("tidy: {} crates, {} with dependencies, {} files", ours.len(), all.len(), files.len());
    Ok(())
}

fn metadata(root: &Path) -> Result<Value> {
    let output = cargo(&["metadata", "--format-version", "1", "--locked"])
        .output()
        .context("starting cargo metadata")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "cargo metadata in {}: {errors}", root.display());
    serde_json::from_slice(&output.stdout).context("reading cargo metadata")
}

/// A crate of the workspace.
struct Package {
    name: String,
    /// Crates that it depends on, including those for tests and build scripts.
    dependencies: Vec<String>,
}

/// Returns the packages of the workspace, and all packages that it is built from.
fn split(metadata: &Value) -> (Vec<&Value>, Vec<&Value>) {
    let all: Vec<&Value> = metadata["packages"].as_array().into_iter().flatten().collect();
    let ours = all.iter().copied().filter(|package| package["source"].is_null());
    (ours.collect(), all)
}

fn packages(ours: &[&Value]) -> Vec<Package> {
    let name = |value: &Value| value["name"].as_str().unwrap_or_default().to_owned();
    let dependencies =
        |package: &Value| package["dependencies"].as_array().into_iter().flatten().map(name).collect();
    ours.iter().map(|package| Package { name: name(package), dependencies: dependencies(package) }).collect()
}

/// Returns dependencies in the workspace that are not allowed.
fn edges(packages: &[Package]) -> Vec<String> {
    let mut found = Vec::new();
    let is_ours = |name: &String| packages.iter().any(|package| package.name == *name);
    for package in packages {
        let row = ALLOWED.iter().find(|row| row.0 == class(&package.name));
        let Some((_, allowed)) = row else {
            found
                .push(format!("{}: no place in the picture of crates (ALLOWED in xtask/src/tidy/mod.rs; a format: xtask/src/targets.rs)", package.name));
            continue;
        };
        // A crate among its own dev-dependencies turns on its features for tests.
        let others = |name: &&String| is_ours(name) && **name != package.name;
        for dependency in package.dependencies.iter().filter(others) {
            if !allowed.contains(&class(dependency)) {
                found.push(format!("{} must not depend on {dependency}", package.name));
            }
        }
    }
    found
}

fn class(name: &str) -> &str {
    if FORMATS.contains(&name) { "*" } else { name }
}

/// Returns the files that git tracks or would add, so that a check before a commit sees new files
/// too. Without git, as in an unpacked archive, returns everything but build output.
fn source_files(root: &Path) -> Result<Vec<PathBuf>> {
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output();
    let Some(output) = output.ok().filter(|output| output.status.success()) else {
        return files_below(root);
    };
    let names = String::from_utf8_lossy(&output.stdout);
    let names = names.split('\0').filter(|name| !name.is_empty());
    Ok(names.map(PathBuf::from).filter(|name| root.join(name).is_file()).collect())
}

fn lengths(root: &Path, files: &[PathBuf]) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for file in files {
        let ours = file.starts_with("crates") || file.starts_with("xtask");
        if ours && file.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(root.join(file))?;
            let lines = text.lines().count();
            if lines > LINE_LIMIT {
                let file = file.display();
                found.push(format!("{file}: {lines} lines, more than {LINE_LIMIT}"));
            }
        }
    }
    Ok(found)
}

/// Returns local absolute paths in sources.
fn local_paths(root: &Path, files: &[PathBuf]) -> Vec<String> {
    // Built here, so that this file does not match itself.
    let needles = ["work", "root"].map(|folder| format!("/{folder}/"));
    let mut found = Vec::new();
    for file in files {
        let bytes = fs::read(root.join(file)).unwrap_or_default();
        for (number, line) in (1..).zip(bytes.split(|&b| b == b'\n')) {
            let line = String::from_utf8_lossy(line);
            if needles.iter().any(|needle| has_path(&line, needle)) {
                let file = file.display();
                found.push(format!("{file}:{number}: a path of one machine"));
            }
        }
    }
    found
}

/// Returns whether a path starts with `needle` as its first folder, not further down.
fn has_path(line: &str, needle: &str) -> bool {
    line.match_indices(needle).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "_-.}$".contains(c))
    })
}

/// Returns codes of losses and notes that the corpus expects and the format's document does not
/// have.
fn undocumented_words(root: &Path) -> Result<Vec<String>> {
    let read = |name: &str| fs::read_to_string(root.join(name)).with_context(|| format!("reading {name}"));
    let mut found = Vec::new();
    let diagnostics = read("docs/reference/diagnostics.md")?;
    for format in corpus::formats() {
        let name = format!("docs/formats/{format}.md");
        let text = read(&name)? + &diagnostics;
        let explained: BTreeSet<&str> = text.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
        let words = corpus::words(format).into_iter();
        let words = words.filter(|(word, _)| !explained.contains(word.as_str()));
        found.extend(
            words.map(|(word, case)| format!("{name}: does not explain `{word}`, expected by {case}")),
        );
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, dependencies: &[&str]) -> Package {
        Package {
            name: name.to_owned(),
            dependencies: dependencies.iter().map(|d| (*d).to_owned()).collect(),
        }
    }

    #[test]
    fn edges_out_of_the_picture_are_named() {
        let packages = [
            package("rovelog-core", &["serde"]),
            package("ulog-format", &["rovelog-core", "rld-format"]),
            package("rld-format", &["rovelog-core", "rovelog"]),
            package("rovelog", &["ulog-format", "rld-format", "rovelog-core"]),
            package("rovelog-cli", &["rovelog", "clap"]),
            package("xtask", &["ulog-format"]),
            package("leftpad", &[]),
        ];
        assert_eq!(
            edges(&packages),
            [
                "ulog-format must not depend on rld-format",
                "rld-format must not depend on rovelog",
                "xtask must not depend on ulog-format",
                "leftpad: no place in the picture of crates (ALLOWED in xtask/src/tidy/mod.rs; a format: xtask/src/targets.rs)",
            ]
        );
    }

    #[test]
    fn only_whole_first_folders_are_paths_of_a_machine() {
        let needle = ["/", "work", "/"].concat();
        assert!(has_path(&format!("see {needle}x"), &needle));
        assert!(has_path(&format!("\"{needle}\""), &needle));
        assert!(!has_path(&format!("frame{needle}x"), &needle));
        assert!(!has_path("at home", &needle));
    }
}
