//! What the tests share: where bags are, and how they are read.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]
#![allow(clippy::print_stdout, reason = "a skipped test says so")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use rosbag12::{BagOptions, BagReader};
use rovelog_core::Bytes;
use sha2::{Digest, Sha256};

/// The top folder of the workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace exists")
}

/// A bag with its name.
pub struct Log {
    pub name: String,
    pub path: PathBuf,
    pub bytes: Bytes,
}

/// All bags of a folder, by name, compressed ones too.
pub fn logs_in(folder: &Path) -> Vec<Log> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    let is_bag =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().contains(".bag"));
    paths.retain(|path| path.is_file() && is_bag(path));
    paths.sort();
    let log = |path: PathBuf| {
        let name = path.file_name().expect("a file").to_string_lossy().into_owned();
        Log { name, bytes: fs::read(&path).expect("a readable file").into(), path }
    };
    paths.into_iter().map(log).collect()
}

/// The corpus: small bags laid from the specification.
pub fn corpus() -> Vec<Log> {
    let logs = logs_in(&root().join("corpus/rosbag"));
    assert!(logs.len() >= 40, "the corpus is part of the repository: cargo xtask gen-corpus");
    logs
}

/// The folder of real bags, from `ROVELOG_REAL` or beside the checkout; says so where there is none.
pub fn real() -> Option<PathBuf> {
    let folder =
        std::env::var_os("ROVELOG_REAL").map_or_else(|| root().join("../shared/real"), PathBuf::from);
    let folder = folder.join("rosbag12");
    if folder.is_dir() {
        return Some(folder);
    }
    println!("SKIPPED: no real logs in {} (set ROVELOG_REAL)", folder.display());
    None
}

/// How a bag of the corpus or of the real ones is read: bags without a version line on request.
pub fn options(name: &str) -> BagOptions {
    let options = BagOptions::default();
    if name.starts_with("v0") { options.as_version_0() } else { options }
}

pub fn open(bytes: &Bytes) -> BagReader {
    BagReader::new(bytes.clone(), &BagOptions::default()).expect("a bag that opens")
}

/// Lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
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
