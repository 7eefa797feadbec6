//! rocketlogger as the judge.

use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::{binary, real, script};
use crate::{python, root};

/// What the script needs; the versions are the ones the documents speak of.
pub(super) const REQUIREMENTS: &[&str] = &["rocketlogger==2.1.3", "numpy"];

/// Every raw value and stamp of real and corpus logs beside rocketlogger's; its source package has 21 real logs.
pub(super) fn judge() -> Result<()> {
    let binary = binary()?;
    let mut judge = script("rld_rocketlogger.py", "oracle-rld", REQUIREMENTS)?;
    judge.arg(binary).arg(source_logs()?).arg(root().join("corpus/rld"));
    if let Some(real) = real() {
        judge.arg(real.join("rld"));
    }
    let status = judge.status().context("starting the script")?;
    ensure!(status.success(), "rovelog and rocketlogger differ where they are not meant to");
    Ok(())
}

/// The folder of logs in the source package of the judge, fetched once.
fn source_logs() -> Result<std::path::PathBuf> {
    let folder = root().join("target/rocketlogger-source");
    let logs = folder.join("rocketlogger-2.1.3/data");
    if logs.is_dir() {
        return Ok(logs);
    }
    let python = python::with("oracle-rld", REQUIREMENTS)?;
    let fetched = Command::new(python)
        .args([
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--no-binary",
            ":all:",
            "rocketlogger==2.1.3",
            "-d",
        ])
        .arg(&folder)
        .status()?;
    ensure!(fetched.success(), "pip download ended with {fetched}");
    let unpacked = Command::new("tar")
        .arg("xzf")
        .arg(folder.join("rocketlogger-2.1.3.tar.gz"))
        .arg("-C")
        .arg(&folder)
        .status()?;
    ensure!(unpacked.success(), "tar ended with {unpacked}");
    Ok(logs)
}
