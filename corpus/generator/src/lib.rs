//! Writes the test logs and their expected results; `cargo xtask gen-corpus` runs it.

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

pub use large::{large_log, log_of_size};
pub use place::{files_below, real, root};

/// Maximum size of a committed file.
const SIZE_LIMIT: usize = 64 * 1024;

/// Files in `corpus/` that are written by hand.
const BY_HAND: &[&str] = &["corpus/.gitattributes", "corpus/README.md"];

/// A format: its id, its file extension, its cases by theme, and the recipe for its large logs.
pub(crate) struct Format {
    id: &'static str,
    extension: &'static str,
    cases: &'static [&'static [Case]],
    large: large::Large,
}

/// All formats, in the order of the manifest.
const FORMATS: &[Format] = &[ulog::FORMAT, rld::FORMAT, rosbag::FORMAT, vel::FORMAT];

/// One test file: name, purpose, the numbers of the rules in `docs/formats/<format>.md` that it
/// tests, and its recipe.
pub(crate) struct Case {
    name: &'static str,
    purpose: &'static str,
    rules: &'static [&'static str],
    recipe: fn() -> Made,
}

/// Result of a recipe: the file, and its expected result.
pub(crate) struct Made {
    bytes: Vec<u8>,
    expected: serde_json::Value,
}

/// Declares the cases of a theme: name, rules, purpose, and the steps that make the file.
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

/// Returns all cases of all formats, in the order of the manifest.
fn all() -> impl Iterator<Item = (&'static Format, &'static Case)> {
    FORMATS.iter().flat_map(|format| format.cases().map(move |case| (format, case)))
}

/// Returns the formats that have cases, by id.
pub fn formats() -> impl Iterator<Item = &'static str> {
    FORMATS.iter().map(|format| format.id)
}

impl Format {
    fn cases(&self) -> impl Iterator<Item = &'static Case> + use<> {
        self.cases.iter().copied().flatten()
    }
}

/// Runs the subcommand: writes, compares, or makes one large file.
///
/// # Errors
///
/// If the arguments are unknown, a file cannot be read or written, or a committed file differs.
pub fn command(args: &[String]) -> Result<()> {
    match args {
        [] => write(),
        [flag] if flag == "--check" => check(),
        [flag, rest @ ..] if flag == "--large" => large::command(rest),
        _ => bail!("usage: gen-corpus [--check | --large [FORMAT] SIZE [--from FILE] [-o PATH]]"),
    }
}

/// Writes every generated file and removes those of deleted cases.
///
/// # Errors
///
/// If a file cannot be read or written, or is larger than the limit.
pub fn write() -> Result<()> {
    let (files, cases) = generate()?;
    for stray in strays(&files)? {
        fs::remove_file(root().join(&stray)).with_context(|| format!("removing {stray}"))?;
        println!("removed {stray}");
    }
    let mut changed = 0;
    for (name, bytes) in &files {
        let path = root().join(name);
        if fs::read(&path).is_ok_and(|old| old == *bytes) {
            continue;
        }
        fs::create_dir_all(path.parent().context("every file has a folder")?)?;
        fs::write(&path, bytes).with_context(|| format!("writing {name}"))?;
        changed += 1;
    }
    println!("corpus: {cases} cases, {changed} files written");
    Ok(())
}

/// Compares the committed files with the recipes.
///
/// # Errors
///
/// If a committed file differs from its recipe.
pub fn check() -> Result<()> {
    let (files, cases) = generate()?;
    let mut wrong: Vec<_> = strays(&files)?.iter().map(|name| format!("{name}: no case makes it")).collect();
    for (name, bytes) in &files {
        match fs::read(root().join(name)) {
            Ok(old) if old == *bytes => {}
            Ok(_) => wrong.push(format!("{name}: differs")),
            Err(error) => wrong.push(format!("{name}: {error}")),
        }
    }
    ensure!(
        wrong.is_empty(),
        "the corpus is not what its recipes make; run `cargo xtask gen-corpus`:\n  {}",
        wrong.join("\n  ")
    );
    println!("corpus: {cases} cases as their recipes make them");
    Ok(())
}

/// Returns all generated files by their path in the workspace, and the number of cases.
fn generate() -> Result<(BTreeMap<String, Vec<u8>>, usize)> {
    let made: Vec<_> = all().map(|(format, case)| (format, case, (case.recipe)())).collect();
    let mut files = BTreeMap::new();
    for (format, case, made) in &made {
        let id = format!("{}/{}", format.id, case.name);
        let log = format!("corpus/{id}.{}", format.extension);
        // Sorted keys, whatever order `serde_json` was built to keep.
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
        let text = manifest::document(format, &name)?;
        files.insert(name, text.into_bytes());
    }
    Ok((files, made.len()))
}

/// Returns files of `corpus/` that neither a recipe made nor a person wrote.
fn strays(files: &BTreeMap<String, Vec<u8>>) -> Result<Vec<String>> {
    let below = files_below(&root().join("corpus"))?.into_iter().map(|name| Path::new("corpus").join(name));
    let names = below.map(|name| name.to_string_lossy().replace('\\', "/"));
    let is_stray = |name: &String| {
        !files.contains_key(name) && !BY_HAND.contains(&&**name) && !name.starts_with("corpus/generator/")
    };
    Ok(names.filter(is_stray).collect())
}

/// Returns the codes of losses and notes that a format's expected results use, with the first such
/// case.
pub fn words(format: &str) -> BTreeMap<String, String> {
    let mut words = BTreeMap::new();
    for (_, case) in all().filter(|(of, _)| of.id == format) {
        let expected = (case.recipe)().expected;
        for key in ["lost", "notes"] {
            for entry in expected[key].as_array().into_iter().flatten() {
                if let Some(word) = entry["code"].as_str() {
                    words.entry(word.to_owned()).or_insert_with(|| format!("{format}/{}", case.name));
                }
            }
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Rules of each format's document: letters, and the number of rules for each.
    const RULES: &[(&str, &[(char, u32)])] = &[
        ("ulog", &[('D', 42), ('U', 6)]),
        ("rld", &[('D', 38)]),
        ("rosbag", &[('B', 30), ('C', 4), ('M', 14), ('D', 8), ('V', 3), ('K', 26)]),
        ("vel", &[('D', 38)]),
    ];

    /// Rules about more subscriptions, bytes or variants than a small file has. Tests of the crates
    /// cover them.
    const RULES_WITHOUT_CASE: &[&str] = &["ulog D38", "rld D36", "rosbag D6"];

    /// Codes that no small file shows, or none that is read alone with default options.
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
            let all =
                rules.iter().flat_map(|(letter, last)| (1..=*last).map(move |n| format!("{letter}{n}")));
            let untested = |rule: &String| {
                let without = RULES_WITHOUT_CASE.contains(&&*format!("{format} {rule}"));
                tested.contains(rule.as_str()) == without
            };
            let missing: Vec<_> = all.filter(untested).collect();
            assert!(missing.is_empty(), "{format}: no case tests {missing:?}");
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

    #[test]
    fn lost_ranges_are_inside_the_file_and_in_order() {
        for (_, case) in all() {
            let made = (case.recipe)();
            let mut before = 0;
            for lost in made.expected["lost"].as_array().into_iter().flatten() {
                let place = |key: &str| lost[key].as_str().and_then(|s| s.parse::<usize>().ok());
                let (start, end) = (place("start").unwrap(), place("end").unwrap());
                // Bytes missing after the end of the file have an empty range, and so have those of a
                // compressed chunk.
                let code = lost["code"].as_str().unwrap();
                let at_end = ["rows_missing", "cut", "chunk_checksum", "lost_in_chunk"];
                let empty = at_end.contains(&code) || code.starts_with("packed_");
                assert!(before <= start && (start < end || empty && start == end), "{}", case.name);
                before = end;
            }
            // Offsets in a compressed bag count in its content.
            let packed = [&b"\x1f\x8b"[..], b"BZh"].iter().any(|magic| made.bytes.starts_with(magic));
            assert!(packed || before <= made.bytes.len(), "{}", case.name);
        }
    }
}
