//! A writer for Parquet files that keeps rows as Arrow columns until there are enough rows for a row
//! group.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use rovelog::core::internal::text::hex;
use rovelog_export::table::{HeldBatches, RowGroups};
use sha2::{Digest as _, Sha256};

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
    file: RowGroups<ReopenedFile>,
    /// Number of rows at which a row group is written.
    group_rows: usize,
    /// Rows that have not been written yet.
    held: HeldBatches,
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
        let file = RowGroups::new(file, schema, options)?;
        Ok(Self { file, group_rows, held: HeldBatches::default(), rows: 0 })
    }

    /// Returns the size in bytes of the rows that have not been written yet.
    pub(super) fn held(&self) -> usize {
        self.held.bytes()
    }

    /// Returns the number of row groups that were written to the file.
    pub(super) fn groups(&self) -> usize {
        self.file.count()
    }

    /// Adds rows to the file. If there are enough rows, a row group is written.
    pub(super) fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        self.rows += batch.num_rows() as u64;
        self.held.add(batch.clone())?;
        if self.held.rows() >= self.group_rows { self.write_group() } else { Ok(()) }
    }

    /// Writes the rows that have not been written yet as a row group.
    pub(super) fn write_group(&mut self) -> Result<()> {
        let batches = self.held.take();
        if batches.is_empty() {
            return Ok(());
        }
        self.file.write(&batches)?;
        // The file is closed here. `ReopenedFile` opens it again when more bytes are written.
        self.file.out().file = None;
        Ok(())
    }

    /// Writes the remaining rows, completes the file, and syncs it to disk.
    pub(super) fn finish(mut self) -> Result<FinishedFile> {
        self.write_group()?;
        self.file.finish()?;
        let written = self.file.out();
        let file = written.open()?;
        file.sync_all()?;
        let bytes = file.metadata()?.len();
        Ok(FinishedFile { bytes, sha256: hex(&written.hash.finalize_reset(), "") })
    }
}
