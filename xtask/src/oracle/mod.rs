//! `cargo xtask oracle FORMAT`: independent readers as a check of ours, value by value.
//!
//! The checks are Python scripts in `oracle/`. They read only the output of the release binary, so
//! they share nothing with the readers they check.

mod ask;
mod export;
mod health;
mod plots;
mod recovered;
mod rld;
mod rosbag;
mod suites;
mod tools;
pub(crate) mod ulog;
mod vel;

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail, ensure};

use crate::process::{cargo, run};
use crate::{python, root};

/// Compares the values, and fails at an unexpected difference.
type Check = fn() -> Result<()>;

/// The checks, by format.
const CHECKS: &[(&str, Check)] = &[
    ("ulog", ulog::check),
    ("rld", rld::check),
    ("rosbag", rosbag::check),
    ("vel", vel::check),
    ("export", export::check),
    ("health", health::check),
    ("plots", plots::check),
    ("ask", ask::check),
    ("recovered", recovered::check),
    ("suites", suites::check),
    ("tools", tools::check),
];

/// Runs the subcommand.
pub(crate) fn command(args: &[String]) -> Result<()> {
    let check = match args {
        [format] => CHECKS.iter().find(|check| check.0 == format),
        _ => None,
    };
    let Some((_, check)) = check else {
        let names: Vec<_> = CHECKS.iter().map(|check| check.0).collect();
        bail!("oracle needs the name of a check: {}", names.join(", "));
    };
    check()
}

/// Returns the folder of real logs, from `ROVELOG_REAL` or next to the checkout; prints a note if
/// there is none.
pub(crate) fn real() -> Option<PathBuf> {
    let folder = env::var_os("ROVELOG_REAL").map_or_else(|| root().join("../shared/real"), PathBuf::from);
    if folder.is_dir() {
        return Some(folder);
    }
    println!("SKIPPED: no real logs in {} (set ROVELOG_REAL)", folder.display());
    None
}

/// Builds the release binary of `rovelog`. Returns its path.
pub(crate) fn binary() -> Result<PathBuf> {
    run(&mut cargo(&["build", "--quiet", "--release", "-p", "rovelog-cli", "--all-features"]))?;
    let name = format!("rovelog{}", env::consts::EXE_SUFFIX);
    let binary = target().join("release").join(name);
    ensure!(binary.is_file(), "cargo built no {}", binary.display());
    Ok(binary)
}

/// Returns a script of `oracle/`, ready for its arguments, with a Python that has `packages`.
fn script(name: &str, environment: &str, packages: &[&str]) -> Result<Command> {
    Ok(script_with(python::with(environment, packages)?, name))
}

/// Returns a script of `oracle/` with this interpreter.
fn script_with(python: PathBuf, name: &str) -> Command {
    let mut command = Command::new(python);
    // Writes no bytecode next to the sources.
    command.arg("-B").arg(root().join("oracle").join(name));
    command
}

/// Returns the folder of a Python package's source distribution (`name==version`), downloaded once.
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

/// Returns cargo's target folder.
pub(crate) fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |folder| root().join(folder))
}
