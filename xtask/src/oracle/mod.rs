//! `cargo xtask oracle FORMAT`: other people's readers as judges of ours, value by value.
//!
//! The judges are Python scripts in `oracle/`. They see only what the release binary prints, so
//! they share nothing with the readers they judge.

mod export;
mod recovered;
mod rld;
mod rosbag;
pub(crate) mod ulog;
mod vel;

use std::env;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, bail, ensure};

use crate::process::{cargo, run};
use crate::{python, root};

/// Compares, and fails where there is a difference that is not meant.
type Judge = fn() -> Result<()>;

/// The judges, by format.
const JUDGES: &[(&str, Judge)] = &[
    ("ulog", ulog::judge),
    ("rld", rld::judge),
    ("rosbag", rosbag::judge),
    ("vel", vel::judge),
    ("export", export::judge),
    ("recovered", recovered::judge),
];

/// The subcommand.
pub(crate) fn command(args: &[String]) -> Result<()> {
    let judge = match args {
        [format] => JUDGES.iter().find(|judge| judge.0 == format),
        _ => None,
    };
    let Some((_, judge)) = judge else {
        let names: Vec<_> = JUDGES.iter().map(|judge| judge.0).collect();
        bail!("oracle needs what is to be judged: {}", names.join(", "));
    };
    judge()
}

/// The folder of real logs, from `ROVELOG_REAL` or beside the checkout; says so where there is none.
pub(crate) fn real() -> Option<PathBuf> {
    let folder = env::var_os("ROVELOG_REAL").map_or_else(|| root().join("../shared/real"), PathBuf::from);
    if folder.is_dir() {
        return Some(folder);
    }
    println!("SKIPPED: no real logs in {} (set ROVELOG_REAL)", folder.display());
    None
}

/// The release binary of `rovelog`, built now.
pub(crate) fn binary() -> Result<PathBuf> {
    run(&mut cargo(&["build", "--quiet", "--release", "-p", "rovelog-cli"]))?;
    let name = format!("rovelog{}", env::consts::EXE_SUFFIX);
    let binary = target().join("release").join(name);
    ensure!(binary.is_file(), "cargo built no {}", binary.display());
    Ok(binary)
}

/// A script of `oracle/`, ready for its arguments, with a Python that has `packages`.
fn script(name: &str, environment: &str, packages: &[&str]) -> Result<Command> {
    Ok(script_with(python::with(environment, packages)?, name))
}

/// A script of `oracle/` with this interpreter.
fn script_with(python: PathBuf, name: &str) -> Command {
    let mut command = Command::new(python);
    // No bytecode beside the sources.
    command.arg("-B").arg(root().join("oracle").join(name));
    command
}

/// Where cargo builds.
pub(crate) fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |folder| root().join(folder))
}
