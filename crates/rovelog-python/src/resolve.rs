//! Resolves field names, patterns and expressions, and converts the options for opening a log.

use std::path::PathBuf;

use arrow_array::RecordBatchReader as _;
use pyo3::prelude::*;
use rovelog::core::internal::layout::TextEncoding;
use rovelog::{Clock, ReadOptions, Select, Topic};
use rovelog_export::signal::{Pattern, Signal, Signals};

use crate::errors::{self, ExceptionBuilder};
use crate::reader::Reader;
use crate::{select, signal, vel};

/// Converts the arguments of the Python function `open` to options of the library.
pub(crate) fn read_options(
    py: Python<'_>,
    types: Option<PathBuf>,
    max_unpacked: Option<u64>,
    msgs: Option<PathBuf>,
    utc_start: Option<i64>,
    time_base: Option<&str>,
    text_encoding: Option<&str>,
) -> PyResult<ReadOptions> {
    let mut options = vel::options_with_types(py, types)?;
    if let Some(path) = msgs {
        options.definitions = errors::run_on(py, Some(&path.to_string_lossy()), || {
            rovelog::rosbag12::msg::files::read(&path).map_err(|error| rovelog::Error::io("rosbag", error))
        })?;
    }
    if let Some(bytes) = max_unpacked {
        options.limits = options.limits.with_unpacked(bytes);
    }
    options.utc_start = utc_start;
    options.clock = match time_base {
        None => None,
        Some("boot") => Some(Clock::Boot),
        Some(other) => {
            let what = format!("time_base cannot be {other:?}");
            return Err(ExceptionBuilder::new("UnsupportedError", what)
                .next("use \"boot\" or None")
                .raise(py));
        }
    };
    if let Some(name) = text_encoding {
        let Some(encoding) = TextEncoding::named(name) else {
            let what = format!("the encoding {name:?} in text_encoding is not supported");
            return Err(ExceptionBuilder::new("UnsupportedError", what)
                .next("use a name such as \"cp1251\" or \"gbk\"")
                .raise(py));
        };
        options.text_encoding = Some(encoding);
    }
    Ok(options)
}

/// Result of [`resolve`]: paths of fields, and signals as pairs of column name and expression.
pub(crate) type FieldsAndSignals = (Vec<String>, Vec<(String, String)>);

/// Divides the signals that were found for `text` into fields of the log and computed columns.
fn fields_and_signals(topic: &Topic, text: &str, signals: &[Signal]) -> FieldsAndSignals {
    let (mut fields, mut signal_columns) = (Vec::new(), Vec::new());
    for signal in signals {
        let name = signal.name_in(&topic.name).to_owned();
        match signal.field() {
            Some((_, field)) if signals.len() > 1 || !text.contains('=') => fields.push(field.to_owned()),
            // A pattern such as `{q.roll,q.yaw}` results in several signals. Each of them can be
            // computed from its name alone, so the name is its expression.
            _ if signals.len() > 1 => signal_columns.push((name.clone(), name)),
            _ => signal_columns.push((name, text.to_owned())),
        }
    }
    (fields, signal_columns)
}

/// Resolves a pattern, a derived field or an expression. Paths of fields are not resolved here.
///
/// Returns `None` if `text` looks like the name of a field that does not exist. The caller then
/// suggests similar names.
pub(crate) fn resolve(
    reader: &Reader,
    py: Python<'_>,
    topic: &Topic,
    text: &str,
) -> PyResult<Option<FieldsAndSignals>> {
    if let Ok(pattern) = Pattern::new(text) {
        let schema = reader.run(py, || Ok(reader.log.own(topic)?.columns(&Select::all())?.schema()))?;
        let short = rovelog::core::internal::topic::short(&topic.name);
        let fields = select::matching_paths(&schema, short, &pattern);
        if !fields.is_empty() {
            return Ok(Some((fields, Vec::new())));
        }
    }
    let error = match Signals::among(&**reader.log, &[topic]).find(text) {
        Ok(signals) => return Ok(Some(fields_and_signals(topic, text, &signals))),
        Err(error) => error,
    };
    // The expression or name is invalid only for this topic. It is valid for another topic of this
    // log, or needs several topics.
    if Signals::new(&**reader.log).find(text).is_ok() {
        let what = format!("{text} also uses topics other than {}", topic.name);
        let raise = ExceptionBuilder::new("FieldNotFound", what);
        let raise = raise.in_format(reader.log.format().id, reader.origin.path());
        return Err(raise.next(format!("compute it for the whole log: log.signals({text:?})")).raise(py));
    }
    // The text is an expression, so the error about its syntax or its signals is more helpful than
    // a list of similar names.
    if text.contains(['(', '+', '-', ' ', '=']) {
        return Err(signal::not_found(reader, py, error));
    }
    Ok(None)
}
