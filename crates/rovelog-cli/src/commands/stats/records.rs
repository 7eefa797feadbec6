//! Computes statistics of the records of a log in any format.

use std::collections::HashMap;

use rovelog::core::internal::parallel::Jobs;
use rovelog::{LogReader, Select, Topic};
use rovelog_export::statistics::{LogStatistics, statistics};

use super::section::{Line, Section};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::select::FieldArgs;
use crate::window::Window;

/// Computes statistics for the numeric fields of `topics` within the time window. The lines are
/// ordered by topic and field. Fields that `fields` does not select may be missing, because they
/// are not read.
pub(in crate::commands) fn section(
    log: &dyn LogReader,
    topics: &[&Topic],
    fields: &FieldArgs,
    window: Window,
    jobs: Jobs,
    progress: &Progress,
) -> Result<(Section, LogStatistics), Failure> {
    progress.start(Some(log.info().size));
    let mut select =
        Select::topics(topics.iter().map(|topic| topic.name.clone())).between(window.start, window.end);
    if let Some(paths) = fields.paths(topics) {
        select = select.with_fields(paths);
    }
    let mut result = statistics(log, &select, jobs, &|offset| progress.at(offset))?;
    let fields = std::mem::take(&mut result.fields);
    let mut lines = Vec::with_capacity(fields.iter().map(Vec::len).sum());
    for (topic, fields) in log.topics().iter().zip(fields) {
        let schema = topic.schema.iter().flat_map(|schema| &schema.fields);
        let units: HashMap<&str, &str> =
            schema.filter_map(|field| Some((&*field.name, field.unit.as_deref()?))).collect();
        for (name, sums) in fields {
            let unit = units.get(&*name).map(|unit| (*unit).to_owned());
            lines.push(Line::of(topic.name.clone(), name, unit, &sums));
        }
    }
    Ok((Section { fields: lines, ..Section::default() }, result))
}
