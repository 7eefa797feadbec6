//! The CSV format that the logger writes. It has header lines, a line with the channels and their
//! units in brackets, and raw integers. The first row of each block starts with the block time.
//! Loggers wrote two variants, and both can be written and read.

mod import;

use std::io::Write;

use chrono::DateTime;

pub use import::{Imported, import};

use rovelog_core::ReadOptions;

use crate::clock::is_plausible_time;
use crate::error::RldError;
use crate::reader::RldReader;
use crate::schema::Channel;
use crate::unit::{Unit, raw_unit};

/// A variant of the logger's CSV.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CsvStyle {
    /// The variant since version 3. Block times are seconds with nine decimals.
    #[default]
    Nanoseconds,
    /// The variant up to version 2. Block times are dates with whole seconds, and a space precedes
    /// each bit.
    Dates,
}

/// Result of writing a log as CSV.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WrittenCsv {
    /// Number of rows that were written.
    pub rows: u64,
    /// Descriptions of content that is not in the CSV, or that [`import`] cannot restore from it.
    pub lost: Vec<String>,
}

impl RldReader {
    /// Writes the log as CSV, byte for byte as the logger does. Times are UTC. The CSV does not
    /// contain the monotonic clock.
    ///
    /// # Errors
    /// Returns an error if writing fails or rows cannot be located.
    pub fn write_logger_csv(&self, style: CsvStyle, mut out: impl Write) -> Result<WrittenCsv, RldError> {
        let head = self.csv_head(style)?;
        out.write_all(&head)?;
        let mut written = WrittenCsv { rows: self.rows(), lost: self.lost_in_head(&head)? };
        let channels = self.table()?.channels.len();
        let (mut dated, mut wide, mut impossible) = (false, false, false);
        let mut block_times = self.block_times().peekable();
        let mut line = String::new();
        for number in 0..self.rows() {
            line.clear();
            if let Some((_, block_times)) = block_times.next_if(|(row, _)| *row == number) {
                let (sec, nsec) = (block_times.realtime_sec.get(), block_times.realtime_nsec.get());
                line = match style {
                    // The nanoseconds are padded to nine characters, which include the sign of
                    // negative nanoseconds. This is a bug of the logger.
                    CsvStyle::Nanoseconds => format!("{sec}.{nsec:09}"),
                    CsvStyle::Dates => date(sec),
                };
                dated |= style == CsvStyle::Dates && nsec != 0;
                impossible |= !is_plausible_time(sec, if style == CsvStyle::Dates { 0 } else { nsec });
            }
            let row = self.row(number).ok_or_else(|| RldError::refused("no such row"))?;
            for channel in 0..channels {
                line.push(',');
                match (row.bit(channel), row.raw(channel)) {
                    (Some(bit), _) => {
                        let blank = if style == CsvStyle::Dates { " " } else { "" };
                        line.extend([blank, if bit { "1" } else { "0" }]);
                    }
                    (None, Some(raw)) => {
                        wide |= i32::try_from(raw).is_err();
                        line.push_str(&raw.to_string());
                    }
                    (None, None) => {}
                }
            }
            line.push('\n');
            out.write_all(line.as_bytes())?;
        }
        out.flush()?;
        let also = [
            (dated, "the CSV has block times in whole seconds"),
            (wide, "some values need more than 32 bits, so rld import rejects them"),
            (impossible, "some block times are damaged, so rld import rejects them"),
        ];
        written.lost.extend(also.iter().filter(|(found, _)| *found).map(|(_, what)| (*what).to_owned()));
        Ok(written)
    }

    /// Returns the header of the CSV file, up to and including the line with the channels.
    fn csv_head(&self, style: CsvStyle) -> Result<Vec<u8>, RldError> {
        let table = self.table()?;
        let lead_in = &self.header().lead_in;
        let blocks = self.block_times().count();
        let version = match style {
            CsvStyle::Nanoseconds => lead_in.file_version.get(),
            CsvStyle::Dates => lead_in.file_version.get().min(2),
        };
        let start = date(lead_in.start_sec.get());
        let mut out = Vec::new();
        writeln!(out, "RocketLogger CSV File")?;
        writeln!(out, "File Version,{version}")?;
        writeln!(out, "Block Size,{}", lead_in.data_block_size.get())?;
        writeln!(out, "Block Count,{blocks:<20}")?;
        writeln!(out, "Sample Count,{:<20}", self.rows())?;
        writeln!(out, "Sample Rate,{}", lead_in.sample_rate.get())?;
        writeln!(out, "MAC Address,{}", lead_in.mac_text())?;
        writeln!(out, "Start Time,{start}")?;
        writeln!(out, "Comment,{}", self.header().comment_text())?;
        writeln!(out)?;
        for channel in &table.channels {
            write!(out, ",{}{}", channel.name, bracket(channel))?;
        }
        writeln!(out)?;
        Ok(out)
    }

    /// Returns descriptions of the header's content that the CSV does not preserve. To find out,
    /// the CSV header `head` is imported again and compared.
    fn lost_in_head(&self, head: &[u8]) -> Result<Vec<String>, RldError> {
        // `import` recognizes some binary channels by the values of the first row.
        let mut text = head.to_vec();
        if self.rows() > 0 {
            text.extend_from_slice(b"0.000000000");
            for channel in &self.table()?.channels {
                text.extend_from_slice(if channel.is_binary { b",1" } else { b",2" });
            }
            text.push(b'\n');
        }
        let reimported = match import(&text[..], 0) {
            Ok(imported) => Self::new(imported.bytes.into(), &ReadOptions::default())?,
            Err(error) => return Ok(vec![format!("rld import cannot read the CSV header: {error}")]),
        };
        let preserved = |channel: &Channel| {
            let known = !matches!(channel.unit, Unit::Undefined | Unit::Unitless);
            let unit = (known && !channel.is_binary).then_some(channel.unit);
            let scale = (!channel.is_binary).then_some(channel.scale);
            (channel.name.clone(), channel.is_binary, unit, scale, channel.valid)
        };
        let (ours, theirs) = (self.header(), reimported.header());
        let same = reimported.channels().len() == self.channels().len();
        let mut lost = Vec::new();
        if !same {
            lost.push(
                "channel names change after rld import, because they contain commas or line breaks"
                    .to_owned(),
            );
        }
        for (channel, reimported) in self.channels().iter().zip(reimported.channels()).filter(|_| same) {
            if preserved(channel) != preserved(reimported) {
                lost.push(format!(
                    "the name, unit, scale or range flag of channel {} changes after rld import",
                    channel.name
                ));
            }
        }
        let (version, other) = (ours.lead_in.file_version.get(), theirs.lead_in.file_version.get());
        if version != other {
            lost.push(format!("the file version changes from {version} to {other} after rld import"));
        }
        if ours.comment_text() != theirs.comment_text() {
            lost.push("the comment changes after rld import".to_owned());
        }
        if ours.lead_in.start_sec.get() != theirs.lead_in.start_sec.get() {
            lost.push("the start time changes after rld import".to_owned());
        }
        Ok(lost)
    }
}

/// Formats a time in the format of C's `ctime`, in which the day of the month is padded with a
/// space.
fn date(sec: i64) -> String {
    DateTime::from_timestamp(sec, 0)
        .map_or_else(|| sec.to_string(), |time| time.format("%a %b %e %H:%M:%S %Y").to_string())
}

/// Returns the text that follows a channel's name in the CSV: a space and the unit in brackets, for
/// example ` [10nV]`. Returns an empty string for binary channels and channels without a unit.
fn bracket(channel: &Channel) -> String {
    if channel.is_binary || matches!(channel.unit, Unit::Undefined | Unit::Unitless) {
        return String::new();
    }
    match raw_unit(channel.unit, channel.scale) {
        unit if unit.is_empty() => unit,
        unit => format!(" [{unit}]"),
    }
}
