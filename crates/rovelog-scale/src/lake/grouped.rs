//! A writer for Parquet files that encodes one column at a time.
//!
//! A column that is being encoded needs about a megabyte for a dictionary and for the tables of the
//! compressor, regardless of its number of rows. Arrow's own writer encodes all columns of all open
//! files at the same time, which would need most of the memory of a worker. So this writer keeps
//! rows as Arrow columns until there are enough rows for a row group.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use arrow_select::concat::concat_batches;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{ArrowRowGroupWriterFactory, ArrowWriterOptions, compute_leaves};
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use sha2::{Digest as _, Sha256};

use super::member::hex;

/// Number of batches at which they are joined to one batch. Small batches need much more memory
/// than their values.
const JOINED_BATCHES: usize = 32;

/// Number of rows at which batches are joined, even if there are only a few batches.
const JOINED_ROWS: usize = 8 << 10;

/// A file that is only open while a row group is written. A pack can have more tables than the
/// operating system allows open files.
struct ReopenedFile {
    path: PathBuf,
    /// The file. `None` while it is closed.
    file: Option<File>,
    /// Hash of the bytes that have been written so far.
    hash: Sha256,
}

/// Size in bytes and SHA-256 of a complete file.
pub(super) struct FinishedFile {
    pub(super) bytes: u64,
    pub(super) sha256: String,
}

impl ReopenedFile {
    fn open(&mut self) -> io::Result<&mut File> {
        let file = match self.file.take() {
            Some(file) => file,
            None => OpenOptions::new().append(true).open(&self.path)?,
        };
        Ok(self.file.insert(file))
    }
}

impl Write for ReopenedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.open()?.write(bytes)?;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), File::flush)
    }
}

/// Writes a Parquet file. Rows are kept in memory until they fill a row group.
pub(super) struct RowGroupWriter {
    file: SerializedFileWriter<ReopenedFile>,
    columns: ArrowRowGroupWriterFactory,
    schema: SchemaRef,
    /// Number of rows at which a row group is written.
    group_rows: usize,
    /// Batches that were made by joining small batches.
    joined: Vec<RecordBatch>,
    /// Batches that have been added since batches were last joined.
    recent: Vec<RecordBatch>,
    /// Number of rows in `joined` and `recent`.
    waiting_rows: usize,
    /// Size in bytes of the rows that are in memory.
    held: usize,
    /// Number of rows that were added to the file.
    pub(super) rows: u64,
}

impl RowGroupWriter {
    /// Creates a file with these columns.
    pub(super) fn new(path: &Path, schema: &SchemaRef, properties: WriterProperties) -> Result<Self> {
        let group_rows = properties.max_row_group_row_count().unwrap_or(usize::MAX);
        File::create(path)?;
        let file = ReopenedFile { path: path.to_owned(), file: None, hash: Sha256::new() };
        // Arrow's own description of the columns is not written to the file, so that all readers
        // see the same types.
        let options = ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
        let writer = ArrowWriter::try_new_with_options(file, Arc::clone(schema), options)?;
        let (file, columns) = writer.into_serialized_writer()?;
        let schema = Arc::clone(schema);
        let (joined, recent) = (Vec::new(), Vec::new());
        Ok(Self { file, columns, schema, group_rows, joined, recent, waiting_rows: 0, held: 0, rows: 0 })
    }

    /// Returns the size in bytes of the rows that have not been written yet.
    pub(super) fn held(&self) -> usize {
        self.held
    }

    /// Returns the number of row groups that were written to the file.
    pub(super) fn groups(&self) -> usize {
        self.file.flushed_row_groups().len()
    }

    /// Adds rows to the file. If there are enough rows, a row group is written.
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

    /// Writes the rows that have not been written yet as a row group.
    pub(super) fn write_group(&mut self) -> Result<()> {
        let mut batches = std::mem::take(&mut self.joined);
        batches.append(&mut self.recent);
        (self.waiting_rows, self.held) = (0, 0);
        // Each column is encoded from all batches. Then the writer of the column is closed, which
        // frees its memory.
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
        // The file is closed here. `ReopenedFile` opens it again when more bytes are written.
        self.file.inner_mut().file = None;
        Ok(())
    }

    /// Writes the remaining rows, completes the file, and syncs it to disk.
    pub(super) fn finish(mut self) -> Result<FinishedFile> {
        self.write_group()?;
        // `into_inner` is not used, because it converts I/O errors to strings.
        self.file.finish()?;
        let written = self.file.inner_mut();
        let file = written.open()?;
        file.sync_all()?;
        let bytes = file.metadata()?.len();
        Ok(FinishedFile { bytes, sha256: hex(&written.hash.finalize_reset()) })
    }
}
