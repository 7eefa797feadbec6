//! velodyne-decoder as the judge of points.

use anyhow::{Context, Result, ensure};

use super::{binary, real, script};
use crate::root;

/// What the script needs; the version is the one the documents speak of.
const REQUIREMENTS: &[&str] = &["velodyne-decoder==3.1.0", "numpy"];

/// Every point of real and corpus logs beside velodyne-decoder's.
pub(super) fn judge() -> Result<()> {
    let binary = binary()?;
    let mut judge = script("vel_velodyne.py", "oracle-vel", REQUIREMENTS)?;
    judge.arg(binary).arg(root().join("corpus"));
    if let Some(real) = real() {
        judge.arg(real);
    }
    let status = judge.status().context("starting the script")?;
    ensure!(status.success(), "rovelog and velodyne-decoder differ where they are not meant to");
    Ok(())
}
