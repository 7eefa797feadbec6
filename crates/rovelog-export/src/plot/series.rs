//! Reads series and reduces them on the way, so that memory depends only on the width of the plot.

use std::collections::{BTreeMap, HashMap};

use arrow_schema::DataType;
use rovelog::core::schema::ValueNames;
use rovelog::core::select::field_path;
use rovelog::{LogReader, Select, Topic, TopicId};

use crate::signal::{self, Columns, Program, Signal, label, timed};
use crate::{ExportError, meaning};

/// A signal reduced to the width of a plot.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Unit of the values, if the log has one.
    pub unit: Option<String>,
    /// Points as (seconds, value), in time order. NaN interrupts the line.
    pub points: Vec<(f64, f64)>,
    /// Number of values before the reduction.
    pub count: u64,
    /// Drawing style.
    pub(crate) look: Look,
    /// State names by value.
    pub(crate) names: &'static [(i64, &'static str)],
}

/// Drawing style of a series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Look {
    /// Straight lines between values.
    #[default]
    Line,
    /// Steps: each value stays in effect until the next one.
    Steps,
    /// A lane of states.
    Lane,
}

impl Series {
    /// Creates a line from (seconds, value) points.
    pub fn new(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        let count = points.len() as u64;
        Self { name: name.into(), unit: None, count, points, look: Look::Line, names: &[] }
    }

    /// Chooses the drawing style. On/off signals and named states become lanes. Small integer
    /// types, and integers with few distinct values, become steps.
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

    /// Reduces the series again, to `width` columns within `span` seconds.
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

/// Maximum number of distinct values for which an integer is drawn in steps.
const FEW: usize = 16;

/// Receives the values of a signal, with their times in nanoseconds of the log's clock.
pub(super) trait Sink {
    fn push(&mut self, time: i64, value: f64);
}

/// Summary of a pixel column or a block: the first, minimum, maximum and last value, with their
/// times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    first: (i64, f64),
    min: (i64, f64),
    max: (i64, f64),
    last: (i64, f64),
    /// True if one of the values is NaN.
    broken: bool,
}

impl Column {
    pub(super) fn new(time: i64, value: f64) -> Self {
        let here = (time, value);
        Self { first: here, min: here, max: here, last: here, broken: !value.is_finite() }
    }

    #[inline]
    pub(super) fn push(&mut self, time: i64, value: f64) {
        let here = (time, value);
        if time < self.first.0 {
            self.first = here;
        }
        if time >= self.last.0 {
            self.last = here;
        }
        if !value.is_finite() {
            self.broken = true;
            return;
        }
        if value < self.min.1 || !self.min.1.is_finite() {
            self.min = here;
        }
        if value > self.max.1 || !self.max.1.is_finite() {
            self.max = here;
        }
    }

    /// Merges two summaries. `after` must be later.
    pub(super) fn join(mut self, after: Self) -> Self {
        for (time, value) in [after.first, after.min, after.max, after.last] {
            self.push(time, value);
        }
        self.broken |= after.broken;
        self
    }

    /// Returns the first and last time.
    pub(super) fn span(&self) -> (i64, i64) {
        (self.first.0, self.last.0)
    }

    /// Returns whether the time range overlaps a span.
    pub(super) fn overlaps(&self, (start, end): (i64, i64)) -> bool {
        self.first.0 <= end && self.last.0 >= start
    }
}

/// Reduces one signal to pixel columns while it is read.
pub(crate) struct Thin {
    start: i64,
    /// Nanoseconds per column.
    step: u64,
    width: usize,
    /// Columns that have values, as (column number, summary). A sparse list, because most columns
    /// are empty for signals with few rows.
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
        let Some(number) = self.number(time) else { return };
        self.count += 1;
        match self.place(number) {
            Ok(at) => self.columns[at].1.push(time, value),
            Err(at) => self.columns.insert(at, (number, Column::new(time, value))),
        }
    }

    /// Adds the summary of a block. Its values may belong to several columns.
    pub(super) fn add(&mut self, block: &Column) {
        for (time, value) in [block.first, block.min, block.max, block.last] {
            self.push(time, value);
        }
        let first = self.number(block.first.0).or_else(|| self.number(block.last.0));
        if let Some(Ok(at)) = first.filter(|_| block.broken).map(|number| self.place(number)) {
            self.columns[at].1.broken = true;
        }
    }

    /// Returns the column number for a time.
    #[inline]
    fn number(&self, time: i64) -> Option<usize> {
        let after = u64::try_from(time.checked_sub(self.start)?).ok()?;
        usize::try_from(after / self.step).ok().filter(|number| *number < self.width)
    }

    /// Returns the column with this number. Rows mostly arrive in time order, so it is nearly
    /// always the last or the next one.
    #[inline]
    fn place(&self, number: usize) -> Result<usize, usize> {
        match self.columns.last() {
            Some((last, _)) if *last == number => Ok(self.columns.len() - 1),
            Some((last, _)) if *last > number => {
                self.columns.binary_search_by_key(&number, |(number, _)| *number)
            }
            _ => Err(self.columns.len()),
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
                // The position of the gap within the column does not matter, as the column is one
                // pixel wide.
                let at = points.last().map_or(0.0, |(time, _)| *time);
                points.push((at, f64::NAN));
                points.push((at, column.last.1));
            }
        }
        points
    }
}

impl Sink for Thin {
    #[inline]
    fn push(&mut self, time: i64, value: f64) {
        Self::push(self, time, value);
    }
}

/// Reads signals within a time range of the log's clock, reduced to `width` columns. Seconds count
/// from `zero`, and rows without a time are skipped. The results have the order of `signals`, with
/// `None` for a signal whose topic or field the log lacks.
///
/// All signals share one pass over the log, except expressions that use several topics or earlier
/// rows. Each of these needs its own pass.
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
    let select = Select::all().between(Some(span.0), span.1.checked_add(1));
    let found = collect(log, signals, &select, || Thin::new(span, width))?;
    let series = |(described, thin): (Described, Thin)| described.series(thin.points(zero), thin.count);
    Ok(found.into_iter().map(|found| found.map(series)).collect())
}

/// What the signals of a topic have in common. It is looked up once, because a topic may have tens of
/// thousands of them.
struct About<'t> {
    topic: &'t Topic,
    label: &'t str,
    /// Names of values by field, for the fields that have some.
    names: HashMap<&'t str, ValueNames>,
}

impl<'t> About<'t> {
    fn of(log: &dyn LogReader, topic: &'t Topic) -> Self {
        let fields = topic.schema.iter().flat_map(|schema| &schema.fields);
        let names = fields.filter_map(|field| Some((&*field.name, field.names?)));
        Self { topic, label: label(log, &topic.name), names: names.collect() }
    }
}

/// Description of a signal, without its values.
pub(super) struct Described {
    name: String,
    unit: Option<String>,
    data_type: DataType,
    names: &'static [(i64, &'static str)],
}

impl Described {
    /// Creates the series from its points.
    pub(super) fn series(self, points: Vec<(f64, f64)>, count: u64) -> Series {
        let mut series = Series::new(self.name, points);
        (series.count, series.unit) = (count, self.unit);
        series.choose_look(&self.data_type, self.names);
        series
    }

    /// Describes a signal. The description of a plain field comes from the log.
    fn of(log: &dyn LogReader, about: &About<'_>, signal: &Signal, program: &Program) -> Self {
        let Some(leaf) = program.leaf() else { return Self::of_expression(signal) };
        let unit = leaf.field.metadata().get("unit").map(String::as_str);
        let unit = unit.or_else(|| meaning::unit(log, about.topic, &leaf.name));
        Self {
            name: format!("{}.{}", about.label, leaf.name),
            unit: unit.filter(|_| leaf.data_type != DataType::Boolean).map(meaning::written),
            names: about.names.get(&*leaf.name).copied().unwrap_or_default(),
            data_type: leaf.data_type.clone(),
        }
    }

    fn of_expression(signal: &Signal) -> Self {
        let (name, unit) = (signal.name().to_owned(), signal.unit().map(str::to_owned));
        Self { name, unit, data_type: DataType::Float64, names: &[] }
    }
}

/// Returns whether a signal can be read in the common pass and in parts: it uses one topic, and no
/// value depends on earlier rows.
pub(super) fn is_direct(signal: &Signal) -> bool {
    signal.topics().len() == 1 && !signal.has_memory()
}

/// Reads signals in one pass over the log, each into its sink. Signals that are not
/// [direct](is_direct) need a pass of their own. Rows without a time are skipped.
pub(super) fn collect<S: Sink>(
    log: &dyn LogReader,
    signals: &[Signal],
    select: &Select,
    sink: impl Fn() -> S,
) -> Result<Vec<Option<(Described, S)>>, ExportError> {
    let mut found: Vec<Option<(Described, S)>> = signals.iter().map(|_| None).collect();
    let mut direct: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (i, signal) in signals.iter().enumerate() {
        match signal.topics()[..] {
            [topic] if is_direct(signal) => direct.entry(topic).or_default().push(i),
            _ => {
                let mut values = sink();
                signal::each(log, signal, select, &mut |time, value| values.push(time, value))?;
                found[i] = Some((Described::of_expression(signal), values));
            }
        }
    }
    let fields = direct.values().flatten().flat_map(|i| signals[*i].fields()).map(field_path);
    let mut select = select.clone().with_fields(fields);
    select.topics = Some(direct.keys().copied().collect());
    let mut programs: BTreeMap<TopicId, Vec<(usize, Program)>> = BTreeMap::new();
    for topic in log.topics().iter().filter(|topic| select.keeps_topic(topic)) {
        let schema = arrow_array::RecordBatchReader::schema(&log.own(topic)?.columns(&select)?);
        let (columns, about) = (Columns::of(&schema), About::of(log, topic));
        let wanted = direct.get(&*topic.name).or_else(|| direct.get(about.label));
        for i in wanted.into_iter().flatten() {
            let program = Program::new(&signals[*i], &columns, |operand| operand.field.clone());
            let Some(program) = program else { continue };
            found[*i] = Some((Described::of(log, &about, &signals[*i], &program), sink()));
            programs.entry(topic.id).or_default().push((*i, program));
        }
    }
    for item in log.batches(&select) {
        let (topic, batch) = item?;
        for (i, program) in programs.get_mut(&topic).into_iter().flatten() {
            let values = program.values(&batch);
            if let Some((_, sink)) = &mut found[*i] {
                timed(&batch, &values, |time, value| sink.push(time, value));
            }
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

    #[test]
    fn an_infinite_value_hides_no_other() {
        for first in [f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
            let mut thin = Thin::new((0, 999), 1);
            for (time, value) in [(0, first), (1, 90.0), (2, -90.0), (3, 1.0)] {
                thin.push(time, value);
            }
            let points = thin.points(0);
            assert!(points.contains(&(1e-9, 90.0)) && points.contains(&(2e-9, -90.0)), "{first} {points:?}");
        }
    }
}
