//! Rules for dependencies. Each dependency must have an allowed license and a documented reason. A
//! crate must not be present in two versions without a reason.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// Allowed licenses. They give users the same rights as MIT and Apache-2.0.
const LICENSES: &[&str] = &[
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
    // The license of libbzip2, which is similar to BSD licenses.
    "bzip2-1.0.6",
];

/// Crates of which the lock file contains several versions, each with the reason.
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
    ("thiserror", "yule_log, which only our tests use, stays at 1"),
    ("thiserror-impl", "as thiserror"),
    ("windows-sys", "ring stays at 0.52; on Windows only"),
    ("zstd", "mcap went ahead to 0.14, parquet has 0.13; both wrap the same zstd-sys"),
    ("zstd-safe", "as zstd"),
];

/// Returns the packages with forbidden licenses, the crates in several versions without a reason,
/// and the reasons that are not needed any more. `packages` are all packages in the output of
/// `cargo metadata`.
pub(super) fn check(packages: &[&Value]) -> Vec<String> {
    let mut found = Vec::new();
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in packages {
        let text = |key: &str| package[key].as_str().unwrap_or_default();
        let (name, version, license) = (text("name"), text("version"), text("license"));
        versions.entry(name).or_default().insert(version);
        if !is_allowed(license) {
            found.push(format!(
                "{name} {version}: license `{license}` is not in xtask/src/tidy/dependencies.rs"
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

/// Returns the external dependencies of our crates that the document does not mention. Dependencies
/// of tests and build scripts need no reason. `packages` are our packages in the output of `cargo
/// metadata`.
pub(super) fn without_reason(document: &str, packages: &[&Value]) -> Vec<String> {
    let named: BTreeSet<&str> = document.split(|c: char| !c.is_alphanumeric() && !"-_".contains(c)).collect();
    let mut found = BTreeSet::new();
    for package in packages {
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            // The kind of a normal dependency is null, and so is the source of our own crates.
            let name = dependency["name"].as_str().unwrap_or_default();
            let is_external = !dependency["source"].is_null() && dependency["kind"].is_null();
            if is_external && !named.contains(name) {
                found.insert(format!("{name}: docs/internals/dependencies.md has no reason for it"));
            }
        }
    }
    found.into_iter().collect()
}

/// Returns true if the allowed licenses satisfy an SPDX expression. `AND` has a higher precedence
/// than `OR`. Older manifests contain `/` instead of `OR`. Parentheses are only supported in the
/// form `(A OR B) AND C`.
fn is_allowed(expression: &str) -> bool {
    let expression = expression.replace('/', " OR ");
    let one_of = |part: &str| {
        part.trim_matches(['(', ')']).split(" OR ").any(|license| LICENSES.contains(&license.trim()))
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
    fn license_expressions_are_evaluated() {
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
    fn a_new_duplicate_and_a_forbidden_license_are_reported() {
        let tolerated = DUPLICATES
            .iter()
            .flat_map(|(name, _)| [package(name, "1.0.0", "MIT"), package(name, "2.0.0", "MIT")]);
        let mut packages: Vec<_> = tolerated.collect();
        packages.extend([package("leftpad", "1.0.0", "MIT"), package("leftpad", "2.0.0", "AGPL-3.0")]);
        let found = check(&packages.iter().collect::<Vec<_>>());
        assert_eq!(
            found,
            [
                "leftpad 2.0.0: license `AGPL-3.0` is not in xtask/src/tidy/dependencies.rs",
                "leftpad: 1.0.0 and 2.0.0; keep one, or add a reason to DUPLICATES (cargo tree -d)",
            ]
        );
        packages.remove(0);
        let found = check(&packages.iter().collect::<Vec<_>>());
        let first = format!("{}: only 2.0.0 is left", DUPLICATES[0].0);
        assert!(found.iter().any(|line| line.starts_with(&first)), "{found:?}");
    }
}
