//! Time windows of fixed duration. Each row belongs to one window. The boundaries of windows are
//! exact fractions, so no rounding errors add up.

use std::ops::Range;

use crate::clock::{Piece, TimeMap};

/// Time at which the first window starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Phase {
    /// The first window starts at the first row.
    #[default]
    Start,
    /// The first window starts when the Unix clock, as set at the start of the log, shows a
    /// multiple of the window duration.
    Clock,
}

/// A time window that contains rows.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Window {
    /// Number of the window, counted from 0.
    pub number: u64,
    /// Rows whose start time is in the window.
    pub rows: Range<u64>,
    /// True if the log starts or ends inside this time window, so that the window is incomplete.
    pub partial: bool,
}

/// Iterator over the time windows that contain rows. Windows that lie entirely within a gap are
/// skipped. If a clock was set back, the current window continues until the clock reaches the
/// window's end again.
#[derive(Debug)]
pub struct Windows {
    pieces: Vec<Piece>,
    nanos: i128,
    /// Start time of window 0 in nanoseconds.
    start: i128,
    /// True if window 0 starts before the first row.
    starts_before: bool,
    rows: u64,
    row: u64,
    number: u64,
}

impl Windows {
    /// Creates windows of `nanos` nanoseconds over the first `rows` rows of a log. `times` has the
    /// times of rows. If rows have no times, their times are counted from 0 at the true rate for
    /// `rate`.
    pub fn new(nanos: i64, phase: Phase, times: &TimeMap, (rows, rate): (u64, u16)) -> Self {
        let nanos = i128::from(nanos.max(1));
        let mut pieces = times.pieces.clone();
        if pieces.is_empty() {
            pieces.push(Piece::at_true_rate(0, rows, 0, rate));
        }
        let first = pieces.first().map_or(0, |piece| i128::from(piece.t0));
        let before = match phase {
            Phase::Start => 0,
            Phase::Clock => (first + i128::from(times.to_unix)).rem_euclid(nanos),
        };
        let start = first - before;
        Self { pieces, nanos, start, starts_before: before > 0, rows, row: 0, number: 0 }
    }

    /// Returns the straight pieces of the time axis that contain the next row and all later rows.
    fn later_pieces(&self) -> &[Piece] {
        &self.pieces[self.pieces.partition_point(|piece| piece.end <= self.row)..]
    }

    /// Returns the number of the time window in which the next row starts. The numbers of windows
    /// must increase, so the result is at least the number after that of the previous window.
    fn number_of_next(&self) -> u64 {
        let number = self.later_pieces().first().map_or(0, |piece| {
            let (rows, den) = (self.row.saturating_sub(piece.start), i128::from(piece.den));
            let from_start =
                (i128::from(piece.t0) - self.start) * den + i128::from(rows) * i128::from(piece.num);
            u64::try_from(from_start.div_euclid(self.nanos * den)).unwrap_or_default()
        });
        number.max(self.number)
    }

    /// Returns the first row after the current window, and true if the log ends within this window.
    fn end(&self) -> (u64, bool) {
        let end = self.start + (i128::from(self.number) + 1) * self.nanos;
        let mut behind = 0;
        for piece in self.later_pieces() {
            let row = piece.first_at(end);
            if row < i128::from(piece.end) {
                return (u64::try_from(row).unwrap_or_default().max(self.row), false);
            }
            behind = row;
        }
        (self.rows, behind > i128::from(self.rows))
    }
}

impl Iterator for Windows {
    type Item = Window;

    fn next(&mut self) -> Option<Window> {
        if self.row >= self.rows {
            return None;
        }
        self.number = self.number_of_next();
        let (end, is_cut) = self.end();
        // Each window gets at least one row. Without this rule, invalid times could prevent the
        // iterator from ending.
        let rows = self.row..end.min(self.rows).max(self.row + 1);
        let (number, partial) = (self.number, is_cut || self.number == 0 && self.starts_before);
        (self.row, self.number) = (rows.end, number + 1);
        Some(Window { number, rows, partial })
    }
}
