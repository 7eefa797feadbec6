//! Computes statistics of derived fields and expressions.

use rovelog::{FieldType, LogReader, Select, Topic};
use rovelog_export::signal::each;
use rovelog_export::statistics::{Number, Statistics};

use super::section::{Line, Section};
use crate::failure::Failure;
use crate::select::FieldArgs;
use crate::window::Window;

/// Returns the names of all fields in a section, each as a pair of topic and field.
pub(super) fn names(section: &Section) -> Vec<(&str, String)> {
    section.fields.iter().map(|line| (&*line.topic, line.field.clone())).collect()
}

/// Returns a line of statistics for each selected derived field or expression. If the section
/// already contains a line for the field, the field is skipped.
pub(in crate::commands) fn lines(
    fields: &FieldArgs,
    section: &Section,
    log: &dyn LogReader,
    topics: &[&Topic],
    window: Window,
) -> Result<Vec<Line>, Failure> {
    if fields.is_empty() {
        return Ok(Vec::new());
    }
    let mut known = names(section);
    // The section lacks the fields that are not selected, which are needed to suggest names.
    for topic in topics.iter().filter(|topic| topic.count > 0) {
        if let Some(schema) = &topic.schema {
            schema.for_each_leaf(&mut |name, ty| {
                if let FieldType::Scalar(_) = ty {
                    known.push((&topic.name, name.to_owned()));
                }
            });
        }
    }
    let select = Select::all().between(window.start, window.end);
    let mut lines = Vec::new();
    for signal in fields.derived_except(&known, log, topics, true)? {
        let mut sums = Statistics::default();
        each(log, &signal, &select, &mut |_, value| sums.push(Number::Float(value)))?;
        let topic = signal.topics().first().copied().unwrap_or_default().to_owned();
        let (field, unit) = (signal.name_in(&topic).to_owned(), signal.unit().map(str::to_owned));
        lines.push(Line::of(topic, field, unit, &sums));
    }
    Ok(lines)
}
