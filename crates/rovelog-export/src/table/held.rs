//! Batches in memory that become a row group of a file.

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use arrow_select::concat::concat_batches;

/// Number of batches at which they are joined to one batch. Small batches need much more memory
/// than their values.
const JOINED_BATCHES: usize = 32;

/// Number of rows at which batches are joined, even if there are only a few batches.
const JOINED_ROWS: usize = 8 << 10;

/// Batches with the same columns that are kept in memory until a row group is complete.
#[derive(Default)]
pub struct HeldBatches {
    /// Batches that were made by joining small batches.
    joined: Vec<RecordBatch>,
    /// Batches that have been added since batches were last joined.
    recent: Vec<RecordBatch>,
    /// Number of rows in `recent`.
    recent_rows: usize,
    /// Number of rows in memory.
    rows: usize,
    /// Size in bytes of the rows in memory.
    bytes: usize,
}

impl HeldBatches {
    /// Adds a batch.
    ///
    /// # Errors
    /// Returns an error if the batch has other columns than the batches before it.
    pub fn add(&mut self, batch: RecordBatch) -> Result<(), ArrowError> {
        self.bytes += batch.get_array_memory_size();
        self.rows += batch.num_rows();
        self.recent_rows += batch.num_rows();
        self.recent.push(batch);
        if self.recent.len() >= JOINED_BATCHES || self.recent_rows >= JOINED_ROWS {
            let apart = self.recent.iter().map(RecordBatch::get_array_memory_size).sum::<usize>();
            let joined = concat_batches(self.recent[0].schema_ref(), &self.recent)?;
            self.bytes = (self.bytes + joined.get_array_memory_size()).saturating_sub(apart);
            self.joined.push(joined);
            self.recent.clear();
            self.recent_rows = 0;
        }
        Ok(())
    }

    /// Returns the number of rows in memory.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the size in bytes of the rows in memory.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Removes and returns all batches.
    pub fn take(&mut self) -> Vec<RecordBatch> {
        let Self { mut joined, mut recent, .. } = std::mem::take(self);
        joined.append(&mut recent);
        joined
    }
}
