//! The scan that opens a log: files are taken one by one, validated, and their block times
//! followed.

use std::ops::Range;

use rovelog_core::partial::Unread;
use rovelog_core::reader::Companion;
use rovelog_core::scan::Window;
use rovelog_core::{Bytes, Diagnostics, ReadOptions, Rule, Topic};

use crate::clock::{self, Blocks, Noticed, TimeAxis, TimeBase, TimeOptions, Tracker};
use crate::diagnostics as rules;
use crate::error::RldError;
use crate::layout::{Aligned, times_at};
use crate::names;
use crate::reader::{Part, RldReader, Segment};
use crate::resync::{Follower, Step};
use crate::row::{Row, Table};
use crate::state::{self, AMBIENT, Known, unix};
use crate::validate::{Validated, validate};
use crate::watch::Watch;
use crate::wire::BLOCK_TIMES_LEN;

/// Validates a file in memory.
pub(crate) fn validated(bytes: &[u8]) -> Result<Validated, RldError> {
    let len = bytes.len() as u64;
    match validate(bytes, Some(len))? {
        Ok(validated) => Ok(validated),
        Err(_) => Err(RldError::HeaderCut { len, header: 0 }),
    }
}

/// Validates a part of the log whose first file is `first`: the nine fields that identify a
/// recording and the channel tables must agree.
pub(crate) fn validated_part(bytes: &[u8], first: &Validated) -> Result<Validated, &'static str> {
    let own = validated(bytes).map_err(|_| "it does not open")?;
    let (a, b) = (&first.header.lead_in, &own.header.lead_in);
    let differs = [
        (a.file_version != b.file_version, "another version"),
        (a.data_block_size != b.data_block_size, "blocks of another size"),
        (a.sample_rate != b.sample_rate, "another rate"),
        (a.mac != b.mac, "another device"),
        (a.start_sec != b.start_sec || a.start_nsec != b.start_nsec, "another start time"),
        (a.comment_length != b.comment_length, "a comment of another length"),
        (a.binary_count != b.binary_count || a.analog_count != b.analog_count, "other numbers of channels"),
        (a.header_length != b.header_length, "a header of another length"),
    ];
    if let Some((_, why)) = differs.iter().find(|(differs, _)| *differs) {
        return Err(why);
    }
    if first.header.channels != own.header.channels && own.plausible {
        return Err("other channels");
    }
    Ok(own.with_rows_of(first))
}

impl RldReader {
    /// Opens the log in `bytes`.
    ///
    /// # Errors
    /// Returns an error if the bytes are not an RLD file, end inside its header, or have an unknown
    /// version. Damage is not an error: it is reported by
    /// [`diagnostics`](rovelog_core::LogReader::diagnostics).
    pub fn new(bytes: Bytes, options: &ReadOptions) -> Result<Self, RldError> {
        Self::join(vec![bytes], options)
    }

    /// Opens the parts of a split recording as one log, in order. Offsets count through all parts.
    ///
    /// # Errors
    /// Returns the errors of [`new`](Self::new), and an error if the header of a part does not
    /// match that of the first.
    pub fn join(parts: Vec<Bytes>, options: &ReadOptions) -> Result<Self, RldError> {
        let mut parts = parts.into_iter();
        let first = parts.next().ok_or_else(|| RldError::refused("a log has at least one file"))?;
        let validated = validated(&first)?;
        let mut opened = Opening::new(validated, options);
        opened.part(first, None);
        for (i, bytes) in parts.enumerate() {
            let own = validated_part(&bytes, &opened.validated)
                .map_err(|why| RldError::NotAPart { part: i + 1, why })?;
            opened.part(bytes, Some(own));
        }
        Ok(opened.finish())
    }

    /// Reads the same files with the rows after those that their headers count.
    pub(crate) fn reopened_whole(&self) -> Result<Self, RldError> {
        let further = |part: &Part| part.left_out;
        let first = self.parts.first().map_or(0, further);
        let validated = Validated { further: first, ..self.validated.clone() };
        let mut opened = Opening::new(validated, &ReadOptions::default());
        for (i, part) in self.parts.iter().enumerate() {
            let own = if i == 0 { None } else { Some(validated_part(&part.bytes, &self.validated)) };
            let own = own.transpose().map_err(|why| RldError::NotAPart { part: i, why })?;
            opened.part(part.bytes.clone(), own.map(|own| Validated { further: further(part), ..own }));
        }
        Ok(opened.finish())
    }
}

/// Opens a log with its other files, in the order of [`names::companions`]. Files that do not belong
/// to it are reported and left out.
pub(crate) fn open_with(
    first: Bytes,
    companions: Vec<Companion>,
    options: &ReadOptions,
) -> Result<RldReader, RldError> {
    // An ambient file that is opened itself: its companions are its own parts.
    let alone = validated(&first)?.is_ambient();
    let mut parts = companions;
    let first_ambient = parts.iter().position(|(name, _)| !alone && names::is_ambient(name));
    let ambient = parts.split_off(first_ambient.unwrap_or(parts.len()));
    let mut left_out = Vec::new();
    let mut log = longest(first, parts, options, &mut left_out)?;
    let mut ambient = ambient.into_iter();
    if let Some((name, first)) = ambient.next() {
        match longest(first, ambient.collect(), options, &mut left_out) {
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

/// Returns the longest sequence of files, from the first on, that is one log.
fn longest(
    first: Bytes,
    parts: Vec<Companion>,
    options: &ReadOptions,
    left_out: &mut Vec<(String, String)>,
) -> Result<RldReader, RldError> {
    let (names, parts): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
    let mut files = vec![first];
    files.extend(parts);
    match RldReader::join(files.clone(), options) {
        Err(RldError::NotAPart { part, why }) => {
            let why = format!("{why}; later parts are left out with it");
            left_out.extend(names.get(part - 1).map(|name| (name.clone(), why)));
            files.truncate(part);
            RldReader::join(files, options)
        }
        log => log,
    }
}

/// Returns a function that adds diagnostics of a file to a list.
fn noting(diagnostics: &mut Diagnostics, part: usize) -> impl FnMut(&'static Rule, Range<u64>, String) {
    move |rule, range, text| {
        diagnostics.push(rule, range, || if part == 0 { text } else { format!("part {part}: {text}") });
    }
}

/// A log during opening, file by file.
pub(crate) struct Opening {
    pub(crate) validated: Validated,
    table: Option<Table>,
    topic: Topic,
    parts: Vec<Part>,
    segments: Vec<Segment>,
    blocks: Blocks,
    tracker: Tracker,
    watch: Watch,
    diagnostics: Diagnostics,
    /// Of the first file; others are read whole.
    unread: Unread,
    is_suspect: bool,
    rows: u64,
    size: u64,
    gaps: (u64, i128),
}

impl Opening {
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
        let watch = Watch::new(&validated, table.as_ref());
        Self {
            validated,
            table,
            topic,
            parts: Vec::new(),
            segments: Vec::new(),
            blocks,
            tracker,
            watch,
            diagnostics: options.diagnostics(),
            unread: options.unread.clone(),
            is_suspect: false,
            rows: 0,
            size: 0,
            gaps: (0, 0),
        }
    }

    /// Adds a file; `own` is its validated header, unless it is the first.
    pub(crate) fn part(&mut self, bytes: Bytes, own: Option<Validated>) {
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
            // The lead-in is valid, the table is not: releases 2.0.0-beta1 to 2.0.1.
            let at = own.header.size() - crate::wire::CHANNEL_LEN * own.header.lead_in.channels();
            let text = "its channel table is invalid".to_owned();
            self.note(number, base, &rules::TABLE_FROM_FIRST, at..own.header.size(), &text);
        }
        let first = self.rows;
        let part = Part { bytes, base, header: own.header.clone(), row: first, rows: 0, left_out: 0 };
        let last = self.blocks_of(&part, number, &own);
        let behind = if own.further == 0 { own.behind(&part.bytes, &last) } else { 0 };
        let extent = own.extent(len, &last, behind);
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

    /// Adds the blocks of a file. Returns the last ones at regular distances.
    fn blocks_of(&mut self, part: &Part, number: usize, own: &Validated) -> Aligned {
        let is_whole = number > 0 || self.unread.is_empty();
        let mut follower = Follower::new(own, is_whole);
        let first = |at| Segment { part: number, at, row: self.rows, rows: 0 };
        let mut segment = first(follower.aligned().at);
        let window = Window::whole(&part.bytes);
        loop {
            match follower.next(window).unwrap_or(Step::End) {
                Step::Block { at, rows } => {
                    self.block(part, &segment, at, rows);
                    segment.rows += rows;
                    self.rows += rows;
                }
                Step::LeftOut(blocks) => {
                    let range = blocks.range.clone();
                    self.note(number, part.base, &rules::BLOCK_LENGTH, range, &blocks.text(self.rows));
                    self.diagnostics.count_missing(blocks.rows);
                    self.tracker.leave_out();
                    let diagnostics = &mut self.diagnostics;
                    self.watch.pass(noting(diagnostics, number));
                    self.segments.push(segment);
                    segment = Segment { at: blocks.range.end, row: self.rows, rows: 0, ..segment };
                }
                Step::End => break,
            }
        }
        self.segments.push(segment);
        self.segments.retain(|segment| segment.rows > 0);
        follower.aligned()
    }

    /// Adds a block of `rows` rows at an offset of its file.
    fn block(&mut self, part: &Part, segment: &Segment, at: u64, rows: u64) {
        let Some(table) = &self.table else { return };
        let Some(block_times) = times_at(&part.bytes, at) else { return };
        let layout = &table.layout;
        let (number, first) = (segment.part, self.rows);
        let is_unread = |range: Range<u64>| number == 0 && self.unread.touches(&range);
        if is_unread(at..at + BLOCK_TIMES_LEN) {
            self.tracker.pass(rows);
            // Its rows go on from the last block that was read.
            if let Some(last) = self.blocks.list.last_mut() {
                last.rows += rows;
            }
            return;
        }
        let mut note = noting(&mut self.diagnostics, number);
        let noticed = self.tracker.block(part.base + at, block_times, first, rows, &mut note);
        for row in first..(first + rows).min(self.watch.until) {
            let at = segment.row_at(layout, row);
            if is_unread(at..at + layout.row as u64) {
                self.watch.pass(&mut note);
                break;
            }
            let bytes = part.slice(at, at + layout.row as u64);
            self.watch.row(row, part.base + at, Row::new(bytes, table), &mut note);
        }
        if let Noticed::Gap { nanos, .. } = noticed {
            self.gaps = (self.gaps.0 + 1, self.gaps.1 + i128::from(nanos));
        }
        self.is_suspect |= matches!(noticed, Noticed::Implausible | Noticed::Backwards);
        let narrow = |time: i128| i64::try_from(time).unwrap_or_default();
        let (realtime, monotonic) = (narrow(block_times.realtime()), narrow(block_times.monotonic()));
        self.blocks.list.push(clock::Block { row: first, rows, realtime, monotonic, noticed });
    }

    pub(crate) fn finish(mut self) -> RldReader {
        let diagnostics = &mut self.diagnostics;
        self.watch.end(|rule, range, text| diagnostics.push(rule, range, || text));
        let Self {
            validated,
            table,
            mut topic,
            parts,
            segments,
            blocks,
            diagnostics,
            unread,
            is_suspect,
            rows,
            size,
            gaps,
            ..
        } = self;
        // Each row of an ambient file has the block times of the data that it was read with.
        let axis = if topic.name == AMBIENT { TimeAxis::BlockInterp } else { TimeAxis::Fit };
        let times = blocks.map(TimeOptions::new(axis, TimeBase::Unix));
        let report = blocks.report();
        let (first, last) = (times.time(0), rows.checked_sub(1).and_then(|row| times.time(row)));
        topic.count = rows;
        topic.bytes = rows * table.as_ref().map_or(0, |table| table.layout.row as u64);
        topic.timed = times.pieces.iter().map(|piece| piece.end - piece.start).sum();
        (topic.first, topic.last) = (first.map(unix), last.map(unix));
        topic.in_order = times.is_ascending();
        let layout = table.as_ref().map(|table| &table.layout);
        let known = Known {
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
            is_whole: unread.is_empty(),
            first,
            last,
            diagnostics: &diagnostics,
            report: Some(&report),
        };
        let info = state::info(&known);
        RldReader {
            parts,
            segments,
            validated,
            table,
            blocks,
            times,
            report,
            rows,
            topics: vec![topic],
            info,
            diagnostics,
            unread,
            is_suspect,
            ambient: None,
        }
    }
}
