//! Time axes, which map row numbers to nanoseconds. An axis consists of straight pieces with exact
//! slopes.

use rovelog_core::{Clock, Timestamp};

use super::TRUE_SECOND;

/// A method of computing the times of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum TimeAxis {
    /// Rows are counted from the first block time at the true rate, which is 3125/3136 of the
    /// nominal rate. A stream uses this axis, because it has not read later block times.
    TrueRate,
    /// Times are interpolated linearly between block times. Because block times jitter, the local
    /// rate changes by up to 500 ppm.
    BlockInterp,
    /// A straight line at the true rate is fitted to all monotonic block times. This is the most
    /// accurate axis.
    #[default]
    Fit,
}

/// The point in time at which times are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum TimeBase {
    /// 1970-01-01T00:00:00Z, according to the clock that is set from the network.
    #[default]
    Unix,
    /// The start of the logger's computer, according to its monotonic clock.
    Monotonic,
}

/// Options for computing the times of rows. The default is a robust fit on the Unix clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct TimeOptions {
    /// Method of computing times.
    pub axis: TimeAxis,
    /// The point in time at which times are zero. It also determines the clock.
    pub base: TimeBase,
}

impl TimeOptions {
    /// Creates options with an axis and a time base.
    pub fn new(axis: TimeAxis, base: TimeBase) -> Self {
        Self { axis, base }
    }
}

/// A straight piece of a time axis, which covers the rows `start..end`. The time of a row is `t0 +
/// round((row - start) * num / den)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) t0: i64,
    pub(crate) num: i64,
    pub(crate) den: i64,
}

impl Piece {
    pub(crate) fn at_true_rate(start: u64, end: u64, t0: i64, rate: u16) -> Self {
        Self { start, end, t0, num: TRUE_SECOND, den: rate.max(1).into() }
    }

    /// Returns the time of a row in nanoseconds. Returns `None` if the time does not fit into 64
    /// bits.
    pub(crate) fn time(&self, row: u64) -> Option<i64> {
        let rows = i128::from(row) - i128::from(self.start);
        let (num, den) = (i128::from(self.num), i128::from(self.den));
        let t = i128::from(self.t0) + (rows * num + den / 2).div_euclid(den);
        i64::try_from(t).ok()
    }

    /// Returns the first row whose exact time, before rounding, is at least `time`. The row may be
    /// after the end of this straight piece of the time axis.
    pub(crate) fn first_at(&self, time: i128) -> i128 {
        let later = time - i128::from(self.t0);
        if later <= 0 {
            return self.start.into();
        }
        let (num, den) = (i128::from(self.num), i128::from(self.den));
        // The exact time of row `start + n` is `t0 + n * num / den`. So the first row that is at
        // least `later` nanoseconds after `t0` has n = later * den / num, rounded up. If all rows
        // have the time `t0`, no row of this piece is late enough.
        if num <= 0 { self.end.into() } else { i128::from(self.start) + (later * den + num - 1) / num }
    }

    /// Returns the first row of this straight piece of the time axis whose time is at least `time`.
    fn first_from(&self, time: i64) -> u64 {
        let (mut low, mut high) = (self.start, self.end);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.time(middle).is_some_and(|t| t < time) { low = middle + 1 } else { high = middle }
        }
        low
    }
}

impl TimeBase {
    /// Returns the clock on which times with this base are measured.
    pub const fn clock(self) -> Clock {
        match self {
            Self::Unix => Clock::Unix,
            Self::Monotonic => Clock::Boot,
        }
    }
}

/// The times of all rows of a log on one time axis.
#[derive(Clone, Debug)]
pub struct TimeMap {
    pub(crate) pieces: Vec<Piece>,
    pub(crate) base: TimeBase,
    /// Unix time minus the time on this axis, in nanoseconds, at the first block time.
    pub(crate) to_unix: i64,
}

impl TimeMap {
    pub(crate) fn piece(&self, row: u64) -> Option<&Piece> {
        let at = self.pieces.partition_point(|piece| piece.end <= row);
        self.pieces.get(at).filter(|piece| piece.start <= row)
    }

    /// Returns the time of a row in nanoseconds. Returns `None` if the row has no time.
    pub fn time(&self, row: u64) -> Option<i64> {
        self.piece(row)?.time(row)
    }

    /// Returns the time of a row with its clock. Returns `None` if the row has no time.
    pub fn timestamp(&self, row: u64) -> Option<Timestamp> {
        Some(Timestamp::new(self.time(row)?, self.base.clock()))
    }

    /// Returns whether the times of rows never decrease.
    pub fn is_ascending(&self) -> bool {
        let mut before = Some(i64::MIN);
        self.pieces.iter().filter(|piece| piece.start < piece.end).all(|piece| {
            let first = piece.time(piece.start);
            let ascends = first >= before && piece.num >= 0;
            before = piece.time(piece.end - 1);
            ascends && before.is_some()
        })
    }

    /// Returns the range of rows that are on the same straight piece as `row`. Returns `None` if
    /// the row has no time.
    pub fn segment(&self, row: u64) -> Option<std::ops::Range<u64>> {
        self.piece(row).map(|piece| piece.start..piece.end)
    }

    /// Returns the rows whose times are in `start..end`, as ascending ranges of row numbers.
    pub fn rows_between(&self, start: Option<i64>, end: Option<i64>) -> Vec<std::ops::Range<u64>> {
        let mut ranges: Vec<std::ops::Range<u64>> = Vec::new();
        for piece in &self.pieces {
            let from = start.map_or(piece.start, |start| piece.first_from(start));
            let to = end.map_or(piece.end, |end| piece.first_from(end));
            if from < to {
                rovelog_core::internal::ranges::push(&mut ranges, from..to);
            }
        }
        ranges
    }

    /// Writes the times of the rows in `rows` to `out`. This does not need a division for each row.
    /// Returns false if a row has no time.
    ///
    /// # Panics
    /// Panics if `out` is shorter than `rows`.
    pub fn fill(&self, rows: std::ops::Range<u64>, out: &mut [i64]) -> bool {
        let mut row = rows.start;
        let mut out = out;
        while row < rows.end {
            let Some(piece) = self.piece(row) else { return false };
            let end = piece.end.min(rows.end);
            let (Some(first), Some(_)) = (piece.time(row), piece.time(end - 1)) else { return false };
            let count = usize::try_from(end - row).expect("as many as the output has");
            let (here, rest) = out.split_at_mut(count);
            piece.fill(row, first, here);
            out = rest;
            row = end;
        }
        true
    }
}

impl Piece {
    /// Writes the times of consecutive rows to `out`, starting with row `row`. `first` is the time
    /// of this row. The caller must have checked that the last time fits into 64 bits.
    fn fill(&self, row: u64, first: i64, out: &mut [i64]) {
        let (quotient, part) = (self.num.div_euclid(self.den), self.num.rem_euclid(self.den));
        let mut time = first;
        if part == 0 {
            for out in out {
                *out = time;
                time = time.wrapping_add(quotient);
            }
            return;
        }
        // Like Bresenham's algorithm, this adds the remainder `part` for each row, and carries when
        // the sum reaches `den`. With num / den = 7 / 16, the times round(row * 7 / 16) are 0 0 1 1
        // 2 2 3 3. The sum `over` starts at 8, which rounds to nearest, and grows by 7. Each time
        // that the sum reaches 16, the next time is larger by one.
        let exact =
            (i128::from(row) - i128::from(self.start)) * i128::from(self.num) + i128::from(self.den / 2);
        let mut over = i64::try_from(exact.rem_euclid(i128::from(self.den))).unwrap_or_default();
        for out in out {
            *out = time;
            over += part;
            let carry = i64::from(over >= self.den);
            over -= carry * self.den;
            time = time.wrapping_add(quotient + carry);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fill_equals_time() {
        let pieces = vec![
            Piece { start: 0, end: 1000, t0: -5, num: TRUE_SECOND, den: 3 },
            Piece { start: 1000, end: 1400, t0: 400_000_000_000, num: 7, den: 16 },
            Piece::at_true_rate(1400, 1500, 500_000_000_000, 1000),
        ];
        let map = TimeMap { pieces, base: TimeBase::Unix, to_unix: 0 };
        for rows in [0..1500, 3..1001, 999..1450, 1400..1401] {
            let mut out = vec![0; usize::try_from(rows.end - rows.start).unwrap()];
            assert!(map.fill(rows.clone(), &mut out));
            for (out, row) in out.iter().zip(rows) {
                assert_eq!(Some(*out), map.time(row), "row {row}");
            }
        }
        assert!(!map.fill(1499..1501, &mut [0; 2]));
        assert_eq!((map.segment(1399), map.segment(1500)), (Some(1000..1400), None));
        assert_eq!(map.rows_between(map.time(10), map.time(1450)), std::slice::from_ref(&(10..1450)));
    }
}
