//! The check of ROS bags with Debian's python3-rosbag and librosbag-storage, and the package rosbags.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, bail};

use crate::place::{binary, real};
use crate::process::run_or;
use crate::python::{ROSBAGS, script as script_of_packages, script_with};
use crate::{peers, root};

/// Compares every value of real and corpus bags with theirs, and opens recovered bags; then every
/// message of bags V2.0 with the package rosbags.
pub(super) fn check() -> Result<()> {
    let Some(mut checker) = script("rosbag_python.py") else {
        bail!("without python3-rosbag there is no check")
    };
    let view = peers::rosbag_view()?.unwrap_or_else(|| PathBuf::from("-"));
    checker.arg(binary()?).arg(view).arg(root().join("corpus")).args(real());
    run_or(&mut checker, "rovelog and the readers of ROS differ unexpectedly")?;
    let mut checker = script_of_packages("rosbags_raw.py", "oracle-rosbags", &[ROSBAGS])?;
    checker.arg(binary()?).arg(root().join("corpus/rosbag"));
    checker.args(real().map(|real| real.join("rosbag20")));
    run_or(&mut checker, "rovelog and rosbags differ unexpectedly")
}

/// Returns a script with the distribution's Python, which has python3-rosbag; prints a note if that
/// is not installed.
pub(super) fn script(name: &str) -> Option<Command> {
    let python = peers::distribution_python("rosbag");
    if python.is_none() {
        println!("SKIPPED: python3-rosbag is not installed: apt-get install python3-rosbag");
    }
    python.map(|python| script_with(python, name))
}
