//! The check of ULog with pyulog.

use anyhow::Result;

use crate::place::{binary, real};
use crate::process::run_or;
use crate::{python, root};

/// Compares every value of real and corpus logs with pyulog's.
pub(super) fn check() -> Result<()> {
    let mut checker = python::pyulog_script("ulog_pyulog.py")?;
    checker.arg(binary()?).arg(root().join("corpus")).args(real());
    run_or(&mut checker, "rovelog and pyulog differ unexpectedly")
}
