//! A Python of our own under target/, with the packages that a task asks for.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::root;

/// The interpreter of the environment `target/python-<name>`, with these packages in these versions.
pub(crate) fn with(name: &str, packages: &[&str]) -> Result<PathBuf> {
    let folder = root().join(format!("target/python-{name}"));
    let python = folder.join("bin/python");
    let stamp = folder.join("packages");
    let wanted = packages.join("\n");
    if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(python);
    }
    run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    if !packages.is_empty() {
        run(Command::new(&python).args(["-m", "pip", "install", "--quiet"]).args(packages))?;
    }
    std::fs::write(&stamp, wanted)?;
    Ok(python)
}

fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("starting {command:?}"))?;
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(())
}
