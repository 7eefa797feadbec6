//! Reads exported files with common readers (pyarrow, polars, duckdb, mcap, laspy, plyfile, pypcd4,
//! OpenCV, tifffile, fastkml, gpxpy), and compares their values with the log. Also compares exported
//! CSV files with the output of pyulog.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::rosbag_script;
use corpus_generator::real;

use crate::place::binary;
use crate::python::{MCAP, NUMPY, PYARROW, PYULOG, ROSBAGS, script};
use crate::root;

/// Python packages that most scripts need. The version of numpy determines how ulog2csv prints
/// numbers.
const PACKAGES: &[&str] = &[
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

const TRACK_PACKAGES: &[&str] = &["fastkml==1.4.0", "lxml==6.1.3", "gpxpy==1.6.2"];

const BAG_PACKAGES: &[&str] = &[ROSBAGS, MCAP, "mcap-ros2-support==0.6.0"];

const CLOUD_PACKAGES: &[&str] =
    &[ROSBAGS, NUMPY, "laspy[lazrs]==2.7.0", "plyfile==1.1.5", "pypcd4==1.5.1", "open3d==0.20.0", "pyyaml"];
const IMAGE_PACKAGES: &[&str] = &[
    NUMPY,
    ROSBAGS,
    "av==18.1.0",
    "opencv-python-headless==5.0.0.93",
    "pillow==13.0.0",
    "tifffile==2026.3.3",
];

/// Compares every value in every real log with the values in every output format.
pub(super) fn check() -> Result<()> {
    let Some(real) = real() else { return Ok(()) };
    let binary = binary()?;
    let mut differ = Vec::new();
    for name in ["export_tables.py", "export_mcap.py", "export_mcap_sensors.py"] {
        let mut checker = script(name, "oracle-export", PACKAGES)?;
        if !passes(checker.arg(&binary).arg(&real))? {
            differ.push(name);
        }
    }
    let mut checker = script("export_tracks.py", "oracle-tracks", TRACK_PACKAGES)?;
    if !passes(checker.arg(&binary).arg(&real).arg(root().join("corpus")))? {
        differ.push("export_tracks.py");
    }
    let mut checker = script("extract_clouds.py", "oracle-clouds", CLOUD_PACKAGES)?;
    if !passes(checker.arg(&binary).arg(&real))? {
        differ.push("extract_clouds.py");
    }
    let mut checker = script("export_images.py", "oracle-images", IMAGE_PACKAGES)?;
    if !passes(checker.arg(&binary).arg(&real))? {
        differ.push("export_images.py");
    }
    for mode in ["bag2", "ros2"] {
        let mut checker = script("export_bags.py", "oracle-bags", BAG_PACKAGES)?;
        if !bags(&mut checker, mode, &binary, &real)? {
            differ.push("export_bags.py");
        }
    }
    if let Some(mut checker) = rosbag_script("export_bags.py")
        && !bags(&mut checker, "debian", &binary, &real)?
    {
        differ.push("export_bags.py with python3-rosbag");
    }
    ensure!(differ.is_empty(), "exported files differ from the log: {}", differ.join(", "));
    Ok(())
}

/// Returns true if a reader of bags finds the content of the V1.2 bags in all files that were
/// exported from them.
fn bags(checker: &mut Command, mode: &str, binary: &Path, real: &Path) -> Result<bool> {
    passes(checker.arg(mode).arg(binary).arg(real.join("rosbag12")).arg(root().join("corpus/rosbag")))
}

fn passes(checker: &mut Command) -> Result<bool> {
    Ok(checker.status().context("starting the script")?.success())
}
