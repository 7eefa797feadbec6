//! Reads the lines of the plots: signals, and lines that are computed row by row from several fields
//! or from single bits of a field.

use rovelog::LogReader;

use crate::ExportError;
use crate::findings::scan::each_row;
use crate::plot::{Look, Reducer, Series, read};
use crate::signal::{Signal, numeric_fields};

/// Time range and resolution of the plots.
#[derive(Clone, Copy)]
pub(super) struct Span {
    /// Start and end of the plots in nanoseconds of the log's clock. The start is shown as second 0.
    pub(super) times: (i64, i64),
    /// Width of the plots in pixel columns.
    pub(super) width: usize,
}

impl Span {
    /// Returns the time window in which rows are read: the start and the exclusive end.
    pub(super) fn window(self) -> (Option<i64>, Option<i64>) {
        (Some(self.times.0), self.times.1.checked_add(1))
    }
}

/// Reads the signals. A signal that is not in the log is skipped.
pub(super) fn series(log: &dyn LogReader, signals: &[Signal], at: Span) -> Result<Vec<Series>, ExportError> {
    Ok(read(log, signals, at.times, at.width, at.times.0)?.into_iter().flatten().collect())
}

/// Removes the topic from the names of lines, because the title of the panel already has the topic.
pub(super) fn short(mut series: Vec<Series>) -> Vec<Series> {
    for series in &mut series {
        if let Some((_, field)) = series.name.split_once('.') {
            series.name = field.to_owned();
        }
    }
    series
}

/// Returns the on/off signals of a topic, which are drawn as lanes. `take` is called with the name
/// of each field and returns whether the field is used. Signals that are never on are omitted.
pub(super) fn flags(
    log: &dyn LogReader,
    topic: &str,
    at: Span,
    take: impl Fn(&str) -> bool,
) -> Result<Vec<Series>, ExportError> {
    let Some(found) = log.topic(topic) else { return Ok(Vec::new()) };
    let fields = numeric_fields(log, found.get())?.into_iter().filter(|field| take(field));
    let fields: Vec<String> = fields.collect();
    let names: Vec<&str> = fields.iter().map(String::as_str).collect();
    lanes(log, (topic, &names), &names, at, |values, i| values[i] != 0.0)
}

/// Returns the bits of an integer field as on/off signals, which are drawn as lanes. `names` are
/// the names of the bits, starting with the lowest bit. Bits that are never set are omitted.
pub(super) fn bits(
    log: &dyn LogReader,
    (topic, field): (&str, &str),
    names: &[&str],
    at: Span,
) -> Result<Vec<Series>, ExportError> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small integers")]
    let is_set = |values: &[f64], bit: usize| values[0] as u64 >> bit & 1 == 1;
    lanes(log, (topic, &[field]), names, at, is_set)
}

/// Returns on/off signals with these names, which are drawn as lanes. `is_on(values, i)` returns
/// whether signal `i` is on if `fields` have these values. Signals that are never on are omitted.
fn lanes(
    log: &dyn LogReader,
    (topic, fields): (&str, &[&str]),
    names: &[&str],
    at: Span,
    is_on: impl Fn(&[f64], usize) -> bool,
) -> Result<Vec<Series>, ExportError> {
    let mut was_on = vec![false; names.len()];
    let mut reducers: Vec<_> = names.iter().map(|_| Reducer::new(at.times, at.width)).collect();
    each_row(log, topic, fields, at.window(), |time, values| {
        for (i, reducer) in reducers.iter_mut().enumerate() {
            let is_on = is_on(values, i);
            was_on[i] |= is_on;
            reducer.push(time, f64::from(u8::from(is_on)));
        }
    })?;
    let mut lanes = Vec::new();
    for ((name, reducer), _) in names.iter().zip(reducers).zip(was_on).filter(|(_, was_on)| *was_on) {
        let mut series = Series::new(*name, reducer.points(at.times.0));
        series.look = Look::Lane;
        lanes.push(series);
    }
    Ok(lanes)
}
