//! A log of which parts are read: the ranges of a remote file that were fetched, and those that
//! were not.
//!
//! Where nothing was fetched, the bytes of the log are zeros. Readers get the list of these ranges
//! with [`ReadOptions`](crate::ReadOptions), pass them, and count them: they are not lost, and
//! nothing is said about what is in them.

use std::ops::Range;
use std::sync::Arc;

use crate::Result;
use crate::scan::Window;

/// Bytes at the start and at the end of a file that are fetched first.
pub const END: u64 = 256 << 10;

/// A file that is read by ranges.
pub trait Ranges {
    /// Returns the size of the file in bytes.
    fn size(&self) -> u64;

    /// Fetches these ranges, as far as they are in the file and were not fetched before.
    ///
    /// # Errors
    /// Returns an error if the source refuses, has changed, or a limit is passed.
    fn fetch(&self, ranges: &[Range<u64>]) -> Result<()>;

    /// Fetches and returns a range, which is cut where the file ends.
    ///
    /// # Errors
    /// As [`fetch`](Self::fetch).
    fn read(&self, range: Range<u64>) -> Result<Vec<u8>>;
}

/// The ranges of a file that were not read, ascending and apart from each other; none of a file
/// that is read whole.
#[derive(Clone, Debug, Default)]
pub struct Unread(Arc<[Range<u64>]>);

impl Unread {
    /// Returns what is left of a file of `size` bytes without the ranges in `read`.
    pub fn behind(size: u64, read: &[Range<u64>]) -> Self {
        let within = read.iter().map(|range| range.start..range.end.min(size));
        let mut read: Vec<_> = within.filter(|range| range.start < range.end).collect();
        read.sort_by_key(|range| range.start);
        let mut unread = Vec::new();
        let mut at = 0;
        for range in read {
            if range.start > at {
                unread.push(at..range.start);
            }
            at = at.max(range.end);
        }
        if at < size {
            unread.push(at..size);
        }
        Self(unread.into())
    }

    /// Returns whether all of the file was read.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of bytes.
    pub fn bytes(&self) -> u64 {
        self.0.iter().map(|range| range.end - range.start).sum()
    }

    /// Returns whether some byte of `range` was not read.
    pub fn touches(&self, range: &Range<u64>) -> bool {
        self.first_in(range).is_some()
    }

    fn first_in(&self, range: &Range<u64>) -> Option<&Range<u64>> {
        let next = self.0.partition_point(|unread| unread.end <= range.start);
        self.0.get(next).filter(|unread| unread.start < range.end && range.start < range.end)
    }

    /// Returns the ranges.
    pub fn ranges(&self) -> &[Range<u64>] {
        &self.0
    }

    /// Returns the bytes of `wanted` that were not read.
    pub fn within(&self, wanted: &[Range<u64>]) -> Vec<Range<u64>> {
        let both = |wanted: &Range<u64>, unread: &Range<u64>| {
            wanted.start.max(unread.start)..wanted.end.min(unread.end)
        };
        let all = wanted.iter().flat_map(|wanted| self.0.iter().map(move |unread| both(wanted, unread)));
        all.filter(|range| range.start < range.end).collect()
    }

    /// Returns those of `wanted` that were not read whole.
    pub fn missing(&self, wanted: impl IntoIterator<Item = Range<u64>>) -> Vec<Range<u64>> {
        wanted.into_iter().filter(|range| self.touches(range)).collect()
    }

    /// Returns the windows in which a log is scanned from its start, one after the other, each with
    /// its ends: it ends where the next unread range starts. There is at least one.
    pub fn windows<'a>(&self, bytes: &'a [u8]) -> impl Iterator<Item = (Window<'a>, Seams)> {
        let within = |at: u64| usize::try_from(at).map_or(bytes.len(), |at| at.min(bytes.len()));
        let starts = std::iter::once(None).chain(self.0.iter().map(|unread| Some(unread.end)));
        let ends = self.0.iter().map(|unread| Some(unread.start)).chain([None]);
        let parts: Vec<_> = starts.zip(ends).map(|(start, end)| Seams { start, end }).collect();
        // Nothing is behind a last range that was not read.
        let has_bytes = move |seams: &Seams| seams.start.is_none_or(|start| within(start) < bytes.len());
        parts
            .into_iter()
            .filter(has_bytes)
            .map(move |seams| (Window::whole(&bytes[..seams.end.map_or(bytes.len(), within)]), seams))
    }
}

/// The ends of the part of a log that is being scanned, where other parts were not read. What
/// touches them may belong to a record that is read in part, so nothing can be said about it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seams {
    /// Where the part starts, behind bytes that were not read; `None` at the start of the file.
    pub start: Option<u64>,
    /// Where the part ends, before bytes that were not read; `None` at the end of the file.
    pub end: Option<u64>,
}

impl Seams {
    /// Returns whether the part ends at `at`, and the file does not.
    pub fn is_pause(&self, at: u64) -> bool {
        self.end == Some(at)
    }

    /// Returns whether bytes in which no record was found may be part of one that was not read
    /// whole.
    pub fn touch(&self, at: u64, end: u64) -> bool {
        self.start == Some(at) || self.end == Some(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_read_is_the_rest() {
        let unread = Unread::behind(100, &[90..100, 0..10, 5..20, 40..40, 50..60]);
        assert_eq!(&*unread.0, [20..50, 60..90]);
        assert_eq!(unread.bytes(), 60);
        assert!(!unread.touches(&(0..20)) && unread.touches(&(19..21)) && !unread.touches(&(50..60)));
        assert!(!unread.touches(&(30..30)), "an empty range has no bytes");
        assert_eq!(unread.within(&[0..30, 55..100]), [20..30, 60..90]);
        assert_eq!(unread.missing([0..10, 10..21, 55..60, 89..95]), [10..21, 89..95]);
        assert_eq!(unread.within(&[10..20, 20..21, 50..60, 80..99]), [20..21, 80..90]);
        assert_eq!(unread.ranges(), [20..50, 60..90]);
        assert!(!unread.is_empty());
        assert!(Unread::behind(10, &[0..4, 4..12]).is_empty());
        // Behind its end is nothing.
        assert_eq!(Unread::behind(10, &[2..4, 12..14, 16..18]).ranges(), [0..2, 4..10]);
    }

    #[test]
    fn a_seam_is_where_the_part_ends_and_the_file_does_not() {
        let (part, whole) = (Seams { start: Some(10), end: Some(90) }, Seams::default());
        assert!(part.is_pause(90) && !part.is_pause(10) && !whole.is_pause(0));
        assert!(part.touch(10, 20) && part.touch(20, 90) && !part.touch(20, 30) && !part.touch(90, 10));
        assert!(!whole.touch(0, 100));
    }

    #[test]
    fn windows_end_where_unread_ranges_start() {
        let bytes = [0; 100];
        let ends = |read: &[Range<u64>]| {
            let unread = Unread::behind(100, read);
            unread.windows(&bytes).map(|(window, seams)| (window.end(), seams)).collect::<Vec<_>>()
        };
        let seams = |start, end| Seams { start, end };
        assert_eq!(ends(&[0..10, 90..100]), [(10, seams(None, Some(10))), (100, seams(Some(90), None))]);
        assert_eq!(ends(&[0..10, 5..10]), [(10, seams(None, Some(10)))]);
        assert_eq!(ends(&[0..50, 50..100]), [(100, seams(None, None))]);
    }
}
