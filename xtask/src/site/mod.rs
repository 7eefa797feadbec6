//! `cargo xtask site`: builds the documentation site from the Markdown files in the repository.

mod links;
mod schema;
mod stage;

use std::fs;
use std::process::Command;

use anyhow::{Result, bail};

use crate::process::run;
use crate::{python, root, web};

/// Python packages: the site generator, its plugin for docstrings, and a formatter for signatures.
/// The versions are fixed, because the generator is not stable yet.
const PACKAGES: &[&str] = &["zensical==0.0.73", "mkdocstrings-python==2.0.11", "ruff==0.14.6"];

/// Runs the subcommand `cargo xtask site`.
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
    // The generator searches the current folder for its configuration. With `--strict`, a broken
    // link between pages is an error.
    let mut build = Command::new(python);
    build.args(["-m", "zensical", "build", "--strict", "--clean"]).env("NO_COLOR", "1");
    run(build.current_dir(&folder))?;
    if let Some(web) = web::build()? {
        let open = folder.join("html/open");
        fs::create_dir_all(&open)?;
        fs::copy(web.join("page/index.html"), open.join("index.html"))?;
    }
    let pages = links::check(&folder.join("html"), external)?;
    println!("site: {pages} pages in target/site/html");
    Ok(())
}
