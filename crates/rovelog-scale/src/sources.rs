//! Finds the logs in files, folders, patterns and URLs.
//!
//! Only this module finds and opens local files. `buckets.rs` does the same for URLs.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf, is_separator};
use std::time::UNIX_EPOCH;

use glob::{Pattern, glob};
use rovelog::{AnyLog, ReadOptions, companions_by_name, group_by_log, is_address};

pub use crate::log_file::LogFile;
use crate::log_file::is_log;
use crate::{ScaleError, buckets};

/// Folder of file systems that only the administrator can read. It contains no logs.
const LOST_AND_FOUND: &str = "lost+found";

impl LogFile {
    /// Returns the log at a path. The path may lead to a log in an archive.
    ///
    /// # Errors
    /// Returns an error if there is no such file.
    pub fn at(path: &Path) -> io::Result<Self> {
        rovelog::metadata(path).map(|metadata| Self::of(path, &metadata, companions_by_name(path)))
    }

    /// Returns the log at a path. If an RLD recording consists of several files, `others` are the
    /// paths of the other files. The size is the sum of their sizes, and the time is that of the last
    /// change of any of them.
    fn of(path: &Path, metadata: &Metadata, others: impl IntoIterator<Item = PathBuf>) -> Self {
        let (mut size, mut changed_us) = (metadata.len(), changed_us(metadata));
        for other in others {
            if let Ok(metadata) = fs::metadata(other) {
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
        fs::metadata(path).map_or_else(|_| missing(), |metadata| Self::of(path, &metadata, []))
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
        let files = rovelog::sources(local.path()).map_err(ScaleError::log(&self.uri))?;
        Ok(files.into_iter().fold(Box::new(io::empty()), |bytes, file| Box::new(bytes.chain(file))))
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
/// - A pattern such as `flights/**/*.ulg` is replaced by the files that match it. Hidden files and
///   folders are left out, unless a part of the pattern starts with a period and matches their name.
/// - A source can also be the URL of a file, of a folder in a bucket (`s3://bucket/flights/`), or a
///   URL with a pattern.
///
/// An archive with several logs is treated like a folder, whose logs have paths such as
/// `logs.zip/a.ulg`.
///
/// An RLD recording may consist of several files. Only the first file is listed. The other files,
/// such as `x_p1.rld.gz` and `x-ambient.rld`, are read together with the first file `x.rld`. At a URL
/// only the named file is read, so each of these files is listed.
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

/// Adds the logs in a folder and in its subfolders.
fn add_folder(top: &Path, found: &mut Vec<LogFile>) -> Result<(), ScaleError> {
    fs::read_dir(top).map_err(|error| ScaleError::Source(format!("{}: {error}", top.display())))?;
    walk(top, found, |folder, names, found| {
        let is_wanted = |name: &OsString| !is_hidden(name) && is_log(Path::new(name));
        let files: Vec<_> = names.into_iter().map(|name| (is_wanted(&name), name)).collect();
        add_files(folder, &files, found);
    });
    Ok(())
}

/// Visits a folder and its subfolders with the names of the files in each of them. Hidden folders are
/// left out. Links to folders are followed, but no folder is visited twice.
fn walk(
    top: &Path,
    found: &mut Vec<LogFile>,
    mut visit: impl FnMut(&Path, Vec<OsString>, &mut Vec<LogFile>),
) {
    // Links are followed after all real folders, because a link may lead to a folder that is found
    // anyway.
    let (mut folders, mut links) = (vec![top.to_owned()], BTreeSet::new());
    let mut visited = HashSet::new();
    while let Some(folder) = folders.pop().or_else(|| links.pop_first()) {
        if listed(&folder).canonicalize().is_ok_and(|real| !visited.insert(real)) {
            continue;
        }
        let entries = match fs::read_dir(listed(&folder)).and_then(Iterator::collect::<Result<Vec<_>, _>>) {
            Ok(entries) => entries,
            Err(_) if folder.ends_with(LOST_AND_FOUND) => continue,
            Err(_) => {
                found.push(LogFile::unreadable(&folder));
                continue;
            }
        };
        let mut files = Vec::new();
        for entry in entries {
            let Ok(kind) = entry.file_type() else { continue };
            let name = entry.file_name();
            let path = folder.join(&name);
            let is_link = kind.is_symlink();
            let is_folder = if is_link { path.is_dir() } else { kind.is_dir() };
            if !is_folder {
                files.push(name);
            } else if !is_hidden(&name) {
                if is_link {
                    links.insert(path);
                } else {
                    folders.push(path);
                }
            }
        }
        visit(&folder, files, found);
    }
}

/// Returns a path by which a folder can be listed. An empty path is the current folder.
fn listed(folder: &Path) -> &Path {
    if folder.as_os_str().is_empty() { Path::new(".") } else { folder }
}

fn is_hidden(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".")
}

/// Adds the files that match a pattern. Hidden files and folders are left out, unless a part of the
/// pattern starts with a period and matches their name. The crate `glob` has an option for this, with
/// which it panics at names that are not UTF-8.
///
/// The crate follows links in a circle without end, so `**` is replaced here by each folder that
/// [`walk`] visits. For example, `may/**/*.ulg` becomes the patterns `may/*.ulg` and `may/run5/*.ulg`.
fn add_matching(pattern: &str, found: &mut Vec<LogFile>) -> Result<(), ScaleError> {
    let refused = |error| ScaleError::Source(format!("the pattern {pattern} cannot be searched: {error}"));
    let dotted = pattern.split(is_separator).filter(|part| part.starts_with('.'));
    let dotted: Vec<_> = dotted.map(Pattern::new).collect::<Result<_, _>>().map_err(refused)?;
    // The crate takes `.` and `..` for names that the part `.*` matches.
    let is_asked = |name: &str| {
        let is_folder_itself = [".", ".."].contains(&name);
        dotted.iter().any(|part| part.as_str() == name || !is_folder_itself && part.matches(name))
    };
    let is_left_out = |path: &Path| {
        let text = path.to_string_lossy();
        let mut names = text.split(is_separator);
        path.ends_with(LOST_AND_FOUND) || names.any(|name| name.starts_with('.') && !is_asked(name))
    };
    let mut matches: BTreeMap<PathBuf, HashSet<OsString>> = BTreeMap::new();
    let mut patterns = vec![pattern.to_owned()];
    while let Some(pattern) = patterns.pop() {
        let recursive = recursive_part(&pattern);
        let plain = recursive.map_or(&*pattern, |(top, _)| top);
        let mut paths = Vec::new();
        if plain.is_empty() {
            // The pattern starts with `**`, so the current folder is searched.
            paths.push(PathBuf::new());
        } else {
            for path in glob(plain).map_err(refused)? {
                match path {
                    Ok(path) if !is_left_out(&path) => paths.push(path),
                    Err(error) if !is_left_out(error.path()) => {
                        found.push(LogFile::unreadable(error.path()));
                    }
                    _ => {}
                }
            }
        }
        for path in paths {
            if let Some((_, below)) = recursive {
                if !listed(&path).is_dir() {
                    continue;
                }
                walk(&path, found, |folder, _, _| {
                    // A folder whose name is not UTF-8 matches no pattern.
                    let folder = folder.join("").to_str().map(Pattern::escape);
                    patterns.extend(folder.map(|folder| format!("{folder}{below}")));
                });
            } else if let (Some(folder), Some(name)) = (path.parent(), path.file_name()) {
                matches.entry(folder.to_owned()).or_default().insert(name.to_owned());
            }
        }
    }
    for (folder, wanted) in matches {
        let names = fs::read_dir(listed(&folder))
            .map(|entries| entries.flatten().map(|entry| entry.file_name()).collect());
        let names: Vec<_> = names.unwrap_or_else(|_| wanted.iter().cloned().collect());
        let files: Vec<_> = names.into_iter().map(|name| (wanted.contains(&name), name)).collect();
        add_files(&folder, &files, found);
    }
    Ok(())
}

/// Splits a pattern at its first part `**`. Returns the pattern of the folders before this part, and
/// the pattern after it, which is `*` if nothing follows.
fn recursive_part(pattern: &str) -> Option<(&str, &str)> {
    let mut start = 0;
    for part in pattern.split_inclusive(is_separator) {
        let end = start + part.len();
        if part.trim_end_matches(is_separator) == "**" {
            return Some((&pattern[..start], if end < pattern.len() { &pattern[end..] } else { "*" }));
        }
        start = end;
    }
    None
}

/// Adds the wanted logs in a folder. `files` lists all files of the folder, because a file that is
/// read together with another one is left out.
fn add_files(folder: &Path, files: &[(bool, OsString)], found: &mut Vec<LogFile>) {
    // A name that is not UTF-8 is replaced by an empty name, which belongs to no other file.
    let names: Vec<_> = files.iter().map(|(_, name)| name.to_str().unwrap_or_default()).collect();
    for group in group_by_log(&names) {
        let mut paths = group.iter().map(|&at| (files[at].0, folder.join(&files[at].1)));
        let Some((true, path)) = paths.next() else { continue };
        match fs::metadata(&path) {
            Ok(metadata) if metadata.is_file() => {
                push(LogFile::of(&path, &metadata, paths.map(|(_, path)| path)), found);
            }
            Ok(_) => {}
            Err(_) => found.push(LogFile::unreadable(&path)),
        }
    }
}
