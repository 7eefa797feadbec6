//! Checks that the first command in the README works as written there. Its build has no optional
//! features. So commands that need such a feature must print how to get it.

use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::{place, root};

/// Command lines, each with the Cargo feature that it requires.
const NEED_FEATURES: [(&[&str], &str); 5] = [
    (&["ingest", "logs/", "-o", "lake/"], "lake"),
    (&["lake", "check", "lake/"], "lake"),
    (&["view", "logs/"], "view"),
    (&["info", "s3://bucket/log.ulg"], "remote"),
    (&["export", "corpus/ulog/all-basic-types.ulg", "-o", "all.mcap"], "mcap"),
];

/// Runs the stage of `cargo xtask test` that checks the README.
pub(crate) fn check() -> Result<()> {
    let readme = fs::read_to_string(root().join("README.md"))?;
    let first = readme.lines().map(str::trim).find(|line| line.starts_with("cargo run --release -- info "));
    let mut words = first.context("README.md has no first command")?.split(' ').skip(1);
    let mut first = Command::new("cargo");
    first.args(words.next()).arg("--quiet").args(words).current_dir(root());
    let output = first.output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    print!("{}", String::from_utf8_lossy(&output.stdout));
    ensure!(
        output.status.success() && errors.is_empty(),
        "the first command must succeed, and its build must have no warning: {errors}"
    );
    let program = place::target().join("release").join(format!("rovelog{}", std::env::consts::EXE_SUFFIX));
    for (args, feature) in NEED_FEATURES {
        let output = Command::new(&program).args(args).current_dir(root()).output()?;
        let errors = String::from_utf8_lossy(&output.stderr);
        let hint = format!("crates/rovelog-cli --features {feature}");
        ensure!(
            output.status.code() == Some(1)
                && errors.contains("this build of rovelog")
                && errors.contains(&hint),
            "`rovelog {}` of a build without features does not name the feature: {errors}",
            args.join(" ")
        );
    }
    Ok(())
}
