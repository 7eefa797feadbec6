//! velodyne-decoder as the judge of points.

use anyhow::Result;

use super::{binary, real, script};
use crate::process::run_or;
use crate::{python, root};

/// Every point of real and corpus logs beside velodyne-decoder's.
pub(super) fn judge() -> Result<()> {
    let mut judge = script("vel_velodyne.py", "oracle-vel", &[python::VELODYNE_DECODER, "numpy"])?;
    judge.arg(binary()?).arg(root().join("corpus")).args(real());
    run_or(&mut judge, "rovelog and velodyne-decoder differ where they are not meant to")
}
