//! Remote logs of which only some byte ranges were fetched.
//!
//! The bytes of ranges that were not fetched are zeros in memory. A reader gets the list of these
//! unread ranges in [`ReadOptions`](crate::ReadOptions). The reader skips them, counts their bytes
//! as unread and not as lost, and reports no diagnostics for them.
//!
//! For example, a file has 100 bytes, and the ranges `0..20` and `50..60` were fetched. The ranges
//! `20..50` and `60..100` are unread. If the log has no index, it is scanned in two windows:
//!
//! | window | starts after unread bytes | ends before unread bytes |
//! |--------|---------------------------|--------------------------|
//! | 0..20 | no | yes, at 20 |
//! | 50..60 | yes, at 50 | yes, at 60 |
//!
//! A record that starts at 15 and has 8 bytes cannot be read. It touches the end of the first
//! window, so it probably continues in the unread range. It is therefore not reported as damaged.

use std::ops::Range;
use std::sync::Arc;

use crate::Result;
use crate::internal::scan::Window;

/// Size in bytes of the ranges at the start and at the end of a remote file that are fetched first.
pub const END: u64 = 256 << 10;

/// A remote file of which byte ranges can be fetched.
pub trait Ranges {
    /// Returns the size of the file in bytes.
    fn size(&self) -> u64;

    /// Fetches these byte ranges. Bytes that were fetched before, and bytes after the end of the
    /// file, are ignored.
    ///
    /// # Errors
    /// Returns an error if the request fails, if the file has changed since the last request, or if
    /// a limit is exceeded.
    fn fetch(&self, ranges: &[Range<u64>]) -> Result<()>;

    /// Fetches a byte range and returns its bytes. The range is truncated at the end of the file.
    ///
    /// # Errors
    /// Returns the same errors as [`fetch`](Self::fetch).
    fn read(&self, range: Range<u64>) -> Result<Vec<u8>>;
}

/// The byte ranges of a file that were not read, in ascending order. No two ranges are adjacent.
/// The list is empty if the whole file was read.
#[derive(Clone, Debug, Default)]
pub struct Unread(Arc<[Range<u64>]>);

impl Unread {
    /// Returns the unread ranges of a file of `size` bytes, of which the ranges in `read` were
    /// read.
    pub fn behind(size: u64, read: &[Range<u64>]) -> Self {
        // A fetched range may extend beyond the end of the file.
        let within = read.iter().map(|range| range.start..range.end.min(size));
        let mut read: Vec<_> = within.filter(|range| range.start < range.end).collect();
        read.sort_by_key(|range| range.start);
        let mut unread = Vec::new();
        let mut at = 0;
        for range in read {
            if range.start > at {
                unread.push(at..range.start);
            }
            // Ranges that were fetched may overlap, so `at` must not decrease.
            at = at.max(range.end);
        }
        if at < size {
            unread.push(at..size);
        }
        Self(unread.into())
    }

    /// Returns whether the whole file was read.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of bytes that were not read.
    pub fn bytes(&self) -> u64 {
        self.0.iter().map(|range| range.end - range.start).sum()
    }

    /// Returns whether any byte of `range` was not read.
    pub fn touches(&self, range: &Range<u64>) -> bool {
        self.first_in(range).is_some()
    }

    /// Returns the first unread range that overlaps `range`.
    fn first_in(&self, range: &Range<u64>) -> Option<&Range<u64>> {
        let next = self.0.partition_point(|unread| unread.end <= range.start);
        self.0.get(next).filter(|unread| unread.start < range.end && range.start < range.end)
    }

    /// Returns the unread ranges in ascending order.
    pub fn ranges(&self) -> &[Range<u64>] {
        &self.0
    }

    /// Returns the parts of the ranges in `wanted` that were not read.
    pub fn within(&self, wanted: &[Range<u64>]) -> Vec<Range<u64>> {
        let both = |wanted: &Range<u64>, unread: &Range<u64>| {
            wanted.start.max(unread.start)..wanted.end.min(unread.end)
        };
        let all = wanted.iter().flat_map(|wanted| self.0.iter().map(move |unread| both(wanted, unread)));
        all.filter(|range| range.start < range.end).collect()
    }

    /// Returns the ranges in `wanted` of which at least one byte was not read.
    pub fn missing(&self, wanted: impl IntoIterator<Item = Range<u64>>) -> Vec<Range<u64>> {
        wanted.into_iter().filter(|range| self.touches(range)).collect()
    }

    /// Returns the windows in which a log is scanned, each with its bounds. A window ends where an
    /// unread range starts, and the next window starts where that range ends. There is at least one
    /// window.
    ///
    /// The data of each window starts at offset 0 of the file, so that offsets are the same in all
    /// windows.
    pub fn windows<'a>(&self, bytes: &'a [u8]) -> impl Iterator<Item = (Window<'a>, PartBounds)> {
        let within = |at: u64| usize::try_from(at).map_or(bytes.len(), |at| at.min(bytes.len()));
        // A part starts where an unread range ends, and ends where the next unread range starts.
        let starts = std::iter::once(None).chain(self.0.iter().map(|unread| Some(unread.end)));
        let ends = self.0.iter().map(|unread| Some(unread.start)).chain([None]);
        let parts: Vec<_> = starts.zip(ends).map(|(start, end)| PartBounds { start, end }).collect();
        // If the last bytes of the file were not read, no window follows the last unread range.
        let has_bytes =
            move |bounds: &PartBounds| bounds.start.is_none_or(|start| within(start) < bytes.len());
        parts
            .into_iter()
            .filter(has_bytes)
            .map(move |bounds| (Window::whole(&bytes[..bounds.end.map_or(bytes.len(), within)]), bounds))
    }
}

/// Bounds of a part of a log that is scanned separately, because the bytes before or after it were
/// not read.
///
/// Bytes at these bounds may belong to a record that was read only in part. They are therefore not
/// reported as damage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartBounds {
    /// Start of the part, or `None` at the start of the file. The bytes before the start were not
    /// read.
    pub start: Option<u64>,
    /// End of the part, or `None` at the end of the file. The bytes after the end were not read.
    pub end: Option<u64>,
}

impl PartBounds {
    /// Returns whether offset `at` is the end of the part, and the bytes after it were not read.
    pub fn ends_before_unread(&self, at: u64) -> bool {
        self.end == Some(at)
    }

    /// Returns whether the byte range `at..end` touches a bound of the part. The bytes of such a
    /// range may belong to a record that was read only in part, even if no record was found in the
    /// range.
    pub fn touches_unread(&self, at: u64, end: u64) -> bool {
        self.start == Some(at) || self.end == Some(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unread_ranges_are_the_complement_of_the_read_ones() {
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
        // A fetched range after the end of the file has no effect.
        assert_eq!(Unread::behind(10, &[2..4, 12..14, 16..18]).ranges(), [0..2, 4..10]);
    }

    #[test]
    fn bounds_of_a_part_are_next_to_unread_bytes() {
        let (part, whole) = (PartBounds { start: Some(10), end: Some(90) }, PartBounds::default());
        assert!(part.ends_before_unread(90) && !part.ends_before_unread(10) && !whole.ends_before_unread(0));
        assert!(
            part.touches_unread(10, 20)
                && part.touches_unread(20, 90)
                && !part.touches_unread(20, 30)
                && !part.touches_unread(90, 10)
        );
        assert!(!whole.touches_unread(0, 100));
    }

    #[test]
    fn windows_end_where_unread_ranges_start() {
        let bytes = [0; 100];
        let ends = |read: &[Range<u64>]| {
            let unread = Unread::behind(100, read);
            unread.windows(&bytes).map(|(window, bounds)| (window.end(), bounds)).collect::<Vec<_>>()
        };
        let bounds = |start, end| PartBounds { start, end };
        assert_eq!(ends(&[0..10, 90..100]), [(10, bounds(None, Some(10))), (100, bounds(Some(90), None))]);
        assert_eq!(ends(&[0..10, 5..10]), [(10, bounds(None, Some(10)))]);
        assert_eq!(ends(&[0..50, 50..100]), [(100, bounds(None, None))]);
    }
}
