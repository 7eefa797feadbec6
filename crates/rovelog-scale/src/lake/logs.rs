//! The table `_logs`: a row for each log, in the order of the pack.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::{Int64Builder, ListBuilder, StructBuilder};
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Int64Type, TimestampMicrosecondType};
use arrow_array::{Array as _, ArrayRef, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow_schema::{DataType, Field, Fields};
use chrono::DateTime;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::file::metadata::KeyValue;
use rovelog::{AnyLog, State, Value};
use rovelog_export::table::{Floats, parquet_properties};
use rovelog_export::{ExportError, TimeBase};
use serde::{Deserialize, Serialize};

use super::member::Member;
use crate::{LogFile, ScaleError};

/// Key of the list of a pack's files in the metadata of its file in `_logs`.
const FILES: &str = "rovelog.files";

/// How much of a log is in the lake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// All of it.
    Ok,
    /// All that could be read; the rest is in the list of lost ranges.
    Partial,
    /// Nothing: the error says why.
    Failed,
}

impl Status {
    /// Returns the word in the table.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Partial => "partial",
            Self::Failed => "failed",
        }
    }
}

/// A row of `_logs`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LogRow {
    /// First 16 digits of the hash; the column `log` of all other tables. Empty if the log could
    /// not be read.
    pub id: String,
    /// Where the log was found.
    pub uri: String,
    /// SHA-256 of its bytes; empty if it could not be read.
    pub sha256: String,
    /// Its size in bytes.
    pub size: u64,
    /// When the file was changed last, microseconds since 1970.
    pub changed_us: i64,
    /// `ulog`, `rld`, `rosbag`, `vel`; `None` if it could not be opened.
    pub format: Option<String>,
    /// How much of it is in the lake.
    pub status: Status,
    /// Why it failed.
    pub error: Option<String>,
    /// Start and end on the log's clock, nanoseconds.
    pub start_ns: Option<i64>,
    /// See `start_ns`.
    pub end_ns: Option<i64>,
    /// Start and end in UTC, microseconds since 1970, if the log has UTC.
    pub start_us: Option<i64>,
    /// See `start_us`.
    pub end_us: Option<i64>,
    /// The vehicle's own id, if the log has it.
    pub vehicle: Option<String>,
    /// What recorded it, in words.
    pub software: Option<String>,
    /// The number of records.
    pub records: u64,
    /// Bytes that could not be read.
    pub lost_bytes: u64,
    /// Their ranges in the file.
    pub lost: Vec<(u64, u64)>,
    /// Integers above the range of 64 bits, which are null.
    pub lost_values: u64,
    /// Records that cannot be decoded, which have no row.
    pub lost_records: u64,
    /// Records by topic, as JSON.
    pub topics: String,
    /// What the log says about itself, as JSON.
    pub info: String,
    /// Parameters at the start of the log, as JSON; `None` if the format has none.
    pub parameters: Option<String>,
    /// The pack with which it came.
    pub pack: String,
}

impl LogRow {
    /// How the error of a log starts that ended its worker.
    pub(crate) const ENDED_WORKER: &str = "the worker ended ";

    /// Returns whether the log ended its worker.
    pub(crate) fn failed_worker(&self) -> bool {
        self.error.as_ref().is_some_and(|error| error.starts_with(Self::ENDED_WORKER))
    }

    fn new(member: &Member, pack: &str, status: Status) -> Self {
        let LogFile { uri, size, changed_us } = member.log.clone();
        Self {
            id: member.id().to_owned(),
            uri,
            sha256: member.sha256.clone(),
            size,
            changed_us,
            format: None,
            status,
            error: None,
            start_ns: None,
            end_ns: None,
            start_us: None,
            end_us: None,
            vehicle: None,
            software: None,
            records: 0,
            lost_bytes: 0,
            lost: Vec::new(),
            lost_values: 0,
            lost_records: 0,
            topics: "{}".to_owned(),
            info: "{}".to_owned(),
            parameters: None,
            pack: pack.to_owned(),
        }
    }

    /// Returns the row of a log that is not in the lake.
    pub(crate) fn failed(member: &Member, pack: &str, error: impl Into<String>) -> Self {
        Self { error: Some(error.into()), ..Self::new(member, pack, Status::Failed) }
    }

    /// Returns the row of a log that was opened.
    pub(crate) fn of(member: &Member, pack: &str, log: &AnyLog) -> Self {
        let info = log.info();
        let lossy = info.state != State::Complete || !info.lost.is_empty();
        let mut row = Self::new(member, pack, if lossy { Status::Partial } else { Status::Ok });
        let span = info.span();
        let utc = |nanos: i64| match TimeBase::of(&**log) {
            TimeBase::Utc(offset) => nanos.checked_add(offset).map(|nanos| nanos.div_euclid(1000)),
            _ => None,
        };
        row.format = Some(log.format().id.to_owned());
        row.start_ns = span.map(|(start, _)| start.nanos);
        row.end_ns = span.map(|(_, end)| end.nanos);
        row.start_us = row.start_ns.and_then(utc);
        row.end_us = row.end_ns.and_then(utc);
        row
    }

    /// Returns the month in which the log starts: `2026-05`, or `unknown`.
    pub(crate) fn month(&self) -> String {
        let start = self.start_us.and_then(DateTime::from_timestamp_micros);
        start.map_or_else(|| "unknown".to_owned(), |start| start.format("%Y-%m").to_string())
    }
}

/// Adds what is known after all of a log was read.
pub(crate) fn describe(row: &mut LogRow, log: &AnyLog) {
    let info = log.info();
    let detail = |key: &str| info.details.iter().find(|detail| detail.key == key);
    let text = |key: &str| detail(key).and_then(|detail| detail.text.clone());
    row.vehicle = detail("vehicle").and_then(|d| d.value.get("id")?.as_str().map(str::to_owned));
    row.software = text("software");
    row.records = info.records;
    row.lost_bytes = info.lost.bytes;
    row.lost = info.lost.ranges.iter().map(|range| (range.start, range.end)).collect();
    let topics = log.topics().iter().filter(|topic| topic.count > 0);
    row.topics = Value::record(topics.map(|topic| (&*topic.name, Value::count(topic.count)))).to_json();
    row.info = Value::record(info.details.iter().map(|detail| (detail.key, detail.value.clone()))).to_json();
    if let AnyLog::Ulog(log) = log {
        let initial: BTreeMap<String, Value> = log.parameters().initial;
        row.parameters = Some(Value::record(initial).to_json());
    }
}

/// A file of a pack in a table, relative to the lake, and what is in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Named {
    pub(crate) path: String,
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
}

/// Returns the file of a pack in `_logs`.
pub(crate) fn to_parquet(rows: &[LogRow], files: &[Named]) -> Result<Vec<u8>, ScaleError> {
    let batch = batch(rows)?;
    let list = serde_json::to_string(files).map_err(|error| ScaleError::Columns(error.to_string()))?;
    let properties = parquet_properties("_logs", &batch.schema(), Floats::Plain)?
        .set_key_value_metadata(Some(vec![KeyValue::new(FILES.to_owned(), list)]))
        .build();
    let options = ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
    let write = || {
        let mut bytes = Vec::new();
        let mut writer = ArrowWriter::try_new_with_options(&mut bytes, batch.schema(), options)?;
        writer.write(&batch)?;
        writer.close()?;
        Ok(bytes)
    };
    write().map_err(|error: parquet::errors::ParquetError| ScaleError::Export(ExportError::from(error)))
}

fn batch(rows: &[LogRow]) -> Result<RecordBatch, ScaleError> {
    let text = |of: &dyn Fn(&LogRow) -> Option<String>| -> ArrayRef {
        Arc::new(rows.iter().map(of).collect::<StringArray>())
    };
    let number = |of: &dyn Fn(&LogRow) -> Option<i64>| -> ArrayRef {
        Arc::new(rows.iter().map(of).collect::<Int64Array>())
    };
    let count = |of: &dyn Fn(&LogRow) -> u64| number(&|row| i64::try_from(of(row)).ok());
    let time = |of: &dyn Fn(&LogRow) -> Option<i64>| -> ArrayRef {
        Arc::new(rows.iter().map(of).collect::<TimestampMicrosecondArray>().with_timezone("UTC"))
    };
    let known = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let columns: [(&str, ArrayRef); 23] = [
        ("id", text(&|row| known(&row.id))),
        ("uri", text(&|row| Some(row.uri.clone()))),
        ("sha256", text(&|row| known(&row.sha256))),
        ("size", count(&|row| row.size)),
        ("changed", time(&|row| Some(row.changed_us))),
        ("format", text(&|row| row.format.clone())),
        ("status", text(&|row| Some(row.status.name().to_owned()))),
        ("error", text(&|row| row.error.clone())),
        ("start", time(&|row| row.start_us)),
        ("end", time(&|row| row.end_us)),
        ("start_ns", number(&|row| row.start_ns)),
        ("end_ns", number(&|row| row.end_ns)),
        ("vehicle", text(&|row| row.vehicle.clone())),
        ("software", text(&|row| row.software.clone())),
        ("records", count(&|row| row.records)),
        ("lost_bytes", count(&|row| row.lost_bytes)),
        ("lost", lost(rows)),
        ("lost_values", count(&|row| row.lost_values)),
        ("lost_records", count(&|row| row.lost_records)),
        ("topics", text(&|row| Some(row.topics.clone()))),
        ("info", text(&|row| Some(row.info.clone()))),
        ("parameters", text(&|row| row.parameters.clone())),
        ("pack", text(&|row| Some(row.pack.clone()))),
    ];
    let columns = columns.into_iter().map(|(name, array)| (name, array, true));
    Ok(RecordBatch::try_from_iter_with_nullable(columns)?)
}

/// Returns the lost ranges of logs as lists.
fn lost(rows: &[LogRow]) -> ArrayRef {
    let fields = Fields::from(vec![
        Field::new("start", DataType::Int64, true),
        Field::new("end", DataType::Int64, true),
    ]);
    let range = StructBuilder::from_fields(fields.clone(), 0);
    let element = Field::new("element", DataType::Struct(fields), true);
    let mut lists = ListBuilder::new(range).with_field(element);
    for row in rows {
        for (start, end) in &row.lost {
            for (i, value) in [start, end].into_iter().enumerate() {
                if let Some(builder) = lists.values().field_builder::<Int64Builder>(i) {
                    builder.append_option(i64::try_from(*value).ok());
                }
            }
            lists.values().append(true);
        }
        lists.append(true);
    }
    Arc::new(lists.finish())
}

/// What a lake knows of a log.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) log: LogFile,
    pub(crate) id: Option<String>,
    pub(crate) failed: bool,
    pub(crate) pack: String,
}

/// Returns the logs and the files of a pack, from its file in `_logs`.
pub(crate) fn from_parquet(path: &Path) -> Result<(Vec<Known>, Vec<Named>), ScaleError> {
    let refused = |error: String| ScaleError::lake(path)(std::io::Error::other(error));
    let file = File::open(path).map_err(ScaleError::lake(path))?;
    let reader =
        ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| refused(error.to_string()))?;
    let metadata = reader.metadata().file_metadata().key_value_metadata();
    let list = metadata.and_then(|pairs| pairs.iter().find(|pair| pair.key == FILES)?.value.clone());
    let list = list.ok_or_else(|| refused(format!("this file has no {FILES}")))?;
    let files = serde_json::from_str(&list).map_err(|error| refused(error.to_string()))?;
    let mut logs = Vec::new();
    for batch in reader.build().map_err(|error| refused(error.to_string()))? {
        let batch = batch.map_err(|error| refused(error.to_string()))?;
        // The file may be of another program: nothing is known of the types of its columns.
        let column = |name: &str| batch.column_by_name(name);
        let lacks =
            |name: &str| refused(format!("this file has no column {name} of the type that _logs has"));
        let text = |name: &str| {
            column(name).and_then(|column| column.as_string_opt::<i32>()).ok_or_else(|| lacks(name))
        };
        let (id, uri, status, pack) = (text("id")?, text("uri")?, text("status")?, text("pack")?);
        let size = column("size").and_then(|column| column.as_primitive_opt::<Int64Type>());
        let size = size.ok_or_else(|| lacks("size"))?;
        let changed =
            column("changed").and_then(|column| column.as_primitive_opt::<TimestampMicrosecondType>());
        let changed = changed.ok_or_else(|| lacks("changed"))?;
        logs.extend((0..batch.num_rows()).map(|row| Known {
            log: LogFile {
                uri: uri.value(row).to_owned(),
                size: u64::try_from(size.value(row)).unwrap_or(0),
                changed_us: changed.value(row),
            },
            id: id.is_valid(row).then(|| id.value(row).to_owned()),
            failed: status.value(row) == Status::Failed.name(),
            pack: pack.value(row).to_owned(),
        }));
    }
    Ok((logs, files))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_another_program_in_logs_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.parquet");
        let columns = ["id", "uri", "status", "pack", "size", "changed"];
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1]));
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["x"]));
        let times: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![1]).with_timezone("UTC"));
        let member = Member {
            log: LogFile { uri: "a.ulg".to_owned(), size: 9, changed_us: 7 },
            sha256: "0123456789abcdef01".to_owned(),
        };
        let own = to_parquet(&[LogRow::failed(&member, "p", "why")], &[]).unwrap();
        std::fs::write(&path, own).unwrap();
        assert_eq!(from_parquet(&path).unwrap().0[0].log, member.log);
        // As ours, but each column has a type that ours has not.
        for wrong in 0..columns.len() {
            let of = |at: usize| {
                Arc::clone(match (at, at == wrong) {
                    (0..4, false) | (4.., true) => &texts,
                    (4, false) | (0..4, true) => &numbers,
                    (5.., false) => &times,
                })
            };
            let batch = columns.iter().enumerate().map(|(at, name)| (*name, of(at)));
            let batch = RecordBatch::try_from_iter(batch).unwrap();
            let list = KeyValue::new(FILES.to_owned(), "[]".to_owned());
            let properties = parquet::file::properties::WriterProperties::builder()
                .set_key_value_metadata(Some(vec![list]))
                .build();
            let file = File::create(&path).unwrap();
            let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
            writer.write(&batch).unwrap();
            writer.close().unwrap();
            let error = from_parquet(&path).unwrap_err().to_string();
            assert!(error.contains("this file has no column "), "{error}");
        }
    }
}
