//! Logs that are read by ranges: at an address, or through a file object of Python.

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rovelog::{AnyLog, Error, ErrorKind, ReadOptions, Result, Select};
use rovelog_remote::{Address, Moved, Options, Origin, RemoteError, RemoteFile, Take};

/// Bytes that are read of a file object at once.
const PIECE: u64 = 8 << 20;

/// What was fetched of a log, and the log as far as that goes.
pub(crate) struct Parts {
    file: RemoteFile,
    format: Option<String>,
    options: ReadOptions,
    log: Mutex<Arc<AnyLog>>,
}

impl Parts {
    /// Opens a log with what its summary needs; where the format cannot do that, with all of it.
    pub(crate) fn open(file: RemoteFile, format: Option<String>, options: ReadOptions) -> Result<Self> {
        let has_outline = file.has_ranges() && rovelog::outline(&file, format.as_deref())?;
        if !has_outline {
            file.fetch_all(|_| ())?;
        }
        let opened = match opened(&file, format.as_deref(), &options) {
            Err(error) if error.kind == ErrorKind::PartlyRead => {
                file.fetch_all(|_| ())?;
                opened(&file, format.as_deref(), &options)?
            }
            opened => opened?,
        };
        Ok(Self { file, format, options, log: Mutex::new(Arc::new(opened)) })
    }

    /// Returns the file on this machine that has what was fetched.
    pub(crate) fn copy(&self) -> &Path {
        self.file.path()
    }

    /// Returns the log as far as it was fetched.
    pub(crate) fn known(&self) -> Arc<AnyLog> {
        Arc::clone(&self.log.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the log with all that the selected records need.
    pub(crate) fn with(&self, select: &Select) -> Result<Arc<AnyLog>> {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let mut known = Some(Arc::clone(&log));
        let open = || match known.take() {
            Some(log) => Ok(log),
            None => opened(&self.file, self.format.as_deref(), &self.options).map(Arc::new),
        };
        let Some(with) = self.file.fetch_until(open, |log| Ok::<_, Error>(log.needed(select)))? else {
            drop(log);
            return self.whole();
        };
        log.clone_from(&with);
        Ok(with)
    }

    /// Returns the log with all that is in it.
    pub(crate) fn whole(&self) -> Result<Arc<AnyLog>> {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.file.unread().is_empty() {
            self.file.fetch_all(|_| ())?;
            *log = Arc::new(opened(&self.file, self.format.as_deref(), &self.options)?);
        }
        Ok(Arc::clone(&log))
    }
}

fn opened(file: &RemoteFile, format: Option<&str>, options: &ReadOptions) -> Result<AnyLog> {
    let mut options = options.clone();
    options.unread = file.unread();
    rovelog::open_as(format, file.path(), &options)
}

/// Opens a file at an address: the file, and the address without secrets.
pub(crate) fn at_address(
    address: &str,
    storage: Vec<(String, String)>,
    max_bytes: Option<u64>,
) -> Result<(RemoteFile, String)> {
    let address = Address::parse(address)?;
    let mut options = Options::default();
    (options.storage, options.max_bytes) = (storage, max_bytes);
    Ok((RemoteFile::open(&address, &options)?, address.to_string()))
}

/// A file object of Python that can seek.
pub(crate) struct FileObject {
    object: Py<PyAny>,
    /// Where the log starts in it.
    base: u64,
    size: u64,
    max_bytes: Option<u64>,
    moved: Mutex<Moved>,
}

impl FileObject {
    /// The log starts where the object is, and ends with it.
    pub(crate) fn new(object: &Bound<'_, PyAny>, max_bytes: Option<u64>) -> PyResult<Self> {
        let base: u64 = object.call_method0("tell")?.extract()?;
        object.call_method1("seek", (0, 2))?;
        let end: u64 = object.call_method0("tell")?.extract()?;
        object.call_method1("seek", (base,))?;
        let (object, size) = (object.clone().unbind(), end.saturating_sub(base));
        Ok(Self { object, base, size, max_bytes, moved: Mutex::default() })
    }

    fn piece(&self, at: u64, len: u64) -> PyResult<Vec<u8>> {
        Python::attach(|py| {
            let object = self.object.bind(py);
            object.call_method1("seek", (self.base + at,))?;
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
        *self.moved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn each(&self, ranges: &[Range<u64>], take: Take<'_>) -> std::result::Result<(), RemoteError> {
        let more = ranges.iter().map(|range| range.end - range.start).sum();
        self.moved().allow(more, self.max_bytes)?;
        for range in ranges {
            let mut at = range.start;
            while at < range.end {
                let asked = (range.end - at).min(PIECE);
                let piece = self.piece(at, asked).map_err(|error| RemoteError::Object(error.into()))?;
                let got = piece.len() as u64;
                if got == 0 || got > asked {
                    return Err(RemoteError::Short { at, asked, got });
                }
                self.moved.lock().unwrap_or_else(PoisonError::into_inner).add(got);
                take(at, piece.into())?;
                at += got;
            }
        }
        Ok(())
    }
}
