//! Locations of logs: the corpus in the repository, and real logs outside of it.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use rovelog_core::Bytes;
use serde_json::Value as Json;

/// Returns the root folder of the workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace exists")
}

/// A log file in memory.
#[derive(Clone, Debug)]
pub struct Log {
    /// File name without extension.
    pub name: String,
    /// Path of the file.
    pub path: PathBuf,
    /// Contents of the file.
    pub bytes: Bytes,
}

impl Log {
    /// Reads the file at `path`.
    fn read(path: PathBuf) -> Self {
        let name = path.file_stem().expect("a file").to_string_lossy().into_owned();
        let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self { name, bytes: bytes.into(), path }
    }

    /// Returns whether the file is compressed as a whole.
    pub fn is_compressed(&self) -> bool {
        self.bytes.starts_with(b"\x1f\x8b") || self.bytes.starts_with(b"BZh")
    }

    /// Decompresses the file with an external tool, so that the result is independent of our
    /// decoders.
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
    /// Identifier of the format, which is also its folder in the corpus.
    format: &'static str,
    /// File name extensions of real logs. Logs of the corpus have the first of these extensions.
    extensions: &'static [&'static str],
    /// Name of the folder that contains the real logs.
    folder: &'static str,
    /// Minimum number of logs that the corpus must contain.
    cases: usize,
}

/// Locations of `ULog` files.
pub const ULOG: Logs = Logs { format: "ulog", extensions: &["ulg"], folder: "ulog", cases: 140 };

/// Locations of RLD logs.
pub const RLD: Logs = Logs { format: "rld", extensions: &["rld"], folder: "rld", cases: 100 };

/// Locations of ROS bags. Some of the real bags are compressed.
pub const ROSBAG: Logs =
    Logs { format: "rosbag", extensions: &["bag", "gz", "bz2"], folder: "rosbag12", cases: 180 };

/// Locations of VEL logs. The real logs were written by independent software.
pub const VEL: Logs = Logs { format: "vel", extensions: &["vel"], folder: "vel", cases: 95 };

impl Logs {
    /// Returns the logs of the corpus that are not compressed as a whole. These logs are small and
    /// were generated according to the specification.
    pub fn corpus(&self) -> Vec<Log> {
        let mut logs = corpus(self.format, self.extensions[0], self.cases);
        logs.retain(|log| !log.is_compressed());
        logs
    }

    /// Returns the logs of the corpus that are compressed as a whole. The crate `rovelog` can open
    /// such logs.
    pub fn compressed(&self) -> Vec<Log> {
        let mut logs = corpus(self.format, self.extensions[0], self.cases);
        logs.retain(Log::is_compressed);
        logs
    }

    /// Returns the corpus log with this name.
    pub fn case(&self, name: &str) -> Log {
        Log::read(root().join(format!("corpus/{}/{name}.{}", self.format, self.extensions[0])))
    }

    /// Returns the expected result for the corpus log with this name.
    pub fn expected(&self, name: &str) -> Json {
        expected(self.format, name)
    }

    /// Returns the folder of real logs. Prints a note and returns `None` if the folder does not
    /// exist.
    pub fn folder(&self) -> Option<PathBuf> {
        real(self.folder)
    }

    /// Returns the real logs in decompressed form. The list is empty if the folder of real logs
    /// does not exist.
    pub fn real(&self) -> Vec<Log> {
        let folder = self.folder().into_iter();
        let logs =
            folder.flat_map(|folder| self.extensions.iter().flat_map(move |ext| logs_in(&folder, ext)));
        logs.map(Log::decompressed).collect()
    }

    /// Returns the real log with this name. Returns `None` if the folder of real logs does not
    /// exist. Panics if the folder exists but does not contain the log.
    pub fn real_log(&self, name: &str) -> Option<Log> {
        let file = format!("{name}.{}", self.extensions[0]);
        self.folder().map(|folder| Log::read(folder.join(file)))
    }

    /// Returns the logs of the corpus and the real logs. Prints a note if there are no real logs.
    pub fn all(&self) -> Vec<Log> {
        let mut logs = self.corpus();
        logs.extend(self.real());
        logs
    }
}

/// Returns all files with this extension in a folder, sorted by name. The list is empty if the
/// folder does not exist.
pub fn logs_in(folder: &Path, extension: &str) -> Vec<Log> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|found| found == extension));
    paths.sort();
    paths.into_iter().map(Log::read).collect()
}

/// Returns the corpus logs of a format. Panics if there are fewer than `min` logs.
pub fn corpus(format: &str, extension: &str, min: usize) -> Vec<Log> {
    let logs = logs_in(&root().join("corpus").join(format), extension);
    // If the corpus is missing, the test must fail. It must not pass because there is nothing to
    // check.
    assert!(logs.len() >= min, "the corpus is part of the repository: cargo xtask gen-corpus");
    logs
}

/// Returns the expected result for a corpus log.
pub fn expected(format: &str, name: &str) -> Json {
    read_json(&root().join(format!("corpus/expected/{format}/{name}.json")))
}

/// Parses a JSON file.
pub fn read_json(path: &Path) -> Json {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the path of a folder of real logs, which is in the folder `ROVELOG_REAL` or next to the
/// checkout. Prints a note and returns `None` if the folder does not exist.
pub fn real(folder: &str) -> Option<PathBuf> {
    let folder = real_folder(folder);
    if folder.is_dir() {
        return Some(folder);
    }
    skipped(&format!("no real logs in {} (set ROVELOG_REAL)", folder.display()));
    None
}

/// Returns the path of a folder of real logs, which may not exist.
fn real_folder(folder: &str) -> PathBuf {
    let real = std::env::var_os("ROVELOG_REAL").map_or_else(|| root().join("../shared/real"), PathBuf::from);
    real.join(folder)
}

/// Reports that the running test is skipped.
///
/// Test runners hide the output of a passing test. So the reason is also appended to the file that
/// the environment variable `ROVELOG_SKIPPED` names. `cargo xtask test` prints the contents of this
/// file.
#[expect(clippy::print_stdout, reason = "a skipped test says so")]
pub fn skipped(why: &str) {
    println!("SKIPPED: {why}");
    let Some(list) = std::env::var_os("ROVELOG_SKIPPED") else { return };
    // The name of the thread is the name of the test. If nextest runs the test, the test is the
    // main thread of a process, and its name is in the arguments of the process.
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
