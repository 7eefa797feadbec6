//! Statistics of any log, from its records.

use std::collections::HashMap;

use rovelog::{LogReader, Select, Topic, Value};

use super::section::{Line, Number, Section};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::when::Window;

/// Running statistics of a field by Welford's method, which avoids cancellation.
#[derive(Default)]
pub(super) struct Running {
    pub(super) count: u64,
    pub(super) nan: u64,
    pub(super) mean: f64,
    pub(super) squares: f64,
    pub(super) min: Option<Number>,
    pub(super) max: Option<Number>,
    /// The last value, in how many records in a row it is, and the most of any value.
    last: f64,
    run: u64,
    longest_run: u64,
    changes: u64,
}

/// The fewest records in a row with one value that make a field stuck.
const STUCK: u64 = 20;

impl Running {
    pub(super) fn push(&mut self, number: Number) {
        let value = number.as_f64();
        if value.is_nan() {
            self.nan += 1;
            return;
        }
        if self.count > 0 && value.to_bits() == self.last.to_bits() {
            self.run += 1;
        } else {
            self.changes += u64::from(self.count > 0);
            self.run = 1;
        }
        self.last = value;
        self.longest_run = self.longest_run.max(self.run);
        self.count += 1;
        self.min = Some(self.min.map_or(number, |min| if number.is_below(min) { number } else { min }));
        self.max = Some(self.max.map_or(number, |max| if max.is_below(number) { number } else { max }));
        let off = value - self.mean;
        self.mean += off / self.count as f64;
        self.squares += off * (value - self.mean);
    }

    /// Returns the length of the longest run of one value, if nine of ten of the other records
    /// change the value of a field of floats, and the run is long.
    fn stuck(&self) -> Option<u64> {
        let others = self.count - self.longest_run;
        let is_float = matches!(self.min, Some(Number::Float(_)));
        let changes = others >= STUCK && self.changes * 10 >= others * 9;
        (is_float && changes && self.longest_run >= STUCK).then_some(self.longest_run)
    }
}

/// The fields of one topic in the order of their first record.
#[derive(Default)]
struct Fields {
    list: Vec<(String, Running)>,
    numbers: HashMap<String, usize>,
}

impl Fields {
    /// Returns the index of the field with this name. `next` is its index if the record has the
    /// same fields as the previous one.
    fn named(&mut self, name: &str, next: usize) -> usize {
        if self.list.get(next).is_some_and(|(known, _)| known == name) {
            return next;
        }
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = self.list.len();
        self.list.push((name.to_owned(), Running::default()));
        self.numbers.insert(name.to_owned(), number);
        number
    }
}

/// Returns statistics of the log or a window of it, for every number of these topics, in the order
/// of topics and fields.
pub(in crate::commands) fn section(
    log: &dyn LogReader,
    topics: &[&Topic],
    window: Window,
    progress: &Progress,
) -> Result<Section, Failure> {
    progress.start(Some(log.info().size));
    let select =
        Select::topics(topics.iter().map(|topic| topic.name.clone())).between(window.start, window.end);
    let mut fields: Vec<Fields> = Vec::new();
    fields.resize_with(log.topics().len(), Default::default);
    for record in log.records(&select) {
        let record = record?;
        progress.at(record.offset);
        let fields = &mut fields[record.topic.id.index()];
        let mut next = 0;
        record.value()?.flatten(&mut |name, value| {
            let number = match value {
                Value::Bool(bit) => Some(Number::Int(i128::from(*bit))),
                Value::Int(value, _) => Some(Number::Int(i128::from(*value))),
                Value::UInt(value, _) => Some(Number::Int(i128::from(*value))),
                value => value.as_f64().map(Number::Float),
            };
            let Some(number) = number else { return };
            let field = fields.named(name, next);
            fields.list[field].1.push(number);
            next = field + 1;
        });
    }
    let mut lines = Vec::new();
    for (topic, fields) in log.topics().iter().zip(&fields) {
        let schema = topic.schema.iter().flat_map(|schema| &schema.fields);
        let units: HashMap<&str, &str> =
            schema.filter_map(|field| Some((&*field.name, field.unit.as_deref()?))).collect();
        for (name, sums) in &fields.list {
            let some = sums.count > 0;
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
                mean: some.then_some(sums.mean),
                std: some.then(|| (sums.squares / sums.count as f64).max(0.0).sqrt()),
                nan: (sums.nan > 0).then(|| sums.nan.to_string()),
                stuck: stuck.map(|run| run.to_string()),
                remark: (!remarks.is_empty()).then(|| remarks.join(", ")),
                ..Line::default()
            });
        }
    }
    Ok(Section { fields: lines, ..Section::default() })
}
