//! `cargo xtask site`: builds the documentation site from the Markdown of the repository.

mod links;
mod schema;
mod stage;

use std::fs;
use std::process::Command;

use anyhow::{Result, bail};

use crate::process::run;
use crate::{python, root};

/// The generator, the plugin for docstrings, and the formatter of signatures. The versions are pinned
/// because the generator is not stable yet.
const PACKAGES: &[&str] = &["zensical==0.0.73", "mkdocstrings-python==2.0.11", "ruff==0.14.6"];

/// Runs the subcommand.
pub(crate) fn command(args: &[String]) -> Result<()> {
    let external = match args {
        [] => false,
        [option] if option == "--external" => true,
        _ => bail!("usage: site [--external]"),
    };
    let root = root();
    let folder = root.join("target/site");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    stage::write(&root, &folder)?;
    let python = python::with("site", PACKAGES)?;
    // The generator looks for its configuration in the current folder. `--strict` fails at a broken link
    // between pages.
    let mut build = Command::new(python);
    build.args(["-m", "zensical", "build", "--strict", "--clean"]).env("NO_COLOR", "1");
    run(build.current_dir(&folder))?;
    let pages = links::check(&folder.join("html"), external)?;
    println!("site: {pages} pages in target/site/html");
    Ok(())
}
