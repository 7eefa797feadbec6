//! The index that the first scan of a log leaves, and the cursor that goes through the log again by
//! it.

use std::ops::Range;

use rovelog_core::index::{Index as Blocks, Skips, Span};

use crate::clock::{LogClock, RowMicros};
use crate::definitions::{Definitions, RowShape, Shapes};
use crate::scan::{AHEAD, MetRow, Scanner, plain_row, plain_time};
use crate::sessions::Boundary;
use crate::wire::{Data, Dropout, HEADER_LEN, MSG_ID_LEN, Message, MessageHeader, kind};

/// What is noted of a block.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mark {
    /// Log time before its first row.
    now: u64,
    /// The times of its rows, microseconds, by [`Era`].
    eras: [Span; 3],
}

impl Mark {
    /// First and last time of its rows of an era, by which they are ordered, nanoseconds.
    pub(crate) fn span(&self, era: Era) -> Option<(i64, i64)> {
        nanos(self.eras[era as usize])
    }

    /// First and last time in it, nanoseconds.
    #[cfg(feature = "arrow")]
    pub(crate) fn whole_span(&self) -> Option<(i64, i64)> {
        nanos(self.eras[0].joined(self.eras[1]).joined(self.eras[2]))
    }
}

fn nanos(micros: Span) -> Option<(i64, i64)> {
    let range = micros.range()?;
    Some((range.start().saturating_mul(1000), range.end().saturating_mul(1000)))
}

/// Rows whose times say that they are older than the log are ordered by themselves: a log often has
/// some in each block, and a block would seem to reach from them to its own time.
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

    /// Returns the era of a time in a log that starts at `start`, both in microseconds.
    #[inline]
    pub(crate) fn of(micros: u64, start: u64) -> Self {
        match micros {
            0 => Self::Zero,
            _ if micros < start => Self::Old,
            _ => Self::Log,
        }
    }
}

/// Blocks, and which subscriptions are active where.
#[derive(Debug, Default)]
pub(crate) struct Index {
    pub(crate) blocks: Blocks<Mark>,
    /// The header's start time, and the end of the log's data, microseconds.
    log_start: u64,
    data_end: u64,
    /// Offset of the first message.
    first: u64,
    /// Where a subscription becomes active: offset, series, shape.
    active: Vec<(u64, u32, RowShape)>,
    /// The shapes by topic.
    shapes: Vec<RowShape>,
    /// In which eras each topic has rows.
    pub(crate) topic_eras: Vec<[bool; 3]>,
    /// Where sessions behind the first one start.
    pub(crate) boundaries: Vec<Boundary>,
}

impl Index {
    /// Returns an index of the log that `scanner` is about to scan, whose first log time is
    /// `log_start`, microseconds.
    pub(crate) fn new(log_start: u64, scanner: &Scanner) -> Self {
        Self { log_start, data_end: scanner.clock.data_end, first: scanner.first, ..Self::default() }
    }

    /// Returns the era of a time, nanoseconds.
    pub(crate) fn era(&self, nanos: i64) -> Era {
        Era::of(u64::try_from(nanos / 1000).unwrap_or(0), self.log_start)
    }

    /// Takes a row in file order. `order` is the time by which it is ordered, in microseconds;
    /// `now` the log time before it; `seen` the last block with rows of its topic and how many rows
    /// of it there are before this one.
    #[inline]
    pub(crate) fn row(&mut self, at: u64, series: u32, order: u64, now: u64, seen: (&mut u32, u64)) {
        let mark = self.blocks.record(at, series, seen, || Mark { now, eras: Default::default() });
        let time = order.min(i64::MAX.cast_unsigned()).cast_signed();
        mark.eras[Era::of(order, self.log_start) as usize].add(time);
    }

    /// Makes one block of all there are and of all that come: times of fewer than 64 bits depend on
    /// all that is before them.
    pub(crate) fn join(&mut self) {
        self.blocks.join(|one, next| {
            let eras = Era::ALL.map(|era| one.eras[era as usize].joined(next.eras[era as usize]));
            Mark { eras, ..one }
        });
    }

    /// Returns the shape of a topic's rows.
    pub(crate) fn shape(&self, series: u32) -> RowShape {
        self.shapes[series as usize]
    }

    /// Completes the index when the scan has ended at `end`.
    pub(crate) fn finish(&mut self, definitions: &Definitions, end: u64) {
        self.blocks.finish(end);
        for (series, subscription) in (0..).zip(&definitions.subscriptions) {
            let shape = RowShape::of(series, &definitions.topics[series as usize].type_name, subscription);
            let blank = RowShape { flags: RowShape::UNDECODABLE, ..shape };
            if subscription.decodable_from > subscription.announced {
                self.active.push((subscription.offset, series, blank));
                self.active.push((subscription.decodable_from, series, shape));
            } else {
                self.active.push((subscription.offset, series, shape));
            }
            self.shapes.push(shape);
        }
        let vacated = definitions.vacated.iter().map(|(at, series)| (*at, *series, RowShape::VACANT));
        self.active.extend(vacated);
        self.active.sort_unstable_by_key(|(at, ..)| *at);
    }
}

/// A second pass over a part of a log, by the index: no validation, no allocation per message.
#[derive(Debug)]
pub(crate) struct Cursor<'a> {
    data: &'a [u8],
    index: &'a Index,
    definitions: &'a Definitions,
    pub(crate) at: u64,
    end: u64,
    skips: Skips<'a>,
    active: usize,
    shapes: Shapes,
    /// How many boundaries of sessions it has passed.
    entered: usize,
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
    /// Returns where it ends.
    #[inline]
    pub(crate) fn end(&self) -> u64 {
        self.at + HEADER_LEN + self.payload.len() as u64
    }

    /// Returns the message, its payload read.
    #[inline]
    pub(crate) fn message(&self) -> Option<Message<'a>> {
        Message::parse(self.msg_type, self.payload)
    }

    /// Returns the fields of a row.
    #[inline]
    pub(crate) fn row_bytes(&self) -> &'a [u8] {
        &self.payload[MSG_ID_LEN..]
    }
}

/// What a [`Cursor`] goes over: a row with its offset, or another message.
pub(crate) enum Passed<'a> {
    Row(u64, MetRow),
    Other(Met<'a>),
}

impl<'a> Cursor<'a> {
    /// Returns a pass over everything behind the header.
    pub(crate) fn all(
        data: &'a [u8],
        index: &'a Index,
        definitions: &'a Definitions,
        start_time: u64,
    ) -> Self {
        let clock = LogClock::new(start_time).until(index.data_end);
        Self::from(data, index, definitions, index.first, index.blocks.end(), clock)
    }

    /// Returns a pass over some blocks.
    pub(crate) fn blocks(
        data: &'a [u8],
        index: &'a Index,
        definitions: &'a Definitions,
        blocks: Range<usize>,
    ) -> Self {
        let all = index.blocks.blocks();
        let end = all.get(blocks.end).map_or(index.blocks.end(), |next| next.start);
        let first = &all[blocks.start];
        let mut clock = LogClock::new(first.mark.now).until(index.data_end);
        let entered = index.boundaries.partition_point(|boundary| boundary.at < first.start);
        if let Some(last) = entered.checked_sub(1) {
            clock.shift = index.boundaries[last].shift;
        }
        Self { entered, ..Self::from(data, index, definitions, first.start, end, clock) }
    }

    /// Returns the same pass, started where the first message is; for one that starts with the
    /// first block.
    pub(crate) fn after_the_header(self) -> Self {
        let skips = self.index.blocks.skips_from(self.index.first);
        Self { at: self.index.first, skips, ..self }
    }

    fn from(
        data: &'a [u8],
        index: &'a Index,
        definitions: &'a Definitions,
        at: u64,
        end: u64,
        clock: LogClock,
    ) -> Self {
        let skips = index.blocks.skips_from(at);
        let shapes = Shapes::default();
        Self { data, index, definitions, at, end, skips, active: 0, shapes, entered: 0, clock }
    }
}

impl<'a> Cursor<'a> {
    /// Steps over skipped ranges and makes the subscriptions active that are at the place; where the next range
    /// or subscription is.
    fn settle(&mut self) -> u64 {
        let skip = self.skips.step_over(&mut self.at, self.end);
        while let Some((at, series, shape)) =
            self.index.active.get(self.active).filter(|(at, ..)| *at <= self.at)
        {
            let subscription = &self.definitions.subscriptions[*series as usize];
            // A late format counts only while the id still means this subscription.
            if *at == subscription.offset || self.shapes.get(subscription.msg_id).series == *series {
                self.shapes.put(subscription.msg_id, *shape);
            }
            self.active += 1;
        }
        let mut stop = self.index.active.get(self.active).map_or(skip, |(at, ..)| skip.min(*at));
        while let Some(next) = self.index.boundaries.get(self.entered) {
            if next.at > self.at {
                stop = stop.min(next.at);
                break;
            }
            next.enter(&mut self.clock);
            self.entered += 1;
        }
        stop
    }

    /// Returns the message at the place, which [`settle`](Self::settle) found to be one; steps
    /// behind it.
    #[inline]
    fn message(&mut self) -> Option<Met<'a>> {
        let at = self.at;
        // The first scan found whole messages everywhere outside the skipped ranges.
        let (header, payload) = message_at(self.data, at)?;
        let mut met = Met { at, msg_type: header.msg_type, payload, row: None };
        self.at = met.end();
        if met.msg_type == kind::DATA
            && let Some(Data { msg_id, row }) = Data::view(payload)
        {
            let shape = self.shapes.get(msg_id);
            if shape.usable() && shape.fits(row.len()) {
                let time = self.clock.row(shape, row);
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
        if !self.clock.is_plain() {
            return;
        }
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

    /// Hands all rows that begin before `until` to `sink`; false at the end of the pass.
    #[inline]
    pub(crate) fn rows(&mut self, until: u64, mut sink: impl FnMut(u64, MetRow)) -> bool {
        self.messages(until, |met| {
            if let Passed::Row(at, row) = met {
                sink(at, row);
            }
        })
    }

    /// Hands all messages that begin before `until` to `visit`; false at the end of the pass.
    #[inline]
    pub(crate) fn messages(&mut self, until: u64, mut visit: impl FnMut(Passed<'a>)) -> bool {
        let until = until.min(self.end);
        loop {
            let stop = self.settle().min(until);
            if self.at >= until {
                return self.at < self.end;
            }
            loop {
                self.plain_rows(stop, &mut |at, row| visit(Passed::Row(at, row)));
                if self.at >= stop {
                    break;
                }
                let Some(met) = self.message() else { return false };
                match met.row {
                    Some(row) => visit(Passed::Row(met.at, row)),
                    None => visit(Passed::Other(met)),
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

/// Returns the message at `at`, which is in `data`: its header and its payload.
#[inline]
pub(crate) fn message_at(data: &[u8], at: u64) -> Option<(&MessageHeader, &[u8])> {
    MessageHeader::split(data.get(usize::try_from(at).ok()?..)?)
}

/// Returns the fields of the row at `at`, whose whole message is in `data`.
#[inline]
pub(crate) fn row_bytes(data: &[u8], at: u64) -> Option<&[u8]> {
    message_at(data, at)?.1.get(MSG_ID_LEN..)
}
