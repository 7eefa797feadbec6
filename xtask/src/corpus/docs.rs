//! The tables of corpus cases in `docs/formats/`: which case tests which rule.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use super::{all, formats};
use crate::root;

/// What follows this line is generated, up to the end of the file.
const MARKER: &str = "<!-- written by `cargo xtask gen-corpus`; edit the recipes instead -->";

/// Brings the tables up to date; how many documents were not.
pub(super) fn write() -> Result<usize> {
    let mut changed = 0;
    for format in formats() {
        let (path, old, new) = document(format)?;
        if old != new {
            fs::write(&path, new).with_context(|| format!("writing {}", path.display()))?;
            changed += 1;
        }
    }
    Ok(changed)
}

/// Fails where a table is out of date.
pub(super) fn check() -> Result<()> {
    for format in formats() {
        let (path, old, new) = document(format)?;
        ensure!(old == new, "{} is out of date; run `cargo xtask gen-corpus`", path.display());
    }
    Ok(())
}

/// A format's document: its path, the text as it is, and as it should be.
fn document(format: &str) -> Result<(PathBuf, String, String)> {
    let path = root().join(format!("docs/formats/{format}.md"));
    let old = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let (by_hand, _) = old.split_once(MARKER).with_context(|| format!("{} has no marker", path.display()))?;
    let new = format!("{by_hand}{MARKER}\n\n{}", table(format));
    Ok((path, old, new))
}

fn table(format: &str) -> String {
    let mut rules: BTreeMap<(char, u32), Vec<&str>> = BTreeMap::new();
    for (_, case) in all().filter(|(of, _)| of.id == format) {
        for rule in case.rules {
            let (letter, number) = rule.split_at(1);
            let key = (letter.chars().next().unwrap_or(' '), number.parse().unwrap_or(0));
            rules.entry(key).or_default().push(case.name);
        }
    }
    let mut table = String::from("| rule | cases |\n|---|---|\n");
    for ((letter, number), cases) in rules {
        let cases: Vec<_> = cases.iter().map(|case| format!("`{case}`")).collect();
        let _ = writeln!(table, "| {letter}{number} | {} |", cases.join(", "));
    }
    table
}
