//! Several topics as one table: rows at the times of one topic, or at regular times.
//!
//! Times are compared as integers. Of each topic, one batch is in memory, whatever the length of
//! the log.

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
use rovelog::{LogReader, Select, Topic};

use super::cursor::Cursor;
use super::extend::Extended;
use super::find::{Signal, label};
use crate::ExportError;
use crate::leaf::numbers;
use crate::pick::{self, concat, concat_batches};

/// Rows of a batch at regular times.
const GRID_ROWS: usize = 4096;

/// Which row of a topic a time gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// The last row at or before the time.
    #[default]
    Previous,
    /// The nearest row; of two at the same distance, the earlier one.
    Nearest,
    /// Numbers on the line between the rows before and after, as 64-bit floats; other values are
    /// those of the row before.
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

/// The times of the rows.
#[derive(Clone, Debug)]
pub enum Base<'a> {
    /// Those of a topic, whose own fields come first.
    Topic(&'a Topic),
    /// Every `step` nanoseconds from `first` to `last`, nanoseconds of the log's clock.
    Every {
        /// The first time.
        first: i64,
        /// The last time, at most.
        last: i64,
        /// Nanoseconds between two rows; 1 or more.
        step: i64,
    },
    /// These, in ascending order.
    Times(Vec<i64>),
}

/// How topics are joined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct JoinOptions {
    /// Which row a time gets.
    pub method: Method,
    /// The largest distance between a time and a row, in nanoseconds; what is farther is null.
    pub tolerance: Option<u64>,
}

/// One table of several topics, batch by batch: `t_ns`, then `TOPIC.FIELD` for each field.
pub struct Joined<'a> {
    base: Rows<'a>,
    others: Vec<Other<'a>>,
    options: JoinOptions,
    /// The schema of what is read.
    read: SchemaRef,
    extended: Option<Extended>,
}

/// The rows of the table that are still to come.
enum Rows<'a> {
    Topic(Cursor<'a>),
    Every { next: Option<i64>, last: i64, step: i64 },
    Times(std::vec::IntoIter<i64>),
}

/// Joins topics. `select` bounds the times of the rows and names the fields; values of the joined
/// topics may be from before or after these times. `signals` become further columns.
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

/// Returns the schema of joined topics: `t_ns`, then `TOPIC.FIELD` for each field.
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

/// Returns the fields of a topic's rows under its name, nullable.
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

    /// Returns what is read of each topic.
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
    /// Returns the columns of the next rows, times first.
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

/// A topic that is joined.
struct Other<'a> {
    rows: Cursor<'a>,
    /// The rows around the last time; the first one is the last row of the batch before.
    current: Option<RecordBatch>,
    /// Number of rows of `current` that are at or before the last time.
    passed: usize,
    is_over: bool,
}

/// Rows of the current batch for some times.
#[derive(Default)]
struct Picks {
    before: Vec<Option<usize>>,
    after: Vec<Option<usize>>,
    /// Position between both: 0 at the row before.
    share: Vec<f64>,
}

impl<'a> Other<'a> {
    fn new(rows: Cursor<'a>) -> Self {
        Self { rows, current: None, passed: 0, is_over: false }
    }

    fn times(&self) -> &[i64] {
        self.current.as_ref().map_or(&[], |batch| batch.column(0).as_primitive::<Int64Type>().values())
    }

    /// Returns the columns at these times, which ascend from call to call.
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

    /// Goes on to the next batch, with the last row of this one before it.
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

    /// Copies the picked rows.
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
    /// Adds the rows for a time: `passed` of the rows are at or before it.
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
                // At the time of a row there is nothing to interpolate.
                other = if own[before] == time { Some(before) } else { after.and_then(near) };
                if let Some(after) = after.filter(|_| own[before] != time) {
                    // Differences are exact as integers; the share of a span fits a float.
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

/// Returns the type of values between two of this type.
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

/// Returns the values between those of two arrays: numbers on the line between both, null without
/// one of the two; other values are those of `before`.
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
                // Exactly the value of a row at its time, whatever the next one is.
                if *share == 0.0 { a[i] } else { a[i] + (b[i] - a[i]) * share }
            });
            Arc::new(Float64Array::new(values.collect(), both(before, after)))
        }
        _ => Arc::clone(before),
    })
}

/// Returns where both arrays have a value.
fn both(a: &ArrayRef, b: &ArrayRef) -> Option<NullBuffer> {
    NullBuffer::union(a.logical_nulls().as_ref(), b.logical_nulls().as_ref())
}
