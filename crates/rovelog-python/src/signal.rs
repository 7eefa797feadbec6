//! Functions for signals: finding and computing them, joining topics, evaluating conditions, and
//! converting times.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use rovelog::core::internal::columns::TIME_COLUMN;
use rovelog::{Select, Topic, UtcKnot, UtcOffset};
use rovelog_export::signal::{
    self, Base, Condition, JoinOptions, Method, NoSignal, Signal, Signals, Stream, join,
};
use rovelog_export::table::free_name;

use crate::errors::{ExceptionBuilder, from_arrow, from_export};
use crate::reader::{Reader, Window};
use crate::table::{Table, concat_all};

/// Returns the Python exception for a signal that does not exist.
pub(crate) fn not_found(reader: &Reader, py: Python<'_>, error: NoSignal) -> PyErr {
    let raise = ExceptionBuilder::new("FieldNotFound", error.cause)
        .in_format(reader.log.format().id, reader.origin.path());
    let raise = if error.next.is_empty() { raise } else { raise.next(error.next) };
    raise.raise(py)
}

/// Parses a duration such as `1.5s`. Returns nanoseconds, or `None` if the text is not a duration.
#[pyfunction]
pub(crate) fn duration_ns(text: &str) -> Option<i64> {
    rovelog_export::duration(text).ok()
}

/// Parses an RFC 3339 time. Returns Unix time in nanoseconds, or `None` if the text is not such a
/// time.
#[pyfunction]
pub(crate) fn utc_ns(text: &str) -> Option<i64> {
    chrono::DateTime::parse_from_rfc3339(text).ok()?.timestamp_nanos_opt()
}

/// Converts a time on the log's clock to Unix time in nanoseconds.
///
/// `offset` and `knots` are the fields `utc_offset_ns` and `utc_knots` of the log's `Info` in
/// Python.
#[pyfunction]
pub(crate) fn unix_of(offset: i64, knots: Vec<(i64, i64)>, log: i64) -> Option<i64> {
    utc_offset(offset, knots).unix(log)
}

/// Converts Unix time in nanoseconds to a time on the log's clock.
///
/// If the clock was set back during the log, a UTC time may occur twice. Returns the first
/// occurrence, or the last occurrence if `is_end` is true.
#[pyfunction]
pub(crate) fn log_time_of(offset: i64, knots: Vec<(i64, i64)>, unix: i64, is_end: bool) -> Option<i64> {
    let utc = utc_offset(offset, knots);
    if is_end { utc.last_log_time(unix) } else { utc.first_log_time(unix) }
}

fn utc_offset(offset: i64, knots: Vec<(i64, i64)>) -> UtcOffset {
    let knots = knots.into_iter().map(|(log, nanos)| UtcKnot { log, nanos });
    UtcOffset::new(offset, "", "").with_knots(knots.collect())
}

/// Returns an exception if a series of regular times has far more rows than the log has records.
#[pyfunction]
pub(crate) fn check_regular_rows(
    py: Python<'_>,
    reader: &Reader,
    first: i64,
    last: i64,
    step: i64,
) -> PyResult<()> {
    let log = reader.whole_log(py)?;
    signal::check_regular_rows(&***log, first, last, step).map_err(|what| {
        let raise =
            ExceptionBuilder::new("UnsupportedError", what).in_format(log.format().id, reader.origin.path());
        raise.next("give start=, end= or a longer on=, or make all rows with force=True").raise(py)
    })
}

/// Joins topics into one table with a row at each of the times in `times`.
///
/// The times are 64-bit integers in native byte order. They are in ascending order, in nanoseconds
/// on the log's clock.
#[pyfunction]
pub(crate) fn signal_join(
    py: Python<'_>,
    reader: &Reader,
    topics: Vec<String>,
    times: PyBackedBytes,
    method: &str,
    tolerance: Option<u64>,
) -> PyResult<Table> {
    let log = reader.whole_log(py)?;
    let times = times.chunks_exact(8).filter_map(|bytes| Some(i64::from_ne_bytes(bytes.try_into().ok()?)));
    let times: Vec<i64> = times.collect();
    let mut options = JoinOptions::default();
    // Python has already checked that the method exists.
    options.method = Method::by_name(method).unwrap_or_default();
    options.tolerance = tolerance;
    let batch = reader.run(py, || {
        let format = log.format().id;
        let topics: Vec<&Topic> = topics.iter().filter_map(|name| Some(log.topic(name)?.get())).collect();
        let joined = join(&***log, Base::Times(times), &topics, &Select::all(), (options, &[]));
        let joined = joined.map_err(from_export(format))?;
        let schema = Arc::clone(joined.schema());
        concat_all(format, &schema, joined.map(|batch| batch.map_err(from_export(format))))
    })?;
    Ok(Table { batch })
}

/// Computes signals at the times of the first topic that they use.
#[pyfunction]
pub(crate) fn signal_values(
    py: Python<'_>,
    reader: &Reader,
    names: Vec<String>,
    window: Window,
) -> PyResult<Table> {
    let log = reader.whole_log(py)?;
    let found: std::result::Result<Vec<Vec<Signal>>, NoSignal> = {
        let signals = Signals::new(&***log);
        names.iter().map(|name| signals.find(name)).collect()
    };
    let signals = found.map_err(|error| not_found(reader, py, error))?.concat();
    let batch = reader.run(py, || {
        let format = log.format().id;
        let mut fields = vec![Field::new(TIME_COLUMN, DataType::Int64, true)];
        // Two signals may have the same name, but the columns of a table need unique names.
        let mut taken = BTreeSet::from([TIME_COLUMN, "time"].map(str::to_owned));
        fields.extend(signals.iter().map(|signal| {
            let unit = signal.unit().map(|unit| ("unit".to_owned(), unit.to_owned()));
            let field = Field::new(free_name(&mut taken, signal.name()), DataType::Float64, true);
            field.with_metadata(unit.into_iter().collect())
        }));
        let schema = Arc::new(Schema::new(fields));
        let all: Vec<&Signal> = signals.iter().collect();
        let stream = Stream::new(&***log, &all, &window.limit(Select::all())).map_err(from_export(format))?;
        let batches = stream.map(|item| {
            let (times, values) = item.map_err(from_export(format))?;
            let mut columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(times))];
            columns.extend(values.into_iter().map(|values| Arc::new(Float64Array::from(values)) as ArrayRef));
            RecordBatch::try_new(Arc::clone(&schema), columns).map_err(from_arrow(format))
        });
        let batch = concat_all(format, &schema, batches)?;
        // The projection adds the column `time` to the table.
        reader.projection(None, None).apply(&batch).map_err(from_arrow(format))
    })?;
    Ok(Table { batch })
}

/// A period during which a condition is true.
///
/// The values are the start, the end, true if the condition is still true at the last row, the
/// number of rows, the minimum, the maximum, the value before a change, and the value after the
/// change.
type EventRow = (i64, i64, bool, u64, Option<f64>, Option<f64>, Option<f64>, Option<f64>);

/// Returns the periods during which a condition is true.
#[pyfunction]
pub(crate) fn signal_events(
    py: Python<'_>,
    reader: &Reader,
    condition: &str,
    window: Window,
) -> PyResult<Vec<EventRow>> {
    let log = reader.whole_log(py)?;
    let condition = Condition::new(&Signals::new(&***log), condition);
    let condition = condition.map_err(|error| not_found(reader, py, error))?;
    reader.run(py, || {
        let mut rows = Vec::new();
        let found = condition.each(&***log, &window.limit(Select::all()), &mut |event| {
            let (from, to) = (event.from, event.to);
            rows.push((event.start, event.end, event.is_open, event.rows, event.min, event.max, from, to));
        });
        found.map(|()| rows).map_err(from_export(log.format().id))
    })
}
