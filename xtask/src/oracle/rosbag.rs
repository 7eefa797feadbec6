//! Debian's python3-rosbag and librosbag-storage as the judges.

use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::{binary, real};
use crate::{peers, root};

/// Every value of real and corpus bags beside theirs, and what they say of recovered ones.
pub(super) fn judge() -> Result<()> {
    let Some(python) = peers::distribution_python("rosbag") else {
        bail!("python3-rosbag is not installed: apt-get install python3-rosbag");
    };
    let binary = binary()?;
    let view = peers::rosbag_view()?.map_or_else(|| "-".into(), std::path::PathBuf::into_os_string);
    let mut judge = Command::new(python);
    judge.arg("-B").arg(root().join("oracle/rosbag_python.py"));
    judge.arg(binary).arg(view).arg(root().join("corpus"));
    if let Some(real) = real() {
        judge.arg(real);
    }
    let status = judge.status().context("starting the script")?;
    ensure!(status.success(), "rovelog and the readers of ROS differ where they are not meant to");
    Ok(())
}
