//! The reader of pipes: one pass over `Read`, bounded memory, the same rows as the random-access
//! reader.
//!
//! Times count at the true rate from the first block time of each segment without a gap: nothing
//! better is known before the end. The robust fit of the random-access reader differs by the delay
//! of that block time, at most half a millisecond in known logs.

use std::io::Read;

use rovelog_core::scan::Source;
use rovelog_core::{Diagnostics, FormatInfo, LogInfo, LogStream, ReadOptions, Record, Topic};
use zerocopy::FromBytes;

use crate::clock::{Noticed, Tracker, follows, is_plausible};
use crate::error::RldError;
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

/// An RLD log from a pipe. The buffer holds the header or a chunk of rows.
#[derive(Debug)]
pub struct RldStream<R> {
    input: Input<R>,
    validated: Validated,
    table: Option<Table>,
    topics: [Topic; 1],
    tracker: Tracker,
    watch: Watch,
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

    /// Reads the times of the next block; false at the end of the log.
    fn block(&mut self) -> Result<bool, RldError> {
        let Some(table) = &self.table else { return Ok(false) };
        let layout = &table.layout;
        let declared = self.validated.declared.unwrap_or(u64::MAX);
        if layout.block_rows == 0 || layout.row == 0 || self.rows >= declared {
            return Ok(false);
        }
        if !self.rows.is_multiple_of(layout.block_rows) {
            return Ok(self.input.need(layout.row as u64)?);
        }
        // Block times without a row are not a block.
        let Some(block_times) = self.input.block_times(layout.row as u64)? else { return Ok(false) };
        // The number of rows in the last block is only known after it, and is not needed before.
        let rows = layout.block_rows;
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
        Ok(true)
    }

    /// Counts the rows after those that the header counts, in blocks whose times follow each other.
    fn behind(&mut self) -> Result<u64, RldError> {
        let Some(layout) = self.validated.counted() else { return Ok(0) };
        let (block_rows, row) = (layout.block_rows, layout.row);
        let mut rows = 0;
        if self.validated.declared != Some(self.rows) {
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
        let extent = self.validated.extent(self.input.at, behind);
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
        if self.done || !self.block()? {
            self.end()?;
            return Ok(None);
        }
        let Some(table) = &self.table else { return Ok(None) };
        let (seq, at, len) = (self.rows, self.input.at, table.layout.row);
        let time = self.tracker.time(seq);
        self.rows += 1;
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
