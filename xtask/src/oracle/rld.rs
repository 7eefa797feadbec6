//! rocketlogger as the judge.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use super::{binary, real};
use crate::process::{run, run_or};
use crate::python::{self, ROCKETLOGGER};
use crate::root;

const REQUIREMENTS: &[&str] = &[ROCKETLOGGER, "numpy"];

/// Every raw value and stamp of real and corpus logs beside rocketlogger's; its source package has 21 real logs.
pub(super) fn judge() -> Result<()> {
    let mut judge = script("rld_rocketlogger.py")?;
    judge.arg(binary()?).arg(source_logs()?).arg(root().join("corpus/rld"));
    judge.args(real().map(|real| real.join("rld")));
    run_or(&mut judge, "rovelog and rocketlogger differ where they are not meant to")
}

/// A script that has rocketlogger at hand.
pub(super) fn script(name: &str) -> Result<Command> {
    super::script(name, "oracle-rld", REQUIREMENTS)
}

/// The folder of logs in the source package of the judge, fetched once.
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
