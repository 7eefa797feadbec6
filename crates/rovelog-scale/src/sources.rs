//! Finds the logs in files, folders, patterns and URLs.
//!
//! Only this module finds and opens local files. `buckets.rs` does the same for URLs.

use std::collections::{BTreeSet, HashSet};
use std::fs::{self, Metadata};
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use std::time::UNIX_EPOCH;

use glob::{Pattern, glob};
use rovelog::{AnyLog, ReadOptions, is_address};

pub use crate::log_file::LogFile;
use crate::log_file::{is_further_part, is_log};
use crate::{ScaleError, buckets};

/// Folder of file systems that only the administrator can read. It contains no logs.
const LOST_AND_FOUND: &str = "lost+found";

impl LogFile {
    /// Returns the log at a path. The path may lead to a log in an archive.
    ///
    /// # Errors
    /// Returns an error if there is no such file.
    pub fn at(path: &Path) -> std::io::Result<Self> {
        rovelog::metadata(path).map(|metadata| Self::of(path, &metadata))
    }

    /// Returns the log at a path. If an RLD recording consists of several files, the size is the sum
    /// of their sizes, and the time is that of the last change of any of them.
    fn of(path: &Path, metadata: &Metadata) -> Self {
        let (mut size, mut changed_us) = (metadata.len(), changed_us(metadata));
        for part in further_files(path) {
            if let Ok(metadata) = fs::metadata(part) {
                size = size.saturating_add(metadata.len());
                changed_us = changed_us.max(self::changed_us(&metadata));
            }
        }
        Self { uri: path.to_string_lossy().into_owned(), size, changed_us }
    }

    /// Returns an entry for a file or a folder that cannot be read. Opening it as a log returns the
    /// error.
    fn unreadable(path: &Path) -> Self {
        let missing = || Self { uri: path.to_string_lossy().into_owned(), size: 0, changed_us: 0 };
        fs::metadata(path).map_or_else(|_| missing(), |metadata| Self::of(path, &metadata))
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

    /// Returns a reader of the file's bytes. If an RLD recording consists of several files, their
    /// bytes follow each other.
    ///
    /// # Errors
    /// Returns an error if a file cannot be opened or fetched.
    pub fn bytes(&self) -> Result<Box<dyn Read>, ScaleError> {
        let local = self.local()?;
        let mut bytes = rovelog::source(local.path()).map_err(ScaleError::log(&self.uri))?;
        for part in further_files(local.path()) {
            bytes = Box::new(bytes.chain(rovelog::source(part).map_err(ScaleError::log(&self.uri))?));
        }
        Ok(bytes)
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

/// Returns the time of the last change in microseconds since 1970. It is 0 if the file system does
/// not store times, or if the time is before 1970.
fn changed_us(metadata: &Metadata) -> i64 {
    let changed = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    changed.and_then(|time| i64::try_from(time.as_micros()).ok()).unwrap_or(0)
}

/// Returns the other files of an RLD recording that consists of several files.
fn further_files(path: &Path) -> Vec<PathBuf> {
    let is_rld = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("rld"));
    if is_rld { rovelog::companions(path, Some("rld")) } else { Vec::new() }
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
///   extensions. Links to folders are followed, but no folder is searched twice. A subfolder that
///   cannot be read is listed as well, and so is a link with the name of a log that leads to no
///   file. Opening them reports the error.
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
            add_folder(path, &mut found)?;
            if found.len() == before {
                return Err(ScaleError::Source(format!("{source}: no log in this folder")));
            }
        } else if let Ok(log) = LogFile::at(path) {
            push(log, &mut found);
        } else {
            add_matching(source, &mut found)?;
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

/// Adds the logs in a folder and in its subfolders. Hidden files and folders are left out.
fn add_folder(top: &Path, found: &mut Vec<LogFile>) -> Result<(), ScaleError> {
    // Links are followed after all real folders, because a link may lead to a folder that is found
    // anyway.
    let (mut folders, mut links) = (vec![top.to_owned()], BTreeSet::new());
    let mut searched = HashSet::new();
    while let Some(folder) = folders.pop().or_else(|| links.pop_first()) {
        if folder.canonicalize().is_ok_and(|real| !searched.insert(real)) {
            continue;
        }
        let entries = match fs::read_dir(&folder).and_then(Iterator::collect::<Result<Vec<_>, _>>) {
            Ok(entries) => entries,
            Err(error) if folder == top => {
                return Err(ScaleError::Source(format!("{}: {error}", top.display())));
            }
            Err(_) if folder.ends_with(LOST_AND_FOUND) => continue,
            Err(_) => {
                found.push(LogFile::unreadable(&folder));
                continue;
            }
        };
        for entry in entries {
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                continue;
            }
            let path = entry.path();
            match fs::metadata(&path) {
                Ok(metadata) if !metadata.is_dir() => add_file(&path, &metadata, is_log, found),
                Ok(_) if entry.file_type().is_ok_and(|kind| kind.is_symlink()) => {
                    links.insert(path);
                }
                Ok(_) => folders.push(path),
                Err(_) if is_log(&path) || entry.file_type().is_ok_and(|kind| kind.is_dir()) => {
                    found.push(LogFile::unreadable(&path));
                }
                Err(_) => {}
            }
        }
    }
    Ok(())
}

/// Adds the files that match a pattern. Hidden files and folders are left out, unless a part of the
/// pattern starts with a period and matches their name. The crate `glob` has an option for this, with
/// which it panics at names that are not UTF-8.
fn add_matching(pattern: &str, found: &mut Vec<LogFile>) -> Result<(), ScaleError> {
    let dotted: Vec<_> = pattern.split('/').filter(|part| part.starts_with('.')).collect();
    let dotted: Vec<_> = dotted.into_iter().filter_map(|part| Pattern::new(part).ok()).collect();
    let is_hidden = |name: &str| name.starts_with('.') && !dotted.iter().any(|part| part.matches(name));
    let is_left_out = |path: &Path| {
        let mut names = path.components().filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_string_lossy()),
            _ => None,
        });
        path.ends_with(LOST_AND_FOUND) || names.any(|name| is_hidden(&name))
    };
    let paths = glob(pattern)
        .map_err(|error| ScaleError::Source(format!("the pattern {pattern} cannot be searched: {error}")))?;
    for path in paths {
        match path {
            Ok(path) if !is_left_out(&path) => match fs::metadata(&path) {
                Ok(metadata) => add_file(&path, &metadata, |path| !is_further_part(path), found),
                Err(_) => found.push(LogFile::unreadable(&path)),
            },
            Err(error) if !is_left_out(error.path()) => found.push(LogFile::unreadable(error.path())),
            _ => {}
        }
    }
    Ok(())
}

/// Adds a file for which `is_wanted` returns true.
fn add_file(path: &Path, metadata: &Metadata, is_wanted: impl Fn(&Path) -> bool, found: &mut Vec<LogFile>) {
    if metadata.is_file() && is_wanted(path) {
        push(LogFile::of(path, metadata), found);
    }
}
