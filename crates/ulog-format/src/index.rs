//! The index that opening a log leaves: enough to walk any part of it again, and no more than a
//! thousandth of its size.

use std::ops::Range;

use rovelog_core::ranges;
use zerocopy::FromBytes as _;

use crate::clock::{LogClock, RowMicros};
use crate::definitions::{Definitions, RowShape, Shapes};
use crate::scan::{AHEAD, MetRow, plain_row, plain_time};
use crate::stats::Stats;
use crate::wire::{DataHead, Dropout, FLAG_BITS_AT, HEADER_LEN, Message, MessageHeader, kind};

/// Bytes of file per block.
const BLOCK: u64 = 4 << 20;

/// A stretch of the file that begins at a row.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) start: u64,
    /// Log time before its first row.
    now: u64,
    /// First and last time of its rows, by [`Era`].
    eras: [Option<(i64, i64)>; 3],
    /// The topics with rows in it, and how many rows they have before it.
    pub(crate) rows_before: Vec<(u32, u64)>,
}

impl Block {
    /// First and last time of its rows of an era, by which they are ordered.
    pub(crate) fn span(&self, era: Era) -> Option<(i64, i64)> {
        self.eras[era as usize]
    }

    /// First and last time in it.
    #[cfg(feature = "arrow")]
    pub(crate) fn whole_span(&self) -> Option<(i64, i64)> {
        self.eras.iter().flatten().copied().reduce(joined)
    }
}

/// Rows whose times say that they are older than the log are ordered by themselves: a log often has some in each block,
/// and a block would seem to reach from them to its own time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    /// Time 0, which devices write before they have one.
    Zero,
    /// Before the header's start time.
    Old,
    /// Since the header's start time.
    Log,
}

impl Era {
    pub(crate) const ALL: [Self; 3] = [Self::Zero, Self::Old, Self::Log];

    /// The era of a time in a log that starts at `start`, both in microseconds.
    #[inline]
    pub(crate) fn of(micros: u64, start: u64) -> Self {
        match micros {
            0 => Self::Zero,
            _ if micros < start => Self::Old,
            _ => Self::Log,
        }
    }
}

fn joined(one: (i64, i64), other: (i64, i64)) -> (i64, i64) {
    (one.0.min(other.0), one.1.max(other.1))
}

/// Blocks, and what a walk over them must step over or put in force.
#[derive(Debug, Default)]
pub(crate) struct Index {
    pub(crate) blocks: Vec<Block>,
    /// The header's start time, and the end of the log's data, microseconds.
    log_start: u64,
    data_end: u64,
    /// Bytes without sound messages, ascending.
    gaps: Vec<Range<u64>>,
    /// Where a subscription comes into force: offset, series, shape.
    in_force: Vec<(u64, u32, RowShape)>,
    /// The shapes by topic.
    shapes: Vec<RowShape>,
    /// Where the rows end.
    end: u64,
    /// In which eras each topic has rows.
    pub(crate) topic_eras: Vec<[bool; 3]>,
    /// The block that is being filled, counted from 1, and where it is full.
    number: u32,
    full_at: u64,
    /// First and last time in it so far, microseconds, by era.
    eras: [(u64, u64); 3],
    /// Times of fewer than 64 bits depend on all that is before them: then there is one block.
    whole: bool,
}

impl Index {
    /// An index of a log that starts at `log_start` and whose data ends at `data_end`, microseconds.
    pub(crate) fn new(log_start: u64, data_end: u64) -> Self {
        Self { log_start, data_end, ..Self::default() }
    }

    /// The era of a time, nanoseconds.
    pub(crate) fn era(&self, nanos: i64) -> Era {
        Era::of(u64::try_from(nanos / 1000).unwrap_or(0), self.log_start)
    }

    /// Where the bytes of a block are.
    pub(crate) fn bytes_of(&self, block: usize) -> Range<u64> {
        self.blocks[block].start..self.blocks.get(block + 1).map_or(self.end, |next| next.start)
    }

    /// Takes a row in file order. `order` is the time by which it is ordered, in microseconds; `before` the
    /// log time before it; `stats` what is counted of its topic, before this row.
    #[inline]
    pub(crate) fn row(&mut self, at: u64, series: u32, order: u64, before: u64, stats: &mut Stats) {
        if at >= self.full_at {
            self.begin_block(at, before);
        }
        let (first, last) = &mut self.eras[Era::of(order, self.log_start) as usize];
        (*first, *last) = ((*first).min(order), (*last).max(order));
        if stats.block != self.number {
            stats.block = self.number;
            if let Some(block) = self.blocks.last_mut() {
                block.rows_before.push((series, stats.count));
            }
        }
    }

    #[cold]
    fn begin_block(&mut self, at: u64, now: u64) {
        self.end_block();
        self.blocks.push(Block { start: at, now, eras: [None; 3], rows_before: Vec::new() });
        self.number += 1;
        self.full_at = if self.whole { u64::MAX } else { at + BLOCK };
        self.eras = [(u64::MAX, 0); 3];
    }

    fn end_block(&mut self) {
        if let Some(block) = self.blocks.last_mut() {
            let nanos = |micros: u64| i64::try_from(micros).unwrap_or(i64::MAX).saturating_mul(1000);
            for (span, (first, last)) in block.eras.iter_mut().zip(self.eras) {
                if first <= last {
                    let met = (nanos(first), nanos(last));
                    *span = Some(span.map_or(met, |span| joined(span, met)));
                }
            }
        }
    }

    /// Makes one block of all there are and of all that come, for logs with narrow timestamps.
    pub(crate) fn join(&mut self) {
        if std::mem::replace(&mut self.whole, true) {
            return;
        }
        self.full_at = if self.blocks.is_empty() { 0 } else { u64::MAX };
        let whole = self.blocks.drain(..).reduce(|mut whole, next| {
            for (span, next) in whole.eras.iter_mut().zip(next.eras) {
                *span = [*span, next].into_iter().flatten().reduce(joined);
            }
            whole
        });
        self.blocks.extend(whole);
    }

    /// Whether any of these topics has rows in a block.
    pub(crate) fn has_any(&self, block: usize, wanted: &[bool]) -> bool {
        self.whole || self.blocks[block].rows_before.iter().any(|(series, _)| wanted[*series as usize])
    }

    /// How many rows of each topic are before a block, for those with rows in it.
    pub(crate) fn rows_before(&self, block: usize) -> &[(u32, u64)] {
        if self.whole { &[] } else { &self.blocks[block].rows_before }
    }

    /// How many rows of a topic with `count` rows are before a block.
    pub(crate) fn topic_rows_before(&self, block: usize, series: usize, count: u64) -> u64 {
        // The only block of a log does not list its rows.
        if block == 0 {
            return 0;
        }
        let mut later = self.blocks.iter().skip(block).flat_map(|block| &block.rows_before);
        later.find(|(of, _)| *of as usize == series).map_or(count, |(_, before)| *before)
    }

    /// The shape of a topic's rows.
    pub(crate) fn shape(&self, series: u32) -> RowShape {
        self.shapes[series as usize]
    }

    pub(crate) fn gap(&mut self, range: Range<u64>) {
        ranges::push(&mut self.gaps, range);
    }

    /// Bytes without sound messages, ascending.
    pub(crate) fn gaps(&self) -> &[Range<u64>] {
        &self.gaps
    }

    /// Completes the index when the walk has ended at `end`.
    pub(crate) fn finish(&mut self, definitions: &Definitions, end: u64) {
        self.end = end;
        self.end_block();
        for (series, subscription) in (0..).zip(&definitions.subscriptions) {
            let shape = RowShape::of(series, &definitions.topics[series as usize].type_name, subscription);
            let blank = RowShape { flags: RowShape::UNDECODABLE, ..shape };
            if subscription.decodable_from > subscription.announced {
                self.in_force.push((subscription.offset, series, blank));
                self.in_force.push((subscription.decodable_from, series, shape));
            } else {
                self.in_force.push((subscription.offset, series, shape));
            }
            self.shapes.push(shape);
        }
        let vacated = definitions.vacated.iter().map(|(at, series)| (*at, *series, RowShape::VACANT));
        self.in_force.extend(vacated);
        self.in_force.sort_unstable_by_key(|(at, ..)| *at);
    }
}

/// A second walk over a part of a log, by the index: no judging, no allocation per message.
#[derive(Debug)]
pub(crate) struct Cursor<'a> {
    data: &'a [u8],
    index: &'a Index,
    definitions: &'a Definitions,
    pub(crate) at: u64,
    end: u64,
    gap: usize,
    in_force: usize,
    shapes: Shapes,
    pub(crate) clock: LogClock,
}

/// A message met by a [`Cursor`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Met<'a> {
    pub(crate) at: u64,
    pub(crate) msg_type: u8,
    pub(crate) payload: &'a [u8],
    pub(crate) row: Option<MetRow>,
}

impl<'a> Met<'a> {
    /// Where it ends.
    #[inline]
    pub(crate) fn end(&self) -> u64 {
        self.at + HEADER_LEN + self.payload.len() as u64
    }

    /// The message, its payload read.
    #[inline]
    pub(crate) fn message(&self) -> Option<Message<'a>> {
        Message::parse(self.msg_type, self.payload)
    }

    /// The fields of a row.
    #[inline]
    pub(crate) fn row_bytes(&self) -> &'a [u8] {
        &self.payload[size_of::<DataHead>()..]
    }
}

/// What a [`Cursor`] walks over: a row with its offset, or another message.
pub(crate) enum Walked<'a> {
    Row(u64, MetRow),
    Other(Met<'a>),
}

impl<'a> Cursor<'a> {
    /// A walk over everything behind the header.
    pub(crate) fn all(
        data: &'a [u8],
        index: &'a Index,
        definitions: &'a Definitions,
        start_time: u64,
    ) -> Self {
        Self::from(
            data,
            index,
            definitions,
            FLAG_BITS_AT,
            index.end,
            LogClock::new(start_time).until(index.data_end),
        )
    }

    /// A walk over some blocks.
    pub(crate) fn blocks(
        data: &'a [u8],
        index: &'a Index,
        definitions: &'a Definitions,
        blocks: Range<usize>,
    ) -> Self {
        let end = index.blocks.get(blocks.end).map_or(index.end, |next| next.start);
        let first = &index.blocks[blocks.start];
        Self::from(data, index, definitions, first.start, end, LogClock::new(first.now).until(index.data_end))
    }

    /// The same walk, begun where the first message stands; for one that begins with the first block.
    pub(crate) fn after_the_header(self) -> Self {
        let gap = self.index.gaps.partition_point(|gap| gap.end <= FLAG_BITS_AT);
        Self { at: FLAG_BITS_AT, gap, ..self }
    }

    fn from(
        data: &'a [u8],
        index: &'a Index,
        definitions: &'a Definitions,
        at: u64,
        end: u64,
        clock: LogClock,
    ) -> Self {
        let gap = index.gaps.partition_point(|gap| gap.end <= at);
        Self { data, index, definitions, at, end, gap, in_force: 0, shapes: Shapes::default(), clock }
    }
}

impl<'a> Cursor<'a> {
    /// Steps over gaps and puts subscriptions in force at the place; where the next such thing is.
    fn settle(&mut self) -> u64 {
        while let Some(gap) = self.index.gaps.get(self.gap).filter(|gap| gap.start <= self.at) {
            self.at = self.at.max(gap.end);
            self.gap += 1;
        }
        while let Some((at, series, shape)) =
            self.index.in_force.get(self.in_force).filter(|(at, ..)| *at <= self.at)
        {
            let subscription = &self.definitions.subscriptions[*series as usize];
            // A late format counts only while the id still means this subscription.
            if *at == subscription.offset || self.shapes.get(subscription.msg_id).series == *series {
                self.shapes.put(subscription.msg_id, *shape);
            }
            self.in_force += 1;
        }
        let gap = self.index.gaps.get(self.gap).map_or(self.end, |gap| gap.start);
        let in_force = self.index.in_force.get(self.in_force).map_or(self.end, |(at, ..)| *at);
        gap.min(in_force).min(self.end)
    }

    /// The message at the place, which [`settle`](Self::settle) found to be one; steps behind it.
    #[inline]
    fn message(&mut self) -> Option<Met<'a>> {
        let at = self.at;
        // The first walk found whole messages everywhere outside the gaps.
        let (header, payload) = message_at(self.data, at)?;
        let mut met = Met { at, msg_type: header.msg_type, payload, row: None };
        self.at = met.end();
        if met.msg_type == kind::DATA
            && let Ok((head, bytes)) = DataHead::ref_from_prefix(payload)
        {
            let shape = self.shapes.get(head.msg_id.get());
            if shape.usable() && shape.fits(bytes.len()) {
                let time = self.clock.row(shape, bytes);
                met.row = Some(MetRow { series: shape.series, time, now: self.clock.now });
            }
        } else if met.msg_type == kind::DROPOUT {
            self.dropout(&met);
        }
        Some(met)
    }

    #[cold]
    fn dropout(&mut self, met: &Met<'_>) {
        if let Some(Message::Dropout(Dropout { duration })) = met.message() {
            self.clock.dropout(duration);
        }
    }

    /// Hands rows with a plain timestamp to `sink`, up to the first message that is something else.
    #[inline]
    fn plain_rows(&mut self, stop: u64, sink: &mut impl FnMut(u64, MetRow)) {
        let (Ok(mut at), Ok(stop)) = (usize::try_from(self.at), usize::try_from(stop)) else { return };
        let (mut now, data_end) = (self.clock.now, self.clock.data_end);
        let mut touched = 0_u8;
        while at < stop
            && let Some((shape, end)) = plain_row(&self.shapes, self.data, at)
            && let Some(micros) = plain_time(shape, self.data, at)
        {
            touched ^= self.data.get(at + AHEAD).copied().unwrap_or(0);
            if micros <= data_end {
                now = now.max(micros);
            }
            sink(at as u64, MetRow { series: shape.series, time: RowMicros::At(micros), now });
            at = end;
        }
        std::hint::black_box(touched);
        self.clock.now = now;
        self.at = at as u64;
    }

    /// Hands all rows that begin before `until` to `sink`; false at the end of the walk.
    #[inline]
    pub(crate) fn rows(&mut self, until: u64, mut sink: impl FnMut(u64, MetRow)) -> bool {
        self.walk(until, |met| {
            if let Walked::Row(at, row) = met {
                sink(at, row);
            }
        })
    }

    /// Hands all messages that begin before `until` to `visit`; false at the end of the walk.
    #[inline]
    pub(crate) fn walk(&mut self, until: u64, mut visit: impl FnMut(Walked<'a>)) -> bool {
        let until = until.min(self.end);
        loop {
            let stop = self.settle().min(until);
            if self.at >= until {
                return self.at < self.end;
            }
            while self.at < stop {
                self.plain_rows(stop, &mut |at, row| visit(Walked::Row(at, row)));
                if self.at >= stop {
                    break;
                }
                let Some(met) = self.message() else { return false };
                match met.row {
                    Some(row) => visit(Walked::Row(met.at, row)),
                    None => visit(Walked::Other(met)),
                }
            }
        }
    }
}

impl<'a> Iterator for Cursor<'a> {
    type Item = Met<'a>;

    fn next(&mut self) -> Option<Met<'a>> {
        self.settle();
        if self.at < self.end { self.message() } else { None }
    }
}

/// The message at `at`, which lies in `data`: its header and its payload.
#[inline]
pub(crate) fn message_at(data: &[u8], at: u64) -> Option<(&MessageHeader, &[u8])> {
    MessageHeader::split(data.get(usize::try_from(at).ok()?..)?)
}

/// The fields of the row at `at`, whose whole message lies in `data`.
#[inline]
pub(crate) fn row_bytes(data: &[u8], at: u64) -> Option<&[u8]> {
    message_at(data, at)?.1.get(size_of::<DataHead>()..)
}
