//! Results of recovering, slicing and merging, the same for every format.

use std::io::Write;
use std::ops::Range;

use crate::{Detail, Diagnostics, Timestamp, packed, ranges};

/// Options of recovery.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RecoverOptions {
    /// Leave out what is in segments of another time; see [`Segment`]. Definitions in them stay,
    /// because later records may need them. Formats that know no such segments leave out nothing.
    pub drop_stale: bool,
}

impl RecoverOptions {
    /// Returns the same options with [`drop_stale`](Self::drop_stale).
    #[must_use]
    pub fn dropping_stale(mut self) -> Self {
        self.drop_stale = true;
        self
    }
}

/// The result of a recovery. Kept, lost and stale bytes together are the length of the damaged log;
/// those count as kept that stand anew in the recovered one, as its header does, or are left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recovery {
    /// Records of the recovered log.
    pub records: u64,
    /// Bytes of the damaged log that the recovered one holds, as they are or in another place.
    pub kept_bytes: u64,
    /// Ranges of the damaged log that no reader can use: ascending, neighbours joined.
    pub lost: Vec<Range<u64>>,
    /// Records that the damaged log counts and that are not in it, as far as the log counts any.
    pub missing_records: u64,
    /// Valid bytes left out because they are of another time.
    pub stale_bytes: u64,
    /// The records among them.
    pub stale_records: u64,
    /// The parts of the damaged log by time; empty where nothing is damaged, or the format does not
    /// tell.
    pub segments: Vec<Segment>,
    /// Content of the damaged log that is not lost, and that the recovered one does not have, in words.
    pub left_out: Vec<String>,
    /// Whether the log was valid, so that the recovered one is a plain copy.
    pub unchanged: bool,
    /// Further results that only this format has.
    pub details: Vec<Detail>,
}

impl Recovery {
    /// Returns what became of a log of `size` bytes of which these ranges are lost and these stale,
    /// and all others kept.
    pub fn of(size: u64, lost: Vec<Range<u64>>, stale: &[Range<u64>]) -> Self {
        let (lost, stale_bytes) = (ranges::joined(lost), ranges::total(stale));
        let kept_bytes = size - ranges::total(&lost) - stale_bytes;
        Self { kept_bytes, lost, stale_bytes, ..Self::default() }
    }

    /// Writes a valid log of so many records as it is.
    ///
    /// # Errors
    /// Returns an error if the output refuses.
    pub fn copied(records: u64, log: &[u8], out: &mut dyn Write) -> std::io::Result<Self> {
        out.write_all(log)?;
        out.flush()?;
        Ok(Self { records, kept_bytes: log.len() as u64, unchanged: true, ..Self::default() })
    }

    /// Adds what is missing of a compressed file. It has no bytes in the log, so that the range is
    /// empty and at its end.
    #[must_use]
    pub fn with_packing(mut self, size: u64, diagnostics: &Diagnostics) -> Self {
        if packed::is_partial(diagnostics) {
            ranges::push(&mut self.lost, size..size);
            self.unchanged = false;
        }
        self
    }

    /// Returns bytes that no reader can use.
    pub fn lost_bytes(&self) -> u64 {
        ranges::total(&self.lost)
    }

    /// Returns whether all of the log is in the recovered one.
    pub fn is_complete(&self) -> bool {
        self.lost.is_empty() && self.left_out.is_empty() && self.missing_records == 0 && self.stale_bytes == 0
    }
}

/// A part of a damaged log whose records follow each other in time. A cluster of a card that was
/// never written keeps what it held before: valid records of another time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its bytes, lost ones included.
    pub range: Range<u64>,
    /// Its records.
    pub records: u64,
    /// Those of them that were validated: with a time, and not the first of their topic, which
    /// often was published long before.
    pub timed_records: u64,
    /// When it starts: the median of the first of these, because single records may be far off.
    pub first: Option<Timestamp>,
    /// When it ends: the median of the last of these.
    pub last: Option<Timestamp>,
    /// Whether it belongs to the log: `false` is a stale segment.
    pub in_time_order: bool,
}

/// The result of slicing a log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sliced {
    /// Its records.
    pub records: u64,
    /// What else has a time: texts, dropouts, changes of parameters.
    pub others: u64,
    /// Its topics; those without records count.
    pub topics: usize,
    /// Its bytes.
    pub bytes: u64,
    /// Further results that only this format has.
    pub details: Vec<Detail>,
}

impl Sliced {
    /// Returns whether it holds definitions and initial values only.
    pub fn is_empty(&self) -> bool {
        self.records + self.others == 0
    }
}

/// Alignment of the clocks of merged logs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Align {
    /// The logs must show that they share a clock; others are refused.
    #[default]
    Shared,
    /// The caller knows that they share a clock.
    AsIs,
    /// By the Unix time of each; the merged log has the clock of the one whose clock started first.
    Utc,
}

impl Align {
    /// Returns what is added to the times of each log, nanoseconds, to bring them to the clock that
    /// started first: nothing, unless times are aligned by UTC. `offsets` are the Unix times,
    /// nanoseconds, at which the clock of each log started; they are asked for only if they matter.
    ///
    /// # Errors
    /// Returns what `offsets` returns, and `apart` of the largest distance if clocks that must be
    /// shared started farther apart than `within` nanoseconds.
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
    /// Records of the merged log.
    pub records: u64,
    /// Its topics.
    pub topics: usize,
    /// Its bytes.
    pub bytes: u64,
    /// Content of the logs that the merged one does not have, in words.
    pub left_out: Vec<String>,
    /// Further results that only this format has.
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
    fn a_recovered_log_is_complete_if_nothing_is_lost_missing_or_stale() {
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
        // Only if the file that it came in is whole as well.
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
    fn a_slice_is_empty_without_records_and_without_others() {
        let slice = |records, others| Sliced { records, others, topics: 1, ..Sliced::default() };
        assert!(slice(0, 0).is_empty());
        assert!(!slice(2, 0).is_empty() && !slice(0, 2).is_empty() && !slice(2, 2).is_empty());
    }

    #[test]
    fn stale_records_are_dropped_if_that_is_asked_for() {
        assert!(RecoverOptions::default().dropping_stale().drop_stale);
    }

    #[test]
    fn logs_are_moved_to_the_clock_that_began_first() {
        let shifts =
            |align: Align, offsets: &[i64]| align.shifts(offsets.iter().map(|o| Ok(*o)), 5, |most| most);
        assert_eq!(shifts(Align::Utc, &[12, i64::MIN, 10]), Ok(vec![(1 << 63) + 12, 0, (1 << 63) + 10]));
        assert_eq!(shifts(Align::Shared, &[12, 10, 15]), Ok(vec![0; 3]));
        assert_eq!(shifts(Align::Shared, &[12, 10, 16]), Err(6));
        assert_eq!(shifts(Align::Shared, &[]), Ok(vec![]));
        // No reader asks for what does not matter.
        let unknown = |align: Align, logs: usize| align.shifts((0..logs).map(|_| Err(1)), 0, |_| 2);
        assert_eq!((unknown(Align::AsIs, 2), unknown(Align::Utc, 1)), (Ok(vec![0; 2]), Ok(vec![0])));
        assert_eq!(unknown(Align::Shared, 2), Err(1));
    }
}
