//! Sources: from files, folders, patterns and addresses to logs.
//!
//! Files are found and opened here and nowhere else; those at an address by `buckets.rs`.

use std::fs::{self, File, Metadata};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use glob::{MatchOptions, Pattern, glob_with};
use rovelog::{AnyLog, ReadOptions, is_address};

pub use crate::log_file::LogFile;
use crate::log_file::{is_further_part, is_log};
use crate::{ScaleError, buckets};

impl LogFile {
    /// Returns the log at a path.
    ///
    /// # Errors
    /// Returns an error if there is no such file.
    pub fn at(path: &Path) -> std::io::Result<Self> {
        fs::metadata(path).map(|metadata| Self::of(path, &metadata))
    }

    fn of(path: &Path, metadata: &Metadata) -> Self {
        // A file system without times, and times before 1970, are 0.
        let changed = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let changed_us = changed.and_then(|time| i64::try_from(time.as_micros()).ok()).unwrap_or(0);
        Self { uri: path.to_string_lossy().into_owned(), size: metadata.len(), changed_us }
    }

    /// Returns an error if the file is not the one that was found.
    ///
    /// # Errors
    /// Returns an error if the size or the time of change differs, or the file is gone.
    pub fn verify(&self) -> Result<(), ScaleError> {
        let now = if is_address(&self.uri) {
            buckets::now(&self.uri)?
        } else {
            Self::at(Path::new(&self.uri))
                .map_err(|error| ScaleError::log(&self.uri)(rovelog::Error::io("rovelog", error)))?
        };
        if now == *self { Ok(()) } else { Err(ScaleError::Changed { uri: self.uri.clone() }) }
    }

    /// Returns the bytes of the file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be opened, or fetched.
    pub fn bytes(&self) -> Result<File, ScaleError> {
        if is_address(&self.uri) {
            return buckets::bytes(self);
        }
        File::open(&self.uri)
            .map_err(|error| ScaleError::log(&self.uri)(rovelog::Error::io("rovelog", error)))
    }

    /// Opens the log; one at an address is fetched.
    ///
    /// # Errors
    /// Returns an error if the file has changed since it was found, or cannot be read as a log.
    pub fn open(&self) -> Result<AnyLog, ScaleError> {
        self.verify()?;
        if is_address(&self.uri) {
            return buckets::open(self);
        }
        // One that is shortened while it is read has zeros there; `verify` then finds the change.
        let opened = rovelog::open_watched(&self.uri, None, &ReadOptions::default());
        opened.map(|(log, _)| log).map_err(ScaleError::log(&self.uri))
    }
}

/// Returns the logs of files, folders (all logs in them and below, by their extensions) and
/// patterns (`flights/**/*.ulg`), sorted by path, each once.
///
/// Addresses are files, folders of buckets (`s3://bucket/flights/`) and patterns.
///
/// Further files of an RLD recording (`_p1.rld`) are read with its first one and are not listed.
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
            matching(&below.to_string_lossy(), is_log, &mut found)?;
            if found.len() == before {
                return Err(ScaleError::Source(format!("{source}: no log in this folder")));
            }
        } else if let Ok(log) = LogFile::at(path) {
            found.push(log);
        } else {
            matching(source, |path| !is_further_part(path), &mut found)?;
            if found.len() == before {
                return Err(ScaleError::Source(format!("{source}: no such file, folder or pattern")));
            }
        }
    }
    found.sort();
    found.dedup_by(|a, b| a.uri == b.uri);
    Ok(found)
}

fn matching(
    pattern: &str,
    wanted: impl Fn(&Path) -> bool,
    found: &mut Vec<LogFile>,
) -> Result<(), ScaleError> {
    let options = MatchOptions { require_literal_leading_dot: true, ..MatchOptions::default() };
    let refused = |error: &dyn std::fmt::Display| ScaleError::Source(format!("{pattern}: {error}"));
    for path in glob_with(pattern, options).map_err(|error| refused(&error))? {
        let path: PathBuf = path.map_err(|error| refused(&error))?;
        if !wanted(&path) {
            continue;
        }
        let metadata = fs::metadata(&path).map_err(|error| refused(&error))?;
        if metadata.is_file() {
            found.push(LogFile::of(&path, &metadata));
        }
    }
    Ok(())
}
