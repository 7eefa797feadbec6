//! Records as NDJSON: one object per line, in the order of time, all topics in one stream. The lines are those of
//! `rovelog cat -f ndjson`.

use std::io::Write;

use rovelog::{LogReader, Record, Select, Timestamp};

use crate::{ExportError, Loss};

/// Writes the selected records; how many there were, and what could not be carried.
///
/// # Errors
/// Where the output refuses, or the log cannot be read.
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
        let time = |time: Timestamp| time.to_unix(utc).and_then(Timestamp::rfc3339);
        match record.time.and_then(time) {
            Some(time) => write!(out, "{{\"time\":\"{time}\"")?,
            None => out.write_all(b"{\"time\":null")?,
        }
        match record.time {
            Some(time) => write!(out, ",\"t_ns\":\"{}\"", time.nanos)?,
            None => out.write_all(b",\"t_ns\":null")?,
        }
        let Record { topic, seq, offset, .. } = record;
        let name = &names[topic.id.index()];
        write!(out, ",\"topic\":{name},\"seq\":{seq},\"offset\":{offset},\"data\":")?;
        serde_json::to_writer(&mut out, &value).map_err(|error| ExportError::Io(error.into()))?;
        out.write_all(b"}\n")?;
        lines += 1;
    }
    let losses = log.topics().iter().zip(undecodable).filter(|(_, count)| *count > 0);
    let losses =
        losses.map(|(topic, count)| Loss::new(&topic.name, "", format!("{count} records cannot be decoded")));
    Ok((lines, losses.collect()))
}
