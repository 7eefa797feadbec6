//! The bytes of a file that are at hand: all of a mapped bag, or what a stream has read so far.

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

    /// The bytes from `from` on, at most `len`: fewer only where the file ends.
    pub(crate) fn upto(&self, from: u64, len: u64) -> Result<&'a [u8], NeedMore> {
        let to = from.saturating_add(len);
        let to = if self.eof { to.min(self.end()) } else { to };
        Ok(self.slice(from.min(to), to)?.unwrap_or_default())
    }

    /// The number of 32 bits at `at`; `None` where the file ends before.
    #[inline]
    pub(crate) fn u32(&self, at: u64) -> Result<Option<u32>, NeedMore> {
        let bytes = self.slice(at, at.saturating_add(4))?;
        Ok(bytes.and_then(<[u8]>::first_chunk).map(|bytes| u32::from_le_bytes(*bytes)))
    }
}
