//! Runs the test suites of pyulog, rocketlogger and rosbag with the original packages and with
//! their drop-in replacements.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::source;
use crate::process::{run, run_or};
use crate::python::{PYULOG, ROCKETLOGGER, script_with};
use crate::{package, peers, root};
use corpus_generator::real;

/// The original packages, and packages that their tests need.
const PACKAGES: &[&str] = &[PYULOG, ROCKETLOGGER, "numpy", "ddt", "matplotlib", "pandas"];
/// Repository with the sources of Debian's python3-rosbag.
const ROS_COMM: &str = "https://github.com/ros/ros_comm";
const ROS_COMM_TAG: &str = "1.15.15";
const ROSBAG_TESTS: [&str; 2] = ["test/test_rosbag/test/test_bag.py", "tools/rosbag/test/test_roundtrip.py"];
const PAGE: &str = "docs/reference/python.md";

/// The test suite of a package.
struct Suite {
    package: &'static str,
    /// Folder that contains the tests.
    tests: PathBuf,
    python: PathBuf,
    /// Folder that contains the drop-in replacement. `None` if the replacement is installed in the
    /// environment of `python`.
    site: Option<PathBuf>,
}

/// Runs each test suite with the original package and with the replacement, and compares the
/// results with the table in [`PAGE`].
pub(super) fn check() -> Result<()> {
    let (python, wheel) = package::development("suites", PACKAGES)?;
    let folder = root().join("target/suites");
    let fresh = |name: &str| -> Result<PathBuf> {
        let tests = folder.join(name);
        if tests.exists() {
            fs::remove_dir_all(&tests)?;
        }
        fs::create_dir_all(&tests)?;
        Ok(tests)
    };
    let mut suites = Vec::new();

    let tests = fresh("pyulog")?;
    copy(&source(&python, PYULOG)?.join("test"), &tests.join("test"))?;
    if let Some(real) = real() {
        // The source package contains no logs.
        for log in fs::read_dir(real.join("ulog"))? {
            let log = log?.path();
            if log.extension().is_some_and(|extension| extension == "ulg") {
                fs::copy(&log, tests.join("test").join(log.file_name().unwrap_or_default()))?;
            }
        }
    }
    suites.push(Suite { package: "pyulog", tests, python: python.clone(), site: None });

    let tests = fresh("rocketlogger")?;
    let sources = source(&python, ROCKETLOGGER)?;
    copy(&sources.join("tests"), &tests.join("tests"))?;
    copy(&sources.join("data"), &tests.join("data"))?;
    suites.push(Suite { package: "rocketlogger", tests, python: python.clone(), site: None });

    match (peers::distribution_python("rosbag"), ros_comm(&folder)) {
        (Some(distribution), Some(sources)) => {
            let tests = fresh("rosbag")?;
            for test in ROSBAG_TESTS {
                let test = sources.join(test);
                fs::copy(&test, tests.join(test.file_name().unwrap_or_default()))?;
            }
            let site = fresh("site")?;
            let mut pip = Command::new(&python);
            pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--target"]).arg(&site).arg(&wheel);
            run(&mut pip)?;
            suites.push(Suite { package: "rosbag", tests, python: distribution, site: Some(site) });
        }
        (None, _) => println!("SKIPPED: python3-rosbag is not installed: apt-get install python3-rosbag"),
        (_, None) => {
            println!("SKIPPED: {ROS_COMM} cannot be cloned; ROVELOG_ROS_COMM names a copy");
        }
    }

    let mut outcomes: Vec<OsString> = vec![root().join(PAGE).into()];
    for suite in &suites {
        outcomes.push(suite.package.into());
        for which in ["original", "drop-in"] {
            outcomes.push(suite.run(which)?.into());
        }
    }
    let mut table = script_with(python, "suites_table.py");
    run_or(table.args(outcomes), "the suites have unexpected outcomes")
}

impl Suite {
    /// Runs the test suite. `which` is `original` or `drop-in`. Returns the path of the file with
    /// the results.
    fn run(&self, which: &str) -> Result<PathBuf> {
        println!("{}: {which}", self.package);
        let out = self.tests.with_file_name(format!("{}-{which}.json", self.package));
        let mut suite = script_with(self.python.clone(), "suites.py");
        suite.args(["run", self.package, which]).arg(&self.tests).arg(&out);
        // The tests of rocketlogger read these environment variables.
        suite.env("MATPLOTLIB_AVAILABLE", "true").env("PANDAS_AVAILABLE", "true");
        suite.env_remove("PYTHONPATH");
        if let Some(site) = &self.site {
            suite.env("PYTHONPATH", site);
        }
        run(&mut suite)?;
        Ok(out)
    }
}

/// Returns the path of a checkout of `ros_comm`, or `None` if the repository cannot be cloned.
fn ros_comm(folder: &Path) -> Option<PathBuf> {
    let checkout = folder.join("ros_comm");
    if checkout.join(ROSBAG_TESTS[0]).is_file() {
        return Some(checkout);
    }
    let from = std::env::var_os("ROVELOG_ROS_COMM").unwrap_or_else(|| ROS_COMM.into());
    let mut git = Command::new("git");
    git.args(["clone", "--quiet", "--depth", "1", "--branch", ROS_COMM_TAG]).arg(from).arg(&checkout);
    run(&mut git).is_ok().then_some(checkout)
}

/// Copies a folder including its subfolders.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let place = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &place)?;
        } else {
            fs::copy(entry.path(), place)?;
        }
    }
    Ok(())
}
