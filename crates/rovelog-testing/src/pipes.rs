//! Readers that return few bytes at a time, and writers that run out of space.

use std::io::{self, Read, Write};

/// Read sizes for tests that compare a stream with a slice: one byte at a time, irregular sizes,
/// and everything at once.
pub const PIECES: [&[usize]; 5] = [&[1], &[2, 3, 5, 7], &[64], &[1, 4096], &[100_000]];

/// A reader that cycles through `sizes` and returns at most that many bytes per call.
#[derive(Debug)]
pub struct Dribble<'a> {
    bytes: &'a [u8],
    sizes: Vec<usize>,
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

/// A writer that fails after this many bytes.
#[derive(Debug)]
pub struct Full(pub usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(self.0);
        self.0 -= taken;
        if taken == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(taken) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
