//! Dropouts, and estimates of the rows that topics lost in them.
//!
//! A dropout message contains the time during which the logger could not write, but not the
//! messages that were lost. For a topic with a constant rate, the number of lost rows can be
//! estimated from the gap between the last row before the dropout and the first row after it.
//!
//! # Example
//!
//! A topic has a row every 10 ms. The last row before a dropout is at 200 ms, and the first row
//! after the dropout is at 270 ms. The gap of 70 ms has space for 7 periods, so 6 rows are missing.

use std::ops::Range;

use rovelog_core::{LogReader, Timestamp, TopicId};

use crate::clock::nanos_of;
use crate::reader::UlogReader;
use crate::scan::RowInfo;
use crate::wire::{self, Message, kind};

/// A period in which messages were lost, as reported by the logger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Dropout {
    /// Log time at the dropout message. The message itself does not contain a time.
    pub time: Option<Timestamp>,
    /// Duration of the dropout in milliseconds.
    pub millis: u16,
    /// Offset of the dropout message in the file.
    pub offset: u64,
}

impl Dropout {
    /// Returns the time range of the dropout in nanoseconds, or `None` if its time is unknown.
    pub fn span(&self) -> Option<Range<i64>> {
        let start = self.time?.nanos;
        Some(start..start.saturating_add(i64::from(self.millis) * 1_000_000))
    }
}

/// Estimated number of rows that a topic lost in a dropout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DropoutLoss {
    /// The topic that lost rows.
    pub topic: TopicId,
    /// Index of the dropout in [`UlogReader::dropouts`]. If there are several dropouts between two
    /// rows of the topic, this is the first of them.
    pub dropout: usize,
    /// Time between the last row before the dropout and the first row after it, in nanoseconds.
    pub gap: i64,
    /// Median time between two rows of the topic, in nanoseconds.
    pub period: i64,
    /// Estimated number of rows of the topic that are missing in this gap.
    pub missing: u64,
}

/// Maximum number of intervals between rows from which the period of a topic is computed.
const SAMPLE: usize = 1024;

/// Minimum number of intervals between rows from which the period of a topic is computed.
const MIN_INTERVALS: usize = 8;

/// Collects the intervals between the rows of a topic.
#[derive(Default)]
struct Rate {
    /// Time of the topic's last row in microseconds.
    last: Option<u64>,
    /// Intervals between consecutive rows of the topic, in microseconds.
    intervals: Vec<u64>,
}

impl Rate {
    fn row(&mut self, micros: u64) {
        let last = self.last.replace(micros);
        if let Some(interval) = last.and_then(|last| micros.checked_sub(last))
            && self.intervals.len() < SAMPLE
        {
            self.intervals.push(interval);
        }
    }

    /// Returns the median interval, or `None` if the rate of the topic is not constant.
    ///
    /// The rate is constant if at least nine of ten intervals differ from the median by at most
    /// half of the median.
    fn period(mut self) -> Option<u64> {
        self.intervals.sort_unstable();
        let median = *self.intervals.get(self.intervals.len() / 2).filter(|median| **median > 0)?;
        let near = self.intervals.iter().filter(|interval| interval.abs_diff(median) * 2 <= median).count();
        (self.intervals.len() >= MIN_INTERVALS && near * 10 >= self.intervals.len() * 9).then_some(median)
    }
}

impl UlogReader {
    /// Returns the dropouts that the logger reported, in file order.
    pub fn dropouts(&self) -> Vec<Dropout> {
        let mut dropouts = Vec::new();
        if !self.has_messages(&[kind::DROPOUT]) {
            return dropouts;
        }
        let mut cursor = self.cursor();
        while let Some(msg) = cursor.next() {
            if msg.msg_type == kind::DROPOUT
                && let Some(Message::Dropout(wire::Dropout { duration: millis })) = msg.message()
            {
                dropouts.push(Dropout { time: cursor.clock.now(), millis, offset: msg.at });
            }
        }
        dropouts
    }

    /// Estimates the number of rows that topics lost in dropouts. The result is sorted by dropout,
    /// then by topic.
    ///
    /// Topics without a constant rate are skipped. Their rows are logged when an event occurs, so a
    /// gap does not show that rows are missing.
    pub fn dropout_losses(&self) -> Vec<DropoutLoss> {
        let mut rates: Vec<_> = self.topics().iter().map(|_| Rate::default()).collect();
        // Stale times outside of the log's data are ignored, because they would look like gaps.
        let data = self.info().span();
        let timed = |row: &RowInfo| {
            let (start, end) = data?;
            row.time.nanos().filter(|nanos| (start.nanos..=end.nanos).contains(nanos))?;
            row.time.micros()
        };
        for msg in self.cursor() {
            if let Some((row, micros)) = msg.row.and_then(|row| Some((row, timed(&row)?))) {
                rates[row.series as usize].row(micros);
            }
        }
        let periods: Vec<_> = rates.into_iter().map(Rate::period).collect();
        // For each topic, the time of its last row, and the number of dropouts before this row.
        let mut before = vec![None; periods.len()];
        let (mut dropouts, mut losses) = (0, Vec::new());
        for msg in self.cursor() {
            let Some(row) = msg.row else {
                dropouts += usize::from(msg.msg_type == kind::DROPOUT);
                continue;
            };
            let series = row.series as usize;
            let (Some(period), Some(micros)) = (periods[series], timed(&row)) else { continue };
            let last = before[series].replace((micros, dropouts));
            let Some((from, seen)) = last.filter(|(_, seen)| *seen < dropouts) else { continue };
            let gap = micros.saturating_sub(from);
            let missing = ((gap + period / 2) / period).saturating_sub(1);
            if missing > 0 {
                let (topic, gap, period) = (TopicId(row.series), nanos_of(gap), nanos_of(period));
                losses.push(DropoutLoss { topic, dropout: seen, gap, period, missing });
            }
        }
        losses.sort_by_key(|loss| (loss.dropout, loss.topic));
        losses
    }
}

#[cfg(test)]
mod tests {
    use rovelog_core::ReadOptions;

    use super::*;
    use crate::{FormatBuilder, UlogError, UlogWriter};

    #[test]
    fn losses_are_estimated_for_topics_with_a_constant_rate() -> Result<(), UlogError> {
        let mut log = UlogWriter::new(Vec::new(), 0)?;
        for name in ["steady", "rare"] {
            log.define(&FormatBuilder::new(name).field::<u64>("timestamp"))?;
        }
        let (steady, rare) = (log.subscribe("steady", 0)?, log.subscribe("rare", 0)?);
        let row =
            |log: &mut UlogWriter<_>, topic, micros: u64| log.write_row_bytes(topic, &micros.to_le_bytes());
        for i in 1..=20 {
            row(&mut log, steady, i * 10_000)?;
            if i % 5 == 0 {
                row(&mut log, rare, i * i * 500)?;
            }
        }
        log.dropout(60)?;
        // The rows at 210, 220, 230, 240, 250 and 260 ms are missing.
        for i in 27..=40 {
            row(&mut log, steady, i * 10_000)?;
        }
        log.dropout(5)?;
        row(&mut log, steady, 410_000)?;
        row(&mut log, rare, 500_000)?;
        let log = UlogReader::new(log.finish()?.into(), &ReadOptions::default())?;
        let loss =
            DropoutLoss { topic: TopicId(0), dropout: 0, gap: 70_000_000, period: 10_000_000, missing: 6 };
        assert_eq!(log.dropout_losses(), [loss]);
        assert_eq!(log.dropouts().iter().map(|dropout| dropout.millis).collect::<Vec<_>>(), [60, 5]);
        Ok(())
    }
}
