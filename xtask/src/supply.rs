//! `cargo xtask supply`: known vulnerabilities and sources of dependencies (cargo-deny), and the public
//! API against the last version (cargo-semver-checks). `cargo xtask tidy` checks licences and
//! duplicates, without network.

use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

use crate::process::run;
use crate::root;
use crate::tools::{self, DENY, SEMVER};

/// Checks that need no database.
const ALWAYS: [&str; 2] = ["bans", "sources"];

/// Runs the subcommand.
pub(crate) fn command(args: &[String]) -> Result<()> {
    ensure!(args.is_empty(), "supply takes no options");
    match tools::installed(DENY) {
        Ok(deny) => {
            let start = |what: &[&str]| {
                let mut start = Command::new(&deny);
                start.args(["--all-features", "check", "--hide-inclusion-graph"]).args(what);
                start.current_dir(root());
                start
            };
            run(&mut start(&ALWAYS))?;
            advisories(&mut start(&["advisories"]))?;
        }
        Err(error) => println!("SKIPPED: advisories, bans and sources: {error:#}"),
    }
    api()
}

/// Looks for advisories about dependencies. Without network there is no database: that is not the
/// fault of a dependency.
fn advisories(check: &mut Command) -> Result<()> {
    let output = check.output().context("starting cargo-deny")?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        println!("advisories: none about a dependency");
        return Ok(());
    }
    if said.contains("failed to fetch advisory database") {
        println!("SKIPPED: advisories: their database cannot be fetched");
        return Ok(());
    }
    bail!("advisories:\n{said}")
}

/// Compares the public API of the libraries with that of the last version.
fn api() -> Result<()> {
    let output = Command::new("git")
        .args(["describe", "--tags", "--abbrev=0", "--match", "v*"])
        .current_dir(root())
        .output()
        .context("starting git")?;
    let tag = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if !output.status.success() || tag.is_empty() {
        println!("SKIPPED: the public API: no version is tagged to compare it with");
        return Ok(());
    }
    match tools::installed(SEMVER) {
        Ok(semver) => {
            let mut check = Command::new(semver);
            check.args(["semver-checks", "--workspace", "--baseline-rev", &tag]);
            // The command line and the extension module are no libraries for others.
            check.args(["--exclude", "rovelog-cli", "--exclude", "rovelog-python"]);
            run(check.current_dir(root()))
        }
        Err(error) => {
            println!("SKIPPED: the public API: {error:#}");
            Ok(())
        }
    }
}
