//! The reader for pipes. It reads its input once, in bounded memory, and returns the same records
//! as the random-access reader.

use std::io::Read;
use std::ops::Range;

use rovelog_core::internal::scan::{Source, Stream};
use rovelog_core::{LogInfo, ReadOptions, Record};

use crate::definitions::{Definitions, RowShape};
use crate::diagnostics as rules;
use crate::error::UlogError;
use crate::locate::Search;
use crate::reader::valid_message;
use crate::scan::{ROW_AT, Scanner, Step};
use crate::state::Summary;
use crate::wire::Message;

/// Reads a ULog from a pipe.
///
/// The buffer contains one chunk of the input. If a message is longer than a chunk, the buffer
/// contains this message and the bytes after it that are needed to validate it. The buffer does not
/// grow with the log.
pub struct UlogStream<R> {
    pub(crate) stream: Stream<R, Scanner>,
    pub(crate) summary: Summary,
}

/// An item returned by [`UlogStream::next_item`].
#[derive(Debug)]
#[non_exhaustive]
pub enum StreamItem<'a> {
    /// A row of a topic.
    Record(Record<'a>),
    /// A valid message that is not a row, with its offset in the file.
    Message(u64, Message<'a>),
}

impl<R: Read> UlogStream<R> {
    /// Creates a stream and reads the header of the log.
    ///
    /// # Errors
    /// Returns an error if the input cannot be read, is not a ULog, ends inside its header, or uses
    /// incompatible features.
    pub fn new(input: R, options: &ReadOptions) -> Result<Self, UlogError> {
        Self::start(input, options, Search::Near)
    }

    /// Creates a stream for a log whose header may be damaged or missing. The first message may be
    /// anywhere in the first 40 MiB of the input, which are buffered.
    ///
    /// # Errors
    /// Returns an error if there is neither a header nor a message, and for the same reasons as
    /// [`new`](Self::new).
    pub fn salvage(input: R, options: &ReadOptions) -> Result<Self, UlogError> {
        Self::start(input, options, Search::Far)
    }

    fn start(input: R, options: &ReadOptions, search: Search) -> Result<Self, UlogError> {
        let (source, scan) = Source::start(input, |window| Scanner::start(window, options, search))?;
        Ok(Self { stream: Stream { source, scan }, summary: Summary::new(options.utc_start) })
    }

    /// Returns the next row or message in file order, or `None` at the end of the input.
    ///
    /// # Errors
    /// Returns an error if the input cannot be read.
    pub fn next_item(&mut self) -> Result<Option<StreamItem<'_>>, UlogError> {
        let step = self.step()?;
        Ok(self.item(step))
    }

    /// Adds a step of the scan to the summary, and returns the item that the step contains.
    pub(crate) fn item(&mut self, step: Step) -> Option<StreamItem<'_>> {
        match step {
            Step::Row { at, end, shape, time, before } => {
                let row = self.stream.source.bytes(at + ROW_AT as u64, end);
                let seq = self.summary.rows(shape.series);
                self.summary.row(shape.series, at, row.len(), time.micros(), before);
                if shape.flags & RowShape::UTC != 0 {
                    self.summary.gps_row(at, &self.stream.scan.definitions, shape, row);
                }
                self.summary.publish(&mut self.stream.scan, shape.series);
                let Scanner { definitions, clock, .. } = &self.stream.scan;
                let topic = &definitions.topics[shape.series as usize];
                let record = Record::new(topic, clock.timestamp(time), at, seq, row, definitions);
                Some(StreamItem::Record(record))
            }
            Step::Message { at, end, msg_type } => {
                let message = valid_message(self.stream.source.bytes(at, end));
                self.summary.message(msg_type, &message, self.stream.scan.definitions.in_data);
                Some(StreamItem::Message(at, message))
            }
            Step::End => {
                self.summary.finish(&mut self.stream.scan, None);
                None
            }
            Step::Lost { rule, .. } => {
                if ![&rules::UNKNOWN_ID, &rules::UNDECODABLE].contains(&rule) {
                    self.summary.data_lost();
                }
                None
            }
            Step::Unread { .. } => None,
            Step::SecondHeader { at, header, .. } => {
                let Stream { scan, .. } = &mut self.stream;
                // The UTC offset of the second log is unknown until its end. If the first log has a
                // UTC offset, this offset would also be applied to the second log. So the rows of
                // the second log get no time.
                scan.clock.is_unplaced = self.summary.utc(scan).is_some();
                self.summary.start_log(at, header, scan.clock.end_micros());
                None
            }
        }
    }

    /// Returns the next row, the next message or the end of the log. Lost bytes are added to the
    /// summary and the diagnostics.
    fn step(&mut self) -> Result<Step, UlogError> {
        loop {
            match self.stream.step(Source::fill)? {
                step @ (Step::Lost { .. } | Step::Unread { .. } | Step::SecondHeader { .. }) => {
                    drop(self.item(step));
                }
                step => return Ok(step),
            }
        }
    }

    /// Returns the current log time in microseconds.
    pub(crate) fn log_time(&self) -> u64 {
        self.stream.scan.clock.now
    }

    /// Scans the log to its end and returns all lost byte ranges. The diagnostics would contain
    /// only the first thousand of each kind.
    pub(crate) fn losses(mut self) -> Result<Vec<Range<u64>>, UlogError> {
        let mut losses = Vec::new();
        loop {
            let Stream { source, scan } = &mut self.stream;
            scan.rows(source.window(), |_, _| {});
            match self.stream.step(Source::fill)? {
                Step::Lost { at, end, .. } => losses.push(at..end),
                Step::End => return Ok(losses),
                _ => {}
            }
        }
    }

    /// Returns the next row in file order, or `None` at the end of the input.
    pub(crate) fn next_row(&mut self) -> Result<Option<Record<'_>>, UlogError> {
        let step = loop {
            match self.step()? {
                step @ Step::Message { .. } => drop(self.item(step)),
                step => break step,
            }
        };
        Ok(match self.item(step) {
            Some(StreamItem::Record(record)) => Some(record),
            _ => None,
        })
    }

    /// Returns the scanner, which describes the part of the log that has been read.
    pub(crate) fn scanner(&self) -> &Scanner {
        &self.stream.scan
    }

    /// Returns the summary of the part of the log that has been read.
    pub(crate) fn summary(&self) -> LogInfo {
        self.summary.info(&self.stream.scan, self.stream.source.window().end())
    }

    /// Returns the formats and subscriptions in the part of the log that has been read.
    pub fn definitions(&self) -> &Definitions {
        &self.stream.scan.definitions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes are discarded after they have been scanned, even if they contain no message.
    #[test]
    fn the_buffer_does_not_grow_with_the_log() -> Result<(), UlogError> {
        const SIZE: usize = 3 << 20;
        let mut log = b"ULog\x01\x12\x35\x01\0\0\0\0\0\0\0\0".to_vec();
        log.resize(SIZE, 0xFF);
        log.extend_from_slice(b"\x1f\0Fu:uint64_t timestamp;uint8_t v;\x04\0A\0\0\0u");
        while log.len() < 2 * SIZE {
            log.extend_from_slice(b"\x0b\0D\0\0\0\x10\0\0\0\0\0\0\x07");
        }
        let mut stream = UlogStream::new(&*log, &ReadOptions::default())?;
        let (mut items, mut largest) = (0, 0);
        while stream.next_item()?.is_some() {
            items += 1;
            largest = largest.max(stream.stream.source.window().data.len());
        }
        assert!(items > 200_000 && largest < 1 << 20, "{largest} bytes at once, {items} items");
        Ok(())
    }
}
