//! RocketLogger logs as the logger's own CSV: all rows in one file, which `rovelog rld import`
//! reads again.

use std::io::Write;

use rovelog::core::text::count;
use rovelog::rld_format::csv::CsvStyle;
use rovelog::rld_format::{AMBIENT, RldReader};

use crate::{ExportError, Exported, Loss};

/// Writes all rows. The CSV has no place for the ambient sensors.
///
/// # Errors
/// Returns an error if writing to the output fails, or the log's rows cannot be found.
pub fn write<W: Write>(log: &RldReader, style: CsvStyle, mut out: W) -> Result<Exported<W>, ExportError> {
    let written = log.write_logger_csv(style, &mut out)?;
    // The log may itself be the file of the ambient sensors.
    let topic = &log.rows_topic().name;
    let mut losses: Vec<_> = written.lost.into_iter().map(|why| Loss::new(topic, "", why)).collect();
    if let Some(ambient) = log.ambient() {
        let why = format!("the logger's CSV has no place for {}", count(ambient.rows(), "record"));
        losses.push(Loss::new(AMBIENT, "", why));
    }
    let notes = vec!["the logger's CSV has no place for the monotonic clock".to_owned()];
    Ok(Exported { out, messages: written.rows, losses, notes })
}
