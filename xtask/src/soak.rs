//! `cargo xtask soak`: memory and open files of one process that reads thousands of logs.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use crate::process::{blessing, cargo, files_below, run as run_cargo};
use crate::{damage, place, root};

/// Numbers of logs. Each is a link to a log of the corpus, so that content is the same in all sizes.
const LOGS: [usize; 3] = [1000, 5000, 10_000];

/// Commands over a folder of logs.
const COMMANDS: &[(&str, &[&str])] = &[
    ("`info -f csv`", &["info", "-f", "csv"]),
    ("`info -f ndjson`", &["info", "-f", "ndjson"]),
    ("`check -f json`", &["check", "-f", "json"]),
];

/// Memory may grow by this part from the fewest logs to ten times as many.
const GROWTH: f64 = 1.5;

/// Runs the subcommand: `[FACTOR]`, which multiplies the numbers of logs.
pub(crate) fn command(args: &[String]) -> Result<()> {
    let factor: usize = match args {
        [] => 1,
        [factor] => factor.parse().with_context(|| format!("`{factor}` is no factor"))?,
        _ => bail!("usage: soak [FACTOR]"),
    };
    // Built as by the tests: memory and open files are the same without optimisation.
    run_cargo(&mut cargo(&["build", "--quiet", "--workspace", "--bin", "rovelog"]))?;
    let binary = place::target().join("debug").join(format!("rovelog{}", std::env::consts::EXE_SUFFIX));
    let folder = place::target().join("soak");
    let mut table =
        "| command | logs | seconds | memory, MB | open files |\n|---|---|---|---|---|\n".to_owned();
    let mut failed = Vec::new();
    for (name, args) in COMMANDS {
        let mut first: Option<Figures> = None;
        for logs in LOGS.map(|logs| logs * factor) {
            let links = links(&folder, logs)?;
            let figures = run(Command::new(&binary).args(*args).arg(&links), &folder)?;
            let Figures { seconds, megabytes, files } = figures;
            writeln!(table, "| {name} | {logs} | {seconds:.1} | {megabytes:.0} | {files} |")?;
            let first = first.get_or_insert(figures);
            if megabytes > first.megabytes * GROWTH || files > first.files + 4 {
                failed.push(format!("{name} of {logs} logs"));
            }
        }
    }
    fs::remove_dir_all(&folder)?;
    print!("{table}");
    ensure!(failed.is_empty(), "memory or open files grow with the number of logs: {}", failed.join(", "));
    if blessing() {
        let path = root().join("docs/internals/reliability.md");
        let text = fs::read_to_string(&path)?;
        let new =
            damage::replaced(&text, "soak", &table).context("the document has no place for the table")?;
        fs::write(&path, new)?;
    }
    Ok(())
}

/// Returns a new folder with so many links to logs of the corpus.
fn links(folder: &Path, logs: usize) -> Result<PathBuf> {
    let _ = fs::remove_dir_all(folder);
    let links = folder.join("logs");
    fs::create_dir_all(&links)?;
    let mut sources = Vec::new();
    for format in ["rld", "rosbag", "ulog", "vel"] {
        let corpus = root().join("corpus").join(format);
        sources.extend(files_below(&corpus)?.into_iter().map(|file| corpus.join(file)));
    }
    for (number, source) in sources.iter().cycle().take(logs).enumerate() {
        let name = source.file_name().context("a log has a name")?.to_string_lossy();
        // The number comes first: a name may say that a log is a part of another.
        fs::hard_link(source, links.join(format!("{number}-{name}")))
            .or_else(|_| fs::copy(source, links.join(format!("{number}-{name}"))).map(drop))?;
    }
    Ok(links)
}

/// Highest values of a process.
#[derive(Clone, Copy)]
struct Figures {
    seconds: f64,
    megabytes: f64,
    files: usize,
}

/// Runs a command and looks at its process until it ends. Damaged logs are part of the corpus, so that
/// any exit code but that of a signal will do.
fn run(command: &mut Command, folder: &Path) -> Result<Figures> {
    let start = Instant::now();
    let errors = File::create(folder.join("errors"))?;
    let mut child = command
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(errors)
        .spawn()
        .context("starting rovelog")?;
    let process = PathBuf::from(format!("/proc/{}", child.id()));
    let (mut kilobytes, mut files) = (0, 0);
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        let text = fs::read_to_string(process.join("status")).unwrap_or_default();
        let peak = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let peak = peak.and_then(|text| text.trim().strip_suffix(" kB")?.parse().ok());
        kilobytes = peak.unwrap_or(0).max(kilobytes);
        let open = fs::read_dir(process.join("fd")).map_or(0, Iterator::count);
        files = open.max(files);
        std::thread::sleep(Duration::from_millis(5));
    };
    ensure!(status.code().is_some(), "rovelog ended with {status}");
    ensure!(kilobytes > 0, "this system does not tell the memory of a process");
    Ok(Figures { seconds: start.elapsed().as_secs_f64(), megabytes: f64::from(kilobytes) / 1e3, files })
}
