//! `cargo xtask bench`: measures Rovelog and other programs in one run, and prints how many times
//! faster or slower they are.

mod drop_in;
mod export;
mod works;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::process::{cargo, run_or};
use crate::{peers, place, python, root};
use works::BENCHES;

/// Benchmarks for one log format.
struct Bench {
    format: &'static str,
    /// Chunk compressions for which V2.0 bags are created and measured. If empty, the large log
    /// itself is measured.
    compressions: &'static [&'static str],
    /// Packages of the Python library to compare with, which `bench/<format>_work.py` measures. The
    /// library python3-rosbag is not listed, because it is installed by the Linux distribution.
    python: &'static [&'static str],
    groups: &'static [Group],
}

/// Benchmarks that are printed in one table.
struct Group {
    heading: &'static str,
    /// Name of the benchmark with which all others in the table are compared.
    peer: &'static str,
    /// Name of each benchmark in `bench/`, and its description.
    works: &'static [(&'static str, &'static str)],
}

/// Maximum number of runs of a benchmark, of which the median is printed. Python benchmarks run
/// only once.
const RUNS: usize = 7;

/// Time after which a benchmark is not repeated any more.
const ENOUGH: Duration = Duration::from_secs(20);

/// Runs the subcommand `cargo xtask bench`.
pub(crate) fn command(args: &[String]) -> Result<()> {
    if let [part, format, sizes @ ..] = args
        && part == "flat"
    {
        let max_bytes = sizes.first().map_or(Ok(u64::MAX), |size| size.parse()).context("a size in bytes")?;
        return export::flat(format, max_bytes);
    }
    let (format, log) = match args {
        [format] if format != "flat" => (format, None),
        [format, log] => (format, Some(PathBuf::from(log))),
        _ => bail!("usage: bench NAME [LOG] | flat FORMAT [MAX_BYTES]"),
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
            "no bench is called {format}; there are {}, export, export-own, python and flat FORMAT",
            names.join(", ")
        );
    };
    let program = build(first.format)?;
    let view = if format == "rosbag" { peers::rosbag_view()? } else { None };
    for bench in benches {
        let logs = match &log {
            // The benchmarks for V2.0 bags require a bag with a certain compression, which the
            // given log may not have.
            Some(_) if !bench.compressions.is_empty() => continue,
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

/// Returns the logs to measure. Logs that do not exist are created.
fn logs(bench: &Bench) -> Result<Vec<PathBuf>> {
    let large = corpus_generator::large_log(bench.format, None)?;
    if bench.compressions.is_empty() {
        return Ok(vec![large]);
    }
    bench.compressions.iter().map(|compression| chunked_bag(&large, compression)).collect()
}

/// Returns the path of a V2.0 bag that contains the messages of `log` with this compression.
fn chunked_bag(log: &Path, compression: &str) -> Result<PathBuf> {
    let to = log.with_extension(format!("{compression}.bag"));
    if !to.is_file() {
        let mut export = Command::new(place::binary()?);
        export.args(["export", "--to", "bag2", "--compression", compression]).arg(log).arg("-o").arg(&to);
        run_or(&mut export, "the V2.0 bag was not written")?;
    }
    Ok(to)
}

fn name(log: &Path) -> String {
    log.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Builds the program with the benchmarks for one log format. Returns its path.
fn build(format: &str) -> Result<PathBuf> {
    let target = root().join("target/bench");
    let mut build =
        cargo(&["build", "--release", "--manifest-path", "bench/Cargo.toml", "--features", format]);
    run_or(build.env("CARGO_TARGET_DIR", &target), "the bench does not build")?;
    Ok(target.join("release/bench"))
}

/// Runs benchmarks on one log.
struct Runner {
    program: PathBuf,
    python: PathBuf,
    /// Program that contains the benchmarks `cpp-...`. `None` if librosbag-storage is not
    /// installed.
    view: Option<PathBuf>,
    format: &'static str,
    log: PathBuf,
}

/// Time and memory of one run.
#[derive(Clone, Copy)]
struct Cost {
    cpu_seconds: f64,
    wall_seconds: f64,
    /// Peak memory in MB.
    megabytes: f64,
}

impl Runner {
    /// Runs the benchmarks of all groups and prints their tables.
    fn run(&self, groups: &[Group]) -> Result<()> {
        println!(
            "{}, {} bytes; CPU time (user + system) and wall time, the median of at most {RUNS} runs\n",
            name(&self.log),
            fs::metadata(&self.log)?.len()
        );
        for group in groups {
            let mut measured = Vec::new();
            let installed = |work: &str| !work.starts_with("cpp-") || self.view.is_some();
            for (work, description) in group.works.iter().filter(|(work, _)| installed(work)) {
                measured.push((*work, *description, self.measure(work)?));
            }
            let peer = measured.iter().find(|(work, ..)| *work == group.peer);
            // If the program to compare with is not installed, there are no ratios.
            let peer = peer.map(|(.., cost)| cost.cpu_seconds);
            // The benchmark `bare-...` is a loop that validates nothing. No other program can be
            // faster.
            let limit = measured.iter().find(|(work, ..)| work.starts_with("bare-"));
            let limit = limit.map(|(.., cost)| cost.cpu_seconds);
            let head = if limit.is_some() { " times the limit |" } else { "" };
            println!("| {} | CPU s | wall s | times {} | peak MB |{head}", group.heading, group.peer);
            println!("|---|---|---|---|---|{}", if limit.is_some() { "---|" } else { "" });
            for (_, description, Cost { cpu_seconds: cpu, wall_seconds: wall, megabytes }) in &measured {
                let ratio = limit.map(|limit| format!(" {:.2} |", cpu / limit)).unwrap_or_default();
                let times = peer.map_or_else(|| "-".to_owned(), |peer| format!("{:.2}", peer / cpu));
                println!("| {description} | {cpu:.3} | {wall:.3} | {times} | {megabytes:.0} |{ratio}");
            }
            println!();
        }
        Ok(())
    }

    /// Returns the command that runs a benchmark, without the name of the benchmark. Benchmarks
    /// named `py...` are in a script. Scripts for python3-rosbag run in the Python interpreter of
    /// the Linux distribution.
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
            // `-B` prevents Python from writing bytecode files next to the sources.
            command.arg("-B").arg(root().join("bench").join(script)).env_remove("PYTHONPATH");
        }
        command
    }

    /// Runs a benchmark several times. Returns the run with the median CPU time.
    fn measure(&self, work: &str) -> Result<Cost> {
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
            runs.push(Cost { cpu_seconds: cpu, wall_seconds: wall, megabytes });
            if first.elapsed() > ENOUGH {
                break;
            }
        }
        runs.sort_by(|a, b| a.cpu_seconds.total_cmp(&b.cpu_seconds));
        Ok(runs[runs.len() / 2])
    }
}
