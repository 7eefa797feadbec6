//! Writes the test logs and their expected results. It is run by `cargo xtask gen-corpus`.

#![forbid(unsafe_code)]
// The subcommand prints to the terminal.
#![allow(clippy::print_stdout)]

mod large;
mod lay;
mod log;
mod manifest;
mod place;
mod rld;
mod rosbag;
mod shape;
pub mod size;
mod ulog;
mod vel;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

pub use large::large_log;
pub use place::{files_below, real, root};

/// Maximum size of a committed file.
const SIZE_LIMIT: usize = 64 * 1024;

/// Files in `corpus/` that are written by hand.
const BY_HAND: &[&str] = &["corpus/.gitattributes", "corpus/README.md"];

/// A log format.
pub(crate) struct Format {
    id: &'static str,
    extension: &'static str,
    /// Test cases, grouped by theme.
    cases: &'static [&'static [Case]],
    /// Recipe for large logs.
    large: large::Large,
}

/// All formats, in the order of the manifest.
const FORMATS: &[Format] = &[ulog::FORMAT, rld::FORMAT, rosbag::FORMAT, vel::FORMAT];

/// A test case, which is a log and its expected result.
pub(crate) struct Case {
    /// Name of the log without its extension.
    name: &'static str,
    /// Purpose in the manifest.
    purpose: &'static str,
    /// Rules in `docs/formats/<format>.md` that the case tests, such as `D12`.
    rules: &'static [&'static str],
    /// Function that builds the log.
    recipe: fn() -> Made,
}

/// Result of a recipe.
pub(crate) struct Made {
    /// Content of the log.
    bytes: Vec<u8>,
    /// Expected result of reading the log, as described in `corpus/README.md`.
    expected: serde_json::Value,
}

/// Declares the cases of a theme. Each line has a name, rules, a purpose, and the steps that build
/// the log.
macro_rules! cases {
    ($($name:literal [$($rule:ident)*] $purpose:literal => $recipe:expr;)*) => {
        pub(crate) const CASES: &[$crate::Case] = &[$($crate::Case {
            name: $name,
            purpose: $purpose,
            rules: &[$(stringify!($rule)),*],
            recipe: || $crate::Made::from($recipe),
        }),*];
    };
}
use cases;

/// Names that recipes of all formats use.
mod prelude {
    pub(crate) use serde_json::{Value as Json, json};

    pub(crate) use crate::lay::{Laid, With, base64, escaped, lay, noise, u32_of};
    pub(crate) use crate::log::refused;
    pub(crate) use crate::shape::{Shape, Value, Words, values};
    pub(crate) use crate::{Made, cases};
}

/// Returns all cases of all formats, in the order of the manifest.
fn all() -> impl Iterator<Item = (&'static Format, &'static Case)> {
    FORMATS.iter().flat_map(|format| format.cases().map(move |case| (format, case)))
}

/// Returns the identifiers of all formats.
pub fn formats() -> impl Iterator<Item = &'static str> {
    FORMATS.iter().map(|format| format.id)
}

impl Format {
    fn cases(&self) -> impl Iterator<Item = &'static Case> + use<> {
        self.cases.iter().copied().flatten()
    }
}

/// Runs the subcommand, which writes all files, compares them, or generates a large log.
///
/// # Errors
///
/// Returns an error if the arguments are invalid, a file cannot be read or written, or a committed
/// file differs from its recipe.
pub fn command(args: &[String]) -> Result<()> {
    match args {
        [] => write(),
        [flag] if flag == "--check" => check(),
        [flag, rest @ ..] if flag == "--large" => large::command(rest),
        _ => bail!("usage: gen-corpus [--check | --large [FORMAT] SIZE [--from FILE] [-o PATH]]"),
    }
}

/// Writes all generated files, and removes the files of deleted cases.
///
/// # Errors
///
/// Returns an error if a file cannot be read or written, or exceeds the size limit.
pub fn write() -> Result<()> {
    let changes = changes()?;
    for (name, bytes) in &changes {
        let path = root().join(name);
        match bytes {
            None => fs::remove_file(&path),
            Some(bytes) => {
                fs::create_dir_all(path.parent().context("every file has a folder")?)?;
                fs::write(&path, bytes)
            }
        }
        .with_context(|| format!("writing {name}"))?;
    }
    println!("corpus: {} cases, {} files changed", all().count(), changes.len());
    Ok(())
}

/// Compares the committed files with the results of the recipes.
///
/// # Errors
///
/// Returns an error if a committed file differs from its recipe.
pub fn check() -> Result<()> {
    let names: Vec<_> = changes()?.into_keys().collect();
    ensure!(
        names.is_empty(),
        "the corpus is not what its recipes make; run `cargo xtask gen-corpus`. These files are missing, \
         differ, or belong to no case:\n  {}",
        names.join("\n  ")
    );
    println!("corpus: {} cases as their recipes make them", all().count());
    Ok(())
}

/// Returns the files to write, or to remove if their content is `None`.
fn changes() -> Result<BTreeMap<String, Option<Vec<u8>>>> {
    let files = generate()?;
    let mut changes: BTreeMap<_, _> = strays(&files)?.into_iter().map(|name| (name, None)).collect();
    let differs = |name: &String, bytes: &[u8]| fs::read(root().join(name)).map_or(true, |old| old != *bytes);
    let files = files.into_iter().filter(|(name, bytes)| differs(name, bytes));
    changes.extend(files.map(|(name, bytes)| (name, Some(bytes))));
    Ok(changes)
}

/// Returns all generated files by their path in the workspace.
fn generate() -> Result<BTreeMap<String, Vec<u8>>> {
    let made: Vec<_> = all().map(|(format, case)| (format, case, (case.recipe)())).collect();
    let mut files = BTreeMap::new();
    for (format, case, made) in &made {
        let id = format!("{}/{}", format.id, case.name);
        let log = format!("corpus/{id}.{}", format.extension);
        // Another crate in the build may enable the feature of `serde_json` that preserves the
        // order of keys, so they are sorted explicitly.
        let mut truth = made.expected.clone();
        truth.sort_all_objects();
        let truth = format!("{truth:#}\n").into_bytes();
        for (name, bytes) in [(log, made.bytes.clone()), (format!("corpus/expected/{id}.json"), truth)] {
            ensure!(bytes.len() <= SIZE_LIMIT, "{name} has {} bytes", bytes.len());
            ensure!(files.insert(name, bytes).is_none(), "two cases are called {id}");
        }
    }
    files.insert("corpus/manifest.toml".to_owned(), manifest::to_text(&made).into_bytes());
    for format in FORMATS {
        let name = format!("docs/formats/{}.md", format.id);
        files.insert(name.clone(), manifest::document(format, &name)?.into_bytes());
    }
    Ok(files)
}

/// Returns the files in `corpus/` that no recipe generates and that are not in [`BY_HAND`].
fn strays(files: &BTreeMap<String, Vec<u8>>) -> Result<Vec<String>> {
    let below = files_below(&root().join("corpus"))?.into_iter().map(|name| Path::new("corpus").join(name));
    let names = below.map(|name| name.to_string_lossy().replace('\\', "/"));
    let is_stray = |name: &String| {
        !files.contains_key(name) && !BY_HAND.contains(&&**name) && !name.starts_with("corpus/generator/")
    };
    Ok(names.filter(is_stray).collect())
}

/// Returns the codes of losses and notes in the expected results of a format, each with the first
/// case that has the code.
pub fn words(format: &str) -> BTreeMap<String, String> {
    let mut words = BTreeMap::new();
    for (_, case) in all().filter(|(of, _)| of.id == format) {
        let expected = (case.recipe)().expected;
        let entries = ["lost", "notes"].map(|key| expected[key].as_array().cloned().unwrap_or_default());
        for word in entries.concat().iter().filter_map(|entry| entry["code"].as_str()) {
            words.entry(word.to_owned()).or_insert_with(|| format!("{format}/{}", case.name));
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// For each format, the letters of the rules in its document, and the number of rules with each
    /// letter.
    const RULES: &[(&str, &[(char, u32)])] = &[
        ("ulog", &[('D', 42), ('U', 6)]),
        ("rld", &[('D', 39)]),
        ("rosbag", &[('B', 30), ('C', 4), ('M', 14), ('D', 8), ('V', 3), ('K', 26)]),
        ("vel", &[('D', 38)]),
    ];

    /// Rules without a case, because they are about more subscriptions, bytes or variants than a
    /// small file can have. For D39 of RLD, a recipe would have to repeat the search for intact rows.
    /// Tests in the crates cover these rules.
    const RULES_WITHOUT_CASE: &[&str] = &["ulog D38", "rld D36", "rld D39", "rosbag D6"];

    /// Codes without a case, because they require a large file, several files, or other options.
    const WITHOUT_CASE: &[&str] = &[
        "table_from_first",
        "part_left_out",
        "stopped_at_2_gib",
        "too_many_topics",
        "too_many_subscriptions",
        "too_many_sections",
        "many_topics",
        "vel/bad_magic",
        "id_collision",
    ];

    #[test]
    fn every_rule_has_a_case() {
        assert!(RULES.iter().map(|rules| rules.0).eq(formats()));
        for (format, rules) in RULES {
            let of_format = all().filter(|(of, _)| of.id == *format);
            let tested: BTreeSet<&str> = of_format.flat_map(|(_, case)| case.rules).copied().collect();
            for rule in
                rules.iter().flat_map(|(letter, last)| (1..=*last).map(move |n| format!("{letter}{n}")))
            {
                let has_case = !RULES_WITHOUT_CASE.contains(&&*format!("{format} {rule}"));
                assert_eq!(tested.contains(rule.as_str()), has_case, "{format}: cases that test {rule}");
            }
        }
    }

    #[test]
    fn every_word_of_a_document_has_a_case() {
        for format in formats() {
            let text = fs::read_to_string(root().join("docs/reference/diagnostics.md")).unwrap();
            let code = if format == "rosbag" { "BAG".to_owned() } else { format.to_uppercase() };
            let starts = ["E", "W"].map(|letter| format!("| {letter}-{code}-"));
            let rows = text.lines().filter(|line| starts.iter().any(|start| line.starts_with(start)));
            let documented: Vec<_> = rows.filter_map(|row| row.split('`').nth(1)).collect();
            assert!(documented.len() > 15, "{format}: only {documented:?}");
            let expected = words(format);
            for word in documented {
                let without =
                    WITHOUT_CASE.contains(&word) || WITHOUT_CASE.contains(&&*format!("{format}/{word}"));
                assert_eq!(expected.contains_key(word), !without, "{format}: cases that expect {word}");
            }
        }
    }
}
