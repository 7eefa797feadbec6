//! Signals: values by name or expression, topics joined as one table, conditions.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use arrow_select::concat::concat_batches;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use rovelog::core::columns::TIME_COLUMN;
use rovelog::{Result, Select, Topic, UtcKnot, UtcOffset};
use rovelog_export::ExportError;
use rovelog_export::signal::{
    self, Base, Condition, JoinOptions, Method, NoSignal, Signal, Signals, Stream, join,
};
use rovelog_export::table::free_name;

use crate::errors::{self, Raise, of_arrow, of_export};
use crate::reader::{Reader, Window};
use crate::table::Table;

pub(crate) fn missing(reader: &Reader, py: Python<'_>, error: NoSignal) -> PyErr {
    let raise = Raise::new("FieldNotFound", error.cause).of(reader.log.format().id, reader.origin.path());
    let raise = if error.next.is_empty() { raise } else { raise.next(error.next) };
    raise.raise(py)
}

/// Returns batches as one, and looks for signals of the process between them.
fn whole(
    format: &'static str,
    schema: &SchemaRef,
    batches: impl Iterator<Item = std::result::Result<RecordBatch, ExportError>>,
) -> Result<RecordBatch> {
    let mut all = Vec::new();
    for batch in batches {
        all.push(batch.map_err(of_export(format))?);
        if let Some(raised) = errors::signal() {
            return Err(errors::of_signal(raised));
        }
    }
    concat_batches(schema, &all).map_err(of_arrow(format))
}

/// Returns the nanoseconds of a duration; `None` if the text is none.
#[pyfunction]
pub(crate) fn duration_ns(text: &str) -> Option<i64> {
    rovelog_export::duration(text).ok()
}

/// Returns the Unix nanoseconds of a time as in RFC 3339; `None` if the text is none.
#[pyfunction]
pub(crate) fn utc_ns(text: &str) -> Option<i64> {
    chrono::DateTime::parse_from_rfc3339(text).ok()?.timestamp_nanos_opt()
}

/// Converts a time of the log's clock to Unix nanoseconds. `offset` and `knots` are those of the
/// log's info.
#[pyfunction]
pub(crate) fn unix_of(offset: i64, knots: Vec<(i64, i64)>, log: i64) -> Option<i64> {
    utc_offset(offset, knots).unix(log)
}

/// Converts Unix nanoseconds to a time of the log's clock: the first one, or, for the end of a
/// window, the last one.
#[pyfunction]
pub(crate) fn log_time_of(offset: i64, knots: Vec<(i64, i64)>, unix: i64, is_end: bool) -> Option<i64> {
    let utc = utc_offset(offset, knots);
    if is_end { utc.last_log_time(unix) } else { utc.first_log_time(unix) }
}

fn utc_offset(offset: i64, knots: Vec<(i64, i64)>) -> UtcOffset {
    let knots = knots.into_iter().map(|(log, nanos)| UtcKnot { log, nanos });
    UtcOffset::new(offset, "", "").with_knots(knots.collect())
}

/// Raises an error if regular times are many more than the records of the log.
#[pyfunction]
pub(crate) fn check_regular_rows(
    py: Python<'_>,
    reader: &Reader,
    first: i64,
    last: i64,
    step: i64,
) -> PyResult<()> {
    let log = reader.all(py)?;
    signal::check_regular_rows(&***log, first, last, step).map_err(|what| {
        let raise = Raise::new("UnsupportedError", what).of(log.format().id, reader.origin.path());
        raise.next("narrow it: start=, end=, a longer on=, or make them all: force=True").raise(py)
    })
}

/// Returns topics at these times, which ascend: native 64-bit integers, ns of the log's clock.
#[pyfunction]
pub(crate) fn signal_join(
    py: Python<'_>,
    reader: &Reader,
    topics: Vec<String>,
    times: PyBackedBytes,
    method: &str,
    tolerance: Option<u64>,
) -> PyResult<Table> {
    let log = reader.all(py)?;
    let times = times.chunks_exact(8).filter_map(|bytes| Some(i64::from_ne_bytes(bytes.try_into().ok()?)));
    let times: Vec<i64> = times.collect();
    let mut options = JoinOptions::default();
    options.method = Method::by_name(method).unwrap_or_default();
    options.tolerance = tolerance;
    let batch = reader.run(py, || {
        let format = log.format().id;
        let topics: Vec<&Topic> = topics.iter().filter_map(|name| Some(log.topic(name)?.get())).collect();
        let joined = join(&***log, Base::Times(times), &topics, &Select::all(), (options, &[]));
        let joined = joined.map_err(of_export(format))?;
        let schema = Arc::clone(joined.schema());
        whole(format, &schema, joined)
    })?;
    Ok(Table { batch })
}

/// Returns signals by name or expression, at the times of the first topic that they use.
#[pyfunction]
pub(crate) fn signal_values(
    py: Python<'_>,
    reader: &Reader,
    names: Vec<String>,
    window: Window,
) -> PyResult<Table> {
    let log = reader.all(py)?;
    let found: std::result::Result<Vec<Vec<Signal>>, NoSignal> = {
        let signals = Signals::new(&***log);
        names.iter().map(|name| signals.find(name)).collect()
    };
    let signals = found.map_err(|error| missing(reader, py, error))?.concat();
    let batch = reader.run(py, || {
        let format = log.format().id;
        let mut fields = vec![Field::new(TIME_COLUMN, DataType::Int64, true)];
        let mut taken = BTreeSet::from([TIME_COLUMN, "time"].map(str::to_owned));
        fields.extend(signals.iter().map(|signal| {
            let unit = signal.unit().map(|unit| ("unit".to_owned(), unit.to_owned()));
            let field = Field::new(free_name(&mut taken, signal.name()), DataType::Float64, true);
            field.with_metadata(unit.into_iter().collect())
        }));
        let schema = Arc::new(Schema::new(fields));
        let all: Vec<&Signal> = signals.iter().collect();
        let stream = Stream::new(&***log, &all, &window.of(Select::all())).map_err(of_export(format))?;
        let batches = stream.map(|item| {
            let (times, values) = item?;
            let mut columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(times))];
            columns.extend(values.into_iter().map(|values| Arc::new(Float64Array::from(values)) as ArrayRef));
            Ok(RecordBatch::try_new(Arc::clone(&schema), columns)?)
        });
        let batch = whole(format, &schema, batches)?;
        reader.shape(None, None).apply(&batch).map_err(of_arrow(format))
    })?;
    Ok(Table { batch })
}

/// Start and end, whether it holds until the last row, number of rows, minimum, maximum, the values
/// before and after a change.
type EventRow = (i64, i64, bool, u64, Option<f64>, Option<f64>, Option<f64>, Option<f64>);

/// Returns when a condition holds.
#[pyfunction]
pub(crate) fn signal_events(
    py: Python<'_>,
    reader: &Reader,
    condition: &str,
    window: Window,
) -> PyResult<Vec<EventRow>> {
    let log = reader.all(py)?;
    let condition = Condition::new(&Signals::new(&***log), condition);
    let condition = condition.map_err(|error| missing(reader, py, error))?;
    reader.run(py, || {
        let mut rows = Vec::new();
        let found = condition.each(&***log, &window.of(Select::all()), &mut |event| {
            let (from, to) = (event.from, event.to);
            rows.push((event.start, event.end, event.is_open, event.rows, event.min, event.max, from, to));
        });
        found.map(|()| rows).map_err(of_export(log.format().id))
    })
}
