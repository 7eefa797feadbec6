//! Time axes: maps from rows to nanoseconds, in linear pieces with exact slopes.

use super::TRUE_SECOND;

/// A method to assign times to rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum TimeAxis {
    /// The nominal rate from the first block time on. 3520 ppm too fast; follows from the header's
    /// rate.
    Nominal,
    /// The true rate, 3125/3136 of the nominal one, from the first block time on. All that a stream
    /// can know.
    TrueRate,
    /// Linear interpolation between block times; their jitter changes the local rate by up to 500
    /// ppm.
    BlockInterp,
    /// A robust fit at the true rate over all block times of the monotonic clock: the most accurate
    /// axis.
    #[default]
    Fit,
}

/// The zero of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum TimeBase {
    /// 1970-01-01T00:00:00Z: the clock that is set from the network.
    #[default]
    Unix,
    /// The start of the logger's computer: the monotonic clock.
    Monotonic,
    /// The first row.
    Relative,
}

/// Options for the times of rows. The default is a robust fit on the Unix clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct TimeOptions {
    /// The axis.
    pub axis: TimeAxis,
    /// The clock.
    pub base: TimeBase,
    /// True to subtract the constant delay of block times before version 4.
    pub align: bool,
}

impl TimeOptions {
    /// Makes options with an axis and a clock.
    pub fn new(axis: TimeAxis, base: TimeBase) -> Self {
        Self { axis, base, align: false }
    }

    /// Subtracts the latency of block times.
    #[must_use]
    pub fn aligned(mut self) -> Self {
        self.align = true;
        self
    }
}

/// Rows `start..end` on a straight line: `t0 + round((row - start) * num / den)`.
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

    /// Returns the time of a row; `None` beyond 64 bits.
    pub(crate) fn time(&self, row: u64) -> Option<i64> {
        let rows = i128::from(row) - i128::from(self.start);
        let (num, den) = (i128::from(self.num), i128::from(self.den));
        let t = i128::from(self.t0) + (rows * num + den / 2).div_euclid(den);
        i64::try_from(t).ok()
    }

    /// Returns the first row that starts at `time` or later by exact times, as if the piece had no
    /// end.
    pub(crate) fn first_at(&self, time: i128) -> i128 {
        let later = time - i128::from(self.t0);
        if later <= 0 {
            return self.start.into();
        }
        let (num, den) = (i128::from(self.num), i128::from(self.den));
        // Rounded up: row r starts at r * num / den. Rows at one time are all before a later one.
        if num <= 0 { self.end.into() } else { i128::from(self.start) + (later * den + num - 1) / num }
    }

    /// Returns the first row of the piece whose time is not before `time`.
    fn first_from(&self, time: i64) -> u64 {
        let (mut low, mut high) = (self.start, self.end);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.time(middle).is_some_and(|t| t < time) { low = middle + 1 } else { high = middle }
        }
        low
    }
}

/// The times of a log's rows on one axis.
#[derive(Clone, Debug, Default)]
pub struct TimeMap {
    pub(crate) pieces: Vec<Piece>,
}

impl TimeMap {
    pub(crate) fn piece(&self, row: u64) -> Option<&Piece> {
        let at = self.pieces.partition_point(|piece| piece.end <= row);
        self.pieces.get(at).filter(|piece| piece.start <= row)
    }

    /// Returns the time of a row in nanoseconds; `None` for rows without a time.
    pub fn time(&self, row: u64) -> Option<i64> {
        self.piece(row)?.time(row)
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

    /// Returns the rows around `row` on the same straight line; `None` for rows without a time.
    pub fn segment(&self, row: u64) -> Option<std::ops::Range<u64>> {
        self.piece(row).map(|piece| piece.start..piece.end)
    }

    /// Returns the rows with times in `start..end`, as ascending ranges.
    pub fn rows_between(&self, start: Option<i64>, end: Option<i64>) -> Vec<std::ops::Range<u64>> {
        let mut ranges: Vec<std::ops::Range<u64>> = Vec::new();
        for piece in &self.pieces {
            let from = start.map_or(piece.start, |start| piece.first_from(start));
            let to = end.map_or(piece.end, |end| piece.first_from(end));
            if from < to {
                rovelog_core::ranges::push(&mut ranges, from..to);
            }
        }
        ranges
    }

    /// Writes the times of `rows` to `out` without a division per row; false if a row has no time.
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
    /// Writes the times from `row` on; the first one is given, and the last one is known to fit 64
    /// bits.
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
        // The remainder of the rounded division at `row`.
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
        let map = TimeMap { pieces };
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
