//! Files: their bytes, read or mapped, and errors of the operating system.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::Path;

use rovelog_core::reader::{PROBE_LEN, SEARCH_LEN};
use rovelog_core::{Bytes, Error, ErrorKind, Result};

use crate::Watch;
use crate::detect::{is_undecided, only_zeros};
#[cfg(feature = "compressed")]
use crate::packed;

/// Minimum size of mapped files in bytes. Smaller files are read: this is as fast, and other
/// programs may then change the file safely.
#[cfg(feature = "mmap")]
const MAP_FROM: u64 = 1 << 20;

/// Suffixes of files that are compressed as a whole. The suffix of a companion file can differ from
/// that of the first file.
pub(crate) const SUFFIXES: &[&str] =
    if cfg!(feature = "compressed") { &["", ".gz", ".zst", ".xz", ".bz2", ".lz4"] } else { &[""] };

/// Returns the bytes of a file. First calls `identify` with the start of the file, so that an
/// endless device or a huge file of another kind is rejected before it is read.
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

/// Returns an error if a file is a device, because its data may never end and would fill the
/// memory.
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

/// Returns whether the rest of `file` contains only zero bytes.
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

/// Returns the first [`PROBE_LEN`] bytes, [`SEARCH_LEN`] bytes if the first ones are no signature, or
/// all bytes of a shorter input. A pipe may return them one by one.
pub(crate) fn head(input: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
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

/// Maps a file. Returns `None` if it should be read instead, because it is small or not regular, or
/// because its file system does not support mapping.
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

pub(crate) fn directory() -> Error {
    Error::new("rovelog", ErrorKind::Io, None, "this is a directory, not a log")
        .with_next("name a file in it")
}

/// Returns whether the path is a URL such as `https://...` or `s3://...`. It must have a scheme of
/// letters and digits, and there must be no file of this name.
pub fn is_address(path: impl AsRef<Path>) -> bool {
    let path = path.as_ref();
    let scheme = path.to_str().and_then(|text| text.split_once("://")).map(|(scheme, _)| scheme);
    let is_scheme =
        |scheme: &str| scheme.len() > 1 && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric());
    scheme.is_some_and(is_scheme) && !path.exists()
}

/// Converts an error of the operating system to one with a clear message and the next step.
pub(crate) fn io_error(path: &Path, error: io::Error) -> Error {
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
