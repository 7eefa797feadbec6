//! Reading of series, reduced while they are read: memory depends on the width of the plot alone.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{Array as _, ArrayRef, RecordBatch};
use arrow_schema::DataType;
use rovelog::core::select::field_path;
use rovelog::{LogReader, Select, Topic, TopicId};

use super::derived::{self, Derived};
use super::meaning;
use crate::ExportError;
use crate::leaf::{Leaf, Names, leaves};

/// A field of a topic.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Signal {
    /// The topic.
    pub topic: String,
    /// The flat name of the field: `q[0]`.
    pub field: String,
}

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

/// Fields of VEL messages that describe the message, or are the same as a field with a unit.
const NOT_MEASURED: &[&str] = &[
    "ts_ms",
    "version",
    "offset",
    "hour",
    "minute",
    "second",
    "day",
    "month",
    "year",
    "latitude",
    "longitude",
];

/// Maximum number of values of an integer that is drawn in steps.
const FEW: usize = 16;

/// Returns the flat names of a topic's fields that can be drawn, in schema order.
pub fn numeric_fields(log: &dyn LogReader, topic: &Topic) -> Vec<String> {
    let columns = log.own(topic).and_then(|topic| topic.columns(&Select::all()));
    let Ok(columns) = columns else { return Vec::new() };
    let schema = arrow_array::RecordBatchReader::schema(&columns);
    leaves(&schema, Names::Bracket).into_iter().skip(1).filter(drawable).map(|leaf| leaf.name).collect()
}

/// Returns those of [`numeric_fields`] that are measurements: no times, counters, covariances or file
/// offsets.
pub fn measured_fields(log: &dyn LogReader, topic: &Topic) -> Vec<String> {
    let frames = |field: &str| match log.format().id {
        "vel" => {
            NOT_MEASURED.contains(&field)
                || field.starts_with("quaternion[")
                || field.starts_with("acceleration[")
        }
        "rosbag" => field == "header.seq" || field.ends_with(".header.seq") || field.contains("covariance["),
        _ => false,
    };
    let mut fields = numeric_fields(log, topic);
    let last = |field: &str| field.rsplit('.').next().unwrap_or(field).to_owned();
    fields.retain(|field| !last(field).starts_with("timestamp") && !frames(field));
    fields
}

/// Returns the names of what can be computed of a topic's fields, those of [`numeric_fields`]:
/// `roll(q)`, `norm(accel)`, and of power logs `power(1)`. [`read`] takes them as fields.
pub fn derived_fields(log: &dyn LogReader, fields: &[String]) -> Vec<String> {
    derived::names(fields, log.format().id == "rld")
}

fn drawable(leaf: &Leaf) -> bool {
    leaf.data_type.is_integer() || leaf.data_type.is_floating() || leaf.data_type == DataType::Boolean
}

/// Takes the values of a signal, with their times in nanoseconds of the log's clock.
pub(super) trait Sink {
    fn push(&mut self, time: i64, value: f64);
}

/// One column of pixels, or a block of values: the first, minimum, maximum and last value, with
/// their times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    first: (i64, f64),
    min: (i64, f64),
    max: (i64, f64),
    last: (i64, f64),
    /// True if it contains NaN.
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
        if value < self.min.1 || self.min.1.is_nan() {
            self.min = here;
        }
        if value > self.max.1 || self.max.1.is_nan() {
            self.max = here;
        }
    }

    /// Returns the column of the values of both.
    pub(super) fn join(mut self, after: Self) -> Self {
        for (time, value) in [after.first, after.min, after.max, after.last] {
            self.push(time, value);
        }
        self.broken |= after.broken;
        self
    }

    /// Returns its first and its last time.
    pub(super) fn span(&self) -> (i64, i64) {
        (self.first.0, self.last.0)
    }

    /// Returns whether some of its time is in a span.
    pub(super) fn overlaps(&self, (start, end): (i64, i64)) -> bool {
        self.first.0 <= end && self.last.0 >= start
    }
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
        let Some(number) = self.number(time) else { return };
        self.count += 1;
        match self.place(number) {
            Ok(at) => self.columns[at].1.push(time, value),
            Err(at) => self.columns.insert(at, (number, Column::new(time, value))),
        }
    }

    /// Adds a block of values by its extremes; they may be in several columns.
    pub(super) fn add(&mut self, block: &Column) {
        for (time, value) in [block.first, block.min, block.max, block.last] {
            self.push(time, value);
        }
        let first = self.number(block.first.0).or_else(|| self.number(block.last.0));
        if let Some(Ok(at)) = first.filter(|_| block.broken).map(|number| self.place(number)) {
            self.columns[at].1.broken = true;
        }
    }

    /// Returns the number of the column of a time.
    #[inline]
    fn number(&self, time: i64) -> Option<usize> {
        let after = u64::try_from(time.checked_sub(self.start)?).ok()?;
        usize::try_from(after / self.step).ok().filter(|number| *number < self.width)
    }

    /// Finds a column by its number. Nearly always it is the last one, or the next.
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
                // The line is broken somewhere in the column, which is one pixel wide.
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

/// Reads signals between two times of the log's clock, reduced to `width` columns, in one pass over
/// the log. Seconds count from `zero`. Rows without a time are left out. Returns the series in the
/// order of the signals, `None` if the log has no such topic or field.
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

/// What is known of a signal without its values.
pub(super) struct Described {
    name: String,
    unit: Option<String>,
    data_type: DataType,
    names: meaning::Names,
}

impl Described {
    /// Returns the line through points.
    pub(super) fn series(self, points: Vec<(f64, f64)>, count: u64) -> Series {
        let mut series = Series::new(self.name, points);
        (series.count, series.unit) = (count, self.unit);
        series.choose_look(&self.data_type, self.names);
        series
    }
}

/// Where the values of a signal come from: one leaf, or several, of which they are computed.
struct Source {
    leaves: Vec<Leaf>,
    derived: Option<Derived>,
}

impl Source {
    fn of(field: &str, leaves: &HashMap<String, Leaf>) -> Option<Self> {
        if let Some(leaf) = leaves.get(field) {
            return Some(Self { leaves: vec![leaf.clone()], derived: None });
        }
        let (derived, of) = Derived::parse(field)?;
        Some(Self { leaves: derived.leaves(of, leaves)?, derived: Some(derived) })
    }

    fn describe(&self, log: &dyn LogReader, topic: &Topic, field: &str) -> Described {
        let first = &self.leaves[0];
        let unit = first.field.metadata().get("unit").map(String::as_str);
        let unit = unit.or_else(|| meaning::unit(log, topic, &first.name)).map(meaning::written);
        let name = format!("{}.{field}", short(&topic.name));
        if let Some(derived) = self.derived {
            return Described { name, unit: derived.unit(unit), data_type: DataType::Float64, names: &[] };
        }
        let data_type = first.data_type.clone();
        let unit = unit.filter(|_| data_type != DataType::Boolean);
        Described { name, unit, names: meaning::names(log, topic, field), data_type }
    }

    /// Adds the values of a batch.
    fn take(&self, batch: &RecordBatch, sink: &mut impl Sink) {
        let bound: Vec<_> = self.leaves.iter().map(|leaf| leaf.bind(batch)).collect();
        let values: Vec<_> = bound.iter().map(|bound| numbers(&bound.array)).collect();
        let times = batch.column(0).as_primitive::<Int64Type>();
        let mut parts = [f64::NAN; 4];
        for row in (0..batch.num_rows()).filter(|row| times.is_valid(*row)) {
            let value = |i: usize| bound[i].at(row).map_or(f64::NAN, |at| values[i][at]);
            let value = match self.derived {
                None => value(0),
                Some(derived) => {
                    (0..bound.len()).for_each(|i| parts[i] = value(i));
                    derived.value(&parts)
                }
            };
            sink.push(times.value(row), value);
        }
    }
}

/// Reads signals in one pass over the log, each into a sink. Rows without a time are left out.
pub(super) fn collect<S: Sink>(
    log: &dyn LogReader,
    signals: &[Signal],
    select: &Select,
    sink: impl Fn() -> S,
) -> Result<Vec<Option<(Described, S)>>, ExportError> {
    let mut by_topic: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (i, signal) in signals.iter().enumerate() {
        by_topic.entry(&signal.topic).or_default().push(i);
    }
    let paths = |signal: &Signal| match Derived::parse(&signal.field) {
        Some((derived, of)) => derived.paths(of),
        None => vec![field_path(&signal.field)],
    };
    let select = Select::topics(by_topic.keys().copied())
        .between(select.start, select.end)
        .with_fields(signals.iter().flat_map(paths));
    let mut found: Vec<Option<(Described, S)>> = signals.iter().map(|_| None).collect();
    let mut sources: BTreeMap<TopicId, Vec<(usize, Source)>> = BTreeMap::new();
    for topic in log.topics().iter().filter(|topic| select.keeps_topic(topic)) {
        let schema = arrow_array::RecordBatchReader::schema(&log.own(topic)?.columns(&select)?);
        let leaves = leaves(&schema, Names::Bracket).into_iter().skip(1).filter(drawable);
        let leaves: HashMap<String, Leaf> = leaves.map(|leaf| (leaf.name.clone(), leaf)).collect();
        let wanted = by_topic.get(&*topic.name).or_else(|| by_topic.get(short(&topic.name)));
        for i in wanted.into_iter().flatten() {
            let Some(source) = Source::of(&signals[*i].field, &leaves) else { continue };
            found[*i] = Some((source.describe(log, topic, &signals[*i].field), sink()));
            sources.entry(topic.id).or_default().push((*i, source));
        }
    }
    for item in log.batches(&select) {
        let (topic, batch) = item?;
        for (i, source) in sources.get(&topic).into_iter().flatten() {
            if let Some((_, sink)) = &mut found[*i] {
                source.take(&batch, sink);
            }
        }
    }
    Ok(found)
}

/// Returns a topic's name without instance 0.
fn short(topic: &str) -> &str {
    topic.strip_suffix("/0").unwrap_or(topic)
}

/// Returns the numeric and boolean values of a leaf; NaN for others.
pub(crate) fn numbers(array: &ArrayRef) -> Cow<'_, [f64]> {
    macro_rules! wide {
        ($ty:ty, $value:ident => $wide:expr) => {
            array.as_primitive::<$ty>().values().iter().map(|$value| $wide).collect()
        };
    }
    match array.data_type() {
        DataType::Float64 => return Cow::Borrowed(array.as_primitive::<Float64Type>().values()),
        DataType::Float32 => wide!(Float32Type, value => f64::from(*value)),
        DataType::Int8 => wide!(Int8Type, value => f64::from(*value)),
        DataType::Int16 => wide!(Int16Type, value => f64::from(*value)),
        DataType::Int32 => wide!(Int32Type, value => f64::from(*value)),
        DataType::Int64 => wide!(Int64Type, value => *value as f64),
        DataType::UInt8 => wide!(UInt8Type, value => f64::from(*value)),
        DataType::UInt16 => wide!(UInt16Type, value => f64::from(*value)),
        DataType::UInt32 => wide!(UInt32Type, value => f64::from(*value)),
        DataType::UInt64 => wide!(UInt64Type, value => *value as f64),
        DataType::Boolean => {
            array.as_boolean().values().iter().map(|value| f64::from(u8::from(value))).collect()
        }
        _ => vec![f64::NAN; array.len()],
    }
    .into()
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
