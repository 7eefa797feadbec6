//! A log that is laid down and noted at once: bytes on one side, on the other what a right reader must say.

use serde_json::{Value, json};

use super::super::Made;
use super::lay::{Channel, LeadIn, stamps};

/// The time of the first row of most logs: 2023-11-14T22:13:20Z.
pub(super) const T0: i64 = 1_700_000_000_000_000_000;

/// The same on the monotonic clock.
const BOOT: i64 = 5_000_000_000_000;

/// Nanoseconds of a true second: 3136/3125 of a nominal one.
const TRUE_SECOND: i64 = 1_003_520_000;

/// A row: words of bits, raw values.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) words: Vec<u32>,
    pub(super) values: Vec<i64>,
}

/// A block: its stamps, and where its first row truly stands on the Unix clock; `None` for rows without a time.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) realtime: (i64, i64),
    pub(super) monotonic: (i64, i64),
    pub(super) truth: Option<i64>,
    pub(super) rows: Vec<Row>,
}

/// What is to be laid down. Fields that contradict each other are set by the recipes that are about it.
#[derive(Clone, Debug)]
pub(super) struct Log {
    pub(super) version: u16,
    pub(super) rate: u16,
    pub(super) block_size: u32,
    pub(super) comment: Vec<u8>,
    pub(super) binary: Vec<Channel>,
    pub(super) analog: Vec<Channel>,
    pub(super) blocks: Vec<Block>,
    /// The nanoseconds of a row, as numerator and denominator.
    pub(super) period: (i64, i64),
    pub(super) topic: &'static str,
    /// Fields of the lead-in that are not what the rest makes them.
    pub(super) header_length: Option<u16>,
    pub(super) comment_length: Option<u32>,
    pub(super) counts: Option<(u32, u64)>,
    pub(super) start: (i64, i64),
    /// A word of this value before each row, which is no part of it.
    pub(super) extra_word: bool,
    /// Bytes behind the last row.
    pub(super) tail: Vec<u8>,
    /// Bytes cut off at the end.
    pub(super) cut: usize,
    /// Names as a reader shows them, where they are not those of the table.
    pub(super) shown: Vec<(usize, &'static str)>,
    state: &'static str,
    lost: Vec<(&'static str, usize, usize)>,
    notes: Vec<(&'static str, usize)>,
}

/// A number at `scale`, by decimal text: not by the arithmetic that readers use.
fn physical(raw: i64, scale: i32) -> f64 {
    format!("{raw}e{scale}").parse().expect("a decimal number")
}

impl Log {
    /// A log of version 4 with its own writer's comment, without channels yet.
    pub(super) fn new(rate: u16, block_size: u32) -> Self {
        Self {
            version: 4,
            rate,
            block_size,
            comment: b"corpus\0\0".to_vec(),
            binary: Vec::new(),
            analog: Vec::new(),
            blocks: Vec::new(),
            period: (TRUE_SECOND, rate.max(1).into()),
            topic: "samples",
            header_length: None,
            comment_length: None,
            counts: None,
            start: (T0 / 1_000_000_000, 0),
            extra_word: false,
            tail: Vec::new(),
            cut: 0,
            shown: Vec::new(),
            state: "complete",
            lost: Vec::new(),
            notes: Vec::new(),
        }
    }

    pub(super) fn bit(mut self, name: &str) -> Self {
        self.binary.push(Channel { unit: 3, scale: 0, size: 0, link: 0xFFFF, name: name.into() });
        self
    }

    pub(super) fn range(mut self, name: &str) -> Self {
        self.binary.push(Channel { unit: 4, scale: 0, size: 0, link: 0xFFFF, name: name.into() });
        self
    }

    pub(super) fn analog(mut self, name: &str, unit: u32, scale: i32, link: u16) -> Self {
        self.analog.push(Channel { unit, scale, size: 4, link, name: name.into() });
        self
    }

    /// Row number `i` of plain data: every channel its own numbers, every bit its own beat.
    pub(super) fn plain_row(&self, i: usize) -> Row {
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

    /// Rows laid down so far.
    pub(super) fn rows(&self) -> usize {
        self.blocks.iter().map(|block| block.rows.len()).sum()
    }

    /// Nanoseconds from the first row to row number `i`, rounded to the nearest.
    pub(super) fn since(&self, i: usize) -> i64 {
        let (num, den) = (i128::from(self.period.0), i128::from(self.period.1));
        let exact = i128::try_from(i).expect("small") * num + den / 2;
        i64::try_from(exact / den).expect("small")
    }

    /// A block of `rows` plain rows, stamped when its first row was sampled, late by `late` nanoseconds.
    pub(super) fn block_late(&mut self, rows: usize, late: i64) -> &mut Block {
        let first = self.rows();
        let rows = (first..first + rows).map(|i| self.plain_row(i)).collect();
        let at = self.since(first);
        let pair = |nanos: i64| (nanos.div_euclid(1_000_000_000), nanos.rem_euclid(1_000_000_000));
        self.blocks.push(Block {
            realtime: pair(T0 + at + late),
            monotonic: pair(BOOT + at + late),
            truth: Some(T0 + at),
            rows,
        });
        self.blocks.last_mut().expect("just pushed")
    }

    /// Blocks of full size, stamped exactly.
    pub(super) fn blocks(mut self, count: usize) -> Self {
        for _ in 0..count {
            let rows = usize::try_from(self.block_size).expect("small");
            self.block_late(rows, 0);
        }
        self
    }

    /// Moves both clocks of the last block.
    pub(super) fn shift(&mut self, realtime: i64, monotonic: i64) {
        let block = self.blocks.last_mut().expect("a block");
        let moved = |(sec, nsec): (i64, i64), by: i64| {
            let nanos = sec * 1_000_000_000 + nsec + by;
            (nanos.div_euclid(1_000_000_000), nanos.rem_euclid(1_000_000_000))
        };
        block.realtime = moved(block.realtime, realtime);
        block.monotonic = moved(block.monotonic, monotonic);
        block.truth = block.truth.map(|truth| truth + realtime);
    }

    pub(super) fn note(mut self, code: &'static str, offset: usize) -> Self {
        self.notes.push((code, offset));
        self
    }

    /// Bytes from `start` on to the end of the file that are no rows.
    pub(super) fn lose(mut self, code: &'static str, start: usize, end: usize) -> Self {
        self.lost.push((code, start, end));
        self
    }

    pub(super) fn state(mut self, state: &'static str) -> Self {
        self.state = state;
        self
    }

    /// Bytes of a row.
    pub(super) fn row_len(&self) -> usize {
        let words = self.binary.len().div_ceil(32) + usize::from(self.extra_word);
        4 * words + self.analog.iter().map(|channel| usize::from(channel.size)).sum::<usize>()
    }

    /// Where the first block begins.
    pub(super) fn header_len(&self) -> usize {
        56 + self.comment.len() + 28 * (self.binary.len() + self.analog.len())
    }

    /// Where channel number `i` stands.
    pub(super) fn channel_at(&self, i: usize) -> usize {
        56 + self.comment.len() + 28 * i
    }

    /// Where block number `i` begins.
    pub(super) fn block_at(&self, i: usize) -> usize {
        let before: usize = self.blocks[..i].iter().map(|block| 32 + block.rows.len() * self.row_len()).sum();
        self.header_len() + before
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let small = |n: usize| u16::try_from(n).expect("small");
        let (blocks, rows) =
            self.counts.unwrap_or((u32::try_from(self.blocks.len()).expect("small"), self.rows() as u64));
        let lead_in = LeadIn {
            magic: if self.version == 1 { *b"BLR%" } else { *b"%RLD" },
            version: self.version,
            header_length: self.header_length.unwrap_or_else(|| small(self.header_len())),
            block_size: self.block_size,
            block_count: blocks,
            sample_count: rows,
            rate: self.rate,
            mac: [0x12, 0x34, 0x56, 0x78, 0x90, 0xab],
            start: self.start,
            comment_length: self.comment_length.unwrap_or_else(|| small(self.comment.len()).into()),
            binary: small(self.binary.len()),
            analog: small(self.analog.len()),
        };
        let mut bytes = lead_in.bytes();
        bytes.extend(&self.comment);
        self.binary.iter().chain(&self.analog).for_each(|channel| bytes.extend(channel.bytes()));
        for block in &self.blocks {
            bytes.extend(stamps(block.realtime, block.monotonic));
            for row in &block.rows {
                if self.extra_word {
                    bytes.extend([0; 4]);
                }
                row.words.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
                for (value, channel) in row.values.iter().zip(&self.analog) {
                    bytes.extend(&value.to_le_bytes()[..usize::from(channel.size)]);
                }
            }
        }
        bytes.extend(&self.tail);
        bytes.truncate(bytes.len() - self.cut);
        bytes
    }

    fn name(&self, i: usize, channel: &Channel) -> String {
        let shown = self.shown.iter().find(|(at, _)| *at == i);
        let stored =
            || String::from_utf8(channel.name.clone()).expect("recipes say how such names are shown");
        shown.map_or_else(stored, |(_, name)| (*name).to_owned())
    }

    /// The channel whose bit must be set; links count from 1 before version 3.
    fn valid(&self, channel: &Channel) -> Option<usize> {
        let base = u16::from(self.version < 3);
        let target = usize::from(channel.link.checked_sub(base)?);
        (channel.link != 0xFFFF && target < self.binary.len()).then_some(target)
    }

    fn data(&self, row: &Row) -> Value {
        let bit = |at: usize| row.words[at / 32] >> (at % 32) & 1 == 1;
        let mut data = serde_json::Map::new();
        for (i, channel) in self.binary.iter().enumerate() {
            data.insert(self.name(i, channel), bit(i).into());
        }
        for (i, (channel, raw)) in self.analog.iter().zip(&row.values).enumerate() {
            let value = match self.valid(channel) {
                Some(valid) if !bit(valid) => Value::Null,
                _ if channel.scale.abs() > 30 => raw.to_string().into(),
                _ => physical(*raw, channel.scale).into(),
            };
            data.insert(self.name(self.binary.len() + i, channel), value);
        }
        data.into()
    }

    /// The file and the truth; `readable` rows are left by what was cut.
    pub(super) fn made_with(mut self, readable: usize) -> Made {
        let mut records = Vec::new();
        let mut times = Vec::new();
        'blocks: for (number, block) in self.blocks.iter().enumerate() {
            for (i, row) in block.rows.iter().enumerate() {
                if records.len() == readable {
                    break 'blocks;
                }
                let time = block.truth.map(|truth| (truth + self.since(i)).to_string());
                times.push(time.clone());
                records.push(json!({
                    "topic": self.topic,
                    "t_ns": time,
                    "offset": (self.block_at(number) + 32 + i * self.row_len()).to_string(),
                    "seq": records.len(),
                    "data": self.data(row),
                }));
            }
        }
        let field = |(i, channel): (usize, &Channel)| {
            let kind = match i {
                i if i < self.binary.len() => "bool",
                _ if channel.scale.abs() > 30 => "int64",
                _ => "float64",
            };
            json!({"name": self.name(i, channel), "type": kind})
        };
        let fields: Vec<Value> = self.binary.iter().chain(&self.analog).enumerate().map(field).collect();
        let has_rows = self.lost.iter().all(|lost| lost.0 != "no_layout");
        let fields = if has_rows { Value::from(fields) } else { Value::Null };
        self.notes.sort_by_key(|note| (note.1, note.0));
        let raw = self.blocks.iter().flat_map(|block| &block.rows).take(readable);
        let raw: Vec<Vec<String>> =
            raw.map(|row| row.values.iter().map(ToString::to_string).collect()).collect();
        let expected = json!({
            "format": {"id": "rld", "version": self.version.to_string()},
            "open": "ok",
            "state": self.state,
            "clock": "unix",
            "utc": null,
            "start_ns": times.first().cloned().flatten(),
            "end_ns": times.last().cloned().flatten(),
            "topics": [{
                "name": self.topic,
                "type": self.topic,
                "count": records.len().to_string(),
                "fields": fields,
            }],
            "records": records,
            "rld": {
                "comment": self.comment.split(|b| *b == 0).next().map(|text| String::from_utf8_lossy(text)),
                "rate": self.rate,
                "raw": raw,
            },
            "lost": self.lost.iter().map(|(code, start, end)| {
                json!({"code": code, "start": start.to_string(), "end": end.to_string()})
            }).collect::<Value>(),
            "notes": self.notes.iter().map(|(code, offset)| {
                json!({"code": code, "offset": offset.to_string()})
            }).collect::<Value>(),
        });
        Made { bytes: self.bytes(), expected }
    }

    /// The file and the truth, all rows readable.
    pub(super) fn made(self) -> Made {
        let rows = self.rows();
        self.made_with(rows)
    }
}
