//! Measures whole processes: the export commands of `rovelog`, and other converters.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::process::run_or;
use crate::python::{self, NUMPY, PYARROW, PYULOG};
use crate::{peers, place, root};

/// Sizes in bytes of logs for which the time and memory per byte are compared.
const SIZES: [u64; 4] = [4_000_000, 40_000_000, 400_000_000, 4_000_000_000];

/// Compares the export commands with other converters.
pub(super) fn peers(log: Option<PathBuf>) -> Result<()> {
    let log = log.map_or_else(|| corpus_generator::large_log("ulog", None), Ok)?;
    let python = python::with("bench-export", &[PYULOG, NUMPY, PYARROW])?;
    measure(Command::new(python), "peers", &[log])
}

/// Measures all export commands with one thread and with all threads.
pub(super) fn own(log: Option<PathBuf>) -> Result<()> {
    let log = log.map_or_else(|| corpus_generator::large_log("ulog", None), Ok)?;
    measure(Command::new(peers::PYTHON), "own", &[log])
}

/// Measures the time and memory per byte for logs of one format. The logs have sizes from 4 MB to
/// at most `max_bytes`.
pub(super) fn flat(format: &str, max_bytes: u64) -> Result<()> {
    let sizes = SIZES.into_iter().filter(|size| *size <= max_bytes);
    let logs =
        sizes.map(|size| corpus_generator::large_log(format, Some(size))).collect::<Result<Vec<_>>>()?;
    measure(Command::new(peers::PYTHON), "flat", &logs)
}

fn measure(mut python: Command, part: &str, logs: &[PathBuf]) -> Result<()> {
    let script = root().join("bench/export_times.py");
    python.arg("-B").arg(script).arg(part).arg(place::binary()?).args(logs);
    run_or(&mut python, "the bench failed")
}
