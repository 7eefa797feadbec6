//! pyulog as the judge.

use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::{binary, real};
use crate::root;

/// What the scripts need; the versions are the ones the documents speak of.
const REQUIREMENTS: &[&str] = &["pyulog==1.3.0", "numpy"];

/// Every value of real and corpus logs beside pyulog's.
pub(super) fn judge() -> Result<()> {
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

/// A script that has pyulog at hand.
pub(crate) fn script(name: &str) -> Result<Command> {
    super::script(name, "oracle-ulog", REQUIREMENTS)
}
