//! Writes a topic as an Apache Parquet file.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::SortingColumn;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;

use super::convert::BatchConverter;
use super::options::Kind;
use super::sink::{Job, Out, Sink};
use crate::{ExportError, Loss};

/// Maximum number of rows in a row group.
pub(super) const GROUP_ROWS: usize = 128 << 10;
/// Maximum size in bytes of a row group.
const GROUP_BYTES: usize = 64 << 20;

/// Maximum number of columns in a file. The writer needs tens of kilobytes of memory for each
/// column, and a reader must parse an entry in the footer for each column and row group.
const MAX_COLUMNS: usize = 8192;

/// Writes a Parquet file.
pub(super) struct Parquet<'w> {
    converter: BatchConverter,
    writer: ArrowWriter<Out<'w>>,
}

impl<'w> Parquet<'w> {
    pub(super) fn new(job: &Job<'_>, read: &Schema, out: Out<'w>) -> Result<Self, ExportError> {
        let converter = BatchConverter::new(job, Kind::Parquet, read);
        let floats = if job.options.spark { Floats::Plain } else { Floats::Split };
        let mut properties = parquet_properties(&job.topic.name, converter.schema(), floats)?;
        if job.sorted {
            let t_ns = SortingColumn { column_idx: 0, descending: false, nulls_first: false };
            properties = properties.set_sorting_columns(Some(vec![t_ns]));
        }
        let writer = ArrowWriter::try_new(out, Arc::clone(converter.schema()), Some(properties.build()))?;
        Ok(Self { converter, writer })
    }
}

/// Encoding of floats in Parquet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Floats {
    /// The encoding `BYTE_STREAM_SPLIT`, which stores bytes of equal significance together. The
    /// sign and exponent bytes of measured values hardly change, so they compress better in this
    /// encoding.
    Split,
    /// The encoding `PLAIN`. Spark before 4.3 cannot read other encodings of floats.
    Plain,
}

/// Returns the writer properties for a Parquet file: compression, size of row groups, and the
/// encoding of each column. `topic` is only used in error messages.
///
/// # Errors
/// Returns an error if the schema has too many columns.
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
            "topic {topic} has {} columns, but the limit for Parquet is {MAX_COLUMNS}; choose fields or \
             another output format",
            paths.len()
        )));
    }
    for (path, data_type) in paths {
        let (dictionary, encoding) = match data_type {
            // Measured values rarely repeat, so a dictionary would be as large as the values.
            DataType::Float32 | DataType::Float64 if floats == Floats::Split => {
                (false, Some(Encoding::BYTE_STREAM_SPLIT))
            }
            _ if data_type.is_floating() => (false, None),
            // Most 64-bit integers are times and counters, which do not repeat. The differences
            // between consecutive values are small.
            DataType::Int64 | DataType::UInt64 | DataType::Timestamp(..) | DataType::Duration(_) => {
                (false, Some(Encoding::DELTA_BINARY_PACKED))
            }
            // Smaller integers are mostly states and flags, for which a dictionary works best. If
            // the dictionary becomes too large, the writer encodes differences instead.
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

/// Returns the path and type of each leaf column in a Parquet file.
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
        let batch = self.converter.convert(batch)?;
        Ok(self.writer.write(&batch)?)
    }

    fn flush(&mut self) -> Result<(), ExportError> {
        Ok(self.writer.flush()?)
    }

    fn finish(mut self: Box<Self>, losses: &mut Vec<Loss>) -> Result<(), ExportError> {
        self.converter.finish(losses);
        // `into_inner` would convert I/O errors to texts, and the kind of the error would be lost.
        self.writer.finish()?;
        Ok(())
    }
}
