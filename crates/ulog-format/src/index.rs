//! The index that opening a log leaves: enough to walk any part of it again, and no more than a
//! thousandth of its size.

use std::ops::Range;

use crate::clock::{LogClock, RowMicros};
use crate::definitions::{Definitions, RowShape, Shapes};
use crate::frame::{FLAG_BITS_AT, HEADER_SIZE, ROW_AT};
use crate::wire::kind;

/// Bytes of file per block.
const BLOCK: u64 = 4 << 20;

/// A stretch of the file that begins at a row.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) start: u64,
    /// Log time before its first row.
    now: u64,
    /// First and last time in it, by which its rows are ordered.
    pub(crate) first: i64,
    pub(crate) last: i64,
    /// The topics with rows in it, and how many rows they have before it.
    rows_before: Vec<(u32, u64)>,
}

/// Blocks, and what a walk over them must step over or put in force.
#[derive(Debug, Default)]
pub(crate) struct Index {
    pub(crate) blocks: Vec<Block>,
    /// Bytes without sound messages, ascending.
    gaps: Vec<Range<u64>>,
    /// Where a subscription comes into force: offset, series, shape.
    in_force: Vec<(u64, u32, RowShape)>,
    /// The shapes by topic.
    shapes: Vec<RowShape>,
    /// Where the rows end.
    end: u64,
    /// Per topic, the last block in which it was seen, from 1.
    seen: Vec<u32>,
    /// Times of fewer than 64 bits depend on all that is before them: then there is one block.
    whole: bool,
}

impl Index {
    /// Takes a row in file order; `before` and `now` are the log times around it, `seq` its number.
    #[inline]
    pub(crate) fn row(&mut self, at: u64, shape: RowShape, time: RowMicros, before: u64, now: u64, seq: u64) {
        if self.blocks.last().is_none_or(|block| at - block.start >= BLOCK && !self.whole) {
            self.blocks.push(Block {
                start: at,
                now: before,
                first: i64::MAX,
                last: i64::MIN,
                rows_before: Vec::new(),
            });
        }
        let number = u32::try_from(self.blocks.len()).unwrap_or(u32::MAX);
        let block = self.blocks.last_mut().expect("just made sure");
        let time = time.in_order(now);
        block.first = block.first.min(time);
        block.last = block.last.max(time);
        let series = shape.series as usize;
        if self.seen.get(series) != Some(&number) {
            if self.seen.len() <= series {
                self.seen.resize(series + 1, 0);
            }
            self.seen[series] = number;
            block.rows_before.push((shape.series, seq));
        }
        if shape.flags & RowShape::SPECIAL_TIME != 0 && shape.is_narrow() {
            self.join();
        }
    }

    /// Makes one block of all, for logs with narrow timestamps.
    #[cold]
    fn join(&mut self) {
        self.whole = true;
        let Some(mut whole) = self.blocks.drain(..).reduce(|mut whole, next| {
            whole.first = whole.first.min(next.first);
            whole.last = whole.last.max(next.last);
            whole
        }) else {
            return;
        };
        whole.rows_before.clear();
        self.blocks.push(whole);
        self.seen.iter_mut().for_each(|seen| *seen = 1);
    }

    /// The shape of a topic's rows.
    pub(crate) fn shape(&self, series: u32) -> RowShape {
        self.shapes[series as usize]
    }

    pub(crate) fn gap(&mut self, range: Range<u64>) {
        match self.gaps.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => self.gaps.push(range),
        }
    }

    /// Bytes without sound messages, ascending.
    pub(crate) fn gaps(&self) -> &[Range<u64>] {
        &self.gaps
    }

    /// Completes the index when the walk has ended at `end`.
    pub(crate) fn finish(&mut self, definitions: &Definitions, end: u64) {
        self.end = end;
        self.seen = Vec::new();
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
        self.in_force.sort_unstable_by_key(|(at, ..)| *at);
    }
}

/// A second walk over a part of a log, by the index: no judging, no allocation per message.
#[derive(Debug)]
pub(crate) struct Cursor<'a> {
    data: &'a [u8],
    index: &'a Index,
    definitions: &'a Definitions,
    at: u64,
    end: u64,
    gap: usize,
    in_force: usize,
    shapes: Shapes,
    pub(crate) clock: LogClock,
    /// Rows of each topic so far.
    rows: Vec<u64>,
}

/// A message met by a [`Cursor`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Met<'a> {
    pub(crate) at: u64,
    pub(crate) msg_type: u8,
    pub(crate) payload: &'a [u8],
    pub(crate) row: Option<MetRow>,
}

/// What is known of a row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MetRow {
    pub(crate) series: u32,
    pub(crate) seq: u64,
    pub(crate) time: RowMicros,
}

impl<'a> Cursor<'a> {
    /// A walk over everything behind the header.
    pub(crate) fn all(
        data: &'a [u8],
        index: &'a Index,
        definitions: &'a Definitions,
        start_time: u64,
    ) -> Self {
        Self::from(data, index, definitions, FLAG_BITS_AT, index.end, LogClock::new(start_time))
    }

    /// A walk over one block.
    pub(crate) fn block(
        data: &'a [u8],
        index: &'a Index,
        definitions: &'a Definitions,
        block: usize,
    ) -> Self {
        let end = index.blocks.get(block + 1).map_or(index.end, |next| next.start);
        let block = &index.blocks[block];
        let mut cursor = Self::from(data, index, definitions, block.start, end, LogClock::new(block.now));
        for (series, rows) in &block.rows_before {
            cursor.rows[*series as usize] = *rows;
        }
        cursor
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
        let rows = vec![0; definitions.topics.len()];
        Self { data, index, definitions, at, end, gap, in_force: 0, shapes: Shapes::default(), clock, rows }
    }
}

impl<'a> Iterator for Cursor<'a> {
    type Item = Met<'a>;

    #[inline]
    fn next(&mut self) -> Option<Met<'a>> {
        while let Some(gap) = self.index.gaps.get(self.gap).filter(|gap| gap.start <= self.at) {
            self.at = self.at.max(gap.end);
            self.gap += 1;
        }
        if self.at >= self.end {
            return None;
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
        let at = self.at;
        // The first walk found whole messages everywhere outside the gaps.
        let start = usize::try_from(at).ok()?;
        let [a, b, msg_type, ..] = *self.data.get(start..)? else { return None };
        let len = usize::from(u16::from_le_bytes([a, b]));
        let body = start + HEADER_SIZE;
        let payload = self.data.get(body..body + len)?;
        self.at = (body + len) as u64;
        let mut row = None;
        match (msg_type, payload) {
            (kind::DATA, [c, d, bytes @ ..]) => {
                let shape = self.shapes.get(u16::from_le_bytes([*c, *d]));
                if shape.usable() && shape.fits(bytes.len()) {
                    let time = self.clock.row(shape, bytes);
                    let rows = &mut self.rows[shape.series as usize];
                    row = Some(MetRow { series: shape.series, seq: *rows, time });
                    *rows += 1;
                }
            }
            (kind::DROPOUT, [c, d]) => self.clock.dropout(u16::from_le_bytes([*c, *d])),
            _ => {}
        }
        Some(Met { at, msg_type, payload, row })
    }
}

/// The payload of the row at `at`, whose whole message lies in `data`.
pub(crate) fn row_bytes(data: &[u8], at: u64) -> Option<&[u8]> {
    let start = usize::try_from(at).ok()?;
    let [a, b, ..] = *data.get(start..)? else { return None };
    let end = start + HEADER_SIZE + usize::from(u16::from_le_bytes([a, b]));
    data.get(start + ROW_AT..end)
}
