//! `cargo xtask oracle ulog`: other people's readers as judges of ours, value by value.
//!
//! The judges are Python scripts in `oracle/`. They see only what the release binary prints, so
//! they share nothing with the readers they judge.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result, bail, ensure};

use crate::root;

/// What the scripts need; the versions are the ones the documents speak of.
const REQUIREMENTS: &[&str] = &["pyulog==1.3.0", "numpy"];

/// The subcommand.
pub(crate) fn command(args: &[String]) -> Result<()> {
    ensure!(args == ["ulog"], "oracle needs the name of a format: ulog");
    let binary = binary()?;
    let mut judge = script("ulog_pyulog.py")?;
    judge.arg(binary).arg(root().join("corpus"));
    if let Some(real) = real() {
        judge.arg(real);
    }
    let status = judge.status().context("starting the script")?;
    ensure!(status.success(), "rovelog and pyulog differ where they are not meant to");
    Ok(())
}

/// The folder of real logs, from `ROVELOG_REAL` or beside the checkout; says so where there is none.
pub(crate) fn real() -> Option<PathBuf> {
    let folder = env::var_os("ROVELOG_REAL").map_or_else(|| root().join("../shared/real"), PathBuf::from);
    if folder.join("ulog").is_dir() {
        return Some(folder);
    }
    println!("SKIPPED: no real logs in {} (set ROVELOG_REAL)", folder.display());
    None
}

/// The release binary of `rovelog`, built now.
pub(crate) fn binary() -> Result<PathBuf> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--quiet", "--release", "-p", "rovelog-cli"])
        .current_dir(root())
        .status()
        .context("starting cargo")?;
    ensure!(status.success(), "building rovelog ended with {status}");
    let name = format!("rovelog{}", env::consts::EXE_SUFFIX);
    let binary = target().join("release").join(name);
    ensure!(binary.is_file(), "cargo built no {}", binary.display());
    Ok(binary)
}

/// A script of `oracle/`, ready for its arguments.
pub(crate) fn script(name: &str) -> Result<Command> {
    let mut command = Command::new(python()?);
    // No bytecode beside the sources.
    command.arg("-B").arg(root().join("oracle").join(name));
    Ok(command)
}

fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |folder| root().join(folder))
}

/// The Python of an environment that has what the scripts need; made on first use.
fn python() -> Result<PathBuf> {
    let folder = target().join("oracle-venv");
    let python = folder.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    let stamp = folder.join("requirements");
    let wanted = REQUIREMENTS.join("\n");
    if python.is_file() && fs::read_to_string(&stamp).is_ok_and(|have| have == wanted) {
        return Ok(python);
    }
    println!("making {} with {}", folder.display(), REQUIREMENTS.join(", "));
    let system = if cfg!(windows) { "python" } else { "python3" };
    run(Command::new(system).args(["-m", "venv"]).arg(&folder))?;
    run(Command::new(&python).args(["-m", "pip", "install", "--quiet"]).args(REQUIREMENTS))?;
    fs::write(&stamp, wanted).with_context(|| format!("writing {}", stamp.display()))?;
    Ok(python)
}

fn run(command: &mut Command) -> Result<()> {
    let program = Path::new(command.get_program()).display().to_string();
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => bail!("{program} ended with {status}"),
        Err(error) => bail!("starting {program}: {error}"),
    }
}
