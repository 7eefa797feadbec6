//! A wrapper for the outputs to which logs are written.

use std::io::{Error, Read, Result, Seek, SeekFrom, Write};

/// An output that returns an error for every operation after a failed write.
///
/// A failed write may have written part of its data. The output position is then unknown, and any
/// later bytes could be written to the wrong offset of the log.
///
/// ```
/// use std::io::Write;
///
/// use rovelog_core::internal::output::FailFast;
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
    /// The wrapped output.
    out: W,
    /// True if an operation on the output has failed.
    failed: bool,
}

impl<W> FailFast<W> {
    /// Wraps the output `out`.
    pub fn new(out: W) -> Self {
        Self { out, failed: false }
    }

    /// Returns the wrapped output.
    ///
    /// # Errors
    /// Returns an error if an operation on the output has failed.
    pub fn into_inner(self) -> Result<W> {
        self.check()?;
        Ok(self.out)
    }

    /// Returns an error if an earlier operation on the output has failed.
    #[inline]
    fn check(&self) -> Result<()> {
        if self.failed {
            return Err(Error::other(
                "an earlier write failed, so the log is incomplete: write it again to a new output",
            ));
        }
        Ok(())
    }

    /// Runs an operation on the output. If an earlier operation failed, returns an error instead.
    ///
    /// The flag `failed` is set before the operation and cleared after its success, so that an
    /// operation that panics also counts as failed.
    #[inline]
    fn attempt<T>(&mut self, operation: impl FnOnce(&mut W) -> Result<T>) -> Result<T> {
        self.check()?;
        self.failed = true;
        let done = operation(&mut self.out)?;
        self.failed = false;
        Ok(done)
    }
}

impl<W: Write> Write for FailFast<W> {
    // All bytes are written at once. If only some of them were written, the caller would have to
    // call this function again.
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
