//! Reads a log, and passes its topics to PlotJuggler.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use rovelog::{Diagnostic, LogReader, Select, Severity, Topic};
use rovelog_export::flat::FlatColumns;
use rovelog_ffi::{RovelogLog, TopicStream, error_text};

use crate::abi::Level;
use crate::host::{Host, StopFlag};

/// Maximum number of problems that are shown as messages.
const MAX_PROBLEMS: usize = 20;

/// Text of the error after a panic.
pub(crate) const BUG: &str = "an internal error occurred, which is a bug in rovelog; please report it";

/// Text of the error if the user cancels the import.
const CANCELLED: &str = "the import was canceled";

/// Reads the log at `path`, and passes its topics to `host`. Problems of the log are shown as
/// messages. A topic that cannot be read is reported, and the other topics are read.
///
/// # Errors
/// Returns a message for the user if the log cannot be opened, if no topic can be read, or if the
/// user cancels the import.
pub(crate) fn import(path: &Path, host: &Host) -> Result<(), String> {
    let log = RovelogLog::open(path, false).map_err(|error| error_text(&error))?;
    let reader = log.reader();
    report_problems(&**reader, host);
    let topics: Vec<_> = reader.topics().iter().filter(|topic| topic.count > 0).collect();
    host.start_progress("Reading the log", topics.len() as u64);
    let (mut read, mut first_error) = (0, None);
    for (step, topic) in topics.iter().enumerate() {
        if host.is_stop_requested() || !host.update_progress(step as u64) {
            return Err(CANCELLED.to_owned());
        }
        match import_topic(&log, topic, host) {
            Ok(()) => read += 1,
            Err(_) if host.is_stop_requested() => return Err(CANCELLED.to_owned()),
            Err(error) => {
                let why = format!("the topic {} is missing: {error}", topic.name);
                host.report(Level::Warning, &why);
                first_error.get_or_insert(why);
            }
        }
    }
    host.update_progress(topics.len() as u64);
    match first_error {
        Some(error) if read == 0 => Err(error),
        _ => Ok(()),
    }
}

/// Shows the problems of a log as messages.
fn report_problems(log: &dyn LogReader, host: &Host) {
    let problems = log.diagnostics().list();
    let show = |problem: &Diagnostic| {
        let level = if problem.rule.severity == Severity::Note { Level::Info } else { Level::Warning };
        let (code, at) = (problem.rule.code, problem.range.start);
        host.report(level, &format!("{code} at byte {at}: {}", problem.message));
    };
    problems.iter().take(MAX_PROBLEMS).for_each(show);
    let more = log.info().problems.saturating_sub(problems.len().min(MAX_PROBLEMS) as u64);
    if more > 0 {
        host.report(Level::Warning, &format!("the log has {more} more problems"));
    }
}

/// Passes the rows of a topic to PlotJuggler.
fn import_topic(log: &RovelogLog, topic: &Topic, host: &Host) -> Result<(), String> {
    let rows = log.stream(topic.id.index(), &Select::all()).map_err(|error| error_text(&error))?;
    let columns = FlatColumns::new(&rows.schema());
    if !columns.omitted().is_empty() {
        let fields = columns.omitted().join(", ");
        host.report(Level::Info, &format!("{}: these fields cannot be plotted: {fields}", topic.name));
    }
    host.append(&topic.name, FlatStream { rows, columns, stop: host.stop_flag() })?;
    let undecodable = log.reader().undecodable(&Select::topic(&topic.name));
    if let Some((_, count)) = undecodable.iter().find(|(id, _)| *id == topic.id) {
        host.report(Level::Warning, &format!("{}: {count} records cannot be decoded", topic.name));
    }
    Ok(())
}

/// Rows of a topic with flat columns. They end with an error if the user cancels the import.
struct FlatStream {
    rows: TopicStream,
    columns: FlatColumns,
    stop: StopFlag,
}

impl Iterator for FlatStream {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.stop.is_set() {
            return Some(Err(ArrowError::ComputeError(CANCELLED.to_owned())));
        }
        let batch = self.rows.next()?;
        // A panic must not unwind into the host. The conversion does not change its state.
        let flat = catch_unwind(AssertUnwindSafe(|| batch.and_then(|batch| self.columns.convert(&batch))));
        Some(flat.unwrap_or_else(|_| Err(ArrowError::ComputeError(BUG.to_owned()))))
    }
}

impl RecordBatchReader for FlatStream {
    fn schema(&self) -> SchemaRef {
        SchemaRef::clone(self.columns.schema())
    }
}
