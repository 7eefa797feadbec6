//! Outputs of writers.

use std::io::{Error, Read, Result, Seek, SeekFrom, Write};

/// An output that refuses everything after a failed write: it is unknown how much of that was
/// written, so further bytes could be at a wrong place.
///
/// ```
/// use std::io::Write;
///
/// use rovelog_core::output::FailFast;
///
/// let mut buffer = [0; 4];
/// let mut out = FailFast::new(&mut buffer[..]);
/// out.write_all(b"abc")?;
/// assert!(out.write_all(b"defg").is_err());
/// let error = out.write_all(b"").unwrap_err();
/// assert!(error.to_string().starts_with("an earlier write failed"));
/// assert!(out.into_inner().is_err());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct FailFast<W> {
    out: W,
    failed: bool,
}

impl<W> FailFast<W> {
    /// Returns an output that has not failed yet.
    pub fn new(out: W) -> Self {
        Self { out, failed: false }
    }

    /// Gives the output back.
    ///
    /// # Errors
    /// Returns an error if a write has failed.
    pub fn into_inner(self) -> Result<W> {
        self.check()?;
        Ok(self.out)
    }

    #[inline]
    fn check(&self) -> Result<()> {
        if self.failed {
            return Err(Error::other(
                "an earlier write failed, so the log is incomplete: write it again to a new output",
            ));
        }
        Ok(())
    }

    #[inline]
    fn attempt<T>(&mut self, what: impl FnOnce(&mut W) -> Result<T>) -> Result<T> {
        self.check()?;
        self.failed = true;
        let done = what(&mut self.out)?;
        self.failed = false;
        Ok(done)
    }
}

impl<W: Write> Write for FailFast<W> {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.write_all(bytes).map(|()| bytes.len())
    }

    #[inline]
    fn write_all(&mut self, bytes: &[u8]) -> Result<()> {
        self.attempt(|out| out.write_all(bytes))
    }

    fn flush(&mut self) -> Result<()> {
        self.attempt(Write::flush)
    }
}

impl<W: Seek> Seek for FailFast<W> {
    fn seek(&mut self, to: SeekFrom) -> Result<u64> {
        self.attempt(|out| out.seek(to))
    }
}

impl<W: Read> Read for FailFast<W> {
    fn read(&mut self, bytes: &mut [u8]) -> Result<usize> {
        self.out.read(bytes)
    }
}
