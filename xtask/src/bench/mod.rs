//! `cargo xtask bench`: our reader and others in one run, as ratios.

mod drop_in;
mod export;
mod works;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process::{cargo, run_or};
use crate::{corpus, peers, python, root};
use works::BENCHES;

/// The benchmark of a format.
struct Bench {
    format: &'static str,
    /// Packages of the Python peer, measured by `bench/<format>_work.py`. Empty: the peer comes
    /// with the distribution's own Python, if installed.
    python: &'static [&'static str],
    groups: &'static [Group],
}

/// A group of measurements: a heading, the peer that ratios refer to, and the works with their
/// descriptions.
struct Group {
    heading: &'static str,
    peer: &'static str,
    works: &'static [(&'static str, &'static str)],
}

/// Runs of each work, of which the median counts. Python takes long enough for one run.
const RUNS: usize = 7;

/// Runs the subcommand.
pub(crate) fn command(args: &[String]) -> Result<()> {
    let (format, log) = match args {
        [format] => (format, None),
        [format, log] => (format, Some(PathBuf::from(log))),
        _ => bail!("usage: bench FORMAT [LOG]"),
    };
    if format == "export" {
        return export::run(log);
    }
    if format == "python" {
        return drop_in::run(log.as_deref());
    }
    let Some(bench) = BENCHES.iter().find(|bench| bench.format == format) else {
        let names: Vec<_> = BENCHES.iter().map(|bench| bench.format).collect();
        bail!("no bench for {format}: there is {}, export, python", names.join(", "));
    };
    let log = match log {
        Some(log) => log,
        None => corpus::large_log(bench.format)?,
    };
    let runner = Runner {
        program: build(bench.format)?,
        python: match bench.python {
            [] => PathBuf::from(peers::PYTHON),
            packages => python::with(&format!("bench-{format}"), packages)?,
        },
        view: if format == "rosbag" { peers::rosbag_view()? } else { None },
        script: root().join(format!("bench/{format}_work.py")),
        log,
    };
    println!(
        "{}, {} bytes; CPU time (user + system), the middle of {RUNS} runs\n",
        name(&runner.log),
        fs::metadata(&runner.log)?.len()
    );
    for group in bench.groups {
        let mut measured = Vec::new();
        let installed = |work: &str| !work.starts_with("cpp") || runner.view.is_some();
        for (work, what) in group.works.iter().filter(|(work, _)| installed(work)) {
            measured.push((*work, *what, runner.measure(work)?));
        }
        let peer =
            measured.iter().find(|(work, ..)| *work == group.peer).context("the peer is among the works")?;
        let peer = peer.2.0;
        println!("| {} | CPU s | times {} | peak MB |\n|---|---|---|---|", group.heading, group.peer);
        for (_, what, (seconds, megabytes)) in &measured {
            println!("| {what} | {seconds:.3} | {:.2} | {megabytes:.0} |", peer / seconds);
        }
        println!();
    }
    Ok(())
}

fn name(log: &Path) -> String {
    log.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Builds the program with the works of one format, without the peers of other formats. Returns its
/// path.
fn build(format: &str) -> Result<PathBuf> {
    let target = root().join("target/bench");
    let mut build =
        cargo(&["build", "--release", "--manifest-path", "bench/Cargo.toml", "--features", format]);
    run_or(build.env("CARGO_TARGET_DIR", &target), "the bench does not build")?;
    Ok(target.join("release/bench"))
}

/// Runs works on one log.
struct Runner {
    program: PathBuf,
    python: PathBuf,
    script: PathBuf,
    /// Program of the works named `cpp...`, if it can be built.
    view: Option<PathBuf>,
    log: PathBuf,
}

impl Runner {
    /// Returns the median CPU time of a work, and its peak memory. Works named `py...` run in the
    /// script.
    fn measure(&self, work: &str) -> Result<(f64, f64)> {
        let python = work.starts_with("py");
        let mut runs = Vec::new();
        for _ in 0..if python { 1 } else { RUNS } {
            let program = match &self.view {
                Some(view) if work.starts_with("cpp") => view,
                _ if python => &self.python,
                _ => &self.program,
            };
            let mut command = Command::new(program);
            if python {
                // Writes no bytecode next to the sources.
                command.arg("-B").arg(&self.script);
            }
            let output =
                command.arg(work).arg(&self.log).output().with_context(|| format!("starting {work}"))?;
            let text = String::from_utf8_lossy(&output.stdout);
            let mut words = text.split_whitespace();
            let (seconds, megabytes) = (words.next(), words.nth(1));
            let Some((seconds, megabytes)) =
                seconds.and_then(|s| s.parse().ok()).zip(megabytes.and_then(|m| m.parse().ok()))
            else {
                bail!("{work} failed: {text}{}", String::from_utf8_lossy(&output.stderr));
            };
            runs.push((seconds, megabytes));
        }
        runs.sort_by(|a: &(f64, f64), b| a.0.total_cmp(&b.0));
        Ok(runs[runs.len() / 2])
    }
}
