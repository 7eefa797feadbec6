//! Records as NDJSON: one object per line, in time order, all topics in one stream. The lines are
//! those of `rovelog cat -f ndjson`.

use rovelog::core::text;
use std::io::{self, Write};

use rovelog::{LogReader, Record, Select, Timestamp};

use crate::{ExportError, Loss};

/// Writes the selected records. Returns their number and the values that could not be carried.
///
/// # Errors
/// Returns an error if writing to the output fails, or the log cannot be read.
pub fn write(
    log: &dyn LogReader,
    select: &Select,
    mut out: impl Write,
    progress: &mut dyn FnMut(u64),
) -> Result<(u64, Vec<Loss>), ExportError> {
    let utc = log.info().utc.as_ref();
    let mut lines = 0;
    let mut undecodable = vec![0u64; log.topics().len()];
    let names: Vec<String> =
        log.topics().iter().map(|topic| serde_json::Value::from(topic.name.as_str()).to_string()).collect();
    for record in log.records(select) {
        let record = record?;
        progress(record.offset);
        let Ok(value) = record.value() else {
            undecodable[record.topic.id.index()] += 1;
            continue;
        };
        let time = record.time.and_then(|time| time.to_unix(utc)).and_then(Timestamp::rfc3339);
        let t_ns = record.time.map(|time| time.nanos);
        head(time.as_deref(), t_ns, &names[record.topic.id.index()], &record, &mut out)?;
        serde_json::to_writer(&mut out, &value).map_err(|error| ExportError::Io(error.into()))?;
        out.write_all(b"}\n")?;
        lines += 1;
    }
    let losses = log.topics().iter().zip(undecodable).filter(|(_, count)| *count > 0);
    let losses = losses.map(|(topic, count)| {
        Loss::new(&topic.name, "", format!("{} cannot be decoded", text::count(count, "record")))
    });
    Ok((lines, losses.collect()))
}

/// Writes the part of an object before its data, up to the colon; `topic` is the name as JSON.
///
/// # Errors
/// Returns an error if writing to the output fails.
pub fn head(
    time: Option<&str>,
    t_ns: Option<i64>,
    topic: &str,
    record: &Record<'_>,
    out: &mut impl Write,
) -> io::Result<()> {
    match time {
        Some(time) => write!(out, "{{\"time\":\"{time}\"")?,
        None => out.write_all(b"{\"time\":null")?,
    }
    match t_ns {
        Some(nanos) => write!(out, ",\"t_ns\":\"{nanos}\"")?,
        None => out.write_all(b",\"t_ns\":null")?,
    }
    let Record { seq, offset, .. } = record;
    write!(out, ",\"topic\":{topic},\"seq\":{seq},\"offset\":{offset},\"data\":")
}
