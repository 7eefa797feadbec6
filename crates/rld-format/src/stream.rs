//! The reader of pipes: one pass over `Read`, bounded memory, the same rows as the random-access reader.
//!
//! Times are counted at the true rate from the first stamp of each stretch without a gap: all that can be known
//! before the end. The random-access reader's robust fit differs by how late that stamp was, at most half a
//! millisecond in logs of the field.

use std::io::Read;

use rovelog_core::scan::Source;
use rovelog_core::{Diagnostics, FormatInfo, LogInfo, LogStream, ReadOptions, Record, Topic};
use zerocopy::FromBytes;

use crate::clock::{Noticed, Tracker, follows, is_plausible};
use crate::error::RldError;
use crate::row::{Row, Table};
use crate::schema::Channel;
use crate::state::{self, Known, unix};
use crate::validate::{Judged, judge};
use crate::watch::Watch;
use crate::wire::{BlockStamps, Header, STAMPS_LEN};

/// A pipe, and how far it is used.
#[derive(Debug)]
struct Input<R> {
    source: Source<R>,
    /// Offset of the first byte that is not yet used.
    at: u64,
}

impl<R: Read> Input<R> {
    /// The bytes at hand that are not yet used.
    fn ahead(&self) -> &[u8] {
        let window = self.source.window();
        &window.data[usize::try_from(self.at - window.base).expect("within the window")..]
    }

    /// Passes over so many bytes, or as many as there are.
    fn skip_up_to(&mut self, bytes: u64) -> std::io::Result<u64> {
        let mut skipped = 0;
        while skipped < bytes && self.need(1)? {
            let ahead = (bytes - skipped).min(self.ahead().len() as u64);
            self.at += ahead;
            skipped += ahead;
        }
        Ok(skipped)
    }

    /// Reads until `bytes` are ahead; false where the input ends before.
    fn need(&mut self, bytes: u64) -> std::io::Result<bool> {
        let until = self.at.saturating_add(bytes);
        if self.source.window().end() < until {
            self.source.fill(self.at, until)?;
        }
        Ok(self.source.window().end() >= until)
    }

    /// The stamps of a block, if they are ahead and so many bytes of rows behind them.
    fn stamps(&mut self, rows: u64) -> std::io::Result<Option<BlockStamps>> {
        if !self.need(STAMPS_LEN + rows)? {
            return Ok(None);
        }
        Ok(BlockStamps::ref_from_prefix(self.ahead()).ok().map(|(stamps, _)| *stamps))
    }
}

/// An RLD log that comes from a pipe. The buffer holds the header, or a chunk of rows.
#[derive(Debug)]
pub struct RldStream<R> {
    input: Input<R>,
    judged: Judged,
    table: Option<Table>,
    topics: [Topic; 1],
    tracker: Tracker,
    watch: Watch,
    /// The stamps of the last block.
    stamps: Option<BlockStamps>,
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
    /// Where the input cannot be read, is no RLD file, ends inside its header, or is of an unknown version.
    pub fn new(input: R, options: &ReadOptions) -> Result<Self, RldError> {
        let (source, judged) =
            Source::start(input, |head| match judge(head.data, head.eof.then_some(head.end())) {
                Ok(judged) => judged.map(Ok),
                Err(error) => Ok(Err(error)),
            })?;
        let mut diagnostics = Diagnostics::new(&options.limits);
        for (rule, range, text) in &judged.notes {
            diagnostics.push(rule, range.clone(), || text.clone());
        }
        let (table, topic) = state::topic(&judged);
        Ok(Self {
            input: Input { source, at: judged.header.size() },
            tracker: Tracker::new(&judged.header.lead_in),
            watch: Watch::new(&judged, table.as_ref()),
            stamps: None,
            judged,
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

    /// The header.
    pub fn header(&self) -> &Header {
        &self.judged.header
    }

    /// The channels: binary ones first.
    pub fn channels(&self) -> &[Channel] {
        &self.judged.channels
    }

    /// Takes the stamps of a block where one begins; false where the log ends.
    fn block(&mut self) -> Result<bool, RldError> {
        let Some(table) = &self.table else { return Ok(false) };
        let layout = &table.layout;
        let declared = self.judged.declared.unwrap_or(u64::MAX);
        if layout.block_rows == 0 || layout.row == 0 || self.rows >= declared {
            return Ok(false);
        }
        if !self.rows.is_multiple_of(layout.block_rows) {
            return Ok(self.input.need(layout.row as u64)?);
        }
        // Stamps without a row belong to nothing.
        let Some(stamps) = self.input.stamps(layout.row as u64)? else { return Ok(false) };
        // How many rows the last block has is known only behind it, and matters to nothing then.
        let rows = layout.block_rows;
        let diagnostics = &mut self.diagnostics;
        let noticed = self.tracker.block(self.input.at, &stamps, self.rows, rows, |rule, range, text| {
            diagnostics.push(rule, range, || text);
        });
        if let Noticed::Gap { nanos, .. } = noticed {
            self.gaps = (self.gaps.0 + 1, self.gaps.1 + i128::from(nanos));
        }
        self.blocks += 1;
        self.stamps = Some(stamps);
        self.input.at += STAMPS_LEN;
        Ok(true)
    }

    /// The rows behind those that the header counts, in blocks whose stamps follow.
    fn behind(&mut self) -> Result<u64, RldError> {
        let Some(layout) = self.judged.counted() else { return Ok(0) };
        let (block_rows, row) = (layout.block_rows, layout.row);
        let mut rows = 0;
        if self.judged.declared != Some(self.rows) {
            return Ok(rows);
        }
        while let Some(stamps) = self.input.stamps(0)? {
            if !self.stamps.map_or(is_plausible(&stamps), |before| follows(&before, &stamps)) {
                break;
            }
            self.stamps = Some(stamps);
            self.input.at += STAMPS_LEN;
            let bytes = block_rows * row as u64;
            let there = self.input.skip_up_to(bytes)?;
            rows += there / row as u64;
            if there < bytes {
                break;
            }
        }
        Ok(rows)
    }

    /// Reads what is behind the last row and settles what it is.
    fn end(&mut self) -> Result<(), RldError> {
        if self.done {
            return Ok(());
        }
        self.done = true;
        let behind = self.behind()?;
        self.input.skip_up_to(u64::MAX)?;
        let diagnostics = &mut self.diagnostics;
        self.watch.end(|rule, range, text| diagnostics.push(rule, range, || text));
        let extent = self.judged.extent(self.input.at, behind);
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
            judged: &self.judged,
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
