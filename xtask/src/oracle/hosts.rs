//! Checks of programs that use Rovelog: nanoarrow reads logs through the C interface, the pages of
//! `docs/tools` run in languages that call it, and PlotJuggler's SDK loads the plug-in.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use corpus_generator::real;

use crate::process::{cargo, run, run_or};
use crate::python::{self, script_with};
use crate::{c_library, place, root};

/// A repository whose sources a check compiles.
struct Sources {
    /// Address of the repository.
    url: &'static str,
    /// Tag or commit that is checked out.
    revision: &'static str,
    /// Environment variable that names a local copy of the repository.
    variable: &'static str,
    /// Name of the checkout in `target/hosts`.
    name: &'static str,
}

/// nanoarrow, which reads Arrow streams in C.
const NANOARROW: Sources = Sources {
    url: "https://github.com/apache/arrow-nanoarrow",
    revision: "apache-arrow-nanoarrow-0.8.0",
    variable: "ROVELOG_NANOARROW",
    name: "arrow-nanoarrow",
};

/// The SDK of PlotJuggler, version 0.23, with the loader of plug-ins.
const PLOTJUGGLER: Sources = Sources {
    url: "https://github.com/PlotJuggler/plotjuggler_sdk",
    revision: "339a53b",
    variable: "ROVELOG_PLOTJUGGLER_SDK",
    name: "plotjuggler_sdk",
};

/// Pages of `docs/tools` that need the C library.
const PAGES: &[&str] = &["c", "matlab", "julia", "r"];

/// Builds the C library, reads all logs with nanoarrow under valgrind, and runs the pages.
pub(super) fn check() -> Result<()> {
    let folder = root().join("target/hosts");
    let prefix = folder.join("prefix");
    c_library::install(&prefix)?;
    let rovelog = place::binary()?;
    if let Some(checkout) = NANOARROW.checkout(&folder)? {
        // nanoarrow is compiled as one file.
        let bundle = folder.join("nanoarrow");
        let mut bundler = Command::new("python3");
        bundler.arg(checkout.join("ci/scripts/bundle.py")).args(["--header-namespace", ""]);
        bundler.arg("--source-output-dir").arg(&bundle).arg("--include-output-dir").arg(&bundle);
        run(&mut bundler)?;
        let mut hosts = script_with(python::with("hosts", &[])?, "hosts.py");
        hosts.arg(&rovelog).arg(&prefix).arg(bundle).arg(root().join("corpus")).args(real());
        run_or(&mut hosts, "the C interface and the program differ")?;
    }
    let Some(real) = real() else { return Ok(()) };
    let mut pages = script_with(python::with("hosts", &[])?, "tools.py");
    pages.arg(root().join("docs")).arg(real).args(PAGES);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = rovelog.parent().map(Path::to_path_buf).into_iter().chain(std::env::split_paths(&path));
    pages.env("PATH", std::env::join_paths(folders)?);
    pages.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig")).env("LD_LIBRARY_PATH", prefix.join("lib"));
    run_or(&mut pages, "a block of docs/tools fails")
}

/// Builds the plug-in for PlotJuggler, loads it with the SDK, and imports all real logs.
pub(super) fn plotjuggler() -> Result<()> {
    let Some(real) = real() else { return Ok(()) };
    let Some(sdk) = PLOTJUGGLER.checkout(&root().join("target/hosts"))? else { return Ok(()) };
    run(&mut cargo(&["build", "--quiet", "--release", "-p", "rovelog-plotjuggler"]))?;
    let plugin = place::target().join("release").join(format!("{DLL_PREFIX}rovelog_plotjuggler{DLL_SUFFIX}"));
    let mut import = script_with(python::with("hosts", &[])?, "plotjuggler.py");
    import.arg(place::binary()?).arg(plugin).arg(sdk).arg(real);
    run_or(&mut import, "the plug-in and the program differ")
}

impl Sources {
    /// Returns the folder with the sources, which are cloned once. Prints a note and returns `None`
    /// if the repository cannot be cloned.
    ///
    /// # Errors
    /// Returns an error if the repository does not have the revision.
    fn checkout(&self, folder: &Path) -> Result<Option<PathBuf>> {
        let checkout = folder.join(self.name);
        if !checkout.is_dir() {
            let from = std::env::var_os(self.variable).unwrap_or_else(|| self.url.into());
            let mut clone = Command::new("git");
            clone.args(["clone", "--quiet"]).arg(from).arg(&checkout);
            if run(&mut clone).is_err() {
                println!("SKIPPED: {} cannot be cloned; {} names a copy", self.url, self.variable);
                return Ok(None);
            }
        }
        let mut select = Command::new("git");
        select.arg("-C").arg(&checkout).args(["checkout", "--quiet", self.revision]);
        run(&mut select)?;
        Ok(Some(checkout))
    }
}
