//! Measures the export commands and other converters: whole processes that write to a folder.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::process::run_or;
use crate::python::{self, NUMPY, PYARROW, PYULOG};
use crate::{corpus, peers, place, root};

/// Sizes of the logs whose cost per byte is compared.
const SIZES: [u64; 4] = [4_000_000, 40_000_000, 400_000_000, 4_000_000_000];

/// Compares with other converters.
pub(super) fn peers(log: Option<PathBuf>) -> Result<()> {
    let log = log.map_or_else(|| corpus::large_log("ulog"), Ok)?;
    let python = python::with("bench-export", &[PYULOG, NUMPY, PYARROW])?;
    measure(Command::new(python), "peers", &[log])
}

/// Measures all exports, with one thread and with all.
pub(super) fn own(log: Option<PathBuf>) -> Result<()> {
    let log = log.map_or_else(|| corpus::large_log("ulog"), Ok)?;
    measure(Command::new(peers::PYTHON), "own", &[log])
}

/// Measures the cost per byte of logs of one format from 4 MB to 4 GB; `most` limits their size.
pub(super) fn flat(format: &str, most: u64) -> Result<()> {
    let sizes = SIZES.into_iter().filter(|size| *size <= most);
    let logs = sizes.map(|size| corpus::log_of_size(format, size)).collect::<Result<Vec<_>>>()?;
    measure(Command::new(peers::PYTHON), "flat", &logs)
}

fn measure(mut python: Command, part: &str, logs: &[PathBuf]) -> Result<()> {
    let script = root().join("bench/export_times.py");
    python.arg("-B").arg(script).arg(part).arg(place::binary()?).args(logs);
    run_or(&mut python, "the bench failed")
}
