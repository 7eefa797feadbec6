//! The clock of a log. It computes times in microseconds and the log time, and completes timestamps
//! with fewer than 64 bits. See section 3 of docs/formats/ulog.md.
//!
//! # Example
//!
//! A topic has timestamps of 16 bits, which repeat every 65 536 µs. Its last row was at 60 000 µs,
//! and the next row stores 1 000. The possible times are 1 000, 66 536, 132 072 and so on. The row
//! is expected near 60 000 µs, so its time is 66 536 µs.
//!
//! If a dropout of 100 ms lies between the two rows, the row is expected near 160 000 µs, and its
//! time is 132 072 µs. The specification says that a reader "must handle wrap-arounds (and take
//! into account dropouts)".

use std::collections::HashMap;

use rovelog_core::internal::wire::{U16Le, U32Le};
use rovelog_core::{Clock, Timestamp};

use crate::definitions::RowShape;
use crate::layout::TimeWidth;
use crate::utc::YEAR_2000;
use crate::wire::number;

/// Maximum time in microseconds. Later times, after the year 2262, do not fit into an `i64` of
/// nanoseconds.
pub(crate) const MAX_MICROS: u64 = i64::MAX as u64 / 1000;

/// Converts microseconds to nanoseconds. Times after the year 2262 become the maximum.
#[inline]
pub(crate) fn nanos_of(micros: u64) -> i64 {
    i64::try_from(micros).unwrap_or(i64::MAX).saturating_mul(1000)
}

/// Computes the times of rows, which must be passed in file order.
#[derive(Clone, Debug)]
pub(crate) struct LogClock {
    /// Clock to which the times belong. It is the boot clock, unless the start time in the header
    /// is so large that it must be Unix time (rule U1 of docs/formats/ulog.md).
    pub(crate) clock: Clock,
    /// Log time in microseconds, which is the largest 64-bit timestamp so far. It starts with the
    /// start time in the header. Timestamps after `data_end` are ignored.
    pub(crate) now: u64,
    /// Latest log time of the sessions before the current one, in microseconds.
    latest: u64,
    /// End of the log's data in microseconds, or [`MAX_MICROS`] if the end is unknown.
    pub(crate) data_end: u64,
    /// Number of microseconds added to the stored times of the current session. It is nonzero only
    /// if the session's clock was aligned with the clock of the first session.
    pub(crate) shift: u64,
    /// True if rows of the current session get no time. This is the case if an earlier session has
    /// a UTC offset and the offset of the current session is unknown.
    pub(crate) is_unplaced: bool,
    /// Total duration of the dropouts so far, in milliseconds.
    dropped: u64,
    /// State of each topic whose timestamps have fewer than 64 bits, by topic number.
    narrow: HashMap<u32, Narrow>,
    /// True if any timestamp so far had fewer than 64 bits.
    pub(crate) has_narrow: bool,
}

/// State of a topic whose timestamps have fewer than 64 bits.
#[derive(Clone, Copy, Debug)]
struct Narrow {
    /// Time of the topic's last row in microseconds.
    last: u64,
    /// Value of [`LogClock::dropped`] at the topic's last row.
    dropped: u64,
}

/// Time of a row on the log's clock, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowMicros {
    /// The row has no timestamp.
    None,
    /// The time in microseconds, up to the year 2262.
    At(u64),
    /// A time after the year 2262, which does not fit into an `i64` of nanoseconds.
    OutOfRange,
}

impl RowMicros {
    /// Returns the time of the row in microseconds, or `None` if the row has no valid time.
    #[inline]
    pub(crate) fn micros(self) -> Option<u64> {
        match self {
            Self::At(micros) => Some(micros),
            _ => None,
        }
    }

    /// Returns the time in microseconds by which the row is sorted. A row without a valid time is
    /// sorted by the log time `now`.
    #[inline]
    pub(crate) fn in_order_micros(self, now: u64) -> u64 {
        self.micros().unwrap_or(now)
    }

    /// Returns the time in nanoseconds by which the row is sorted. A row without a valid time is
    /// sorted by the log time `now`, which is in microseconds.
    #[inline]
    pub(crate) fn in_order(self, now: u64) -> i64 {
        nanos_of(self.in_order_micros(now))
    }

    /// Returns the time of the row in nanoseconds, or `None` if the row has no valid time.
    #[inline]
    pub(crate) fn nanos(self) -> Option<i64> {
        match self {
            Self::At(micros) => i64::try_from(micros).ok()?.checked_mul(1000),
            _ => None,
        }
    }
}

impl LogClock {
    pub(crate) fn new(start: u64) -> Self {
        let clock = if start >= YEAR_2000 { Clock::Unix } else { Clock::Boot };
        Self {
            clock,
            now: start.min(MAX_MICROS),
            latest: 0,
            data_end: MAX_MICROS,
            shift: 0,
            is_unplaced: false,
            dropped: 0,
            narrow: HashMap::new(),
            has_narrow: false,
        }
    }

    /// Sets the end of the log's data, in microseconds. Later timestamps do not advance the log
    /// time.
    pub(crate) fn until(self, data_end: u64) -> Self {
        Self { data_end, now: self.now.min(data_end), ..self }
    }

    /// Starts a session. `start` is the start time on the clock of the session. `shift` is added to
    /// all times of the session. Both are in microseconds.
    pub(crate) fn restart(&mut self, start: u64, shift: u64) {
        self.latest = self.latest.max(self.now);
        self.now = start.saturating_add(shift).min(self.data_end);
        self.shift = shift;
        self.narrow.clear();
    }

    /// Returns the latest log time of all sessions in microseconds.
    pub(crate) fn end_micros(&self) -> u64 {
        self.latest.max(self.now)
    }

    /// Returns the latest log time of all sessions as a timestamp, or `None` if it does not fit
    /// into nanoseconds.
    pub(crate) fn end(&self) -> Option<Timestamp> {
        Timestamp::from_micros(self.end_micros(), self.clock)
    }

    /// Returns `true` if the time of a row equals its stored timestamp.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.shift == 0 && !self.is_unplaced
    }

    /// Returns the log time as a timestamp.
    pub(crate) fn now(&self) -> Option<Timestamp> {
        Timestamp::from_micros(self.now, self.clock)
    }

    /// Returns the time of a row as a timestamp.
    pub(crate) fn timestamp(&self, time: RowMicros) -> Option<Timestamp> {
        match time {
            RowMicros::At(micros) => Timestamp::from_micros(micros, self.clock),
            _ => None,
        }
    }

    /// Adds the duration of a dropout. For topics with timestamps of fewer than 64 bits, the next
    /// row is then expected later by this duration.
    pub(crate) fn dropout(&mut self, millis: u16) {
        self.dropped += u64::from(millis);
    }

    /// Returns the time of the next row, and advances the log time. Rows must be passed in file
    /// order.
    #[inline]
    pub(crate) fn row(&mut self, shape: RowShape, row: &[u8]) -> RowMicros {
        match shape.time {
            Some(TimeWidth::U64Micros) => {
                let Some(micros) = shape.plain_time(row) else { return RowMicros::None };
                if self.is_unplaced {
                    return RowMicros::None;
                }
                let micros = micros.saturating_add(self.shift);
                if micros > self.now {
                    if micros > MAX_MICROS {
                        return RowMicros::OutOfRange;
                    }
                    // A stale timestamp after the end of the data must not advance the log time.
                    // Otherwise, it would move all later messages without a time of their own.
                    if micros <= self.data_end {
                        self.now = micros;
                    }
                }
                RowMicros::At(micros)
            }
            Some(width) => self.narrow(shape, width, row),
            None => RowMicros::None,
        }
    }

    /// Completes a timestamp of fewer than 64 bits (rule D16 of docs/formats/ulog.md).
    ///
    /// Of all times with the stored low bits, the result is the time that is nearest to the
    /// expected time. The expected time is the previous time of the topic plus the dropouts since
    /// then. If the log time is later, it is used instead.
    #[cold]
    fn narrow(&mut self, shape: RowShape, width: TimeWidth, row: &[u8]) -> RowMicros {
        self.has_narrow = true;
        let Some((value, period)) = stored(shape, width, row) else { return RowMicros::None };
        let previous = self.narrow.get(&shape.series).copied();
        let base = match previous {
            Some(narrow) => self.now.max(narrow.last + (self.dropped - narrow.dropped) * 1000),
            None => self.now,
        };
        // `below` is the last candidate time `value + k * period` that is not after `base`. The
        // candidate nearest to `base` is either `below` or the candidate after it.
        let below = if base >= value { value + (base - value) / period * period } else { value };
        let mut time = if base > below && base - below > period / 2 { below + period } else { below };
        // Specification: "The timestamp must always be monotonic increasing" within a topic. So the
        // time must not be earlier than the previous time of the topic.
        while previous.is_some_and(|narrow| time < narrow.last) {
            time += period;
        }
        if time > MAX_MICROS {
            // The completed time is too late for 64-bit nanoseconds. The row is sorted by the log
            // time instead, which must not be before the previous time of the topic.
            self.now = base.min(MAX_MICROS);
            return RowMicros::OutOfRange;
        }
        self.narrow.insert(shape.series, Narrow { last: time, dropped: self.dropped });
        RowMicros::At(time)
    }
}

/// Returns a stored timestamp of fewer than 64 bits, and the period after which it repeats. Both
/// are in microseconds.
fn stored(shape: RowShape, width: TimeWidth, row: &[u8]) -> Option<(u64, u64)> {
    let at = usize::from(shape.time_at);
    let (stored, period, unit) = match width {
        TimeWidth::U8Millis => (number::<u8>(row, at).map(u64::from), 1 << 8, 1000),
        TimeWidth::U16Micros => (number::<U16Le>(row, at).map(|n| n.get().into()), 1 << 16, 1),
        _ => (number::<U32Le>(row, at).map(|n| n.get().into()), 1 << 32, 1),
    };
    Some((stored? * unit, period * unit))
}

/// Returns `true` if the time `micros` agrees with the timestamp of fewer than 64 bits stored in
/// `row`.
///
/// They disagree if the time of the row was out of range. Such a row is sorted by the log time, so
/// `micros` is the log time.
pub(crate) fn is_time_of(shape: RowShape, row: &[u8], micros: u64) -> bool {
    let Some(width) = shape.time else { return false };
    stored(shape, width, row).is_some_and(|(value, period)| micros % period == value % period)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(width: TimeWidth, start: u64, steps: &[(u16, u64)]) -> Vec<u64> {
        let shape = RowShape {
            series: 0,
            full_len: 8,
            trimmed_len: 8,
            time_at: 0,
            time: Some(width),
            flags: RowShape::SPECIAL_TIME,
        };
        let mut clock = LogClock::new(start);
        steps
            .iter()
            .map(|(dropout, stored)| {
                clock.dropout(*dropout);
                match clock.row(shape, &stored.to_le_bytes()) {
                    RowMicros::At(t) => t,
                    other => panic!("{other:?}"),
                }
            })
            .collect()
    }

    #[test]
    fn narrow_timestamps_wrap() {
        let stored: Vec<_> = (0..10).map(|i| (0, (1000 + 20_000 * i) & 0xffff)).collect();
        let want: Vec<_> = (0..10).map(|i| 1000 + 20_000 * i).collect();
        assert_eq!(times(TimeWidth::U16Micros, 0, &stored), want);
    }

    #[test]
    fn a_dropout_moves_the_expected_time_of_a_narrow_timestamp() {
        let got = times(TimeWidth::U16Micros, 0, &[(0, 1000), (1000, (1_001_000 + 5000) & 0xffff)]);
        assert_eq!(got, [1000, 1_006_000]);
        // The expected time is 101 000 µs. If two candidates are equally near, the earlier
        // candidate is used.
        for time in [98_000, 101_000, 104_000, 101_000 - 32_768, 101_000 + 32_767] {
            let got = times(TimeWidth::U16Micros, 0, &[(0, 1000), (100, time & 0xffff)]);
            assert_eq!(got, [1000, time]);
        }
    }

    #[test]
    fn equal_narrow_timestamps_are_one_time() {
        assert_eq!(times(TimeWidth::U16Micros, 0, &[(0, 1000), (0, 1000), (0, 1001)]), [1000, 1000, 1001]);
        // The largest time that fits into 64-bit nanoseconds is valid.
        let start = MAX_MICROS - 1;
        assert_eq!(times(TimeWidth::U16Micros, start, &[(0, MAX_MICROS & 0xFFFF)]), [MAX_MICROS]);
        assert_eq!(times(TimeWidth::U64Micros, start, &[(0, MAX_MICROS)]), [MAX_MICROS]);
    }

    #[test]
    fn log_time_does_not_start_after_the_data() {
        let [early, late] = [10, 30].map(|end| LogClock::new(20).until(end));
        assert_eq!([early.now, late.now], [10, 20]);
    }

    #[test]
    fn eight_bits_count_milliseconds() {
        assert_eq!(
            times(TimeWidth::U8Millis, 1_000_000, &[(0, 232), (0, 250), (0, 4)]),
            [1_000_000, 1_018_000, 1_028_000]
        );
    }
}
