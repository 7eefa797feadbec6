//! The check of gaps, jitter and order of times with numpy.

use anyhow::Result;

use crate::place::{binary, real};
use crate::process::run_or;
use crate::{python, root};

/// Compares the health of the times of all real and corpus logs with numpy's.
pub(super) fn check() -> Result<()> {
    let mut checker = python::pyulog_script("health.py")?;
    checker.arg(binary()?).arg(root().join("corpus")).args(real());
    run_or(&mut checker, "the health of times differs from numpy's")
}
