//! What the writers of tables have in common.

use std::collections::BTreeMap;
use std::io::Write;

use arrow_array::RecordBatch;
use rovelog::{LogReader, Topic};

use super::options::TableOptions;
use crate::{ExportError, Loss};

/// Where a table goes. One type for all outputs, so that the writers of tables are compiled once.
pub(super) type Out<'w> = &'w mut (dyn Write + Send);

/// Writes batches of one topic as one table.
pub(super) trait Sink {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), ExportError>;

    /// Bytes that are kept until they can be written.
    fn held(&self) -> usize;

    /// Writes what is held.
    fn relieve(&mut self) -> Result<(), ExportError>;

    /// Ends the table; values that could not be carried go to `losses`.
    fn finish(self: Box<Self>, losses: &mut Vec<Loss>) -> Result<(), ExportError>;
}

/// What a sink has to know besides the columns.
pub(super) struct Job<'a> {
    pub(super) log: &'a dyn LogReader,
    pub(super) topic: &'a Topic,
    pub(super) options: &'a TableOptions,
    /// What all tables of the log say of it.
    pub(super) metadata: &'a BTreeMap<String, String>,
    /// The rows come in the order of time.
    pub(super) sorted: bool,
}
