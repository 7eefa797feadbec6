//! Logs from which only the needed byte ranges are read, from an address or from a Python file
//! object.
//!
//! The fetched ranges are stored in a sparse local file. After more ranges have been fetched, the
//! log is opened again from this file.

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rovelog::core::internal::parallel::lock;
use rovelog::{AnyLog, Error, ErrorKind, ReadOptions, Result, Select};
use rovelog_remote::{Address, Moved, Options, Origin, RemoteError, RemoteFile, Take};

/// Maximum number of bytes that are read from a file object with one call. Signals can be handled
/// between two calls.
const MAX_READ_BYTES: u64 = 8 << 20;

/// A log from which only the needed byte ranges are read.
pub(crate) struct RemoteLog {
    file: RemoteFile,
    /// Id of the log format. `None` detects the format.
    format: Option<String>,
    options: ReadOptions,
    /// The log, opened with the ranges that have been fetched so far. This mutex is only locked to
    /// copy or replace the log, because threads that hold the GIL lock it.
    log: Mutex<Arc<AnyLog>>,
    /// Locked while ranges are fetched. Reading from a file object acquires the GIL, so a thread
    /// that holds the GIL must not lock this mutex.
    loading: Mutex<()>,
}

impl RemoteLog {
    /// Opens a log with the byte ranges that are needed for its summary. If the format has no
    /// index, fetches the whole file.
    pub(crate) fn open(file: RemoteFile, format: Option<String>, options: ReadOptions) -> Result<Self> {
        // A server without support for byte ranges sends the whole file for each request.
        let has_outline = file.has_ranges() && rovelog::outline(&file, format.as_deref())?;
        if !has_outline {
            file.fetch_all(|_| ())?;
        }
        let opened = match open_file(&file, format.as_deref(), &options) {
            // The log cannot always be opened with the fetched ranges. Then the whole file is
            // fetched.
            Err(error) if error.kind == ErrorKind::PartlyRead => {
                file.fetch_all(|_| ())?;
                open_file(&file, format.as_deref(), &options)?
            }
            opened => opened?,
        };
        Ok(Self { file, format, options, log: Mutex::new(Arc::new(opened)), loading: Mutex::default() })
    }

    /// Returns the path of the local file that contains the fetched ranges.
    pub(crate) fn local_path(&self) -> &Path {
        self.file.path()
    }

    /// Returns the log, opened with the ranges that have been fetched so far.
    pub(crate) fn loaded_log(&self) -> Arc<AnyLog> {
        Arc::clone(&lock(&self.log))
    }

    /// Returns the log with the byte ranges that are needed for the selected records.
    pub(crate) fn load_for(&self, select: &Select) -> Result<Arc<AnyLog>> {
        let loading = lock(&self.loading);
        // In the first round, the log is used as it is. In later rounds, it is opened again with
        // the ranges that were fetched in the meantime.
        let mut current = Some(self.loaded_log());
        let open = || match current.take() {
            Some(log) => Ok(log),
            None => open_file(&self.file, self.format.as_deref(), &self.options).map(Arc::new),
        };
        let Some(loaded) = self.file.fetch_until(open, |log| Ok::<_, Error>(log.needed(select)))? else {
            // The mutex is unlocked here, because `load_all` locks it too.
            drop(loading);
            return self.load_all();
        };
        self.replace(&loaded);
        Ok(loaded)
    }

    /// Fetches all missing ranges and returns the complete log.
    pub(crate) fn load_all(&self) -> Result<Arc<AnyLog>> {
        let _loading = lock(&self.loading);
        if !self.file.unread().is_empty() {
            self.file.fetch_all(|_| ())?;
            self.replace(&Arc::new(open_file(&self.file, self.format.as_deref(), &self.options)?));
        }
        Ok(self.loaded_log())
    }

    fn replace(&self, log: &Arc<AnyLog>) {
        lock(&self.log).clone_from(log);
    }
}

/// Opens the log from the local file. Ranges that have not been fetched are marked as unread.
fn open_file(file: &RemoteFile, format: Option<&str>, options: &ReadOptions) -> Result<AnyLog> {
    let mut options = options.clone();
    options.unread = file.unread();
    rovelog::open_as(format, file.path(), &options)
}

/// Opens the file at an address. Returns the file, and the address without passwords and tokens.
pub(crate) fn at_address(
    address: &str,
    storage: Vec<(String, String)>,
    max_bytes: Option<u64>,
) -> Result<(RemoteFile, String)> {
    let address = Address::parse(address)?;
    let mut options = Options::default();
    let (redirects, storage): (Vec<_>, _) =
        storage.into_iter().partition(|(key, _)| key.eq_ignore_ascii_case("follow_redirects"));
    options.follow_redirects = redirects.iter().any(|(_, value)| value.eq_ignore_ascii_case("true"));
    (options.storage, options.max_bytes) = (storage, max_bytes);
    Ok((RemoteFile::open(&address, &options)?, address.to_string()))
}

/// A seekable Python file object that contains a log.
pub(crate) struct FileObject {
    object: Py<PyAny>,
    /// Offset in the file object at which the log starts.
    log_offset: u64,
    /// Size of the log in bytes.
    size: u64,
    /// Maximum number of bytes to read from the file object.
    max_bytes: Option<u64>,
    /// Number of bytes that were read, and number of calls that read them.
    moved: Mutex<Moved>,
}

impl FileObject {
    /// Wraps a Python file object. The log starts at the current position in the file object, and
    /// ends at the end of the file object.
    pub(crate) fn new(object: &Bound<'_, PyAny>, max_bytes: Option<u64>) -> PyResult<Self> {
        let log_offset: u64 = object.call_method0("tell")?.extract()?;
        object.call_method1("seek", (0, 2))?;
        let end: u64 = object.call_method0("tell")?.extract()?;
        object.call_method1("seek", (log_offset,))?;
        let (object, size) = (object.clone().unbind(), end.saturating_sub(log_offset));
        Ok(Self { object, log_offset, size, max_bytes, moved: Mutex::default() })
    }

    /// Reads at most `len` bytes at the offset `at` in the log.
    fn read_at(&self, at: u64, len: u64) -> PyResult<Vec<u8>> {
        Python::attach(|py| {
            let object = self.object.bind(py);
            object.call_method1("seek", (self.log_offset + at,))?;
            let read = object.call_method1("read", (len,))?;
            Ok(read.cast::<PyBytes>()?.as_bytes().to_vec())
        })
    }
}

impl Origin for FileObject {
    fn size(&self) -> u64 {
        self.size
    }

    fn moved(&self) -> Moved {
        *lock(&self.moved)
    }

    fn each(&self, ranges: &[Range<u64>], write: Take<'_>) -> std::result::Result<(), RemoteError> {
        // The limit is checked before anything is read, so that it is never exceeded.
        let more = ranges.iter().map(|range| range.end - range.start).sum();
        self.moved().allow(more, self.max_bytes)?;
        for range in ranges {
            let mut at = range.start;
            while at < range.end {
                let asked = (range.end - at).min(MAX_READ_BYTES);
                let piece = self.read_at(at, asked).map_err(|error| RemoteError::Object(error.into()))?;
                let got = piece.len() as u64;
                // A file object may return fewer bytes than requested. It returns no bytes only at
                // its end.
                if got == 0 || got > asked {
                    return Err(RemoteError::Short { at, asked, got });
                }
                lock(&self.moved).add(got);
                write(at, piece.into())?;
                at += got;
            }
        }
        Ok(())
    }
}
