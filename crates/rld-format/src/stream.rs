//! The stream reader. It reads the input once in bounded memory, and returns the same rows as the
//! random-access reader. The rows of a block are returned after the times of the next block have
//! been read. These times show that no byte of the block is missing. If bytes are missing, a few
//! blocks are buffered to find the block at which reading resumes.
//!
//! The times of rows are counted at the true rate from the first block time of each segment without
//! a gap, because later block times are not known yet. The random-access reader fits a line to all
//! block times instead. The two times of a row differ by the delay of the first block time, which
//! is at most half a millisecond in known logs.
//!
//! The times are on the Unix clock, even if the Unix clock is set later in the log, because this is
//! not known at the start. If [`ReadOptions::clock`] selects the monotonic clock, the times are on
//! that clock and have no UTC.

use std::io::Read;

use rovelog_core::internal::scan::Source;
use rovelog_core::{
    Clock, Diagnostics, FormatInfo, LogInfo, LogStream, ReadOptions, Record, Timestamp, Topic,
};
use zerocopy::FromBytes;

use crate::clock::{TimeBase, follows, is_plausible};
use crate::error::RldError;
use crate::log_scan::LogScan;
use crate::resync::{BlockScan, Step};
use crate::schema::Channel;
use crate::state::{self, ReadResult};
use crate::validate::validate;
use crate::wire::{BLOCK_TIMES_LEN, BlockTimes, Header};

/// An input stream with a read position.
#[derive(Debug)]
struct Input<R> {
    source: Source<R>,
    /// Offset of the first byte that has not been consumed yet.
    at: u64,
}

impl<R: Read> Input<R> {
    /// Returns the buffered bytes that have not been consumed yet.
    fn ahead(&self) -> &[u8] {
        let window = self.source.window();
        &window.data[usize::try_from(self.at - window.base).expect("within the window")..]
    }

    /// Skips `bytes` bytes. If the input ends earlier, skips the remaining bytes. Returns the
    /// number of skipped bytes.
    fn skip_up_to(&mut self, bytes: u64) -> std::io::Result<u64> {
        let mut skipped = 0;
        while skipped < bytes && self.need(1)? {
            let ahead = (bytes - skipped).min(self.ahead().len() as u64);
            self.at += ahead;
            skipped += ahead;
        }
        Ok(skipped)
    }

    /// Buffers the next `bytes` bytes. Returns false if the input ends before it has that many
    /// bytes.
    fn need(&mut self, bytes: u64) -> std::io::Result<bool> {
        let until = self.at.saturating_add(bytes);
        if self.source.window().end() < until {
            self.source.fill(self.at, until)?;
        }
        Ok(self.source.window().end() >= until)
    }

    /// Returns the block times at the read position. Returns `None` if the input ends before their
    /// end.
    fn block_times(&mut self) -> std::io::Result<Option<BlockTimes>> {
        self.need(BLOCK_TIMES_LEN)?;
        Ok(BlockTimes::ref_from_prefix(self.ahead()).ok().map(|(block_times, _)| *block_times))
    }
}

/// An RLD log that is read from a stream. At most the header and a few blocks are in memory.
#[derive(Debug)]
pub struct RldStream<R> {
    input: Input<R>,
    scan: LogScan,
    base: TimeBase,
    block_scan: BlockScan,
    /// Upper bound for the number of rows in the current block that have not been returned yet.
    left: u64,
    /// Times of the last block that was read.
    block_times: Option<BlockTimes>,
    done: bool,
}

impl<R: Read> RldStream<R> {
    /// Reads the header of a log.
    ///
    /// # Errors
    /// Returns an error if the input cannot be read, is not an RLD file, ends inside the header, or
    /// has an unknown version.
    pub fn new(input: R, options: &ReadOptions) -> Result<Self, RldError> {
        let (source, validated) =
            Source::start(input, |head| match validate(head.data, head.eof.then_some(head.end())) {
                Ok(validated) => validated.map(Ok),
                Err(error) => Ok(Err(error)),
            })?;
        let (at, block_scan) = (validated.header.size(), BlockScan::new(&validated, true));
        let scan = LogScan::new(validated, options);
        let base = if options.clock == Some(Clock::Boot) { TimeBase::Monotonic } else { TimeBase::Unix };
        let input = Input { source, at };
        Ok(Self { input, scan, base, block_scan, left: 0, block_times: None, done: false })
    }

    /// Returns the header.
    pub fn header(&self) -> &Header {
        &self.scan.validated.header
    }

    /// Returns the channels of the log. Binary channels come before analog channels.
    pub fn channels(&self) -> &[Channel] {
        &self.scan.validated.channels
    }

    /// Returns whether there is another row. If this is the first row of a block, the times of the
    /// block are read.
    fn has_row(&mut self) -> Result<bool, RldError> {
        let Some(table) = &self.scan.table else { return Ok(false) };
        if self.left > 0 {
            return Ok(self.input.need(table.layout.row as u64)?);
        }
        loop {
            match self.step()? {
                Step::Block { rows, .. } => {
                    self.left = rows;
                    if let Some(times) = self.input.block_times()? {
                        // The last block may have fewer rows. This is only known at the end of the
                        // block, and the times of its rows do not depend on it.
                        self.scan.add_block(self.input.at, &times, rows);
                        self.block_times = Some(times);
                        self.input.at += BLOCK_TIMES_LEN;
                    }
                    return Ok(true);
                }
                Step::Rows { at, rows, times } => {
                    self.left = rows;
                    self.scan.add_block(at, &times, rows);
                    self.block_times = Some(times);
                    return Ok(true);
                }
                Step::LeftOut(blocks) => {
                    self.scan.leave_out(&blocks);
                    self.input.at = blocks.range.end;
                }
                Step::End => return Ok(false),
            }
        }
    }

    /// Returns the next step of the block scan. Reads from the input until the scan has enough
    /// bytes for a decision.
    fn step(&mut self) -> Result<Step, RldError> {
        loop {
            match self.block_scan.next(self.input.source.window()) {
                Ok(step) => return Ok(step),
                Err(need) => self.input.source.fill(self.input.at, need.0)?,
            }
        }
    }

    /// Skips the rows at the end of the input that the header does not count, and returns their
    /// number. Stops at a block whose times do not continue those of the previous block.
    fn skip_uncounted_rows(&mut self) -> Result<u64, RldError> {
        let Some(layout) = self.scan.validated.full_block_layout() else { return Ok(0) };
        let (block_rows, row) = (layout.block_rows, layout.row);
        let mut rows = 0;
        if self.scan.validated.declared != Some(self.scan.topic.count + self.block_scan.run().left_out) {
            return Ok(rows);
        }
        while let Some(block_times) = self.input.block_times()? {
            if !self.block_times.map_or(is_plausible(&block_times), |before| follows(&before, &block_times)) {
                break;
            }
            self.block_times = Some(block_times);
            self.input.at += BLOCK_TIMES_LEN;
            let bytes = block_rows * row as u64;
            let there = self.input.skip_up_to(bytes)?;
            rows += there / row as u64;
            if there < bytes {
                break;
            }
        }
        Ok(rows)
    }

    /// Reads the bytes after the last row, and adds diagnostics about them.
    fn end(&mut self) -> Result<(), RldError> {
        if self.done {
            return Ok(());
        }
        self.done = true;
        let uncounted = self.skip_uncounted_rows()?;
        self.input.skip_up_to(u64::MAX)?;
        self.scan.end_rows();
        let extent = self.scan.validated.extent(self.input.at, &self.block_scan.run(), uncounted);
        debug_assert_eq!(extent.rows, self.scan.topic.count, "the stream ends where the slice does");
        self.scan.add_extent(extent);
        Ok(())
    }
}

impl<R: Read + Send> LogStream for RldStream<R> {
    fn format(&self) -> &'static FormatInfo {
        &crate::wire::INFO
    }

    fn next_record(&mut self) -> rovelog_core::Result<Option<Record<'_>>> {
        if self.done || !self.has_row()? {
            self.end()?;
            return Ok(None);
        }
        let LogScan { table, topic, tracker, .. } = &mut self.scan;
        let (seq, at, len) = (topic.count, self.input.at, table.as_ref().map_or(0, |table| table.layout.row));
        let nanos = tracker.time(seq, self.base);
        let time = nanos.map(|nanos| Timestamp::new(nanos, self.base.clock()));
        self.left -= 1;
        if seq == 0 {
            topic.first = time;
        }
        topic.in_order &= nanos.is_none() || nanos >= topic.last.map(|last| last.nanos);
        topic.last = time;
        (topic.count, topic.bytes) = (seq + 1, topic.bytes + len as u64);
        topic.timed += u64::from(time.is_some());
        self.input.at += len as u64;
        let row = self.input.source.bytes(at, self.input.at);
        if seq < self.scan.row_checks.until {
            self.scan.check_row(seq, at, row);
        }
        let Some(table) = &self.scan.table else { return Ok(None) };
        Ok(Some(Record::new(&self.scan.topic, time, at, seq, row, table)))
    }

    fn topics(&self) -> &[Topic] {
        std::slice::from_ref(&self.scan.topic)
    }

    fn info(&self) -> LogInfo {
        let block_rows = self.header().lead_in.data_block_size.get().into();
        state::info(&ReadResult {
            scan: &self.scan,
            size: self.input.source.window().end(),
            last_rows: state::last_rows(self.scan.topic.count, block_rows),
            parts: 1,
            is_whole: true,
            report: None,
        })
    }

    fn diagnostics(&self) -> &Diagnostics {
        &self.scan.diagnostics
    }
}
