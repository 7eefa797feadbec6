//! `cargo xtask oracle CHECK`: compares Rovelog with independent programs.
//!
//! The checks are Python scripts in `oracle/`. They only use the output of the release binary, so
//! they share no code with the readers that they check.

mod damaged;
mod export;
mod hosts;
mod suites;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};
use corpus_generator::real;

use crate::place::binary;
use crate::process::{run, run_or};
use crate::python::{
    NUMPY, PYARROW, PYULOG, ROCKETLOGGER, ROSBAGS, VELODYNE_DECODER, pyulog_script, script, script_with,
};
use crate::{duckdb, lake, package, peers, python, root};

/// Function that compares Rovelog with other programs. Returns an error if they differ
/// unexpectedly.
type Check = fn() -> Result<()>;

/// Names and functions of all checks.
const CHECKS: &[(&str, Check)] = &[
    ("ulog", || over_all_logs(pyulog_script("ulog_pyulog.py")?)),
    ("rld", rld),
    ("rosbag", rosbag),
    ("vel", || over_all_logs(script("vel_velodyne.py", "oracle-vel", &[VELODYNE_DECODER, "numpy"])?)),
    ("export", export::check),
    ("trajectories", || over_all_logs(script("trajectories.py", "oracle-trajectories", TRAJECTORIES)?)),
    ("health", || over_all_logs(pyulog_script("health.py")?)),
    ("findings", || over_real_logs(script("findings.py", "oracle-findings", &[])?)),
    ("plots", || over_real_logs(pyulog_script("flight_review.py")?)),
    ("scrub", || over_real_logs(script("scrub.py", "oracle-scrub", SCRUB)?)),
    ("ask", || over_real_logs(script("ask.py", "oracle-ask", ASK)?)),
    ("duckdb", duckdb),
    ("recovered", damaged::recovered),
    ("survivors", damaged::survivors),
    ("suites", suites::check),
    ("tools", tools),
    ("hosts", hosts::check),
    ("plotjuggler", hosts::plotjuggler),
    ("agents", || over_real_logs(script("agents.py", "oracle-agents", &[FASTMCP])?)),
];

/// Python packages for the check of joins, conditions and derived signals.
const ASK: &[&str] = &[PYARROW, ROCKETLOGGER, "numpy", "polars==2.1.0", "duckdb==2.0.0", "pandas", "scipy"];

/// Python packages that read scrubbed logs and measure distances.
const SCRUB: &[&str] = &[PYULOG, ROSBAGS, "numpy", "geographiclib==2.1"];

/// Python packages for the check of trajectories.
const TRAJECTORIES: &[&str] = &["evo==1.38.1", "pyproj==3.7.2", PYULOG, ROSBAGS, NUMPY];

const DIFFERS: &str = "rovelog and the other program differ unexpectedly";

/// Runs the subcommand `cargo xtask oracle`.
pub(crate) fn command(args: &[String]) -> Result<()> {
    let check = match args {
        [name] => CHECKS.iter().find(|check| check.0 == name),
        _ => None,
    };
    let Some((_, check)) = check else {
        let names: Vec<_> = CHECKS.iter().map(|check| check.0).collect();
        bail!("usage: oracle {}", names.join(" | "));
    };
    check()
}

/// Runs a script with the arguments `ROVELOG CORPUS [REAL]`: the program, the folder of test logs,
/// and the folder of real logs.
fn over_all_logs(mut script: Command) -> Result<()> {
    script.arg(binary()?).arg(root().join("corpus")).args(real());
    run_or(&mut script, DIFFERS)
}

/// Runs a script with the arguments `ROVELOG REAL`: the program and the folder of real logs. Does
/// nothing if there are no real logs.
fn over_real_logs(mut script: Command) -> Result<()> {
    let Some(real) = real() else { return Ok(()) };
    run_or(script.arg(binary()?).arg(real), DIFFERS)
}

const WITH_ROCKETLOGGER: &[&str] = &[ROCKETLOGGER, "numpy"];

/// Returns the command that runs a script in `oracle/`. The package rocketlogger is installed for
/// it.
fn rocketlogger_script(name: &str) -> Result<Command> {
    script(name, "oracle-rld", WITH_ROCKETLOGGER)
}

/// Compares every raw value and timestamp of RLD logs with the Python package rocketlogger. Its
/// source package contains 21 real logs.
fn rld() -> Result<()> {
    let sources = source(&python::with("oracle-rld", WITH_ROCKETLOGGER)?, ROCKETLOGGER)?;
    let mut checker = rocketlogger_script("rld_rocketlogger.py")?;
    checker.arg(binary()?).arg(sources.join("data")).arg(root().join("corpus/rld"));
    checker.args(real().map(|real| real.join("rld")));
    run_or(&mut checker, DIFFERS)
}

/// Returns the command that runs a script in `oracle/` with python3-rosbag. The script runs in the
/// Python interpreter of the Linux distribution. If python3-rosbag is not installed, prints a note
/// and returns `None`.
fn rosbag_script(name: &str) -> Option<Command> {
    let python = peers::distribution_python("rosbag");
    if python.is_none() {
        println!("SKIPPED: python3-rosbag is not installed: apt-get install python3-rosbag");
    }
    python.map(|python| script_with(python, name))
}

/// Compares every value in bags with python3-rosbag and librosbag-storage. Also compares every
/// message in V2.0 bags with the Python package rosbags.
fn rosbag() -> Result<()> {
    let Some(mut checker) = rosbag_script("rosbag_python.py") else {
        bail!("the check needs python3-rosbag")
    };
    let view = peers::rosbag_view()?.unwrap_or_else(|| PathBuf::from("-"));
    checker.arg(binary()?).arg(view).arg(root().join("corpus")).args(real());
    run_or(&mut checker, DIFFERS)?;
    let mut checker = script("rosbags_raw.py", "oracle-rosbags", &[ROSBAGS])?;
    checker.arg(binary()?).arg(root().join("corpus/rosbag"));
    checker.args(real().map(|real| real.join("rosbag20")));
    run_or(&mut checker, DIFFERS)
}

/// A client of the Model Context Protocol.
const FASTMCP: &str = "fastmcp==4.1.6";

/// Python packages that the code blocks in `docs/tools` need.
const TOOLS: &[&str] = &[
    duckdb::NEWEST,
    "polars==2.1.0",
    PYARROW,
    python::MCAP,
    "mcap-ros2-support",
    "rerun-sdk==0.41.0",
    FASTMCP,
];

/// Runs every code block in `docs/tools`. The packages of Spark and Sail cannot be installed
/// together. So each of them has its own environment and page.
fn tools() -> Result<()> {
    let Some(real) = real() else { return Ok(()) };
    let extension = duckdb::build()?;
    let run = |environment: &str, packages: &[&str], pages: &[&str]| {
        let python = package::release(environment, packages)?;
        let mut blocks = script_with(python, "tools.py");
        blocks.env("ROVELOG_DUCKDB", &extension).arg(root().join("docs")).arg(&real).args(pages);
        run_or(&mut blocks, "a block of docs/tools fails")
    };
    run("tools", TOOLS, &[])?;
    let sail = [&lake::SAIL[..], &["pandas>=2.2,<3", PYARROW]].concat();
    run("tools-sail", &sail, &["sail"])?;
    run("tools-spark", &[lake::SPARK, "pandas>=2.2,<3", PYARROW], &["spark"])
}

/// Compares the tables of the DuckDB extension with exported Parquet files.
fn duckdb() -> Result<()> {
    let Some(real) = real() else { return Ok(()) };
    let mut checker = script("duckdb_extension.py", "oracle-duckdb", &[duckdb::NEWEST, PYARROW])?;
    run_or(checker.arg(binary()?).arg(duckdb::build()?).arg(real), DIFFERS)
}

/// Returns the folder with the source distribution of a Python package, given as `name==version`.
/// The source distribution is downloaded once.
fn source(python: &Path, package: &str) -> Result<PathBuf> {
    let folder = root().join("target/python-sources");
    let name = package.replace("==", "-");
    let sources = folder.join(&name);
    if sources.is_dir() {
        return Ok(sources);
    }
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", package, "-d"]);
    run(pip.arg(&folder))?;
    run(Command::new("tar").arg("xzf").arg(folder.join(format!("{name}.tar.gz"))).arg("-C").arg(&folder))?;
    Ok(sources)
}
