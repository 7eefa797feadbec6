//! A pipe whose pieces are as long as its bytes say.

use std::io::Read;

/// Hands out bytes in pieces of sizes taken from the bytes themselves.
pub(crate) struct Pieces<'a>(pub(crate) &'a [u8]);

impl Read for Pieces<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let size = self.0.first().map_or(0, |b| 1 + usize::from(*b)).min(self.0.len()).min(out.len());
        let (piece, rest) = self.0.split_at(size);
        out[..size].copy_from_slice(piece);
        self.0 = rest;
        Ok(size)
    }
}
