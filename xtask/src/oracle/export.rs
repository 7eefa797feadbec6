//! Opens exported files with common readers: pyarrow, polars, duckdb, mcap, laspy, fastkml, gpxpy;
//! and compares them with pyulog's own CSV.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::rosbag;
use crate::place::{binary, real};
use crate::python::{MCAP, NUMPY, PYARROW, PYULOG, ROSBAGS, script};
use crate::root;

/// Packages that the scripts need; numpy's version determines how ulog2csv prints numbers.
const REQUIREMENTS: &[&str] = &[
    PYULOG,
    NUMPY,
    PYARROW,
    "polars==2.1.0",
    "duckdb==2.0.0",
    MCAP,
    "mcap-protobuf-support==0.6.0",
    "foxglove-schemas-protobuf==0.4.0",
    "laspy[lazrs]==2.7.0",
];

/// Packages that read tracks.
const OF_TRACKS: &[&str] = &["fastkml==1.4.0", "lxml==6.1.3", "gpxpy==1.6.2"];

/// Packages that read bags.
const OF_BAGS: &[&str] = &[ROSBAGS, MCAP, "mcap-ros2-support==0.6.0"];

/// Compares every value of every real log in every output format.
pub(super) fn check() -> Result<()> {
    let Some(real) = real() else { return Ok(()) };
    let binary = binary()?;
    let mut differ = Vec::new();
    for name in ["export_tables.py", "export_mcap.py", "export_mcap_sensors.py"] {
        let mut checker = script(name, "oracle-export", REQUIREMENTS)?;
        if !passes(checker.arg(&binary).arg(&real))? {
            differ.push(name);
        }
    }
    let mut checker = script("export_tracks.py", "oracle-tracks", OF_TRACKS)?;
    if !passes(checker.arg(&binary).arg(&real).arg(root().join("corpus")))? {
        differ.push("export_tracks.py");
    }
    for mode in ["bag2", "ros2"] {
        let mut checker = script("export_bags.py", "oracle-bags", OF_BAGS)?;
        if !bags(&mut checker, mode, &binary, &real)? {
            differ.push("export_bags.py");
        }
    }
    if let Some(mut checker) = rosbag::script("export_bags.py")
        && !bags(&mut checker, "debian", &binary, &real)?
    {
        differ.push("export_bags.py with python3-rosbag");
    }
    ensure!(differ.is_empty(), "what is written differs from the log: {}", differ.join(", "));
    Ok(())
}

/// Returns whether one of the bag readers finds the content of the old bags in all written files.
fn bags(checker: &mut Command, mode: &str, binary: &Path, real: &Path) -> Result<bool> {
    passes(checker.arg(mode).arg(binary).arg(real.join("rosbag12")).arg(root().join("corpus/rosbag")))
}

fn passes(checker: &mut Command) -> Result<bool> {
    Ok(checker.status().context("starting the script")?.success())
}
