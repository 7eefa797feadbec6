//! The random-access reader: a log in memory or in mapped files, one file or the parts of a split set.

use std::io::Write;
use std::ops::{Range, RangeInclusive};

use rovelog_core::order::{Blocks as OrderBlocks, InOrder, Place};
use rovelog_core::{
    Bytes, Diagnostics, FormatInfo, LogInfo, LogReader, ReadOptions, Record, Records, RecoverOptions,
    Recovery, Select, Sliced, Topic, TopicId,
};
use zerocopy::FromBytes;

use crate::clock::{self, Blocks, ClockReport, Noticed, TimeAxis, TimeBase, TimeMap, TimeOptions, Tracker};
use crate::diagnostics as rules;
use crate::error::RldError;
use crate::frame::{Extent, Judged, judge};
use crate::layout::Layout;
use crate::recover::recover;
use crate::reshape;
use crate::row::{Row, Table};
use crate::schema::Channel;
use crate::summary::{self, AMBIENT, Read, unix};
use crate::wire::{BlockStamps, Header, STAMPS_LEN};

/// Rows whose bits are checked for ones that belong to no channel, when a log is opened.
pub(crate) const DIRTY_ROWS: u64 = 1024;

/// An RLD log, opened. Opening reads the header and the stamps of each block; rows are decoded when asked for.
#[derive(Debug)]
pub struct RldReader {
    pub(crate) parts: Vec<Part>,
    pub(crate) judged: Judged,
    /// `None` where the header does not allow to find rows.
    pub(crate) table: Option<Table>,
    pub(crate) blocks: Blocks,
    /// Times of rows on the Unix clock.
    times: TimeMap,
    report: ClockReport,
    rows: u64,
    topics: Vec<Topic>,
    info: LogInfo,
    diagnostics: Diagnostics,
    pub(crate) ambient: Option<Box<RldReader>>,
}

/// One file of a log.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) bytes: Bytes,
    /// Where it begins, the files of the log laid one behind the other.
    pub(crate) base: u64,
    pub(crate) header: Header,
    /// Its first row, counted through the log.
    pub(crate) row: u64,
    pub(crate) rows: u64,
}

impl Part {
    fn slice(&self, from: u64, to: u64) -> &[u8] {
        let index = |at: u64| usize::try_from(at).expect("within a file in memory");
        &self.bytes[index(from)..index(to)]
    }
}

impl RldReader {
    /// Opens the log that `bytes` holds.
    ///
    /// # Errors
    /// Where the bytes are no RLD file, end inside its header, or are of an unknown version. Damage is no error:
    /// it is in [`diagnostics`](LogReader::diagnostics).
    pub fn new(bytes: Bytes, options: &ReadOptions) -> Result<Self, RldError> {
        Self::join(vec![bytes], options)
    }

    /// Opens the parts of a split recording as one log, in order. Offsets count through the parts, one behind
    /// the other.
    ///
    /// # Errors
    /// As [`new`](Self::new), and where a part's header does not belong to the first one's.
    pub fn join(parts: Vec<Bytes>, options: &ReadOptions) -> Result<Self, RldError> {
        let mut parts = parts.into_iter();
        let first = parts.next().ok_or_else(|| RldError::refused("a log has at least one file"))?;
        let judged = judged(&first)?;
        let mut opened = Opening::new(judged, options);
        opened.part(first, None)?;
        for (i, bytes) in parts.enumerate() {
            let own =
                judged_part(&bytes, &opened.judged).map_err(|why| RldError::NotAPart { part: i + 1, why })?;
            opened.part(bytes, Some(own))?;
        }
        Ok(opened.finish())
    }

    /// The same files read as if no header counted its rows: up to the last complete one.
    pub(crate) fn reopened_whole(&self) -> Result<Self, RldError> {
        let mut judged = self.judged.clone();
        judged.declared = None;
        let mut opened = Opening::new(judged, &ReadOptions::default());
        for (i, part) in self.parts.iter().enumerate() {
            let own = if i == 0 { None } else { Some(judged_part(&part.bytes, &self.judged)) };
            let own = own.transpose().map_err(|why| RldError::NotAPart { part: i, why })?;
            opened.part(part.bytes.clone(), own.map(|own| Judged { declared: None, ..own }))?;
        }
        Ok(opened.finish())
    }

    /// The same log with the ambient file recorded beside it as a second topic.
    #[must_use]
    pub fn with_ambient(mut self, mut ambient: Self) -> Self {
        if let Some(topic) = ambient.topics.pop() {
            let (id, name) = (TopicId(1), AMBIENT.to_owned());
            let mut beside = Topic::new(id, name.clone(), name, topic.schema);
            (beside.count, beside.bytes, beside.timed) = (topic.count, topic.bytes, topic.timed);
            (beside.first, beside.last) = (topic.first, topic.last);
            self.info.records += beside.count;
            self.topics.truncate(1);
            self.topics.push(beside);
            self.ambient = Some(Box::new(ambient));
        }
        self
    }

    /// Whether it is the file of sensors beside a log.
    pub(crate) fn is_ambient(&self) -> bool {
        summary::is_ambient(&self.judged)
    }

    /// Takes note of a file that is named like one of the log's and is none.
    pub(crate) fn leave_out(&mut self, name: &str, why: &str) {
        let size = self.info.size;
        self.diagnostics.push(&rules::PART_LEFT_OUT, size..size, || format!("{name}: {why}"));
        self.info.problems = self.diagnostics.total();
    }

    /// The header of the first file.
    pub fn header(&self) -> &Header {
        &self.judged.header
    }

    /// The headers of all files, the bytes of each, and its rows counted through the log.
    pub fn parts(&self) -> impl Iterator<Item = (&Header, &Bytes, Range<u64>)> {
        self.parts.iter().map(|part| (&part.header, &part.bytes, part.row..part.row + part.rows))
    }

    /// The channels: binary ones first.
    pub fn channels(&self) -> &[Channel] {
        &self.judged.channels
    }

    /// A channel's index by its name.
    ///
    /// # Errors
    /// Where there is none.
    pub fn channel(&self, name: &str) -> Result<usize, RldError> {
        let at = self.channels().iter().position(|channel| &*channel.name == name);
        at.ok_or_else(|| RldError::NoChannel { name: name.to_owned() })
    }

    /// Where rows and values lie, in the first file.
    ///
    /// # Errors
    /// Where the header does not allow to find rows.
    pub fn layout(&self) -> Result<&Layout, RldError> {
        self.judged.layout.as_ref().map_err(|why| RldError::NoLayout { why: why.clone() })
    }

    /// The number of rows.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// A row by its number, in constant time.
    pub fn row(&self, row: u64) -> Option<Row<'_>> {
        let (part, table) = (self.part_of(row)?, self.table.as_ref()?);
        let at = table.layout.row_at(row - part.row);
        Some(Row::new(part.slice(at, at + table.layout.row as u64), table))
    }

    /// The bytes of `rows`, in stretches of rows without stamps between them: the number of the first row, and
    /// the bytes of so many rows. Every stretch has at most `at_most` rows.
    pub fn runs(&self, rows: Range<u64>, at_most: u64) -> Runs<'_> {
        Runs { reader: self, next: rows.start, end: rows.end.min(self.rows), at_most: at_most.max(1) }
    }

    /// The stamps of all blocks with the number of their first row, as stored.
    pub fn stamps(&self) -> impl Iterator<Item = (u64, &BlockStamps)> {
        self.parts.iter().flat_map(|part| {
            let layout = self.table.as_ref().map(|table| &table.layout);
            let blocks = layout.map_or(0, |layout| layout.blocks(part.rows));
            (0..blocks).filter_map(move |block| {
                let layout = layout?;
                let at = layout.block_at(block);
                let stamps = BlockStamps::ref_from_bytes(part.slice(at, at + STAMPS_LEN)).ok()?;
                Some((part.row + block * layout.block_rows, stamps))
            })
        })
    }

    /// The ambient file's reader, where there is one.
    pub fn ambient(&self) -> Option<&Self> {
        self.ambient.as_deref()
    }

    /// What the stamps say about clocks.
    pub fn clock_report(&self) -> &ClockReport {
        &self.report
    }

    /// The times of rows.
    pub fn times(&self, options: TimeOptions) -> TimeMap {
        self.blocks.map(options)
    }

    /// The times of rows on the Unix clock, as records have them.
    pub(crate) fn record_times(&self) -> &TimeMap {
        &self.times
    }

    /// The rows within the window of a selection, as ascending ranges.
    pub fn rows_selected(&self, select: &Select) -> Vec<Range<u64>> {
        if select.start.is_none() && select.end.is_none() {
            let all = 0..self.rows;
            return if self.rows > 0 { vec![all] } else { Vec::new() };
        }
        self.times.rows_between(select.start, select.end)
    }

    /// The table, for those who need rows.
    pub(crate) fn table(&self) -> Result<&Table, RldError> {
        self.layout()?;
        self.table.as_ref().ok_or_else(|| RldError::refused("this log has no channels"))
    }

    fn part_of(&self, row: u64) -> Option<&Part> {
        let at = self.parts.partition_point(|part| part.row + part.rows <= row);
        self.parts.get(at)
    }

    fn record_at(&self, place: Place) -> Option<Record<'_>> {
        let topic = self.topics.get(place.topic as usize)?;
        let reader = if place.topic == 0 { self } else { self.ambient()? };
        let row = reader.row(place.seq)?;
        let table = reader.table.as_ref()?;
        let time = reader.times.time(place.seq).map(unix);
        Some(Record::new(topic, time, place.offset, place.seq, row.bytes(), table))
    }

    /// Offset of a row, files laid one behind the other.
    fn offset_of(&self, row: u64) -> u64 {
        let place = self.part_of(row).zip(self.table.as_ref());
        place.map_or(0, |(part, table)| part.base + table.layout.row_at(row - part.row))
    }

    /// All rows in file order as records; ambient ones behind.
    pub fn records_in_file_order(&self) -> impl Iterator<Item = Record<'_>> {
        let rows = |topic: u32, reader: Option<&'_ Self>| {
            (0..reader.map_or(0, |reader| reader.rows)).map(move |seq| (topic, seq))
        };
        let places = rows(0, Some(self)).chain(rows(1, self.ambient()));
        places.filter_map(|(topic, seq)| self.record_at(self.place(topic, seq)))
    }

    /// Where a row of a topic stands in the order of records.
    fn place(&self, topic: u32, row: u64) -> Place {
        let reader = if topic == 0 { self } else { self.ambient().unwrap_or(self) };
        Place { time: ordered(&reader.times, row), offset: reader.offset_of(row), topic, seq: row }
    }
}

/// Stretches of rows without stamps between them.
#[derive(Clone, Debug)]
pub struct Runs<'a> {
    reader: &'a RldReader,
    next: u64,
    end: u64,
    at_most: u64,
}

impl<'a> Iterator for Runs<'a> {
    type Item = (u64, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        if self.next >= self.end {
            return None;
        }
        let reader: &'a RldReader = self.reader;
        let (part, layout) = (reader.part_of(self.next)?, &reader.table.as_ref()?.layout);
        let row = self.next - part.row;
        let in_block = layout.block_rows - row % layout.block_rows;
        let rows = in_block.min(part.rows - row).min(self.end - self.next).min(self.at_most);
        let at = layout.row_at(row);
        let first = self.next;
        self.next += rows;
        Some((first, part.slice(at, at + rows * layout.row as u64)))
    }
}

/// Judges a file that lies in memory.
pub(crate) fn judged(bytes: &[u8]) -> Result<Judged, RldError> {
    let len = bytes.len() as u64;
    match judge(bytes, Some(len))? {
        Ok(judged) => Ok(judged),
        Err(_) => Err(RldError::HeaderCut { len, header: 0 }),
    }
}

/// Judges a part of the log that begins with `first`; the nine fields of joining and the tables must agree.
fn judged_part(bytes: &[u8], first: &Judged) -> Result<Judged, &'static str> {
    let own = judged(bytes).map_err(|_| "it does not open")?;
    let (a, b) = (&first.header.lead_in, &own.header.lead_in);
    let differs = [
        (a.magic != b.magic || a.file_version != b.file_version, "another version"),
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
    Ok(own)
}

/// A log while its files are taken one by one.
struct Opening {
    judged: Judged,
    table: Option<Table>,
    topic: Topic,
    parts: Vec<Part>,
    blocks: Blocks,
    tracker: Tracker,
    diagnostics: Diagnostics,
    rows: u64,
    size: u64,
    truncated: bool,
    gaps: (u64, i128),
}

impl Opening {
    fn new(judged: Judged, options: &ReadOptions) -> Self {
        let (table, topic) = summary::topic(&judged);
        let lead_in = &judged.header.lead_in;
        let tracker = Tracker::new(lead_in);
        let late = clock::latency(
            judged.version.number,
            lead_in.sample_rate.get(),
            lead_in.data_block_size.get().into(),
        );
        let blocks = Blocks {
            rate: lead_in.sample_rate.get(),
            start: tracker.anchor().map(|anchor| anchor.realtime),
            latency: i64::try_from(late).unwrap_or_default(),
            list: Vec::new(),
        };
        Self {
            judged,
            table,
            topic,
            parts: Vec::new(),
            blocks,
            tracker,
            diagnostics: Diagnostics::new(&options.limits),
            rows: 0,
            size: 0,
            truncated: false,
            gaps: (0, 0),
        }
    }

    /// Takes a file; `own` is its judgement where it is not the first.
    fn part(&mut self, bytes: Bytes, own: Option<Judged>) -> Result<(), RldError> {
        let number = self.parts.len();
        let base = self.size;
        let len = bytes.len() as u64;
        let notes = own.as_ref().map_or(&self.judged.notes, |own| &own.notes).clone();
        let mut own = own.unwrap_or_else(|| self.judged.clone());
        if own.header.channels == self.judged.header.channels {
            for (rule, range, text) in &notes {
                self.note(number, base, rule, range.clone(), text);
            }
        } else {
            // The lead-in is sound, the table is garbage: releases 2.0.0-beta1 to 2.0.1.
            let at = own.header.len() - crate::wire::CHANNEL_LEN * own.header.lead_in.channels();
            let text = "its channel table makes no sense".to_owned();
            self.note(number, base, &rules::TABLE_FROM_FIRST, at..own.header.len(), &text);
            own.layout.clone_from(&self.judged.layout);
        }
        let extent = own.extent(len);
        let Extent { rows, truncated, .. } = extent;
        self.truncated |= truncated;
        let header = if number == 0 { self.judged.header.clone() } else { own.header };
        let part = Part { bytes, base, header, row: self.rows, rows };
        self.blocks_of(&part, number)?;
        for (rule, range, text) in &extent.notes {
            self.note(number, base, rule, range.clone(), text);
        }
        self.parts.push(part);
        self.rows += rows;
        self.size += len;
        Ok(())
    }

    fn note(
        &mut self,
        part: usize,
        base: u64,
        rule: &'static rovelog_core::Rule,
        range: Range<u64>,
        text: &str,
    ) {
        self.diagnostics.push(rule, base + range.start..base + range.end, || {
            if part == 0 { text.to_owned() } else { format!("part {part}: {text}") }
        });
    }

    fn blocks_of(&mut self, part: &Part, number: usize) -> Result<(), RldError> {
        let Some(table) = &self.table else { return Ok(()) };
        let layout = &table.layout;
        if number == 0
            && let Some((row, text)) = dirty(table, part)
        {
            let at = layout.row_at(row);
            self.diagnostics.push(&rules::DIRTY_BITS, at..at + 4 * layout.words as u64, || text);
        }
        for block in 0..layout.blocks(part.rows) {
            let at = layout.block_at(block);
            let stamps = BlockStamps::ref_from_bytes(part.slice(at, at + STAMPS_LEN));
            let stamps = stamps.map_err(|_| RldError::refused("stamps of another size"))?;
            let row = part.row + block * layout.block_rows;
            let rows = layout.block_rows.min(part.rows - block * layout.block_rows);
            let diagnostics = &mut self.diagnostics;
            let noticed = self.tracker.block(part.base + at, stamps, row, rows, |rule, range, text| {
                diagnostics
                    .push(rule, range, || if number == 0 { text } else { format!("part {number}: {text}") });
            });
            if let Noticed::Gap { nanos, .. } = noticed {
                self.gaps = (self.gaps.0 + 1, self.gaps.1 + i128::from(nanos));
            }
            let narrow = |time: i128| i64::try_from(time).unwrap_or_default();
            let (realtime, monotonic) = (narrow(stamps.realtime()), narrow(stamps.monotonic()));
            self.blocks.list.push(clock::Block { row, rows, realtime, monotonic, noticed });
        }
        Ok(())
    }

    fn finish(self) -> RldReader {
        let Self {
            judged, table, mut topic, parts, blocks, diagnostics, rows, size, truncated, gaps, ..
        } = self;
        // Each row of an ambient file has the stamps of the data it was read with.
        let axis = if topic.name == AMBIENT { TimeAxis::BlockInterp } else { TimeAxis::Fit };
        let times = blocks.map(TimeOptions::new(axis, TimeBase::Unix));
        let report = blocks.report();
        let (first, last) = (times.time(0), rows.checked_sub(1).and_then(|row| times.time(row)));
        topic.count = rows;
        topic.bytes = rows * table.as_ref().map_or(0, |table| table.layout.row as u64);
        topic.timed = times.pieces.iter().map(|piece| piece.end - piece.start).sum();
        (topic.first, topic.last) = (first.map(unix), last.map(unix));
        let read = Read {
            judged: &judged,
            size,
            rows,
            blocks: blocks.list.len() as u64,
            parts: parts.len(),
            truncated,
            gaps,
            first,
            last,
            diagnostics: &diagnostics,
            report: Some(&report),
        };
        let info = summary::info(&read);
        RldReader {
            parts,
            judged,
            table,
            blocks,
            times,
            report,
            rows,
            topics: vec![topic],
            info,
            diagnostics,
            ambient: None,
        }
    }
}

/// The first row with bits of no channel among the first thousand.
fn dirty(table: &Table, part: &Part) -> Option<(u64, String)> {
    (0..part.rows.min(DIRTY_ROWS)).find_map(|row| {
        let at = table.layout.row_at(row);
        let bytes = part.slice(at, at + table.layout.row as u64);
        dirty_bits(table, bytes).map(|text| (row, text))
    })
}

/// Bits of a row that belong to no channel.
pub(crate) fn dirty_bits(table: &Table, row: &[u8]) -> Option<String> {
    let binary = table.binary();
    if binary.is_multiple_of(32) {
        return None;
    }
    let last = Row::new(row, table).word(binary / 32)?;
    let dirty = last & !((1 << (binary % 32)) - 1);
    (dirty != 0).then(|| format!("a word of {last:#010x} with {binary} binary channels"))
}

impl LogReader for RldReader {
    fn format(&self) -> &'static FormatInfo {
        &crate::INFO
    }

    fn info(&self) -> &LogInfo {
        &self.info
    }

    fn topics(&self) -> &[Topic] {
        &self.topics
    }

    fn records<'a>(&'a self, select: &Select) -> Records<'a> {
        let wanted: Vec<bool> = self.topics.iter().map(|topic| select.keeps_topic(topic)).collect();
        let selected = Selected::new(self, &wanted, select);
        let latched = if select.latched { selected.latched() } else { Vec::new() };
        let places = latched.into_iter().chain(InOrder::new(selected));
        Box::new(places.filter_map(|place| self.record_at(place).map(Ok)))
    }

    #[cfg(feature = "arrow")]
    fn columns<'a>(
        &'a self,
        topic: &Topic,
        select: &Select,
    ) -> rovelog_core::Result<rovelog_core::Batches<'a>> {
        let options = crate::columns::ColumnOptions::physical();
        let reader = if topic.id.index() == 0 { Some(self) } else { self.ambient() };
        let reader = reader.ok_or_else(|| RldError::refused("this log has no ambient file"))?;
        Ok(Box::new(reader.batches_as(&topic.name, select, &options)?))
    }

    fn definition(&self, topic: &Topic) -> Option<String> {
        let reader = if topic.id.index() == 0 { self } else { self.ambient()? };
        let line = |channel: &Channel| {
            let link = channel.valid.map(|bit| format!(" valid={}", reader.channels()[bit].name));
            let kind = if channel.is_binary { "binary" } else { "analog" };
            format!(
                "{kind} {} {} scale={}{}\n",
                channel.name,
                channel.unit,
                channel.scale,
                link.unwrap_or_default()
            )
        };
        Some(reader.channels().iter().map(line).collect())
    }

    fn diagnostics(&self) -> &Diagnostics {
        &self.diagnostics
    }

    fn recover(&self, out: &mut dyn Write, _: &RecoverOptions) -> rovelog_core::Result<Recovery> {
        Ok(recover(self, out)?)
    }

    fn slice(&self, select: &Select, out: &mut dyn Write) -> rovelog_core::Result<Sliced> {
        Ok(reshape::slice(self, select, out)?)
    }
}

/// Rows that are ordered at a time.
const ORDERED: u64 = 1 << 14;

/// Rows of both topics within a selection, in groups.
struct Selected<'a> {
    reader: &'a RldReader,
    /// Topic, rows, and the span of their times.
    groups: Vec<(u32, Range<u64>, RangeInclusive<i64>)>,
    wanted: Vec<bool>,
    start: Option<i64>,
}

/// The time by which a row is ordered: rows without one come first.
fn ordered(times: &TimeMap, row: u64) -> i64 {
    times.time(row).unwrap_or(i64::MIN)
}

impl<'a> Selected<'a> {
    fn new(reader: &'a RldReader, wanted: &[bool], select: &Select) -> Self {
        let mut groups = Vec::new();
        let topics = [Some(reader), reader.ambient()];
        for (topic, reader) in topics.into_iter().enumerate() {
            let Some(reader) = reader.filter(|_| wanted.get(topic) == Some(&true)) else { continue };
            for rows in reader.rows_selected(select) {
                let mut from = rows.start;
                while from < rows.end {
                    // A group ends with its piece, so that its first and last rows have its extreme times.
                    let piece = reader.times.piece(from).map_or(rows.end, |piece| piece.end);
                    let to = rows.end.min(piece).min(from + ORDERED);
                    let span = ordered(&reader.times, from)..=ordered(&reader.times, to - 1);
                    groups.push((u32::try_from(topic).expect("two topics"), from..to, span));
                    from = to;
                }
            }
        }
        Self { reader, groups, wanted: wanted.to_vec(), start: select.start }
    }

    /// Each topic's last row before the start.
    fn latched(&self) -> Vec<Place> {
        let Some(start) = self.start else { return Vec::new() };
        let last =
            (0..2u32).filter(|topic| self.wanted.get(*topic as usize) == Some(&true)).filter_map(|topic| {
                let reader = if topic == 0 { self.reader } else { self.reader.ambient()? };
                let before = reader.times.rows_between(None, Some(start));
                before.last().map(|rows| self.reader.place(topic, rows.end - 1))
            });
        let mut places: Vec<Place> = last.collect();
        places.sort_unstable();
        places
    }
}

impl OrderBlocks for Selected<'_> {
    fn span(&self, block: usize) -> Option<RangeInclusive<i64>> {
        Some(self.groups[block].2.clone())
    }

    fn count(&self) -> usize {
        self.groups.len()
    }

    fn visit(&self, block: usize, visit: &mut dyn FnMut(Place)) {
        let (topic, rows, _) = &self.groups[block];
        for row in rows.clone() {
            visit(self.reader.place(*topic, row));
        }
    }
}
