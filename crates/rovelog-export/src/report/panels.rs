//! Selects the plots of a report: Flight Review's for PX4 logs, power and currents for power logs,
//! and otherwise the first fields of the busiest topics.

use rovelog::{AnyLog, LogReader, Topic};

use super::rows::Span;
use super::{power, px4};
use crate::ExportError;
use crate::plot::{Panel, Series, read};
use crate::signal::{Signal, measured_fields};

/// Limits for other logs: number of panels, lines per panel, and signals per topic.
const MOST: usize = 12;
const LINES: usize = 6;
const SIGNALS: usize = 32;

/// Suffixes of fields that are not plotted: metadata, and positions, which the track shows better.
const ABOUT: &[&str] = &[
    "seq",
    "version",
    "source",
    "width",
    "step",
    "is_bigendian",
    "is_compressed",
    "hour",
    "minute",
    "second",
    "day",
    "month",
    "year",
    "latitude",
    "longitude",
];

/// Returns the panels for a known kind of log, and otherwise those of the busiest topics. `redact`
/// omits positions.
pub(super) fn panels(log: &AnyLog, at: Span, redact: bool) -> Result<Vec<Panel>, ExportError> {
    let mut panels = match log {
        AnyLog::Ulog(_) => px4::panels(&**log, at, redact)?,
        AnyLog::Rld(reader) => power::panels(reader, at)?,
        _ => Vec::new(),
    };
    if panels.is_empty() || !matches!(log, AnyLog::Ulog(_)) {
        panels.extend(any(&**log, at, redact)?);
    }
    Ok(panels)
}

/// Returns panels of the busiest topics, one for each unit. Fields without a unit are grouped by
/// their parent struct.
fn any(log: &dyn LogReader, at: Span, redact: bool) -> Result<Vec<Panel>, ExportError> {
    let mut panels = Vec::new();
    let mut topics: Vec<_> = log.topics().iter().filter(|topic| topic.count > 1).collect();
    topics.sort_by_key(|topic| (std::cmp::Reverse(topic.count), topic.id));
    for topic in topics.into_iter().take(MOST) {
        let fields = measured_fields(log, topic)?.into_iter();
        let fields = fields.filter(|field| measures(topic, field) && !(redact && is_place(field)));
        let signal = |field: String| Signal::of(&topic.name, &field);
        let signals: Vec<_> = fields.take(SIGNALS).map(signal).collect();
        let mut groups: Vec<(String, Panel)> = Vec::new();
        for mut series in short(series(log, &signals, at)?) {
            if series.range().is_none() {
                continue;
            }
            let part = part(&series.name).to_owned();
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
                Some((_, panel)) if panel.series.len() < LINES => panel.series.push(series),
                Some(_) => {}
                None => groups.push((group, Panel::new(title, vec![series]))),
            }
        }
        panels.extend(groups.into_iter().map(|(_, panel)| panel));
    }
    // Constant signals are shown only if nothing else could be.
    if panels.iter().any(|panel| !panel.series.iter().all(is_flat)) {
        panels.retain(|panel| !panel.series.iter().all(is_flat));
    }
    // Measurements come before on/off signals. The sort is stable.
    panels.sort_by_key(Panel::is_lanes);
    panels.truncate(MOST);
    Ok(panels)
}

/// Returns whether a field holds a measurement and is stored in the log, not derived.
fn measures(topic: &Topic, field: &str) -> bool {
    let path = |name: &str| name.split(['.', '[']).next().map(str::to_owned);
    let own = topic.schema.as_ref().is_none_or(|schema| {
        schema.fields.iter().any(|of_schema| path(field).as_deref() == Some(&of_schema.name))
    });
    let last = field.rsplit('.').next().unwrap_or(field);
    let aside = ["timestamp", "covariance", "unused"].iter().any(|word| last.contains(word));
    own && !aside && !ABOUT.contains(&last)
}

/// Returns the parent of a field: `pose.position` for `pose.position.x`, `q` for `q[0]`.
fn part(field: &str) -> &str {
    field.rfind(['.', '[']).map_or("", |end| &field[..end])
}

fn is_flat(series: &Series) -> bool {
    series.range().is_none_or(|(low, high)| low >= high)
}

/// Returns whether a field reveals the position of the vehicle.
fn is_place(field: &str) -> bool {
    ["latitude", "longitude", "altitude", "height", "position.", "translation."]
        .iter()
        .any(|part| field.contains(part))
}

/// Reads the signals that exist.
fn series(log: &dyn LogReader, signals: &[Signal], at: Span) -> Result<Vec<Series>, ExportError> {
    Ok(read(log, signals, at.times, at.width, at.zero)?.into_iter().flatten().collect())
}

/// Removes the topic from line names, because the panel title has it.
fn short(mut series: Vec<Series>) -> Vec<Series> {
    for series in &mut series {
        if let Some((_, field)) = series.name.split_once('.') {
            series.name = field.to_owned();
        }
    }
    series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parent_of_a_field_is_the_part_before_its_last_name_or_index() {
        assert_eq!(["pose.position.x", "q[3]", "speed"].map(part), ["pose.position", "q", ""]);
    }
}
