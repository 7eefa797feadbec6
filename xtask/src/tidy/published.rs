//! Rules for the crates that are published: keys of their manifests, licenses, READMEs and
//! examples.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

/// Keys of the manifest that a package registry shows or requires.
const KEYS: &[&str] =
    &["description", "keywords", "categories", "license", "repository", "readme", "rust_version"];

/// Maximum number of lines in the README of a crate, so that it fits on one screen.
const MAX_README_LINES: usize = 50;

/// Returns a description of each rule that a published crate violates. `packages` are the packages
/// of this workspace in the output of `cargo metadata`.
pub(super) fn check(root: &Path, packages: &[&Value]) -> Result<Vec<String>> {
    let toolchain = toolchain(root)?;
    let mut found = Vec::new();
    // In the output of `cargo metadata`, `publish` is null if a crate may be published anywhere. It
    // is an empty list if the crate must not be published.
    for package in packages.iter().filter(|package| package["publish"].is_null()) {
        let name = package["name"].as_str().unwrap_or_default();
        let mut lacks = |what: String| found.push(format!("{name}: {what}"));
        for key in KEYS.iter().filter(|key| is_empty(&package[**key])) {
            lacks(format!("no `{key}` in its manifest"));
        }
        if package["metadata"]["docs"]["rs"]["all-features"] != true {
            lacks("no `all-features` for docs.rs in its manifest".to_owned());
        }
        if package["rust_version"].as_str().is_some_and(|version| !toolchain.starts_with(version)) {
            lacks(format!("its rust-version is not that of rust-toolchain.toml, {toolchain}"));
        }
        let folder = root.join("crates").join(name);
        for license in ["LICENSE-MIT", "LICENSE-APACHE"] {
            let ours = fs::read(root.join(license)).with_context(|| format!("reading {license}"))?;
            if fs::read(folder.join(license)).ok() != Some(ours) {
                lacks(format!("no {license}: link to that of the top folder"));
            }
        }
        let readme = fs::read_to_string(folder.join("README.md")).unwrap_or_default();
        if readme.lines().count() > MAX_README_LINES {
            lacks(format!("its README.md has more than {MAX_README_LINES} lines"));
        }
        if !readme.contains("```rust") {
            lacks("no example in its README.md".to_owned());
        }
        if fs::read_dir(folder.join("examples")).map_or(0, Iterator::count) == 0 {
            lacks("no program in examples/".to_owned());
        }
    }
    Ok(found)
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || value.as_array().is_some_and(Vec::is_empty) || value.as_str() == Some("")
}

/// Returns the compiler version in rust-toolchain.toml. Only this version is tested, so it is also
/// the oldest version that the crates promise to support.
fn toolchain(root: &Path) -> Result<String> {
    let text = fs::read_to_string(root.join("rust-toolchain.toml")).context("reading rust-toolchain.toml")?;
    let table: toml::Table = text.parse().context("reading rust-toolchain.toml")?;
    let channel = table.get("toolchain").and_then(|toolchain| toolchain.get("channel")?.as_str());
    Ok(channel.context("rust-toolchain.toml names no channel")?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_a_crate_lacks_is_reported() {
        let package = serde_json::json!({
            "name": "leftpad", "publish": null, "description": "", "keywords": [], "rust_version": "1.2",
        });
        let found = check(&crate::root(), &[&package]).expect("the workspace can be read");
        // The 12 violations are six of seven keys, the features for docs.rs, the version, two
        // licenses, an example in the README, and a program.
        assert_eq!(found.len(), 12, "{found:#?}");
        let private = serde_json::json!({ "name": "leftpad", "publish": [] });
        assert!(check(&crate::root(), &[&private]).expect("the workspace can be read").is_empty());
    }
}
