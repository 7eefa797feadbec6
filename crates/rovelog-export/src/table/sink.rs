//! Common input of the table writers, and the trait that the Parquet and Arrow writers implement.

use std::collections::BTreeMap;
use std::io::Write;

use rovelog::{LogReader, Topic};

use super::options::TableOptions;
#[cfg(feature = "parquet")]
use {
    crate::{ExportError, Loss},
    arrow_array::RecordBatch,
};

/// Output of a table. All outputs have this type, so that the table writers are compiled only once.
pub(super) type Out<'w> = &'w mut (dyn Write + Send);

/// Writer of one table. The CSV writer does not implement this trait, because CSV rows are
/// independent and can be formatted by any thread.
#[cfg(feature = "parquet")]
pub(super) trait Sink {
    /// Adds the rows of all batches to the table. A Parquet file stores them as a row group.
    fn write(&mut self, batches: Vec<RecordBatch>) -> Result<(), ExportError>;

    /// Writes buffered rows to the output.
    fn flush(&mut self) -> Result<(), ExportError> {
        Ok(())
    }

    /// Completes the table. The values that cannot be represented are added to `losses`.
    fn finish(self: Box<Self>, losses: &mut Vec<Loss>) -> Result<(), ExportError>;
}

/// Description of a table, in addition to its columns.
#[cfg_attr(not(feature = "parquet"), expect(dead_code, reason = "CSV has no place for metadata"))]
pub(super) struct Job<'a> {
    pub(super) log: &'a dyn LogReader,
    pub(super) topic: &'a Topic,
    pub(super) options: &'a TableOptions,
    /// Metadata that is the same for all tables of the log.
    pub(super) metadata: &'a BTreeMap<String, String>,
    /// True if all rows have a time and are written in time order.
    pub(super) sorted: bool,
}
