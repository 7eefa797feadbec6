//! The command line that exports, beside other converters: whole processes, with what they write to a folder.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::{corpus, oracle, python, root};

/// What the peers need.
const PYTHON: &[&str] = &["pyulog==1.3.0", "numpy==2.4.6", "pyarrow==26.0.1"];

/// Prints the tables of docs/performance.md.
pub(super) fn run(log: Option<PathBuf>) -> Result<()> {
    let log = log.map_or_else(corpus::large_ulog, Ok)?;
    let binary = oracle::binary()?;
    let status = Command::new(python::with("bench-export", PYTHON)?)
        .arg("-B")
        .arg(root().join("bench/export_times.py"))
        .arg(binary)
        .arg(log)
        .status()
        .context("starting the script")?;
    ensure!(status.success(), "the bench failed");
    Ok(())
}
