//! `cargo xtask bench`: our reader beside others, in one run, as ratios.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::{corpus, oracle, root};

/// What is measured: a heading, the peer by which all is divided, and the works with what they do.
struct Group {
    heading: &'static str,
    peer: &'static str,
    works: &'static [(&'static str, &'static str)],
}

const ULOG: &[Group] = &[
    Group {
        heading: "all topics",
        peer: "px4-ulog-kept",
        works: &[
            ("px4-ulog-kept", "px4-ulog 0.6.1, typed columns kept"),
            ("rovelog-streamed", "Arrow batches into reused buffers"),
            ("rovelog-kept", "Arrow columns kept"),
            ("yule_log-values", "yule_log 0.4.0, values, no columns"),
            ("pyulog-kept", "pyulog 1.3.0, numpy columns kept"),
        ],
    },
    Group {
        heading: "one topic of 43 (sensor_combined, a quarter of the rows)",
        peer: "px4-ulog-one-kept",
        works: &[
            ("px4-ulog-one-kept", "px4-ulog 0.6.1, callback that keeps typed columns"),
            ("rovelog-one-streamed", "Arrow batches into reused buffers"),
            ("rovelog-one-kept", "Arrow columns kept"),
            ("pyulog-one-kept", "pyulog 1.3.0 with its message filter"),
        ],
    },
    Group {
        heading: "information",
        peer: "pyulog-info",
        works: &[
            ("pyulog-info", "ulog_info of pyulog 1.3.0"),
            ("rovelog-info", "rovelog::open and its summary"),
        ],
    },
];

/// Runs of each work; the middle one counts. Those of Python take long enough for one.
const RUNS: usize = 7;

/// The subcommand.
pub(crate) fn command(args: &[String]) -> Result<()> {
    let (format, log) = match args {
        [format] => (format, None),
        [format, log] => (format, Some(PathBuf::from(log))),
        _ => bail!("usage: bench ulog [LOG]"),
    };
    ensure!(format == "ulog", "no bench for {format}: there is ulog");
    let log = match log {
        Some(log) => log,
        None => corpus::large_log()?,
    };
    let program = build()?;
    let python = oracle::python()?;
    println!(
        "{}, {} bytes; CPU time (user + system), the middle of {RUNS} runs\n",
        name(&log),
        fs::metadata(&log)?.len()
    );
    for group in ULOG {
        let mut measured = Vec::new();
        for (work, what) in group.works {
            measured.push((*work, *what, measure(&program, &python, work, &log)?));
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

fn build() -> Result<PathBuf> {
    let target = root().join("target/bench");
    let status = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--release", "--manifest-path"])
        .arg(root().join("bench/Cargo.toml"))
        .env("CARGO_TARGET_DIR", &target)
        .status()?;
    ensure!(status.success(), "the bench does not build");
    Ok(target.join("release/bench"))
}

/// The middle CPU time of a work, and its peak memory.
fn measure(program: &Path, python: &Path, work: &str, log: &Path) -> Result<(f64, f64)> {
    let ours = !work.starts_with("pyulog");
    let mut runs = Vec::new();
    for _ in 0..if ours { RUNS } else { 1 } {
        let mut command = if ours { Command::new(program) } else { Command::new(python) };
        if !ours {
            command.arg(root().join("bench/pyulog_work.py"));
        }
        let output = command.arg(work).arg(log).output().with_context(|| format!("starting {work}"))?;
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
