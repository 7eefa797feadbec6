//! Statistics of derived fields and expressions.

use rovelog::{LogReader, Select, Topic};
use rovelog_export::signal::each;
use rovelog_export::statistics::{Number, Statistics};

use super::section::{Line, Section};
use crate::failure::Failure;
use crate::select::FieldArgs;
use crate::when::Window;

/// Returns the fields of a section, each with its topic.
pub(super) fn names(section: &Section) -> Vec<(&str, String)> {
    section.fields.iter().map(|line| (&*line.topic, line.field.clone())).collect()
}

/// Returns a line for each selected signal that is no field of the section.
pub(in crate::commands) fn lines(
    fields: &FieldArgs,
    section: &Section,
    log: &dyn LogReader,
    topics: &[&Topic],
    window: Window,
) -> Result<Vec<Line>, Failure> {
    let select = Select::all().between(window.start, window.end);
    let mut lines = Vec::new();
    for signal in fields.derived_besides(&names(section), log, topics, true)? {
        let mut sums = Statistics::default();
        each(log, &signal, &select, &mut |_, value| sums.push(Number::Float(value)))?;
        let topic = signal.topics().first().copied().unwrap_or_default().to_owned();
        let (field, unit) = (signal.name_in(&topic).to_owned(), signal.unit().map(str::to_owned));
        lines.push(Line::of(topic, field, unit, &sums));
    }
    Ok(lines)
}
