//! The bytes of a file that are at hand: all of a mapped log, or what a stream has read so far.

use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

/// The bytes of a file that are at hand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window<'a> {
    pub(crate) data: &'a [u8],
    /// Offset of the first byte within the file.
    pub(crate) base: u64,
    /// Whether the file ends with the window.
    pub(crate) eof: bool,
}

/// The window must reach at least this offset before anything can be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NeedMore(pub(crate) u64);

impl<'a> Window<'a> {
    pub(crate) fn end(&self) -> u64 {
        self.base + self.data.len() as u64
    }

    /// The bytes `from..to`; `None` where the file ends before `to`.
    #[inline]
    pub(crate) fn slice(&self, from: u64, to: u64) -> Result<Option<&'a [u8]>, NeedMore> {
        debug_assert!(from >= self.base, "bytes before the window were let go");
        let index = |at: u64| usize::try_from(at - self.base).ok();
        match index(from).zip(index(to)).and_then(|(from, to)| self.data.get(from..to)) {
            None if !self.eof => Err(NeedMore(to)),
            bytes => Ok(bytes),
        }
    }

    /// Whether the file goes on behind `at`.
    #[inline]
    pub(crate) fn has(&self, at: u64) -> Result<bool, NeedMore> {
        if at < self.end() {
            return Ok(true);
        }
        if self.eof { Ok(false) } else { Err(NeedMore(at + 1)) }
    }

    #[inline]
    pub(crate) fn view<T>(&self, at: u64) -> Result<Option<&'a T>, NeedMore>
    where
        T: FromBytes + KnownLayout + Immutable + Unaligned,
    {
        let bytes = self.slice(at, at + size_of::<T>() as u64)?;
        Ok(bytes.map(|bytes| T::ref_from_bytes(bytes).expect("unaligned, of this size")))
    }
}
