//! `cargo xtask site`: the documentation as a web site, from the Markdown of the repository.

mod links;
mod schema;
mod stage;

use std::fs;
use std::process::Command;

use anyhow::{Result, bail};

use crate::process::run;
use crate::{python, root};

/// The generator, what makes pages of docstrings, and what wraps signatures. Pinned: the generator is
/// before its 1.0.
const PACKAGES: &[&str] = &["zensical==0.0.73", "mkdocstrings-python==2.0.11", "ruff==0.14.6"];

/// Runs the subcommand.
pub(crate) fn command(args: &[String]) -> Result<()> {
    let opens = match args {
        [] => false,
        [option] if option == "--external" => true,
        _ => bail!("site takes --external or nothing"),
    };
    let root = root();
    let folder = root.join("target/site");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    stage::lay(&root, &folder)?;
    let python = python::with("site", PACKAGES)?;
    // In the folder of the pages: the generator looks for its configuration there. Strict: a link
    // between pages that leads nowhere ends it.
    let mut build = Command::new(python);
    build.args(["-m", "zensical", "build", "--strict", "--clean"]).env("NO_COLOR", "1");
    run(build.current_dir(&folder))?;
    let pages = links::check(&folder.join("html"), opens)?;
    println!("site: {pages} pages, target/site/html/index.html");
    Ok(())
}
