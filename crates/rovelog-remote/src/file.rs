//! A remote file with a sparse local copy. Bytes that have not been downloaded are holes in the
//! local copy.

use std::fmt;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use bytes::Bytes;
use rovelog_core::internal::parallel::lock;
use rovelog_core::internal::partial::{Ranges, Unread};
use rovelog_core::{Error, ErrorKind, Result};
use tempfile::TempDir;

use crate::address::Address;
use crate::error::RemoteError;
use crate::origin::{Moved, Origin};
use crate::source::Source;
use crate::store::Options;

/// Maximum number of times that a log is opened again after more of its bytes have been downloaded.
/// In each round, the reader of a log format at least halves the unknown part of the file. So 64
/// rounds suffice for any file size.
const MAX_ROUNDS: usize = 64;

/// If at least this many tenths of a log are needed, the whole log is downloaded. This takes fewer
/// requests than downloading the parts, and the bytes arrive in file order.
const WHOLE_FILE_TENTHS: u64 = 9;

/// A remote file. Downloaded bytes are written to a local copy in a temporary folder. The local
/// copy has the same name and size as the remote file. Dropping the `RemoteFile` removes the
/// folder. If the local copy is still memory-mapped at that time, it stays readable.
pub struct RemoteFile {
    source: Box<dyn Origin>,
    path: PathBuf,
    copy: Mutex<LocalCopy>,
    /// Temporary folder with the local copy. It is removed when this field is dropped.
    _folder: TempDir,
}

/// Sparse file that contains the downloaded bytes.
struct LocalCopy {
    file: File,
    /// Byte ranges that have been downloaded, in the order of the downloads.
    fetched: Vec<Range<u64>>,
}

impl RemoteFile {
    /// Opens a file with a single request, which downloads the last bytes of the file
    /// ([`END`](rovelog_core::internal::partial::END)).
    ///
    /// # Errors
    /// Returns an error if the server cannot be reached, refuses the request, or has no such file.
    pub fn open(address: &Address, options: &Options) -> std::result::Result<Self, RemoteError> {
        let (source, at, tail) = Source::open(address, options)?;
        let remote = Self::of(Box::new(source), address.name())?;
        lock(&remote.copy).write_at(at, &tail)?;
        Ok(remote)
    }

    /// Opens a file whose bytes come from `source`. The local copy gets the name `name`, which must
    /// not contain a folder.
    ///
    /// # Errors
    /// Returns an error if the local copy cannot be created.
    pub fn of(source: Box<dyn Origin>, name: &str) -> std::result::Result<Self, RemoteError> {
        let folder = tempfile::Builder::new().prefix("rovelog-").tempdir()?;
        let path = folder.path().join(name);
        let file = File::options().read(true).write(true).create_new(true).open(&path)?;
        file.set_len(source.size())?;
        let copy = Mutex::new(LocalCopy { file, fetched: Vec::new() });
        Ok(Self { source, path, copy, _folder: folder })
    }

    /// Returns the path of the local copy.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the byte ranges that have not been downloaded yet.
    pub fn unread(&self) -> Unread {
        Unread::behind(self.source.size(), &lock(&self.copy).fetched)
    }

    /// Returns the number of requests made and bytes downloaded so far.
    pub fn moved(&self) -> Moved {
        self.source.moved()
    }

    /// Returns true if the server supports range requests. Without range requests, only
    /// [`fetch_all`](Self::fetch_all) works.
    pub fn has_ranges(&self) -> bool {
        self.source.has_ranges()
    }

    /// Opens the log repeatedly, each time after downloading more of its bytes, until it needs no
    /// more bytes.
    ///
    /// `needed` returns the byte ranges that an opened log still needs, or `None` if the log needs
    /// the whole file. The result is `None` in this case, and also if at least nine tenths of the
    /// log are missing, or if the log still needs more bytes after 64 downloads. The
    /// caller must then call [`fetch_all`](Self::fetch_all).
    ///
    /// # Errors
    /// Returns an error if [`fetch`](Ranges::fetch), `open` or `needed` returns an error. If `open`
    /// returns an error of the kind [`PartlyRead`](ErrorKind::PartlyRead), the whole log is needed,
    /// and the result is `None`.
    pub fn fetch_until<L, E: From<Error>>(
        &self,
        mut open: impl FnMut() -> Result<L>,
        needed: impl Fn(&L) -> std::result::Result<Option<Vec<Range<u64>>>, E>,
    ) -> std::result::Result<Option<L>, E> {
        for _ in 0..MAX_ROUNDS {
            let log = match open() {
                Err(error) if error.kind == ErrorKind::PartlyRead => break,
                log => log?,
            };
            let Some(needed) = needed(&log)? else { break };
            if needed.is_empty() {
                return Ok(Some(log));
            }
            let bytes: u64 = needed.iter().map(|range| range.end - range.start).sum();
            // Both sides are divided before they are compared, because a multiplication could
            // overflow.
            if bytes / WHOLE_FILE_TENTHS >= self.size() / 10 {
                break;
            }
            self.fetch(&needed)?;
        }
        Ok(None)
    }

    /// Downloads all missing bytes. After each part, `progress` is called with the number of bytes
    /// that this call has downloaded so far.
    ///
    /// # Errors
    /// Returns an error if [`fetch`](Ranges::fetch) returns an error.
    pub fn fetch_all(&self, mut progress: impl FnMut(u64)) -> std::result::Result<(), RemoteError> {
        let unread = self.unread();
        let mut copy = lock(&self.copy);
        let mut moved = 0;
        let mut store = |at, bytes: Bytes| {
            moved += bytes.len() as u64;
            progress(moved);
            copy.write_at(at, &bytes)
        };
        if self.source.has_ranges() {
            self.source.each(unread.ranges(), &mut store)
        } else {
            self.source.whole(&mut store)
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
        let mut copy = lock(&self.copy);
        Ok(self.source.each(&missing, &mut |at, bytes| copy.write_at(at, &bytes))?)
    }

    fn read(&self, range: Range<u64>) -> Result<Vec<u8>> {
        let range = range.start..range.end.min(self.size());
        self.fetch(std::slice::from_ref(&range))?;
        let mut bytes = Vec::new();
        let mut copy = lock(&self.copy);
        copy.file.seek(SeekFrom::Start(range.start)).map_err(RemoteError::Copy)?;
        let len = range.end.saturating_sub(range.start);
        (&copy.file).take(len).read_to_end(&mut bytes).map_err(RemoteError::Copy)?;
        Ok(bytes)
    }
}

impl LocalCopy {
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> std::result::Result<(), RemoteError> {
        self.file.seek(SeekFrom::Start(at))?;
        self.file.write_all(bytes)?;
        self.fetched.push(at..at + bytes.len() as u64);
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
