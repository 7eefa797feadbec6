//! Where decompressed bytes go: to memory, and above 64 MiB to a temporary file that is mapped, so that
//! a log of any size opens in little memory.

#[cfg(feature = "mmap")]
use std::fs::File;
use std::io::{self, ErrorKind, Write};

use rovelog_core::{Bytes, Error, Result};

/// Number of bytes that are kept in memory.
#[cfg(feature = "mmap")]
const IN_MEMORY: usize = 64 << 20;

/// Bytes that are decompressed, in their order.
#[derive(Default)]
pub(crate) struct Store {
    memory: Vec<u8>,
    /// The temporary file that has all bytes, if they are too many for the memory.
    #[cfg(feature = "mmap")]
    file: Option<File>,
    len: u64,
}

impl Store {
    /// Returns the number of bytes so far.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Returns the bytes.
    ///
    /// # Errors
    /// Returns an error if the temporary file cannot be mapped.
    pub(crate) fn finish(self) -> Result<Bytes> {
        #[cfg(feature = "mmap")]
        if let Some(file) = self.file {
            // Nobody else can shorten a file without a name, so nothing watches it.
            let mapped = crate::mmap::map(&file, &std::env::temp_dir()).map(|(bytes, _)| bytes);
            return mapped.map_err(|error| refused(&error));
        }
        Ok(self.memory.into())
    }
}

impl Write for Store {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        #[cfg(feature = "mmap")]
        {
            if self.file.is_none() && self.memory.len() + bytes.len() > IN_MEMORY {
                let mut file = temporary()?;
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
            // A quarter more at a time: what is reserved stays near to what is needed.
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

/// Returns the error for decompressed bytes that cannot be kept.
pub(crate) fn refused(error: &io::Error) -> Error {
    if error.kind() == ErrorKind::OutOfMemory {
        let what = "there is not enough memory for the decompressed log";
        return Error::new("rovelog", rovelog_core::ErrorKind::Io, None, what);
    }
    let folder = std::env::temp_dir();
    let what = format!("the decompressed log cannot be written to {}: {error}", folder.display());
    Error::new("rovelog", rovelog_core::ErrorKind::Io, None, what)
        .with_next("free disk space, or set TMPDIR to a folder on another disk")
}

/// Creates a file in the folder for temporary files. It has no name, so that it is gone when it is
/// closed, also if the program is killed.
#[cfg(feature = "mmap")]
fn temporary() -> io::Result<File> {
    use std::hash::{BuildHasher as _, RandomState};

    let mut options = File::options();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    #[cfg(windows)]
    {
        // FILE_FLAG_DELETE_ON_CLOSE, and no sharing with other programs.
        std::os::windows::fs::OpenOptionsExt::custom_flags(&mut options, 0x0400_0000);
        std::os::windows::fs::OpenOptionsExt::share_mode(&mut options, 0);
    }
    for attempt in 0..100 {
        let random = RandomState::new().hash_one(attempt);
        let path = std::env::temp_dir().join(format!(".rovelog-{}-{random:016x}", std::process::id()));
        match options.open(&path) {
            Ok(file) => {
                #[cfg(unix)]
                std::fs::remove_file(&path)?;
                return Ok(file);
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}

#[cfg(all(test, feature = "mmap"))]
mod tests {
    use super::*;

    #[test]
    fn many_bytes_are_in_a_file_without_a_name() {
        let mut store = Store::default();
        let part: Vec<u8> = (0..1 << 20).map(|i: u32| i.to_le_bytes()[1]).collect();
        for _ in 0..64 {
            store.write_all(&part).unwrap();
        }
        assert!(store.file.is_none() && store.memory.len() == IN_MEMORY);
        store.write_all(&part[..5]).unwrap();
        assert!(store.file.is_some() && store.memory.capacity() == 0);
        store.write_all(&part[5..]).unwrap();
        assert_eq!(store.len(), 65 << 20);
        let bytes = store.finish().unwrap();
        assert!(bytes.len() == 65 << 20 && bytes.chunks(1 << 20).all(|found| found == part));
        let own = format!(".rovelog-{}-", std::process::id());
        let names = std::fs::read_dir(std::env::temp_dir()).unwrap();
        assert!(names.flatten().all(|name| !name.file_name().to_string_lossy().starts_with(&own)));
    }
}
