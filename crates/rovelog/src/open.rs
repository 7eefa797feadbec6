//! Functions that open a log from a path, bytes or a stream.
//!
//! The start of a file determines its kind. For example, `flight.ulg.gz` starts with the magic
//! number of gzip. It is decompressed, and its content starts with the magic number of ULog, so the
//! ULog reader opens it. An RLD recording may consist of several files. Companion files in the same
//! folder are loaded together with the first file, and each of them may be compressed.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use rovelog_core::format::SEARCH_LEN;
use rovelog_core::internal::partial::{END, Ranges};
use rovelog_core::{Bytes, Error, ErrorKind, LogStream, ReadOptions, Result};

#[cfg(feature = "compressed")]
use crate::archive::{self, Archive, Member, archive_at, member_at};
use crate::companions::{CompanionFile, companion_files, companion_names};
use crate::detect::{built_in, only_zeros};
use crate::file::{head, load, plain_name};
use crate::formats::{open_known, outline_known, stream_known};
#[cfg(feature = "compressed")]
use crate::packed;
use crate::{AnyLog, Watch};

/// Opens a log with the default options.
///
/// # Errors
/// Returns the errors of [`open_with`].
pub fn open(path: impl AsRef<Path>) -> Result<AnyLog> {
    open_with(path, &ReadOptions::default())
}

/// Opens a log. Large regular files are memory-mapped. Other files and pipes are read into memory.
///
/// # Errors
/// Returns an error if the file cannot be read, if it is not a log of a built-in format, or if the
/// reader of the format returns an error. The message does not contain the path.
pub fn open_with(path: impl AsRef<Path>, options: &ReadOptions) -> Result<AnyLog> {
    open_path(path.as_ref(), None, options, &mut Watch::default())
}

/// Opens a log as the given format, even if its magic number does not match. `format` is a format
/// id. If it is `None`, the format is detected.
///
/// # Errors
/// Returns the errors of [`open_with`]. Returns an error if the format is not built in.
pub fn open_as<'a>(
    format: impl Into<Option<&'a str>>,
    path: impl AsRef<Path>,
    options: &ReadOptions,
) -> Result<AnyLog> {
    open_path(path.as_ref(), format.into(), options, &mut Watch::default())
}

/// Opens a log that another program may shorten while it is read. If this happens, the missing
/// bytes are read as zeros, and [`Watch::check`] returns an error. `format` is a format id. If it
/// is `None`, the format is detected.
///
/// Call [`Watch::check`] after each part of your work, before you use the result. This function
/// installs a handler for the signal `SIGBUS`. Faults at other addresses are passed to the previous
/// handler, so that several such handlers can coexist.
///
/// # Errors
/// Returns the errors of [`open_with`].
pub fn open_watched(
    path: impl AsRef<Path>,
    format: Option<&str>,
    options: &ReadOptions,
) -> Result<(AnyLog, Watch)> {
    // Miri has no signal handlers. It reads only small files, which are not memory-mapped.
    #[cfg(feature = "mmap")]
    if cfg!(not(miri)) {
        crate::mmap::survive_shortened_logs();
    }
    let mut watch = Watch::default();
    let log = open_path(path.as_ref(), format, options, &mut watch);
    watch.check()?;
    Ok((log?, watch))
}

/// Opens the log at a path. All public functions that open a path call this function.
fn open_path(path: &Path, format: Option<&str>, options: &ReadOptions, watch: &mut Watch) -> Result<AnyLog> {
    #[cfg(feature = "compressed")]
    {
        if let Some((file, name)) = archive::split_path(path) {
            let (archive, member) = member_at(&file, &name, &options.limits, watch)?;
            return open_member(&archive, &name, member, format, options);
        }
        if let Some(archive) = archive_at(path, &options.limits, watch)? {
            let name = archive.single_log(Some(path))?;
            return open_member(&archive, name, archive.read(name, &options.limits)?, format, options);
        }
    }
    let (kind, bytes) = load(path, |head| identify(head, format), watch)?;
    match kind {
        FileKind::Log(format) => with_companions(format, path, bytes, options, watch),
        #[cfg(feature = "compressed")]
        FileKind::Packed(compression) => {
            open_packed(compression, &bytes, format, options, |format, bytes, options| {
                with_companions(format, path, bytes, options, watch)
            })
        }
    }
}

/// Opens a log in an archive, together with its companion files in the archive.
#[cfg(feature = "compressed")]
fn open_member(
    archive: &Archive,
    name: &str,
    member: Member,
    format: Option<&str>,
    options: &ReadOptions,
) -> Result<AnyLog> {
    let open = |format: &str, bytes: Bytes, options: &ReadOptions| {
        let companions = if options.alone { Vec::new() } else { archive.companions(name) };
        let companion = |path: &str| {
            let bytes = archive.read(path, &options.limits).map(|member| member.bytes);
            let name = path.rsplit('/').next().unwrap_or_default();
            Ok((plain_name(name).to_owned(), companion(name, bytes, options)?))
        };
        let companions = companions.into_iter().map(companion).collect::<Result<Vec<_>>>()?;
        open_known(format, bytes, companions, options)
    };
    let mut options = options.clone();
    options.packing = member.packing;
    open_bytes(member.bytes, format, &options, open)
}

/// Returns the paths of the companion files that [`open_with`] loads together with the log at
/// `path`, such as the other parts of a recording. `format` is a format id as in [`open_as`]. The
/// list is empty if the path is not a regular file.
pub fn companions(path: impl AsRef<Path>, format: Option<&str>) -> Vec<PathBuf> {
    let path = path.as_ref();
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return Vec::new() };
    // A pipe must not be read here, because opening the log could not read the same bytes again.
    if !path.is_file() {
        return Vec::new();
    }
    let Some(format) = format.or_else(|| detect_format(path)) else { return Vec::new() };
    companion_files(format, path, name).into_iter().map(|file| file.path).collect()
}

/// Detects the format of the log in a file, even if the file is compressed as a whole.
fn detect_format(path: &Path) -> Option<&'static str> {
    let mut file = File::open(path).ok()?;
    let bytes = head(&mut file).ok()?;
    #[cfg(feature = "compressed")]
    if let Some(compression) = packed::Compression::of(&bytes) {
        let mut start = bytes;
        // The first block of a bzip2 file can have 900 kB, and no byte of it can be decompressed
        // before the end of the block.
        file.take(MAX_SMALL_LEN as u64).read_to_end(&mut start).ok()?;
        return built_in(&packed::first_bytes(compression, &start, SEARCH_LEN)).ok();
    }
    built_in(&bytes).ok()
}

/// Returns the bytes of a companion file, which are decompressed if needed. An error names the file.
fn companion(name: &str, bytes: Result<Bytes>, options: &ReadOptions) -> Result<Bytes> {
    bytes.and_then(|bytes| unpacked(bytes, options)).map_err(|error| {
        let what = format!("file {name}, which belongs to this log, cannot be read: {error}");
        let named = Error::new(error.format, error.kind, error.offset, what);
        match error.next {
            Some(next) => named.with_next(next),
            None => named,
        }
    })
}

/// Returns the bytes of a file, which are decompressed if needed.
fn unpacked(bytes: Bytes, options: &ReadOptions) -> Result<Bytes> {
    #[cfg(feature = "compressed")]
    if let Some(compression) = packed::Compression::of(&bytes) {
        return Ok(packed::decompress(compression, &bytes, &options.limits)?.0);
    }
    let _ = options;
    Ok(bytes)
}

/// Opens a log together with its companion files in the same folder.
fn with_companions(
    format: &str,
    path: &Path,
    bytes: Bytes,
    options: &ReadOptions,
    watch: &mut Watch,
) -> Result<AnyLog> {
    let name = path.file_name().and_then(|name| name.to_str()).filter(|_| !options.alone);
    let files = name.map_or_else(Vec::new, |name| companion_files(format, path, name));
    let mut companions = Vec::with_capacity(files.len());
    for CompanionFile { name, path } in files {
        let loaded = load(&path, |_| Ok(()), watch).map(|((), bytes)| bytes);
        let bytes = companion(&path.file_name().unwrap_or_default().to_string_lossy(), loaded, options)?;
        companions.push((name, bytes));
    }
    open_known(format, bytes, companions, options)
}

/// Fetches the byte ranges of a remote file that are needed for the summary of its log. These are
/// the start, the end, and the ranges that the format requests. `format` is a format id. If it is
/// `None`, the format is detected.
///
/// Returns false if the file is compressed. The whole file is needed in this case.
///
/// # Errors
/// Returns an error if the file cannot be read, or is not a log of a built-in format.
pub fn outline(file: &dyn Ranges, format: Option<&str>) -> Result<bool> {
    let size = file.size();
    file.fetch(&[0..END.min(size), size.saturating_sub(END)..size])?;
    let head = file.read(0..(SEARCH_LEN as u64).min(size))?;
    #[cfg(feature = "compressed")]
    if Archive::is_at(&file.read(0..(archive::HEAD_LEN as u64).min(size))?) {
        return Ok(false);
    }
    match identify(&head, format)? {
        FileKind::Log(format) => outline_known(format, file).map(|()| true),
        #[cfg(feature = "compressed")]
        FileKind::Packed(_) => Ok(false),
    }
}

/// Opens a log that is in memory.
///
/// # Errors
/// Returns an error if the bytes are not a log of a built-in format, or if the reader of the format
/// returns an error.
pub fn from_bytes(bytes: Bytes, options: &ReadOptions) -> Result<AnyLog> {
    from_bytes_as(None, bytes, options)
}

/// Opens a log in memory as the given format, even if its magic number does not match. `format` is
/// a format id. If it is `None`, the format is detected. A log that is compressed as a whole is
/// decompressed.
///
/// # Errors
/// Returns the errors of [`from_bytes`]. Returns an error if the format is not built in.
pub fn from_bytes_as<'a>(
    format: impl Into<Option<&'a str>>,
    bytes: Bytes,
    options: &ReadOptions,
) -> Result<AnyLog> {
    let format = format.into();
    #[cfg(feature = "compressed")]
    if let Some(archive) = Archive::of(&bytes) {
        let name = archive.single_log(None)?;
        return open_member(&archive, name, archive.read(name, &options.limits)?, format, options);
    }
    open_bytes(bytes, format, options, |format, bytes, options| {
        open_known(format, bytes, Vec::new(), options)
    })
}

/// Opens a log that is in memory, together with its companion files, such as the other parts of a
/// recording. Each file has its name and its bytes, which may be compressed. The first file is the
/// log. [`group_by_log`](crate::group_by_log) tells which files belong to it.
///
/// # Errors
/// Returns the errors of [`from_bytes`]. Returns an error if there is no file, or if a file does not
/// belong to the log by its name.
pub fn from_files(files: Vec<(String, Bytes)>, options: &ReadOptions) -> Result<AnyLog> {
    let invalid = |why: String| Error::new("rovelog", ErrorKind::InvalidArgument, None, why);
    let mut files = files.into_iter();
    let (name, bytes) = files.next().ok_or_else(|| invalid("there is no file".to_owned()))?;
    let read = |(name, bytes): (String, Bytes)| {
        Ok((plain_name(&name).to_owned(), companion(&name, Ok(bytes), options)?))
    };
    let mut others = files.map(read).collect::<Result<Vec<_>>>()?;
    let open = |format: &str, bytes, options: &ReadOptions| {
        let place =
            |others: &[(String, Bytes)], name: &str| others.iter().position(|(other, _)| other == name);
        let names = companion_names(format, &name, &|name| place(&others, name).is_some());
        // The formats expect the files in the order of the names.
        let ordered = names.iter().filter_map(|name| Some(others.swap_remove(place(&others, name)?)));
        let ordered: Vec<_> = ordered.collect();
        match others.first() {
            Some((other, _)) => Err(invalid(format!("file {other} does not belong to the log {name}"))),
            None => open_known(format, bytes, ordered, options),
        }
    };
    open_bytes(bytes, None, options, open)
}

/// Opens a stream of records from a pipe. The pipe is read once with bounded memory, and records
/// are returned in file order.
///
/// # Errors
/// Returns an error if the input cannot be read, if it is not a log of a built-in format, or if the
/// reader of the format returns an error.
pub fn open_stream(input: Box<dyn Read + Send>, options: &ReadOptions) -> Result<Box<dyn LogStream>> {
    open_stream_as(None, input, options)
}

/// Opens a stream of records from a pipe as the given format, even if its magic number does not
/// match. `format` is a format id. If it is `None`, the format is detected.
///
/// # Errors
/// Returns the errors of [`open_stream`]. Returns an error if the format is not built in.
pub fn open_stream_as<'a>(
    format: impl Into<Option<&'a str>>,
    mut input: Box<dyn Read + Send>,
    options: &ReadOptions,
) -> Result<Box<dyn LogStream>> {
    let format = format.into();
    let head = head(&mut input).map_err(|error| Error::io("rovelog", error))?;
    let kind = identify(&head, format)?;
    let input = Box::new(io::Cursor::new(head).chain(input));
    match kind {
        FileKind::Log(format) => stream_known(format, input, options),
        #[cfg(feature = "compressed")]
        FileKind::Packed(compression) => packed::open_stream(compression, input, format, options),
    }
}

/// The kind of a file, determined by its first bytes.
enum FileKind<'a> {
    /// A log with this format id.
    Log(&'a str),
    /// A compressed file. The format of the log can only be detected in its decompressed content.
    #[cfg(feature = "compressed")]
    Packed(packed::Compression),
}

/// Returns the kind of a file that starts with `head`. `format` is a format id. If it is `None`,
/// the format is detected.
fn identify<'a>(head: &[u8], format: Option<&'a str>) -> Result<FileKind<'a>> {
    #[cfg(feature = "compressed")]
    if let Some(compression) = packed::Compression::of(head) {
        return Ok(FileKind::Packed(compression));
    }
    format.map_or_else(|| built_in(head), Ok).map(FileKind::Log)
}

/// Opens the log in the complete bytes of a file by calling `open` with its decompressed content. A
/// file that contains only zeros has an error of its own.
fn open_bytes(
    bytes: Bytes,
    format: Option<&str>,
    options: &ReadOptions,
    open: impl FnOnce(&str, Bytes, &ReadOptions) -> Result<AnyLog>,
) -> Result<AnyLog> {
    let kind = identify(&bytes[..bytes.len().min(SEARCH_LEN)], format);
    let is_zero = kind.is_err() && !bytes.is_empty() && bytes.iter().all(|byte| *byte == 0);
    let kind = if is_zero { Err(only_zeros()) } else { kind };
    match kind? {
        FileKind::Log(format) => open(format, bytes, options),
        #[cfg(feature = "compressed")]
        FileKind::Packed(compression) => open_packed(compression, &bytes, format, options, open),
    }
}

/// Maximum size in bytes of a compressed file that is always decompressed completely, even if its
/// content does not start like a log. Complete decompression detects whether the file is damaged.
#[cfg(feature = "compressed")]
const MAX_SMALL_LEN: usize = 1 << 20;

/// Opens the log in a compressed file by calling `open` with its content. `format` is a format id.
/// If it is `None`, the format is detected.
#[cfg(feature = "compressed")]
fn open_packed(
    compression: packed::Compression,
    file: &[u8],
    format: Option<&str>,
    options: &ReadOptions,
    open: impl FnOnce(&str, Bytes, &ReadOptions) -> Result<AnyLog>,
) -> Result<AnyLog> {
    if format.is_none() && file.len() > MAX_SMALL_LEN {
        // The start of the content is sufficient to reject a large file that is not a log. If not
        // even the start can be decompressed, the complete decompression below returns the reason.
        let head = packed::first_bytes(compression, file, SEARCH_LEN);
        if head.len() == SEARCH_LEN {
            built_in(&head)?;
        }
    }
    let (bytes, packing) = packed::decompress(compression, file, &options.limits)?;
    let mut options = options.clone();
    options.packing = Some(packing);
    let format = format.map_or_else(|| built_in(&bytes[..bytes.len().min(SEARCH_LEN)]), Ok);
    format
        .and_then(|format| open(format, bytes, &options))
        .map_err(|error| packed::explain_cut(&packing, error))
}
