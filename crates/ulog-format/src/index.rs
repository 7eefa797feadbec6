//! The index of a log, which the first scan builds, and the cursor, which reads the log again with
//! the index.
//!
//! The index divides the log into blocks of messages. It stores the time range and the topics of
//! each block, so that a selection reads only the blocks it needs. It also stores the damaged
//! ranges and the offsets at which subscriptions start, so that the cursor does not have to
//! validate messages again.

use std::ops::Range;

use rovelog_core::internal::index::{Index as Blocks, Skips, Span};

use crate::clock::{LogClock, RowMicros};
use crate::definitions::{Definitions, RowShape, Shapes};
use crate::scan::{PREFETCH_DISTANCE, RowInfo, Scanner, plain_row, plain_time};
use crate::sessions::Boundaries;
use crate::wire::{Data, Dropout, HEADER_LEN, MSG_ID_LEN, Message, MessageHeader, kind};

/// Times of the rows in a block of the log.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mark {
    /// Log time before the first row of the block, in microseconds.
    now: u64,
    /// Time range of the block's rows in microseconds, separately for each [`Era`], which is a
    /// class of times.
    eras: [Span; 3],
}

impl Mark {
    /// Returns the first and the last time of the block's rows whose times belong to the class
    /// `era`. The result is in nanoseconds, and contains the times by which rows are sorted.
    pub(crate) fn span(&self, era: Era) -> Option<(i64, i64)> {
        nanos(self.eras[era as usize])
    }

    /// Returns the first and the last time of all rows in the block, in nanoseconds.
    #[cfg(feature = "arrow")]
    pub(crate) fn whole_span(&self) -> Option<(i64, i64)> {
        nanos(self.eras[0].joined(self.eras[1]).joined(self.eras[2]))
    }
}

/// Converts a range of microseconds to nanoseconds.
fn nanos(micros: Span) -> Option<(i64, i64)> {
    let range = micros.range()?;
    Some((range.start().saturating_mul(1000), range.end().saturating_mul(1000)))
}

/// Class of a row's time: zero, before the start of the log, or later.
///
/// The rows of each class are sorted separately. Many logs have rows with time 0 in every block.
/// With one time range per block, every block would start at 0, all blocks would overlap, and
/// sorting would need the whole log in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    /// The time is 0. Devices write this before they have a time.
    Zero,
    /// The time is before the start time in the header.
    Old,
    /// The time is the start time in the header or later.
    Log,
}

impl Era {
    pub(crate) const ALL: [Self; 3] = [Self::Zero, Self::Old, Self::Log];

    /// Returns the class of the time `micros` in a log that starts at `start`. Both are in
    /// microseconds.
    #[inline]
    pub(crate) fn of(micros: u64, start: u64) -> Self {
        match micros {
            0 => Self::Zero,
            _ if micros < start => Self::Old,
            _ => Self::Log,
        }
    }
}

/// Index of a log: its blocks, its subscriptions and the recordings in the file.
#[derive(Debug, Default)]
pub(crate) struct Index {
    pub(crate) blocks: Blocks<Mark>,
    /// Start time of the log in microseconds.
    log_start: u64,
    /// End of the log's data in microseconds.
    data_end: u64,
    /// Offset of the first message in the file.
    first: u64,
    /// Changes of the row shapes in file order.
    changes: Vec<ShapeChange>,
    /// Row shapes by topic number.
    shapes: Vec<RowShape>,
    /// For each topic, flags that show which time classes ([`Era`]) its rows have.
    pub(crate) topic_eras: Vec<[bool; 3]>,
    /// Starts of the recordings in the file, except the first.
    pub(crate) boundaries: Boundaries,
}

/// Change of the shape of a topic's rows at an offset of the log.
#[derive(Clone, Copy, Debug)]
struct ShapeChange {
    /// Offset of the change.
    at: u64,
    /// Number of the topic.
    series: u32,
    msg_id: u16,
    /// True if the topic is subscribed here. Any other change applies only if no other topic was
    /// subscribed under the id in the meantime.
    is_subscription: bool,
    /// Shape of the rows from this offset on.
    shape: RowShape,
}

impl Index {
    /// Creates the index for a scan of the whole log by `scanner`. `log_start` is the log time at
    /// the start, in microseconds.
    pub(crate) fn new(log_start: u64, scanner: &Scanner) -> Self {
        Self { log_start, data_end: scanner.clock.data_end, first: scanner.start.first, ..Self::default() }
    }

    /// Returns the class of a time in nanoseconds.
    pub(crate) fn era(&self, nanos: i64) -> Era {
        Era::of(u64::try_from(nanos / 1000).unwrap_or(0), self.log_start)
    }

    /// Adds the next row in file order.
    ///
    /// - `order` is the time in microseconds by which the row is sorted.
    /// - `now` is the log time before the row.
    /// - `block` is the number of the last block with rows of the topic, which is updated.
    /// - `before` is the number of earlier rows of the topic.
    #[inline]
    pub(crate) fn row(&mut self, at: u64, series: u32, order: u64, now: u64, block: &mut u32, before: u64) {
        let new_mark = || Mark { now, eras: Default::default() };
        let mark = self.blocks.record(at, series, block, before, new_mark);
        let time = order.min(i64::MAX.cast_unsigned()).cast_signed();
        mark.eras[Era::of(order, self.log_start) as usize].add(time);
    }

    /// Merges all blocks into one. Rows that are added later belong to the same block.
    ///
    /// A timestamp of fewer than 64 bits depends on all rows before it, so reading cannot start at
    /// a later block.
    pub(crate) fn merge_blocks(&mut self) {
        self.blocks.join(|one, next| {
            let eras = Era::ALL.map(|era| one.eras[era as usize].joined(next.eras[era as usize]));
            Mark { eras, ..one }
        });
    }

    /// Returns the shape of a topic's rows.
    pub(crate) fn shape(&self, series: u32) -> RowShape {
        self.shapes[series as usize]
    }

    /// Completes the index after the scan. `end` is the size of the file in bytes.
    pub(crate) fn finish(&mut self, definitions: &Definitions, end: u64) {
        self.blocks.finish(end);
        for (series, subscription) in (0..).zip(&definitions.subscriptions) {
            let shape = RowShape::of(series, &definitions.topics[series as usize].type_name, subscription);
            let (at, msg_id) = (subscription.offset, subscription.msg_id);
            let change = ShapeChange { at, series, msg_id, is_subscription: true, shape };
            if let Some(at) = subscription.decodable_from {
                // The rows between the subscription and the format cannot be decoded (rule D21 of
                // docs/formats/ulog.md).
                let blank = RowShape { flags: RowShape::UNDECODABLE, ..shape };
                self.changes.push(ShapeChange { shape: blank, ..change });
                self.changes.push(ShapeChange { at, is_subscription: false, ..change });
            } else {
                self.changes.push(change);
            }
            self.shapes.push(shape);
        }
        let vacant = |(at, series): &(u64, u32)| ShapeChange {
            at: *at,
            series: *series,
            msg_id: definitions.subscriptions[*series as usize].msg_id,
            is_subscription: false,
            shape: RowShape::VACANT,
        };
        self.changes.extend(definitions.vacated.iter().map(vacant));
        self.changes.sort_unstable_by_key(|change| change.at);
    }
}

/// Iterates over the messages in a part of a log. The cursor uses the index, so it does not
/// validate messages or allocate memory for them.
#[derive(Debug)]
pub(crate) struct Cursor<'a> {
    data: &'a [u8],
    /// Offset in the file of the next message.
    pub(crate) at: u64,
    /// Offset in the file at which the cursor stops.
    end: u64,
    /// Offset up to which messages can be read without calling
    /// [`apply_changes`](Self::apply_changes).
    stop: u64,
    /// Damaged byte ranges that the cursor skips.
    skips: Skips<'a>,
    /// Changes of the row shapes that the cursor has not reached yet.
    changes: &'a [ShapeChange],
    /// Row shapes of the subscribed topics at the current offset, by message id.
    shapes: Shapes,
    /// Starts of the recordings, of which the cursor has passed some.
    boundaries: Boundaries,
    pub(crate) clock: LogClock,
}

/// A message returned by a [`Cursor`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageRef<'a> {
    /// Offset of the message in the file.
    pub(crate) at: u64,
    pub(crate) msg_type: u8,
    pub(crate) payload: &'a [u8],
    /// Topic and time of the row, or `None` if the message is not a row that can be decoded.
    pub(crate) row: Option<RowInfo>,
}

impl<'a> MessageRef<'a> {
    /// Returns the offset of the end of the message in the file.
    #[inline]
    pub(crate) fn end(&self) -> u64 {
        self.at + HEADER_LEN + self.payload.len() as u64
    }

    /// Parses the message. Returns `None` if the payload does not match the message type.
    #[inline]
    pub(crate) fn message(&self) -> Option<Message<'a>> {
        Message::parse(self.msg_type, self.payload)
    }

    /// Returns the bytes of the row's fields, without the message id.
    #[inline]
    pub(crate) fn row_bytes(&self) -> &'a [u8] {
        &self.payload[MSG_ID_LEN..]
    }
}

/// A message passed by [`Cursor::messages`].
pub(crate) enum Visited<'a> {
    /// A row that can be decoded, with its offset in the file.
    Row(u64, RowInfo),
    Other(MessageRef<'a>),
}

impl<'a> Cursor<'a> {
    /// Creates a cursor over all messages of the log.
    pub(crate) fn all(data: &'a [u8], index: &'a Index, start_time: u64) -> Self {
        let clock = LogClock::new(start_time).until(index.data_end);
        Self::from(data, index, index.first, index.blocks.end(), clock)
    }

    /// Creates a cursor over a range of blocks of the log.
    pub(crate) fn blocks(data: &'a [u8], index: &'a Index, blocks: Range<usize>) -> Self {
        let all = index.blocks.blocks();
        let end = all.get(blocks.end).map_or(index.blocks.end(), |next| next.start);
        let first = &all[blocks.start];
        let mut clock = LogClock::new(first.mark.now).until(index.data_end);
        let mut boundaries = index.boundaries.clone();
        boundaries.entered = boundaries.list.partition_point(|boundary| boundary.at < first.start);
        // The recording that contains the block may have another clock than the first recording.
        if let Some(last) = boundaries.entered.checked_sub(1) {
            clock.shift = boundaries.list[last].shift;
        }
        Self { boundaries, ..Self::from(data, index, first.start, end, clock) }
    }

    /// Moves the start of the cursor to the first message of the log. The first block starts at the
    /// first row, so the definitions before this row are not part of any block.
    pub(crate) fn after_the_header(self, index: &'a Index) -> Self {
        Self { at: index.first, skips: index.blocks.skips_from(index.first), ..self }
    }

    fn from(data: &'a [u8], index: &'a Index, at: u64, end: u64, clock: LogClock) -> Self {
        let skips = index.blocks.skips_from(at);
        let (shapes, boundaries) = (Shapes::default(), index.boundaries.clone());
        Self { data, at, end, stop: 0, skips, changes: &index.changes, shapes, boundaries, clock }
    }
}

impl<'a> Cursor<'a> {
    /// Skips damaged ranges at the current offset, and applies the subscriptions and the starts of
    /// recordings up to this offset.
    ///
    /// Returns the offset of the next damaged range, subscription or start of a recording. All
    /// messages before this offset use the definitions that are in effect now.
    fn apply_changes(&mut self) -> u64 {
        let skip = self.skips.step_over(&mut self.at, self.end);
        let mut stop = skip;
        while let Some((change, later)) = self.changes.split_first() {
            if change.at > self.at {
                stop = stop.min(change.at);
                break;
            }
            if change.is_subscription || self.shapes.get(change.msg_id).series == change.series {
                self.shapes.put(change.msg_id, change.shape);
            }
            self.changes = later;
        }
        stop.min(self.boundaries.enter(self.at, &mut self.clock))
    }

    /// Returns the message at the current offset, and moves the cursor to the end of this message.
    /// [`apply_changes`](Self::apply_changes) must have been called for this offset.
    #[inline]
    fn message(&mut self) -> Option<MessageRef<'a>> {
        let at = self.at;
        // Outside of the damaged ranges, the first scan found only complete messages.
        let (header, payload) = message_at(self.data, at)?;
        let mut msg = MessageRef { at, msg_type: header.msg_type, payload, row: None };
        self.at = msg.end();
        if msg.msg_type == kind::DATA
            && let Some(Data { msg_id, row }) = Data::view(payload)
        {
            let shape = self.shapes.get(msg_id);
            if shape.usable() && shape.fits(row.len()) {
                let time = self.clock.row(shape, row);
                msg.row = Some(RowInfo { series: shape.series, time, now: self.clock.now });
            }
        } else if msg.msg_type == kind::DROPOUT {
            self.dropout(&msg);
        }
        Some(msg)
    }

    #[cold]
    fn dropout(&mut self, msg: &MessageRef<'_>) {
        if let Some(Message::Dropout(Dropout { duration })) = msg.message() {
            self.clock.dropout(duration);
        }
    }

    /// Calls `sink` for each row, up to the offset `stop` or the first message that is not an
    /// ordinary row.
    #[inline]
    fn plain_rows(&mut self, stop: u64, sink: &mut impl FnMut(u64, RowInfo)) {
        let (Ok(mut at), Ok(stop)) = (usize::try_from(self.at), usize::try_from(stop)) else { return };
        if !self.clock.is_plain() {
            return;
        }
        let (mut now, data_end) = (self.clock.now, self.clock.data_end);
        let mut prefetched = 0_u8;
        while at < stop
            && let Some((shape, end)) = plain_row(&self.shapes, self.data, at)
            && let Some(micros) = plain_time(shape, self.data, at)
        {
            // Reading one byte loads its cache line ahead of time. `black_box` prevents the
            // compiler from removing this read.
            prefetched ^= self.data.get(at + PREFETCH_DISTANCE).copied().unwrap_or(0);
            if micros <= data_end {
                now = now.max(micros);
            }
            sink(at as u64, RowInfo { series: shape.series, time: RowMicros::At(micros), now });
            at = end;
        }
        std::hint::black_box(prefetched);
        self.clock.now = now;
        self.at = at as u64;
    }

    /// Calls `sink` for all rows that start before the offset `until`. Returns `false` at the end
    /// of the log.
    #[inline]
    pub(crate) fn rows(&mut self, until: u64, mut sink: impl FnMut(u64, RowInfo)) -> bool {
        self.messages(until, |msg| {
            if let Visited::Row(at, row) = msg {
                sink(at, row);
            }
        })
    }

    /// Calls `visit` for all messages that start before the offset `until`. Returns `false` at the
    /// end of the log.
    #[inline]
    pub(crate) fn messages(&mut self, until: u64, mut visit: impl FnMut(Visited<'a>)) -> bool {
        let until = until.min(self.end);
        loop {
            let stop = self.apply_changes().min(until);
            if self.at >= until {
                return self.at < self.end;
            }
            loop {
                self.plain_rows(stop, &mut |at, row| visit(Visited::Row(at, row)));
                if self.at >= stop {
                    break;
                }
                let Some(msg) = self.message() else { return false };
                match msg.row {
                    Some(row) => visit(Visited::Row(msg.at, row)),
                    None => visit(Visited::Other(msg)),
                }
            }
        }
    }
}

impl<'a> Iterator for Cursor<'a> {
    type Item = MessageRef<'a>;

    fn next(&mut self) -> Option<MessageRef<'a>> {
        if self.at >= self.stop {
            self.stop = self.apply_changes();
        }
        if self.at < self.end { self.message() } else { None }
    }
}

/// Returns the header and the payload of the message at the offset `at`, or `None` if `data` does
/// not contain the whole message.
#[inline]
pub(crate) fn message_at(data: &[u8], at: u64) -> Option<(&MessageHeader, &[u8])> {
    MessageHeader::split(data.get(usize::try_from(at).ok()?..)?)
}

/// Returns the bytes of the fields in the row whose message is at the offset `at`.
#[inline]
pub(crate) fn row_bytes(data: &[u8], at: u64) -> Option<&[u8]> {
    message_at(data, at)?.1.get(MSG_ID_LEN..)
}
