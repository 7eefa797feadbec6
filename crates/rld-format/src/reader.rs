//! Reader with random access to a log in memory or in mapped files. The log is one file, or
//! consists of the parts of a split recording.

use std::ops::{Range, RangeInclusive};

use rovelog_core::internal::order::{Blocks as OrderBlocks, InOrder, Place};
use rovelog_core::internal::partial::Unread;
use rovelog_core::{Bytes, Diagnostics, LogInfo, Record, Select, Topic, TopicId};

use crate::clock::{ClockReport, LogTimes, TimeAxis, TimeBase, TimeMap, TimeOptions};
use crate::diagnostics as rules;
use crate::error::RldError;
use crate::layout::{Layout, times_at};
use crate::log_scan::AMBIENT;
use crate::row::{Row, Table};
use crate::schema::Channel;
use crate::state;
use crate::validate::Validated;
use crate::wire::{BLOCK_TIMES_LEN, BlockTimes, Header};

/// An opened RLD log. Opening reads the header and the times of each block. Rows are decoded only
/// when they are requested.
#[derive(Debug)]
pub struct RldReader {
    pub(crate) parts: Vec<Part>,
    /// Segments of all files, in ascending order of row numbers. Within a segment, no blocks are
    /// skipped.
    pub(crate) segments: Vec<Segment>,
    pub(crate) validated: Validated,
    /// Channels and layout of rows. `None` if the header does not allow rows to be located.
    pub(crate) table: Option<Table>,
    pub(crate) times: LogTimes,
    pub(crate) topics: Vec<Topic>,
    pub(crate) info: LogInfo,
    pub(crate) diagnostics: Diagnostics,
    pub(crate) ambient: Option<Box<RldReader>>,
}

/// One file of a log.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Part {
    /// Header of the file.
    pub header: Header,
    /// Bytes of the file.
    pub bytes: Bytes,
    /// Numbers of the rows in the file, counted from the start of the log.
    pub rows: Range<u64>,
    /// Total size in bytes of all files of the log before this file.
    pub(crate) base: u64,
    /// Number of rows at the end of the file that the header does not count. Such rows are not
    /// read.
    pub(crate) left_out: u64,
    /// Byte ranges that have not been fetched. Only the first file can have such ranges.
    pub(crate) unread: Unread,
}

/// Rows of a file in consecutive blocks, without missing or added bytes between the blocks. An
/// undamaged file has one segment. After each range of skipped bytes, another segment starts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    /// Index of the file in the list of the log's files.
    pub(crate) part: usize,
    /// Offset of the segment's first byte from the start of the file.
    pub(crate) at: u64,
    /// Number of the segment's first row, counted from the start of the log.
    pub(crate) row: u64,
    pub(crate) rows: u64,
    /// Times of the first row, if the segment has only some rows of one block, and not the times of
    /// this block.
    pub(crate) times: Option<BlockTimes>,
}

/// A block in a segment.
#[derive(Clone, Debug)]
pub(crate) struct SegmentBlock {
    /// Range of the block in the file.
    pub(crate) range: Range<u64>,
    /// Number of the block's first row, counted from the start of the log.
    pub(crate) row: u64,
    /// True if the block starts with its times.
    pub(crate) is_timed: bool,
}

impl Segment {
    /// Returns the offset of a row from the start of the file. The row number is counted from the
    /// start of the log.
    pub(crate) fn row_at(&self, layout: &Layout, row: u64) -> u64 {
        self.at + layout.row_from(row - self.row) - self.missing_len()
    }

    /// Returns the offset of a block from the start of the file. The block number is counted from
    /// the start of the segment.
    pub(crate) fn block_at(&self, layout: &Layout, block: u64) -> u64 {
        self.at + block * layout.block
    }

    /// Returns the times of a block. `block` is its number in the segment, counted from 0. If the
    /// start of the block is damaged, the times are computed. Otherwise, the stored times are
    /// returned.
    pub(crate) fn block_times<'a>(
        &'a self,
        layout: &Layout,
        file: &'a [u8],
        block: u64,
    ) -> Option<&'a BlockTimes> {
        self.times.as_ref().or_else(|| times_at(file, self.block_at(layout, block)))
    }

    /// Returns the blocks of the segment.
    pub(crate) fn blocks<'a>(&'a self, layout: &'a Layout) -> impl Iterator<Item = SegmentBlock> + use<'a> {
        (0..layout.blocks(self.rows)).map(move |block| {
            let before = block * layout.block_rows;
            let rows = layout.block_rows.min(self.rows - before);
            let (at, len) = (self.block_at(layout, block), BLOCK_TIMES_LEN + rows * layout.row as u64);
            let range = at..at + len - self.missing_len();
            SegmentBlock { range, row: self.row + before, is_timed: self.times.is_none() }
        })
    }

    /// Returns the range of the segment in the file.
    pub(crate) fn range(&self, layout: &Layout) -> Range<u64> {
        let len = u64::try_from(layout.body(self.rows)).unwrap_or_default();
        self.at..(self.at + len).saturating_sub(self.missing_len())
    }

    /// Returns the size in bytes of the block times that are missing at the start of the segment.
    fn missing_len(&self) -> u64 {
        if self.times.is_some() { BLOCK_TIMES_LEN } else { 0 }
    }
}

impl Part {
    pub(crate) fn slice(&self, from: u64, to: u64) -> &[u8] {
        let index = |at: u64| usize::try_from(at).expect("within a file in memory");
        &self.bytes[index(from)..index(to)]
    }
}

impl RldReader {
    /// Adds the rows of an ambient file, which contains the sensor values of the same recording, as
    /// a second topic.
    #[must_use]
    pub fn with_ambient(mut self, mut ambient: Self) -> Self {
        ambient.set_time_base(self.times.rows.base);
        if let Some(topic) = ambient.topics.first().cloned() {
            let (id, name) = (TopicId(1), AMBIENT.to_owned());
            let mut added = Topic::new(id, name.clone(), name, topic.schema);
            (added.count, added.bytes, added.timed) = (topic.count, topic.bytes, topic.timed);
            (added.first, added.last, added.in_order) = (topic.first, topic.last, topic.in_order);
            self.info.records += added.count;
            self.diagnostics.append(AMBIENT, self.info.size, &ambient.diagnostics);
            state::apply_diagnostics(&mut self.info, &self.diagnostics);
            self.info.size += ambient.info.size;
            self.topics.truncate(1);
            self.topics.push(added);
            self.ambient = Some(Box::new(ambient));
        }
        self
    }

    /// Computes the times of all rows on the clock of `base`, and sets the start, the end and the
    /// UTC offset of the log.
    pub(crate) fn set_time_base(&mut self, base: TimeBase) {
        let (topic, times) = (&mut self.topics[0], &mut self.times);
        // Each row of an ambient file is a block of its own with stored times. So the times of rows
        // are interpolated between block times.
        let axis = if topic.name == AMBIENT { TimeAxis::BlockInterp } else { TimeAxis::Fit };
        times.rows = times.blocks.map(TimeOptions::new(axis, base));
        topic.first = times.rows.timestamp(0);
        topic.last = topic.count.checked_sub(1).and_then(|row| times.rows.timestamp(row));
        topic.timed = times.rows.pieces.iter().map(|piece| piece.end - piece.start).sum();
        topic.in_order = times.rows.is_ascending();
        (self.info.start, self.info.end) = (topic.first, topic.last);
        self.info.utc = if base == TimeBase::Unix {
            None
        } else {
            times.blocks.utc(&times.rows, &times.blocks.map(TimeOptions::new(axis, TimeBase::Unix)))
        };
    }

    /// Reports a file that has the name of a part of this log but does not belong to it.
    pub(crate) fn leave_out(&mut self, name: &str, why: &str) {
        let size = self.info.size;
        self.diagnostics.push(&rules::PART_LEFT_OUT, size..size, || {
            format!("file {name} is not read, because it does not belong to this log: {why}")
        });
        self.info.problems = self.diagnostics.total();
    }

    /// Returns the topic that contains the rows of this log. Its name is `samples`, or `ambient` if
    /// the log is an ambient file.
    pub fn rows_topic(&self) -> &Topic {
        &self.topics[0]
    }

    /// Returns the header of the first file.
    pub fn header(&self) -> &Header {
        &self.validated.header
    }

    /// Returns the files of the log.
    pub fn parts(&self) -> impl Iterator<Item = &Part> {
        self.parts.iter()
    }

    /// Returns the channels of the log. Binary channels come before analog channels.
    pub fn channels(&self) -> &[Channel] {
        &self.validated.channels
    }

    /// Returns the index of the channel with this name.
    ///
    /// # Errors
    /// Returns an error if the log has no channel with this name.
    pub fn channel(&self, name: &str) -> Result<usize, RldError> {
        let at = self.channels().iter().position(|channel| &*channel.name == name);
        at.ok_or_else(|| RldError::NoChannel { name: name.to_owned() })
    }

    /// Returns the offsets of rows and values in the first file.
    ///
    /// # Errors
    /// Returns an error if the header does not allow rows to be located.
    pub fn layout(&self) -> Result<&Layout, RldError> {
        self.validated.layout.as_ref().map_err(|why| RldError::NoLayout { why: why.clone() })
    }

    /// Returns the number of rows in the log.
    pub fn rows(&self) -> u64 {
        self.topics[0].count
    }

    /// Returns the row with this number in constant time. Returns `None` if there is no such row.
    pub fn row(&self, row: u64) -> Option<Row<'_>> {
        let (segment, table) = (self.segment_of(row)?, self.table.as_ref()?);
        let at = segment.row_at(&table.layout, row);
        Some(Row::new(self.parts[segment.part].slice(at, at + table.layout.row as u64), table))
    }

    /// Returns the bytes of the rows in the range `rows`. Each item of the iterator has the number
    /// of its first row, and the bytes of at most `at_most` consecutive rows that belong to the
    /// same block.
    pub fn runs(&self, rows: Range<u64>, at_most: u64) -> Runs<'_> {
        Runs { reader: self, next: rows.start, end: rows.end.min(self.rows()), at_most: at_most.max(1) }
    }

    /// Returns the stored times of all blocks. Each item also has the number of the block's first
    /// row. If the start of a block is damaged, its other rows form a block whose times are computed.
    pub fn block_times(&self) -> impl Iterator<Item = (u64, &BlockTimes)> {
        self.segments.iter().flat_map(move |segment| {
            let layout = self.table.as_ref().map(|table| &table.layout);
            let blocks = layout.map_or(0, |layout| layout.blocks(segment.rows));
            (0..blocks).filter_map(move |block| {
                let layout = layout?;
                let times = segment.block_times(layout, &self.parts[segment.part].bytes, block)?;
                Some((segment.row + block * layout.block_rows, times))
            })
        })
    }

    /// Returns the reader of the ambient file. Returns `None` if the log has no ambient file.
    pub fn ambient(&self) -> Option<&Self> {
        self.ambient.as_deref()
    }

    /// Returns the gaps, clock steps and delays that were found in the block times.
    pub fn clock_report(&self) -> &ClockReport {
        &self.times.report
    }

    /// Computes the times of rows with these options.
    pub fn times(&self, options: TimeOptions) -> TimeMap {
        self.times.blocks.map(options)
    }

    /// Returns the times of records. They are on the Unix clock, with two exceptions: they are on
    /// the monotonic clock if the Unix clock was set during the log, or if
    /// [`ReadOptions::clock`](rovelog_core::ReadOptions::clock) selects the monotonic clock.
    pub fn record_times(&self) -> &TimeMap {
        &self.times.rows
    }

    /// Returns the rows that match both the time window and the byte range of blocks in a
    /// selection, as ascending ranges of row numbers.
    pub fn rows_selected(&self, select: &Select) -> Vec<Range<u64>> {
        let in_window = self.rows_within(select);
        let Some(bytes) = &select.blocks else { return in_window };
        let in_blocks = self.rows_of_blocks(bytes);
        let common = |a: &Range<u64>, b: &Range<u64>| a.start.max(b.start)..a.end.min(b.end);
        let all = in_window.iter().flat_map(|a| in_blocks.iter().map(move |b| common(a, b)));
        all.filter(|rows| !rows.is_empty()).collect()
    }

    /// Returns the rows of all blocks that start within a range of bytes, as ascending ranges of
    /// row numbers. There is at most one range for each segment.
    fn rows_of_blocks(&self, bytes: &Range<u64>) -> Vec<Range<u64>> {
        let Some(layout) = self.table.as_ref().map(|table| &table.layout) else { return Vec::new() };
        let of_segment = |segment: &Segment| {
            let start = self.parts[segment.part].base + segment.at;
            // First row of the first block that starts at `at` or later.
            let row = |at: u64| {
                let block = at.saturating_sub(start).div_ceil(layout.block);
                segment.row + block.saturating_mul(layout.block_rows).min(segment.rows)
            };
            row(bytes.start)..row(bytes.end)
        };
        self.segments.iter().map(of_segment).filter(|rows| !rows.is_empty()).collect()
    }

    /// Returns the rows within the time window of a selection, as ascending ranges of row numbers.
    fn rows_within(&self, select: &Select) -> Vec<Range<u64>> {
        if select.start.is_none() && select.end.is_none() {
            let all = 0..self.rows();
            return if all.is_empty() { Vec::new() } else { vec![all] };
        }
        self.times.rows.rows_between(select.start, select.end)
    }

    /// Returns the channels and the layout of rows.
    pub(crate) fn table(&self) -> Result<&Table, RldError> {
        self.layout()?;
        self.table.as_ref().ok_or_else(|| RldError::refused("this log has no channels"))
    }

    pub(crate) fn segment_of(&self, row: u64) -> Option<&Segment> {
        let at = self.segments.partition_point(|segment| segment.row + segment.rows <= row);
        self.segments.get(at)
    }

    fn record_at(&self, place: Place) -> Option<Record<'_>> {
        let topic = self.topics.get(place.topic as usize)?;
        let reader = self.of_topic(topic).ok()?;
        let row = reader.row(place.seq)?;
        let table = reader.table.as_ref()?;
        let time = reader.times.rows.timestamp(place.seq);
        Some(Record::new(topic, time, place.offset, place.seq, row.bytes(), table))
    }

    /// Returns the offset that a row would have if the files of the log were concatenated.
    fn offset_of(&self, row: u64) -> u64 {
        let place = self.segment_of(row).zip(self.table.as_ref());
        place.map_or(0, |(segment, table)| self.parts[segment.part].base + segment.row_at(&table.layout, row))
    }

    /// Returns the selected rows of the log and its ambient file as records in time order.
    pub(crate) fn records_in_order<'a>(
        &'a self,
        select: &Select,
    ) -> impl Iterator<Item = Record<'a>> + use<'a> {
        let places =
            self.last_before_window(select).into_iter().chain(InOrder::new(Selected::new(self, select)));
        places.filter_map(|place| self.record_at(place))
    }

    /// Returns the reader that has the rows of a topic: this reader, or the reader of the ambient
    /// file.
    pub(crate) fn of_topic(&self, topic: &Topic) -> Result<&Self, RldError> {
        let reader = if topic.id.index() == 0 { Some(self) } else { self.ambient() };
        reader.ok_or_else(|| RldError::refused("this log has no ambient file"))
    }

    /// Returns all rows as records in file order. Rows of the ambient file come last.
    pub fn records_in_file_order(&self) -> impl Iterator<Item = Record<'_>> {
        let rows = |topic: u32, reader: Option<&'_ Self>| {
            (0..reader.map_or(0, Self::rows)).map(move |seq| (topic, seq))
        };
        let places = rows(0, Some(self)).chain(rows(1, self.ambient()));
        places.filter_map(|(topic, seq)| self.record_at(self.place(topic, seq)))
    }

    /// Returns the last row before the time window for each topic for which `select` requests this
    /// row.
    fn last_before_window(&self, select: &Select) -> Vec<Place> {
        let last = |topic: &Topic| {
            Some(self.place(topic.id.0, self.of_topic(topic).ok()?.last_before(select.start?)?))
        };
        let topics = self.topics.iter().filter(|topic| select.keeps_last_before(topic));
        let mut places: Vec<Place> = topics.filter_map(last).collect();
        places.sort_unstable();
        places
    }

    /// Returns the number of the last row before the time `start`.
    pub(crate) fn last_before(&self, start: i64) -> Option<u64> {
        self.times.rows.rows_between(None, Some(start)).last().map(|rows| rows.end - 1)
    }

    /// Returns the sort key of a row, which consists of its time and its offset.
    fn place(&self, topic: u32, row: u64) -> Place {
        let reader = if topic == 0 { self } else { self.ambient().unwrap_or(self) };
        Place { time: sort_time(&reader.times.rows, row), offset: reader.offset_of(row), topic, seq: row }
    }
}

/// Iterator over the bytes of rows. Each item has the bytes of consecutive rows of the same block,
/// see [`RldReader::runs`].
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
        let (segment, layout) = (reader.segment_of(self.next)?, &reader.table.as_ref()?.layout);
        let row = self.next - segment.row;
        let in_block = layout.block_rows - row % layout.block_rows;
        let rows = in_block.min(segment.rows - row).min(self.end - self.next).min(self.at_most);
        let at = segment.row_at(layout, self.next);
        let first = self.next;
        self.next += rows;
        Some((first, reader.parts[segment.part].slice(at, at + rows * layout.row as u64)))
    }
}

/// Maximum number of rows in a group. Rows of the same group are sorted together.
const MAX_GROUP_ROWS: u64 = 1 << 14;

/// Selected rows of the log and its ambient file, divided into groups for sorting.
struct Selected<'a> {
    reader: &'a RldReader,
    groups: Vec<Group>,
}

/// Consecutive rows of a topic.
struct Group {
    topic: u32,
    /// Numbers of the rows in the log.
    rows: Range<u64>,
    /// Times of the first and the last row.
    span: RangeInclusive<i64>,
}

/// Returns the time by which a row is sorted. Rows without a time come before all others.
fn sort_time(times: &TimeMap, row: u64) -> i64 {
    times.time(row).unwrap_or(i64::MIN)
}

impl<'a> Selected<'a> {
    fn new(reader: &'a RldReader, select: &Select) -> Self {
        let mut groups = Vec::new();
        let readers = [Some(reader), reader.ambient()].into_iter().flatten();
        let topics = reader.topics.iter().zip(readers);
        for (topic, topic_reader) in topics.filter(|(topic, _)| select.keeps_topic(topic)) {
            let times = &topic_reader.times.rows;
            for rows in topic_reader.rows_selected(select) {
                let mut from = rows.start;
                while from < rows.end {
                    // All rows of a group are on the same straight piece of the time map. So the
                    // first row has the minimum time and the last row the maximum.
                    let piece = times.piece(from).map_or(rows.end, |piece| piece.end);
                    let to = rows.end.min(piece).min(from + MAX_GROUP_ROWS);
                    let span = sort_time(times, from)..=sort_time(times, to - 1);
                    groups.push(Group { topic: topic.id.0, rows: from..to, span });
                    from = to;
                }
            }
        }
        Self { reader, groups }
    }
}

impl OrderBlocks for Selected<'_> {
    fn span(&self, block: usize) -> Option<RangeInclusive<i64>> {
        Some(self.groups[block].span.clone())
    }

    fn count(&self) -> usize {
        self.groups.len()
    }

    fn visit(&self, block: usize, mut visit: impl FnMut(Place)) {
        let Group { topic, rows, .. } = &self.groups[block];
        rows.clone().for_each(|row| visit(self.reader.place(*topic, row)));
    }
}
