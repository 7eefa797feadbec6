//! Axes: maps from rows to nanoseconds, in pieces that are straight lines with exact slopes.

use super::TRUE_SECOND;

/// How rows are placed in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum TimeAxis {
    /// The nominal rate from the first stamp on. 3520 ppm too fast; what the header's rate suggests.
    Nominal,
    /// The true rate, 3125/3136 of the nominal one, from the first stamp on. What a stream can know.
    TrueRate,
    /// Straight lines between block stamps; the jitter of stamps bends the local rate by up to 500 ppm.
    BlockInterp,
    /// A robust fit over all stamps of the monotonic clock at the true rate: nearest to the truth.
    #[default]
    Fit,
}

/// Whose zero times count from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum TimeBase {
    /// 1970-01-01T00:00:00Z: the clock that is set from the network.
    #[default]
    Unix,
    /// The start of the logger's computer: the clock that nobody sets.
    Monotonic,
    /// The first row.
    Relative,
}

/// How to place rows in time. The default is a robust fit on the Unix clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct TimeOptions {
    /// The axis.
    pub axis: TimeAxis,
    /// The clock.
    pub base: TimeBase,
    /// Whether to take off the constant by which stamps are late before version 4.
    pub align: bool,
}

impl TimeOptions {
    /// An axis on a clock.
    pub fn new(axis: TimeAxis, base: TimeBase) -> Self {
        Self { axis, base, align: false }
    }

    /// The same without the latency of stamps.
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

    /// The time of a row; `None` past the range of 64 bits.
    pub(crate) fn time(&self, row: u64) -> Option<i64> {
        let rows = i128::from(row) - i128::from(self.start);
        let (num, den) = (i128::from(self.num), i128::from(self.den));
        let t = i128::from(self.t0) + (rows * num + den / 2).div_euclid(den);
        i64::try_from(t).ok()
    }

    /// The first row of the piece whose time is not before `time`.
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

    /// The time of a row, nanoseconds; `None` for rows without a time.
    pub fn time(&self, row: u64) -> Option<i64> {
        self.piece(row)?.time(row)
    }

    /// Whether no row's time is earlier than the one before it.
    pub fn is_ascending(&self) -> bool {
        let mut before = Some(i64::MIN);
        self.pieces.iter().filter(|piece| piece.start < piece.end).all(|piece| {
            let first = piece.time(piece.start);
            let ascends = first >= before && piece.num >= 0;
            before = piece.time(piece.end - 1);
            ascends && before.is_some()
        })
    }

    /// The rows around `row` that lie on one straight line with it; `None` for rows without a time.
    pub fn stretch(&self, row: u64) -> Option<std::ops::Range<u64>> {
        self.piece(row).map(|piece| piece.start..piece.end)
    }

    /// The rows with times in `start..end`, as ascending ranges.
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

    /// Writes the times of `rows` to `out`, without a division for each row; false where one has none.
    ///
    /// # Panics
    /// Where `out` has not as many places.
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
    /// Times from `row` on, the first of which is known and the last of which fits.
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
        // What is left over of the rounded division at `row`.
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
    fn filling_equals_asking() {
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
        assert_eq!((map.stretch(1399), map.stretch(1500)), (Some(1000..1400), None));
        assert_eq!(map.rows_between(map.time(10), map.time(1450)), std::slice::from_ref(&(10..1450)));
    }
}
