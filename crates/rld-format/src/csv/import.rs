//! Import of the logger's CSV.

use std::io::{BufRead, Read};

use chrono::NaiveDateTime;
use rovelog_core::text::count;

use crate::clock::span;
use crate::error::RldError;
use crate::unit::{MAX_SCALE, Unit};
use crate::wire::{BlockTimes, Version};
use crate::writer::{ChannelSpec, LogSpec, RldWriter, encode_row, set_counts};

const SECOND: i64 = 1_000_000_000;

/// The remark for block times of version 2.
const WHOLE_SECONDS: &str = "block times are whole seconds: later blocks follow the first one at the true rate, unless that is off by 2 s";

/// The version of the file if the text names none.
const NEWEST: u16 = 4;

/// Maximum length of a line in bytes.
const LINE_MAX: u64 = 1 << 20;

/// Maximum number of columns that a header can hold.
const COLUMNS_MAX: usize = 2339;

/// A log made from CSV.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Imported {
    /// The file, of the version that the text names, or of version 4 if that version cannot hold
    /// it.
    pub bytes: Vec<u8>,
    /// Number of rows.
    pub rows: u64,
    /// Descriptions of assumptions, made because the text does not tell.
    pub remarks: Vec<String>,
}

/// A block during import.
struct Block {
    realtime: i128,
    rows: Vec<u8>,
    count: u64,
}

/// Reads the logger's CSV. `zone` is the offset of its clock from UTC in seconds; it applies to
/// dates: the start time, and the block times of version 2.
///
/// The text has no times of the monotonic clock: they are counted from the first block.
///
/// # Errors
/// Returns an error with the line if the text is not the logger's CSV.
pub fn import(input: impl Read, zone: i32) -> Result<Imported, RldError> {
    let mut lines = Lines { input: std::io::BufReader::new(input), number: 0 };
    let mut remarks = vec!["the CSV has no monotonic clock; counted from the first block".to_owned()];
    let header = read_header(&mut lines, zone)?;
    let (mut spec, titles) = (header.spec, header.titles);
    let mut first = lines.next()?;
    let sample: Vec<&str> = first.as_deref().unwrap_or_default().split(',').map(str::trim).collect();
    spec.channels = channels(&titles, &sample);
    let mut blank = match spec.header() {
        Ok(header) => header,
        Err(error) => {
            let stated = std::mem::replace(&mut spec.version, NEWEST);
            let header = spec.header()?;
            remarks.push(format!("the log has version {NEWEST}, not {stated}: {error}"));
            header
        }
    };
    let layout = RldWriter::new(Vec::new(), blank.clone())?.layout().clone();
    let binary = usize::from(blank.lead_in.binary_count.get());
    let mut blocks: Vec<Block> = Vec::new();
    while let Some(line) = first.take().map_or_else(|| lines.next(), |line| Ok(Some(line)))? {
        let refuse = |why: String| RldError::BadCsv { line: lines.number, why };
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        if cells.len() != titles.len() + 1 {
            return Err(refuse(format!("{} cells, but the header has {}", cells.len(), titles.len() + 1)));
        }
        if !cells[0].is_empty() {
            let realtime = match (block_time(cells[0]), date(cells[0], zone)) {
                (Some(realtime), _) => realtime,
                (None, Some(seconds)) => {
                    if blocks.is_empty() {
                        remarks.push(WHOLE_SECONDS.to_owned());
                    }
                    dated(seconds, blocks.last(), spec.rate)
                }
                (None, None) => return Err(refuse(format!("{:?} is not a block time", cells[0]))),
            };
            blocks.push(Block { realtime, rows: Vec::new(), count: 0 });
        }
        let Some(block) = blocks.last_mut() else {
            return Err(refuse("a row before the first block time".to_owned()));
        };
        let number =
            |cell: &str| cell.parse::<i64>().map_err(|_| refuse(format!("{cell:?} is not an integer")));
        let mut words = vec![0u32; layout.words];
        for (i, cell) in cells[1..=binary].iter().enumerate() {
            words[i / 32] |= u32::from(number(cell)? != 0) << (i % 32);
        }
        let values = cells[1 + binary..].iter().map(|cell| number(cell)).collect::<Result<Vec<_>, _>>()?;
        encode_row(&layout, &words, &values, &mut block.rows).map_err(|error| refuse(error.to_string()))?;
        block.count += 1;
    }
    let rows: u64 = blocks.iter().map(|block| block.count).sum();
    // Block times start blocks; the block size in the header can be that of another file.
    let size = blocks.first().map_or(u64::from(spec.block_rows), |block| block.count);
    if size != u64::from(spec.block_rows) {
        remarks.push(format!(
            "blocks have {}, but the header states {}",
            count(size, "row"),
            spec.block_rows
        ));
    }
    blank.lead_in.data_block_size = rovelog_core::wire::U32Le::new(u32::try_from(size).unwrap_or(u32::MAX));
    set_counts(&mut blank, rows)?;
    let mut writer = RldWriter::new(Vec::new(), blank)?;
    let zero = blocks.first().map_or(0, |block| block.realtime);
    for block in &blocks {
        let block_times = BlockTimes::new(block.realtime, block.realtime - zero)
            .ok_or_else(|| RldError::not_writable("a block time beyond 64 bits"))?;
        writer.copy_block(&block_times, &block.rows)?;
    }
    Ok(Imported { bytes: writer.finish()?.0, rows, remarks })
}

struct Lines<R> {
    input: std::io::BufReader<R>,
    number: u64,
}

impl<R: Read> Lines<R> {
    fn next(&mut self) -> Result<Option<String>, RldError> {
        let mut line = Vec::new();
        let read = self.input.by_ref().take(LINE_MAX).read_until(b'\n', &mut line)?;
        self.number += 1;
        if read == 0 {
            return Ok(None);
        }
        if read as u64 == LINE_MAX {
            return Err(RldError::BadCsv { line: self.number, why: "longer than 1 MiB".to_owned() });
        }
        while line.last().is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
            line.pop();
        }
        Ok(Some(String::from_utf8_lossy(&line).into_owned()))
    }
}

struct CsvHeader {
    spec: LogSpec,
    titles: Vec<String>,
}

/// Reads the lines up to the one with the channels. The comment can have several lines.
fn read_header<R: Read>(lines: &mut Lines<R>, zone: i32) -> Result<CsvHeader, RldError> {
    let mut spec = LogSpec::new(1);
    let mut comment: Option<String> = None;
    loop {
        let line = lines.next()?;
        let refuse = |why: &str| RldError::BadCsv { line: lines.number, why: why.to_owned() };
        let line = line.ok_or_else(|| refuse("no line with the channels"))?;
        if lines.number == 1 {
            if line.trim() != "RocketLogger CSV File" {
                return Err(refuse("it does not start with \"RocketLogger CSV File\""));
            }
            continue;
        }
        if let Some(text) = &mut comment {
            if let Some(titles) = line.strip_prefix(',') {
                let titles: Vec<String> = titles.split(',').map(|title| title.trim().to_owned()).collect();
                if titles.len() > COLUMNS_MAX {
                    return Err(refuse("more columns than a log has channels"));
                }
                text.trim_end_matches('\n').clone_into(&mut spec.comment);
                return Ok(CsvHeader { spec, titles });
            }
            text.push('\n');
            text.push_str(&line);
            continue;
        }
        let Some((key, value)) = line.split_once(',') else {
            return Err(refuse("a header line without a comma"));
        };
        let value = value.trim();
        match key.trim() {
            "File Version" => {
                spec.version = value
                    .parse()
                    .ok()
                    .filter(|version| Version::of(*version).is_some())
                    .ok_or_else(|| refuse("a file version that is not 1 to 4"))?;
            }
            "Block Size" => {
                spec.block_rows = value.parse().map_err(|_| refuse("a block size that is not a number"))?;
            }
            "Sample Rate" => spec.rate = value.parse().map_err(|_| refuse("a rate that is not a number"))?,
            "MAC Address" => {
                let octets = value.split(':').map(|octet| u8::from_str_radix(octet, 16));
                let octets: Result<Vec<u8>, _> = octets.collect();
                spec.mac = octets
                    .ok()
                    .and_then(|octets| octets.try_into().ok())
                    .ok_or_else(|| refuse("no MAC address"))?;
            }
            "Start Time" => {
                let seconds = date(value, zone).ok_or_else(|| refuse("an invalid start time"))?;
                spec.start = seconds
                    .checked_mul(SECOND)
                    .ok_or_else(|| refuse("a start time past 64 bits of nanoseconds"))?;
            }
            "Comment" => comment = Some(value.to_owned()),
            // The counts are taken from the rows.
            _ => {}
        }
    }
}

/// Parses `Tue Nov 14 22:13:20 2023`, in the logger's time zone, to seconds of UTC.
fn date(text: &str, zone: i32) -> Option<i64> {
    let date = NaiveDateTime::parse_from_str(text, "%a %b %e %H:%M:%S %Y").ok()?;
    Some(date.and_utc().timestamp() - i64::from(zone))
}

/// Returns the time of a block that version 2 gives in whole seconds: that second, or the end of
/// the previous block if it is about the same. Several blocks can be written within a second.
fn dated(seconds: i64, before: Option<&Block>, rate: u16) -> i128 {
    let (stated, second) = (i128::from(seconds) * i128::from(SECOND), i128::from(SECOND));
    let counted = before.map(|block| block.realtime + span(block.count, rate));
    counted.filter(|counted| (stated - 2 * second..stated + 2 * second).contains(counted)).unwrap_or(stated)
}

/// Parses `1700000000.496480000`, or with the logger's bug `1700000000.-02520000`.
fn block_time(text: &str) -> Option<i128> {
    let (sec, nsec) = text.split_once('.')?;
    let (sec, nsec): (i64, i64) = (sec.parse().ok()?, nsec.parse().ok()?);
    Some(i128::from(sec) * 1_000_000_000 + i128::from(nsec))
}

/// Derives the channels from their titles: bits are recognised by name, or by being left of the
/// first unit with values 0 or 1.
fn channels(titles: &[String], sample: &[&str]) -> Vec<ChannelSpec> {
    let with_unit = titles.iter().position(|title| title.ends_with(']')).unwrap_or(titles.len());
    let bit = |(i, title): (usize, &String)| {
        let named = title.starts_with("DI") || title.ends_with("_valid");
        let looks =
            i < with_unit && matches!(sample.get(i + 1), Some(&"0" | &"1")) && with_unit < titles.len();
        named || looks
    };
    let bits: Vec<bool> = titles.iter().enumerate().map(bit).collect();
    let channel = |(title, bit): (&String, bool)| {
        if title.ends_with("_valid") {
            return ChannelSpec::range(title);
        }
        if bit {
            return ChannelSpec::bit(title);
        }
        let (name, unit, scale) = match title.split_once(" [") {
            Some((name, bracket)) => {
                let (unit, scale) = unit(bracket.trim_end_matches(']'));
                (name, unit, scale)
            }
            None => (title.as_str(), Unit::Undefined, 0),
        };
        let spec = ChannelSpec::analog(name, unit, scale);
        let valid = format!("{name}_valid");
        if titles.contains(&valid) { spec.valid_if(valid) } else { spec }
    };
    titles.iter().zip(bits).map(channel).collect()
}

/// Parses `10nV` to volt and -8; a scale without a symbol, `1e-6`, to integer and -6.
fn unit(text: &str) -> (Unit, i32) {
    let units = [
        Unit::Volt,
        Unit::Ampere,
        Unit::Second,
        Unit::Lux,
        Unit::Celsius,
        Unit::Percent,
        Unit::Pascal,
        Unit::Integer,
    ];
    let scales = -MAX_SCALE..=MAX_SCALE;
    let found = units.into_iter().find_map(|unit| {
        scales.clone().find(|scale| crate::unit::raw_unit(unit, *scale) == text).map(|scale| (unit, scale))
    });
    found.unwrap_or((Unit::Undefined, 0))
}
