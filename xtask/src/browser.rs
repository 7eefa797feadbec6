//! Tests reports and `rovelog view` in a browser, and makes the screenshots for the documentation.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Result, ensure};

use crate::process::{run, run_or};
use crate::{package, root};

/// Python packages for the tests. playwright controls Chromium, axe checks accessibility, and
/// pillow writes images with a palette.
const PACKAGES: &[&str] = &["playwright==1.65.2", "axe-playwright-python==0.1.8", "pillow"];

/// Returns the name of a Chromium browser that is installed.
fn chromium() -> Option<OsString> {
    let named = env::var_os("ROVELOG_BROWSER");
    let common = ["chromium", "chromium-browser", "google-chrome", "chrome"].map(OsString::from);
    named.into_iter().chain(common).find(|name| {
        let mut version = Command::new(name);
        version.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
        version.status().is_ok_and(|status| status.success())
    })
}

/// Returns the path of a program. Playwright requires a path instead of the name of a program.
fn path(program: &OsString) -> PathBuf {
    let folders = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&folders).map(|folder| folder.join(program)).find(|path| path.is_file());
    found.unwrap_or_else(|| program.into())
}

/// Returns the command that runs a Python script, or `None` if there is no browser. The first two
/// arguments of the script are the paths of the browser and of the program `rovelog`. If `rovelog`
/// is a file name without a folder, the program of the script's Python environment is used.
pub(crate) fn script(script: &Path, rovelog: &Path) -> Result<Option<Command>> {
    let Some(chromium) = chromium() else { return Ok(None) };
    let (python, _) = package::development("browser", PACKAGES)?;
    let rovelog = python.with_file_name(rovelog);
    let mut command = Command::new(python);
    command.arg("-B").arg(script).arg(path(&chromium)).arg(rovelog);
    Ok(Some(command))
}

/// Returns the command that runs a script in `crates/rovelog-view/tests` with the program of the
/// wheel.
fn view(name: &str) -> Result<Option<Command>> {
    script(&root().join("crates/rovelog-view/tests").join(name), Path::new("rovelog"))
}

/// Runs the stage of `cargo xtask test` that tests pages in a browser.
pub(crate) fn check() -> Result<()> {
    let Some(mut tests) = view("browser.py")? else {
        println!("SKIPPED: no Chromium (ROVELOG_BROWSER names one); the page of rovelog view is not tested");
        return Ok(());
    };
    match corpus_generator::real() {
        Some(real) => drop(tests.arg(real)),
        None => println!("SKIPPED: real logs; the page shows logs of the corpus"),
    }
    run_or(&mut tests, "the page of rovelog view fails in the browser")
}

/// Runs the subcommand `screenshots`.
pub(crate) fn screenshots(args: &[String]) -> Result<()> {
    ensure!(args.is_empty(), "screenshots takes no options");
    let (Some(mut screenshots), Some(real)) = (view("screenshots.py")?, corpus_generator::real()) else {
        anyhow::bail!(
            "screenshots needs Chromium (ROVELOG_BROWSER names one) and the real logs (ROVELOG_REAL)"
        );
    };
    let out = root().join("docs/pictures");
    fs::create_dir_all(&out)?;
    run(screenshots.arg(real).arg(out))
}
