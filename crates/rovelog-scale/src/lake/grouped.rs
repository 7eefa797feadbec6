//! A Parquet file while it is written, a row group at a time and in it column by column.
//!
//! A column that is being encoded needs memory that does not depend on its rows: tables of the
//! compressor, a dictionary, about a megabyte. If all columns of all open files were encoded at a
//! time, as Arrow's own writer does it, this would be most of the memory of a worker. So rows wait
//! as Arrow columns until they are a row group.

use std::fs::File;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use arrow_select::concat::concat_batches;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{ArrowRowGroupWriterFactory, ArrowWriterOptions, compute_leaves};
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;

/// Batches, and rows, that are joined: small batches need more memory than their values.
const JOINED_BATCHES: usize = 32;
const JOINED_ROWS: usize = 8 << 10;

/// A file, and the rows of the next row group.
pub(super) struct Grouped {
    file: SerializedFileWriter<File>,
    columns: ArrowRowGroupWriterFactory,
    schema: SchemaRef,
    group_rows: usize,
    joined: Vec<RecordBatch>,
    recent: Vec<RecordBatch>,
    waiting_rows: usize,
    held: usize,
    /// Rows of the whole file.
    pub(super) rows: u64,
}

impl Grouped {
    /// Starts a file with these columns.
    pub(super) fn new(file: File, schema: &SchemaRef, properties: WriterProperties) -> Result<Self> {
        let group_rows = properties.max_row_group_row_count().unwrap_or(usize::MAX);
        // Readers see plain Parquet: without Arrow's own description of the columns.
        let options = ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
        let writer = ArrowWriter::try_new_with_options(file, Arc::clone(schema), options)?;
        let (file, columns) = writer.into_serialized_writer()?;
        let schema = Arc::clone(schema);
        let (joined, recent) = (Vec::new(), Vec::new());
        Ok(Self { file, columns, schema, group_rows, joined, recent, waiting_rows: 0, held: 0, rows: 0 })
    }

    /// Returns the bytes of the rows that wait.
    pub(super) fn held(&self) -> usize {
        self.held
    }

    /// Returns the number of row groups in the file.
    pub(super) fn groups(&self) -> usize {
        self.file.flushed_row_groups().len()
    }

    /// Adds rows.
    pub(super) fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        self.held += batch.get_array_memory_size();
        self.waiting_rows += batch.num_rows();
        self.rows += batch.num_rows() as u64;
        self.recent.push(batch.clone());
        let rows = self.recent.iter().map(RecordBatch::num_rows).sum::<usize>();
        if self.recent.len() >= JOINED_BATCHES || rows >= JOINED_ROWS {
            let apart = self.recent.iter().map(RecordBatch::get_array_memory_size).sum::<usize>();
            let joined = concat_batches(&self.schema, &self.recent)?;
            self.held = (self.held + joined.get_array_memory_size()).saturating_sub(apart);
            self.joined.push(joined);
            self.recent.clear();
        }
        if self.waiting_rows >= self.group_rows { self.write_group() } else { Ok(()) }
    }

    /// Writes the rows that wait.
    pub(super) fn write_group(&mut self) -> Result<()> {
        let mut batches = std::mem::take(&mut self.joined);
        batches.append(&mut self.recent);
        (self.waiting_rows, self.held) = (0, 0);
        let Some(first) = batches.first() else { return Ok(()) };
        let mut writers =
            self.columns.create_column_writers(self.file.flushed_row_groups().len())?.into_iter();
        let mut group = self.file.next_row_group()?;
        for (column, field) in self.schema.fields().iter().enumerate() {
            let leaves = compute_leaves(field, first.column(column))?.len();
            let mut writers: Vec<_> = writers.by_ref().take(leaves).collect();
            for batch in &batches {
                let leaves = compute_leaves(field, batch.column(column))?;
                for (writer, leaf) in writers.iter_mut().zip(&leaves) {
                    writer.write(leaf)?;
                }
            }
            for writer in writers {
                writer.close()?.append_to_row_group(&mut group)?;
            }
        }
        group.close()?;
        Ok(())
    }

    /// Writes what is left. The file is complete and on the disk; returns its size.
    pub(super) fn finish(mut self) -> Result<u64> {
        self.write_group()?;
        // `into_inner` makes a text of what the system says.
        self.file.finish()?;
        let file = self.file.inner();
        file.sync_all()?;
        Ok(file.metadata()?.len())
    }
}
