//! Responses that contain the values of signals in a time range: reduced to the width of a screen,
//! or as measures such as the mean.

use std::collections::HashSet;
use std::collections::hash_map::{Entry, HashMap};
use std::sync::Arc;

use rovelog::core::internal::cancel;
use rovelog::{Select, TopicId};
use rovelog_export::plot::{self, Measures, Overview, Picture, Series, Theme, Wanted as Argument};
use rovelog_export::signal::{NoSignal, Signal, Signals, numeric_fields};
use rovelog_export::statistics::Number;
use serde_json::{Value, json};

use crate::packed::packed;
use crate::{Explore, limit};

/// Maximum number of signals in one request.
const MAX_SIGNALS: usize = 256;

/// Maximum width of a plot in pixel columns.
const MAX_WIDTH: usize = 20_000;

/// Number of places of a log that are read for a preview.
const PREVIEW_PLACES: i64 = 500;

/// Approximate number of records that are read at each of these places.
const PREVIEW_RECORDS: i64 = 64;

/// Parameters of a request for signals.
pub(crate) struct Wanted {
    /// Signals as pairs of a topic and a field. If the topic is empty, the field is an expression.
    pub(crate) signals: Vec<(String, String)>,
    /// Time range in seconds since the start of the log. `None` selects the whole log.
    pub(crate) span: Option<(f64, f64)>,
    /// Width of the plot in pixels.
    pub(crate) width: usize,
    /// True if a preview is wanted, for which only a few records are read.
    pub(crate) is_preview: bool,
}

/// Returns the values of the requested signals. The header of the response contains their names,
/// units and drawing styles. The arrays are the times in seconds and the values of each signal.
pub(crate) fn parts(explore: &Explore, wanted: &Wanted) -> Result<Vec<u8>, String> {
    let span = span(explore, wanted);
    let width = wanted.width.clamp(1, MAX_WIDTH);
    let named = named(explore, wanted)?;
    let signals: Vec<Signal> = named.iter().flatten().cloned().collect();
    let overviews = if wanted.is_preview {
        let sample = Overview::sample(&*explore.log, &signals, &samples(explore, wanted));
        sample.map_err(|error| error.to_string())?.into_iter().map(|found| found.map(Arc::new)).collect()
    } else {
        overviews(explore, &signals)?
    };
    let known = overviews.iter().flatten().map(|overview| &**overview);
    let parts = Overview::parts(&*explore.log, known, span, width, explore.span.0);
    let mut parts = parts.map_err(|error| error.to_string())?.into_iter();
    let found = overviews.into_iter().map(|overview| Some((overview?, parts.next()?)));
    let found: Vec<Option<(Arc<Overview>, Series)>> = found.collect();
    let mut described = found
        .iter()
        .map(|found| found.as_ref().map_or(Value::Null, |(overview, series)| header(overview, series)));
    let headers = with_errors(&named, || described.next());
    let numbers = found.iter().flatten().map(|(_, series)| &series.points);
    let columns = numbers.flat_map(|points| {
        let (times, values): (Vec<f64>, Vec<f64>) = points.iter().copied().unzip();
        [times, values]
    });
    let columns: Vec<Vec<f64>> = columns.collect();
    Ok(packed(&json!({ "series": headers }), columns.iter().map(Vec::as_slice)))
}

/// Returns what must be read of the log for the values of the requested signals.
pub(crate) fn selections(explore: &Explore, wanted: &Wanted) -> Result<Vec<Select>, String> {
    if wanted.is_preview {
        return Ok(samples(explore, wanted));
    }
    let named = named(explore, wanted)?;
    let topics = named.iter().flatten().flat_map(Signal::topics);
    Ok(vec![Select::topics(topics)])
}

/// Returns selections of a few records each, at places that are spread evenly over the requested
/// time range.
fn samples(explore: &Explore, wanted: &Wanted) -> Vec<Select> {
    let (first, last) = explore.span;
    let (start, end) = span(explore, wanted);
    let (start, end) = (start.clamp(first, last), end.clamp(first, last));
    let step = (end.saturating_sub(start) / PREVIEW_PLACES).max(1);
    let records = i64::try_from(explore.log.info().records).unwrap_or(i64::MAX).max(1);
    let period = last.saturating_sub(first) / records;
    let length = period.saturating_mul(PREVIEW_RECORDS).clamp(1, step);
    let sample = |place| {
        let from = start.saturating_add(place * step);
        Select::all().between(Some(from), Some(from.saturating_add(length)))
    };
    (0..PREVIEW_PLACES).map(sample).collect()
}

/// Returns the measures of the requested signals in a time range, as JSON. Each quantity is an
/// array of the exact number and its text with a unit.
pub(crate) fn measures(explore: &Explore, wanted: &Wanted) -> Result<Value, String> {
    let named = named(explore, wanted)?;
    let signals: Vec<Signal> = named.iter().flatten().cloned().collect();
    let found = plot::measure(&*explore.log, &signals, span(explore, wanted));
    let mut found = found.map_err(|error| error.to_string())?.into_iter();
    let describe = |of: Measures| {
        let both =
            |value: Option<f64>| value.filter(|value| value.is_finite()).map(|v| json!([v, of.text(v)]));
        let number = |number: Option<Number>| both(number.map(Number::as_f64));
        json!({
            "count": of.statistics.count,
            "start": both(of.at_start),
            "end": both(of.at_end),
            "mean": both(of.statistics.mean()),
            "min": number(of.statistics.min),
            "max": number(of.statistics.max),
            "integral": of.integral().map(|(value, text)| json!([value, text])),
        })
    };
    let series = with_errors(&named, || found.next().map(|found| found.map_or(Value::Null, describe)));
    Ok(json!({ "series": series }))
}

/// Returns a spectrum such as `psd(gyro_rad[0])` in a time range as SVG. It is the first of the
/// requested signals.
pub(crate) fn spectrum(explore: &Explore, wanted: &Wanted, theme: Theme) -> Result<Vec<u8>, String> {
    let (span, width) = (span(explore, wanted), wanted.width.clamp(300, MAX_WIDTH));
    let (_, text) = wanted.signals.first().ok_or("no signal")?;
    let wanted = Argument::new(&Signals::new(&*explore.log), text).map_err(|error| error.to_string())?;
    let plot = plot::draw(&*explore.log, &[wanted], span, width).map_err(|error| error.to_string())?;
    if plot.panels.is_empty() {
        return Err("the signal has too few samples in this time range for a spectrum".to_owned());
    }
    let width = u32::try_from(width).unwrap_or(u32::MAX);
    Ok(plot::svg(&plot, &Picture { width, height: None, dpi: 96, theme }).into_bytes())
}

/// Returns an array with the error of each signal that has one, and the next value of `next` for
/// each other signal.
fn with_errors(named: &[Result<Signal, String>], mut next: impl FnMut() -> Option<Value>) -> Vec<Value> {
    let value = |signal: &Result<Signal, String>| match signal {
        Ok(_) => next().unwrap_or_default(),
        Err(error) => json!({ "error": error }),
    };
    named.iter().map(value).collect()
}

/// Returns the requested time range in nanoseconds of the log's clock.
fn span(explore: &Explore, wanted: &Wanted) -> (i64, i64) {
    wanted.span.map_or(explore.span, |(from, to)| (explore.nanos(from), explore.nanos(to)))
}

/// Returns the requested signals. A signal is an error if it is an expression that is invalid for
/// this log.
fn named(explore: &Explore, wanted: &Wanted) -> Result<Vec<Result<Signal, String>>, String> {
    if wanted.signals.len() > MAX_SIGNALS {
        return Err(format!("more than {MAX_SIGNALS} signals in one request"));
    }
    let mut known = HashMap::new();
    let signals = wanted.signals.iter().map(|(topic, field)| {
        if topic.is_empty() {
            let error =
                |error: NoSignal| format!("{error}; {}", error.next).trim_end_matches("; ").to_owned();
            return Ok(Signals::new(&*explore.log).one(field).map_err(error));
        }
        signal(explore, topic, field, &mut known).map(Ok)
    });
    signals.collect()
}

/// Returns the signal for a field, which is a field of the log or a derived field. The name of the
/// field is not parsed as an expression, because names of fields may look like expressions.
///
/// `known` has the fields of the topics of earlier signals. A topic may have tens of thousands of
/// fields, so they are not listed again for each signal.
fn signal(
    explore: &Explore,
    name: &str,
    field: &str,
    known: &mut HashMap<TopicId, HashSet<String>>,
) -> Result<Signal, String> {
    let plain = || Signal::of(name, field);
    let Some(topic) = explore.log.topic(name) else { return Ok(plain()) };
    let fields = match known.entry(topic.id) {
        Entry::Occupied(fields) => fields.into_mut(),
        Entry::Vacant(entry) => {
            let fields = numeric_fields(&*explore.log, topic.get()).map_err(|error| error.to_string())?;
            entry.insert(fields.into_iter().collect())
        }
    };
    if fields.contains(field) {
        return Ok(plain());
    }
    let signals = Signals::among(&*explore.log, &[topic.get()]);
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
fn overviews(explore: &Explore, signals: &[Signal]) -> Result<Vec<Option<Arc<Overview>>>, String> {
    // The lock is held while the log is read, so that two requests do not read the same signal.
    let mut known = explore.overviews();
    let of = |known: &[Arc<Overview>], signal: &Signal| {
        known.iter().find(|overview| overview.signal() == signal).map(Arc::clone)
    };
    let missing: Vec<Signal> =
        signals.iter().filter(|signal| of(&known, signal).is_none()).cloned().collect();
    if !missing.is_empty() {
        // The request may have been canceled while it waited for the lock.
        cancel::check().map_err(|error| error.to_string())?;
        // Once started, the overviews are completed and cached, because the next request of a page
        // that scrolls needs them, too.
        let made = cancel::with_flag(None, || Overview::read(&*explore.log, &missing));
        let made = made.map_err(|error| error.to_string())?;
        known.extend(made.into_iter().flatten().map(Arc::new));
    }
    let found = signals.iter().map(|signal| of(&known, signal)).collect();
    limit(&mut known, signals.len());
    Ok(found)
}
