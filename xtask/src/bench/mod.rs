//! `cargo xtask bench`: our reader and others in one run, as ratios.

mod drop_in;
mod export;
mod works;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::process::{cargo, run_or};
use crate::{corpus, peers, place, python, root};
use works::BENCHES;

/// The benchmark of a format.
struct Bench {
    format: &'static str,
    /// The compressions of bags V2.0 to measure; none for the large log as it is.
    logs: &'static [&'static str],
    /// Packages of the Python peer, measured by `bench/<format>_work.py`. The peer python3-rosbag
    /// comes with the distribution's own Python.
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

/// Time from which on a work is not run again.
const ENOUGH: Duration = Duration::from_secs(20);

/// Runs the subcommand.
pub(crate) fn command(args: &[String]) -> Result<()> {
    if let [part, format, sizes @ ..] = args
        && part == "flat"
    {
        let most = sizes.first().map_or(Ok(u64::MAX), |size| size.parse()).context("a size in bytes")?;
        return export::flat(format, most);
    }
    let (format, log) = match args {
        [format] if format != "flat" => (format, None),
        [format, log] => (format, Some(PathBuf::from(log))),
        _ => bail!("usage: bench FORMAT [LOG], or bench flat FORMAT [MOST BYTES]"),
    };
    if format == "export" {
        return export::peers(log);
    }
    if format == "export-own" {
        return export::own(log);
    }
    if format == "python" {
        return drop_in::run(log.as_deref());
    }
    let benches: Vec<_> = BENCHES.iter().filter(|bench| bench.format == format).collect();
    let Some(first) = benches.first() else {
        let mut names: Vec<_> = BENCHES.iter().map(|bench| bench.format).collect();
        names.dedup();
        bail!(
            "no bench for {format}: there is {}, export, export-own, flat FORMAT, python",
            names.join(", ")
        );
    };
    let program = build(first.format)?;
    let view = if format == "rosbag" { peers::rosbag_view()? } else { None };
    for bench in benches {
        let logs = match &log {
            // A log of the user: a bag V2.0 fits the works of one compression only.
            Some(_) if !bench.logs.is_empty() => continue,
            Some(log) => vec![log.clone()],
            None => logs(bench)?,
        };
        let python = match bench.python {
            [] => PathBuf::from(peers::PYTHON),
            packages => python::with(&format!("bench-{format}"), packages)?,
        };
        for log in logs {
            let (program, python, view) = (program.clone(), python.clone(), view.clone());
            Runner { program, python, view, format: bench.format, log }.run(bench.groups)?;
        }
    }
    Ok(())
}

/// Returns the logs of a benchmark.
fn logs(bench: &Bench) -> Result<Vec<PathBuf>> {
    let large = corpus::large_log(bench.format)?;
    if bench.logs.is_empty() {
        return Ok(vec![large]);
    }
    bench.logs.iter().map(|compression| chunked(&large, compression)).collect()
}

/// Returns the bag V2.0 with the messages of `log`, its chunks compressed this way.
fn chunked(log: &Path, compression: &str) -> Result<PathBuf> {
    let to = log.with_extension(format!("{compression}.bag"));
    if !to.is_file() {
        let mut export = Command::new(place::binary()?);
        export.args(["export", "--to", "bag2", "--compression", compression]).arg(log).arg("-o").arg(&to);
        run_or(&mut export, "the bag V2.0 was not written")?;
    }
    Ok(to)
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
    /// Program of the works named `cpp-...`, if it can be built.
    view: Option<PathBuf>,
    format: &'static str,
    log: PathBuf,
}

/// What one run took: CPU and wall time in seconds, peak memory in megabytes.
#[derive(Clone, Copy)]
struct Taken {
    cpu: f64,
    wall: f64,
    megabytes: f64,
}

impl Runner {
    /// Measures the groups and prints their tables.
    fn run(&self, groups: &[Group]) -> Result<()> {
        println!(
            "{}, {} bytes; CPU time (user + system) and wall time, the median of at most {RUNS} runs\n",
            name(&self.log),
            fs::metadata(&self.log)?.len()
        );
        for group in groups {
            let mut measured = Vec::new();
            let installed = |work: &str| !work.starts_with("cpp-") || self.view.is_some();
            for (work, what) in group.works.iter().filter(|(work, _)| installed(work)) {
                measured.push((*work, *what, self.measure(work)?));
            }
            let peer = measured.iter().find(|(work, ..)| *work == group.peer);
            // A peer that is not installed was named as skipped.
            let peer = peer.map(|(.., taken)| taken.cpu);
            // A bare loop, which judges nothing, is the limit of all others.
            let limit = measured.iter().find(|(work, ..)| work.starts_with("bare-")).map(|work| work.2.cpu);
            let head = if limit.is_some() { " times the limit |" } else { "" };
            println!("| {} | CPU s | wall s | times {} | peak MB |{head}", group.heading, group.peer);
            println!("|---|---|---|---|---|{}", if limit.is_some() { "---|" } else { "" });
            for (_, what, Taken { cpu, wall, megabytes }) in &measured {
                let ratio = limit.map(|limit| format!(" {:.2} |", cpu / limit)).unwrap_or_default();
                let times = peer.map_or_else(|| "-".to_owned(), |peer| format!("{:.2}", peer / cpu));
                println!("| {what} | {cpu:.3} | {wall:.3} | {times} | {megabytes:.0} |{ratio}");
            }
            println!();
        }
        Ok(())
    }

    /// Returns the program of a work, up to its name. Works named `py...` run in a script: those of
    /// python3-rosbag with the distribution's interpreter.
    fn command(&self, work: &str) -> Command {
        let (program, script) = match work.split_once('-').map_or(work, |(peer, _)| peer) {
            "cpp" => (self.view.as_ref().unwrap_or(&self.program).as_path(), None),
            "pyrosbag" => (Path::new(peers::PYTHON), Some("rosbag_work.py".to_owned())),
            "pyrosbags" => (self.python.as_path(), Some("rosbags_work.py".to_owned())),
            peer if peer.starts_with("py") => {
                (self.python.as_path(), Some(format!("{}_work.py", self.format)))
            }
            _ => (self.program.as_path(), None),
        };
        let mut command = Command::new(program);
        if let Some(script) = script {
            // Writes no bytecode next to the sources.
            command.arg("-B").arg(root().join("bench").join(script)).env_remove("PYTHONPATH");
        }
        command
    }

    /// Returns the median by CPU time of the runs of a work.
    fn measure(&self, work: &str) -> Result<Taken> {
        let (mut runs, first) = (Vec::new(), Instant::now());
        for _ in 0..if work.starts_with("py") { 1 } else { RUNS } {
            let mut command = self.command(work);
            let start = Instant::now();
            let output =
                command.arg(work).arg(&self.log).output().with_context(|| format!("starting {work}"))?;
            let wall = start.elapsed().as_secs_f64();
            let text = String::from_utf8_lossy(&output.stdout);
            let mut words = text.split_whitespace();
            let (seconds, megabytes) = (words.next(), words.nth(1));
            let Some((cpu, megabytes)) =
                seconds.and_then(|s| s.parse().ok()).zip(megabytes.and_then(|m| m.parse().ok()))
            else {
                bail!("{work} failed: {text}{}", String::from_utf8_lossy(&output.stderr));
            };
            runs.push(Taken { cpu, wall, megabytes });
            if first.elapsed() > ENOUGH {
                break;
            }
        }
        runs.sort_by(|a, b| a.cpu.total_cmp(&b.cpu));
        Ok(runs[runs.len() / 2])
    }
}
