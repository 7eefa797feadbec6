//! The check of RLD with rocketlogger.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use super::{binary, real};
use crate::process::{run, run_or};
use crate::python::{self, ROCKETLOGGER};
use crate::root;

const REQUIREMENTS: &[&str] = &[ROCKETLOGGER, "numpy"];

/// Compares every raw value and timestamp of real and corpus logs with rocketlogger's; its source
/// package has 21 real logs.
pub(super) fn check() -> Result<()> {
    let mut checker = script("rld_rocketlogger.py")?;
    checker.arg(binary()?).arg(source_logs()?).arg(root().join("corpus/rld"));
    checker.args(real().map(|real| real.join("rld")));
    run_or(&mut checker, "rovelog and rocketlogger differ unexpectedly")
}

/// Returns a script with rocketlogger installed.
pub(super) fn script(name: &str) -> Result<Command> {
    super::script(name, "oracle-rld", REQUIREMENTS)
}

/// Returns the folder of logs in rocketlogger's source package, downloaded once.
fn source_logs() -> Result<PathBuf> {
    let folder = root().join("target/rocketlogger-source");
    let package = ROCKETLOGGER.replace("==", "-");
    let logs = folder.join(&package).join("data");
    if logs.is_dir() {
        return Ok(logs);
    }
    let mut pip = Command::new(python::with("oracle-rld", REQUIREMENTS)?);
    pip.args(["-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", ROCKETLOGGER, "-d"]);
    run(pip.arg(&folder))?;
    let mut tar = Command::new("tar");
    run(tar.arg("xzf").arg(folder.join(format!("{package}.tar.gz"))).arg("-C").arg(&folder))?;
    Ok(logs)
}
