//! The parts of an RLD file, written in the order of the specification.
//!
//! Counts and lengths in the header depend on the rest, so the file is described first and written
//! at the end.

use std::ops::Range;

use serde_json::{Value as Json, json};

use crate::Made;
use crate::lay::{escaped, lay};

/// Time of the first row of most logs: 2023-11-14T22:13:20Z.
pub(super) const T0: i64 = 1_700_000_000_000_000_000;

/// The same on the monotonic clock.
const BOOT: i64 = 5_000_000_000_000;

/// Nanoseconds of a true second: 3136/3125 of a nominal one.
pub(super) const TRUE_SECOND: i64 = 1_003_520_000;

/// A link to no channel.
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
    /// Returns the channel's 28 bytes.
    fn bytes(&self) -> Vec<u8> {
        let padding = vec![0_u8; 16 - self.name.len()];
        lay![self.unit, self.scale, self.size, self.link, self.name, padding]
    }
}

/// A row: words of bits, raw values.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) words: Vec<u32>,
    pub(super) values: Vec<i64>,
}

/// A block: its timestamps, and the true Unix time of its first row; `None` for rows without a
/// time.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) realtime: (i64, i64),
    pub(super) monotonic: (i64, i64),
    pub(super) truth: Option<i64>,
    pub(super) rows: Vec<Row>,
}

impl Block {
    /// Returns the 32 bytes before the rows: both timestamps in seconds and nanoseconds.
    pub(super) fn timestamps(&self) -> Vec<u8> {
        lay![self.realtime, self.monotonic]
    }
}

/// Splits a time into seconds and nanoseconds.
pub(super) fn pair(nanos: i64) -> (i64, i64) {
    (nanos.div_euclid(1_000_000_000), nanos.rem_euclid(1_000_000_000))
}

/// A file to write. Recipes set contradicting fields if they test them.
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
    /// Lead-in fields that differ from the computed values.
    pub(super) header_length: Option<u16>,
    pub(super) comment_length: Option<u32>,
    pub(super) counts: Option<(u32, u64)>,
    pub(super) start: (i64, i64),
    /// True for a word before each row that belongs to no row.
    pub(super) extra_word: bool,
    /// Bytes after the last row.
    pub(super) tail: Vec<u8>,
    /// Number of bytes cut off at the end.
    pub(super) cut: usize,
    /// Names as a reader shows them, if they differ from the table.
    pub(super) shown: Vec<(usize, &'static str)>,
    /// Number of rows that a reader yields, if not all.
    pub(super) readable: Option<usize>,
    /// Changes of the bytes of blocks: an offset before all changes, the number of bytes that are
    /// removed there, and those that are added.
    edits: Vec<(usize, usize, Vec<u8>)>,
    /// Blocks whose rows a reader leaves out.
    left_out: Vec<Range<usize>>,
    lost: Vec<(&'static str, usize, usize)>,
    notes: Vec<(usize, &'static str)>,
    /// Unix time minus monotonic time at the start, if rows have monotonic times.
    boot_offset: Option<i64>,
}

impl Log {
    /// Returns a log of version 4 with the comment of its writer, without channels.
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

    /// Changes other fields.
    pub(super) fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
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

    /// Returns row `i` of plain data: each channel has its own numbers, each bit its own period.
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

    /// Returns all rows of the blocks so far, to change them.
    pub(super) fn rows_mut(&mut self) -> impl Iterator<Item = &mut Row> {
        self.blocks.iter_mut().flat_map(|block| &mut block.rows)
    }

    fn rows(&self) -> usize {
        self.blocks.iter().map(|block| block.rows.len()).sum()
    }

    /// Returns the nanoseconds from the first row to row `i`, rounded to the nearest.
    pub(super) fn since(&self, i: usize) -> i64 {
        let (num, den) = (i128::from(self.period.0), i128::from(self.period.1));
        let exact = i128::try_from(i).expect("small") * num + den / 2;
        i64::try_from(exact / den).expect("small")
    }

    /// Adds a block of `rows` plain rows with timestamps that are late by `late` nanoseconds; its
    /// rows truly start `truth` nanoseconds after the time that follows from their number.
    pub(super) fn block(mut self, rows: usize, late: i64, truth: i64) -> Self {
        let first = self.rows();
        let rows = (first..first + rows).map(|i| self.plain_row(i)).collect();
        let at = self.since(first);
        let (realtime, monotonic) = (pair(T0 + at + late), pair(BOOT + at + late));
        self.blocks.push(Block { realtime, monotonic, truth: Some(T0 + at + truth), rows });
        self
    }

    /// Adds full blocks with exact timestamps.
    pub(super) fn blocks(self, count: usize) -> Self {
        let rows = usize::try_from(self.block_size).expect("small");
        (0..count).fold(self, |log, _| log.block(rows, 0, 0))
    }

    /// Adds full blocks with both clocks shifted.
    pub(super) fn shifted(self, count: usize, realtime: i64, monotonic: i64) -> Self {
        let moved = |(sec, nsec): (i64, i64), by: i64| pair(sec * 1_000_000_000 + nsec + by);
        (0..count).fold(self, |log, _| {
            log.blocks(1).with(|log| {
                let block = log.blocks.last_mut().expect("a block");
                block.realtime = moved(block.realtime, realtime);
                block.monotonic = moved(block.monotonic, monotonic);
                block.truth = block.truth.map(|truth| truth + realtime);
            })
        })
    }

    /// Expects rows on the monotonic clock, because the UTC clock was set.
    pub(super) fn clock_was_set(mut self) -> Self {
        let nanos = |(sec, nsec): (i64, i64)| sec * 1_000_000_000 + nsec;
        for block in &mut self.blocks {
            block.truth = Some(nanos(block.monotonic));
        }
        let first = &self.blocks[0];
        self.boot_offset = Some(nanos(first.realtime) - nanos(first.monotonic));
        self
    }

    /// Adds a note at the byte where this part of the file starts.
    pub(super) fn note_at(mut self, code: &'static str, place: impl FnOnce(&Self) -> usize) -> Self {
        self.notes.push((place(&self), code));
        self
    }

    /// Adds a note at this byte.
    pub(super) fn note(self, code: &'static str, offset: usize) -> Self {
        self.note_at(code, |_| offset)
    }

    /// Marks the bytes from here to the end of the file as lost.
    pub(super) fn lose(mut self, code: &'static str, place: impl FnOnce(&Self) -> usize) -> Self {
        self.lost.push((code, place(&self), self.bytes().len()));
        self
    }

    /// Removes bytes at a place among the blocks and adds others. The place is an offset before all
    /// changes.
    pub(super) fn edit(mut self, at: usize, removed: usize, added: impl Into<Vec<u8>>) -> Self {
        self.edits.push((at, removed, added.into()));
        self.edits.sort();
        self
    }

    /// Marks all bytes of these blocks as lost, because bytes are missing or were added in them.
    pub(super) fn leave_out(mut self, blocks: Range<usize>) -> Self {
        let lost = [blocks.start, blocks.end].map(|block| self.edited_at(self.block_at(block)));
        self.lost.push(("block_length", lost[0], lost[1]));
        self.left_out.push(blocks);
        self
    }

    /// Returns the offset after all changes of an offset before them.
    pub(super) fn edited_at(&self, at: usize) -> usize {
        let before = self.edits.iter().filter(|(place, _, _)| *place < at);
        before.fold(at, |at, (_, removed, added)| at - removed + added.len())
    }

    /// Returns the bytes that start at an offset before all changes, with the changes.
    fn edited(&self, from: usize, bytes: &[u8]) -> Vec<u8> {
        let mut edited = Vec::new();
        for (i, byte) in bytes.iter().enumerate() {
            let at = from + i;
            for (_, _, added) in self.edits.iter().filter(|(place, _, _)| *place == at) {
                edited.extend_from_slice(added);
            }
            if !self.edits.iter().any(|(place, removed, _)| (*place..place + removed).contains(&at)) {
                edited.push(*byte);
            }
        }
        edited
    }

    /// Returns the bytes of a row.
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

    /// Returns the bytes of the header: lead-in, comment, channels.
    pub(super) fn header(&self) -> Vec<u8> {
        let small = |n: usize| u16::try_from(n).expect("small");
        let magic = if self.version == 1 { *b"BLR%" } else { *b"%RLD" };
        let (blocks, rows) =
            self.counts.unwrap_or((u32::try_from(self.blocks.len()).expect("small"), self.rows() as u64));
        let header_length = self.header_length.unwrap_or_else(|| small(self.header_len()));
        let comment_length = self.comment_length.unwrap_or_else(|| small(self.comment.len()).into());
        let mac = [0x12, 0x34, 0x56, 0x78, 0x90, 0xab_u8];
        let channels: Vec<_> = self.binary.iter().chain(&self.analog).map(Channel::bytes).collect();
        lay![
            lay![
                magic,
                self.version,
                header_length,
                self.block_size,
                blocks,
                rows,
                self.rate,
                mac,
                self.start
            ],
            lay![comment_length, small(self.binary.len()), small(self.analog.len()), self.comment, channels],
        ]
    }

    fn row_bytes(&self, row: &Row) -> Vec<u8> {
        let extra = vec![0_u8; if self.extra_word { 4 } else { 0 }];
        let values = row.values.iter().zip(&self.analog);
        let values: Vec<_> = values
            .map(|(value, channel)| value.to_le_bytes()[..usize::from(channel.size)].to_vec())
            .collect();
        lay![extra, row.words, values]
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let blocks: Vec<_> = (0..self.blocks.len()).map(|block| self.block_bytes(block)).collect();
        let mut bytes = lay![self.header(), blocks, self.tail];
        bytes.truncate(bytes.len() - self.cut);
        bytes
    }

    fn block_bytes(&self, i: usize) -> Vec<u8> {
        let block = &self.blocks[i];
        let rows: Vec<_> = block.rows.iter().map(|row| self.row_bytes(row)).collect();
        self.edited(self.block_at(i), &lay![block.timestamps(), rows])
    }

    fn name(&self, i: usize, channel: &Channel) -> String {
        let shown = self.shown.iter().find(|(at, _)| *at == i);
        let stored =
            || String::from_utf8(channel.name.clone()).expect("recipes say how such names are shown");
        shown.map_or_else(stored, |(_, name)| (*name).to_owned())
    }

    fn fields(&self) -> Json {
        if self.lost.iter().any(|lost| lost.0 == "no_layout") {
            return Json::Null;
        }
        let field = |(i, channel): (usize, &Channel)| {
            let kind = match i {
                i if i < self.binary.len() => "bool",
                _ if channel.scale.abs() > 30 => "int64",
                _ => "float64",
            };
            json!({"name": self.name(i, channel), "type": kind})
        };
        self.binary.iter().chain(&self.analog).enumerate().map(field).collect()
    }

    /// Returns the channel of the bit that must be set; links count from 1 before version 3.
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
            // Via decimal text, not with the arithmetic that readers use.
            let physical = || format!("{raw}e{}", channel.scale).parse::<f64>().expect("a decimal number");
            data[self.name(self.binary.len() + i, channel)] = match self.valid(channel) {
                Some(valid) if !bit(valid) => Json::Null,
                _ if channel.scale.abs() > 30 => raw.to_string().into(),
                _ => physical().into(),
            };
        }
        data
    }
}

impl From<Log> for Made {
    fn from(log: Log) -> Self {
        let readable = log.readable.unwrap_or(log.rows());
        let mut out = crate::log::Log::of(log.header(), ());
        out.add_topic(log.topic, log.topic, log.fields());
        let (mut raw, mut times) = (Vec::<Vec<String>>::new(), Vec::new());
        for (number, block) in log.blocks.iter().enumerate() {
            if log.left_out.iter().any(|blocks| blocks.contains(&number)) {
                out = out.lay(log.block_bytes(number));
                continue;
            }
            out = out.lay(block.timestamps());
            for (i, row) in block.rows.iter().enumerate() {
                if raw.len() < readable {
                    let time = block.truth.map(|truth| truth + log.since(i));
                    times.push(time);
                    raw.push(row.values.iter().map(ToString::to_string).collect());
                    out.record(0, time.map(Into::into), &log.data(row));
                }
                out = out.lay(log.row_bytes(row));
            }
        }
        let (lost, notes) = (log.lost.iter(), log.notes.iter());
        let out = out.each(lost, |out, (code, from, to)| out.lose_range(code, *from..*to));
        let text = |time: Option<&Option<i64>>| time.copied().flatten().map(|time| time.to_string());
        let truth = json!({
            "format": {"id": "rld", "version": log.version.to_string()},
            "clock": if log.boot_offset.is_some() { "boot" } else { "unix" },
            "utc": log.boot_offset.map(|nanos| json!({"rule": "block_times", "offset_ns": nanos.to_string()})),
            "start_ns": text(times.first()),
            "end_ns": text(times.last()),
            "rld": {
                "comment": log.comment.split(|b| *b == 0).next().map(escaped),
                "rate": log.rate,
                "raw": raw,
            },
        });
        let made = out.each(notes, |out, (at, code)| out.note_at(*at, code)).made(truth);
        made.map(|_| log.bytes())
    }
}

/// Returns a log that must be refused.
pub(super) fn refused(bytes: Vec<u8>, version: &str, kind: &str, contains: &str) -> Made {
    Made::refused(bytes, ["rld", version], kind, contains)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_the_specification() {
        let log = Log::new(4, 1).bit("DI1").analog("V1", 1, -8, NONE).blocks(1);
        let header = log.header();
        assert_eq!(header.len(), 56 + 8 + 2 * 28);
        // 0x1A: the MAC address; 0x20: the start; 0x34: the number of binary channels.
        assert_eq!((header[0x1a], &header[0x20..0x24], header[0x34]), (0x12, &[0, 0xf1, 0x53, 0x65][..], 1));
        assert_eq!(header[64 + 12..64 + 16], *b"DI1\0");
        assert_eq!(log.blocks[0].timestamps().len(), 32);
    }
}
