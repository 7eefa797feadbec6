//! Dropouts, and what the topics lost by them.
//!
//! A dropout says how long the logger could not write, not what it did not write. A topic with a
//! steady rate tells: between its last row before the message and its first behind it is a gap, and
//! so many periods fit into it.

use std::ops::Range;

use rovelog_core::{LogReader, Timestamp, TopicId};

use crate::reader::UlogReader;
use crate::scan::MetRow;
use crate::wire::{self, Message, kind};

/// A segment of time from which messages are missing, as the logger itself reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Dropout {
    /// The log time at its place; a dropout has no time of its own.
    pub time: Option<Timestamp>,
    /// Its length in milliseconds.
    pub millis: u16,
    /// The offset of the message.
    pub offset: u64,
}

impl Dropout {
    /// Returns the time that it covers, nanoseconds; `None` without a time.
    pub fn span(&self) -> Option<Range<i64>> {
        let start = self.time?.nanos;
        Some(start..start.saturating_add(i64::from(self.millis) * 1_000_000))
    }
}

/// What a topic lost by a dropout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DropoutLoss {
    /// The topic.
    pub topic: TopicId,
    /// Which of the log's dropouts; where several lie in one gap, the first.
    pub dropout: usize,
    /// From its last row before to its first row behind, nanoseconds.
    pub gap: i64,
    /// Its usual time from row to row, nanoseconds: the median.
    pub period: i64,
    /// The rows that would have fitted into the gap.
    pub missing: u64,
}

/// Intervals of a topic that are looked at.
const SAMPLE: usize = 1024;

/// Fewer intervals than this tell no rate.
const MIN_INTERVALS: usize = 8;

/// The rate of a topic, in the making.
#[derive(Default)]
struct Rate {
    last: Option<u64>,
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

    /// Returns the median interval, where nine of ten lie within a half of it: a steady topic.
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
        let mut cursor = self.cursor();
        let mut dropouts = Vec::new();
        while let Some(met) = cursor.next() {
            if met.msg_type == kind::DROPOUT
                && let Some(Message::Dropout(wire::Dropout { duration: millis })) = met.message()
            {
                dropouts.push(Dropout { time: cursor.clock.now(), millis, offset: met.at });
            }
        }
        dropouts
    }

    /// Returns what topics of a steady rate lost by the dropouts, by dropout and then by topic. A
    /// topic whose rows come as something happens tells nothing, and is not among them.
    pub fn dropout_losses(&self) -> Vec<DropoutLoss> {
        let mut rates: Vec<_> = self.topics().iter().map(|_| Rate::default()).collect();
        // A stale time tells nothing about a gap.
        let data = self.info().span();
        let timed = |row: &MetRow| {
            let (start, end) = data?;
            row.time.nanos().filter(|nanos| (start.nanos..=end.nanos).contains(nanos))?;
            row.time.micros()
        };
        for met in self.cursor() {
            if let Some((row, micros)) = met.row.and_then(|row| Some((row, timed(&row)?))) {
                rates[row.series as usize].row(micros);
            }
        }
        let periods: Vec<_> = rates.into_iter().map(Rate::period).collect();
        // For each topic: its last time, and how many dropouts there were by then.
        let mut before = vec![None; periods.len()];
        let (mut dropouts, mut losses) = (0, Vec::new());
        for met in self.cursor() {
            let Some(row) = met.row else {
                dropouts += usize::from(met.msg_type == kind::DROPOUT);
                continue;
            };
            let series = row.series as usize;
            let (Some(period), Some(micros)) = (periods[series], timed(&row)) else { continue };
            let last = before[series].replace((micros, dropouts));
            let Some((from, seen)) = last.filter(|(_, seen)| *seen < dropouts) else { continue };
            let gap = micros.saturating_sub(from);
            let missing = ((gap + period / 2) / period).saturating_sub(1);
            if missing > 0 {
                let nanos = |micros: u64| i64::try_from(micros).unwrap_or(i64::MAX).saturating_mul(1000);
                let topic = TopicId(row.series);
                losses.push(DropoutLoss {
                    topic,
                    dropout: seen,
                    gap: nanos(gap),
                    period: nanos(period),
                    missing,
                });
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
    fn steady_topics_tell_what_a_dropout_cost() -> Result<(), UlogError> {
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
        // Of 210, 220, ... 260 ms nothing was written.
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
