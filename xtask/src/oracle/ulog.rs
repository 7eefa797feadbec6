//! pyulog as the judge.

use std::process::Command;

use anyhow::Result;

use super::{binary, real};
use crate::process::run_or;
use crate::{python, root};

/// Every value of real and corpus logs beside pyulog's.
pub(super) fn judge() -> Result<()> {
    let mut judge = script("ulog_pyulog.py")?;
    judge.arg(binary()?).arg(root().join("corpus")).args(real());
    run_or(&mut judge, "rovelog and pyulog differ where they are not meant to")
}

/// A script that has pyulog at hand.
pub(crate) fn script(name: &str) -> Result<Command> {
    super::script(name, "oracle-ulog", &[python::PYULOG, "numpy"])
}
