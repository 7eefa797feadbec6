//! Archives with logs: `.zip`, `.tar`, and `.tar` that is compressed as a whole.
//!
//! An archive with one log opens as that log. A log in an archive has a path like a file in a folder:
//! `logs.zip/flight/17.ulg`.

mod tar;

use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};

use rovelog_core::packed::{Ending, Packing};
use rovelog_core::text::count;
use rovelog_core::{Bytes, Error, ErrorKind, Limits, Result};
use zip::ZipArchive;

use self::tar::TarFile;
use crate::Watch;
use crate::file::{SUFFIXES, load};
use crate::packed::{self, Compression, Store};

/// Number of first bytes that tell whether a file is an archive.
pub(crate) const HEAD: usize = 512;

/// Maximum number of members that a message lists.
const LISTED: usize = 10;

/// An archive in memory or in a mapped file.
pub(crate) enum Archive {
    Zip(Bytes, Vec<String>),
    Tar(Bytes, Vec<TarFile>),
}

/// A file of an archive: its bytes, and how they were compressed.
pub(crate) struct Member {
    pub(crate) bytes: Bytes,
    pub(crate) packing: Option<Packing>,
}

impl Archive {
    /// Returns whether a file that starts with `head` is an archive.
    pub(crate) fn is_at(head: &[u8]) -> bool {
        head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06") || tar::is_tar(head)
    }

    /// Returns the archive in `bytes`. Returns `None` for other data, and for a zip archive without
    /// its list of members, which detection names.
    pub(crate) fn of(bytes: &Bytes) -> Option<Self> {
        if tar::is_tar(bytes) {
            return Some(Self::Tar(bytes.clone(), tar::files(bytes)));
        }
        if !Self::is_at(&bytes[..bytes.len().min(HEAD)]) {
            return None;
        }
        let zip = zip(bytes).ok()?;
        let names = (0..zip.len()).map(|number| zip.name_for_index(number).unwrap_or_default().to_owned());
        Some(Self::Zip(bytes.clone(), names.collect()))
    }

    /// Returns the archive in a file that is compressed as a whole: `.tar.gz`, `.tgz`.
    ///
    /// # Errors
    /// Returns an error if the file cannot be decompressed.
    pub(crate) fn of_packed(
        path: &Path,
        compression: Compression,
        bytes: impl FnOnce() -> Result<Bytes>,
        limits: &Limits,
    ) -> Result<Option<Self>> {
        // The name decides, so that no other file is read twice.
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        let extension = name.rsplit('.').next().unwrap_or_default();
        if !name.contains(".tar.") && !["tgz", "tbz2", "txz"].contains(&extension) {
            return Ok(None);
        }
        let bytes = bytes()?;
        if !tar::is_tar(&packed::first_bytes(compression, &bytes, HEAD)) {
            return Ok(None);
        }
        Ok(Self::of(&packed::decompress(compression, &bytes, limits)?.0))
    }

    /// Returns the names of all members, in their order.
    fn names(&self) -> Vec<&str> {
        match self {
            Self::Zip(_, names) => names.iter().map(String::as_str).collect(),
            Self::Tar(_, files) => files.iter().map(|file| file.name.as_str()).collect(),
        }
    }

    /// Returns the names of the logs: of members that are named like a log, or of the only member.
    /// Files that a log is continued in are read with it, and are not listed.
    pub(crate) fn logs(&self) -> Vec<&str> {
        let files: Vec<&str> = self.names().into_iter().filter(|name| !name.ends_with('/')).collect();
        let mut logs: Vec<&str> = files.iter().copied().filter(|name| is_named_like_a_log(name)).collect();
        let others: HashSet<String> = logs.iter().flat_map(|name| self.companions(name)).collect();
        logs.retain(|name| !others.contains(*name));
        if logs.is_empty() && files.len() == 1 { files } else { logs }
    }

    /// Returns the names of the members that the log `name` is continued in.
    pub(crate) fn companions(&self, name: &str) -> Vec<String> {
        let names: HashSet<&str> = self.names().into_iter().collect();
        let (folder, file) = name.rsplit_once('/').map_or(("", name), |(folder, file)| (folder, file));
        let path = |file: &str| if folder.is_empty() { file.to_owned() } else { format!("{folder}/{file}") };
        let formats = crate::FORMATS.iter().filter_map(|format| {
            let is_its =
                format.extensions.iter().any(|extension| file.to_ascii_lowercase().ends_with(extension));
            format.files.filter(|_| is_its)
        });
        let others = formats.flat_map(|files| (files.others)(file, &|file| names.contains(&*path(file))));
        others.map(|file| path(&file)).collect()
    }

    /// Returns the name of the only log.
    ///
    /// # Errors
    /// Returns an error that lists the logs if there is not exactly one. `path` is where the archive
    /// is, for the next step.
    pub(crate) fn only(&self, path: Option<&Path>) -> Result<&str> {
        let (logs, names) = (self.logs(), self.names());
        if let [name] = logs[..] {
            return Ok(name);
        }
        let listed = if logs.is_empty() { &names } else { &logs };
        let mut what = format!("this is an archive with {}", count(logs.len(), "log"));
        for (number, name) in listed.iter().take(LISTED).enumerate() {
            what += if number == 0 { ": " } else { ", " };
            what += name;
        }
        if listed.len() > LISTED {
            let _ = write!(what, " and {} more", listed.len() - LISTED);
        }
        let error = Error::new("rovelog", ErrorKind::InvalidArgument, None, what);
        Err(match (logs.first(), path) {
            (Some(first), Some(path)) => error.with_next(format!("name one: {}", path.join(first).display())),
            (Some(_), None) => error.with_next("save the archive as a file, and name one: FILE/LOG"),
            (None, _) => error.with_next("unpack the archive, and look for the log in it"),
        })
    }

    /// Returns a member by its name.
    ///
    /// # Errors
    /// Returns an error if there is no such member, or it cannot be decompressed.
    pub(crate) fn read(&self, name: &str, limits: &Limits) -> Result<Member> {
        let missing = || {
            let error = Error::new("rovelog", ErrorKind::Io, None, format!("the archive has no file {name}"));
            error.with_next(format!("its logs are: {}", self.logs().join(", ")))
        };
        match self {
            Self::Tar(bytes, files) => {
                let file = files.iter().find(|file| file.name == name).ok_or_else(missing)?;
                Ok(Member { bytes: bytes.slice(file.data.clone()), packing: None })
            }
            Self::Zip(bytes, names) => {
                let number = names.iter().position(|known| known == name).ok_or_else(missing)?;
                let mut zip = zip(bytes)?;
                let mut file = zip.by_index(number).map_err(|error| damaged(&error))?;
                let expanded = file.compressed_size().saturating_mul(limits.expansion);
                let limit = limits.unpacked.max(expanded);
                let (mut store, mut buffer) = (Store::default(), vec![0; 1 << 20]);
                loop {
                    let read = file.read(&mut buffer).map_err(|error| damaged(&error.into()))?;
                    if read == 0 {
                        break;
                    }
                    if store.len() + read as u64 > limit {
                        let what = format!("{name} decompresses to more than the limit of {limit} bytes");
                        let error = Error::new("rovelog", ErrorKind::LimitExceeded, None, what);
                        return Err(error.with_next(
                            "if you trust the file, raise the limit (--max-unpacked 8GiB) or unpack it first: unzip",
                        ));
                    }
                    io::Write::write_all(&mut store, &buffer[..read])
                        .map_err(|error| packed::refused(&error))?;
                }
                let packing = Packing { name: "zip", ending: Ending::Checked, size: store.len() };
                Ok(Member { bytes: store.finish()?, packing: Some(packing) })
            }
        }
    }
}

fn zip(bytes: &Bytes) -> Result<ZipArchive<Cursor<Bytes>>> {
    ZipArchive::new(Cursor::new(bytes.clone())).map_err(|error| damaged(&error))
}

fn damaged(error: &zip::result::ZipError) -> Error {
    let (kind, next) = match error {
        zip::result::ZipError::UnsupportedArchive(_) => {
            (ErrorKind::Unsupported, "unpack it first: unzip, or 7z x")
        }
        _ => (ErrorKind::Malformed, "save what can be unpacked: 7z x FILE, or zip -FF FILE -O whole.zip"),
    };
    Error::new("rovelog", kind, None, format!("the zip archive cannot be read: {error}")).with_next(next)
}

/// Returns whether a member has the extension of a log, also behind that of a compression.
fn is_named_like_a_log(name: &str) -> bool {
    let name = name.rsplit('/').next().unwrap_or(name).to_ascii_lowercase();
    // Files of macOS that describe others.
    if name.starts_with("._") {
        return false;
    }
    let known = |extension: &str| crate::FORMATS.iter().any(|format| format.extensions.contains(&extension));
    let stem = SUFFIXES.iter().rev().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(&name);
    stem.rsplit_once('.').is_some_and(|(stem, extension)| !stem.is_empty() && known(extension))
}

/// Returns the archive and the name of the member that a path leads into: `logs.zip/flight/17.ulg`.
pub(crate) fn split(path: &Path) -> Option<(PathBuf, String)> {
    if path.exists() {
        return None;
    }
    let archive = path.ancestors().skip(1).find(|above| above.is_file())?;
    let member = path.strip_prefix(archive).ok()?.to_str()?;
    // Names in archives have slashes on every system.
    Some((archive.to_owned(), member.replace(std::path::MAIN_SEPARATOR, "/")))
}

/// Returns the paths of the logs in the archive at `path`, sorted; none if the file is not an archive,
/// or has one log and opens as that.
///
/// # Errors
/// Returns an error if the archive cannot be read.
pub fn logs_in_archive(path: impl AsRef<Path>) -> Result<Vec<PathBuf>> {
    let path = path.as_ref();
    let Some(archive) = archive_at(path, &Limits::default(), &mut Watch::default())? else {
        return Ok(Vec::new());
    };
    let mut logs: Vec<PathBuf> = archive.logs().into_iter().map(|name| path.join(name)).collect();
    logs.sort();
    Ok(if logs.len() > 1 { logs } else { Vec::new() })
}

/// Returns the size and times of the file at `path`; of a log in an archive, those of the archive.
///
/// # Errors
/// Returns an error if there is no such file.
pub fn metadata(path: impl AsRef<Path>) -> io::Result<std::fs::Metadata> {
    let path = path.as_ref();
    match split(path) {
        Some((archive, _)) => std::fs::metadata(archive),
        None => std::fs::metadata(path),
    }
}

/// Returns a reader of the file at `path`, which may be a log in an archive.
///
/// # Errors
/// Returns an error if there is no such file, or the archive cannot be read.
pub fn source(path: impl AsRef<Path>) -> Result<Box<dyn Read>> {
    let path = path.as_ref();
    match split(path) {
        Some((file, name)) => {
            let member = member_at(&file, &name, &Limits::default(), &mut Watch::default())?.1;
            Ok(Box::new(Cursor::new(member.bytes)))
        }
        None => Ok(Box::new(File::open(path).map_err(|error| Error::io("rovelog", error))?)),
    }
}

/// Returns the archive at a path, if it is one. What is wrong with another file is said where it is
/// opened.
pub(crate) fn archive_at(path: &Path, limits: &Limits, watch: &mut Watch) -> Result<Option<Archive>> {
    if !path.is_file() {
        return Ok(None);
    }
    let mut start = Vec::new();
    let Ok(file) = File::open(path) else { return Ok(None) };
    if file.take(HEAD as u64).read_to_end(&mut start).is_err() {
        return Ok(None);
    }
    let compression = Compression::of(&start);
    if compression.is_none() && !Archive::is_at(&start) {
        return Ok(None);
    }
    let mut bytes = || load(path, |_| Ok(()), watch).map(|((), bytes)| bytes);
    match compression {
        Some(compression) => Archive::of_packed(path, compression, bytes, limits),
        None => Ok(Archive::of(&bytes()?)),
    }
}

/// Returns the archive at a path, and a member of it.
pub(crate) fn member_at(
    path: &Path,
    name: &str,
    limits: &Limits,
    watch: &mut Watch,
) -> Result<(Archive, Member)> {
    let archive = archive_at(path, limits, watch)?.ok_or_else(|| {
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        Error::new("rovelog", ErrorKind::Io, None, format!("{file} is neither a folder nor an archive"))
            .with_next("check the path")
    })?;
    let member = archive.read(name, limits)?;
    Ok((archive, member))
}
