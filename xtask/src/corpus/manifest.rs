//! `corpus/manifest.toml`: one table per case.

use serde::Serialize;
use sha2::{Digest, Sha256};

use super::lay::hex;
use super::{Case, Format, Made};

#[derive(Serialize)]
struct Manifest {
    case: Vec<Entry>,
}

#[derive(Serialize)]
struct Entry {
    id: String,
    format: &'static str,
    purpose: &'static str,
    rules: &'static [&'static str],
    size: usize,
    sha256: String,
}

/// The text of the manifest, in the order of the cases.
pub(crate) fn to_text(cases: &[(&Format, &Case, Made)]) -> String {
    let entry = |(format, case, made): &(&Format, &Case, Made)| Entry {
        id: format!("{}/{}", format.id, case.name),
        format: format.id,
        purpose: case.purpose,
        rules: case.rules,
        size: made.bytes.len(),
        sha256: hex(&Sha256::digest(&made.bytes)),
    };
    let case = cases.iter().map(entry).collect();
    let tables = toml::to_string(&Manifest { case }).expect("plain tables");
    format!("# Written by `cargo xtask gen-corpus`; see README.md.\n\n{tables}")
}
