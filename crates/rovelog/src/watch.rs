//! Whether the mapped files of a log still have the bytes that they had.

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

/// The mapped files of a log that was opened with [`open_watched`](crate::open_watched). Without the feature `mmap`
/// there are none, and nothing can happen to a log that was read whole.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    #[cfg(feature = "mmap")]
    files: Vec<Arc<Watched>>,
}

impl Watch {
    /// Asks the system whether the files are as long as they were; a few microseconds for each.
    ///
    /// What was read from the log before this call is as it was recorded only where the call succeeds.
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

/// A mapped file as it was when it was opened.
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
        // The current folder may be another one later.
        let (path, identity) = (std::path::absolute(path)?, identity(&file.metadata()?));
        Ok(Self { path, identity, len, shortened: AtomicBool::new(false) })
    }

    /// What the handler of a fault sets.
    #[cfg(unix)]
    pub(crate) fn flag(&self) -> *const AtomicBool {
        &raw const self.shortened
    }

    /// The bytes behind a new end within a page read as zeros without any fault, so the length is looked at too.
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

/// What tells a file from another one that has taken its name.
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
