//! Fixed windows: whole rows, boundaries in exact fractions.

use std::ops::Range;

use super::accumulate::Accumulator;
use super::stats::Stats;
use crate::clock::{TRUE_SECOND, TimeMap};

/// Where windows begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Phase {
    /// With the first row.
    #[default]
    Start,
    /// At multiples of their length on the Unix clock.
    Clock,
}

/// A window and what was summed in it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Window {
    /// Its number from the first one.
    pub number: u64,
    /// Its rows: those that begin in it.
    pub rows: Range<u64>,
    /// Whether the log begins or ends inside it.
    pub partial: bool,
    /// The sums.
    pub stats: Stats,
}

/// Windows over a log, one after the other.
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
    /// Windows of `nanos` nanoseconds over `rows` rows; `times` place the first row on the clock.
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

    /// The first row that begins in window `number` or later, among rows without end.
    fn first_row(&self, number: u64) -> i128 {
        let from_start = i128::from(number) * self.nanos - self.before;
        // Rounded up: row r begins at r * period.
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
