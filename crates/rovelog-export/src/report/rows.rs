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
    let mut lines: Vec<(bool, Reducer)> =
        fields.iter().map(|_| (false, Reducer::new(at.times, at.width))).collect();
    each_row(log, topic, &fields, at, |time, values| {
        for ((on, reducer), value) in lines.iter_mut().zip(values) {
            *on |= *value != 0.0;
            reducer.push(time, f64::from(u8::from(*value != 0.0)));
        }
    })?;
    let found = fields.into_iter().zip(lines).filter(|(_, (on, _))| *on);
    Ok(found.map(|(field, (_, reducer))| lane(field, &reducer, at)).collect())
}

/// Returns the bits of an integer field as on/off signals, which are drawn as lanes. `names` are
/// the names of the bits, starting with the lowest bit. Bits that are never set are omitted.
pub(super) fn bits(
    log: &dyn LogReader,
    (topic, field): (&str, &str),
    names: &[&str],
    at: Span,
) -> Result<Vec<Series>, ExportError> {
    let mut lines: Vec<(bool, Reducer)> =
        names.iter().map(|_| (false, Reducer::new(at.times, at.width))).collect();
    each_row(log, topic, &[field.to_owned()], at, |time, values| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small integers")]
        let word = values[0] as u64;
        for (i, (on, reducer)) in lines.iter_mut().enumerate() {
            let set = word >> i & 1 == 1;
            *on |= set;
            reducer.push(time, f64::from(u8::from(set)));
        }
    })?;
    let found = names.iter().zip(lines).filter(|(_, (on, _))| *on);
    Ok(found.map(|(name, (_, reducer))| lane((*name).to_owned(), &reducer, at)).collect())
}

/// Creates an on/off signal, which is drawn as a lane, from reduced values.
fn lane(name: String, reducer: &Reducer, at: Span) -> Series {
    let mut series = Series::new(name, reducer.points(at.zero));
    series.look = Look::Lane;
    series
}
