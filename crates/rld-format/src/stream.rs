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

use crate::clock::{ClockChange, TimeBase, Tracker, follows, is_plausible};
use crate::diagnostics as rules;
use crate::error::RldError;
use crate::resync::{BlockScan, Step};
use crate::row::{Row, Table};
use crate::schema::Channel;
use crate::state::{self, ReadResult};
use crate::validate::{Validated, validate};
use crate::watch::RowChecks;
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

    /// Returns the block times at the read position. Returns `None` if the input ends before `rows`
    /// bytes after these times.
    fn block_times(&mut self, rows: u64) -> std::io::Result<Option<BlockTimes>> {
        if !self.need(BLOCK_TIMES_LEN + rows)? {
            return Ok(None);
        }
        Ok(BlockTimes::ref_from_prefix(self.ahead()).ok().map(|(block_times, _)| *block_times))
    }
}

/// An RLD log that is read from a stream. At most the header and a few blocks are in memory.
#[derive(Debug)]
pub struct RldStream<R> {
    input: Input<R>,
    validated: Validated,
    table: Option<Table>,
    topics: [Topic; 1],
    tracker: Tracker,
    base: TimeBase,
    row_checks: RowChecks,
    block_scan: BlockScan,
    /// Upper bound for the number of rows in the current block that have not been returned yet.
    left: u64,
    /// Times of the last block that was read.
    block_times: Option<BlockTimes>,
    diagnostics: Diagnostics,
    rows: u64,
    blocks: u64,
    first: Option<i64>,
    last: Option<i64>,
    gaps: (u64, i128),
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
        let mut diagnostics = options.diagnostics();
        for (rule, range, text) in &validated.notes {
            diagnostics.push(rule, range.clone(), || text.clone());
        }
        let (table, topic) = state::topic(&validated);
        Ok(Self {
            input: Input { source, at: validated.header.size() },
            tracker: Tracker::new(&validated.header.lead_in),
            base: if options.clock == Some(Clock::Boot) { TimeBase::Monotonic } else { TimeBase::Unix },
            row_checks: RowChecks::new(&validated, table.as_ref()),
            block_scan: BlockScan::new(&validated, true),
            left: 0,
            block_times: None,
            validated,
            table,
            topics: [topic],
            diagnostics,
            rows: 0,
            blocks: 0,
            first: None,
            last: None,
            gaps: (0, 0),
            done: false,
        })
    }

    /// Returns the header.
    pub fn header(&self) -> &Header {
        &self.validated.header
    }

    /// Returns the channels of the log. Binary channels come before analog channels.
    pub fn channels(&self) -> &[Channel] {
        &self.validated.channels
    }

    /// Returns whether there is another row. If this is the first row of a block, the times of the
    /// block are read.
    fn has_row(&mut self) -> Result<bool, RldError> {
        let Some(table) = &self.table else { return Ok(false) };
        let row = table.layout.row as u64;
        if self.left > 0 {
            return Ok(self.input.need(row)?);
        }
        loop {
            match self.step()? {
                Step::Block { rows, .. } => {
                    self.left = rows;
                    self.block()?;
                    return Ok(true);
                }
                Step::LeftOut(blocks) => {
                    let diagnostics = &mut self.diagnostics;
                    let text = blocks.text(self.rows);
                    diagnostics.push(&rules::BLOCK_LENGTH, blocks.range.clone(), || text);
                    diagnostics.count_missing(blocks.rows);
                    self.tracker.leave_out();
                    self.row_checks.skip_unread(|rule, range, text| diagnostics.push(rule, range, || text));
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

    /// Reads the times of the next block.
    fn block(&mut self) -> Result<(), RldError> {
        let Some(block_times) = self.input.block_times(0)? else { return Ok(()) };
        // The last block may have fewer rows than a full block. This is only known at the end of
        // the block, and the times of its rows do not depend on it.
        let rows = u64::from(self.validated.header.lead_in.data_block_size.get());
        let diagnostics = &mut self.diagnostics;
        let change = self.tracker.block(self.input.at, &block_times, self.rows, rows, |rule, range, text| {
            diagnostics.push(rule, range, || text);
        });
        if let ClockChange::Gap { nanos, .. } = change {
            self.gaps = (self.gaps.0 + 1, self.gaps.1 + i128::from(nanos));
        }
        self.blocks += 1;
        self.block_times = Some(block_times);
        self.input.at += BLOCK_TIMES_LEN;
        Ok(())
    }

    /// Skips the rows at the end of the input that the header does not count, and returns their
    /// number. Stops at a block whose times do not continue those of the previous block.
    fn skip_uncounted_rows(&mut self) -> Result<u64, RldError> {
        let Some(layout) = self.validated.full_block_layout() else { return Ok(0) };
        let (block_rows, row) = (layout.block_rows, layout.row);
        let mut rows = 0;
        if self.validated.declared != Some(self.rows + self.block_scan.run().left_out) {
            return Ok(rows);
        }
        while let Some(block_times) = self.input.block_times(0)? {
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
        let diagnostics = &mut self.diagnostics;
        self.row_checks.end(|rule, range, text| diagnostics.push(rule, range, || text));
        let extent = self.validated.extent(self.input.at, &self.block_scan.run(), uncounted);
        debug_assert_eq!(extent.rows, self.rows, "the stream ends where the slice does");
        for (rule, range, text) in extent.notes {
            self.diagnostics.push(rule, range, || text);
        }
        self.diagnostics.count_missing(extent.missing);
        self.diagnostics.count_left_out(extent.left_out);
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
        let Some(table) = &self.table else { return Ok(None) };
        let (seq, at, len) = (self.rows, self.input.at, table.layout.row);
        let time = self.tracker.time(seq, self.base);
        self.rows += 1;
        self.left -= 1;
        if seq == 0 {
            self.first = time;
        }
        let topic = &mut self.topics[0];
        topic.in_order &= time.is_none() || time >= self.last;
        self.last = time;
        (topic.count, topic.bytes) = (self.rows, topic.bytes + len as u64);
        topic.timed += u64::from(time.is_some());
        let clock = self.base.clock();
        let stamp = |time: Option<i64>| time.map(|nanos| Timestamp::new(nanos, clock));
        (topic.first, topic.last) = (stamp(self.first), stamp(self.last));
        self.input.at += len as u64;
        let row = self.input.source.bytes(at, self.input.at);
        if seq < self.row_checks.until {
            let diagnostics = &mut self.diagnostics;
            let note = |rule, range, text| diagnostics.push(rule, range, || text);
            self.row_checks.row(seq, at, Row::new(row, table), note);
        }
        Ok(Some(Record::new(&self.topics[0], stamp(time), at, seq, row, table)))
    }

    fn topics(&self) -> &[Topic] {
        &self.topics
    }

    fn info(&self) -> LogInfo {
        state::info(&ReadResult {
            is_whole: true,
            validated: &self.validated,
            size: self.input.source.window().end(),
            rows: self.rows,
            blocks: self.blocks,
            last_rows: state::last_rows(
                self.rows,
                self.validated.header.lead_in.data_block_size.get().into(),
            ),
            parts: 1,
            gaps: self.gaps,
            first: self.topics[0].first,
            last: self.topics[0].last,
            diagnostics: &self.diagnostics,
            report: None,
        })
    }

    fn diagnostics(&self) -> &Diagnostics {
        &self.diagnostics
    }
}
