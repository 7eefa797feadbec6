//! Programs that a task needs, installed below target/.

use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};

use crate::process::cargo;
use crate::root;

/// A program: its crate, and the version that the tasks were tried with.
pub(crate) type Tool = (&'static str, &'static str);

// Each is a subcommand of cargo.
pub(crate) const AUDITABLE: Tool = ("cargo-auditable", "0.7.7");
pub(crate) const DENY: Tool = ("cargo-deny", "0.20.2");
pub(crate) const MUTANTS: Tool = ("cargo-mutants", "27.1.0");
pub(crate) const SEMVER: Tool = ("cargo-semver-checks", "0.51.0");

/// Returns the path of a program; it is installed where it is missing.
///
/// # Errors
/// Returns an error if it cannot be installed, as without network.
pub(crate) fn installed((name, version): Tool) -> Result<PathBuf> {
    let folder = root().join("target/tools").join(format!("{name}-{version}"));
    let program = folder.join("bin").join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    if !program.is_file() {
        println!("installing {name} {version}");
        let mut install =
            cargo(&["install", "--locked", "--quiet", "--no-track", name, "--version", version]);
        // Builds of all tools share what they have in common.
        install.arg("--root").arg(&folder).env("CARGO_TARGET_DIR", root().join("target/tools/build"));
        let status = install.status().context("starting cargo install")?;
        ensure!(status.success(), "{name} {version} could not be installed");
    }
    Ok(program)
}
