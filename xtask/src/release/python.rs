//! Builds the wheel and the source distribution, and installs each of them in an empty environment.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};

use super::{Version, empty, try_program};
use crate::process::run;
use crate::{package, place, python, root};

/// Builds and tests the wheel and the source distribution.
pub(super) fn check(version: &Version, out: &Path) -> Result<()> {
    let maturin = python::with("build", package::BUILDER)?;
    let build = |args: &[&str]| {
        let mut build = Command::new(&maturin);
        build.args(["-m", "maturin"]).args(args).arg("--out").arg(out);
        build.env("CARGO_TARGET_DIR", place::target()).current_dir(root().join("crates/rovelog-python"));
        run(&mut build)
    };
    build(&["build", "--locked", "--profile", &version.profile])?;
    let files = fs::read_dir(out)?.collect::<std::io::Result<Vec<_>>>()?;
    let wheel = files.iter().map(fs::DirEntry::path).find(|path| path.extension() == Some(OsStr::new("whl")));
    install("wheel", &wheel.context("maturin built no wheel")?, &version.profile)?;
    build(&["sdist"])?;
    install("sdist", &out.join(format!("rovelog-{}.tar.gz", version.number)), &version.profile)
}

/// Installs a wheel or a source distribution in a new environment, and tests it.
fn install(name: &str, file: &Path, profile: &str) -> Result<()> {
    let home = empty(name)?;
    run(Command::new("python3").args(["-m", "venv"]).arg(home.join("env")))?;
    let python = home.join("env/bin/python");
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet", "--no-deps"]).arg(file);
    // The profile and the target folder are the same as in other builds, so that the dependencies
    // are compiled only once.
    pip.env("CARGO_TARGET_DIR", place::target()).env("MATURIN_PEP517_ARGS", format!("--profile {profile}"));
    run(&mut pip)?;
    package::smoke(&python)?;
    try_program(&home.join("env/bin/rovelog"), &home)?;
    println!("{}: installed", file.display());
    Ok(())
}
