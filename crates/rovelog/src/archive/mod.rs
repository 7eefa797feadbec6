//! Archives that contain logs: `.zip`, `.tar`, and `.tar` files that are compressed as a whole.
//!
//! If an archive contains a single log, opening the archive opens this log. If it contains several
//! logs, each log has a path as if the archive were a folder, such as `logs.zip/flight/17.ulg`.

mod tar_files;

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};

use rovelog_core::internal::packed::{Ending, Packing};
use rovelog_core::internal::text::count;
use rovelog_core::{Bytes, Error, ErrorKind, Limits, Result};
use zip::ZipArchive;

use self::tar_files::{TarFiles, is_tar};
use crate::Watch;
use crate::companions::{companions_among, companions_by_name, format_by_name, group_by_log};
use crate::file::load;
use crate::packed::{self, Compression, Store};

/// Number of bytes at the start of a file that are needed to recognize an archive. This is the size
/// of a tar header.
pub(crate) const HEAD_LEN: usize = 512;

/// Maximum number of archive members that an error message lists.
const MAX_LISTED: usize = 10;

/// An archive in memory or in a mapped file.
pub(crate) enum Archive {
    /// A zip archive and the names of its members.
    Zip(Bytes, Vec<String>),
    /// A tar archive and its files.
    Tar(Bytes, TarFiles),
}

/// A file in an archive.
pub(crate) struct Member {
    /// Decompressed contents of the file.
    pub(crate) bytes: Bytes,
    /// Compression of the contents in the archive, or `None` if they are not compressed.
    pub(crate) packing: Option<Packing>,
}

impl Archive {
    /// Returns whether a file that starts with `head` is an archive.
    pub(crate) fn is_at(head: &[u8]) -> bool {
        head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06") || is_tar(head)
    }

    /// Parses the archive in `bytes`. Returns `None` if `bytes` is not an archive. A zip archive
    /// whose list of members is damaged also gives `None`. Format detection then returns the error
    /// for this archive.
    pub(crate) fn of(bytes: &Bytes) -> Option<Self> {
        if is_tar(bytes) {
            return Some(Self::Tar(bytes.clone(), TarFiles::of(bytes)));
        }
        if !Self::is_at(&bytes[..bytes.len().min(HEAD_LEN)]) {
            return None;
        }
        let zip = zip(bytes).ok()?;
        let names = (0..zip.len()).map(|number| zip.name_for_index(number).unwrap_or_default().to_owned());
        Some(Self::Zip(bytes.clone(), names.collect()))
    }

    /// Parses the archive in a file that is compressed as a whole, such as `.tar.gz` or `.tgz`.
    ///
    /// # Errors
    /// Returns an error if the file cannot be decompressed.
    pub(crate) fn of_packed(
        path: &Path,
        compression: Compression,
        bytes: impl FnOnce() -> Result<Bytes>,
        limits: &Limits,
    ) -> Result<Option<Self>> {
        // The file name decides whether the file is decompressed here. If the content decided,
        // every compressed log would be decompressed twice.
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        let extension = name.rsplit('.').next().unwrap_or_default();
        if !name.contains(".tar.") && !["tgz", "tbz2", "txz"].contains(&extension) {
            return Ok(None);
        }
        let bytes = bytes()?;
        if !is_tar(&packed::first_bytes(compression, &bytes, HEAD_LEN)) {
            return Ok(None);
        }
        Ok(Self::of(&packed::decompress(compression, &bytes, limits)?.0))
    }

    /// Returns the names of all members in archive order.
    fn names(&self) -> Vec<&str> {
        match self {
            Self::Zip(_, names) => names.iter().map(String::as_str).collect(),
            Self::Tar(_, files) => files.list.iter().map(|file| file.name.as_str()).collect(),
        }
    }

    /// Returns the names of all members that are logs. A member is a log if its name has the
    /// extension of a log, or if it is the only member. Companion files of a log are not listed.
    pub(crate) fn logs(&self) -> Vec<&str> {
        let files: Vec<&str> = self.names().into_iter().filter(|name| !name.ends_with('/')).collect();
        let firsts = group_by_log(&files).into_iter().filter_map(|group| Some(files[*group.first()?]));
        let logs: Vec<&str> = firsts.filter(|name| is_named_like_a_log(name)).collect();
        if logs.is_empty() && files.len() == 1 { files } else { logs }
    }

    /// Returns the names of the archive members that are companion files of the log `name`.
    pub(crate) fn companions(&self, name: &str) -> Vec<&str> {
        let names = self.names();
        companions_among(name, &names).into_iter().map(|at| names[at]).collect()
    }

    /// Returns a description of the archive's damage if some of its members may be missing.
    fn damage(&self) -> Option<&str> {
        match self {
            // A zip archive with a damaged list of members is not parsed at all.
            Self::Zip(..) => None,
            Self::Tar(_, files) => files.damage.as_deref(),
        }
    }

    /// Returns the name of the log if the archive contains exactly one log.
    ///
    /// # Errors
    /// Returns an error that lists the logs if their number is not one. Also returns an error if a
    /// damaged archive may contain more logs. `path` is the path of the archive, which is used in
    /// the next step of the error.
    pub(crate) fn single_log(&self, path: Option<&Path>) -> Result<&str> {
        let (logs, names) = (self.logs(), self.names());
        let (kind, mut what) = match (self.damage(), &logs[..]) {
            (None, [name]) => return Ok(name),
            (None, _) => {
                let what = format!("the file is an archive with {}", count(logs.len(), "log"));
                (ErrorKind::InvalidArgument, what)
            }
            (Some(damage), _) => {
                let found = count(logs.len(), "log");
                let what = format!("the archive is damaged ({damage}), with {found} before the damage");
                (ErrorKind::Malformed, what)
            }
        };
        let listed = if logs.is_empty() { &names } else { &logs };
        for (number, name) in listed.iter().take(MAX_LISTED).enumerate() {
            what += if number == 0 { ": " } else { ", " };
            what += name;
        }
        if listed.len() > MAX_LISTED {
            let _ = write!(what, " and {} more", listed.len() - MAX_LISTED);
        }
        let error = Error::new("rovelog", kind, None, what);
        Err(match (logs.first(), path) {
            (Some(first), Some(path)) => {
                error.with_next(format!("name one of them, such as {}", path.join(first).display()))
            }
            (Some(_), None) => {
                error.with_next("save the archive as a file, and name a log in it as FILE/LOG")
            }
            (None, _) => error.with_next("unpack the archive, and look for a log in it"),
        })
    }

    /// Reads the archive member with this name.
    ///
    /// # Errors
    /// Returns an error if there is no such member, or if it cannot be decompressed.
    pub(crate) fn read(&self, name: &str, limits: &Limits) -> Result<Member> {
        let missing = || {
            let error = Error::new("rovelog", ErrorKind::Io, None, format!("the archive has no file {name}"));
            error.with_next(format!("name one of its logs: {}", self.logs().join(", ")))
        };
        match self {
            Self::Tar(bytes, files) => {
                let file = files.list.iter().find(|file| file.name == name).ok_or_else(missing)?;
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
                        let what = format!(
                            "the file {name} in the archive decompresses to more than the limit of {limit} \
                             bytes"
                        );
                        let error = Error::new("rovelog", ErrorKind::LimitExceeded, None, what);
                        return Err(error.with_next(
                            "if you trust the file, raise the limit (--max-unpacked 8GiB) or unpack the \
                             archive first with unzip",
                        ));
                    }
                    io::Write::write_all(&mut store, &buffer[..read])
                        .map_err(|error| packed::storage_error(&error))?;
                }
                let packing = Packing { name: "zip", ending: Ending::Checked, size: store.len() };
                Ok(Member { bytes: store.finish()?, packing: Some(packing) })
            }
        }
    }
}

/// Opens the zip archive in `bytes`.
fn zip(bytes: &Bytes) -> Result<ZipArchive<Cursor<Bytes>>> {
    ZipArchive::new(Cursor::new(bytes.clone())).map_err(|error| damaged(&error))
}

/// Converts an error of the crate `zip`.
fn damaged(error: &zip::result::ZipError) -> Error {
    let (kind, next) = match error {
        zip::result::ZipError::UnsupportedArchive(_) => {
            (ErrorKind::Unsupported, "unpack the archive first with unzip or 7z x")
        }
        _ => (ErrorKind::Malformed, "save what can be unpacked with 7z x FILE or zip -FF FILE -O whole.zip"),
    };
    Error::new("rovelog", kind, None, format!("the zip archive cannot be read: {error}")).with_next(next)
}

/// Returns whether the name of a member has the extension of a log. The extension of a compression
/// may follow.
fn is_named_like_a_log(name: &str) -> bool {
    // macOS adds a file `._NAME` with the attributes of the file `NAME`. It is not a log.
    let is_attributes = name.rsplit('/').next().is_some_and(|name| name.starts_with("._"));
    !is_attributes && format_by_name(name).is_some()
}

/// Splits a path such as `logs.zip/flight/17.ulg` into the path of the archive and the name of the
/// member.
pub(crate) fn split_path(path: &Path) -> Option<(PathBuf, String)> {
    if path.exists() {
        return None;
    }
    let archive = path.ancestors().skip(1).find(|above| above.is_file())?;
    let member = path.strip_prefix(archive).ok()?.to_str()?;
    // Names in archives are separated by slashes on every system.
    Some((archive.to_owned(), member.replace(std::path::MAIN_SEPARATOR, "/")))
}

/// Returns the sorted paths of the logs in the archive at `path`. The list is empty in these cases:
///
/// - The file is not an archive.
/// - The archive has a single log, so that its own path opens the log.
/// - The archive is damaged. Opening it returns the error.
///
/// # Errors
/// Returns an error if the archive cannot be read.
pub fn logs_in_archive(path: impl AsRef<Path>) -> Result<Vec<PathBuf>> {
    let path = path.as_ref();
    let Some(archive) = archive_at(path, &Limits::default(), &mut Watch::default())? else {
        return Ok(Vec::new());
    };
    if archive.damage().is_some() {
        return Ok(Vec::new());
    }
    let mut logs: Vec<PathBuf> = archive.logs().into_iter().map(|name| path.join(name)).collect();
    logs.sort();
    Ok(if logs.len() > 1 { logs } else { Vec::new() })
}

/// Returns the metadata of the file at `path`. If the path leads to a log in an archive, this is
/// the metadata of the archive.
///
/// # Errors
/// Returns an error if there is no such file.
pub fn metadata(path: impl AsRef<Path>) -> io::Result<std::fs::Metadata> {
    let path = path.as_ref();
    match split_path(path) {
        Some((archive, _)) => std::fs::metadata(archive),
        None => std::fs::metadata(path),
    }
}

/// Opens the file at `path` for reading. The path may lead to a log in an archive.
///
/// # Errors
/// Returns an error if there is no such file, or the archive cannot be read.
pub fn source(path: impl AsRef<Path>) -> Result<Box<dyn Read>> {
    let path = path.as_ref();
    match split_path(path) {
        Some((file, name)) => {
            let member = member_at(&file, &name, &Limits::default(), &mut Watch::default())?.1;
            Ok(Box::new(Cursor::new(member.bytes)))
        }
        None => Ok(Box::new(File::open(path).map_err(|error| Error::io("rovelog", error))?)),
    }
}

/// Opens all files of the log at `path` for reading: its first file, and then its companion files in
/// their order. The path may lead to a log in an archive.
///
/// # Errors
/// Returns an error if a file cannot be opened, or if the archive cannot be read.
pub fn sources(path: impl AsRef<Path>) -> Result<Vec<Box<dyn Read>>> {
    let path = path.as_ref();
    if let Some((file, name)) = split_path(path) {
        let limits = Limits::default();
        let (archive, member) = member_at(&file, &name, &limits, &mut Watch::default())?;
        let others = archive.companions(&name).into_iter().map(|name| archive.read(name, &limits));
        let members = std::iter::once(Ok(member)).chain(others);
        let source = |member: Result<Member>| Ok(Box::new(Cursor::new(member?.bytes)) as Box<dyn Read>);
        return members.map(source).collect();
    }
    let files = std::iter::once(path.to_owned()).chain(companions_by_name(path));
    files.map(source).collect()
}

/// Parses the archive at a path. Returns `None` if the file is not an archive or cannot be read. If
/// it cannot be read, the error is reported when the file is opened as a log.
pub(crate) fn archive_at(path: &Path, limits: &Limits, watch: &mut Watch) -> Result<Option<Archive>> {
    if !path.is_file() {
        return Ok(None);
    }
    let mut start = Vec::new();
    let Ok(file) = File::open(path) else { return Ok(None) };
    if file.take(HEAD_LEN as u64).read_to_end(&mut start).is_err() {
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

/// Parses the archive at a path, and reads one of its members.
pub(crate) fn member_at(
    path: &Path,
    name: &str,
    limits: &Limits,
    watch: &mut Watch,
) -> Result<(Archive, Member)> {
    let archive = archive_at(path, limits, watch)?.ok_or_else(|| {
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        Error::new("rovelog", ErrorKind::Io, None, format!("{file} is neither a folder nor an archive"))
            .with_next("check the path; a log in an archive is named ARCHIVE/LOG")
    })?;
    let member = archive.read(name, limits)?;
    Ok((archive, member))
}
