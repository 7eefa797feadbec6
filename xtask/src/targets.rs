//! `cargo xtask targets`: whether the crates compile for other processors and systems; with `--run`,
//! also whether their tests pass there. As far as this machine can tell.

use std::env;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use crate::process::{cargo, shown};
use crate::{place, root};

/// A processor and system.
struct Target {
    name: &'static str,
    /// The crates that are checked for it.
    crates: &'static [&'static str],
    /// Columns have the byte order of the log, so a big-endian machine has none.
    columns: bool,
    tests: Option<Tests>,
}

/// How programs for a target are linked and run here.
struct Tests {
    linker: &'static str,
    /// The program that runs them, with its arguments; empty if this machine does.
    runner: &'static [&'static str],
}

const TARGETS: &[Target] = &[
    Target {
        name: "i686-unknown-linux-gnu",
        crates: EVERYWHERE,
        columns: true,
        tests: Some(Tests { linker: "cc", runner: &[] }),
    },
    Target { name: "aarch64-unknown-linux-gnu", crates: EVERYWHERE, columns: true, tests: None },
    Target { name: "x86_64-pc-windows-msvc", crates: EVERYWHERE, columns: true, tests: None },
    Target { name: "aarch64-apple-darwin", crates: EVERYWHERE, columns: true, tests: None },
    // Without files: logs in memory.
    Target { name: "wasm32-unknown-unknown", crates: FORMATS, columns: true, tests: None },
    Target {
        name: "powerpc64-unknown-linux-gnu",
        crates: CORE_AND_FORMATS,
        columns: false,
        tests: Some(Tests {
            linker: "powerpc64-linux-gnu-gcc",
            runner: &["qemu-ppc64-static", "-L", "/usr/powerpc64-linux-gnu"],
        }),
    },
];

const EVERYWHERE: &[&str] = &["rovelog", "rovelog-export"];
/// The crates of the formats.
pub(crate) const FORMATS: &[&str] = CORE_AND_FORMATS.split_at(1).1;
const CORE_AND_FORMATS: &[&str] = &["rovelog-core", "ulog-format", "rld-format", "rosbag12", "vel-format"];

/// The toolchain that has the source of its standard library.
const TOOLCHAIN: &str = "ROVELOG_STD_TOOLCHAIN";

/// Runs the subcommand.
pub(crate) fn command(args: &[String]) -> Result<()> {
    let run = args == ["--run"];
    ensure!(run || args.is_empty(), "usage: targets [--run]");
    let mut failed = Vec::new();
    for target in TARGETS {
        let std = match standard_library(target.name)? {
            Ok(std) => std,
            Err(why) => {
                println!("SKIPPED: {}: {why}", target.name);
                continue;
            }
        };
        for name in target.crates {
            let mut check = std.cargo("check", target);
            check.args(["-p", name]);
            if !target.columns {
                check.arg("--no-default-features");
            }
            let status = check.status().context("starting cargo")?;
            println!("{}: {name}: {}", target.name, if status.success() { "compiles" } else { "fails" });
            if !status.success() {
                failed.push(format!("`{}`", shown(&check)));
            }
        }
        if run && let Some(tests) = &target.tests {
            failed.extend(tests.run(target, std)?);
        }
    }
    ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
    Ok(())
}

impl Tests {
    /// Runs the tests of core and the formats; returns what failed.
    fn run(&self, target: &Target, std: Std) -> Result<Vec<String>> {
        for program in [Some(&self.linker), self.runner.first()].into_iter().flatten() {
            if Command::new(program).arg("--version").stdout(Stdio::null()).status().is_err() {
                println!("SKIPPED: tests of {}: there is no {program}", target.name);
                return Ok(Vec::new());
            }
        }
        let mut failed = Vec::new();
        let variable = format!("CARGO_TARGET_{}", target.name.to_uppercase().replace('-', "_"));
        for name in CORE_AND_FORMATS {
            let mut test = std.cargo("test", target);
            // Examples are run by the cargo of this machine.
            test.args(["-p", name, "--lib", "--tests", "--no-fail-fast", "--", "--skip", "examples_run"]);
            test.env(format!("{variable}_LINKER"), self.linker);
            if !self.runner.is_empty() {
                test.env(format!("{variable}_RUNNER"), self.runner.join(" "));
            }
            let output = test.stderr(Stdio::inherit()).output().context("starting cargo")?;
            let printed = String::from_utf8_lossy(&output.stdout);
            let passed: u64 = printed
                .lines()
                .filter_map(|line| {
                    line.strip_prefix("test result: ")?.split_once(". ")?.1.split_once(" passed")
                })
                .filter_map(|(number, _)| number.parse::<u64>().ok())
                .sum();
            println!("{}: {name}: {passed} tests passed", target.name);
            if !output.status.success() {
                println!("{printed}");
                failed.push(format!("`{}`", shown(&test)));
            }
        }
        Ok(failed)
    }
}

/// Where the standard library of a target comes from.
#[derive(Clone, Copy)]
enum Std {
    Installed,
    /// It is built from its source.
    Source,
}

impl Std {
    fn cargo(self, command: &str, target: &Target) -> Command {
        let mut cargo = match self {
            Self::Installed => cargo(&[command]),
            Self::Source => {
                let mut cargo = Command::new("cargo");
                cargo.args([format!("+{}", toolchain()).as_str(), command, "-Zbuild-std"]);
                cargo.current_dir(root());
                // The toolchain of this run would be used otherwise.
                cargo.env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN");
                // A stable toolchain builds its own library as well.
                cargo.env("RUSTC_BOOTSTRAP", "1");
                cargo
            }
        };
        cargo.args(["--quiet", "--target", target.name]);
        cargo.env("CARGO_TARGET_DIR", place::target().join("targets"));
        cargo
    }
}

fn toolchain() -> String {
    env::var(TOOLCHAIN).unwrap_or_else(|_| "nightly".to_owned())
}

/// Returns where the standard library of a target comes from, or why there is none.
fn standard_library(target: &str) -> Result<std::result::Result<Std, String>> {
    let sysroot = |toolchain: Option<String>| -> Result<Option<PathBuf>> {
        let mut rustc = Command::new("rustc");
        if let Some(toolchain) = toolchain {
            rustc.arg(format!("+{toolchain}")).env_remove("RUSTUP_TOOLCHAIN");
        }
        rustc.args(["--print", "sysroot"]).current_dir(root()).stderr(Stdio::null());
        let output = rustc.output().context("starting rustc")?;
        let path = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        Ok(output.status.success().then(|| path.into()))
    };
    let libraries = |root: PathBuf| root.join("lib/rustlib");
    if sysroot(None)?.is_some_and(|root| libraries(root).join(target).join("lib").is_dir()) {
        return Ok(Ok(Std::Installed));
    }
    if sysroot(Some(toolchain()))?
        .is_some_and(|root| libraries(root).join("src/rust/library/Cargo.lock").is_file())
    {
        return Ok(Ok(Std::Source));
    }
    Ok(Err(format!(
        "no standard library: `rustup target add {target}`, or a toolchain with the source of its library \
         in {TOOLCHAIN} (nightly by default, with `rustup component add rust-src --toolchain nightly`)"
    )))
}
