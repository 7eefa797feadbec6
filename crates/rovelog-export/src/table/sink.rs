//! What the table writers get, and the common interface of those that threads share.

use std::collections::BTreeMap;
use std::io::Write;

use rovelog::{LogReader, Topic};

use super::options::TableOptions;
#[cfg(feature = "parquet")]
use {
    crate::{ExportError, Loss},
    arrow_array::RecordBatch,
};

/// Output of a table. One type for all outputs, so that the table writers are compiled once.
pub(super) type Out<'w> = &'w mut (dyn Write + Send);

/// A writer of the batches of one topic as one table. CSV has rows only, and is written apart.
#[cfg(feature = "parquet")]
pub(super) trait Sink {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), ExportError>;

    /// Writes what is held.
    fn relieve(&mut self) -> Result<(), ExportError>;

    /// Ends the table; adds the values that could not be carried to `losses`.
    fn finish(self: Box<Self>, losses: &mut Vec<Loss>) -> Result<(), ExportError>;
}

/// Everything a sink needs in addition to the columns.
#[cfg_attr(not(feature = "parquet"), expect(dead_code, reason = "CSV has no place for metadata"))]
pub(super) struct Job<'a> {
    pub(super) log: &'a dyn LogReader,
    pub(super) topic: &'a Topic,
    pub(super) options: &'a TableOptions,
    /// Metadata that all tables of the log share.
    pub(super) metadata: &'a BTreeMap<String, String>,
    /// True if the rows come in time order.
    pub(super) sorted: bool,
}
