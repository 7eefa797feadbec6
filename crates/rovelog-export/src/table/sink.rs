//! The common interface of the table writers.

use std::collections::BTreeMap;
use std::io::Write;

use arrow_array::RecordBatch;
use rovelog::{LogReader, Topic};

use super::options::TableOptions;
use crate::{ExportError, Loss};

/// Output of a table. One type for all outputs, so that the table writers are compiled once.
pub(super) type Out<'w> = &'w mut (dyn Write + Send);

/// A writer of the batches of one topic as one table.
pub(super) trait Sink {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), ExportError>;

    /// Writes what is held.
    fn relieve(&mut self) -> Result<(), ExportError>;

    /// Ends the table; adds the values that could not be carried to `losses`.
    fn finish(self: Box<Self>, losses: &mut Vec<Loss>) -> Result<(), ExportError>;
}

/// Everything a sink needs besides the columns.
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
