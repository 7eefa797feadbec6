//! Joins topics into one table, with rows at the times of one topic or at regular times.
//!
//! Times are compared as integers. Only one batch of each topic is in memory at a time, so memory
//! does not grow with the log.
//!
//! Example: topic `a` has rows at 10 and 20, topic `b` at 8, 15 and 30. With [`Method::Previous`],
//! the row of `a` at 10 gets the values of `b` from 8, and the row at 20 those from 15. With
//! [`Method::Linear`], the row at 20 gets the value of `b` one third of the way from 15 to 30.

use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::Int64Type;
use arrow_array::{
    Array as _, ArrayRef, FixedSizeListArray, Float64Array, Int64Array, RecordBatch, RecordBatchOptions,
    StructArray,
};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};
use rovelog::core::columns::TIME_COLUMN;
use rovelog::core::text::count;
use rovelog::{LogReader, Select, Topic};

use super::cursor::Cursor;
use super::extend::Extended;
use super::find::{Signal, label};
use crate::ExportError;
use crate::leaf::numbers;
use crate::pick::{self, concat, concat_batches};

/// Number of rows in a batch, if the times are regular or listed.
const GRID_ROWS: usize = 4096;

/// Rule that selects the row of a joined topic for a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// The last row at or before the time.
    #[default]
    Previous,
    /// The nearest row. If two are equally near, the earlier one.
    Nearest,
    /// Linear interpolation between the rows before and after. Numbers become 64-bit floats; other
    /// values come from the row before.
    Linear,
}

impl Method {
    /// Returns the method with this name.
    pub fn by_name(name: &str) -> Option<Self> {
        match name {
            "previous" => Some(Self::Previous),
            "nearest" => Some(Self::Nearest),
            "linear" => Some(Self::Linear),
            _ => None,
        }
    }
}

/// The times at which the joined table has rows.
#[derive(Clone, Debug)]
pub enum Base<'a> {
    /// The times of a topic. Its fields are the first columns.
    Topic(&'a Topic),
    /// Every `step` nanoseconds from `first` to `last`, in nanoseconds of the log's clock.
    Every {
        /// The first time.
        first: i64,
        /// Upper bound of the last time, inclusive.
        last: i64,
        /// Nanoseconds between rows, at least 1.
        step: i64,
    },
    /// A list of times in ascending order.
    Times(Vec<i64>),
}

/// Rows at regular times for each record of a log that are too many.
const MOST_PER_RECORD: u64 = 10;

/// Rows at regular times that are never too many.
const FEW_ROWS: u64 = 10_000;

/// Checks that rows every `step` nanoseconds from `first` to `last` are not many more than the log
/// has records: a clock that was set during the log can make it last for years.
///
/// # Errors
/// Returns the numbers of rows and records, in words.
pub fn check_regular_rows(log: &dyn LogReader, first: i64, last: i64, step: i64) -> Result<(), String> {
    let records = log.info().records;
    let rows = if first <= last { last.abs_diff(first) / step.max(1).unsigned_abs() + 1 } else { 0 };
    if rows <= FEW_ROWS.max(records.saturating_mul(MOST_PER_RECORD)) {
        return Ok(());
    }
    Err(format!("the times of this log would make {rows} rows, but it has {}", count(records, "record")))
}

/// How topics are joined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct JoinOptions {
    /// Rule that selects the row of a joined topic for a time.
    pub method: Method,
    /// Maximum distance in nanoseconds between a time and the row used for it. Without a row within
    /// this distance, the values are null.
    pub tolerance: Option<u64>,
}

/// Iterator over the batches of a joined table. The columns are `t_ns`, then `TOPIC.FIELD` for each
/// field.
pub struct Joined<'a> {
    base: Rows<'a>,
    others: Vec<Other<'a>>,
    options: JoinOptions,
    /// Schema of the joined columns, before computed signals are added.
    read: SchemaRef,
    extended: Option<Extended>,
}

/// Source of the times of the remaining rows.
enum Rows<'a> {
    Topic(Cursor<'a>),
    Every { next: Option<i64>, last: i64, step: i64 },
    Times(std::vec::IntoIter<i64>),
}

/// Joins `topics` to the rows of `base`.
///
/// `select` limits the times of these rows and selects fields. The time limits do not apply to the
/// joined topics, because the row before the first time may be needed. `signals` are appended as
/// computed columns.
///
/// # Errors
/// Returns an error if a topic has no columns, or the log cannot be read.
pub fn join<'a>(
    log: &'a dyn LogReader,
    base: Base<'a>,
    topics: &[&'a Topic],
    select: &Select,
    (options, signals): (JoinOptions, &[Signal]),
) -> Result<Joined<'a>, ExportError> {
    let read = Extended::reads(signals, select);
    let schema = |select: &Select| schema(log, &base, topics, select, options.method);
    let whole = schema(&read)?;
    let extended = match signals {
        [] => None,
        signals => Some(Extended::of(
            schema(select)?.as_ref(),
            &whole,
            signals.iter(),
            |signal| signal.name().to_owned(),
            |operand| format!("{}.{}", label(log, &operand.topic), operand.field),
        )),
    };
    let rows = match base {
        Base::Topic(topic) => Rows::Topic(Cursor::new(log, topic, &read)?),
        Base::Every { first, last, step } => {
            Rows::Every { next: (first <= last).then_some(first), last, step: step.max(1) }
        }
        Base::Times(times) => Rows::Times(times.into_iter()),
    };
    let everything = read.between(None, None);
    let others = topics.iter().map(|topic| Ok(Other::new(Cursor::new(log, topic, &everything)?)));
    let others = others.collect::<Result<_, ExportError>>()?;
    Ok(Joined { base: rows, others, options, read: whole, extended })
}

/// Returns the schema of the joined table: `t_ns`, then `TOPIC.FIELD` for each field.
fn schema(
    log: &dyn LogReader,
    base: &Base<'_>,
    topics: &[&Topic],
    select: &Select,
    method: Method,
) -> Result<SchemaRef, ExportError> {
    let mut fields = vec![Field::new(TIME_COLUMN, DataType::Int64, true)];
    let mut add = |topic: &Topic, linear: bool| {
        fields.extend(prefixed(label(log, &topic.name), &log.own(topic)?.columns(select)?.schema(), linear));
        Ok::<_, ExportError>(())
    };
    if let Base::Topic(topic) = base {
        add(topic, false)?;
    }
    topics.iter().try_for_each(|topic| add(topic, method == Method::Linear))?;
    Ok(Arc::new(Schema::new(fields)))
}

/// Prefixes the fields of a topic with its name and makes them nullable, because a time may have no
/// row.
fn prefixed(topic: &str, schema: &Schema, linear: bool) -> Vec<Field> {
    let fields = schema.fields().iter().skip(1).map(|field| {
        let data_type = if linear { between_type(field.data_type()) } else { field.data_type().clone() };
        let name = format!("{topic}.{}", field.name());
        Field::new(name, data_type, true).with_metadata(field.metadata().clone())
    });
    fields.collect()
}

impl Joined<'_> {
    /// Returns the schema of the batches.
    pub fn schema(&self) -> &SchemaRef {
        self.extended.as_ref().map_or(&self.read, Extended::schema)
    }

    /// Returns the selection used to read each topic.
    pub(crate) fn reads(&self) -> Vec<Select> {
        let base = if let Rows::Topic(cursor) = &self.base { Some(cursor) } else { None };
        let cursors = base.into_iter().chain(self.others.iter().map(|other| &other.rows));
        cursors.map(|cursor| cursor.select().clone()).collect()
    }

    fn batch(&mut self) -> Result<Option<RecordBatch>, ExportError> {
        let Some(mut columns) = self.base.next()? else { return Ok(None) };
        let times = columns[0].as_primitive::<Int64Type>().clone();
        for other in &mut self.others {
            columns.extend(other.at(times.values(), self.options)?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(times.len()));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.read), columns, &options)?;
        match &mut self.extended {
            Some(extended) => extended.extend(&batch).map(Some),
            None => Ok(Some(batch)),
        }
    }
}

impl Iterator for Joined<'_> {
    type Item = Result<RecordBatch, ExportError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.batch().transpose()
    }
}

impl Rows<'_> {
    /// Returns the columns of the next rows. The first column has the times.
    fn next(&mut self) -> Result<Option<Vec<ArrayRef>>, ExportError> {
        let times: Vec<i64> = match self {
            Self::Topic(cursor) => {
                return Ok(cursor.next().transpose()?.map(|batch| batch.columns().to_vec()));
            }
            Self::Times(times) => times.by_ref().take(GRID_ROWS).collect(),
            Self::Every { next, last, step } => {
                let time = || {
                    let time = (*next)?;
                    *next = time.checked_add(*step).filter(|next| *next <= *last);
                    Some(time)
                };
                std::iter::from_fn(time).take(GRID_ROWS).collect()
            }
        };
        Ok((!times.is_empty()).then(|| vec![Arc::new(Int64Array::from(times)) as ArrayRef]))
    }
}

/// A joined topic, read in step with the times of the table.
struct Other<'a> {
    rows: Cursor<'a>,
    /// The batch around the current time. Its first row is the last row of the previous batch,
    /// which a time before the next row still needs.
    current: Option<RecordBatch>,
    /// Number of rows in `current` at or before the current time.
    passed: usize,
    is_over: bool,
}

/// Rows of the current batch that were selected for a run of times.
#[derive(Default)]
struct Picks {
    before: Vec<Option<usize>>,
    after: Vec<Option<usize>>,
    /// Interpolation weight: 0 at the row before, 1 at the row after.
    share: Vec<f64>,
}

impl<'a> Other<'a> {
    fn new(rows: Cursor<'a>) -> Self {
        Self { rows, current: None, passed: 0, is_over: false }
    }

    fn times(&self) -> &[i64] {
        self.current.as_ref().map_or(&[], |batch| batch.column(0).as_primitive::<Int64Type>().values())
    }

    /// Returns the columns for these times. Times must ascend, also from call to call.
    fn at(&mut self, times: &[i64], options: JoinOptions) -> Result<Vec<ArrayRef>, ExportError> {
        let mut parts: Vec<Vec<ArrayRef>> = vec![Vec::new(); self.rows.schema().fields().len() - 1];
        let mut picks = Picks::default();
        for time in times {
            loop {
                let own = self.times();
                self.passed += own[self.passed..].iter().take_while(|own| **own <= *time).count();
                if self.passed < self.times().len() || self.is_over {
                    break;
                }
                self.flush(&mut picks, options.method, &mut parts)?;
                self.more()?;
            }
            picks.add(self.times(), self.passed, *time, options);
        }
        self.flush(&mut picks, options.method, &mut parts)?;
        if times.is_empty() {
            return Ok(Vec::new());
        }
        parts.iter().map(|parts| Ok(concat(parts)?)).collect()
    }

    /// Reads the next batch, and prepends the last row of the current one.
    fn more(&mut self) -> Result<(), ExportError> {
        let Some(next) = self.rows.next().transpose()? else {
            self.is_over = true;
            return Ok(());
        };
        let Some(current) = self.current.take() else {
            self.current = Some(next);
            return Ok(());
        };
        let last = current.slice(current.num_rows() - 1, 1);
        self.current = Some(concat_batches(self.rows.schema(), &[&last, &next])?);
        self.passed = 1;
        Ok(())
    }

    /// Copies the selected rows from the current batch to `parts`.
    fn flush(
        &self,
        picks: &mut Picks,
        method: Method,
        parts: &mut [Vec<ArrayRef>],
    ) -> Result<(), ExportError> {
        let Picks { before, after, share } = std::mem::take(picks);
        if before.is_empty() {
            return Ok(());
        }
        let nothing = || RecordBatch::new_empty(Arc::clone(self.rows.schema()));
        let current = self.current.clone().unwrap_or_else(nothing);
        let picks = |rows: Vec<Option<usize>>| -> pick::Picks {
            rows.into_iter().map(|row| row.map(|row| (0, row))).collect()
        };
        let (before, after) = (picks(before), picks(after));
        for (column, parts) in current.columns().iter().skip(1).zip(parts) {
            let mut found = before.of(&[column])?;
            if method == Method::Linear {
                found = between(&found, &after.of(&[column])?, &share)?;
            }
            parts.push(found);
        }
        Ok(())
    }
}

impl Picks {
    /// Selects the rows for a time. `own` are the times of the batch, and `passed` of them are at
    /// or before `time`.
    fn add(&mut self, own: &[i64], passed: usize, time: i64, options: JoinOptions) {
        let near = |row: usize| {
            let distance = own[row].abs_diff(time);
            options.tolerance.is_none_or(|most| distance <= most).then_some(row)
        };
        let (before, after) = (passed.checked_sub(1), Some(passed).filter(|row| *row < own.len()));
        let (mut share, mut other) = (0.0, None);
        let picked = match (options.method, before, after) {
            (Method::Nearest, Some(before), Some(after)) => {
                let is_later = own[after].abs_diff(time) < own[before].abs_diff(time);
                near(if is_later { after } else { before })
            }
            (Method::Nearest, None, Some(after)) => near(after),
            (Method::Linear, Some(before), after) => {
                // No interpolation is needed at the exact time of a row.
                other = if own[before] == time { Some(before) } else { after.and_then(near) };
                if let Some(after) = after.filter(|_| own[before] != time) {
                    // Subtract before converting: nanoseconds since 1970 are not exact as floats,
                    // but differences of nearby times are.
                    share = own[before].abs_diff(time) as f64 / own[before].abs_diff(own[after]) as f64;
                }
                near(before)
            }
            (_, before, _) => before.and_then(near),
        };
        self.before.push(picked);
        self.after.push(other);
        self.share.push(share);
    }
}

/// Returns the type of interpolated values: floats for numbers, also within lists and structs.
fn between_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::FixedSizeList(item, len) => {
            let data_type = between_type(item.data_type());
            DataType::FixedSizeList(Arc::new(Field::new(item.name(), data_type, true)), *len)
        }
        DataType::Struct(fields) => {
            let fields = fields.iter().map(|field| {
                let made = Field::new(field.name(), between_type(field.data_type()), true);
                made.with_metadata(field.metadata().clone())
            });
            DataType::Struct(fields.collect())
        }
        other if other.is_integer() || other.is_floating() => DataType::Float64,
        other => other.clone(),
    }
}

/// Interpolates between two arrays of rows. A number is null if either side is null. Other values
/// come from `before`.
fn between(before: &ArrayRef, after: &ArrayRef, share: &[f64]) -> Result<ArrayRef, ExportError> {
    let data_type = between_type(before.data_type());
    Ok(match &data_type {
        DataType::FixedSizeList(item, len) => {
            let (a, b) = (before.as_fixed_size_list(), after.as_fixed_size_list());
            let each = usize::try_from(*len).unwrap_or(0);
            let share: Vec<f64> = share.iter().flat_map(|share| std::iter::repeat_n(*share, each)).collect();
            let values = between(a.values(), b.values(), &share)?;
            Arc::new(FixedSizeListArray::try_new(Arc::clone(item), *len, values, both(before, after))?)
        }
        DataType::Struct(fields) => {
            let pairs = before.as_struct().columns().iter().zip(after.as_struct().columns());
            let columns = pairs.map(|(a, b)| between(a, b, share)).collect::<Result<Vec<_>, _>>()?;
            let fields: Fields = fields.clone();
            Arc::new(StructArray::try_new_with_length(fields, columns, both(before, after), before.len())?)
        }
        DataType::Float64 => {
            let (a, b) = (numbers(before), numbers(after));
            let values = share.iter().enumerate().map(|(i, share)| {
                // `b` may be NaN or infinite, and `b * 0` would then be NaN.
                if *share == 0.0 { a[i] } else { a[i] + (b[i] - a[i]) * share }
            });
            Arc::new(Float64Array::new(values.collect(), both(before, after)))
        }
        _ => Arc::clone(before),
    })
}

/// Returns the validity of rows that have a value in both arrays.
fn both(a: &ArrayRef, b: &ArrayRef) -> Option<NullBuffer> {
    NullBuffer::union(a.logical_nulls().as_ref(), b.logical_nulls().as_ref())
}
