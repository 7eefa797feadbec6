//! The log's clock: microseconds since boot, the running log time, and timestamps of fewer than 64
//! bits.
//!
//! Section 3 of docs/formats/ulog.md.

use std::collections::HashMap;

use rovelog_core::wire::{U16Le, U32Le};
use rovelog_core::{Clock, Timestamp};

use crate::definitions::{RowShape, RowTime};
use crate::layout::TimeWidth;
use crate::utc::YEAR_2000;
use crate::wire::number;

/// The largest time that nanoseconds in an `i64` can hold, in microseconds.
pub(crate) const MAX_MICROS: u64 = i64::MAX as u64 / 1000;

/// Follows the time of a log from row to row.
#[derive(Clone, Debug)]
pub(crate) struct LogClock {
    /// Boot time, or Unix time where the header's start time can be nothing else (U1).
    pub(crate) clock: Clock,
    /// Log time: the running maximum of the 64-bit timestamps, from the header's start time. Times
    /// past the end of the data, where that is known, do not count.
    pub(crate) now: u64,
    /// The latest log time of earlier sessions.
    latest: u64,
    /// The end of the log's data, microseconds.
    pub(crate) data_end: u64,
    /// Microseconds that are added to times; 0 except in a session whose clock was aligned.
    pub(crate) shift: u64,
    /// Whether the times of rows are unknown, because only those of an earlier session are UTC.
    pub(crate) is_unplaced: bool,
    /// Milliseconds of dropouts so far.
    dropped: u64,
    narrow: HashMap<u32, Narrow>,
    /// Whether any timestamp was narrow.
    pub(crate) has_narrow: bool,
}

/// The last unwrapped time of a topic, and the dropouts that were known then.
#[derive(Clone, Copy, Debug)]
struct Narrow {
    last: u64,
    dropped: u64,
}

/// The time of a row, microseconds of the log's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowMicros {
    /// The topic carries no time.
    None,
    /// A time that nanoseconds can hold.
    At(u64),
    /// A time past the year 2262.
    OutOfRange,
}

impl RowMicros {
    /// Returns the time in microseconds; `None` where there is none.
    #[inline]
    pub(crate) fn micros(self) -> Option<u64> {
        match self {
            Self::At(micros) => Some(micros),
            _ => None,
        }
    }

    /// Returns the time by which the row is ordered, microseconds: its own, or the log time at its
    /// place where it has none.
    #[inline]
    pub(crate) fn in_order_micros(self, now: u64) -> u64 {
        self.micros().unwrap_or(now)
    }

    /// Returns the same in nanoseconds.
    #[inline]
    pub(crate) fn in_order(self, now: u64) -> i64 {
        i64::try_from(self.in_order_micros(now)).unwrap_or(i64::MAX).saturating_mul(1000)
    }
}

impl RowMicros {
    /// Returns the time in nanoseconds; `None` where there is none.
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

    /// Returns the same clock for a log whose data ends at `data_end`.
    pub(crate) fn until(self, data_end: u64) -> Self {
        Self { data_end, now: self.now.min(data_end), ..self }
    }

    /// Starts a session at `start` of its own clock, whose times are moved by `shift`.
    pub(crate) fn restart(&mut self, start: u64, shift: u64) {
        self.latest = self.latest.max(self.now);
        self.now = start.saturating_add(shift).min(self.data_end);
        self.shift = shift;
        self.narrow.clear();
    }

    /// Returns the latest log time of all sessions as a timestamp.
    pub(crate) fn end(&self) -> Option<Timestamp> {
        Timestamp::from_micros(self.latest.max(self.now), self.clock)
    }

    /// Returns whether times are stored as they are read.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.shift == 0 && !self.is_unplaced
    }

    /// Log time as a timestamp.
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

    pub(crate) fn dropout(&mut self, millis: u16) {
        self.dropped += u64::from(millis);
    }

    /// Takes the next row in file order and gives its time.
    #[inline]
    pub(crate) fn row(&mut self, shape: RowShape, row: &[u8]) -> RowMicros {
        match shape.time {
            RowTime::Field(TimeWidth::U64Micros) => {
                let Some(micros) = shape.plain_time(row) else { return RowMicros::None };
                if self.is_unplaced {
                    return RowMicros::None;
                }
                let micros = micros.saturating_add(self.shift);
                if micros > self.now {
                    if micros > MAX_MICROS {
                        return RowMicros::OutOfRange;
                    }
                    if micros <= self.data_end {
                        self.now = micros;
                    }
                }
                RowMicros::At(micros)
            }
            RowTime::Field(width) => self.narrow(shape, width, row),
            RowTime::None => RowMicros::None,
        }
    }

    /// D16: the value congruent to the stored one that is nearest to where the topic should be by
    /// now.
    #[cold]
    fn narrow(&mut self, shape: RowShape, width: TimeWidth, row: &[u8]) -> RowMicros {
        self.has_narrow = true;
        let Some((value, period)) = stored(shape, width, row) else { return RowMicros::None };
        let previous = self.narrow.get(&shape.series).copied();
        let base = match previous {
            Some(narrow) => self.now.max(narrow.last + (self.dropped - narrow.dropped) * 1000),
            None => self.now,
        };
        // Nearest to base among value + k * period, k >= 0.
        let below = if base >= value { value + (base - value) / period * period } else { value };
        let mut time = if base > below && base - below > period / 2 { below + period } else { below };
        while previous.is_some_and(|narrow| time < narrow.last) {
            time += period;
        }
        if time > MAX_MICROS {
            // Its order is by the log time, which must not be before the topic's previous time.
            self.now = base.min(MAX_MICROS);
            return RowMicros::OutOfRange;
        }
        self.narrow.insert(shape.series, Narrow { last: time, dropped: self.dropped });
        RowMicros::At(time)
    }
}

/// Returns a stored narrow timestamp and the time after which it repeats, in microseconds.
fn stored(shape: RowShape, width: TimeWidth, row: &[u8]) -> Option<(u64, u64)> {
    let at = usize::from(shape.time_at);
    let (stored, period, unit) = match width {
        TimeWidth::U8Millis => (number::<u8>(row, at).map(u64::from), 1 << 8, 1000),
        TimeWidth::U16Micros => (number::<U16Le>(row, at).map(|n| n.get().into()), 1 << 16, 1),
        _ => (number::<U32Le>(row, at).map(|n| n.get().into()), 1 << 32, 1),
    };
    Some((stored? * unit, period * unit))
}

/// Returns whether a time can be that of a row with a narrow timestamp. It is not where the row is
/// ordered by the log time, because its own is out of range.
pub(crate) fn is_time_of(shape: RowShape, row: &[u8], micros: u64) -> bool {
    let RowTime::Field(width) = shape.time else { return false };
    stored(shape, width, row).is_some_and(|(value, period)| micros % period == value % period)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(width: TimeWidth, start: u64, steps: &[(u16, u64)]) -> Vec<u64> {
        let shape = RowShape {
            series: 0,
            full: 8,
            trimmed: 8,
            time_at: 0,
            time: RowTime::Field(width),
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
    fn a_dropout_moves_the_place_where_a_narrow_timestamp_is_looked_for() {
        let got = times(TimeWidth::U16Micros, 0, &[(0, 1000), (1000, (1_001_000 + 5000) & 0xffff)]);
        assert_eq!(got, [1000, 1_006_000]);
        // The nearest to 101 000; of two that are as near, the earlier one.
        for time in [98_000, 101_000, 104_000, 101_000 - 32_768, 101_000 + 32_767] {
            let got = times(TimeWidth::U16Micros, 0, &[(0, 1000), (100, time & 0xffff)]);
            assert_eq!(got, [1000, time]);
        }
    }

    #[test]
    fn equal_narrow_timestamps_are_one_time() {
        assert_eq!(times(TimeWidth::U16Micros, 0, &[(0, 1000), (0, 1000), (0, 1001)]), [1000, 1000, 1001]);
        // The last time that nanoseconds can hold is one.
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
