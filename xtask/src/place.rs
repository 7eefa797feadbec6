//! Paths that several tasks use: the target folder of cargo and the release binary.

use std::env;
use std::path::PathBuf;

use anyhow::{Result, ensure};

use crate::process::{cargo, run};
use crate::root;

/// Returns the target folder of cargo.
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
