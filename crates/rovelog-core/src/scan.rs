//! How a log is scanned: the bytes that are at hand, what comes next in them, and how a pipe reads
//! on.
//!
//! A [`Window`] is all of a log in memory, or what was read of a pipe so far. A [`Scan`] says what
//! comes next in it, or that it [needs more](NeedMore). A [`Stream`] is a scan with the [`Source`]
//! that then reads on.

use std::io::{ErrorKind, Read, Result as IoResult};

use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

use crate::wire::U32Le;

/// Bytes asked for at once.
const CHUNK: usize = 256 << 10;

/// The bytes of a file that are at hand.
#[derive(Clone, Copy, Debug)]
pub struct Window<'a> {
    /// The bytes.
    pub data: &'a [u8],
    /// Offset of the first byte within the file.
    pub base: u64,
    /// Whether the file ends with the window.
    pub eof: bool,
}

/// More input is required, up to this offset at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeedMore(pub u64);

impl<'a> Window<'a> {
    /// Returns all of a file.
    pub const fn whole(data: &'a [u8]) -> Self {
        Self { data, base: 0, eof: true }
    }

    /// Returns the offset behind the last byte.
    #[inline]
    pub fn end(&self) -> u64 {
        self.base + self.data.len() as u64
    }

    /// Returns whether the file goes on behind `at`.
    ///
    /// # Errors
    /// Returns an error if that is not known yet.
    #[inline]
    pub fn has(&self, at: u64) -> Result<bool, NeedMore> {
        if at < self.end() {
            return Ok(true);
        }
        if self.eof { Ok(false) } else { Err(NeedMore(at + 1)) }
    }

    /// Returns the bytes `from..to`; `None` where the file ends before `to`.
    ///
    /// # Errors
    /// Returns an error if the window ends before `to`, and the file may go on.
    #[inline]
    pub fn slice(&self, from: u64, to: u64) -> Result<Option<&'a [u8]>, NeedMore> {
        debug_assert!(from >= self.base, "bytes before the window were let go");
        let index = |at: u64| usize::try_from(at - self.base).ok();
        match index(from).zip(index(to)).and_then(|(from, to)| self.data.get(from..to)) {
            None if !self.eof => Err(NeedMore(to)),
            bytes => Ok(bytes),
        }
    }

    /// Returns the bytes from `from` on, at most `len`: fewer only where the file ends.
    ///
    /// # Errors
    /// As [`slice`](Self::slice).
    pub fn upto(&self, from: u64, len: u64) -> Result<&'a [u8], NeedMore> {
        let to = from.saturating_add(len);
        let to = if self.eof { to.min(self.end()) } else { to };
        Ok(self.slice(from.min(to), to)?.unwrap_or_default())
    }

    /// Returns the byte at `at`; `None` where the file ends before.
    ///
    /// # Errors
    /// As [`slice`](Self::slice).
    #[inline]
    pub fn byte(&self, at: u64) -> Result<Option<u8>, NeedMore> {
        Ok(self.slice(at, at + 1)?.map(|bytes| bytes[0]))
    }

    /// Returns the little-endian number of 32 bits at `at`; `None` where the file ends before.
    ///
    /// # Errors
    /// As [`slice`](Self::slice).
    #[inline]
    pub fn u32(&self, at: u64) -> Result<Option<u32>, NeedMore> {
        Ok(self.view::<U32Le>(at)?.map(|number| number.get()))
    }

    /// Returns all bytes from `from` on that are at hand; `None` where the window ends before.
    #[inline]
    pub fn at_hand(&self, from: u64) -> Option<&'a [u8]> {
        usize::try_from(from - self.base).ok().and_then(|from| self.data.get(from..))
    }

    /// Returns where the zeros that begin at `from` end: the first other byte, or the end of the
    /// window. Nothing starts in a run of zeros, which may be most of a file, so a search for valid
    /// bytes leaves it out at once.
    pub fn zeros_end(&self, from: u64) -> u64 {
        const AT_ONCE: usize = 64;
        let Some(rest) = self.at_hand(from) else { return from };
        let zeros = |bytes: &&[u8]| bytes.iter().fold(0, |any, byte| any | byte) == 0;
        let whole = rest.chunks_exact(AT_ONCE).take_while(zeros).count() * AT_ONCE;
        let last = rest[whole..].iter().take_while(|byte| **byte == 0).count();
        from + (whole + last) as u64
    }

    /// Returns the bytes at `at` as a declared struct, in place; `None` where the file ends before.
    ///
    /// # Errors
    /// As [`slice`](Self::slice).
    #[inline]
    pub fn view<T>(&self, at: u64) -> Result<Option<&'a T>, NeedMore>
    where
        T: FromBytes + KnownLayout + Immutable + Unaligned,
    {
        let bytes = self.slice(at, at.saturating_add(size_of::<T>() as u64))?;
        Ok(bytes.map(|bytes| T::ref_from_bytes(bytes).expect("unaligned, of this size")))
    }
}

/// A pipe, with the bytes of it that are at hand.
///
/// The buffer grows with what is read, not with what is asked for, and never shrinks, so that
/// nothing is zeroed twice.
#[derive(Debug)]
pub struct Source<R> {
    input: R,
    /// Space for bytes, the first `filled` of them read.
    buffer: Vec<u8>,
    filled: usize,
    /// Offset of the first byte of the buffer.
    base: u64,
    eof: bool,
}

impl<R: Read> Source<R> {
    /// Returns a pipe of which nothing is read yet.
    pub fn new(input: R) -> Self {
        Self { input, buffer: vec![0; CHUNK], filled: 0, base: 0, eof: false }
    }

    /// Returns the input that is read.
    pub fn input(&self) -> &R {
        &self.input
    }

    /// Returns the bytes at hand.
    #[inline]
    pub fn window(&self) -> Window<'_> {
        Window { data: &self.buffer[..self.filled], base: self.base, eof: self.eof }
    }

    /// Lets go of what is before `keep_from` and reads until the window reaches `until`, or the
    /// input ends.
    ///
    /// # Errors
    /// Returns an error if the input cannot be read.
    pub fn fill(&mut self, keep_from: u64, until: u64) -> IoResult<()> {
        let keep_from = keep_from.clamp(self.base, self.window().end());
        let gone = usize::try_from(keep_from - self.base).expect("within the buffer");
        self.buffer.copy_within(gone..self.filled, 0);
        self.filled -= gone;
        self.base = keep_from;
        while !self.eof && self.window().end() < until {
            if self.filled == self.buffer.len() {
                self.buffer.resize(2 * self.filled, 0);
            }
            match self.input.read(&mut self.buffer[self.filled..]) {
                Ok(0) => self.eof = true,
                Ok(read) => self.filled += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Returns bytes that a scan of the window has seen.
    ///
    /// # Panics
    /// Panics if they are not at hand.
    #[inline]
    pub fn bytes(&self, from: u64, to: u64) -> &[u8] {
        self.window().slice(from, to).ok().flatten().expect("the scanner has seen these bytes")
    }
}

impl<R: Read> Source<R> {
    /// Reads from `input` until `start` can say how the log starts.
    ///
    /// # Errors
    /// Returns an error if the input cannot be read, or `start` refuses it.
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

/// Says step by step what the bytes of a log are. It does no input or output: reader, stream and
/// recovery use the same one.
pub trait Scan {
    /// What comes next: a record, lost bytes, the end.
    type Step;

    /// Says what comes next, and goes on behind it.
    ///
    /// # Errors
    /// Returns an error if the window ends before that can be said; the scan has not moved then.
    fn step(&mut self, window: Window<'_>) -> Result<Self::Step, NeedMore>;

    /// Returns the offset of the first byte that is still needed.
    fn needed_from(&self) -> u64;
}

/// A scan over a pipe.
#[derive(Debug)]
pub struct Stream<R, S> {
    /// The pipe.
    pub source: Source<R>,
    /// The scan over its bytes.
    pub scan: S,
}

impl<R: Read, S: Scan> Stream<R, S> {
    /// Says what comes next. `fill` reads on if that takes more bytes: [`Source::fill`], or what
    /// limits it.
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
    fn a_window_tells_the_end_of_the_file_from_its_own() {
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

    /// Whatever is kept and however the input comes, the window holds the bytes of the file at its
    /// offsets.
    #[test]
    fn a_source_keeps_what_it_is_told_to() -> IoResult<()> {
        struct Slow<'a>(&'a [u8]);
        impl Read for Slow<'_> {
            fn read(&mut self, out: &mut [u8]) -> IoResult<usize> {
                let len = out.len().min(7001);
                self.0.read(&mut out[..len])
            }
        }
        let file: Vec<u8> = (0..2 * CHUNK).map(|i| (i % 251).to_le_bytes()[0]).collect();
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

    /// A pipe that gives these answers, the last one first, and is not read again after them.
    struct Answers(Vec<IoResult<usize>>);
    impl Read for Answers {
        fn read(&mut self, out: &mut [u8]) -> IoResult<usize> {
            let len = self.0.pop().expect("not read again")?;
            out[..len].fill(7);
            Ok(len)
        }
    }

    /// A pipe that is written to while it is read must not be waited for without need.
    #[test]
    fn a_source_reads_no_more_than_is_asked_for() -> IoResult<()> {
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
    fn an_interrupted_read_is_repeated_and_no_other() {
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
        source.fill(0, 16 * CHUNK as u64)?;
        assert_eq!(source.input().0, 5);
        Ok(())
    }

    #[test]
    fn equal_bytes_behind_zeros_are_no_zeros() {
        let mut data = [0; 128];
        (data[70], data[90]) = (5, 5);
        assert_eq!(Window::whole(&data).zeros_end(0), 70);
    }

    /// Counts the lines of a text.
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
    fn a_stream_reads_on_where_the_scan_needs_more() -> IoResult<()> {
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
