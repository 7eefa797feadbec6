//! Words that readers had to look up, with the terms of the field. Limits only fall.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

/// A word that is counted.
struct Word {
    /// The forms, in lower case.
    not: &'static [&'static str],
    /// What to say instead.
    say: &'static str,
    /// Number of uses that are left to reword.
    limit: usize,
    /// Files and folders in which the word is the right one.
    proper: &'static [&'static str],
}

const fn word(
    not: &'static [&'static str],
    say: &'static str,
    limit: usize,
    proper: &'static [&'static str],
) -> Word {
    Word { not, say, limit, proper }
}

/// RLD, tracks and viewers: a gap is missing time or samples there.
const GAPS: &[&str] = &[
    "crates/rld-format/",
    "crates/ulog-format/src/dropouts.rs",
    "crates/rovelog-export/src/mcap/",
    "crates/rovelog-export/src/track/",
    "crates/rovelog-cli/src/commands/ulog/dropouts.rs",
    // Health of times.
    "crates/rovelog-core/src/health.rs",
    "crates/rovelog-cli/src/health.rs",
    "crates/rovelog-cli/src/commands/check.rs",
    "crates/rovelog-cli/src/commands/stats/",
    "crates/rovelog-python/src/methods.rs",
    "crates/rovelog-python/python/rovelog/_facts.py",
    "crates/rovelog-python/python/rovelog/_log.py",
    "docs/guide/command-line.md",
    "docs/needs.md",
    "docs/reference/command-line.md",
    "docs/reference/diagnostics.md",
    "docs/reference/export.md",
    "docs/reference/python.md",
    "docs/reference/times.md",
    "docs/formats/",
];

/// `stamp` is a field of ROS headers, and part of pcap and of the ROS client library.
const STAMPS: &[&str] = &[
    "crates/rosbag12/",
    "crates/rovelog-python/src/compat/",
    "crates/rovelog-python/src/lib.rs",
    "crates/rovelog-python/python/rovelog/compat/",
    "docs/formats/rosbag.md",
    "docs/reference/columns.md",
];

/// Publishers of ROS latch; `latched` is also the name of an option.
const LATCHED: &[&str] = &[
    "crates/rosbag12/",
    "crates/rovelog-export/src/bag2/",
    "crates/rovelog-cli/src/commands/cat.rs",
    "crates/rovelog-cli/src/select.rs",
    "crates/rovelog-python/src/methods.rs",
    "crates/rovelog-python/src/rosbag.rs",
    "crates/rovelog-python/python/rovelog/_core.pyi",
    "crates/rovelog-python/python/rovelog/_log.py",
    "crates/rovelog-python/python/rovelog/_bag.py",
    "docs/",
    "CHANGELOG.md",
];

const WORDS: &[Word] = &[
    word(&["walk", "walks", "walked", "walking", "walker"], "scan, scanner", 2, &[]),
    word(&["gap", "gaps"], "lost range (gap: missing time or samples only)", 7, GAPS),
    word(
        &["judge", "judges", "judged", "judging", "unjudgeable"],
        "validate, check, unverifiable",
        1,
        &["CHANGELOG.md"],
    ),
    word(&["sound"], "valid, intact, undamaged", 13, &[]),
    word(&["stamp", "stamps"], "timestamp; block time (RLD)", 18, STAMPS),
    word(&["stand", "stands", "lies"], "is, is stored, appears", 5, &[]),
    word(&["stretch", "stretches", "stretched"], "segment, range", 3, &["CHANGELOG.md"]),
    word(&["beside"], "next to, in addition to", 0, &[]),
    word(&["room", "rooms", "house"], "module; buffer, space", 2, &[]),
    word(&["gather", "gathers", "gathered", "gathering", "filling"], "column builder", 4, &[]),
    word(
        &["settled"],
        "inferred, resolved",
        1,
        &["crates/rld-format/", "crates/rovelog-python/python/rovelog/_rld.py", "docs/"],
    ),
    word(&["latched"], "last value before the start (latched: ROS publishers only)", 1, LATCHED),
    word(&["least", "greatest"], "min, max, smallest, largest, at least", 1, &[]),
    word(&["begun", "begins"], "start, starts", 3, &[]),
    word(&["whoever", "nobody", "somebody", "anybody"], "the caller, the user", 1, &[]),
    word(&["spent"], "used up", 0, &[]),
    word(
        &["reshape", "reshaped", "reshaping"],
        "edit; slice, merge",
        0,
        &["CHANGELOG.md", "crates/rovelog-python/"],
    ),
    word(&["credit", "habits"], "lookahead budget; dialect", 0, &[]),
    word(&["grave"], "severity", 0, &[]),
];

/// Phrases, counted where they are on one line.
const PHRASES: &[(&str, &str, usize)] =
    &[("in the order of time", "in time order", 2), ("in force", "active", 0)];

/// A use of a word: the file, the line and the index in [`WORDS`], or behind it in [`PHRASES`].
struct Use<'a> {
    file: &'a Path,
    line: usize,
    of: usize,
}

/// Returns the subcommand `words`: counts, or the places of one word.
pub(crate) fn command(args: &[String]) -> Result<()> {
    let root = crate::root();
    let files = super::source_files(&root)?;
    let uses = uses(&root, &files)?;
    match args {
        [] => {
            for (of, (name, _, limit)) in names().enumerate() {
                println!("{:>5} of {limit:>4}  {name}", uses.iter().filter(|found| found.of == of).count());
            }
        }
        [asked] => {
            let of = names().position(|(name, ..)| name.split(", ").any(|form| form == asked));
            let of =
                of.with_context(|| format!("{asked:?} is not counted; `cargo xtask words` lists all"))?;
            uses.iter().filter(|found| found.of == of).for_each(|found| println!("{}", place(found)));
        }
        _ => bail!("usage: words [WORD]"),
    }
    Ok(())
}

/// Words that are used more often than their limit.
pub(super) fn check(root: &Path, files: &[PathBuf]) -> Result<Vec<String>> {
    let uses = uses(root, files)?;
    let mut found = Vec::new();
    for (of, (name, say, limit)) in names().enumerate() {
        let count = uses.iter().filter(|found| found.of == of).count();
        if count > limit {
            let first = name.split(", ").next().unwrap_or_default();
            found.push(format!(
                "\"{name}\": {count} uses, {limit} allowed; say \"{say}\" (places: cargo xtask words '{first}')"
            ));
        }
    }
    Ok(found)
}

/// Words, then phrases: forms, replacement, limit.
fn names() -> impl Iterator<Item = (String, &'static str, usize)> {
    let words = WORDS.iter().map(|word| (word.not.join(", "), word.say, word.limit));
    words.chain(PHRASES.iter().map(|(phrase, say, limit)| ((*phrase).to_owned(), *say, *limit)))
}

fn place(found: &Use<'_>) -> String {
    format!("{}:{}", found.file.display(), found.line)
}

fn uses<'a>(root: &Path, files: &'a [PathBuf]) -> Result<Vec<Use<'a>>> {
    let mut uses = Vec::new();
    for file in files.iter().filter(|file| is_counted(file)) {
        let text = fs::read_to_string(root.join(file))?;
        uses.extend(uses_in(file, &text));
    }
    Ok(uses)
}

fn uses_in<'a>(file: &'a Path, text: &str) -> Vec<Use<'a>> {
    let mut uses = Vec::new();
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let is_proper = |of: &usize| WORDS[*of].proper.iter().any(|place| is_below(file, place));
    let text = text.to_lowercase().replace("at least", "");
    for (line, text) in (1..).zip(text.lines()) {
        for found in text.split(|c| !is_part(c)) {
            let of = WORDS.iter().position(|word| word.not.contains(&found));
            uses.extend(of.filter(|of| !is_proper(of)).map(|of| Use { file, line, of }));
        }
        for (of, (phrase, ..)) in (WORDS.len()..).zip(PHRASES) {
            uses.extend(text.matches(phrase).map(|_| Use { file, line, of }));
        }
    }
    uses
}

/// Returns what people read: sources of the crates, `docs`, and Markdown.
fn is_counted(file: &Path) -> bool {
    let has = |extension: &str| file.extension().is_some_and(|found| found == extension);
    let code = file.starts_with("crates") && (has("rs") || has("py") || has("pyi"));
    let is_source = file.components().any(|part| matches!(part.as_os_str().to_str(), Some("src" | "python")));
    has("md") || code && is_source
}

fn is_below(file: &Path, place: &str) -> bool {
    if place.ends_with('/') { file.starts_with(place) } else { file == Path::new(place) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_words_are_counted_where_they_are_not_proper() {
        let text = "A Walk over gap_end, at least\nby the gap\n";
        let found = |file: &str| -> Vec<_> {
            let uses = uses_in(Path::new(file), text).into_iter();
            uses.map(|found| (found.line, WORDS[found.of].not[0])).collect()
        };
        assert_eq!(found("docs/a.md"), [(1, "walk"), (2, "gap")]);
        assert_eq!(found("crates/rld-format/src/a.rs"), [(1, "walk")]);
        let counted = ["docs/a.md", "crates/x/src/b.rs", "crates/x/tests/c.rs", "xtask/src/d.rs"];
        assert_eq!(counted.map(|file| is_counted(Path::new(file))), [true, true, false, false]);
    }
}
