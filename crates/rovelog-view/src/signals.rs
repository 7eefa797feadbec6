//! Responses that contain the values of signals in a time range, reduced to the width of a screen.

use std::sync::Arc;

use rovelog_export::plot::{Overview, Series};
use rovelog_export::signal::{Signal, Signals, numeric_fields};
use serde_json::{Value, json};

use crate::logs::{Opened, limit};
use crate::packed::packed;

/// Maximum number of signals in one request.
const MAX_SIGNALS: usize = 256;

/// Maximum width of a plot in pixel columns.
const MAX_WIDTH: usize = 20_000;

/// Parameters of a request for signals.
pub(crate) struct Wanted {
    /// Signals as pairs of a topic and a field.
    pub(crate) signals: Vec<(String, String)>,
    /// Time range in seconds since the start of the log. `None` selects the whole log.
    pub(crate) span: Option<(f64, f64)>,
    /// Width of the plot in pixels.
    pub(crate) width: usize,
}

/// Returns the values of the requested signals. The header of the response contains their names,
/// units and drawing styles. The arrays are the times in seconds and the values of each signal.
pub(crate) fn parts(opened: &Opened, wanted: &Wanted) -> Result<Vec<u8>, String> {
    if wanted.signals.len() > MAX_SIGNALS {
        return Err(format!("more than {MAX_SIGNALS} signals in one request"));
    }
    let span = wanted.span.map_or(opened.span, |(from, to)| (opened.nanos(from), opened.nanos(to)));
    let width = wanted.width.clamp(1, MAX_WIDTH);
    let signals = wanted.signals.iter().map(|(topic, field)| signal(opened, topic, field));
    let overviews = overviews(opened, &signals.collect::<Result<Vec<_>, String>>()?)?;
    let known = overviews.iter().flatten().map(|overview| &**overview);
    let parts = Overview::parts(&*opened.log, known, span, width, opened.span.0);
    let mut parts = parts.map_err(|error| error.to_string())?.into_iter();
    let found = overviews.into_iter().map(|overview| Some((overview?, parts.next()?)));
    let found: Vec<Option<(Arc<Overview>, Series)>> = found.collect();
    let headers: Vec<Value> = found
        .iter()
        .map(|found| found.as_ref().map_or(Value::Null, |(overview, series)| header(overview, series)))
        .collect();
    let numbers = found.iter().flatten().map(|(_, series)| &series.points);
    let columns = numbers.flat_map(|points| {
        let (times, values): (Vec<f64>, Vec<f64>) = points.iter().copied().unzip();
        [times, values]
    });
    let columns: Vec<Vec<f64>> = columns.collect();
    opened.checked(packed(&json!({ "series": headers }), columns.iter().map(Vec::as_slice)))
}

/// Returns the signal for a field, which is a field of the log or a derived field. The name of the
/// field is not parsed as an expression, because names of fields may look like expressions.
fn signal(opened: &Opened, name: &str, field: &str) -> Result<Signal, String> {
    let plain = || Signal::of(name, field);
    let Some(topic) = opened.log.topic(name) else { return Ok(plain()) };
    let fields = numeric_fields(&*opened.log, topic.get()).map_err(|error| error.to_string())?;
    if fields.iter().any(|known| known == field) {
        return Ok(plain());
    }
    let signals = Signals::among(&*opened.log, &[topic.get()]);
    Ok(signals.one(&format!("{name}.{field}")).unwrap_or_else(|_| plain()))
}

/// Returns the description of a signal in the header of the response.
fn header(overview: &Overview, series: &Series) -> Value {
    let (factor, unit) = overview.prefixed();
    let names: serde_json::Map<String, Value> =
        series.state_names().iter().map(|(value, name)| (value.to_string(), Value::from(*name))).collect();
    json!({
        "name": series.name,
        "unit": series.unit,
        "factor": factor,
        "prefixed": unit,
        "step": series.is_step(),
        "lane": series.is_lane(),
        "names": if names.is_empty() { Value::Null } else { names.into() },
        "count": series.count,
        "points": series.points.len(),
    })
}

/// Returns the overviews of signals. Overviews that are not cached are computed together, by
/// reading the log once.
fn overviews(opened: &Opened, signals: &[Signal]) -> Result<Vec<Option<Arc<Overview>>>, String> {
    // The lock is held while the log is read, so that two requests do not read the same signal.
    let mut known = opened.overviews();
    let of = |known: &[Arc<Overview>], signal: &Signal| {
        known.iter().find(|overview| overview.signal() == signal).map(Arc::clone)
    };
    let missing: Vec<Signal> =
        signals.iter().filter(|signal| of(&known, signal).is_none()).cloned().collect();
    if !missing.is_empty() {
        let made = Overview::read(&*opened.log, &missing).map_err(|error| error.to_string())?;
        known.extend(made.into_iter().flatten().map(Arc::new));
    }
    let found = signals.iter().map(|signal| of(&known, signal)).collect();
    limit(&mut known, signals.len());
    Ok(found)
}
