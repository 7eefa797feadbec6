//! The reader of pipes: one pass over `Read`, bounded memory, the same rows as the random-access
//! reader. The rows of a block are returned once the times of the next one are read, which show that
//! no byte of the block is missing; a few blocks are buffered to find where reading resumes.
//!
//! Times count at the true rate from the first block time of each segment without a gap: nothing
//! better is known before the end. The robust fit of the random-access reader differs by the delay
//! of that block time, at most half a millisecond in known logs.

use std::io::Read;

use rovelog_core::scan::Source;
use rovelog_core::{Diagnostics, FormatInfo, LogInfo, LogStream, ReadOptions, Record, Topic};
use zerocopy::FromBytes;

use crate::clock::{Noticed, Tracker, follows, is_plausible};
use crate::diagnostics as rules;
use crate::error::RldError;
use crate::resync::{Follower, Step};
use crate::row::{Row, Table};
use crate::schema::Channel;
use crate::state::{self, Known, unix};
use crate::validate::{Validated, validate};
use crate::watch::Watch;
use crate::wire::{BLOCK_TIMES_LEN, BlockTimes, Header};

/// A pipe, and the offset up to which it is used.
#[derive(Debug)]
struct Input<R> {
    source: Source<R>,
    /// Offset of the first byte that is not yet used.
    at: u64,
}

impl<R: Read> Input<R> {
    /// Returns the buffered bytes that are not yet used.
    fn ahead(&self) -> &[u8] {
        let window = self.source.window();
        &window.data[usize::try_from(self.at - window.base).expect("within the window")..]
    }

    /// Skips `bytes` bytes, or as many as there are.
    fn skip_up_to(&mut self, bytes: u64) -> std::io::Result<u64> {
        let mut skipped = 0;
        while skipped < bytes && self.need(1)? {
            let ahead = (bytes - skipped).min(self.ahead().len() as u64);
            self.at += ahead;
            skipped += ahead;
        }
        Ok(skipped)
    }

    /// Buffers the next `bytes` bytes; false if the input ends before.
    fn need(&mut self, bytes: u64) -> std::io::Result<bool> {
        let until = self.at.saturating_add(bytes);
        if self.source.window().end() < until {
            self.source.fill(self.at, until)?;
        }
        Ok(self.source.window().end() >= until)
    }

    /// Returns the times of a block, if they and `rows` bytes after them are available.
    fn block_times(&mut self, rows: u64) -> std::io::Result<Option<BlockTimes>> {
        if !self.need(BLOCK_TIMES_LEN + rows)? {
            return Ok(None);
        }
        Ok(BlockTimes::ref_from_prefix(self.ahead()).ok().map(|(block_times, _)| *block_times))
    }
}

/// An RLD log from a pipe. The buffer holds the header or the block that is read.
#[derive(Debug)]
pub struct RldStream<R> {
    input: Input<R>,
    validated: Validated,
    table: Option<Table>,
    topics: [Topic; 1],
    tracker: Tracker,
    watch: Watch,
    follower: Follower,
    /// Rows of the current block that are not yet read, at most.
    left: u64,
    /// The times of the last block.
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
    /// Returns an error if the input cannot be read, is not an RLD file, ends inside its header, or
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
            watch: Watch::new(&validated, table.as_ref()),
            follower: Follower::new(&validated, true),
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

    /// Returns the channels: binary ones first.
    pub fn channels(&self) -> &[Channel] {
        &self.validated.channels
    }

    /// Returns whether there is a row: the next one of a block, or the first one of the next block,
    /// of which it reads the times.
    fn row(&mut self) -> Result<bool, RldError> {
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
                    self.watch.pass(|rule, range, text| diagnostics.push(rule, range, || text));
                    self.input.at = blocks.range.end;
                }
                Step::End => return Ok(false),
            }
        }
    }

    /// Returns what comes next, and reads on until that is known.
    fn step(&mut self) -> Result<Step, RldError> {
        loop {
            match self.follower.next(self.input.source.window()) {
                Ok(step) => return Ok(step),
                Err(need) => self.input.source.fill(self.input.at, need.0)?,
            }
        }
    }

    /// Reads the times of the next block.
    fn block(&mut self) -> Result<(), RldError> {
        let Some(block_times) = self.input.block_times(0)? else { return Ok(()) };
        // The number of rows in the last block may only be known after it, and is not needed before.
        let rows = u64::from(self.validated.header.lead_in.data_block_size.get());
        let diagnostics = &mut self.diagnostics;
        let noticed =
            self.tracker.block(self.input.at, &block_times, self.rows, rows, |rule, range, text| {
                diagnostics.push(rule, range, || text);
            });
        if let Noticed::Gap { nanos, .. } = noticed {
            self.gaps = (self.gaps.0 + 1, self.gaps.1 + i128::from(nanos));
        }
        self.blocks += 1;
        self.block_times = Some(block_times);
        self.input.at += BLOCK_TIMES_LEN;
        Ok(())
    }

    /// Counts the rows after those that the header counts, in blocks whose times follow each other.
    fn behind(&mut self) -> Result<u64, RldError> {
        let Some(layout) = self.validated.counted() else { return Ok(0) };
        let (block_rows, row) = (layout.block_rows, layout.row);
        let mut rows = 0;
        if self.validated.declared != Some(self.rows + self.follower.aligned().left_out) {
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

    /// Reads the bytes after the last row and finds out what they are.
    fn end(&mut self) -> Result<(), RldError> {
        if self.done {
            return Ok(());
        }
        self.done = true;
        let behind = self.behind()?;
        self.input.skip_up_to(u64::MAX)?;
        let diagnostics = &mut self.diagnostics;
        self.watch.end(|rule, range, text| diagnostics.push(rule, range, || text));
        let extent = self.validated.extent(self.input.at, &self.follower.aligned(), behind);
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
        if self.done || !self.row()? {
            self.end()?;
            return Ok(None);
        }
        let Some(table) = &self.table else { return Ok(None) };
        let (seq, at, len) = (self.rows, self.input.at, table.layout.row);
        let time = self.tracker.time(seq);
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
        (topic.first, topic.last) = (self.first.map(unix), self.last.map(unix));
        self.input.at += len as u64;
        let row = self.input.source.bytes(at, self.input.at);
        if seq < self.watch.until {
            let diagnostics = &mut self.diagnostics;
            let note = |rule, range, text| diagnostics.push(rule, range, || text);
            self.watch.row(seq, at, Row::new(row, table), note);
        }
        Ok(Some(Record::new(&self.topics[0], time.map(unix), at, seq, row, table)))
    }

    fn topics(&self) -> &[Topic] {
        &self.topics
    }

    fn info(&self) -> LogInfo {
        state::info(&Known {
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
            first: self.first,
            last: self.last,
            diagnostics: &self.diagnostics,
            report: None,
        })
    }

    fn diagnostics(&self) -> &Diagnostics {
        &self.diagnostics
    }
}
