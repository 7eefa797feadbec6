//! Locations of logs: the corpus in the repository, real logs next to the checkout.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use rovelog_core::Bytes;
use serde_json::Value as Json;

/// Returns the top folder of the workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace exists")
}

/// A log and its name.
#[derive(Clone, Debug)]
pub struct Log {
    /// File name without extension.
    pub name: String,
    /// Path of the file.
    pub path: PathBuf,
    /// Content of the file.
    pub bytes: Bytes,
}

impl Log {
    fn read(path: PathBuf) -> Self {
        let name = path.file_stem().expect("a file").to_string_lossy().into_owned();
        let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self { name, bytes: bytes.into(), path }
    }

    /// Returns whether the file is compressed as a whole.
    pub fn is_compressed(&self) -> bool {
        self.bytes.starts_with(b"\x1f\x8b") || self.bytes.starts_with(b"BZh")
    }

    /// Returns the log of a compressed file, as the tools of the compression give it.
    fn decompressed(mut self) -> Self {
        if self.is_compressed() {
            let tool = if self.bytes.starts_with(b"BZh") { "bzip2" } else { "gzip" };
            let output = Command::new(tool).arg("-dc").arg(&self.path).output();
            self.bytes = output.unwrap_or_else(|error| panic!("{tool}: {error}")).stdout.into();
        }
        self
    }
}

/// Locations of a format's logs.
#[derive(Clone, Copy, Debug)]
pub struct Logs {
    /// Id of the format, which is also its folder in the corpus.
    format: &'static str,
    /// File extensions; files of the corpus have the first.
    extensions: &'static [&'static str],
    /// The folder of real logs.
    folder: &'static str,
    /// Minimum number of cases in the corpus.
    cases: usize,
}

/// Locations of `ULog` files.
pub const ULOG: Logs = Logs { format: "ulog", extensions: &["ulg"], folder: "ulog", cases: 140 };

/// Locations of RLD logs.
pub const RLD: Logs = Logs { format: "rld", extensions: &["rld"], folder: "rld", cases: 100 };

/// Locations of ROS bags; real ones are compressed, too.
pub const ROSBAG: Logs =
    Logs { format: "rosbag", extensions: &["bag", "gz", "bz2"], folder: "rosbag12", cases: 180 };

/// Locations of VEL logs; the real ones come from an independent writer.
pub const VEL: Logs = Logs { format: "vel", extensions: &["vel"], folder: "vel", cases: 95 };

impl Logs {
    /// Returns the corpus: small logs made from the specification, without those that are
    /// compressed as a whole.
    pub fn corpus(&self) -> Vec<Log> {
        let mut logs = corpus(self.format, self.extensions[0], self.cases);
        logs.retain(|log| !log.is_compressed());
        logs
    }

    /// Returns the logs of the corpus that are compressed as a whole, which the facade opens.
    pub fn compressed(&self) -> Vec<Log> {
        let mut logs = corpus(self.format, self.extensions[0], self.cases);
        logs.retain(Log::is_compressed);
        logs
    }

    /// Returns a case of the corpus.
    pub fn case(&self, name: &str) -> Log {
        Log::read(root().join(format!("corpus/{}/{name}.{}", self.format, self.extensions[0])))
    }

    /// Returns the expected result of a case.
    pub fn expected(&self, name: &str) -> Json {
        expected(self.format, name)
    }

    /// Returns the folder of real logs; prints a note if there is none.
    pub fn folder(&self) -> Option<PathBuf> {
        real(self.folder)
    }

    /// Returns the real logs, decompressed; empty without their folder.
    pub fn real(&self) -> Vec<Log> {
        let folder = self.folder().into_iter();
        let logs =
            folder.flat_map(|folder| self.extensions.iter().flat_map(move |ext| logs_in(&folder, ext)));
        logs.map(Log::decompressed).collect()
    }

    /// Returns a real log; `None` without a folder of real logs. If there is a folder, the log must
    /// be in it.
    pub fn real_log(&self, name: &str) -> Option<Log> {
        let file = format!("{name}.{}", self.extensions[0]);
        self.folder().map(|folder| Log::read(folder.join(file)))
    }

    /// Returns the corpus, and the real logs if present; prints a note if they are not.
    pub fn all(&self) -> Vec<Log> {
        let mut logs = self.corpus();
        logs.extend(self.real());
        logs
    }
}

/// Returns all files of a folder with the extension, sorted by name; empty if the folder is
/// missing.
pub fn logs_in(folder: &Path, extension: &str) -> Vec<Log> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|found| found == extension));
    paths.sort();
    paths.into_iter().map(Log::read).collect()
}

/// Returns the corpus of a format: small logs made from the specification, at least `min` of them.
pub fn corpus(format: &str, extension: &str, min: usize) -> Vec<Log> {
    let logs = logs_in(&root().join("corpus").join(format), extension);
    assert!(logs.len() >= min, "the corpus is part of the repository: cargo xtask gen-corpus");
    logs
}

/// Returns the expected result of a corpus log.
pub fn expected(format: &str, name: &str) -> Json {
    read_json(&root().join(format!("corpus/expected/{format}/{name}.json")))
}

/// Returns the content of a JSON file.
pub fn read_json(path: &Path) -> Json {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns a folder of real logs, below `ROVELOG_REAL` or next to the checkout; prints a note if
/// there is none.
pub fn real(folder: &str) -> Option<PathBuf> {
    let folder = real_folder(folder);
    if folder.is_dir() {
        return Some(folder);
    }
    skipped(&format!("no real logs in {} (set ROVELOG_REAL)", folder.display()));
    None
}

fn real_folder(folder: &str) -> PathBuf {
    let real = std::env::var_os("ROVELOG_REAL").map_or_else(|| root().join("../shared/real"), PathBuf::from);
    real.join(folder)
}

/// Reports why the running test is skipped. Runners hide the output of a passing test, so the
/// reason is also added to the file named by `ROVELOG_SKIPPED`, which `cargo xtask test` lists.
#[expect(clippy::print_stdout, reason = "a skipped test says so")]
pub fn skipped(why: &str) {
    println!("SKIPPED: {why}");
    let Some(list) = std::env::var_os("ROVELOG_SKIPPED") else { return };
    // A thread has the name of its test, except under nextest, where each test is the main thread
    // of a process and is named in its arguments.
    let args: Vec<String> = std::env::args().collect();
    let program = Path::new(&args[0]).file_stem().unwrap_or_default().to_string_lossy();
    let program = program.rsplit_once('-').map_or(&*program, |(name, _)| name);
    let thread = std::thread::current();
    let exact = args.iter().skip_while(|arg| *arg != "--exact").nth(1).map(String::as_str);
    let name = thread.name().filter(|name| *name != "main").or(exact).unwrap_or("a test");
    let package = std::env::var("CARGO_PKG_NAME").unwrap_or_default();
    let mut list = fs::File::options().create(true).append(true).open(list).expect("a file for the list");
    list.write_all(format!("{why}\t{package}::{program} {name}\n").as_bytes()).expect("a line more");
}
