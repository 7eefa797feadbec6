//! `cargo xtask hostile`: runs every command on hostile logs, and holds time and memory to the
//! limits that `docs/internals/reliability.md` lists.

use std::process::Command;

use anyhow::{Result, bail};

use crate::process::run_or;
use crate::{place, root, size};

/// Size of each log in bytes.
const SIZE: u64 = 20_000_000;

/// Runs the subcommand: `[--size SIZE] [--only TEXT]`.
pub(crate) fn command(args: &[String]) -> Result<()> {
    let mut script = Command::new("python3");
    script.arg("-B").arg(root().join("oracle/hostile.py")).arg(place::binary()?);
    let (bytes, only) = match args {
        [] => (SIZE, None),
        [size, bytes] if size == "--size" => (size::parse(bytes)?, None),
        [only, text] if only == "--only" => (SIZE, Some(text)),
        [size, bytes, only, text] if size == "--size" && only == "--only" => {
            (size::parse(bytes)?, Some(text))
        }
        _ => bail!("usage: hostile [--size 20MB] [--only TEXT]"),
    };
    script.arg(bytes.to_string());
    if let Some(text) = only {
        script.args(["--only", text, "--rows"]);
    }
    run_or(&mut script, "a command takes more than it may")
}
