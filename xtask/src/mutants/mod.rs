//! `cargo xtask mutants FILE...`: changes the code of a file, line by line, and runs the tests of its
//! crate after each change (cargo-mutants). A change that no test notices is a line without a test.
//!
//! Changes that cannot make a difference, or only one of speed, are in `.cargo/mutants.toml` with the
//! reason.

use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::root;
use crate::tools::{self, MUTANTS};

/// Longest time of the tests after a change, in seconds: a loop without end counts as noticed.
const TIMEOUT: &str = "180";

/// Runs the subcommand.
pub(crate) fn command(args: &[String]) -> Result<()> {
    ensure!(!args.is_empty(), "usage: mutants FILE... [-- OPTION OF cargo-mutants...]");
    let (files, options) = match args.iter().position(|arg| arg == "--") {
        Some(at) => (&args[..at], &args[at + 1..]),
        None => (args, &[][..]),
    };
    for file in files {
        ensure!(root().join(file).is_file(), "there is no file {file}");
    }
    let program = tools::installed(MUTANTS)?;
    let folder = root().join("target/mutants");
    fs::create_dir_all(&folder)?;
    let mut mutants = Command::new(program);
    mutants.args([
        "mutants",
        // Otherwise only the files of the default member of the workspace are found.
        "--workspace",
        "--all-features",
        "--test-tool",
        "nextest",
        "--timeout",
        TIMEOUT,
        "--no-shuffle",
    ]);
    mutants.arg("--output").arg(&folder).args(files.iter().flat_map(|file| ["--file", file])).args(options);
    // Nothing else is rebuilt; the copies of the sources share what does not change.
    mutants.env("CARGO_TARGET_DIR", folder.join("build"));
    // The corpus is what must notice; snapshots are compared, not written.
    mutants.env("ROVELOG_REAL", folder.join("none")).env("INSTA_UPDATE", "no").env_remove("BLESS");
    let status = mutants.current_dir(root()).status().context("starting cargo-mutants")?;
    let list = |name| fs::read_to_string(folder.join(format!("mutants.out/{name}.txt"))).unwrap_or_default();
    let [caught, slow, unviable, missed] = ["caught", "timeout", "unviable", "missed"].map(list);
    let count = |text: &str| text.lines().count();
    println!(
        "{} noticed, {} too slow, {} do not compile, {} not noticed",
        count(&caught),
        count(&slow),
        count(&unviable),
        count(&missed),
    );
    ensure!(count(&caught) + count(&slow) + count(&missed) > 0, "nothing was changed");
    ensure!(missed.is_empty(), "changes that no test notices:\n{missed}");
    ensure!(status.success(), "cargo-mutants ended with {status}");
    Ok(())
}
