//! Reads the fields of a topic row by row, for lines that are computed from several fields or from
//! single bits of a field.

use rovelog::LogReader;

use crate::ExportError;
use crate::findings::scan;
use crate::plot::{Look, Reducer, Series};
use crate::signal::numeric_fields;

/// Time range and resolution of the plots.
#[derive(Clone, Copy)]
pub(super) struct Span {
    /// Start and end of the plots in nanoseconds of the log's clock.
    pub(super) times: (i64, i64),
    /// Time in nanoseconds of the log's clock that is shown as second 0.
    pub(super) zero: i64,
    /// Width of the plots in pixel columns.
    pub(super) width: usize,
}

/// Calls `each` for each row that has a time, with the time and the values of `fields`. Returns
/// false if the topic lacks one of the fields.
pub(super) fn each_row(
    log: &dyn LogReader,
    topic: &str,
    fields: &[String],
    at: Span,
    each: impl FnMut(i64, &[f64]),
) -> Result<bool, ExportError> {
    let Some(found) = log.topic(topic).filter(|topic| topic.count > 0) else { return Ok(false) };
    let known = numeric_fields(log, found.get())?;
    if !fields.iter().all(|field| known.contains(field)) {
        return Ok(false);
    }
    let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
    let window = (Some(at.times.0), at.times.1.checked_add(1));
    scan::each_row(log, topic, &fields, window, each)?;
    Ok(true)
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
    lanes(log, topic, &fields, fields.iter().map(String::as_str), at, |values, i| values[i] != 0.0)
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
    lanes(log, topic, &[field.to_owned()], names.iter().copied(), at, is_set)
}

/// Returns on/off signals with these names, which are drawn as lanes. `is_on(values, i)` returns
/// whether signal `i` is on if `fields` have these values. Signals that are never on are omitted.
fn lanes<'a>(
    log: &dyn LogReader,
    topic: &str,
    fields: &[String],
    names: impl Iterator<Item = &'a str>,
    at: Span,
    is_on: impl Fn(&[f64], usize) -> bool,
) -> Result<Vec<Series>, ExportError> {
    let mut lines: Vec<_> = names.map(|name| (name, false, Reducer::new(at.times, at.width))).collect();
    each_row(log, topic, fields, at, |time, values| {
        for (i, (_, was_on, reducer)) in lines.iter_mut().enumerate() {
            let is_on = is_on(values, i);
            *was_on |= is_on;
            reducer.push(time, f64::from(u8::from(is_on)));
        }
    })?;
    let lane = |(name, _, reducer): (&str, bool, Reducer)| {
        let mut series = Series::new(name, reducer.points(at.zero));
        series.look = Look::Lane;
        series
    };
    Ok(lines.into_iter().filter(|(_, was_on, _)| *was_on).map(lane).collect())
}
