//! `cargo xtask targets`: whether the crates compile for other processors and systems, as far as this
//! machine can tell.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use crate::process::cargo;
use crate::{place, root};

/// Targets, and the crates that are checked for them.
const TARGETS: &[(&str, &[&str])] = &[
    ("i686-unknown-linux-gnu", EVERYWHERE),
    ("aarch64-unknown-linux-gnu", EVERYWHERE),
    ("x86_64-pc-windows-msvc", EVERYWHERE),
    ("aarch64-apple-darwin", EVERYWHERE),
    // Without files: logs in memory.
    ("wasm32-unknown-unknown", &["ulog-format", "rld-format", "rosbag12", "vel-format"]),
    // Records only: columns have the byte order of the log.
    ("powerpc64-unknown-linux-gnu", RECORDS),
];

const EVERYWHERE: &[&str] = &["rovelog", "rovelog-export"];
const RECORDS: &[&str] = &["rovelog-core"];

/// Runs the subcommand.
pub(crate) fn command(args: &[String]) -> Result<()> {
    ensure!(args.is_empty(), "targets takes no options");
    let mut failed = Vec::new();
    for (target, crates) in TARGETS {
        let std = match standard_library(target)? {
            Ok(std) => std,
            Err(why) => {
                println!("SKIPPED: {target}: {why}");
                continue;
            }
        };
        for name in *crates {
            let mut check = match std {
                Std::Installed => cargo(&["check", "--quiet"]),
                Std::Source => {
                    let mut check = Command::new("cargo");
                    check.args(["+nightly", "check", "--quiet", "-Zbuild-std=std,panic_abort"]);
                    check.current_dir(root());
                    // The toolchain of this run would be used otherwise.
                    check.env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN");
                    check
                }
            };
            check.args(["--target", target, "-p", name]);
            if *crates == RECORDS {
                check.arg("--no-default-features");
            }
            check.env("CARGO_TARGET_DIR", place::target().join("targets"));
            let status = check.status().context("starting cargo")?;
            println!("{target}: {name}: {}", if status.success() { "compiles" } else { "fails" });
            if !status.success() {
                failed.push(format!("{name} for {target}"));
            }
        }
    }
    ensure!(failed.is_empty(), "does not compile: {}", failed.join(", "));
    Ok(())
}

/// Where the standard library of a target comes from.
#[derive(Clone, Copy)]
enum Std {
    Installed,
    /// It is built from its source, by the nightly compiler.
    Source,
}

/// Returns where the standard library of a target comes from, or why there is none.
fn standard_library(target: &str) -> Result<std::result::Result<Std, String>> {
    let sysroot = |toolchain: &[&str]| -> Result<Option<PathBuf>> {
        let mut rustc = Command::new("rustc");
        rustc.args(toolchain).args(["--print", "sysroot"]).current_dir(root()).stderr(Stdio::null());
        if !toolchain.is_empty() {
            rustc.env_remove("RUSTUP_TOOLCHAIN");
        }
        let output = rustc.output().context("starting rustc")?;
        let path = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        Ok(output.status.success().then(|| path.into()))
    };
    let libraries = |root: PathBuf| root.join("lib/rustlib");
    if sysroot(&[])?.is_some_and(|root| libraries(root).join(target).join("lib").is_dir()) {
        return Ok(Ok(Std::Installed));
    }
    if sysroot(&["+nightly"])?
        .is_some_and(|root| libraries(root).join("src/rust/library/Cargo.lock").is_file())
    {
        return Ok(Ok(Std::Source));
    }
    Ok(Err(format!(
        "no standard library: `rustup target add {target}`, or `rustup component add rust-src --toolchain nightly`"
    )))
}
