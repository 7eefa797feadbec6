//! A topic as an Apache Arrow IPC file.

use arrow_array::RecordBatch;
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions};
use arrow_schema::Schema;
use arrow_select::concat::concat_batches;

use super::options::Kind;
use super::sink::{Job, Out, Sink};
use super::vocabulary::Vocabulary;
use crate::{ExportError, Loss};

/// Maximum rows of a batch.
const BATCH_ROWS: usize = 64 << 10;
/// Bytes that end a batch earlier.
const BATCH_BYTES: usize = 8 << 20;

pub(super) struct Ipc<'w> {
    vocabulary: Vocabulary,
    writer: FileWriter<Out<'w>>,
    held: Vec<RecordBatch>,
    rows: usize,
    bytes: usize,
}

impl<'w> Ipc<'w> {
    pub(super) fn new(job: &Job<'_>, read: &Schema, out: Out<'w>) -> Result<Self, ExportError> {
        let vocabulary = Vocabulary::new(job, Kind::Arrow, read);
        let options = IpcWriteOptions::default().try_with_compression(Some(CompressionType::ZSTD))?;
        let writer = FileWriter::try_new_with_options(out, vocabulary.schema(), options)?;
        Ok(Self { vocabulary, writer, held: Vec::new(), rows: 0, bytes: 0 })
    }

    fn put(&mut self) -> Result<(), ExportError> {
        if self.rows == 0 {
            return Ok(());
        }
        let batch = concat_batches(self.vocabulary.schema(), &self.held)?;
        self.held.clear();
        (self.rows, self.bytes) = (0, 0);
        // A batch from the reader may be larger than one output batch.
        for start in (0..batch.num_rows()).step_by(BATCH_ROWS) {
            self.writer.write(&batch.slice(start, BATCH_ROWS.min(batch.num_rows() - start)))?;
        }
        Ok(())
    }
}

impl Sink for Ipc<'_> {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), ExportError> {
        let batch = self.vocabulary.convert(batch)?;
        let bytes = batch.get_array_memory_size();
        if self.rows + batch.num_rows() > BATCH_ROWS || self.bytes + bytes > BATCH_BYTES {
            self.put()?;
        }
        self.rows += batch.num_rows();
        self.bytes += bytes;
        self.held.push(batch);
        Ok(())
    }

    fn relieve(&mut self) -> Result<(), ExportError> {
        self.put()
    }

    fn finish(mut self: Box<Self>, losses: &mut Vec<Loss>) -> Result<(), ExportError> {
        self.put()?;
        self.vocabulary.finish(losses);
        Ok(self.writer.finish()?)
    }
}
