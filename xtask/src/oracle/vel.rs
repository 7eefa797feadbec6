//! The check of Velodyne points with velodyne-decoder.

use anyhow::Result;

use crate::place::{binary, real};
use crate::process::run_or;
use crate::python::{self, script};
use crate::root;

/// Compares every point of real and corpus logs with velodyne-decoder's.
pub(super) fn check() -> Result<()> {
    let mut checker = script("vel_velodyne.py", "oracle-vel", &[python::VELODYNE_DECODER, "numpy"])?;
    checker.arg(binary()?).arg(root().join("corpus")).args(real());
    run_or(&mut checker, "rovelog and velodyne-decoder differ unexpectedly")
}
