//! Running other programs, and finding files.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::root;

/// Returns a cargo command in the top folder.
pub(crate) fn cargo(args: &[&str]) -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(args).current_dir(root());
    cargo
}

/// Runs a command to its end; a failure is an error.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("starting {}", shown(command)))?;
    ensure!(status.success(), "`{}` ended with {status}", shown(command));
    Ok(())
}

/// Runs a command that prints its own errors; a failure gives this message.
pub(crate) fn run_or(command: &mut Command, otherwise: &str) -> Result<()> {
    let status = command.status().with_context(|| format!("starting {}", shown(command)))?;
    ensure!(status.success(), "{otherwise}");
    Ok(())
}

/// Returns a command as typed in a shell.
pub(crate) fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default();
    let words = std::iter::once(program).chain(command.get_args()).map(OsStr::to_string_lossy);
    words.collect::<Vec<_>>().join(" ")
}

/// Returns whether generated files should be rewritten.
pub(crate) fn blessing() -> bool {
    env::var_os("BLESS").is_some_and(|value| value == OsStr::new("1"))
}

/// Returns all files below a folder by relative path, sorted, without build output and `.git`.
pub(crate) fn files_below(root: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root.join(&folder))? {
            let entry = entry?;
            let name = folder.join(entry.file_name());
            if !entry.file_type()?.is_dir() {
                found.push(name);
            } else if !name.ends_with("target") && !name.ends_with(".git") {
                folders.push(name);
            }
        }
    }
    found.sort();
    Ok(found)
}
