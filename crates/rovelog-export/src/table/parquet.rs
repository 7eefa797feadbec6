//! A topic as Apache Parquet.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::SortingColumn;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;

use super::options::Kind;
use super::sink::{Job, Out, Sink};
use super::vocabulary::Vocabulary;
use crate::{ExportError, Loss};

/// Maximum rows of a row group, and bytes that end one earlier.
pub(super) const GROUP_ROWS: usize = 128 << 10;
const GROUP_BYTES: usize = 64 << 20;

/// Maximum columns of a file. Each takes tens of kilobytes of memory while it is written, and part
/// of the footer when it is read.
const MAX_COLUMNS: usize = 8192;

pub(super) struct Parquet<'w> {
    vocabulary: Vocabulary,
    writer: ArrowWriter<Out<'w>>,
}

impl<'w> Parquet<'w> {
    pub(super) fn new(job: &Job<'_>, read: &Schema, out: Out<'w>) -> Result<Self, ExportError> {
        let vocabulary = Vocabulary::new(job, Kind::Parquet, read);
        let floats = if job.options.spark { Floats::Plain } else { Floats::Split };
        let mut properties = parquet_properties(&job.topic.name, vocabulary.schema(), floats)?;
        if job.sorted {
            let t_ns = SortingColumn { column_idx: 0, descending: false, nulls_first: false };
            properties = properties.set_sorting_columns(Some(vec![t_ns]));
        }
        let writer = ArrowWriter::try_new(out, Arc::clone(vocabulary.schema()), Some(properties.build()))?;
        Ok(Self { vocabulary, writer })
    }
}

/// Encoding of floats in Parquet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Floats {
    /// The bytes of all numbers by their significance (`BYTE_STREAM_SPLIT`), which compress better.
    Split,
    /// As they are. Spark before 4.3 reads no other encoding.
    Plain,
}

/// Returns the properties of Parquet files with the columns of `topic`: compression, size of row
/// groups, encodings.
///
/// # Errors
/// Returns an error if a file cannot have as many columns.
pub fn parquet_properties(
    topic: &str,
    schema: &Schema,
    floats: Floats,
) -> Result<WriterPropertiesBuilder, ExportError> {
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .set_max_row_group_bytes(Some(GROUP_BYTES))
        .set_statistics_enabled(EnabledStatistics::Page)
        .set_created_by(concat!("rovelog ", env!("CARGO_PKG_VERSION")).to_owned());
    let paths = paths(schema);
    if paths.len() > MAX_COLUMNS {
        return Err(ExportError::Format(format!(
            "topic {topic} has {} columns, and Parquet is written with at most {MAX_COLUMNS}: choose fields, or another kind",
            paths.len()
        )));
    }
    for (path, data_type) in paths {
        let (dictionary, encoding) = match data_type {
            // A dictionary of measured values is larger than the values.
            DataType::Float32 | DataType::Float64 if floats == Floats::Split => {
                (false, Some(Encoding::BYTE_STREAM_SPLIT))
            }
            _ if data_type.is_floating() => (false, None),
            // Times and counters: their differences are small. So many values have no dictionary.
            DataType::Int64 | DataType::UInt64 | DataType::Timestamp(..) | DataType::Duration(_) => {
                (false, Some(Encoding::DELTA_BINARY_PACKED))
            }
            // States and flags have a dictionary; where it becomes too large, differences.
            _ if data_type.is_integer() => (true, Some(Encoding::DELTA_BINARY_PACKED)),
            _ => (true, None),
        };
        if !dictionary {
            properties = properties.set_column_dictionary_enabled(path.clone(), false);
        }
        if let Some(encoding) = encoding {
            properties = properties.set_column_encoding(path, encoding);
        }
    }
    Ok(properties)
}

/// Returns the columns of the file by their paths.
fn paths(schema: &Schema) -> Vec<(ColumnPath, DataType)> {
    fn collect(parts: &[String], data_type: &DataType, found: &mut Vec<(ColumnPath, DataType)>) {
        let below = |name: &[&str]| {
            parts.iter().cloned().chain(name.iter().map(|&name| name.to_owned())).collect::<Vec<_>>()
        };
        match data_type {
            DataType::Struct(fields) => {
                for field in fields {
                    collect(&below(&[field.name()]), field.data_type(), found);
                }
            }
            DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
                collect(&below(&["list", item.name()]), item.data_type(), found);
            }
            _ => found.push((ColumnPath::from(parts.to_vec()), data_type.clone())),
        }
    }
    let mut found = Vec::new();
    for field in schema.fields() {
        collect(&[field.name().clone()], field.data_type(), &mut found);
    }
    found
}

impl Sink for Parquet<'_> {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), ExportError> {
        let batch = self.vocabulary.convert(batch)?;
        Ok(self.writer.write(&batch)?)
    }

    fn relieve(&mut self) -> Result<(), ExportError> {
        Ok(self.writer.flush()?)
    }

    fn finish(mut self: Box<Self>, losses: &mut Vec<Loss>) -> Result<(), ExportError> {
        self.vocabulary.finish(losses);
        // `into_inner` would make plain text of an error of the file system.
        self.writer.finish()?;
        Ok(())
    }
}
