//! `cargo xtask python`: builds the Python wheel, tests it, and uses it in an environment without
//! any other packages.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process::run;
use crate::{place, python, root};

/// Python packages that the tests need.
const PACKAGES: &[&str] = &[
    "maturin>=1.16,<2",
    "pytest",
    "pytest-xdist",
    "dask[dataframe]",
    "mypy",
    "pyright[nodejs]",
    "numpy",
    "pandas",
    "pandas-stubs",
    "polars",
    "pyarrow",
    "pyarrow-stubs",
    "duckdb",
    "jsonschema",
    "simplekml",
    "pyyaml",
    python::MCAP,
    python::PYULOG,
    python::ROCKETLOGGER,
];

/// Platform tag of the published wheel. The wheel requires glibc 2.28 (2018) or later.
const MANYLINUX: &str = "manylinux_2_28";

/// Python program that opens a log and decodes it. A fresh installation must be able to run it
/// without any other package.
const SMOKE: &str = "\
import sys, rovelog
log = rovelog.open(sys.argv[1])
topic = next(iter(log.topics.values()))
assert len(topic.table()) == topic.count == len(list(topic.messages())) > 0
print(log)
";

/// Runs the subcommand `cargo xtask python`.
pub(crate) fn command(args: &[String]) -> Result<()> {
    match args {
        [] => check(),
        [option] if option == "--manylinux" => manylinux(),
        _ => bail!("usage: python [--manylinux]"),
    }
}

/// Builds the wheel for all Linux distributions that support [`MANYLINUX`], and checks which
/// libraries the wheel needs.
fn manylinux() -> Result<()> {
    // zig can link against any version of the C library. If the wheel requires a later version than
    // it should, maturin fails.
    let python = python::with("manylinux", &[PACKAGES[0], "ziglang", "auditwheel"])?;
    let out = root().join("target/wheels-manylinux");
    let programs = python.parent().context("the interpreter is in a folder")?;
    let path = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths(std::iter::once(programs.to_path_buf()).chain(env::split_paths(&path)))?;
    let mut build = Command::new(&python);
    build.args(["-m", "maturin", "build", "--release", "--zig", "--compatibility", MANYLINUX, "--out"]);
    build.arg(&out).env("PATH", &path).env("CARGO_TARGET_DIR", place::target().join("manylinux"));
    run(build.current_dir(folder()))?;
    for wheel in fs::read_dir(&out)? {
        run(Command::new(&python).args(["-m", "auditwheel", "show"]).arg(wheel?.path()))?;
    }
    Ok(())
}

/// Runs the stage of `cargo xtask test` that tests the Python package.
pub(crate) fn check() -> Result<()> {
    let python = python::with("package", PACKAGES)?;
    let wheel = wheel(&python, "dev")?;
    install(&python, &wheel)?;
    let folder = folder();
    run(Command::new(&python).args(["-m", "mypy", "python"]).current_dir(&folder))?;
    // The tests run in their own folder. There, Python imports the installed package and not its
    // sources.
    let tests = folder.join("tests");
    run(Command::new(&python).args(["-m", "mypy.stubtest", "rovelog._core"]).current_dir(&tests))?;
    run(Command::new(&python)
        .args(["-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--numprocesses", "auto"])
        .current_dir(&folder))?;
    try_in_empty_environment(&wheel)
}

/// Python packages that are needed to build the wheel.
pub(crate) const BUILDER: &[&str] = &[PACKAGES[0]];

/// Returns the interpreter of an environment with the optimized wheel and `packages`.
pub(crate) fn release(name: &str, packages: &[&str]) -> Result<PathBuf> {
    Ok(environment("release", name, packages)?.0)
}

/// Returns the interpreter of an environment with the wheel for tests and `packages`, and the path
/// of the wheel.
pub(crate) fn development(name: &str, packages: &[&str]) -> Result<(PathBuf, PathBuf)> {
    environment("dev", name, packages)
}

fn environment(profile: &str, name: &str, packages: &[&str]) -> Result<(PathBuf, PathBuf)> {
    let builder = python::with("build", BUILDER)?;
    let wheel = wheel(&builder, profile)?;
    let python = python::with(name, packages)?;
    install(&python, &wheel)?;
    Ok((python, wheel))
}

fn folder() -> PathBuf {
    root().join("crates/rovelog-python")
}

/// Builds the wheel, and returns its path.
fn wheel(python: &Path, profile: &str) -> Result<PathBuf> {
    let out = root().join(format!("target/wheels-{profile}"));
    if out.exists() {
        fs::remove_dir_all(&out)?;
    }
    let mut build = Command::new(python);
    build.args(["-m", "maturin", "build", "--quiet", "--profile", profile, "--out"]).arg(&out);
    // Other stages have already built the dependencies with the features for tests. With the same
    // features, only pyo3 is compiled again, because maturin configures it differently.
    if profile == "dev" {
        build.args(["--features", "as-tested"]);
    }
    build.env("CARGO_TARGET_DIR", place::target());
    run(build.current_dir(folder()))?;
    let wheels = fs::read_dir(&out)?.collect::<std::io::Result<Vec<_>>>()?;
    let wheel =
        wheels.into_iter().map(|entry| entry.path()).find(|path| path.extension() == Some(OsStr::new("whl")));
    wheel.with_context(|| format!("no wheel in {}", out.display()))
}

fn install(python: &Path, wheel: &Path) -> Result<()> {
    let mut pip = Command::new(python);
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--force-reinstall",
        "--no-deps",
        "--disable-pip-version-check",
    ]);
    run(pip.arg(wheel))
}

fn try_in_empty_environment(wheel: &Path) -> Result<()> {
    let python = python::with("empty", &[])?;
    install(&python, wheel)?;
    smoke(&python)
}

/// Opens a log with an installed Python package, and runs the command line of the package.
pub(crate) fn smoke(python: &Path) -> Result<()> {
    let log = root().join("corpus/ulog/one-topic+multi-id+sync+dropout+texts+appended.ulg");
    run(Command::new(python).args(["-c", SMOKE]).arg(&log))?;
    run(Command::new(python.with_file_name("rovelog")).arg("info").arg(&log).args(["--get", "format.id"]))
}
