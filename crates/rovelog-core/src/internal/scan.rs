//! Scanning of logs, both in memory and from a pipe.
//!
//! - A [`Window`] contains the bytes that are available: the whole file, or the part of a pipe that
//!   was read and not discarded.
//! - A [`Scan`] returns the next item in a window, such as a record, or [`NeedMore`] if the window
//!   ends too early. It does not read input itself, so files and pipes share the same code.
//! - A [`Stream`] combines a scan with a [`Source`], which reads more of a pipe if needed.
//!
//! For example, a record has 100 bytes and starts at offset 1000, and the window of a pipe ends at
//! 1040. The scan returns `NeedMore(1100)` without changing its state. The stream discards all
//! bytes before [`needed_from`](Scan::needed_from), which is 1000. It then reads until offset 1100,
//! and calls the scan again with the new window.

use std::io::{ErrorKind, Read, Result as IoResult};

use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

use crate::internal::wire::U32Le;

/// Initial size in bytes of the buffer for a pipe.
const INITIAL_BUFFER_LEN: usize = 256 << 10;

/// A part of a file that is in memory.
#[derive(Clone, Copy, Debug)]
pub struct Window<'a> {
    /// Bytes of this part of the file.
    pub data: &'a [u8],
    /// Offset in the file of the first byte of `data`.
    pub base: u64,
    /// True if the file ends where the window ends.
    pub eof: bool,
}

/// Error for a window that ends too early. The argument is the file offset up to which bytes are
/// needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeedMore(pub u64);

impl<'a> Window<'a> {
    /// Creates a window that contains a whole file.
    pub const fn whole(data: &'a [u8]) -> Self {
        Self { data, base: 0, eof: true }
    }

    /// Returns the file offset at which the window ends.
    #[inline]
    pub fn end(&self) -> u64 {
        self.base + self.data.len() as u64
    }

    /// Returns whether the file has a byte at offset `at`.
    ///
    /// # Errors
    /// Returns an error if `at` is after the window and the file may continue there.
    #[inline]
    pub fn has(&self, at: u64) -> Result<bool, NeedMore> {
        if at < self.end() {
            return Ok(true);
        }
        if self.eof { Ok(false) } else { Err(NeedMore(at + 1)) }
    }

    /// Returns the bytes from offset `from` to `to`, or `None` if the file ends before `to`.
    ///
    /// # Errors
    /// Returns an error if the window ends before `to` and the file may continue there.
    #[inline]
    pub fn slice(&self, from: u64, to: u64) -> Result<Option<&'a [u8]>, NeedMore> {
        debug_assert!(from >= self.base, "bytes before the window were let go");
        let index = |at: u64| usize::try_from(at - self.base).ok();
        match index(from).zip(index(to)).and_then(|(from, to)| self.data.get(from..to)) {
            None if !self.eof => Err(NeedMore(to)),
            bytes => Ok(bytes),
        }
    }

    /// Returns `len` bytes from offset `from`, or fewer bytes if the file ends earlier.
    ///
    /// # Errors
    /// Returns the same errors as [`slice`](Self::slice).
    pub fn upto(&self, from: u64, len: u64) -> Result<&'a [u8], NeedMore> {
        let to = from.saturating_add(len);
        let to = if self.eof { to.min(self.end()) } else { to };
        Ok(self.slice(from.min(to), to)?.unwrap_or_default())
    }

    /// Returns the byte at offset `at`, or `None` if the file ends before this byte.
    ///
    /// # Errors
    /// Returns the same errors as [`slice`](Self::slice).
    #[inline]
    pub fn byte(&self, at: u64) -> Result<Option<u8>, NeedMore> {
        Ok(self.slice(at, at + 1)?.map(|bytes| bytes[0]))
    }

    /// Returns the 32-bit little-endian number at offset `at`, or `None` if the file ends before
    /// the end of the number.
    ///
    /// # Errors
    /// Returns the same errors as [`slice`](Self::slice).
    #[inline]
    pub fn u32(&self, at: u64) -> Result<Option<u32>, NeedMore> {
        Ok(self.view::<U32Le>(at)?.map(|number| number.get()))
    }

    /// Returns all bytes of the window from offset `from`, or `None` if `from` is after the window.
    #[inline]
    pub fn available_from(&self, from: u64) -> Option<&'a [u8]> {
        usize::try_from(from - self.base).ok().and_then(|from| self.data.get(from..))
    }

    /// Returns the offset at which the zeros that start at offset `from` end. This is the offset of
    /// the next byte that is not zero, or the end of the window.
    ///
    /// No record starts in zeros, and a file may consist mostly of zeros. A search for records
    /// calls this function to skip them quickly.
    pub fn zeros_end(&self, from: u64) -> u64 {
        const AT_ONCE: usize = 64;
        let Some(rest) = self.available_from(from) else { return from };
        // The OR of 64 bytes is 0 if all of them are 0. The compiler vectorizes this loop.
        let zeros = |bytes: &&[u8]| bytes.iter().fold(0, |any, byte| any | byte) == 0;
        let whole = rest.chunks_exact(AT_ONCE).take_while(zeros).count() * AT_ONCE;
        let last = rest[whole..].iter().take_while(|byte| **byte == 0).count();
        from + (whole + last) as u64
    }

    /// Returns a view of the bytes at offset `at` as the struct `T`, or `None` if the file ends
    /// before the end of the struct.
    ///
    /// # Errors
    /// Returns the same errors as [`slice`](Self::slice).
    #[inline]
    pub fn view<T>(&self, at: u64) -> Result<Option<&'a T>, NeedMore>
    where
        T: FromBytes + KnownLayout + Immutable + Unaligned,
    {
        let bytes = self.slice(at, at.saturating_add(size_of::<T>() as u64))?;
        Ok(bytes.map(|bytes| T::ref_from_bytes(bytes).expect("unaligned, of this size")))
    }
}

/// A pipe, together with the bytes that were read from the pipe and not discarded.
///
/// The buffer grows with the bytes that arrive. It does not grow with the number of requested
/// bytes, because that number may come from a damaged length field. The buffer never shrinks, so
/// each of its bytes is zeroed only once.
#[derive(Debug)]
pub struct Source<R> {
    /// The pipe from which bytes are read.
    input: R,
    /// Memory for the available bytes. The first `filled` bytes of it are in use.
    buffer: Vec<u8>,
    /// Number of available bytes.
    filled: usize,
    /// Offset in the log of the first available byte.
    base: u64,
    /// True if the pipe has ended.
    eof: bool,
}

impl<R: Read> Source<R> {
    /// Creates a source without reading from `input`.
    pub fn new(input: R) -> Self {
        Self { input, buffer: Vec::new(), filled: 0, base: 0, eof: false }
    }

    /// Returns the pipe from which bytes are read.
    pub fn input(&self) -> &R {
        &self.input
    }

    /// Returns the available bytes as a window.
    #[inline]
    pub fn window(&self) -> Window<'_> {
        Window { data: &self.buffer[..self.filled], base: self.base, eof: self.eof }
    }

    /// Discards the bytes before offset `keep_from`, then reads until the window reaches offset
    /// `until` or the pipe ends.
    ///
    /// # Errors
    /// Returns an error if the pipe cannot be read, or if memory is not sufficient.
    pub fn fill(&mut self, keep_from: u64, until: u64) -> IoResult<()> {
        // A scan may need bytes that start after the window, for example if it skips a long record.
        let keep_from = keep_from.clamp(self.base, self.window().end());
        let gone = usize::try_from(keep_from - self.base).expect("within the buffer");
        self.buffer.copy_within(gone..self.filled, 0);
        self.filled -= gone;
        self.base = keep_from;
        while !self.eof && self.window().end() < until {
            if self.filled == self.buffer.len() {
                // Doubling the buffer keeps the cost of copying proportional to the number of bytes
                // that were read.
                let len = INITIAL_BUFFER_LEN.max(2 * self.filled);
                self.buffer.try_reserve_exact(len - self.filled)?;
                self.buffer.resize(len, 0);
            }
            match self.input.read(&mut self.buffer[self.filled..]) {
                // After a read of 0 bytes, the pipe is not read again. If the input is a terminal,
                // another read could continue.
                Ok(0) => self.eof = true,
                Ok(read) => self.filled += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Returns the bytes from offset `from` to `to`. The caller must know from a scan that the
    /// window contains them.
    ///
    /// # Panics
    /// Panics if the window does not contain these bytes.
    #[inline]
    pub fn bytes(&self, from: u64, to: u64) -> &[u8] {
        self.window().slice(from, to).ok().flatten().expect("the scanner has seen these bytes")
    }
}

impl<R: Read> Source<R> {
    /// Reads from `input` until `start` can parse the start of the log. Returns the source and the
    /// result of `start`.
    ///
    /// # Errors
    /// Returns an error if `input` cannot be read, or if `start` returns an error.
    pub fn start<T, E: From<std::io::Error>>(
        input: R,
        mut start: impl FnMut(Window<'_>) -> Result<Result<T, E>, NeedMore>,
    ) -> Result<(Self, T), E> {
        let mut source = Self::new(input);
        loop {
            match start(source.window()) {
                Ok(started) => return Ok((source, started?)),
                Err(need) => source.fill(0, need.0)?,
            }
        }
    }
}

/// A state machine that parses a log item by item. It does not read or write files, so that the
/// reader, the stream and the recovery of a format use the same implementation.
pub trait Scan {
    /// The next item, such as a record, lost bytes or the end of the log.
    type Step;

    /// Returns the next item, and advances past it.
    ///
    /// # Errors
    /// Returns an error if the window ends before the end of the item. In this case, the scan does
    /// not advance.
    fn step(&mut self, window: Window<'_>) -> Result<Self::Step, NeedMore>;

    /// Returns the offset of the first byte that the scan still needs. Bytes before this offset can
    /// be discarded.
    fn needed_from(&self) -> u64;
}

/// A scan that reads its bytes from a pipe.
#[derive(Debug)]
pub struct Stream<R, S> {
    /// The pipe, with the bytes that were read from it.
    pub source: Source<R>,
    /// The scan of the bytes in the pipe.
    pub scan: S,
}

impl<R: Read, S: Scan> Stream<R, S> {
    /// Returns the next item. If the scan needs more bytes, `fill` is called with the arguments of
    /// [`Source::fill`]. The caller can pass `Source::fill` itself, or a function that checks a
    /// limit first.
    ///
    /// # Errors
    /// Returns the errors of `fill`.
    #[inline]
    pub fn step<E>(
        &mut self,
        mut fill: impl FnMut(&mut Source<R>, u64, u64) -> Result<(), E>,
    ) -> Result<S::Step, E> {
        loop {
            match self.scan.step(self.source.window()) {
                Ok(step) => return Ok(step),
                Err(need) => fill(&mut self.source, self.scan.needed_from(), need.0)?,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_distinguishes_its_end_from_the_end_of_the_file() {
        let part = Window { data: b"abcd", base: 10, eof: false };
        assert_eq!(part.slice(11, 13), Ok(Some(&b"bc"[..])));
        assert_eq!(part.slice(11, 15), Err(NeedMore(15)));
        assert_eq!((part.has(13), part.has(14)), (Ok(true), Err(NeedMore(15))));
        let last = Window { eof: true, ..part };
        assert_eq!((last.slice(11, 15), last.has(14)), (Ok(None), Ok(false)));
        assert_eq!((last.upto(12, 9), last.upto(20, 9)), (Ok(&b"cd"[..]), Ok(&b""[..])));
        assert_eq!(
            (last.byte(13), last.u32(10), last.u32(11)),
            (Ok(Some(b'd')), Ok(Some(0x6463_6261)), Ok(None))
        );
    }

    /// The window must have the bytes of the file at the right offsets, regardless of how many
    /// bytes were discarded and how many bytes each read returned.
    #[test]
    fn a_source_keeps_the_requested_bytes() -> IoResult<()> {
        struct Slow<'a>(&'a [u8]);
        impl Read for Slow<'_> {
            fn read(&mut self, out: &mut [u8]) -> IoResult<usize> {
                let len = out.len().min(7001);
                self.0.read(&mut out[..len])
            }
        }
        let file: Vec<u8> = (0..2 * INITIAL_BUFFER_LEN).map(|i| (i % 251).to_le_bytes()[0]).collect();
        let mut source = Source::new(Slow(&file));
        for (keep_from, until) in [(0, 16), (0, 3), (10, 300_000), (250_000, 400_000), (400_000, u64::MAX)] {
            source.fill(keep_from, until)?;
            let window = source.window();
            let end = file.len().min(usize::try_from(window.end()).unwrap());
            assert_eq!(window.data, &file[usize::try_from(window.base).unwrap()..end]);
            assert!(window.base <= keep_from && (window.eof || window.end() >= until));
        }
        assert!(source.window().eof);
        assert_eq!(source.bytes(400_000, 400_002), &file[400_000..400_002]);
        Ok(())
    }

    /// A pipe whose reads return these results, starting with the last result of the list. When the
    /// list is empty, the next read panics.
    struct Answers(Vec<IoResult<usize>>);
    impl Read for Answers {
        fn read(&mut self, out: &mut [u8]) -> IoResult<usize> {
            let len = self.0.pop().expect("not read again")?;
            out[..len].fill(7);
            Ok(len)
        }
    }

    /// Another program may still be writing to the pipe. A read that is not needed could block, so
    /// it must not happen.
    #[test]
    fn a_source_reads_only_the_requested_bytes() -> IoResult<()> {
        let mut source = Source::new(Answers(vec![Ok(0), Ok(5), Ok(4)]));
        for (until, end, eof) in [(0, 0, false), (4, 4, false), (3, 4, false), (9, 9, false), (10, 9, true)] {
            source.fill(0, until)?;
            assert_eq!((source.window().end(), source.window().eof), (end, eof), "until {until}");
        }
        source.fill(2, 20)?;
        assert_eq!((source.window().base, source.window().data), (2, &[7; 7][..]));
        Ok(())
    }

    #[test]
    fn only_interrupted_reads_are_repeated() {
        let answers = [ErrorKind::Other, ErrorKind::Interrupted].map(|kind| Err(kind.into()));
        let mut source = Source::new(Answers(answers.into_iter().collect()));
        assert_eq!(source.fill(0, 1).map_err(|error| error.kind()), Err(ErrorKind::Other));
    }

    #[test]
    fn a_buffer_grows_by_doubling() -> IoResult<()> {
        struct Counted(u32);
        impl Read for Counted {
            fn read(&mut self, out: &mut [u8]) -> IoResult<usize> {
                self.0 += 1;
                Ok(out.len())
            }
        }
        let mut source = Source::new(Counted(0));
        source.fill(0, 16 * INITIAL_BUFFER_LEN as u64)?;
        assert_eq!(source.input().0, 5);
        Ok(())
    }

    #[test]
    fn equal_bytes_after_zeros_are_not_zeros() {
        let mut data = [0; 128];
        (data[70], data[90]) = (5, 5);
        assert_eq!(Window::whole(&data).zeros_end(0), 70);
    }

    /// A scan that returns the lines of a text as byte ranges.
    struct Lines(u64);
    impl Scan for Lines {
        type Step = Option<(u64, u64)>;

        fn step(&mut self, window: Window<'_>) -> Result<Self::Step, NeedMore> {
            let start = self.0;
            let mut at = start;
            while let Some(byte) = window.byte(at)? {
                at += 1;
                if byte == b'\n' {
                    break;
                }
            }
            self.0 = at;
            Ok((at > start).then_some((start, at)))
        }

        fn needed_from(&self) -> u64 {
            self.0
        }
    }

    #[test]
    fn a_stream_reads_until_the_scan_has_enough() -> IoResult<()> {
        let text = b"one\ntwo\n\nthree";
        let begin = |window: Window<'_>| Ok(Ok(Lines(u64::from(window.byte(0)?.is_none()))));
        let (source, scan) = Source::start::<_, std::io::Error>(&text[..], begin)?;
        let mut stream = Stream { source, scan };
        let mut lines = Vec::new();
        while let Some((from, to)) = stream.step(Source::fill)? {
            lines.push(stream.source.bytes(from, to).to_vec());
        }
        assert_eq!(lines, [&b"one\n"[..], b"two\n", b"\n", b"three"]);
        Ok(())
    }
}
