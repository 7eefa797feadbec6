//! Reads logs through the C interface with nanoarrow, and runs the pages of `docs/tools` for C and
//! for languages that use the C interface.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use corpus_generator::real;

use crate::process::{run, run_or};
use crate::python::{self, script_with};
use crate::{c_library, place, root};

/// Repository of nanoarrow, which reads Arrow streams in C.
const NANOARROW: &str = "https://github.com/apache/arrow-nanoarrow";
const NANOARROW_TAG: &str = "apache-arrow-nanoarrow-0.8.0";

/// Pages of `docs/tools` that need the C library.
const PAGES: &[&str] = &["c", "matlab", "julia", "r"];

/// Builds the C library, reads all logs with nanoarrow under valgrind, and runs the pages.
pub(super) fn check() -> Result<()> {
    let folder = root().join("target/hosts");
    let prefix = folder.join("prefix");
    c_library::install(&prefix)?;
    let rovelog = place::binary()?;
    match nanoarrow(&folder) {
        Some(nanoarrow) => {
            let mut hosts = script_with(python::with("hosts", &[])?, "hosts.py");
            hosts.arg(&rovelog).arg(&prefix).arg(nanoarrow).arg(root().join("corpus")).args(real());
            run_or(&mut hosts, "the C interface and the program differ")?;
        }
        None => println!("SKIPPED: {NANOARROW} cannot be cloned; ROVELOG_NANOARROW names a copy"),
    }
    let Some(real) = real() else { return Ok(()) };
    let mut pages = script_with(python::with("hosts", &[])?, "tools.py");
    pages.arg(root().join("docs")).arg(real).args(PAGES);
    pages.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig")).env("LD_LIBRARY_PATH", prefix.join("lib"));
    run_or(&mut pages, "a block of docs/tools fails")
}

/// Returns the folder with the sources of nanoarrow, bundled as one C file. Returns `None` if the
/// repository cannot be cloned.
fn nanoarrow(folder: &Path) -> Option<PathBuf> {
    let bundle = folder.join("nanoarrow");
    if bundle.join("nanoarrow.c").is_file() {
        return Some(bundle);
    }
    let checkout = folder.join("arrow-nanoarrow");
    if !checkout.is_dir() {
        let from = std::env::var_os("ROVELOG_NANOARROW").unwrap_or_else(|| NANOARROW.into());
        let mut git = Command::new("git");
        git.args(["clone", "--quiet", "--depth", "1", "--branch", NANOARROW_TAG]).arg(from).arg(&checkout);
        run(&mut git).ok()?;
    }
    let mut bundler = Command::new("python3");
    bundler.arg(checkout.join("ci/scripts/bundle.py")).args(["--header-namespace", ""]);
    bundler.arg("--source-output-dir").arg(&bundle).arg("--include-output-dir").arg(&bundle);
    run(&mut bundler).ok()?;
    Some(bundle)
}
