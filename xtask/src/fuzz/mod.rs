//! `cargo xtask fuzz`: runs the fuzz targets, keeps a small set of inputs that reaches all that was
//! reached, and writes the table of `docs/internals/reliability.md`.
//!
//! The targets are built with the stable compiler and libFuzzer's counters, without a sanitizer: our
//! code is safe Rust, and each execution takes a third of the time. Overflow and debug assertions are
//! on. `cargo +nightly fuzz run TARGET` adds the address sanitizer.

mod seeds;
mod table;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};

use crate::process::{cargo, run};
use crate::{corpus, place, release, root};

/// Counters that libFuzzer reads: edges, compared values.
const COVERAGE: &[&str] = &[
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    // Linkers drop counters of parts that other parts refer to.
    "-Ccodegen-units=1",
    "-Cdebug-assertions",
    "-Coverflow-checks",
];

/// Maximum bytes of an input: damage in the first pages, and speed.
const INPUT: usize = 8192;

/// Maximum bytes of an input of which one structure is read.
const STRUCTURE: usize = 1024;

/// Maximum bytes of a seed that is kept in the repository.
const SEED: usize = 4096;

/// Minutes of a run over all targets, unless the options say otherwise.
const MINUTES: u64 = 60;

/// Runs the subcommand: `[--minutes N] [TARGET...]`.
pub(crate) fn command(args: &[String]) -> Result<()> {
    let (minutes, wanted) = match args {
        [option, number, wanted @ ..] if option == "--minutes" => {
            (number.parse().with_context(|| format!("`{number}` is no number of minutes"))?, wanted)
        }
        wanted => (MINUTES, wanted),
    };
    let mut names = targets()?;
    if let Some(unknown) = wanted.iter().find(|start| !names.iter().any(|name| name.starts_with(*start))) {
        bail!("no target starts with `{unknown}`; usage: fuzz [--minutes N] [TARGET...]");
    }
    names.retain(|name| wanted.is_empty() || wanted.iter().any(|start| name.starts_with(start)));
    let folder = place::target().join("fuzz");
    let built = build(&folder, &names)?;
    let seconds = (minutes * 60 / names.len() as u64).max(1);
    let (mut rows, mut failed) = (Vec::new(), Vec::new());
    for name in &names {
        let target = Target { name, binary: built.join(name), folder: &folder };
        println!("--- {name}: {seconds} s");
        let row = target.fuzz(seconds)?;
        println!("{}", table::line(name, &row));
        if let Some(input) = &row.failed {
            failed.push(format!("{name}: {}", input.display()));
        }
        rows.push((name.clone(), row));
    }
    table::record(&rows)?;
    ensure!(
        failed.is_empty(),
        "inputs that fail (run a target with an input to see why):\n  {}",
        failed.join("\n  ")
    );
    Ok(())
}

/// Returns the names of all targets.
fn targets() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(root().join("fuzz/fuzz_targets"))? {
        let path = entry?.path();
        names.extend(path.file_stem().map(|name| name.to_string_lossy().into_owned()));
    }
    names.sort();
    Ok(names)
}

/// Builds targets. Returns the folder of their programs.
fn build(folder: &Path, names: &[String]) -> Result<PathBuf> {
    let host = release::host()?;
    // With a target named, the flags are not those of build scripts and macros.
    let mut build = cargo(&["build", "--release", "--locked", "--manifest-path", "fuzz/Cargo.toml"]);
    build.args(["--target", &host]).env("CARGO_TARGET_DIR", folder);
    build.env("CARGO_ENCODED_RUSTFLAGS", COVERAGE.join("\x1f"));
    for name in names {
        build.args(["--bin", name]);
    }
    run(&mut build)?;
    Ok(folder.join(host).join("release"))
}

/// A target that was built.
struct Target<'a> {
    name: &'a str,
    binary: PathBuf,
    folder: &'a Path,
}

/// What a run of a target did.
struct Row {
    seconds: u64,
    executions: u64,
    edges: u64,
    features: u64,
    /// Number and bytes of the seeds that are kept.
    seeds: (usize, u64),
    /// The input that failed.
    failed: Option<PathBuf>,
}

impl Target<'_> {
    /// Returns a folder of this target, which exists.
    fn place(&self, kind: &str) -> Result<PathBuf> {
        let place = self.folder.join(kind).join(self.name);
        fs::create_dir_all(&place).with_context(|| format!("creating {}", place.display()))?;
        Ok(place)
    }

    /// Runs the target from its seeds and the logs of the corpus, and renews its seeds.
    fn fuzz(&self, seconds: u64) -> Result<Row> {
        let (inputs, findings) = (self.place("inputs")?, self.place("findings")?);
        seeds::unpack(self.name, &inputs)?;
        let before = newest(&findings)?;
        let mut target = Command::new(&self.binary);
        let bytes = if self.name.ends_with("_declarations") { STRUCTURE } else { INPUT };
        target.arg(format!("-max_len={bytes}"));
        target.args(["-print_final_stats=1", "-timeout=20", "-rss_limit_mb=2048", "-detect_leaks=0"]);
        target.arg(format!("-max_total_time={seconds}"));
        target.arg(format!("-artifact_prefix={}/", findings.display())).arg(&inputs).args(logs(self.name));
        let begun = Instant::now();
        let printed = self.run(&mut target, "run")?;
        let mut row = table::row(&printed).with_context(|| format!("{} printed no figures", self.name))?;
        // It ends at an input that fails.
        row.seconds = begun.elapsed().as_secs();
        row.failed = newest(&findings)?.filter(|found| Some(found) != before.as_ref());
        row.seeds = self.minimise(&inputs)?;
        Ok(row)
    }

    /// Replaces the inputs by a small set that reaches the same, and packs the smallest of them as
    /// seeds. Returns the number and bytes of the seeds.
    fn minimise(&self, inputs: &Path) -> Result<(usize, u64)> {
        let few = self.place("few")?;
        fs::remove_dir_all(&few)?;
        fs::create_dir_all(&few)?;
        let mut merge = Command::new(&self.binary);
        merge.arg(format!("-max_len={SEED}"));
        merge.args(["-merge=1", "-timeout=20", "-rss_limit_mb=2048", "-detect_leaks=0"]);
        merge.arg(&few).arg(inputs);
        self.run(&mut merge, "merge")?;
        fs::remove_dir_all(inputs)?;
        fs::rename(&few, inputs)?;
        seeds::pack(self.name, inputs)
    }

    /// Runs a program to its end. Returns what it printed, which is also kept in a file.
    fn run(&self, program: &mut Command, what: &str) -> Result<String> {
        let log = self.place("printed")?.join(format!("{what}.txt"));
        let file = File::create(&log).with_context(|| format!("creating {}", log.display()))?;
        program.current_dir(self.place("findings")?).stdin(Stdio::null()).stdout(Stdio::null()).stderr(file);
        let status = program.status().with_context(|| format!("starting {}", self.name))?;
        // 77 and 70 are of libFuzzer: an input failed, or took too long. It is in the folder.
        ensure!(
            status.success() || matches!(status.code(), Some(70..=77)),
            "{} ended with {status}: see {}",
            self.name,
            log.display()
        );
        Ok(String::from_utf8_lossy(&fs::read(&log)?).into_owned())
    }
}

/// Returns the folders of logs from which a target starts, in addition to its seeds.
fn logs(name: &str) -> Vec<PathBuf> {
    let format = name.split('_').next().unwrap_or_default();
    let is_one = corpus::formats().any(|known| known == format);
    let chosen = corpus::formats().filter(|known| !is_one || *known == format);
    chosen.map(|format| root().join("corpus").join(format)).collect()
}

/// Returns the newest file of a folder.
fn newest(folder: &Path) -> Result<Option<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        files.push((entry.metadata()?.modified()?, entry.path()));
    }
    Ok(files.into_iter().max().map(|(_, path)| path))
}
