//! Reads signals and reduces them while reading, so that the memory use only depends on the width
//! of the plot.
//!
//! For example, a plot of 10 s with 1000 columns has columns of 10 ms. If a signal has 4000 values
//! per second, each column has 40 values. At most 4 of these values remain: the first, the minimum,
//! the maximum and the last value.

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
    /// Name of the line in the legend.
    pub name: String,
    /// Unit of the values, if known.
    pub unit: Option<String>,
    /// Points of the line as (seconds, value), in time order. The value NaN interrupts the line.
    pub points: Vec<(f64, f64)>,
    /// Number of values that the signal had before the reduction.
    pub count: u64,
    /// Drawing style of the line.
    pub(crate) look: Look,
    /// Side of the panel with the value axis of the line.
    pub(crate) side: Side,
    /// Values that have names, each with its name.
    pub(crate) names: &'static [(i64, &'static str)],
}

/// Side of a panel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Side {
    #[default]
    Left,
    Right,
}

/// Drawing style of a signal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Look {
    /// Straight lines between the values.
    #[default]
    Line,
    /// A step plot, in which each value remains in effect until the next value.
    Steps,
    /// A lane that shows states as colored sections.
    Lane,
}

impl Series {
    /// Creates a line from points that are pairs of seconds and values.
    pub fn new(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        let count = points.len() as u64;
        Self { name: name.into(), unit: None, count, points, look: Look::Line, side: Side::Left, names: &[] }
    }

    /// Chooses the drawing style of the signal. On/off signals and named states are drawn as lanes.
    /// 8-bit integers, and integers with few distinct values, are drawn as steps.
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

    /// Returns whether the signal has at most [`MAX_STEP_VALUES`] distinct values.
    fn has_few_values(&self) -> bool {
        let mut values: Vec<u64> = Vec::new();
        for (_, value) in self.points.iter().filter(|(_, value)| value.is_finite()) {
            if !values.contains(&value.to_bits()) {
                values.push(value.to_bits());
                if values.len() > MAX_STEP_VALUES {
                    return false;
                }
            }
        }
        true
    }

    /// Reduces the points to `width` columns within the time range `span` in seconds.
    pub(crate) fn reduce(&mut self, span: (f64, f64), width: usize) {
        #[expect(clippy::cast_possible_truncation, reason = "seconds of nanoseconds")]
        let nanos = |seconds: f64| (seconds * 1e9).round() as i64;
        let mut reducer = Reducer::new((nanos(span.0), nanos(span.1)), width);
        self.points.iter().for_each(|(time, value)| reducer.push(nanos(*time), *value));
        self.points = reducer.points(0);
    }

    /// Returns the minimum and maximum of the finite values.
    pub fn range(&self) -> Option<(f64, f64)> {
        let values = self.points.iter().map(|(_, value)| *value).filter(|value| value.is_finite());
        values.fold(None, |range, value| {
            let (low, high) = range.unwrap_or((value, value));
            Some((f64::min(low, value), f64::max(high, value)))
        })
    }
}

/// Maximum number of distinct values for which an integer signal is drawn in steps.
const MAX_STEP_VALUES: usize = 16;

/// Receives the values of a signal. Times are in nanoseconds of the log's clock.
pub(super) trait Sink {
    fn push(&mut self, time: i64, value: f64);
}

/// A value of a signal, with its time in nanoseconds of the log's clock.
#[derive(Clone, Copy, Debug)]
struct Sample {
    time: i64,
    value: f64,
}

/// Summary of the values in a pixel column or block: the first, minimum, maximum and last value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Summary {
    first: Sample,
    min: Sample,
    max: Sample,
    last: Sample,
    /// True if at least one of the values is NaN or infinite. The line is interrupted in this case.
    has_gap: bool,
}

impl Summary {
    pub(super) fn new(time: i64, value: f64) -> Self {
        let here = Sample { time, value };
        Self { first: here, min: here, max: here, last: here, has_gap: !value.is_finite() }
    }

    #[inline]
    pub(super) fn push(&mut self, time: i64, value: f64) {
        let here = Sample { time, value };
        if time < self.first.time {
            self.first = here;
        }
        if time >= self.last.time {
            self.last = here;
        }
        if !value.is_finite() {
            self.has_gap = true;
            return;
        }
        // The first value may have been NaN or infinite. It is then replaced by the first finite
        // value as the minimum and maximum.
        if value < self.min.value || !self.min.value.is_finite() {
            self.min = here;
        }
        if value > self.max.value || !self.max.value.is_finite() {
            self.max = here;
        }
    }

    /// Merges two summaries. All values of `after` must be later than the values of this summary.
    pub(super) fn join(mut self, after: Self) -> Self {
        for Sample { time, value } in [after.first, after.min, after.max, after.last] {
            self.push(time, value);
        }
        self.has_gap |= after.has_gap;
        self
    }

    /// Returns the times of the first and last value.
    pub(super) fn span(&self) -> (i64, i64) {
        (self.first.time, self.last.time)
    }

    /// Returns whether the time range of the values overlaps the given time range.
    pub(super) fn overlaps(&self, (start, end): (i64, i64)) -> bool {
        self.first.time <= end && self.last.time >= start
    }
}

/// Reduces one signal to pixel columns while it is read.
pub(crate) struct Reducer {
    /// Start of the plot in nanoseconds of the log's clock.
    start: i64,
    /// Width of a column in nanoseconds.
    step: u64,
    /// Number of columns in the plot.
    width: usize,
    /// Columns that have values, as (column index, summary), in ascending order. Columns without
    /// values are not stored, because a signal with few rows leaves most columns empty.
    columns: Vec<(usize, Summary)>,
    /// Number of values within the time range of the plot.
    count: u64,
}

impl Reducer {
    pub(crate) fn new((start, end): (i64, i64), width: usize) -> Self {
        let span = end.saturating_sub(start).max(1).unsigned_abs();
        let width = width.max(1);
        Self { start, step: span / width as u64 + 1, width, columns: Vec::new(), count: 0 }
    }

    #[inline]
    pub(crate) fn push(&mut self, time: i64, value: f64) {
        let Some(number) = self.number(time) else { return };
        self.count += 1;
        match self.place(number) {
            Ok(at) => self.columns[at].1.push(time, value),
            Err(at) => self.columns.insert(at, (number, Summary::new(time, value))),
        }
    }

    /// Adds the values of a block, which may belong to several columns.
    pub(super) fn add(&mut self, block: &Summary) {
        for Sample { time, value } in [block.first, block.min, block.max, block.last] {
            self.push(time, value);
        }
        let first = self.number(block.first.time).or_else(|| self.number(block.last.time));
        if let Some(Ok(at)) = first.filter(|_| block.has_gap).map(|number| self.place(number)) {
            self.columns[at].1.has_gap = true;
        }
    }

    /// Returns the index of the column that contains a time, or `None` if the time is outside of
    /// the plot.
    #[inline]
    fn number(&self, time: i64) -> Option<usize> {
        let after = u64::try_from(time.checked_sub(self.start)?).ok()?;
        usize::try_from(after / self.step).ok().filter(|number| *number < self.width)
    }

    /// Finds a column in the list by its index in the plot. Returns its position in the list, or
    /// the position at which to insert the column. Rows mostly arrive in time order, so this is
    /// nearly always the last column or a new last column.
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

    /// Returns the points of the line as (seconds, value). The seconds count from `zero`.
    pub(crate) fn points(&self, zero: i64) -> Vec<(f64, f64)> {
        let mut points: Vec<(f64, f64)> = Vec::new();
        for (_, column) in &self.columns {
            let mut four = [column.first, column.min, column.max, column.last];
            // The sort is stable, so points with the same time keep the order of the list above.
            four.sort_by_key(|sample| sample.time);
            for (i, Sample { time, value }) in four.into_iter().enumerate() {
                let is_repeated =
                    i > 0 && four[i - 1].time == time && four[i - 1].value.to_bits() == value.to_bits();
                if !is_repeated {
                    points.push((time.wrapping_sub(zero) as f64 / 1e9, value));
                }
            }
            // The first, minimum, maximum and last value of a column may all be finite although a
            // value between them is NaN. The line must be interrupted in this case, too.
            let ends_finite = column.last.value.is_finite();
            if column.has_gap && ends_finite && points.last().is_some_and(|(_, value)| value.is_finite()) {
                // The column is one pixel wide, so the exact position of the gap inside the column
                // does not matter.
                let at = points.last().map_or(0.0, |(time, _)| *time);
                points.push((at, f64::NAN));
                points.push((at, column.last.value));
            }
        }
        points
    }
}

impl Sink for Reducer {
    #[inline]
    fn push(&mut self, time: i64, value: f64) {
        Self::push(self, time, value);
    }
}

/// Reads signals, each reduced to `width` columns.
///
/// `span` is the time range in nanoseconds of the log's clock. The seconds of the points count from
/// `zero`. Rows without a time are skipped. The results are in the order of `signals`. The result
/// for a signal is `None` if the log lacks its topic or field.
///
/// All signals are read in one pass over the log, except for expressions that use several topics or
/// depend on earlier rows. Each of these needs its own pass.
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
    let found = collect(log, signals, &select, || Reducer::new(span, width))?;
    let series = |(info, reducer): (SignalInfo, Reducer)| info.series(reducer.points(zero), reducer.count);
    Ok(found.into_iter().map(|found| found.map(series)).collect())
}

/// Properties of a topic that all of its signals share. They are looked up once, because a topic
/// may have tens of thousands of signals.
struct TopicInfo<'t> {
    topic: &'t Topic,
    /// Name of the topic as used in the names of signals.
    label: &'t str,
    /// Names of values, for each field that has such names.
    names: HashMap<&'t str, ValueNames>,
}

impl<'t> TopicInfo<'t> {
    fn of(log: &dyn LogReader, topic: &'t Topic) -> Self {
        let fields = topic.schema.iter().flat_map(|schema| &schema.fields);
        let names = fields.filter_map(|field| Some((&*field.name, field.names?)));
        Self { topic, label: label(log, &topic.name), names: names.collect() }
    }
}

/// Properties of a signal that determine how it is drawn.
pub(super) struct SignalInfo {
    name: String,
    unit: Option<String>,
    data_type: DataType,
    names: &'static [(i64, &'static str)],
}

impl SignalInfo {
    /// Creates the series from these points. `count` is the number of values before the reduction.
    pub(super) fn series(self, points: Vec<(f64, f64)>, count: u64) -> Series {
        let mut series = Series::new(self.name, points);
        (series.count, series.unit) = (count, self.unit);
        series.choose_look(&self.data_type, self.names);
        series
    }

    /// Returns the properties of a signal. If the signal is a single field, the properties come
    /// from the log.
    fn of(log: &dyn LogReader, info: &TopicInfo<'_>, signal: &Signal, program: &Program) -> Self {
        let Some(leaf) = program.leaf() else { return Self::of_expression(signal) };
        let unit = leaf.field.metadata().get("unit").map(String::as_str);
        let unit = unit.or_else(|| meaning::unit(log, info.topic, &leaf.name));
        Self {
            name: format!("{}.{}", info.label, leaf.name),
            unit: unit.filter(|_| leaf.data_type != DataType::Boolean).map(meaning::written),
            names: info.names.get(&*leaf.name).copied().unwrap_or_default(),
            data_type: leaf.data_type.clone(),
        }
    }

    fn of_expression(signal: &Signal) -> Self {
        let (name, unit) = (signal.name().to_owned(), signal.unit().map(str::to_owned));
        Self { name, unit, data_type: DataType::Float64, names: &[] }
    }
}

/// Returns whether a signal can be read in the same pass as other signals, and in parts. This is
/// the case if the signal uses only one topic and its values do not depend on earlier rows.
pub(super) fn is_direct(signal: &Signal) -> bool {
    signal.topics().len() == 1 && !signal.has_memory()
}

/// Reads signals and passes the values of each signal to a separate sink. Signals that are
/// [direct](is_direct) are read in one pass over the log. Rows without a time are skipped.
pub(super) fn collect<S: Sink>(
    log: &dyn LogReader,
    signals: &[Signal],
    select: &Select,
    sink: impl Fn() -> S,
) -> Result<Vec<Option<(SignalInfo, S)>>, ExportError> {
    let mut found: Vec<Option<(SignalInfo, S)>> = signals.iter().map(|_| None).collect();
    let mut direct: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (i, signal) in signals.iter().enumerate() {
        match signal.topics()[..] {
            [topic] if is_direct(signal) => direct.entry(topic).or_default().push(i),
            _ => {
                let mut values = sink();
                signal::each(log, signal, select, &mut |time, value| values.push(time, value))?;
                found[i] = Some((SignalInfo::of_expression(signal), values));
            }
        }
    }
    let fields = direct.values().flatten().flat_map(|i| signals[*i].fields()).map(field_path);
    let mut select = select.clone().with_fields(fields);
    select.topics = Some(direct.keys().copied().collect());
    let mut programs: BTreeMap<TopicId, Vec<(usize, Program)>> = BTreeMap::new();
    for topic in log.topics().iter().filter(|topic| select.keeps_topic(topic)) {
        let schema = arrow_array::RecordBatchReader::schema(&log.own(topic)?.columns(&select)?);
        let (columns, info) = (Columns::of(&schema), TopicInfo::of(log, topic));
        // The name of a signal may omit the instance number `/0` of the topic.
        let wanted = direct.get(&*topic.name).or_else(|| direct.get(info.label));
        for i in wanted.into_iter().flatten() {
            let program = Program::new(&signals[*i], &columns, |operand| operand.field.clone());
            let Some(program) = program else { continue };
            found[*i] = Some((SignalInfo::of(log, &info, &signals[*i], &program), sink()));
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
    fn extremes_of_each_column_remain() {
        let mut reducer = Reducer::new((0, 9_999), 10);
        for time in 0..10_000 {
            let value = if time == 4_321 { 99.0 } else { (time % 7) as f64 };
            reducer.push(time, value);
        }
        let points = reducer.points(0);
        assert!(points.len() <= 40, "{}", points.len());
        assert!(points.contains(&(4.321e-6, 99.0)));
        assert!(points.is_sorted_by(|a, b| a.0 <= b.0));
        assert_eq!(points.first(), Some(&(0.0, 0.0)));
        assert_eq!(points.last(), Some(&(9.999e-6, f64::from(9_999 % 7))));
        assert_eq!(reducer.count, 10_000);
    }

    #[test]
    fn few_points_and_gaps_are_unchanged() {
        let mut reducer = Reducer::new((0, 1_000_000_000), 100);
        for (time, value) in [(0, 1.0), (500_000_000, f64::NAN), (1_000_000_000, 2.0)] {
            reducer.push(time, value);
        }
        let points = reducer.points(0);
        assert_eq!((points[0], points[2]), ((0.0, 1.0), (1.0, 2.0)));
        assert!(points[1].1.is_nan() && points.len() == 3);
    }

    #[test]
    fn an_infinite_value_hides_no_other() {
        for first in [f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
            let mut reducer = Reducer::new((0, 999), 1);
            for (time, value) in [(0, first), (1, 90.0), (2, -90.0), (3, 1.0)] {
                reducer.push(time, value);
            }
            let points = reducer.points(0);
            assert!(points.contains(&(1e-9, 90.0)) && points.contains(&(2e-9, -90.0)), "{first} {points:?}");
        }
    }
}
