//! Readers of bags that a Linux distribution provides: python3-rosbag and librosbag-storage.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::Result;

use crate::process::run_or;
use crate::root;

/// Path of the Python interpreter that the Linux distribution provides.
pub(crate) const PYTHON: &str = "/usr/bin/python3";

/// Returns the Python interpreter of the Linux distribution, if the module is installed for it.
pub(crate) fn distribution_python(module: &str) -> Option<PathBuf> {
    let python = PathBuf::from(PYTHON);
    let import = format!("import {module}");
    let status = Command::new(&python).args(["-c", &import]).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success()).then_some(python)
}

/// Builds `bench/rosbag_view.cpp`. Returns the path of the program, or `None` if librosbag-storage
/// is not installed.
pub(crate) fn rosbag_view() -> Result<Option<PathBuf>> {
    if !PathBuf::from("/usr/include/rosbag/view.h").is_file() {
        println!("SKIPPED: librosbag-storage is not installed (librosbag-storage-dev)");
        return Ok(None);
    }
    let program = root().join("target/bench/rosbag_view");
    std::fs::create_dir_all(root().join("target/bench"))?;
    let includes = ["class_loader", "pluginlib", "rcpputils", "rcutils", "ament_index_cpp"];
    let libraries = ["rosbag_storage", "roscpp_serialization", "rostime", "cpp_common", "console_bridge"];
    let mut compiler = Command::new("g++");
    compiler
        .args(["-O2", "-std=c++17"])
        .args(includes.map(|name| format!("-I/usr/include/{name}")))
        .arg(root().join("bench/rosbag_view.cpp"))
        .arg("-o")
        .arg(&program)
        .args(libraries.map(|name| format!("-l{name}")));
    run_or(&mut compiler, "bench/rosbag_view.cpp does not build")?;
    Ok(Some(program))
}
