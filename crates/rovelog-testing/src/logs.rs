//! Where logs are: the corpus in the repository, real logs beside the checkout.

use std::fs;
use std::path::{Path, PathBuf};

use rovelog_core::Bytes;
use serde_json::Value as Json;

/// The top folder of the workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace exists")
}

/// A log with its name.
#[derive(Clone, Debug)]
pub struct Log {
    /// The file's name without its extension.
    pub name: String,
    /// The file.
    pub path: PathBuf,
    /// What is in it.
    pub bytes: Bytes,
}

/// All files of a folder with the extension, by name; none where the folder is missing.
pub fn logs_in(folder: &Path, extension: &str) -> Vec<Log> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|found| found == extension));
    paths.sort();
    let log = |path: PathBuf| {
        let name = path.file_stem().expect("a file").to_string_lossy().into_owned();
        Log { name, bytes: fs::read(&path).expect("a readable file").into(), path }
    };
    paths.into_iter().map(log).collect()
}

/// The corpus of a format: small logs laid from the specification, at least `least` of them.
pub fn corpus(format: &str, extension: &str, least: usize) -> Vec<Log> {
    let logs = logs_in(&root().join("corpus").join(format), extension);
    assert!(logs.len() >= least, "the corpus is part of the repository: cargo xtask gen-corpus");
    logs
}

/// The expected result of a corpus log.
pub fn expected(format: &str, name: &str) -> Json {
    let path = root().join(format!("corpus/expected/{format}/{name}.json"));
    let text = fs::read_to_string(&path).expect("every case has an expected result");
    serde_json::from_str(&text).expect("JSON")
}

/// A folder of real logs, below `ROVELOG_REAL` or beside the checkout; says so where there is none.
#[expect(clippy::print_stdout, reason = "a skipped test says so")]
pub fn real(folder: &str) -> Option<PathBuf> {
    let real = std::env::var_os("ROVELOG_REAL").map_or_else(|| root().join("../shared/real"), PathBuf::from);
    let folder = real.join(folder);
    if folder.is_dir() {
        return Some(folder);
    }
    println!("SKIPPED: no real logs in {} (set ROVELOG_REAL)", folder.display());
    None
}
