//! `cargo xtask bench python`: one script, one import changed.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::{corpus, package, root};

/// An older package, the drop-in for it, and the scripts that run with both.
struct DropIn {
    package: &'static str,
    ours: &'static str,
    log: fn() -> Result<PathBuf>,
    works: &'static [(&'static str, &'static str)],
}

const PACKAGES: &[&str] = &["pyulog==1.3.0", "numpy"];

const DROP_INS: &[DropIn] = &[DropIn {
    package: "pyulog",
    ours: "rovelog.compat.pyulog",
    log: corpus::large_ulog,
    works: &[
        ("review", "a look at a flight: summary, parameters, texts, dropouts, attitude, battery"),
        ("info", "the summary alone"),
        ("dataset", "one dataset (`sensor_combined`) by the message filter"),
        ("load", "all datasets in memory"),
        ("everything", "all datasets, and the maximum of each field"),
    ],
}];

/// Runs of ours; the middle one counts. The original takes long enough for one.
const RUNS: usize = 5;

/// Measures; a log may be named.
pub(super) fn run(log: Option<&Path>) -> Result<()> {
    let python = package::release("bench-python", PACKAGES)?;
    for drop_in in DROP_INS {
        let log = match log {
            Some(log) => log.to_owned(),
            None => (drop_in.log)()?,
        };
        println!(
            "{}, {} bytes; wall time of the script, imports not counted\n",
            super::name(&log),
            log.metadata()?.len()
        );
        println!(
            "| script | {0} s | ours s | {0} / ours | {0} MB | ours MB |\n|---|---|---|---|---|---|",
            drop_in.package
        );
        for (work, what) in drop_in.works {
            let theirs = measure(&python, drop_in.package, work, &log)?;
            let mut runs =
                (0..RUNS).map(|_| measure(&python, drop_in.ours, work, &log)).collect::<Result<Vec<_>>>()?;
            runs.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
            let ours = &runs[RUNS / 2];
            ensure!(ours.found == theirs.found, "{work}: {} is not {}", ours.found, theirs.found);
            let ratio = theirs.seconds / ours.seconds;
            println!(
                "| {what} | {:.2} | {:.3} | {ratio:.0} | {:.0} | {:.0} |",
                theirs.seconds, ours.seconds, theirs.megabytes, ours.megabytes
            );
        }
        println!();
    }
    Ok(())
}

/// One run of a script.
struct Run {
    seconds: f64,
    megabytes: f64,
    found: String,
}

fn measure(python: &Path, package: &str, work: &str, log: &Path) -> Result<Run> {
    let script = root().join("bench/python_work.py");
    let mut command = Command::new(python);
    let output =
        command.arg("-B").arg(script).args([package, work]).arg(log).output().context("starting Python")?;
    let text = String::from_utf8_lossy(&output.stdout);
    // Above the last line stands what pyulog has to say about damage.
    let last = text.trim_end().lines().last().unwrap_or_default();
    let mut words = last.splitn(3, ' ');
    let mut number = || words.next().and_then(|word| word.parse().ok());
    let (Some(seconds), Some(megabytes)) = (number(), number()) else {
        bail!("{package} {work} failed: {text}{}", String::from_utf8_lossy(&output.stderr));
    };
    Ok(Run { seconds, megabytes, found: words.next().unwrap_or_default().to_owned() })
}
