//! Functions for running other programs.

use std::env;
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::root;

/// Returns a cargo command that runs in the top folder of the workspace.
pub(crate) fn cargo(args: &[&str]) -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(args).current_dir(root());
    cargo
}

/// Returns the command that packages all crates except `xtask` and the plug-in for PlotJuggler. For
/// these, cargo would search the registry for the corpus generator and for `rovelog-ffi`, which are
/// not published.
pub(crate) fn cargo_package() -> Command {
    let excluded = ["--exclude", "xtask", "--exclude", "rovelog-plotjuggler"];
    let mut package = cargo(&["package", "--workspace", "--no-verify", "--allow-dirty", "--quiet"]);
    package.args(excluded);
    package
}

/// Runs a command. If the command fails, the error message contains its command line.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("starting {}", shown(command)))?;
    ensure!(status.success(), "`{}` ended with {status}", shown(command));
    Ok(())
}

/// Runs a command that prints its own errors. If the command fails, the error message is `failure`.
pub(crate) fn run_or(command: &mut Command, failure: &str) -> Result<()> {
    let status = command.status().with_context(|| format!("starting {}", shown(command)))?;
    ensure!(status.success(), "{failure}");
    Ok(())
}

/// Returns the command line as a user would type it.
pub(crate) fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default();
    let words = std::iter::once(program).chain(command.get_args()).map(OsStr::to_string_lossy);
    words.collect::<Vec<_>>().join(" ")
}

/// Returns true if the user wants generated files to be rewritten (`BLESS=1`).
pub(crate) fn blessing() -> bool {
    env::var_os("BLESS").is_some_and(|value| value == OsStr::new("1"))
}
