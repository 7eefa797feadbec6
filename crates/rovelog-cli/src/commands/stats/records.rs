//! Statistics of any log, from its records.

use std::collections::HashMap;

use rovelog::core::parallel::Jobs;
use rovelog::{LogReader, Select, Topic};
use rovelog_export::Loss;
use rovelog_export::statistics::statistics;

use super::section::{Line, Section};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::when::Window;

/// Returns statistics of the log or a window of it, for every number of these topics, in the order
/// of topics and fields; and the records that are left out.
pub(in crate::commands) fn section(
    log: &dyn LogReader,
    topics: &[&Topic],
    window: Window,
    (jobs, progress): (Jobs, &Progress),
) -> Result<(Section, Vec<Loss>), Failure> {
    progress.start(Some(log.info().size));
    let select =
        Select::topics(topics.iter().map(|topic| topic.name.clone())).between(window.start, window.end);
    let mut losses = Vec::new();
    let fields = statistics(log, &select, jobs, &|offset| progress.at(offset), &mut losses)?;
    let mut lines = Vec::new();
    for (topic, fields) in log.topics().iter().zip(&fields) {
        let schema = topic.schema.iter().flat_map(|schema| &schema.fields);
        let units: HashMap<&str, &str> =
            schema.filter_map(|field| Some((&*field.name, field.unit.as_deref()?))).collect();
        for (name, sums) in fields {
            let stuck = sums.stuck();
            let nan = (sums.nan > 0).then(|| format!("{} NaN", sums.nan));
            let remarks = nan.into_iter().chain(stuck.map(|run| format!("stuck in {run} records in a row")));
            let remarks: Vec<_> = remarks.collect();
            lines.push(Line {
                topic: topic.name.clone(),
                field: name.clone(),
                unit: units.get(&**name).map(|unit| (*unit).to_owned()),
                count: sums.count.to_string(),
                min: sums.min,
                max: sums.max,
                mean: sums.mean(),
                std: sums.std(),
                nan: (sums.nan > 0).then(|| sums.nan.to_string()),
                stuck: stuck.map(|run| run.to_string()),
                remark: (!remarks.is_empty()).then(|| remarks.join(", ")),
                ..Line::default()
            });
        }
    }
    Ok((Section { fields: lines, ..Section::default() }, losses))
}
