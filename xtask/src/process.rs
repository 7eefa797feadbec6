//! Helpers for running programs.

use std::env;
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::root;

/// Returns a cargo command in the top folder.
pub(crate) fn cargo(args: &[&str]) -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(args).current_dir(root());
    cargo
}

/// Returns the command that packages all crates. `xtask` is left out, because cargo would look for the
/// corpus generator in the registry.
pub(crate) fn cargo_package() -> Command {
    cargo(&["package", "--workspace", "--exclude", "xtask", "--no-verify", "--allow-dirty", "--quiet"])
}

/// Runs a command. Fails with its command line if it does.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("starting {}", shown(command)))?;
    ensure!(status.success(), "`{}` ended with {status}", shown(command));
    Ok(())
}

/// Runs a command that prints its own errors. Fails with this message if it does.
pub(crate) fn run_or(command: &mut Command, failure: &str) -> Result<()> {
    let status = command.status().with_context(|| format!("starting {}", shown(command)))?;
    ensure!(status.success(), "{failure}");
    Ok(())
}

/// Returns the command line as one would type it.
pub(crate) fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default();
    let words = std::iter::once(program).chain(command.get_args()).map(OsStr::to_string_lossy);
    words.collect::<Vec<_>>().join(" ")
}

/// Returns whether generated files are to be rewritten (`BLESS=1`).
pub(crate) fn blessing() -> bool {
    env::var_os("BLESS").is_some_and(|value| value == OsStr::new("1"))
}
