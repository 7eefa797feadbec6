//! A log that consists of copied ranges of other logs and of new bytes.

use std::io::{Read, Result, Write};
use std::ops::Range;

/// The parts of a new log, in order. Copied ranges are not held in memory: each takes 24 bytes,
/// unless it starts where the previous one ends.
///
/// ```
/// use rovelog_core::splice::Splice;
///
/// let mut log = Splice::new([&b"0123456789"[..]]);
/// log.copy(0, 0..2);
/// log.copy(0, 2..4);
/// log.make(b"...");
/// log.copy(0, 8..10);
/// assert_eq!(log.len(), 9);
/// let mut out = Vec::new();
/// log.write(&mut out)?;
/// assert_eq!(out, b"0123...89");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Splice<'a> {
    sources: Vec<&'a [u8]>,
    pieces: Vec<Piece>,
    /// All bytes that were made.
    made: Vec<u8>,
    len: u64,
}

#[derive(Debug)]
struct Piece {
    /// A number past the sources for what was made.
    source: u32,
    start: u64,
    end: u64,
}

/// Pieces that [`Splice::write_on`] lets collect: a few hundred kilobytes.
const PENDING: usize = 1 << 14;

/// Made bytes that it lets collect.
const PENDING_BYTES: usize = 1 << 18;

impl<'a> Splice<'a> {
    /// Starts a log that is made of these.
    pub fn new(sources: impl IntoIterator<Item = &'a [u8]>) -> Self {
        Self { sources: sources.into_iter().collect(), pieces: Vec::new(), made: Vec::new(), len: 0 }
    }

    /// Adds bytes of a source.
    ///
    /// # Panics
    /// Panics if the source does not have them.
    #[inline]
    pub fn copy(&mut self, source: usize, range: Range<u64>) {
        assert!(range.start <= range.end && range.end <= self.sources[source].len() as u64);
        self.push(source, range);
    }

    /// Adds bytes of its own.
    #[inline]
    pub fn make(&mut self, bytes: &[u8]) {
        let start = self.made.len() as u64;
        self.made.extend_from_slice(bytes);
        self.push(self.sources.len(), start..self.made.len() as u64);
    }

    #[inline]
    fn push(&mut self, source: usize, range: Range<u64>) {
        self.len += range.end - range.start;
        let source = u32::try_from(source).expect("few sources");
        match self.pieces.last_mut() {
            Some(last) if last.source == source && last.end == range.start => last.end = range.end,
            _ if range.is_empty() => {}
            _ => self.pieces.push(Piece { source, start: range.start, end: range.end }),
        }
    }

    /// Returns how many bytes were added.
    #[expect(clippy::len_without_is_empty, reason = "it is a position")]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns the bytes that were added and not [written on](Self::write_on) yet, in order.
    pub fn parts(&self) -> impl Iterator<Item = &[u8]> {
        self.pieces.iter().map(|piece| {
            let source = self.sources.get(piece.source as usize).copied().unwrap_or(&self.made);
            let index = |at: u64| usize::try_from(at).expect("within a source");
            &source[index(piece.start)..index(piece.end)]
        })
    }

    /// Returns a reader of what was added and not [written on](Self::write_on) yet.
    pub fn reader(&self) -> impl Read {
        Parts { next: &[], parts: self.parts() }
    }

    /// Writes what was added and not [written on](Self::write_on) yet.
    ///
    /// # Errors
    /// Returns an error if the output refuses.
    pub fn write(&self, out: &mut dyn Write) -> Result<()> {
        self.parts().try_for_each(|bytes| out.write_all(bytes))
    }

    /// Writes what was added so far and forgets it, once there is enough of it: for a log that is
    /// written while it is put together. What is left is for [`write`](Self::write).
    ///
    /// # Errors
    /// Returns an error if the output refuses.
    #[inline]
    pub fn write_on(&mut self, out: &mut dyn Write) -> Result<()> {
        if self.pieces.len() < PENDING && self.made.len() < PENDING_BYTES {
            return Ok(());
        }
        self.write(out)?;
        self.pieces.clear();
        self.made.clear();
        Ok(())
    }
}

/// Bytes in parts, one behind the other.
struct Parts<'a, I> {
    next: &'a [u8],
    parts: I,
}

impl<'a, I: Iterator<Item = &'a [u8]>> Read for Parts<'a, I> {
    fn read(&mut self, out: &mut [u8]) -> Result<usize> {
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

    /// Written as it is put together or at once: the same bytes.
    #[test]
    fn what_is_written_on_is_what_would_be_written_at_its_end() -> Result<()> {
        let sources: [Vec<u8>; 2] = [(0..=255).cycle().take(100_000).collect(), vec![7; 1000]];
        let all = || Splice::new(sources.iter().map(Vec::as_slice));
        let (mut whole, mut parts, mut want) = (all(), all(), Vec::new());
        let mut out = Vec::new();
        for i in 0..60_000_usize {
            let (source, start) = (usize::from(i % 3 == 0), i * 7 % 990);
            let end = start + i % 9;
            for log in [&mut whole, &mut parts] {
                log.copy(source, start as u64..end as u64);
                log.make(&i.to_le_bytes());
            }
            want.extend_from_slice(&sources[source][start..end]);
            want.extend_from_slice(&i.to_le_bytes());
            parts.write_on(&mut out)?;
        }
        assert!(out.len() > want.len() / 2 && parts.pieces.len() < PENDING);
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
    fn what_follows_in_the_same_source_is_one_piece() {
        let mut log = Splice::new([&b"0123456789"[..], b"abcdef"]);
        for (source, range) in [(0, 0..2), (0, 2..4), (1, 4..5), (1, 2..2), (1, 1..3)] {
            log.copy(source, range);
        }
        log.make(b"x");
        log.make(b"yz");
        let parts: Vec<_> = log.parts().collect();
        assert_eq!(parts, [&b"0123"[..], b"e", b"bc", b"xyz"]);
        assert_eq!((log.pieces.len(), log.len()), (4, 10));
    }

    #[test]
    fn what_was_added_is_written_once_there_is_enough_of_it() -> Result<()> {
        let (mut log, mut out) = (Splice::new([&b"ab"[..]]), Vec::new());
        for piece in 1..=PENDING {
            log.copy(0, 0..1);
            log.write_on(&mut out)?;
            assert_eq!(out.len(), if piece < PENDING { 0 } else { PENDING });
        }
        log.make(&vec![7; PENDING_BYTES - 1]);
        log.write_on(&mut out)?;
        assert_eq!(out.len(), PENDING);
        log.make(&[7]);
        log.write_on(&mut out)?;
        assert_eq!((out.len(), log.pieces.len(), log.made.len()), (PENDING + PENDING_BYTES, 0, 0));
        Ok(())
    }

    #[test]
    fn a_reader_passes_what_has_no_bytes() -> Result<()> {
        let mut read = String::new();
        let parts = [&b""[..], b"ab", b"", b"c"];
        Parts { next: &[], parts: parts.into_iter() }.read_to_string(&mut read)?;
        assert_eq!(read, "abc");
        Ok(())
    }

    #[test]
    #[should_panic(expected = "range.end <=")]
    fn what_a_source_does_not_have_is_not_copied() {
        Splice::new([&b"abc"[..]]).copy(0, 2..4);
    }
}
