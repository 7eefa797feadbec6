//! Options and results of recovering, slicing and merging logs, for all formats.
//!
//! Recovery counts each byte of the damaged log as lost, stale or kept. For example, a log of 100
//! bytes has damage in the byte range `0..20`, and valid records of an older recording in the byte
//! ranges `50..53` and `60..62`. Its [`Recovery`] has 20 lost bytes, 5 stale bytes and 75 kept
//! bytes.

use std::io::Write;
use std::ops::Range;

use crate::internal::{packed, ranges};
use crate::{Detail, Diagnostics, Timestamp};

/// Options for recovering a damaged log.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RecoverOptions {
    /// True to omit the records of stale segments; see [`Segment`]. Definitions in stale segments
    /// are still copied, because later records may need them. Formats that do not detect stale
    /// segments ignore this option.
    pub drop_stale: bool,
}

impl RecoverOptions {
    /// Sets [`drop_stale`](Self::drop_stale) to true.
    #[must_use]
    pub fn dropping_stale(mut self) -> Self {
        self.drop_stale = true;
        self
    }
}

/// The result of recovering a damaged log.
///
/// The numbers of kept, lost and stale bytes add up to the size of the damaged log. Bytes that the
/// recovered log replaces or does not need, such as the header, also count as kept.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recovery {
    /// Number of records in the recovered log.
    pub records: u64,
    /// Number of bytes of the damaged log that are neither lost nor stale.
    pub kept_bytes: u64,
    /// Byte ranges of the damaged log that no reader can use, in ascending order. Adjacent ranges
    /// are joined.
    pub lost: Vec<Range<u64>>,
    /// Number of records that are missing according to record counts in the damaged log. The number
    /// is 0 if the log has no record counts.
    pub missing_records: u64,
    /// Number of valid bytes that were omitted because they belong to stale segments.
    pub stale_bytes: u64,
    /// Number of records that were omitted because they belong to stale segments.
    pub stale_records: u64,
    /// Segments of the damaged log. Empty if the log is intact or the format does not detect
    /// segments.
    pub segments: Vec<Segment>,
    /// Descriptions of content that is intact in the damaged log but missing from the recovered
    /// log.
    pub left_out: Vec<String>,
    /// True if the log was valid. In this case, the recovered log is an exact copy.
    pub unchanged: bool,
    /// Results of the recovery that exist only in one format.
    pub details: Vec<Detail>,
}

impl Recovery {
    /// Creates the result for a log of `size` bytes from the byte ranges that are lost and stale.
    /// All other bytes count as kept.
    pub fn of(size: u64, lost: Vec<Range<u64>>, stale: &[Range<u64>]) -> Self {
        let (lost, stale_bytes) = (ranges::joined(lost), ranges::total_len(stale));
        let kept_bytes = size - ranges::total_len(&lost) - stale_bytes;
        Self { kept_bytes, lost, stale_bytes, ..Self::default() }
    }

    /// Copies a valid log to `out` without changes. `records` is the number of records in the log.
    ///
    /// # Errors
    /// Returns an error if writing to `out` fails.
    pub fn copied(records: u64, log: &[u8], out: &mut dyn Write) -> std::io::Result<Self> {
        out.write_all(log)?;
        // `out` may buffer bytes. An error that occurs when they are written must be returned.
        out.flush()?;
        Ok(Self { records, kept_bytes: log.len() as u64, unchanged: true, ..Self::default() })
    }

    /// If the log comes from a compressed file whose content is incomplete, adds the missing
    /// content as a loss.
    ///
    /// The missing content has no bytes in the decompressed log. Its byte range is therefore empty
    /// and at the end of the log.
    #[must_use]
    pub fn with_packing(mut self, size: u64, diagnostics: &Diagnostics) -> Self {
        if packed::is_partial(diagnostics) {
            ranges::push(&mut self.lost, size..size);
            self.unchanged = false;
        }
        self
    }

    /// Returns the number of bytes in the damaged log that no reader can use.
    pub fn lost_bytes(&self) -> u64 {
        ranges::total_len(&self.lost)
    }

    /// Returns whether the recovered log contains everything that the damaged log should contain.
    pub fn is_complete(&self) -> bool {
        self.lost.is_empty() && self.left_out.is_empty() && self.missing_records == 0 && self.stale_bytes == 0
    }
}

/// A part of a damaged log whose records are contiguous in time.
///
/// A file may contain disk clusters that were allocated but never written. They contain data that
/// was stored on the disk before, often valid records of an older recording. A segment of such
/// records is stale.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Byte range of the segment in the file, including lost bytes.
    pub range: Range<u64>,
    /// Number of records in the segment.
    pub records: u64,
    /// Number of records in the segment whose time was checked. The first record of each topic is
    /// not checked, because it was often published long before the recording.
    pub timed_records: u64,
    /// Start time of the segment. This is the median of the first times that were checked, because
    /// single times may be wrong.
    pub first: Option<Timestamp>,
    /// End time of the segment. This is the median of the last times that were checked.
    pub last: Option<Timestamp>,
    /// True if the segment belongs to the log. False if the segment is stale.
    pub in_time_order: bool,
}

/// The result of slicing a log, that is, of copying selected records to a new log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sliced {
    /// Number of records in the slice.
    pub records: u64,
    /// Number of entries in the slice that have a time and are not records, such as console lines,
    /// dropouts and parameter changes.
    pub others: u64,
    /// Number of topics in the slice, including topics without records.
    pub topics: usize,
    /// Size of the slice in bytes.
    pub bytes: u64,
    /// Results of the slicing that exist only in one format.
    pub details: Vec<Detail>,
}

impl Sliced {
    /// Returns whether the slice contains neither records nor other entries with a time. Such a
    /// slice contains only definitions and initial values.
    pub fn is_empty(&self) -> bool {
        self.records + self.others == 0
    }
}

/// Alignment of clocks when several logs are merged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Align {
    /// The logs must prove that they have a common clock. Otherwise, merging fails.
    #[default]
    Shared,
    /// The caller guarantees that the logs have a common clock. Times stay unchanged.
    AsIs,
    /// Times are aligned by UTC. The merged log uses the clock of the log whose clock started
    /// first.
    Utc,
}

impl Align {
    /// Returns the number of nanoseconds to add to the times of each log, so that all logs use the
    /// clock that started first. If times are not aligned by UTC, all of these numbers are 0.
    ///
    /// `offsets` are the Unix times in nanoseconds at which the clocks of the logs started. They
    /// are computed only if they are needed. For example, if two clocks started at the Unix
    /// times 12 and 10, the results are 2 and 0.
    ///
    /// # Errors
    /// Returns the first error in `offsets`. If the logs must have a common clock, but their clocks
    /// started more than `within` nanoseconds apart, returns the error that `apart` creates from
    /// the largest distance.
    pub fn shifts<E>(
        self,
        offsets: impl ExactSizeIterator<Item = Result<i64, E>>,
        within: u64,
        apart: impl FnOnce(u64) -> E,
    ) -> Result<Vec<u64>, E> {
        let logs = offsets.len();
        if self == Self::AsIs || logs < 2 {
            return Ok(vec![0; logs]);
        }
        let offsets = offsets.collect::<Result<Vec<i64>, E>>()?;
        // The results are relative to the clock that started first, so they are not negative.
        let first = offsets.iter().copied().min().unwrap_or(0);
        let shifts: Vec<u64> = offsets.iter().map(|offset| offset.abs_diff(first)).collect();
        match shifts.iter().copied().max() {
            _ if self == Self::Utc => Ok(shifts),
            Some(most) if most > within => Err(apart(most)),
            _ => Ok(vec![0; logs]),
        }
    }
}

/// The result of merging logs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Merged {
    /// Number of records in the merged log.
    pub records: u64,
    /// Number of topics in the merged log.
    pub topics: usize,
    /// Size of the merged log in bytes.
    pub bytes: u64,
    /// Descriptions of content of the input logs that is not in the merged log.
    pub left_out: Vec<String>,
    /// Results of the merge that exist only in one format.
    pub details: Vec<Detail>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limits;

    #[test]
    fn bytes_that_are_neither_lost_nor_stale_are_kept() {
        let recovery = Recovery::of(100, vec![10..20, 0..2, 5..10], &[50..53, 60..62]);
        assert_eq!(recovery.lost, [0..2, 5..20]);
        assert_eq!((recovery.kept_bytes, recovery.lost_bytes(), recovery.stale_bytes), (78, 17, 5));
    }

    #[test]
    fn a_recovery_is_complete_if_nothing_is_lost_missing_or_stale() {
        assert!(Recovery::of(100, vec![], &[]).is_complete());
        assert!(!Recovery::of(100, vec![5..6, 7..8], &[]).is_complete());
        assert!(!Recovery::of(100, vec![], &[5..6, 7..8]).is_complete());
        assert!(!Recovery { missing_records: 1, ..Recovery::default() }.is_complete());
    }

    #[test]
    fn a_valid_log_is_copied_and_unchanged() -> std::io::Result<()> {
        let mut out = Vec::new();
        let recovery = Recovery::copied(3, b"a log", &mut out)?;
        assert_eq!(out, b"a log");
        assert_eq!((recovery.records, recovery.kept_bytes, recovery.unchanged), (3, 5, true));
        assert!(recovery.is_complete());
        // If the log comes from a compressed file whose end is missing, a loss must be added.
        let mut diagnostics = Diagnostics::new(&Limits::default());
        assert_eq!(recovery.clone().with_packing(5, &diagnostics), recovery);
        let ending = packed::Ending::Cut { at: 2 };
        packed::Packing { name: "gzip", ending, size: 5 }.note(&mut diagnostics);
        let cut = recovery.with_packing(5, &diagnostics);
        assert_eq!(cut.lost.first(), Some(&(5..5)));
        assert_eq!((cut.lost.len(), cut.unchanged, cut.records), (1, false, 3));
        Ok(())
    }

    #[test]
    fn a_slice_is_empty_without_records_and_other_entries() {
        let slice = |records, others| Sliced { records, others, topics: 1, ..Sliced::default() };
        assert!(slice(0, 0).is_empty());
        assert!(!slice(2, 0).is_empty() && !slice(0, 2).is_empty() && !slice(2, 2).is_empty());
    }

    #[test]
    fn dropping_stale_sets_the_option() {
        assert!(RecoverOptions::default().dropping_stale().drop_stale);
    }

    #[test]
    fn logs_are_shifted_to_the_clock_that_started_first() {
        let shifts =
            |align: Align, offsets: &[i64]| align.shifts(offsets.iter().map(|o| Ok(*o)), 5, |most| most);
        assert_eq!(shifts(Align::Utc, &[12, i64::MIN, 10]), Ok(vec![(1 << 63) + 12, 0, (1 << 63) + 10]));
        assert_eq!(shifts(Align::Shared, &[12, 10, 15]), Ok(vec![0; 3]));
        assert_eq!(shifts(Align::Shared, &[12, 10, 16]), Err(6));
        assert_eq!(shifts(Align::Shared, &[]), Ok(vec![]));
        // Without alignment by UTC, or with a single log, the offsets are not needed. They are then
        // not computed, so their errors do not matter.
        let unknown = |align: Align, logs: usize| align.shifts((0..logs).map(|_| Err(1)), 0, |_| 2);
        assert_eq!((unknown(Align::AsIs, 2), unknown(Align::Utc, 1)), (Ok(vec![0; 2]), Ok(vec![0])));
        assert_eq!(unknown(Align::Shared, 2), Err(1));
    }
}
