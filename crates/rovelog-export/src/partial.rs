//! Partial files. A partial file contains an output that is not complete yet.
//!
//! The output `OUT` is written to the file `OUT.partial`, which is renamed to `OUT` when it is
//! complete. A process locks the partial file while it writes to it, so that no other process writes
//! the same output. If a partial file is not locked, a killed process has left it behind, and the
//! next process replaces it.

use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};

/// Maximum length in bytes of a file name on common file systems.
const MAX_NAME: usize = 255;

/// Returns the path under which an output is written until it is complete, which is `OUT.partial`.
/// If this name would be too long for the file system, it is truncated and gets a hash of the full
/// name, so that it differs from other truncated names.
pub fn path(target: &Path) -> PathBuf {
    const SUFFIX: &str = ".partial";
    let name = target.file_name().unwrap_or_default();
    if name.len() + SUFFIX.len() <= MAX_NAME {
        let mut partial = target.to_owned().into_os_string();
        partial.push(SUFFIX);
        return partial.into();
    }
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    let text = name.to_string_lossy();
    let start = &text[..text.floor_char_boundary(MAX_NAME - SUFFIX.len() - "-0123456789abcdef".len())];
    target.with_file_name(format!("{start}-{:016x}{SUFFIX}", hasher.finish()))
}

/// Creates and locks a partial file. Replaces an existing partial file, unless another process has
/// locked it.
///
/// # Errors
/// Returns an error of the kind `WouldBlock` if another process has locked the file, and of the kind
/// `AlreadyExists` if `partial` is a link, a folder or a device.
pub fn create(partial: &Path) -> io::Result<File> {
    // Another process may create or remove the partial file between two of the calls below. In this
    // case, the loop is repeated.
    for _ in 0..100 {
        match OpenOptions::new().write(true).create_new(true).open(partial) {
            Ok(file) => {
                // If the file system does not support locks, the file is used without a lock. If
                // another process has replaced the file since it was opened, the loop starts again.
                if !matches!(file.try_lock(), Err(TryLockError::WouldBlock)) && is_at(&file, partial) {
                    return Ok(file);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let Ok(left) = fs::symlink_metadata(partial) else { continue };
                if !left.is_file() {
                    return Err(error);
                }
                let file = match OpenOptions::new().write(true).open(partial) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    opened => opened?,
                };
                if file.try_lock().is_err() {
                    break;
                }
                if is_at(&file, partial) {
                    fs::remove_file(partial)?;
                }
            }
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::WouldBlock.into())
}

/// Returns true if the open file `file` is still the file at `path`.
pub fn is_at(file: &File, path: &Path) -> bool {
    let (open, there) = (file.metadata(), fs::symlink_metadata(path));
    matches!((open, there), (Ok(open), Ok(there)) if is_same_file(path, &open, path, &there))
}

/// Returns true if two paths lead to the same file. On Unix, the metadata of a file identifies it.
#[cfg(unix)]
pub fn is_same_file(_: &Path, a: &Metadata, _: &Path, b: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

/// Returns true if two paths lead to the same file. This system has no inode numbers, so the
/// canonical paths are compared.
#[cfg(not(unix))]
pub fn is_same_file(a: &Path, _: &Metadata, b: &Path, _: &Metadata) -> bool {
    matches!((fs::canonicalize(a), fs::canonicalize(b)), (Ok(a), Ok(b)) if a == b)
}
