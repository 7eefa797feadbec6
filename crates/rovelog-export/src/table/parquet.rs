//! Writes a topic as an Apache Parquet file.
//!
//! A column that is being encoded needs about a megabyte for a dictionary and for the tables of the
//! compressor, regardless of its number of rows. Arrow's own writer encodes all columns of all open
//! files at the same time. [`RowGroups`] encodes one column at a time, from the rows of a whole row
//! group.

use std::io::Write;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{ArrowRowGroupWriterFactory, ArrowWriterOptions, compute_leaves};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::SortingColumn;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnPath;

use super::convert::BatchConverter;
use super::options::Kind;
use super::sink::{Job, Out, Sink};
use crate::error::check_memory;
use crate::{ExportError, Loss};

/// Number of rows at which a row group is written.
pub(super) const GROUP_ROWS: usize = 128 << 10;

/// Number of values that are encoded at a time. The default of 1024 takes a sixth longer.
const WRITE_ROWS: usize = 8 << 10;

/// Maximum number of columns in a file. The writer needs tens of kilobytes of memory for each
/// column, and a reader must parse an entry in the footer for each column and row group.
const MAX_COLUMNS: usize = 8192;

/// Writes a Parquet file.
pub(super) struct Parquet<'w> {
    converter: BatchConverter,
    file: RowGroups<Out<'w>>,
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
        let options = ArrowWriterOptions::new().with_properties(properties.build());
        let file = RowGroups::new(out, converter.schema(), options)?;
        Ok(Self { converter, file })
    }
}

/// Writes the row groups of a Parquet file.
pub struct RowGroups<W: Write + Send> {
    file: SerializedFileWriter<W>,
    columns: ArrowRowGroupWriterFactory,
    schema: SchemaRef,
}

impl<W: Write + Send> RowGroups<W> {
    /// Creates a file with the columns of `schema`.
    ///
    /// # Errors
    /// Returns an error if Parquet cannot represent the columns, or writing to `out` fails.
    pub fn new(out: W, schema: &SchemaRef, options: ArrowWriterOptions) -> parquet::errors::Result<Self> {
        let writer = ArrowWriter::try_new_with_options(out, Arc::clone(schema), options)?;
        let (file, columns) = writer.into_serialized_writer()?;
        Ok(Self { file, columns, schema: Arc::clone(schema) })
    }

    /// Writes the rows of all batches as a row group. Without batches, nothing is written.
    ///
    /// # Errors
    /// Returns an error if a batch has other columns, or writing to the output fails.
    pub fn write(&mut self, batches: &[RecordBatch]) -> parquet::errors::Result<()> {
        let Some(first) = batches.first() else { return Ok(()) };
        let mut writers = self.columns.create_column_writers(self.count())?.into_iter();
        let mut group = self.file.next_row_group()?;
        for (column, field) in self.schema.fields().iter().enumerate() {
            let leaves = compute_leaves(field, first.column(column))?.len();
            let mut writers: Vec<_> = writers.by_ref().take(leaves).collect();
            for batch in batches {
                let leaves = compute_leaves(field, batch.column(column))?;
                for (writer, leaf) in writers.iter_mut().zip(&leaves) {
                    writer.write(leaf)?;
                }
            }
            // Closing the writer of a column frees its memory.
            for writer in writers {
                writer.close()?.append_to_row_group(&mut group)?;
            }
        }
        group.close()?;
        Ok(())
    }

    /// Returns the number of row groups that have been written.
    pub fn count(&self) -> usize {
        self.file.flushed_row_groups().len()
    }

    /// Completes the file.
    ///
    /// # Errors
    /// Returns an error if writing to the output fails.
    pub fn finish(&mut self) -> parquet::errors::Result<()> {
        // `into_inner` would convert I/O errors to texts, and the kind of the error would be lost.
        self.file.finish().map(|_| ())
    }

    /// Returns the output.
    pub fn out(&mut self) -> &mut W {
        self.file.inner_mut()
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
        .set_write_batch_size(WRITE_ROWS)
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        // A page of the default 20 000 rows is so small that its header matters.
        .set_data_page_row_count_limit(GROUP_ROWS)
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
            // The differences between consecutive times, counters and states are small. A dictionary
            // takes a tenth longer to write, and makes files of real logs at most 0.4 % smaller.
            _ if data_type.is_integer() || data_type.is_temporal() => {
                (false, Some(Encoding::DELTA_BINARY_PACKED))
            }
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
    fn write(&mut self, mut batches: Vec<RecordBatch>) -> Result<(), ExportError> {
        // The encoder needs memory for the levels and the encoded values of all columns.
        check_memory(3 * batches.iter().map(RecordBatch::get_array_memory_size).sum::<usize>())?;
        for batch in &mut batches {
            *batch = self.converter.convert(batch)?;
        }
        Ok(self.file.write(&batches)?)
    }

    fn finish(mut self: Box<Self>, losses: &mut Vec<Loss>) -> Result<(), ExportError> {
        self.converter.finish(losses);
        Ok(self.file.finish()?)
    }
}
