//! Record batches that are built only if their memory is available and their request was not
//! canceled.

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};

use crate::internal::{cancel, memory};
use crate::{Error, LogReader, Result};

/// Number of times that the values of a batch may be in memory, for example while a column grows or
/// while the batch is encoded.
const COPIES: usize = 4;

/// Size in bytes of the batches between two checks. A check for each batch would be too slow for
/// small batches.
const CHECK_BYTES: usize = 8 << 20;

/// Iterator over record batches. Before a batch is built, it checks that the request of this thread
/// was not canceled, and that the memory for the next batches can be allocated.
///
/// For example, if all batches have 1 MiB, each check is for 8 MiB. The next check is made after 4
/// batches, because the remaining 4 MiB are not more than four times the largest batch.
pub(super) struct Checked<I, T> {
    batches: I,
    /// Returns the batch of an item.
    batch: fn(&T) -> &RecordBatch,
    /// Identifier of the log's format.
    format: &'static str,
    /// Size in bytes of the log.
    log_bytes: usize,
    /// Size in bytes of the largest batch so far.
    largest: usize,
    /// Size in bytes of the log's buffers. Other threads may fill them between two checks.
    buffer_bytes: usize,
    /// Number of bytes that were checked and are not used by batches yet.
    left: usize,
    /// True if a check has failed. No more batches are returned.
    has_failed: bool,
}

impl<I, T> Checked<I, T> {
    /// Wraps the batches of a log. `batch` returns the batch of an item.
    pub(super) fn new(log: &dyn LogReader, batches: I, batch: fn(&T) -> &RecordBatch) -> Self {
        let log_bytes = usize::try_from(log.info().size).unwrap_or(usize::MAX);
        let (format, buffer_bytes) = (log.format().id, log.buffer_bytes());
        Self { batches, batch, format, log_bytes, buffer_bytes, largest: 0, left: 0, has_failed: false }
    }

    fn check(&mut self) -> Result<()> {
        cancel::check()?;
        let needed = COPIES * self.largest;
        if self.left > needed {
            return Ok(());
        }
        // The batches of a small log do not need much more memory than the log.
        self.left = needed.max(CHECK_BYTES.min(self.log_bytes.saturating_mul(COPIES)));
        memory::check(self.left.saturating_add(self.buffer_bytes))
            .map_err(|error| Error::io(self.format, error))
    }
}

impl<T, I: Iterator<Item = Result<T, ArrowError>>> Iterator for Checked<I, T> {
    type Item = Result<T, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_failed {
            return None;
        }
        if let Err(error) = self.check() {
            self.has_failed = true;
            return Some(Err(ArrowError::from_external_error(Box::new(error))));
        }
        let item = self.batches.next()?;
        if let Ok(item) = &item {
            let bytes = (self.batch)(item).get_array_memory_size();
            self.largest = self.largest.max(bytes);
            self.left = self.left.saturating_sub(bytes);
        }
        Some(item)
    }
}

impl<I: RecordBatchReader> RecordBatchReader for Checked<I, RecordBatch> {
    fn schema(&self) -> SchemaRef {
        self.batches.schema()
    }
}
