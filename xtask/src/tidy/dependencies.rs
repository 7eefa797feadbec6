//! Rules for dependencies: each has an allowed licence and a documented reason, and no crate is present in
//! two versions without a reason.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// Licences that give users the same rights as MIT and Apache-2.0.
const LICENCES: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CC0-1.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Zlib",
    // libbzip2's own licence, similar to BSD.
    "bzip2-1.0.6",
];

/// Crates that the lock file has more than once, with the reason.
const DUPLICATES: &[(&str, &str)] = &[
    ("base64", "usvg stays at 0.22"),
    ("bitflags", "the png that tiny-skia has stays at 1"),
    ("block-buffer", "object_store and svg2pdf stay at digest 0.10; ours have 0.11"),
    ("bzip2", "rosbag, which only our tests use, stays at 0.4"),
    ("crypto-common", "as block-buffer"),
    ("digest", "as block-buffer"),
    ("getrandom", "tempfile, ahash and const-random are each at another one"),
    ("itertools", "object_store stays at 0.14"),
    ("kurbo", "subsetter, which svg2pdf has, went ahead to 0.13; usvg has 0.11"),
    ("miniz_oxide", "flate2 went ahead to 0.9, png has 0.8"),
    ("png", "tiny-skia stays at 0.17"),
    ("r-efi", "comes with getrandom, for firmware only"),
    ("roxmltree", "usvg stays at 0.20"),
    ("syn", "serde and clap went ahead to 3; it runs when building, and is in no program"),
    ("windows-sys", "ring stays at 0.52; on Windows only"),
    ("zstd", "mcap went ahead to 0.14, parquet has 0.13; both wrap the same zstd-sys"),
    ("zstd-safe", "as zstd"),
];

/// Returns forbidden licences, duplicates without a reason, and reasons without a duplicate.
/// `packages` are all packages of `cargo metadata`.
pub(super) fn check(packages: &[&Value]) -> Vec<String> {
    let mut found = Vec::new();
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in packages {
        let text = |key: &str| package[key].as_str().unwrap_or_default();
        let (name, version, licence) = (text("name"), text("version"), text("license"));
        versions.entry(name).or_default().insert(version);
        if !is_allowed(licence) {
            found.push(format!(
                "{name} {version}: licence `{licence}` is not in xtask/src/tidy/dependencies.rs"
            ));
        }
    }
    let tolerated = |name: &str| DUPLICATES.iter().any(|(known, _)| *known == name);
    for (name, versions) in &versions {
        let list = versions.iter().copied().collect::<Vec<_>>().join(" and ");
        match (versions.len() > 1, tolerated(name)) {
            (true, false) => {
                found
                    .push(format!("{name}: {list}; keep one, or add a reason to DUPLICATES (cargo tree -d)"));
            }
            (false, true) => found.push(format!("{name}: only {list} is left; remove it from DUPLICATES")),
            _ => {}
        }
    }
    let gone = DUPLICATES.iter().filter(|(name, _)| !versions.contains_key(name));
    found.extend(gone.map(|(name, _)| format!("{name}: no longer a dependency; remove it from DUPLICATES")));
    found
}

/// Returns external dependencies of our crates that the document does not name. Dependencies of tests and
/// build scripts need no reason. `packages` are ours, from `cargo metadata`.
pub(super) fn without_reason(document: &str, packages: &[&Value]) -> Vec<String> {
    let named: BTreeSet<&str> = document.split(|c: char| !c.is_alphanumeric() && !"-_".contains(c)).collect();
    let mut found = BTreeSet::new();
    for package in packages {
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            // Normal dependencies have no kind, and our own crates have no source.
            let name = dependency["name"].as_str().unwrap_or_default();
            let is_external = !dependency["source"].is_null() && dependency["kind"].is_null();
            if is_external && !named.contains(name) {
                found.insert(format!("{name}: docs/internals/dependencies.md has no reason for it"));
            }
        }
    }
    found.into_iter().collect()
}

/// Returns whether allowed licences satisfy an SPDX expression. `AND` binds stronger than `OR`. Older
/// manifests write `/` for `OR`. The only supported parentheses are `(A OR B) AND C`.
fn is_allowed(expression: &str) -> bool {
    let expression = expression.replace('/', " OR ");
    let one_of = |part: &str| {
        part.trim_matches(['(', ')']).split(" OR ").any(|licence| LICENCES.contains(&licence.trim()))
    };
    if expression.contains('(') {
        expression.split(" AND ").all(|part| one_of(part.trim()))
    } else {
        expression.split(" OR ").any(|side| side.split(" AND ").all(one_of))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn licence_expressions_are_evaluated() {
        for allowed in
            ["MIT", "MIT/Apache-2.0", "GPL-2.0-only OR MIT", "(MIT OR GPL-2.0-only) AND Unicode-3.0"]
        {
            assert!(is_allowed(allowed), "{allowed}");
        }
        for other in ["", "GPL-3.0", "MIT AND GPL-3.0", "(MIT OR Zlib) AND GPL-3.0", "MPL-2.0 OR GPL-3.0"] {
            assert!(!is_allowed(other), "{other}");
        }
    }

    fn package(name: &str, version: &str, license: &str) -> Value {
        serde_json::json!({ "name": name, "version": version, "license": license })
    }

    #[test]
    fn a_dependency_without_a_reason_is_reported() {
        let dependency = |name: &str, source: Option<&str>, kind: Option<&str>| serde_json::json!({ "name": name, "source": source, "kind": kind });
        let registry = Some("registry+https://github.com/rust-lang/crates.io-index");
        let package = serde_json::json!({ "dependencies": [
            dependency("left-pad", registry, None),
            dependency("left", registry, None),
            dependency("insta", registry, Some("dev")),
            dependency("rovelog-core", None, None),
        ] });
        let found = without_reason("| `left` | core | pads |\n| `left-pad2` | | |", &[&package]);
        assert_eq!(found, ["left-pad: docs/internals/dependencies.md has no reason for it"]);
    }

    #[test]
    fn a_new_duplicate_and_a_forbidden_licence_are_reported() {
        let tolerated = DUPLICATES
            .iter()
            .flat_map(|(name, _)| [package(name, "1.0.0", "MIT"), package(name, "2.0.0", "MIT")]);
        let mut packages: Vec<_> = tolerated.collect();
        packages.extend([package("leftpad", "1.0.0", "MIT"), package("leftpad", "2.0.0", "AGPL-3.0")]);
        let found = check(&packages.iter().collect::<Vec<_>>());
        assert_eq!(
            found,
            [
                "leftpad 2.0.0: licence `AGPL-3.0` is not in xtask/src/tidy/dependencies.rs",
                "leftpad: 1.0.0 and 2.0.0; keep one, or add a reason to DUPLICATES (cargo tree -d)",
            ]
        );
        packages.remove(0);
        let found = check(&packages.iter().collect::<Vec<_>>());
        let first = format!("{}: only 2.0.0 is left", DUPLICATES[0].0);
        assert!(found.iter().any(|line| line.starts_with(&first)), "{found:?}");
    }
}
