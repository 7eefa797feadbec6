//! Compares the values of two logs by statistics of the signals that exist in both logs.

use std::collections::HashMap;
use std::path::Path;

use rovelog::AnyLog;
use rovelog::core::internal::parallel::Jobs;
use rovelog_export::Loss;
use rovelog_export::statistics::{Number, short};
use serde::Serialize;

use super::{Row, both};
use crate::commands::stats::{Line, derived_lines, section};
use crate::failure::Failure;
use crate::machine::Count;
use crate::output::Out;
use crate::progress::Progress;
use crate::select::{FieldArgs, TopicArgs};
use crate::table::Table;
use crate::window::Window;

/// Statistics of a signal in both logs.
#[derive(Serialize)]
pub(super) struct Pair {
    topic: String,
    field: String,
    unit: Option<String>,
    a: Values,
    b: Values,
}

/// Statistics of a signal in one log. NaN values are not included.
#[derive(Serialize)]
struct Values {
    count: Count,
    min: Option<Number>,
    max: Option<Number>,
    mean: Option<f64>,
    std: Option<f64>,
}

impl From<Line> for Values {
    fn from(Line { count, min, max, mean, std, .. }: Line) -> Self {
        Self { count, min, max, mean, std }
    }
}

/// Selection of what to compare.
pub(super) struct Chosen<'a> {
    /// True to ignore different numbers of records in a topic if its rates agree.
    pub(super) ignore_counts: bool,
    /// True to ignore parameters that a vehicle changes by itself, such as calibration and flight
    /// counters.
    pub(super) ignore_calibration: bool,
    /// True to compare the values of all signals that both logs have.
    pub(super) stats: bool,
    pub(super) topics: &'a TopicArgs,
    /// Fields and expressions to compare. If empty, all fields that exist in both logs are
    /// compared.
    pub(super) fields: &'a FieldArgs,
    pub(super) jobs: Jobs,
    pub(super) progress: &'a Progress,
}

/// Computes the statistics of the selected signals that exist in both logs, in the order of log A.
/// Each log is given as a pair of its path and its reader. Also returns the records that cannot be
/// decoded and are missing in the statistics.
pub(super) fn pairs(
    (path_a, a): (&Path, &AnyLog),
    (path_b, b): (&Path, &AnyLog),
    chosen: &Chosen<'_>,
) -> Result<(Vec<Pair>, Vec<Loss>), Failure> {
    let mut losses = Vec::new();
    let a = lines(a, chosen, &mut losses).map_err(|failure| failure.at(path_a))?;
    let b = lines(b, chosen, &mut losses).map_err(|failure| failure.at(path_b))?;
    let key = |line: &Line| (line.topic.clone(), line.field.clone());
    let mut b: HashMap<_, _> = b.into_iter().map(|line| (key(&line), line)).collect();
    let common = a.into_iter().filter_map(|a| b.remove(&key(&a)).map(|b| (a, b)));
    let pairs = common.map(|(a, b)| Pair {
        topic: a.topic.clone(),
        field: a.field.clone(),
        unit: a.unit.clone().or_else(|| b.unit.clone()),
        a: a.into(),
        b: b.into(),
    });
    Ok((pairs.collect(), losses))
}

/// Computes the statistics of the selected signals in one log. Fields come first in the result,
/// followed by derived fields and expressions.
fn lines(log: &AnyLog, chosen: &Chosen<'_>, losses: &mut Vec<Loss>) -> Result<Vec<Line>, Failure> {
    let (fields, window) = (chosen.fields, Window::default());
    let topics: Vec<_> = log.topics().iter().filter(|topic| chosen.topics.selects(topic)).collect();
    let read: Vec<_> =
        topics.iter().copied().filter(|topic| fields.selected_leaves(topic).is_some()).collect();
    let (mut section, result) = section(&**log, &read, fields, window, chosen.jobs, chosen.progress)?;
    losses.extend(result.losses);
    let derived = derived_lines(fields, &section, &**log, &topics, window)?;
    section.fields.retain(|line| fields.selects(&line.topic, &line.field));
    section.fields.extend(derived);
    Ok(section.fields)
}

/// Prints the statistics as a table. If `all` is true, the table contains all signals. Otherwise it
/// contains only the signals that differ.
pub(super) fn text(out: &mut Out, pairs: &[Pair], all: bool) -> Result<(), Failure> {
    let mut table = Table::default().left(["SIGNAL", "UNIT", "COUNT", "MIN", "MAX", "MEAN", "STD"]);
    for pair in pairs.iter().filter(|pair| all || pair.a.cells() != pair.b.cells()) {
        let extreme = |value: Option<Number>| value.map_or_else(|| "-".to_owned(), Number::short);
        let float = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| short(Some(value)));
        let compared = |text: &dyn Fn(&Values) -> String| both(Some(text(&pair.a)), Some(text(&pair.b)));
        table.row([
            format!("{}.{}", pair.topic, pair.field),
            pair.unit.clone().unwrap_or_default(),
            compared(&|values| values.count.to_string()),
            compared(&|values| extreme(values.min)),
            compared(&|values| extreme(values.max)),
            compared(&|values| float(values.mean)),
            compared(&|values| float(values.std)),
        ]);
    }
    Ok(table.write(out)?)
}

impl Pair {
    /// Returns a row for each statistic of this signal, such as its minimum and its mean.
    pub(super) fn rows(&self) -> impl Iterator<Item = Row> {
        let name = format!("{}.{}", self.topic, self.field);
        self.a.cells().into_iter().zip(self.b.cells()).map(move |((property, a), (_, b))| {
            let change = if a == b { "same" } else { "changed" };
            Row { what: "signal", name: name.clone(), property, change, a, b }
        })
    }
}

impl Values {
    fn cells(&self) -> [(&'static str, Option<String>); 5] {
        [
            ("count", Some(self.count.to_string())),
            ("min", self.min.map(|min| min.to_string())),
            ("max", self.max.map(|max| max.to_string())),
            ("mean", self.mean.map(|mean| mean.to_string())),
            ("std", self.std.map(|std| std.to_string())),
        ]
    }
}
