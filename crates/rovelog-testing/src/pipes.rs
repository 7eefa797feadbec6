//! Readers that return few bytes at a time, and writers that fail.

use std::io::{self, Read, Write};

/// Read sizes for tests that compare a stream with a reader: one byte at a time, irregular sizes,
/// and everything at once.
pub const READ_SIZES: [&[usize]; 5] = [&[1], &[2, 3, 5, 7], &[64], &[1, 4096], &[100_000]];

/// A reader that returns few bytes per call. Call number `i` returns at most `sizes[i %
/// sizes.len()]` bytes.
#[derive(Debug)]
pub struct Dribble<'a> {
    /// Bytes that have not been returned yet.
    bytes: &'a [u8],
    /// Maximum number of bytes for each call, repeated in a cycle.
    sizes: Vec<usize>,
    /// Number of calls so far.
    turn: usize,
}

impl<'a> Dribble<'a> {
    /// Creates a reader of `bytes`.
    pub fn new(bytes: &'a [u8], sizes: impl Into<Vec<usize>>) -> Self {
        Self { bytes, sizes: sizes.into(), turn: 0 }
    }
}

impl Read for Dribble<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let size = self.sizes[self.turn % self.sizes.len()].min(out.len()).min(self.bytes.len());
        self.turn += 1;
        out[..size].copy_from_slice(&self.bytes[..size]);
        self.bytes = &self.bytes[size..];
        Ok(size)
    }
}

/// A writer that accepts this number of bytes and then fails with `StorageFull`.
#[derive(Debug)]
pub struct Full(pub usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // The last write is partial, as on a disk that becomes full.
        let taken = bytes.len().min(self.0);
        self.0 -= taken;
        if taken == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(taken) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
