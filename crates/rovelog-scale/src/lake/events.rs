//! Conversion of the console messages and events of a log to rows of tables.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int16Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use rovelog::AnyLog;
use rovelog::core::record::LEVELS;
use rovelog::ulog_format::px4;
use rovelog_export::TimeBase;

use crate::ScaleError;
use crate::types::micros;

/// A console message or an event, as a row of a table.
struct Line {
    /// Time on the clock of the log, in nanoseconds.
    t_ns: Option<i64>,
    level: u8,
    level_name: String,
    /// Tag or program name of a console message, or group of an event.
    source: Option<String>,
    text: String,
}

/// Maximum number of lines in a batch. A log can have millions of lines, which would need too much
/// memory.
const BATCH_LINES: usize = 8 << 10;

/// Returns the schema of the batches with console messages and events.
pub fn line_schema() -> SchemaRef {
    let utc = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    let columns = [
        ("log", DataType::Utf8),
        ("format", DataType::Utf8),
        ("seq", DataType::Int64),
        ("t_ns", DataType::Int64),
        ("time", utc),
        ("level", DataType::Int16),
        ("level_name", DataType::Utf8),
        ("source", DataType::Utf8),
        ("text", DataType::Utf8),
    ];
    Arc::new(Schema::new(columns.map(|(name, data_type)| Field::new(name, data_type, true)).to_vec()))
}

/// Converts the console messages of a log to batches, and calls `sink` with each batch. `id` is the
/// value of the column `log`.
///
/// # Errors
/// Returns the errors of `sink`.
pub fn texts(
    log: &AnyLog,
    id: &str,
    sink: &mut dyn FnMut(&RecordBatch) -> Result<(), ScaleError>,
) -> Result<(), ScaleError> {
    let mut lines = log.texts().into_iter().flatten().map(|text| Line {
        t_ns: text.time.map(|time| time.nanos),
        level: text.level,
        level_name: LEVELS[usize::from(text.level.min(7))].to_owned(),
        source: text.source,
        text: text.text,
    });
    let mut first = 0;
    while let Some(batch) = batch(log, id, first, &lines.by_ref().take(BATCH_LINES).collect::<Vec<_>>())? {
        sink(&batch)?;
        first += batch.num_rows();
    }
    Ok(())
}

/// Returns the PX4 events of a log in text form. Returns `None` if the log has no events. `id` is
/// the value of the column `log`.
///
/// # Errors
/// Returns an error if the events do not fit into a batch.
pub fn events(log: &AnyLog, id: &str) -> Result<Option<RecordBatch>, ScaleError> {
    let AnyLog::Ulog(reader) = log else { return Ok(None) };
    let lines = px4::events(reader).list.into_iter().map(|event| Line {
        t_ns: Some(event.time.nanos),
        level: event.level,
        level_name: event.level_name().to_owned(),
        source: event.text.as_ref().map(|text| text.group.clone()),
        text: event.message(),
    });
    batch(log, id, 0, &lines.collect::<Vec<_>>())
}

/// Converts lines to rows of a table. `first` is the number of the first row. Returns `None` if
/// there are no lines.
fn batch(log: &AnyLog, id: &str, first: usize, lines: &[Line]) -> Result<Option<RecordBatch>, ScaleError> {
    if lines.is_empty() {
        return Ok(None);
    }
    let t_ns: Int64Array = lines.iter().map(|line| line.t_ns).collect();
    let unix: Int64Array = match TimeBase::of(&**log) {
        base @ TimeBase::Utc(_) => base.place_all(&t_ns),
        _ => Int64Array::new_null(lines.len()),
    };
    let text = |of: &dyn Fn(&Line) -> Option<String>| -> ArrayRef {
        Arc::new(lines.iter().map(of).collect::<StringArray>())
    };
    let format = log.format().id;
    let seq = (i64::try_from(first).unwrap_or(i64::MAX)..).take(lines.len());
    let columns: Vec<ArrayRef> = vec![
        text(&|_| Some(id.to_owned())),
        text(&|_| Some(format.to_owned())),
        Arc::new(Int64Array::from_iter_values(seq)),
        Arc::new(t_ns),
        Arc::new(micros(&unix)),
        Arc::new(lines.iter().map(|line| Some(i16::from(line.level))).collect::<Int16Array>()),
        text(&|line| Some(line.level_name.clone())),
        text(&|line| line.source.clone()),
        text(&|line| Some(line.text.clone())),
    ];
    Ok(Some(RecordBatch::try_new(line_schema(), columns)?))
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray as _;
    use arrow_array::types::Int64Type;

    use super::{BATCH_LINES, texts};

    #[test]
    fn lines_of_all_batches_are_numbered() {
        let mut bytes = b"ULog\x01\x12\x35\x01\0\0\0\0\0\0\0\0".to_vec();
        for number in 0..2 * BATCH_LINES as u64 + 5 {
            bytes.extend(b"\x0e\0L6");
            bytes.extend((number + 1).to_le_bytes());
            bytes.extend(format!("{number:05}").into_bytes());
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.ulg");
        std::fs::write(&path, bytes).unwrap();
        let log = rovelog::open(&path).unwrap();
        let (mut batches, mut next) = (0, 0_i64);
        texts(&log, "id", &mut |batch| {
            batches += 1;
            let numbers = batch.column_by_name("seq").unwrap().as_primitive::<Int64Type>();
            let texts = batch.column_by_name("text").unwrap().as_string::<i32>();
            for (number, text) in numbers.values().iter().zip(texts) {
                assert_eq!((*number, text), (next, Some(&*format!("{next:05}"))));
                next += 1;
            }
            Ok(())
        })
        .unwrap();
        assert_eq!((batches, usize::try_from(next).unwrap()), (3, 2 * BATCH_LINES + 5));
    }
}
