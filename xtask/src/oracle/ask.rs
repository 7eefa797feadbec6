//! The check of signals, joins and conditions with DuckDB, polars, numpy, scipy, pandas and rocketlogger.

use anyhow::Result;

use crate::place::{binary, real};
use crate::process::run_or;
use crate::python::{PYARROW, ROCKETLOGGER, script};

const REQUIREMENTS: &[&str] =
    &[PYARROW, ROCKETLOGGER, "numpy", "polars==2.1.0", "duckdb==2.0.0", "pandas", "scipy"];

/// Compares what is computed of every real log.
pub(super) fn check() -> Result<()> {
    let Some(real) = real() else { return Ok(()) };
    let mut checker = script("ask.py", "oracle-ask", REQUIREMENTS)?;
    run_or(checker.arg(binary()?).arg(real), "what is computed of signals differs")
}
