//! A new log that consists of byte ranges of other logs and of new bytes.
//!
//! Slicing, merging and recovery copy most bytes of a log, which may have many gigabytes. A
//! [`Splice`] therefore only stores which byte ranges to copy, and reads their bytes when the new
//! log is written.

use std::io::{Read, Result, Write};
use std::ops::Range;

/// The pieces of a new log, in order.
///
/// A piece is a byte range of a source, or of the new bytes. It takes 24 bytes of memory. If a byte
/// range continues the previous piece, it extends this piece. In the example, the first two calls
/// of `copy` create the piece `0..4` of source 0. The log has three pieces: `0..4` of the source,
/// `0..3` of the new bytes, and `8..10` of the source.
///
/// ```
/// use rovelog_core::internal::splice::Splice;
///
/// let mut log = Splice::new([&b"0123456789"[..]]);
/// log.copy(0, 0..2);
/// log.copy(0, 2..4);
/// log.append(b"...");
/// log.copy(0, 8..10);
/// assert_eq!(log.len(), 9);
/// let mut out = Vec::new();
/// log.write(&mut out)?;
/// assert_eq!(out, b"0123...89");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Splice<'a> {
    /// Logs from which byte ranges are copied.
    sources: Vec<&'a [u8]>,
    /// Pieces that were added and have not been written yet.
    pieces: Vec<Piece>,
    /// Bytes that were added by [`append`](Self::append) and have not been written yet.
    new_bytes: Vec<u8>,
    /// Size of the new log in bytes, including the pieces that have already been written.
    len: u64,
}

/// A byte range of a source, or of the new bytes.
#[derive(Debug)]
struct Piece {
    /// Index of the source. If it equals the number of sources, the piece is a range of the new
    /// bytes.
    source: u32,
    /// Offset of the first byte of the piece in the source.
    start: u64,
    /// Offset of the end of the piece in the source.
    end: u64,
}

/// Number of pieces in memory at which [`Splice::write_if_large`] writes them. At 24 bytes each,
/// they take 384 KiB.
const MAX_PENDING_PIECES: usize = 1 << 14;

/// Number of new bytes in memory at which [`Splice::write_if_large`] writes the pieces.
const MAX_PENDING_BYTES: usize = 1 << 18;

impl<'a> Splice<'a> {
    /// Returns an empty log. Its pieces are copied from `sources`.
    pub fn new(sources: impl IntoIterator<Item = &'a [u8]>) -> Self {
        Self { sources: sources.into_iter().collect(), pieces: Vec::new(), new_bytes: Vec::new(), len: 0 }
    }

    /// Appends the bytes in `range` of a source. `source` is the index of the source.
    ///
    /// # Panics
    /// Panics if `range` is not within the source.
    #[inline]
    pub fn copy(&mut self, source: usize, range: Range<u64>) {
        assert!(range.start <= range.end && range.end <= self.sources[source].len() as u64);
        self.push(source, range);
    }

    /// Appends new bytes.
    #[inline]
    pub fn append(&mut self, bytes: &[u8]) {
        let start = self.new_bytes.len() as u64;
        self.new_bytes.extend_from_slice(bytes);
        self.push(self.sources.len(), start..self.new_bytes.len() as u64);
    }

    /// Appends a piece. If `range` continues the last piece, the last piece is extended instead.
    #[inline]
    fn push(&mut self, source: usize, range: Range<u64>) {
        self.len += range.end - range.start;
        let source = u32::try_from(source).expect("few sources");
        match self.pieces.last_mut() {
            // Records are often copied one after the other, so most ranges continue the last piece.
            Some(last) if last.source == source && last.end == range.start => last.end = range.end,
            // An empty range is not stored. If it were, the next range could not extend the last
            // piece.
            _ if range.is_empty() => {}
            _ => self.pieces.push(Piece { source, start: range.start, end: range.end }),
        }
    }

    /// Returns the size of the new log in bytes, including the pieces that have already been
    /// written.
    #[expect(clippy::len_without_is_empty, reason = "the length is used as a write position")]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns the contents of the pieces that have not been written yet, in order.
    pub fn parts(&self) -> impl Iterator<Item = &[u8]> {
        self.pieces.iter().map(|piece| {
            let source = self.sources.get(piece.source as usize).copied().unwrap_or(&self.new_bytes);
            let index = |at: u64| usize::try_from(at).expect("within a source");
            &source[index(piece.start)..index(piece.end)]
        })
    }

    /// Returns a reader of the pieces that have not been written yet.
    pub fn reader(&self) -> impl Read {
        Parts { next: &[], parts: self.parts() }
    }

    /// Writes the pieces that have not been written yet. They stay in memory.
    ///
    /// # Errors
    /// Returns an error if writing to `out` fails.
    pub fn write(&self, out: &mut dyn Write) -> Result<()> {
        self.parts().try_for_each(|bytes| out.write_all(bytes))
    }

    /// If the pieces take much memory, writes them and removes them from memory. Otherwise, does
    /// nothing.
    ///
    /// A caller that builds a long log calls this function after each record, and
    /// [`write`](Self::write) once at the end.
    ///
    /// # Errors
    /// Returns an error if writing to `out` fails.
    #[inline]
    pub fn write_if_large(&mut self, out: &mut dyn Write) -> Result<()> {
        if self.pieces.len() < MAX_PENDING_PIECES && self.new_bytes.len() < MAX_PENDING_BYTES {
            return Ok(());
        }
        self.write(out)?;
        // `new_bytes` is empty afterwards, so later new bytes are stored from offset 0 again.
        self.pieces.clear();
        self.new_bytes.clear();
        Ok(())
    }
}

/// Reads several slices as if they were a single slice.
struct Parts<'a, I> {
    /// Part of the current slice that has not been read yet.
    next: &'a [u8],
    /// Slices after the current slice.
    parts: I,
}

impl<'a, I: Iterator<Item = &'a [u8]>> Read for Parts<'a, I> {
    fn read(&mut self, out: &mut [u8]) -> Result<usize> {
        // An empty slice must not end the input, because a read of 0 bytes means the end of the
        // input.
        while self.next.is_empty() {
            let Some(next) = self.parts.next() else { return Ok(0) };
            self.next = next;
        }
        self.next.read(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A log that is written while it is built must have the same bytes as a log that is written at
    /// the end.
    #[test]
    fn writing_during_construction_gives_the_same_bytes() -> Result<()> {
        let sources: [Vec<u8>; 2] = [(0..=255).cycle().take(100_000).collect(), vec![7; 1000]];
        let all = || Splice::new(sources.iter().map(Vec::as_slice));
        let (mut whole, mut parts, mut want) = (all(), all(), Vec::new());
        let mut out = Vec::new();
        for i in 0..60_000_usize {
            let (source, start) = (usize::from(i % 3 == 0), i * 7 % 990);
            let end = start + i % 9;
            for log in [&mut whole, &mut parts] {
                log.copy(source, start as u64..end as u64);
                log.append(&i.to_le_bytes());
            }
            want.extend_from_slice(&sources[source][start..end]);
            want.extend_from_slice(&i.to_le_bytes());
            parts.write_if_large(&mut out)?;
        }
        assert!(out.len() > want.len() / 2 && parts.pieces.len() < MAX_PENDING_PIECES);
        parts.write(&mut out)?;
        assert!(out == want);
        assert_eq!((whole.len(), parts.len()), (want.len() as u64, want.len() as u64));
        out.clear();
        whole.write(&mut out)?;
        assert!(out == want);
        out.clear();
        whole.reader().read_to_end(&mut out)?;
        assert!(out == want);
        Ok(())
    }

    #[test]
    fn adjacent_ranges_of_a_source_are_one_piece() {
        let mut log = Splice::new([&b"0123456789"[..], b"abcdef"]);
        for (source, range) in [(0, 0..2), (0, 2..4), (1, 4..5), (1, 2..2), (1, 1..3)] {
            log.copy(source, range);
        }
        log.append(b"x");
        log.append(b"yz");
        let parts: Vec<_> = log.parts().collect();
        assert_eq!(parts, [&b"0123"[..], b"e", b"bc", b"xyz"]);
        assert_eq!((log.pieces.len(), log.len()), (4, 10));
    }

    #[test]
    fn pieces_are_written_when_they_reach_the_limit() -> Result<()> {
        let (mut log, mut out) = (Splice::new([&b"ab"[..]]), Vec::new());
        for piece in 1..=MAX_PENDING_PIECES {
            log.copy(0, 0..1);
            log.write_if_large(&mut out)?;
            assert_eq!(out.len(), if piece < MAX_PENDING_PIECES { 0 } else { MAX_PENDING_PIECES });
        }
        log.append(&vec![7; MAX_PENDING_BYTES - 1]);
        log.write_if_large(&mut out)?;
        assert_eq!(out.len(), MAX_PENDING_PIECES);
        log.append(&[7]);
        log.write_if_large(&mut out)?;
        assert_eq!(
            (out.len(), log.pieces.len(), log.new_bytes.len()),
            (MAX_PENDING_PIECES + MAX_PENDING_BYTES, 0, 0)
        );
        Ok(())
    }

    #[test]
    fn a_reader_skips_empty_slices() -> Result<()> {
        let mut read = String::new();
        let parts = [&b""[..], b"ab", b"", b"c"];
        Parts { next: &[], parts: parts.into_iter() }.read_to_string(&mut read)?;
        assert_eq!(read, "abc");
        Ok(())
    }

    #[test]
    #[should_panic(expected = "range.end <=")]
    fn a_range_outside_of_the_source_panics() {
        Splice::new([&b"abc"[..]]).copy(0, 2..4);
    }
}
