//! Locates the workspace and the real logs.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

/// Returns the root folder of the workspace.
pub fn root() -> PathBuf {
    let generator = Path::new(env!("CARGO_MANIFEST_DIR"));
    generator.ancestors().nth(2).unwrap_or(generator).to_owned()
}

/// Returns the folder of real logs. The environment variable `ROVELOG_REAL` overrides the default,
/// which is a folder next to the checkout. If the folder does not exist, prints a note and returns
/// `None`.
pub fn real() -> Option<PathBuf> {
    let folder = env::var_os("ROVELOG_REAL").map_or_else(|| root().join("../shared/real"), PathBuf::from);
    if folder.is_dir() {
        return Some(folder);
    }
    println!("SKIPPED: no real logs in {} (set ROVELOG_REAL)", folder.display());
    None
}

/// Returns the relative paths of all files in a folder and its subfolders, in sorted order. Build
/// output and `.git` are skipped.
///
/// # Errors
///
/// Returns an error if a folder cannot be read.
pub fn files_below(root: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root.join(&folder))? {
            let entry = entry?;
            let name = folder.join(entry.file_name());
            if !entry.file_type()?.is_dir() {
                found.push(name);
            } else if !name.ends_with("target") && !name.ends_with(".git") {
                folders.push(name);
            }
        }
    }
    found.sort();
    Ok(found)
}
