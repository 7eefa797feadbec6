//! What a text names in a topic, and the options of opening a log.

use std::path::PathBuf;

use arrow_array::RecordBatchReader as _;
use pyo3::prelude::*;
use rovelog::core::layout::TextEncoding;
use rovelog::{Clock, ReadOptions, Select, Topic};
use rovelog_export::signal::{Pattern, Signal, Signals};

use crate::errors::{self, Raise};
use crate::reader::Reader;
use crate::{select, signal, vel};

pub(crate) fn options(
    py: Python<'_>,
    types: Option<PathBuf>,
    max_unpacked: Option<u64>,
    msgs: Option<PathBuf>,
    utc_start: Option<i64>,
    time_base: Option<&str>,
    text_encoding: Option<&str>,
) -> PyResult<ReadOptions> {
    let mut options = vel::declaring(py, types)?;
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
            let what = format!("time_base is not {other:?}");
            return Err(Raise::new("UnsupportedError", what).next("it is \"boot\", or None").raise(py));
        }
    };
    if let Some(name) = text_encoding {
        let Some(encoding) = TextEncoding::named(name) else {
            let what = format!("text_encoding is not the name of a supported encoding: {name:?}");
            return Err(Raise::new("UnsupportedError", what).next("such as \"cp1251\" or \"gbk\"").raise(py));
        };
        options.text_encoding = Some(encoding);
    }
    Ok(options)
}

/// Fields, and signals with the names of their columns: name, then signal.
pub(crate) type Resolved = (Vec<String>, Vec<(String, String)>);

/// Returns what `text` names in a topic.
fn resolved(topic: &Topic, text: &str, signals: &[Signal]) -> Resolved {
    let (mut fields, mut further) = (Vec::new(), Vec::new());
    for signal in signals {
        let name = signal.name_in(&topic.name).to_owned();
        match signal.field() {
            Some((_, field)) if signals.len() > 1 || !text.contains('=') => fields.push(field.to_owned()),
            // `{q.roll,q.yaw}` names two, each of which has a name.
            _ if signals.len() > 1 => further.push((name.clone(), name)),
            _ => further.push((name, text.to_owned())),
        }
    }
    (fields, further)
}

/// Returns what a text means that is not the path of a field of the topic.
pub(crate) fn resolve(
    reader: &Reader,
    py: Python<'_>,
    topic: &Topic,
    text: &str,
) -> PyResult<Option<Resolved>> {
    if let Ok(pattern) = Pattern::new(text) {
        let schema = reader.run(py, || Ok(reader.log.own(topic)?.columns(&Select::all())?.schema()))?;
        let short = rovelog::core::topic::short(&topic.name);
        let fields = select::matching(&schema, short, &pattern);
        if !fields.is_empty() {
            return Ok(Some((fields, Vec::new())));
        }
    }
    let error = match Signals::among(&**reader.log, &[topic]).find(text) {
        Ok(signals) => return Ok(Some(resolved(topic, text, &signals))),
        Err(error) => error,
    };
    if Signals::new(&**reader.log).find(text).is_ok() {
        let raise = Raise::new("FieldNotFound", format!("{text} is not of topic {} alone", topic.name));
        let raise = raise.of(reader.log.format().id, reader.origin.path());
        return Err(raise.next(format!("ask the log for it: log.signals({text:?})")).raise(py));
    }
    if text.contains(['(', '+', '-', ' ', '=']) {
        return Err(signal::missing(reader, py, error));
    }
    Ok(None)
}
