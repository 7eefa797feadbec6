//! Finds the logs in files, folders, patterns and URLs.
//!
//! Only this module finds and opens local files. `buckets.rs` does the same for URLs.

use std::fs::{self, Metadata};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use glob::{MatchOptions, Pattern, glob_with};
use rovelog::{AnyLog, ReadOptions, is_address};

pub use crate::log_file::LogFile;
use crate::log_file::{is_further_part, is_log};
use crate::{ScaleError, buckets};

impl LogFile {
    /// Returns the log at a path. The path may lead to a log in an archive.
    ///
    /// # Errors
    /// Returns an error if there is no such file.
    pub fn at(path: &Path) -> std::io::Result<Self> {
        rovelog::metadata(path).map(|metadata| Self::of(path, &metadata))
    }

    fn of(path: &Path, metadata: &Metadata) -> Self {
        // The time is 0 if the file system does not store times, or if the time is before 1970.
        let changed = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let changed_us = changed.and_then(|time| i64::try_from(time.as_micros()).ok()).unwrap_or(0);
        Self { uri: path.to_string_lossy().into_owned(), size: metadata.len(), changed_us }
    }

    /// Checks that the file has not changed since it was found.
    ///
    /// # Errors
    /// Returns an error if the size of the file or the time of its last change differs, or if the
    /// file no longer exists.
    pub fn verify(&self) -> Result<(), ScaleError> {
        let now = if is_address(&self.uri) {
            buckets::current(&self.uri)?
        } else {
            Self::at(Path::new(&self.uri))
                .map_err(|error| ScaleError::log(&self.uri)(rovelog::Error::io("rovelog", error)))?
        };
        if now == *self { Ok(()) } else { Err(ScaleError::Changed { uri: self.uri.clone() }) }
    }

    /// Returns the file, or the fetched copy of a file at a URL.
    fn local(&self) -> Result<Local<'_>, ScaleError> {
        Ok(if is_address(&self.uri) {
            Local::Copy(buckets::fetch(&self.uri)?)
        } else {
            Local::File(Path::new(&self.uri))
        })
    }

    /// Returns a reader of the file's bytes.
    ///
    /// # Errors
    /// Returns an error if the file cannot be opened or fetched.
    pub fn bytes(&self) -> Result<Box<dyn Read>, ScaleError> {
        rovelog::source(self.local()?.path()).map_err(ScaleError::log(&self.uri))
    }

    /// Opens the log. If the log is at a URL, it is fetched first.
    ///
    /// # Errors
    /// Returns an error if the file has changed since it was found, or cannot be read as a log.
    pub fn open(&self) -> Result<AnyLog, ScaleError> {
        self.verify()?;
        // `read_all` is set, because the numbers of rows and records are stored in the lake. If the
        // log were opened by its index, wrong numbers in the index would be stored. If the file is
        // shortened while it is read, the missing bytes are read as zeros, and `verify` finds the
        // change.
        let mut options = ReadOptions::default();
        options.read_all = true;
        let opened = rovelog::open_watched(self.local()?.path(), None, &options);
        opened.map(|(log, _)| log).map_err(ScaleError::log(&self.uri))
    }
}

/// A file that can be opened by its path.
enum Local<'a> {
    File(&'a Path),
    /// Copy of a remote file, which is deleted when this value is dropped.
    Copy(buckets::RemoteFile),
}

impl Local<'_> {
    fn path(&self) -> &Path {
        match self {
            Self::File(path) => path,
            Self::Copy(copy) => copy.path(),
        }
    }
}

/// Returns the logs of files, folders and patterns. They are sorted by path, and each log is listed
/// once.
///
/// - A folder is replaced by all logs in it and in its subfolders, which are recognized by their
///   extensions.
/// - A pattern such as `flights/**/*.ulg` is replaced by the files that match it.
/// - A source can also be the URL of a file, of a folder in a bucket (`s3://bucket/flights/`), or a
///   URL with a pattern.
///
/// An archive with several logs is treated like a folder, whose logs have paths such as
/// `logs.zip/a.ulg`.
///
/// An RLD recording may consist of several files. Only the first file is listed. The other files
/// (`_p1.rld`) are read together with the first file.
///
/// # Errors
/// Returns an error if a source does not exist or has no logs.
pub fn find<S: AsRef<str>>(sources: &[S]) -> Result<Vec<LogFile>, ScaleError> {
    let mut found = Vec::new();
    for source in sources {
        let source = source.as_ref();
        let before = found.len();
        let path = Path::new(source);
        if is_address(source) {
            found.extend(buckets::find(source)?);
            if found.len() == before {
                return Err(ScaleError::Source(format!("{source}: no log at this address")));
            }
        } else if path.is_dir() {
            let below = Path::new(&Pattern::escape(source)).join("**").join("*");
            add_matching(&below.to_string_lossy(), is_log, &mut found)?;
            if found.len() == before {
                return Err(ScaleError::Source(format!("{source}: no log in this folder")));
            }
        } else if let Ok(log) = LogFile::at(path) {
            push(log, &mut found);
        } else {
            add_matching(source, |path| !is_further_part(path), &mut found)?;
            if found.len() == before {
                return Err(ScaleError::Source(format!("{source}: no such file, folder or pattern")));
            }
        }
    }
    found.sort();
    found.dedup_by(|a, b| a.uri == b.uri);
    Ok(found)
}

/// Adds a file to the list of found logs. If the file is an archive with several logs, adds these
/// logs instead.
fn push(log: LogFile, found: &mut Vec<LogFile>) {
    // If an archive cannot be listed, it is added as a log, so that opening it reports the error.
    let inside = rovelog::logs_in_archive(&log.uri).unwrap_or_default();
    found.extend(
        inside.iter().map(|path| LogFile { uri: path.to_string_lossy().into_owned(), ..log.clone() }),
    );
    if inside.is_empty() {
        found.push(log);
    }
}

/// Adds the files that match a pattern and for which `wanted` returns true.
fn add_matching(
    pattern: &str,
    wanted: impl Fn(&Path) -> bool,
    found: &mut Vec<LogFile>,
) -> Result<(), ScaleError> {
    let options = MatchOptions { require_literal_leading_dot: true, ..MatchOptions::default() };
    let refused = |error: &dyn std::fmt::Display| {
        ScaleError::Source(format!("the pattern {pattern} cannot be searched: {error}"))
    };
    for path in glob_with(pattern, options).map_err(|error| refused(&error))? {
        let path: PathBuf = path.map_err(|error| refused(&error))?;
        if !wanted(&path) {
            continue;
        }
        let metadata = fs::metadata(&path).map_err(|error| refused(&error))?;
        if metadata.is_file() {
            push(LogFile::of(&path, &metadata), found);
        }
    }
    Ok(())
}
