//! Writes lists of the cases: `corpus/manifest.toml`, and the tables in `docs/formats/` that have
//! the cases for each rule.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::lay::hex;
use super::{Case, Format, Made};
use crate::root;

/// A case in the manifest.
#[derive(Serialize)]
struct Entry {
    id: String,
    format: &'static str,
    purpose: &'static str,
    rules: &'static [&'static str],
    size: usize,
    sha256: String,
}

/// Returns the text of the manifest, in the order of the cases.
pub(crate) fn to_text(cases: &[(&Format, &Case, Made)]) -> String {
    let entry = |(format, case, made): &(&Format, &Case, Made)| Entry {
        id: format!("{}/{}", format.id, case.name),
        format: format.id,
        purpose: case.purpose,
        rules: case.rules,
        size: made.bytes.len(),
        sha256: hex(&Sha256::digest(&made.bytes)),
    };
    let entries: Vec<_> = cases.iter().map(entry).collect();
    let tables = toml::to_string(&BTreeMap::from([("case", entries)])).expect("plain tables");
    format!("# Written by `cargo xtask gen-corpus`; see README.md.\n\n{tables}")
}

/// Line in the document of a format after which the rest of the file is generated.
const MARKER: &str = "<!-- written by `cargo xtask gen-corpus`; edit the recipes instead -->";

/// Returns the document of a format with an updated table of rules.
pub(crate) fn document(format: &Format, name: &str) -> Result<String> {
    let old = fs::read_to_string(root().join(name)).with_context(|| format!("reading {name}"))?;
    let (by_hand, _) = old.split_once(MARKER).with_context(|| format!("{name} has no marker"))?;
    Ok(format!("{by_hand}{MARKER}\n\n{}", table(format)))
}

/// Returns the table with the cases for each rule of a format.
fn table(format: &Format) -> String {
    let mut rules: BTreeMap<(&str, u32), Vec<String>> = BTreeMap::new();
    for case in format.cases() {
        for rule in case.rules {
            let (letter, number) = rule.split_at(1);
            let cases = rules.entry((letter, number.parse().unwrap_or(0))).or_default();
            cases.push(format!("`{}`", case.name));
        }
    }
    let row = |((letter, number), cases): ((&str, u32), Vec<String>)| {
        format!("| {letter}{number} | {} |\n", cases.join(", "))
    };
    ["| rule | cases |\n|---|---|\n".to_owned()].into_iter().chain(rules.into_iter().map(row)).collect()
}
