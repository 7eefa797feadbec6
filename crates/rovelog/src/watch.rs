//! Detection of mapped files that were shortened while their log was open.

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

/// The memory-mapped files of a log that was opened with [`open_watched`](crate::open_watched).
/// Without the feature `mmap`, logs are read into memory and cannot change, so there are no such
/// files.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    /// All mapped files of the log.
    #[cfg(feature = "mmap")]
    files: Vec<Arc<WatchedFile>>,
}

impl Watch {
    /// Checks that no file of the log was shortened. This takes a few microseconds for each file.
    ///
    /// If the check succeeds, all data that was read before this call was the data in the file.
    ///
    /// # Errors
    /// Returns an error if another program has shortened a file of the log since it was opened.
    pub fn check(&self) -> Result<()> {
        if !self.shortened() {
            return Ok(());
        }
        let why = "another program shortened the log while it was open, so its data is gone";
        Err(Error::new("rovelog", ErrorKind::Io, None, why)
            .with_next("open the log again or, if a program still writes to it, open a copy of it"))
    }

    /// Adds a memory-mapped file to watch.
    #[cfg(feature = "mmap")]
    pub(crate) fn add(&mut self, file: Arc<WatchedFile>) {
        self.files.push(file);
    }

    /// Returns whether any file of the log was shortened.
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

/// A memory-mapped file, with its length and identity at the time when it was opened.
#[cfg(feature = "mmap")]
#[derive(Debug)]
pub(crate) struct WatchedFile {
    /// Absolute path of the file.
    path: PathBuf,
    /// Device and inode number of the file, if the operating system has them.
    identity: Option<(u64, u64)>,
    /// Length of the file in bytes when it was mapped.
    len: u64,
    /// True if the file was shortened. The signal handler sets this flag.
    shortened: AtomicBool,
}

#[cfg(feature = "mmap")]
impl WatchedFile {
    /// Records the path, the identity and the length `len` of a mapped file.
    pub(crate) fn new(file: &File, path: &Path, len: u64) -> std::io::Result<Self> {
        // The path is made absolute, because the current folder may change while the log is open.
        let (path, identity) = (std::path::absolute(path)?, identity(&file.metadata()?));
        Ok(Self { path, identity, len, shortened: AtomicBool::new(false) })
    }

    /// Returns a pointer to the flag that the signal handler sets.
    #[cfg(unix)]
    pub(crate) fn flag(&self) -> *const AtomicBool {
        &raw const self.shortened
    }

    /// Returns whether the file was shortened. The flag alone is not sufficient: reading between
    /// the new end of the file and the end of its last page gives zeros without a fault. So the
    /// length is compared, too.
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

/// Returns the device and inode number of a file. They show whether another file has replaced the
/// mapped file.
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
