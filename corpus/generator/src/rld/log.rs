//! Builder for RLD files, in the order of the specification.
//!
//! The counts and lengths in the header depend on the rest of the file. The steps therefore only
//! change the description of the file, which is converted to bytes at the end.

use crate::prelude::*;
use std::ops::Range;

/// Unix time in nanoseconds of the first row in most logs, which is 2023-11-14T22:13:20Z.
pub(super) const T0: i64 = 1_700_000_000_000_000_000;

/// Time in nanoseconds of the monotonic clock at the first row in most logs.
pub(super) const BOOT: i64 = 5_000_000_000_000;

/// Duration in nanoseconds of a nominal second of rows. The logger's rows take 3136/3125 of their
/// nominal time.
pub(super) const TRUE_SECOND: i64 = 1_003_520_000;

/// Link of a channel that has no valid bit.
pub(super) const NONE: u16 = 0xFFFF;

/// A channel.
#[derive(Clone, Debug)]
pub(super) struct Channel {
    pub(super) unit: u32,
    pub(super) scale: i32,
    pub(super) size: u16,
    pub(super) link: u16,
    pub(super) name: Vec<u8>,
}

impl Channel {
    /// Returns the 28 bytes of the channel in the channel table.
    fn bytes(&self) -> Vec<u8> {
        let padding = vec![0_u8; 16 - self.name.len()];
        lay![self.unit, self.scale, self.size, self.link, self.name, padding]
    }
}

/// A row of a log.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// Words that contain the bits of the binary channels.
    pub(super) words: Vec<u32>,
    /// Raw values of the analog channels.
    pub(super) values: Vec<i64>,
}

/// A block.
#[derive(Clone, Debug)]
pub(super) struct Block {
    /// Timestamp of the UTC clock in seconds and nanoseconds.
    pub(super) realtime: (i64, i64),
    /// Timestamp of the monotonic clock in seconds and nanoseconds.
    pub(super) monotonic: (i64, i64),
    /// True Unix time of the first row in nanoseconds. `None` if the rows have no time.
    pub(super) truth: Option<i64>,
    pub(super) rows: Vec<Row>,
}

fn nanos((sec, nsec): (i64, i64)) -> i64 {
    sec * 1_000_000_000 + nsec
}

/// Splits a time in nanoseconds into seconds and nanoseconds.
pub(super) fn pair(nanos: i64) -> (i64, i64) {
    (nanos.div_euclid(1_000_000_000), nanos.rem_euclid(1_000_000_000))
}

/// Description of a file. To test a contradiction, a recipe sets fields that contradict each other.
#[derive(Clone, Debug, Default)]
pub(super) struct Log {
    pub(super) version: u16,
    pub(super) rate: u16,
    pub(super) block_size: u32,
    pub(super) comment: Vec<u8>,
    pub(super) binary: Vec<Channel>,
    pub(super) analog: Vec<Channel>,
    pub(super) blocks: Vec<Block>,
    /// Time between rows in nanoseconds, as numerator and denominator.
    pub(super) period: (i64, i64),
    pub(super) topic: &'static str,
    /// Header length in the lead-in, if it is wrong.
    pub(super) header_length: Option<u16>,
    pub(super) comment_length: Option<u32>,
    pub(super) counts: Option<(u32, u64)>,
    pub(super) start: (i64, i64),
    /// True if each row starts with an additional word that no channel uses.
    pub(super) extra_word: bool,
    /// Bytes after the last row.
    pub(super) tail: Vec<u8>,
    /// Number of bytes that are removed from the end of the file.
    pub(super) cut: usize,
    /// Names of channels in readers, if they differ from the channel table.
    pub(super) shown: Vec<(usize, &'static str)>,
    /// Number of rows that a reader returns, if it does not return all of them.
    pub(super) readable: Option<usize>,
    /// Changes to the bytes of blocks: the offset before all changes, the number of bytes to remove
    /// at this offset, and the bytes to insert.
    edits: Vec<(usize, usize, Vec<u8>)>,
    /// Blocks whose rows a reader does not return.
    left_out: Vec<Range<usize>>,
    lost: Vec<(&'static str, Range<usize>)>,
    notes: Vec<(usize, &'static str)>,
    /// Difference between Unix time and monotonic time at the start of the log. `None` if rows have
    /// Unix times.
    boot_offset: Option<i64>,
}

impl Log {
    /// Creates a log of version 4 without channels.
    pub(super) fn new(rate: u16, block_size: u32) -> Self {
        Self {
            version: 4,
            rate,
            block_size,
            comment: b"corpus\0\0".to_vec(),
            period: (TRUE_SECOND, rate.max(1).into()),
            topic: "samples",
            start: (T0 / 1_000_000_000, 0),
            ..Self::default()
        }
    }

    pub(super) fn bit(self, name: &str) -> Self {
        self.binary(name, 3)
    }

    pub(super) fn range(self, name: &str) -> Self {
        self.binary(name, 4)
    }

    fn binary(mut self, name: &str, unit: u32) -> Self {
        self.binary.push(Channel { unit, scale: 0, size: 0, link: NONE, name: name.into() });
        self
    }

    pub(super) fn analog(mut self, name: &str, unit: u32, scale: i32, link: u16) -> Self {
        self.analog.push(Channel { unit, scale, size: 4, link, name: name.into() });
        self
    }

    /// Adds analog channels of a unit without a valid bit.
    pub(super) fn analogs(self, names: &[&str], unit: u32, scale: i32) -> Self {
        names.iter().fold(self, |log, name| log.analog(name, unit, scale, NONE))
    }

    /// Returns row `i` of the usual data. Each channel has its own numbers, and each bit its own
    /// period, so that a test finds values that are assigned to the wrong channel.
    fn plain_row(&self, i: usize) -> Row {
        let beat = i.wrapping_mul(2_654_435_761) >> 7;
        let words = (0..self.binary.len().div_ceil(32)).map(|word| {
            let bits = self.binary.len() - 32 * word;
            let mask = if bits >= 32 { u32::MAX } else { (1 << bits) - 1 };
            u32::try_from(beat >> word & 0xFFFF_FFFF).expect("32 bits") & mask
        });
        let value = |(channel, at): (usize, &Channel)| {
            let number = i64::try_from((channel + 1) * 1000 + 7 * i).expect("small");
            let signed = if channel % 2 == 1 { -number } else { number };
            if at.size < 2 { signed % 128 } else { signed }
        };
        Row { words: words.collect(), values: self.analog.iter().enumerate().map(value).collect() }
    }

    /// Changes the rows that were added so far. The arguments are the index of a row and the row.
    pub(super) fn change_rows(mut self, mut change: impl FnMut(usize, &mut Row)) -> Self {
        let rows = self.blocks.iter_mut().flat_map(|block| &mut block.rows);
        rows.enumerate().for_each(|(i, row)| change(i, row));
        self
    }

    /// Changes the blocks that were added so far, from block `first`.
    pub(super) fn change_blocks(mut self, first: usize, change: impl FnMut(&mut Block)) -> Self {
        self.blocks[first..].iter_mut().for_each(change);
        self
    }

    fn rows(&self) -> usize {
        self.blocks.iter().map(|block| block.rows.len()).sum()
    }

    /// Returns the time in nanoseconds from the first row to row `i`, rounded to the nearest
    /// integer.
    pub(super) fn since(&self, i: usize) -> i64 {
        let (num, den) = self.period;
        (i64::from(u32_of(i)) * num + den / 2) / den
    }

    /// Adds a block with `rows` rows of the usual data. Its timestamps are `late` nanoseconds after
    /// the time that follows from the number of its first row. A reader must find that the rows
    /// start `truth` nanoseconds after that time.
    pub(super) fn block(mut self, rows: usize, late: i64, truth: i64) -> Self {
        let first = self.rows();
        let rows = (first..first + rows).map(|i| self.plain_row(i)).collect();
        let at = self.since(first);
        let (realtime, monotonic) = (pair(T0 + at + late), pair(BOOT + at + late));
        self.blocks.push(Block { realtime, monotonic, truth: Some(T0 + at + truth), rows });
        self
    }

    /// Adds `count` full blocks with exact timestamps.
    pub(super) fn blocks(self, count: usize) -> Self {
        let rows = usize::try_from(self.block_size).expect("small");
        (0..count).fold(self, |log, _| log.block(rows, 0, 0))
    }

    /// Adds `count` full blocks whose timestamps are shifted by `realtime` and `monotonic`
    /// nanoseconds.
    pub(super) fn shifted(self, count: usize, realtime: i64, monotonic: i64) -> Self {
        let first = self.blocks.len();
        self.blocks(count).change_blocks(first, |block| {
            block.realtime = pair(nanos(block.realtime) + realtime);
            block.monotonic = pair(nanos(block.monotonic) + monotonic);
            block.truth = block.truth.map(|truth| truth + realtime);
        })
    }

    /// Expects that rows have monotonic times, because the UTC clock was set during the log.
    pub(super) fn clock_was_set(mut self) -> Self {
        let first = &self.blocks[0];
        self.boot_offset = Some(nanos(first.realtime) - nanos(first.monotonic));
        self.change_blocks(0, |block| block.truth = Some(nanos(block.monotonic)))
    }

    /// Expects a note about the offset that `place` returns.
    pub(super) fn note_at(mut self, code: &'static str, place: impl FnOnce(&Self) -> usize) -> Self {
        self.notes.push((place(&self), code));
        self
    }

    /// Expects a note about this offset.
    pub(super) fn note(self, code: &'static str, offset: usize) -> Self {
        self.note_at(code, |_| offset)
    }

    /// Expects the bytes from the offset that `place` returns to the end of the file to be lost.
    pub(super) fn lose(mut self, code: &'static str, place: impl FnOnce(&Self) -> usize) -> Self {
        self.lost.push((code, place(&self)..self.bytes().len()));
        self
    }

    /// Removes bytes of the blocks at the offset `at`, and inserts others. Offsets refer to the
    /// file before all changes.
    pub(super) fn edit(mut self, at: usize, removed: usize, added: impl Into<Vec<u8>>) -> Self {
        self.edits.push((at, removed, added.into()));
        self.edits.sort();
        self
    }

    /// Expects all bytes of these blocks to be lost, because bytes were removed from them or
    /// inserted.
    pub(super) fn leave_out(mut self, blocks: Range<usize>) -> Self {
        let lost = [blocks.start, blocks.end].map(|block| self.edited_at(self.block_at(block)));
        self.lost.push(("block_length", lost[0]..lost[1]));
        self.left_out.push(blocks);
        self
    }

    /// Converts an offset before all changes to the offset after them.
    pub(super) fn edited_at(&self, at: usize) -> usize {
        let before = self.edits.iter().filter(|(place, _, _)| *place < at);
        before.fold(at, |at, (_, removed, added)| at - removed + added.len())
    }

    /// Returns the size in bytes of a row.
    pub(super) fn row_len(&self) -> usize {
        let words = self.binary.len().div_ceil(32) + usize::from(self.extra_word);
        4 * words + self.analog.iter().map(|channel| usize::from(channel.size)).sum::<usize>()
    }

    /// Returns the offset of the first block.
    pub(super) fn header_len(&self) -> usize {
        self.channel_at(self.binary.len() + self.analog.len())
    }

    /// Returns the offset of channel `i`.
    pub(super) fn channel_at(&self, i: usize) -> usize {
        56 + self.comment.len() + 28 * i
    }

    /// Returns the offset of block `i`.
    pub(super) fn block_at(&self, i: usize) -> usize {
        let before: usize = self.blocks[..i].iter().map(|block| 32 + block.rows.len() * self.row_len()).sum();
        self.header_len() + before
    }

    /// Returns the offset of row `i` of the first block.
    pub(super) fn row_at(&self, i: usize) -> usize {
        self.header_len() + 32 + i * self.row_len()
    }

    /// Returns the bytes of the header, which consists of lead-in, comment and channels.
    pub(super) fn header(&self) -> Vec<u8> {
        let small = |n: usize| u16::try_from(n).expect("small");
        let magic = if self.version == 1 { *b"BLR%" } else { *b"%RLD" };
        let (blocks, rows) = self.counts.unwrap_or((u32_of(self.blocks.len()), self.rows() as u64));
        let header_length = self.header_length.unwrap_or_else(|| small(self.header_len()));
        let comment_length = self.comment_length.unwrap_or_else(|| small(self.comment.len()).into());
        let mac = [0x12, 0x34, 0x56, 0x78, 0x90, 0xab_u8];
        let channels: Vec<_> = self.binary.iter().chain(&self.analog).map(Channel::bytes).collect();
        let lead_in = lay![magic, self.version, header_length, self.block_size, blocks, rows, self.rate, mac];
        let counts = [self.binary.len(), self.analog.len()].map(small);
        lay![lead_in, self.start, comment_length, counts, self.comment, channels]
    }

    fn row_bytes(&self, row: &Row) -> Vec<u8> {
        let extra = vec![0_u8; if self.extra_word { 4 } else { 0 }];
        let value = |(value, channel): (&i64, &Channel)| value.to_le_bytes()[..channel.size.into()].to_vec();
        let values: Vec<_> = row.values.iter().zip(&self.analog).map(value).collect();
        lay![extra, row.words, values]
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.header();
        for block in &self.blocks {
            let rows: Vec<_> = block.rows.iter().map(|row| self.row_bytes(row)).collect();
            bytes.extend(lay![block.realtime, block.monotonic, rows]);
        }
        for (at, removed, added) in self.edits.iter().rev() {
            bytes.splice(*at..at + removed, added.clone());
        }
        bytes.extend(&self.tail);
        bytes.truncate(bytes.len() - self.cut);
        bytes
    }

    fn name(&self, i: usize, channel: &Channel) -> String {
        let shown = self.shown.iter().find(|(at, _)| *at == i);
        shown.map_or_else(|| escaped(&channel.name), |(_, name)| (*name).to_owned())
    }

    fn fields(&self) -> Json {
        if self.lost.iter().any(|lost| lost.0 == "no_layout") {
            return Json::Null;
        }
        let field = |(i, channel): (usize, &Channel)| {
            let analog = if channel.scale.abs() > 30 { "int64" } else { "float64" };
            let kind = if i < self.binary.len() { "bool" } else { analog };
            json!({"name": self.name(i, channel), "type": kind})
        };
        self.binary.iter().chain(&self.analog).enumerate().map(field).collect()
    }

    /// Returns the index of the binary channel that is the valid bit of a channel. Before version
    /// 3, links start at 1.
    fn valid(&self, channel: &Channel) -> Option<usize> {
        let target = usize::from(channel.link.checked_sub(u16::from(self.version < 3))?);
        (channel.link != NONE && target < self.binary.len()).then_some(target)
    }

    fn data(&self, row: &Row) -> Json {
        let bit = |at: usize| row.words[at / 32] >> (at % 32) & 1 == 1;
        let mut data = json!({});
        for (i, channel) in self.binary.iter().enumerate() {
            data[self.name(i, channel)] = bit(i).into();
        }
        for (i, (channel, raw)) in self.analog.iter().zip(&row.values).enumerate() {
            // The physical value is computed by parsing decimal text, not with the arithmetic that
            // readers use, so that a mistake in that arithmetic is found.
            let physical = format!("{raw}e{}", channel.scale).parse::<f64>().expect("a decimal number");
            data[self.name(self.binary.len() + i, channel)] = match self.valid(channel) {
                Some(valid) if !bit(valid) => Json::Null,
                _ if channel.scale.abs() > 30 => raw.to_string().into(),
                _ => physical.into(),
            };
        }
        data
    }
}

impl From<Log> for Made {
    fn from(log: Log) -> Self {
        let readable = log.readable.unwrap_or(log.rows());
        let mut out = crate::log::Log::of(log.bytes(), ());
        out.add_topic(log.topic, log.topic, log.fields());
        let mut raw: Vec<Vec<String>> = Vec::new();
        for (number, block) in log.blocks.iter().enumerate() {
            if log.left_out.iter().any(|blocks| blocks.contains(&number)) {
                continue;
            }
            for (i, row) in block.rows.iter().enumerate().take(readable.saturating_sub(raw.len())) {
                let at = log.edited_at(log.block_at(number) + 32 + i * log.row_len());
                let time = block.truth.map(|truth| i128::from(truth + log.since(i)));
                out.record_at(at, 0, time, &log.data(row));
                raw.push(row.values.iter().map(ToString::to_string).collect());
            }
        }
        let truth = json!({
            "format": {"id": "rld", "version": log.version.to_string()},
            "clock": if log.boot_offset.is_some() { "boot" } else { "unix" },
            "utc": log.boot_offset.map(|nanos| json!({"rule": "block_times", "offset_ns": nanos.to_string()})),
            "rld": {
                "comment": log.comment.split(|b| *b == 0).next().map(escaped),
                "rate": log.rate,
                "raw": raw,
            },
        });
        (out.lost, out.notes) = (log.lost, log.notes);
        out.expect(truth).made()
    }
}
