//! Opening: from a path, bytes or a pipe to the reader of the detected format.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use rovelog_core::partial::{END, Ranges};
use rovelog_core::reader::PROBE_LEN;
use rovelog_core::{Bytes, Error, ErrorKind, LogStream, ReadOptions, Result};

use crate::detect::built_in;
use crate::formats::{from_files_as, from_known, outline_known, stream_known};
#[cfg(feature = "compressed")]
use crate::packed;
use crate::{AnyLog, FORMATS, Watch};

/// Minimum size of mapped files. Below it, reading is as fast as mapping, and the file may change
/// safely.
#[cfg(feature = "mmap")]
const MAP_FROM: u64 = 1 << 20;

/// Opens a log with the default options.
///
/// # Errors
/// Returns the errors of [`open_with`].
pub fn open(path: impl AsRef<Path>) -> Result<AnyLog> {
    open_with(path, &ReadOptions::default())
}

/// Opens a log. Large regular files are mapped; other files and pipes are read into memory.
///
/// # Errors
/// Returns an error if the file cannot be read, is not a log of a built-in format, or the format
/// refuses it. The message does not name the path.
pub fn open_with(path: impl AsRef<Path>, options: &ReadOptions) -> Result<AnyLog> {
    opened(path.as_ref(), None, options, &mut Watch::default())
}

/// Opens a log of a known format without looking at its magic number. `format` is its id; `None`
/// detects the format.
///
/// # Errors
/// Returns the errors of [`open_with`].
pub fn open_as<'a>(
    format: impl Into<Option<&'a str>>,
    path: impl AsRef<Path>,
    options: &ReadOptions,
) -> Result<AnyLog> {
    opened(path.as_ref(), format.into(), options, &mut Watch::default())
}

/// Opens a log that may be shortened by another program while it is read: its bytes then become
/// zeros, and [`Watch::check`] returns an error. `format` is an id; `None` detects the format.
///
/// Call [`Watch::check`] after each piece of work, before you use its result. The function handles
/// the signal `SIGBUS`. Faults at other addresses go to the previously installed handler, so it
/// works together with other handlers that do the same.
///
/// # Errors
/// Returns the errors of [`open_with`].
pub fn open_watched(
    path: impl AsRef<Path>,
    format: Option<&str>,
    options: &ReadOptions,
) -> Result<(AnyLog, Watch)> {
    #[cfg(feature = "mmap")]
    crate::mmap::survive_shortened_logs();
    let mut watch = Watch::default();
    let log = opened(path.as_ref(), format, options, &mut watch);
    watch.check()?;
    Ok((log?, watch))
}

fn opened(path: &Path, format: Option<&str>, options: &ReadOptions, watch: &mut Watch) -> Result<AnyLog> {
    let (accepted, bytes) = load(path, |head| accept(head, format), watch)?;
    match accepted {
        Accepted::Log(format) => with_companions(format, path, bytes, options, watch),
        #[cfg(feature = "compressed")]
        Accepted::Packed(compression) => {
            unpacked(compression, &bytes, format, options, |format, bytes, options| {
                with_companions(format, path, bytes, options, watch)
            })
        }
    }
}

/// Returns the companion files that [`open_with`] reads with the log at `path`: further parts of a
/// recording, and files that come with it. `format` is an id as in [`open_as`]. The list is empty
/// if the path is not a regular file.
pub fn companions(path: impl AsRef<Path>, format: Option<&str>) -> Vec<PathBuf> {
    let path = path.as_ref();
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return Vec::new() };
    // A pipe is not touched: what is read from it is gone.
    if !path.is_file() {
        return Vec::new();
    }
    let detected = || built_in(&head(&mut File::open(path).ok()?).ok()?).ok();
    let Some(format) = format.or_else(detected) else { return Vec::new() };
    names_of_others(format, path, name).iter().map(|name| path.with_file_name(name)).collect()
}

/// Returns the names of the companion files, in the same folder, of the log whose first file is
/// `name`.
fn names_of_others(format: &str, path: &Path, name: &str) -> Vec<String> {
    let files = FORMATS.iter().find(|known| known.id == format).and_then(|format| format.files);
    files.map_or_else(Vec::new, |files| (files.others)(name, &|name| path.with_file_name(name).is_file()))
}

/// Returns the log with its companion files from the same folder.
fn with_companions(
    format: &str,
    path: &Path,
    bytes: Bytes,
    options: &ReadOptions,
    watch: &mut Watch,
) -> Result<AnyLog> {
    let (Some(name), false) = (path.file_name().and_then(|name| name.to_str()), options.alone) else {
        return from_known(format, bytes, options);
    };
    let names = names_of_others(format, path, name);
    if names.is_empty() {
        return from_known(format, bytes, options);
    }
    let mut companions = Vec::with_capacity(names.len());
    for name in names {
        let ((), bytes) = load(&path.with_file_name(&name), |_| Ok(()), watch)?;
        companions.push((name, bytes));
    }
    from_files_as(format, bytes, companions, options)
}

/// Fetches the parts of a remote file that a summary of its log needs: its start and its end, and
/// what the format says where the rest is. `format` is an id; `None` detects the format.
///
/// Returns false if only the whole file will do, because it is compressed.
///
/// # Errors
/// Returns an error if the file cannot be read, or is not a log of a built-in format.
pub fn outline(file: &dyn Ranges, format: Option<&str>) -> Result<bool> {
    let size = file.size();
    file.fetch(&[0..END.min(size), size.saturating_sub(END)..size])?;
    let head = file.read(0..PROBE_LEN as u64)?;
    match accept(&head, format)? {
        Accepted::Log(format) => outline_known(format, file).map(|()| true),
        #[cfg(feature = "compressed")]
        Accepted::Packed(_) => Ok(false),
    }
}

/// Opens a log in memory.
///
/// # Errors
/// Returns an error if the bytes are not a log of a built-in format, or the format refuses them.
pub fn from_bytes(bytes: Bytes, options: &ReadOptions) -> Result<AnyLog> {
    from_bytes_as(None, bytes, options)
}

/// Opens a log in memory of a known format without looking at its magic number. `format` is its id;
/// `None` detects the format. One that is compressed as a whole is decompressed.
///
/// # Errors
/// Returns the errors of [`from_bytes`], and an error if the format is not built in.
pub fn from_bytes_as<'a>(
    format: impl Into<Option<&'a str>>,
    bytes: Bytes,
    options: &ReadOptions,
) -> Result<AnyLog> {
    let format = format.into();
    match accept(&bytes[..bytes.len().min(PROBE_LEN)], format)? {
        Accepted::Log(format) => from_known(format, bytes, options),
        #[cfg(feature = "compressed")]
        Accepted::Packed(compression) => unpacked(compression, &bytes, format, options, from_known),
    }
}

/// Reads a log from a pipe: one pass, bounded memory, records in file order.
///
/// # Errors
/// Returns an error if the input cannot be read, is not a log of a built-in format, or the format
/// refuses it.
pub fn open_stream(input: Box<dyn Read + Send>, options: &ReadOptions) -> Result<Box<dyn LogStream>> {
    open_stream_as(None, input, options)
}

/// Reads a log of a known format from a pipe without looking at its magic number. `format` is its
/// id; `None` detects the format.
///
/// # Errors
/// Returns the errors of [`open_stream`], and an error if the format is not built in.
pub fn open_stream_as<'a>(
    format: impl Into<Option<&'a str>>,
    mut input: Box<dyn Read + Send>,
    options: &ReadOptions,
) -> Result<Box<dyn LogStream>> {
    let format = format.into();
    let head = head(&mut input).map_err(|error| Error::io("rovelog", error))?;
    let accepted = accept(&head, format)?;
    let input = Box::new(io::Cursor::new(head).chain(input));
    match accepted {
        Accepted::Log(format) => stream_known(format, input, options),
        #[cfg(feature = "compressed")]
        Accepted::Packed(compression) => packed::open_stream(compression, input, format, options),
    }
}

/// What the first bytes of a file say.
enum Accepted<'a> {
    /// A log of this format.
    Log(&'a str),
    /// A compressed file, whose content decides.
    #[cfg(feature = "compressed")]
    Packed(packed::Compression),
}

/// Returns what a file is that starts with `head`. `format` is an id; `None` detects the format.
fn accept<'a>(head: &[u8], format: Option<&'a str>) -> Result<Accepted<'a>> {
    #[cfg(feature = "compressed")]
    if let Some(compression) = packed::Compression::of(head) {
        return Ok(Accepted::Packed(compression));
    }
    format.map_or_else(|| built_in(head), Ok).map(Accepted::Log)
}

/// Size of a compressed file up to which all of it is decompressed to say what it is, or how it is
/// damaged.
#[cfg(feature = "compressed")]
const SMALL: usize = 1 << 20;

/// Opens the log in a compressed file. `format` is an id; `None` detects the format.
#[cfg(feature = "compressed")]
fn unpacked(
    compression: packed::Compression,
    file: &[u8],
    format: Option<&str>,
    options: &ReadOptions,
    open: impl FnOnce(&str, Bytes, &ReadOptions) -> Result<AnyLog>,
) -> Result<AnyLog> {
    if format.is_none() && file.len() > SMALL {
        // A large file of another kind is not decompressed to its end. One whose start cannot be
        // decompressed fails below, with the reason.
        let head = packed::first_bytes(compression, file);
        if head.len() == PROBE_LEN {
            built_in(&head)?;
        }
    }
    let (bytes, packing) = packed::whole(compression, file, options.limits.unpacked)?;
    let mut options = options.clone();
    options.packing = Some(packing);
    let format = format.map_or_else(|| built_in(&bytes[..bytes.len().min(PROBE_LEN)]), Ok);
    format
        .and_then(|format| open(format, bytes, &options))
        .map_err(|error| packed::not_begun(&packing, error))
}

/// Returns the bytes of a file after `accept` has agreed to its first ones, so that an endless
/// device or a huge file of another kind is refused before it is read.
fn load<T>(path: &Path, accept: impl FnOnce(&[u8]) -> Result<T>, watch: &mut Watch) -> Result<(T, Bytes)> {
    let mut file = File::open(path).map_err(|error| refused(path, error))?;
    let metadata = file.metadata().map_err(|error| refused(path, error))?;
    if metadata.is_dir() {
        return Err(directory());
    }
    let mut bytes = head(&mut file).map_err(|error| refused(path, error))?;
    let accepted = accept(&bytes)?;
    if let Some(mapped) = map(path, &file, &metadata, watch) {
        return Ok((accepted, mapped));
    }
    if !bytes.is_empty() {
        refuse_device(&metadata)?;
    }
    file.read_to_end(&mut bytes).map_err(|error| refused(path, error))?;
    Ok((accepted, bytes.into()))
}

/// Refuses a device: it may never end, and its bytes would fill the memory.
///
/// # Errors
/// Returns an error if `metadata` is that of a character or block device.
pub fn refuse_device(metadata: &Metadata) -> Result<()> {
    #[cfg(unix)]
    let is_device = {
        use std::os::unix::fs::FileTypeExt as _;
        metadata.file_type().is_char_device() || metadata.file_type().is_block_device()
    };
    #[cfg(not(unix))]
    let is_device = false;
    if is_device {
        let why = "this is a device, not a regular file";
        return Err(Error::new("rovelog", ErrorKind::Io, None, why)
            .with_next("copy its data to a file first: head -c BYTES FILE > copy.log"));
    }
    Ok(())
}

/// Returns the first [`PROBE_LEN`] bytes, or all there are. A pipe may hand them out one by one.
fn head(input: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    input.by_ref().take(PROBE_LEN as u64).read_to_end(&mut head)?;
    Ok(head)
}

/// Returns the mapped file; `None` if it should be read: small, not regular, or on a file system
/// that cannot map.
#[cfg(feature = "mmap")]
fn map(path: &Path, file: &File, metadata: &Metadata, watch: &mut Watch) -> Option<Bytes> {
    if !metadata.is_file() || metadata.len() < MAP_FROM {
        return None;
    }
    let (bytes, file) = crate::mmap::map(file, path).ok()?;
    watch.add(file);
    Some(bytes)
}

#[cfg(not(feature = "mmap"))]
fn map(_: &Path, _: &File, _: &Metadata, _: &mut Watch) -> Option<Bytes> {
    None
}

fn directory() -> Error {
    Error::new("rovelog", ErrorKind::Io, None, "this is a directory, not a log")
        .with_next("name a file in it")
}

/// Returns whether the path is an address (`https://...`, `s3://...`): a scheme of letters and
/// digits, and no file of this name.
pub fn is_address(path: impl AsRef<Path>) -> bool {
    let path = path.as_ref();
    let scheme = path.to_str().and_then(|text| text.split_once("://")).map(|(scheme, _)| scheme);
    let is_scheme =
        |scheme: &str| scheme.len() > 1 && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric());
    scheme.is_some_and(is_scheme) && !path.exists()
}

/// Returns an operating-system error with a clear message and the next step.
fn refused(path: &Path, error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::NotFound if is_address(path) => {
            let http = path.to_str().is_some_and(|text| text.starts_with("http"));
            let next = if http { "download the log first: curl -fLO FILE" } else { "download the log first" };
            let what = "this is an address, not a file";
            Error::new("rovelog", ErrorKind::Unsupported, None, what).with_next(next)
        }
        io::ErrorKind::NotFound => {
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            let next = match parent {
                Some(parent) if !parent.exists() => "check the path: its folder does not exist",
                _ => "check the name and the current folder",
            };
            Error::new("rovelog", ErrorKind::Io, None, "no such file").with_next(next)
        }
        io::ErrorKind::PermissionDenied => Error::new("rovelog", ErrorKind::Io, None, "permission denied")
            .with_next("ask the owner, or change the mode: chmod +r FILE"),
        io::ErrorKind::IsADirectory => directory(),
        _ => Error::io("rovelog", error),
    }
}
