//! The table `_logs`, which has a row for each log of a lake. The table has one file for each pack,
//! that is, for the logs that were added together.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::{Int64Builder, ListBuilder, StructBuilder};
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Int64Type, TimestampMicrosecondType};
use arrow_array::{
    Array as _, ArrayRef, Int64Array, RecordBatch, RecordBatchReader as _, StringArray,
    TimestampMicrosecondArray,
};
use arrow_schema::{ArrowError, DataType, Field, Fields};
use arrow_select::concat::concat_batches;
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

/// Metadata key of a file in the table `_logs`. Its value is the list of the Parquet files that
/// were written for the logs in this file.
const FILES: &str = "rovelog.files";

/// State of a log in a lake: added completely, added partly, or failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// The whole log is in the lake.
    Ok,
    /// Everything that could be read of the log is in the lake. The column `lost` lists the byte
    /// ranges that could not be read.
    Partial,
    /// The log is not in the lake. The column `error` has the reason.
    Failed,
}

impl Status {
    /// Returns the name of this status in the table `_logs`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Partial => "partial",
            Self::Failed => "failed",
        }
    }
}

/// A row of the table `_logs`, which describes a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LogRow {
    /// Id of the log, which is the first 16 digits of its hash. The column `log` of all other
    /// tables has this id. Empty if the log could not be read.
    pub id: String,
    /// Path or URL of the log.
    pub uri: String,
    /// SHA-256 of the bytes of the log as hexadecimal digits. Empty if the log could not be read.
    pub sha256: String,
    /// Size of the log in bytes.
    pub size: u64,
    /// Time of the log's last change, in microseconds since 1970.
    pub changed_us: i64,
    /// Id of the log format: `ulog`, `rld`, `rosbag` or `vel`. `None` if the log could not be
    /// opened.
    pub format: Option<String>,
    /// Shows whether the log is in the lake completely, partly, or not at all.
    pub status: Status,
    /// Reason why the log failed. `None` if it did not fail.
    pub error: Option<String>,
    /// Start time on the clock of the log, in nanoseconds.
    pub start_ns: Option<i64>,
    /// End time on the clock of the log, in nanoseconds.
    pub end_ns: Option<i64>,
    /// Start time in UTC, in microseconds since 1970. `None` if the log has no UTC.
    pub start_us: Option<i64>,
    /// End time in UTC, in microseconds since 1970. `None` if the log has no UTC.
    pub end_us: Option<i64>,
    /// Id of the vehicle. `None` if the log does not state it.
    pub vehicle: Option<String>,
    /// Description of the software that recorded the log.
    pub software: Option<String>,
    /// Number of records in the log.
    pub records: u64,
    /// Number of bytes that could not be read.
    pub lost_bytes: u64,
    /// Byte ranges of the file that could not be read.
    pub lost: Vec<(u64, u64)>,
    /// Number of values that are null in the lake, because they are unsigned integers that exceed
    /// the range of a signed 64-bit integer.
    pub lost_values: u64,
    /// Number of records that have no row in the lake, because they cannot be decoded.
    pub lost_records: u64,
    /// Number of records of each topic, as a JSON object.
    pub topics: String,
    /// Tables of the topics whose rows are not in the table that is named after the topic. The
    /// value is a JSON object that maps topics to tables.
    pub tables: String,
    /// Properties of the log that depend on its format, as JSON.
    pub info: String,
    /// Parameters at the start of the log, as JSON. `None` if the format has no parameters.
    pub parameters: Option<String>,
    /// Id of the pack with the log. A pack consists of logs that are added together.
    pub pack: String,
}

impl LogRow {
    /// First words of the error message of a log that crashed its worker.
    pub(crate) const ENDED_WORKER: &str = "the worker ended ";

    /// Returns `true` if the log crashed its worker.
    pub(crate) fn failed_worker(&self) -> bool {
        self.error.as_ref().is_some_and(|error| error.starts_with(Self::ENDED_WORKER))
    }

    /// Creates a row with the file and the status of a log. The columns that describe the content
    /// of the log are empty.
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
            tables: "{}".to_owned(),
            info: "{}".to_owned(),
            parameters: None,
            pack: pack.to_owned(),
        }
    }

    /// Creates the row of a log that failed.
    pub(crate) fn failed(member: &Member, pack: &str, error: impl Into<String>) -> Self {
        Self { error: Some(error.into()), ..Self::new(member, pack, Status::Failed) }
    }

    /// Creates the row of a log that was opened successfully.
    pub(crate) fn of(member: &Member, pack: &str, log: &AnyLog) -> Self {
        let info = log.info();
        let lossy = info.state != State::Complete || !info.lost.is_empty();
        let mut row = Self::new(member, pack, if lossy { Status::Partial } else { Status::Ok });
        let span = info.span();
        let utc = |nanos: i64| match TimeBase::of(&**log) {
            TimeBase::Utc(utc) => utc.unix(nanos).map(|nanos| nanos.div_euclid(1000)),
            _ => None,
        };
        row.format = Some(log.format().id.to_owned());
        row.start_ns = span.map(|(start, _)| start.nanos);
        row.end_ns = span.map(|(_, end)| end.nanos);
        row.start_us = row.start_ns.and_then(utc);
        row.end_us = row.end_ns.and_then(utc);
        row
    }

    /// Returns the month in which the log starts, for example `2026-05`, or `unknown`.
    pub(crate) fn month(&self) -> String {
        let start = self.start_us.and_then(DateTime::from_timestamp_micros);
        start.map_or_else(|| "unknown".to_owned(), |start| start.format("%Y-%m").to_string())
    }
}

/// Sets the columns of a row that are known only after the whole log has been read.
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

/// Description of a file in a table. Its path is relative to the folder of the lake.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct TableFile {
    pub(crate) path: String,
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    /// SHA-256 of the file. `None` if an earlier version of this program wrote the file.
    #[serde(default)]
    pub(crate) sha256: Option<String>,
}

/// Returns the content of a file of the table `_logs`. The file has a row for each log of a pack,
/// and a list of the pack's Parquet files.
pub(crate) fn to_parquet(rows: &[LogRow], files: &[TableFile]) -> Result<Vec<u8>, ScaleError> {
    parquet_of(&batch(rows)?, files)
}

/// Encodes rows as a Parquet file. The list of `files` is stored in its metadata.
fn parquet_of(batch: &RecordBatch, files: &[TableFile]) -> Result<Vec<u8>, ScaleError> {
    let list = serde_json::to_string(files).map_err(|error| ScaleError::Columns(error.to_string()))?;
    let properties = parquet_properties("_logs", &batch.schema(), Floats::Plain)?
        .set_key_value_metadata(Some(vec![KeyValue::new(FILES.to_owned(), list)]))
        .build();
    let options = ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
    let write = || {
        let mut bytes = Vec::new();
        let mut writer = ArrowWriter::try_new_with_options(&mut bytes, batch.schema(), options)?;
        writer.write(batch)?;
        writer.close()?;
        Ok(bytes)
    };
    write().map_err(|error: parquet::errors::ParquetError| ScaleError::Export(ExportError::from(error)))
}

/// Returns the content of the file at `path` with a new list of Parquet files. The file belongs to
/// the table `_logs`.
///
/// `table_of` is called with the id of each log. If rows of a topic have moved to another table, it
/// returns the topic and the new table.
pub(crate) fn with_files<'a>(
    path: &Path,
    files: &[TableFile],
    table_of: impl Fn(&str) -> Option<(&'a str, &'a str)>,
) -> Result<Vec<u8>, ScaleError> {
    let refused = |error: String| ScaleError::lake(path)(std::io::Error::other(error));
    let source = File::open(path).map_err(ScaleError::lake(path))?;
    let reader =
        ParquetRecordBatchReaderBuilder::try_new(source).and_then(ParquetRecordBatchReaderBuilder::build);
    let reader = reader.map_err(|error| refused(error.to_string()))?;
    let schema = reader.schema();
    let batches = reader.collect::<Result<Vec<_>, _>>()?;
    let batch = concat_batches(&schema, &batches)?;
    let column = |name: &str| {
        let index = schema.index_of(name)?;
        Ok::<_, ArrowError>((index, batch.column(index).as_string_opt::<i32>()))
    };
    let ((_, Some(ids)), (place, Some(tables))) = (column("id")?, column("tables")?) else {
        return Err(refused("the file does not have the columns of _logs".to_owned()));
    };
    let tables = ids.iter().zip(tables).map(|(id, tables)| match (id.and_then(&table_of), tables) {
        (Some((topic, table)), Some(tables)) => Some(with_table(tables, topic, table)),
        (_, tables) => tables.map(str::to_owned),
    });
    let mut columns = batch.columns().to_vec();
    columns[place] = Arc::new(tables.collect::<StringArray>());
    parquet_of(&RecordBatch::try_new(schema, columns)?, files)
}

/// Adds a topic and its table to a JSON object that maps topics to tables.
pub(crate) fn with_table(tables: &str, topic: &str, table: &str) -> String {
    let mut tables: BTreeMap<String, String> = serde_json::from_str(tables).unwrap_or_default();
    tables.insert(topic.to_owned(), table.to_owned());
    serde_json::to_string(&tables).unwrap_or_else(|_| "{}".to_owned())
}

/// Converts rows of the table `_logs` to a record batch.
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
    let columns: [(&str, ArrayRef); 24] = [
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
        ("tables", text(&|row| Some(row.tables.clone()))),
        ("info", text(&|row| Some(row.info.clone()))),
        ("parameters", text(&|row| row.parameters.clone())),
        ("pack", text(&|row| Some(row.pack.clone()))),
    ];
    let columns = columns.into_iter().map(|(name, array)| (name, array, true));
    Ok(RecordBatch::try_from_iter_with_nullable(columns)?)
}

/// Returns a column with a list of lost byte ranges for each log.
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

/// Properties of a log that are read back from `_logs`.
#[derive(Clone, Debug)]
pub(crate) struct KnownLog {
    pub(crate) log: LogFile,
    pub(crate) id: Option<String>,
    /// SHA-256 of the bytes of the log as hexadecimal digits. Empty if the log could not be read.
    pub(crate) sha256: String,
    pub(crate) failed: bool,
    pub(crate) pack: String,
}

/// Reads a file of the table `_logs`. Returns the logs that it describes, and the list of the
/// Parquet files with their rows.
pub(crate) fn from_parquet(path: &Path) -> Result<(Vec<KnownLog>, Vec<TableFile>), ScaleError> {
    let refused = |error: String| ScaleError::lake(path)(std::io::Error::other(error));
    let file = File::open(path).map_err(ScaleError::lake(path))?;
    let reader =
        ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| refused(error.to_string()))?;
    let metadata = reader.metadata().file_metadata().key_value_metadata();
    let list = metadata.and_then(|pairs| pairs.iter().find(|pair| pair.key == FILES)?.value.clone());
    let list = list.ok_or_else(|| refused(format!("the file has no metadata {FILES}")))?;
    let files = serde_json::from_str(&list).map_err(|error| refused(error.to_string()))?;
    let mut logs = Vec::new();
    for batch in reader.build().map_err(|error| refused(error.to_string()))? {
        let batch = batch.map_err(|error| refused(error.to_string()))?;
        // The types of all columns are checked, because another program may have written the file.
        let column = |name: &str| batch.column_by_name(name);
        let lacks =
            |name: &str| refused(format!("the file has no column {name} with the type that _logs needs"));
        let text = |name: &str| {
            column(name).and_then(|column| column.as_string_opt::<i32>()).ok_or_else(|| lacks(name))
        };
        let (id, uri, status, pack) = (text("id")?, text("uri")?, text("status")?, text("pack")?);
        let sha256 = text("sha256")?;
        let size = column("size").and_then(|column| column.as_primitive_opt::<Int64Type>());
        let size = size.ok_or_else(|| lacks("size"))?;
        let changed =
            column("changed").and_then(|column| column.as_primitive_opt::<TimestampMicrosecondType>());
        let changed = changed.ok_or_else(|| lacks("changed"))?;
        logs.extend((0..batch.num_rows()).map(|row| KnownLog {
            log: LogFile {
                uri: uri.value(row).to_owned(),
                size: u64::try_from(size.value(row)).unwrap_or(0),
                changed_us: changed.value(row),
            },
            id: id.is_valid(row).then(|| id.value(row).to_owned()),
            sha256: sha256.value(row).to_owned(),
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
    fn files_of_other_programs_in_logs_are_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.parquet");
        let columns = ["id", "uri", "status", "pack", "sha256", "size", "changed"];
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
        // In each iteration, one column has a type that this program never writes.
        for wrong in 0..columns.len() {
            let of = |at: usize| {
                Arc::clone(match (at, at == wrong) {
                    (0..5, false) | (5.., true) => &texts,
                    (5, false) | (0..5, true) => &numbers,
                    (6.., false) => &times,
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
            assert!(error.contains("the file has no column "), "{error}");
        }
    }
}
