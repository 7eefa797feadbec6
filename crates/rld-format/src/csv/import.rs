//! Import of a CSV file that the logger wrote.

use std::io::{BufRead, Read};

use chrono::NaiveDateTime;
use rovelog_core::internal::text::count;
use rovelog_core::internal::wire::U32Le;

use crate::clock::{is_plausible_time, span};
use crate::error::RldError;
use crate::layout::Layout;
use crate::unit::{MAX_SCALE, Unit};
use crate::wire::{BlockTimes, Version};
use crate::writer::{ChannelSpec, LogSpec, RldWriter, encode_row, set_counts};

const SECOND: i64 = 1_000_000_000;

/// Remark that is returned for logs whose block times are dates with whole seconds.
const WHOLE_SECONDS_REMARK: &str = "the CSV has block times in whole seconds, so later blocks are counted \
                                    from the first block at the true rate, unless that is off by 2 s";

/// File version of the imported log if the version that the CSV states does not support the
/// channels.
const NEWEST_VERSION: u16 = 4;

/// Minimum jump of block times, in nanoseconds, that shows that the clock was set. The value is ten
/// days. A shorter jump is a gap. If block times jump back by more than a second, the clock was
/// set, too.
const MAX_GAP: i128 = 864_000 * SECOND as i128;

/// Maximum length of a line of the CSV in bytes.
const MAX_LINE_LEN: u64 = 1 << 20;

/// Maximum number of columns in the CSV. An RLD header has no room for more channels.
const MAX_COLUMNS: usize = 2339;

/// A log that was imported from CSV.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Imported {
    /// The imported log as an RLD file. Its version is the version that the CSV states, or 4 if
    /// that version does not support the channels.
    pub bytes: Vec<u8>,
    /// Number of imported rows.
    pub rows: u64,
    /// Assumptions that were made about content that the CSV does not have, as text.
    pub remarks: Vec<String>,
}

/// A block of rows that is being imported.
struct Block {
    realtime: i128,
    rows: Vec<u8>,
    count: u64,
}

/// Reads a CSV file that the logger wrote. `zone` is the offset of the logger's time zone from UTC
/// in seconds. It applies to dates, that is, to the start time and to the block times of version 2.
///
/// The CSV has no monotonic times. They are counted from the first block. If the clock was set at a
/// block, the monotonic times continue at the true rate.
///
/// # Errors
/// Returns an error with the line number if the text is not the logger's CSV.
pub fn import(input: impl Read, zone: i32) -> Result<Imported, RldError> {
    let mut lines = Lines { input: std::io::BufReader::new(input), number: 0 };
    let mut remarks = vec![
        "the CSV has no monotonic clock, so monotonic times are counted from the first block".to_owned(),
    ];
    let CsvHeader { mut spec, titles } = read_header(&mut lines, zone)?;
    let mut first = lines.next()?;
    let sample: Vec<&str> = first.as_deref().unwrap_or_default().split(',').map(str::trim).collect();
    spec.channels = channels(&titles, &sample);
    // The CSV may use a feature that its stated version does not support. The newest version
    // supports all features.
    let mut header = match spec.header() {
        Ok(header) => header,
        Err(error) => {
            let stated = std::mem::replace(&mut spec.version, NEWEST_VERSION);
            let header = spec.header()?;
            remarks.push(format!(
                "the log is written with file version {NEWEST_VERSION} instead of {stated}: {error}"
            ));
            header
        }
    };
    let layout = RldWriter::new(Vec::new(), header.clone())?.layout().clone();
    let (binary, columns) = (usize::from(header.lead_in.binary_count.get()), titles.len() + 1);
    let row_reader = RowReader { layout, binary, columns, zone, rate: spec.rate };
    let mut blocks: Vec<Block> = Vec::new();
    let mut has_dates = false;
    while let Some(line) = first.take().map_or_else(|| lines.next(), |line| Ok(Some(line)))? {
        has_dates |=
            row_reader.add(&line, &mut blocks).map_err(|why| RldError::BadCsv { line: lines.number, why })?;
    }
    if has_dates {
        remarks.push(WHOLE_SECONDS_REMARK.to_owned());
    }
    let rows: u64 = blocks.iter().map(|block| block.count).sum();
    // The size of blocks is determined from their block times, because the block size in the header
    // of the CSV can be wrong.
    let size = block_size(&blocks).unwrap_or(spec.block_rows.into());
    let is_divided = |(number, block): (usize, &Block)| {
        block.count > size || (block.count < size && number + 1 < blocks.len())
    };
    let counted = count(size, "row");
    if blocks.iter().enumerate().any(is_divided) {
        remarks.push(format!(
            "the blocks have different numbers of rows, so they are divided into {counted} each"
        ));
    } else if size != u64::from(spec.block_rows) {
        let stated = spec.block_rows;
        remarks.push(format!("the blocks have {counted}, although the CSV header states {stated}"));
    }
    header.lead_in.data_block_size = U32Le::new(u32::try_from(size).unwrap_or(u32::MAX));
    set_counts(&mut header, rows)?;
    let mut writer = RldWriter::new(Vec::new(), header)?;
    let steps = write_blocks(&blocks, spec.rate, &mut writer)?;
    if steps > 0 {
        let steps = count(steps, "jump");
        remarks.push(format!("the block times have {steps}, because the clock was set; no rows are missing"));
    }
    let (bytes, _) = writer.finish()?;
    Ok(Imported { bytes, rows, remarks })
}

/// Writes the times and rows of all blocks. Returns how often the UTC clock was set between two
/// blocks.
fn write_blocks(blocks: &[Block], rate: u16, writer: &mut RldWriter<Vec<u8>>) -> Result<u64, RldError> {
    let size = writer.layout().block_rows;
    let block_bytes = usize::try_from(size).unwrap_or(usize::MAX).saturating_mul(writer.layout().row);
    // The difference between Unix time and monotonic time, and the Unix time at which the next
    // block is expected.
    let mut apart = blocks.first().map_or(0, |block| block.realtime);
    let mut expected = apart;
    let mut steps = 0;
    for block in blocks {
        // The monotonic clock is not in the CSV. If the Unix clock was set, the monotonic time must
        // not jump, so the difference between the clocks changes.
        let jump = block.realtime - expected;
        if !(-i128::from(SECOND)..MAX_GAP).contains(&jump) {
            apart += jump;
            steps += 1;
        }
        for (part, rows) in block.rows.chunks(block_bytes).enumerate() {
            let realtime = block.realtime + span(part as u64 * size, rate);
            let block_times = BlockTimes::new(realtime, realtime - apart)
                .ok_or_else(|| RldError::not_writable("a block time does not fit into 64 bits"))?;
            writer.copy_block(&block_times, rows)?;
        }
        expected = block.realtime + span(block.count, rate);
    }
    Ok(steps)
}

/// Returns the number of rows per block for the new log. Returns `None` if there are no blocks.
///
/// In an RLD log, all blocks except the last one have the same size. In the CSV, they have different
/// sizes if rows are missing. The blocks of the CSV are then divided into blocks of one size, which
/// is the greatest common divisor of all sizes except the last one. For example, blocks of 100, 50
/// and 30 rows are divided into blocks of 50 rows, and a last block of 30 rows.
fn block_size(blocks: &[Block]) -> Option<u64> {
    let (last, full) = blocks.split_last()?;
    let divisor = |mut a: u64, mut b: u64| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    Some(full.iter().map(|block| block.count).reduce(divisor).unwrap_or(last.count))
}

struct Lines<R> {
    input: std::io::BufReader<R>,
    number: u64,
}

impl<R: Read> Lines<R> {
    fn next(&mut self) -> Result<Option<String>, RldError> {
        let mut line = Vec::new();
        let read = self.input.by_ref().take(MAX_LINE_LEN).read_until(b'\n', &mut line)?;
        self.number += 1;
        if read == 0 {
            return Ok(None);
        }
        // Without this limit, a file without line ends would be read into memory as a whole.
        if read as u64 == MAX_LINE_LEN {
            return Err(self.refuse("the line is longer than 1 MiB"));
        }
        while line.last().is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
            line.pop();
        }
        Ok(Some(String::from_utf8_lossy(&line).into_owned()))
    }

    /// Returns the next line of the header, which ends with the line with the channels.
    fn next_in_header(&mut self) -> Result<String, RldError> {
        self.next()?.ok_or_else(|| self.refuse("the line with the channels is missing"))
    }

    /// Returns an error in the last line that was read.
    fn refuse(&self, why: &str) -> RldError {
        RldError::BadCsv { line: self.number, why: why.to_owned() }
    }
}

struct CsvHeader {
    spec: LogSpec,
    titles: Vec<String>,
}

/// Reads the header lines, including the line with the channels. The comment can span several
/// lines.
fn read_header<R: Read>(lines: &mut Lines<R>, zone: i32) -> Result<CsvHeader, RldError> {
    let mut spec = LogSpec::new(1);
    if lines.next_in_header()?.trim() != "RocketLogger CSV File" {
        return Err(lines.refuse("the file does not start with \"RocketLogger CSV File\""));
    }
    let mut comment = loop {
        let line = lines.next_in_header()?;
        let Some((key, value)) = line.split_once(',') else {
            return Err(lines.refuse("a header line must contain a comma"));
        };
        match key.trim() {
            "Comment" => break value.trim().to_owned(),
            key => set_field(&mut spec, key, value.trim(), zone).map_err(|why| lines.refuse(why))?,
        }
    };
    let titles: Vec<String> = loop {
        let line = lines.next_in_header()?;
        if let Some(titles) = line.strip_prefix(',') {
            break titles.split(',').map(|title| title.trim().to_owned()).collect();
        }
        comment.push('\n');
        comment.push_str(&line);
    };
    if titles.len() > MAX_COLUMNS {
        return Err(lines.refuse("the CSV has more columns than a log can have channels"));
    }
    comment.trim_end_matches('\n').clone_into(&mut spec.comment);
    Ok(CsvHeader { spec, titles })
}

/// Sets the field of `spec` that a header line describes. Returns an error as text if the value is
/// invalid.
fn set_field(spec: &mut LogSpec, key: &str, value: &str, zone: i32) -> Result<(), &'static str> {
    match key {
        "File Version" => {
            let version = value.parse().ok().filter(|version| Version::of(*version).is_some());
            spec.version = version.ok_or("the file version must be 1 to 4")?;
        }
        "Block Size" => spec.block_rows = value.parse().map_err(|_| "the block size must be a number")?,
        "Sample Rate" => spec.rate = value.parse().map_err(|_| "the sample rate must be a number")?,
        "MAC Address" => {
            let octets = value.split(':').map(|octet| u8::from_str_radix(octet, 16));
            let octets = octets.collect::<Result<Vec<u8>, _>>().ok();
            let mac = octets.and_then(|octets| octets.try_into().ok());
            spec.mac = mac.ok_or("the MAC address is invalid")?;
        }
        "Start Time" => {
            let nanos = date(value, zone).ok_or("the start time is invalid")?.checked_mul(SECOND);
            spec.start = nanos.ok_or("the start time does not fit into 64 bits of nanoseconds")?;
        }
        // The counts in the header of the CSV are ignored, because the rows are counted during the
        // import.
        _ => {}
    }
    Ok(())
}

/// Reads the rows of the CSV.
struct RowReader {
    layout: Layout,
    /// Number of binary channels.
    binary: usize,
    /// Number of cells of each line.
    columns: usize,
    /// Offset of the time zone from UTC in seconds.
    zone: i32,
    /// Rows per second.
    rate: u16,
}

impl RowReader {
    /// Adds the row in a line to the last block, or to a new block if the line has a block time.
    /// Returns true if the block time is a date. Returns an error as text if the line is not a row.
    fn add(&self, line: &str, blocks: &mut Vec<Block>) -> Result<bool, String> {
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        if cells.len() != self.columns {
            return Err(format!("the line has {} cells, but the header has {}", cells.len(), self.columns));
        }
        let mut is_date = false;
        // Only the first row of a block has a block time.
        if !cells[0].is_empty() {
            let realtime = match (block_time(cells[0]), date(cells[0], self.zone)) {
                (Some(realtime), _) => realtime,
                (None, Some(seconds)) if is_plausible_time(seconds, 0) => {
                    is_date = true;
                    time_of_date(seconds, blocks.last(), self.rate)
                }
                (None, _) => return Err(format!("{:?} is not a block time", cells[0])),
            };
            blocks.push(Block { realtime, rows: Vec::new(), count: 0 });
        }
        let block = blocks.last_mut().ok_or("the row comes before the first block time")?;
        let number = |cell: &str| cell.parse::<i64>().map_err(|_| format!("{cell:?} is not an integer"));
        let mut words = vec![0u32; self.layout.words];
        for (i, cell) in cells[1..=self.binary].iter().enumerate() {
            words[i / 32] |= u32::from(number(cell)? != 0) << (i % 32);
        }
        let values =
            cells[1 + self.binary..].iter().map(|cell| number(cell)).collect::<Result<Vec<_>, _>>()?;
        encode_row(&self.layout, &words, &values, &mut block.rows).map_err(|error| error.to_string())?;
        block.count += 1;
        Ok(is_date)
    }
}

/// Parses a date such as `Tue Nov 14 22:13:20 2023` in the logger's time zone. Returns seconds of
/// Unix time.
fn date(text: &str, zone: i32) -> Option<i64> {
    let date = NaiveDateTime::parse_from_str(text, "%a %b %e %H:%M:%S %Y").ok()?;
    Some(date.and_utc().timestamp() - i64::from(zone))
}

/// Returns the start time of a block whose date has whole seconds. Several blocks can have the same
/// date, so the date alone is too inaccurate. If the previous block ends within two seconds of the
/// date, the block starts at the end of the previous block. If it does not, the block starts at the
/// date.
fn time_of_date(seconds: i64, before: Option<&Block>, rate: u16) -> i128 {
    let (stated, second) = (i128::from(seconds) * i128::from(SECOND), i128::from(SECOND));
    let counted = before.map(|block| block.realtime + span(block.count, rate));
    counted.filter(|counted| (stated - 2 * second..stated + 2 * second).contains(counted)).unwrap_or(stated)
}

/// Parses a block time such as `1700000000.496480000`. A bug of the logger produces times such as
/// `1700000000.-02520000`, which are parsed, too. A spreadsheet may have removed zeros from the end.
/// Returns `None` if a reader of the log would reject the time as damaged.
fn block_time(text: &str) -> Option<i128> {
    let (sec, fraction) = text.split_once('.').unwrap_or((text, ""));
    let (sec, nsec): (i64, i64) = (sec.parse().ok()?, format!("{fraction:0<9}").parse().ok()?);
    is_plausible_time(sec, nsec).then_some(i128::from(sec) * i128::from(SECOND) + i128::from(nsec))
}

/// Derives the channels from the titles of the columns. A channel is binary if it has the name of a
/// binary channel. It is also binary if its column is to the left of the first title with a unit,
/// and its first value is 0 or 1.
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

/// Parses a unit such as `10nV`, which is volt with scale -8. A scale without a symbol, such as
/// `1e-6`, is the scale of an integer channel.
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
