//! The fields of a topic that a signal can name.

use arrow_schema::DataType;
use rovelog::{Error, LogReader, Select, Topic};

use super::derived::derived;
use crate::leaf::{Leaf, Names, leaves};
use crate::meaning;

/// A field that an expression can name. The field is stored in the log or derived.
pub(super) struct NamedField {
    pub(super) name: String,
    pub(super) unit: Option<String>,
    /// Expression that computes a derived field. `None` for a field that is stored in the log.
    pub(super) expression: Option<String>,
}

/// Returns the fields stored in a topic, followed by the derived fields.
pub(super) fn named_fields(log: &dyn LogReader, topic: &Topic) -> Result<Vec<NamedField>, Error> {
    let fields = numbers(log, topic)?.into_iter().map(|leaf| {
        let unit = leaf.field.metadata().get("unit").map(String::as_str);
        let unit = unit.or_else(|| meaning::unit(log, topic, &leaf.name));
        let unit = unit.filter(|_| leaf.data_type != DataType::Boolean);
        NamedField { unit: unit.map(meaning::written), name: leaf.name, expression: None }
    });
    let mut fields: Vec<_> = fields.collect();
    let names: Vec<&str> = fields.iter().map(|known| &*known.name).collect();
    let derived = derived(log.format().id, &names).into_iter();
    let derived: Vec<_> =
        derived.map(|(name, text)| NamedField { name, unit: None, expression: Some(text) }).collect();
    fields.extend(derived);
    Ok(fields)
}

/// Returns the numeric and boolean columns of a topic, or none if the type of the topic is unknown.
fn numbers(log: &dyn LogReader, topic: &Topic) -> Result<Vec<Leaf>, Error> {
    let topic = log.own(topic)?;
    // The diagnostics of the log already report the unknown type.
    if topic.schema.is_none() {
        return Ok(Vec::new());
    }
    // The time range is empty, so that no records are read. In a remote log, they may not be loaded
    // yet.
    let columns = topic.columns(&Select::all().between(Some(0), Some(0)))?;
    let schema = arrow_array::RecordBatchReader::schema(&columns);
    Ok(leaves(&schema, Names::Bracket).into_iter().skip(1).filter(Leaf::is_number).collect())
}

/// Returns the flat names of the numeric and boolean fields of a topic, in schema order. Returns no
/// names if the type of the topic is unknown.
///
/// # Errors
/// Returns an error if the topic belongs to another log, or its columns cannot be read.
pub fn numeric_fields(log: &dyn LogReader, topic: &Topic) -> Result<Vec<String>, Error> {
    Ok(numbers(log, topic)?.into_iter().map(|leaf| leaf.name).collect())
}

/// Returns the names of the fields that are derived from a topic's fields, such as `q.roll` or
/// `I1`.
///
/// # Errors
/// Returns the errors of [`numeric_fields`].
pub fn derived_fields(log: &dyn LogReader, topic: &Topic) -> Result<Vec<String>, Error> {
    let derived = named_fields(log, topic)?.into_iter().filter(|known| known.expression.is_some());
    Ok(derived.map(|known| known.name).collect())
}

/// VEL fields that are not measured values, such as parts of dates, or that repeat the value of
/// another field without its unit, such as `latitude`.
#[rustfmt::skip]
const NOT_MEASURED: &[&str] = &[
    "ts_ms", "version", "offset", "hour", "minute", "second", "day", "month", "year",
    "latitude", "longitude",
];

/// Returns the [`numeric_fields`] that are measurements. Times, counters, covariances and file
/// offsets are omitted.
///
/// # Errors
/// Returns the errors of [`numeric_fields`].
pub fn measured_fields(log: &dyn LogReader, topic: &Topic) -> Result<Vec<String>, Error> {
    let frames = |field: &str| match log.format().id {
        "vel" => {
            NOT_MEASURED.contains(&field)
                || field.starts_with("quaternion[")
                || field.starts_with("acceleration[")
        }
        "rosbag" => field == "header.seq" || field.ends_with(".header.seq") || field.contains("covariance["),
        _ => false,
    };
    let mut fields = numeric_fields(log, topic)?;
    let last = |field: &str| field.rsplit('.').next().unwrap_or(field).to_owned();
    fields.retain(|field| !last(field).starts_with("timestamp") && !frames(field));
    Ok(fields)
}
