//! Storage of decompressed bytes. Up to 64 MiB are stored in memory. If there are more bytes, all
//! of them are written to a temporary file, which is memory-mapped afterwards. So a log of any size
//! needs little memory.

#[cfg(feature = "mmap")]
use std::fs::File;
use std::io::{self, ErrorKind, Write};

use rovelog_core::{Bytes, Error, Result};

/// Maximum number of bytes that are stored in memory.
#[cfg(feature = "mmap")]
const MAX_IN_MEMORY: usize = 64 << 20;

/// Storage for decompressed bytes, which are appended with [`Write`].
#[derive(Default)]
pub(crate) struct Store {
    /// The decompressed bytes, as long as they are not in the temporary file.
    memory: Vec<u8>,
    /// Temporary file with all decompressed bytes, if there are too many for memory.
    #[cfg(feature = "mmap")]
    file: Option<File>,
    /// Number of decompressed bytes.
    len: u64,
}

impl Store {
    /// Returns the number of bytes that were written to the storage.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Returns all bytes that were written to the storage.
    ///
    /// # Errors
    /// Returns an error if the temporary file cannot be mapped.
    pub(crate) fn finish(self) -> Result<Bytes> {
        #[cfg(feature = "mmap")]
        if let Some(file) = self.file {
            // No other program can shorten a file without a name, so the file is not watched.
            let mapped = crate::mmap::map(&file, &std::env::temp_dir()).map(|(bytes, _)| bytes);
            return mapped.map_err(|error| storage_error(&error));
        }
        Ok(self.memory.into())
    }
}

impl Write for Store {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        #[cfg(feature = "mmap")]
        {
            if self.file.is_none() && self.memory.len() + bytes.len() > MAX_IN_MEMORY {
                // The file has no name, so the system deletes it when it is closed, even if the
                // program is killed.
                let mut file = tempfile::tempfile()?;
                file.write_all(&self.memory)?;
                (self.file, self.memory) = (Some(file), Vec::new());
            }
            if let Some(file) = &mut self.file {
                file.write_all(bytes)?;
                self.len += bytes.len() as u64;
                return Ok(bytes.len());
            }
        }
        if self.memory.capacity() - self.memory.len() < bytes.len() {
            // `Vec` would double its capacity. Adding a quarter leaves less unused memory.
            let more = bytes.len().max(self.memory.len() / 4);
            self.memory.try_reserve_exact(more).map_err(|_| ErrorKind::OutOfMemory)?;
        }
        self.memory.extend_from_slice(bytes);
        self.len += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the error for decompressed bytes that cannot be stored.
pub(crate) fn storage_error(error: &io::Error) -> Error {
    if error.kind() == ErrorKind::OutOfMemory {
        let what = "there is not enough memory for the decompressed log";
        return Error::new("rovelog", rovelog_core::ErrorKind::Io, None, what);
    }
    let folder = std::env::temp_dir();
    let what = format!("the decompressed log cannot be written to {}: {error}", folder.display());
    Error::new("rovelog", rovelog_core::ErrorKind::Io, None, what)
        .with_next("free disk space, or set TMPDIR to a folder on another disk")
}

#[cfg(all(test, feature = "mmap"))]
mod tests {
    use super::*;

    #[test]
    fn many_bytes_are_stored_in_a_temporary_file() {
        let mut store = Store::default();
        let part: Vec<u8> = (0..1 << 20).map(|i: u32| i.to_le_bytes()[1]).collect();
        for _ in 0..64 {
            store.write_all(&part).unwrap();
        }
        assert!(store.file.is_none() && store.memory.len() == MAX_IN_MEMORY);
        store.write_all(&part[..5]).unwrap();
        assert!(store.file.is_some() && store.memory.capacity() == 0);
        store.write_all(&part[5..]).unwrap();
        assert_eq!(store.len(), 65 << 20);
        let bytes = store.finish().unwrap();
        assert!(bytes.len() == 65 << 20 && bytes.chunks(1 << 20).all(|found| found == part));
    }
}
