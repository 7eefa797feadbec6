//! The check of ULog with pyulog.

use std::process::Command;

use anyhow::Result;

use super::{binary, real};
use crate::process::run_or;
use crate::{python, root};

/// Compares every value of real and corpus logs with pyulog's.
pub(super) fn check() -> Result<()> {
    let mut checker = script("ulog_pyulog.py")?;
    checker.arg(binary()?).arg(root().join("corpus")).args(real());
    run_or(&mut checker, "rovelog and pyulog differ unexpectedly")
}

/// Returns a script with pyulog installed.
pub(crate) fn script(name: &str) -> Result<Command> {
    super::script(name, "oracle-ulog", &[python::PYULOG, "numpy"])
}
