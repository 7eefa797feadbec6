//! Two kinds of ranges in a log: events, in which a value is above a threshold, and ranges in which
//! digital channels do not change.

use std::ops::Range;

use super::currents::{Current, Source};
use crate::reader::RldReader;

/// Number of rows whose values are read at once.
const GROUP: u64 = 4096;

/// Conditions under which an event starts and ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Threshold {
    /// An event starts at the first raw value of at least `enter`.
    pub(crate) enter: i64,
    /// An event ends at the first raw value below `leave`. `leave` is at most `enter`.
    pub(crate) leave: i64,
    /// Minimum number of rows in an event. Shorter events are dropped.
    pub(crate) min_rows: u64,
    /// If there are fewer than `join_rows` rows between two events, the events are joined.
    pub(crate) join_rows: u64,
}

impl Threshold {
    /// Creates a threshold. Events start at raw values of at least `enter`, and end at raw values
    /// below `leave`.
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

/// The signal that is compared with the threshold.
#[derive(Clone, Debug)]
enum Signal {
    Channel(usize),
    Current(Current, u64),
}

/// Iterator over the events in a log, that is, the ranges of rows in which a signal is above the
/// threshold.
#[derive(Debug)]
pub struct Events<'a> {
    reader: &'a RldReader,
    signal: Signal,
    threshold: Threshold,
    /// Number of the next row to compare with the threshold.
    row: u64,
    /// Values of the rows that follow, starting with row number `row`.
    buffered: std::vec::IntoIter<Option<i64>>,
}

impl<'a> Events<'a> {
    /// Creates an iterator over the events of an analog channel. The threshold applies to the raw
    /// values of the channel.
    pub fn of_channel(reader: &'a RldReader, channel: usize, threshold: Threshold) -> Self {
        Self::new(reader, Signal::Channel(channel), threshold)
    }

    /// Creates an iterator over the events of a merged current. The threshold applies to the values
    /// at the scale of the low channel.
    pub fn of_current(reader: &'a RldReader, current: &Current, margin: u64, threshold: Threshold) -> Self {
        Self::new(reader, Signal::Current(current.clone(), margin), threshold)
    }

    fn new(reader: &'a RldReader, signal: Signal, threshold: Threshold) -> Self {
        Self { reader, signal, threshold, row: 0, buffered: Vec::new().into_iter() }
    }

    /// Returns the value of the next row. A row without a value counts as below any threshold.
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

    /// Returns the next range of rows above the threshold. The caller drops ranges that are too
    /// short.
    fn range(&mut self) -> Option<Range<u64>> {
        let enter = self.threshold.enter;
        let start = loop {
            if self.value()? >= enter {
                break self.row - 1;
            }
        };
        // Row at which the event ends, unless the next range above the threshold is close enough to
        // be joined.
        let mut end = None;
        while let Some(value) = self.value() {
            match end {
                None if value < self.threshold.leave => end = Some(self.row - 1),
                Some(_) if value >= enter => end = None,
                _ => {}
            }
            // If another range above the threshold starts at this row or later, it is a separate
            // event.
            if end.is_some_and(|ended| self.row - ended >= self.threshold.join_rows) {
                break;
            }
        }
        Some(start..end.unwrap_or(self.row))
    }
}

impl Iterator for Events<'_> {
    type Item = Range<u64>;

    fn next(&mut self) -> Option<Range<u64>> {
        loop {
            let rows = self.range()?;
            if rows.end - rows.start >= self.threshold.min_rows {
                return Some(rows);
            }
        }
    }
}

/// Consecutive rows in which the requested binary channels do not change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateRun {
    /// Values of the channels. Bit i is the value of the channel with index i in the list of
    /// requested channels.
    pub state: u64,
    /// Range of row numbers in which the channels keep these values.
    pub rows: Range<u64>,
}

/// Iterator over the ranges of rows in which the requested binary channels do not change.
#[derive(Debug)]
pub struct StateRuns<'a> {
    reader: &'a RldReader,
    bits: Vec<usize>,
    row: u64,
}

impl<'a> StateRuns<'a> {
    /// Creates an iterator over the ranges of rows in which up to 64 binary channels do not change.
    pub fn new(reader: &'a RldReader, bits: &[usize]) -> Self {
        Self { reader, bits: bits.iter().take(64).copied().collect(), row: 0 }
    }

    fn state(&self, row: u64) -> Option<u64> {
        let row = self.reader.row(row)?;
        let bit = |(i, bit): (usize, &usize)| u64::from(row.bit(*bit).unwrap_or_default()) << i;
        Some(self.bits.iter().enumerate().map(bit).sum())
    }
}

impl Iterator for StateRuns<'_> {
    type Item = StateRun;

    fn next(&mut self) -> Option<StateRun> {
        let start = self.row;
        let state = self.state(start)?;
        self.row += 1;
        while self.state(self.row) == Some(state) {
            self.row += 1;
        }
        Some(StateRun { state, rows: start..self.row })
    }
}
