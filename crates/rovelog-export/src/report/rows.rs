//! Reads fields of a topic row by row, for lines computed from several fields or from single bits.

use arrow_array::Array as _;
use arrow_array::cast::AsArray as _;
use arrow_array::types::Int64Type;
use rovelog::core::select::field_path;
use rovelog::{LogReader, Select};

use crate::ExportError;
use crate::leaf::{Leaf, Names, leaves, numbers};
use crate::plot::{Look, Series, Thin};

/// Time range and resolution for reading.
#[derive(Clone, Copy)]
pub(super) struct Span {
    pub(super) times: (i64, i64),
    pub(super) zero: i64,
    pub(super) width: usize,
}

/// Calls `each` with the time and the field values of each row. Returns `false` if the topic lacks
/// a field.
pub(super) fn each_row(
    log: &dyn LogReader,
    topic: &str,
    fields: &[String],
    at: Span,
    mut each: impl FnMut(i64, &[f64]),
) -> Result<bool, ExportError> {
    let Some(topic) = log.topic(topic).filter(|topic| topic.count > 0) else { return Ok(false) };
    let select = Select::topic(topic.name.clone()).with_fields(fields.iter().map(|field| field_path(field)));
    let columns = topic.columns(&select.between(Some(at.times.0), at.times.1.checked_add(1)))?;
    let schema = arrow_array::RecordBatchReader::schema(&columns);
    let all = leaves(&schema, Names::Bracket);
    let named = |field: &String| all.iter().find(|leaf| leaf.is_number() && leaf.name == *field);
    let found: Option<Vec<&Leaf>> = fields.iter().map(named).collect();
    let Some(found) = found else { return Ok(false) };
    let mut row_values = vec![f64::NAN; found.len()];
    for batch in columns {
        let batch = batch?;
        let bound: Vec<_> = found.iter().map(|leaf| leaf.bind(&batch)).collect();
        let values: Vec<_> = bound.iter().map(|bound| numbers(&bound.array)).collect();
        let times = batch.column(0).as_primitive::<Int64Type>();
        for row in (0..batch.num_rows()).filter(|row| times.is_valid(*row)) {
            for ((to, bound), values) in row_values.iter_mut().zip(&bound).zip(&values) {
                *to = bound.at(row).map_or(f64::NAN, |at| values[at]);
            }
            each(times.value(row), &row_values);
        }
    }
    Ok(true)
}

/// Returns the on/off signals of a topic as lanes. Signals that are never on, or whose names `take`
/// rejects, are omitted.
pub(super) fn flags(
    log: &dyn LogReader,
    topic: &str,
    at: Span,
    take: impl Fn(&str) -> bool,
) -> Result<Vec<Series>, ExportError> {
    let Some(found) = log.topic(topic) else { return Ok(Vec::new()) };
    let fields = crate::signal::numeric_fields(log, found.get())?.into_iter().filter(|field| take(field));
    let fields: Vec<String> = fields.collect();
    let mut lines: Vec<(bool, Thin)> =
        fields.iter().map(|_| (false, Thin::new(at.times, at.width))).collect();
    each_row(log, topic, &fields, at, |time, values| {
        for ((on, thin), value) in lines.iter_mut().zip(values) {
            *on |= *value != 0.0;
            thin.push(time, f64::from(u8::from(*value != 0.0)));
        }
    })?;
    let found = fields.into_iter().zip(lines).filter(|(_, (on, _))| *on);
    Ok(found.map(|(field, (_, thin))| lane(field, &thin, at)).collect())
}

/// Returns the bits of an integer field as lanes named by `names`. Bits that are never set are
/// omitted.
pub(super) fn bits(
    log: &dyn LogReader,
    (topic, field): (&str, &str),
    names: &[&str],
    at: Span,
) -> Result<Vec<Series>, ExportError> {
    let mut lines: Vec<(bool, Thin)> = names.iter().map(|_| (false, Thin::new(at.times, at.width))).collect();
    each_row(log, topic, &[field.to_owned()], at, |time, values| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small integers")]
        let word = values[0] as u64;
        for (i, (on, thin)) in lines.iter_mut().enumerate() {
            let set = word >> i & 1 == 1;
            *on |= set;
            thin.push(time, f64::from(u8::from(set)));
        }
    })?;
    let found = names.iter().zip(lines).filter(|(_, (on, _))| *on);
    Ok(found.map(|(name, (_, thin))| lane((*name).to_owned(), &thin, at)).collect())
}

fn lane(name: String, thin: &Thin, at: Span) -> Series {
    let mut series = Series::new(name, thin.points(at.zero));
    series.look = Look::Lane;
    series
}
