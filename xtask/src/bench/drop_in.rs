//! `cargo xtask bench python`: runs the same scripts with an original Python package and with its
//! drop-in replacement.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::python::{PYULOG, ROCKETLOGGER};
use crate::{package, peers, root};

/// A Python package, its drop-in replacement, and scripts that run with both of them.
struct DropIn {
    package: &'static str,
    /// Extension of log files that the package reads.
    extension: &'static str,
    ours: &'static str,
    /// Returns the log that the scripts read. If the log does not exist, it is created. Returns
    /// `None` if the original package or the real log is missing.
    log: fn() -> Result<Option<PathBuf>>,
    /// Names of the scripts' tasks in `bench/python_work.py`, with their descriptions.
    works: &'static [(&'static str, &'static str)],
}

const PACKAGES: &[&str] = &[PYULOG, ROCKETLOGGER, "numpy"];

const DROP_INS: &[DropIn] = &[
    DropIn {
        package: "pyulog",
        extension: "ulg",
        ours: "rovelog.compat.pyulog",
        log: || corpus_generator::large_log("ulog", None).map(Some),
        works: &[
            ("review", "review of a flight: summary, parameters, texts, dropouts, attitude, position"),
            ("info", "the summary alone"),
            ("dataset", "one dataset (`sensor_combined`) by the message filter"),
            ("load", "all datasets in memory"),
            ("everything", "all datasets, and the maximum of each field"),
        ],
    },
    DropIn {
        package: "rocketlogger.data",
        extension: "rld",
        ours: "rovelog.compat.rocketlogger",
        log: large_rld,
        works: &[
            ("matrix", "load and `get_data` of all channels"),
            ("power", "load, merged current, energy of one channel"),
        ],
    },
    DropIn {
        package: "rosbag",
        extension: "bag",
        ours: "rovelog.compat.rosbag",
        // The original package is installed by the Linux distribution.
        log: || {
            peers::distribution_python("rosbag")
                .map(|_| corpus_generator::large_log("rosbag", None))
                .transpose()
        },
        works: &[("messages", "`read_messages`, each message an object")],
    },
];

/// Number of blocks in the large power log, which then has 100 MB.
const BLOCKS: usize = 2800;

/// Creates a long power log from a real log. The blocks of the real log are repeated with
/// increasing timestamps.
fn large_rld() -> Result<Option<PathBuf>> {
    let Some(real) = corpus_generator::real() else { return Ok(None) };
    let out = root().join("target/large/power.rld");
    if out.is_file() {
        return Ok(Some(out));
    }
    let mut log = fs::read(real.join("rld/test_full.rld")).context("reading the real power trace")?;
    let number =
        |log: &[u8], at: usize| u32::from_le_bytes([log[at], log[at + 1], log[at + 2], log[at + 3]]) as usize;
    let header = usize::from(u16::from_le_bytes([log[6], log[7]]));
    let (rows, blocks) = (number(&log, 8), number(&log, 12));
    let data = log.split_off(header);
    let block = data.len() / blocks;
    log[12..16].copy_from_slice(&u32::try_from(BLOCKS)?.to_le_bytes());
    log[16..24].copy_from_slice(&((rows * BLOCKS) as u64).to_le_bytes());
    for number in 0..BLOCKS {
        let at = log.len();
        log.extend(&data[number % blocks * block..][..block]);
        // Each block lasts a second. Its realtime and monotonic timestamps are increased, so that
        // the clocks continue.
        let later = i64::try_from(number / blocks * blocks)?;
        for seconds in [at, at + 16] {
            let place = &mut log[seconds..seconds + 8];
            let timestamp = i64::from_le_bytes(place.try_into().expect("eight bytes")) + later;
            place.copy_from_slice(&timestamp.to_le_bytes());
        }
    }
    fs::create_dir_all(root().join("target/large"))?;
    fs::write(&out, log)?;
    Ok(Some(out))
}

/// Number of runs with the drop-in replacement, of which the median is printed. The original
/// package runs only once.
const RUNS: usize = 5;

/// Runs the benchmark. If `log` is given, only the drop-in replacement for its format is measured.
pub(super) fn run(log: Option<&Path>) -> Result<()> {
    let python = package::release("bench-python", PACKAGES)?;
    let packages = packages(&python)?;
    for drop_in in DROP_INS {
        if log.is_some_and(|log| log.extension() != Some(drop_in.extension.as_ref())) {
            continue;
        }
        let Some(log) = log.map_or_else(drop_in.log, |log| Ok(Some(log.to_owned())))? else { continue };
        println!(
            "{}, {} bytes; time of the script, imports not counted\n",
            super::name(&log),
            log.metadata()?.len()
        );
        println!(
            "| script | {0} s | ours s | {0} / ours | {0} CPU s | ours CPU s | {0} / ours | {0} MB | ours MB |\n\
             |---|---|---|---|---|---|---|---|---|",
            drop_in.package
        );
        for (work, description) in drop_in.works {
            let distribution =
                peers::distribution_python(drop_in.package).filter(|_| drop_in.package == "rosbag");
            // Both packages run in one interpreter, because Python interpreters differ in speed.
            let same = distribution.as_ref().unwrap_or(&python);
            let theirs = measure(same, None, drop_in.package, work, &log)?;
            let ours = |_| measure(same, Some(&packages), drop_in.ours, work, &log);
            let mut runs = (0..RUNS).map(ours).collect::<Result<Vec<_>>>()?;
            runs.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
            let ours = &runs[RUNS / 2];
            ensure!(ours.found == theirs.found, "{work}: {} is not {}", ours.found, theirs.found);
            let (ratio, of_cpu) = (theirs.seconds / ours.seconds, theirs.cpu / ours.cpu);
            println!(
                "| {description} | {:.2} | {:.3} | {ratio:.1} | {:.2} | {:.3} | {of_cpu:.1} | {:.0} | {:.0} |",
                theirs.seconds, ours.seconds, theirs.cpu, ours.cpu, theirs.megabytes, ours.megabytes
            );
        }
        println!();
    }
    Ok(())
}

/// Result of one run of a script.
struct Run {
    seconds: f64,
    cpu: f64,
    megabytes: f64,
    /// Result that the script computed and printed.
    found: String,
}

/// Returns the folder in which the packages of a Python environment are installed.
fn packages(python: &Path) -> Result<PathBuf> {
    let code = "import sysconfig; print(sysconfig.get_path('purelib'))";
    let output = Command::new(python).args(["-c", code]).output().context("starting Python")?;
    Ok(PathBuf::from(String::from_utf8(output.stdout)?.trim_end()))
}

fn measure(python: &Path, packages: Option<&Path>, package: &str, work: &str, log: &Path) -> Result<Run> {
    let script = root().join("bench/python_work.py");
    let mut command = Command::new(python);
    // The threads of numpy's BLAS library use CPU time while they wait, and no script needs them.
    command.env("OPENBLAS_NUM_THREADS", "1");
    if let Some(packages) = packages {
        command.env("PYTHONPATH", packages);
    }
    let output =
        command.arg("-B").arg(script).args([package, work]).arg(log).output().context("starting Python")?;
    let text = String::from_utf8_lossy(&output.stdout);
    // pyulog prints messages about damage. The result is on the last line.
    let last = text.trim_end().lines().last().unwrap_or_default();
    let mut words = last.splitn(4, ' ');
    let mut number = || words.next().and_then(|word| word.parse().ok());
    let (Some(seconds), Some(cpu), Some(megabytes)) = (number(), number(), number()) else {
        bail!("{package} {work} failed: {text}{}", String::from_utf8_lossy(&output.stderr));
    };
    Ok(Run { seconds, cpu, megabytes, found: words.next().unwrap_or_default().to_owned() })
}
