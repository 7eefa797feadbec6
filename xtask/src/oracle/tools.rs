//! The pages about engines and tools: every command and program in them runs.

use std::path::Path;

use anyhow::Result;

use crate::place::real;
use crate::process::run_or;
use crate::python::script_with;
use crate::{lake, package, python, root};

/// What the pages use. Spark and Sail exclude each other: each has an environment, in which the
/// page of the other is skipped.
const PACKAGES: [&str; 6] = [
    "duckdb==2.0.0",
    "polars==2.1.0",
    python::PYARROW,
    python::MCAP,
    "mcap-ros2-support",
    "rerun-sdk==0.41.0",
];

/// Runs the blocks of docs/tools.
pub(super) fn check() -> Result<()> {
    let Some(real) = real() else { return Ok(()) };
    run("tools", &PACKAGES, &real, &[])?;
    run("tools-sail", &[&lake::SAIL[..], &["pandas>=2.2,<3", python::PYARROW]].concat(), &real, &["sail"])?;
    run("tools-spark", &[lake::SPARK, "pandas>=2.2,<3", python::PYARROW], &real, &["spark"])
}

fn run(environment: &str, packages: &[&str], real: &Path, pages: &[&str]) -> Result<()> {
    let python = package::release(environment, packages)?;
    let mut blocks = script_with(python, "tools.py");
    blocks.arg(root().join("docs")).arg(real).args(pages);
    run_or(&mut blocks, "a block of docs/tools fails")
}
