//! Fixed windows: whole rows, boundaries in exact fractions.

use std::ops::Range;

use super::accumulate::Accumulator;
use super::stats::Stats;
use crate::clock::{TRUE_SECOND, TimeMap};

/// Start of the windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Phase {
    /// The first row.
    #[default]
    Start,
    /// Multiples of their length on the Unix clock.
    Clock,
}

/// A window and its sums.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Window {
    /// Number of the window, from the first one.
    pub number: u64,
    /// Rows that start in the window.
    pub rows: Range<u64>,
    /// True if the log starts or ends inside the window.
    pub partial: bool,
    /// The sums.
    pub stats: Stats,
}

/// Iterator over the windows of a log.
#[derive(Debug)]
pub struct Windows<'r, 'a> {
    sums: &'r mut Accumulator<'a>,
    nanos: i128,
    rate: i128,
    /// Nanoseconds from the start of the first window to the first row.
    before: i128,
    rows: u64,
    number: u64,
}

impl<'r, 'a> Windows<'r, 'a> {
    /// Makes windows of `nanos` nanoseconds over `rows` rows; `times` gives the time of the first
    /// row.
    pub fn new(
        sums: &'r mut Accumulator<'a>,
        nanos: i64,
        phase: Phase,
        times: &TimeMap,
        (rows, rate): (u64, u16),
    ) -> Self {
        let nanos = i128::from(nanos.max(1));
        let before = match phase {
            Phase::Start => 0,
            Phase::Clock => times.time(0).map_or(0, |first| i128::from(first).rem_euclid(nanos)),
        };
        Self { sums, nanos, rate: rate.max(1).into(), before, rows, number: 0 }
    }

    /// Returns the first row that starts in window `number` or later, regardless of the end of the
    /// log.
    fn first_row(&self, number: u64) -> i128 {
        let from_start = i128::from(number) * self.nanos - self.before;
        // Rounded up: row r starts at r * period.
        (from_start * self.rate + i128::from(TRUE_SECOND) - 1).div_euclid(i128::from(TRUE_SECOND)).max(0)
    }
}

impl Iterator for Windows<'_, '_> {
    type Item = Window;

    fn next(&mut self) -> Option<Window> {
        let (from, to) = (self.first_row(self.number), self.first_row(self.number + 1));
        if from >= i128::from(self.rows) {
            return None;
        }
        let end = to.min(self.rows.into());
        let row = |row: i128| u64::try_from(row).unwrap_or(u64::MAX);
        let rows = row(from)..row(end);
        let number = self.number;
        self.number += 1;
        let partial = to > self.rows.into() || number == 0 && self.before > 0;
        Some(Window { number, partial, stats: self.sums.stats(rows.clone()), rows })
    }
}
