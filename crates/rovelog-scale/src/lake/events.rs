//! Console lines and events of a log, as tables.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int16Array, Int64Array, RecordBatch, StringArray};
use rovelog::AnyLog;
use rovelog::core::record::LEVELS;
use rovelog::ulog_format::px4;
use rovelog_export::TimeBase;

use crate::ScaleError;
use crate::types::micros;

/// A line: its time on the log's clock, its level, who says it, what is said.
struct Line {
    t_ns: Option<i64>,
    level: u8,
    level_name: String,
    source: Option<String>,
    text: String,
}

/// Returns the console lines of a log; `None` without any.
pub(crate) fn texts(log: &AnyLog, id: &str) -> Result<Option<RecordBatch>, ScaleError> {
    let lines = log.texts().into_iter().flatten().map(|text| Line {
        t_ns: text.time.map(|time| time.nanos),
        level: text.level,
        level_name: LEVELS[usize::from(text.level.min(7))].to_owned(),
        source: text.source,
        text: text.text,
    });
    batch(log, id, &lines.collect::<Vec<_>>())
}

/// Returns the PX4 events of a log in words; `None` without any.
pub(crate) fn of(log: &AnyLog, id: &str) -> Result<Option<RecordBatch>, ScaleError> {
    let AnyLog::Ulog(reader) = log else { return Ok(None) };
    let lines = px4::events(reader).list.into_iter().map(|event| Line {
        t_ns: Some(event.time.nanos),
        level: event.level,
        level_name: event.level_name().to_owned(),
        source: event.text.as_ref().map(|text| text.group.clone()),
        text: event.message(),
    });
    batch(log, id, &lines.collect::<Vec<_>>())
}

fn batch(log: &AnyLog, id: &str, lines: &[Line]) -> Result<Option<RecordBatch>, ScaleError> {
    if lines.is_empty() {
        return Ok(None);
    }
    let t_ns: Int64Array = lines.iter().map(|line| line.t_ns).collect();
    let unix: Int64Array = match TimeBase::of(&**log) {
        TimeBase::Utc(offset) => lines.iter().map(|line| line.t_ns?.checked_add(offset)).collect(),
        _ => Int64Array::new_null(lines.len()),
    };
    let text = |of: &dyn Fn(&Line) -> Option<String>| -> ArrayRef {
        Arc::new(lines.iter().map(of).collect::<StringArray>())
    };
    let format = log.format().id;
    let seq = (0..).take(lines.len());
    let columns: [(&str, ArrayRef); 9] = [
        ("log", text(&|_| Some(id.to_owned()))),
        ("format", text(&|_| Some(format.to_owned()))),
        ("seq", Arc::new(Int64Array::from_iter_values(seq))),
        ("t_ns", Arc::new(t_ns)),
        ("time", Arc::new(micros(&unix))),
        ("level", Arc::new(lines.iter().map(|line| Some(i16::from(line.level))).collect::<Int16Array>())),
        ("level_name", text(&|line| Some(line.level_name.clone()))),
        ("source", text(&|line| line.source.clone())),
        ("text", text(&|line| Some(line.text.clone()))),
    ];
    let columns = columns.into_iter().map(|(name, array)| (name, array, true));
    Ok(Some(RecordBatch::try_from_iter_with_nullable(columns)?))
}
