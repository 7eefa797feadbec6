//! Copies of logs in which values are changed in place.
//!
//! A format passes each part of its log that has a meaning to an [`Edit`] callback, which may change
//! the bytes but not their number. All other bytes are copied. For example, the editor of a record
//! `47.5, 8.5` gets its 16 bytes together with the layout of the record, and may write `0, 0`.

use std::io::{Result, Write};
use std::ops::Range;

use super::layout::Layout;

/// A part of a log that may be changed.
#[derive(Clone, Copy, Debug)]
pub enum Part<'a> {
    /// Start of a pass over the log, without bytes. A format may need two passes.
    Start,
    /// The fields of a record.
    Fields {
        /// Name of the topic.
        topic: &'a str,
        /// Layout of the bytes.
        layout: &'a Layout,
    },
    /// A record whose fields are unknown. The text is the name of its topic.
    Opaque(&'a str),
    /// A value outside of records.
    Value {
        /// Kind of the value in the terms of the format, such as `parameter`.
        kind: &'static str,
        /// Name of the value.
        name: &'a str,
        /// True if the value is a text.
        is_text: bool,
    },
    /// A time of 4 or 8 bytes that belongs to the structure of the log. The number is the number of
    /// units per second.
    Time(u64),
    /// Bytes that the reader cannot interpret.
    Unreadable,
}

/// Callback that changes the bytes of a part.
pub type Edit<'a> = dyn FnMut(Part<'_>, &mut [u8]) + 'a;

/// A copy of a structure, whose parts are edited.
#[derive(Debug)]
pub struct EditCopy<'a> {
    /// The structure in the log.
    source: &'a [u8],
    /// The edited bytes.
    pub bytes: Vec<u8>,
}

impl<'a> EditCopy<'a> {
    /// Copies a structure.
    pub fn new(source: &'a [u8]) -> Self {
        Self { source, bytes: source.to_vec() }
    }

    /// Passes a part of the copy to `edit`. `inner` is this part in the source, so its address gives
    /// its offset.
    ///
    /// # Panics
    /// Panics if `inner` is not within the source.
    pub fn edit(&mut self, edit: &mut Edit<'_>, part: Part<'_>, inner: &[u8]) {
        let at = inner.as_ptr().addr() - self.source.as_ptr().addr();
        edit(part, &mut self.bytes[at..at + inner.len()]);
    }
}

/// Writes a log of which some ranges are replaced.
pub struct Patcher<'a> {
    /// Bytes of the original log.
    source: &'a [u8],
    /// Offset in the original log up to which it was written.
    at: usize,
    /// Number of bytes that were written.
    written: u64,
    out: &'a mut dyn Write,
}

impl<'a> Patcher<'a> {
    /// Starts a copy of `source`.
    pub fn new(source: &'a [u8], out: &'a mut dyn Write) -> Self {
        Self { source, at: 0, written: 0, out }
    }

    /// Writes the original bytes up to `range`, then `bytes` instead of `range`. Ranges must be in
    /// ascending order.
    ///
    /// # Errors
    /// Returns an error if writing fails.
    ///
    /// # Panics
    /// Panics if `range` is not within the source, or starts before the end of the last range.
    pub fn replace(&mut self, range: Range<u64>, bytes: &[u8]) -> Result<()> {
        let index = |at: u64| usize::try_from(at).expect("within the source");
        let kept = &self.source[self.at..index(range.start)];
        self.out.write_all(kept)?;
        self.out.write_all(bytes)?;
        self.written += (kept.len() + bytes.len()) as u64;
        self.at = index(range.end);
        Ok(())
    }

    /// Passes a range of the log to `edit` as one part, and writes the result.
    ///
    /// # Errors
    /// Returns an error if writing fails.
    pub fn edit(&mut self, edit: &mut Edit<'_>, part: Part<'_>, range: Range<u64>) -> Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        let mut bytes = super::structure::part(self.source, range.clone()).to_vec();
        edit(part, &mut bytes);
        self.replace(range, &bytes)
    }

    /// Passes a part of the log to `edit`, and writes the result. `inner` borrows from the log.
    ///
    /// # Errors
    /// Returns an error if writing fails.
    pub fn edit_slice(&mut self, edit: &mut Edit<'_>, part: Part<'_>, inner: &[u8]) -> Result<()> {
        let at = (inner.as_ptr().addr() - self.source.as_ptr().addr()) as u64;
        self.edit(edit, part, at..at + inner.len() as u64)
    }

    /// Returns the number of bytes that were written.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Writes the rest of the original log.
    ///
    /// # Errors
    /// Returns an error if writing fails.
    pub fn finish(mut self) -> Result<()> {
        let end = self.source.len() as u64;
        self.replace(end..end, &[])?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_replaced_ranges_differ() -> Result<()> {
        let (log, mut out) = (b"0123456789", Vec::new());
        let mut patcher = Patcher::new(log, &mut out);
        let mut copy = EditCopy::new(&log[2..5]);
        copy.edit(&mut |_, bytes| bytes.fill(b'x'), Part::Time(1), &log[3..4]);
        patcher.replace(2..5, &copy.bytes)?;
        patcher.edit(&mut |_, bytes| bytes.fill(b'-'), Part::Unreadable, 6..8)?;
        patcher.edit(&mut |_, _| panic!("an empty range is no part"), Part::Unreadable, 8..8)?;
        patcher.replace(9..9, b"++")?;
        assert_eq!(patcher.written(), 11);
        patcher.finish()?;
        assert_eq!(out, b"012x45--8++9");
        Ok(())
    }
}
