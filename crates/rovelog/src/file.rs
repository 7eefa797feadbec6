//! Functions that read or memory-map files, and give clear messages for errors of the operating
//! system.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::Path;

use rovelog_core::format::{PROBE_LEN, SEARCH_LEN};
use rovelog_core::{Bytes, Error, ErrorKind, Result};

use crate::Watch;
use crate::detect::{is_undecided, only_zeros};
#[cfg(feature = "compressed")]
use crate::packed;

/// Minimum size in bytes of a file that is memory-mapped. Reading a smaller file is equally fast,
/// and then other programs can change the file without consequences.
#[cfg(feature = "mmap")]
const MIN_MAPPED_SIZE: u64 = 1 << 20;

/// File name suffixes of compressions. A companion file can have a different suffix than the first
/// file of a log.
pub(crate) const SUFFIXES: &[&str] =
    if cfg!(feature = "compressed") { &["", ".gz", ".zst", ".xz", ".bz2", ".lz4"] } else { &[""] };

/// Returns the name of a file without the suffix of a compression.
pub(crate) fn plain_name(name: &str) -> &str {
    SUFFIXES.iter().rev().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name)
}

/// Reads or memory-maps a file. `identify` is called with the start of the file first, so that an
/// endless device or a huge file of another kind is rejected early.
pub(crate) fn load<T>(
    path: &Path,
    identify: impl FnOnce(&[u8]) -> Result<T>,
    watch: &mut Watch,
) -> Result<(T, Bytes)> {
    let mut file = File::open(path).map_err(|error| io_error(path, error))?;
    let metadata = file.metadata().map_err(|error| io_error(path, error))?;
    if metadata.is_dir() {
        return Err(directory());
    }
    let mut bytes = head(&mut file).map_err(|error| io_error(path, error))?;
    let kind = identify(&bytes).or_else(|error| {
        // A file that contains only zeros is a common result of an interrupted recording, so it has
        // an error message of its own.
        let ends = metadata.is_file() || bytes.len() < SEARCH_LEN;
        let is_zero = ends && !bytes.is_empty() && bytes.iter().all(|byte| *byte == 0);
        let is_zero = is_zero && rest_is_zero(&mut file).map_err(|error| io_error(path, error))?;
        Err(if is_zero { only_zeros() } else { error })
    })?;
    if let Some(mapped) = map(path, &file, &metadata, watch) {
        return Ok((kind, mapped));
    }
    if !bytes.is_empty() {
        refuse_device(&metadata)?;
    }
    file.read_to_end(&mut bytes).map_err(|error| io_error(path, error))?;
    Ok((kind, bytes.into()))
}

/// Returns an error if a file is a device. Its data may never end, so reading it could fill the
/// memory.
///
/// # Errors
/// Returns an error if `metadata` describes a character or block device.
pub fn refuse_device(metadata: &Metadata) -> Result<()> {
    #[cfg(unix)]
    let is_device = |metadata: &Metadata| {
        use std::os::unix::fs::FileTypeExt as _;
        metadata.file_type().is_char_device() || metadata.file_type().is_block_device()
    };
    #[cfg(not(unix))]
    let is_device = |_: &Metadata| false;
    if is_device(metadata) {
        let why = "the path is a device, not a regular file";
        return Err(Error::new("rovelog", ErrorKind::Io, None, why)
            .with_next("copy its data to a file first: head -c BYTES FILE > copy.log"));
    }
    Ok(())
}

/// Reads the remaining bytes of `file`. Returns true if all of these bytes are zero.
fn rest_is_zero(file: &mut File) -> io::Result<bool> {
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(true),
            Ok(read) if buffer[..read].iter().all(|byte| *byte == 0) => {}
            Ok(_) => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Reads the start of an input for detection. This is the first [`PROBE_LEN`] bytes if they contain
/// the signature of a format or a compression. Otherwise, it is the first [`SEARCH_LEN`] bytes. A
/// shorter input is read completely.
pub(crate) fn head(input: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    // `read_to_end` reads repeatedly, which is needed because a pipe may return only a few bytes at
    // a time.
    input.by_ref().take(PROBE_LEN as u64).read_to_end(&mut head)?;
    #[cfg(feature = "compressed")]
    if packed::Compression::of(&head).is_some() {
        return Ok(head);
    }
    if head.len() == PROBE_LEN && is_undecided(&head) {
        input.by_ref().take((SEARCH_LEN - PROBE_LEN) as u64).read_to_end(&mut head)?;
    }
    Ok(head)
}

/// Memory-maps a file. Returns `None` if the file should be read instead. This is the case if the
/// file is small, is not a regular file, or is on a file system that cannot map files.
#[cfg(feature = "mmap")]
fn map(path: &Path, file: &File, metadata: &Metadata, watch: &mut Watch) -> Option<Bytes> {
    if !metadata.is_file() || metadata.len() < MIN_MAPPED_SIZE {
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

/// Returns the error for a path that is a directory instead of a log.
pub(crate) fn directory() -> Error {
    Error::new("rovelog", ErrorKind::Io, None, "the path is a directory, not a log")
        .with_next("name a log file in the directory")
}

/// Returns whether the path is a URL such as `https://...` or `s3://...`. Its scheme must consist
/// of letters and digits, and no file with this name may exist.
pub fn is_address(path: impl AsRef<Path>) -> bool {
    let path = path.as_ref();
    let scheme = path.to_str().and_then(|text| text.split_once("://")).map(|(scheme, _)| scheme);
    let is_scheme =
        |scheme: &str| scheme.len() > 1 && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric());
    scheme.is_some_and(is_scheme) && !path.exists()
}

/// Converts an error of the operating system to an error with a clear message and advice to the
/// user.
pub(crate) fn io_error(path: &Path, error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::NotFound if is_address(path) => {
            let http = path.to_str().is_some_and(|text| text.starts_with("http"));
            let next = if http { "download the log first: curl -fLO FILE" } else { "download the log first" };
            let what = "the path is an address, which this build cannot read";
            Error::new("rovelog", ErrorKind::Unsupported, None, what).with_next(next)
        }
        io::ErrorKind::NotFound => {
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            let next = match parent {
                Some(parent) if !parent.exists() => "check the path, because its folder does not exist",
                _ => "check the name and the current folder",
            };
            Error::new("rovelog", ErrorKind::Io, None, "no such file").with_next(next)
        }
        io::ErrorKind::PermissionDenied => Error::new("rovelog", ErrorKind::Io, None, "permission denied")
            .with_next("ask the owner of the file, or change its mode: chmod +r FILE"),
        io::ErrorKind::IsADirectory => directory(),
        _ => Error::io("rovelog", error),
    }
}
