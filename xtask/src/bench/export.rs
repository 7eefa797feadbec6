//! Measures whole processes: the export commands, and other converters.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::process::run_or;
use crate::python::{self, NUMPY, PYARROW, PYULOG};
use crate::{peers, place, root};

/// Sizes in bytes of the logs whose cost per byte is compared.
const SIZES: [u64; 4] = [4_000_000, 40_000_000, 400_000_000, 4_000_000_000];

/// Compares the exports with other converters.
pub(super) fn peers(log: Option<PathBuf>) -> Result<()> {
    let log = log.map_or_else(|| corpus_generator::large_log("ulog"), Ok)?;
    let python = python::with("bench-export", &[PYULOG, NUMPY, PYARROW])?;
    measure(Command::new(python), "peers", &[log])
}

/// Measures all exports with one thread and with all.
pub(super) fn own(log: Option<PathBuf>) -> Result<()> {
    let log = log.map_or_else(|| corpus_generator::large_log("ulog"), Ok)?;
    measure(Command::new(peers::PYTHON), "own", &[log])
}

/// Measures the cost per byte of logs of one format, from 4 MB to at most `max_bytes`.
pub(super) fn flat(format: &str, max_bytes: u64) -> Result<()> {
    let sizes = SIZES.into_iter().filter(|size| *size <= max_bytes);
    let logs = sizes.map(|size| corpus_generator::log_of_size(format, size)).collect::<Result<Vec<_>>>()?;
    measure(Command::new(peers::PYTHON), "flat", &logs)
}

fn measure(mut python: Command, part: &str, logs: &[PathBuf]) -> Result<()> {
    let script = root().join("bench/export_times.py");
    python.arg("-B").arg(script).arg(part).arg(place::binary()?).args(logs);
    run_or(&mut python, "the bench failed")
}
