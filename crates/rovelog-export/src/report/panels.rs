//! Selects the plots of a report.
//!
//! - PX4 logs: the plots of Flight Review, PX4's web service for logs.
//! - RocketLogger logs: power and currents, followed by the measurements.
//! - Other logs: the measurements of the topics with the most records.

use rovelog::{AnyLog, LogReader, Topic};

use super::rows::{Span, series, short};
use super::{power, px4};
use crate::ExportError;
use crate::plot::{Panel, Series};
use crate::signal::{Signal, measured_fields};

/// Maximum number of panels for a log without predefined plots.
const MAX_PANELS: usize = 12;
/// Maximum number of lines in a panel.
const MAX_LINES: usize = 6;
/// Maximum number of signals that are read from one topic.
const MAX_SIGNALS: usize = 32;

/// Names of fields that are not plotted. They are metadata, or positions, which are easier to read
/// in the map.
#[rustfmt::skip]
const NOT_PLOTTED: &[&str] = &[
    "stamp", "seq", "return_mode", "product", "version", "source", "width", "step",
    "is_bigendian", "is_compressed", "hour", "minute", "second", "day", "month", "year",
    "latitude", "longitude",
];

/// Returns the panels of a report. If `redact` is true, positions are omitted.
pub(super) fn panels(log: &AnyLog, at: Span, redact: bool) -> Result<Vec<Panel>, ExportError> {
    let mut panels = match log {
        AnyLog::Ulog(_) => px4::panels(&**log, at, redact)?,
        AnyLog::Rld(reader) => power::panels(reader, at)?,
        _ => Vec::new(),
    };
    if panels.is_empty() || !matches!(log, AnyLog::Ulog(_)) {
        panels.extend(busiest_topics(&**log, at, redact)?);
    }
    Ok(panels)
}

/// Returns panels for the topics with the most records. The fields of a topic are grouped by unit.
/// Fields without a unit are grouped by the struct or array that contains them.
fn busiest_topics(log: &dyn LogReader, at: Span, redact: bool) -> Result<Vec<Panel>, ExportError> {
    let mut panels = Vec::new();
    let mut topics: Vec<_> = log.topics().iter().filter(|topic| topic.count > 1).collect();
    topics.sort_by_key(|topic| (std::cmp::Reverse(topic.count), topic.id));
    for topic in topics.into_iter().take(MAX_PANELS) {
        let fields = measured_fields(log, topic)?.into_iter();
        let fields = fields
            .filter(|field| is_stored_measurement(topic, field) && !(redact && reveals_position(field)));
        let signal = |field: String| Signal::of(&topic.name, &field);
        // A topic may have thousands of fields, for example the elements of a point cloud.
        let signals: Vec<_> = fields.take(MAX_SIGNALS).map(signal).collect();
        let mut groups: Vec<(String, Panel)> = Vec::new();
        for mut series in short(series(log, &signals, at)?) {
            if series.range().is_none() {
                continue;
            }
            let part = parent(&series.name).to_owned();
            let (group, title) = match &series.unit {
                Some(unit) => (format!("[{unit}]"), topic.name.clone()),
                None => (part.clone(), format!("{} {part}", topic.name).trim_end().to_owned()),
            };
            if series.unit.is_none() && !part.is_empty() {
                let dot = series.name[part.len()..].starts_with('.');
                series.name.drain(..part.len() + usize::from(dot));
            }
            let group = if series.is_lane() { "lanes".to_owned() } else { group };
            match groups.iter_mut().find(|(known, _)| *known == group) {
                Some((_, panel)) if panel.series.len() < MAX_LINES => panel.series.push(series),
                Some(_) => {}
                None => groups.push((group, Panel::new(title, vec![series]))),
            }
        }
        panels.extend(groups.into_iter().map(|(_, panel)| panel));
    }
    // Panels in which all signals are constant are shown only if no signal changes.
    if panels.iter().any(|panel| !panel.series.iter().all(is_flat)) {
        panels.retain(|panel| !panel.series.iter().all(is_flat));
    }
    // Measurements come before on/off signals. The sort is stable, so panels of the same kind stay
    // in their order.
    panels.sort_by_key(Panel::is_lanes);
    panels.truncate(MAX_PANELS);
    Ok(panels)
}

/// Returns whether a field is a measurement that is stored in the log. Derived fields are not
/// stored.
pub fn is_stored_measurement(topic: &Topic, field: &str) -> bool {
    let path = |name: &str| name.split(['.', '[']).next().map(str::to_owned);
    let own = topic.schema.as_ref().is_none_or(|schema| {
        schema.fields.iter().any(|of_schema| path(field).as_deref() == Some(&of_schema.name))
    });
    let last = field.rsplit('.').next().unwrap_or(field);
    let aside = ["timestamp", "covariance", "unused"].iter().any(|word| last.contains(word));
    own && !aside && !NOT_PLOTTED.contains(&last)
}

/// Returns the struct or array that contains a field, such as `pose.position` for
/// `pose.position.x`, and `q` for `q[0]`.
pub fn parent(field: &str) -> &str {
    field.rfind(['.', '[']).map_or("", |end| &field[..end])
}

/// Returns whether all values of a series are equal.
fn is_flat(series: &Series) -> bool {
    series.range().is_none_or(|(low, high)| low >= high)
}

/// Returns whether a field reveals the position of the vehicle.
fn reveals_position(field: &str) -> bool {
    ["latitude", "longitude", "altitude", "height", "position.", "translation."]
        .iter()
        .any(|part| field.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parent_of_a_field_is_the_part_before_its_last_name_or_index() {
        assert_eq!(["pose.position.x", "q[3]", "speed"].map(parent), ["pose.position", "q", ""]);
    }
}
