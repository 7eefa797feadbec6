//! Measures the export commands and other converters: whole processes that write to a folder.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::process::run_or;
use crate::python::{self, NUMPY, PYARROW, PYULOG};
use crate::{corpus, oracle, root};

/// Prints the tables of docs/internals/performance.md.
pub(super) fn run(log: Option<PathBuf>) -> Result<()> {
    let log = log.map_or_else(|| corpus::large_log("ulog"), Ok)?;
    let mut script = Command::new(python::with("bench-export", &[PYULOG, NUMPY, PYARROW])?);
    script.arg("-B").arg(root().join("bench/export_times.py")).arg(oracle::binary()?).arg(log);
    run_or(&mut script, "the bench failed")
}
