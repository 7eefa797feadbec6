//! The logger's own CSV: header lines, the channels with their units in brackets, raw integers, and a stamp on the
//! first row of each block. Versions 3 and 4 are written; versions 2 to 4 are read.

mod import;

use std::io::Write;

use chrono::DateTime;

pub use import::{Imported, import};

use crate::error::RldError;
use crate::reader::RldReader;
use crate::schema::Channel;
use crate::unit::{Unit, raw_unit};

impl RldReader {
    /// Writes the log as the logger writes its CSV, byte for byte; times are of UTC.
    ///
    /// # Errors
    /// Where the output refuses, or rows cannot be found.
    pub fn write_logger_csv(&self, mut out: impl Write) -> Result<(), RldError> {
        let table = self.table()?;
        let lead_in = &self.header().lead_in;
        let blocks = self.stamps().count();
        let start = DateTime::from_timestamp(lead_in.start_sec.get(), 0);
        // As `ctime` writes it: the day of the month is padded with a blank.
        let start = start.map_or_else(
            || lead_in.start_sec.get().to_string(),
            |t| t.format("%a %b %e %H:%M:%S %Y").to_string(),
        );
        writeln!(out, "RocketLogger CSV File")?;
        writeln!(out, "File Version,{}", lead_in.file_version.get())?;
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
        let mut stamps = self.stamps().peekable();
        let mut line = String::new();
        for number in 0..self.rows() {
            line.clear();
            if let Some((_, stamps)) = stamps.next_if(|(row, _)| *row == number) {
                let (sec, nsec) = (stamps.realtime_sec.get(), stamps.realtime_nsec.get());
                // Nine places, the sign of negative nanoseconds among them: the logger's own slip.
                line = format!("{sec}.{nsec:09}");
            }
            let row = self.row(number).ok_or_else(|| RldError::refused("no such row"))?;
            for channel in 0..table.channels.len() {
                line.push(',');
                match (row.bit(channel), row.raw(channel)) {
                    (Some(bit), _) => line.push(if bit { '1' } else { '0' }),
                    (None, Some(raw)) => line.push_str(&raw.to_string()),
                    (None, None) => {}
                }
            }
            line.push('\n');
            out.write_all(line.as_bytes())?;
        }
        Ok(out.flush()?)
    }
}

/// The unit behind a channel's name: ` [10nV]`; nothing for bits and where there is no unit.
fn bracket(channel: &Channel) -> String {
    if channel.is_binary || matches!(channel.unit, Unit::Undefined | Unit::Unitless) {
        return String::new();
    }
    format!(" [{}]", raw_unit(channel.unit, channel.scale))
}
