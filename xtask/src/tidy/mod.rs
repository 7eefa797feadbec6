//! `cargo xtask tidy`: checks the rules in ARCHITECTURE.md and CONTRIBUTING.md that a program can
//! check.

mod cycles;
mod dependencies;
pub(crate) mod documents;
mod published;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use corpus_generator::files_below;
use serde_json::Value;

use crate::process::cargo;
use crate::{FORMAT_CRATES, root};

/// Allowed dependencies between our own crates. Any other dependency between them is forbidden.
///
/// `*` stands for any crate of a log format. Such a crate depends neither on the crate of another
/// format nor on the facade. `rovelog-testing` is only a dev-dependency.
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
    ("rovelog-explore", &["rovelog-core", "rovelog-testing", "*", "rovelog", "rovelog-export"]),
    (
        "rovelog-view",
        &[
            "rovelog-core",
            "rovelog-testing",
            "*",
            "rovelog",
            "rovelog-export",
            "rovelog-scale",
            "rovelog-explore",
        ],
    ),
    ("rovelog-wasm", &["rovelog-testing", "rovelog", "rovelog-export", "rovelog-explore"]),
    ("rovelog-duckdb", &["rovelog-core", "*", "rovelog", "rovelog-export", "rovelog-scale"]),
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
    ("rovelog-ffi", &["rovelog-testing", "rovelog"]),
    ("rovelog-plotjuggler", &["rovelog", "rovelog-export", "rovelog-ffi"]),
    ("fuzz-bodies", &["rovelog", "rovelog-export"]),
    // If the corpus generator used our readers, their mistakes could be in the expected results.
    ("corpus-generator", &[]),
    ("xtask", &["corpus-generator"]),
];

/// Maximum number of lines in a source file. A longer file should be divided, because it probably
/// has several tasks.
const MAX_LINES: usize = 600;

/// Runs the subcommand `cargo xtask tidy`.
pub(crate) fn command(args: &[String]) -> Result<()> {
    ensure!(args.is_empty(), "tidy takes no options");
    check()
}

/// Runs all checks. Prints all violations, and not only the first one.
pub(crate) fn check() -> Result<()> {
    let root = root();
    let metadata = metadata(&root)?;
    let all: Vec<&Value> = metadata["packages"].as_array().into_iter().flatten().collect();
    // A package of this workspace has no source in the output of `cargo metadata`.
    let ours: Vec<&Value> = all.iter().copied().filter(|package| package["source"].is_null()).collect();
    let files = source_files(&root)?;

    let mut violations = forbidden_edges(&packages(&ours));
    violations.extend(dependencies::check(&all));
    let reasons = fs::read_to_string(root.join("docs/internals/dependencies.md"))?;
    violations.extend(dependencies::without_reason(&reasons, &ours));
    violations.extend(published::check(&root, &ours)?);
    violations.extend(import_cycles(&ours)?);
    violations.extend(long_files(&root, &files)?);
    violations.extend(local_paths(&root, &files));
    violations.extend(undocumented_codes(&root)?);
    violations.extend(documents::check(&root, &files)?);
    ensure!(violations.is_empty(), "not tidy:\n  {}", violations.join("\n  "));
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

/// A crate of this workspace.
struct Package {
    name: String,
    /// Names of all dependencies of the crate. These include dependencies for tests and build
    /// scripts.
    dependencies: Vec<String>,
}

fn packages(ours: &[&Value]) -> Vec<Package> {
    let name = |value: &Value| value["name"].as_str().unwrap_or_default().to_owned();
    let dependencies =
        |package: &Value| package["dependencies"].as_array().into_iter().flatten().map(name).collect();
    ours.iter().map(|package| Package { name: name(package), dependencies: dependencies(package) }).collect()
}

fn forbidden_edges(packages: &[Package]) -> Vec<String> {
    let mut violations = Vec::new();
    let is_ours = |name: &String| packages.iter().any(|package| package.name == *name);
    for package in packages {
        let row = ALLOWED.iter().find(|row| row.0 == class(&package.name));
        let Some((_, allowed)) = row else {
            violations.push(format!(
                "{}: its allowed dependencies are not listed; add it to ALLOWED in xtask/src/tidy/mod.rs, or to \
                 FORMAT_CRATES in xtask/src/main.rs",
                package.name
            ));
            continue;
        };
        // A crate may be its own dev-dependency, to enable its features for its tests.
        let others = |name: &&String| is_ours(name) && **name != package.name;
        for dependency in package.dependencies.iter().filter(others) {
            if !allowed.contains(&class(dependency)) {
                violations.push(format!("{} must not depend on {dependency}", package.name));
            }
        }
    }
    violations
}

/// Returns the name under which a crate is listed in [`ALLOWED`].
fn class(name: &str) -> &str {
    if FORMAT_CRATES.contains(&name) { "*" } else { name }
}

/// Checks the sources of each library for import cycles. `packages` are our packages in the output
/// of `cargo metadata`.
fn import_cycles(packages: &[&Value]) -> Result<Vec<String>> {
    let mut violations = Vec::new();
    for package in packages {
        let targets = package["targets"].as_array().into_iter().flatten();
        let libraries = targets.filter(|target| matches!(target["kind"][0].as_str(), Some("lib" | "cdylib")));
        for path in libraries.filter_map(|library| library["src_path"].as_str()) {
            let src = Path::new(path).parent().context("a source file is in a folder")?;
            let name = package["name"].as_str().unwrap_or_default();
            let cycles = cycles::check(src)?.into_iter();
            violations.extend(cycles.map(|cycle| format!("{name}: an import cycle: {cycle}")));
        }
    }
    Ok(violations)
}

/// Returns all files that git tracks or would add, so that a check before a commit includes new
/// files. If git is not available, for example in an unpacked archive, returns all files except
/// build output.
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

fn long_files(root: &Path, files: &[PathBuf]) -> Result<Vec<String>> {
    let mut violations = Vec::new();
    for file in files {
        let is_ours = ["corpus", "crates", "fuzz", "xtask"].iter().any(|folder| file.starts_with(folder));
        if is_ours && file.extension().is_some_and(|extension| extension == "rs") {
            let lines = fs::read_to_string(root.join(file))?.lines().count();
            if lines > MAX_LINES {
                violations
                    .push(format!("{}: {lines} lines; at most {MAX_LINES} are allowed", file.display()));
            }
        }
    }
    Ok(violations)
}

/// Returns all lines that contain an absolute path which only exists on the machine of its author.
fn local_paths(root: &Path, files: &[PathBuf]) -> Vec<String> {
    // The searched texts are assembled here, so that this file does not contain them.
    let needles = ["work", "root"].map(|folder| format!("/{folder}/"));
    let mut violations = Vec::new();
    for file in files {
        let bytes = fs::read(root.join(file)).unwrap_or_default();
        for (number, line) in (1..).zip(bytes.split(|&b| b == b'\n')) {
            let line = String::from_utf8_lossy(line);
            if needles.iter().any(|needle| has_path(&line, needle)) {
                violations.push(format!("{}:{number}: a path of one machine", file.display()));
            }
        }
    }
    violations
}

/// Returns true if a path in the line starts with `needle`. If `needle` occurs later in a path, it
/// does not count.
fn has_path(line: &str, needle: &str) -> bool {
    line.match_indices(needle).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "_-.}$".contains(c))
    })
}

/// Returns the diagnostic codes that occur in the expected results of the corpus, but are not
/// explained in any document.
fn undocumented_codes(root: &Path) -> Result<Vec<String>> {
    let read = |name: &str| fs::read_to_string(root.join(name)).with_context(|| format!("reading {name}"));
    let mut violations = Vec::new();
    let diagnostics = read("docs/reference/diagnostics.md")?;
    for format in corpus_generator::formats() {
        let name = format!("docs/formats/{format}.md");
        let text = read(&name)? + &diagnostics;
        let explained: BTreeSet<&str> = text.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
        let codes = corpus_generator::words(format).into_iter();
        let unexplained = codes.filter(|(code, _)| !explained.contains(code.as_str()));
        violations.extend(
            unexplained.map(|(code, case)| format!("{name}: does not explain `{code}`, expected by {case}")),
        );
    }
    Ok(violations)
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
    fn forbidden_dependencies_are_reported() {
        let packages = [
            package("rovelog-core", &["serde"]),
            package("ulog-format", &["rovelog-core", "rld-format"]),
            package("rld-format", &["rovelog-core", "rovelog"]),
            package("rovelog", &["ulog-format", "rld-format", "rovelog-core"]),
            package("rovelog-cli", &["rovelog", "clap"]),
            package("xtask", &["ulog-format"]),
            package("leftpad", &[]),
        ];
        let violations = forbidden_edges(&packages);
        assert_eq!(
            violations[..3],
            [
                "ulog-format must not depend on rld-format",
                "rld-format must not depend on rovelog",
                "xtask must not depend on ulog-format",
            ]
        );
        assert!(violations[3].starts_with("leftpad: its allowed dependencies are not listed"));
        assert_eq!(violations.len(), 4);
    }

    #[test]
    fn only_the_first_folder_of_a_path_counts() {
        let needle = ["/", "work", "/"].concat();
        assert!(has_path(&format!("see {needle}x"), &needle));
        assert!(has_path(&format!("\"{needle}\""), &needle));
        assert!(!has_path(&format!("frame{needle}x"), &needle));
        assert!(!has_path("at home", &needle));
    }
}
