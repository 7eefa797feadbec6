//! Places that several tasks use: the folder of real logs, cargo's target folder, the release binary.

use std::env;
use std::path::PathBuf;

use anyhow::{Result, ensure};

use crate::process::{cargo, run};
use crate::root;

/// Returns the folder of real logs, from `ROVELOG_REAL` or next to the checkout; prints a note if
/// there is none.
pub(crate) fn real() -> Option<PathBuf> {
    let folder = env::var_os("ROVELOG_REAL").map_or_else(|| root().join("../shared/real"), PathBuf::from);
    if folder.is_dir() {
        return Some(folder);
    }
    println!("SKIPPED: no real logs in {} (set ROVELOG_REAL)", folder.display());
    None
}

/// Returns cargo's target folder.
pub(crate) fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |folder| root().join(folder))
}

/// Builds the release binary of `rovelog`. Returns its path.
pub(crate) fn binary() -> Result<PathBuf> {
    run(&mut cargo(&["build", "--quiet", "--release", "-p", "rovelog-cli", "--all-features"]))?;
    let name = format!("rovelog{}", env::consts::EXE_SUFFIX);
    let binary = target().join("release").join(name);
    ensure!(binary.is_file(), "cargo built no {}", binary.display());
    Ok(binary)
}
