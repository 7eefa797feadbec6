//! Writes `RocketLogger` logs in the CSV format of the logger itself. All rows go to one file,
//! which `rovelog rld import` can convert back to an RLD log.

use std::io::Write;

use rovelog::core::internal::text::count;
use rovelog::rld_format::csv::CsvStyle;
use rovelog::rld_format::{AMBIENT, RldReader};

use crate::{ExportError, Exported, Loss};

/// Writes all rows of a log. The format has no columns for ambient sensors, so their values are
/// reported as a loss.
///
/// # Errors
/// Returns an error if writing to the output fails, or if the log is too damaged to find its rows.
pub fn write(log: &RldReader, style: CsvStyle, out: &mut dyn Write) -> Result<Exported, ExportError> {
    let written = log.write_logger_csv(style, out)?;
    // The rows belong to the main topic of the log. If the log is a file of ambient sensors, they
    // belong to the topic of these sensors instead.
    let topic = &log.rows_topic().name;
    let mut losses: Vec<_> = written.lost.into_iter().map(|why| Loss::new(topic, "", why)).collect();
    if let Some(ambient) = log.ambient() {
        let why = format!("the CSV format of the logger cannot contain {}", count(ambient.rows(), "record"));
        losses.push(Loss::new(AMBIENT, "", why));
    }
    let mut notes = vec![
        "the monotonic times are left out, because the CSV format of the logger has only one clock"
            .to_owned(),
    ];
    if log.header().lead_in.start_nsec.get() != 0 {
        notes.push("the start time has whole seconds in the CSV format of the logger".to_owned());
    }
    Ok(Exported { messages: written.rows, losses, notes })
}
