//! Requirements on published crates: entries in the manifest, and files in the folder.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

/// Manifest keys that a registry shows or requires.
const KEYS: &[&str] =
    &["description", "keywords", "categories", "license", "repository", "readme", "rust_version"];

/// Maximum lines of a crate's README.
const SCREEN: usize = 50;

/// Returns what published crates lack. `packages` are those of `cargo metadata`.
pub(super) fn check(root: &Path, packages: &[&Value]) -> Result<Vec<String>> {
    let toolchain = toolchain(root)?;
    let mut found = Vec::new();
    // `publish` is null for a crate that may be published anywhere, and an empty list for one that
    // may not be published.
    for package in packages.iter().filter(|package| package["publish"].is_null()) {
        let name = package["name"].as_str().unwrap_or_default();
        let mut lacks = |what: String| found.push(format!("{name}: {what}"));
        for key in KEYS.iter().filter(|key| is_empty(&package[**key])) {
            lacks(format!("no `{key}` in its manifest"));
        }
        if package["rust_version"].as_str().is_some_and(|version| !toolchain.starts_with(version)) {
            lacks(format!("its rust-version is not that of rust-toolchain.toml, {toolchain}"));
        }
        let folder = root.join("crates").join(name);
        for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
            let ours = fs::read(root.join(licence)).with_context(|| format!("reading {licence}"))?;
            if fs::read(folder.join(licence)).ok() != Some(ours) {
                lacks(format!("no {licence} like that of the top folder: make a symbolic link"));
            }
        }
        let readme = fs::read_to_string(folder.join("README.md")).unwrap_or_default();
        if readme.lines().count() > SCREEN {
            lacks(format!("its README.md has more than {SCREEN} lines"));
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

/// Returns the version in rust-toolchain.toml: the only one that is tested, and so the minimum that
/// is promised.
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
    fn a_crate_that_lacks_everything_is_told_so() {
        let package = serde_json::json!({
            "name": "leftpad", "publish": null, "description": "", "keywords": [], "rust_version": "1.2",
        });
        let found = check(&crate::root(), &[&package]).expect("the workspace can be read");
        // Six keys of seven, the version, two licences, an example, a program.
        assert_eq!(found.len(), 11, "{found:#?}");
        let private = serde_json::json!({ "name": "leftpad", "publish": [] });
        assert!(check(&crate::root(), &[&private]).expect("the workspace can be read").is_empty());
    }
}
