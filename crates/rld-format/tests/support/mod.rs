//! What the tests share: where logs are, and small helpers.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]
#![allow(clippy::print_stdout, reason = "a skipped test says so")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use rld_format::RldReader;
use rovelog_core::{Bytes, ReadOptions};
use serde_json::Value as Json;
use sha2::{Digest, Sha256};

/// The top folder of the workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A log file.
pub struct Log {
    pub name: String,
    pub bytes: Bytes,
}

/// The logs in a folder, by name.
pub fn logs_in(folder: &Path) -> Vec<Log> {
    let entries = fs::read_dir(folder).expect("a readable folder");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ext| ext == "rld"));
    paths.sort();
    let log = |path: PathBuf| Log {
        name: path.file_stem().expect("a name").to_string_lossy().into_owned(),
        bytes: fs::read(&path).expect("a readable file").into(),
    };
    paths.into_iter().map(log).collect()
}

/// Every log of the corpus.
pub fn corpus() -> Vec<Log> {
    let logs = logs_in(&root().join("corpus/rld"));
    assert!(logs.len() >= 40, "the corpus has {} RLD logs", logs.len());
    logs
}

/// The folder of real logs; says so where there is none.
pub fn real() -> Option<PathBuf> {
    let folder = std::env::var_os("ROVELOG_REAL").map_or_else(|| root().join("../shared/real"), PathBuf::from);
    let folder = folder.join("rld");
    if folder.is_dir() {
        return Some(folder);
    }
    println!("SKIPPED: no real logs in {} (set ROVELOG_REAL)", folder.display());
    None
}

pub fn open(bytes: &Bytes) -> RldReader {
    RldReader::new(bytes.clone(), &ReadOptions::default()).expect("a log that opens")
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

pub fn sha(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

pub fn json(path: &Path) -> Json {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).expect("JSON")
}

/// An integer that is a JSON number or a text.
pub fn int(value: &Json) -> i128 {
    match value {
        Json::String(text) => text.parse().expect("an integer"),
        value => value.as_i64().map(i128::from).or(value.as_u64().map(i128::from)).expect("an integer"),
    }
}

/// Gives at most as many bytes at once as `sizes` says, over and over.
pub struct Dribble<'a> {
    pub bytes: &'a [u8],
    pub sizes: Vec<usize>,
    pub turn: usize,
}

impl std::io::Read for Dribble<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let size = self.sizes[self.turn % self.sizes.len()].min(out.len()).min(self.bytes.len());
        self.turn += 1;
        out[..size].copy_from_slice(&self.bytes[..size]);
        self.bytes = &self.bytes[size..];
        Ok(size)
    }
}
