//! Differences of the values of two logs: statistics of the signals that both have.

use std::collections::HashMap;

use rovelog::AnyLog;
use serde::Serialize;

use crate::commands::stats::{Line, Number, section, short};
use crate::context::Context;
use crate::failure::Failure;
use crate::input::Input;
use crate::output::Out;
use crate::select::{FieldArgs, TopicArgs};
use crate::table::{Align, Table};
use crate::when::Window;

/// Statistics of a signal in both logs.
#[derive(Serialize)]
pub(super) struct Pair {
    topic: String,
    field: String,
    unit: Option<String>,
    a: Values,
    b: Values,
}

/// Statistics of a signal in one log; NaN does not count.
#[derive(Serialize, PartialEq)]
struct Values {
    count: String,
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

/// Returns the statistics of the selected signals that both logs have, in the order of the first.
pub(super) fn pairs(
    (input_a, a): (&Input, &AnyLog),
    (input_b, b): (&Input, &AnyLog),
    topics: &TopicArgs,
    fields: &FieldArgs,
    context: &Context,
) -> Result<Vec<Pair>, Failure> {
    let lines = |input: &Input, log: &AnyLog| {
        let topics: Vec<_> = log.topics().iter().filter(|topic| topics.keeps(topic)).collect();
        let section = section(&**log, &topics, Window::default(), context);
        section.map(|section| section.fields).map_err(|failure| failure.at(&input.path))
    };
    let (a, b) = (lines(input_a, a)?, lines(input_b, b)?);
    let key = |line: &Line| (line.topic.clone(), line.field.clone());
    let mut b: HashMap<_, _> = b.into_iter().map(|line| (key(&line), line)).collect();
    let common = a.into_iter().filter(|line| fields.keeps(&line.topic, &line.field));
    let common = common.filter_map(|a| b.remove(&key(&a)).map(|b| (a, b)));
    let pairs = common.map(|(a, b)| Pair {
        topic: a.topic.clone(),
        field: a.field.clone(),
        unit: a.unit.clone().or_else(|| b.unit.clone()),
        a: a.into(),
        b: b.into(),
    });
    Ok(pairs.collect())
}

/// Prints the signals whose values differ.
pub(super) fn text(out: &mut Out, pairs: &[Pair]) -> Result<(), Failure> {
    let mut table = Table::new(&[
        ("SIGNAL", Align::Left),
        ("UNIT", Align::Left),
        ("MIN", Align::Left),
        ("MAX", Align::Left),
        ("MEAN", Align::Left),
        ("STD", Align::Left),
    ]);
    for pair in pairs.iter().filter(|pair| pair.a != pair.b) {
        let extreme = |value: Option<Number>| value.map_or_else(|| "-".to_owned(), Number::short);
        let float = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| short(Some(value)));
        let both = |a: String, b: String| if a == b { a } else { format!("{a} -> {b}") };
        table.row([
            format!("{}.{}", pair.topic, pair.field),
            pair.unit.clone().unwrap_or_default(),
            both(extreme(pair.a.min), extreme(pair.b.min)),
            both(extreme(pair.a.max), extreme(pair.b.max)),
            both(float(pair.a.mean), float(pair.b.mean)),
            both(float(pair.a.std), float(pair.b.std)),
        ]);
    }
    Ok(table.write(out)?)
}
