//! Writes a topic as an Apache Arrow IPC file, compressed with Zstandard.

use arrow_array::RecordBatch;
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions};
use arrow_schema::Schema;
use arrow_select::concat::concat_batches;

use super::convert::BatchConverter;
use super::options::Kind;
use super::sink::{Job, Out, Sink};
use crate::error::check_memory;
use crate::{ExportError, Loss};

/// Maximum number of rows in a batch of the file.
const BATCH_ROWS: usize = 64 << 10;
/// Size in bytes at which a batch of the file ends, even if it has fewer rows than the maximum.
const BATCH_BYTES: usize = 8 << 20;

/// Writes an Arrow IPC file.
pub(super) struct Ipc<'w> {
    converter: BatchConverter,
    writer: FileWriter<Out<'w>>,
    /// Batches that have not been written yet. Log readers return small batches. In an IPC file,
    /// each batch has a header and separately compressed columns, so small batches are merged to
    /// save space.
    held: Vec<RecordBatch>,
    /// Number of rows in `held`.
    rows: usize,
    /// Size in bytes of the batches in `held`.
    bytes: usize,
}

impl<'w> Ipc<'w> {
    pub(super) fn new(job: &Job<'_>, read: &Schema, out: Out<'w>) -> Result<Self, ExportError> {
        let converter = BatchConverter::new(job, Kind::Arrow, read);
        let options = IpcWriteOptions::default().try_with_compression(Some(CompressionType::ZSTD))?;
        let writer = FileWriter::try_new_with_options(out, converter.schema(), options)?;
        Ok(Self { converter, writer, held: Vec::new(), rows: 0, bytes: 0 })
    }

    /// Merges the held batches and writes the result as one batch.
    fn put(&mut self) -> Result<(), ExportError> {
        if self.rows == 0 {
            return Ok(());
        }
        // The merged batch and its compressed columns.
        check_memory(3 * self.bytes)?;
        let batch = concat_batches(self.converter.schema(), &self.held)?;
        self.held.clear();
        (self.rows, self.bytes) = (0, 0);
        // A single batch from the log reader may have more rows than the maximum, so it is divided.
        for start in (0..batch.num_rows()).step_by(BATCH_ROWS) {
            self.writer.write(&batch.slice(start, BATCH_ROWS.min(batch.num_rows() - start)))?;
        }
        Ok(())
    }
}

impl Sink for Ipc<'_> {
    fn write(&mut self, batches: Vec<RecordBatch>) -> Result<(), ExportError> {
        for batch in &batches {
            let batch = self.converter.convert(batch)?;
            let bytes = batch.get_array_memory_size();
            if self.rows + batch.num_rows() > BATCH_ROWS || self.bytes + bytes > BATCH_BYTES {
                self.put()?;
            }
            self.rows += batch.num_rows();
            self.bytes += bytes;
            self.held.push(batch);
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), ExportError> {
        self.put()
    }

    fn finish(mut self: Box<Self>, losses: &mut Vec<Loss>) -> Result<(), ExportError> {
        self.put()?;
        self.converter.finish(losses);
        Ok(self.writer.finish()?)
    }
}
