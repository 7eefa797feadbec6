//! Statistics of any log, through its records.

use std::collections::HashMap;

use rovelog::{LogReader, Select, Topic, Value};

use super::{Line, Section};
use crate::context::Context;
use crate::failure::Failure;

/// Sums of a field, by Welford's method: floats of any size do not cancel.
#[derive(Default)]
struct Running {
    count: u64,
    nan: u64,
    mean: f64,
    squares: f64,
    min: f64,
    max: f64,
}

impl Running {
    fn push(&mut self, value: f64) {
        if value.is_nan() {
            self.nan += 1;
            return;
        }
        self.count += 1;
        if self.count == 1 {
            (self.min, self.max) = (value, value);
        }
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        let off = value - self.mean;
        self.mean += off / self.count as f64;
        self.squares += off * (value - self.mean);
    }
}

/// The whole log: every number of these topics, in the order of topics and fields.
pub(super) fn section(log: &dyn LogReader, topics: &[&Topic], context: &Context) -> Result<Section, Failure> {
    context.progress.begin(Some(log.info().size));
    let select = Select::topics(topics.iter().map(|topic| topic.name.clone()));
    // By topic: the flat names in order, and what is summed of each.
    let mut fields: Vec<(Vec<String>, HashMap<String, Running>)> = Vec::new();
    fields.resize_with(log.topics().len(), Default::default);
    for record in log.records(&select) {
        let record = record?;
        context.progress.at(record.offset);
        let (names, sums) = &mut fields[record.topic.id.index()];
        record.value()?.flatten(&mut |name, value| {
            let number = match value {
                Value::Bool(bit) => Some(f64::from(u8::from(*bit))),
                value => value.as_f64(),
            };
            let Some(number) = number else { return };
            if let Some(running) = sums.get_mut(name) {
                running.push(number);
                return;
            }
            names.push(name.to_owned());
            let mut running = Running::default();
            running.push(number);
            sums.insert(name.to_owned(), running);
        });
    }
    let mut lines = Vec::new();
    for (topic, (names, sums)) in log.topics().iter().zip(&fields) {
        let schema = topic.schema.iter().flat_map(|schema| &schema.fields);
        let units: HashMap<&str, &str> =
            schema.filter_map(|field| Some((&*field.name, field.unit.as_deref()?))).collect();
        for name in names {
            let sums = &sums[name];
            let some = sums.count > 0;
            lines.push(Line {
                topic: topic.name.clone(),
                field: name.clone(),
                unit: units.get(&**name).map(|unit| (*unit).to_owned()),
                count: sums.count.to_string(),
                min: some.then_some(sums.min),
                max: some.then_some(sums.max),
                mean: some.then_some(sums.mean),
                std: some.then(|| (sums.squares / sums.count as f64).max(0.0).sqrt()),
                remark: (sums.nan > 0).then(|| format!("{} NaN", sums.nan)),
                ..Line::default()
            });
        }
    }
    Ok(Section { fields: lines, ..Section::default() })
}
