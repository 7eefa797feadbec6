//! The check of RLD with rocketlogger.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use super::source;
use crate::place::{binary, real};
use crate::process::run_or;
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
    python::script(name, "oracle-rld", REQUIREMENTS)
}

/// Returns the folder of logs in rocketlogger's source package.
fn source_logs() -> Result<PathBuf> {
    Ok(source(&python::with("oracle-rld", REQUIREMENTS)?, ROCKETLOGGER)?.join("data"))
}
