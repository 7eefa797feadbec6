//! `cargo xtask oracle ulog`: other people's readers as judges of ours, value by value.
//!
//! The judges are Python scripts in `oracle/`. They see only what the release binary prints, so
//! they share nothing with the readers they judge.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::{python, root};

/// What the scripts need; the versions are the ones the documents speak of.
const REQUIREMENTS: &[&str] = &["pyulog==1.3.0", "numpy"];

/// The subcommand.
pub(crate) fn command(args: &[String]) -> Result<()> {
    ensure!(args == ["ulog"], "oracle needs the name of a format: ulog");
    let binary = binary()?;
    let mut judge = script("ulog_pyulog.py")?;
    judge.arg(binary).arg(root().join("corpus"));
    if let Some(real) = real() {
        judge.arg(real);
    }
    let status = judge.status().context("starting the script")?;
    ensure!(status.success(), "rovelog and pyulog differ where they are not meant to");
    Ok(())
}

/// The folder of real logs, from `ROVELOG_REAL` or beside the checkout; says so where there is none.
pub(crate) fn real() -> Option<PathBuf> {
    let folder = env::var_os("ROVELOG_REAL").map_or_else(|| root().join("../shared/real"), PathBuf::from);
    if folder.join("ulog").is_dir() {
        return Some(folder);
    }
    println!("SKIPPED: no real logs in {} (set ROVELOG_REAL)", folder.display());
    None
}

/// The release binary of `rovelog`, built now.
pub(crate) fn binary() -> Result<PathBuf> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--quiet", "--release", "-p", "rovelog-cli"])
        .current_dir(root())
        .status()
        .context("starting cargo")?;
    ensure!(status.success(), "building rovelog ended with {status}");
    let name = format!("rovelog{}", env::consts::EXE_SUFFIX);
    let binary = target().join("release").join(name);
    ensure!(binary.is_file(), "cargo built no {}", binary.display());
    Ok(binary)
}

/// A Python that has the readers we compare with.
pub(crate) fn python() -> Result<PathBuf> {
    python::with("oracle", REQUIREMENTS)
}

/// A script of `oracle/`, ready for its arguments.
pub(crate) fn script(name: &str) -> Result<Command> {
    let mut command = Command::new(python()?);
    // No bytecode beside the sources.
    command.arg("-B").arg(root().join("oracle").join(name));
    Ok(command)
}

fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |folder| root().join(folder))
}
