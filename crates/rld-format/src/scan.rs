//! Opening of a log. The files of the log are validated one after the other, and their block times
//! are tracked.

use std::ops::Range;

use rovelog_core::format::Companion;
use rovelog_core::internal::partial::Unread;
use rovelog_core::internal::scan::Window;
use rovelog_core::{Bytes, Clock, ReadOptions};

use crate::clock::{self, Blocks, LogTimes, TimeBase, TimeOptions};
use crate::diagnostics as rules;
use crate::error::RldError;
use crate::layout::{BlockRun, times_at};
use crate::log_scan::LogScan;
use crate::names;
use crate::reader::{Part, RldReader, Segment};
use crate::resync::{BlockScan, Step};
use crate::state::{self, ReadResult};
use crate::validate::{Validated, validate};
use crate::wire::{BLOCK_TIMES_LEN, BlockTimes};

/// Validates the header of a complete file in memory.
pub(crate) fn validate_file(bytes: &[u8]) -> Result<Validated, RldError> {
    let len = bytes.len() as u64;
    match validate(bytes, Some(len))? {
        Ok(validated) => Ok(validated),
        Err(_) => Err(RldError::HeaderCut { len, header: 0 }),
    }
}

/// Validates a file as a part of the log whose first file is `first`. Nine fields of the lead-in
/// must equal those of the first file. The channel tables must be equal, too, unless the table of
/// this file is invalid. If `sessions` is true, the file may be of another recording of the same
/// logger, whose start time and comment differ.
pub(crate) fn validate_part(
    bytes: &[u8],
    first: &Validated,
    sessions: bool,
) -> Result<Validated, &'static str> {
    let own = validate_file(bytes).map_err(|_| "it cannot be opened")?;
    let (a, b) = (&first.header.lead_in, &own.header.lead_in);
    let starts_differ = a.start_sec != b.start_sec || a.start_nsec != b.start_nsec;
    let other_session = sessions && starts_differ;
    let words = |validated: &Validated| validated.layout.as_ref().map(|layout| layout.words).ok();
    let differs = [
        (a.file_version != b.file_version, "its file version differs"),
        (a.data_block_size != b.data_block_size, "its block size differs"),
        (a.sample_rate != b.sample_rate, "its sample rate differs"),
        (a.mac != b.mac, "its MAC address differs"),
        (starts_differ && !sessions, "its start time differs"),
        (a.comment_length != b.comment_length && !other_session, "the length of its comment differs"),
        (other_session && words(first) != words(&own), "the layout of its rows differs"),
        (
            a.binary_count != b.binary_count || a.analog_count != b.analog_count,
            "its number of channels differs",
        ),
        (a.header_length != b.header_length && !other_session, "the length of its header differs"),
    ];
    if let Some((_, why)) = differs.iter().find(|(differs, _)| *differs) {
        return Err(why);
    }
    if first.header.channels != own.header.channels && own.plausible {
        return Err("its channels differ");
    }
    Ok(own.with_rows_of(first))
}

impl RldReader {
    /// Opens the log in `bytes`.
    ///
    /// # Errors
    /// Returns an error if the bytes are not an RLD file, end inside the header, or have an unknown
    /// version. Damage is not an error: it is reported by
    /// [`diagnostics`](rovelog_core::LogReader::diagnostics).
    pub fn new(bytes: Bytes, options: &ReadOptions) -> Result<Self, RldError> {
        Self::join(vec![bytes], options)
    }

    /// Opens the parts of a split recording as one log. The parts must be in order. Offsets are
    /// counted through all parts as if they were concatenated.
    ///
    /// # Errors
    /// Returns the errors of [`new`](Self::new). Returns an error if the header of a part does not
    /// match the header of the first part.
    pub fn join(parts: Vec<Bytes>, options: &ReadOptions) -> Result<Self, RldError> {
        Self::join_files(parts, options, false)
    }

    /// Implements [`join`](Self::join). If `sessions` is true, the parts may also be recordings
    /// that the same logger made one after the other.
    pub(crate) fn join_files(
        parts: Vec<Bytes>,
        options: &ReadOptions,
        sessions: bool,
    ) -> Result<Self, RldError> {
        let mut parts = parts.into_iter();
        let first = parts.next().ok_or_else(|| RldError::refused("a log has at least one file"))?;
        let validated = validate_file(&first)?;
        let mut opened = LogOpener::new(validated, options);
        opened.add_part(first, None);
        for (i, bytes) in parts.enumerate() {
            let own = validate_part(&bytes, &opened.scan.validated, sessions)
                .map_err(|why| RldError::NotAPart { part: i + 1, why })?;
            opened.add_part(bytes, Some(own));
        }
        Ok(opened.finish())
    }

    /// Opens the files of this log again. This time, rows that the headers do not count are read,
    /// too.
    pub(crate) fn reopened_whole(&self) -> Result<Self, RldError> {
        let left_out = |part: &Part| part.left_out;
        let first = self.parts.first().map_or(0, left_out);
        let validated = Validated { extra_rows: first, ..self.validated.clone() };
        let mut opened = LogOpener::new(validated, &ReadOptions::default());
        for (i, part) in self.parts.iter().enumerate() {
            let own = if i == 0 { None } else { Some(validate_part(&part.bytes, &self.validated, false)) };
            let own = own.transpose().map_err(|why| RldError::NotAPart { part: i, why })?;
            opened
                .add_part(part.bytes.clone(), own.map(|own| Validated { extra_rows: left_out(part), ..own }));
        }
        Ok(opened.finish())
    }
}

/// Opens a log with its companion files: the other parts of the log and an ambient file. They must
/// be in the order of [`names::companions`]. Files that do not belong to the log are reported and
/// ignored.
pub(crate) fn open_with(
    first: Bytes,
    companions: Vec<Companion>,
    options: &ReadOptions,
) -> Result<RldReader, RldError> {
    // If the file to open is itself an ambient file, it has no ambient file of its own.
    let alone = validate_file(&first)?.is_ambient();
    let mut parts = companions;
    let first_ambient = parts.iter().position(|(name, _)| !alone && names::is_ambient(name));
    let ambient = parts.split_off(first_ambient.unwrap_or(parts.len()));
    let mut left_out = Vec::new();
    let mut log = join_longest(first, parts, options, &mut left_out)?;
    let mut ambient = ambient.into_iter();
    if let Some((name, first)) = ambient.next() {
        match join_longest(first, ambient.collect(), options, &mut left_out) {
            Ok(ambient) if ambient.validated.is_ambient() => log = log.with_ambient(ambient),
            Ok(_) => left_out.push((name, "its channels are not those of sensors".to_owned())),
            Err(error) => left_out.push((name, error.to_string())),
        }
    }
    for (name, why) in left_out {
        log.leave_out(&name, &why);
    }
    Ok(log)
}

/// Opens a log that consists of `first` and of the files in `parts`, in order. If a file does not
/// belong to the log, this file and all later files are left out.
fn join_longest(
    first: Bytes,
    parts: Vec<Companion>,
    options: &ReadOptions,
    left_out: &mut Vec<(String, String)>,
) -> Result<RldReader, RldError> {
    let (names, parts): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
    let mut files = vec![first];
    files.extend(parts);
    match RldReader::join(files.clone(), options) {
        // The files before the first foreign file still form a log, so these files are opened again
        // without the rest.
        Err(RldError::NotAPart { part, why }) => {
            let why = format!("{why}, so all later parts are not read either");
            left_out.extend(names.get(part - 1).map(|name| (name.clone(), why)));
            files.truncate(part);
            RldReader::join(files, options)
        }
        log => log,
    }
}

/// State of opening a log, whose files are added one after the other.
struct LogOpener {
    scan: LogScan,
    parts: Vec<Part>,
    segments: Vec<Segment>,
    blocks: Blocks,
    /// Options for reading. The unread ranges in these options apply to the first file. Other files
    /// are read completely.
    options: ReadOptions,
}

impl LogOpener {
    fn new(validated: Validated, options: &ReadOptions) -> Self {
        let scan = LogScan::new(validated, options);
        let rate = scan.validated.header.lead_in.sample_rate.get();
        let start = scan.tracker.anchor().map(|anchor| anchor.realtime);
        let blocks = Blocks { rate, start, list: Vec::new() };
        Self { scan, parts: Vec::new(), segments: Vec::new(), blocks, options: options.clone() }
    }

    /// Adds a file to the log. `own` is the validated header of the file, or `None` for the first
    /// file, whose header has already been set.
    fn add_part(&mut self, bytes: Bytes, own: Option<Validated>) {
        let unread = if own.is_none() { self.options.unread.clone() } else { Unread::default() };
        match &own {
            // The notes of the first file have already been added.
            None => {}
            Some(own) if own.header.channels == self.scan.validated.header.channels => {
                for (rule, range, text) in &own.notes {
                    self.scan.note(rule, range.clone(), text.clone());
                }
            }
            Some(Validated { header, .. }) => {
                // The lead-in is valid, but the channel table after it is not. Releases 2.0.0-beta1
                // to 2.0.1 wrote such files.
                let at = header.size() - crate::wire::CHANNEL_LEN * header.lead_in.channels();
                let text =
                    "the channel table of this part is invalid, so the table of the first part is used"
                        .to_owned();
                self.scan.note(&rules::TABLE_FROM_FIRST, at..header.size(), text);
            }
        }
        let own = own.unwrap_or_else(|| self.scan.validated.clone());
        let (len, first) = (bytes.len() as u64, self.scan.topic.count);
        let header = own.header.clone();
        let part = Part { header, bytes, rows: first..first, base: self.scan.base, left_out: 0, unread };
        let last = self.add_blocks(&part, &own);
        let uncounted = if own.extra_rows == 0 { own.count_uncounted_rows(&part.bytes, &last) } else { 0 };
        let (extent, rows) = (own.extent(len, &last, uncounted), first..self.scan.topic.count);
        debug_assert_eq!(extent.rows, rows.end - first, "the scan has the rows of the file");
        self.parts.push(Part { rows, left_out: extent.left_out, ..part });
        self.scan.add_extent(extent);
        self.scan.part += 1;
        self.scan.base += len;
    }

    /// Adds the blocks of a file. Returns the run of blocks that contains the last block.
    fn add_blocks(&mut self, part: &Part, own: &Validated) -> BlockRun {
        let mut block_scan = BlockScan::new(own, part.unread.is_empty());
        let window = Window::whole(&part.bytes);
        loop {
            match block_scan.next(window).unwrap_or(Step::End) {
                Step::Block { at, rows } => {
                    self.add_block(part, at, rows);
                    self.extend_segment(at, rows);
                    self.scan.topic.count += rows;
                }
                Step::Rows { at, rows, times } => {
                    self.add_timed_block(part, at..at, rows, &times);
                    let row = self.scan.topic.count;
                    self.segments.push(Segment { part: self.scan.part, at, row, rows, times: Some(times) });
                    self.scan.topic.count += rows;
                }
                Step::LeftOut(blocks) => self.scan.leave_out(&blocks),
                Step::End => break,
            }
        }
        block_scan.run()
    }

    /// Adds the `rows` rows of the block at offset `at` to the last segment. If the block does not
    /// follow the last segment directly, a new segment starts.
    fn extend_segment(&mut self, at: u64, rows: u64) {
        let (part, row) = (self.scan.part, self.scan.topic.count);
        let Some(layout) = self.scan.table.as_ref().map(|table| &table.layout) else { return };
        let follows = |last: &Segment| {
            let full = last.rows.is_multiple_of(layout.block_rows) && last.times.is_none();
            full && last.part == part && last.range(layout).end == at
        };
        match self.segments.last_mut().filter(|last| follows(last)) {
            Some(last) => last.rows += rows,
            None if rows > 0 => self.segments.push(Segment { part, at, row, rows, times: None }),
            None => {}
        }
    }

    /// Adds a block of `rows` rows at offset `at` from the start of the file.
    fn add_block(&mut self, part: &Part, at: u64, rows: u64) {
        let Some(block_times) = times_at(&part.bytes, at) else { return };
        if part.unread.touches(&(at..at + BLOCK_TIMES_LEN)) {
            self.scan.tracker.skip_unread(rows);
            // The times of these rows are computed from the last block whose times have been read.
            if let Some(last) = self.blocks.list.last_mut() {
                last.rows += rows;
            }
            return;
        }
        self.add_timed_block(part, at..at + BLOCK_TIMES_LEN, rows, block_times);
    }

    /// Adds a block of `rows` rows. `times_range` is the range of its times in the file, or an empty
    /// range if the times are not stored there. The first row follows this range.
    fn add_timed_block(&mut self, part: &Part, times_range: Range<u64>, rows: u64, block_times: &BlockTimes) {
        let Some(row_len) = self.scan.table.as_ref().map(|table| table.layout.row as u64) else { return };
        let first = self.scan.topic.count;
        let change = self.scan.add_block(times_range.start, block_times, rows);
        for row in first..(first + rows).min(self.scan.row_checks.until) {
            let at = times_range.end + (row - first) * row_len;
            if part.unread.touches(&(at..at + row_len)) {
                self.scan.skip_unread_rows();
                break;
            }
            self.scan.check_row(row, at, part.slice(at, at + row_len));
        }
        let narrow = |time: i128| i64::try_from(time).unwrap_or_default();
        let (realtime, monotonic) = (narrow(block_times.realtime()), narrow(block_times.monotonic()));
        self.blocks.list.push(clock::Block { row: first, rows, realtime, monotonic, change });
    }

    fn finish(mut self) -> RldReader {
        self.scan.end_rows();
        let Self { mut scan, parts, segments, blocks, options } = self;
        let layout = scan.table.as_ref().map(|table| &table.layout);
        scan.topic.bytes = scan.topic.count * layout.map_or(0, |layout| layout.row as u64);
        let last = segments.last().zip(layout);
        let times = LogTimes { rows: blocks.map(TimeOptions::default()), report: blocks.report(), blocks };
        let info = state::info(&ReadResult {
            scan: &scan,
            size: scan.base,
            last_rows: last.map_or(0, |(last, layout)| state::last_rows(last.rows, layout.block_rows)),
            parts: parts.len(),
            is_whole: options.unread.is_empty(),
            report: Some(&times.report),
        });
        let base = match options.clock {
            Some(Clock::Boot) => TimeBase::Monotonic,
            Some(Clock::Unix) => TimeBase::Unix,
            _ => times.blocks.steadiest_time_base(),
        };
        let LogScan { validated, table, topic, diagnostics, .. } = scan;
        let topics = vec![topic];
        let mut reader =
            RldReader { parts, segments, validated, table, times, topics, info, diagnostics, ambient: None };
        reader.set_time_base(base);
        reader.info.set_utc_start(options.utc_start);
        reader
    }
}
