//! `cargo xtask soak`: memory and open files of processes that read thousands of logs.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use crate::process::{blessing, cargo, files_below, run as run_cargo};
use crate::{corpus, damage, place, root};

/// Numbers of logs. Each is a link to a log of the corpus, so that content is the same in all sizes.
const LOGS: [usize; 3] = [1000, 5000, 10_000];

/// How the logs are read.
enum Reads {
    /// By one process, with these arguments and the folder of the logs.
    Command(&'static [&'static str]),
    /// By one process after the other, each of [`BATCH`] logs.
    Batches(&'static [&'static str]),
    /// By a server that is asked for the page of each log.
    Pages,
}

/// Logs of each process of [`Reads::Batches`].
const BATCH: usize = 1000;

const READS: &[(&str, Reads)] = &[
    ("`info -f csv`", Reads::Command(&["info", "-f", "csv"])),
    ("`info -f ndjson`", Reads::Command(&["info", "-f", "ndjson"])),
    ("`info`, 1000 logs in each process", Reads::Batches(&["info", "-f", "csv"])),
    ("`check -f json`", Reads::Command(&["check", "-f", "json"])),
    ("`export --to mcap`", Reads::Command(&["export", "--to", "mcap", "--force", "-q", "-o", OUTPUT])),
    ("`view`, every log shown", Reads::Pages),
];

/// Folder of what is exported.
const OUTPUT: &str = "exported";

/// Memory may grow to so many times that of the fewest logs, for ten times as many.
const GROWTH: f64 = 1.5;

/// That of `view` may grow by so many megabytes for each further log: it keeps the row of each.
const PER_ROW: f64 = 0.002;

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
    for (name, reads) in READS {
        let mut first: Option<(usize, Figures)> = None;
        for logs in LOGS.map(|logs| logs * factor) {
            let links = links(&folder, logs)?;
            let figures = reads.measured(&binary, &links, &folder)?;
            println!("{name}: {logs} logs: {figures:?}");
            let Figures { seconds, megabytes, files } = figures;
            writeln!(table, "| {name} | {logs} | {seconds:.1} | {megabytes:.0} | {files} |")?;
            let (fewest, first) = first.get_or_insert((logs, figures));
            let allowed = match reads {
                Reads::Pages => first.megabytes + PER_ROW * f64::from(u32::try_from(logs - *fewest)?),
                Reads::Command(_) | Reads::Batches(_) => first.megabytes * GROWTH,
            };
            if megabytes > allowed || files > first.files + 4 {
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
    for format in corpus::formats() {
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

/// Time of all processes, and highest values of any.
#[derive(Clone, Copy, Debug, Default)]
struct Figures {
    seconds: f64,
    megabytes: f64,
    files: usize,
}

impl Reads {
    /// Reads the logs in `links`; what is written goes to `folder`.
    fn measured(&self, binary: &Path, links: &Path, folder: &Path) -> Result<Figures> {
        let start = Instant::now();
        let mut figures = Figures::default();
        match self {
            Self::Command(args) => run(Command::new(binary).args(*args).arg(links), folder, &mut figures)?,
            Self::Batches(args) => {
                let mut logs: Vec<_> =
                    fs::read_dir(links)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
                logs.sort();
                for batch in logs.chunks(BATCH) {
                    run(Command::new(binary).args(*args).args(batch), folder, &mut figures)?;
                }
            }
            Self::Pages => Server::start(binary, links)?.show_all(&mut figures)?,
        }
        figures.seconds = start.elapsed().as_secs_f64();
        Ok(figures)
    }
}

impl Figures {
    /// Looks at a process; its highest memory stays known until it has ended.
    fn look_at(&mut self, process: &Child) {
        let folder = PathBuf::from(format!("/proc/{}", process.id()));
        let text = fs::read_to_string(folder.join("status")).unwrap_or_default();
        let peak = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = peak.and_then(|text| text.trim().strip_suffix(" kB")?.parse::<f64>().ok());
        self.megabytes = self.megabytes.max(kilobytes.unwrap_or(0.0) / 1e3);
        self.files = self.files.max(fs::read_dir(folder.join("fd")).map_or(0, Iterator::count));
    }
}

/// Runs a command and looks at its process until it ends. Damaged logs and logs that are refused are
/// part of the corpus, so the exit code may be 1 or 3; a wrong option is 2, a panic 101.
fn run(command: &mut Command, folder: &Path, figures: &mut Figures) -> Result<()> {
    let errors = File::create(folder.join("errors"))?;
    let mut child = command
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(errors)
        .spawn()
        .context("starting rovelog")?;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        figures.look_at(&child);
        std::thread::sleep(Duration::from_millis(5));
    };
    ensure!(matches!(status.code(), Some(0 | 1 | 3)), "rovelog ended with {status}");
    ensure!(figures.megabytes > 0.0, "this system does not tell the memory of a process");
    Ok(())
}

/// `rovelog view`, until it is dropped.
struct Server {
    process: Child,
    /// Host and port.
    host: String,
    /// First part of the path of each request.
    token: String,
    _output: BufReader<ChildStdout>,
}

impl Server {
    fn start(binary: &Path, links: &Path) -> Result<Self> {
        let mut process = Command::new(binary)
            .args(["view", "--no-open"])
            .arg(links)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("starting rovelog view")?;
        let mut output = BufReader::new(process.stdout.take().context("it is piped")?);
        let mut line = String::new();
        output.read_line(&mut line)?;
        let address = line.split_whitespace().find_map(|word| word.strip_prefix("http://"));
        let Some((host, token)) = address.and_then(|address| address.split_once('/')) else {
            process.kill()?;
            bail!("rovelog view printed no address: {line}");
        };
        let (host, token) = (host.to_owned(), token.trim_end_matches('/').to_owned());
        Ok(Self { process, host, token, _output: output })
    }

    /// Asks for the row of each log in the list, and for its page.
    fn show_all(&self, figures: &mut Figures) -> Result<()> {
        let list: serde_json::Value = serde_json::from_str(&self.get("logs")?)?;
        let logs = list["logs"].as_array().context("a list of logs")?.len();
        let mut shown = 0;
        for log in 0..logs {
            self.get(&format!("logs/{log}/row"))?;
            shown += usize::from(self.get(&format!("logs/{log}"))?.contains("topics"));
            figures.look_at(&self.process);
        }
        // A few logs of the corpus are refused.
        ensure!(shown * 3 > logs * 2, "{shown} of {logs} logs could be shown");
        ensure!(figures.megabytes > 0.0, "this system does not tell the memory of a process");
        Ok(())
    }

    /// Returns the body of an answer; a log that cannot be opened has one too.
    fn get(&self, path: &str) -> Result<String> {
        let mut stream = TcpStream::connect(&self.host)?;
        let (host, token) = (&self.host, &self.token);
        write!(stream, "GET /{token}/{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (_, body) = answer.split_once("\r\n\r\n").context("an answer has a header")?;
        Ok(body.to_owned())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It ends by a signal only; where it has ended, there is nothing to end.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
