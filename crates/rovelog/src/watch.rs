//! Detects whether the mapped files of a log were shortened while it was open.

#[cfg(feature = "mmap")]
use std::fs::{File, Metadata};
#[cfg(feature = "mmap")]
use std::path::{Path, PathBuf};
#[cfg(feature = "mmap")]
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use rovelog_core::{Error, ErrorKind, Result};

/// The mapped files of a log that was opened with [`open_watched`](crate::open_watched). Empty
/// without the feature `mmap`, because logs are then read into memory and cannot change.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    #[cfg(feature = "mmap")]
    files: Vec<Arc<WatchedFile>>,
}

impl Watch {
    /// Checks that the files still have their length. This takes a few microseconds for each file.
    ///
    /// If the call succeeds, all data that was read from the log before it was the data in the
    /// file.
    ///
    /// # Errors
    /// Returns an error if another program has shortened a file of the log since it was opened.
    pub fn check(&self) -> Result<()> {
        if !self.shortened() {
            return Ok(());
        }
        let why = "the log was shortened by another program while it was open; its data is gone";
        Err(Error::new("rovelog", ErrorKind::Io, None, why)
            .with_next("open the log again; if another program still writes to it, open a copy"))
    }

    #[cfg(feature = "mmap")]
    pub(crate) fn add(&mut self, file: Arc<WatchedFile>) {
        self.files.push(file);
    }

    #[cfg(feature = "mmap")]
    fn shortened(&self) -> bool {
        self.files.iter().any(|file| file.shortened())
    }

    #[cfg(not(feature = "mmap"))]
    #[expect(clippy::unused_self, reason = "no file is mapped")]
    fn shortened(&self) -> bool {
        false
    }
}

/// A mapped file, with the length and the identity that it had when it was opened.
#[cfg(feature = "mmap")]
#[derive(Debug)]
pub(crate) struct WatchedFile {
    path: PathBuf,
    identity: Option<(u64, u64)>,
    len: u64,
    shortened: AtomicBool,
}

#[cfg(feature = "mmap")]
impl WatchedFile {
    pub(crate) fn new(file: &File, path: &Path, len: u64) -> std::io::Result<Self> {
        // The path is made absolute, because the current folder may change later.
        let (path, identity) = (std::path::absolute(path)?, identity(&file.metadata()?));
        Ok(Self { path, identity, len, shortened: AtomicBool::new(false) })
    }

    /// Returns the flag that the signal handler sets.
    #[cfg(unix)]
    pub(crate) fn flag(&self) -> *const AtomicBool {
        &raw const self.shortened
    }

    /// Returns whether the file was shortened. Compares its length, too: reading between the new
    /// end of the file and the end of its last page gives zeros without a fault.
    fn shortened(&self) -> bool {
        if self.shortened.load(Ordering::SeqCst) {
            return true;
        }
        let now = std::fs::metadata(&self.path);
        let shorter = now.is_ok_and(|now| identity(&now) == self.identity && now.len() < self.len);
        if shorter {
            self.shortened.store(true, Ordering::SeqCst);
        }
        shorter
    }
}

/// Returns the identity of a file, which detects that another file replaced it.
#[cfg(all(feature = "mmap", unix))]
#[expect(clippy::unnecessary_wraps, reason = "other systems have none")]
fn identity(of: &Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    Some((of.dev(), of.ino()))
}

#[cfg(all(feature = "mmap", not(unix)))]
fn identity(_: &Metadata) -> Option<(u64, u64)> {
    None
}
