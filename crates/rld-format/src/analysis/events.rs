//! Events, which are ranges of rows in which a value is above a threshold, and runs of rows in
//! which digital channels keep a state.

use std::ops::Range;

use super::accumulate::Accumulator;
use super::currents::{Current, Source};
use super::stats::Stats;
use crate::reader::RldReader;

/// Number of rows whose values are read at a time.
const GROUP: u64 = 4096;

/// Conditions for the start and the end of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Threshold {
    /// An event starts at a raw value of at least `enter`.
    pub(crate) enter: i64,
    /// An event ends at a raw value below `leave`, which is at most `enter`.
    pub(crate) leave: i64,
    /// Minimum number of rows of an event. Shorter events are dropped.
    pub(crate) min_rows: u64,
    /// Two events with fewer than `join_rows` rows between them are joined.
    pub(crate) join_rows: u64,
}

impl Threshold {
    /// Creates a threshold. Events start at `enter` and end below `leave`.
    pub fn new(enter: i64, leave: i64) -> Self {
        Self { enter, leave: leave.min(enter), min_rows: 1, join_rows: 0 }
    }

    /// Drops events that have fewer than `rows` rows.
    #[must_use]
    pub fn at_least(mut self, rows: u64) -> Self {
        self.min_rows = rows;
        self
    }

    /// Joins events that have fewer than `rows` rows between them.
    #[must_use]
    pub fn joined_within(mut self, rows: u64) -> Self {
        self.join_rows = rows;
        self
    }
}

/// A range of rows in which a value is above the threshold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its rows.
    pub rows: Range<u64>,
    /// Its sums.
    pub stats: Stats,
}

/// The signal that is compared with the threshold.
#[derive(Clone, Debug)]
enum Signal {
    Channel(usize),
    Current(Current, u64),
}

/// Iterator over events.
#[derive(Debug)]
pub struct Events<'r, 'a> {
    reader: &'a RldReader,
    sums: &'r mut Accumulator<'a>,
    signal: Signal,
    threshold: Threshold,
    /// Number of the next row.
    row: u64,
    /// Values of the rows that start with `row`.
    buffered: std::vec::IntoIter<Option<i64>>,
}

impl<'r, 'a> Events<'r, 'a> {
    /// Creates an iterator over the events of an analog channel, by its raw values.
    pub fn of_channel(
        reader: &'a RldReader,
        sums: &'r mut Accumulator<'a>,
        channel: usize,
        threshold: Threshold,
    ) -> Self {
        Self {
            reader,
            sums,
            signal: Signal::Channel(channel),
            threshold,
            row: 0,
            buffered: Vec::new().into_iter(),
        }
    }

    /// Creates an iterator over the events of a merged current, by values at the scale of its low
    /// channel.
    pub fn of_current(
        reader: &'a RldReader,
        sums: &'r mut Accumulator<'a>,
        current: &Current,
        margin: u64,
        threshold: Threshold,
    ) -> Self {
        let signal = Signal::Current(current.clone(), margin);
        Self { reader, sums, signal, threshold, row: 0, buffered: Vec::new().into_iter() }
    }

    /// Returns the value of the next row. A missing value counts as below any threshold.
    fn value(&mut self) -> Option<i64> {
        if self.buffered.as_slice().is_empty() {
            let rows = self.row..self.reader.rows().min(self.row + GROUP);
            let values: Vec<Option<i64>> = match &self.signal {
                Signal::Channel(channel) => {
                    rows.map(|row| self.reader.row(row).and_then(|row| row.raw(*channel))).collect()
                }
                Signal::Current(current, margin) => {
                    let merged = self.reader.merged(current, *margin, rows);
                    merged
                        .into_iter()
                        .map(|(source, value)| (source != Source::Missing).then_some(value))
                        .collect()
                }
            };
            self.buffered = values.into_iter();
        }
        let value = self.buffered.next()?;
        self.row += 1;
        Some(value.unwrap_or(i64::MIN))
    }

    /// Returns the next range of rows above the threshold. Short ranges are dropped by the caller.
    fn range(&mut self) -> Option<Range<u64>> {
        let enter = self.threshold.enter;
        let start = loop {
            if self.value()? >= enter {
                break self.row - 1;
            }
        };
        // The end of the event, unless the next range is close enough to be joined.
        let mut end = None;
        while let Some(value) = self.value() {
            match end {
                None if value < self.threshold.leave => end = Some(self.row - 1),
                Some(_) if value >= enter => end = None,
                _ => {}
            }
            // A range that starts from here on is a separate event.
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

/// A run of rows in which the requested binary channels keep their values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateRun {
    /// The values of the channels. Bit i is the value of the i-th requested channel.
    pub state: u64,
    /// Its rows.
    pub rows: Range<u64>,
    /// Its sums.
    pub stats: Stats,
}

/// Iterator over runs of states.
#[derive(Debug)]
pub struct StateRuns<'r, 'a> {
    reader: &'a RldReader,
    sums: &'r mut Accumulator<'a>,
    bits: Vec<usize>,
    row: u64,
}

impl<'r, 'a> StateRuns<'r, 'a> {
    /// Creates an iterator over the runs of states of up to 64 binary channels.
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
