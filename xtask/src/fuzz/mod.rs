//! `cargo xtask fuzz`: runs the fuzz targets. Then reduces their inputs to small sets of seeds that
//! reach the same code.
//!
//! The targets are built with the stable compiler and the counters of libFuzzer, but without a
//! sanitizer. Our code is safe Rust, and an execution takes only a third of the time. Overflow
//! checks and debug assertions are enabled. The command `cargo +nightly fuzz run TARGET` also uses
//! the address sanitizer.

pub(crate) mod coverage;
mod figures;
mod seeds;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};

use crate::process::{cargo, run};
use crate::{place, release, root};
use figures::Figures;

/// Compiler flags that add the counters of libFuzzer for edges and compared values.
const COVERAGE: &[&str] = &[
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    // With several codegen units, linkers would remove counters to which other units refer.
    "-Ccodegen-units=1",
    "-Cdebug-assertions",
    "-Coverflow-checks",
];

/// Maximum size of an input in bytes. Small inputs run faster, and the first pages of a log already
/// contain its definitions.
const MAX_INPUT_BYTES: usize = 2048;

/// Maximum size in bytes of an input for a target that parses a single structure.
const MAX_STRUCTURE_BYTES: usize = 1024;

/// Maximum size in bytes of an input that becomes a seed. It is larger than that of a new input, so
/// that earlier seeds are kept.
const MAX_SEED_BYTES: usize = 4096;

/// Default duration in minutes of a run over all targets.
const MINUTES: u64 = 60;

/// Runs the subcommand with the arguments `[--minutes N] [TARGET...]`. Each `TARGET` is the first
/// part of a target name.
pub(crate) fn command(args: &[String]) -> Result<()> {
    let (minutes, wanted) = match args {
        [option, number, wanted @ ..] if option == "--minutes" => {
            (number.parse().with_context(|| format!("`{number}` is no number of minutes"))?, wanted)
        }
        wanted => (MINUTES, wanted),
    };
    let mut names = target_names()?;
    if let Some(unknown) = wanted.iter().find(|start| !names.iter().any(|name| name.starts_with(*start))) {
        bail!("no target starts with `{unknown}`; usage: fuzz [--minutes N] [TARGET...]");
    }
    names.retain(|name| wanted.is_empty() || wanted.iter().any(|start| name.starts_with(start)));
    let folder = place::target().join("fuzz");
    let built = build(&folder, &names)?;
    let seconds = (minutes * 60 / names.len() as u64).max(1);
    let (mut runs, mut failed) = (Vec::new(), Vec::new());
    for name in &names {
        let target = Target { name, binary: built.join(name), folder: &folder };
        println!("--- {name}: {seconds} s");
        let (figures, failure) = target.fuzz(seconds)?;
        println!("{}", figures.row(name));
        failed.extend(failure.map(|input| format!("{name}: {}", input.display())));
        runs.push((name.clone(), figures));
    }
    figures::record(&runs)?;
    ensure!(
        failed.is_empty(),
        "inputs that fail (run a target with its input to see why):\n  {}",
        failed.join("\n  ")
    );
    Ok(())
}

fn target_names() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(root().join("fuzz/fuzz_targets"))? {
        let path = entry?.path();
        names.extend(path.file_stem().map(|name| name.to_string_lossy().into_owned()));
    }
    names.sort();
    Ok(names)
}

/// Builds fuzz targets. Returns the folder that contains their programs.
fn build(folder: &Path, names: &[String]) -> Result<PathBuf> {
    let host = release::host()?;
    let mut build = cargo(&["build", "--release", "--locked", "--manifest-path", "fuzz/Cargo.toml"]);
    // If `--target` is given, cargo does not pass the compiler flags to build scripts and
    // procedural macros.
    build.args(["--target", &host]).env("CARGO_TARGET_DIR", folder);
    build.env("CARGO_ENCODED_RUSTFLAGS", COVERAGE.join("\x1f"));
    for name in names {
        build.args(["--bin", name]);
    }
    run(&mut build)?;
    Ok(folder.join(host).join("release"))
}

/// A fuzz target that has been built.
struct Target<'a> {
    name: &'a str,
    binary: PathBuf,
    /// Folder for the inputs, findings and outputs of all targets.
    folder: &'a Path,
}

impl Target<'_> {
    /// Creates a subfolder for this target. Returns its path.
    fn subfolder(&self, kind: &str) -> Result<PathBuf> {
        let folder = self.folder.join(kind).join(self.name);
        fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
        Ok(folder)
    }

    /// Runs the target, starting from its seeds and from the test logs, and then replaces its
    /// seeds. Returns the statistics, and the input that failed, if there is one.
    fn fuzz(&self, seconds: u64) -> Result<(Figures, Option<PathBuf>)> {
        let (inputs, findings) = (self.subfolder("inputs")?, self.subfolder("findings")?);
        seeds::unpack(self.name, &inputs)?;
        let before = newest(&findings)?;
        let mut target = Command::new(&self.binary);
        let bytes = if self.name.ends_with("_declarations") { MAX_STRUCTURE_BYTES } else { MAX_INPUT_BYTES };
        target.arg(format!("-max_len={bytes}"));
        target.args(["-print_final_stats=1", "-timeout=20", "-rss_limit_mb=2048", "-detect_leaks=0"]);
        target.arg(format!("-max_total_time={seconds}"));
        target.arg(format!("-artifact_prefix={}/", findings.display())).arg(&inputs).args(logs(self.name));
        let start = Instant::now();
        let printed = self.run(&mut target, "run")?;
        let mut figures =
            Figures::parse(&printed).with_context(|| format!("{} printed no figures", self.name))?;
        // The target ends before the time is over if an input fails.
        figures.seconds = start.elapsed().as_secs();
        let failure = newest(&findings)?.filter(|found| Some(found) != before.as_ref());
        (figures.seeds, figures.seed_bytes) = self.renew_seeds(&inputs)?;
        Ok((figures, failure))
    }

    /// Replaces the inputs by a small set of inputs that reaches the same code. The smallest of
    /// these inputs become the seeds. Returns the number of seeds and their total size in bytes.
    fn renew_seeds(&self, inputs: &Path) -> Result<(usize, u64)> {
        let merged = self.subfolder("merged")?;
        fs::remove_dir_all(&merged)?;
        fs::create_dir_all(&merged)?;
        let mut merge = Command::new(&self.binary);
        merge.arg(format!("-max_len={MAX_SEED_BYTES}"));
        merge.args(["-merge=1", "-timeout=20", "-rss_limit_mb=2048", "-detect_leaks=0"]);
        merge.arg(&merged).arg(inputs);
        self.run(&mut merge, "merge")?;
        fs::remove_dir_all(inputs)?;
        fs::rename(&merged, inputs)?;
        seeds::pack(self.name, inputs)
    }

    /// Runs a program to its end. Returns its output, which is also written to a file.
    fn run(&self, program: &mut Command, step: &str) -> Result<String> {
        let log = self.subfolder("printed")?.join(format!("{step}.txt"));
        let file = File::create(&log).with_context(|| format!("creating {}", log.display()))?;
        program.current_dir(self.subfolder("findings")?);
        program.stdin(Stdio::null()).stdout(Stdio::null()).stderr(file);
        let status = program.status().with_context(|| format!("starting {}", self.name))?;
        // libFuzzer ends with an exit code from 70 to 77 if an input failed or took too long. It
        // has written this input to the folder of findings.
        ensure!(
            status.success() || matches!(status.code(), Some(70..=77)),
            "{} ended with {status}: see {}",
            self.name,
            log.display()
        );
        Ok(String::from_utf8_lossy(&fs::read(&log)?).into_owned())
    }
}

/// Returns the folders of logs that a target uses in addition to its seeds.
fn logs(name: &str) -> Vec<PathBuf> {
    let format = name.split('_').next().unwrap_or_default();
    let is_format = corpus_generator::formats().any(|known| known == format);
    let formats = corpus_generator::formats().filter(|known| !is_format || *known == format);
    formats.map(|format| root().join("corpus").join(format)).collect()
}

/// Returns the newest file in a folder.
fn newest(folder: &Path) -> Result<Option<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        files.push((entry.metadata()?.modified()?, entry.path()));
    }
    Ok(files.into_iter().max().map(|(_, path)| path))
}
