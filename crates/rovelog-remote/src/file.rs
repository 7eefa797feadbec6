//! A remote file as a file of this machine, in which what was not fetched is a hole.

use std::fmt;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use rovelog_core::partial::{Ranges, Unread};
use rovelog_core::{Error, ErrorKind, Result};
use tempfile::TempDir;

use crate::address::Address;
use crate::error::RemoteError;
use crate::origin::{Moved, Origin};
use crate::source::Source;
use crate::store::Options;

/// Rounds of asking a log what it still needs. Each round halves what is unknown, or ends.
const ROUNDS: usize = 64;

/// A log of which nine tenths are needed is read whole: in order, and with fewer requests.
const MOST: (u64, u64) = (9, 10);

/// A remote file. What is fetched of it is kept in a file of the same name and size in a temporary
/// folder, which is removed when this is dropped; a file that is mapped stays readable.
pub struct RemoteFile {
    source: Box<dyn Origin>,
    path: PathBuf,
    copy: Mutex<Copy>,
    _folder: TempDir,
}

struct Copy {
    file: File,
    /// What was fetched.
    read: Vec<Range<u64>>,
}

impl RemoteFile {
    /// Opens a file with one request, for its last bytes ([`END`](rovelog_core::partial::END)).
    ///
    /// # Errors
    /// Returns an error if the server cannot be reached, refuses, or has no such file.
    pub fn open(address: &Address, options: &Options) -> std::result::Result<Self, RemoteError> {
        let (source, at, tail) = Source::open(address, options)?;
        let remote = Self::of(Box::new(source), address.name())?;
        remote.copy().keep(at, &tail)?;
        Ok(remote)
    }

    /// Opens a file that is read through an object, under a name without folders.
    ///
    /// # Errors
    /// Returns an error if there is no place for the copy.
    pub fn of(source: Box<dyn Origin>, name: &str) -> std::result::Result<Self, RemoteError> {
        let folder = tempfile::Builder::new().prefix("rovelog-").tempdir()?;
        let path = folder.path().join(name);
        let file = File::options().read(true).write(true).create_new(true).open(&path)?;
        file.set_len(source.size())?;
        let copy = Mutex::new(Copy { file, read: Vec::new() });
        Ok(Self { source, path, copy, _folder: folder })
    }

    fn copy(&self) -> MutexGuard<'_, Copy> {
        self.copy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns where the copy is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the ranges that were not fetched.
    pub fn unread(&self) -> Unread {
        Unread::behind(self.source.size(), &self.copy().read)
    }

    /// Returns what was moved.
    pub fn moved(&self) -> Moved {
        self.source.moved()
    }

    /// Returns whether the server reads by ranges. Of others, only [`fetch_all`](Self::fetch_all)
    /// works.
    pub fn has_ranges(&self) -> bool {
        self.source.has_ranges()
    }

    /// Opens the log, again and again, each time with more of its bytes, until it needs no more of
    /// them: `needed` returns the ranges that it still needs, or `None` if only all of it will do.
    /// Returns `None` if nearly all of the log, or all of it, is to be read.
    ///
    /// # Errors
    /// Returns the errors of [`fetch`](Ranges::fetch), `open` and `needed`; but an error of the kind
    /// [`PartlyRead`](ErrorKind::PartlyRead) from `open` means that all of the log is needed.
    pub fn fetch_until<L, E: From<Error>>(
        &self,
        mut open: impl FnMut() -> Result<L>,
        needed: impl Fn(&L) -> std::result::Result<Option<Vec<Range<u64>>>, E>,
    ) -> std::result::Result<Option<L>, E> {
        for _ in 0..ROUNDS {
            let log = match open() {
                Err(error) if error.kind == ErrorKind::PartlyRead => break,
                log => log?,
            };
            let Some(needed) = needed(&log)? else { break };
            if needed.is_empty() {
                return Ok(Some(log));
            }
            let bytes: u64 = needed.iter().map(|range| range.end - range.start).sum();
            if bytes / MOST.0 >= self.size() / MOST.1 {
                break;
            }
            self.fetch(&needed)?;
        }
        Ok(None)
    }

    /// Fetches all that was not fetched before. `progress` is told how many bytes were moved.
    ///
    /// # Errors
    /// Returns the errors of [`fetch`](Ranges::fetch).
    pub fn fetch_all(&self, mut progress: impl FnMut(u64)) -> std::result::Result<(), RemoteError> {
        let unread = self.unread();
        let mut copy = self.copy();
        let mut moved = 0;
        let mut keep = |at, bytes: Bytes| {
            moved += bytes.len() as u64;
            progress(moved);
            copy.keep(at, &bytes)
        };
        if self.source.has_ranges() {
            self.source.each(unread.ranges(), &mut keep)
        } else {
            self.source.whole(&mut keep)
        }
    }
}

impl Ranges for RemoteFile {
    fn size(&self) -> u64 {
        self.source.size()
    }

    fn fetch(&self, ranges: &[Range<u64>]) -> Result<()> {
        let missing = self.unread().within(ranges);
        if missing.is_empty() {
            return Ok(());
        }
        if !self.source.has_ranges() {
            return Err(RemoteError::NoRanges.into());
        }
        let mut copy = self.copy();
        Ok(self.source.each(&missing, &mut |at, bytes| copy.keep(at, &bytes))?)
    }

    fn read(&self, range: Range<u64>) -> Result<Vec<u8>> {
        let range = range.start..range.end.min(self.size());
        self.fetch(std::slice::from_ref(&range))?;
        let mut bytes = Vec::new();
        let mut copy = self.copy();
        copy.file.seek(SeekFrom::Start(range.start)).map_err(RemoteError::Copy)?;
        let len = range.end.saturating_sub(range.start);
        (&copy.file).take(len).read_to_end(&mut bytes).map_err(RemoteError::Copy)?;
        Ok(bytes)
    }
}

impl Copy {
    fn keep(&mut self, at: u64, bytes: &[u8]) -> std::result::Result<(), RemoteError> {
        self.file.seek(SeekFrom::Start(at))?;
        self.file.write_all(bytes)?;
        self.read.push(at..at + bytes.len() as u64);
        Ok(())
    }
}

impl fmt::Debug for RemoteFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteFile")
            .field("path", &self.path)
            .field("unread", &self.unread())
            .finish_non_exhaustive()
    }
}
