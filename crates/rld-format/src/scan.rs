//! Opening of a log. The files of the log are validated one after the other, and their block times
//! are tracked.

use std::ops::Range;

use rovelog_core::format::Companion;
use rovelog_core::internal::scan::Window;
use rovelog_core::{Bytes, Clock, Diagnostics, ReadOptions, Rule, Topic};

use crate::clock::{self, Blocks, ClockChange, TimeBase, TimeOptions, Tracker};
use crate::diagnostics as rules;
use crate::error::RldError;
use crate::layout::{BlockRun, times_at};
use crate::names;
use crate::reader::{Part, RldReader, Segment};
use crate::resync::{BlockScan, Step};
use crate::row::{Row, Table};
use crate::state::{self, ReadResult};
use crate::validate::{Validated, validate};
use crate::watch::RowChecks;
use crate::wire::BLOCK_TIMES_LEN;

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
/// this file is invalid.
pub(crate) fn validate_part(bytes: &[u8], first: &Validated) -> Result<Validated, &'static str> {
    let own = validate_file(bytes).map_err(|_| "it cannot be opened")?;
    let (a, b) = (&first.header.lead_in, &own.header.lead_in);
    let differs = [
        (a.file_version != b.file_version, "its file version differs"),
        (a.data_block_size != b.data_block_size, "its block size differs"),
        (a.sample_rate != b.sample_rate, "its sample rate differs"),
        (a.mac != b.mac, "its MAC address differs"),
        (a.start_sec != b.start_sec || a.start_nsec != b.start_nsec, "its start time differs"),
        (a.comment_length != b.comment_length, "the length of its comment differs"),
        (
            a.binary_count != b.binary_count || a.analog_count != b.analog_count,
            "its number of channels differs",
        ),
        (a.header_length != b.header_length, "the length of its header differs"),
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
        let mut parts = parts.into_iter();
        let first = parts.next().ok_or_else(|| RldError::refused("a log has at least one file"))?;
        let validated = validate_file(&first)?;
        let mut opened = LogOpener::new(validated, options);
        opened.add_part(first, None);
        for (i, bytes) in parts.enumerate() {
            let own = validate_part(&bytes, &opened.validated)
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
            let own = if i == 0 { None } else { Some(validate_part(&part.bytes, &self.validated)) };
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
            let why = format!("{why}, so this file and all later parts are left out");
            left_out.extend(names.get(part - 1).map(|name| (name.clone(), why)));
            files.truncate(part);
            RldReader::join(files, options)
        }
        log => log,
    }
}

/// Returns a function that adds diagnostics about the file with the number `part` to the
/// diagnostics of the log.
fn part_notes(diagnostics: &mut Diagnostics, part: usize) -> impl FnMut(&'static Rule, Range<u64>, String) {
    move |rule, range, text| {
        diagnostics.push(rule, range, || if part == 0 { text } else { format!("part {part}: {text}") });
    }
}

/// State of opening a log, whose files are added one after the other.
pub(crate) struct LogOpener {
    pub(crate) validated: Validated,
    table: Option<Table>,
    topic: Topic,
    parts: Vec<Part>,
    segments: Vec<Segment>,
    blocks: Blocks,
    tracker: Tracker,
    row_checks: RowChecks,
    diagnostics: Diagnostics,
    /// Options for reading. The unread ranges in these options apply to the first file. Other files
    /// are read completely.
    options: ReadOptions,
    is_suspect: bool,
    rows: u64,
    size: u64,
    gaps: (u64, i128),
}

impl LogOpener {
    pub(crate) fn new(validated: Validated, options: &ReadOptions) -> Self {
        let (table, topic) = state::topic(&validated);
        let lead_in = &validated.header.lead_in;
        let tracker = Tracker::new(lead_in);
        let late = clock::latency(
            validated.version.number,
            lead_in.sample_rate.get(),
            lead_in.data_block_size.get().into(),
        );
        let blocks = Blocks {
            rate: lead_in.sample_rate.get(),
            start: tracker.anchor().map(|anchor| anchor.realtime),
            latency: i64::try_from(late).unwrap_or_default(),
            list: Vec::new(),
        };
        let row_checks = RowChecks::new(&validated, table.as_ref());
        Self {
            validated,
            table,
            topic,
            parts: Vec::new(),
            segments: Vec::new(),
            blocks,
            tracker,
            row_checks,
            diagnostics: options.diagnostics(),
            options: options.clone(),
            is_suspect: false,
            rows: 0,
            size: 0,
            gaps: (0, 0),
        }
    }

    /// Adds a file to the log. `own` is the validated header of the file, or `None` for the first
    /// file, whose header has already been set.
    pub(crate) fn add_part(&mut self, bytes: Bytes, own: Option<Validated>) {
        let number = self.parts.len();
        let base = self.size;
        let len = bytes.len() as u64;
        let notes = own.as_ref().map_or(&self.validated.notes, |own| &own.notes).clone();
        let own = own.unwrap_or_else(|| self.validated.clone());
        if own.header.channels == self.validated.header.channels {
            for (rule, range, text) in &notes {
                self.note(number, base, rule, range.clone(), text);
            }
        } else {
            // The lead-in is valid, but the channel table after it is not. Releases 2.0.0-beta1 to
            // 2.0.1 wrote such files.
            let at = own.header.size() - crate::wire::CHANNEL_LEN * own.header.lead_in.channels();
            let text = "the channel table of this part is invalid".to_owned();
            self.note(number, base, &rules::TABLE_FROM_FIRST, at..own.header.size(), &text);
        }
        let first = self.rows;
        let part = Part { bytes, base, header: own.header.clone(), row: first, rows: 0, left_out: 0 };
        let last = self.add_blocks(&part, number, &own);
        let uncounted = if own.extra_rows == 0 { own.count_uncounted_rows(&part.bytes, &last) } else { 0 };
        let extent = own.extent(len, &last, uncounted);
        debug_assert_eq!(extent.rows, self.rows - first, "the scan has the rows of the file");
        for (rule, range, text) in &extent.notes {
            self.note(number, base, rule, range.clone(), text);
        }
        self.diagnostics.count_missing(extent.missing);
        self.diagnostics.count_left_out(extent.left_out);
        self.parts.push(Part { rows: extent.rows, left_out: extent.left_out, ..part });
        self.size += len;
    }

    fn note(&mut self, part: usize, base: u64, rule: &'static Rule, range: Range<u64>, text: &str) {
        self.diagnostics.push(rule, base + range.start..base + range.end, || {
            if part == 0 { text.to_owned() } else { format!("part {part}: {text}") }
        });
    }

    /// Adds the blocks of a file. Returns the run of blocks that contains the last block.
    fn add_blocks(&mut self, part: &Part, number: usize, own: &Validated) -> BlockRun {
        let is_whole = number > 0 || self.options.unread.is_empty();
        let mut block_scan = BlockScan::new(own, is_whole);
        let first = |at| Segment { part: number, at, row: self.rows, rows: 0 };
        let mut segment = first(block_scan.run().at);
        let window = Window::whole(&part.bytes);
        loop {
            match block_scan.next(window).unwrap_or(Step::End) {
                Step::Block { at, rows } => {
                    self.add_block(part, &segment, at, rows);
                    segment.rows += rows;
                    self.rows += rows;
                }
                Step::LeftOut(blocks) => {
                    let range = blocks.range.clone();
                    self.note(number, part.base, &rules::BLOCK_LENGTH, range, &blocks.text(self.rows));
                    self.diagnostics.count_missing(blocks.rows);
                    self.tracker.leave_out();
                    let diagnostics = &mut self.diagnostics;
                    self.row_checks.skip_unread(part_notes(diagnostics, number));
                    self.segments.push(segment);
                    segment = Segment { at: blocks.range.end, row: self.rows, rows: 0, ..segment };
                }
                Step::End => break,
            }
        }
        self.segments.push(segment);
        self.segments.retain(|segment| segment.rows > 0);
        block_scan.run()
    }

    /// Adds a block of `rows` rows at offset `at` from the start of the file.
    fn add_block(&mut self, part: &Part, segment: &Segment, at: u64, rows: u64) {
        let Some(table) = &self.table else { return };
        let Some(block_times) = times_at(&part.bytes, at) else { return };
        let layout = &table.layout;
        let (number, first) = (segment.part, self.rows);
        let is_unread = |range: Range<u64>| number == 0 && self.options.unread.touches(&range);
        if is_unread(at..at + BLOCK_TIMES_LEN) {
            self.tracker.skip_unread(rows);
            // The times of these rows are computed from the last block whose times have been read.
            if let Some(last) = self.blocks.list.last_mut() {
                last.rows += rows;
            }
            return;
        }
        let mut note = part_notes(&mut self.diagnostics, number);
        let change = self.tracker.block(part.base + at, block_times, first, rows, &mut note);
        for row in first..(first + rows).min(self.row_checks.until) {
            let at = segment.row_at(layout, row);
            if is_unread(at..at + layout.row as u64) {
                self.row_checks.skip_unread(&mut note);
                break;
            }
            let bytes = part.slice(at, at + layout.row as u64);
            self.row_checks.row(row, part.base + at, Row::new(bytes, table), &mut note);
        }
        if let ClockChange::Gap { nanos, .. } = change {
            self.gaps = (self.gaps.0 + 1, self.gaps.1 + i128::from(nanos));
        }
        self.is_suspect |= matches!(change, ClockChange::Implausible | ClockChange::Backwards);
        let narrow = |time: i128| i64::try_from(time).unwrap_or_default();
        let (realtime, monotonic) = (narrow(block_times.realtime()), narrow(block_times.monotonic()));
        self.blocks.list.push(clock::Block { row: first, rows, realtime, monotonic, change });
    }

    pub(crate) fn finish(mut self) -> RldReader {
        let diagnostics = &mut self.diagnostics;
        self.row_checks.end(|rule, range, text| diagnostics.push(rule, range, || text));
        let Self {
            validated,
            table,
            mut topic,
            parts,
            segments,
            blocks,
            diagnostics,
            options,
            is_suspect,
            rows,
            size,
            gaps,
            ..
        } = self;
        let report = blocks.report();
        topic.count = rows;
        topic.bytes = rows * table.as_ref().map_or(0, |table| table.layout.row as u64);
        let layout = table.as_ref().map(|table| &table.layout);
        let result = ReadResult {
            validated: &validated,
            size,
            rows,
            blocks: segments
                .iter()
                .map(|segment| layout.map_or(0, |layout| layout.blocks(segment.rows)))
                .sum(),
            last_rows: segments
                .last()
                .map_or(0, |last| layout.map_or(0, |layout| state::last_rows(last.rows, layout.block_rows))),
            parts: parts.len(),
            gaps,
            is_whole: options.unread.is_empty(),
            first: None,
            last: None,
            diagnostics: &diagnostics,
            report: Some(&report),
        };
        let info = state::info(&result);
        let base = match options.clock {
            Some(Clock::Boot) => TimeBase::Monotonic,
            Some(Clock::Unix) => TimeBase::Unix,
            _ => blocks.steadiest_time_base(),
        };
        let mut reader = RldReader {
            parts,
            segments,
            validated,
            table,
            times: blocks.map(TimeOptions::default()),
            blocks,
            report,
            rows,
            topics: vec![topic],
            info,
            diagnostics,
            unread: options.unread,
            is_suspect,
            ambient: None,
        };
        reader.set_time_base(base);
        reader.info.set_utc_start(options.utc_start);
        reader
    }
}
