//! Events: ranges of rows in which a value is above a threshold, and runs in which digital channels
//! keep a state.

use std::ops::Range;

use super::accumulate::Accumulator;
use super::currents::{Current, Source};
use super::stats::Stats;
use crate::reader::RldReader;

/// Number of rows that are read at a time.
const GROUP: u64 = 4096;

/// The conditions for the start and the end of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Threshold {
    /// Raw value at or above which an event starts.
    pub(crate) enter: i64,
    /// Raw value below which an event ends; not above `enter`.
    pub(crate) leave: i64,
    /// Minimum number of rows; shorter events are dropped.
    pub(crate) min_rows: u64,
    /// Events with fewer rows between them are joined.
    pub(crate) join_rows: u64,
}

impl Threshold {
    /// Makes a threshold: events start at `enter` and end below `leave`.
    pub fn new(enter: i64, leave: i64) -> Self {
        Self { enter, leave: leave.min(enter), min_rows: 1, join_rows: 0 }
    }

    /// Drops events of fewer rows.
    #[must_use]
    pub fn at_least(mut self, rows: u64) -> Self {
        self.min_rows = rows;
        self
    }

    /// Joins events with fewer rows between them.
    #[must_use]
    pub fn joined_within(mut self, rows: u64) -> Self {
        self.join_rows = rows;
        self
    }
}

/// A range of rows above a threshold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its rows.
    pub rows: Range<u64>,
    /// Its sums.
    pub stats: Stats,
}

/// The value that is compared with a threshold.
#[derive(Clone, Debug)]
enum Watched {
    Channel(usize),
    Current(Current, u64),
}

/// Iterator over events.
#[derive(Debug)]
pub struct Events<'r, 'a> {
    reader: &'a RldReader,
    sums: &'r mut Accumulator<'a>,
    watched: Watched,
    threshold: Threshold,
    /// The next row, and the values from there on.
    row: u64,
    ahead: std::vec::IntoIter<Option<i64>>,
}

impl<'r, 'a> Events<'r, 'a> {
    /// Makes the events of an analog channel's raw values.
    pub fn of_channel(
        reader: &'a RldReader,
        sums: &'r mut Accumulator<'a>,
        channel: usize,
        threshold: Threshold,
    ) -> Self {
        Self {
            reader,
            sums,
            watched: Watched::Channel(channel),
            threshold,
            row: 0,
            ahead: Vec::new().into_iter(),
        }
    }

    /// Makes the events of a merged current, at the scale of its low channel.
    pub fn of_current(
        reader: &'a RldReader,
        sums: &'r mut Accumulator<'a>,
        current: &Current,
        margin: u64,
        threshold: Threshold,
    ) -> Self {
        let watched = Watched::Current(current.clone(), margin);
        Self { reader, sums, watched, threshold, row: 0, ahead: Vec::new().into_iter() }
    }

    /// Returns the value of the next row; a missing one is below everything.
    fn value(&mut self) -> Option<i64> {
        if self.ahead.as_slice().is_empty() {
            let rows = self.row..self.reader.rows().min(self.row + GROUP);
            let values: Vec<Option<i64>> = match &self.watched {
                Watched::Channel(channel) => {
                    rows.map(|row| self.reader.row(row).and_then(|row| row.raw(*channel))).collect()
                }
                Watched::Current(current, margin) => {
                    let merged = self.reader.merged(current, *margin, rows);
                    merged
                        .into_iter()
                        .map(|(source, value)| (source != Source::Missing).then_some(value))
                        .collect()
                }
            };
            self.ahead = values.into_iter();
        }
        let value = self.ahead.next()?;
        self.row += 1;
        Some(value.unwrap_or(i64::MIN))
    }

    /// Returns the next range above the threshold, before short ones are dropped.
    fn range(&mut self) -> Option<Range<u64>> {
        let enter = self.threshold.enter;
        let start = loop {
            if self.value()? >= enter {
                break self.row - 1;
            }
        };
        // The end so far, which can still be joined with the next range.
        let mut end = None;
        while let Some(value) = self.value() {
            match end {
                None if value < self.threshold.leave => end = Some(self.row - 1),
                Some(_) if value >= enter => end = None,
                _ => {}
            }
            // What starts now is an event of its own.
            if end.is_some_and(|ended| self.row - ended >= self.threshold.join_rows) {
                break;
            }
        }
        Some(start..end.unwrap_or(self.row))
    }
}

impl Iterator for Events<'_, '_> {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        loop {
            let rows = self.range()?;
            if rows.end - rows.start >= self.threshold.min_rows {
                return Some(Event { stats: self.sums.stats(rows.clone()), rows });
            }
        }
    }
}

/// A run of rows in which some binary channels keep their values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateRun {
    /// The values: bit i is that of the i-th requested channel.
    pub state: u64,
    /// Its rows.
    pub rows: Range<u64>,
    /// Its sums.
    pub stats: Stats,
}

/// Iterator over runs.
#[derive(Debug)]
pub struct StateRuns<'r, 'a> {
    reader: &'a RldReader,
    sums: &'r mut Accumulator<'a>,
    bits: Vec<usize>,
    row: u64,
}

impl<'r, 'a> StateRuns<'r, 'a> {
    /// Makes the runs of states of up to 64 binary channels.
    pub fn new(reader: &'a RldReader, sums: &'r mut Accumulator<'a>, bits: &[usize]) -> Self {
        Self { reader, sums, bits: bits.iter().take(64).copied().collect(), row: 0 }
    }

    fn state(&self, row: u64) -> Option<u64> {
        let row = self.reader.row(row)?;
        let bit = |(i, bit): (usize, &usize)| u64::from(row.bit(*bit).unwrap_or_default()) << i;
        Some(self.bits.iter().enumerate().map(bit).sum())
    }
}

impl Iterator for StateRuns<'_, '_> {
    type Item = StateRun;

    fn next(&mut self) -> Option<StateRun> {
        let start = self.row;
        let state = self.state(start)?;
        self.row += 1;
        while self.state(self.row) == Some(state) {
            self.row += 1;
        }
        let rows = start..self.row;
        Some(StateRun { state, stats: self.sums.stats(rows.clone()), rows })
    }
}
