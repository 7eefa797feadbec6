//! Functions for ULog files, which Python calls in `log.ulog`. They return parameters, information
//! messages, dropouts, events and flight modes.

use arrow_array::RecordBatch;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rovelog::ulog_format::{UlogReader, px4};
use rovelog::{AnyLog, Result, Select, Timestamp, Topic};

use crate::errors::from_arrow;
use crate::reader::Reader;
use crate::values::{map_to_python, to_python};

/// Returns all rows of a topic as one batch. Returns `None` if the log is not a ULog file or the
/// topic has no rows.
pub(crate) fn table(log: &AnyLog, topic: &Topic, select: &Select) -> Result<Option<RecordBatch>> {
    let AnyLog::Ulog(log) = log else { return Ok(None) };
    let tables = log.tables(select).map_err(from_arrow("ulog"))?;
    Ok(tables.into_iter().find(|(id, _)| *id == topic.id).map(|(_, batch)| batch))
}

/// Returns the ULog reader of a log, or an exception if the log has another format.
pub(crate) fn ulog<'a>(py: Python<'_>, reader: &'a Reader) -> PyResult<&'a UlogReader> {
    reader.format_reader(py, "ULog", |log| if let AnyLog::Ulog(log) = log { Some(log) } else { None })
}

fn nanos(time: Option<Timestamp>) -> Option<i64> {
    time.map(|time| time.nanos)
}

/// A change of a parameter: the time in nanoseconds, the name, and the new value.
type Change<'py> = (Option<i64>, String, Bound<'py, PyAny>);

/// Returns the parameters: initial values, changes, system-wide defaults, and defaults of the
/// current setup (airframe).
#[pyfunction]
#[expect(clippy::type_complexity, reason = "a row of a table")]
pub(crate) fn ulog_parameters<'py>(
    py: Python<'py>,
    reader: &Reader,
) -> PyResult<(Bound<'py, PyDict>, Vec<Change<'py>>, Bound<'py, PyDict>, Bound<'py, PyDict>)> {
    let log = ulog(py, reader)?;
    let parameters = reader.run(py, || Ok(log.parameters()))?;
    let changed = parameters.changed.iter();
    let changed = changed
        .map(|change| Ok((nanos(change.time), change.name.clone(), to_python(py, &change.value)?)))
        .collect::<PyResult<_>>()?;
    Ok((
        map_to_python(py, &parameters.initial)?,
        changed,
        map_to_python(py, &parameters.system_defaults)?,
        map_to_python(py, &parameters.setup_defaults)?,
    ))
}

/// Returns the information messages as a dict from keys to values. If a key occurs several times,
/// the dict contains its last value.
#[pyfunction]
pub(crate) fn ulog_infos<'py>(py: Python<'py>, reader: &Reader) -> PyResult<Bound<'py, PyDict>> {
    let log = ulog(py, reader)?;
    map_to_python(py, &reader.run(py, || Ok(log.infos()))?)
}

/// Returns the dropouts. Each row consists of the time in nanoseconds, the duration in
/// milliseconds, and the offset of the message.
#[pyfunction]
pub(crate) fn ulog_dropouts(py: Python<'_>, reader: &Reader) -> PyResult<Vec<(Option<i64>, u16, u64)>> {
    let log = ulog(py, reader)?;
    let dropouts = reader.run(py, || Ok(log.dropouts()))?;
    Ok(dropouts.iter().map(|dropout| (nanos(dropout.time), dropout.millis, dropout.offset)).collect())
}

/// Returns the PX4 events. Each row consists of the time in nanoseconds, the level, the text, and
/// the name.
#[pyfunction]
#[expect(clippy::type_complexity, reason = "a row of a table")]
pub(crate) fn ulog_events(
    py: Python<'_>,
    reader: &Reader,
) -> PyResult<Vec<(i64, &'static str, String, Option<String>)>> {
    let log = ulog(py, reader)?;
    reader.run(py, || {
        let events = px4::events(log).list.into_iter();
        let events = events.filter(px4::Event::is_message);
        let row = |event: px4::Event| {
            (event.time.nanos, event.level_name(), event.message(), event.text.map(|text| text.name))
        };
        Ok(events.map(row).collect())
    })
}

/// Returns the changes of the PX4 flight mode. Each row consists of the time in nanoseconds, the
/// name of the mode, and its number.
#[pyfunction]
pub(crate) fn ulog_modes(py: Python<'_>, reader: &Reader) -> PyResult<Vec<(i64, String, u8)>> {
    let log = ulog(py, reader)?;
    let modes = reader.run(py, || Ok(px4::mode_changes(log)))?;
    let row = |change: &px4::Change<px4::Mode>| {
        let name = change.value.name().map_or_else(|| change.value.to_string(), str::to_owned);
        (change.time.nanos, name, change.value.nav_state)
    };
    Ok(modes.iter().map(row).collect())
}
