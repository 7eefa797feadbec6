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
mod survivors;
mod tools;
mod ulog;
mod vel;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use crate::process::run;
use crate::root;

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
    ("survivors", survivors::check),
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
