//! Detects whether the mapped files of a log were shortened.

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

/// The mapped files of a log that was opened with [`open_watched`](crate::open_watched). Without
/// the feature `mmap` there are none: a log that was read whole cannot change.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    #[cfg(feature = "mmap")]
    files: Vec<Arc<Watched>>,
}

impl Watch {
    /// Checks that the files still have their length; takes a few microseconds for each.
    ///
    /// Data read from the log before this call is as recorded only if the call succeeds.
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
    pub(crate) fn add(&mut self, file: Arc<Watched>) {
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

/// A mapped file, with its length and identity at opening.
#[cfg(feature = "mmap")]
#[derive(Debug)]
pub(crate) struct Watched {
    path: PathBuf,
    identity: Option<(u64, u64)>,
    len: u64,
    shortened: AtomicBool,
}

#[cfg(feature = "mmap")]
impl Watched {
    pub(crate) fn new(file: &File, path: &Path, len: u64) -> std::io::Result<Self> {
        // The current folder may change later.
        let (path, identity) = (std::path::absolute(path)?, identity(&file.metadata()?));
        Ok(Self { path, identity, len, shortened: AtomicBool::new(false) })
    }

    /// Returns the flag that the signal handler sets.
    #[cfg(unix)]
    pub(crate) fn flag(&self) -> *const AtomicBool {
        &raw const self.shortened
    }

    /// Returns whether the file was shortened. After a new end, the rest of the page reads as zeros
    /// without a fault, so the length is checked too.
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

/// Returns the identity of a file, to detect another file under its name.
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
