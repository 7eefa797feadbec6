//! Reading of series, reduced while they are read: memory depends on the width of the plot alone.

use std::collections::BTreeMap;

use arrow_schema::DataType;
use rovelog::core::select::field_path;
use rovelog::{LogReader, Select, TopicId};

use crate::signal::{self, Program, Signal, short, timed};
use crate::{ExportError, meaning};

/// A line: a signal reduced to the width of a plot.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Unit of the values, if the log has one.
    pub unit: Option<String>,
    /// Seconds and values in time order; NaN breaks the line.
    pub points: Vec<(f64, f64)>,
    /// Number of values before the reduction.
    pub count: u64,
    /// How the values are drawn.
    pub(crate) look: Look,
    /// Names of states, by value.
    pub(crate) names: &'static [(i64, &'static str)],
}

/// How values are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Look {
    /// As a line from value to value.
    #[default]
    Line,
    /// Each value holds until the next one.
    Steps,
    /// As a lane of states.
    Lane,
}

impl Series {
    /// Returns a line through points.
    pub fn new(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        let count = points.len() as u64;
        Self { name: name.into(), unit: None, count, points, look: Look::Line, names: &[] }
    }

    pub(crate) fn is_step(&self) -> bool {
        self.look != Look::Line
    }

    pub(crate) fn is_lane(&self) -> bool {
        self.look == Look::Lane
    }

    /// Chooses how the values are drawn: on/off signals and states with names as lanes, small
    /// integers, and integers with few values, as steps.
    fn choose_look(&mut self, data_type: &DataType, names: &'static [(i64, &'static str)]) {
        self.names = names;
        self.look = match data_type {
            DataType::Boolean => Look::Lane,
            _ if !names.is_empty() => Look::Lane,
            DataType::UInt8 | DataType::Int8 => Look::Steps,
            other if other.is_integer() && self.has_few_values() => Look::Steps,
            _ => Look::Line,
        };
    }

    fn has_few_values(&self) -> bool {
        let mut values: Vec<u64> = Vec::new();
        for (_, value) in self.points.iter().filter(|(_, value)| value.is_finite()) {
            if !values.contains(&value.to_bits()) {
                values.push(value.to_bits());
                if values.len() > FEW {
                    return false;
                }
            }
        }
        true
    }

    /// Reduces the line again, to `width` columns of `span` seconds.
    pub(crate) fn reduce(&mut self, span: (f64, f64), width: usize) {
        #[expect(clippy::cast_possible_truncation, reason = "seconds of nanoseconds")]
        let nanos = |seconds: f64| (seconds * 1e9).round() as i64;
        let mut thin = Thin::new((nanos(span.0), nanos(span.1)), width);
        self.points.iter().for_each(|(time, value)| thin.push(nanos(*time), *value));
        self.points = thin.points(0);
    }

    /// Returns the minimum and maximum value.
    pub fn range(&self) -> Option<(f64, f64)> {
        let values = self.points.iter().map(|(_, value)| *value).filter(|value| value.is_finite());
        values.fold(None, |range, value| {
            let (low, high) = range.unwrap_or((value, value));
            Some((f64::min(low, value), f64::max(high, value)))
        })
    }
}

/// Maximum number of values of an integer that is drawn in steps.
const FEW: usize = 16;

/// One column of pixels: the first, minimum, maximum and last value, with their times.
#[derive(Clone, Copy)]
struct Column {
    first: (i64, f64),
    min: (i64, f64),
    max: (i64, f64),
    last: (i64, f64),
    /// True if it contains NaN.
    broken: bool,
}

/// Reduction of one signal.
pub(crate) struct Thin {
    start: i64,
    /// Nanoseconds per column.
    step: u64,
    width: usize,
    /// Columns with values, by number: a log of many topics has few in each.
    columns: Vec<(usize, Column)>,
    count: u64,
}

impl Thin {
    pub(crate) fn new((start, end): (i64, i64), width: usize) -> Self {
        let span = end.saturating_sub(start).max(1).unsigned_abs();
        Self { start, step: span / width as u64 + 1, width, columns: Vec::new(), count: 0 }
    }

    #[inline]
    pub(crate) fn push(&mut self, time: i64, value: f64) {
        let Some(after) = time.checked_sub(self.start).and_then(|after| u64::try_from(after).ok()) else {
            return;
        };
        let Some(number) = usize::try_from(after / self.step).ok().filter(|number| *number < self.width)
        else {
            return;
        };
        self.count += 1;
        let here = (time, value);
        // Nearly always the last one, or the next.
        let found = match self.columns.last() {
            Some((last, _)) if *last == number => Ok(self.columns.len() - 1),
            Some((last, _)) if *last > number => {
                self.columns.binary_search_by_key(&number, |(number, _)| *number)
            }
            _ => Err(self.columns.len()),
        };
        let column = match found {
            Ok(at) => &mut self.columns[at].1,
            Err(at) => {
                let broken = !value.is_finite();
                let column = Column { first: here, min: here, max: here, last: here, broken };
                return self.columns.insert(at, (number, column));
            }
        };
        if time < column.first.0 {
            column.first = here;
        }
        if time >= column.last.0 {
            column.last = here;
        }
        if !value.is_finite() {
            column.broken = true;
            return;
        }
        if value < column.min.1 || column.min.1.is_nan() {
            column.min = here;
        }
        if value > column.max.1 || column.max.1.is_nan() {
            column.max = here;
        }
    }

    pub(crate) fn points(&self, zero: i64) -> Vec<(f64, f64)> {
        let mut points: Vec<(f64, f64)> = Vec::new();
        for (_, column) in &self.columns {
            let mut four = [column.first, column.min, column.max, column.last];
            four.sort_by_key(|(time, _)| *time);
            for (i, (time, value)) in four.iter().enumerate() {
                let repeated = i > 0 && four[i - 1].0 == *time && four[i - 1].1.to_bits() == value.to_bits();
                if !repeated {
                    points.push((time.wrapping_sub(zero) as f64 / 1e9, *value));
                }
            }
            let ends_finite = column.last.1.is_finite();
            if column.broken && ends_finite && points.last().is_some_and(|(_, value)| value.is_finite()) {
                // The line is broken somewhere in the column, which is one pixel wide.
                let at = points.last().map_or(0.0, |(time, _)| *time);
                points.push((at, f64::NAN));
                points.push((at, column.last.1));
            }
        }
        points
    }
}

/// Reads signals between two times of the log's clock, reduced to `width` columns, in one pass over
/// the log; expressions of several topics, or with a memory, in a pass of their own. Seconds count
/// from `zero`. Rows without a time are left out. Returns the series in the order of the signals,
/// `None` if the log has no such topic or field.
///
/// # Errors
/// Returns an error if the log cannot be read, or a topic has no columns.
pub fn read(
    log: &dyn LogReader,
    signals: &[Signal],
    span: (i64, i64),
    width: usize,
    zero: i64,
) -> Result<Vec<Option<Series>>, ExportError> {
    let window = Select::all().between(Some(span.0), span.1.checked_add(1));
    let mut found: Vec<Option<Series>> = vec![None; signals.len()];
    let mut direct: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (i, signal) in signals.iter().enumerate() {
        match signal.topics()[..] {
            [topic] if !signal.has_memory() => direct.entry(topic).or_default().push(i),
            _ => {
                let mut thin = Thin::new(span, width);
                signal::each(log, signal, &window, &mut |time, value| thin.push(time, value))?;
                let mut series = Series::new(signal.name(), thin.points(zero));
                (series.count, series.unit) = (thin.count, signal.unit().map(str::to_owned));
                found[i] = Some(series);
            }
        }
    }
    let fields = direct.values().flatten().flat_map(|i| signals[*i].fields()).map(field_path);
    let mut select = window.with_fields(fields);
    select.topics = Some(direct.keys().copied().collect());
    // By topic: the signal, how it is evaluated, and its reduction.
    let mut thinned: BTreeMap<TopicId, Vec<(usize, Program, Thin)>> = BTreeMap::new();
    for topic in log.topics().iter().filter(|topic| select.keeps_topic(topic)) {
        let schema = arrow_array::RecordBatchReader::schema(&log.own(topic)?.columns(&select)?);
        let wanted = direct.get(&*topic.name).or_else(|| direct.get(short(&topic.name)));
        let of_topic = wanted.into_iter().flatten().filter_map(|i| {
            let program = Program::new(&signals[*i], &schema, |operand| operand.field.clone())?;
            Some((*i, program, Thin::new(span, width)))
        });
        thinned.insert(topic.id, of_topic.collect());
    }
    for item in log.batches(&select) {
        let (topic, batch) = item?;
        for (_, program, thin) in thinned.get_mut(&topic).into_iter().flatten() {
            let values = program.values(&batch);
            timed(&batch, &values, |time, value| thin.push(time, value));
        }
    }
    for (topic, of_topic) in thinned {
        let topic = &log.topics()[topic.index()];
        for (i, program, thin) in of_topic {
            let mut series = Series::new(signals[i].name(), thin.points(zero));
            series.count = thin.count;
            series.unit = signals[i].unit().map(str::to_owned);
            if let Some(leaf) = program.leaf() {
                series.name = format!("{}.{}", short(&topic.name), leaf.name);
                let unit = leaf.field.metadata().get("unit").map(String::as_str);
                let unit = unit.or_else(|| meaning::unit(log, topic, &leaf.name));
                series.unit = unit.filter(|_| leaf.data_type != DataType::Boolean).map(meaning::written);
                series.choose_look(&leaf.data_type, meaning::names(topic, &leaf.name));
            }
            found[i] = Some(series);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_each_column_the_extremes_stay() {
        let mut thin = Thin::new((0, 9_999), 10);
        for time in 0..10_000 {
            let value = if time == 4_321 { 99.0 } else { (time % 7) as f64 };
            thin.push(time, value);
        }
        let points = thin.points(0);
        assert!(points.len() <= 40, "{}", points.len());
        assert!(points.contains(&(4.321e-6, 99.0)));
        assert!(points.is_sorted_by(|a, b| a.0 <= b.0));
        assert_eq!(points.first(), Some(&(0.0, 0.0)));
        assert_eq!(points.last(), Some(&(9.999e-6, f64::from(9_999 % 7))));
        assert_eq!(thin.count, 10_000);
    }

    #[test]
    fn few_points_stay_as_they_are_and_gaps_stay_gaps() {
        let mut thin = Thin::new((0, 1_000_000_000), 100);
        for (time, value) in [(0, 1.0), (500_000_000, f64::NAN), (1_000_000_000, 2.0)] {
            thin.push(time, value);
        }
        let points = thin.points(0);
        assert_eq!((points[0], points[2]), ((0.0, 1.0), (1.0, 2.0)));
        assert!(points[1].1.is_nan() && points.len() == 3);
    }
}
